//! Credit-based flow control: frames in flight from this node to a peer.
//!
//! The node's thread adds what it sends; the MPI thread subtracts what the peer grants. A peer
//! grants what its program has taken, so a frame counts until it has left the peer's inbox.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};

use super::MpiOptions;

/// Counters of the frames in flight to one peer.
#[derive(Debug, Default)]
pub(super) struct Link {
    frames: AtomicUsize,
    bytes: AtomicUsize,
    /// Whether a send has failed and the program waits until the peer is writable.
    is_blocked: AtomicBool,
}

impl Link {
    fn is_full(&self, bounds: &MpiOptions) -> bool {
        self.frames.load(SeqCst) >= bounds.queue_frames
            || self.bytes.load(SeqCst) >= bounds.queue_bytes
    }

    /// Adds a frame of `len` bytes. Returns false if the limits are reached; [`grant`](Self::grant)
    /// then returns true when there is space again. The last frame may exceed the limit of bytes,
    /// so that no frame is too long to be sent at all.
    pub fn add(&self, len: usize, bounds: &MpiOptions) -> bool {
        if self.is_full(bounds) {
            self.is_blocked.store(true, SeqCst);
            if self.is_full(bounds) {
                return false;
            }
            // INVARIANT: the flag is set before the second check. Otherwise a grant between check
            // and flag would be missed and the program would wait forever. If `grant` sees the flag
            // before it is cleared here, the program gets a needless notification.
            self.is_blocked.store(false, SeqCst);
        }
        self.bytes.fetch_add(len, SeqCst);
        self.frames.fetch_add(1, SeqCst);
        true
    }

    /// Subtracts the frames that the peer's program has taken. Returns whether the program waited
    /// and can send again.
    pub fn grant(&self, taken: Credit, bounds: &MpiOptions) -> bool {
        // Only this thread decreases the counters, so load and subtraction need not be one
        // operation. A faulty peer may grant more than it has received; the counters stop at 0.
        self.bytes.fetch_sub(taken.bytes.min(self.bytes.load(SeqCst)), SeqCst);
        self.frames.fetch_sub(taken.frames.min(self.frames.load(SeqCst)), SeqCst);
        !self.is_full(bounds) && self.is_blocked.load(SeqCst) && self.is_blocked.swap(false, SeqCst)
    }
}

/// Credit for frames of a peer: those that the program has taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Credit {
    pub frames: usize,
    pub bytes: usize,
}

impl Credit {
    /// Adds a frame. When the sum has reached half of a limit, returns it, to be granted to the
    /// sender, and starts again at 0.
    ///
    /// A sender that waits has reached a limit, so taking its frames leads to a grant.
    pub fn count(&mut self, len: usize, bounds: &MpiOptions) -> Option<Self> {
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

    fn bounds(queue_frames: usize, queue_bytes: usize) -> MpiOptions {
        MpiOptions { queue_frames, queue_bytes, ..MpiOptions::default() }
    }

    #[test]
    fn a_blocked_sender_is_granted_space() {
        for (bounds, len) in [
            (bounds(1, 1), 1000),
            (bounds(1, 1), 0),
            (bounds(5, 100), 1),
            (bounds(100, 99), 30),
            (bounds(3, 1 << 20), 0),
        ] {
            let (link, mut taken) = (Link::default(), Credit::default());
            for _ in 0..3 {
                let mut in_flight = 0;
                while link.add(len, &bounds) {
                    in_flight += 1;
                }
                assert!(in_flight > 0 && in_flight <= bounds.queue_frames, "{bounds:?}");
                assert!(in_flight == 1 || (in_flight - 1) * len < bounds.queue_bytes, "{bounds:?}");
                let grants = (0..in_flight).filter_map(|_| taken.count(len, &bounds));
                let notified = grants.filter(|taken| link.grant(*taken, &bounds)).count();
                assert_eq!(notified, 1, "{bounds:?}");
            }
        }
    }

    #[test]
    fn no_notification_without_a_blocked_sender() {
        let (bounds, link) = (bounds(4, 100), Link::default());
        assert!(link.add(10, &bounds));
        assert!(!link.grant(Credit { frames: 1, bytes: 10 }, &bounds));
    }

    #[test]
    fn no_notification_before_there_is_space() {
        let (bounds, link) = (bounds(4, 100), Link::default());
        assert!(link.add(60, &bounds) && link.add(1000, &bounds) && !link.add(0, &bounds));
        assert!(!link.grant(Credit { frames: 1, bytes: 60 }, &bounds));
        assert!(link.grant(Credit { frames: 1, bytes: 1000 }, &bounds));
    }
}
