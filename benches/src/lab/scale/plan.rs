//! The plan of a projection: what to project, and what to measure for it.

use std::collections::BTreeMap;
use std::path::Path;

use lda_dist::config::{Options, Routing};
use lda_dist::sync::SyncMode;
use serde::{Deserialize, Serialize};

use super::super::files::read_plan;
use super::super::traffic::Route;
use super::super::{CorpusName, LabError};

/// The plan of a projection, as a TOML file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "kebab-case", deny_unknown_fields)]
pub struct ScalePlan {
    /// Heading of the summary. Defaults to the file's name.
    pub name: String,
    /// Number of topics K.
    pub topics: u32,
    /// Random seed.
    pub seed: u64,
    /// Numbers of machines, each with a worker and a server. Tables show the last one.
    pub machines: Vec<u16>,
    /// The corpus that is not available.
    pub corpus: CorpusPlan,
    /// Measurements to make on this machine.
    pub measure: MeasurePlan,
    /// The machine of a node.
    pub machine: MachinePlan,
    /// Name of the arm that others are compared with.
    pub beside: String,
    /// Divisions of the work, by name.
    pub arm: BTreeMap<String, ScaleArm>,
}

/// A corpus described by a few numbers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "kebab-case", deny_unknown_fields)]
pub struct CorpusPlan {
    /// Number of documents D.
    pub documents: u64,
    /// Number of words V.
    pub words: u32,
    /// Number of tokens T.
    pub tokens: u64,
    /// Exponent s of the frequency law 1 / (rank + q)^s.
    pub exponent: f64,
    /// Shift q of the frequency law.
    pub shift: f64,
    /// Standard deviation of the logarithm of document lengths.
    pub spread: f64,
}

/// Measurements to make on this machine.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "kebab-case", deny_unknown_fields)]
pub struct MeasurePlan {
    /// Corpus for row statistics.
    pub corpus: Option<CorpusName>,
    /// Corpora for sampling rates, best of different document lengths. Defaults to `corpus`.
    pub rate_corpora: Vec<CorpusName>,
    /// Epochs after which rows are measured; 0 is the start.
    pub after: Vec<u32>,
    /// Rates are measured in the first epoch and in this one.
    pub rate_epochs: u32,
    /// Number of shards for the rates of many shards.
    pub rate_shards: u16,
    /// Epochs that are predicted and measured.
    pub check_epochs: Vec<u32>,
    /// Divisions that are predicted and measured.
    pub check: Vec<CheckPlan>,
}

/// A run that is predicted and measured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "kebab-case", deny_unknown_fields)]
pub struct CheckPlan {
    /// Corpus. Defaults to that of the rows.
    pub corpus: Option<CorpusName>,
    /// Number of shards.
    pub shards: u16,
    /// Number of servers. Defaults to the number of shards.
    pub servers: Option<u32>,
    /// Rounds per epoch.
    pub rounds: u16,
    /// Whether documents are shuffled first. In a corpus sorted by subject, shards have words of
    /// their own, and LDA* assigns documents by a hash.
    pub shuffled: bool,
}

/// The machine of a node.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "kebab-case", deny_unknown_fields)]
pub struct MachinePlan {
    /// Cores per node.
    pub cores: f64,
    /// Memory in GiB.
    pub memory_gib: f64,
    /// Link rates in Gbit/s, each way.
    pub gbit: Vec<f64>,
    /// Latency of a message in milliseconds.
    pub latency_ms: f64,
    /// CPU microseconds of the master per message.
    pub message_us: f64,
}

/// A division of the work. The defaults are LDA*'s architecture: one worker and one server per
/// machine.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "kebab-case", deny_unknown_fields)]
pub struct ScaleArm {
    /// `cheapest` (default), `pull` or `push`.
    pub routing: Route,
    /// Workers per machine, each with one shard and one core. Defaults to 1.
    pub workers: Option<u16>,
    /// Machines per server. Defaults to 1.
    pub machines_per_server: Option<u32>,
    /// Partitions per server. Defaults to 1.
    pub partitions: Option<u32>,
    /// Rounds per epoch. Defaults to the number of shards; at most the number of partitions.
    pub rounds: Option<u16>,
    /// Staleness: rounds that may overlap with the oldest open one.
    pub staleness: u16,
}

impl Default for ScalePlan {
    fn default() -> Self {
        Self {
            name: String::new(),
            topics: 8000,
            seed: 1,
            machines: vec![10, 100, 1000],
            corpus: CorpusPlan::default(),
            measure: MeasurePlan::default(),
            machine: MachinePlan::default(),
            beside: "symmetric".to_owned(),
            arm: BTreeMap::new(),
        }
    }
}

impl Default for CorpusPlan {
    /// LDA*'s largest corpus (table 1).
    fn default() -> Self {
        Self {
            documents: 2_200_000_000,
            words: 3_911_813,
            tokens: 308_000_000_000,
            exponent: 1.2,
            shift: 30.0,
            spread: 1.0,
        }
    }
}

impl Default for MeasurePlan {
    fn default() -> Self {
        Self {
            corpus: None,
            rate_corpora: Vec::new(),
            after: vec![0, 30],
            rate_epochs: 10,
            rate_shards: 64,
            check_epochs: vec![1, 5],
            check: Vec::new(),
        }
    }
}

impl Default for CheckPlan {
    fn default() -> Self {
        Self { corpus: None, shards: 30, servers: None, rounds: 1, shuffled: false }
    }
}

impl Default for MachinePlan {
    fn default() -> Self {
        Self {
            cores: 16.0,
            memory_gib: 64.0,
            gbit: vec![1.0, 10.0],
            latency_ms: 0.25,
            message_us: 20.0,
        }
    }
}

impl ScalePlan {
    /// Reads a plan.
    ///
    /// # Errors
    /// [`LabError::Read`], [`LabError::Syntax`].
    pub fn read(path: &Path) -> Result<Self, LabError> {
        read_plan(path, |plan: &mut Self| &mut plan.name)
    }

    /// Checks that there is something to project and that it can be projected.
    ///
    /// # Errors
    /// [`LabError::Value`]; [`LabError::NoCorpus`].
    pub fn check(&self) -> Result<(), LabError> {
        let refuse = |key, value: String, remedy: &str| {
            Err(LabError::Value { key, value, remedy: remedy.to_owned() })
        };
        let Self { topics, machines, corpus, measure, machine, beside, arm, .. } = self;
        let Some(of) = &measure.corpus else {
            return refuse("measure.corpus", "not given".to_owned(), "name one, as \"reddit\"");
        };
        if !arm.contains_key(beside) {
            let arms: Vec<&str> = arm.keys().map(String::as_str).collect();
            let remedy = format!("name one of the arms: {}", arms.join(", "));
            return refuse("beside", beside.clone(), &remedy);
        }
        if *topics == 0 || *topics > 1 << 16 {
            return refuse("topics", topics.to_string(), "give 1 to 65536");
        }
        if machines.is_empty() || machines[0] == 0 || !machines.is_sorted_by(|a, b| a < b) {
            return refuse("machines", format!("{machines:?}"), "give numbers above 0, ascending");
        }
        let numbers = [
            ("corpus.documents", corpus.documents),
            ("corpus.words", corpus.words.into()),
            ("corpus.tokens", corpus.tokens),
            ("measure.rate-epochs", measure.rate_epochs.into()),
        ];
        if let Some((key, _)) = numbers.into_iter().find(|(_, number)| *number == 0) {
            return refuse(key, "0".to_owned(), "give a number above 0");
        }
        if corpus.tokens < corpus.documents || corpus.tokens < corpus.words.into() {
            return refuse(
                "corpus.tokens",
                corpus.tokens.to_string(),
                "give at least one per document and per word",
            );
        }
        let laws = [
            ("corpus.exponent", corpus.exponent, 0.0, 4.0),
            ("corpus.shift", corpus.shift, 0.0, 1e6),
            ("corpus.spread", corpus.spread, 0.0, 3.0),
            ("machine.cores", machine.cores, 1.0, 1024.0),
            ("machine.memory-gib", machine.memory_gib, 0.1, 1e6),
            ("machine.latency-ms", machine.latency_ms, 0.0, 1e4),
            ("machine.message-us", machine.message_us, 0.0, 1e6),
        ];
        if let Some((key, value, from, to)) =
            laws.into_iter().find(|&(_, value, from, to)| !(from..=to).contains(&value))
        {
            return refuse(key, value.to_string(), &format!("give {from} to {to}"));
        }
        if machine.gbit.is_empty() || !machine.gbit.iter().all(|&gbit| gbit > 0.0 && gbit <= 1e4) {
            return refuse("machine.gbit", format!("{:?}", machine.gbit), "give some, above 0");
        }
        if measure.after.is_empty() || !measure.after.is_sorted_by(|a, b| a < b) {
            return refuse("measure.after", format!("{:?}", measure.after), "give some, ascending");
        }
        if measure.check_epochs.contains(&0) || !measure.check_epochs.is_sorted_by(|a, b| a < b) {
            let given = format!("{:?}", measure.check_epochs);
            return refuse("measure.check-epochs", given, "give numbers above 0, ascending");
        }
        if measure.rate_shards < 3 {
            return refuse(
                "measure.rate-shards",
                measure.rate_shards.to_string(),
                "give 3 or more",
            );
        }
        let most = f64::from(machines[machines.len() - 1]);
        for arm in arm.values() {
            let workers = f64::from(arm.workers.unwrap_or(1));
            let partitions = f64::from(arm.partitions.unwrap_or(1));
            if workers == 0.0 || partitions == 0.0 || arm.machines_per_server == Some(0) {
                return refuse("arm", format!("{arm:?}"), "give numbers above 0");
            }
            if workers * most >= 65_535.0 || partitions * most >= 65_535.0 {
                return refuse(
                    "arm",
                    format!("{arm:?}"),
                    "shards and partitions are at most 65534",
                );
            }
        }
        of.check()?;
        measure.rate_corpora.iter().try_for_each(CorpusName::check)?;
        measure
            .check
            .iter()
            .filter_map(|check| check.corpus.as_ref())
            .try_for_each(CorpusName::check)
    }

    /// The arms, the reference first.
    pub(super) fn arms(&self) -> Vec<(&str, &ScaleArm)> {
        let mut arms: Vec<(&str, &ScaleArm)> =
            self.arm.iter().map(|(name, arm)| (name.as_str(), arm)).collect();
        arms.sort_by_key(|(name, _)| (*name != self.beside, *name));
        arms
    }
}

impl ScaleArm {
    /// Options of a run on this number of machines.
    pub(super) fn options(&self, machines: u16) -> Options {
        let shards = machines.saturating_mul(self.workers.unwrap_or(1));
        let servers = u32::from(machines).div_ceil(self.machines_per_server.unwrap_or(1)).max(1);
        let partitions = servers * self.partitions.unwrap_or(1);
        let most = u16::try_from(partitions).unwrap_or(u16::MAX);
        let rounds = self.rounds.unwrap_or(shards).min(most).max(1);
        let sync = SyncMode::rounds(self.staleness.min(rounds - 1));
        let routing = match self.routing {
            Route::Cheapest => Routing::Cheapest,
            Route::Pull => Routing::Pull,
            Route::Push => Routing::Push,
        };
        Options { shards, partitions, rounds, sync, servers, routing, ..Options::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Result<ScalePlan, toml::de::Error> {
        toml::from_str(text)
    }

    #[test]
    fn invalid_plans_are_refused() {
        let text = "[measure]\ncorpus = \"nytlike@0.01\"\n[arm.symmetric]\nrouting = \"pull\"";
        let plan = of(text).unwrap();
        plan.check().unwrap();
        assert!(of("corpora = []").is_err());
        assert!(of("[corpus]\nzipf = 1").is_err() && of("[arm.x]\nserver = 2").is_err());
        let refused = |change: &dyn Fn(&mut ScalePlan)| {
            let mut plan = plan.clone();
            change(&mut plan);
            plan.check().unwrap_err().to_string()
        };
        let none = refused(&|plan| plan.measure.corpus = None);
        assert_eq!(none, "measure.corpus is not given: name one, as \"reddit\"");
        let other = refused(&|plan| plan.beside = "x".to_owned());
        assert_eq!(other, "beside is x: name one of the arms: symmetric");
        assert!(refused(&|plan| plan.topics = 70_000).contains("65536"));
        assert!(refused(&|plan| plan.machines = vec![10, 10]).contains("ascending"));
        assert_eq!(
            refused(&|plan| plan.corpus.words = 0),
            "corpus.words is 0: give a number above 0"
        );
        let few = refused(&|plan| plan.corpus.tokens = 3);
        assert_eq!(few, "corpus.tokens is 3: give at least one per document and per word");
        assert!(refused(&|plan| plan.corpus.exponent = f64::NAN).starts_with("corpus.exponent"));
        assert!(refused(&|plan| plan.machine.gbit = vec![0.0]).contains("above 0"));
        assert!(refused(&|plan| plan.measure.after = vec![]).contains("measure.after"));
        assert!(refused(&|plan| plan.measure.check_epochs = vec![0]).contains("above 0"));
        assert!(refused(&|plan| plan.machine.cores = 0.0).contains("1 to 1024"));
        let many = ScaleArm { workers: Some(100), ..ScaleArm::default() };
        let many = refused(&|plan| {
            plan.arm.insert("many".to_owned(), many.clone());
        });
        assert!(many.contains("65534"), "{many}");
    }

    #[test]
    fn presets_of_this_repository_are_plans() {
        let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/presets/scale");
        let mut plans = 0;
        for entry in std::fs::read_dir(directory).unwrap() {
            let plan = ScalePlan::read(&entry.unwrap().path()).unwrap();
            assert!(!plan.name.is_empty() && plan.arm.len() >= 2, "{plan:?}");
            assert_eq!(plan.arms()[0].0, plan.beside);
            plans += 1;
        }
        assert!(plans >= 2);
    }

    #[test]
    fn defaults_of_an_arm_follow_from_the_machines() {
        let options = ScaleArm::default().options(1000);
        assert_eq!((options.shards, options.servers, options.partitions), (1000, 1000, 1000));
        assert_eq!((options.rounds, options.sync), (1000, SyncMode::rounds(0)));
        let few = ScaleArm { machines_per_server: Some(8), staleness: 200, ..ScaleArm::default() };
        let options = few.options(1000);
        assert_eq!((options.servers, options.partitions, options.rounds), (125, 125, 125));
        assert_eq!(options.sync, SyncMode::rounds(124));
        let many = ScaleArm { workers: Some(16), partitions: Some(2), ..ScaleArm::default() };
        let options = many.options(100);
        assert_eq!((options.shards, options.partitions, options.rounds), (1600, 200, 200));
    }
}
