//! What is waited for, and the promise that it comes.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, OnceLock, PoisonError};
use std::task::{Context, Poll, Waker};
use std::thread::{self, ThreadId};

use super::slots::Permit;
use crate::frame::Frame;
use crate::rpc::{CollectiveError, FailureReason, Outcome, RequestId};
use crate::sync::{Condvar, Mutex, MutexGuard};

/// What ends even when nobody sees to it any more.
pub trait End: Send + 'static {
    /// As what, when the node has closed; `sent` is whether it may have been sent by then.
    fn closed(sent: bool) -> Self;
}

impl End for Outcome {
    fn closed(sent: bool) -> Self {
        Self::Unknown { reason: FailureReason::Closed, sent }
    }
}

impl End for Result<Vec<Frame>, CollectiveError> {
    fn closed(_sent: bool) -> Self {
        Err(CollectiveError::Cancelled)
    }
}

/// The end of a request or an operation, which comes by its deadline.
///
/// It can be [waited for](Self::wait), asked for, or polled as a future by whatever runtime there is. Who drops it
/// does not want to know: the request goes on.
#[must_use = "a request is made all the same, but its end is not known"]
pub struct Pending<T> {
    shared: Arc<Place<T>>,
    /// That of the node.
    driver: ThreadId,
}

/// The end on its way.
pub(super) struct Place<T> {
    state: Mutex<State<T>>,
    ended: Condvar,
    /// Which it is at the endpoint, once it is there.
    pub request: OnceLock<RequestId>,
}

enum State<T> {
    Open { waker: Option<Waker>, waits: bool },
    Ended(Option<T>),
}

/// Gives a [`Pending`] its end: at the latest when it is dropped.
pub(super) struct Promise<T: End> {
    pub place: Arc<Place<T>>,
    /// Let go before the end is known, so that who hears of it finds room.
    permit: Option<Permit>,
    /// Whether the endpoint has it.
    pub handed: bool,
}

pub(super) fn promise<T: End>(
    permit: Option<Permit>,
    driver: ThreadId,
) -> (Promise<T>, Pending<T>) {
    let state = Mutex::new(State::Open { waker: None, waits: false });
    let place = Arc::new(Place { state, ended: Condvar::new(), request: OnceLock::new() });
    let promise = Promise { place: Arc::clone(&place), permit, handed: false };
    (promise, Pending { shared: place, driver })
}

impl<T> Place<T> {
    fn state(&self) -> MutexGuard<'_, State<T>> {
        // Nothing is left half done under this lock.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T: End> Promise<T> {
    pub fn end(mut self, end: T) {
        self.give(end);
    }

    fn give(&mut self, end: T) {
        self.permit = None;
        let before = std::mem::replace(&mut *self.place.state(), State::Ended(Some(end)));
        if let State::Open { waker, waits } = before {
            if let Some(waker) = waker {
                waker.wake();
            }
            if waits {
                self.place.ended.notify_all();
            }
        }
    }
}

impl<T: End> Drop for Promise<T> {
    fn drop(&mut self) {
        if matches!(*self.place.state(), State::Open { .. }) {
            self.give(T::closed(self.handed));
        }
    }
}

impl<T> Pending<T> {
    /// Waits for the end.
    ///
    /// # Panics
    /// If it was taken by a poll before, or on the thread of the node, which is the one that brings it.
    pub fn wait(self) -> T {
        assert!(thread::current().id() != self.driver, "the thread of a node waits for itself");
        let mut state = self.shared.state();
        loop {
            match &mut *state {
                State::Ended(end) => return end.take().expect("an end is taken once"),
                State::Open { waits, .. } => *waits = true,
            }
            state = self.shared.ended.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Whether it has ended.
    pub fn has_ended(&self) -> bool {
        matches!(*self.shared.state(), State::Ended(_))
    }

    pub(super) fn place(&self) -> &Arc<Place<T>> {
        &self.shared
    }
}

impl<T> Future for Pending<T> {
    type Output = T;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<T> {
        match &mut *self.shared.state() {
            State::Ended(end) => Poll::Ready(end.take().expect("an end is taken once")),
            State::Open { waker, .. } => {
                match waker {
                    Some(waker) => waker.clone_from(cx.waker()),
                    None => *waker = Some(cx.waker().clone()),
                }
                Poll::Pending
            }
        }
    }
}

impl<T> fmt::Debug for Pending<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pending").field("ended", &self.has_ended()).finish_non_exhaustive()
    }
}

#[cfg(all(test, loom))]
mod loom_tests {
    use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
    use std::task::Wake;

    use super::*;

    #[test]
    fn loom_who_waits_gets_the_end() {
        // Not that of the thread that waits.
        let driver = std::thread::spawn(|| thread::current().id()).join().unwrap();
        for given in [true, false] {
            loom::model(move || {
                let (promise, pending) = promise::<Outcome>(None, driver);
                let other = loom::thread::spawn(move || match given {
                    true => promise.end(Outcome::Done(Frame::new())),
                    false => drop(promise),
                });
                let expected =
                    if given { Outcome::Done(Frame::new()) } else { Outcome::closed(false) };
                assert_eq!(pending.wait(), expected);
                other.join().unwrap();
            });
        }
    }

    #[test]
    fn loom_who_polls_is_woken() {
        struct Count(AtomicUsize);
        impl Wake for Count {
            fn wake(self: Arc<Self>) {
                self.0.fetch_add(1, SeqCst);
            }
        }
        let driver = std::thread::spawn(|| thread::current().id()).join().unwrap();
        loom::model(move || {
            let (promise, mut pending) = promise::<Outcome>(None, driver);
            let woken = Arc::new(Count(AtomicUsize::new(0)));
            let other = loom::thread::spawn(move || promise.end(Outcome::Done(Frame::new())));
            let waker = Waker::from(Arc::clone(&woken));
            let mut cx = Context::from_waker(&waker);
            let first = Pin::new(&mut pending).poll(&mut cx).is_ready();
            other.join().unwrap();
            assert_eq!(woken.0.load(SeqCst), usize::from(!first));
            assert!(first || Pin::new(&mut pending).poll(&mut cx).is_ready());
        });
    }
}
