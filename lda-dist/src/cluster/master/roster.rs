//! The nodes of a run, as the master knows them before an attempt starts.

use std::collections::{BTreeMap, BTreeSet};

use lda_transport::NodeId;

use super::super::Setup;
use super::super::epoch_range::EpochRange;
use crate::documents::Statistics;
use crate::placement::{DocumentLengths, PlacementError, WordStats};

/// Nodes that are ready, nodes that have to stop, what workers have in memory, and word counts of the shards.
#[derive(Debug)]
pub(super) struct Roster {
    pub ready: BTreeSet<NodeId>,
    /// Nodes that have to stop; the master is among them if the whole run has to.
    pub stopping: BTreeSet<NodeId>,
    /// The last attempt of any node that was ready. It may be one of a master before, and a node may come while
    /// an attempt without it is on.
    last_attempt: u32,
    /// Epochs whose topics each worker has in memory, as far as the master knows.
    in_memory: BTreeMap<NodeId, EpochRange>,
    words: WordStats,
    lengths: DocumentLengths,
    /// Shards whose words are counted.
    counted: BTreeSet<u16>,
}

impl Roster {
    /// No nodes, and the words of all documents if their statistics are known.
    pub fn new(setup: &Setup, statistics: Option<&Statistics>) -> Self {
        let words = setup.spec.words() as usize;
        let mut roster = Self {
            ready: BTreeSet::new(),
            stopping: BTreeSet::new(),
            last_attempt: 0,
            in_memory: BTreeMap::new(),
            words: WordStats::none(words),
            lengths: DocumentLengths::default(),
            counted: BTreeSet::new(),
        };
        if let Some(Statistics { words, lengths, .. }) = statistics {
            (roster.words, roster.lengths) = (words.clone(), *lengths);
            roster.counted = (0..setup.options.shards).collect();
        }
        roster
    }

    /// A node is ready after an attempt, 0 if it had none, and has the topics of these epochs in memory.
    pub fn add_node(&mut self, node: NodeId, attempt: u32, in_memory: EpochRange) {
        self.last_attempt = self.last_attempt.max(attempt);
        self.ready.insert(node);
        self.in_memory.remove(&node);
        if in_memory.count > 0 {
            self.in_memory.insert(node, in_memory);
        }
    }

    /// The last attempt that any node has had before it was ready.
    pub fn last_attempt(&self) -> u32 {
        self.last_attempt
    }

    /// A node is no longer ready, and whatever it had is lost.
    pub fn remove_node(&mut self, node: NodeId) {
        self.ready.remove(&node);
        self.in_memory.remove(&node);
    }

    /// A worker has its topics after this epoch in memory.
    pub fn note_epoch(&mut self, worker: NodeId, epoch: u32) {
        let epochs = self.in_memory.entry(worker).or_default();
        *epochs = epochs.with(epoch);
    }

    /// This epoch has been reported, and no restart goes on from one before.
    pub fn note_reported(&mut self, epoch: u32) {
        self.in_memory.values_mut().for_each(|epochs| *epochs = EpochRange::one(epoch));
    }

    /// An attempt goes on from this epoch; workers forget others.
    pub fn start_from(&mut self, epoch: u32) {
        self.in_memory.retain(|_, epochs| epochs.contains(epoch));
        self.note_reported(epoch);
    }

    /// Forgets what workers have in memory.
    pub fn forget_epochs(&mut self) {
        self.in_memory.clear();
    }

    /// The first epoch whose topics all of these workers have in memory. A later one may not be reported yet.
    pub fn epoch_in_memory(&self, workers: &BTreeSet<NodeId>) -> Option<u32> {
        let epochs: Option<Vec<EpochRange>> =
            workers.iter().map(|worker| self.in_memory.get(worker).copied()).collect();
        let epochs = epochs?;
        let first = epochs.iter().map(|epochs| epochs.first).max()?;
        epochs.iter().all(|epochs| epochs.contains(first)).then_some(first)
    }

    /// Frequencies of all words.
    pub fn words(&self) -> &WordStats {
        &self.words
    }

    /// Number and lengths of all documents.
    pub fn lengths(&self) -> DocumentLengths {
        self.lengths
    }

    /// Adds the (word, tokens, documents) of a shard, unless they were added before: a restarted
    /// worker sends them again.
    pub fn add(
        &mut self,
        shard: u16,
        lengths: DocumentLengths,
        word_stats: Vec<(u32, u32, u32)>,
    ) -> Result<(), PlacementError> {
        if self.counted.insert(shard) {
            self.lengths.add(lengths);
            for (word, tokens, documents) in word_stats {
                self.words.add(word, tokens.into(), documents.into())?;
            }
        }
        Ok(())
    }

    /// Returns whether the words of a shard are counted.
    pub fn is_counted(&self, shard: u16) -> bool {
        self.counted.contains(&shard)
    }

    /// Returns whether the words of all shards are counted.
    pub fn is_counted_whole(&self, setup: &Setup) -> bool {
        self.counted.len() == usize::from(setup.options.shards)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::ModelSpec;

    const WORKERS: [NodeId; 2] = [NodeId(2), NodeId(3)];

    fn roster() -> Roster {
        let spec = ModelSpec::new(3, 2, 0.1.into(), 0.1, 1).unwrap();
        Roster::new(&Setup::new(spec, 1), None)
    }

    #[test]
    fn a_restart_goes_on_from_an_epoch_that_all_workers_have_and_that_is_reported() {
        let mut roster = roster();
        assert_eq!(roster.epoch_in_memory(&WORKERS.into()), None);
        roster.note_epoch(WORKERS[0], 4);
        assert_eq!(roster.epoch_in_memory(&WORKERS.into()), None, "one worker does not have it");
        roster.note_epoch(WORKERS[1], 4);
        assert_eq!(roster.epoch_in_memory(&WORKERS.into()), Some(4));
        for worker in WORKERS {
            roster.note_epoch(worker, 5);
            // Or the report of epoch 5 would be lost.
            assert_eq!(roster.epoch_in_memory(&WORKERS.into()), Some(4));
        }
        roster.note_reported(5);
        assert_eq!(roster.epoch_in_memory(&WORKERS.into()), Some(5));
    }

    #[test]
    fn what_a_lost_worker_had_is_lost() {
        let mut roster = roster();
        for worker in WORKERS {
            roster.add_node(worker, 0, EpochRange { first: 4, count: 2 });
        }
        assert_eq!(roster.epoch_in_memory(&WORKERS.into()), Some(4));
        roster.start_from(5);
        assert_eq!(roster.epoch_in_memory(&WORKERS.into()), Some(5));
        roster.remove_node(WORKERS[1]);
        assert_eq!(roster.epoch_in_memory(&WORKERS.into()), None);
        // The new worker has nothing.
        roster.add_node(WORKERS[1], 0, EpochRange::default());
        assert_eq!(roster.epoch_in_memory(&WORKERS.into()), None);
        // All go back to a checkpoint, which the other one does not have in memory.
        roster.start_from(3);
        roster.note_epoch(WORKERS[1], 3);
        assert_eq!(roster.epoch_in_memory(&WORKERS.into()), None);
        roster.note_epoch(WORKERS[0], 3);
        assert_eq!(roster.epoch_in_memory(&WORKERS.into()), Some(3));
    }

    #[test]
    fn workers_of_a_new_master_may_have_different_epochs() {
        for (of_workers, expected) in [
            ([(4, 2), (4, 1)], Some(4)),
            ([(4, 2), (5, 1)], Some(5)),
            ([(4, 1), (5, 1)], None),
            ([(4, 2), (0, 0)], None),
        ] {
            let mut roster = roster();
            for (worker, (first, count)) in WORKERS.into_iter().zip(of_workers) {
                roster.add_node(worker, 0, EpochRange { first, count });
            }
            assert_eq!(roster.epoch_in_memory(&WORKERS.into()), expected, "{of_workers:?}");
        }
    }
}
