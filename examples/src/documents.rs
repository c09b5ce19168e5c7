//! Translation of documents to a model's vocabulary, and inference of their topics.

use std::io;
use std::path::{Path, PathBuf};

use lda_core::Corpus;
use lda_core::corpus::{BuildError, ReadError};
use lda_core::infer::{Answer, Inference, InferenceError, Translation, TranslationError};
use lda_core::model::TopicModel;
use thiserror::Error;

use crate::method::{MethodArgs, MethodError};
use crate::program::ProgramArgs;
use crate::reading::{ReadingArgs, ReadingError};

/// Options of the subcommands that infer topics of documents.
#[derive(Debug, clap::Args)]
pub struct InferenceArgs {
    /// Threads and progress.
    #[command(flatten)]
    pub program: ProgramArgs,
    /// Inference method.
    #[command(flatten)]
    pub method: MethodArgs,
    /// Input options.
    #[command(flatten)]
    pub reading: ReadingArgs,
}

impl InferenceArgs {
    /// Prepares inference by `model`.
    ///
    /// # Errors
    /// [`DocumentsError::Method`], or [`DocumentsError::Inference`].
    pub fn inference<'m>(
        &self,
        model: &'m TopicModel,
    ) -> Result<Inference<&'m TopicModel>, DocumentsError> {
        Ok(Inference::new(model, self.method.method()?, self.method.seed)?)
    }
}

/// Errors of inferring topics of documents.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum DocumentsError {
    /// An option does not belong to the inference method.
    #[error(transparent)]
    Method(#[from] MethodError),
    /// The inference options do not fit the model.
    #[error(transparent)]
    Inference(#[from] InferenceError),
    /// The documents cannot be read.
    #[error(transparent)]
    Reading(#[from] ReadingError),
    /// Standard input cannot be read.
    #[error("standard input: {0}")]
    Input(io::Error),
    /// The words of the documents cannot be translated to the model's.
    #[error("{model}: {source}", model = model.display())]
    Words {
        /// The model's file.
        model: PathBuf,
        /// Cause.
        source: TranslationError,
    },
    /// The translated corpus cannot be built.
    #[error(transparent)]
    Build(#[from] BuildError),
}

impl DocumentsError {
    /// Whether an option is the cause.
    pub fn is_usage(&self) -> bool {
        matches!(
            self,
            Self::Method(_)
                | Self::Inference(InferenceError::Option { .. })
                | Self::Reading(
                    ReadingError::Usage(_) | ReadingError::Read(ReadError::Option { .. })
                )
        )
    }
}

/// Translates a corpus to the word ids of a model; `name` is the file of the model, for errors.
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

/// Translated documents and their topics.
#[derive(Debug)]
pub struct Answered {
    /// Map from the words of the documents to those of the model.
    pub translation: Translation,
    /// The documents, with word ids of the model.
    pub documents: Corpus,
    /// Inferred topics, one answer per document.
    pub answers: Vec<Answer>,
}

impl Answered {
    /// Translates and infers a corpus; `name` is the file of the model, for errors.
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
