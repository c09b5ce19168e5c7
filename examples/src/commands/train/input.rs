//! Loading of the corpus.

use std::path::Path;

use lda_core::Corpus;
use lda_core::model::TopicModel;
use lda_examples::reading::{self, ReadingError};
use lda_examples::sources;

use crate::commands::train::args::Args;
use crate::commands::train::error::TrainError;
use crate::commands::train::progress::Progress;
use crate::commands::train::provenance::Input;

/// Reads the documents at PATH, or the Rust sources of this machine without one. Texts are cut into
/// words as those of the model of `--from`.
///
/// # Errors
/// [`TrainError::Read`], [`TrainError::Reading`].
pub fn load(
    args: &Args,
    model: Option<&TopicModel>,
    progress: &Progress,
) -> Result<(Corpus, Input), TrainError> {
    match &args.path {
        Some(path) => load_path(path, args, model, progress),
        None => load_sources(args, progress),
    }
}

fn load_path(
    path: &Path,
    args: &Args,
    model: Option<&TopicModel>,
    progress: &Progress,
) -> Result<(Corpus, Input), TrainError> {
    progress.busy(&format!("reading {}", path.display()));
    let mut note = |text: &str| progress.note(text);
    // Coherence in windows needs the order of the words.
    let read = match args.results.measures_topics() {
        true => reading::read_in_order(path, &args.reading, model, &mut note),
        false => reading::read(path, &args.reading, model, &mut note),
    }?;
    let options = serde_json::to_value(&read.options).expect("plain data serializes to JSON");
    let mut input = Input::new(path.display().to_string(), &read.corpus, options);
    input.vocabulary = read.vocabulary.map(|path| path.display().to_string());
    Ok((read.corpus, input))
}

fn load_sources(args: &Args, progress: &Progress) -> Result<(Corpus, Input), TrainError> {
    progress.busy("reading Rust sources");
    let read = sources::read(&args.reading.text, &mut |text| progress.note(text));
    let (corpus, summary) = read.map_err(ReadingError::from)?;
    let reading = serde_json::to_value(&summary).expect("plain data serializes to JSON");
    let input = Input::new(sources::NAME.into(), &corpus, reading);
    Ok((corpus, input))
}
