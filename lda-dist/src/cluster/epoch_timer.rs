//! Measures the time of epochs, in the process of the master.

use std::time::{Duration, Instant};

use crate::spec::Round;

/// Measures the time of epochs as [`EpochReport`](lda_core::train::EpochReport) defines it: since the
/// start, without the time in which documents are read and shards join.
///
/// The evaluation of an epoch is included, because workers and servers do it as part of the epoch's
/// last round.
#[derive(Clone, Copy, Debug, Default)]
pub struct EpochTimer {
    /// Time up to `since`.
    total: Duration,
    /// Start of the sampling that is in progress.
    since: Option<Instant>,
    /// `total` at the end of the last epoch.
    reported: Duration,
}

/// Time of an epoch.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct EpochTime {
    /// Seconds since the start of the run.
    pub total: f64,
    /// Seconds of this epoch.
    pub epoch: f64,
}

impl EpochTimer {
    /// Updates the timer with the current [round](super::Master::round) of the master. Call it
    /// whenever the master may have advanced; time in a joining round does not count.
    pub fn observe(&mut self, round: Round) {
        self.observe_at(round, Instant::now());
    }

    /// Ends an epoch, which the master has reported.
    pub fn end_epoch(&mut self) -> EpochTime {
        self.end_epoch_at(Instant::now())
    }

    fn observe_at(&mut self, round: Round, now: Instant) {
        let samples = !round.is_joining();
        if samples && self.since.is_none() {
            self.since = Some(now);
        } else if !samples && let Some(since) = self.since.take() {
            self.total += now.duration_since(since);
        }
    }

    fn end_epoch_at(&mut self, now: Instant) -> EpochTime {
        if let Some(since) = &mut self.since {
            self.total += now.duration_since(*since);
            *since = now;
        }
        let epoch = self.total - std::mem::replace(&mut self.reported, self.total);
        EpochTime { total: self.total.as_secs_f64(), epoch: epoch.as_secs_f64() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn joining_rounds_do_not_count() {
        let start = Instant::now();
        let after = |seconds| start + Duration::from_secs(seconds);
        let round = |epoch| Round { epoch, number: 0, attempt: 1 };
        let mut timer = EpochTimer::default();
        timer.observe_at(Round::joining(0, 1), after(0));
        timer.observe_at(round(1), after(5));
        timer.observe_at(round(1), after(6));
        assert_eq!(timer.end_epoch_at(after(8)), EpochTime { total: 3.0, epoch: 3.0 });
        timer.observe_at(round(2), after(9));
        // A restart: one second of the lost epoch counts, the joining does not.
        timer.observe_at(Round::joining(1, 2), after(9));
        timer.observe_at(round(2), after(20));
        assert_eq!(timer.end_epoch_at(after(22)), EpochTime { total: 6.0, epoch: 3.0 });
    }
}
