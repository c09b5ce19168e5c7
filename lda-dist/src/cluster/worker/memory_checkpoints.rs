//! Checkpoints in memory: the topics of a worker's shards after its last epochs.
//!
//! If no worker is lost, a restart goes on from them: an epoch that has ended is not sampled again, and
//! no storage is needed. They take a topic per token; a second epoch is there only from its end at
//! this worker to its end at all of them.

use std::collections::VecDeque;

use lda_core::counts::TopicIndex;

use super::super::epoch_range::EpochRange;
use crate::shard::Shard;

/// Number of epochs: workers are at most one epoch apart.
const MAX_EPOCHS: usize = 2;

/// The topics of all shards of a worker after its last epochs.
#[derive(Debug)]
pub(super) struct MemoryCheckpoints<T> {
    /// Consecutive epochs, with the topics of each shard, as in its snapshot.
    epochs: VecDeque<(u32, Vec<Vec<T>>)>,
}

impl<T> Default for MemoryCheckpoints<T> {
    fn default() -> Self {
        Self { epochs: VecDeque::new() }
    }
}

impl<T: TopicIndex> MemoryCheckpoints<T> {
    /// Adds the topics after an epoch, the one after the last or the only one.
    pub fn add(&mut self, epoch: u32, shards: &[Shard<T>]) {
        if self.epochs.back().is_some_and(|(last, _)| last + 1 != epoch) {
            self.epochs.clear();
        }
        while self.epochs.len() >= MAX_EPOCHS {
            self.epochs.pop_front();
        }
        let topics = shards.iter().map(|shard| shard.tokens().topics()).collect();
        self.epochs.push_back((epoch, topics));
    }

    /// Topics of the shards after an epoch.
    pub fn topics(&self, epoch: u32) -> Option<&[Vec<T>]> {
        let found = self.epochs.iter().find(|(number, _)| *number == epoch);
        found.map(|(_, topics)| topics.as_slice())
    }

    /// Forgets all epochs before this one.
    pub fn forget_before(&mut self, epoch: u32) {
        self.epochs.retain(|(number, _)| *number >= epoch);
    }

    /// Forgets all epochs but this one.
    pub fn retain(&mut self, epoch: u32) {
        self.epochs.retain(|(number, _)| *number == epoch);
    }

    /// The epochs.
    pub fn epochs(&self) -> EpochRange {
        let first = self.epochs.front().map_or(0, |(epoch, _)| *epoch);
        EpochRange { first, count: self.epochs.len() as u32 }
    }

    /// Bytes held.
    pub fn memory(&self) -> usize {
        let topics = self.epochs.iter().flat_map(|(_, topics)| topics);
        topics.map(|topics| topics.len() * size_of::<T>()).sum()
    }
}
