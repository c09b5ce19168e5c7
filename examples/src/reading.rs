//! Input options, and reading a corpus with them.

use std::io::Read;
use std::path::{Path, PathBuf};

use clap::builder::{PossibleValuesParser, ValueParser};
use lda_core::corpus::blocks::{BlockDirectory, Blocks};
use lda_core::corpus::read::{CutError, SkippedFile, TokenizerOptions};
use lda_core::corpus::{Format, ReadError, ReadOptions, ReadReport};
use lda_core::model::TopicModel;
use lda_core::{Corpus, FileError};
use thiserror::Error;

use crate::sources::{self, SourcesError};
use crate::text::TextArgs;

/// Input options of a subcommand whose documents are its argument `path`.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Input")]
pub struct ReadingArgs {
    /// File of words, one per line [default: `vocab.NAME` next to a UCI file `docword.NAME`]
    #[arg(long, value_name = "FILE", requires = "path")]
    pub vocabulary: Option<PathBuf>,
    /// Format of PATH [default: detected]
    #[arg(long, value_name = "FORMAT", requires = "path", value_parser = format_parser())]
    pub format: Option<String>,
    /// Encoding of the texts, such as windows-1252 or shift_jis [default: UTF-8, or UTF-16 with a mark]
    #[arg(long, value_name = "NAME", requires = "path")]
    pub encoding: Option<String>,
    /// CSV, TSV and JSON lines: column or field with the texts of the documents: a name, or the number of
    /// a column from 1. May be given several times, for texts that follow each other in a document
    #[arg(long, value_name = "COLUMN")]
    pub text_column: Vec<String>,
    /// CSV, TSV and JSON lines: column with the names of the documents, for the outputs
    #[arg(long, value_name = "COLUMN", requires = "text_column")]
    pub id_column: Option<String>,
    /// CSV, TSV and JSON lines: column with the dates of the documents, YYYY or YYYY-MM-DD
    #[arg(long, value_name = "COLUMN", requires = "text_column", conflicts_with = "dates")]
    pub date_column: Option<String>,
    /// CSV and TSV: the first line is a document, not the names of the columns
    #[arg(long, requires = "text_column")]
    pub no_header: bool,
    /// File of document dates, one per line, YYYY or YYYY-MM-DD; they go into the CSV of --doc-topics
    #[arg(long, value_name = "FILE", requires = "path")]
    pub dates: Option<PathBuf>,
    /// SVMlight: index of the first word; some programs count from 0 [default: 1]
    #[arg(long, value_name = "N", requires = "path")]
    pub index_base: Option<u32>,
    /// SVMlight and LDA-C: number of words [default: one more than the largest word number]
    #[arg(long, value_name = "V", requires = "path")]
    pub num_words: Option<u32>,
    /// UCI and MatrixMarket: maximum number of documents without tokens [default: 16777216]
    #[arg(long, value_name = "N", requires = "path", hide_short_help = true)]
    pub max_empty_documents: Option<u64>,
    /// Formats with word numbers: maximum number of words without tokens [default: 16777216]
    #[arg(long, value_name = "N", requires = "path", hide_short_help = true)]
    pub max_unused_words: Option<u64>,
    /// MatrixMarket: columns are documents and rows are words, not the reverse
    #[arg(long, requires = "path")]
    pub transpose: bool,

    /// Tokenization of plain text.
    #[command(flatten)]
    pub text: TextArgs,
}

fn format_parser() -> ValueParser {
    PossibleValuesParser::new([
        "uci",
        "svmlight",
        "ldac",
        "matrix-market",
        "csv",
        "json-lines",
        "text",
    ])
    .into()
}

/// Errors of reading documents.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ReadingError {
    /// An option does not apply to the documents.
    #[error("{0}")]
    Usage(String),
    /// A file could not be read.
    #[error("{}", with_option_names(.0))]
    Read(#[from] ReadError),
    /// No path was given, and there are no Rust sources to read instead.
    #[error(transparent)]
    Sources(#[from] SourcesError),
    /// A block could not be read or written.
    #[error(transparent)]
    Blocks(FileError),
}

impl From<CutError> for ReadingError {
    fn from(error: CutError) -> Self {
        match error {
            CutError::Read(error) => Self::Read(error),
            CutError::File(error) => Self::Blocks(error),
            // Documented as not exhaustive.
            error => Self::Usage(error.to_string()),
        }
    }
}

/// A message of the library, with its options named as on the command line.
fn with_option_names(error: &ReadError) -> String {
    const NAMES: [&str; 19] = [
        "columns.text",
        "encoding",
        "format",
        "index_base",
        "max_document_frequency",
        "max_empty_documents",
        "max_length",
        "max_unused_words",
        "max_words",
        "min_count",
        "min_document_frequency",
        "min_length",
        "num_words",
        "numbers",
        "stop_words",
        "strict",
        "threshold",
        "transpose",
        "words",
    ];
    let message = error.to_string().replace("`columns.header` set to false", "--no-header");
    NAMES.iter().fold(message, |message, name| {
        let option = match *name {
            "columns.text" => "text-column".to_owned(),
            "words" => "word-pattern".to_owned(),
            "max_words" => "phrase-words".to_owned(),
            "min_count" => "phrase-min-count".to_owned(),
            "threshold" => "phrase-threshold".to_owned(),
            name => name.replace('_', "-"),
        };
        message.replace(&format!("`{name}`"), &format!("--{option}"))
    })
}

/// A corpus and the options it was read with.
#[derive(Debug)]
pub struct Reading {
    /// The documents.
    pub corpus: Corpus,
    /// Options of the reader.
    pub options: ReadOptions,
    /// Vocabulary file, if the words come from one.
    pub vocabulary: Option<PathBuf>,
    /// Beginnings of the documents' texts, if they were asked for and the documents are text.
    pub texts: Option<Vec<String>>,
}

/// Reads the documents at `path`; `note` receives lines for people. Texts for a `model` are cut into
/// words as those that it was trained on.
///
/// # Errors
/// [`ReadingError`], with the file, the line and what to do.
pub fn read(
    path: &Path,
    args: &ReadingArgs,
    model: Option<&TopicModel>,
    note: &mut dyn FnMut(&str),
) -> Result<Reading, ReadingError> {
    refuse_phrases(args, model)?;
    read_with(path, args, model, read_options(args, model)?, note)
}

/// Texts for a model have its phrases: others would not be words of it.
///
/// # Errors
/// [`ReadingError::Usage`].
pub fn refuse_phrases(args: &ReadingArgs, model: Option<&TopicModel>) -> Result<(), ReadingError> {
    match args.text.phrases.phrases {
        Some(_) if model.is_some() => Err(ReadingError::Usage(
            "--phrases is for training without a model; this model has its own phrases, which are \
             found without an option: omit it"
                .to_owned(),
        )),
        _ => Ok(()),
    }
}

/// The rules by which the texts of a model were cut into words, if it records them.
pub fn rules(model: &TopicModel) -> Option<&TokenizerOptions> {
    model.vocabulary()?.tokenizer()
}

/// Reads the documents at `path`, or the Rust sources of this machine without one; also returns their
/// name.
///
/// # Errors
/// [`ReadingError`], with the file, the line and what to do.
pub fn read_or_sources(
    path: Option<&Path>,
    args: &ReadingArgs,
    note: &mut dyn FnMut(&str),
) -> Result<(Corpus, String), ReadingError> {
    match path {
        Some(path) => Ok((read(path, args, None, note)?.corpus, path.display().to_string())),
        None => Ok((sources::read(&args.text, note)?.0, sources::NAME.to_owned())),
    }
}

/// Like [`read`], and keeps the word order if the documents are text.
///
/// # Errors
/// [`ReadingError`], with the file, the line and what to do.
pub fn read_in_order(
    path: &Path,
    args: &ReadingArgs,
    model: Option<&TopicModel>,
    note: &mut dyn FnMut(&str),
) -> Result<Reading, ReadingError> {
    read_with_texts(path, args, model, 0, note)
}

/// Like [`read_in_order`], and keeps this many bytes of the beginning of each text.
///
/// # Errors
/// [`ReadingError`], with the file, the line and what to do.
pub fn read_with_texts(
    path: &Path,
    args: &ReadingArgs,
    model: Option<&TopicModel>,
    keep_text: usize,
    note: &mut dyn FnMut(&str),
) -> Result<Reading, ReadingError> {
    refuse_phrases(args, model)?;
    let mut ordered = read_options(args, model)?;
    ordered.keep_order = true;
    ordered.text.keep_text = keep_text;
    match read_with(path, args, model, ordered, note) {
        // Returned before anything is read: the format has no word order.
        Err(ReadingError::Read(ReadError::Option { name: "keep_order", .. })) => {
            read(path, args, model, note)
        }
        result => result,
    }
}

fn read_with(
    path: &Path,
    args: &ReadingArgs,
    model: Option<&TopicModel>,
    options: ReadOptions,
    note: &mut dyn FnMut(&str),
) -> Result<Reading, ReadingError> {
    let (mut corpus, report) = Corpus::read_with_report(path, &options)?;
    note(&format!("{}: {report}", path.display()));
    note_skipped(&report.skipped_files, note);
    if options.text.phrases.is_some() && report.format.has_texts() {
        note_phrases(&corpus, note);
    }
    check_fit(args, &report)?;
    if let Some(model) = model.filter(|_| report.format.has_texts()) {
        args.text.words.warning(rules(model)).iter().for_each(|warning| note(warning));
    }
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
    note_repeated_words(&corpus, note);
    drop_unused_words(&mut corpus, note);
    if let Some(dates) = &args.dates {
        corpus = corpus.with_dates(dates)?;
    }
    Ok(Reading { corpus, options, vocabulary, texts: report.texts })
}

/// Reads the documents at `path` into blocks of about `tokens` tokens ([`BlockDirectory::read`]). Texts for a
/// `model` are cut into words as those that it was trained on.
///
/// # Errors
/// [`ReadingError`], with the file, the line and what to do.
pub fn cut(
    path: &Path,
    (args, model): (&ReadingArgs, Option<&TopicModel>),
    tokens: u64,
    directory: &Path,
    note: &mut dyn FnMut(&str),
) -> Result<BlockDirectory, ReadingError> {
    refuse_dates(args)?;
    refuse_phrases(args, model)?;
    let options = read_options(args, model)?;
    let cut = BlockDirectory::read_named(path, &options, tokens, directory, |words, report| {
        check_fit(args, report)?;
        if let Some(model) = model.filter(|_| report.format.has_texts()) {
            args.text.words.warning(rules(model)).iter().for_each(|warning| note(warning));
        }
        match &args.vocabulary {
            Some(vocabulary) => Ok(words.with_vocabulary(vocabulary)?),
            None if words.vocabulary().is_none() => Ok(name_words(words, path, note)?.0),
            None => Ok::<_, ReadingError>(words),
        }
    })?;
    noted(cut, &path.display().to_string(), note)
}

/// Reads a stream into blocks, as [`cut`] does.
///
/// # Errors
/// As [`cut`].
pub fn cut_from(
    reader: impl Read,
    args: &ReadingArgs,
    tokens: u64,
    directory: &Path,
    note: &mut dyn FnMut(&str),
) -> Result<BlockDirectory, ReadingError> {
    const NAME: &str = "standard input";
    refuse_dates(args)?;
    if args.vocabulary.is_some() {
        let why = "--vocabulary needs a file of documents: give its path instead of -";
        return Err(ReadingError::Usage(why.to_owned()));
    }
    let options = read_options(args, None)?;
    let fits = |words, report: &ReadReport| check_fit(args, report).map(|()| words);
    let cut = BlockDirectory::read_from(reader, NAME, &options, tokens, directory, fits)?;
    noted(cut, NAME, note)
}

/// Dates are in a file of all documents, which are not in memory at once.
fn refuse_dates(args: &ReadingArgs) -> Result<(), ReadingError> {
    match &args.dates {
        None => Ok(()),
        Some(_) => Err(ReadingError::Usage(
            "--dates is for documents in memory: give them as a column (--date-column), or leave them out".to_owned(),
        )),
    }
}

/// Says what was read, and leaves out words without tokens if words have names, as [`read`] does.
fn noted(
    (blocks, report): (BlockDirectory, ReadReport),
    name: &str,
    note: &mut dyn FnMut(&str),
) -> Result<BlockDirectory, ReadingError> {
    note(&format!("{name}: {report}"));
    note_skipped(&report.skipped_files, note);
    if blocks.vocabulary().is_none() {
        return Ok(blocks);
    }
    let words = blocks.num_words();
    let blocks = blocks.compact().map_err(ReadingError::Blocks)?;
    if blocks.num_words() < words {
        let (left, gone) = (blocks.num_words(), words - blocks.num_words());
        note(&format!(
            "{gone} words of the vocabulary have no token and are left out: {left} words"
        ));
    }
    Ok(blocks)
}

/// Lists the files that were skipped, the first ones by name.
fn note_skipped(files: &[SkippedFile], note: &mut dyn FnMut(&str)) {
    const NAMED: usize = 10;
    files.iter().take(NAMED).for_each(|file| note(&format!("skipped {}", file.reason)));
    if files.len() > NAMED {
        note(&format!("skipped {} more files; --strict fails at the first", files.len() - NAMED));
    }
}

/// Says how many phrases were found, with the most frequent ones.
fn note_phrases(corpus: &Corpus, note: &mut dyn FnMut(&str)) {
    const NAMED: usize = 8;
    let Some(words) = corpus.vocabulary() else { return };
    let frequencies = corpus.word_frequencies();
    let phrases = words.tokenizer().map(|rules| &rules.phrases[..]).unwrap_or_default();
    let mut found: Vec<(u64, String)> = phrases
        .iter()
        .map(|phrase| phrase.replace(' ', "_"))
        .filter_map(|word| Some((frequencies[words.id(&word)? as usize], word)))
        .collect();
    if found.is_empty() {
        note("no phrases: lower --phrase-threshold or --phrase-min-count");
        return;
    }
    found.sort_unstable_by(|a, b| b.0.cmp(&a.0).then_with(|| a.1.cmp(&b.1)));
    let tokens: u64 = found.iter().map(|phrase| phrase.0).sum();
    let first: Vec<&str> = found.iter().take(NAMED).map(|phrase| &*phrase.1).collect();
    let more = if found.len() > NAMED { ", ..." } else { "" };
    note(&format!("{} phrases, {tokens} tokens: {}{more}", found.len(), first.join(", ")));
}

/// Says if several words have the same name: they stay different words.
fn note_repeated_words(corpus: &Corpus, note: &mut dyn FnMut(&str)) {
    let Some(vocabulary) = corpus.vocabulary() else { return };
    let is_repeated = |&(id, word): &(u32, &str)| vocabulary.id(word) != Some(id);
    let repeated: Vec<&str> =
        (0..).zip(vocabulary.iter()).filter(is_repeated).map(|named| named.1).collect();
    if let Some(first) = repeated.iter().find(|word| !word.is_empty()) {
        let number = repeated.len();
        note(&format!("{number} words have the name of another word, such as `{first}`"));
    }
}

/// Removes words without a token from the vocabulary: the number of words is part of a model. Words
/// without names stay, because their numbers are those of the file.
fn drop_unused_words(corpus: &mut Corpus, note: &mut dyn FnMut(&str)) {
    let words = corpus.num_words();
    if corpus.vocabulary().is_some() && corpus.compact().len() < words {
        let (left, gone) = (corpus.num_words(), words - corpus.num_words());
        note(&format!(
            "{gone} words of the vocabulary have no token and are left out: {left} words"
        ));
    }
}

/// Options of the reader; texts for a `model` are cut into words as those that it was trained on.
///
/// # Errors
/// [`ReadError`], if the format is unknown.
pub fn read_options(
    input: &ReadingArgs,
    model: Option<&TopicModel>,
) -> Result<ReadOptions, ReadError> {
    let mut options = ReadOptions::default();
    if let Some(format) = &input.format {
        options.format = Some(format.parse()?);
    }
    options.encoding.clone_from(&input.encoding);
    options.index_base = input.index_base.unwrap_or(options.index_base);
    options.num_words = input.num_words;
    options.transpose = input.transpose;
    options.max_empty_documents = input.max_empty_documents.unwrap_or(options.max_empty_documents);
    options.max_unused_words = input.max_unused_words.unwrap_or(options.max_unused_words);
    options.columns.text.clone_from(&input.text_column);
    options.columns.id.clone_from(&input.id_column);
    options.columns.date.clone_from(&input.date_column);
    options.columns.header = !input.no_header;
    options.text = input.text.options(model.and_then(rules));
    Ok(options)
}

/// Rejects options that do not apply to this format, rather than ignore them.
fn check_fit(input: &ReadingArgs, report: &ReadReport) -> Result<(), ReadingError> {
    let is_text = report.format.has_texts();
    let refuse = |option: &str, what: &str| {
        Err(ReadingError::Usage(format!(
            "{option} applies to {what}, but the input is {}: omit it",
            report.format
        )))
    };
    if let Some((option, _)) = input.text.given().find(|(_, given)| *given && !is_text) {
        return refuse(option, "texts");
    }
    if input.index_base.is_some() && report.format != Format::Svmlight {
        return refuse("--index-base", "SVMlight");
    }
    if input.vocabulary.is_some() && is_text {
        return refuse("--vocabulary", "formats that store word numbers");
    }
    Ok(())
}

/// Names the words with the vocabulary file next to `docword.NAME`, if there is one.
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
