//! Flow control from one node to another: a counter of the frames in flight.
//!
//! One thread adds frames and one removes them. Only the sender increases the counters, so it alone
//! keeps to the limit. If there is no space, it sets a flag and checks again, by a
//! read-modify-write of a counter that the receiver also modifies: either the sender sees what the
//! receiver has removed meanwhile, or the receiver sees the flag. The sender is notified when half
//! of the space is free, so that the two do not wake each other for every frame.

use std::sync::atomic::Ordering::{AcqRel, Acquire, Release};

use super::Options;
use crate::sync::{AtomicBool, AtomicUsize};

/// Counters of the frames in flight.
#[derive(Debug, Default)]
pub(super) struct Link {
    frames: AtomicUsize,
    bytes: AtomicUsize,
    /// Whether the sender waits for space.
    is_blocked: AtomicBool,
}

impl Link {
    /// Adds a frame of `len` bytes. Returns false if there is no space; [`take`](Self::take) then
    /// returns true when there is.
    pub fn put(&self, len: usize, bounds: &Options) -> bool {
        let full = |frames: usize| {
            let bytes = self.bytes.load(Acquire);
            frames >= bounds.queue_frames
                || frames > 0 && bytes.saturating_add(len) > bounds.queue_bytes
        };
        if full(self.frames.load(Acquire)) {
            let was_blocked = self.is_blocked.swap(true, AcqRel);
            // INVARIANT: a read-modify-write, although it adds 0. It is ordered with those of the
            // receiver, so one of the two sees the change of the other. A plain load could miss it.
            if full(self.frames.fetch_add(0, AcqRel)) {
                return false;
            }
            // `take` may have seen the flag: then the sender gets a needless notification. A flag
            // of an earlier failure stays set, so that its notification comes.
            if !was_blocked {
                self.is_blocked.store(false, Release);
            }
        }
        self.bytes.fetch_add(len, AcqRel);
        self.frames.fetch_add(1, AcqRel);
        true
    }

    /// Removes a frame. Returns whether the sender waits and there is space now.
    pub fn take(&self, len: usize, bounds: &Options) -> bool {
        let bytes = self.bytes.fetch_sub(len, AcqRel) - len;
        let frames = self.frames.fetch_sub(1, AcqRel) - 1;
        let has_space =
            frames == 0 || frames <= bounds.queue_frames / 2 && bytes <= bounds.queue_bytes / 2;
        has_space && self.is_blocked.load(Acquire) && self.is_blocked.swap(false, AcqRel)
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
    fn both_limits_hold_and_space_is_notified_once() {
        let link = Link::default();
        assert!(link.put(30, &BOUNDS) && link.put(40, &BOUNDS) && link.put(30, &BOUNDS));
        assert!(!link.put(1, &BOUNDS));
        assert!(!link.take(30, &BOUNDS), "70 of 100 are more than half");
        assert!(link.take(40, &BOUNDS));
        assert!(!link.take(30, &BOUNDS), "the sender does not wait any more");
        assert!((0..4).all(|_| link.put(0, &BOUNDS)));
        assert!(!link.put(0, &BOUNDS));
        assert_eq!([0; 4].map(|len| link.take(len, &BOUNDS)), [false, true, false, false]);
    }

    #[test]
    fn a_single_frame_may_exceed_the_limit() {
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

    /// Runs a sender and a receiver in all interleavings: a sender without space is notified.
    fn space_is_notified(bounds: &'static Options, there: usize, more: usize) {
        loom::model(move || {
            let link = Arc::new(Link::default());
            for _ in 0..there {
                assert!(link.put(1, bounds));
            }
            let other = Arc::clone(&link);
            let taker = thread::spawn(move || (0..there).filter(|_| other.take(1, bounds)).count());
            let put = (0..more).filter(|_| link.put(1, bounds)).count();
            let mut notified = taker.join().unwrap();
            // The frames that are left are removed as well.
            notified += (0..put).filter(|_| link.take(1, bounds)).count();
            let refused = more - put;
            assert!(
                refused == 0 || notified > 0,
                "{refused} frames were rejected, and the sender is not notified"
            );
            assert!(notified <= more, "notified {notified} times");
        });
    }

    #[test]
    fn loom_limit_of_frames() {
        const BOUNDS: Options = Options {
            max_frame_len: 9,
            queue_frames: 1,
            queue_bytes: 9,
            pool_buffers: 1,
            pool_bytes: 1,
        };
        space_is_notified(&BOUNDS, 1, 2);
    }

    #[test]
    fn loom_limit_of_bytes() {
        const BOUNDS: Options = Options {
            max_frame_len: 9,
            queue_frames: 9,
            queue_bytes: 2,
            pool_buffers: 1,
            pool_bytes: 1,
        };
        space_is_notified(&BOUNDS, 2, 1);
    }
}
