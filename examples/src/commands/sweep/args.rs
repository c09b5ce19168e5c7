//! Options of `lda sweep`.

use std::path::PathBuf;

use clap::{Parser, value_parser};
use lda_core::train::TrainOptions;
use lda_examples::parsers::{positive, share};
use lda_examples::program::ProgramArgs;
use lda_examples::reading::ReadingArgs;

const AFTER_HELP: &str = "\
Examples:
  lda sweep reviews.txt --topics 10,20,50,100 --out reviews
  lda sweep papers/ --topics 20,40,80 --seeds 5 --held-out 0.2 --out papers-sweep

The table goes to standard output; progress and errors go to standard error. No measure knows the right
number of topics: the table marks the best value of each, and the models are there to be looked at:
  lda report reviews/topics-20.lda reviews.txt --out page.html
Ctrl-C stops the sweep; the same command continues it, and may add numbers of topics.
Exit status: 0 success, 1 failure, 2 wrong usage.";

/// Train models with several numbers of topics, and compare them, to choose one
#[derive(Debug, Parser)]
#[command(name = "sweep", after_help = AFTER_HELP)]
pub struct Args {
    /// Documents to train on: a file, or a directory of text files. The format is detected; gzip and
    /// zstd are decompressed
    pub path: PathBuf,
    /// Numbers of topics, separated by commas
    #[arg(short = 'k', long, value_name = "K,K,...", required = true, value_delimiter = ',',
        value_parser = value_parser!(u32).range(1..))]
    pub topics: Vec<u32>,
    /// Number of models per number of topics, each with another random seed: they show how much chance
    /// there is in a measure, and how stable topics are
    #[arg(long, value_name = "N", default_value_t = 3,
        value_parser = value_parser!(u32).range(1..=1000))]
    pub seeds: u32,
    /// Directory for the results; it is made if it does not exist
    #[arg(long, value_name = "DIR")]
    pub out: PathBuf,
    /// Share of the documents to keep out of training, whose perplexity is a measure
    #[arg(long, value_name = "SHARE", default_value_t = 0.1, value_parser = share(false))]
    pub held_out: f64,
    /// Epochs of each run [default: until the likelihood levels off]
    #[arg(long, value_name = "N", value_parser = value_parser!(u32).range(1..))]
    pub epochs: Option<u32>,
    /// Prior of topics in a document, of every topic [default: an eighth of the mean length of
    /// documents, from 1 to 50, over K]
    #[arg(long, value_name = "X", value_parser = positive)]
    pub alpha: Option<f64>,
    /// Prior of words in a topic
    #[arg(long, value_name = "X", default_value_t = 0.01, value_parser = positive)]
    pub beta: f64,
    /// First random seed; it also selects the held-out documents
    #[arg(long, value_name = "S", default_value_t = 0)]
    pub seed: u64,
    /// Also keep a model of the topics that more than half of the seeds share, `consensus-K.lda`, with a
    /// table of how stable each is
    #[arg(long)]
    pub consensus: bool,
    /// Words per topic for coherence and exclusivity
    #[arg(long, value_name = "N", default_value_t = 10,
        value_parser = value_parser!(u16).range(2..=1000))]
    pub top_words: u16,
    /// Number of runs at a time; does not change results [default: one per thread, or fewer if they do
    /// not fit into memory together]
    #[arg(long, value_name = "N", value_parser = value_parser!(u16).range(1..))]
    pub jobs: Option<u16>,

    #[command(flatten)]
    pub program: ProgramArgs,
    #[command(flatten)]
    pub reading: ReadingArgs,
}

impl Args {
    /// The options that affect every model.
    pub fn options(&self) -> TrainOptions {
        let options = TrainOptions::default().beta(self.beta).seed(self.seed).epochs(self.epochs);
        match self.alpha {
            Some(alpha) => options.alpha(alpha),
            None => options,
        }
    }
}
