//! Transport between nodes in one process. Frames are passed on without a copy.
//!
//! Each node has one inbox, an unbounded channel. It is bounded by links, one for each ordered pair
//! of nodes, which count the frames in flight. A thousand connected nodes therefore cost a link per
//! pair and no queues, and a node waits for all its peers at once.
//!
//! Nodes may come and go at any time: [`Hub::join`] adds one, and dropping it removes it. A node
//! that joins with the number of one that has left is the same peer to the others.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Waker;
use std::time::Duration;

use crossbeam_queue::ArrayQueue;
use thiserror::Error;

use crate::frame::Frame;
use crate::inbox::{Inbox, InboxSender, Receiving, inbox};
use crate::transport::{
    Arrival, Capabilities, DisconnectReason, NodeId, ReceiveError, SendError, Transport, Unsent,
    Wait,
};

mod link;

use link::Link;

/// Limits of a [`Hub`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Options {
    /// Longest frame, in bytes.
    pub max_frame_len: usize,
    /// Maximum number of frames in flight from one node to another.
    pub queue_frames: usize,
    /// Maximum bytes in flight from one node to another; a single frame may be longer.
    pub queue_bytes: usize,
    /// Maximum number of released buffers that are kept for reuse, by all nodes together.
    pub pool_buffers: usize,
    /// Maximum bytes of these buffers.
    pub pool_bytes: usize,
}

impl Default for Options {
    /// Frames of 1 GiB; 256 frames and 64 MiB in flight per pair; 1,024 buffers of 256 MiB in all.
    fn default() -> Self {
        Self {
            max_frame_len: 1 << 30,
            queue_frames: 256,
            queue_bytes: 64 << 20,
            pool_buffers: 1 << 10,
            pool_bytes: 256 << 20,
        }
    }
}

/// Error of a node that joins with a number in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("{0} has joined already and has not left: give every node a number of its own")]
pub struct NodeIdInUse(pub NodeId);

/// Creates nodes 0 to `nodes`, connected with each other.
///
/// # Panics
/// If an option is 0.
pub fn mesh(nodes: u32, options: &Options) -> Vec<Local> {
    let hub = Hub::new(options);
    (0..nodes).map(|id| hub.join(NodeId(id)).expect("each number is used once")).collect()
}

/// Set of nodes of a process that are connected with each other.
#[derive(Clone, Debug)]
pub struct Hub(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    options: Options,
    members: Mutex<BTreeMap<NodeId, InboxSender<Item>>>,
    pool_buffers: ArrayQueue<Vec<u8>>,
    pool_bytes: AtomicUsize,
}

/// Item of an inbox.
#[derive(Debug)]
enum Item {
    Up { peer: NodeId, link: Arc<Link>, inbox: InboxSender<Item> },
    Frame { peer: NodeId, frame: Frame, link: Arc<Link> },
    Writable { peer: NodeId, link: Arc<Link> },
    Down { peer: NodeId },
}

impl Hub {
    /// Creates a hub without nodes.
    ///
    /// # Panics
    /// If an option is 0.
    pub fn new(options: &Options) -> Self {
        let Options { max_frame_len, queue_frames, queue_bytes, pool_buffers, pool_bytes } =
            *options;
        let bounds = [max_frame_len, queue_frames, queue_bytes, pool_buffers, pool_bytes];
        let least = bounds.into_iter().min().unwrap_or_default();
        assert!(least > 0, "an option is 0: {options:?}");
        Self(Arc::new(Shared {
            options: options.clone(),
            members: Mutex::default(),
            pool_buffers: ArrayQueue::new(pool_buffers),
            pool_bytes: AtomicUsize::new(0),
        }))
    }

    /// Adds a node and connects it with all others.
    ///
    /// # Errors
    /// [`NodeIdInUse`].
    pub fn join(&self, id: NodeId) -> Result<Local, NodeIdInUse> {
        let mut members = self.0.members();
        if members.contains_key(&id) {
            return Err(NodeIdInUse(id));
        }
        let (slot, inbox) = inbox();
        for (&peer, theirs) in members.iter() {
            let (there, back) = (Arc::new(Link::default()), Arc::new(Link::default()));
            // INVARIANT: the new node first. A member may send to it as soon as it has received
            // `Up`, and that frame must come after the `Up` of the member.
            let _ = slot.put(Item::Up { peer, link: there, inbox: theirs.clone() });
            // No member leaves while the lock is held, so neither put fails.
            let _ = theirs.put(Item::Up { peer: id, link: back, inbox: slot.clone() });
        }
        members.insert(id, slot);
        drop(members);
        let (waker, peers) = (inbox.waker(), BTreeMap::new());
        Ok(Local { id, hub: self.clone(), inbox: Some(inbox), waker, peers })
    }
}

impl Shared {
    fn members(&self) -> MutexGuard<'_, BTreeMap<NodeId, InboxSender<Item>>> {
        // A poisoned lock is usable: no panic can leave the map inconsistent.
        self.members.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A node of a [`Hub`].
#[derive(Debug)]
pub struct Local {
    id: NodeId,
    hub: Hub,
    /// `None` once closed.
    inbox: Option<Inbox<Item>>,
    waker: Waker,
    /// Connected peers.
    peers: BTreeMap<NodeId, Peer>,
}

#[derive(Debug)]
struct Peer {
    link: Arc<Link>,
    inbox: InboxSender<Item>,
}

impl Receiving<Item> for Local {
    fn inbox(&self) -> Option<&Inbox<Item>> {
        self.inbox.as_ref()
    }

    fn arrival(&mut self, item: Item) -> Option<Arrival> {
        match item {
            Item::Up { peer, link, inbox } => {
                self.peers.insert(peer, Peer { link, inbox });
                Some(Arrival::Up { peer })
            }
            Item::Frame { peer, frame, link } => {
                if link.take(frame.len(), &self.hub.0.options)
                    && let Some(back) = self.peers.get(&peer)
                {
                    let _ = back.inbox.put(Item::Writable { peer: self.id, link });
                }
                Some(Arrival::Frame { peer, frame })
            }
            // Ignored if it belongs to an earlier connection, which has another link.
            Item::Writable { peer, link } => {
                let current = self.peers.get(&peer)?;
                Arc::ptr_eq(&current.link, &link).then_some(Arrival::Writable { peer })
            }
            Item::Down { peer } => {
                self.peers.remove(&peer)?;
                Some(Arrival::Down { peer, reason: DisconnectReason::Closed })
            }
        }
    }
}

impl Transport for Local {
    fn id(&self) -> NodeId {
        self.id
    }

    fn capabilities(&self) -> Capabilities {
        let Options { max_frame_len, queue_bytes, .. } = self.hub.0.options;
        Capabilities {
            reconnects: true,
            survives_loss: true,
            encrypted: true,
            ..Capabilities::new(max_frame_len, queue_bytes)
        }
    }

    fn send(&mut self, to: NodeId, frame: Frame) -> Result<(), Unsent> {
        let bounds = &self.hub.0.options;
        let refuse = |frame, error| Err(Unsent { to, frame, error });
        if self.inbox.is_none() {
            return refuse(frame, SendError::Closed);
        }
        let Some(peer) = self.peers.get(&to) else { return refuse(frame, SendError::NotUp) };
        let len = frame.len();
        if len > bounds.max_frame_len {
            return refuse(frame, SendError::TooLong { len, longest: bounds.max_frame_len });
        }
        if !peer.link.put(len, bounds) {
            return refuse(frame, SendError::Full);
        }
        let link = Arc::clone(&peer.link);
        match peer.inbox.put(Item::Frame { peer: self.id, frame, link }) {
            Ok(()) => Ok(()),
            Err(Item::Frame { frame, .. }) => refuse(frame, SendError::NotUp),
            Err(_) => unreachable!("the inbox returns the item"),
        }
    }

    fn receive(&mut self, wait: Wait) -> Result<Option<Arrival>, ReceiveError> {
        self.next_arrival(wait)
    }

    fn waker(&self) -> Waker {
        self.waker.clone()
    }

    fn take_buffer(&mut self) -> Vec<u8> {
        let shared = &self.hub.0;
        let buffer = shared.pool_buffers.pop().unwrap_or_default();
        shared.pool_bytes.fetch_sub(buffer.capacity(), Relaxed);
        buffer
    }

    fn release(&mut self, frame: Frame) {
        let Ok(mut buffer) = frame.into_vec() else { return };
        buffer.clear();
        let (shared, bytes) = (&self.hub.0, buffer.capacity());
        // INVARIANT: counted before it is added, so that `take_buffer` never subtracts it first. A
        // buffer that exceeds the limit is freed.
        let before = shared.pool_bytes.fetch_add(bytes, Relaxed);
        let fits = before.saturating_add(bytes) <= shared.options.pool_bytes;
        if !fits || shared.pool_buffers.push(buffer).is_err() {
            shared.pool_bytes.fetch_sub(bytes, Relaxed);
        }
    }

    /// Does not wait: the frames that were taken are in the inboxes of the peers already.
    fn close(&mut self, _patience: Duration) {
        let Some(inbox) = self.inbox.take() else { return };
        let mut members = self.hub.0.members();
        members.remove(&self.id);
        for peer in members.values() {
            let _ = peer.put(Item::Down { peer: self.id });
        }
        drop(members);
        // PERF: dropped after the lock is released, since freeing long frames takes time.
        drop(inbox);
        self.peers.clear();
    }
}

impl Drop for Local {
    fn drop(&mut self) {
        self.close(Duration::ZERO);
    }
}
