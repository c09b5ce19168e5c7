//! What a thread does while there is nothing to do.

use std::thread;
use std::time::{Duration, Instant};

/// Passes in a row after which others get the core.
const YIELD: u32 = 8;

/// Looks again and again for a while, and then sleeps in between.
#[derive(Debug)]
pub(super) struct Idle {
    spin: Duration,
    sleep: Duration,
    since: Option<Instant>,
    passes: u32,
}

impl Idle {
    pub fn new(spin: Duration, sleep: Duration) -> Self {
        Self { spin, sleep, since: None, passes: 0 }
    }

    /// Something was done.
    pub fn reset(&mut self) {
        self.since = None;
    }

    /// Nothing was: how long to sleep before the next look, if at all.
    pub fn pass(&mut self) -> Option<Duration> {
        let since = *self.since.get_or_insert_with(Instant::now);
        if since.elapsed() >= self.spin {
            return Some(self.sleep);
        }
        self.go_round();
        None
    }

    /// As a pass that must not end in sleep.
    pub fn go_round(&mut self) {
        self.passes = self.passes.wrapping_add(1);
        if self.passes.is_multiple_of(YIELD) {
            thread::yield_now();
        } else {
            std::hint::spin_loop();
        }
    }
}
