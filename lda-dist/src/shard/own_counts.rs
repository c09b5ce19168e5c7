//! A shard's own part of C_k: its counts and its changes, by when the totals contain them.

use std::collections::VecDeque;

use lda_core::sampler::Outcome;

use super::AnswerError;

/// A shard's part of C_k.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct OwnCounts {
    /// Counts by topic of the shard's tokens as they are in the totals of its round.
    pub counts: Vec<u32>,
    /// The shard's changes that the totals do not contain yet.
    pub changes: Vec<i32>,
    /// Parts of `changes` that were pushed in each of the last rounds; later totals contain them.
    recent: VecDeque<Vec<i32>>,
}

impl OwnCounts {
    /// All changes are in the totals.
    pub fn new(counts: Vec<u32>) -> Self {
        Self { changes: vec![0; counts.len()], counts, recent: VecDeque::new() }
    }

    /// Bytes held.
    pub fn memory(&self) -> usize {
        let recent: usize = self.recent.iter().map(Vec::capacity).sum();
        4 * (self.counts.capacity() + self.changes.capacity() + recent)
    }

    /// Adds the changes of a sampler.
    pub fn add(&mut self, outcome: Outcome) {
        for (topic, by) in outcome.totals {
            self.changes[topic as usize] += by;
        }
    }

    /// The changes of this round, by topic.
    pub fn of_round(&self) -> Vec<i32> {
        let mut changes = self.changes.clone();
        for before in &self.recent {
            changes.iter_mut().zip(before).for_each(|(change, before)| *change -= before);
        }
        changes
    }

    /// See [`Shard::begin_round`](super::Shard::begin_round). `untold` are the changes that were not
    /// pushed yet.
    pub fn begin_round(
        &mut self,
        untold: &[i32],
        totals: &[u32],
        lacking: usize,
    ) -> Result<(), AnswerError> {
        assert_eq!(totals.len(), self.counts.len(), "one total per topic");
        let mut told = self.of_round();
        told.iter_mut().zip(untold).for_each(|(told, untold)| *told -= untold);
        self.recent.push_back(told);
        let seen = self.recent.len().saturating_sub(lacking);
        for known in self.recent.drain(..seen) {
            let both = self.counts.iter_mut().zip(&mut self.changes);
            for ((count, own), known) in both.zip(known) {
                *count = count.checked_add_signed(known).expect("as many as its tokens");
                *own -= known;
            }
        }
        match self.counts.iter().zip(totals).position(|(count, total)| count > total) {
            Some(topic) => Err(AnswerError::Total { topic: topic as u32 }),
            None => Ok(()),
        }
    }
}
