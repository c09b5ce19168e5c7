//! What is underway from one node to another.
//!
//! One thread puts and one takes. The bound is kept by the one that puts, which alone makes the numbers larger. Where
//! there is no room it says that it waits, and looks once more, by a change of the number that the other changes too:
//! either it sees what the other has taken meanwhile, or the other sees that it waits. Room is said when half is free,
//! so that the two do not wake each other for every frame.

use std::sync::atomic::Ordering::{AcqRel, Acquire, Release};

use super::Options;
use crate::sync::{AtomicBool, AtomicUsize};

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
        let full = |frames: usize| {
            let bytes = self.bytes.load(Acquire);
            frames >= bounds.queue_frames
                || frames > 0 && bytes.saturating_add(len) > bounds.queue_bytes
        };
        if full(self.frames.load(Acquire)) {
            let waits_already = self.waits.swap(true, AcqRel);
            // A change, though of nothing: it comes before or after each of the other's.
            if full(self.frames.fetch_add(0, AcqRel)) {
                return false;
            }
            // `take` may have seen it all the same: then room is said to one who does not wait. Who was refused
            // before is told in any case.
            if !waits_already {
                self.waits.store(false, Release);
            }
        }
        self.bytes.fetch_add(len, AcqRel);
        self.frames.fetch_add(1, AcqRel);
        true
    }

    /// Counts a frame out; whether the other waits for the room that there is now.
    pub fn take(&self, len: usize, bounds: &Options) -> bool {
        let bytes = self.bytes.fetch_sub(len, AcqRel) - len;
        let frames = self.frames.fetch_sub(1, AcqRel) - 1;
        let roomy =
            frames == 0 || frames <= bounds.queue_frames / 2 && bytes <= bounds.queue_bytes / 2;
        roomy && self.waits.load(Acquire) && self.waits.swap(false, AcqRel)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    const BOUNDS: Options = Options {
        max_frame_len: 1000,
        queue_frames: 4,
        queue_bytes: 100,
        pool_buffers: 1,
        pool_bytes: 1,
    };

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

#[cfg(all(test, loom))]
mod loom_tests {
    use std::sync::Arc;

    use loom::thread;

    use super::*;

    /// One puts and one takes, in every order: who finds no room is told when there is some.
    fn room_is_said(bounds: &'static Options, there: usize, more: usize) {
        loom::model(move || {
            let link = Arc::new(Link::default());
            for _ in 0..there {
                assert!(link.put(1, bounds));
            }
            let other = Arc::clone(&link);
            let taker = thread::spawn(move || (0..there).filter(|_| other.take(1, bounds)).count());
            let put = (0..more).filter(|_| link.put(1, bounds)).count();
            let mut said = taker.join().unwrap();
            // What is there yet is taken as well.
            said += (0..put).filter(|_| link.take(1, bounds)).count();
            let refused = more - put;
            assert!(
                refused == 0 || said > 0,
                "{refused} are refused, and nobody says that there is room"
            );
            assert!(said <= more, "room is said {said} times");
        });
    }

    #[test]
    fn loom_room_among_frames() {
        const BOUNDS: Options = Options {
            max_frame_len: 9,
            queue_frames: 1,
            queue_bytes: 9,
            pool_buffers: 1,
            pool_bytes: 1,
        };
        room_is_said(&BOUNDS, 1, 2);
    }

    #[test]
    fn loom_room_among_bytes() {
        const BOUNDS: Options = Options {
            max_frame_len: 9,
            queue_frames: 9,
            queue_bytes: 2,
            pool_buffers: 1,
            pool_bytes: 1,
        };
        room_is_said(&BOUNDS, 2, 1);
    }
}
