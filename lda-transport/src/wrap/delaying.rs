//! Delayed arrivals.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use crate::frame::Frame;
use crate::transport::{Arrival, Capabilities, NodeId, ReceiveError, Transport, Unsent, Wait};

/// Delays all arrivals by a fixed time, in order. If both nodes use it, a round trip takes twice
/// that time longer.
///
/// It delays at most [`Capabilities::queue_bytes`] of all peers together and takes no more from the
/// transport meanwhile, so it also limits the rate, as a long connection does.
#[derive(Debug)]
pub struct Delaying<T> {
    inner: T,
    delay: Duration,
    held: VecDeque<(Instant, Arrival)>,
    /// Bytes of the frames among them.
    bytes: usize,
    max_bytes: usize,
    /// Error of the transport, to be returned after all delayed arrivals.
    ended: Option<ReceiveError>,
}

impl<T: Transport> Delaying<T> {
    /// Wraps a transport.
    pub fn new(inner: T, delay: Duration) -> Self {
        let max_bytes = inner.capabilities().queue_bytes;
        Self { inner, delay, held: VecDeque::new(), bytes: 0, max_bytes, ended: None }
    }

    /// Takes an arrival from the transport. Returns it if it is not delayed.
    fn take(&mut self, wait: Wait) -> Option<Arrival> {
        match self.inner.receive(wait) {
            Ok(Some(Arrival::Woken)) => return Some(Arrival::Woken),
            Ok(Some(arrival)) => {
                self.bytes += len(&arrival);
                self.held.push_back((Instant::now() + self.delay, arrival));
            }
            Ok(None) => {}
            Err(error) => self.ended = Some(error),
        }
        None
    }
}

fn len(arrival: &Arrival) -> usize {
    if let Arrival::Frame { frame, .. } = arrival { frame.len() } else { 0 }
}

impl<T: Transport> Transport for Delaying<T> {
    inner_does!(id, waker, take_buffer, release);

    fn capabilities(&self) -> Capabilities {
        let inner = self.inner.capabilities();
        Capabilities { queue_bytes: inner.queue_bytes.saturating_mul(2), ..inner }
    }

    fn send(&mut self, to: NodeId, frame: Frame) -> Result<(), Unsent> {
        self.inner.send(to, frame)
    }

    fn receive(&mut self, wait: Wait) -> Result<Option<Arrival>, ReceiveError> {
        let until = super::end_of(wait);
        loop {
            let now = Instant::now();
            if let Some((due, _)) = self.held.front()
                && *due <= now
            {
                let arrival = self.held.pop_front().map(|(_, arrival)| arrival);
                self.bytes -= arrival.as_ref().map_or(0, len);
                return Ok(arrival);
            }
            let due = self.held.front().map(|held| held.0);
            let full = self.bytes > self.max_bytes;
            if let Some(error) = self.ended.clone().filter(|_| due.is_none()) {
                return Err(error);
            }
            let next = [due, until].into_iter().flatten().min();
            let left = next.map(|next| next.saturating_duration_since(now));
            if full || self.ended.is_some() {
                // There are delayed arrivals, so `left` is known. A wake-up is noticed after this
                // sleep.
                std::thread::sleep(left.unwrap_or_default().min(Duration::from_millis(1)));
            } else if let Some(woken) = self.take(left.map_or(Wait::Forever, Wait::For)) {
                return Ok(Some(woken));
            }
            let over = until.is_some_and(|until| Instant::now() >= until);
            let ready = match self.held.front() {
                Some((due, _)) => *due <= Instant::now(),
                None => self.ended.is_some(),
            };
            if over && !ready {
                return Ok(None);
            }
        }
    }

    fn close(&mut self, patience: Duration) {
        self.held.clear();
        self.bytes = 0;
        self.inner.close(patience);
    }
}
