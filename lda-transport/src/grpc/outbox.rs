//! What waits to go to one peer over one connection.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use bytes::Bytes;

use crate::transport::SendError;

/// Frames in order, within bounds. The program puts, and the connection takes as its window lets it.
#[derive(Debug)]
pub(super) struct Outbox {
    frames: usize,
    bytes: usize,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    queue: VecDeque<Bytes>,
    bytes: usize,
    /// Whether the program waits for room.
    waits: bool,
    /// Who waits for a frame.
    waker: Option<Waker>,
    /// Whether nothing more is put.
    ended: bool,
}

/// What is taken.
#[derive(Debug)]
pub(super) struct Taken {
    pub frame: Bytes,
    /// Whether the program waits for the room that there is now.
    pub room: bool,
}

impl Outbox {
    /// Of at most so many frames, and bytes; one frame may be longer. What the other side hears first is in
    /// it.
    pub fn new(frames: usize, bytes: usize, hello: Bytes) -> Self {
        let state = State {
            queue: VecDeque::from([hello]),
            bytes: 0,
            waits: false,
            waker: None,
            ended: false,
        };
        Self { frames, bytes, state: Mutex::new(state) }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Nothing is left half done under this lock.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Puts a frame, or gives it back and says why.
    pub fn put(&self, frame: Bytes) -> Result<(), (Bytes, SendError)> {
        let mut state = self.lock();
        if state.ended {
            return Err((frame, SendError::NotUp));
        }
        let frames = state.queue.len();
        if frames >= self.frames || frames > 0 && state.bytes + frame.len() > self.bytes {
            state.waits = true;
            return Err((frame, SendError::Full));
        }
        state.bytes += frame.len();
        state.queue.push_back(frame);
        wake(state);
        Ok(())
    }

    /// The next frame; none after the last.
    pub fn poll(&self, cx: &mut Context<'_>) -> Poll<Option<Taken>> {
        let mut state = self.lock();
        let Some(frame) = state.queue.pop_front() else {
            if state.ended {
                return Poll::Ready(None);
            }
            state.waker = Some(cx.waker().clone());
            return Poll::Pending;
        };
        // The hello was not counted.
        state.bytes = state.bytes.saturating_sub(frame.len());
        // Half, so that the two do not wake each other for every frame.
        let frames = state.queue.len();
        let roomy = frames == 0 || frames <= self.frames / 2 && state.bytes <= self.bytes / 2;
        let room = roomy && std::mem::take(&mut state.waits);
        Poll::Ready(Some(Taken { frame, room }))
    }

    /// Takes no more; what it has still goes.
    pub fn finish(&self) {
        let mut state = self.lock();
        state.ended = true;
        wake(state);
    }

    /// Takes no more, and what it has is lost.
    pub fn cut(&self) {
        let mut state = self.lock();
        state.ended = true;
        let lost = std::mem::take(&mut state.queue);
        wake(state);
        // After the lock: frames may be long, and take time to be freed.
        drop(lost);
    }
}

/// Wakes who waits for a frame, without the lock.
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

    fn take(outbox: &Outbox) -> Option<(Bytes, bool)> {
        match outbox.poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(Some(Taken { frame, room })) => Some((frame, room)),
            Poll::Ready(None) | Poll::Pending => None,
        }
    }

    /// With the hello gone.
    fn outbox(frames: usize, bytes: usize) -> Outbox {
        let outbox = Outbox::new(frames, bytes, Bytes::from_static(b"a hello of any length"));
        assert!(take(&outbox).is_some_and(|(hello, room)| hello.len() == 21 && !room));
        outbox
    }

    fn put(outbox: &Outbox, len: usize) -> bool {
        match outbox.put(vec![0; len].into()) {
            Ok(()) => true,
            Err((frame, error)) => {
                assert_eq!((frame.len(), error), (len, SendError::Full));
                false
            }
        }
    }

    #[test]
    fn both_bounds_hold_and_room_is_said_once() {
        let outbox = outbox(4, 100);
        assert!(put(&outbox, 30) && put(&outbox, 40) && put(&outbox, 30));
        assert!(!put(&outbox, 1));
        let mut rooms = Vec::new();
        while let Some((_, room)) = take(&outbox) {
            rooms.push(room);
        }
        assert_eq!(rooms, [false, true, false], "70 of 100 are more than half");
        assert!((0..4).all(|_| put(&outbox, 0)));
        assert!(!put(&outbox, 0));
        assert!(!take(&outbox).unwrap().1);
        assert!(take(&outbox).unwrap().1);
    }

    #[test]
    fn one_frame_may_be_longer_than_the_bound() {
        let outbox = outbox(4, 100);
        assert!(put(&outbox, 1000));
        assert!(!put(&outbox, 1));
        assert!(take(&outbox).unwrap().1);
        assert!(put(&outbox, 1));
    }

    #[test]
    fn an_end_comes_after_what_was_put_or_instead() {
        let finished = outbox(4, 100);
        assert!(put(&finished, 3));
        finished.finish();
        assert_eq!(finished.put(Bytes::new()).unwrap_err().1, SendError::NotUp);
        assert!(take(&finished).is_some());
        let mut cx = Context::from_waker(Waker::noop());
        assert!(matches!(finished.poll(&mut cx), Poll::Ready(None)));

        let cut = outbox(4, 100);
        assert!(put(&cut, 3));
        cut.cut();
        assert!(matches!(cut.poll(&mut cx), Poll::Ready(None)));
    }
}
