//! How many requests to a peer may be open: who makes one too many waits, and memory does not grow.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError};
use std::time::Instant;

use crate::sync::{Condvar, Mutex, MutexGuard};
use crate::transport::NodeId;

#[derive(Debug)]
pub(super) struct Slots {
    most: usize,
    taken: Mutex<Taken>,
    freed: Condvar,
}

#[derive(Debug, Default)]
struct Taken {
    peers: BTreeMap<NodeId, usize>,
    /// Threads that wait for any of them.
    waiting: usize,
}

/// The right to one request to a peer, until it is dropped.
#[derive(Debug)]
pub(super) struct Permit {
    slots: Arc<Slots>,
    peer: NodeId,
}

impl Slots {
    pub fn new(most: usize) -> Arc<Self> {
        Arc::new(Self { most, taken: Mutex::new(Taken::default()), freed: Condvar::new() })
    }

    fn taken(&self) -> MutexGuard<'_, Taken> {
        // Nothing is left half done under this lock.
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for a slot until then; not at all where there is no such time.
    pub fn acquire(self: &Arc<Self>, peer: NodeId, until: Option<Instant>) -> Option<Permit> {
        let mut taken = self.taken();
        loop {
            let count = taken.peers.entry(peer).or_default();
            if *count < self.most {
                *count += 1;
                return Some(Permit { slots: Arc::clone(self), peer });
            }
            let left = until?.checked_duration_since(Instant::now())?;
            taken.waiting += 1;
            taken = self.freed.wait_timeout(taken, left).unwrap_or_else(PoisonError::into_inner).0;
            taken.waiting -= 1;
        }
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        let mut taken = self.slots.taken();
        if let Some(count) = taken.peers.get_mut(&self.peer) {
            *count -= 1;
            if *count == 0 {
                taken.peers.remove(&self.peer);
            }
        }
        if taken.waiting > 0 {
            self.slots.freed.notify_all();
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use std::thread;
    use std::time::Duration;

    use super::*;

    #[test]
    fn one_too_many_waits() {
        let slots = Slots::new(2);
        let take = |peer| slots.acquire(NodeId(peer), None);
        let (first, second) = (take(1), take(1));
        assert!(first.is_some() && second.is_some() && take(1).is_none() && take(2).is_some());
        let soon = Instant::now() + Duration::from_millis(5);
        assert!(slots.acquire(NodeId(1), Some(soon)).is_none());
        let later = Instant::now() + Duration::from_secs(60);
        thread::scope(|scope| {
            let waits = scope.spawn(|| slots.acquire(NodeId(1), Some(later)).is_some());
            drop(first);
            assert!(waits.join().unwrap());
        });
        drop(second);
        assert!(slots.taken().peers.is_empty());
    }
}

#[cfg(all(test, loom))]
mod loom_tests {
    use std::time::Duration;

    use loom::thread;

    use super::*;

    #[test]
    fn loom_who_waits_for_a_slot_gets_it() {
        loom::model(|| {
            let slots = Slots::new(1);
            // Nothing times out under loom: who is not woken waits for ever, which it says.
            let later = Some(Instant::now() + Duration::from_secs(3600));
            let take = move |slots: &Arc<Slots>| slots.acquire(NodeId(1), later).is_some();
            let others = [0, 1].map(|_| {
                let slots = Arc::clone(&slots);
                thread::spawn(move || assert!(take(&slots)))
            });
            assert!(take(&slots));
            others.into_iter().for_each(|other| other.join().unwrap());
            assert!(slots.taken().peers.is_empty());
        });
    }
}
