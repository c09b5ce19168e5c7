//! Partitions that a worker has to sample, in order.

use std::collections::VecDeque;

use lda_core::counts::TopicIndex;

use crate::shard::Shard;
use crate::spec::Round;

/// A partition of a shard in a round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PartitionTask {
    pub round: Round,
    /// Index among this worker's shards.
    pub shard: usize,
    pub partition: u16,
}

/// Partitions whose trips have not started.
#[derive(Debug)]
pub(super) struct TaskQueue {
    /// The last round whose partitions were added.
    last: Round,
    tasks: VecDeque<PartitionTask>,
}

impl TaskQueue {
    /// An empty queue; the next round is the one after `last`.
    pub fn new(last: Round) -> Self {
        Self { last, tasks: VecDeque::new() }
    }

    /// The last round whose partitions were added.
    pub fn last(&self) -> Round {
        self.last
    }

    /// Adds the partitions of a round. Shards alternate, so that one shard's tokens are sampled
    /// while the requests of another are in flight.
    /// `partitions` returns those of a shard in its order.
    pub fn add_round<T: TopicIndex>(
        &mut self,
        round: Round,
        shards: &[Shard<T>],
        partitions: impl Fn(&Shard<T>) -> Vec<u16>,
    ) {
        self.last = round;
        let mut by_position: Vec<(usize, PartitionTask)> = Vec::new();
        for (index, shard) in shards.iter().enumerate() {
            let task = |partition| PartitionTask { round, shard: index, partition };
            by_position.extend(partitions(shard).into_iter().map(task).enumerate());
        }
        by_position.sort_by_key(|(position, _)| *position);
        self.tasks.extend(by_position.into_iter().map(|(_, task)| task));
    }

    /// Removes the first partition.
    pub fn pop(&mut self) -> Option<PartitionTask> {
        self.tasks.pop_front()
    }

    /// Returns whether no partitions are left.
    pub fn is_empty(&self) -> bool {
        self.tasks.is_empty()
    }

    /// The partitions that are left.
    pub fn iter(&self) -> impl Iterator<Item = &PartitionTask> {
        self.tasks.iter()
    }
}
