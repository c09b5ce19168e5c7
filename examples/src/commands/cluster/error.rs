//! Errors of `lda cluster`, and their exit status.

use std::path::PathBuf;

use lda_core::container::FileError;
use lda_core::corpus::BuildError;
use lda_core::eval::CompletionError;
use lda_dist::cluster::{Failed, RunError, Setup};
use lda_dist::documents::StoredError;
use lda_dist::storage::StorageError;
use lda_examples::memory;
use lda_examples::output::OutputError;
use lda_examples::program::StartError;
use lda_examples::reading::ReadingError;
use lda_transport::bootstrap::BootstrapError;
use thiserror::Error;

use crate::commands::cluster::config::ConfigError;
use crate::commands::cluster::nodes::NodesError;
use crate::commands::cluster::role::UnknownNode;
use crate::commands::cluster::training::TrainingError;

/// Exit status of a temporary failure: a restart may succeed. `EX_TEMPFAIL` of sysexits.h.
pub const AGAIN: u8 = 75;

/// Errors of `lda cluster`.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ClusterError {
    /// The documents cannot be read.
    #[error(transparent)]
    Reading(#[from] ReadingError),
    /// The documents have no tokens.
    #[error("{0} has no documents with words")]
    Empty(String),
    /// Invalid options of the model or the sampler.
    #[error(transparent)]
    Training(#[from] TrainingError),
    /// All tokens were held out, or none were.
    #[error(
        "--held-out {share} of {documents} documents with tokens leaves training or evaluation without \
         documents: change --held-out or --seed"
    )]
    HeldOut {
        /// Value of `--held-out`.
        share: f64,
        /// Number of documents with tokens.
        documents: usize,
    },
    /// No held-out documents are stored beside those of training.
    #[error(
        "[held-out]: {place} has no held-out documents: make them with `lda cluster cut --held-out SHARE`, or \
         omit [held-out]"
    )]
    NoHeldOut {
        /// Place of the documents.
        place: String,
    },
    /// The run cannot go on from a model.
    #[error("--from: {0}")]
    From(String),
    /// The documents cannot be divided into those for training and others.
    #[error(transparent)]
    Split(BuildError),
    /// The held-out documents could not be evaluated.
    #[error("held-out documents: {0}")]
    Completion(#[from] CompletionError),
    /// The workers of this process cannot use as many threads.
    #[error(
        "--threads {threads}: the documents here are {shards} shards, each sampled by one thread: give fewer \
         threads, or cut more shards (lda cluster local --shards, lda cluster cut --shards)"
    )]
    Threads {
        /// Threads of the option.
        threads: u16,
        /// Shards of the workers in this process.
        shards: usize,
    },
    /// The nodes of this process do not fit into memory.
    #[error(
        "{nodes} at least {needed} bytes of memory, and this process may use {limit}: ask for fewer topics, \
         check the largest word number and the counts of the documents, or use more machines"
    )]
    Memory {
        /// The nodes, and that they need.
        nodes: &'static str,
        /// Bytes that they need at least.
        needed: u64,
        /// Bytes that the process may use.
        limit: u64,
    },
    /// A node failed.
    #[error(transparent)]
    Run(#[from] RunError),
    /// The model cannot be written.
    #[error(transparent)]
    Output(#[from] OutputError),
    /// The model cannot be written.
    #[error(transparent)]
    Model(#[from] FileError),
    /// The program could not start.
    #[error(transparent)]
    Start(#[from] StartError),
    /// Invalid configuration.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// Documents cannot be stored or read.
    #[error("{place}: {error}")]
    Stored {
        /// Directory or object store.
        place: String,
        /// Cause.
        #[source]
        error: StoredError,
    },
    /// The log cannot be opened.
    #[error("{path}: cannot write: {error}; check that the directory exists and may be written", path = path.display())]
    Log {
        /// Its path.
        path: PathBuf,
        /// Cause.
        #[source]
        error: std::io::Error,
    },
    /// The table could not be printed.
    #[error("standard output: {0}; the model of --save is written")]
    Print(std::io::Error),
    /// The topics of documents could not be printed.
    #[error("standard output: {0}")]
    Lines(std::io::Error),
    /// A checkpoint of which the topics of documents were asked for cannot be read.
    #[error("{0}; --epoch N reads another checkpoint")]
    Checkpoint(Failed),
    /// A directory cannot be created, or an object store cannot be opened.
    #[error(transparent)]
    Storage(#[from] StorageError),
    /// Signal handlers cannot be installed.
    #[error("cannot handle signals: {0}")]
    Signals(std::io::Error),
    /// The status page cannot listen on its address.
    #[cfg(feature = "status")]
    #[error("--status {address}: {error}; give another address")]
    Listen {
        /// The address.
        address: String,
        /// Cause.
        #[source]
        error: std::io::Error,
    },
    /// The number of this node is unknown.
    #[error("{0}; or give --index")]
    Index(#[from] BootstrapError),
    /// The run has no such node.
    #[error(transparent)]
    UnknownNode(#[from] UnknownNode),
    /// The file of `--nodes` is invalid.
    #[error(transparent)]
    Nodes(#[from] NodesError),
    /// The command line contradicts the configuration.
    #[error("{0}")]
    Usage(String),
    /// The transport cannot be started.
    #[cfg_attr(
        not(any(feature = "grpc", feature = "mpi")),
        allow(dead_code, reason = "this build has no transport")
    )]
    #[error("{0}")]
    Transport(String),
}

impl ClusterError {
    /// Checks the number of threads of the option against the shards of the workers in this process, of
    /// which there may be none.
    ///
    /// # Errors
    /// [`ClusterError::Threads`].
    pub fn check_threads(
        threads: Option<u16>,
        setup: &Setup,
        workers: impl Iterator<Item = u32>,
    ) -> Result<(), Self> {
        let shards: usize = workers.map(|worker| setup.shards(worker).len()).sum();
        match threads {
            Some(threads) if shards > 0 && usize::from(threads) > shards => {
                Err(Self::Threads { threads, shards })
            }
            _ => Ok(()),
        }
    }

    /// Fails if nodes that need this many bytes do not fit into the memory of this process.
    ///
    /// # Errors
    /// [`ClusterError::Memory`].
    pub fn check_memory(nodes: &'static str, needed: u64) -> Result<(), Self> {
        match memory::of_process() {
            Some(limit) if limit < needed => Err(Self::Memory { nodes, needed, limit }),
            _ => Ok(()),
        }
    }

    /// Exit status: 2 if an option or the configuration is the cause, 75 for another node or a signal, 1
    /// otherwise.
    pub fn status(&self) -> u8 {
        match self {
            Self::Training(_)
            | Self::From(_)
            | Self::HeldOut { .. }
            | Self::NoHeldOut { .. }
            | Self::Reading(ReadingError::Usage(_))
            | Self::Config(_)
            | Self::Index(_)
            | Self::UnknownNode(_)
            | Self::Nodes(_)
            | Self::Usage(_)
            | Self::Storage(StorageError::Url { .. })
            | Self::Stored { error: StoredError::Cut(_), .. }
            | Self::Run(RunError::Role(Failed::InvalidConfig(_))) => 2,
            Self::Run(
                RunError::Transport(_) | RunError::Stopped { .. } | RunError::StoppedAlone { .. },
            ) => AGAIN,
            Self::Run(RunError::Role(
                Failed::PeerLost { .. }
                | Failed::PeerFailed { .. }
                | Failed::Unknown { .. }
                | Failed::Attempts { .. }
                | Failed::LeftBehind,
            )) => AGAIN,
            _ => 1,
        }
    }
}
