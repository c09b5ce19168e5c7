//! Bounded queue of requests between connections and inference threads.
//!
//! A push to a full queue fails at once and does not wait, so that the length bounds memory and the
//! longest wait. A mutex and a condition variable, locked for one push or pop.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// Result of [`Queue::take`].
#[derive(Debug, PartialEq, Eq)]
pub enum QueueItem<T> {
    /// The oldest item.
    Work(T),
    /// No item, but [`Queue::flush`] was called: drop state that is cached between items.
    Flush,
}

/// A bounded queue; see the [module](self).
#[derive(Debug)]
pub struct Queue<T> {
    state: Mutex<State<T>>,
    changed: Condvar,
    limit: usize,
}

#[derive(Debug)]
struct State<T> {
    items: VecDeque<T>,
    flushes: u64,
}

impl<T> Queue<T> {
    /// A queue of at most `limit` items.
    pub fn new(limit: usize) -> Self {
        let state = State { items: VecDeque::new(), flushes: 0 };
        Self { state: Mutex::new(state), changed: Condvar::new(), limit }
    }

    /// Maximum number of items.
    pub fn limit(&self) -> usize {
        self.limit
    }

    /// Number of queued items.
    pub fn len(&self) -> usize {
        self.state().items.len()
    }

    /// Appends an item; returns it if the queue is full. A full queue first drops the items that are
    /// not wanted any more.
    pub fn push(&self, item: T, is_wanted: impl Fn(&T) -> bool) -> Result<(), T> {
        let mut state = self.state();
        if state.items.len() >= self.limit {
            state.items.retain(is_wanted);
        }
        if state.items.len() >= self.limit {
            return Err(item);
        }
        state.items.push_back(item);
        drop(state);
        self.changed.notify_one();
        Ok(())
    }

    /// Takes the oldest item, waiting for one. `seen` is the number of flushes that this thread has
    /// handled.
    pub fn take(&self, seen: &mut u64) -> QueueItem<T> {
        let mut state = self.state();
        loop {
            if let Some(item) = state.items.pop_front() {
                return QueueItem::Work(item);
            }
            if *seen != state.flushes {
                *seen = state.flushes;
                return QueueItem::Flush;
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Wakes every idle thread with [`QueueItem::Flush`].
    pub fn flush(&self) {
        self.state().flushes += 1;
        self.changed.notify_all();
    }

    // INVARIANT: no code that may panic runs while the lock is held, so a poisoned state is whole.
    fn state(&self) -> MutexGuard<'_, State<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_are_taken_in_order_and_the_length_is_bounded() {
        let queue = Queue::new(2);
        let push = |item| queue.push(item, |_| true);
        assert_eq!((push(1), push(2), push(3)), (Ok(()), Ok(()), Err(3)));
        let mut seen = 0;
        assert_eq!(queue.take(&mut seen), QueueItem::Work(1));
        queue.flush();
        assert_eq!(push(4), Ok(()));
        // Work comes first.
        assert_eq!(
            [queue.take(&mut seen), queue.take(&mut seen)],
            [QueueItem::Work(2), QueueItem::Work(4)]
        );
        assert_eq!(queue.take(&mut seen), QueueItem::Flush);
        assert_eq!(queue.len(), 0);
    }

    #[test]
    fn a_full_queue_drops_unwanted_items() {
        let queue = Queue::new(3);
        let push = |item| queue.push(item, |item| item % 2 == 0);
        assert_eq!([1, 2, 3, 4, 6].map(push), [Ok(()); 5]);
        assert_eq!(push(8), Err(8));
        let mut seen = 0;
        assert_eq!(queue.take(&mut seen), QueueItem::Work(2));
    }

    #[test]
    fn waiting_threads_are_woken() {
        let queue = Queue::new(8);
        let sum = std::thread::scope(|scope| {
            // Until there is a 0.
            let taker = || {
                let (mut sum, mut seen) = (0, 0);
                loop {
                    match queue.take(&mut seen) {
                        QueueItem::Work(0) => return sum,
                        QueueItem::Work(item) => sum += item,
                        QueueItem::Flush => {}
                    }
                }
            };
            let takers = [scope.spawn(taker), scope.spawn(taker)];
            for item in (1..=1000).chain([0, 0]) {
                while queue.push(item, |_| true).is_err() {
                    std::thread::yield_now();
                }
                queue.flush();
            }
            takers.map(|taker| taker.join().unwrap()).iter().sum::<i32>()
        });
        assert_eq!(sum, 500_500);
    }
}
