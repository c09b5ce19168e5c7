//! Checkpoints in memory: the state of a worker's shards after its last epochs.
//!
//! If no worker is lost, a restart goes on from them: an epoch that has ended is not sampled again, and
//! no storage is needed. They take a topic per token; a second epoch is there only from its end at
//! this worker to its end at all of them.

use std::collections::{BTreeMap, VecDeque};

use lda_core::counts::TopicIndex;

use super::super::epoch_range::EpochRange;
use crate::priors::Priors;
use crate::shard::ShardState;

/// Number of epochs: workers are at most one epoch apart.
const MAX_EPOCHS: usize = 2;

/// The state of all shards of a worker after its last epochs.
#[derive(Debug)]
pub(super) struct MemoryCheckpoints<T> {
    /// Consecutive epochs.
    epochs: VecDeque<MemoryCheckpoint<T>>,
}

/// State of a worker after an epoch.
#[derive(Debug)]
pub(super) struct MemoryCheckpoint<T> {
    epoch: u32,
    /// State of each shard, by its number.
    pub shards: BTreeMap<u16, ShardState<T>>,
    /// Priors of the epoch.
    pub priors: Priors,
}

impl<T> Default for MemoryCheckpoints<T> {
    fn default() -> Self {
        Self { epochs: VecDeque::new() }
    }
}

impl<T: TopicIndex> MemoryCheckpoints<T> {
    /// Adds the state of each shard after an epoch, the one after the last or the only one.
    pub fn add(&mut self, epoch: u32, shards: BTreeMap<u16, ShardState<T>>, priors: Priors) {
        if self.epochs.back().is_some_and(|last| last.epoch + 1 != epoch) {
            self.epochs.clear();
        }
        while self.epochs.len() >= MAX_EPOCHS {
            self.epochs.pop_front();
        }
        self.epochs.push_back(MemoryCheckpoint { epoch, shards, priors });
    }

    /// The state after an epoch.
    pub fn get(&self, epoch: u32) -> Option<&MemoryCheckpoint<T>> {
        self.epochs.iter().find(|of| of.epoch == epoch)
    }

    /// Removes the state after an epoch.
    pub fn take(&mut self, epoch: u32) -> Option<MemoryCheckpoint<T>> {
        let position = self.epochs.iter().position(|of| of.epoch == epoch)?;
        self.epochs.remove(position)
    }

    /// Forgets all epochs before this one.
    pub fn forget_before(&mut self, epoch: u32) {
        self.epochs.retain(|of| of.epoch >= epoch);
    }

    /// Forgets all epochs but this one.
    pub fn retain(&mut self, epoch: u32) {
        self.epochs.retain(|of| of.epoch == epoch);
    }

    /// The epochs.
    pub fn epochs(&self) -> EpochRange {
        let first = self.epochs.front().map_or(0, |of| of.epoch);
        EpochRange { first, count: self.epochs.len() as u32 }
    }

    /// Bytes held.
    pub fn memory(&self) -> usize {
        let shards = self.epochs.iter().flat_map(|of| of.shards.values());
        shards.map(|it| it.topics.len() * size_of::<T>() + it.ages.len()).sum()
    }
}
