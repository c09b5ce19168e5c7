//! What is underway from one node to another.
//!
//! One thread puts and one takes. The bound is kept by the one that puts, which alone makes the numbers
//! larger. Where there is no room it says that it waits, and looks once more: either it sees what the other
//! has taken meanwhile, or the other sees that it waits. Room is said when half is free, so that the two do
//! not wake each other for every frame.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};

use super::Options;

#[derive(Debug, Default)]
pub(super) struct Link {
    frames: AtomicUsize,
    bytes: AtomicUsize,
    waits: AtomicBool,
}

impl Link {
    /// Counts a frame of `len` bytes in, unless there is no room; then [`take`](Self::take) will say when
    /// there is.
    pub fn put(&self, len: usize, bounds: &Options) -> bool {
        let full = || {
            let (frames, bytes) = (self.frames.load(SeqCst), self.bytes.load(SeqCst));
            frames >= bounds.queue_frames
                || frames > 0 && bytes.saturating_add(len) > bounds.queue_bytes
        };
        if full() {
            self.waits.store(true, SeqCst);
            if full() {
                return false;
            }
            // `take` may have seen it all the same: then room is said to one who does not wait.
            self.waits.store(false, SeqCst);
        }
        self.bytes.fetch_add(len, SeqCst);
        self.frames.fetch_add(1, SeqCst);
        true
    }

    /// Counts a frame out; whether the other waits for the room that there is now.
    pub fn take(&self, len: usize, bounds: &Options) -> bool {
        let bytes = self.bytes.fetch_sub(len, SeqCst) - len;
        let frames = self.frames.fetch_sub(1, SeqCst) - 1;
        let roomy =
            frames == 0 || frames <= bounds.queue_frames / 2 && bytes <= bounds.queue_bytes / 2;
        roomy && self.waits.load(SeqCst) && self.waits.swap(false, SeqCst)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOUNDS: Options =
        Options { longest_frame: 1000, queue_frames: 4, queue_bytes: 100, spares: 1 };

    #[test]
    fn both_bounds_hold_and_room_is_said_once() {
        let link = Link::default();
        assert!(link.put(30, &BOUNDS) && link.put(40, &BOUNDS) && link.put(30, &BOUNDS));
        assert!(!link.put(1, &BOUNDS));
        assert!(!link.take(30, &BOUNDS), "70 of 100 are more than half");
        assert!(link.take(40, &BOUNDS));
        assert!(!link.take(30, &BOUNDS), "nobody waits any more");
        assert!((0..4).all(|_| link.put(0, &BOUNDS)));
        assert!(!link.put(0, &BOUNDS));
        assert_eq!([0; 4].map(|len| link.take(len, &BOUNDS)), [false, true, false, false]);
    }

    #[test]
    fn one_frame_may_be_longer_than_the_bound() {
        let link = Link::default();
        assert!(link.put(1000, &BOUNDS));
        assert!(!link.put(0, &BOUNDS));
        assert!(link.take(1000, &BOUNDS));
        assert!(link.put(101, &BOUNDS));
    }
}
