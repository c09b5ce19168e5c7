//! The command line. Names and meanings are a contract: other programs call this one.

use std::path::PathBuf;

use clap::{Parser, ValueEnum, value_parser};
use lda_core::infer::Method;
use lda_examples::parsers::positive;
use lda_examples::reading::ReadingArgs;

const AFTER_HELP: &str = "\
Examples:
  infer news.lda articles.txt                    a text file: one document a line
  cat articles.txt | infer news.lda              the same from a pipe
  infer news.lda docword.txt.gz --out theta.npy  shares of all topics, documents by topics

Without --out, and for .jsonl, a JSON object a line: the document's number, its tokens, those of words
that the model does not know, and [topic, share] of the topics it has tokens of, largest first. A .csv
or .npy has the shares of all topics. Progress and errors go to standard error.
Exit status: 0 done, 1 failed, 2 wrong usage.";

/// Finds the topics of new documents by a trained model.
#[derive(Debug, Parser)]
#[command(name = "infer", version, after_help = AFTER_HELP, max_term_width = 100)]
pub struct Args {
    /// Model that `train --save` has written
    pub model: PathBuf,
    /// Documents: a file, or a directory of text files. The format is detected, and gzip and zstd are
    /// unpacked. Without it, text from standard input, a document a line
    pub path: Option<PathBuf>,

    /// How topics are found
    #[arg(long, value_name = "METHOD", value_enum, default_value_t = MethodName::FoldIn)]
    pub method: MethodName,
    /// fold-in: sweeps before the first sample
    #[arg(long, value_name = "N", default_value_t = 10)]
    pub burn_in: u32,
    /// fold-in: samples, whose mean is the answer
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = value_parser!(u32).range(1..))]
    pub samples: u32,
    /// rt: sweeps at most
    #[arg(long, value_name = "N", default_value_t = 5)]
    pub sweeps: u32,
    /// variational: iterations at most
    #[arg(long, value_name = "N", default_value_t = 100,
        value_parser = value_parser!(u32).range(1..))]
    pub iterations: u32,
    /// variational: end when shares move by less than this, in all
    #[arg(long, value_name = "X", default_value_t = 1e-3, value_parser = positive)]
    pub tolerance: f64,
    /// fold-in: seed of all chance; a document's topics do not depend on the others
    #[arg(long, value_name = "S", default_value_t = 0)]
    pub seed: u64,
    /// Write to this file, .jsonl, .csv or .npy
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// Topics a line of JSON, the largest; all that have tokens unless given
    #[arg(long, value_name = "N", value_parser = value_parser!(u32).range(1..))]
    pub top: Option<u32>,
    /// Threads; all cores unless given. Never changes a result
    #[arg(long, value_name = "N", value_parser = value_parser!(u16).range(1..=1024))]
    pub threads: Option<u16>,
    /// Nothing on standard error but errors
    #[arg(short, long)]
    pub quiet: bool,

    #[command(flatten)]
    pub reading: ReadingArgs,
}

/// The methods by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum MethodName {
    /// Gibbs sampling: shares are the posterior's, up to chance
    FoldIn,
    /// RT-LDA: quickest, and leans to the leading topic
    Rt,
    /// The variational E-step: no chance in it
    Variational,
}

impl Args {
    /// The method asked for.
    pub fn method(&self) -> Method {
        match self.method {
            MethodName::FoldIn => Method::FoldIn { burn_in: self.burn_in, samples: self.samples },
            MethodName::Rt => Method::Rt { sweeps: self.sweeps },
            MethodName::Variational => {
                Method::Variational { iterations: self.iterations, tolerance: self.tolerance }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_command_is_well_formed() {
        Args::command().debug_assert();
    }

    #[test]
    fn methods_arrive() {
        let method = |line: &str| Args::try_parse_from(line.split_whitespace()).unwrap().method();
        assert_eq!(method("infer m"), Method::FOLD_IN);
        assert_eq!(method("infer m --method rt"), Method::RT);
        assert_eq!(method("infer m --method variational"), Method::VARIATIONAL);
        assert_eq!(
            method("infer m x --burn-in 3 --samples 4"),
            Method::FoldIn { burn_in: 3, samples: 4 }
        );
    }
}
