//! The boundary: one trait, and the contract that every transport keeps.

use std::fmt;
use std::task::Waker;
use std::time::Duration;

use thiserror::Error;

use crate::frame::Frame;
use crate::rpc::{CollectiveError, OperationId};
use crate::together::Together;

/// A node's number. Numbers are given by whoever starts the nodes; they need not be dense.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NodeId(pub u32);

impl fmt::Display for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "node {}", self.0)
    }
}

/// One node's way to the others. One thread drives it; others reach that thread by its
/// [waker](Self::waker).
///
/// # Contract
/// [`conformance`](crate::conformance) holds a transport to all of it.
///
/// - **Order.** Frames to one peer arrive in the order in which they were sent, once each, whole and
///   unchanged, as long as the peer stays [up](Arrival::Up). Between peers there is no order.
/// - **Up before everything.** `Up` is the first that is heard of a peer, and the first after each
///   [`Down`](Arrival::Down); a frame can be sent from then on. Frames come after the `Up` of their sender
///   and before its `Down`.
/// - **Loss is never silent.** A frame that was taken arrives, or `Down` is heard of its peer, by which
///   every frame that it has not handled is lost to the sender's knowledge: some may have arrived. After
///   another `Up` nothing of before it arrives.
/// - **A full queue is the sender's to feel.** What a transport holds for a peer that does not take it is
///   bounded by [`Capabilities::queue_bytes`]; beyond that [`send`](Self::send) gives the frame back as
///   [`Full`](SendError::Full), at once and without waiting.
///   A peer that does not take its frames holds up no others. After `Full`,
///   [`Writable`](Arrival::Writable) is heard when another attempt is worth it.
/// - **Buffers circulate.** Nobody changes a frame, so that sender and transport may both keep it. One that
///   is done with is [released](Self::release); its room is [taken up](Self::take_buffer) for others when nobody
///   shares it any more.
/// - **Closing.** [`close`](Self::close) hands on what was taken, for as long as it is given, and then
///   lets the peers hear `Down` with [`DisconnectReason::Closed`]. Dropping a transport is closing it without
///   patience.
///
/// An error concerns one peer, unless it says that the transport itself is gone.
pub trait Transport: fmt::Debug + Send {
    /// This node.
    fn id(&self) -> NodeId;

    /// What it can do.
    fn capabilities(&self) -> Capabilities;

    /// Takes a frame for a peer. Never waits.
    ///
    /// # Errors
    /// [`Unsent`] gives the frame back, and says why and whether that passes.
    fn send(&mut self, to: NodeId, frame: Frame) -> Result<(), Unsent>;

    /// What has come, in order; waits for it at most so long. `None` when nothing has.
    ///
    /// # Errors
    /// [`ReceiveError`]: nothing will come any more.
    fn receive(&mut self, wait: Wait) -> Result<Option<Arrival>, ReceiveError>;

    /// Makes [`receive`](Self::receive) return [`Arrival::Woken`], now or when next called; calls in
    /// between may be one. For any thread, at any time.
    fn waker(&self) -> Waker;

    /// An empty vector that may have room, of what was released.
    fn take_buffer(&mut self) -> Vec<u8> {
        Vec::new()
    }

    /// Takes a frame that is done with.
    fn release(&mut self, frame: Frame) {
        drop(frame);
    }

    /// Operations of all nodes together by the transport's own means, where it has any that are in order.
    fn together(&mut self) -> Option<&mut dyn Together> {
        None
    }

    /// Hands on what was taken, for at most `patience`; then this node is gone. What it has not received by
    /// then it never will.
    fn close(&mut self, patience: Duration);
}

impl<T: Transport + ?Sized> Transport for Box<T> {
    fn id(&self) -> NodeId {
        (**self).id()
    }

    fn capabilities(&self) -> Capabilities {
        (**self).capabilities()
    }

    fn send(&mut self, to: NodeId, frame: Frame) -> Result<(), Unsent> {
        (**self).send(to, frame)
    }

    fn receive(&mut self, wait: Wait) -> Result<Option<Arrival>, ReceiveError> {
        (**self).receive(wait)
    }

    fn waker(&self) -> Waker {
        (**self).waker()
    }

    fn take_buffer(&mut self) -> Vec<u8> {
        (**self).take_buffer()
    }

    fn release(&mut self, frame: Frame) {
        (**self).release(frame);
    }

    fn together(&mut self) -> Option<&mut dyn Together> {
        (**self).together()
    }

    fn close(&mut self, patience: Duration) {
        (**self).close(patience);
    }
}

/// How long to wait for an arrival.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    /// Not at all.
    No,
    /// So long.
    For(Duration),
    /// Until something comes.
    Forever,
}

/// What comes to a node.
#[derive(Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Arrival {
    /// A peer can be sent to, and may send.
    Up {
        /// Who.
        peer: NodeId,
    },
    /// Bytes of a peer.
    Frame {
        /// Of whom.
        peer: NodeId,
        /// What it sent.
        frame: Frame,
    },
    /// A peer that was full takes frames again.
    Writable {
        /// Who.
        peer: NodeId,
    },
    /// A peer is gone, for now or for good.
    Down {
        /// Who.
        peer: NodeId,
        /// Why.
        reason: DisconnectReason,
    },
    /// What was begun [together](Together::begin) has ended.
    Together {
        /// Which.
        operation: OperationId,
        /// What this node gets.
        result: Result<Vec<Frame>, CollectiveError>,
    },
    /// The [waker](Transport::waker) was used.
    Woken,
}

/// Why a peer is gone.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum DisconnectReason {
    /// It closed its transport, or ended.
    Closed,
    /// The connection broke; the text is for a person to read.
    Broken(String),
    /// An [endpoint](crate::rpc) received nothing from it for too long. No transport reports this.
    Silent,
}

/// What a transport can do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Capabilities {
    /// Longest frame, in bytes.
    pub max_frame_len: usize,
    /// Bytes that may be underway to one peer, at most, and one frame more: taken, and not received by its
    /// program. Buffers of the system, as those of sockets, are in it.
    pub queue_bytes: usize,
    /// Whether a peer that was lost can come up again.
    pub reconnects: bool,
    /// Whether the loss of one peer leaves the others up.
    pub survives_loss: bool,
    /// Whether nobody between the nodes can read or change frames.
    pub encrypted: bool,
}

impl Capabilities {
    /// Of a transport that has none of what can be missing, with these bounds.
    pub const fn new(max_frame_len: usize, queue_bytes: usize) -> Self {
        Self {
            max_frame_len,
            queue_bytes,
            reconnects: false,
            survives_loss: false,
            encrypted: false,
        }
    }
}

/// A frame that was not taken.
#[derive(Debug, Error)]
#[error("{to}: {error}")]
pub struct Unsent {
    /// For whom it was.
    pub to: NodeId,
    /// The frame as it was.
    pub frame: Frame,
    /// Why.
    #[source]
    pub error: SendError,
}

/// Why a frame was not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum SendError {
    /// There is no room; [`Arrival::Writable`] will say when there is.
    #[error("its queue is full: send again when it has room")]
    Full,
    /// It is not up, or not any more.
    #[error("it is not connected: send again when it is up")]
    NotUp,
    /// Longer than any frame may be.
    #[error("a frame of {len} bytes, where {longest} is the most: cut it up")]
    TooLong {
        /// Its bytes.
        len: usize,
        /// The most.
        longest: usize,
    },
    /// This node has closed.
    #[error("this node has closed its transport")]
    Closed,
}

impl SendError {
    /// Whether the same frame may be taken later.
    pub fn is_transient(self) -> bool {
        matches!(self, Self::Full | Self::NotUp)
    }
}

/// Nothing will come any more.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ReceiveError {
    /// This node has closed.
    #[error("this node has closed its transport")]
    Closed,
    /// What the transport stands on is gone.
    #[error("the transport has failed: {0}")]
    Failed(String),
}
