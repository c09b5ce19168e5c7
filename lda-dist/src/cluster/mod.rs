//! Rounds by nodes that send each other messages: a master, servers and workers, each a state machine.
//!
//! Node 0 is the master, nodes 1 to M are servers, the others workers. A role is told what its endpoint says
//! ([`Action`](lda_transport::rpc::Action)) and asks through a [`Port`]; it has no thread, no clock and no socket,
//! so that the same code runs in `lda_transport::sim` (feature `sim`) and over any transport.
//!
//! ```text
//! worker → master   words of its shards, and how often
//! others → master   here
//! master → servers  start: words placed by the same rule everywhere, rows without tokens; when all have,
//! master → workers  start: at the first topics, or at those of an epoch that all have kept
//! worker → servers  join: its words, and its tokens' topics
//! worker → master   done
//!    each round:
//! master → servers  end: what have your rows gained, and after an epoch what is to be found in them?
//! master → servers  begin, and when all have: master → workers  begin
//! worker → servers  sizes, pull, push, gained: some partitions ahead of the one it samples
//! worker → master   done
//!    and after the last:
//! master → servers  rows, a slice at a time, where the master is to have them
//! master → all      finish
//! ```
//!
//! A partition's rows lie on one server, and those of [hot words](crate::placement) on several: who samples these pulls
//! from all of them.
//!
//! Shards are the job's, and a worker has a run of them, or those that it is [assigned](Setup::assignment); the bits
//! are those of [`in_process`](crate::in_process), with any number of workers and in whatever order messages come.
//!
//! With [staleness](crate::in_process::Options::staleness) the first rounds begin together, and each that ends begins the one after the last:
//! workers go on while servers make their rows anew and the master adds up, and a worker that is slow for a while holds
//! nobody up. Who is slow for longer is waited for, as no one may be ahead of it by more rounds than that: so old may
//! counts get, and they always are, lest bits depend on who was slow.
//!
//! # What fails
//! What is lost underway is asked again by the endpoint. A node that has started anew, master, server or worker, has
//! lost what it knew: when all are there again the run goes back to the last epoch whose topics all workers have
//! [kept](Setup::checkpoint_every), or to its beginning, and servers get their rows from there. This is another **attempt**;
//! what is left of those before is turned away by its number. As all chance follows from epoch and round, a run that
//! has gone back ends with the bits of one that has not; with staleness it does not, since what is read after going back
//! is of that moment, and of so many rounds before where nothing has failed.
//!
//! Who gives up, as documents cannot be read or a message makes no sense, tells the master why; it gives up, and with
//! it all others.
//!
//! # Bounds
//! What a node holds is bounded however slow others are, with hot words and long documents too. With W workers, S
//! shards, partitions whose rows take R bytes at most, and a = [`prefetch`](Setup::prefetch):
//!
//! | | holds at most |
//! |---|---|
//! | requests of a worker, while it joins | 16 MiB, and a partition of a shard: it says more as servers have taken what it has said |
//! | and while it samples | 1 + a pushes, as a partition departs when one is done; of what rows have gained, 1 + a to each server, which does what it is asked in order |
//! | of these, on their way | 256 MiB, or one ([`in_flight`](lda_transport::rpc::Config::in_flight)) |
//! | replies to it | (1 + a) (R + answer) |
//! | a push and its answer | about 2 R, as [words that are pushed](crate::route) cost less than their rows there and back: 0.6 R in tests with skew; where [all are](crate::config::Routing::Push), the rows of C_d of the shard |
//! | requests to a server | [`MOST_HELD`] of all workers together, but for one of each: the [window](config) of each is its share |
//! | what the master says to all | itself, and [`BROADCAST_BYTES`] of copies on their way, or one |
//! | replies of a server | W (1 + a) R, until the transport takes them, if all links are slow |
//! | a row | 8 bytes for each of its min(K, C_w) topics; 1.5 to 1.7 on kos, after 20 epochs with K = 100 and 1,000 |
//!
//! More partitions make R, and with it all of these, smaller. [`Report::memory`] stays below this, in bytes, with T = 2
//! or 4 of a topic and r = 1 + [staleness](crate::in_process::Options::staleness) rounds that may be on:
//!
//! | | |
//! |---|---|
//! | c(n), a row of counts of n tokens | 2 T (min(K, n) + 16) + 132 |
//! | b, a bench, for the largest partition of a shard | 2 ((32 + 3 T) tokens + Σ over words (8 min(K, C_w) + c(C_w) + 16)) + 40 K |
//! | q, its documents as they are pushed | Σ over documents (64 + 16 min(K, L) + c(L)) + 48 tokens |
//! | a worker | b + (1 + a) q, and for each shard (4 + T) tokens + Σ over documents (c(L) + 20) + 8 words + 4 K (3 + r) + 256 |
//! | a server | b + q + r (64 tokens that are sampled on its words in a round + 4 K) + Σ over words (16 (2 + r) min(K, C_w) + 9 (1 + r) + 4 (3 + S)) |
//!
//! These are of the worst, where each token is of a topic of its own and moves each round: tests with a word that is in
//! all documents, a document that has nearly all tokens, and documents that are alike hold 18 to 39 % of it on workers
//! and 2 to 20 % on servers. Of documents that WarpLDA samples a token takes 4 + (2 +
//! [M](crate::config::Hybrid::mh_steps)) T bytes, and there is no row. Tables that follow from K alone are beside it,
//! and so are 64 MiB at most of rows of counts that a server keeps. The master holds 8 bytes a word and 16 a topic, 32
//! for each of the [words of topics](Setup::top_words), and all rows only where it [gathers](Setup::collect_model) them.

mod assignment;
mod collected_counts;
mod control;
mod epoch_stats;
mod epoch_timer;
mod master;
mod master_link;
mod message;
mod phase;
mod report;
mod request_queue;
mod role;
mod run;
mod server;
mod setup;
mod snapshot_writer;
mod worker;

use std::time::Duration;

use lda_core::eval::TopWord;
use lda_transport::NodeId;
use lda_transport::rpc::Context;
use lda_transport::rpc::{
    FailureReason, MessageBuf, Outcome, Overloaded, ReplyHandle, RequestId, RequestKind,
};
use thiserror::Error;

use crate::config::ConfigError;
use crate::server::RequestError;
use crate::shard::{AnswerError, ShardError};
use crate::spec::Round;

pub use crate::documents::Documents;
pub use assignment::Assignment;
pub use collected_counts::CollectedCounts;
pub use epoch_timer::{EpochTime, EpochTimer};
pub use master::Master;
pub use message::Message;
pub use phase::Phase;
pub use report::Report;
pub use request_queue::BROADCAST_BYTES;
pub use role::Role;
pub use run::{MOST_HELD, RunError, config, run, run_local};
pub(crate) use run::{roles, run_threads};
pub use server::ServerNode;
pub use setup::Setup;
pub use snapshot_writer::SnapshotWriter;
pub use worker::Worker;

/// The master's number.
pub const MASTER: NodeId = NodeId(0);

/// How long a request may take: a round of the slowest.
const PATIENCE: Duration = Duration::from_secs(3600);

/// Counts above 0: what memory, bytes and time follow from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NonZeros {
    /// Of C_w.
    pub words: u64,
    /// Of C_d.
    pub documents: u64,
}

/// Words that stand for topics.
#[derive(Clone, Debug, PartialEq)]
pub struct Topics {
    /// As of the end of this epoch.
    pub epoch: u32,
    /// C_k of then.
    pub totals: Vec<u64>,
    /// Those of each topic, by probability: what [`top_words`](fn@lda_core::eval::top_words) finds in all rows.
    pub words: Vec<Vec<TopWord>>,
}

/// Bytes that nodes hold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Memory {
    /// The heaviest worker: its documents, their topics and counts, and the largest partition that it sampled.
    pub worker: u64,
    /// The heaviest server: rows of its words, and the largest request that it sampled.
    pub server: u64,
}

/// How a node stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NodeState {
    /// The round that is on; that of [`JOINING`](crate::spec::JOINING) before the first.
    pub round: Round,
    /// Bytes held, without what travels; the master's are few.
    pub memory: u64,
    /// How long a worker has waited since it began.
    pub waited: Waited,
}

/// How long a worker had nothing to do, or several together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Waited {
    /// Until rows came or servers had done something: what asking [ahead](Setup::prefetch) does not hide.
    pub servers: Duration,
    /// Until a round had ended and the next began: for the slowest worker, and for the servers to make their rows.
    pub master: Duration,
}

impl Waited {
    /// As much more.
    pub fn add(&mut self, more: &Self) {
        self.servers = self.servers.saturating_add(more.servers);
        self.master = self.master.saturating_add(more.master);
    }
}

/// What a role asks its node for.
pub trait Port {
    /// Makes a request.
    ///
    /// # Errors
    /// [`Overloaded`]: again when the peer is ready.
    fn ask(
        &mut self,
        peer: NodeId,
        kind: RequestKind,
        draft: MessageBuf,
    ) -> Result<RequestId, Overloaded>;

    /// Answers one.
    fn reply(&mut self, reply_to: ReplyHandle, draft: MessageBuf);

    /// Says that one is not done, and why.
    fn reject(&mut self, reply_to: ReplyHandle, draft: MessageBuf);
}

impl Port for Context<'_> {
    fn ask(
        &mut self,
        peer: NodeId,
        kind: RequestKind,
        draft: MessageBuf,
    ) -> Result<RequestId, Overloaded> {
        self.request(peer, kind, draft, PATIENCE)
    }

    fn reply(&mut self, reply_to: ReplyHandle, draft: MessageBuf) {
        Context::reply(self, reply_to, draft);
    }

    fn reject(&mut self, reply_to: ReplyHandle, draft: MessageBuf) {
        Context::reject(self, reply_to, draft);
    }
}

/// Why a node has given up.
#[derive(Clone, Debug, PartialEq, Error)]
#[non_exhaustive]
pub enum Failed {
    /// The job cannot be divided so.
    #[error(transparent)]
    InvalidConfig(#[from] ConfigError),
    /// A shard cannot be.
    #[error(transparent)]
    Shard(#[from] ShardError),
    /// Documents cannot be read.
    #[error("shard {shard}: {why}")]
    Documents {
        /// Which.
        shard: u16,
        /// Why.
        why: String,
    },
    /// A server has sent what does not fit.
    #[error(transparent)]
    Answer(#[from] AnswerError),
    /// Rows that cannot be.
    #[error(transparent)]
    Rows(#[from] RequestError),
    /// A message that does not fit.
    #[error("{peer} has sent what makes no sense now: {what}")]
    Message {
        /// Who.
        peer: NodeId,
        /// What.
        what: String,
    },
    /// A request that a peer has not done.
    #[error("{peer} has refused: {why}")]
    Refused {
        /// Who.
        peer: NodeId,
        /// Why.
        why: String,
    },
    /// A request of which nobody knows.
    #[error("a request to {peer} came to nothing: {why}")]
    Unknown {
        /// To whom.
        peer: NodeId,
        /// Why.
        why: String,
    },
    /// A node is not of this run.
    #[error("{peer} does not fit: {why}")]
    IncompatiblePeer {
        /// Who.
        peer: NodeId,
        /// Why.
        why: String,
    },
    /// A node has given up, and said why.
    #[error("{peer} has given up: {why}")]
    PeerFailed {
        /// Who.
        peer: NodeId,
        /// Why.
        why: String,
    },
    /// A node has ended before its time.
    #[error("{peer} has ended")]
    PeerClosed {
        /// Who.
        peer: NodeId,
    },
    /// A run that has gone back again and again.
    #[error("the run has gone back {attempts} times without an epoch done: look why nodes end")]
    Attempts {
        /// How often.
        attempts: u32,
    },
    /// A snapshot that cannot be used.
    #[error("snapshot {name}: {why}")]
    Snapshot {
        /// Its name.
        name: String,
        /// Why.
        why: String,
    },
}

/// The reply to a request that was done; none where the peer knows nothing of it, as it is of another attempt or has
/// started anew: the run goes back then, and nobody wants it.
fn outcome(request: RequestId, outcome: Outcome) -> Result<Option<lda_transport::Frame>, Failed> {
    let peer = request.peer;
    match outcome {
        Outcome::Done(frame) => Ok(Some(frame)),
        Outcome::Rejected(frame) if frame[..] == NOT_NOW => Ok(None),
        Outcome::Rejected(frame) => {
            Err(Failed::Refused { peer, why: String::from_utf8_lossy(&frame).into_owned() })
        }
        Outcome::Unknown { reason: FailureReason::NewIncarnation, .. } => Ok(None),
        Outcome::Unknown { reason, .. } => {
            Err(Failed::Unknown { peer, why: format!("{reason:?}") })
        }
    }
}

/// What is said of a request that comes at a wrong time.
const NOT_NOW: [u8; 1] = [0];

/// Says that a request is not done: not at this time, or why never.
fn reject(port: &mut dyn Port, reply_to: ReplyHandle, why: Option<&Failed>) {
    let why = why.map_or(NOT_NOW.to_vec(), |why| why.to_string().into_bytes());
    port.reject(reply_to, MessageBuf::from(&why[..]));
}
