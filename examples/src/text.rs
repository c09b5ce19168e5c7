//! Tokenization options, which all subcommands that read text share.

use std::fs::File;
use std::path::{Path, PathBuf};

use clap::builder::{PossibleValuesParser, ValueParser};
use lda_core::corpus::ReadError;
use lda_core::corpus::read::{StopWords, TextOptions, WordRule, read_vocabulary};

use crate::parsers::share;

/// Words of a text: the tokenization of `lda serve`, and part of [`TextArgs`].
#[derive(Debug, clap::Args)]
pub struct WordArgs {
    /// Stop words to leave out: `english`, `none`, or a file with one word per line [default: english]
    #[arg(long, value_name = "LIST")]
    pub stop_words: Option<PathBuf>,
    /// Boundaries of words: those of Unicode (`unicode`), or white space alone (`whitespace`, for text
    /// that is cut into words already, such as segmented Chinese, Japanese and Thai) [default: unicode]
    #[arg(long, value_name = "RULE", value_parser = word_rule())]
    pub words: Option<String>,
    /// Minimum length of a word, in characters [default: 2; with --words whitespace: 1]
    #[arg(long, value_name = "N")]
    pub min_length: Option<u32>,
    /// Maximum length of a word, in characters [default: 64]
    #[arg(long, value_name = "N")]
    pub max_length: Option<u32>,
    /// Split words at underscores and at changes of case, for source code: `readHTTPHeader` becomes
    /// read, http, header
    #[arg(long)]
    pub split_identifiers: bool,
    /// Do not convert words to lower case
    #[arg(long)]
    pub keep_case: bool,
    /// Keep words that are numbers
    #[arg(long)]
    pub numbers: bool,
}

impl WordArgs {
    /// Options of the tokenizer.
    pub fn options(&self) -> TextOptions {
        let mut options = TextOptions::default();
        if let Some(list) = &self.stop_words {
            options.stop_words = stop_words(list);
        }
        if self.words.as_deref() == Some("whitespace") {
            (options.words, options.min_length) = (WordRule::Whitespace, 1);
        }
        options.min_length = self.min_length.unwrap_or(options.min_length);
        options.max_length = self.max_length.unwrap_or(options.max_length);
        options.split_identifiers = self.split_identifiers;
        options.lowercase = !self.keep_case;
        options.numbers = self.numbers;
        options
    }
}

/// Tokenization of documents, some of which applies only to the documents at the argument `path`: the
/// Rust sources, which are read without a path, have a tokenizer of their own.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Words of plain text")]
#[command(mut_arg("min_length", |arg| {
    arg.help(
        "Minimum length of a word, in characters [default: 2; with --words whitespace: 1; Rust \
         sources: 3]",
    )
}))]
#[command(mut_arg("max_length", |arg| {
    arg.help("Maximum length of a word, in characters [default: 64; Rust sources: 32]")
}))]
#[command(mut_arg("words", |arg| arg.requires("path")))]
#[command(mut_arg("split_identifiers", |arg| arg.requires("path")))]
#[command(mut_arg("keep_case", |arg| arg.requires("path")))]
#[command(mut_arg("numbers", |arg| arg.requires("path")))]
pub struct TextArgs {
    /// Words of a text.
    #[command(flatten)]
    pub words: WordArgs,
    /// Minimum number of documents that contain a word [default: 1; Rust sources: 5]
    #[arg(long, value_name = "N")]
    pub min_document_frequency: Option<u32>,
    /// Maximum share of the documents that contain a word [default: 1; Rust sources: 0.25]
    #[arg(long, value_name = "SHARE", value_parser = share(true))]
    pub max_document_frequency: Option<f64>,
    /// Extensions of the files to read in a directory, such as `md,txt` [default: all files]
    #[arg(long, value_name = "LIST", value_delimiter = ',', requires = "path")]
    pub extensions: Vec<String>,
    /// Fail at the first file of a directory that is no text, instead of skipping it
    #[arg(long, requires = "path")]
    pub strict: bool,
}

impl TextArgs {
    /// Options of the reader of plain text.
    pub fn options(&self) -> TextOptions {
        let mut options = self.words.options();
        options.min_document_frequency =
            self.min_document_frequency.unwrap_or(options.min_document_frequency);
        options.max_document_frequency =
            self.max_document_frequency.unwrap_or(options.max_document_frequency);
        options.extensions.clone_from(&self.extensions);
        options.strict = self.strict;
        options
    }

    /// The options by name, and whether each is given.
    pub fn given(&self) -> [(&'static str, bool); 11] {
        let words = &self.words;
        [
            ("--stop-words", words.stop_words.is_some()),
            ("--min-document-frequency", self.min_document_frequency.is_some()),
            ("--max-document-frequency", self.max_document_frequency.is_some()),
            ("--words", words.words.is_some()),
            ("--min-length", words.min_length.is_some()),
            ("--max-length", words.max_length.is_some()),
            ("--split-identifiers", words.split_identifiers),
            ("--keep-case", words.keep_case),
            ("--numbers", words.numbers),
            ("--extensions", !self.extensions.is_empty()),
            ("--strict", self.strict),
        ]
    }
}

fn word_rule() -> ValueParser {
    PossibleValuesParser::new(["unicode", "whitespace"]).into()
}

/// The stop words that the value of `--stop-words` names.
pub fn stop_words(list: &Path) -> StopWords {
    match list.to_str() {
        Some("english") => StopWords::English,
        Some("none") => StopWords::None,
        _ => StopWords::File(list.to_owned()),
    }
}

/// Reads words from a file, one per line, and converts them to lower case.
///
/// # Errors
/// [`ReadError`] of the file.
pub fn read_words(path: &Path) -> Result<Vec<String>, ReadError> {
    let file =
        File::open(path).map_err(|source| ReadError::Io { path: path.to_owned(), source })?;
    let words = read_vocabulary(file, path)?;
    Ok(words.iter().map(|word| word.trim().to_lowercase()).collect())
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        path: Option<PathBuf>,
        #[command(flatten)]
        text: TextArgs,
    }

    fn parse(line: &str) -> Result<Line, clap::Error> {
        Line::try_parse_from(["program"].into_iter().chain(line.split_whitespace()))
    }

    #[test]
    fn defaults_are_those_of_the_reader() {
        assert_eq!(parse("").unwrap().text.options(), TextOptions::default());
    }

    #[test]
    fn every_option_arrives() {
        let line = "in --stop-words none --min-length 3 --max-length 9 --split-identifiers \
            --keep-case --numbers --min-document-frequency 4 --max-document-frequency 0.5 \
            --extensions md,txt --words whitespace --strict";
        let Line { path, text } = parse(line).unwrap();
        assert_eq!(path, Some(PathBuf::from("in")));
        assert!(text.given().iter().all(|(_, given)| *given));
        let mut expected = TextOptions::default();
        expected.stop_words = StopWords::None;
        (expected.min_length, expected.max_length) = (3, 9);
        (expected.split_identifiers, expected.lowercase, expected.numbers) = (true, false, true);
        (expected.min_document_frequency, expected.max_document_frequency) = (4, 0.5);
        expected.extensions = vec!["md".to_owned(), "txt".to_owned()];
        (expected.words, expected.strict) = (WordRule::Whitespace, true);
        assert_eq!(text.options(), expected);
        // Text that is cut already has words of one character.
        let segmented = parse("in --words whitespace").unwrap().text.options();
        assert_eq!((segmented.words, segmented.min_length), (WordRule::Whitespace, 1));
    }

    #[test]
    fn options_of_a_path_need_a_path() {
        for option in [
            "--split-identifiers",
            "--keep-case",
            "--numbers",
            "--extensions md",
            "--words unicode",
            "--strict",
        ] {
            assert!(parse(option).is_err() && parse(&format!("in {option}")).is_ok(), "{option}");
        }
        assert!(parse("--min-length 3").is_ok());
    }
}
