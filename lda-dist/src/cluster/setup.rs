//! The setup of a run, which is the same on all nodes.

use std::fmt;

use lda_core::container::checksum;
use lda_transport::NodeId;

use super::Assignment;
use super::assignment::Assigned;
use crate::aggregate::Registry;
use crate::config::{ConfigError, Hybrid, Options};
use crate::placement::Placement;
use crate::spec::ModelSpec;
use crate::trip::TripContext;

/// Version of the messages between nodes: a node does not understand those of another version.
const MESSAGES: u8 = 4;

/// Role of a node, and its number among the nodes of this role.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NodeRole {
    /// The master, node 0.
    Master,
    /// A server.
    Server(u32),
    /// A worker.
    Worker(u32),
}

/// As in `worker 2`.
impl fmt::Display for NodeRole {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Master => f.write_str("master"),
            Self::Server(index) => write!(f, "server {index}"),
            Self::Worker(index) => write!(f, "worker {index}"),
        }
    }
}

/// The setup of a run. All nodes need the same one; [`fingerprint`](Self::fingerprint) detects
/// differences.
///
/// ```
/// use lda_core::Corpus;
/// use lda_dist::cluster::Setup;
/// use lda_dist::config::Options;
/// use lda_dist::spec::ModelSpec;
///
/// let corpus = Corpus::from_tokens((0..40).map(|d| vec![d % 4, d % 4 + 4, d % 4]))?;
/// let spec = ModelSpec::builder(10, corpus.num_words() as u32).beta(0.02).seed(1).build()?;
/// let options = Options { shards: 4, partitions: 4, rounds: 4, ..Options::default() };
/// let setup = Setup::new(spec, corpus.fingerprint()).options(options).workers(2).epochs(20);
/// assert_eq!(setup.check(), Ok(()));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
#[must_use = "setters return the changed setup"]
pub struct Setup {
    /// Topics, words, priors and seed.
    pub spec: ModelSpec,
    /// Division of the work; default [`Options::default`].
    pub options: Options,
    /// Number of workers, at most the number of shards; default 1.
    pub workers: u32,
    /// Smallest number of workers with which the run goes on; default all. With fewer than all, a run is
    /// **elastic**: a worker may leave between two epochs, one that is lost is left out after the patience
    /// of the master, and one that comes takes part from the next epoch on. That does not change the bits,
    /// except with a staleness above 0, as each change restarts the rounds.
    /// Shards move with their topics by way of the storage, which the nodes need. Only the master's value
    /// matters.
    pub min_workers: Option<u32>,
    /// Assignment of shards to workers, which does not change the bits; default
    /// [`Assignment::Runs`].
    pub assignment: Assignment,
    /// Number of epochs; default 200.
    pub epochs: u32,
    /// Epochs between evaluations of the log joint, which the last epoch always has; 0 for none.
    /// Default 10.
    pub evaluate_every: u32,
    /// Words per topic that servers find for the [master](super::Master::topics) in every evaluated
    /// epoch and in the last; 0 for none, the default. Only the master's value matters.
    pub top_words: u32,
    /// Whether the master [collects](super::Master::counts) all rows after the last epoch; default
    /// false.
    pub collect_model: bool,
    /// True if the master collects all rows in every evaluated epoch, for the
    /// [`Report`](super::Report::counts): to compute held-out perplexity, for example. All rows travel to the
    /// master each time, and nodes wait until it has them. Needs a staleness of 0. Only the master's value
    /// matters; default false.
    pub collect_evaluated: bool,
    /// Fingerprint of the documents.
    pub corpus: u64,
    /// Epochs between checkpoints, which workers with a [`SnapshotWriter`](super::SnapshotWriter)
    /// write, also after the last epoch; 0 for none, the default.
    pub checkpoint_every: u32,
    /// Number of partitions whose rows a worker requests while it samples another; default 1. Nodes
    /// may differ in it. A worker holds the rows of this many more partitions.
    pub prefetch: u16,
    /// Number of threads that a node uses at the same time: 1, the default, is its own, and more are those of
    /// rayon. A worker samples partitions of this many different shards, a server ends the rounds of this
    /// many slices. Does not change results; nodes may differ in it.
    pub threads: usize,
    /// Aggregates that servers compute in evaluated epochs; default the built-in ones.
    pub aggregates: Registry,
}

/// Setters, which return the changed setup.
impl Setup {
    /// A setup with defaults, for documents with this [fingerprint](lda_core::Corpus::fingerprint).
    pub fn new(spec: ModelSpec, corpus: u64) -> Self {
        Self {
            spec,
            options: Options::default(),
            workers: 1,
            min_workers: None,
            assignment: Assignment::Runs,
            epochs: 200,
            evaluate_every: 10,
            top_words: 0,
            collect_model: false,
            collect_evaluated: false,
            corpus,
            checkpoint_every: 0,
            prefetch: 1,
            threads: 1,
            aggregates: Registry::default(),
        }
    }

    /// Sets [`spec`](field@Self::spec).
    pub fn spec(mut self, spec: ModelSpec) -> Self {
        self.spec = spec;
        self
    }

    /// Sets [`options`](field@Self::options).
    pub fn options(mut self, options: Options) -> Self {
        self.options = options;
        self
    }

    /// Sets [`workers`](field@Self::workers).
    pub fn workers(mut self, workers: u32) -> Self {
        self.workers = workers;
        self
    }

    /// Sets [`min_workers`](field@Self::min_workers).
    pub fn min_workers(mut self, workers: impl Into<Option<u32>>) -> Self {
        self.min_workers = workers.into();
        self
    }

    /// Sets [`epochs`](field@Self::epochs).
    pub fn epochs(mut self, epochs: u32) -> Self {
        self.epochs = epochs;
        self
    }

    /// Sets [`evaluate_every`](field@Self::evaluate_every).
    pub fn evaluate_every(mut self, evaluate_every: u32) -> Self {
        self.evaluate_every = evaluate_every;
        self
    }

    /// Sets [`top_words`](field@Self::top_words).
    pub fn top_words(mut self, top_words: u32) -> Self {
        self.top_words = top_words;
        self
    }

    /// Sets [`collect_model`](field@Self::collect_model).
    pub fn collect_model(mut self, collect_model: bool) -> Self {
        self.collect_model = collect_model;
        self
    }

    /// Sets [`collect_evaluated`](field@Self::collect_evaluated).
    pub fn collect_evaluated(mut self, collect_evaluated: bool) -> Self {
        self.collect_evaluated = collect_evaluated;
        self
    }

    /// Sets [`corpus`](field@Self::corpus).
    pub fn corpus(mut self, corpus: u64) -> Self {
        self.corpus = corpus;
        self
    }

    /// Sets [`checkpoint_every`](field@Self::checkpoint_every).
    pub fn checkpoint_every(mut self, checkpoint_every: u32) -> Self {
        self.checkpoint_every = checkpoint_every;
        self
    }

    /// Sets [`prefetch`](field@Self::prefetch).
    pub fn prefetch(mut self, prefetch: u16) -> Self {
        self.prefetch = prefetch;
        self
    }

    /// Sets [`threads`](field@Self::threads).
    pub fn threads(mut self, threads: usize) -> Self {
        self.threads = threads;
        self
    }

    /// Sets [`aggregates`](field@Self::aggregates).
    pub fn aggregates(mut self, aggregates: Registry) -> Self {
        self.aggregates = aggregates;
        self
    }

    /// Sets [`assignment`](field@Self::assignment).
    pub fn assignment(mut self, assignment: impl Into<Assignment>) -> Self {
        self.assignment = assignment.into();
        self
    }
}

impl Setup {
    /// A hash of all that must be the same on all nodes, for
    /// [`Identity`](lda_transport::rpc::Identity).
    pub fn fingerprint(&self) -> u64 {
        let Self {
            spec,
            options,
            workers,
            min_workers: _,
            assignment,
            epochs,
            evaluate_every,
            top_words: _,
            collect_model,
            collect_evaluated: _,
            corpus,
            checkpoint_every,
            prefetch: _,
            threads: _,
            aggregates,
        } = self;
        let spec = spec.fingerprint();
        let numbers =
            (spec, workers, epochs, evaluate_every, collect_model, corpus, checkpoint_every);
        let mut text = format!("{MESSAGES} {numbers:?} {options:?}");
        if let Assignment::Each(workers) = assignment {
            // Under another assignment, a shard would be sampled twice or not at all.
            text.push_str(&format!(" {workers:?}"));
        }
        // Without any, the fingerprint is that of a release without registries.
        if let names @ [_, ..] = &aggregates.registered().collect::<Vec<_>>()[..] {
            text.push_str(&format!(" {names:?}"));
        }
        checksum(text.as_bytes())
    }

    /// A hash of what a snapshot belongs to: model, documents and their shards.
    pub fn run(&self) -> u64 {
        let mut numbers = vec![self.spec.fingerprint(), self.corpus, self.options.shards.into()];
        let Hybrid { short_length, mh_steps } = self.options.hybrid;
        if short_length < u32::MAX {
            numbers.extend([u64::from(short_length), mh_steps.into()]);
        }
        let bytes: Vec<u8> = numbers.into_iter().flat_map(u64::to_le_bytes).collect();
        checksum(&bytes)
    }

    /// Most partitions in flight at a worker with this many shards: each thread samples one, and rows of
    /// [`prefetch`](field@Self::prefetch) more are requested meanwhile.
    pub(super) fn max_partitions_in_flight(&self, shards: usize) -> usize {
        self.threads.min(shards).max(1) * (1 + usize::from(self.prefetch))
    }

    /// Whether workers write checkpoints after this epoch.
    pub fn checkpoints_after(&self, epoch: u32) -> bool {
        self.checkpoint_every > 0 && epoch.is_multiple_of(self.checkpoint_every)
    }

    /// Checks that the options fit each other, and that every worker has a shard.
    ///
    /// # Errors
    /// [`ConfigError::Workers`], [`ConfigError::MinWorkers`], [`ConfigError::AssignedShards`], [`ConfigError::UnknownWorker`],
    /// [`ConfigError::WorkerWithoutShards`], [`ConfigError::CollectedStaleness`], and those of [`Options::check`].
    pub fn check(&self) -> Result<(), ConfigError> {
        let (workers, shards) = (self.workers, self.options.shards);
        if workers == 0 || workers > shards.into() {
            return Err(ConfigError::Workers { workers, shards });
        }
        let least = self.least_workers();
        if !(1..=workers).contains(&least) {
            return Err(ConfigError::MinWorkers { least, workers });
        }
        self.assignment.check(shards, workers)?;
        let staleness = self.options.sync.staleness();
        if self.collect_evaluated && self.evaluate_every > 0 && staleness > 0 {
            return Err(ConfigError::CollectedStaleness { staleness });
        }
        self.options.check()
    }

    /// Whether the log joint is computed after this epoch.
    pub fn evaluates(&self, epoch: u32) -> bool {
        self.evaluate_every > 0
            && (epoch.is_multiple_of(self.evaluate_every) || epoch == self.epochs)
    }

    /// Node of a server.
    pub fn server(&self, server: u32) -> NodeId {
        NodeId(1 + server)
    }

    /// Node of a worker.
    pub fn worker(&self, worker: u32) -> NodeId {
        NodeId(1 + self.options.servers + worker)
    }

    /// Role of a node.
    pub fn role_of(&self, node: NodeId) -> NodeRole {
        let servers = self.options.servers;
        match node.0 {
            0 => NodeRole::Master,
            server if server <= servers => NodeRole::Server(server - 1),
            worker => NodeRole::Worker(worker - 1 - servers),
        }
    }

    /// Inputs that all trips of partitions share.
    pub(super) fn trip<'a>(&'a self, placement: &'a Placement) -> TripContext<'a> {
        TripContext { spec: &self.spec, options: &self.options, placement }
    }

    /// Number of workers without which the run cannot go on.
    pub(super) fn least_workers(&self) -> u32 {
        self.min_workers.unwrap_or(self.workers)
    }

    /// Returns whether the run can go on without some of its workers.
    pub fn is_elastic(&self) -> bool {
        self.least_workers() < self.workers
    }

    /// The worker of each shard while all workers are there.
    pub(super) fn assigned(&self) -> Assigned {
        let mut assigned = vec![0; usize::from(self.options.shards)];
        for worker in 0..self.workers {
            self.shards(worker).into_iter().for_each(|shard| assigned[usize::from(shard)] = worker);
        }
        Assigned(assigned)
    }

    /// Shards of a worker while all workers are there, ascending.
    pub fn shards(&self, worker: u32) -> Vec<u16> {
        self.assignment.shards(worker, self.options.shards, self.workers)
    }
}
