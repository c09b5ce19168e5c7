//! Bounded queue of the frames to send over one connection.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use bytes::Bytes;

use crate::transport::SendError;

/// Queue of frames, in order, bounded in frames and in bytes.
///
/// The program pushes; the connection pops as far as its HTTP/2 window allows.
#[derive(Debug)]
pub(super) struct SendQueue {
    max_frames: usize,
    max_bytes: usize,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    queue: VecDeque<Bytes>,
    /// Bytes of the queued frames, without the hello.
    bytes: usize,
    /// Whether a push has failed and the program waits until the queue is writable.
    is_blocked: bool,
    /// Waker of the connection's task, when it waits for a frame.
    waker: Option<Waker>,
    /// Whether pushes fail.
    is_closed: bool,
}

/// A frame taken from the queue.
#[derive(Debug)]
pub(super) struct Popped {
    pub frame: Bytes,
    /// Whether the program waited and can push again.
    pub is_writable: bool,
}

impl SendQueue {
    /// Creates a queue of at most `max_frames` and `max_bytes`; a single frame may be longer. The
    /// hello is its first frame and does not count.
    pub fn new(max_frames: usize, max_bytes: usize, hello: Bytes) -> Self {
        let state = State {
            queue: VecDeque::from([hello]),
            bytes: 0,
            is_blocked: false,
            waker: None,
            is_closed: false,
        };
        Self { max_frames, max_bytes, state: Mutex::new(state) }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // No code panics between two changes under this lock, so a poisoned value is consistent.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Appends a frame. On failure returns it with the reason.
    pub fn push(&self, frame: Bytes) -> Result<(), (Bytes, SendError)> {
        let mut state = self.lock();
        if state.is_closed {
            return Err((frame, SendError::NotUp));
        }
        let frames = state.queue.len();
        if frames >= self.max_frames || frames > 0 && state.bytes + frame.len() > self.max_bytes {
            state.is_blocked = true;
            return Err((frame, SendError::Full));
        }
        state.bytes += frame.len();
        state.queue.push_back(frame);
        wake(state);
        Ok(())
    }

    /// Removes the first frame. `None` when the queue is closed and empty.
    pub fn poll_pop(&self, cx: &mut Context<'_>) -> Poll<Option<Popped>> {
        let mut state = self.lock();
        let Some(frame) = state.queue.pop_front() else {
            if state.is_closed {
                return Poll::Ready(None);
            }
            state.waker = Some(cx.waker().clone());
            return Poll::Pending;
        };
        // Saturates for the hello, which was not counted.
        state.bytes = state.bytes.saturating_sub(frame.len());
        // Writable at half full, so that the two sides do not wake each other for every frame.
        let frames = state.queue.len();
        let is_half_empty =
            frames == 0 || frames <= self.max_frames / 2 && state.bytes <= self.max_bytes / 2;
        let is_writable = is_half_empty && std::mem::take(&mut state.is_blocked);
        Poll::Ready(Some(Popped { frame, is_writable }))
    }

    /// Refuses further pushes. Queued frames are still sent.
    pub fn close(&self) {
        let mut state = self.lock();
        state.is_closed = true;
        wake(state);
    }

    /// Refuses further pushes and drops the queued frames.
    pub fn abort(&self) {
        let mut state = self.lock();
        state.is_closed = true;
        let dropped = std::mem::take(&mut state.queue);
        wake(state);
        // Frees the frames outside the lock, as long ones take time.
        drop(dropped);
    }
}

/// Releases the lock, then wakes the task that waits for a frame.
fn wake(mut state: MutexGuard<'_, State>) {
    let waker = state.waker.take();
    drop(state);
    if let Some(waker) = waker {
        waker.wake();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pop(queue: &SendQueue) -> Option<(Bytes, bool)> {
        match queue.poll_pop(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(Some(Popped { frame, is_writable })) => Some((frame, is_writable)),
            Poll::Ready(None) | Poll::Pending => None,
        }
    }

    /// A queue whose hello has been removed.
    fn send_queue(frames: usize, bytes: usize) -> SendQueue {
        let queue = SendQueue::new(frames, bytes, Bytes::from_static(b"a hello of any length"));
        assert!(pop(&queue).is_some_and(|(hello, writable)| hello.len() == 21 && !writable));
        queue
    }

    fn push(queue: &SendQueue, len: usize) -> bool {
        match queue.push(vec![0; len].into()) {
            Ok(()) => true,
            Err((frame, error)) => {
                assert_eq!((frame.len(), error), (len, SendError::Full));
                false
            }
        }
    }

    #[test]
    fn both_limits_hold_and_writable_is_reported_once() {
        let queue = send_queue(4, 100);
        assert!(push(&queue, 30) && push(&queue, 40) && push(&queue, 30));
        assert!(!push(&queue, 1));
        let mut writable = Vec::new();
        while let Some((_, is_writable)) = pop(&queue) {
            writable.push(is_writable);
        }
        assert_eq!(writable, [false, true, false], "70 of 100 bytes are more than half");
        assert!((0..4).all(|_| push(&queue, 0)));
        assert!(!push(&queue, 0));
        assert!(!pop(&queue).unwrap().1);
        assert!(pop(&queue).unwrap().1);
    }

    #[test]
    fn a_single_frame_may_exceed_the_byte_limit() {
        let queue = send_queue(4, 100);
        assert!(push(&queue, 1000));
        assert!(!push(&queue, 1));
        assert!(pop(&queue).unwrap().1);
        assert!(push(&queue, 1));
    }

    #[test]
    fn close_sends_queued_frames_and_abort_drops_them() {
        let closed = send_queue(4, 100);
        assert!(push(&closed, 3));
        closed.close();
        assert_eq!(closed.push(Bytes::new()).unwrap_err().1, SendError::NotUp);
        assert!(pop(&closed).is_some());
        let mut cx = Context::from_waker(Waker::noop());
        assert!(matches!(closed.poll_pop(&mut cx), Poll::Ready(None)));

        let aborted = send_queue(4, 100);
        assert!(push(&aborted, 3));
        aborted.abort();
        assert!(matches!(aborted.poll_pop(&mut cx), Poll::Ready(None)));
    }
}
