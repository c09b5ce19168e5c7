//! What moves between workers and servers, and how evenly: LDA*'s figures 12 to 14 and its lesion study.
//!
//! A cluster of hundreds of nodes is run in one process ([`lda_dist::together`]): every request and every answer is
//! written and read as it would be, and its bytes are counted, so that they are exact; nothing is sent. **Arms** differ
//! in how the work is divided, and are run on the same documents with the same seed.
//!
//! ```toml
//! corpora = ["reddit"]
//! topics = 8000
//! parts = [300, 1000]    # shards of the documents, one a worker
//! epochs = 30
//!
//! [arm.symmetric]
//! routing = "pull"
//! [arm.asymmetric]
//! ```
//!
//! All arms of a corpus and a number of parts are compared with the first by name in [`TrafficPlan::beside`]. A
//! finished run is kept, so that an interrupted plan goes on.

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
    /// What was run.
    pub of: Of,
    /// Where.
    pub machine: Machine,
    /// Tokens of the documents, and how many words have some.
    pub tokens: u64,
    /// Words.
    pub words: u64,
    /// Servers and partitions that there were.
    pub servers: u32,
    /// Partitions of the words.
    pub partitions: u32,
    /// Rounds an epoch.
    pub rounds: u16,
    /// By epoch.
    pub epochs: Vec<EpochTraffic>,
}

/// Which run: arms of one corpus and one number of parts are compared.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Of {
    /// The documents.
    pub corpus: CorpusName,
    /// K.
    pub topics: u32,
    /// Shards.
    pub parts: u16,
    /// Name of the arm.
    pub arm: String,
    /// What it is.
    pub options: Arm,
    /// Epochs.
    pub epochs: u32,
    /// How often it is run.
    pub repeats: u32,
    /// Seed.
    pub seed: u64,
}

impl Of {
    fn name(&self) -> String {
        format!("{}-{}-{}-{}", self.corpus, self.topics, self.parts, self.arm)
    }
}

/// Runs what is not there yet, and writes tables and plots; returns the files. `tell` is given lines for people.
///
/// # Errors
/// [`LabError`], the first one; what was finished by then is kept.
pub fn run(
    plan: &TrafficPlan,
    directory: &Path,
    again: bool,
    tell: &(dyn Fn(&str) + Sync),
) -> Result<Vec<PathBuf>, LabError> {
    plan.check()?;
    // Before several runs look for them.
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
            // What is left would be for nothing.
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

/// A run that is there, or is made.
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
