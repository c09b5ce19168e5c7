//! What a thread does while there is nothing to do.

use std::thread;
use std::time::{Duration, Instant};

/// Passes in a row after which others get the core.
const YIELD: u32 = 8;
/// Parts of a pause of which one may be slept through: so much later comes what ends it.
const PARTS: u32 = 4;

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
        let pause = since.elapsed();
        if pause >= self.spin {
            return Some((pause / PARTS).min(self.sleep));
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sleep_follows_a_while_without_anything() {
        let (spin, sleep) = (Duration::from_millis(2), Duration::from_micros(600));
        let mut idle = Idle::new(spin, sleep);
        let began = Instant::now();
        let first = loop {
            if let Some(sleep) = idle.pass() {
                break sleep;
            }
        };
        assert!(began.elapsed() >= spin && first >= spin / PARTS && first <= sleep, "{first:?}");
        thread::sleep(spin);
        assert_eq!(idle.pass(), Some(sleep));
        idle.reset();
        let again = Instant::now();
        assert!(idle.pass().is_none() || again.elapsed() >= spin);
    }
}
