//! How a run is divided, what cannot be, and what moves.

use thiserror::Error;

use crate::placement::{Partitioner, PlacementError};
use crate::request::Kind;
use crate::server::RequestError;
use crate::shard::{AnswerError, Hybrid, MAX_STEPS, ShardError};

/// Why a run cannot be, or ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// Words cannot be placed.
    #[error(transparent)]
    Placement(#[from] PlacementError),
    /// A shard cannot be.
    #[error(transparent)]
    Shard(#[from] ShardError),
    /// No shards, or fewer documents.
    #[error("{shards} shards of {documents} documents: give 1 to as many as there are")]
    Shards {
        /// Shards.
        shards: u16,
        /// Documents.
        documents: usize,
    },
    /// Too many partitions.
    #[error("{partitions} partitions: give 65,535 at most")]
    Partitions {
        /// How many.
        partitions: u32,
    },
    /// No rounds, or more than partitions.
    #[error("{rounds} rounds of {partitions} partitions: give 1 to as many as there are")]
    Rounds {
        /// Rounds.
        rounds: u16,
        /// Partitions.
        partitions: usize,
    },
    /// Rounds that overlap until a shard meets its own words again.
    #[error(
        "staleness of {staleness} rounds with {rounds} rounds per epoch: set it below the number of rounds"
    )]
    Staleness {
        /// Rounds that may be on besides the first.
        staleness: u16,
        /// Rounds.
        rounds: u16,
    },
    /// Steps that WarpLDA cannot do.
    #[error("{steps} steps a token: give 1 to {MAX_STEPS}")]
    Steps {
        /// How many.
        steps: u16,
    },
    /// No passes, or too many.
    #[error("{passes} passes an epoch: give 1 to {MAX_PASSES}")]
    Passes {
        /// How many.
        passes: u8,
    },
    /// No workers, or more than shards.
    #[error("{workers} workers for {shards} shards: give 1 to as many as there are shards")]
    Workers {
        /// Workers.
        workers: u32,
        /// Shards.
        shards: u16,
    },
    /// An assignment of other shards than there are.
    #[error("{found} shards are assigned to workers, and there are {shards}: assign each")]
    AssignedShards {
        /// How many are assigned.
        found: usize,
        /// How many there are.
        shards: u16,
    },
    /// A shard that is assigned to nobody.
    #[error("shard {shard} is assigned to worker {worker}, and there are {workers}, from 0")]
    UnknownWorker {
        /// Which.
        shard: usize,
        /// To whom.
        worker: u32,
        /// How many workers there are.
        workers: u32,
    },
    /// A worker to whom no shard is assigned.
    #[error("worker {worker} is assigned no shard: assign one at least")]
    WorkerWithoutShards {
        /// Which.
        worker: u32,
    },
    /// A server has refused something.
    #[error(transparent)]
    Request(#[from] RequestError),
    /// A shard has.
    #[error(transparent)]
    Answer(#[from] AnswerError),
    /// More tokens of a topic than 32 bits.
    #[error("topic {topic} has {tokens} tokens, beyond 32 bits")]
    Total {
        /// Which.
        topic: usize,
        /// Tokens.
        tokens: i64,
    },
}

/// Most [passes](Options::passes).
pub const MAX_PASSES: u8 = 64;

/// Which words are pulled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Routing {
    /// Those that cost less so ([`route`](crate::route)): LDA*'s asymmetric servers.
    Cheapest,
    /// All of them: the symmetric mode.
    Pull,
    /// None, but for those of documents that are not pushed or that WarpLDA samples.
    Push,
}

/// How a job is divided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// Parts of the documents, about equal in tokens.
    pub shards: u16,
    /// Partitions of the words: as many rows of a shard come at a time, and a document is pushed once for each. Words
    /// that are [hot](crate::placement) have some more.
    pub partitions: u32,
    /// Ranges of the words that are placed, and joined to these partitions at their servers; as many as partitions
    /// unless there are more. The more, the more evenly servers are loaded. Words that are [dealt](Partitioner::Balanced)
    /// are none.
    pub ranges: u32,
    /// Rounds an epoch: as many as shards at least, that no word is sampled by two at once; at most as there are
    /// partitions.
    pub rounds: u16,
    /// Rounds that may be on besides the first of them: who is done with one goes on with the next, and nobody waits
    /// until all are done, unless somebody is further behind than this. What is read in a round is then of so many
    /// rounds before its start; less than there are rounds. Words are sampled by two at once unless there are 1 + slack
    /// times as many rounds as shards.
    pub staleness: u16,
    /// Servers.
    pub servers: u32,
    /// How words find their servers.
    pub partitioner: Partitioner,
    /// Which words are pulled.
    pub routing: Routing,
    /// Documents of more tokens are not pushed.
    pub max_pushed_len: u32,
    /// Which documents WarpLDA samples; they are not pushed either.
    pub hybrid: Hybrid,
    /// How often tokens are sampled while rows are where they are sampled, 1 to [`MAX_PASSES`]: an epoch takes longer,
    /// brings more, and moves no byte more. A partition's tokens are sampled so often in turn, while the others stay,
    /// which brings far less than as many epochs: on reddit's documents, with K = 100, 8 shards and 16 partitions,
    /// three passes are 0.2 % ahead in log joint after 200 epochs, each of which takes twice as long. One process
    /// repeats WarpLDA's passes so (LDA*, section 4.1, heuristic 2); for F+LDA and by partition it is ours.
    pub passes: u8,
}

impl Default for Options {
    fn default() -> Self {
        let partitioner = Partitioner::Balanced;
        let routing = Routing::Cheapest;
        let (max_pushed_len, hybrid) = (1 << 16, Hybrid::default());
        Self {
            shards: 1,
            partitions: 1,
            ranges: 0,
            rounds: 1,
            staleness: 0,
            servers: 1,
            partitioner,
            routing,
            max_pushed_len,
            hybrid,
            passes: 1,
        }
    }
}

impl Options {
    /// Whether they make sense, whatever the documents are.
    ///
    /// # Errors
    /// [`ConfigError::Steps`], [`ConfigError::Passes`], [`ConfigError::Staleness`].
    pub fn check(&self) -> Result<(), ConfigError> {
        let Self { staleness, rounds, hybrid, passes, .. } = *self;
        if staleness > 0 && staleness >= rounds {
            return Err(ConfigError::Staleness { staleness, rounds });
        }
        let steps = hybrid.mh_steps;
        if !(1..=MAX_STEPS).contains(&steps) {
            return Err(ConfigError::Steps { steps });
        }
        if !(1..=MAX_PASSES).contains(&passes) {
            return Err(ConfigError::Passes { passes });
        }
        Ok(())
    }
}

/// Bytes that would travel, without what a transport puts around them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Bytes {
    /// How long rows are, a byte a word, and asking for it.
    pub sizes: u64,
    /// Which words are pulled, a bit a word.
    pub routes: u64,
    /// Rows, to workers.
    pub rows: u64,
    /// What they have gained, to servers.
    pub gained: u64,
    /// Documents and their tokens, to servers.
    pub pushed: u64,
    /// Their topics, to workers.
    pub answers: u64,
    /// C_k: what each server's rows have gained, and to each shard and server.
    pub totals: u64,
}

impl Bytes {
    /// As much more.
    pub fn add(&mut self, more: &Self) {
        let Self { sizes, routes, rows, gained, pushed, answers, totals } = more;
        let to = [
            &mut self.sizes,
            &mut self.routes,
            &mut self.rows,
            &mut self.gained,
            &mut self.pushed,
            &mut self.answers,
            &mut self.totals,
        ];
        for (to, more) in to.into_iter().zip([sizes, routes, rows, gained, pushed, answers, totals])
        {
            *to = to.saturating_add(*more);
        }
    }

    /// Of a request, on its way to a server.
    pub(crate) fn count_request(&mut self, kind: Kind, bytes: u64) {
        match kind {
            Kind::Sizes => self.sizes += bytes,
            Kind::Pull => self.routes += bytes,
            Kind::Push => self.pushed += bytes,
            Kind::PushDeltas => self.gained += bytes,
            // Before the first epoch.
            Kind::Join => {}
        }
    }

    /// All.
    pub fn total(&self) -> u64 {
        let Self { sizes, routes, rows, gained, pushed, answers, totals } = *self;
        let all = [sizes, routes, rows, gained, pushed, answers, totals];
        all.into_iter().fold(0, u64::saturating_add)
    }
}
