//! Options of `lda report`. Their names and meanings are stable, because other programs call this
//! one.

use std::path::PathBuf;

use clap::Parser;
use lda_examples::documents::InferenceArgs;
use lda_examples::text::of_model;

const AFTER_HELP: &str = "\
Examples:
  lda report news.lda articles.txt --out news.html          a text file: one document per line
  lda report nips.lda docword.nips.txt.gz --dates times.nips.txt.gz --log nips.jsonl --out nips.html

The page needs no network and no other file. Give the documents that the model was trained on, or similar
ones. Texts are cut into words as in the training.
Exit status: 0 success, 1 failure, 2 wrong usage.";

/// Write an HTML page about a model: its topics, their words and documents
#[derive(Debug, Parser)]
#[command(name = "report", after_help = AFTER_HELP, mut_args(of_model))]
#[command(mut_arg("dates", |dates| {
    dates.help("File of document dates, one per line, YYYY or YYYY-MM-DD, to show topics over time")
}))]
pub struct Args {
    /// Model written by `lda train --save`
    pub model: PathBuf,
    /// Documents: a file, or a directory of text files. The format is detected; gzip and zstd are
    /// decompressed
    #[arg(value_name = "CORPUS")]
    pub path: PathBuf,
    /// Output file
    #[arg(long, value_name = "FILE")]
    pub out: PathBuf,

    /// Log of a run, from `lda train --log`, to plot its likelihood. May be given several times, for
    /// one curve each
    #[arg(long, value_name = "FILE")]
    pub log: Vec<PathBuf>,
    /// File of document titles, one per line [default: the names of the documents]
    #[arg(long, value_name = "FILE")]
    pub titles: Option<PathBuf>,
    /// File of topic names, one per line; topics with an empty line are named by their words
    #[arg(long, value_name = "FILE")]
    pub topic_names: Option<PathBuf>,
    /// Maximum number of documents in the page; of a larger corpus, the most typical of each topic
    #[arg(long, value_name = "N", default_value_t = 2000)]
    pub documents: usize,
    /// Maximum number of words per document in the page: the first ones, or the most frequent ones if
    /// the word order is not known
    #[arg(long, value_name = "N", default_value_t = 400)]
    pub document_words: usize,
    /// Maximum length of the beginning of a document's text in the page, in bytes; 0 for none
    #[arg(long, value_name = "BYTES", default_value_t = 1000)]
    pub document_text: usize,

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

    #[test]
    fn logs_arrive() {
        let parse = |line: &str| Args::try_parse_from(line.split_whitespace());
        let args = parse("report m c --out x.html --log a --log b").unwrap();
        assert_eq!(args.log, [PathBuf::from("a"), PathBuf::from("b")]);
        assert!(parse("report m c").is_err() && parse("report m --out x").is_err());
    }
}
