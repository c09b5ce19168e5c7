//! The trait [`Transport`], and the contract that every implementation keeps.

use std::fmt;
use std::task::Waker;
use std::time::Duration;

use thiserror::Error;

use crate::frame::Frame;

/// Number of a node. The numbers are chosen by the program that starts the nodes and need not be
/// dense.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NodeId(pub u32);

impl fmt::Display for NodeId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "node {}", self.0)
    }
}

/// Connection of one node to its peers. It is used by one thread; other threads wake that thread
/// with its [waker](Self::waker).
///
/// # Contract
/// The feature `conformance` adds a suite that checks all of it.
///
/// - **Order.** Frames to one peer arrive in the order in which they were sent, once each, complete
///   and unchanged, as long as the peer stays [up](Arrival::Up). Between peers there is no order.
/// - **`Up` comes first.** `Up` is the first arrival of a peer, and the first after each
///   [`Down`](Arrival::Down); frames can be sent from then on. Frames arrive after the `Up` of
///   their sender and before its `Down`.
/// - **Loss is never silent.** A frame that was taken arrives, or `Down` follows for its peer.
///   After `Down` the sender does not know which of the frames before it have arrived. After
///   another `Up`, no frame from before it arrives.
/// - **Backpressure.** The bytes that a transport holds for a peer are bounded by
///   [`Capabilities::queue_bytes`]. Beyond that, [`send`](Self::send) returns the frame as
///   [`Full`](SendError::Full), at once. A peer that does not take its frames delays no other.
///   After `Full`, [`Writable`](Arrival::Writable) arrives when another attempt can succeed. It may
///   also arrive needlessly, and another attempt may be `Full` again.
/// - **Waits end in time.** [`receive`](Self::receive) returns nothing only when its time is up, so
///   never with [`Wait::Forever`]. Of the other methods only `close` waits, for its time at most.
/// - **Buffers circulate.** Frames are immutable, so sender and transport may share them. A frame
///   that is not needed any more is [released](Self::release), and its buffer is
///   [reused](Self::take_buffer) once its bytes are not shared.
/// - **Closing.** [`close`](Self::close) sends the frames that were taken, until its time is up;
///   the peers then receive `Down` with [`DisconnectReason::Closed`], behind the frames. Dropping a
///   transport closes it without waiting, and frames that were not sent yet are lost.
/// - **Ends of connections.** One that ends between two frames is [`DisconnectReason::Closed`], since a
///   system closes the connections of a process that ends; one that ends inside a frame, or by an
///   error, is [`DisconnectReason::Broken`].
/// - **Peers that are gone without a word**, as by a power cut, may stay `Up`: a transport reports
///   only what its network reports. Endpoints of [`rpc`](crate::rpc) find them by their silence.
///
/// An error concerns one peer, unless it says that the transport itself has failed.
pub trait Transport: fmt::Debug + Send {
    /// Returns the number of this node.
    fn id(&self) -> NodeId;

    /// Returns the limits and properties of the transport.
    fn capabilities(&self) -> Capabilities;

    /// Takes a frame for a peer. Never waits.
    ///
    /// # Errors
    /// [`Unsent`] contains the frame and the reason, which may be
    /// [transient](SendError::is_transient).
    fn send(&mut self, to: NodeId, frame: Frame) -> Result<(), Unsent>;

    /// Returns the next arrival, after waiting for it if there is none; `None` if none came in
    /// time.
    ///
    /// # Errors
    /// [`ReceiveError`]: nothing will arrive any more.
    fn receive(&mut self, wait: Wait) -> Result<Option<Arrival>, ReceiveError>;

    /// Returns a waker for any thread. It makes [`receive`](Self::receive) return
    /// [`Arrival::Woken`], now or at its next call. Several wakes may lead to one arrival.
    fn waker(&self) -> Waker;

    /// Returns an empty vector, with the memory of a released frame if there is one.
    fn take_buffer(&mut self) -> Vec<u8> {
        Vec::new()
    }

    /// Takes a frame that is not needed any more, to reuse its memory.
    fn release(&mut self, frame: Frame) {
        drop(frame);
    }

    /// Sends the frames that were taken, for at most `patience`, and closes this node. It receives
    /// nothing any more.
    fn close(&mut self, patience: Duration);
}

/// Implements the trait for a pointer to a transport.
macro_rules! pointer_is_transport {
    ($pointer:ty) => {
        impl<T: Transport + ?Sized> Transport for $pointer {
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

            fn close(&mut self, patience: Duration) {
                (**self).close(patience);
            }
        }
    };
}

pointer_is_transport!(Box<T>);
pointer_is_transport!(&mut T);

/// Time to wait for an arrival.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    /// Does not wait.
    No,
    /// Waits for at most this time.
    For(Duration),
    /// Waits without a limit.
    Forever,
}

/// An arrival at a node.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Arrival {
    /// A peer is connected.
    Up {
        /// The peer.
        peer: NodeId,
    },
    /// A frame has arrived.
    Frame {
        /// Its sender.
        peer: NodeId,
        /// The frame.
        frame: Frame,
    },
    /// A peer whose queue was full takes frames again, or may.
    Writable {
        /// The peer.
        peer: NodeId,
    },
    /// The connection to a peer is lost, for now or forever.
    Down {
        /// The peer.
        peer: NodeId,
        /// Reason of the loss.
        reason: DisconnectReason,
    },
    /// The [waker](Transport::waker) was used.
    Woken,
}

/// Reason why a peer is not connected any more.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum DisconnectReason {
    /// The peer closed its transport, or its process ended.
    Closed,
    /// The connection broke; contains a description for people.
    Broken(String),
    /// An endpoint of `rpc` received nothing from the peer for too long. Transports do not report
    /// this.
    Silent,
}

/// Limits and properties of a transport.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Capabilities {
    /// Longest frame, in bytes.
    pub max_frame_len: usize,
    /// Maximum bytes in flight to one peer; the last frame may exceed it. A frame is in flight from
    /// the time that the transport has taken it until the program of the peer receives it, so
    /// buffers of the system, such as those of sockets, are included.
    pub queue_bytes: usize,
    /// Whether a lost peer can reconnect.
    pub reconnects: bool,
    /// Whether the other peers stay connected when one is lost.
    pub survives_loss: bool,
    /// Whether frames cannot be read or changed between the nodes. If not, frames are sent all the
    /// same: programs with secrets check it.
    pub encrypted: bool,
}

impl Capabilities {
    /// Creates the capabilities of a transport with these limits and none of the optional
    /// properties.
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

/// A frame that the transport did not take.
#[derive(Debug, Error)]
#[error("{to}: {error}")]
pub struct Unsent {
    /// Its receiver.
    pub to: NodeId,
    /// The frame, unchanged.
    pub frame: Frame,
    /// The reason.
    #[source]
    pub error: SendError,
}

/// Reason why the transport did not take a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum SendError {
    /// The queue of the peer is full. [`Arrival::Writable`] follows.
    #[error("its queue is full: send again when it is writable")]
    Full,
    /// The peer is not connected.
    #[error("it is not connected: send again when it is up")]
    NotUp,
    /// The frame is longer than [`Capabilities::max_frame_len`].
    #[error(
        "a frame of {len} bytes exceeds the limit of {longest}: split it, or raise the limit at all nodes"
    )]
    TooLong {
        /// Length of the frame, in bytes.
        len: usize,
        /// The limit, in bytes.
        longest: usize,
    },
    /// This node has closed its transport.
    #[error("this node has closed its transport")]
    Closed,
}

impl SendError {
    /// Whether the transport may take the same frame later.
    pub fn is_transient(self) -> bool {
        matches!(self, Self::Full | Self::NotUp)
    }
}

/// Reason why nothing will arrive any more.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ReceiveError {
    /// This node has closed its transport.
    #[error("this node has closed its transport")]
    Closed,
    /// The transport has failed; contains a description.
    #[error("the transport has failed: {0}")]
    Failed(String),
}
