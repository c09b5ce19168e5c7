//! Events that a driver passes to an endpoint, and actions that it passes on to the program.

use thiserror::Error;

#[cfg(feature = "collectives")]
use super::collective::{CollectiveError, OperationId};
use super::message_buf::MessageBuf;
use super::wire::{Refusal, RequestKind};
use crate::frame::Frame;
use crate::transport::{DisconnectReason, NodeId};

/// Event for an [`Endpoint`](super::Endpoint).
#[derive(Debug)]
pub enum Event {
    /// The transport has connected a peer.
    Up {
        /// The peer.
        peer: NodeId,
    },
    /// The transport has lost the connection to a peer.
    Down {
        /// The peer.
        peer: NodeId,
        /// Reason of the loss.
        reason: DisconnectReason,
    },
    /// A frame has arrived.
    Frame {
        /// Its sender.
        peer: NodeId,
        /// The frame.
        frame: Frame,
    },
    /// The transport takes frames for a peer again, after it was full.
    Writable {
        /// The peer.
        peer: NodeId,
    },
    /// A [timer](super::Endpoint::next_timer) has expired.
    Tick,
}

/// Action for the [`Program`](super::Program) of a node.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Action {
    /// A peer is compatible and takes requests.
    Joined {
        /// The peer.
        peer: NodeId,
        /// Its role.
        role: u8,
        /// Its incarnation.
        incarnation: u64,
        /// Whether an earlier incarnation had joined, whose state is lost.
        restarted: bool,
    },
    /// A peer that had joined is lost. Requests to it wait until it returns.
    Left {
        /// The peer.
        peer: NodeId,
        /// Reason of the loss.
        reason: DisconnectReason,
    },
    /// A peer is incompatible. Requests to it have ended.
    Refused {
        /// The peer.
        peer: NodeId,
        /// The difference.
        reason: Refusal,
    },
    /// A request has arrived, to be answered by [`reply`](super::Endpoint::reply) or
    /// [`reject`](super::Endpoint::reject).
    Request {
        /// Handle for the reply.
        reply_to: ReplyHandle,
        /// Kind of the request.
        kind: RequestKind,
        /// Body that the sender has written.
        body: Frame,
    },
    /// A request of this node has ended.
    Completed {
        /// The request.
        request: RequestId,
        /// Its outcome.
        outcome: Outcome,
    },
    /// A collective operation that this node has [begun](super::Endpoint::begin) has ended here.
    #[cfg(feature = "collectives")]
    CollectiveDone {
        /// The operation.
        operation: OperationId,
        /// Result of this member: no frame for a barrier, one for a broadcast or a reduce-scatter,
        /// one per member for an all-gather.
        result: Result<Vec<Frame>, CollectiveError>,
    },
    /// There is space for requests to this peer again, after [`Overloaded`].
    Ready {
        /// The peer.
        peer: NodeId,
    },
}

/// Outcome of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub enum Outcome {
    /// It was executed; contains the reply.
    Done(Frame),
    /// The peer did not execute it; contains the reply.
    Rejected(Frame),
    /// It is unknown whether it was executed, or it was not sent.
    Unknown {
        /// Reason why there is no reply.
        reason: FailureReason,
        /// Whether it was ever sent to this incarnation of the peer. If not, it was not executed.
        sent: bool,
    },
}

/// Reason why a request ended without a reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FailureReason {
    /// Its deadline has passed.
    Deadline,
    /// The peer has restarted.
    NewIncarnation,
    /// The peer was refused, or has refused this node.
    Refused,
    /// It is longer than the transport allows.
    TooLong,
    /// It was executed, but the result is longer than the transport allows.
    ReplyTooLong,
    /// The program has cancelled it.
    Cancelled,
    /// This node has closed.
    Closed,
}

/// Number of a request of this node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RequestId {
    /// Its receiver.
    pub peer: NodeId,
    /// Its number among the requests to this peer.
    pub number: u64,
}

/// Handle to answer a request of a peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ReplyHandle {
    /// Sender of the request.
    pub peer: NodeId,
    /// Incarnation of the sender.
    pub incarnation: u64,
    /// Number of the request among those of this incarnation to this node.
    pub number: u64,
}

/// Error of a request while too many requests to its peer are waiting.
#[derive(Debug, Error)]
#[error("too many requests to {peer} are waiting: make this one again when it is ready")]
pub struct Overloaded {
    /// Receiver of the request.
    pub peer: NodeId,
    /// The message, unchanged.
    pub message: MessageBuf,
}
