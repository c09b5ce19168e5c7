//! Queue of future events, by time.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use super::network::FrameInFlight;
use crate::time::Time;
use crate::transport::NodeId;

/// A future event.
#[derive(Debug)]
pub(super) enum SimEvent {
    /// A frame arrives, or would have arrived if it were not lost.
    Arrival(FrameInFlight),
    /// A sender whose queue was full can send again.
    Writable { from: NodeId, to: NodeId, epoch: u64 },
    /// A node receives `Down` for a peer.
    Notice { at: NodeId, of: NodeId, epoch: u64 },
    /// A cut ends, unless there was another since it began.
    Mend { a: NodeId, b: NodeId, serial: u64 },
    /// A silence ends, unless there was another since it began.
    Unsilence { from: NodeId, to: NodeId, serial: u64 },
    /// A node that crashed in this generation restarts.
    Start { id: NodeId, generation: u64 },
    /// A timer of an endpoint expires.
    Tick { id: NodeId, generation: u64 },
    /// A timer of a program expires.
    Timer { id: NodeId, generation: u64, timer: u64 },
    /// A random failure happens.
    Fault { fault: Fault, serial: u64 },
}

/// Kind of a random failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    Cut,
    Silence,
    Crash,
}

/// Events by time; events of the same time in the order in which they were added.
#[derive(Debug, Default)]
pub(super) struct EventQueue {
    heap: BinaryHeap<Entry>,
    added: u64,
}

#[derive(Debug)]
struct Entry {
    time: Time,
    number: u64,
    event: SimEvent,
}

impl EventQueue {
    pub fn add(&mut self, time: Time, event: SimEvent) {
        // Events at `Time::NEVER` never happen.
        if time < Time::NEVER {
            self.heap.push(Entry { time, number: self.added, event });
            self.added += 1;
        }
    }

    pub fn next_time(&self) -> Time {
        self.heap.peek().map_or(Time::NEVER, |entry| entry.time)
    }

    pub fn pop(&mut self) -> Option<(Time, SimEvent)> {
        self.heap.pop().map(|entry| (entry.time, entry.event))
    }
}

impl Ord for Entry {
    /// The earliest is the greatest, since the heap returns the greatest first.
    fn cmp(&self, other: &Self) -> Ordering {
        (other.time, other.number).cmp(&(self.time, self.number))
    }
}

impl PartialOrd for Entry {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Entry {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Entry {}
