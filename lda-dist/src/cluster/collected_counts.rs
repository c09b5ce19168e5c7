//! Counts that the master has collected.

use std::ops::Range;

use lda_core::counts::{VisitRow, WordCounts};

/// C_w of all servers, and C_k, for a [`TopicModel`](lda_core::model::TopicModel).
#[derive(Clone, Debug, PartialEq)]
pub struct CollectedCounts {
    totals: Vec<u64>,
    rows: Vec<Vec<(u32, u32)>>,
}

impl CollectedCounts {
    /// Counts of no tokens.
    pub(crate) fn new(topics: usize, words: usize) -> Self {
        Self { totals: vec![0; topics], rows: vec![Vec::new(); words] }
    }

    /// Appends to a word's row the counts of topics from `first` on.
    pub(crate) fn add(&mut self, word: u32, first: u32, row: &[(u32, u32)]) {
        let of_word = &mut self.rows[word as usize];
        of_word.reserve_exact(row.len());
        for &(topic, count) in row {
            self.totals[(first + topic) as usize] += u64::from(count);
            of_word.push((first + topic, count));
        }
    }

    /// Sorts every row by topic and adds up the counts of each, after parts of rows were added out of
    /// order.
    pub(crate) fn merge(&mut self) {
        for row in &mut self.rows {
            row.sort_unstable();
            row.dedup_by(|next, kept| {
                let is_same = next.0 == kept.0;
                kept.1 += if is_same { next.1 } else { 0 };
                is_same
            });
        }
    }

    /// Whether the sums by topic are C_k.
    pub(crate) fn add_up_to(&self, totals: &[i64]) -> bool {
        let pairs = self.totals.iter().zip(totals);
        self.totals.len() == totals.len()
            && pairs.into_iter().all(|(&found, &total)| i64::try_from(found) == Ok(total))
    }
}

impl WordCounts for CollectedCounts {
    fn num_topics(&self) -> usize {
        self.totals.len()
    }

    fn num_words(&self) -> usize {
        self.rows.len()
    }

    fn topic_total(&self, topic: usize) -> u64 {
        self.totals[topic]
    }

    fn visit_words(&self, words: Range<usize>, visit: &mut VisitRow<'_>) {
        words.for_each(|word| visit(word, &self.rows[word]));
    }
}
