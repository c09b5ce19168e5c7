//! Waits of a polling thread: spinning first, then sleeping.

use std::thread;
use std::time::{Duration, Instant};

/// Number of polls between two yields of the core.
const POLLS_PER_YIELD: u32 = 8;
/// Inverse of the share of an idle period that one sleep may take: an event that ends an idle
/// period is noticed with a delay of at most a quarter of that period.
const SLEEP_DIVISOR: u32 = 4;

/// Decides how long a thread that polls waits before its next poll.
#[derive(Debug)]
pub(super) struct Backoff {
    /// Time after the last event in which the thread polls without sleep.
    spin: Duration,
    /// Longest sleep.
    max_sleep: Duration,
    /// Start of the idle period; `None` after an event.
    idle_since: Option<Instant>,
    polls: u32,
}

impl Backoff {
    pub fn new(spin: Duration, max_sleep: Duration) -> Self {
        Self { spin, max_sleep, idle_since: None, polls: 0 }
    }

    /// Ends the idle period, after a poll that found something.
    pub fn reset(&mut self) {
        self.idle_since = None;
    }

    /// Records a poll that found nothing. Returns how long to sleep before the next; `None` while
    /// the thread spins.
    pub fn idle_for(&mut self) -> Option<Duration> {
        let since = *self.idle_since.get_or_insert_with(Instant::now);
        let idle = since.elapsed();
        if idle >= self.spin {
            return Some((idle / SLEEP_DIVISOR).min(self.max_sleep));
        }
        self.spin();
        None
    }

    /// Spins once, without a sleep; yields the core at every eighth call.
    pub fn spin(&mut self) {
        self.polls = self.polls.wrapping_add(1);
        if self.polls.is_multiple_of(POLLS_PER_YIELD) {
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
    fn sleep_starts_after_the_spin_time() {
        let (spin, sleep) = (Duration::from_millis(2), Duration::from_micros(600));
        let mut backoff = Backoff::new(spin, sleep);
        let start = Instant::now();
        let first = loop {
            if let Some(sleep) = backoff.idle_for() {
                break sleep;
            }
        };
        assert!(
            start.elapsed() >= spin && first >= spin / SLEEP_DIVISOR && first <= sleep,
            "{first:?}"
        );
        thread::sleep(spin);
        assert_eq!(backoff.idle_for(), Some(sleep));
        backoff.reset();
        let again = Instant::now();
        assert!(backoff.idle_for().is_none() || again.elapsed() >= spin);
    }
}
