//! Errors of a training run, and their exit status.

use std::io;
use std::path::PathBuf;

use lda_core::container::FileError;
use lda_core::corpus::{BuildError, ReadError};
use lda_core::eval::{CoherenceError, CompletionError, TopWordsError};
use lda_core::train::blocks::BlockRunError;
use lda_core::train::{OptionsError, ResumeError};
use thiserror::Error;

use lda_examples::matrix::DenseError;
use lda_examples::output::OutputError;
use lda_examples::program::StartError;
use lda_examples::reading::ReadingError;

/// Errors of a training run.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum TrainError {
    /// An option contradicts another one or the corpus.
    #[error("{0}")]
    Usage(String),
    /// The corpus could not be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The documents could not be read.
    #[error(transparent)]
    Reading(#[from] ReadingError),
    /// The corpus could not be built.
    #[error("{path}: {source}", path = path.display())]
    Build {
        /// Path of the documents.
        path: PathBuf,
        /// Cause.
        source: BuildError,
    },
    /// All tokens were held out, or none were.
    #[error(
        "--held-out {share} of {documents} documents with tokens leaves training or evaluation \
         without documents: change --held-out or --seed"
    )]
    HeldOut {
        /// Value of `--held-out`.
        share: f64,
        /// Documents of the corpus with tokens.
        documents: usize,
    },
    /// The options do not fit the corpus.
    #[error(transparent)]
    Options(#[from] OptionsError),
    /// Training does not fit into memory.
    #[error(
        "training needs about {needed} bytes of memory, and this process may use {limit}: ask for \
         fewer topics, use the warp sampler, or check the largest word number of the documents; \
         --memory-limit {needed} allows it all the same"
    )]
    Memory {
        /// Bytes needed.
        needed: u64,
        /// Bytes that the process may use.
        limit: u64,
    },
    /// Training over blocks does not fit into memory.
    #[error(
        "training needs about {needed} bytes of memory over these blocks, and {limit} are allowed: allow \
         more (--memory-limit {needed}), cut smaller blocks (--block-tokens), or ask for fewer topics"
    )]
    BlockMemory {
        /// Bytes needed.
        needed: u64,
        /// Bytes that the run may use.
        limit: u64,
    },
    /// The run cannot be resumed.
    #[error("--resume: {0}")]
    Resume(#[from] ResumeError),
    /// A checkpoint cannot be read, or its directory cannot be used.
    #[error(transparent)]
    Snapshot(#[from] FileError),
    /// The model of `--from` cannot be read.
    #[error("--from: {0}")]
    Model(FileError),
    /// A block cannot be read or written, or the run over blocks cannot go on.
    #[error(transparent)]
    Blocks(BlockRunError),
    /// The last checkpoint could not be written.
    #[error("the last checkpoint is missing: {0}; the other output files are written")]
    Checkpoint(String),
    /// The program could not start.
    #[error(transparent)]
    Start(#[from] StartError),
    /// The topics cannot be measured.
    #[error("--coherence and --diagnostics: {0}")]
    Coherence(#[from] CoherenceError),
    /// A dense matrix would be too large.
    #[error(transparent)]
    Dense(#[from] DenseError),
    /// A file could not be written.
    #[error(transparent)]
    Output(#[from] OutputError),
    /// The table could not be printed.
    #[error("standard output: {0}; the output files are written")]
    Print(io::Error),
    /// The words of the table cannot be selected.
    #[error(transparent)]
    TopWords(#[from] TopWordsError),
    /// The held-out documents could not be evaluated.
    #[error("held-out documents: {0}")]
    Completion(#[from] CompletionError),
}

impl From<BlockRunError> for TrainError {
    fn from(error: BlockRunError) -> Self {
        match error {
            BlockRunError::Options(error) => error.into(),
            BlockRunError::File(error) => error.into(),
            BlockRunError::Resume(error) => error.into(),
            error => Self::Blocks(error),
        }
    }
}

impl TrainError {
    /// Exit status: 2 if an option is the cause, 1 otherwise.
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
