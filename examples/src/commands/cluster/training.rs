//! Model and division of the work: options of `local`, and the table `[training]` of a configuration.

use std::path::PathBuf;

use clap::{ValueEnum, value_parser};
use lda_core::TrainOptions;
use lda_core::prior::Alpha;
use lda_dist::cluster::Setup;
use lda_dist::config::{Hybrid, MAX_PASSES, MAX_STEPS, Options, Routing};
use lda_dist::division::{DEFAULT_SHARDS, Division};
use lda_dist::documents::StoredDocuments;
use lda_dist::placement::Partitioner;
use lda_dist::spec::{ModelSpec, SpecError};
use lda_dist::storage::Storage;
use serde::Deserialize;

/// Model, number of nodes, and division of the work.
#[derive(Clone, Debug, PartialEq, clap::Args, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct Training {
    /// Number of topics
    #[arg(short = 'k', long, value_name = "K", default_value_t = 100, value_parser = value_parser!(u32).range(1..))]
    pub topics: u32,
    /// Prior of topics in a document [default: an eighth of the mean length of documents, from 1 to 50,
    /// over K]
    #[arg(long)]
    pub alpha: Option<f64>,
    /// Prior of words in a topic
    #[arg(long, default_value_t = 0.01)]
    pub beta: f64,
    /// Number of epochs; an epoch samples every token once per pass of --passes
    #[arg(short, long, value_name = "N", default_value_t = 200)]
    pub epochs: u32,
    /// Random seed
    #[arg(long, default_value_t = 0)]
    pub seed: u64,
    /// Epochs between evaluations of the likelihood, which the last epoch always has
    #[arg(long, value_name = "N", default_value_t = 10)]
    pub evaluate_every: u32,

    /// Number of workers; does not change results
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = value_parser!(u32).range(1..))]
    pub workers: u32,
    /// Number of servers
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = value_parser!(u32).range(1..))]
    pub servers: u32,
    /// Number of partitions of the words [default: the largest of 16, 4 per server, and the rounds]
    #[arg(long, value_name = "N", value_parser = value_parser!(u16).range(1..))]
    pub partitions: Option<u16>,
    /// Assignment of words to partitions and servers
    #[arg(long, value_enum, default_value_t = Placing::Balanced)]
    pub partitioner: Placing,
    /// Number of ranges of words that the partitioners skew-aware and range place on servers and then
    /// merge into partitions, for an even load; 0 is the number of partitions
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub ranges: u32,
    /// Number of rounds per epoch; without staleness, each ends with a barrier [default: shards *
    /// (staleness + 1)]
    #[arg(long, value_name = "N", value_parser = value_parser!(u16).range(1..))]
    pub rounds: Option<u16>,
    /// Staleness of the counts in rounds: workers may run this many rounds ahead of the slowest one
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub staleness: u16,
    /// Words whose rows workers pull; the tokens of other words are pushed to servers
    #[arg(long, value_enum, default_value_t = Route::Cheapest)]
    pub routing: Route,
    /// Longest document, in tokens, that F+LDA samples; WarpLDA samples longer ones [default: no limit]
    #[arg(long, value_name = "TOKENS")]
    pub short_length: Option<u32>,
    /// Number of proposals that WarpLDA stores per token between its passes
    #[arg(long, value_name = "M", default_value_t = 1, requires = "short_length",
        value_parser = value_parser!(u16).range(1..=i64::from(MAX_STEPS)))]
    pub mh_steps: u16,
    /// Number of times that tokens are sampled per pull of rows: an epoch achieves more and moves no
    /// more bytes
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = value_parser!(u8).range(1..=i64::from(MAX_PASSES)))]
    pub passes: u8,
    /// Number of partitions whose rows are prefetched while another is sampled; does not change results
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub prefetch: u16,

    /// Words per topic in the table at the end of a run, by probability; 0 for no table
    #[arg(long, value_name = "N", default_value_t = 10)]
    pub top_words: u32,
    /// Number of topics in the table, largest first
    #[arg(long, value_name = "N", default_value_t = 100)]
    pub show_topics: usize,
    /// Write the model to this file
    #[arg(long, value_name = "FILE")]
    pub save: Option<PathBuf>,
    /// Append one JSON object per epoch to this file, one per line: seconds, bytes, waiting times,
    /// memory, likelihood and non-zeros
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
            staleness: 0,
            routing: Route::Cheapest,
            short_length: None,
            mh_steps: 1,
            passes: 1,
            prefetch: 1,
            top_words: 10,
            show_topics: 100,
            save: None,
            log: None,
        }
    }
}

/// Words whose rows are pulled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Route {
    /// The words for which pulling takes fewer bytes than pushing
    Cheapest,
    /// All words
    Pull,
    /// No words
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

/// Assignment of words to servers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Placing {
    /// Word by word, by the initial and later cost of its row
    Balanced,
    /// Ranges of about equal cost, each to the least loaded server
    SkewAware,
    /// Ranges of equally many words, in round-robin order
    Range,
    /// By a hash of the word
    Hash,
    /// By a hash, with rendezvous hashing of partitions to servers
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

/// Sizes of the corpus, known before it is read.
#[derive(Clone, Copy, Debug)]
pub struct Extent {
    /// Number of documents.
    pub documents: u64,
    /// Number of words.
    pub words: u32,
    /// Mean number of tokens of the documents that have tokens.
    pub mean_length: f64,
    /// Fingerprint of the corpus.
    pub fingerprint: u64,
}

impl Extent {
    /// The sizes of stored documents.
    pub fn of<S: Storage>(documents: &StoredDocuments<S>) -> Self {
        Self {
            documents: documents.num_documents(),
            words: documents.num_words(),
            mean_length: documents.mean_length(),
            fingerprint: documents.fingerprint(),
        }
    }
}

impl Training {
    /// Setup of all nodes, with defaults chosen for the documents.
    ///
    /// # Errors
    /// [`SpecError`].
    pub fn setup(&self, shards: Option<u16>, of: Extent) -> Result<Setup, SpecError> {
        let usual = || TrainOptions::default_alpha(self.topics, of.mean_length);
        let alpha = self.alpha.map_or_else(usual, Alpha::from);
        let spec = ModelSpec::new(self.topics, of.words, alpha, self.beta, self.seed)?;
        let documents = u16::try_from(of.documents).unwrap_or(u16::MAX);
        let workers = u16::try_from(self.workers).unwrap_or(u16::MAX);
        let shards = shards.unwrap_or(DEFAULT_SHARDS.max(workers).min(documents));
        let (shards, partitions, rounds) = Division::default()
            .shards(shards)
            .partitions(self.partitions)
            .rounds(self.rounds)
            .resolve(self.servers, self.staleness, of.documents, of.words);
        let (servers, routing) = (self.servers, self.routing.routing());
        let hybrid =
            Hybrid { short_length: self.short_length.unwrap_or(u32::MAX), mh_steps: self.mh_steps };
        let partitioner = self.partitioner.partitioner();
        let cut =
            Options { shards, partitions, rounds, servers, partitioner, ..Options::default() };
        let (staleness, ranges, passes) = (self.staleness, self.ranges, self.passes);
        let options = Options { routing, hybrid, staleness, ranges, passes, ..cut };
        Ok(Setup::new(spec, of.fingerprint)
            .options(options)
            .workers(self.workers)
            .epochs(self.epochs)
            .evaluate_every(self.evaluate_every)
            .top_words(self.top_words)
            .collect_model(self.save.is_some())
            .prefetch(self.prefetch)
            .threads(rayon::current_num_threads()))
    }
}

#[cfg(test)]
mod tests {
    use clap::{Args, Command, FromArgMatches};

    use super::*;

    #[test]
    fn options_and_tables_have_the_same_defaults() {
        let none = Training::augment_args(Command::new("x")).get_matches_from(["x"]);
        assert_eq!(Training::from_arg_matches(&none).unwrap(), Training::default());
        assert_eq!(toml::from_str::<Training>("").unwrap(), Training::default());
        let other = toml::from_str::<Training>("evaluate-every = 3\nrouting = \"pull\"").unwrap();
        assert_eq!((other.evaluate_every, other.routing), (3, Route::Pull));
        assert!(toml::from_str::<Training>("topic = 3").is_err());
    }

    #[test]
    fn defaults_depend_on_the_documents() {
        let of = |documents, words| Extent { documents, words, mean_length: 10.0, fingerprint: 1 };
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
        let prefetch = Training { staleness: 2, ..Training::default() };
        let found = options(&prefetch, of(1000, 500));
        assert_eq!((found.shards, found.partitions, found.rounds, found.staleness), (8, 24, 24, 2));
        assert_eq!(options(&prefetch, of(1000, 9)).rounds, 9);
    }
}
