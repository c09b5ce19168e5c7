//! From the command line to a corpus.

use std::fs::File;
use std::path::{Path, PathBuf};

use lda_core::Corpus;
use lda_core::corpus::read::{StopWords, read_vocabulary};
use lda_core::corpus::{Format, ReadError, ReadOptions, ReadReport};

use crate::args::Args;
use crate::error::TrainError;
use crate::progress::Progress;
use crate::provenance::Input;
use crate::sources::{self, Rules};

/// Reads what the command line names, or the Rust sources.
///
/// # Errors
/// [`TrainError::Read`] and its like.
pub fn load(args: &Args, progress: &Progress) -> Result<(Corpus, Input), TrainError> {
    match &args.path {
        Some(path) => load_path(path, args, progress),
        None => load_sources(args, progress),
    }
}

fn load_path(path: &Path, args: &Args, progress: &Progress) -> Result<(Corpus, Input), TrainError> {
    progress.busy(&format!("reading {}", path.display()));
    let options = read_options(args)?;
    let (mut corpus, report) = Corpus::read_with_report(path, &options)?;
    progress.note(&format!("{}: {report}", path.display()));
    check_fit(args, &report)?;
    let vocabulary = match &args.input.vocabulary {
        Some(vocabulary) => {
            corpus = corpus.with_vocabulary(vocabulary)?;
            Some(vocabulary.clone())
        }
        None if corpus.vocabulary().is_none() => {
            let (named, found) = name_words(corpus, path, progress)?;
            corpus = named;
            found
        }
        None => None,
    };
    if let Some(dates) = &args.input.dates {
        corpus = corpus.with_dates(dates)?;
    }
    let reading = serde_json::to_value(&options).expect("plain data");
    let mut input = Input::new(path.display().to_string(), &corpus, reading);
    input.vocabulary = vocabulary.map(|path| path.display().to_string());
    Ok((corpus, input))
}

fn load_sources(args: &Args, progress: &Progress) -> Result<(Corpus, Input), TrainError> {
    progress.note("no path given: training on the Rust sources in cargo's registry (see --help)");
    progress.busy("reading Rust sources");
    let defaults = Rules::default();
    let text = &args.text;
    let rules = Rules {
        min_length: text.min_length.unwrap_or(defaults.min_length),
        max_length: text.max_length.unwrap_or(defaults.max_length),
        min_document_frequency: text
            .min_document_frequency
            .unwrap_or(defaults.min_document_frequency),
        max_document_frequency: text
            .max_document_frequency
            .unwrap_or(defaults.max_document_frequency),
        stop_words: match &text.stop_words {
            Some(list) => list.display().to_string(),
            None => defaults.stop_words,
        },
        stop_list: match text.stop_words.as_deref().map(stop_words) {
            Some(StopWords::None) => Some(Vec::new()),
            Some(StopWords::File(path)) => Some(read_words(&path)?),
            _ => None,
        },
    };
    let (corpus, summary) = sources::read(rules)?;
    let left_out = match summary.left_out {
        0 => String::new(),
        n => format!(" ({n} left out, spread evenly)"),
    };
    progress.note(&format!(
        "{} files of {:.1} MB{left_out}: {} words, {} tokens",
        summary.files,
        summary.bytes as f64 / 1e6,
        corpus.num_words(),
        corpus.num_tokens()
    ));
    let reading = serde_json::to_value(&summary).expect("plain data");
    let input = Input::new("Rust sources in cargo's registry".into(), &corpus, reading);
    Ok((corpus, input))
}

fn read_options(args: &Args) -> Result<ReadOptions, ReadError> {
    let mut options = ReadOptions::default();
    let (input, text) = (&args.input, &args.text);
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

fn stop_words(list: &Path) -> StopWords {
    match list.to_str() {
        Some("english") => StopWords::English,
        Some("none") => StopWords::None,
        _ => StopWords::File(list.to_owned()),
    }
}

fn read_words(path: &Path) -> Result<Vec<String>, ReadError> {
    let file =
        File::open(path).map_err(|source| ReadError::Io { path: path.to_owned(), source })?;
    let words = read_vocabulary(file, path)?;
    Ok(words.iter().map(|word| word.trim().to_lowercase()).collect())
}

/// Refuses options that say nothing about a file of this format, rather than ignore them.
fn check_fit(args: &Args, report: &ReadReport) -> Result<(), TrainError> {
    let (input, text) = (&args.input, &args.text);
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
        Err(TrainError::Usage(format!(
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
    progress: &Progress,
) -> Result<(Corpus, Option<PathBuf>), TrainError> {
    let Some(vocabulary) = sibling_vocabulary(path) else {
        progress.note("no --vocabulary: words are shown by their numbers");
        return Ok((corpus, None));
    };
    progress.note(&format!("words are named by {}", vocabulary.display()));
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
