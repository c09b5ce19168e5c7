//! The command line. Names and meanings are a contract: other programs call this one.

use std::path::PathBuf;

use clap::{Parser, value_parser};
use lda_examples::method::MethodArgs;
use lda_examples::program::ProgramArgs;
use lda_examples::reading::ReadingArgs;

const AFTER_HELP: &str = "\
Examples:
  lda infer news.lda articles.txt                    a text file: one document a line
  cat articles.txt | lda infer news.lda              the same from a pipe
  lda infer news.lda docword.txt.gz --out theta.npy  shares of all topics, documents by topics

Without --out, and for .jsonl, a JSON object a line: the document's number, its tokens, those of words
that the model does not know, and [topic, share] of the topics it has tokens of, largest first. A .csv
or .npy has the shares of all topics. Progress and errors go to standard error.
Exit status: 0 done, 1 failed, 2 wrong usage.";

/// Finds the topics of new documents by a trained model.
#[derive(Debug, Parser)]
#[command(name = "infer", after_help = AFTER_HELP)]
pub struct Args {
    /// Model that `train --save` has written
    pub model: PathBuf,
    /// Documents: a file, or a directory of text files. The format is detected, and gzip and zstd are
    /// unpacked. Without it, text from standard input, a document a line
    pub path: Option<PathBuf>,

    /// Write to this file, .jsonl, .csv or .npy
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// Topics a line of JSON, the largest; all that have tokens unless given
    #[arg(long, value_name = "N", value_parser = value_parser!(u32).range(1..))]
    pub top: Option<u32>,
    #[command(flatten)]
    pub program: ProgramArgs,

    #[command(flatten)]
    pub method: MethodArgs,

    #[command(flatten)]
    pub reading: ReadingArgs,
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_command_is_well_formed() {
        Args::command().debug_assert();
    }
}
