//! Frames and bytes, by peer.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::frame::Frame;
use crate::transport::{Arrival, NodeId, ReceiveError, SendError, Transport, Unsent, Wait};

/// Counts what goes and comes.
#[derive(Debug)]
pub struct Counting<T> {
    inner: T,
    counts: Counts,
}

/// Frames, and their bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Count {
    /// How many.
    pub frames: u64,
    /// Of them together.
    pub bytes: u64,
}

impl Count {
    fn add(&mut self, frame: &Frame) {
        self.frames += 1;
        self.bytes += frame.len() as u64;
    }
}

/// What has gone to and fro between a node and a peer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Frames that were taken for it.
    pub sent: Count,
    /// Frames of it.
    pub received: Count,
    /// Frames that were not taken, as there was no room.
    pub full: u64,
    /// How often it came up.
    pub ups: u64,
    /// How often it was lost.
    pub downs: u64,
}

/// The counts of a node. A clone has the same, wherever the transport is.
#[derive(Clone, Debug, Default)]
pub struct Counts(Arc<Mutex<BTreeMap<NodeId, Traffic>>>);

impl Counts {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<NodeId, Traffic>> {
        // Nothing is left half done under this lock.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Those of one peer.
    pub fn of(&self, peer: NodeId) -> Traffic {
        self.lock().get(&peer).copied().unwrap_or_default()
    }

    /// Those of all that were ever heard of.
    pub fn all(&self) -> BTreeMap<NodeId, Traffic> {
        self.lock().clone()
    }

    fn note(&self, peer: NodeId, note: impl FnOnce(&mut Traffic)) {
        note(self.lock().entry(peer).or_default());
    }
}

impl<T: Transport> Counting<T> {
    /// Around a transport.
    pub fn new(inner: T) -> Self {
        Self { inner, counts: Counts::default() }
    }

    /// What it counts.
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
            Some(Arrival::Writable { .. } | Arrival::Together { .. } | Arrival::Woken) | None => {}
        }
        Ok(arrival)
    }
}
