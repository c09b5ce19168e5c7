//! What is going to happen, by time.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use super::network::FrameInFlight;
use crate::time::Time;
use crate::transport::NodeId;

/// What happens at a time.
#[derive(Debug)]
pub(super) enum SimEvent {
    /// A frame arrives, or would have.
    Arrival(FrameInFlight),
    /// A sender that was told that there is no room hears that there is.
    Writable { from: NodeId, to: NodeId, epoch: u64 },
    /// A node hears that it has lost another.
    Notice { at: NodeId, of: NodeId, epoch: u64 },
    /// A cut ends, unless there was another since.
    Mend { a: NodeId, b: NodeId, serial: u64 },
    /// So does a silence.
    Unsilence { from: NodeId, to: NodeId, serial: u64 },
    /// A node that crashed in its `life` starts again.
    Start { id: NodeId, life: u64 },
    /// An endpoint's timer.
    Tick { id: NodeId, life: u64 },
    /// A program's.
    Timer { id: NodeId, life: u64, timer: u64 },
    /// Something fails.
    Fault { fault: Fault, serial: u64 },
}

/// What fails by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    Cut,
    Silence,
    Crash,
}

/// A queue by time; of what has one time, what was added first.
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
        // What never comes need not be waited for.
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
    /// The earliest is the greatest, as a heap gives that first.
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
