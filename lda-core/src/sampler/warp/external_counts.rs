//! External tokens of a word: tokens on other nodes, or of another sampler. Only their counts are
//! known.
//!
//! They count like other tokens in the acceptance ratio, and a proposal may be the topic of one of
//! them. Among tokens that are known one by one, a random token is picked; here its topic is drawn
//! from the counts: with an alias table (O(K_w) to build, O(1) per draw) if there are at least as
//! many draws as topics, otherwise from cumulative counts (also O(K_w), but several times as fast
//! to build, and O(log K_w) per draw).

use crate::counts::{Rows, TopicIndex};
use crate::discrete::{AliasScratch, SparseAlias};
use crate::random::WideState;
use crate::simd::{LANES, Lanes};

/// Counts of one word's external tokens.
#[derive(Debug)]
pub(super) struct ExternalCounts {
    row: Vec<(u32, u32)>,
    tokens: u32,
    /// Cumulative counts of the row; empty if draws are made from `table`.
    cumulative: Vec<u32>,
    table: SparseAlias,
    scratch: AliasScratch,
}

impl Default for ExternalCounts {
    fn default() -> Self {
        Self {
            row: Vec::new(),
            tokens: 0,
            cumulative: Vec::new(),
            table: SparseAlias::new([(0, 1.0)]).expect("one weight that is positive"),
            scratch: AliasScratch::default(),
        }
    }
}

impl ExternalCounts {
    /// Removes all tokens.
    pub fn clear(&mut self) {
        self.row.clear();
        self.tokens = 0;
    }

    /// Reads the counts of a word; about `draws` topics will be drawn.
    #[inline(always)]
    pub fn read<T: TopicIndex>(&mut self, rows: &Rows<T>, word: usize, draws: usize) {
        let Self { row, tokens, cumulative, table, scratch } = self;
        row.clear();
        rows.for_each(word, |topic, count| row.push((topic, count)));
        cumulative.clear();
        if draws < row.len() {
            let mut sum = 0u32;
            cumulative.extend(row.iter().map(|&(_, count)| {
                sum += count;
                sum
            }));
            *tokens = sum;
        } else {
            *tokens = row.iter().map(|entry| entry.1).sum();
            if *tokens > 0 {
                let weights = row.iter().map(|&(topic, count)| (topic, f64::from(count)));
                table.rebuild(weights, scratch).expect("counts that are not all 0");
            }
        }
    }

    /// (topic, number of tokens), no zeros.
    #[inline(always)]
    pub fn row(&self) -> &[(u32, u32)] {
        &self.row
    }

    /// Tokens.
    #[inline(always)]
    pub fn tokens(&self) -> u32 {
        self.tokens
    }

    /// Draws one topic per lane, in proportion to tokens. There must be at least one token.
    #[inline(always)]
    pub fn draw<L: Lanes>(&self, l: L, random: &mut WideState<L>) -> L::U {
        let (mut topics, mut low) = ([0; LANES], [0; LANES]);
        l.store_u(&mut topics, random.next(l));
        if self.cumulative.is_empty() {
            l.store_u(&mut low, random.next(l));
            for (high, low) in topics.iter_mut().zip(low) {
                *high = self.table.locate(u64::from(*high) << 32 | u64::from(low));
            }
        } else {
            for random in &mut topics {
                let token = (u64::from(*random) * u64::from(self.tokens)) >> 32;
                let at = self.cumulative.partition_point(|&sum| u64::from(sum) <= token);
                *random = self.row[at].0;
            }
        }
        l.load_u(&topics)
    }
}
