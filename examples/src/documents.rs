//! Documents of a user, brought to the words of a model, and the topics that are found in them.

use std::io;
use std::path::{Path, PathBuf};

use lda_core::Corpus;
use lda_core::corpus::{BuildError, ReadError};
use lda_core::infer::{Answer, Inference, InferenceError, Translation, TranslationError};
use lda_core::model::TopicModel;
use thiserror::Error;

use crate::reading::ReadingError;

/// Why topics of documents cannot be had.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum DocumentsError {
    /// The model cannot be asked so.
    #[error(transparent)]
    Inference(#[from] InferenceError),
    /// The documents cannot be read.
    #[error(transparent)]
    Reading(#[from] ReadingError),
    /// Standard input cannot be read.
    #[error("standard input: {0}")]
    Input(io::Error),
    /// Words of the documents are not the model's.
    #[error("{model}: {source}", model = model.display())]
    Words {
        /// The model's file.
        model: PathBuf,
        /// Why not.
        source: TranslationError,
    },
    /// The documents cannot be put together.
    #[error(transparent)]
    Build(#[from] BuildError),
}

impl DocumentsError {
    /// Whether the command line is to blame.
    pub fn is_usage(&self) -> bool {
        matches!(
            self,
            Self::Inference(InferenceError::Option { .. })
                | Self::Reading(
                    ReadingError::Usage(_) | ReadingError::Read(ReadError::Option { .. })
                )
        )
    }
}

/// Documents in words of a model, which is of the file `name`.
///
/// # Errors
/// [`DocumentsError::Words`], or [`DocumentsError::Build`].
pub fn translate(
    corpus: &Corpus,
    model: &TopicModel,
    name: &Path,
) -> Result<(Translation, Corpus), DocumentsError> {
    let translation = Translation::new(corpus, model)
        .map_err(|source| DocumentsError::Words { model: name.to_owned(), source })?;
    let documents = translation.apply(corpus)?;
    Ok((translation, documents))
}

/// Documents and their topics.
#[derive(Debug)]
pub struct Answered {
    /// From the words of the documents to those of the model.
    pub translation: Translation,
    /// The documents in words of the model.
    pub documents: Corpus,
    /// What was found, by document.
    pub answers: Vec<Answer>,
}

impl Answered {
    /// Finds the topics of documents by a model, which is of the file `name`.
    ///
    /// # Errors
    /// [`DocumentsError::Words`], or [`DocumentsError::Build`].
    pub fn new(
        corpus: &Corpus,
        inference: &Inference<&TopicModel>,
        name: &Path,
    ) -> Result<Self, DocumentsError> {
        let (translation, documents) = translate(corpus, inference.model(), name)?;
        let answers = inference.infer_corpus(&documents);
        Ok(Self { translation, documents, answers })
    }
}
