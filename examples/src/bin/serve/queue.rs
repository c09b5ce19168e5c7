//! A queue with a last place: requests on their way from connections to threads.
//!
//! Whoever comes when it is full is told so at once and does not wait: the service's memory and the
//! longest wait are bounded by its length. A lock and a condition, held for a push or a pop.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// What a taker gets.
#[derive(Debug, PartialEq, Eq)]
pub enum Turn<T> {
    /// The oldest item.
    Item(T),
    /// Nothing, but [`Queue::renew`] was called: let go of what is kept between items.
    Renew,
    /// Nothing, and there will be no more.
    Closed,
}

/// See the [module](self).
#[derive(Debug)]
pub struct Queue<T> {
    state: Mutex<State<T>>,
    changed: Condvar,
    limit: usize,
}

#[derive(Debug)]
struct State<T> {
    items: VecDeque<T>,
    renewals: u64,
    closed: bool,
}

impl<T> Queue<T> {
    /// With so many places.
    pub fn new(limit: usize) -> Self {
        let state = State { items: VecDeque::new(), renewals: 0, closed: false };
        Self { state: Mutex::new(state), changed: Condvar::new(), limit }
    }

    /// Places.
    pub fn limit(&self) -> usize {
        self.limit
    }

    /// Items that wait.
    pub fn len(&self) -> usize {
        self.state().items.len()
    }

    /// Puts an item behind the others; gives it back where there is no place, or it is closed.
    pub fn push(&self, item: T) -> Result<(), T> {
        let mut state = self.state();
        if state.closed || state.items.len() >= self.limit {
            return Err(item);
        }
        state.items.push_back(item);
        drop(state);
        self.changed.notify_one();
        Ok(())
    }

    /// Takes the oldest item, and waits for one. `seen` is the taker's: the renewals it knows of.
    pub fn take(&self, seen: &mut u64) -> Turn<T> {
        let mut state = self.state();
        loop {
            if let Some(item) = state.items.pop_front() {
                return Turn::Item(item);
            }
            if state.closed {
                return Turn::Closed;
            }
            if *seen != state.renewals {
                *seen = state.renewals;
                return Turn::Renew;
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Gives every idle taker a turn without an item.
    pub fn renew(&self) {
        self.state().renewals += 1;
        self.changed.notify_all();
    }

    /// Takes no more items; those that wait are still given out.
    pub fn close(&self) {
        self.state().closed = true;
        self.changed.notify_all();
    }

    /// No code that may panic runs under the lock.
    fn state(&self) -> MutexGuard<'_, State<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_full_and_empty_in_order() {
        let queue = Queue::new(2);
        assert_eq!((queue.push(1), queue.push(2), queue.push(3)), (Ok(()), Ok(()), Err(3)));
        let mut seen = 0;
        assert_eq!(queue.take(&mut seen), Turn::Item(1));
        queue.renew();
        assert_eq!(queue.push(4), Ok(()));
        // Work comes first.
        assert_eq!([queue.take(&mut seen), queue.take(&mut seen)], [Turn::Item(2), Turn::Item(4)]);
        assert_eq!(queue.take(&mut seen), Turn::Renew);
        assert_eq!(queue.push(5), Ok(()));
        queue.close();
        assert_eq!(queue.push(6), Err(6));
        assert_eq!([queue.take(&mut seen), queue.take(&mut seen)], [Turn::Item(5), Turn::Closed]);
        assert_eq!(queue.len(), 0);
    }

    #[test]
    fn takers_that_wait_are_woken() {
        let queue = Queue::new(8);
        let sum = std::thread::scope(|scope| {
            let taker = || {
                let (mut sum, mut renewals, mut seen) = (0, 0, 0);
                loop {
                    match queue.take(&mut seen) {
                        Turn::Item(item) => sum += item,
                        Turn::Renew => renewals += 1,
                        Turn::Closed => return (sum, renewals),
                    }
                }
            };
            let takers = [scope.spawn(taker), scope.spawn(taker)];
            for item in 1..=1000 {
                while queue.push(item).is_err() {
                    std::thread::yield_now();
                }
            }
            queue.renew();
            queue.close();
            takers.map(|taker| taker.join().unwrap().0).iter().sum::<i32>()
        });
        assert_eq!(sum, 500_500);
    }
}
