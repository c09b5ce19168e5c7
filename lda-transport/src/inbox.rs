//! Where what comes to a node lies until its program takes it, and the bell that wakes the program.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Wake, Waker};
use std::time::Instant;

use crossbeam_channel::{Receiver, Sender, unbounded};

use crate::transport::{Arrival, ReceiveError, Wait};

/// What comes out of an inbox.
#[derive(Debug)]
enum Next<T> {
    Item(T),
    /// The bell was rung.
    Woken,
}

/// The end at which a program takes. It is not bounded; who puts has to be.
#[derive(Debug)]
pub(crate) struct Inbox<T> {
    items: Receiver<Next<T>>,
    bell: Arc<Notifier<T>>,
}

/// The end at which anybody puts.
pub(crate) struct InboxSender<T>(Sender<Next<T>>);

struct Notifier<T> {
    /// Whether a ring lies in the inbox.
    rung: AtomicBool,
    slot: InboxSender<T>,
}

/// A node that receives by an inbox.
pub(crate) trait Receiving<T: Send + 'static> {
    /// The inbox; none once closed.
    fn inbox(&self) -> Option<&Inbox<T>>;

    /// Takes an item as it comes out of the inbox; none where it says nothing to the program.
    fn arrival(&mut self, item: T) -> Option<Arrival>;

    /// As [`Transport::receive`](crate::Transport::receive).
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

/// When a wait is over.
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
            // What is too far off to be a time never comes.
            Wait::For(time) => {
                Instant::now().checked_add(time).map_or(Self::Forever, Self::Instant)
            }
            Wait::Forever => Self::Forever,
        }
    }
}

/// Both ends of a new inbox.
pub(crate) fn inbox<T: Send + 'static>() -> (InboxSender<T>, Inbox<T>) {
    let (sender, items) = unbounded();
    let slot = InboxSender(sender);
    let bell = Arc::new(Notifier { rung: AtomicBool::new(false), slot: slot.clone() });
    (slot, Inbox { items, bell })
}

impl<T: Send + 'static> Inbox<T> {
    /// The next; none in time.
    fn next(&self, until: Until) -> Option<Next<T>> {
        // The bell has a slot, so that the channel is never cut off.
        let next = match until {
            Until::Now => self.items.try_recv().ok(),
            Until::Instant(instant) => self.items.recv_deadline(instant).ok(),
            Until::Forever => self.items.recv().ok(),
        }?;
        if let Next::Woken = next {
            // Before it is reported: who rings from now on means the next time.
            self.bell.rung.store(false, Ordering::SeqCst);
        }
        Some(next)
    }

    /// Makes [`next`](Self::next) give [`Next::Woken`], once for however many calls.
    pub fn waker(&self) -> Waker {
        Waker::from(Arc::clone(&self.bell))
    }
}

impl<T> InboxSender<T> {
    /// Puts an item; gives it back where nobody will take it.
    pub fn put(&self, item: T) -> Result<(), T> {
        self.0.send(Next::Item(item)).map_err(|unsent| match unsent.into_inner() {
            Next::Item(item) => item,
            Next::Woken => unreachable!("what was sent comes back"),
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
        write!(f, "Slot({} items)", self.0.len())
    }
}

impl<T> fmt::Debug for Notifier<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Bell").field(&self.rung).finish()
    }
}

impl<T: Send> Wake for Notifier<T> {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if !self.rung.swap(true, Ordering::SeqCst) {
            // A node that has closed has nobody to wake.
            let _ = self.slot.0.send(Next::Woken);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn items_come_in_order_and_rings_once() {
        let (slot, inbox) = inbox();
        let waker = inbox.waker();
        slot.put(1).unwrap();
        waker.wake_by_ref();
        waker.wake_by_ref();
        slot.put(2).unwrap();
        assert!(matches!(inbox.next(Until::Forever), Some(Next::Item(1))));
        assert!(matches!(inbox.next(Until::Now), Some(Next::Woken)));
        assert!(matches!(inbox.next(Until::Now), Some(Next::Item(2))));
        assert!(inbox.next(Wait::For(Duration::from_millis(1)).into()).is_none());
        waker.wake();
        assert!(matches!(inbox.next(Until::Now), Some(Next::Woken)));
    }

    #[test]
    fn what_nobody_takes_comes_back() {
        let (slot, inbox) = inbox();
        let waker = inbox.waker();
        drop(inbox);
        // The bell holds no end at which anybody takes.
        waker.wake();
        assert_eq!(slot.put(3), Err(3));
    }
}
