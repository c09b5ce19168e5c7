//! The options of `lda train` by the headings of its help.

use std::path::PathBuf;

use clap::builder::{PathBufValueParser, TypedValueParser};
use clap::value_parser;
use lda_core::prior::Alpha;
use lda_core::simd::Isa;
use lda_core::train::{Learn, LearnAlpha, LevelOff, OptionsError, SamplerOptions, Start};
use lda_examples::matrix::Layout;
use lda_examples::parsers::{alpha, learn_parser, positive, share, start_parser};

use crate::commands::train::args::values::{Sampler, isa_parser, lambda, sampler_parser, size};
use crate::commands::train::error::TrainError;
use crate::commands::train::plot::Picture;

/// Held-out documents.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Input")]
pub struct HoldOutArgs {
    /// Share of the documents to keep out of training, to report held-out perplexity (lower is
    /// better). They stay in the outputs as documents without tokens
    #[arg(long, value_name = "SHARE", value_parser = share(false))]
    pub held_out: Option<f64>,
    /// Stop early after N evaluations in a row without an improvement of the held-out perplexity by
    /// at least 0.1 %
    #[arg(long, value_name = "N", requires = "held_out",
        value_parser = value_parser!(u32).range(1..))]
    pub patience: Option<u32>,
}

/// The model and its priors.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Model")]
pub struct ModelArgs {
    /// Number of topics
    #[arg(short = 'k', long, value_name = "K", default_value_t = 100,
        value_parser = value_parser!(u32).range(1..))]
    pub topics: u32,
    /// Sampler; auto picks the one expected to finish first for this number of topics and these
    /// document lengths
    #[arg(long, value_name = "SAMPLER", default_value = "auto", value_parser = sampler_parser())]
    pub sampler: Sampler,
    /// Prior of topics in a document: a large prior gives many topics per document, a small one few.
    /// One number, or K numbers separated by commas, one per topic [default: an eighth of the
    /// mean length of documents, from 1 to 50, over K]
    #[arg(long, value_name = "X", value_parser = alpha)]
    pub alpha: Option<Alpha>,
    /// Recompute the prior of topics from the topic sizes in each epoch. X tokens are added to the
    /// sizes, evenly: the larger X, the more uniform the prior
    #[arg(long, value_name = "X", value_parser = positive)]
    pub alpha_by_size: Option<f64>,
    /// Learn the prior of topics in a document: one value for all topics, or one per topic
    #[arg(long, value_name = "HOW", value_parser = learn_parser())]
    pub learn_alpha: Option<LearnAlpha>,
    /// Learn the prior of words in a topic
    #[arg(long)]
    pub learn_beta: bool,
    /// Epochs before the first prior update
    #[arg(long, value_name = "N", default_value_t = Learn::default().burn_in)]
    pub learn_burn_in: u32,
    /// Epochs between prior updates
    #[arg(long, value_name = "N", default_value_t = Learn::default().every,
        value_parser = value_parser!(u32).range(1..))]
    pub learn_every: u32,
    /// Prior of words in a topic: a large prior gives broad topics, a small one narrow topics
    #[arg(long, value_name = "X", default_value_t = 0.01,
        value_parser = positive)]
    pub beta: f64,
    /// Random seed; the same seed and options give the same topics on any machine
    #[arg(long, value_name = "S", default_value_t = 0)]
    pub seed: u64,
}

/// Initialization of a run.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Initialization")]
pub struct InitArgs {
    /// Continue from a model that --save wrote, with new documents: its counts are added to theirs,
    /// its vocabulary is kept, and so are its priors and number of topics unless given (no fewer
    /// topics). With --resume, name the model of that run again
    #[arg(long, value_name = "MODEL")]
    pub from: Option<PathBuf>,
    /// Share of the counts of the --from model to keep: 1 is as if its documents were still in the
    /// corpus, less lets it forget
    #[arg(long, value_name = "SHARE", default_value_t = 1.0, value_parser = positive,
        requires = "from", conflicts_with = "resume")]
    pub from_share: f64,
    /// File of seed words: one topic per line, words separated by blanks. The first line is topic 0;
    /// an empty line leaves its topic without seeds; lines that begin with # are comments
    #[arg(long, value_name = "FILE", conflicts_with_all = ["resume", "from"])]
    pub seed_topics: Option<PathBuf>,
    /// Number of tokens that each seed word counts as: a few pull the topic towards its seeds, as many
    /// as the documents have fix it there
    #[arg(long, value_name = "N", default_value_t = 100, requires = "seed_topics",
        value_parser = value_parser!(u32).range(1..))]
    pub seed_weight: u32,
}

/// When a run ends.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "When to stop (default: when the likelihood levels off)")]
pub struct StopArgs {
    /// Stop after N epochs; an epoch samples every token once
    #[arg(long, value_name = "N", value_parser = value_parser!(u32).range(1..))]
    pub epochs: Option<u32>,
    /// Stop after this many seconds of sampling
    #[arg(long, value_name = "SECONDS", value_parser = positive)]
    pub seconds: Option<f64>,
    /// Stop when the likelihood gains less than this share from one window of evaluations to the
    /// next; needed only together with --epochs or --seconds, or to change the share
    #[arg(long, value_name = "SHARE", num_args = 0..=1, require_equals = true,
        default_missing_value = "0.0005", value_parser = positive)]
    pub level_off: Option<f64>,
    /// Evaluations per window of --level-off [default: 3]
    #[arg(long, value_name = "N", value_parser = value_parser!(u16).range(1..))]
    pub level_off_window: Option<u16>,
    /// Epochs between evaluations of the likelihood, which the last epoch always has; 0 for never
    #[arg(long, value_name = "N", default_value_t = 10)]
    pub evaluate_every: u32,
}

/// Resources, and options of single samplers.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Machine and samplers")]
pub struct MachineArgs {
    /// Number of threads; does not change results [default: all cores]
    #[arg(long, value_name = "N", value_parser = value_parser!(u16).range(1..=1024))]
    pub threads: Option<u16>,
    /// Memory limit, such as 500MiB or 8GiB. Documents that may not fit are cut into blocks on disk, of which a
    /// few are in memory at a time; this changes results as a different seed does. Training that still needs
    /// more is refused [default: the memory of the machine, without blocks]
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub memory_limit: Option<u64>,
    /// Directory for the blocks of documents that do not fit into --memory-limit, which are removed in the end
    /// [default: the directory for temporary files]
    #[arg(long, value_name = "DIR")]
    pub scratch: Option<PathBuf>,
    /// Tokens of a block of such documents. Changes results
    #[arg(long, value_name = "N", default_value_t = 4_194_304,
        value_parser = value_parser!(u64).range(1..=1 << 32))]
    pub block_tokens: u64,
    /// Initial topics of the tokens: drawn from all topics, or from a small random subset per word or
    /// per document, which makes the first epochs faster
    #[arg(long, value_name = "START", default_value = Start::default().name(),
        value_parser = start_parser())]
    pub start: Start,
    /// sparse-word, sparse-document: share of the topics in each subset of --start [default: 0.1]
    #[arg(long, value_name = "SHARE", value_parser = share(true))]
    pub start_degree: Option<f64>,
    /// Epoch from which tokens that keep their topic are sampled less and less often: faster, but
    /// biased. Not for warp and hybrid
    #[arg(long, value_name = "EPOCH", value_parser = value_parser!(u32).range(1..))]
    pub exclude_converged_from: Option<u32>,
    /// Warm-up epochs with the warp sampler, which are shorter and reach a rough model faster
    /// [default: 0 with --sampler, otherwise chosen from the number of topics and the document
    /// lengths, at most half of --epochs]
    #[arg(long, value_name = "N")]
    pub warm_up: Option<u32>,
    /// alias, light, warp, hybrid: Metropolis-Hastings steps per token and pass. With warp and hybrid
    /// each step is a proposal stored with the token [default: 1]
    #[arg(long, value_name = "M")]
    pub mh_steps: Option<u32>,
    /// hybrid: maximum Metropolis-Hastings steps per token and epoch. The passes of warp are repeated
    /// until a token has had as many steps as one acceptance takes on average [default: 16]
    #[arg(long, value_name = "M")]
    pub mh_steps_cap: Option<u32>,
    /// hybrid: longest document, in tokens, that f-plus samples; warp samples longer ones [default:
    /// chosen from the number of topics]
    #[arg(long, value_name = "TOKENS")]
    pub short_length: Option<u32>,
    /// Number of ranges of documents and of words, so that G blocks are sampled in parallel. Changes
    /// results as a different seed does [default: chosen from the number of tokens]
    #[arg(long, value_name = "G")]
    pub ranges: Option<usize>,
    /// Instruction set; does not change results [default: the best of this machine]
    #[arg(long, value_name = "SET", value_parser = isa_parser())]
    pub isa: Option<Isa>,
}

/// Checkpoints of a run.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Checkpoints")]
pub struct CheckpointArgs {
    /// Directory for checkpoints, from which --resume continues
    #[arg(long, value_name = "DIR")]
    pub checkpoint: Option<PathBuf>,
    /// Epochs between checkpoints; the last epoch always has one [default: by time, 10 minutes]
    #[arg(long, value_name = "N", conflicts_with = "checkpoint_minutes",
        value_parser = value_parser!(u32).range(1..))]
    pub checkpoint_every: Option<u32>,
    /// Minutes between checkpoints; the last epoch always has one
    #[arg(long, value_name = "MINUTES", value_parser = positive)]
    pub checkpoint_minutes: Option<f64>,
    /// Number of checkpoints to keep
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = value_parser!(u16).range(1..))]
    pub checkpoint_keep: u16,
    /// Continue the run whose checkpoints are in this directory, with the same topics as without the
    /// interruption. PATH and the input options must be the same; other options default to those of
    /// the run. --epochs and --seconds count from its start. New checkpoints go to the same directory
    /// unless --checkpoint names another
    #[arg(long, value_name = "DIR")]
    pub resume: Option<PathBuf>,
}

/// Output files and the table of topics.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Results")]
pub struct ResultArgs {
    /// Words per topic in the table
    #[arg(long, value_name = "N", default_value_t = 10)]
    pub top_words: usize,
    /// Weight of the probability in the relevance that orders words: 1 orders by probability in the
    /// topic, less prefers words that other topics lack; 0.6 distinguishes topics well
    #[arg(long, value_name = "LAMBDA", default_value_t = 0.6, value_parser = lambda)]
    pub relevance: f64,
    /// Number of topics in the table, largest first
    #[arg(long, value_name = "N", default_value_t = 100)]
    pub show_topics: usize,
    /// Print coherence, exclusivity and other measures of the topics
    #[arg(long)]
    pub coherence: bool,
    /// Write the same measures to this file, as CSV
    #[arg(long, value_name = "FILE")]
    pub diagnostics: Option<PathBuf>,
    /// Do not print progress
    #[arg(short, long)]
    pub quiet: bool,
    /// Write one JSON object per evaluated epoch to this file, one per line. A pipe, or /dev/stderr,
    /// shows them during the run
    #[arg(long, value_name = "FILE")]
    pub log: Option<PathBuf>,
    /// Write the topic of every token to this file, one per line: documents in order, words of a
    /// document by ascending number. The options go into FILE.json
    #[arg(long, value_name = "FILE")]
    pub assignments: Option<PathBuf>,
    /// Write the topics of each document to this file: shares as .csv or .npy, or non-zero token
    /// counts as .mtx (MatrixMarket). The options go into the file, for .npy into FILE.json
    #[arg(long, value_name = "FILE", value_parser = PathBufValueParser::new().try_map(Layout::check))]
    pub doc_topics: Option<PathBuf>,
    /// Write the words of each topic to this file, in the same formats
    #[arg(long, value_name = "FILE", value_parser = PathBufValueParser::new().try_map(Layout::check))]
    pub topic_words: Option<PathBuf>,
    /// Write the model to this file: topics, priors, vocabulary and options, for lda infer or --from
    #[arg(long, value_name = "FILE")]
    pub save: Option<PathBuf>,
    /// Plot the likelihood over time to this file, .png or .svg
    #[arg(long, value_name = "FILE", value_parser = PathBufValueParser::new().try_map(Picture::check))]
    pub plot: Option<PathBuf>,
}

impl ResultArgs {
    /// True if an option asks for measures of the topics.
    pub fn measures_topics(&self) -> bool {
        self.coherence || self.diagnostics.is_some()
    }
}

impl StopArgs {
    /// The stopping rule, if `--level-off` or `--level-off-window` is given.
    pub fn level_off(&self) -> Option<LevelOff> {
        let rule = LevelOff::default();
        (self.level_off.is_some() || self.level_off_window.is_some()).then(|| LevelOff {
            window: self.level_off_window.map_or(rule.window, usize::from),
            tolerance: self.level_off.unwrap_or(rule.tolerance),
        })
    }
}

impl MachineArgs {
    /// `sampler` with its own options from the command line.
    pub fn sampler_options(
        &self,
        mut sampler: SamplerOptions,
    ) -> Result<SamplerOptions, TrainError> {
        // The library's message begins with the option's name.
        let refuse = |error: OptionsError| TrainError::Usage(format!("--{error}"));
        if let Some(steps) = self.mh_steps {
            sampler = sampler.with_steps(steps).map_err(refuse)?;
        }
        if let Some(epoch) = self.exclude_converged_from {
            sampler = sampler.with_exclusion(epoch).map_err(refuse)?;
        }
        if let Some(tokens) = self.short_length {
            sampler = sampler.with_short_length(tokens).map_err(refuse)?;
        }
        if let Some(steps) = self.mh_steps_cap {
            sampler = sampler.with_step_cap(steps).map_err(refuse)?;
        }
        Ok(sampler)
    }
}

impl ModelArgs {
    /// Priors to learn; `None` if neither `--learn-alpha` nor `--learn-beta` is given.
    pub fn learn(&self) -> Option<Learn> {
        (self.learn_alpha.is_some() || self.learn_beta).then(|| Learn {
            alpha: self.learn_alpha.unwrap_or(LearnAlpha::Fixed),
            beta: self.learn_beta,
            burn_in: self.learn_burn_in,
            every: self.learn_every,
        })
    }
}
