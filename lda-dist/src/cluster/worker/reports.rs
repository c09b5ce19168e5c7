//! Reports of finished rounds, which wait until servers have acknowledged the round's requests.

use std::collections::{BTreeMap, VecDeque};

use super::super::control::WorkerEpochStats;
use crate::spec::Round;

/// Rounds that are sampled here and not reported to the master yet.
#[derive(Debug, Default)]
pub(super) struct Reports {
    /// Rounds in order; after an epoch's last round with the epoch's statistics.
    sampled: VecDeque<(Round, Option<WorkerEpochStats>)>,
    /// Number of requests of each round that servers have not acknowledged.
    unacknowledged: BTreeMap<Round, usize>,
}

impl Reports {
    /// Adds a round that is sampled completely.
    pub fn add(&mut self, round: Round, epoch_stats: Option<WorkerEpochStats>) {
        self.sampled.push_back((round, epoch_stats));
    }

    /// Adds to the number of requests that servers must acknowledge before the round is reported.
    pub fn expect(&mut self, round: Round, requests: usize) {
        *self.unacknowledged.entry(round).or_default() += requests;
    }

    /// A server has acknowledged a request of the round.
    pub fn acknowledge(&mut self, round: Round) {
        if let Some(left) = self.unacknowledged.get_mut(&round) {
            *left = left.saturating_sub(1);
        }
    }

    /// Removes the first round if all its requests are acknowledged.
    pub fn pop(&mut self) -> Option<(Round, Option<WorkerEpochStats>)> {
        let (round, _) = self.sampled.front()?;
        if self.unacknowledged.get(round).is_some_and(|&left| left > 0) {
            return None;
        }
        self.unacknowledged.remove(round);
        self.sampled.pop_front()
    }

    /// Returns whether all sampled rounds are reported.
    pub fn is_empty(&self) -> bool {
        self.sampled.is_empty()
    }
}
