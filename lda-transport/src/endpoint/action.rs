//! What happens to a node, and what its program is to know or to do.

use thiserror::Error;

use super::collective::{CollectiveError, OperationId};
use super::draft::Draft;
use super::wire::{Kind, Refusal};
use crate::frame::Frame;
use crate::transport::{Loss, NodeId};

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
        loss: Loss,
    },
    /// A frame has come.
    Frame {
        /// Of whom.
        peer: NodeId,
        /// What.
        frame: Frame,
    },
    /// A peer that was full takes frames again.
    Room {
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
        reborn: bool,
    },
    /// A peer that had joined is away. Requests to it wait until it comes again.
    Left {
        /// Who.
        peer: NodeId,
        /// Why.
        why: Left,
    },
    /// A peer does not fit. Requests to it have ended.
    Refused {
        /// Who.
        peer: NodeId,
        /// Why.
        why: Refusal,
    },
    /// A peer asks; [`reply`](super::Endpoint::reply) or [`reject`](super::Endpoint::reject).
    Asked {
        /// For the reply.
        ticket: Ticket,
        /// What kind of request it is.
        kind: Kind,
        /// What it says.
        body: Frame,
    },
    /// A request of this node has ended.
    Ended {
        /// Which.
        request: RequestId,
        /// How.
        outcome: Outcome,
    },
    /// An operation that this node has [begun](super::Endpoint::begin) has ended here.
    Collected {
        /// Which.
        operation: OperationId,
        /// What this member gets: nothing at a barrier, one frame of a broadcast or a sum, one a member of a gathering.
        result: Result<Vec<Frame>, CollectiveError>,
    },
    /// After [`Busy`]: there is room again for requests to this peer.
    Ready {
        /// Who.
        peer: NodeId,
    },
}

/// Why a peer has left.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Left {
    /// The transport has lost it.
    Lost(Loss),
    /// Nothing was heard of it for too long.
    Silent,
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
        why: Why,
        /// Whether it was ever sent to this incarnation of the peer: if not, it was not done.
        sent: bool,
    },
}

/// Why nothing is known of a request's end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Why {
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
pub struct Ticket {
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
pub struct Busy {
    /// To whom.
    pub peer: NodeId,
    /// What was to be sent.
    pub draft: Draft,
}
