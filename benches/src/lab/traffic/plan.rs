//! Plan of a traffic comparison.

use std::collections::BTreeMap;
use std::path::Path;

use lda_dist::config::{Options, Routing};
use lda_dist::placement::Partitioner;
use serde::{Deserialize, Serialize};

use super::super::files::read_plan;
use super::super::{CorpusName, LabError};
use super::Of;

/// Plan of a traffic comparison, as a TOML file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "kebab-case", deny_unknown_fields)]
pub struct TrafficPlan {
    /// Heading of reports. Defaults to the file's name.
    pub name: String,
    /// Corpora.
    pub corpora: Vec<CorpusName>,
    /// Number of topics K.
    pub topics: u32,
    /// Numbers of shards.
    pub shards: Vec<u16>,
    /// Number of epochs.
    pub epochs: u32,
    /// Random seed.
    pub seed: u64,
    /// Number of runs at once, each on its own thread.
    pub jobs: usize,
    /// Repeats of each run. For a server's CPU seconds the smallest value counts, in which the
    /// machine disturbed it least. Everything else must be equal in all repeats, which is checked.
    pub repeats: u32,
    /// Name of the arm that others are compared with.
    pub beside: String,
    /// Divisions of the work, by name.
    pub arm: BTreeMap<String, Arm>,
}

/// A division of the work. The defaults are LDA*'s full architecture.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "kebab-case", deny_unknown_fields)]
pub struct Arm {
    /// `cheapest` (default), `pull` or `push`.
    pub routing: Route,
    /// `balanced` (default), `skew-aware`, `range`, `hash` or `rendezvous`.
    pub partitioner: Placing,
    /// Number of servers. Defaults to the number of shards.
    pub servers: Option<u32>,
    /// Number of word partitions. Defaults to the number of servers.
    pub partitions: Option<u32>,
    /// Number of word ranges that are placed on servers and merged to `partitions`. Defaults to
    /// `partitions`.
    pub ranges: u32,
    /// Rounds per epoch. Defaults to 1.
    pub rounds: Option<u16>,
}

/// Rule for pulling rows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Route {
    /// Each word by the way that takes fewer bytes.
    #[default]
    Cheapest,
    /// Pull all rows.
    Pull,
    /// Push all tokens.
    Push,
}

/// Rule for placing words on servers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Placing {
    /// Word by word, balancing the cost at the start and later.
    #[default]
    Balanced,
    /// Ranges of about equal cost, each to the least loaded server.
    SkewAware,
    /// Ranges of equally many words, round robin.
    Range,
    /// By a hash of the word.
    Hash,
    /// Partitions by a hash of the word, servers by rendezvous hashing.
    Rendezvous,
}

impl Default for TrafficPlan {
    fn default() -> Self {
        Self {
            name: String::new(),
            corpora: Vec::new(),
            topics: 1000,
            shards: vec![100],
            epochs: 30,
            seed: 1,
            jobs: 1,
            repeats: 1,
            beside: "symmetric".to_owned(),
            arm: BTreeMap::new(),
        }
    }
}

impl TrafficPlan {
    /// Reads a plan.
    ///
    /// # Errors
    /// [`LabError::Read`], [`LabError::Syntax`].
    pub fn read(path: &Path) -> Result<Self, LabError> {
        read_plan(path, |plan: &mut Self| &mut plan.name)
    }

    /// Checks that there is something to run and that it can run.
    ///
    /// # Errors
    /// [`LabError::Value`]; [`LabError::NoCorpus`].
    pub fn check(&self) -> Result<(), LabError> {
        let refuse = |key, value: String, remedy: &str| {
            Err(LabError::Value { key, value, remedy: remedy.to_owned() })
        };
        if self.corpora.is_empty() {
            return refuse("corpora", "[]".to_owned(), "name some, as [\"reddit\"]");
        }
        if !self.arm.contains_key(&self.beside) {
            let arms: Vec<&str> = self.arm.keys().map(String::as_str).collect();
            let remedy = format!("name one of the arms: {}", arms.join(", "));
            return refuse("beside", self.beside.clone(), &remedy);
        }
        if self.shards.is_empty() || self.shards.contains(&0) {
            return refuse("shards", format!("{:?}", self.shards), "give numbers above 0");
        }
        if self.topics == 0 || self.topics > 1 << 16 {
            return refuse("topics", self.topics.to_string(), "give 1 to 65536");
        }
        let counts = [
            ("epochs", self.epochs == 0),
            ("jobs", self.jobs == 0),
            ("repeats", self.repeats == 0),
        ];
        if let Some((key, _)) = counts.into_iter().find(|(_, is_none)| *is_none) {
            return refuse(key, "0".to_owned(), "give a number above 0");
        }
        self.corpora.iter().try_for_each(CorpusName::check)
    }

    /// All runs; those that are compared follow each other.
    pub fn runs(&self) -> Vec<Of> {
        let mut runs = Vec::new();
        for corpus in &self.corpora {
            for &shards in &self.shards {
                runs.extend(self.arm.iter().map(|(arm, options)| Of {
                    corpus: corpus.clone(),
                    topics: self.topics,
                    shards,
                    arm: arm.clone(),
                    options: options.clone(),
                    epochs: self.epochs,
                    repeats: self.repeats,
                    seed: self.seed,
                }));
            }
        }
        runs
    }
}

impl Arm {
    /// Options for this number of shards and words.
    pub(super) fn options(&self, shards: u16, words: u32) -> Options {
        let servers = self.servers.unwrap_or(shards.into()).min(words);
        let partitions = self.partitions.unwrap_or(servers).min(words);
        let routing = match self.routing {
            Route::Cheapest => Routing::Cheapest,
            Route::Pull => Routing::Pull,
            Route::Push => Routing::Push,
        };
        let partitioner = match self.partitioner {
            Placing::Balanced => Partitioner::Balanced,
            Placing::SkewAware => Partitioner::SkewAware,
            Placing::Range => Partitioner::Range,
            Placing::Hash => Partitioner::Hash,
            Placing::Rendezvous => Partitioner::Rendezvous,
        };
        let rounds = self.rounds.unwrap_or(1);
        let cut = Options { shards, partitions, rounds, servers, ..Options::default() };
        Options { routing, partitioner, ranges: self.ranges, ..cut }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invalid_plans_are_refused() {
        let of = |text: &str| toml::from_str::<TrafficPlan>(text);
        let plan = of("corpora = [\"nytlike@0.01\"]\n[arm.symmetric]\nrouting = \"pull\"").unwrap();
        plan.check().unwrap();
        assert_eq!(plan.runs().len(), 1);
        assert!(of("corpus = []").is_err() && of("[arm.x]\nroute = \"pull\"").is_err());
        let refused = |plan: TrafficPlan| plan.check().unwrap_err().to_string();
        let none = TrafficPlan { corpora: Vec::new(), ..plan.clone() };
        assert_eq!(refused(none), "corpora is []: name some, as [\"reddit\"]");
        let other = TrafficPlan { beside: "push".to_owned(), ..plan.clone() };
        assert_eq!(refused(other), "beside is push: name one of the arms: symmetric");
        assert!(refused(TrafficPlan { topics: 70_000, ..plan.clone() }).contains("65536"));
        assert!(refused(TrafficPlan { shards: vec![0], ..plan.clone() }).contains("[0]"));
        let none = TrafficPlan { repeats: 0, ..plan.clone() };
        assert_eq!(refused(none), "repeats is 0: give a number above 0");
        assert_eq!(refused(TrafficPlan { jobs: 0, ..plan }), "jobs is 0: give a number above 0");
    }

    #[test]
    fn presets_of_this_repository_are_plans() {
        let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/presets/traffic");
        let mut plans = 0;
        for entry in std::fs::read_dir(directory).unwrap() {
            let plan = TrafficPlan::read(&entry.unwrap().path()).unwrap();
            assert!(!plan.name.is_empty() && plan.arm.contains_key(&plan.beside), "{plan:?}");
            assert!(plan.runs().len() >= 2 || plan.repeats > 1);
            plans += 1;
        }
        assert!(plans >= 3);
    }

    #[test]
    fn defaults_of_an_arm_follow_from_the_shards() {
        let options = Arm::default().options(300, 1000);
        assert_eq!((options.servers, options.partitions, options.rounds), (300, 300, 1));
        assert_eq!((options.routing, options.shards), (Routing::Cheapest, 300));
        let few = Arm { servers: Some(20), ..Arm::default() };
        assert_eq!(few.options(300, 1000).partitions, 20);
        assert_eq!(few.options(300, 7).servers, 7);
    }
}
