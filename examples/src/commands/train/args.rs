//! Options of `lda train`.
//!
//! Their names and meanings are stable, because other programs call this one. clap rejects what it
//! can check before any file is read, with exit status 2.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::iter;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::builder::{PathBufValueParser, PossibleValuesParser, TypedValueParser, ValueParser};
use clap::parser::ValueSource;
use clap::{ArgMatches, Parser, value_parser};
use lda_core::eval::Ranking;
use lda_core::prior::Alpha;
use lda_core::simd::Isa;
use lda_core::train::{
    Checkpoints, Learn, LearnAlpha, LevelOff, OptionsError, SamplerKind, SamplerOptions, Snapshot,
    Start, TrainOptions,
};

use lda_examples::output::sidecar;
use lda_examples::parsers::{number, positive, share};
use lda_examples::reading::ReadingArgs;

use crate::commands::train::error::TrainError;
use crate::commands::train::init::InitArgs;
use crate::commands::train::plot::Picture;
use lda_examples::matrix::Layout;

const AFTER_HELP: &str = "\
Examples:
  lda train                                      train on the Rust sources of this machine
  lda train reviews.txt                          a text file: one document per line
  lda train papers/ --topics 50 --top-words 12   a directory: one document per file
  lda train docword.nips.txt.gz --vocabulary vocab.nips.txt.gz --topics 1000 --plot nips.png

The table of topics goes to standard output; progress and errors go to standard error.
Ctrl-C stops the run after the current epoch and writes all results; a second Ctrl-C exits at once.
Output files appear only when they are complete; a failed run leaves none behind.
Exit status: 0 success, 1 failure, 2 wrong usage.";

/// Train topics on a collection of documents (latent Dirichlet allocation)
#[derive(Debug, Parser)]
#[command(name = "train", after_help = AFTER_HELP,
    allow_negative_numbers = true)]
pub struct Args {
    /// Documents to train on: a file, or a directory of text files. The format is detected; gzip and
    /// zstd are decompressed [default: the Rust sources in cargo's registry]
    pub path: Option<PathBuf>,

    #[command(flatten)]
    pub reading: ReadingArgs,
    #[command(flatten)]
    pub hold_out: HoldOutArgs,
    #[command(flatten)]
    pub model: ModelArgs,
    #[command(flatten)]
    pub init: InitArgs,
    #[command(flatten)]
    pub stop: StopArgs,
    #[command(flatten)]
    pub machine: MachineArgs,
    #[command(flatten)]
    pub checkpoints: CheckpointArgs,
    #[command(flatten)]
    pub results: ResultArgs,

    /// Ids of the options that were given on the command line.
    #[arg(skip)]
    given: HashSet<String>,
}

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
    /// One number, or K numbers separated by commas, one per topic [default: 50/K]
    #[arg(long, value_name = "X", value_parser = alpha)]
    pub alpha: Option<Alpha>,
    /// Recompute the prior of topics from the topic sizes in each epoch. X tokens are added to the
    /// size of each topic: the larger X, the more uniform the prior
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

#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Machine and samplers")]
pub struct MachineArgs {
    /// Number of threads; does not change results [default: all cores]
    #[arg(long, value_name = "N", value_parser = value_parser!(u16).range(1..=1024))]
    pub threads: Option<u16>,
    /// Memory limit, such as 500MiB or 8GiB; training that needs more is refused
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub memory_limit: Option<u64>,
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

impl Args {
    /// Records which options were given on the command line.
    pub fn record_given(&mut self, matches: &ArgMatches) {
        let typed =
            |id: &&clap::Id| matches.value_source(id.as_str()) == Some(ValueSource::CommandLine);
        self.given = matches.ids().filter(typed).map(|id| id.as_str().to_owned()).collect();
    }

    /// Whether `option` was given on the command line.
    pub fn is_given(&self, option: &str) -> bool {
        self.given.contains(option)
    }

    /// Options of a resumed run: options that affect the draws are the run's unless they are given on
    /// the command line.
    pub fn options_of(&self, snapshot: &Snapshot) -> Result<TrainOptions, TrainError> {
        let run = SamplerOptions::from(snapshot.resolved());
        self.apply(snapshot.options(), run, |option| self.given.contains(option))
    }

    /// Options of a new run.
    pub fn options(&self) -> Result<TrainOptions, TrainError> {
        self.apply(TrainOptions::default(), SamplerOptions::default(), |_| true)
    }

    /// `options` with those of the command line that `is_set` allows; limits of the run always.
    fn apply(
        &self,
        mut options: TrainOptions,
        sampler: SamplerOptions,
        is_set: impl Fn(&str) -> bool,
    ) -> Result<TrainOptions, TrainError> {
        let Self { model, stop, machine, .. } = self;
        macro_rules! set {
            ($($option:ident: $value:expr),+ $(,)?) => {
                $(if is_set(stringify!($option)) {
                    options = options.$option($value);
                })+
            };
        }
        set!(
            topics: model.topics,
            beta: model.beta,
            seed: model.seed,
            warm_up: machine.warm_up,
            start: machine.start,
            alpha_by_size: model.alpha_by_size,
            ranges: machine.ranges,
        );
        if let Some(alpha) = &model.alpha {
            options = options.alpha(alpha.clone());
        }
        if let Some(share) = machine.start_degree {
            options = options.start_degree(share);
        }
        let learn = ["learn_alpha", "learn_beta", "learn_burn_in", "learn_every"];
        if learn.iter().any(|option| is_set(option)) {
            options = options.learn(model.learn());
        }
        let sampler = if is_set("sampler") { model.sampler.0.into() } else { sampler };
        // The global pool has the number of threads asked for, so that evaluation uses it too.
        Ok(options
            .sampler(machine.sampler_options(sampler)?)
            .epochs(stop.epochs)
            .seconds(stop.seconds)
            .level_off(stop.level_off())
            .evaluate_every(stop.evaluate_every)
            .memory_limit(machine.memory_limit)
            .isa(machine.isa))
    }

    /// Directory and schedule of checkpoints; `None` without `--checkpoint` and `--resume`.
    pub fn checkpoints(&self) -> Option<Checkpoints> {
        let CheckpointArgs { checkpoint, checkpoint_every, checkpoint_minutes, .. } =
            &self.checkpoints;
        let resume = &self.checkpoints.resume;
        let directory = checkpoint.as_ref().or(resume.as_ref())?;
        let mut checkpoints =
            Checkpoints::new(directory).keep(self.checkpoints.checkpoint_keep.into());
        if let Some(epochs) = checkpoint_every {
            checkpoints = checkpoints.every_epochs(*epochs);
        }
        if let Some(minutes) = checkpoint_minutes {
            let time = Duration::try_from_secs_f64(minutes * 60.0).unwrap_or(Duration::MAX);
            checkpoints = checkpoints.every_time(time);
        }
        let own = resume.as_ref().is_some_and(|run| identity(run) == identity(directory));
        Some(if own { checkpoints.take_over() } else { checkpoints })
    }

    /// Order of the words of a topic.
    pub fn ranking(&self) -> Ranking {
        if self.results.relevance == 1.0 {
            Ranking::Probability
        } else {
            Ranking::Relevance { lambda: self.results.relevance }
        }
    }

    /// Checks what clap cannot: priors against the number of topics, outputs that would be empty, and
    /// files named twice.
    pub fn check(&self) -> Result<(), TrainError> {
        self.check_priors()?;
        self.check_dependents()?;
        self.check_evaluations()?;
        self.check_files()
    }

    fn check_priors(&self) -> Result<(), TrainError> {
        let Some(alpha) = &self.model.alpha else { return Ok(()) };
        if self.checkpoints.resume.is_some() || self.init.from.is_some() {
            // The number of topics then comes from the run or the model.
            return Ok(());
        }
        alpha
            .check(self.model.topics as usize)
            .map_err(|error| TrainError::Usage(error.to_string()))
    }

    /// Refuses options that have no effect without another one.
    fn check_dependents(&self) -> Result<(), TrainError> {
        let needs = |option: &str, other: &str| {
            Err(TrainError::Usage(format!(
                "--{option} needs {other}: give it too, or omit --{option}"
            )))
        };
        // A resumed run has the options of its start.
        let is_new = self.checkpoints.resume.is_none();
        let learns = self.model.learn_alpha.is_some() || self.model.learn_beta;
        for (option, name) in [("learn_burn_in", "learn-burn-in"), ("learn_every", "learn-every")] {
            if self.is_given(option) && !learns {
                return needs(name, "--learn-alpha or --learn-beta");
            }
        }
        let MachineArgs { start, start_degree, .. } = &self.machine;
        if is_new && start_degree.is_some() && *start == Start::Random {
            return needs("start-degree", "--start sparse-word or --start sparse-document");
        }
        let CheckpointArgs { checkpoint, checkpoint_every, checkpoint_minutes, .. } =
            &self.checkpoints;
        if is_new && checkpoint.is_none() {
            for (name, is_given) in [
                ("checkpoint-every", checkpoint_every.is_some()),
                ("checkpoint-minutes", checkpoint_minutes.is_some()),
                ("checkpoint-keep", self.is_given("checkpoint_keep")),
            ] {
                if is_given {
                    return needs(name, "--checkpoint");
                }
            }
        }
        Ok(())
    }

    fn check_evaluations(&self) -> Result<(), TrainError> {
        let ResultArgs { log, plot, .. } = &self.results;
        for (option, path) in [("--log", log), ("--plot", plot)] {
            if path.is_some() && self.stop.evaluate_every == 0 {
                return Err(TrainError::Usage(format!(
                    "{option} needs evaluations, but --evaluate-every is 0: give 1 or more"
                )));
            }
        }
        Ok(())
    }

    fn check_files(&self) -> Result<(), TrainError> {
        let ResultArgs { log, assignments, doc_topics, topic_words, save, plot, .. } =
            &self.results;
        let stop_words = self.reading.text.stop_words.as_ref().filter(|list| list.exists());
        let given = [
            ("PATH", self.path.as_ref()),
            ("--vocabulary", self.reading.vocabulary.as_ref()),
            ("--dates", self.reading.dates.as_ref()),
            ("--stop-words", stop_words),
            ("--from", self.init.from.as_ref()),
            ("--seed-topics", self.init.seed_topics.as_ref()),
            ("--log", log.as_ref()),
            ("--assignments", assignments.as_ref()),
            ("--doc-topics", doc_topics.as_ref()),
            ("--topic-words", topic_words.as_ref()),
            ("--save", save.as_ref()),
            ("--plot", plot.as_ref()),
        ];
        let inputs = 6;
        let mut seen: HashMap<PathBuf, &str> = HashMap::new();
        for (place, (option, path)) in given.into_iter().enumerate() {
            let Some(path) = path else { continue };
            // The options of an output may go into its sidecar.
            let files =
                if place < inputs { vec![path.clone()] } else { vec![path.clone(), sidecar(path)] };
            for file in files {
                let first = seen.insert(identity(&file), option);
                if let Some(first) = first.filter(|_| place >= inputs && !path.starts_with("/dev"))
                {
                    return Err(TrainError::Usage(format!(
                        "{first} and {option} both name {}: give two files",
                        file.display()
                    )));
                }
            }
        }
        Ok(())
    }
}

/// A path that is equal for two spellings of the same file.
fn identity(path: &Path) -> PathBuf {
    if let Ok(path) = fs::canonicalize(path) {
        return path;
    }
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    match (fs::canonicalize(parent.unwrap_or(Path::new("."))), path.file_name()) {
        (Ok(parent), Some(name)) => parent.join(name),
        _ => path.to_owned(),
    }
}

/// A sampler; `None` lets the library choose.
#[derive(Clone, Copy, Debug)]
pub struct Sampler(Option<SamplerKind>);

fn sampler_parser() -> ValueParser {
    let names = iter::once("auto").chain(SamplerKind::ALL.map(SamplerKind::name));
    PossibleValuesParser::new(names)
        .try_map(|name| match name.as_str() {
            "auto" => Ok(Sampler(None)),
            name => name.parse().map(|kind| Sampler(Some(kind))),
        })
        .into()
}

impl StopArgs {
    /// The stopping rule, if `--level-off` or `--level-off-window` is given.
    fn level_off(&self) -> Option<LevelOff> {
        let rule = LevelOff::default();
        (self.level_off.is_some() || self.level_off_window.is_some()).then(|| LevelOff {
            window: self.level_off_window.map_or(rule.window, usize::from),
            tolerance: self.level_off.unwrap_or(rule.tolerance),
        })
    }
}

impl MachineArgs {
    /// `sampler` with its own options from the command line.
    fn sampler_options(&self, mut sampler: SamplerOptions) -> Result<SamplerOptions, TrainError> {
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
    fn learn(&self) -> Option<Learn> {
        (self.learn_alpha.is_some() || self.learn_beta).then(|| Learn {
            alpha: self.learn_alpha.unwrap_or(LearnAlpha::Fixed),
            beta: self.learn_beta,
            burn_in: self.learn_burn_in,
            every: self.learn_every,
        })
    }
}

fn learn_parser() -> ValueParser {
    PossibleValuesParser::new(LearnAlpha::ALL.map(LearnAlpha::name))
        .map(|name| {
            let named = |alpha: &LearnAlpha| alpha.name() == name;
            LearnAlpha::ALL.into_iter().find(named).expect("one of the names above")
        })
        .into()
}

fn start_parser() -> ValueParser {
    PossibleValuesParser::new(Start::ALL.map(Start::name))
        .map(|name| {
            let named = |start: &Start| start.name() == name;
            Start::ALL.into_iter().find(named).expect("one of the names above")
        })
        .into()
}

fn isa_parser() -> ValueParser {
    PossibleValuesParser::new(["scalar", "avx2", "avx512"])
        .map(|name| match name.as_str() {
            "avx512" => Isa::Avx512,
            "avx2" => Isa::Avx2,
            _ => Isa::Scalar,
        })
        .into()
}

fn alpha(text: &str) -> Result<Alpha, String> {
    let values = text.split(',').map(positive).collect::<Result<Vec<f64>, String>>()?;
    Ok(if let [alpha] = values[..] { Alpha::Symmetric(alpha) } else { Alpha::PerTopic(values) })
}

fn lambda(text: &str) -> Result<f64, String> {
    let value = number(text)?;
    if (0.0..=1.0).contains(&value) { Ok(value) } else { Err("give a number from 0 to 1".into()) }
}

/// Parses a size in bytes with an optional unit.
fn size(text: &str) -> Result<u64, String> {
    let text = text.trim();
    let unit_at = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let value: f64 = number(&text[..unit_at])?;
    let unit = match text[unit_at..].trim().to_ascii_lowercase().as_str() {
        "" | "b" => 1.0,
        "kib" | "k" => 1024.0,
        "mib" | "m" => 1024.0 * 1024.0,
        "gib" | "g" => 1024.0 * 1024.0 * 1024.0,
        "kb" => 1e3,
        "mb" => 1e6,
        "gb" => 1e9,
        _ => return Err("give a number of bytes, or one with MiB or GiB".to_owned()),
    };
    let bytes = value * unit;
    if bytes >= 1.0 && bytes < u64::MAX as f64 {
        Ok(bytes as u64)
    } else {
        Err("give at least 1 byte, and less than 2^64".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    fn parse(line: &str) -> Args {
        Args::try_parse_from(line.split_whitespace()).unwrap()
    }

    #[test]
    fn the_command_is_well_formed() {
        Args::command().debug_assert();
    }

    #[test]
    fn defaults_are_those_of_the_contract() {
        assert_eq!(parse("train").options().unwrap(), TrainOptions::default());
    }

    #[test]
    fn every_option_of_training_arrives() {
        let line = "train x --topics 7 --sampler hybrid --alpha 0.5 --beta 0.1 --seed 9 \
            --epochs 3 --seconds 2.5 --level-off=0.01 --evaluate-every 2 --mh-steps 2 \
            --mh-steps-cap 8 --start sparse-word --start-degree 0.2 --alpha-by-size 30 \
            --warm-up 5 --short-length 60 --ranges 4 --isa scalar \
            --memory-limit 2MiB --learn-alpha fixed --learn-beta --learn-burn-in 7 --learn-every 2";
        let hybrid = SamplerOptions::Hybrid { steps: 2, step_cap: 8, short_length: Some(60) };
        let expected = TrainOptions::new(7)
            .alpha(0.5)
            .beta(0.1)
            .sampler(hybrid)
            .seed(9)
            .epochs(3)
            .seconds(2.5)
            .level_off(LevelOff { window: 3, tolerance: 0.01 })
            .evaluate_every(2)
            .warm_up(5)
            .start(Start::SparseWord)
            .start_degree(0.2)
            .alpha_by_size(30.0)
            .learn(Learn { alpha: LearnAlpha::Fixed, beta: true, burn_in: 7, every: 2 })
            .ranges(4)
            .memory_limit(2 << 20)
            .isa(Isa::Scalar);
        assert_eq!(parse(line).options().unwrap(), expected);
        let exclude = parse("train x --exclude-converged-from 4").options().unwrap();
        let auto = SamplerOptions::Auto { exclude_from: Some(4) };
        assert_eq!(exclude, TrainOptions::default().sampler(auto));
    }

    #[test]
    fn options_that_a_sampler_does_not_have_are_refused() {
        for (option, able) in [
            ("mh-steps", "alias light warp hybrid"),
            ("mh-steps-cap", "hybrid"),
            ("short-length", "hybrid"),
            (
                "exclude-converged-from",
                "auto exact f-plus f-plus-doc sparse alias light zen zen-doc zen-hybrid",
            ),
        ] {
            let able: Vec<&str> = able.split(' ').collect();
            for sampler in SamplerKind::ALL.map(SamplerKind::name).into_iter().chain(["auto"]) {
                let line = format!("train x --sampler {sampler} --{option} 5");
                match parse(&line).options() {
                    Ok(_) => assert!(able.contains(&sampler), "{line}"),
                    Err(error) => {
                        assert!(!able.contains(&sampler), "{line}: {error}");
                        let error = error.to_string();
                        let start = format!("--{option} applies to the sampler");
                        let end =
                            format!("not to {sampler}: leave it out, or choose another sampler");
                        assert!(error.starts_with(&start) && error.ends_with(&end), "{error}");
                    }
                }
            }
        }
    }

    #[test]
    fn options_without_effect_are_refused() {
        for (line, expected) in [
            ("--start-degree 0.2", "--start-degree needs --start sparse-word or"),
            ("--start random --start-degree 0.2", "--start-degree needs --start sparse-word or"),
            ("--checkpoint-every 3", "--checkpoint-every needs --checkpoint: give it too, or omit"),
            ("--checkpoint-minutes 3", "--checkpoint-minutes needs --checkpoint:"),
        ] {
            let error = parse(&format!("train x {line}")).check().unwrap_err().to_string();
            assert!(error.starts_with(expected), "{error}");
        }
        for line in ["--start sparse-word --start-degree 0.2", "--resume d --start-degree 0.2"] {
            parse(&format!("train x {line}")).check().unwrap();
        }
    }

    #[test]
    fn alpha_is_a_number_or_a_list() {
        assert_eq!(alpha("0.5"), Ok(Alpha::Symmetric(0.5)));
        assert_eq!(alpha("0.5, 1"), Ok(Alpha::PerTopic(vec![0.5, 1.0])));
        for bad in ["", "0", "-1", "nan", "inf", "0.5,", "x"] {
            assert!(alpha(bad).is_err(), "{bad}");
        }
        assert!(parse("train --topics 3 --alpha 1,2").check().is_err());
    }

    #[test]
    fn sizes_have_units() {
        assert_eq!(size("12"), Ok(12));
        assert_eq!(size("1.5 KiB"), Ok(1536));
        assert_eq!(size("8GB"), Ok(8_000_000_000));
        for bad in ["", "-1", "0", "1TB?", "1e40", ".", "99999999999999GiB"] {
            assert!(size(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_file_is_not_named_twice() {
        let twice = parse("train in --log a.csv --doc-topics ./a.csv").check();
        assert!(twice.unwrap_err().to_string().contains("--log and --doc-topics"));
        assert!(parse("train a.csv --doc-topics a.csv").check().is_err());
        assert!(parse("train a.csv --vocabulary a.csv").check().is_ok());
        assert!(parse("train --log /dev/stderr --assignments /dev/stderr").check().is_ok());
    }
}
