//! Errors of a sweep, and their exit status.

use std::io;
use std::path::PathBuf;

use lda_core::container::FileError;
use lda_core::corpus::{BuildError, ReadError};
use lda_core::train::{self, OptionsError};
use lda_examples::output::OutputError;
use lda_examples::program::StartError;
use lda_examples::reading::ReadingError;
use thiserror::Error;

/// Errors of a sweep.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum SweepError {
    /// The documents could not be read.
    #[error(transparent)]
    Reading(#[from] ReadingError),
    /// All tokens were held out, or none were.
    #[error(
        "--held-out {share} of {documents} documents with tokens leaves training or evaluation without \
         documents: change --held-out or --seed"
    )]
    HeldOut {
        /// Value of `--held-out`.
        share: f64,
        /// Documents of the corpus with tokens.
        documents: usize,
    },
    /// The documents could not be divided.
    #[error("{path}: {source}", path = path.display())]
    Build {
        /// Path of the documents.
        path: PathBuf,
        /// Cause.
        source: BuildError,
    },
    /// A run failed.
    #[error(transparent)]
    Train(train::SweepError),
    /// A model does not fit into memory.
    #[error(
        "{topics} topics: training needs about {needed} bytes of memory, and this process may use {limit}: ask \
         for fewer topics, or check the largest word number of the documents"
    )]
    Memory {
        /// Number of topics.
        topics: u32,
        /// Bytes needed.
        needed: u64,
        /// Bytes that the process may use.
        limit: u64,
    },
    /// The directory has results of something else.
    #[error(
        "{directory} has a sweep with {difference}: give its options and documents to continue it, or another \
         --out", directory = directory.display()
    )]
    Other {
        /// The directory.
        directory: PathBuf,
        /// The first difference, in words.
        difference: String,
    },
    /// Another process runs a sweep in the directory.
    #[error(
        "another sweep runs in {directory}: wait for its end, or give another --out",
        directory = directory.display()
    )]
    InUse {
        /// The directory.
        directory: PathBuf,
    },
    /// A file of the directory cannot be read.
    #[error("{path}: {reason}: remove it, or give another --out", path = path.display())]
    Record {
        /// The file.
        path: PathBuf,
        /// Cause.
        reason: String,
    },
    /// The directory or a file in it cannot be used.
    #[error(
        "{path}: {source}: check that --out is a directory, or can be made one, and that it may be written",
        path = path.display()
    )]
    Io {
        /// The path.
        path: PathBuf,
        /// Cause.
        source: io::Error,
    },
    /// A model cannot be written or read.
    #[error(transparent)]
    Model(#[from] FileError),
    /// A file could not be written.
    #[error(transparent)]
    Output(#[from] OutputError),
    /// The program could not start.
    #[error(transparent)]
    Start(#[from] StartError),
    /// The table could not be printed.
    #[error("standard output: {0}; the files are written")]
    Print(io::Error),
    /// A signal ended the sweep.
    #[error("stopped with {left} runs left: the same command continues")]
    Stopped {
        /// Number of runs without a result.
        left: usize,
    },
}

impl From<train::SweepError> for SweepError {
    fn from(error: train::SweepError) -> Self {
        match error {
            train::SweepError::Options {
                topics,
                source: OptionsError::Memory { needed, limit },
            } => Self::Memory { topics, needed, limit },
            error => Self::Train(error),
        }
    }
}

impl SweepError {
    /// Exit status: 2 if an option is the cause, 1 otherwise.
    pub fn status(&self) -> u8 {
        match self {
            Self::Other { .. }
            | Self::Reading(
                ReadingError::Usage(_) | ReadingError::Read(ReadError::Option { .. }),
            ) => 2,
            _ => 1,
        }
    }
}
