//! Histogram of the counts in the rows.

use lda_core::prior::learn::CountHistograms;

use super::Aggregate;
use crate::wire::{MAX_OCCURRENCES, add_histograms, put_histograms};

/// Histogram of the counts of all words and topics, from which β is
/// [learnt](crate::spec::ModelSpecBuilder::learn). 3 bytes or more per different count.
#[derive(Clone, Debug)]
pub struct WordHistogram {
    counts: CountHistograms,
    /// Number of occurrences that were merged.
    merged: u64,
}

impl WordHistogram {
    /// Name in a [`Registry`](super::Registry).
    pub const NAME: &'static str = "word-histogram";

    /// The histogram, with no sums.
    pub fn counts(&self) -> &CountHistograms {
        &self.counts
    }
}

impl Default for WordHistogram {
    fn default() -> Self {
        Self { counts: CountHistograms::of_all_topics(), merged: 0 }
    }
}

impl Aggregate for WordHistogram {
    fn add_row(&mut self, _: u16, _: u32, row: &[(u32, u32)]) {
        row.iter().for_each(|&(_, count)| self.counts.add(0, count, 1));
    }

    fn encode(&self, to: &mut Vec<u8>) {
        let mut merged = self.counts.clone();
        merged.merge();
        put_histograms(&merged, to);
    }

    fn merge(&mut self, from: &mut &[u8]) -> Option<()> {
        self.merged += add_histograms(1, from, &mut self.counts)?;
        (self.merged <= MAX_OCCURRENCES).then_some(())
    }
}
