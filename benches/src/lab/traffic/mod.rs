//! Traffic between workers and servers, and its balance: LDA*'s figures 12 to 14 and its lesion
//! study.
//!
//! A cluster of hundreds of nodes runs in one process: every request and reply is encoded and
//! decoded as in a real run and its bytes are counted, so byte counts are exact; nothing is sent.
//! **Arms** differ in the division of the work and run on the same documents with the same seed.
//!
//! ```toml
//! corpora = ["reddit"]
//! topics = 8000
//! shards = [300, 1000]    # one per worker
//! epochs = 30
//!
//! [arm.symmetric]
//! routing = "pull"
//! [arm.asymmetric]
//! ```
//!
//! All arms of a corpus and a number of shards are compared with the one that
//! [`TrafficPlan::beside`] names. Finished runs are stored, so that an interrupted plan continues.

mod plan;
mod report;
mod run;
mod tally;

use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde::{Deserialize, Serialize};

pub use plan::{Arm, Route, TrafficPlan};
pub use tally::{EpochTraffic, Kinds};

use super::files::{create_directory, write_bytes};
use super::{CorpusName, LabError, Machine};

/// A run of an arm.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct TrafficRun {
    /// The request.
    pub of: Of,
    /// Machine and build.
    pub machine: Machine,
    /// Tokens of the corpus.
    pub tokens: u64,
    /// Words that occur.
    pub words: u64,
    /// Number of servers.
    pub servers: u32,
    /// Number of word partitions.
    pub partitions: u32,
    /// Rounds per epoch.
    pub rounds: u16,
    /// Traffic of each epoch.
    pub epochs: Vec<EpochTraffic>,
}

/// Identity of a run. Arms of one corpus and one number of shards are compared.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Of {
    /// Corpus.
    pub corpus: CorpusName,
    /// Number of topics K.
    pub topics: u32,
    /// Number of shards.
    pub shards: u16,
    /// Name of the arm.
    pub arm: String,
    /// Options of the arm.
    pub options: Arm,
    /// Number of epochs.
    pub epochs: u32,
    /// Number of repeats.
    pub repeats: u32,
    /// Random seed.
    pub seed: u64,
}

impl Of {
    fn name(&self) -> String {
        format!("{}-{}-{}-{}", self.corpus, self.topics, self.shards, self.arm)
    }
}

/// Runs what is not stored, writes tables and plots, and returns the files. `tell` receives
/// progress lines.
///
/// # Errors
/// The first [`LabError`]; runs finished before it are stored.
pub fn run(
    plan: &TrafficPlan,
    directory: &Path,
    again: bool,
    tell: &(dyn Fn(&str) + Sync),
) -> Result<Vec<PathBuf>, LabError> {
    plan.check()?;
    // Check before concurrent runs look for them.
    for corpus in &plan.corpora {
        corpus.file(&directory.join("corpora"))?;
    }
    let cells = plan.runs();
    let runs: Vec<Mutex<Option<Result<TrafficRun, LabError>>>> =
        cells.iter().map(|_| Mutex::new(None)).collect();
    let next = AtomicUsize::new(0);
    let one = || {
        loop {
            let at = next.fetch_add(1, Ordering::Relaxed);
            let Some(of) = cells.get(at) else { break };
            let done = get(of, directory, again, tell);
            // After an error the remaining runs are not needed.
            if done.is_err() {
                next.store(cells.len(), Ordering::Relaxed);
            }
            *runs[at].lock().unwrap_or_else(std::sync::PoisonError::into_inner) = Some(done);
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..plan.jobs {
            scope.spawn(one);
        }
    });
    let runs = runs
        .into_iter()
        .filter_map(|run| run.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner));
    let runs = runs.collect::<Result<Vec<TrafficRun>, LabError>>()?;
    report::write(plan, &runs, directory)
}

/// Loads a run, or makes it.
fn get(
    of: &Of,
    directory: &Path,
    again: bool,
    tell: &(dyn Fn(&str) + Sync),
) -> Result<TrafficRun, LabError> {
    let path = directory.join("runs").join(format!("{}.json", of.name()));
    let kept = std::fs::read(&path).ok().filter(|_| !again);
    let kept = kept.and_then(|bytes| serde_json::from_slice::<TrafficRun>(&bytes).ok());
    if let Some(run) = kept.filter(|run| run.of == *of) {
        tell(&format!("{}: was finished before", of.name()));
        return Ok(run);
    }
    let run = run::run(of, &directory.join("corpora"), tell)?;
    create_directory(&directory.join("runs"))?;
    let bytes = serde_json::to_vec_pretty(&run)
        .map_err(|error| LabError::Syntax { path: path.clone(), message: error.to_string() })?;
    write_bytes(&path, &bytes)?;
    Ok(run)
}
