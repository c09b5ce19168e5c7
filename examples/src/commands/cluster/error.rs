//! Why a run failed, and what that says to who started it.

use std::path::PathBuf;

use lda_core::container::FileError;
use lda_dist::cluster::{Failed, RunError};
use lda_dist::documents::StoredError;
use lda_dist::job::JobError;
use lda_dist::storage::StorageError;
use lda_dist::together::TogetherError;
use lda_examples::output::OutputError;
use lda_examples::program::ThreadsError;
use lda_examples::reading::ReadingError;
use lda_transport::bootstrap::BootstrapError;
use thiserror::Error;

use crate::commands::cluster::config::ConfigError;
use crate::commands::cluster::nodes::NodesError;

/// Exit status where another attempt may go well, as `EX_TEMPFAIL` of sysexits.h.
pub const AGAIN: u8 = 75;

/// Why a run failed.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ClusterError {
    /// The documents cannot be read.
    #[error(transparent)]
    Reading(#[from] ReadingError),
    /// The documents are none.
    #[error("{0} has no documents with words")]
    Empty(String),
    /// The job makes no sense.
    #[error(transparent)]
    Job(#[from] JobError),
    /// A node has given up.
    #[error(transparent)]
    Run(#[from] RunError),
    /// The model cannot be written.
    #[error(transparent)]
    Output(#[from] OutputError),
    /// The model cannot be written.
    #[error(transparent)]
    Model(#[from] FileError),
    /// The thread pool could not be started.
    #[error(transparent)]
    Threads(#[from] ThreadsError),
    /// The configuration.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// Documents cannot be stored, or had.
    #[error("{place}: {error}")]
    Stored {
        /// Where.
        place: String,
        /// Why.
        #[source]
        error: StoredError,
    },
    /// The log cannot be opened.
    #[error("{path}: cannot write: {error}; check that the directory exists and may be written", path = path.display())]
    Log {
        /// Its path.
        path: PathBuf,
        /// Why.
        #[source]
        error: std::io::Error,
    },
    /// The table could not be printed.
    #[error("standard output: {0}; the model, if one was asked for, is written")]
    Print(std::io::Error),
    /// A directory cannot be made, or an address is of no store.
    #[error(transparent)]
    Storage(#[from] StorageError),
    /// The system lets it have no signals.
    #[error("the system refused signals: {0}")]
    Signals(std::io::Error),
    /// An address is not to be had.
    #[cfg(feature = "status")]
    #[error("{address}: {error}: give another --status")]
    Listen {
        /// Which.
        address: String,
        /// Why.
        #[source]
        error: std::io::Error,
    },
    /// It is not known which node this is.
    #[error("{0}; or give --index")]
    Which(#[from] BootstrapError),
    /// The list of nodes.
    #[error(transparent)]
    Nodes(#[from] NodesError),
    /// The command line contradicts the configuration.
    #[error("{0}")]
    Usage(String),
    /// The node cannot be reached, or reach others.
    #[cfg_attr(
        not(any(feature = "grpc", feature = "mpi")),
        allow(dead_code, reason = "there is no way")
    )]
    #[error("{0}")]
    Transport(String),
}

impl ClusterError {
    /// Exit status: 2 where the command line or the configuration is to blame, 75 where it was another node or a
    /// signal, 1 otherwise.
    pub fn status(&self) -> u8 {
        match self {
            Self::Job(_)
            | Self::Reading(ReadingError::Usage(_))
            | Self::Config(_)
            | Self::Which(_)
            | Self::Nodes(_)
            | Self::Usage(_)
            | Self::Storage(StorageError::Url { .. })
            | Self::Stored { error: StoredError::Cut(_), .. } => 2,
            Self::Run(RunError::Role(Failed::Divided(error))) => match error {
                TogetherError::Request(_) | TogetherError::Answer(_) => 1,
                _ => 2,
            },
            Self::Run(RunError::Transport(_) | RunError::Stopped { .. }) => AGAIN,
            Self::Run(RunError::Role(
                Failed::Away { .. }
                | Failed::Told { .. }
                | Failed::Unknown { .. }
                | Failed::Attempts { .. },
            )) => AGAIN,
            _ => 1,
        }
    }
}
