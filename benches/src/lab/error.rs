//! What can go wrong in the lab.

use std::io;
use std::path::PathBuf;

use thiserror::Error;

use super::Baseline;

/// Why the lab did not do what was asked.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum LabError {
    /// A file could not be read.
    #[error("cannot read {}: {source}", path.display())]
    Read {
        /// Which.
        path: PathBuf,
        /// The system's word.
        source: io::Error,
    },
    /// A file could not be written.
    #[error("cannot write {}: {source}", path.display())]
    Write {
        /// Which.
        path: PathBuf,
        /// The system's word.
        source: io::Error,
    },
    /// A file is not what it should be.
    #[error("{}: {message}", path.display())]
    Syntax {
        /// Which.
        path: PathBuf,
        /// Where in it, and what to do.
        message: String,
    },
    /// A plan or an argument asks for something that makes no sense.
    #[error("{key} is {value}: {remedy}")]
    Value {
        /// Key of the plan, or option.
        key: &'static str,
        /// What was given.
        value: String,
        /// What to give.
        remedy: String,
    },
    /// A corpus that is neither a file nor a preset.
    #[error(
        "no corpus {name:?}: looked for {kind}.{name}.txt.gz and {kind}.{name}.txt in {}; set \
         LDA_CORPORA to the directory that holds them, or use a generated corpus (nytlike, \
         pubmedlike, baikelike; nytlike@0.1 is a tenth of it)", directory.display()
    )]
    NoCorpus {
        /// What was asked for.
        name: String,
        /// What of it: docword or vocab.
        kind: &'static str,
        /// Where it was looked for.
        directory: PathBuf,
    },
    /// Corpora could not be joined.
    #[error(transparent)]
    Build(#[from] lda_core::corpus::BuildError),
    /// A cluster in namespaces could not be had, or failed.
    #[error("{command}: {why}")]
    Network {
        /// What was tried.
        command: String,
        /// Why it failed.
        why: String,
    },
    /// A corpus could not be generated.
    #[error(transparent)]
    Synthesis(#[from] crate::synthetic::SynthesisError),
    /// A corpus could not be read.
    #[error(transparent)]
    Corpus(#[from] lda_core::corpus::ReadError),
    /// A run was refused.
    #[error(transparent)]
    Options(#[from] lda_core::train::OptionsError),
    /// Held-out documents could not be predicted.
    #[error(transparent)]
    Completion(#[from] lda_core::eval::CompletionError),
    /// A baseline is not there, failed, or wrote what cannot be.
    #[error("{baseline}: {message}")]
    Baseline {
        /// Which.
        baseline: Baseline,
        /// What happened, and what to do if something can be done.
        message: String,
    },
    /// A child process failed.
    #[error("{cell}: {message}")]
    Child {
        /// Which run.
        cell: String,
        /// How it ended and what it said last.
        message: String,
    },
    /// Nothing to report on.
    #[error("no finished run in {}: `lab run` makes some", path.display())]
    Empty {
        /// The output directory.
        path: PathBuf,
    },
}

impl LabError {
    pub(super) fn read(path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| Self::Read { path, source }
    }

    pub(super) fn write(path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| Self::Write { path, source }
    }
}
