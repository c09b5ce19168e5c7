//! State that the tasks of a node share.

use std::collections::{BTreeMap, VecDeque};
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use bytes::Bytes;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, watch};

use super::conn_state::{ConnState, StreamEnd};
use super::error::{ConnectError, RejectedPeers, StartError};
use super::options::GrpcOptions;
use super::send_queue::SendQueue;
use super::tls::CertificateStore;
use super::wire::{FrameCodec, Hello, MAX_PREFIX_LEN};
use crate::buffer_pool::BufferPool;
use crate::frame::Frame;
use crate::inbox::InboxSender;
use crate::transport::{DisconnectReason, NodeId};

/// Shortest time between two warnings about rejected connections.
const LOG_INTERVAL: Duration = Duration::from_secs(5);
/// Shortest time between two equal warnings: same address, same error.
const REPEAT_INTERVAL: Duration = Duration::from_secs(300);

/// Limits how often rejected connections are logged, as anybody can cause them at any rate.
#[derive(Debug, Default)]
struct LogThrottle {
    /// Time, address and error of the last warning.
    last: Option<(Instant, IpAddr, ConnectError)>,
}

impl LogThrottle {
    /// Whether this rejection is to be logged as a warning.
    fn admits(&mut self, address: IpAddr, error: &ConnectError) -> bool {
        let is_due = self.last.as_ref().is_none_or(|(at, last_address, last_error)| {
            let is_new = (*last_address, last_error) != (address, error);
            at.elapsed() >= if is_new { LOG_INTERVAL } else { REPEAT_INTERVAL }
        });
        if is_due {
            self.last = Some((Instant::now(), address, error.clone()));
        }
        is_due
    }
}

/// Bytes by which a frame in an inbox counts for more than its length, so that the number of empty
/// frames is bounded too.
const FRAME_OVERHEAD: usize = 64;

/// Phase of a node's life.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Phase {
    Open,
    /// The node sends the frames in its queues and accepts no more.
    Draining,
    /// The node ends its connections, whatever is queued.
    Terminating,
}

#[derive(Debug)]
pub(super) struct Node {
    pub id: NodeId,
    pub options: GrpcOptions,
    pub tls: Option<CertificateStore>,
    pub inbox: InboxSender<Item>,
    pub buffers: Arc<BufferPool>,
    pub phase: watch::Receiver<Phase>,
    /// Upgraded by each connection for as long as it lives, so that the receiver ends after the
    /// last.
    pub alive: mpsc::WeakSender<()>,
    slots: Mutex<BTreeMap<NodeId, Arc<PeerSlot>>>,
    /// Last error of each peer that this node connects to and that is not up.
    connect_errors: Mutex<BTreeMap<NodeId, ConnectError>>,
    rejected: Mutex<RejectedPeers>,
    log_throttle: Mutex<LogThrottle>,
    /// Connections that have sent no hello, the oldest first.
    pending: Mutex<VecDeque<Arc<ConnState>>>,
}

/// Item of the inbox.
#[derive(Debug)]
pub(super) enum Item {
    Up(Arc<Connection>),
    Frame(Arc<Connection>, Frame),
    Writable(Arc<Connection>),
    /// Contains the permit of the peer's slot: the next connection comes up only after the program
    /// has received this item.
    Down(Arc<Connection>, DisconnectReason, OwnedSemaphorePermit),
}

/// A connection to a peer, from its hello on.
#[derive(Debug)]
pub(super) struct Connection {
    pub peer: NodeId,
    pub send_queue: SendQueue,
    pub slot: Arc<PeerSlot>,
    /// Position among the connections of this peer, from 1.
    number: u64,
}

impl Connection {
    /// Completes when the peer has a newer connection. This one then ends.
    pub async fn replaced(&self) {
        let mut newest = self.slot.newest.subscribe();
        // Fails only without a sender, and the slot owns the sender.
        let _ = newest.wait_for(|&newest| newest > self.number).await;
    }
}

/// State of a peer that its successive connections share.
///
/// A peer that reconnects again and again therefore has no more inbox space than one that stays.
#[derive(Debug)]
pub(super) struct PeerSlot {
    /// Permit of the connection that is up.
    pub up: Arc<Semaphore>,
    /// Free bytes of the inbox.
    inbox: Semaphore,
    max_inbox_bytes: usize,
    /// Number of the newest connection.
    newest: watch::Sender<u64>,
    /// Accepted TCP connection that has this peer's number.
    owner: Mutex<Weak<ConnState>>,
}

impl PeerSlot {
    fn new(options: &GrpcOptions) -> Self {
        let max_inbox_bytes = options.inbox_bytes as usize;
        let (up, inbox) = (Arc::new(Semaphore::new(1)), Semaphore::new(max_inbox_bytes));
        let (newest, owner) = (watch::Sender::new(0), Mutex::default());
        Self { up, inbox, max_inbox_bytes, newest, owner }
    }

    /// Gives the number to an accepted connection once `admit` has succeeded.
    ///
    /// A connection that is open keeps its number: otherwise a stranger could end a node by its number.
    /// One whose node has died without a word is closed by the pings of HTTP/2, so that the node can
    /// return.
    ///
    /// # Errors
    /// [`ConnectError::NumberTaken`] if another connection has the number, and those of `admit`.
    pub fn own(
        &self,
        peer: NodeId,
        state: &Arc<ConnState>,
        admit: impl FnOnce() -> Result<(), ConnectError>,
    ) -> Result<(), ConnectError> {
        let mut owner = lock(&self.owner);
        let other = owner.upgrade().filter(|owner| owner.is_open() && !Arc::ptr_eq(owner, state));
        if let Some(other) = other {
            return Err(ConnectError::NumberTaken { peer, address: other.address });
        }
        admit()?;
        *owner = Arc::downgrade(state);
        Ok(())
    }

    /// Inbox bytes that a frame of `len` bytes counts for: at most the whole inbox, so that a frame
    /// longer than the inbox still fits into an empty one.
    fn cost(&self, len: usize) -> u32 {
        let cost = len.saturating_add(FRAME_OVERHEAD).min(self.max_inbox_bytes);
        u32::try_from(cost).expect("the inbox size is a u32")
    }

    /// Waits until a frame of `len` bytes fits into the inbox and reserves its space.
    pub async fn reserve_inbox(&self, len: usize) {
        let permits = self.inbox.acquire_many(self.cost(len)).await;
        permits.expect("the semaphore is never closed").forget();
    }

    /// Returns the space of a frame that the program has taken.
    pub fn free_inbox(&self, len: usize) {
        self.inbox.add_permits(self.cost(len) as usize);
    }
}

impl Node {
    pub fn new(
        id: NodeId,
        options: GrpcOptions,
        inbox: InboxSender<Item>,
        phase: watch::Receiver<Phase>,
        alive: mpsc::WeakSender<()>,
    ) -> Result<Self, StartError> {
        let tls = options.tls.clone().map(CertificateStore::new).transpose()?;
        let buffers = Arc::new(BufferPool::new(options.pool_bytes));
        Ok(Self {
            id,
            options,
            tls,
            inbox,
            buffers,
            phase,
            alive,
            slots: Mutex::default(),
            connect_errors: Mutex::default(),
            rejected: Mutex::default(),
            log_throttle: Mutex::default(),
            pending: Mutex::default(),
        })
    }

    /// Encodes the hello of this node to `to`.
    pub fn hello(&self, to: NodeId) -> Bytes {
        let max_frame_len = self.options.max_frame_len as u64;
        Hello { from: self.id, to, max_frame_len, token: self.options.token }.encode()
    }

    pub fn codec(&self) -> FrameCodec {
        FrameCodec { longest: self.options.max_frame_len, buffers: Arc::clone(&self.buffers) }
    }

    /// Longest protobuf message, in bytes.
    pub fn longest_message(&self) -> usize {
        self.options.max_frame_len + MAX_PREFIX_LEN
    }

    /// Creates the state of a new connection to `peer`, which is not up yet. It replaces the
    /// earlier connections of that slot.
    pub fn new_connection(&self, peer: NodeId, slot: Arc<PeerSlot>) -> Arc<Connection> {
        let GrpcOptions { queue_frames, queue_bytes, .. } = self.options;
        let send_queue = SendQueue::new(queue_frames, queue_bytes, self.hello(peer));
        let mut number = 0;
        slot.newest.send_modify(|newest| {
            *newest += 1;
            number = *newest;
        });
        Arc::new(Connection { peer, send_queue, slot, number })
    }

    /// Returns the slot of a peer; creates it if the peer has none.
    ///
    /// # Errors
    /// [`ConnectError::TooManyPeers`] if all slots are in use.
    pub fn slot(&self, peer: NodeId) -> Result<Arc<PeerSlot>, ConnectError> {
        let mut slots = lock(&self.slots);
        if let Some(slot) = slots.get(&peer) {
            return Ok(Arc::clone(slot));
        }
        let limit = self.options.max_peers;
        if slots.len() >= limit {
            // Frees the slots of peers without a connection: only this map refers to them.
            slots.retain(|_, slot| Arc::strong_count(slot) > 1);
        }
        if slots.len() >= limit {
            return Err(ConnectError::TooManyPeers { limit });
        }
        let slot = Arc::new(PeerSlot::new(&self.options));
        slots.insert(peer, Arc::clone(&slot));
        Ok(slot)
    }

    /// Records why a peer cannot be connected to, or `None` once it is up. Logs a new reason.
    pub fn set_connect_error(&self, peer: NodeId, error: Option<ConnectError>) {
        let mut errors = lock(&self.connect_errors);
        match error {
            None => drop(errors.remove(&peer)),
            Some(error) if errors.get(&peer) == Some(&error) => {}
            Some(error) => {
                tracing::warn!(node = self.id.0, peer = peer.0, %error, "cannot connect");
                errors.insert(peer, error);
            }
        }
    }

    pub fn connect_error(&self, peer: NodeId) -> Option<ConnectError> {
        lock(&self.connect_errors).get(&peer).cloned()
    }

    /// Counts and logs a rejected connection, once per connection. An error of its byte stream
    /// takes precedence over `error`, as it is the cause.
    pub fn record_rejection(&self, state: &ConnState, error: ConnectError) {
        if !state.count_rejection() {
            return;
        }
        let error = match state.end() {
            Some(StreamEnd::Failed(cause)) => cause,
            Some(StreamEnd::Eof) | None => error,
        };
        if lock(&self.log_throttle).admits(state.address.ip(), &error) {
            tracing::warn!(node = self.id.0, address = %state.address, %error, "connection rejected");
        } else {
            tracing::debug!(node = self.id.0, address = %state.address, %error, "connection rejected");
        }
        let mut rejected = lock(&self.rejected);
        rejected.count += 1;
        rejected.last = Some((state.address, error));
    }

    pub fn rejected(&self) -> RejectedPeers {
        lock(&self.rejected).clone()
    }

    /// Adds a connection that has sent no hello. If there are too many, evicts the oldest.
    pub fn add_pending(&self, state: &Arc<ConnState>) {
        let mut pending = lock(&self.pending);
        pending.retain(|state| state.is_pending());
        if pending.len() >= self.options.max_unauthenticated
            && let Some(oldest) = pending.pop_front()
        {
            oldest.evict();
        }
        pending.push_back(Arc::clone(state));
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // No code panics between two changes under these locks, so a poisoned value is consistent.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use super::super::conn_state::AuthState;
    use super::*;
    use crate::inbox::inbox;

    fn node(options: GrpcOptions) -> Node {
        let (slot, _) = inbox();
        let alive = mpsc::channel(1).0.downgrade();
        let phase = watch::Sender::new(Phase::Open).subscribe();
        Node::new(NodeId(0), options, slot, phase, alive).unwrap()
    }

    #[test]
    fn peers_are_bounded_and_disconnected_ones_free_their_slots() {
        let node = node(GrpcOptions { max_peers: 2, ..GrpcOptions::default() });
        let [first, _second] = [1, 2].map(|peer| node.slot(NodeId(peer)).unwrap());
        assert_eq!(node.slot(NodeId(3)).unwrap_err(), ConnectError::TooManyPeers { limit: 2 });
        assert!(node.slot(NodeId(1)).is_ok(), "it has one");
        drop(first);
        assert!(node.slot(NodeId(3)).is_ok());
    }

    #[test]
    fn the_oldest_unauthenticated_connection_is_evicted() {
        let node = node(GrpcOptions { max_unauthenticated: 2, ..GrpcOptions::default() });
        let address = SocketAddr::from(([127, 0, 0, 1], 1));
        let states = [(); 4].map(|()| ConnState::new(address, AuthState::Unauthenticated));
        node.add_pending(&states[0]);
        node.add_pending(&states[1]);
        states[0].promote(AuthState::Peer);
        node.add_pending(&states[2]);
        node.add_pending(&states[3]);
        let pending = lock(&node.pending);
        let left = [&states[2], &states[3]];
        assert!(pending.iter().zip(left).all(|(state, expected)| Arc::ptr_eq(state, expected)));
        assert_eq!(pending.len(), 2);
    }

    #[test]
    fn a_frame_costs_more_than_its_bytes_and_at_most_the_inbox() {
        let slot = PeerSlot::new(&GrpcOptions { inbox_bytes: 1000, ..GrpcOptions::default() });
        assert_eq!([0, 100, 1000, usize::MAX].map(|len| slot.cost(len)), [64, 164, 1000, 1000]);
    }
}
