//! Counts of frames and bytes by peer.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::frame::Frame;
use crate::transport::{Arrival, NodeId, ReceiveError, SendError, Transport, Unsent, Wait};

/// Counts frames in both directions.
#[derive(Debug)]
pub struct Counting<T> {
    inner: T,
    counts: Counts,
}

/// Number of frames and bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Count {
    /// Number of frames.
    pub frames: u64,
    /// Sum of their bytes.
    pub bytes: u64,
}

impl Count {
    fn add(&mut self, frame: &Frame) {
        self.frames += 1;
        self.bytes += frame.len() as u64;
    }
}

/// Traffic between a node and a peer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Frames that the transport took for the peer.
    pub sent: Count,
    /// Frames that arrived from the peer.
    pub received: Count,
    /// Number of sends that failed because the queue was full.
    pub full: u64,
    /// Number of connections.
    pub ups: u64,
    /// Number of lost connections.
    pub downs: u64,
}

/// Counts of a node. Clones share them, also while the transport is in use elsewhere.
#[derive(Clone, Debug, Default)]
pub struct Counts(Arc<Mutex<BTreeMap<NodeId, Traffic>>>);

impl Counts {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<NodeId, Traffic>> {
        // A poisoned lock is usable: no panic can leave the map inconsistent.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the counts of one peer.
    pub fn of(&self, peer: NodeId) -> Traffic {
        self.lock().get(&peer).copied().unwrap_or_default()
    }

    /// Returns the counts of all peers that were ever connected.
    pub fn all(&self) -> BTreeMap<NodeId, Traffic> {
        self.lock().clone()
    }

    fn note(&self, peer: NodeId, note: impl FnOnce(&mut Traffic)) {
        note(self.lock().entry(peer).or_default());
    }
}

impl<T: Transport> Counting<T> {
    /// Wraps a transport.
    pub fn new(inner: T) -> Self {
        Self { inner, counts: Counts::default() }
    }

    /// Returns the counts.
    pub fn counts(&self) -> Counts {
        self.counts.clone()
    }
}

impl<T: Transport> Transport for Counting<T> {
    inner_does!(id, capabilities, waker, take_buffer, release, close);

    fn send(&mut self, to: NodeId, frame: Frame) -> Result<(), Unsent> {
        let mut count = Count::default();
        count.add(&frame);
        let sent = self.inner.send(to, frame);
        match &sent {
            Ok(()) => self.counts.note(to, |traffic| {
                traffic.sent.frames += count.frames;
                traffic.sent.bytes += count.bytes;
            }),
            Err(Unsent { error: SendError::Full, .. }) => {
                self.counts.note(to, |traffic| traffic.full += 1);
            }
            Err(_) => {}
        }
        sent
    }

    fn receive(&mut self, wait: Wait) -> Result<Option<Arrival>, ReceiveError> {
        let arrival = self.inner.receive(wait)?;
        match &arrival {
            Some(Arrival::Up { peer }) => self.counts.note(*peer, |traffic| traffic.ups += 1),
            Some(Arrival::Down { peer, .. }) => {
                self.counts.note(*peer, |traffic| traffic.downs += 1);
            }
            Some(Arrival::Frame { peer, frame }) => {
                self.counts.note(*peer, |traffic| traffic.received.add(frame));
            }
            Some(Arrival::Writable { .. } | Arrival::Woken) | None => {}
        }
        Ok(arrival)
    }
}
