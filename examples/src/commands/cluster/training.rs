//! Model and division of the work: options of `local`, and the table `[training]` of a configuration.

use std::path::PathBuf;
use std::sync::Arc;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{ValueEnum, value_parser};
use lda_core::TrainOptions;
use lda_core::model::{Counts, TopicModel};
use lda_core::prior::Alpha;
use lda_core::train::{Learn, LearnAlpha, OptionsError, SamplerKind, SamplerOptions, Start};
use lda_dist::cluster::Setup;
use lda_dist::config::{ConfigError, MAX_PASSES, MAX_STEPS, Options, Routing};
use lda_dist::division::{DEFAULT_SHARDS, Division, default_routing};
use lda_dist::documents::StoredDocuments;
use lda_dist::placement::Partitioner;
use lda_dist::spec::{ModelSpec, SpecError};
use lda_dist::storage::Storage;
use lda_dist::sync::SyncMode;
use lda_examples::parsers::{learn_parser, positive, share, start_parser};
use serde::Deserialize;
use thiserror::Error;

use crate::commands::cluster::from_model::FromModel;

/// Model, number of nodes, and division of the work.
#[derive(Clone, Debug, PartialEq, clap::Args, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct Training {
    /// Number of topics [default: 100, or that of the --from model]
    #[arg(short = 'k', long, value_name = "K", value_parser = value_parser!(u32).range(1..))]
    pub topics: Option<u32>,
    /// Prior of topics in a document [default: that of the --from model if it has as many topics, or an
    /// eighth of the mean length of documents, from 1 to 50, over K]
    #[arg(long)]
    pub alpha: Option<f64>,
    /// Prior of words in a topic [default: 0.01, or that of the --from model]
    #[arg(long)]
    pub beta: Option<f64>,
    /// Continue from a model that --save wrote, with these documents: its counts are added to theirs, and
    /// its number of topics and priors are kept unless given (no fewer topics)
    #[arg(long, value_name = "MODEL")]
    pub from: Option<PathBuf>,
    /// Share of the counts of the --from model to keep: 1 is as if its documents were still in the
    /// corpus, less lets it forget
    #[arg(long, value_name = "SHARE", default_value_t = 1.0, value_parser = positive)]
    pub from_share: f64,
    /// Recompute the prior of topics from the topic sizes in each epoch. X tokens are added to the
    /// sizes, evenly: the larger X, the more uniform the prior
    #[arg(long, value_name = "X", value_parser = positive)]
    pub alpha_by_size: Option<f64>,
    /// Learn the prior of topics in a document: one value for all topics, or one per topic
    #[arg(long, value_name = "HOW", value_parser = learn_parser())]
    pub learn_alpha: Option<LearnAlpha>,
    /// Learn the prior of words in a topic
    #[arg(long)]
    pub learn_beta: bool,
    /// Epochs before the first prior update [default: 50]
    #[arg(long, value_name = "N")]
    pub learn_burn_in: Option<u32>,
    /// Epochs between prior updates, each of which waits for all workers [default: 10]
    #[arg(long, value_name = "N", value_parser = value_parser!(u32).range(1..))]
    pub learn_every: Option<u32>,
    /// First topics of tokens: uniform over all topics, or over a subset drawn for the word or for the
    /// document
    #[arg(long, value_name = "RULE", default_value = "random", value_parser = start_parser())]
    pub start: Start,
    /// Share of all topics in the subset of a sparse start, above 0 and at most 1 [default: 0.1]
    #[arg(long, value_name = "SHARE", value_parser = share(true))]
    pub start_degree: Option<f64>,
    /// Number of epochs; an epoch samples every token once per pass of --passes
    #[arg(short, long, value_name = "N", default_value_t = 200)]
    pub epochs: u32,
    /// Stop after this many seconds of sampling, if that is before --epochs
    #[arg(long, value_name = "SECONDS", value_parser = positive)]
    pub seconds: Option<f64>,
    /// Stop before --epochs when the likelihood gains less than this share from three evaluations to the
    /// next three
    #[arg(long, value_name = "SHARE", num_args = 0..=1, require_equals = true,
        default_missing_value = "0.0005", value_parser = positive)]
    pub level_off: Option<f64>,
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
    /// Counts that a round reads
    #[arg(long, value_enum, default_value_t = SyncKind::Rounds)]
    pub sync: SyncKind,
    /// Words whose rows workers pull; the tokens of other words are pushed to servers [default: all, and
    /// cheapest from 100 shards on]
    #[arg(long, value_enum)]
    pub routing: Option<Route>,
    /// Sampler, on workers and servers
    #[arg(long, value_name = "SAMPLER", default_value = "f-plus", value_parser = sampler_parser())]
    pub sampler: SamplerKind,
    /// Longest document, in tokens, that the sampler samples; warp samples longer ones [default: no
    /// limit; for hybrid 2000, and 0 up to 316 topics]
    #[arg(long, value_name = "TOKENS")]
    pub short_length: Option<u32>,
    /// alias, light, warp, hybrid: Metropolis-Hastings steps per token and pass; with warp and hybrid
    /// each step is a proposal stored with the token [default: 1]
    #[arg(long, value_name = "M", value_parser = value_parser!(u16).range(1..=i64::from(MAX_STEPS)))]
    pub mh_steps: Option<u16>,
    /// Epoch from which tokens that keep their topic are sampled less and less often, and rows of words
    /// without other tokens do not move: faster, but biased. Not for warp and hybrid
    #[arg(long, value_name = "EPOCH", value_parser = value_parser!(u32).range(1..))]
    pub exclude_converged_from: Option<u32>,
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
            topics: None,
            alpha: None,
            beta: None,
            from: None,
            from_share: 1.0,
            alpha_by_size: None,
            learn_alpha: None,
            learn_beta: false,
            learn_burn_in: None,
            learn_every: None,
            start: Start::Random,
            start_degree: None,
            epochs: 200,
            seconds: None,
            level_off: None,
            seed: 0,
            evaluate_every: 10,
            workers: 1,
            servers: 1,
            partitions: None,
            partitioner: Placing::Balanced,
            ranges: 0,
            rounds: None,
            staleness: 0,
            sync: SyncKind::Rounds,
            routing: None,
            sampler: SamplerKind::FPlus,
            short_length: None,
            mh_steps: None,
            exclude_converged_from: None,
            passes: 1,
            prefetch: 1,
            top_words: 10,
            show_topics: 100,
            save: None,
            log: None,
        }
    }
}

/// Parser of `--sampler`.
fn sampler_parser() -> impl TypedValueParser<Value = SamplerKind> {
    PossibleValuesParser::new(SamplerKind::ALL.map(SamplerKind::name))
        .try_map(|name| name.parse::<SamplerKind>())
}

/// Counts that a round reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SyncKind {
    /// Those after the round staleness + 1 before it, exactly: a run can be repeated
    Rounds,
    /// At least those, and whatever else has arrived: fresher, but every run differs
    Bounded,
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

/// Invalid options of the model or the sampler.
#[derive(Debug, Error)]
pub enum TrainingError {
    /// Invalid options of the model.
    #[error(transparent)]
    Spec(#[from] SpecError),
    /// Invalid options of the sampler.
    #[error(transparent)]
    Sampler(#[from] OptionsError),
    /// The sampler does not suit the division of the documents.
    #[error(transparent)]
    Division(#[from] ConfigError),
    /// An option of learnt priors without any.
    #[error("{option} needs learn-alpha or learn-beta: give it too, or omit {option}")]
    NothingLearnt {
        /// Name of the option.
        option: &'static str,
    },
    /// A share of a model's counts without a model.
    #[error(
        "from-share needs from, the model whose counts it keeps: give it too, or omit from-share"
    )]
    NoModel,
    /// A share of topics without a sparse start.
    #[error(
        "start-degree needs start sparse-word or sparse-document: give it too, or omit start-degree"
    )]
    NoSparseStart,
    /// A rule by which the run ends early.
    #[error("{option} is {value}: give a number above 0")]
    Stop {
        /// Name of the option.
        option: &'static str,
        /// Its value.
        value: f64,
    },
}

impl Training {
    /// `options` with the sampler.
    fn with_sampler(&self, topics: u32, options: Options) -> Result<Options, TrainingError> {
        let mut sampler = SamplerOptions::from(self.sampler);
        let warp_steps = self.mh_steps.filter(|_| self.short_length.is_some());
        match (self.mh_steps, sampler.steps()) {
            (None, _) => {}
            // The steps of WarpLDA for the long documents.
            (Some(_), None) if warp_steps.is_some() => {}
            (Some(steps), _) => sampler = sampler.with_steps(steps.into())?,
        }
        if let Some(epoch) = self.exclude_converged_from {
            sampler = sampler.with_exclusion(epoch)?;
        }
        let usual = TrainOptions::default_short_length(topics);
        let mut options = options.with_sampler(sampler, self.short_length, usual)?;
        if let Some(steps) = warp_steps {
            options.hybrid.mh_steps = steps;
        }
        Ok(options)
    }

    /// Priors that are learnt.
    fn learn(&self) -> Result<Option<Learn>, TrainingError> {
        let (alpha, beta) = (self.learn_alpha.unwrap_or(LearnAlpha::Fixed), self.learn_beta);
        if alpha != LearnAlpha::Fixed || beta {
            let Learn { burn_in, every, .. } = Learn::default();
            let burn_in = self.learn_burn_in.unwrap_or(burn_in);
            let every = self.learn_every.unwrap_or(every);
            return Ok(Some(Learn { alpha, beta, burn_in, every }));
        }
        match [("learn-burn-in", self.learn_burn_in), ("learn-every", self.learn_every)]
            .into_iter()
            .find(|option| option.1.is_some())
        {
            Some((option, _)) => Err(TrainingError::NothingLearnt { option }),
            None => Ok(None),
        }
    }

    /// Share of all topics of a sparse start.
    fn start_degree(&self) -> Result<f64, TrainingError> {
        match (self.start, self.start_degree) {
            (Start::Random, Some(_)) => Err(TrainingError::NoSparseStart),
            (_, degree) => Ok(degree.unwrap_or(0.1)),
        }
    }

    /// The model, with defaults chosen for the documents, and the counts and priors of the model from which
    /// the run goes on.
    fn spec(&self, of: Extent, from: Option<&FromModel>) -> Result<ModelSpec, TrainingError> {
        if self.from.is_none() && self.from_share != 1.0 {
            return Err(TrainingError::NoModel);
        }
        let before = from.map(|from| &from.model);
        let topics = before.map_or(100, |model| model.num_topics() as u32);
        let topics = self.topics.unwrap_or(topics);
        let usual = || match before.filter(|model| model.num_topics() == topics as usize) {
            Some(model) => model.alpha().clone(),
            None => TrainOptions::default_alpha(topics, of.mean_length),
        };
        let beta = before.and_then(TopicModel::counts).map_or(0.01, Counts::beta);
        let spec = ModelSpec::builder(topics, of.words)
            .alpha(self.alpha.map_or_else(usual, Alpha::from))
            .beta(self.beta.unwrap_or(beta))
            .seed(self.seed)
            .alpha_by_size(self.alpha_by_size)
            .learn(self.learn()?)
            .start(self.start, self.start_degree()?)
            .pseudo_counts(from.map(|from| Arc::new(from.counts.clone())))
            .build()?;
        Ok(spec)
    }

    /// Setup of all nodes, with defaults chosen for the documents; `from` is the model from which the run goes
    /// on.
    ///
    /// # Errors
    /// [`TrainingError`].
    pub fn setup(
        &self,
        shards: Option<u16>,
        of: Extent,
        from: Option<&FromModel>,
    ) -> Result<Setup, TrainingError> {
        let spec = self.spec(of, from)?;
        let topics = spec.topics();
        for (option, value) in [("seconds", self.seconds), ("level-off", self.level_off)] {
            if let Some(value) = value.filter(|value| value.is_nan() || *value <= 0.0) {
                return Err(TrainingError::Stop { option, value });
            }
        }
        let documents = u16::try_from(of.documents).unwrap_or(u16::MAX);
        let workers = u16::try_from(self.workers).unwrap_or(u16::MAX);
        let shards = shards.unwrap_or(DEFAULT_SHARDS.max(workers).min(documents));
        let (shards, partitions, rounds) = Division::default()
            .shards(shards)
            .partitions(self.partitions)
            .rounds(self.rounds)
            .resolve(self.servers, self.staleness, of.documents, of.words);
        let servers = self.servers;
        let routing = self.routing.map_or_else(|| default_routing(shards), Route::routing);
        let partitioner = self.partitioner.partitioner();
        let cut =
            Options { shards, partitions, rounds, servers, partitioner, ..Options::default() };
        let sync = match self.sync {
            SyncKind::Rounds => SyncMode::rounds(self.staleness),
            SyncKind::Bounded => SyncMode::bounded(self.staleness),
        };
        let (ranges, passes) = (self.ranges, self.passes);
        let options =
            self.with_sampler(topics, Options { routing, sync, ranges, passes, ..cut })?;
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
    use lda_dist::config::Hybrid;

    use super::*;

    #[test]
    fn options_and_tables_have_the_same_defaults() {
        let none = Training::augment_args(Command::new("x")).get_matches_from(["x"]);
        assert_eq!(Training::from_arg_matches(&none).unwrap(), Training::default());
        assert_eq!(toml::from_str::<Training>("").unwrap(), Training::default());
        let other = toml::from_str::<Training>("evaluate-every = 3\nrouting = \"pull\"").unwrap();
        assert_eq!((other.evaluate_every, other.routing), (3, Some(Route::Pull)));
        assert!(toml::from_str::<Training>("topic = 3").is_err());
    }

    #[test]
    fn defaults_depend_on_the_documents() {
        let of = |documents, words| Extent { documents, words, mean_length: 10.0, fingerprint: 1 };
        let training_options =
            |training: &Training, shards, of| training.setup(shards, of, None).unwrap().options;
        let options = |training: &Training, of| training_options(training, None, of);
        let found = options(&Training::default(), of(1000, 500));
        assert_eq!((found.shards, found.partitions, found.rounds), (8, 16, 8));
        let found = options(&Training::default(), of(3, 5));
        assert_eq!((found.shards, found.partitions, found.rounds), (3, 5, 3));
        assert_eq!((found.passes, found.routing), (1, Routing::Pull));
        let many = training_options(&Training::default(), Some(100), of(1000, 500));
        assert_eq!(many.routing, Routing::Cheapest);
        let twice = Training { passes: 2, ..Training::default() };
        assert_eq!(options(&twice, of(1000, 500)).passes, 2);
        let many = Training { workers: 20, servers: 9, ..Training::default() };
        let found = options(&many, of(1000, 500));
        assert_eq!((found.shards, found.partitions, found.rounds), (20, 36, 20));
        let prefetch = Training { staleness: 2, ..Training::default() };
        let found = options(&prefetch, of(1000, 500));
        assert_eq!((found.shards, found.partitions, found.rounds), (8, 24, 24));
        assert_eq!(found.sync, SyncMode::rounds(2));
        let bounded = Training { sync: SyncKind::Bounded, ..prefetch.clone() };
        assert_eq!(options(&bounded, of(1000, 500)).sync, SyncMode::bounded(2));
        assert_eq!(options(&prefetch, of(1000, 9)).rounds, 9);
    }

    #[test]
    fn priors_may_change_and_starts_may_be_sparse() {
        let of = Extent { documents: 9, words: 9, mean_length: 10.0, fingerprint: 1 };
        let spec =
            |table| toml::from_str::<Training>(table).unwrap().setup(None, of, None).unwrap().spec;
        let fixed = spec("");
        let mut found = vec![fixed.clone()];
        for table in [
            "alpha-by-size = 20",
            "learn-alpha = \"per-topic\"",
            "learn-alpha = \"symmetric\"",
            "learn-beta = true",
            "learn-beta = true\nlearn-every = 3",
            "learn-beta = true\nlearn-burn-in = 3",
            "start = \"sparse-word\"",
            "start = \"sparse-document\"",
            "start = \"sparse-word\"\nstart-degree = 0.3",
        ] {
            assert!(found.iter().all(|other| *other != spec(table)), "{table}");
            found.push(spec(table));
        }
        assert_eq!(spec("learn-alpha = \"fixed\""), fixed);
        let both = toml::from_str::<Training>("alpha-by-size = 20\nlearn-alpha = \"per-topic\"");
        let error = both.unwrap().setup(None, of, None).unwrap_err().to_string();
        assert!(error.contains("alpha-by-size") && error.contains("leave one"), "{error}");
    }

    #[test]
    fn options_that_cannot_be_meant_are_refused() {
        let of = Extent { documents: 9, words: 9, mean_length: 10.0, fingerprint: 1 };
        for (table, message) in [
            (
                "start-degree = 0.3",
                "start-degree needs start sparse-word or sparse-document: give it too, or omit start-degree",
            ),
            (
                "start = \"sparse-word\"\nstart-degree = 1.5",
                "a sparse start in 1.5 of the topics: give a share above 0 and at most 1",
            ),
            (
                "learn-every = 3",
                "learn-every needs learn-alpha or learn-beta: give it too, or omit learn-every",
            ),
            (
                "from-share = 0.5",
                "from-share needs from, the model whose counts it keeps: give it too, or omit from-share",
            ),
            ("seconds = 0", "seconds is 0: give a number above 0"),
            ("level-off = -1e-3", "level-off is -0.001: give a number above 0"),
            ("seconds = nan", "seconds is NaN: give a number above 0"),
        ] {
            let training = toml::from_str::<Training>(table).unwrap();
            assert_eq!(training.setup(None, of, None).unwrap_err().to_string(), message);
        }
    }

    #[test]
    fn the_sampler_may_leave_long_documents_to_warp_lda() {
        let of = |sampler, short_length, mh_steps| {
            let training = Training { sampler, short_length, mh_steps, ..Training::default() };
            let options = training.with_sampler(100, Options::default())?;
            let Hybrid { short_length, mh_steps } = options.hybrid;
            let kind = options.sampler.kind().expect("none chooses automatically");
            Ok::<_, TrainingError>((kind, options.sampler.steps(), short_length, mh_steps))
        };
        let (f_plus, light) = (SamplerKind::FPlus, SamplerKind::Light);
        let (warp, hybrid) = (SamplerKind::Warp, SamplerKind::Hybrid);
        for (given, expected) in [
            ((f_plus, None, None), (f_plus, None, u32::MAX, 1)),
            ((f_plus, Some(2000), Some(3)), (f_plus, None, 2000, 3)),
            ((light, None, Some(3)), (light, Some(3), u32::MAX, 1)),
            ((light, Some(50), Some(3)), (light, Some(3), 50, 3)),
            ((warp, None, Some(2)), (f_plus, None, 0, 2)),
            ((warp, Some(0), Some(2)), (f_plus, None, 0, 2)),
            ((hybrid, None, None), (f_plus, None, 0, 1)),
            ((hybrid, Some(70), None), (f_plus, None, 70, 1)),
        ] {
            assert_eq!(of(given.0, given.1, given.2).unwrap(), expected, "{given:?}");
        }
        let refused = of(SamplerKind::Zen, None, Some(2)).unwrap_err().to_string();
        assert!(refused.starts_with("mh-steps applies to the samplers alias, light"), "{refused}");
        let refused = of(warp, Some(9), None).unwrap_err().to_string();
        assert!(refused.starts_with("warp samples all documents"), "{refused}");
        let table = toml::from_str::<Training>("sampler = \"zen-hybrid\"").unwrap();
        assert_eq!(table.sampler, SamplerKind::ZenHybrid);
    }
}
