//! Configuration of a run: how documents and words are divided, and how tokens are sampled.

use lda_core::train::{SamplerKind, SamplerOptions};
use thiserror::Error;

use crate::placement::{Partitioner, PlacementError};
use crate::sync::SyncMode;

/// Largest number of [passes](Options::passes).
pub const MAX_PASSES: u8 = 64;

/// Largest number of Metropolis-Hastings steps per token.
pub const MAX_STEPS: u16 = 64;

/// Policy for pulling rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Routing {
    /// A row is pulled if that moves fewer bytes than pushing the word's tokens
    /// ([`route`](crate::route)): the asymmetric servers of LDA*.
    Cheapest,
    /// Every row is pulled: the symmetric mode.
    Pull,
    /// Tokens are pushed, except those of documents that may not be pushed.
    Push,
}

/// Documents that WarpLDA samples instead of the [sampler](Options::sampler) of the others, and its
/// parameter. By default there are none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hybrid {
    /// Documents with more tokens than this are long, and WarpLDA samples them.
    pub short_length: u32,
    /// Proposals that a token carries from one pass to the next, M: 1 to [`MAX_STEPS`].
    pub mh_steps: u16,
}

impl Default for Hybrid {
    fn default() -> Self {
        Self { short_length: u32::MAX, mh_steps: 1 }
    }
}

impl Hybrid {
    /// Returns whether a document with this number of tokens is long.
    pub fn is_long(&self, tokens: u64) -> bool {
        tokens > self.short_length.into()
    }
}

/// How a run is divided into shards, partitions, rounds and servers, and how it samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// Shards of the documents, about equal in tokens. Default: 1.
    pub shards: u16,
    /// Partitions of the words. A document is pushed once per partition. A worker holds the rows of one
    /// partition at a time, unless they [stay](crate::cluster) there for its other shards. [Hot words](crate::placement) get partitions besides these.
    /// Default: 1.
    pub partitions: u32,
    /// Ranges of words that are placed on servers and then merged into the partitions; raised to
    /// `partitions` if it is smaller. More ranges balance the servers better. Not used by
    /// [`Partitioner::Balanced`]. Default: 0.
    pub ranges: u32,
    /// Rounds per epoch, at most the number of partitions and 32,768. With at least as many rounds as shards
    /// no two shards sample a word in the same round. Default: 1.
    pub rounds: u16,
    /// Synchronisation of rounds, with a staleness below `rounds`: a worker may start a round once the
    /// round `1 + staleness` before it has ended, that is, once the servers have added the deltas of
    /// all workers; it reads the counts of that moment, or with [`SyncMode::Bounded`] newer ones.
    /// Unless there are `(1 + staleness) * shards` rounds, two shards may sample a word at the same
    /// time. Default: bulk-synchronous.
    pub sync: SyncMode,
    /// Servers. Default: 1.
    pub servers: u32,
    /// Assignment of words to servers. Default: [`Partitioner::Balanced`].
    pub partitioner: Partitioner,
    /// Policy for pulling rows. Default: [`Routing::Cheapest`].
    pub routing: Routing,
    /// Documents with more tokens than this are not pushed. Default: 65,536.
    pub max_pushed_len: u32,
    /// Sampler, on workers and servers, of the documents that WarpLDA does not sample: one of
    /// [`SAMPLERS`]. Default: F+LDA, which is exact and chooses the order of visits by cost.
    ///
    /// With converged-token exclusion, an epoch neither samples tokens that have kept their topic often, nor
    /// moves the rows of words without other tokens; no tokens of [long documents](Self::hybrid) are left
    /// out. That is biased ([`TokenAge`](lda_core::train::TokenAge)).
    pub sampler: SamplerOptions,
    /// Documents that WarpLDA samples; these are not pushed either. Default: none.
    pub hybrid: Hybrid,
    /// How often the tokens of a partition are sampled while its rows are on the worker, 1 to
    /// [`MAX_PASSES`]. More passes move no more bytes, but take more time per epoch.
    ///
    /// The tokens of one partition are sampled repeatedly while all others stay, which gains far
    /// less than the same number of epochs: on reddit's documents, with K = 100, 8 shards and 16
    /// partitions, three passes are 0.2 % ahead in log joint after 200 epochs, each of which takes
    /// twice as long. LDA* repeats WarpLDA's passes on one machine (section 4.1, heuristic 2);
    /// repeating other samplers, and repeating by partition, are not in the paper. Default: 1.
    pub passes: u8,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            shards: 1,
            partitions: 1,
            ranges: 0,
            rounds: 1,
            sync: SyncMode::default(),
            servers: 1,
            partitioner: Partitioner::Balanced,
            routing: Routing::Cheapest,
            max_pushed_len: 1 << 16,
            sampler: SamplerKind::FPlus.into(),
            hybrid: Hybrid::default(),
            passes: 1,
        }
    }
}

/// Samplers of documents that WarpLDA does not sample.
pub const SAMPLERS: [SamplerKind; 9] = [
    SamplerKind::Exact,
    SamplerKind::FPlus,
    SamplerKind::FPlusDoc,
    SamplerKind::Sparse,
    SamplerKind::Alias,
    SamplerKind::Light,
    SamplerKind::Zen,
    SamplerKind::ZenDoc,
    SamplerKind::ZenHybrid,
];

impl Options {
    /// The same with the sampler of a run in one process, which samples documents of at most
    /// `short_length` tokens; WarpLDA samples longer ones. Without a short length the sampler samples
    /// all documents, but the hybrid those of its own short length, or else of `default_short_length`.
    /// The hybrid's `step_cap` has no effect: [`passes`](Self::passes) are fixed.
    ///
    /// ```
    /// use lda_core::train::SamplerKind;
    /// use lda_dist::config::Options;
    ///
    /// let options = Options::default().with_sampler(SamplerKind::Light.into(), Some(500), 2000)?;
    /// assert_eq!(options.sampler.kind(), Some(SamplerKind::Light));
    /// assert_eq!(options.hybrid.short_length, 500);
    /// # Ok::<(), lda_dist::config::ConfigError>(())
    /// ```
    ///
    /// # Errors
    /// [`ConfigError::ShortLength`]: WarpLDA, which samples all documents, with a short length above 0.
    pub fn with_sampler(
        self,
        sampler: SamplerOptions,
        short_length: Option<u32>,
        default_short_length: u32,
    ) -> Result<Self, ConfigError> {
        let hybrid = |short_length, steps: u32| Hybrid {
            short_length,
            // More than `check` allows.
            mh_steps: steps.try_into().unwrap_or(u16::MAX),
        };
        let f_plus = SamplerOptions::from(SamplerKind::FPlus);
        let (sampler, hybrid) = match (sampler, short_length) {
            (SamplerOptions::Warp { steps }, None | Some(0)) => (f_plus, hybrid(0, steps)),
            (SamplerOptions::Warp { .. }, Some(tokens)) => {
                return Err(ConfigError::ShortLength { tokens });
            }
            (SamplerOptions::Hybrid { steps, short_length: own, .. }, given) => {
                let tokens = given.or(own).unwrap_or(default_short_length);
                (f_plus, hybrid(tokens, steps))
            }
            (other, given) => (other, hybrid(given.unwrap_or(u32::MAX), 1)),
        };
        Ok(Self { sampler, hybrid, ..self })
    }

    /// Returns whether an epoch leaves out converged tokens.
    pub(crate) fn excludes_in(&self, epoch: u32) -> bool {
        self.sampler.exclude_from().is_some_and(|from| epoch >= from)
    }

    /// Checks everything that does not depend on the documents.
    ///
    /// # Errors
    /// [`ConfigError::Sampler`], [`ConfigError::Exclusion`], [`ConfigError::Steps`],
    /// [`ConfigError::Passes`], [`ConfigError::Staleness`].
    pub fn check(&self) -> Result<(), ConfigError> {
        let Self { sync, rounds, sampler, hybrid, passes, .. } = *self;
        if sampler.kind().is_none_or(|kind| !SAMPLERS.contains(&kind)) {
            return Err(ConfigError::Sampler { found: sampler.kind() });
        }
        if sampler.exclude_from() == Some(0) {
            return Err(ConfigError::Exclusion);
        }
        let staleness = sync.staleness();
        if staleness > 0 && staleness >= rounds {
            return Err(ConfigError::Staleness { staleness, rounds });
        }
        for steps in [Some(u32::from(hybrid.mh_steps)), sampler.steps()].into_iter().flatten() {
            if !(1..=u32::from(MAX_STEPS)).contains(&steps) {
                return Err(ConfigError::Steps { steps });
            }
        }
        if !(1..=MAX_PASSES).contains(&passes) {
            return Err(ConfigError::Passes { passes });
        }
        Ok(())
    }
}

/// An invalid configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// The words cannot be placed.
    #[error(transparent)]
    Placement(#[from] PlacementError),
    /// There are no shards, or more shards than documents.
    #[error(
        "{shards} shards of {documents} documents: use at least 1 shard, and at most one per document"
    )]
    Shards {
        /// Number of shards.
        shards: u16,
        /// Number of documents.
        documents: usize,
    },
    /// There are too many partitions.
    #[error("{partitions} partitions: give 65,535 at most")]
    Partitions {
        /// Number of partitions.
        partitions: u32,
    },
    /// There are no rounds, or more rounds than partitions.
    #[error(
        "{rounds} rounds of {partitions} partitions: use at least 1 round, at most one per partition, and at most 32,768"
    )]
    Rounds {
        /// Rounds per epoch.
        rounds: u16,
        /// Number of partitions.
        partitions: usize,
    },
    /// The run may go on with no worker, or only with more than it has.
    #[error("at least {least} of {workers} workers: set a number from 1 to {workers}")]
    MinWorkers {
        /// Smallest number of workers.
        least: u32,
        /// Number of workers.
        workers: u32,
    },
    /// Workers of an elastic run have no storage to pass the topics of their shards on.
    #[error(
        "a run that goes on with fewer workers needs a storage for checkpoints: give all nodes one, or require all workers"
    )]
    ElasticWithoutStorage,
    /// The staleness is not below the number of rounds per epoch: a shard would sample the same
    /// words in two open rounds.
    #[error(
        "staleness of {staleness} rounds with {rounds} rounds per epoch: set it below the number \
         of rounds"
    )]
    Staleness {
        /// The staleness.
        staleness: u16,
        /// Rounds per epoch.
        rounds: u16,
    },
    /// Rows cannot be collected in evaluated epochs while rounds overlap.
    #[error(
        "a staleness of {staleness} rounds beside held-out documents or other uses of all rows in evaluated \
         epochs: set it to 0, or collect no rows"
    )]
    CollectedStaleness {
        /// The staleness.
        staleness: u16,
    },
    /// The sampler is none of [`SAMPLERS`].
    #[error(
        "sampler: {} does not sample rows that servers hold: choose one of {}; for WarpLDA, set the \
         length above which it samples documents, 0 for all",
        found.map_or("auto", SamplerKind::name),
        SAMPLERS.map(SamplerKind::name).join(", ")
    )]
    Sampler {
        /// The sampler; `None` for [`SamplerOptions::Auto`].
        found: Option<SamplerKind>,
    },
    /// WarpLDA samples all documents, and cannot leave the short ones to another sampler.
    #[error(
        "warp samples all documents, also those of {tokens} tokens or fewer: leave the short length \
         out, or use the sampler hybrid, which samples these with f-plus"
    )]
    ShortLength {
        /// The short length that was given, in tokens.
        tokens: u32,
    },
    /// The first epoch that excludes converged tokens is 0.
    #[error("converged tokens excluded from epoch 0: epochs are numbered from 1")]
    Exclusion,
    /// The number of Metropolis-Hastings steps per token is out of range.
    #[error("{steps} steps per token: give 1 to {MAX_STEPS}")]
    Steps {
        /// Steps per token.
        steps: u32,
    },
    /// The number of passes is out of range.
    #[error("{passes} passes per epoch: give 1 to {MAX_PASSES}")]
    Passes {
        /// Passes per epoch.
        passes: u8,
    },
    /// There are no workers, or more workers than shards.
    #[error(
        "{workers} workers for {shards} shards: use at least 1 worker, and at most one per shard"
    )]
    Workers {
        /// Number of workers.
        workers: u32,
        /// Number of shards.
        shards: u16,
    },
    /// The assignment has another number of shards than the run.
    #[error(
        "{found} shards are assigned to workers, but the run has {shards}: assign each to one worker"
    )]
    AssignedShards {
        /// Shards of the assignment.
        found: usize,
        /// Shards of the run.
        shards: u16,
    },
    /// A shard is assigned to a worker that does not exist.
    #[error(
        "shard {shard} is assigned to worker {worker}, but the run has {workers} workers, numbered from 0"
    )]
    UnknownWorker {
        /// The shard.
        shard: usize,
        /// The worker that it is assigned to.
        worker: u32,
        /// Number of workers.
        workers: u32,
    },
    /// No shard is assigned to a worker.
    #[error("no shard is assigned to worker {worker}: assign at least one, or use fewer workers")]
    WorkerWithoutShards {
        /// The worker.
        worker: u32,
    },
}
