//! The nodes of a run, as the master knows them before an attempt starts.

use std::collections::BTreeSet;

use lda_transport::NodeId;

use super::super::Setup;
use crate::placement::{DocumentLengths, PlacementError, WordStats};

/// Nodes that are ready, nodes that have to stop, and word counts of the shards.
#[derive(Debug)]
pub(super) struct Roster {
    pub ready: BTreeSet<NodeId>,
    /// Nodes that have to stop; the master is among them if the whole run has to.
    pub stopping: BTreeSet<NodeId>,
    words: WordStats,
    lengths: DocumentLengths,
    /// Shards whose words are counted.
    counted: BTreeSet<u16>,
}

impl Roster {
    /// No nodes and no words.
    pub fn new(words: u32) -> Self {
        Self {
            ready: BTreeSet::new(),
            stopping: BTreeSet::new(),
            words: WordStats::none(words as usize),
            lengths: DocumentLengths::default(),
            counted: BTreeSet::new(),
        }
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

    /// Returns whether all nodes are ready, and the words of all shards are counted.
    pub fn is_complete(&self, setup: &Setup) -> bool {
        let nodes = setup.options.servers + setup.workers;
        self.ready.len() == nodes as usize
            && self.counted.len() == usize::from(setup.options.shards)
    }
}
