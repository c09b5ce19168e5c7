//! What is trained, and how it is divided: options of `local`, and a table of a configuration.

use std::path::PathBuf;

use clap::{ValueEnum, value_parser};
use lda_dist::cluster::{Assignment, Setup};
use lda_dist::job::{Job, JobError};
use lda_dist::placement::Partitioner;
use lda_dist::shard::{Hybrid, MAX_STEPS};
use lda_dist::together::{MAX_PASSES, Options, Routing};
use serde::Deserialize;

/// Shards where nothing else is asked for: as many workers have something to do.
const SHARDS: u16 = 8;
/// Partitions, likewise.
const PARTITIONS: u32 = 16;
/// Of a server, so that they have about as much to do each.
const A_SERVER: u32 = 4;

/// What is trained, and by whom.
#[derive(Clone, Debug, PartialEq, clap::Args, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct Training {
    /// Topics
    #[arg(short = 'k', long, value_name = "K", default_value_t = 100, value_parser = value_parser!(u32).range(1..))]
    pub topics: u32,
    /// Prior of the topics of a document [default: 50 / K]
    #[arg(long)]
    pub alpha: Option<f64>,
    /// Prior of the words of a topic
    #[arg(long, default_value_t = 0.01)]
    pub beta: f64,
    /// Passes over all documents
    #[arg(short, long, value_name = "N", default_value_t = 200)]
    pub epochs: u32,
    /// Seed of all chance
    #[arg(long, default_value_t = 0)]
    pub seed: u64,
    /// Compute the likelihood every so many epochs, and after the last
    #[arg(long, value_name = "N", default_value_t = 10)]
    pub evaluate_every: u32,

    /// Workers; never change a result
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = value_parser!(u32).range(1..))]
    pub workers: u32,
    /// Servers
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = value_parser!(u32).range(1..))]
    pub servers: u32,
    /// Parts of the words [default: 16, or 4 a server, or as many as rounds]
    #[arg(long, value_name = "N", value_parser = value_parser!(u16).range(1..))]
    pub partitions: Option<u16>,
    /// How words come to partitions and servers
    #[arg(long, value_enum, default_value_t = Placing::Balanced)]
    pub partitioner: Placing,
    /// Ranges of the words that are placed and joined to these partitions at their servers, to load them evenly; for
    /// skew-aware and range [default: as many as partitions]
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub ranges: u32,
    /// Rounds an epoch, each ended by all together [default: as many as shards, for each that may be on at once]
    #[arg(long, value_name = "N", value_parser = value_parser!(u16).range(1..))]
    pub rounds: Option<u16>,
    /// Rounds that workers may be ahead of the slowest: nobody waits at a round's end, and counts are older by as many
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub slack: u16,
    /// Which words' rows come to workers; of the others tokens go to servers
    #[arg(long, value_enum, default_value_t = Route::Cheapest)]
    pub routing: Route,
    /// WarpLDA samples documents of more tokens than this, F+LDA the others [default: F+LDA all]
    #[arg(long, value_name = "TOKENS")]
    pub short_length: Option<u32>,
    /// Proposals that a token of a long document carries from one of WarpLDA's passes to the next
    #[arg(long, value_name = "M", default_value_t = 1, value_parser = value_parser!(u16).range(1..=i64::from(MAX_STEPS)))]
    pub mh_steps: u16,
    /// How often tokens are sampled while rows are where they are sampled: an epoch brings more and moves no byte more
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = value_parser!(u8).range(1..=i64::from(MAX_PASSES)))]
    pub passes: u8,
    /// Partitions whose rows are asked for while another is sampled; never change a result
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub ahead: u16,

    /// Words a topic in the table that ends a run, by probability: servers find them among their own. 0 for no table
    #[arg(long, value_name = "N", default_value_t = 10)]
    pub top_words: u32,
    /// Topics in the table, largest first
    #[arg(long, value_name = "N", default_value_t = 100)]
    pub show_topics: usize,
    /// Write the model to this file
    #[arg(long, value_name = "FILE")]
    pub save: Option<PathBuf>,
    /// Add a JSON object a line to this file for each epoch: seconds, bytes, waiting, memory, likelihood, non-zeros
    #[arg(long, value_name = "FILE")]
    pub log: Option<PathBuf>,
}

impl Default for Training {
    fn default() -> Self {
        Self {
            topics: 100,
            alpha: None,
            beta: 0.01,
            epochs: 200,
            seed: 0,
            evaluate_every: 10,
            workers: 1,
            servers: 1,
            partitions: None,
            partitioner: Placing::Balanced,
            ranges: 0,
            rounds: None,
            slack: 0,
            routing: Route::Cheapest,
            short_length: None,
            mh_steps: 1,
            passes: 1,
            ahead: 1,
            top_words: 10,
            show_topics: 100,
            save: None,
            log: None,
        }
    }
}

/// Which words are pulled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Route {
    /// Whatever takes fewer bytes
    Cheapest,
    /// All rows
    Pull,
    /// None
    Push,
}

impl Route {
    fn routing(self) -> Routing {
        match self {
            Self::Cheapest => Routing::Cheapest,
            Self::Pull => Routing::Pull,
            Self::Push => Routing::Push,
        }
    }
}

/// How words find their servers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Placing {
    /// One by one, by what their rows cost at first and later
    Balanced,
    /// Ranges of about equal cost, each to the server that has least
    SkewAware,
    /// Ranges of equally many words, in turn
    Range,
    /// By a hash
    Hash,
    /// By a hash, each partition to the server that is first for it
    Rendezvous,
}

impl Placing {
    fn partitioner(self) -> Partitioner {
        match self {
            Self::Balanced => Partitioner::Balanced,
            Self::SkewAware => Partitioner::SkewAware,
            Self::Range => Partitioner::Range,
            Self::Hash => Partitioner::Hash,
            Self::Rendezvous => Partitioner::Rendezvous,
        }
    }
}

/// What is known of documents before they are read.
#[derive(Clone, Copy, Debug)]
pub struct Extent {
    /// How many documents.
    pub documents: u64,
    /// How many words.
    pub words: u32,
    /// What tells them from others.
    pub fingerprint: u64,
}

impl Training {
    /// What all nodes are told: what was asked for, and where nothing was what suits the documents.
    ///
    /// # Errors
    /// [`JobError`].
    pub fn setup(&self, shards: Option<u16>, of: Extent) -> Result<Setup, JobError> {
        let alpha = self.alpha.unwrap_or(50.0 / f64::from(self.topics)).into();
        let job = Job::new(self.topics, of.words, alpha, self.beta, self.seed)?;
        let documents = u16::try_from(of.documents).unwrap_or(u16::MAX);
        let workers = u16::try_from(self.workers).unwrap_or(u16::MAX);
        let shards = shards.unwrap_or(SHARDS.max(workers).min(documents));
        // So that no two shards sample a word in rounds that are on at once.
        let apart = shards.saturating_mul(self.slack.saturating_add(1));
        let suits = PARTITIONS.max(A_SERVER.saturating_mul(self.servers)).max(apart.into());
        // As many of each.
        let suits = suits.checked_next_multiple_of(self.servers).unwrap_or(suits);
        let partitions = self.partitions.map_or(suits.min(of.words), u32::from).max(1);
        let most = u16::try_from(partitions).unwrap_or(u16::MAX);
        let rounds = self.rounds.unwrap_or(apart.min(most));
        let (servers, routing) = (self.servers, self.routing.routing());
        let hybrid =
            Hybrid { short_length: self.short_length.unwrap_or(u32::MAX), mh_steps: self.mh_steps };
        let partitioner = self.partitioner.partitioner();
        let cut =
            Options { shards, partitions, rounds, servers, partitioner, ..Options::default() };
        let (slack, ranges, passes) = (self.slack, self.ranges, self.passes);
        let options = Options { routing, hybrid, slack, ranges, passes, ..cut };
        Ok(Setup {
            job,
            options,
            workers: self.workers,
            assignment: Assignment::Runs,
            epochs: self.epochs,
            judge_every: self.evaluate_every,
            top_words: self.top_words,
            gather: self.save.is_some(),
            corpus: of.fingerprint,
            keep_every: 0,
            ahead: self.ahead,
        })
    }
}

#[cfg(test)]
mod tests {
    use clap::{Args, Command, FromArgMatches};

    use super::*;

    #[test]
    fn options_and_tables_leave_the_same_to_itself() {
        let none = Training::augment_args(Command::new("x")).get_matches_from(["x"]);
        assert_eq!(Training::from_arg_matches(&none).unwrap(), Training::default());
        assert_eq!(toml::from_str::<Training>("").unwrap(), Training::default());
        let other = toml::from_str::<Training>("evaluate-every = 3\nrouting = \"pull\"").unwrap();
        assert_eq!((other.evaluate_every, other.routing), (3, Route::Pull));
        assert!(toml::from_str::<Training>("topic = 3").is_err());
    }

    #[test]
    fn what_nobody_asks_for_suits_the_documents() {
        let of = |documents, words| Extent { documents, words, fingerprint: 1 };
        let options = |training: &Training, of| training.setup(None, of).unwrap().options;
        let found = options(&Training::default(), of(1000, 500));
        assert_eq!((found.shards, found.partitions, found.rounds), (8, 16, 8));
        let found = options(&Training::default(), of(3, 5));
        assert_eq!((found.shards, found.partitions, found.rounds), (3, 5, 3));
        assert_eq!(found.hybrid, Hybrid::default());
        let long =
            Training { short_length: Some(2000), mh_steps: 3, passes: 2, ..Training::default() };
        let found = options(&long, of(1000, 500));
        assert_eq!(found.hybrid, Hybrid { short_length: 2000, mh_steps: 3 });
        assert_eq!(found.passes, 2);
        let many = Training { workers: 20, servers: 9, ..Training::default() };
        let found = options(&many, of(1000, 500));
        assert_eq!((found.shards, found.partitions, found.rounds), (20, 36, 20));
        let ahead = Training { slack: 2, ..Training::default() };
        let found = options(&ahead, of(1000, 500));
        assert_eq!((found.shards, found.partitions, found.rounds, found.slack), (8, 24, 24, 2));
        assert_eq!(options(&ahead, of(1000, 9)).rounds, 9);
    }
}
