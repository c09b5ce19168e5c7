//! What happens to a node, and what its program is to know or to do.

use thiserror::Error;

use super::collective::{CollectiveError, OperationId};
use super::message_buf::MessageBuf;
use super::wire::{Refusal, RequestKind};
use crate::frame::Frame;
use crate::transport::{DisconnectReason, NodeId};

/// What happens to a node.
#[derive(Debug)]
pub enum Event {
    /// A peer can be sent to.
    Up {
        /// Who.
        peer: NodeId,
    },
    /// A peer cannot be sent to any more.
    Down {
        /// Who.
        peer: NodeId,
        /// Why.
        reason: DisconnectReason,
    },
    /// A frame has come.
    Frame {
        /// Of whom.
        peer: NodeId,
        /// What.
        frame: Frame,
    },
    /// A peer that was full takes frames again.
    Writable {
        /// Who.
        peer: NodeId,
    },
    /// Time has passed.
    Tick,
}

/// What a node's program is to know or to do.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Action {
    /// A peer fits, and takes requests.
    Joined {
        /// Who.
        peer: NodeId,
        /// What it is.
        role: u8,
        /// Which start of it.
        incarnation: u64,
        /// Whether it has lost what the one before knew; not so at the first time.
        restarted: bool,
    },
    /// A peer that had joined is away. Requests to it wait until it comes again.
    Left {
        /// Who.
        peer: NodeId,
        /// Why.
        reason: DisconnectReason,
    },
    /// A peer does not fit. Requests to it have ended.
    Refused {
        /// Who.
        peer: NodeId,
        /// Why.
        reason: Refusal,
    },
    /// A peer asks; [`reply`](super::Endpoint::reply) or [`reject`](super::Endpoint::reject).
    Request {
        /// For the reply.
        reply_to: ReplyHandle,
        /// What kind of request it is.
        kind: RequestKind,
        /// What it says.
        body: Frame,
    },
    /// A request of this node has ended.
    Completed {
        /// Which.
        request: RequestId,
        /// How.
        outcome: Outcome,
    },
    /// An operation that this node has [begun](super::Endpoint::begin) has ended here.
    CollectiveDone {
        /// Which.
        operation: OperationId,
        /// What this member gets: nothing at a barrier, one frame of a broadcast or a sum, one a member of a gathering.
        result: Result<Vec<Frame>, CollectiveError>,
    },
    /// After [`Overloaded`]: there is room again for requests to this peer.
    Ready {
        /// Who.
        peer: NodeId,
    },
}

/// How a request has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub enum Outcome {
    /// It was done; what the peer said.
    Done(Frame),
    /// The peer has not done it; what it said.
    Rejected(Frame),
    /// Nobody knows, or it was not sent.
    Unknown {
        /// Why nothing better is known.
        reason: FailureReason,
        /// Whether it was ever sent to this incarnation of the peer: if not, it was not done.
        sent: bool,
    },
}

/// Why nothing is known of a request's end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FailureReason {
    /// Its deadline came first.
    Deadline,
    /// The peer started anew.
    NewIncarnation,
    /// The peer was refused, or has refused this node.
    Refused,
    /// The transport takes no frame so long.
    TooLong,
    /// It was done, and the transport takes no frame as long as what came of it.
    ReplyTooLong,
    /// The program does not want it any more.
    Cancelled,
    /// This node has closed.
    Closed,
}

/// A request of this node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RequestId {
    /// To whom.
    pub peer: NodeId,
    /// Which.
    pub number: u64,
}

/// A request of a peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ReplyHandle {
    /// Of whom.
    pub peer: NodeId,
    /// Of which incarnation.
    pub incarnation: u64,
    /// Which.
    pub number: u64,
}

/// Too many requests to a peer wait already.
#[derive(Debug, Error)]
#[error("{peer} has too many requests waiting: make this one again when it is ready")]
pub struct Overloaded {
    /// To whom.
    pub peer: NodeId,
    /// What was to be sent.
    pub message: MessageBuf,
}
