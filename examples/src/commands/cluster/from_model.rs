//! Going on from a model: `--from` of `local` and `cut`, and the key `from` of a configuration.

use std::path::Path;

use lda_core::Corpus;
use lda_core::corpus::Vocabulary;
use lda_core::infer::Translation;
use lda_core::model::TopicModel;
use lda_core::train::{PseudoCounts, Weight};
use lda_dist::documents::StoredDocuments;
use lda_dist::storage::Storage;

use crate::commands::cluster::config::Config;
use crate::commands::cluster::error::ClusterError;
use crate::commands::cluster::training::Training;

/// A model whose counts are added to those of the documents.
#[derive(Debug)]
pub struct FromModel {
    pub model: TopicModel,
    /// Its counts, by words of the documents.
    pub counts: PseudoCounts,
}

/// Loads the model, if there is one.
///
/// # Errors
/// [`ClusterError::Model`].
pub fn load(path: Option<&Path>) -> Result<Option<TopicModel>, ClusterError> {
    path.map(TopicModel::load).transpose().map_err(ClusterError::Model)
}

/// Adds the model's words to the corpus, which may lack them.
///
/// # Errors
/// [`ClusterError::From`] if there are too many words.
pub fn widen(
    corpus: &mut Corpus,
    model: &TopicModel,
    note: &mut dyn FnMut(&str),
) -> Result<(), ClusterError> {
    let Some(vocabulary) = model.vocabulary() else { return Ok(()) };
    let new = corpus.num_words();
    let added =
        corpus.add_words(vocabulary).map_err(|error| ClusterError::From(error.to_string()))?;
    let (known, topics) = (vocabulary.len() - added, model.num_topics());
    note(&format!(
        "continuing from a model of {topics} topics: {known} of the {new} words of the documents are in \
         it, {added} words of the model are added"
    ));
    Ok(())
}

impl FromModel {
    /// The model for the words of a corpus, with the topics and the share of `training`.
    ///
    /// # Errors
    /// [`ClusterError::From`].
    pub fn new(
        model: TopicModel,
        corpus: &Corpus,
        training: &Training,
    ) -> Result<Self, ClusterError> {
        let failed = |error: String| ClusterError::From(error);
        let topics = training.topics.unwrap_or(model.num_topics() as u32);
        let translation =
            Translation::new(corpus, &model).map_err(|error| failed(error.to_string()))?;
        let share = Weight::Share(training.from_share);
        let counts = PseudoCounts::from_model(&model, &translation, corpus, topics, share)
            .map_err(|error| failed(error.to_string()))?;
        Ok(Self { model, counts })
    }

    /// The same for stored documents, which must have all words of the model.
    ///
    /// # Errors
    /// [`ClusterError::From`].
    pub fn of_stored(
        model: TopicModel,
        (words, vocabulary): (u32, Option<&Vocabulary>),
        training: &Training,
    ) -> Result<Self, ClusterError> {
        let failed = |error: String| ClusterError::From(error);
        // One document of all words: the vocabulary of the documents, in the same order.
        let corpus = match vocabulary {
            Some(vocabulary) => Corpus::from_words([vocabulary.iter()]),
            None => Corpus::from_tokens(std::iter::once(0..words)),
        };
        let corpus = corpus.map_err(|error| failed(error.to_string()))?;
        let known = |word: &&str| vocabulary.is_none_or(|words| words.id(word).is_some());
        let of_model = model.vocabulary();
        let missing = of_model.map_or(0, |words| words.iter().filter(|word| !known(word)).count());
        if missing > 0 {
            return Err(failed(format!(
                "{missing} words of the model are not among those of the documents, and would be lost: cut the \
                 documents with `lda cluster cut --from` and this model"
            )));
        }
        Self::new(model, &corpus, training)
    }
}

/// The model from which a run of stored documents goes on, if it does.
///
/// # Errors
/// [`ClusterError`].
pub fn from_stored<S: Storage>(
    config: &Config,
    documents: &StoredDocuments<S>,
) -> Result<Option<FromModel>, ClusterError> {
    let Some(model) = load(config.training.from.as_deref())? else { return Ok(None) };
    let place = |error| ClusterError::Stored { place: config.documents.to_string(), error };
    let vocabulary = documents.vocabulary().map_err(place)?;
    let words = (documents.num_words(), vocabulary.as_ref());
    FromModel::of_stored(model, words, &config.training).map(Some)
}
