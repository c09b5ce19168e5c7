//! The table of the word that is being visited, and what each topic weighs in it.

use crate::counts::{RowMut, TopicIndex};
use crate::sampler::tables::{Mass, WordTable, WordTables};

/// Tokens that may draw from a table for each of its topics. With one, kos at K = 1,000 came to the same
/// likelihood in 1,500 epochs.
const USES: u32 = 2;

/// A word's stale table with its masses also by topic: a look-up is then one load, and there are two
/// to four of them a token.
#[derive(Debug)]
pub(super) struct VisitTable<T> {
    table: WordTables<T>,
    masses: Vec<Mass>,
}

impl<T: TopicIndex> VisitTable<T> {
    /// For `topics` topics; nothing is built yet.
    pub fn new(topics: usize) -> Self {
        let masses = vec![Mass::default(); topics];
        Self { table: WordTables::new(topics, [u64::MAX]), masses }
    }

    /// Builds the table of `row` from 1 / (C_k + Vβ), for as many tokens as it has topics.
    #[inline(always)]
    pub fn build(&mut self, row: &RowMut<'_, T>, inverse: impl Fn(usize) -> f32) {
        let Self { table, masses } = self;
        table.get(0).for_each(|topic, _| masses[topic as usize] = Mass::default());
        table.rebuild(0, row, inverse, USES);
        table.get(0).for_each(|topic, mass| masses[topic as usize] = mass);
    }

    /// Whether another token may draw from it.
    #[inline(always)]
    pub fn take(&mut self) -> bool {
        self.table.take(0)
    }

    /// The table.
    #[inline(always)]
    pub fn get(&self) -> WordTable<'_, T> {
        self.table.get(0)
    }

    /// Mass of `topic`; zero where the word had none.
    #[inline(always)]
    pub fn mass(&self, topic: usize) -> Mass {
        self.masses[topic]
    }
}
