//! Inbox of a node: the queue of its arrivals, and the waker of the thread that receives them.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Wake, Waker};
use std::time::Instant;

use crossbeam_channel::{Receiver, Sender, unbounded};

use crate::transport::{Arrival, ReceiveError, Wait};

/// Element of the queue.
#[derive(Debug)]
enum Next<T> {
    Item(T),
    /// The waker was used.
    Woken,
}

/// Receiving end. The queue is not bounded; senders have to bound what they put.
#[derive(Debug)]
pub(crate) struct Inbox<T> {
    items: Receiver<Next<T>>,
    notifier: Arc<Notifier<T>>,
}

/// Sending end, for any thread.
pub(crate) struct InboxSender<T>(Sender<Next<T>>);

struct Notifier<T> {
    /// Whether a wake-up is in the queue.
    is_notified: AtomicBool,
    sender: InboxSender<T>,
}

/// A transport that receives by an inbox.
pub(crate) trait Receiving<T: Send + 'static> {
    /// Returns the inbox; `None` once closed.
    fn inbox(&self) -> Option<&Inbox<T>>;

    /// Processes an item of the inbox. Returns the arrival for the program, if there is one.
    fn arrival(&mut self, item: T) -> Option<Arrival>;

    /// Implements [`Transport::receive`](crate::Transport::receive).
    fn next_arrival(&mut self, wait: Wait) -> Result<Option<Arrival>, ReceiveError> {
        let until = Until::from(wait);
        loop {
            match self.inbox().ok_or(ReceiveError::Closed)?.next(until) {
                None => return Ok(None),
                Some(Next::Woken) => return Ok(Some(Arrival::Woken)),
                Some(Next::Item(item)) => {
                    if let Some(arrival) = self.arrival(item) {
                        return Ok(Some(arrival));
                    }
                }
            }
        }
    }
}

/// End of a wait.
#[derive(Clone, Copy, Debug)]
enum Until {
    Now,
    Instant(Instant),
    Forever,
}

impl From<Wait> for Until {
    fn from(wait: Wait) -> Self {
        match wait {
            Wait::No => Self::Now,
            // A duration beyond the range of `Instant` has no end.
            Wait::For(time) => {
                Instant::now().checked_add(time).map_or(Self::Forever, Self::Instant)
            }
            Wait::Forever => Self::Forever,
        }
    }
}

/// Creates an inbox and its sender.
pub(crate) fn inbox<T: Send + 'static>() -> (InboxSender<T>, Inbox<T>) {
    let (sender, items) = unbounded();
    let sender = InboxSender(sender);
    let is_notified = AtomicBool::new(false);
    let notifier = Arc::new(Notifier { is_notified, sender: sender.clone() });
    (sender, Inbox { items, notifier })
}

impl<T: Send + 'static> Inbox<T> {
    /// Returns the next element; `None` if there is none in time.
    fn next(&self, until: Until) -> Option<Next<T>> {
        // The notifier owns a sender, so the channel is never disconnected.
        let next = match until {
            Until::Now => self.items.try_recv().ok(),
            Until::Instant(instant) => self.items.recv_deadline(instant).ok(),
            Until::Forever => self.items.recv().ok(),
        }?;
        if let Next::Woken = next {
            // INVARIANT: cleared before the wake-up is returned, so that a wake from now on leads
            // to another one.
            self.notifier.is_notified.store(false, Ordering::SeqCst);
        }
        Some(next)
    }

    /// Returns a waker that makes [`next`](Self::next) return [`Next::Woken`]. Several wakes in a
    /// row may lead to one.
    pub fn waker(&self) -> Waker {
        Waker::from(Arc::clone(&self.notifier))
    }
}

impl<T> InboxSender<T> {
    /// Adds an item. Returns it if the inbox is gone.
    pub fn put(&self, item: T) -> Result<(), T> {
        self.0.send(Next::Item(item)).map_err(|unsent| match unsent.into_inner() {
            Next::Item(item) => item,
            Next::Woken => unreachable!("the channel returns the value that was sent"),
        })
    }
}

impl<T> Clone for InboxSender<T> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<T> fmt::Debug for InboxSender<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "InboxSender({} items)", self.0.len())
    }
}

impl<T> fmt::Debug for Notifier<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Notifier").field(&self.is_notified).finish()
    }
}

impl<T: Send> Wake for Notifier<T> {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if !self.is_notified.swap(true, Ordering::SeqCst) {
            // Fails only if the node has closed.
            let _ = self.sender.0.send(Next::Woken);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn items_arrive_in_order_and_wakes_once() {
        let (sender, inbox) = inbox();
        let waker = inbox.waker();
        sender.put(1).unwrap();
        waker.wake_by_ref();
        waker.wake_by_ref();
        sender.put(2).unwrap();
        assert!(matches!(inbox.next(Until::Forever), Some(Next::Item(1))));
        assert!(matches!(inbox.next(Until::Now), Some(Next::Woken)));
        assert!(matches!(inbox.next(Until::Now), Some(Next::Item(2))));
        assert!(inbox.next(Wait::For(Duration::from_millis(1)).into()).is_none());
        waker.wake();
        assert!(matches!(inbox.next(Until::Now), Some(Next::Woken)));
    }

    #[test]
    fn an_item_for_a_dropped_inbox_is_returned() {
        let (sender, inbox) = inbox();
        let waker = inbox.waker();
        drop(inbox);
        // The notifier owns a sender and no receiver.
        waker.wake();
        assert_eq!(sender.put(3), Err(3));
    }
}
