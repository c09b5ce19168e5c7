//! Counts that a master has gathered.

use std::ops::Range;

use lda_core::eval::{Visit, WordCounts};

/// C_w of all servers, and C_k, for a [`TopicModel`](lda_core::model::TopicModel).
#[derive(Clone, Debug, PartialEq)]
pub struct Gathered {
    totals: Vec<u64>,
    rows: Vec<Vec<(u32, u32)>>,
}

impl Gathered {
    /// Of no tokens.
    pub(super) fn new(topics: usize, words: usize) -> Self {
        Self { totals: vec![0; topics], rows: vec![Vec::new(); words] }
    }

    /// A word's row, which has none yet.
    pub(super) fn set(&mut self, word: u32, row: Vec<(u32, u32)>) {
        for &(topic, count) in &row {
            self.totals[topic as usize] += u64::from(count);
        }
        self.rows[word as usize] = row;
    }

    /// Whether these are C_k.
    pub(super) fn add_up_to(&self, totals: &[i64]) -> bool {
        let pairs = self.totals.iter().zip(totals);
        self.totals.len() == totals.len()
            && pairs.into_iter().all(|(&found, &total)| i64::try_from(found) == Ok(total))
    }
}

impl WordCounts for Gathered {
    fn num_topics(&self) -> usize {
        self.totals.len()
    }

    fn num_words(&self) -> usize {
        self.rows.len()
    }

    fn topic_total(&self, topic: usize) -> u64 {
        self.totals[topic]
    }

    fn visit_words(&self, words: Range<usize>, visit: &mut Visit<'_>) {
        words.for_each(|word| visit(word, &self.rows[word]));
    }
}
