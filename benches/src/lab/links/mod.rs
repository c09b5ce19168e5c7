//! Times a cluster whose servers are behind slow links: seconds per epoch, and waiting time of
//! workers.
//!
//! Every node is a process of `lda cluster` in a network namespace of its own, all on one switch.
//! The traffic to and from each server is limited to a rate (`tc`'s token bucket, each way);
//! nothing else is delayed or lost. **Arms** are different tables of `[training]`, on the same
//! documents with the same seed:
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
//! prefetch = 0
//! threads = 1            # of each node; an arm may also set its workers and servers
//! slowed = true          # a random worker has half of its speed, another one every second
//! [arm.asymmetric]
//! routing = "cheapest"
//! staleness = 1
//! ```
//!
//! Needs root, `ip` and `tc` (iproute2). Finished runs are stored, so that an interrupted plan
//! continues.

mod network;
mod plan;
mod report;
mod run;
mod slowdown;

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

pub use plan::LinksPlan;

use super::files::{create_directory, write_bytes};
use super::{CorpusName, LabError, Machine};

/// A finished run of an arm at a rate.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct LinksRun {
    /// The request.
    pub of: Of,
    /// Machine and build.
    pub machine: Machine,
    /// CPU time per measured epoch; `None` if the system does not tell, and in old runs.
    #[serde(default)]
    pub cpu: Option<CpuSeconds>,
    /// Log of the master, one entry per epoch.
    pub epochs: Vec<EpochLine>,
}

/// Identity of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Of {
    /// Corpus.
    pub corpus: CorpusName,
    /// Number of topics K.
    pub topics: u32,
    /// Number of workers.
    pub workers: u32,
    /// Number of servers.
    pub servers: u32,
    /// Number of shards.
    pub shards: u16,
    /// Threads of each node; by default as many as there are processors.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub threads: Option<u32>,
    /// True if a random worker has half of its speed, another one every second. Default: false.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub slowed: bool,
    /// Rate of a server's link in Mbit/s, each way; 0 is unlimited.
    pub rate: u32,
    /// Name of the arm.
    pub arm: String,
    /// Table `[training]` of the arm.
    pub training: toml::Table,
    /// Number of epochs.
    pub epochs: u32,
    /// Epochs between evaluations of the log joint.
    pub evaluate_every: u32,
    /// Random seed.
    pub seed: u64,
    /// Number of the repeat, from 0.
    pub repeat: u32,
}

/// CPU seconds of nodes per measured epoch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CpuSeconds {
    /// CPU seconds of the master.
    pub master: f64,
    /// CPU seconds of all servers.
    pub servers: f64,
    /// CPU seconds of all workers.
    pub workers: f64,
}

/// A line of the cluster's log.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EpochLine {
    /// Number of the epoch, from 1.
    pub epoch: u32,
    /// Tokens of the corpus.
    pub tokens: u64,
    /// Seconds since the previous epoch.
    pub seconds: f64,
    /// Bytes moved.
    pub bytes: Moved,
    /// Waiting time of all workers.
    pub waited_seconds: Waited,
    /// Log joint, if it was computed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub log_joint: Option<f64>,
}

/// Bytes moved in an epoch.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Moved {
    /// Total.
    pub all: u64,
}

/// Seconds waited, summed over workers.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Waited {
    /// For replies of servers.
    pub servers: f64,
    /// For a round to start.
    pub rounds: f64,
}

impl CpuSeconds {
    /// Mean over the epochs since an earlier look.
    fn per_epoch_since(&self, before: &Self, epochs: usize) -> Self {
        let mean = |now: f64, before: f64| (now - before) / epochs as f64;
        Self {
            master: mean(self.master, before.master),
            servers: mean(self.servers, before.servers),
            workers: mean(self.workers, before.workers),
        }
    }

    /// Sum over all nodes.
    pub fn all(&self) -> f64 {
        self.master + self.servers + self.workers
    }
}

impl Of {
    /// Number of epochs, from the first, that are not measured.
    fn unmeasured(&self) -> usize {
        self.epochs as usize / 2
    }

    fn name(&self) -> String {
        let Self { corpus, topics, rate, arm, repeat, .. } = self;
        format!("{corpus}-{topics}-{rate}-{arm}-{repeat}")
    }
}

/// Runs what is not stored, writes tables and plots, and returns the files. `program` is the path
/// of `lda`; `tell` receives progress lines.
///
/// # Errors
/// The first [`LabError`]; runs finished before it are stored.
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
