//! Plan of a comparison behind slow links.

use std::collections::BTreeMap;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::super::files::read_plan;
use super::super::{CorpusName, LabError};
use super::Of;

/// Plan of a comparison behind slow links, as a TOML file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "kebab-case", deny_unknown_fields)]
pub struct LinksPlan {
    /// Heading of reports. Defaults to the file's name.
    pub name: String,
    /// Corpus.
    pub corpus: Option<CorpusName>,
    /// Number of topics K.
    pub topics: u32,
    /// Number of workers, one process each.
    pub workers: u32,
    /// Number of servers, one process each.
    pub servers: u32,
    /// Number of shards. Defaults to the number of workers.
    pub shards: Option<u16>,
    /// Rates of each server's link in Mbit/s, each way; 0 is unlimited.
    pub rates: Vec<u32>,
    /// Number of epochs; the last half is measured.
    pub epochs: u32,
    /// Epochs between evaluations of the log joint, whose time counts as time of the epoch.
    /// Defaults to an evaluation after the last epoch only.
    pub evaluate_every: Option<u32>,
    /// Random seed.
    pub seed: u64,
    /// Runs of each arm at each rate; tables show medians.
    pub repeats: u32,
    /// Name of the arm that others are compared with.
    pub beside: String,
    /// Additions to `[training]`, by name of the arm, with its `workers` and `servers` if they are others, the
    /// `threads` of each node, and whether workers are `slowed`.
    pub arm: BTreeMap<String, toml::Table>,
}

impl Default for LinksPlan {
    fn default() -> Self {
        Self {
            name: String::new(),
            corpus: None,
            topics: 1000,
            workers: 4,
            servers: 2,
            shards: None,
            rates: vec![0],
            epochs: 10,
            evaluate_every: None,
            seed: 1,
            repeats: 1,
            beside: "symmetric".to_owned(),
            arm: BTreeMap::new(),
        }
    }
}

/// Keys of `[training]` that the plan itself sets.
const OWN: [&str; 5] = ["topics", "epochs", "seed", "log", "evaluate-every"];

/// Keys of an arm that are numbers of nodes and threads.
const NODES: [&str; 3] = ["workers", "servers", "threads"];

/// Key of an arm whose workers are slow in turn.
const SLOWED: &str = "slowed";

/// A number of nodes or threads of an arm, if it is set and valid.
fn number(arm: &toml::Table, key: &str) -> Option<u32> {
    arm.get(key)?.as_integer()?.try_into().ok().filter(|&number: &u32| number > 0)
}

impl LinksPlan {
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
        let Some(corpus) = &self.corpus else {
            return refuse("corpus", "not given".to_owned(), "name one, as \"nips\"");
        };
        if !self.arm.contains_key(&self.beside) {
            let arms: Vec<&str> = self.arm.keys().map(String::as_str).collect();
            let remedy = format!("name one of the arms: {}", arms.join(", "));
            return refuse("beside", self.beside.clone(), &remedy);
        }
        let all = self.arm.values().flat_map(toml::Table::keys);
        if let Some(key) = all.into_iter().find(|key| OWN.contains(&key.as_str())) {
            return refuse("arm", key.clone(), "it is the same for all arms: set it for the plan");
        }
        for (arm, key) in self.arm.values().flat_map(|arm| NODES.map(|key| (arm, key))) {
            if let Some(value) = arm.get(key).filter(|_| number(arm, key).is_none()) {
                return refuse(key, value.to_string(), "give a number of 1 at least");
            }
        }
        let slowed = self.arm.values().filter_map(|arm| arm.get(SLOWED));
        if let Some(value) = slowed.into_iter().find(|value| !value.is_bool()) {
            return refuse(SLOWED, value.to_string(), "give true or false");
        }
        if self.rates.is_empty() {
            return refuse("rates", "[]".to_owned(), "give some, in Mbit/s, or [0]");
        }
        let numbers = [
            ("workers", self.workers),
            ("servers", self.servers),
            ("repeats", self.repeats),
            ("epochs", self.epochs / 2),
        ];
        if let Some((key, _)) = numbers.into_iter().find(|(_, number)| *number == 0) {
            return refuse(key, "too few".to_owned(), "give 1 at least, and 2 epochs");
        }
        // All nodes have addresses in one /24 network.
        if let Some(of) = self.runs().iter().find(|of| of.workers.saturating_add(of.servers) > 200)
        {
            return refuse("workers", of.workers.to_string(), "give 200 nodes at most");
        }
        corpus.check()
    }

    /// All runs; those that are compared follow each other, repeat by repeat.
    pub fn runs(&self) -> Vec<Of> {
        let Some(corpus) = &self.corpus else { return Vec::new() };
        let mut runs = Vec::new();
        for repeat in 0..self.repeats {
            for &rate in &self.rates {
                runs.extend(self.arm.iter().map(|(arm, keys)| Of {
                    corpus: corpus.clone(),
                    topics: self.topics,
                    workers: number(keys, "workers").unwrap_or(self.workers),
                    servers: number(keys, "servers").unwrap_or(self.servers),
                    shards: self.shards.unwrap_or(u16::try_from(self.workers).unwrap_or(u16::MAX)),
                    threads: number(keys, "threads"),
                    slowed: keys.get(SLOWED).and_then(toml::Value::as_bool).unwrap_or(false),
                    rate,
                    arm: arm.clone(),
                    training: training(keys),
                    epochs: self.epochs,
                    evaluate_every: self.evaluate_every.unwrap_or(self.epochs),
                    seed: self.seed,
                    repeat,
                }));
            }
        }
        runs
    }
}

/// The keys of an arm that belong to `[training]`.
fn training(arm: &toml::Table) -> toml::Table {
    let own = |key: &str| key == SLOWED || NODES.contains(&key);
    let keys = arm.iter().filter(|(key, _)| !own(key));
    keys.map(|(key, value)| (key.clone(), value.clone())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invalid_plans_are_refused() {
        let of = |text: &str| toml::from_str::<LinksPlan>(text);
        let text = "corpus = \"nytlike@0.01\"\nrates = [1, 2]\nrepeats = 3\n[arm.symmetric]\nrouting = \"pull\"\n[arm.x]";
        let plan = of(text).unwrap();
        plan.check().unwrap();
        let runs = plan.runs();
        assert_eq!((runs.len(), runs[0].shards, runs[1].rate, runs[2].rate), (12, 4, 1, 2));
        assert!(of("corpora = []").is_err());
        let refused = |plan: LinksPlan| plan.check().unwrap_err().to_string();
        let none = LinksPlan { corpus: None, ..plan.clone() };
        assert_eq!(refused(none), "corpus is not given: name one, as \"nips\"");
        let other = LinksPlan { beside: "push".to_owned(), ..plan.clone() };
        assert_eq!(refused(other), "beside is push: name one of the arms: symmetric, x");
        assert!(refused(LinksPlan { epochs: 1, ..plan.clone() }).starts_with("epochs is"));
        assert!(refused(LinksPlan { workers: 300, ..plan.clone() }).contains("200 nodes"));
        assert!(refused(LinksPlan { rates: Vec::new(), ..plan }).contains("Mbit/s"));
        let nodes = format!("{text}\nworkers = 2\nthreads = 3\npasses = 2\nslowed = true");
        let nodes = of(&nodes).unwrap();
        nodes.check().unwrap();
        let runs = nodes.runs();
        let of_arm = |at: usize| (runs[at].workers, runs[at].servers, runs[at].threads);
        assert_eq!([of_arm(0), of_arm(1)], [(4, 2, None), (2, 2, Some(3))]);
        assert_eq!(runs[1].training.keys().collect::<Vec<_>>(), ["passes"]);
        assert_eq!((runs[0].slowed, runs[1].slowed), (false, true));
        let slowed = of(&format!("{text}\nslowed = 2")).unwrap();
        assert_eq!(refused(slowed), "slowed is 2: give true or false");
        let none = of(&format!("{text}\nthreads = 0")).unwrap();
        assert_eq!(refused(none), "threads is 0: give a number of 1 at least");
        let own = of(&format!("{text}\nseed = 3")).unwrap();
        assert_eq!(refused(own), "arm is seed: it is the same for all arms: set it for the plan");
    }

    #[test]
    fn presets_of_this_repository_are_plans() {
        let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/presets/links");
        let mut plans = 0;
        for entry in std::fs::read_dir(directory).unwrap() {
            let plan = LinksPlan::read(&entry.unwrap().path()).unwrap();
            assert!(plan.arm.contains_key(&plan.beside) && plan.runs().len() >= 2, "{plan:?}");
            plans += 1;
        }
        assert!(plans >= 2);
    }
}
