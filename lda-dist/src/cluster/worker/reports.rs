//! Reports of finished rounds, which wait until servers have acknowledged the round's requests.

use std::collections::{BTreeMap, VecDeque};

use lda_core::prior::learn::CountHistograms;

use super::super::control::WorkerEpochStats;
use crate::priors::Priors;
use crate::spec::Round;

/// A round that is sampled here.
#[derive(Debug)]
pub(super) struct SampledRound {
    pub round: Round,
    /// Changes of C_k, if servers do not have them all.
    pub delta: Vec<(u32, i32)>,
    /// Priors of the epoch, after a joining if they change.
    pub priors: Option<Priors>,
    /// Histograms of C_d, if α is learnt from them.
    pub documents: Option<Box<CountHistograms>>,
    /// Statistics of the epoch, after its last round.
    pub epoch_stats: Option<WorkerEpochStats>,
}

/// Rounds that are sampled here and not reported to the master yet.
#[derive(Debug, Default)]
pub(super) struct Reports {
    /// Rounds in order.
    sampled: VecDeque<SampledRound>,
    /// Number of requests of each round that servers have not acknowledged.
    unacknowledged: BTreeMap<Round, usize>,
}

impl Reports {
    /// Adds a round that is sampled completely.
    pub fn add(&mut self, sampled: SampledRound) {
        self.sampled.push_back(sampled);
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

    /// Number of requests of a round that servers must still acknowledge.
    pub fn unacknowledged(&self, round: Round) -> usize {
        self.unacknowledged.get(&round).copied().unwrap_or(0)
    }

    /// Removes the first round if all its requests are acknowledged.
    pub fn pop(&mut self) -> Option<SampledRound> {
        let round = &self.sampled.front()?.round;
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
