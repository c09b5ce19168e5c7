//! Random faults, by a seed.

use std::collections::{BTreeMap, VecDeque};
use std::time::{Duration, Instant};

use crate::frame::Frame;
use crate::split_mix::SplitMix64;
use crate::transport::{
    Arrival, Capabilities, DisconnectReason, NodeId, ReceiveError, SendError, Transport, Unsent,
    Wait,
};

/// Rates of faults per arriving frame, in thousandths.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Faults {
    /// It is lost silently.
    pub lost: u32,
    /// It arrives twice.
    pub doubled: u32,
    /// One of its bits is flipped.
    pub changed: u32,
    /// It is lost and its sender is disconnected; the sender is connected again after
    /// [`away`](Self::away) and does not notice.
    pub cut: u32,
    /// Time for which a peer is disconnected.
    pub away: Duration,
}

/// Applies random faults to arrivals. The same seed affects the same frames if they arrive in the
/// same order.
#[derive(Debug)]
pub struct Failing<T> {
    inner: T,
    faults: Faults,
    rng: SplitMix64,
    ready: VecDeque<Arrival>,
    /// Disconnected peers, and the end of their absence.
    away: BTreeMap<NodeId, Instant>,
    done: Faults,
}

impl<T: Transport> Failing<T> {
    /// Wraps a transport.
    pub fn new(inner: T, faults: Faults, seed: u64) -> Self {
        let (ready, away, done) = Default::default();
        Self { inner, faults, rng: SplitMix64::new(seed), ready, away, done }
    }

    /// Returns the number of frames with each fault so far; `away` is zero.
    pub fn done(&self) -> Faults {
        self.done
    }

    /// Applies a random fault, or none, to a frame.
    fn apply(&mut self, peer: NodeId, frame: Frame) {
        let Faults { lost, doubled, changed, cut, away } = self.faults;
        let number = self.rng.below(1000) as u32;
        let before = |sum: u32| number < sum;
        if before(lost) {
            self.done.lost += 1;
        } else if before(lost + doubled) {
            self.done.doubled += 1;
            self.ready.push_back(Arrival::Frame { peer, frame: frame.clone() });
            self.ready.push_back(Arrival::Frame { peer, frame });
        } else if before(lost + doubled + changed) && !frame.is_empty() {
            self.done.changed += 1;
            let mut bytes = frame.to_vec();
            let bit = self.rng.below(8 * bytes.len() as u64);
            bytes[(bit / 8) as usize] ^= 1 << (bit % 8);
            self.ready.push_back(Arrival::Frame { peer, frame: Frame::from(bytes) });
        } else if before(lost + doubled + changed + cut) {
            self.done.cut += 1;
            let reason = DisconnectReason::Broken("cut off on purpose".to_owned());
            self.away.insert(peer, Instant::now() + away);
            self.ready.push_back(Arrival::Down { peer, reason });
        } else {
            self.ready.push_back(Arrival::Frame { peer, frame });
        }
    }

    /// Reconnects the peers whose absence is over. Returns the time of the next.
    fn reconnect(&mut self) -> Option<Instant> {
        let now = Instant::now();
        let back: Vec<NodeId> =
            self.away.iter().filter(|(_, until)| **until <= now).map(|(peer, _)| *peer).collect();
        for peer in back {
            self.away.remove(&peer);
            self.ready.push_back(Arrival::Up { peer });
        }
        self.away.values().min().copied()
    }

    fn take(&mut self, arrival: Arrival) {
        match arrival {
            Arrival::Frame { peer, frame } if !self.away.contains_key(&peer) => {
                self.apply(peer, frame);
            }
            Arrival::Frame { .. } => {}
            // The peer is disconnected already.
            Arrival::Down { peer, .. } if self.away.remove(&peer).is_some() => {}
            Arrival::Writable { peer } if self.away.contains_key(&peer) => {}
            other => self.ready.push_back(other),
        }
    }
}

impl<T: Transport> Transport for Failing<T> {
    inner_does!(id, waker, take_buffer, release);

    fn capabilities(&self) -> Capabilities {
        Capabilities { reconnects: true, ..self.inner.capabilities() }
    }

    fn send(&mut self, to: NodeId, frame: Frame) -> Result<(), Unsent> {
        if self.away.contains_key(&to) {
            return Err(Unsent { to, frame, error: SendError::NotUp });
        }
        self.inner.send(to, frame)
    }

    fn receive(&mut self, wait: Wait) -> Result<Option<Arrival>, ReceiveError> {
        let until = super::end_of(wait);
        loop {
            let next = self.reconnect();
            if let Some(arrival) = self.ready.pop_front() {
                return Ok(Some(arrival));
            }
            let now = Instant::now();
            let next = [next, until].into_iter().flatten().min();
            let left = next.map(|next| next.saturating_duration_since(now));
            let wait = match left {
                None => Wait::Forever,
                Some(Duration::ZERO) => Wait::No,
                Some(left) => Wait::For(left),
            };
            match self.inner.receive(wait)? {
                Some(arrival) => self.take(arrival),
                None if until.is_some_and(|until| Instant::now() >= until) => {
                    self.reconnect();
                    return Ok(self.ready.pop_front());
                }
                None => {}
            }
        }
    }

    fn close(&mut self, patience: Duration) {
        self.ready.clear();
        self.inner.close(patience);
    }
}
