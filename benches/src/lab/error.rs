//! Errors of the lab.

use std::io;
use std::path::PathBuf;

use thiserror::Error;

use super::Baseline;

/// Error of a lab command.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum LabError {
    /// A file could not be read.
    #[error("cannot read {}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Error of the operating system.
        source: io::Error,
    },
    /// A file could not be written.
    #[error("cannot write {}: {source}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// Error of the operating system.
        source: io::Error,
    },
    /// A file has invalid content.
    #[error("{}: {message}", path.display())]
    Syntax {
        /// The file.
        path: PathBuf,
        /// Position, problem and remedy.
        message: String,
    },
    /// A plan or an option has an invalid value.
    #[error("{key} is {value}: {remedy}")]
    Value {
        /// Key of the plan, or option.
        key: &'static str,
        /// The given value.
        value: String,
        /// Valid values.
        remedy: String,
    },
    /// A corpus is neither a file nor a preset.
    #[error(
        "no corpus {name:?}: looked for {kind}.{name}.txt.gz and {kind}.{name}.txt in {}; set \
         LDA_CORPORA to the directory that holds them, or use a generated corpus (nytlike, \
         pubmedlike, baikelike, weblike, cellslike; nytlike@0.1 is a tenth of it)", directory.display()
    )]
    NoCorpus {
        /// The requested name.
        name: String,
        /// The missing file: docword or vocab.
        kind: &'static str,
        /// Directory that was searched.
        directory: PathBuf,
    },
    /// Corpora could not be joined.
    #[error(transparent)]
    Build(#[from] lda_core::corpus::BuildError),
    /// A cluster in network namespaces could not be set up, or failed.
    #[error("{command}: {why}")]
    Network {
        /// The command that failed.
        command: String,
        /// Its error.
        why: String,
    },
    /// A corpus could not be generated.
    #[error(transparent)]
    Synthesis(#[from] crate::synthetic::SynthesisError),
    /// A corpus could not be read.
    #[error(transparent)]
    Corpus(#[from] lda_core::corpus::ReadError),
    /// A table of a plan sets an option that does not fit its sampler.
    #[error("[{table}]: {source}")]
    Table {
        /// Name of the table.
        table: String,
        /// The option, and the samplers that have it.
        source: lda_core::train::OptionsError,
    },
    /// Invalid training options.
    #[error(transparent)]
    Options(#[from] lda_core::train::OptionsError),
    /// Held-out documents could not be evaluated.
    #[error(transparent)]
    Completion(#[from] lda_core::eval::CompletionError),
    /// A baseline is not installed, failed, or wrote invalid output.
    #[error("{baseline}: {message}")]
    Baseline {
        /// The baseline.
        baseline: Baseline,
        /// Problem and remedy.
        message: String,
    },
    /// A child process failed.
    #[error("{cell}: {message}")]
    Child {
        /// The run.
        cell: String,
        /// Exit status and last line of output.
        message: String,
    },
    /// There is nothing to report on.
    #[error("no finished run in {}: make one with `lab run`", path.display())]
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
