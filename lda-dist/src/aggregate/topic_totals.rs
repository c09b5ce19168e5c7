//! Tokens of each topic.

use super::Aggregate;
use crate::wire::{put_number, take_number};

/// C_k of all rows, which the master compares with its own. 1 byte per topic, and one more for each factor
/// 128 of its tokens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TopicTotals {
    counts: Vec<u64>,
}

impl TopicTotals {
    /// Name in a [`Registry`](super::Registry).
    pub const NAME: &'static str = "topic-totals";

    /// No tokens of K topics.
    pub fn new(topics: u32) -> Self {
        Self { counts: vec![0; topics as usize] }
    }

    /// Number of tokens of each topic.
    pub fn counts(&self) -> &[u64] {
        &self.counts
    }
}

impl Aggregate for TopicTotals {
    fn add_row(&mut self, _: u16, _: u32, row: &[(u32, u32)]) {
        row.iter().for_each(|&(topic, count)| self.counts[topic as usize] += u64::from(count));
    }

    fn encode(&self, to: &mut Vec<u8>) {
        self.counts.iter().for_each(|&count| put_number(count, to));
    }

    fn merge(&mut self, from: &mut &[u8]) -> Option<()> {
        for count in &mut self.counts {
            *count = count.checked_add(take_number(from)?)?;
        }
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_of_all_slices_add_up() {
        let mut all = TopicTotals::new(3);
        for rows in [[&[(0, 200), (2, 1)][..], &[(2, 5)]], [&[(0, u32::MAX)], &[]]] {
            let mut part = TopicTotals::new(3);
            (0..).zip(rows).for_each(|(slice, row)| part.add_row(slice, 7, row));
            let mut bytes = Vec::new();
            part.encode(&mut bytes);
            let mut rest = &bytes[..];
            assert_eq!((all.merge(&mut rest), rest.len()), (Some(()), 0));
            assert_eq!(TopicTotals::new(4).merge(&mut &bytes[..]), None, "counts of three topics");
        }
        assert_eq!(all.counts(), [u64::from(u32::MAX) + 200, 0, 6]);
        let most = [&[0xff; 9][..], &[1, 0, 0]].concat();
        assert_eq!(all.merge(&mut &most[..]), None, "the sum does not fit");
    }
}
