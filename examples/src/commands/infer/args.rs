//! Options of `lda infer`. Their names and meanings are stable, because other programs call this one.

use std::path::PathBuf;

use clap::{Parser, value_parser};
use lda_examples::documents::InferenceArgs;
use lda_examples::text::of_model;

const AFTER_HELP: &str = "\
Examples:
  lda infer news.lda articles.txt                    a text file: one document per line
  cat articles.txt | lda infer news.lda              the same from a pipe
  lda infer news.lda docword.txt.gz --out theta.npy  shares of all topics, documents by topics

Without --out, and for .jsonl, the output is one JSON object per line: the number of the document, its
tokens in the model's vocabulary, its unknown tokens, and [topic, share] of the topics of its tokens,
largest first. A .csv or .npy has the shares of all topics. Progress and errors go to standard error.
Exit status: 0 success, 1 failure, 2 wrong usage.";

/// Find the topics of new documents with a trained model
#[derive(Debug, Parser)]
#[command(name = "infer", after_help = AFTER_HELP, mut_args(of_model))]
pub struct Args {
    /// Model written by `lda train --save`
    pub model: PathBuf,
    /// Documents: a file, or a directory of text files. The format is detected; gzip and zstd are
    /// decompressed [default: text from standard input, one document per line]
    pub path: Option<PathBuf>,

    /// Output file, .jsonl, .csv or .npy [default: JSON lines on standard output]
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// Maximum number of topics per document in JSON, largest first [default: all with tokens]
    #[arg(long, value_name = "N", value_parser = value_parser!(u32).range(1..))]
    pub top: Option<u32>,
    /// Words of each of these topics in JSON, most probable first [default: 0]
    #[arg(long, value_name = "N", default_value_t = 0, hide_default_value = true,
        value_parser = value_parser!(u32).range(0..=1000))]
    pub terms: u32,
    #[command(flatten)]
    pub inference: InferenceArgs,
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
