//! Initialization of a run: an existing model, or seed words of topics.

use std::fs;
use std::path::Path;

use lda_core::Corpus;
use lda_core::corpus::{Vocabulary, VocabularyFull};
use lda_core::infer::Translation;
use lda_core::model::TopicModel;
use lda_core::train::{PseudoCounts, PseudoCountsError, TrainOptions, Weight};

use crate::commands::train::args::{Args, InitArgs};
use crate::commands::train::error::TrainError;
use crate::commands::train::progress::Progress;

/// Loads the model of `--from`.
pub fn model(args: &InitArgs) -> Result<Option<TopicModel>, TrainError> {
    args.from.as_ref().map(TopicModel::load).transpose().map_err(TrainError::Model)
}

/// Adds the model's words to the documents, which may lack them: `new` words, of which `add` adds more.
pub fn widen(
    model: &TopicModel,
    new: usize,
    add: impl FnOnce(&Vocabulary) -> Result<usize, VocabularyFull>,
    progress: &Progress,
) -> Result<(), TrainError> {
    let Some(vocabulary) = model.vocabulary() else { return Ok(()) };
    let added = add(vocabulary).map_err(|error| TrainError::Usage(error.to_string()))?;
    let known = vocabulary.len() - added;
    progress.note(&format!(
        "continuing from a model of {} topics: {known} of the {new} words of the documents are in \
         it, {added} words of the model are added",
        model.num_topics()
    ));
    Ok(())
}

/// Takes the model's number of topics and priors for options that are not given.
pub fn inherit(args: &Args, model: &TopicModel, options: TrainOptions) -> TrainOptions {
    let mut options = options;
    if !args.is_given("topics") {
        options = options.topics(model.num_topics() as u32);
    }
    if args.model.alpha.is_none() && options.get_topics() as usize == model.num_topics() {
        options = options.alpha(model.alpha().clone());
    }
    if let Some(counts) = model.counts().filter(|_| !args.is_given("beta")) {
        options = options.beta(counts.beta());
    }
    options
}

/// Pseudo-counts of the model or of the seed words; `None` without `--from` and `--seed-topics`.
pub fn pseudo_counts(
    args: &InitArgs,
    model: Option<&TopicModel>,
    corpus: &Corpus,
    topics: u32,
    progress: &Progress,
) -> Result<Option<PseudoCounts>, TrainError> {
    if let Some(model) = model {
        let failed = |error: String| TrainError::Usage(format!("--from: {error}"));
        let translation =
            Translation::new(corpus, model).map_err(|error| failed(error.to_string()))?;
        let share = Weight::Share(args.from_share);
        let counts = PseudoCounts::from_model(model, &translation, corpus, topics, share);
        return counts.map(Some).map_err(|error| failed(error.to_string()));
    }
    let Some(path) = &args.seed_topics else { return Ok(None) };
    let (lines, seeds) = read_seeds(path)?;
    let unknown = PseudoCounts::unknown_seeds(corpus, &seeds);
    if !unknown.is_empty() {
        progress.note(&format!(
            "warning: {}: ignoring seed words that are not in the documents: {}",
            path.display(),
            unknown.join(", ")
        ));
    }
    PseudoCounts::seeds(corpus, topics, &seeds, args.seed_weight).map(Some).map_err(|error| {
        let line = match error {
            PseudoCountsError::UnknownSeeds { topic, .. } => format!(", line {}", lines[topic]),
            _ => String::new(),
        };
        TrainError::Usage(format!("--seed-topics {}{line}: {error}", path.display()))
    })
}

/// Line number and words of each topic of a seed file.
fn read_seeds(path: &Path) -> Result<(Vec<usize>, Vec<Vec<String>>), TrainError> {
    let failed =
        |reason: String| TrainError::Usage(format!("--seed-topics {}: {reason}", path.display()));
    let text = fs::read_to_string(path).map_err(|error| failed(error.to_string()))?;
    let lines = (1..).zip(text.lines());
    let lines = lines.filter(|(_, line)| !line.trim_start().starts_with('#'));
    let words = |line: &str| line.split_whitespace().map(str::to_owned).collect();
    let (numbers, seeds): (Vec<usize>, Vec<Vec<String>>) =
        lines.map(|(number, line)| (number, words(line))).unzip();
    if seeds.iter().all(Vec::is_empty) {
        return Err(failed("no seed words: give the words of one topic per line".to_owned()));
    }
    Ok((numbers, seeds))
}
