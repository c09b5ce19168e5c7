//! Why a run failed, and the exit status that says so.

use std::io;
use std::path::PathBuf;

use lda_core::container::FileError;
use lda_core::corpus::{BuildError, ReadError};
use lda_core::eval::{CompletionError, TopWordsError};
use lda_core::train::{OptionsError, ResumeError};
use thiserror::Error;

use lda_examples::matrix::DenseError;
use lda_examples::output::OutputError;
use lda_examples::program::ThreadsError;
use lda_examples::reading::ReadingError;

/// Why a run failed.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum TrainError {
    /// The command line contradicts itself or the corpus.
    #[error("{0}")]
    Usage(String),
    /// The corpus could not be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The documents could not be read.
    #[error(transparent)]
    Reading(#[from] ReadingError),
    /// The corpus could not be put together.
    #[error("{path}: {source}", path = path.display())]
    Build {
        /// Where the documents come from.
        path: PathBuf,
        /// What is wrong.
        source: BuildError,
    },
    /// All tokens were held out, or none was.
    #[error(
        "--held-out {share} of {documents} documents with tokens leaves one side without any: \
         give another share, or another --seed"
    )]
    HeldOut {
        /// The share asked for.
        share: f64,
        /// Documents of the corpus with tokens.
        documents: usize,
    },
    /// The options do not go with the corpus.
    #[error(transparent)]
    Options(#[from] OptionsError),
    /// The run cannot be gone on with.
    #[error("--resume: {0}")]
    Resume(#[from] ResumeError),
    /// A snapshot cannot be read, or its directory not be used.
    #[error(transparent)]
    Snapshot(#[from] FileError),
    /// The model to go on from cannot be read.
    #[error("--from: {0}")]
    Model(FileError),
    /// The last snapshot could not be written.
    #[error("the last snapshot is missing: {0}; other files asked for are written")]
    Checkpoint(String),
    /// The thread pool could not be started.
    #[error(transparent)]
    Threads(#[from] ThreadsError),
    /// A matrix with its zeros would be too large.
    #[error(transparent)]
    Dense(#[from] DenseError),
    /// A file could not be written.
    #[error(transparent)]
    Output(#[from] OutputError),
    /// The table could not be printed.
    #[error("standard output: {0}; the files asked for are written")]
    Print(io::Error),
    /// No words to show.
    #[error(transparent)]
    TopWords(#[from] TopWordsError),
    /// The held-out documents could not be judged.
    #[error("held-out documents: {0}")]
    Completion(#[from] CompletionError),
    /// Ctrl-C would kill.
    #[error("cannot listen for Ctrl-C: {0}")]
    Interrupt(#[from] ctrlc::Error),
}

impl TrainError {
    /// Exit status: 2 where the command line is to blame, 1 otherwise.
    pub fn status(&self) -> u8 {
        match self {
            Self::Usage(_)
            | Self::Dense(_)
            | Self::Read(ReadError::Option { .. })
            | Self::Reading(
                ReadingError::Usage(_) | ReadingError::Read(ReadError::Option { .. }),
            ) => 2,
            Self::Options(
                OptionsError::NoTopics
                | OptionsError::TooManyTopics { .. }
                | OptionsError::Prior(_)
                | OptionsError::Value { .. }
                | OptionsError::Isa { .. },
            ) => 2,
            _ => 1,
        }
    }
}
