//! The command line. Names and meanings are a contract: other programs call this one.

use std::path::PathBuf;

use clap::Parser;
use lda_examples::method::MethodArgs;
use lda_examples::program::ProgramArgs;
use lda_examples::reading::ReadingArgs;

const AFTER_HELP: &str = "\
Examples:
  lda report news.lda articles.txt --out news.html          a text file: one document a line
  lda report nips.lda docword.nips.txt.gz --dates times.nips.txt.gz --log nips.jsonl --out nips.html

The page needs no network and no other file. Give the documents that the model was trained on, or others
of its language; read them with the same options as `train` did.
Exit status: 0 done, 1 failed, 2 wrong usage.";

/// Writes a page of HTML about a model: its topics, their words and documents.
#[derive(Debug, Parser)]
#[command(name = "report", after_help = AFTER_HELP)]
#[command(mut_arg("dates", |dates| {
    dates.help("Dates of the documents, one a line, YYYY or YYYY-MM-DD; they show topics over time")
}))]
pub struct Args {
    /// Model that `train --save` has written
    pub model: PathBuf,
    /// Documents: a file, or a directory of text files. The format is detected, and gzip and zstd are
    /// unpacked
    #[arg(value_name = "CORPUS")]
    pub path: PathBuf,
    /// Write the page to this file
    #[arg(long, value_name = "FILE")]
    pub out: PathBuf,

    /// Log of a run, as `train --log` writes it: its likelihood becomes a curve. May be given again,
    /// for a curve each
    #[arg(long, value_name = "FILE")]
    pub log: Vec<PathBuf>,
    /// Titles of the documents, one a line
    #[arg(long, value_name = "FILE")]
    pub titles: Option<PathBuf>,
    /// Documents in the page at most: the most typical of each topic, and all where there is room
    #[arg(long, value_name = "N", default_value_t = 2000)]
    pub documents: usize,
    /// Words of a document in the page at most: the first, or where their order is not known the most
    /// frequent
    #[arg(long, value_name = "N", default_value_t = 400)]
    pub document_words: usize,

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

    #[test]
    fn logs_arrive() {
        let parse = |line: &str| Args::try_parse_from(line.split_whitespace());
        let args = parse("report m c --out x.html --log a --log b").unwrap();
        assert_eq!(args.log, [PathBuf::from("a"), PathBuf::from("b")]);
        assert!(parse("report m c").is_err() && parse("report m --out x").is_err());
    }
}
