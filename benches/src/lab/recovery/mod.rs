//! Times how long a cluster takes to sample again after one of its processes was killed.
//!
//! The nodes are processes of `lda cluster` on this machine. In one run for each role, a process of that
//! role is killed at random moments and started again at once. The time from the kill to the end of the first
//! epoch after it, less the median seconds of an epoch, is what the failure costs beside epochs that are
//! sampled again. All runs must end with the model of one that nothing has disturbed.
//!
//! ```toml
//! corpus = "reddit"
//! topics = 1000
//! workers = 2
//! servers = 1
//! shards = 8
//! epochs = 200
//! checkpoint-every = 5   # epochs
//! kills = 20             # in the run of each role
//! ```

mod nodes;
mod report;
mod run;

use std::path::{Path, PathBuf};

use serde::Deserialize;

use super::files::{create_directory, read_plan};
use super::{CorpusName, LabError};

/// Plan of a measurement, as a TOML file.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(default, rename_all = "kebab-case", deny_unknown_fields)]
pub struct RecoveryPlan {
    /// Heading of reports. Defaults to the file's name.
    pub name: String,
    /// Corpus, which must be given.
    pub corpus: Option<CorpusName>,
    /// Number of topics K; default 1,000.
    pub topics: u32,
    /// Number of workers, one process each; default 2.
    pub workers: u32,
    /// Number of servers, one process each; default 1.
    pub servers: u32,
    /// Number of shards of the documents, at least one per worker; default 8.
    pub shards: u16,
    /// Number of epochs of each run, enough for all kills; default 200.
    pub epochs: u32,
    /// Epochs between checkpoints; default 5.
    pub checkpoint_every: u32,
    /// Number of processes to kill in the run of each role; default 20.
    pub kills: u32,
    /// Random seed of the run and of the moments; default 1.
    pub seed: u64,
}

impl Default for RecoveryPlan {
    fn default() -> Self {
        Self {
            name: String::new(),
            corpus: None,
            topics: 1000,
            workers: 2,
            servers: 1,
            shards: 8,
            epochs: 200,
            checkpoint_every: 5,
            kills: 20,
            seed: 1,
        }
    }
}

impl RecoveryPlan {
    /// Reads a plan.
    ///
    /// # Errors
    /// [`LabError::Read`], [`LabError::Syntax`].
    pub fn read(path: &Path) -> Result<Self, LabError> {
        read_plan(path, |plan: &mut Self| &mut plan.name)
    }

    /// Checks that it can run; returns the corpus.
    ///
    /// # Errors
    /// [`LabError::Value`]; [`LabError::NoCorpus`].
    pub fn check(&self) -> Result<&CorpusName, LabError> {
        let refuse = |key, value: String, remedy: &str| {
            Err(LabError::Value { key, value, remedy: remedy.to_owned() })
        };
        let Some(corpus) = &self.corpus else {
            return refuse("corpus", "not given".to_owned(), "name one, as \"nips\"");
        };
        self.check_numbers()?;
        corpus.check()?;
        Ok(corpus)
    }

    fn check_numbers(&self) -> Result<(), LabError> {
        let refuse = |key, value: String, remedy: &str| {
            Err(LabError::Value { key, value, remedy: remedy.to_owned() })
        };
        let least = [("workers", self.workers), ("servers", self.servers), ("kills", self.kills)];
        if let Some((key, _)) = least.into_iter().find(|(_, number)| *number == 0) {
            return refuse(key, "0".to_owned(), "give 1 at least");
        }
        // An epoch before each kill, and the one after it.
        if self.epochs < 2 * self.kills + 5 {
            let remedy = format!("give {} at least, for {} kills", 2 * self.kills + 5, self.kills);
            return refuse("epochs", self.epochs.to_string(), &remedy);
        }
        Ok(())
    }
}

/// A process that was killed.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Kill {
    role: &'static str,
    /// Seconds from the kill to the end of the first epoch after it, less the median epoch.
    seconds: f64,
    /// Epochs that were sampled again.
    repeated: u32,
}

/// Runs the plan, writes a table, and returns the files. `program` is the path of `lda`; `tell` receives
/// progress lines.
///
/// # Errors
/// The first [`LabError`]: also if a run ends with another model.
pub fn run(
    plan: &RecoveryPlan,
    directory: &Path,
    program: &Path,
    tell: &dyn Fn(&str),
) -> Result<Vec<PathBuf>, LabError> {
    create_directory(directory)?;
    let (epoch, kills) = run::run(plan, directory, program, tell)?;
    report::write(plan, epoch, &kills, directory)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invalid_plans_are_refused() {
        let plan = RecoveryPlan {
            corpus: Some("nytlike@0.01".parse().unwrap()),
            ..RecoveryPlan::default()
        };
        plan.check().unwrap();
        let refused = |plan: RecoveryPlan| plan.check().unwrap_err().to_string();
        let none = RecoveryPlan { corpus: None, ..plan.clone() };
        assert_eq!(refused(none), "corpus is not given: name one, as \"nips\"");
        assert!(refused(RecoveryPlan { workers: 0, ..plan.clone() }).starts_with("workers is 0"));
        let few = RecoveryPlan { epochs: 44, ..plan };
        assert_eq!(refused(few), "epochs is 44: give 45 at least, for 20 kills");
        assert!(toml::from_str::<RecoveryPlan>("kill = 3").is_err());
    }

    #[test]
    fn presets_of_this_repository_are_plans() {
        let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/presets/recovery");
        let mut plans = 0;
        for entry in std::fs::read_dir(directory).unwrap() {
            let plan = RecoveryPlan::read(&entry.unwrap().path()).unwrap();
            assert!(plan.corpus.is_some());
            plan.check_numbers().unwrap();
            plans += 1;
        }
        assert!(plans > 0);
    }
}
