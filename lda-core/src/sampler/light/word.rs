//! The stale table of the word being visited, with its masses by topic.

use crate::counts::{RowMut, TopicIndex};
use crate::sampler::tables::{Mass, WordTable, WordTables};

/// Number of tokens that may draw from a table, per topic of the table. With 1, kos at K = 1,000
/// reached the same likelihood in 1,500 epochs.
const USES: u32 = 2;

/// A word's stale table, with its masses also by topic, so that a look-up is one load. There are
/// two to four look-ups per token.
#[derive(Debug)]
pub(super) struct VisitTable<T> {
    table: WordTables<T>,
    masses: Vec<Mass>,
}

impl<T: TopicIndex> VisitTable<T> {
    /// Creates an empty table for `topics` topics.
    pub fn new(topics: usize) -> Self {
        let masses = vec![Mass::default(); topics];
        Self { table: WordTables::new(topics, [u64::MAX]), masses }
    }

    /// Builds the table of `row` with 1 / (C_k + Vβ) = `inverse(k)`, for [`USES`] tokens per topic.
    #[inline(always)]
    pub fn build(&mut self, row: &RowMut<'_, T>, inverse: impl Fn(usize) -> f32) {
        let Self { table, masses } = self;
        table.get(0).for_each(|topic, _| masses[topic as usize] = Mass::default());
        table.rebuild(0, row, inverse, USES);
        table.get(0).for_each(|topic, mass| masses[topic as usize] = mass);
    }

    /// Counts a token as a user of the table; false if the table is used up.
    #[inline(always)]
    pub fn take(&mut self) -> bool {
        self.table.take(0)
    }

    /// The table.
    #[inline(always)]
    pub fn get(&self) -> WordTable<'_, T> {
        self.table.get(0)
    }

    /// Mass of `topic`; zero if the word does not have it.
    #[inline(always)]
    pub fn mass(&self, topic: usize) -> Mass {
        self.masses[topic]
    }
}
