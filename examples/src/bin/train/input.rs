//! From the command line to a corpus.

use std::path::Path;

use lda_core::Corpus;
use lda_core::corpus::read::StopWords;
use lda_examples::reading::{self, read_words, stop_words};

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
    let read = reading::read(path, &args.reading, &mut |text| progress.note(text))?;
    let options = serde_json::to_value(&read.options).expect("plain data");
    let mut input = Input::new(path.display().to_string(), &read.corpus, options);
    input.vocabulary = read.vocabulary.map(|path| path.display().to_string());
    Ok((read.corpus, input))
}

fn load_sources(args: &Args, progress: &Progress) -> Result<(Corpus, Input), TrainError> {
    progress.note("no path given: training on the Rust sources in cargo's registry (see --help)");
    progress.busy("reading Rust sources");
    let defaults = Rules::default();
    let text = &args.reading.text;
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
