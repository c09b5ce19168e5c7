//! Histogram of the counts in the rows.

use lda_core::prior::learn::CountHistograms;

use super::Aggregate;
use crate::wire::{add_histograms, put_histograms};

/// Histogram of the counts of all words and topics, from which β is
/// [learnt](crate::spec::ModelSpecBuilder::learn). 3 bytes or more per different count.
#[derive(Clone, Debug)]
pub struct WordHistogram(CountHistograms);

impl WordHistogram {
    /// Name in a [`Registry`](super::Registry).
    pub const NAME: &'static str = "word-histogram";

    /// The histogram, with no sums.
    pub fn counts(&self) -> &CountHistograms {
        &self.0
    }
}

impl Default for WordHistogram {
    fn default() -> Self {
        Self(CountHistograms::of_all_topics())
    }
}

impl Aggregate for WordHistogram {
    fn add_row(&mut self, _: u16, _: u32, row: &[(u32, u32)]) {
        row.iter().for_each(|&(_, count)| self.0.add(0, count, 1));
    }

    fn encode(&self, to: &mut Vec<u8>) {
        let mut merged = self.0.clone();
        merged.merge();
        put_histograms(&merged, to);
    }

    fn merge(&mut self, from: &mut &[u8]) -> Option<()> {
        add_histograms(1, from, &mut self.0)
    }
}
