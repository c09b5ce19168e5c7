//! A cluster whose servers are behind slow links: what its epochs take, and how long workers wait.
//!
//! Every node is a process of the program `cluster` in a network namespace of its own, and all are at one switch. What
//! goes to a server or comes from it is held to a rate (`tc`'s token bucket, each way); nothing is delayed or lost
//! besides. **Arms** are tables of `[training]` that differ, on the same documents with the same seed:
//!
//! ```toml
//! corpus = "nips"
//! topics = 8000
//! workers = 4
//! servers = 2
//! rates = [100, 1000]    # Mbit/s; 0 is as fast as the machine
//! epochs = 20            # of which the last half is measured
//!
//! [arm.symmetric]
//! routing = "pull"
//! ahead = 0
//! [arm.asymmetric]
//! slack = 1
//! ```
//!
//! This needs root, `ip` and `tc` (iproute2). A finished run is kept, so that an interrupted plan goes on.

mod network;
mod plan;
mod report;
mod run;

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

pub use plan::LinksPlan;

use super::files::{create_directory, write_bytes};
use super::{CorpusName, LabError, Machine};

/// A run of an arm at a rate.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct LinksRun {
    /// What was run.
    pub of: Of,
    /// Where.
    pub machine: Machine,
    /// By epoch, as the master has logged them.
    pub epochs: Vec<EpochLine>,
}

/// Which run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Of {
    /// The documents.
    pub corpus: CorpusName,
    /// K.
    pub topics: u32,
    /// Workers.
    pub workers: u32,
    /// Servers.
    pub servers: u32,
    /// Shards of the documents.
    pub shards: u16,
    /// Mbit/s of a server's link, each way; 0 where it is not held.
    pub rate: u32,
    /// Name of the arm.
    pub arm: String,
    /// What it is.
    pub training: toml::Table,
    /// Epochs.
    pub epochs: u32,
    /// Epochs between two whose log joint is computed.
    pub evaluate_every: u32,
    /// Seed.
    pub seed: u64,
    /// Which of several that are the same.
    pub repeat: u32,
}

/// A line of `cluster`'s log.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EpochLine {
    /// From 1 on.
    pub epoch: u32,
    /// Tokens of the documents.
    pub tokens: u64,
    /// Since the one before.
    pub seconds: f64,
    /// What has moved.
    pub bytes: Moved,
    /// How long workers waited, all of them together.
    pub waited_seconds: Waited,
    /// Where it was computed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub log_joint: Option<f64>,
}

/// Bytes.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Moved {
    /// In all.
    pub all: u64,
}

/// Seconds of all workers together.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Waited {
    /// For servers.
    pub servers: f64,
    /// Until a round began.
    pub rounds: f64,
}

impl Of {
    fn name(&self) -> String {
        let Self { corpus, topics, rate, arm, repeat, .. } = self;
        format!("{corpus}-{topics}-{rate}-{arm}-{repeat}")
    }
}

/// Runs what is not there yet, and writes tables and plots; returns the files. `program` is `cluster`; `tell` is given
/// lines for people.
///
/// # Errors
/// [`LabError`], the first one; what was finished by then is kept.
pub fn run(
    plan: &LinksPlan,
    directory: &Path,
    program: &Path,
    again: bool,
    tell: &dyn Fn(&str),
) -> Result<Vec<PathBuf>, LabError> {
    plan.check()?;
    create_directory(&directory.join("runs"))?;
    let mut runs = Vec::new();
    for of in plan.runs() {
        let path = directory.join("runs").join(format!("{}.json", of.name()));
        let kept = std::fs::read(&path).ok().filter(|_| !again);
        let kept = kept.and_then(|bytes| serde_json::from_slice::<LinksRun>(&bytes).ok());
        if let Some(run) = kept.filter(|run| run.of == of) {
            tell(&format!("{}: was finished before", of.name()));
            runs.push(run);
            continue;
        }
        let run = run::run(&of, directory, program, tell)?;
        let bytes = serde_json::to_vec_pretty(&run)
            .map_err(|error| LabError::Syntax { path: path.clone(), message: error.to_string() })?;
        write_bytes(&path, &bytes)?;
        runs.push(run);
    }
    report::write(plan, &runs, directory)
}
