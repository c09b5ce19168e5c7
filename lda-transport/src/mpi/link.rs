//! What is underway from this node to a peer, as far as is known here.
//!
//! The node's thread counts in what it sends; the thread of MPI counts out what the peer grants, which it does
//! for what its program has taken. So what the peer holds is counted until it holds it no more.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};

use super::Options;

#[derive(Debug, Default)]
pub(super) struct Link {
    frames: AtomicUsize,
    bytes: AtomicUsize,
    waits: AtomicBool,
}

impl Link {
    fn is_full(&self, bounds: &Options) -> bool {
        self.frames.load(SeqCst) >= bounds.queue_frames
            || self.bytes.load(SeqCst) >= bounds.queue_bytes
    }

    /// Counts a frame of `len` bytes in, unless there is no room; then [`grant`](Self::grant) will say when
    /// there is. The last may be longer than the room there is, so that none is too long for ever.
    pub fn put(&self, len: usize, bounds: &Options) -> bool {
        if self.is_full(bounds) {
            self.waits.store(true, SeqCst);
            if self.is_full(bounds) {
                return false;
            }
            // `grant` may have seen it all the same: then room is said to one who does not wait.
            self.waits.store(false, SeqCst);
        }
        self.bytes.fetch_add(len, SeqCst);
        self.frames.fetch_add(1, SeqCst);
        true
    }

    /// Counts out what the peer has taken; whether the other waits for the room that there is now.
    pub fn grant(&self, taken: Taken, bounds: &Options) -> bool {
        // This thread alone makes them smaller; a peer that grants more than it has got gives no more than all.
        self.bytes.fetch_sub(taken.bytes.min(self.bytes.load(SeqCst)), SeqCst);
        self.frames.fetch_sub(taken.frames.min(self.frames.load(SeqCst)), SeqCst);
        !self.is_full(bounds) && self.waits.load(SeqCst) && self.waits.swap(false, SeqCst)
    }
}

/// What the program has taken of a peer's frames.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Taken {
    pub frames: usize,
    pub bytes: usize,
}

impl Taken {
    /// Counts a frame; gives what is to be granted, when that is half of what may be underway. One who waits
    /// has that much underway, and so it hears of it.
    pub fn count(&mut self, len: usize, bounds: &Options) -> Option<Self> {
        self.frames += 1;
        self.bytes += len;
        let half = self.frames >= bounds.queue_frames.div_ceil(2)
            || self.bytes >= bounds.queue_bytes.div_ceil(2);
        half.then(|| std::mem::take(self))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bounds(queue_frames: usize, queue_bytes: usize) -> Options {
        Options { queue_frames, queue_bytes, ..Options::default() }
    }

    #[test]
    fn who_waits_is_granted_room() {
        for (bounds, len) in [
            (bounds(1, 1), 1000),
            (bounds(1, 1), 0),
            (bounds(5, 100), 1),
            (bounds(100, 99), 30),
            (bounds(3, 1 << 20), 0),
        ] {
            let (link, mut taken) = (Link::default(), Taken::default());
            for _ in 0..3 {
                let mut underway = 0;
                while link.put(len, &bounds) {
                    underway += 1;
                }
                assert!(underway > 0 && underway <= bounds.queue_frames, "{bounds:?}");
                assert!(underway == 1 || (underway - 1) * len < bounds.queue_bytes, "{bounds:?}");
                let grants = (0..underway).filter_map(|_| taken.count(len, &bounds));
                let rooms = grants.filter(|taken| link.grant(*taken, &bounds)).count();
                assert_eq!(rooms, 1, "{bounds:?}");
            }
        }
    }

    #[test]
    fn nobody_hears_of_room_who_does_not_wait() {
        let (bounds, link) = (bounds(4, 100), Link::default());
        assert!(link.put(10, &bounds));
        assert!(!link.grant(Taken { frames: 1, bytes: 10 }, &bounds));
    }

    #[test]
    fn room_is_not_said_before_there_is_some() {
        let (bounds, link) = (bounds(4, 100), Link::default());
        assert!(link.put(60, &bounds) && link.put(1000, &bounds) && !link.put(0, &bounds));
        assert!(!link.grant(Taken { frames: 1, bytes: 60 }, &bounds));
        assert!(link.grant(Taken { frames: 1, bytes: 1000 }, &bounds));
    }
}
