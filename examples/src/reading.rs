//! From the command line to a corpus.

use std::fs::File;
use std::path::{Path, PathBuf};

use clap::builder::{PossibleValuesParser, ValueParser};
use lda_core::Corpus;
use lda_core::corpus::read::{StopWords, read_vocabulary};
use lda_core::corpus::{Format, ReadError, ReadOptions, ReadReport};
use thiserror::Error;

use crate::parsers::share;
use crate::sources::{self, SourcesError};

/// How to read documents, as options of a program whose documents are its argument `path`.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Input")]
pub struct ReadingArgs {
    /// Names of the words, one a line. A UCI file `docword.NAME` finds its `vocab.NAME` by itself
    #[arg(long, value_name = "FILE", requires = "path")]
    pub vocabulary: Option<PathBuf>,
    /// Format of PATH, where detection is wrong
    #[arg(long, value_name = "FORMAT", requires = "path", value_parser = format_parser())]
    pub format: Option<String>,
    /// Dates of the documents, one a line, YYYY or YYYY-MM-DD; they go into the CSV of --doc-topics
    #[arg(long, value_name = "FILE", requires = "path")]
    pub dates: Option<PathBuf>,
    /// SVMlight: index of the first word; 1 unless given, some programs write from 0
    #[arg(long, value_name = "N", requires = "path")]
    pub index_base: Option<u32>,
    /// SVMlight and LDA-C: number of words; unless given, one above the largest that occurs
    #[arg(long, value_name = "V", requires = "path")]
    pub num_words: Option<u32>,
    /// MatrixMarket: columns are documents and rows are words
    #[arg(long, requires = "path")]
    pub transpose: bool,

    /// What is a word, where the documents are text.
    #[command(flatten)]
    pub text: TextArgs,
}

/// What is a word, as options of a program.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Words of plain text")]
pub struct TextArgs {
    /// Words to leave out: `english`, `none`, or a file with one word a line [default: english]
    #[arg(long, value_name = "LIST")]
    pub stop_words: Option<PathBuf>,
    /// Leave out words that are in fewer documents than this [default: 1; Rust sources: 5]
    #[arg(long, value_name = "N")]
    pub min_document_frequency: Option<u32>,
    /// Leave out words that are in more than this share of the documents [default: 1; Rust
    /// sources: 0.25]
    #[arg(long, value_name = "SHARE", value_parser = share(true))]
    pub max_document_frequency: Option<f64>,
    /// Leave out words of fewer characters [default: 2; Rust sources: 3]
    #[arg(long, value_name = "N")]
    pub min_length: Option<u32>,
    /// Leave out words of more characters [default: 64]
    #[arg(long, value_name = "N")]
    pub max_length: Option<u32>,
    /// Split words at underscores and where the case changes, for source code: `readHTTPHeader`
    /// becomes read, http, header
    #[arg(long, requires = "path")]
    pub split_identifiers: bool,
    /// Keep upper case
    #[arg(long, requires = "path")]
    pub keep_case: bool,
    /// Keep numbers
    #[arg(long, requires = "path")]
    pub numbers: bool,
    /// Of a directory, read only files with these extensions, as in `md,txt`
    #[arg(long, value_name = "LIST", value_delimiter = ',', requires = "path")]
    pub extensions: Vec<String>,
}

fn format_parser() -> ValueParser {
    PossibleValuesParser::new(["uci", "svmlight", "ldac", "matrix-market", "text"]).into()
}

/// Why documents cannot be read.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ReadingError {
    /// The command line contradicts the documents.
    #[error("{0}")]
    Usage(String),
    /// A file could not be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// No path was given, and there are no documents instead.
    #[error(transparent)]
    Sources(#[from] SourcesError),
}

/// Documents, and how they were read.
#[derive(Debug)]
pub struct Reading {
    /// The documents.
    pub corpus: Corpus,
    /// Options of the readers.
    pub options: ReadOptions,
    /// File of the words' names, where they are in one.
    pub vocabulary: Option<PathBuf>,
}

/// Reads the documents at `path`; `note` is told what a person may want to know.
///
/// # Errors
/// [`ReadingError`], with the file, the line and what to do.
pub fn read(
    path: &Path,
    args: &ReadingArgs,
    note: &mut dyn FnMut(&str),
) -> Result<Reading, ReadingError> {
    read_with(path, args, read_options(args)?, note)
}

/// The documents at `path`, or where there is none the Rust sources on this machine, and what to call them.
///
/// # Errors
/// [`ReadingError`], with the file, the line and what to do.
pub fn read_or_sources(
    path: Option<&Path>,
    args: &ReadingArgs,
    note: &mut dyn FnMut(&str),
) -> Result<(Corpus, String), ReadingError> {
    match path {
        Some(path) => Ok((read(path, args, note)?.corpus, path.display().to_string())),
        None => Ok((sources::read(&args.text, note)?.0, sources::NAME.to_owned())),
    }
}

/// The same as [`read`], and keeps the order of the words where the documents are text.
///
/// # Errors
/// [`ReadingError`], with the file, the line and what to do.
pub fn read_in_order(
    path: &Path,
    args: &ReadingArgs,
    note: &mut dyn FnMut(&str),
) -> Result<Reading, ReadingError> {
    let mut ordered = read_options(args)?;
    ordered.keep_order = true;
    match read_with(path, args, ordered, note) {
        // Told before anything is read: the format has no order.
        Err(ReadingError::Read(ReadError::Option { name: "keep_order", .. })) => {
            read(path, args, note)
        }
        result => result,
    }
}

fn read_with(
    path: &Path,
    args: &ReadingArgs,
    options: ReadOptions,
    note: &mut dyn FnMut(&str),
) -> Result<Reading, ReadingError> {
    let (mut corpus, report) = Corpus::read_with_report(path, &options)?;
    note(&format!("{}: {report}", path.display()));
    check_fit(args, &report)?;
    let vocabulary = match &args.vocabulary {
        Some(vocabulary) => {
            corpus = corpus.with_vocabulary(vocabulary)?;
            Some(vocabulary.clone())
        }
        None if corpus.vocabulary().is_none() => {
            let (named, found) = name_words(corpus, path, note)?;
            corpus = named;
            found
        }
        None => None,
    };
    if let Some(dates) = &args.dates {
        corpus = corpus.with_dates(dates)?;
    }
    Ok(Reading { corpus, options, vocabulary })
}

/// Options of the readers.
///
/// # Errors
/// [`ReadError`], if the format is none.
pub fn read_options(input: &ReadingArgs) -> Result<ReadOptions, ReadError> {
    let mut options = ReadOptions::default();
    let text = &input.text;
    if let Some(format) = &input.format {
        options.format = Some(format.parse()?);
    }
    options.index_base = input.index_base.unwrap_or(options.index_base);
    options.num_words = input.num_words;
    options.transpose = input.transpose;
    let to = &mut options.text;
    if let Some(list) = &text.stop_words {
        to.stop_words = stop_words(list);
    }
    to.min_document_frequency = text.min_document_frequency.unwrap_or(to.min_document_frequency);
    to.max_document_frequency = text.max_document_frequency.unwrap_or(to.max_document_frequency);
    to.min_length = text.min_length.unwrap_or(to.min_length);
    to.max_length = text.max_length.unwrap_or(to.max_length);
    to.split_identifiers = text.split_identifiers;
    to.lowercase = !text.keep_case;
    to.numbers = text.numbers;
    to.extensions.clone_from(&text.extensions);
    Ok(options)
}

/// A list of stop words by its name.
pub fn stop_words(list: &Path) -> StopWords {
    match list.to_str() {
        Some("english") => StopWords::English,
        Some("none") => StopWords::None,
        _ => StopWords::File(list.to_owned()),
    }
}

/// Words of a file, one a line, in lower case.
///
/// # Errors
/// [`ReadError`] of the file.
pub fn read_words(path: &Path) -> Result<Vec<String>, ReadError> {
    let file =
        File::open(path).map_err(|source| ReadError::Io { path: path.to_owned(), source })?;
    let words = read_vocabulary(file, path)?;
    Ok(words.iter().map(|word| word.trim().to_lowercase()).collect())
}

/// Refuses options that say nothing about a file of this format, rather than ignore them.
fn check_fit(input: &ReadingArgs, report: &ReadReport) -> Result<(), ReadingError> {
    let text = &input.text;
    let is_text = report.format == Format::Text;
    let for_text = [
        ("--stop-words", text.stop_words.is_some()),
        ("--min-document-frequency", text.min_document_frequency.is_some()),
        ("--max-document-frequency", text.max_document_frequency.is_some()),
        ("--min-length", text.min_length.is_some()),
        ("--max-length", text.max_length.is_some()),
        ("--split-identifiers", text.split_identifiers),
        ("--keep-case", text.keep_case),
        ("--numbers", text.numbers),
        ("--extensions", !text.extensions.is_empty()),
    ];
    let refuse = |option: &str, what: &str| {
        Err(ReadingError::Usage(format!(
            "{option} is for {what}, but the input is {}: leave it out",
            report.format
        )))
    };
    if let Some((option, _)) = for_text.iter().find(|(_, given)| *given && !is_text) {
        return refuse(option, "plain text");
    }
    if input.index_base.is_some() && report.format != Format::Svmlight {
        return refuse("--index-base", "SVMlight");
    }
    if input.vocabulary.is_some() && is_text {
        return refuse("--vocabulary", "formats that hold numbers of words");
    }
    Ok(())
}

/// Names the words by the vocabulary that lies beside `docword.NAME`, if there is one.
fn name_words(
    corpus: Corpus,
    path: &Path,
    note: &mut dyn FnMut(&str),
) -> Result<(Corpus, Option<PathBuf>), ReadError> {
    let Some(vocabulary) = sibling_vocabulary(path) else {
        note("no --vocabulary: words are shown by their numbers");
        return Ok((corpus, None));
    };
    note(&format!("words are named by {}", vocabulary.display()));
    Ok((corpus.with_vocabulary(&vocabulary)?, Some(vocabulary)))
}

fn sibling_vocabulary(path: &Path) -> Option<PathBuf> {
    let name = path.file_name()?.to_str()?.strip_prefix("docword.")?;
    let plain = name.strip_suffix(".gz").unwrap_or(name);
    [name.to_owned(), plain.to_owned(), format!("{plain}.gz")]
        .into_iter()
        .map(|name| path.with_file_name(format!("vocab.{name}")))
        .find(|path| path.is_file())
}
