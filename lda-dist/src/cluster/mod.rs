//! Training with a parameter server, as nodes that send each other messages.
//!
//! Node 0 is the master, nodes 1 to M are servers, and the others are workers. Each role is a state
//! machine: it receives the events of its endpoint ([`Action`](lda_transport::rpc::Action)) and
//! sends through a [`Port`]. It has no thread, clock or socket, so the same code runs in
//! `lda_transport::sim` (feature `sim`) and over any transport.
//!
//! ```text
//! worker → master   words: word counts of its shards
//! others → master   ready
//! master → servers  start: place the words, make empty rows; when all servers have replied:
//! master → workers  start: with the first topics, or those of an epoch that all workers have
//! worker → servers  join: its words, and its counts of them
//! worker → master   done
//!    each round:
//! master → servers  end: the reply has the delta of C_k, and after an epoch aggregates of all rows
//! master → servers  begin; when all servers have replied: master → workers  begin
//! worker → servers  sizes, pull, push, deltas or rows: some partitions before the one that is sampled
//! worker → master   done: with the delta of C_k, if rows stay at workers
//!    after the last round:
//! master → servers  rows: a slice at a time, if the master collects the model
//! master → all      finish
//! ```
//!
//! The rows of a partition are on one server, and those of [hot words](crate::placement) on
//! several: a worker pulls them from all of these.
//!
//! If all rows are [pulled](crate::config::Routing::Pull) and there is a round for each shard and each
//! round of [staleness](crate::config::Options::sync), the rows of a partition stay at a worker while
//! its shards sample it one after another: they are pulled once for all of them, and their changes are pushed
//! together, each row's as a delta, or as the whole row if the worker has many tokens of the word. Until then
//! servers lack these changes; workers tell the master the changes of C_k.
//!
//! Shards belong to the run. A worker has consecutive shards, or those that it is
//! [assigned](Setup::assignment). The results are those of [`in_process`](crate::in_process) to the
//! bit, for any number of workers and any order of messages.
//!
//! With a [staleness](crate::config::Options::sync) the first rounds start together, and each
//! round that ends starts the one after the last open round. Workers continue while servers update
//! their rows and the master adds the totals, so a worker that is slow for a short time delays no
//! other. The bound is also the exact staleness: counts are always that many rounds old, so results
//! do not depend on which worker was slow. [`sync`](crate::sync) has the rules, and a mode in which counts are
//! as new as possible and results depend on the timing.
//!
//! # Failures
//!
//! Lost messages are retried by the endpoint. A restarted node, whether master, server or worker,
//! has lost its state. Once all nodes are ready again, the run restarts, and the servers' rows are rebuilt
//! from topics. Workers have those of the last epoch in memory, so if only the master or servers were
//! lost, it restarts from that epoch. If a worker was lost, it restarts from the last epoch whose
//! topics all workers have [written](Setup::checkpoint_every), or from its beginning. Each restart starts a
//! new **attempt**, and messages
//! of earlier attempts are rejected by their number. All random numbers follow from epoch and
//! round, so a run that was restarted has the same bits as one that was not. With a staleness above
//! 0 its bits differ: the first rounds after a restart read the counts of that moment, while
//! without the restart they would have read older ones.
//!
//! # Elastic runs
//!
//! A run that may go on with [fewer workers](Setup::min_workers) does not wait for all of them. A worker that
//! has to stop leaves at the end of an epoch: all workers write their topics, and the next attempt goes on
//! from that epoch with the others, which take over its shards. A worker that comes is noticed at the end of
//! the epoch, and takes shards over in the same way. No epoch is sampled twice. One that is lost is given up
//! after the master's [patience](Patience), and the others go on from the last checkpoint. Documents and
//! topics move by way of the storage; workers that stay keep the documents of the shards that stay with them.
//!
//! # Fatal errors
//!
//! A node with a fatal error, such as unreadable documents, reports it to the master, which ends the run. A
//! node that sends a malformed message is refused, and counts as lost.
//!
//! # Bounds
//!
//! The memory of a node is bounded however slow the others are, also with hot words and long
//! documents. With W workers, S shards, partitions whose rows take at most R bytes, t =
//! [`threads`](field@Setup::threads) and n = t (1 + [`prefetch`](field@Setup::prefetch)) partitions of a
//! worker in flight:
//!
//! | | at most |
//! |---|---|
//! | requests of a worker during the joining | 16 MiB, and a partition of a shard: it sends more as servers acknowledge |
//! | and while it samples | n pushes, as a partition starts when another ends; the deltas or rows of n partitions to each server, which processes requests in order |
//! | and after an epoch, of rows that stay | the deltas or rows of n + t partitions |
//! | of these, in flight | 256 MiB, or one ([`in_flight`](lda_transport::rpc::Config::in_flight)) |
//! | replies to it | n (R + answer) |
//! | a push and its answer | about 2 R, as [pushed words](crate::route) cost less than their rows there and back: 0.6 R in tests with skew; if [all are pushed](crate::config::Routing::Push), the rows of C_d of the shard |
//! | requests to a server | [`MAX_HELD_BYTES`] from all workers together, except one from each: the [window](config) of each is its share |
//! | broadcasts of the master | the message, and [`BROADCAST_BYTES`] of copies in flight, or one |
//! | replies of a server | W n R until the transport accepts them, if all connections are slow |
//! | a row | 8 bytes for each of its min(K, C_w) topics; 1.5 to 1.7 on kos, after 20 epochs with K = 100 and 1,000 |
//!
//! More partitions make R smaller, and with it all of these. [`Report::memory`] stays below the
//! following bytes, with T = 2 or 4 bytes per topic and r = 1 +
//! [staleness](crate::config::Options::sync) rounds that may be open:
//!
//! | | |
//! |---|---|
//! | c(n), a row of counts of n tokens | 2 T (min(K, n) + 16) + 132 |
//! | b, the sampler of the largest partition of a shard | 2 ((32 + 3 T) tokens + Σ over words (8 min(K, C_w) + c(C_w) + 16)) + 40 K |
//! | q, the pushed documents of such a partition | Σ over documents (64 + 16 min(K, L) + c(L)) + 48 tokens |
//! | a worker | t b + n q, and for each shard (4 + 3 T) tokens + Σ over documents (c(L) + 20) + 8 words + 4 K (3 + r) + 256 |
//! | a server | t (b + q) + r (64 tokens that are sampled on its words in a round + 4 K) + Σ over words (16 (2 + r) min(K, C_w) + 9 (1 + r) + 4 (3 + S)) |
//!
//! A worker at which rows stay holds about S/W times the rows of a partition of each round more, as
//! counts and encoded; partitions whose rows would take more than its shards do are pulled for each shard
//! instead. A server then gets the changes of as many rounds at once.
//!
//! This is the worst case, in which each token has a topic of its own and moves in each round. In
//! tests with a word that is in all documents, a document that has nearly all tokens, and equal
//! documents, workers hold 18 to 39 % of it and servers 2 to 20 %. A token of a long document takes
//! 4 + (4 + 3 [M](crate::config::Hybrid::mh_steps)) T bytes, and its document has no row. AliasLDA's
//! tables add t Σ over words ((16 + T) min(K, C_w) + 20) bytes of the largest partition. LightLDA's
//! copies of topics, t (T tokens + 16 documents) of a shard or of the pushed documents, tables
//! whose size depends only on K, and the at most 64 MiB of decoded rows that a server caches, are
//! not counted. The master holds 8 bytes per word and 16 per topic, 32 for each of the [top
//! words](Setup::top_words), and all rows only if it [collects](Setup::collect_model) them.

mod assignment;
mod checkpoint_error;
mod collected_counts;
mod control;
mod epoch_range;
mod epoch_stats;
mod epoch_timer;
mod master;
mod master_link;
mod memory;
mod message;
mod peers;
mod phase;
#[cfg(test)]
mod recorder;
mod report;
mod request_queue;
mod role;
mod run;
mod saved_counts;
mod saved_topics;
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
pub use checkpoint_error::CheckpointError;
pub use collected_counts::CollectedCounts;
pub use epoch_timer::{EpochTime, EpochTimer};
pub use master::Master;
pub use message::Message;
pub use peers::{Loss, LostPeer, Patience, Peers};
pub use phase::Phase;
pub use report::Report;
pub use request_queue::BROADCAST_BYTES;
pub use role::Role;
pub use run::{MAX_HELD_BYTES, RunError, config, run, run_local};
pub use saved_counts::SavedCounts;
pub use saved_topics::SavedTopics;
pub use server::ServerNode;
pub use setup::{NodeRole, Setup};
pub use snapshot_writer::SnapshotWriter;
pub use worker::Worker;

/// Node of the master.
pub const MASTER: NodeId = NodeId(0);

/// Time limit of a request: it must exceed the slowest round.
const PATIENCE: Duration = Duration::from_secs(3600);

/// Number of non-zero counts, from which memory, bytes and time follow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NonZeros {
    /// Non-zeros of C_w.
    pub words: u64,
    /// Non-zeros of C_d.
    pub documents: u64,
}

/// Top words of all topics.
#[derive(Clone, Debug, PartialEq)]
pub struct Topics {
    /// Epoch at whose end they were found.
    pub epoch: u32,
    /// C_k at that time.
    pub totals: Vec<u64>,
    /// Top words of each topic by probability, as [`top_words`](fn@lda_core::eval::top_words) finds them in
    /// all rows.
    pub words: Vec<Vec<TopWord>>,
}

/// Bytes held by nodes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Memory {
    /// Largest number of bytes of a worker: its documents, topics and counts, and the largest partition
    /// that it has sampled.
    pub worker: u64,
    /// Largest number of bytes of a server: its rows, and the largest request that it has sampled.
    pub server: u64,
}

/// State of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NodeState {
    /// Current round. Before the first round it is a [joining](Round::is_joining).
    pub round: Round,
    /// Bytes held, without messages; 0 for the master, which holds few.
    pub memory: u64,
    /// Time that a worker has waited since its start.
    pub waited: Waited,
}

/// Time without work, of one worker or the sum over several.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Waited {
    /// Waiting for rows or acknowledgements of servers, as far as [prefetching](Setup::prefetch) does not
    /// hide it.
    pub servers: Duration,
    /// Waiting for the next round: for the slowest worker, and for servers to update their rows.
    pub master: Duration,
}

impl Waited {
    /// Adds other times; saturates.
    pub fn add(&mut self, more: &Self) {
        self.servers = self.servers.saturating_add(more.servers);
        self.master = self.master.saturating_add(more.master);
    }
}

/// Connection of a role to its endpoint.
pub trait Port {
    /// Sends a request.
    ///
    /// # Errors
    /// [`Overloaded`]: the request can be sent again when the peer is ready.
    fn ask(
        &mut self,
        peer: NodeId,
        kind: RequestKind,
        draft: MessageBuf,
    ) -> Result<RequestId, Overloaded>;

    /// Replies to a request.
    fn reply(&mut self, reply_to: ReplyHandle, draft: MessageBuf);

    /// Rejects a request, with a reason.
    fn reject(&mut self, reply_to: ReplyHandle, draft: MessageBuf);

    /// Ends the session with a peer that has sent a message that makes no sense. The next incarnation of
    /// the peer may join.
    fn refuse(&mut self, peer: NodeId, why: String);
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

    fn refuse(&mut self, peer: NodeId, why: String) {
        Context::refuse(self, peer, why);
    }
}

/// A fatal error of a node.
#[derive(Clone, Debug, PartialEq, Error)]
#[non_exhaustive]
pub enum Failed {
    /// The run cannot be divided as configured.
    #[error(transparent)]
    InvalidConfig(#[from] ConfigError),
    /// A shard cannot be made.
    #[error(transparent)]
    Shard(#[from] ShardError),
    /// Documents cannot be read.
    #[error("shard {shard}: {why}")]
    Documents {
        /// The shard.
        shard: u16,
        /// Reason.
        why: String,
    },
    /// The reply of a server does not fit a shard.
    #[error(transparent)]
    Answer(#[from] AnswerError),
    /// A request does not fit the rows of a server.
    #[error(transparent)]
    Rows(#[from] RequestError),
    /// A message does not fit the state of this node.
    #[error("unexpected message from {peer}: {what}")]
    Message {
        /// Sender of the message.
        peer: NodeId,
        /// Content of the message.
        what: String,
    },
    /// A peer has rejected a request.
    #[error("{peer} rejected a request: {why}")]
    Refused {
        /// The peer.
        peer: NodeId,
        /// Reason that the peer gave.
        why: String,
    },
    /// The outcome of a request is unknown.
    #[error(
        "it is not known whether {peer} has executed a request ({why}): start the run again, it continues from its last checkpoint"
    )]
    Unknown {
        /// The peer.
        peer: NodeId,
        /// Reason.
        why: String,
    },
    /// A node belongs to another run.
    #[error("{peer} does not belong to this run: {why}")]
    IncompatiblePeer {
        /// The node.
        peer: NodeId,
        /// The difference.
        why: String,
    },
    /// Another node has failed.
    #[error("{peer} failed: {why}")]
    PeerFailed {
        /// The node.
        peer: NodeId,
        /// Reason that the node gave.
        why: String,
    },
    /// Another node was lost before the run was over, and did not return in time.
    #[error("{name} {why}, for {} s: see its log, start it again{}", seconds, go_on(*kept))]
    PeerLost {
        /// The node.
        peer: NodeId,
        /// Its role and its index among the nodes of this role, such as `worker 2`.
        name: String,
        /// Cause.
        why: Loss,
        /// Time that this node waited for it.
        seconds: u64,
        /// At the master, the last epoch that all workers have written; 0 if none, then a new start
        /// of the run begins with the initial topics.
        kept: Option<u32>,
    },
    /// An elastic run has gone on without this worker.
    #[error(
        "the run has gone on without this node, which was out of reach for too long: start it again"
    )]
    LeftBehind,
    /// The run was restarted too often.
    #[error("restarted {attempts} times without completing an epoch: check why nodes are exiting")]
    Attempts {
        /// Number of attempts.
        attempts: u32,
    },
    /// A snapshot cannot be used.
    #[error("snapshot {name}: {why}")]
    Snapshot {
        /// Name of the snapshot.
        name: String,
        /// Reason.
        why: String,
    },
}

/// Continuation of a run from an epoch, in words.
fn go_on(kept: Option<u32>) -> String {
    match kept {
        None => String::new(),
        Some(0) => "; a new start of the run begins with the initial topics".to_owned(),
        Some(epoch) => {
            format!("; a new start of the run continues from the topics of epoch {epoch}")
        }
    }
}

/// Returns the reply to a request. `None` if the peer is in another attempt, or has been restarted:
/// the run restarts then, and the reply is not needed. `None` also if the peer is refused: it counts as
/// lost, and the run restarts when the right node is in its place.
fn outcome(request: RequestId, outcome: Outcome) -> Result<Option<lda_transport::Frame>, Failed> {
    let peer = request.peer;
    match outcome {
        Outcome::Done(frame) => Ok(Some(frame)),
        Outcome::Rejected(frame) if frame[..] == NOT_NOW => Ok(None),
        Outcome::Rejected(frame) => {
            Err(Failed::Refused { peer, why: String::from_utf8_lossy(&frame).into_owned() })
        }
        Outcome::Unknown {
            reason: FailureReason::NewIncarnation | FailureReason::Refused, ..
        } => Ok(None),
        Outcome::Unknown { reason, .. } => {
            Err(Failed::Unknown { peer, why: format!("{reason:?}") })
        }
    }
}

/// Reason that the master gives to a worker without which it has gone on.
const LEFT_BEHIND: &str = "the run has gone on without it";

/// Body of a rejection of a request that came at a wrong time.
const NOT_NOW: [u8; 1] = [0];

/// Rejects a request: because it came at a wrong time, or with an error.
fn reject(port: &mut dyn Port, reply_to: ReplyHandle, why: Option<&Failed>) {
    let why = why.map_or(NOT_NOW.to_vec(), |why| why.to_string().into_bytes());
    port.reject(reply_to, MessageBuf::from(&why[..]));
}
