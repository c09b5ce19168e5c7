//! The words with the most tokens of each topic.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use lda_core::eval::TopWord;

use super::Aggregate;
use crate::wire::RowCode;

/// The n words of each topic with the most tokens; among words with equally many tokens, those with
/// the lower ids. This is the result of [`top_words`](fn@lda_core::eval::top_words) by probability
/// over all rows, because φ̂_kw of one topic is in the order of C_wk.
///
/// ```text
/// for each topic, as a row of V entries: (word, its tokens of the topic)
/// ```
#[derive(Clone, Debug)]
pub struct TopWords {
    words: u32,
    most: usize,
    topics: Vec<BinaryHeap<Reverse<Entry>>>,
}

/// Greater is better: more tokens, or as many tokens and a lower word id.
type Entry = (u32, Reverse<u32>);

impl TopWords {
    /// Name in a [`Registry`](super::Registry).
    pub const NAME: &'static str = "top-words";

    /// Empty lists of at most `most` of V words, for each of K topics.
    pub fn new(topics: u32, words: u32, most: u32) -> Self {
        Self { words, most: most as usize, topics: vec![BinaryHeap::new(); topics as usize] }
    }

    #[inline]
    fn offer(&mut self, topic: u32, entry: Entry) {
        let list = &mut self.topics[topic as usize];
        if list.len() < self.most {
            list.push(Reverse(entry));
        } else if let Some(mut worst) = list.peek_mut()
            && entry > worst.0
        {
            *worst = Reverse(entry);
        }
    }

    /// Words of each topic, best first, with their probabilities given C_k and β.
    pub fn lists(&self, totals: impl IntoIterator<Item = u64>, beta: f64) -> Vec<Vec<TopWord>> {
        let beta_bar = beta * f64::from(self.words);
        let list = |(list, total): (&BinaryHeap<Reverse<Entry>>, u64)| {
            let mut entries: Vec<Entry> = list.iter().map(|entry| entry.0).collect();
            entries.sort_unstable_by_key(|&entry| Reverse(entry));
            let word = |(count, Reverse(word)): Entry| {
                let probability = (f64::from(count) + beta) / (total as f64 + beta_bar);
                TopWord { word, count, probability, score: probability }
            };
            entries.into_iter().map(word).collect()
        };
        self.topics.iter().zip(totals).map(list).collect()
    }
}

impl Aggregate for TopWords {
    fn add_row(&mut self, _: u16, word: u32, row: &[(u32, u32)]) {
        row.iter().for_each(|&(topic, count)| self.offer(topic, (count, Reverse(word))));
    }

    fn encode(&self, to: &mut Vec<u8>) {
        let code = RowCode::new(self.words);
        let mut row: Vec<(u32, u32)> = Vec::new();
        for list in &self.topics {
            row.clear();
            row.extend(list.iter().map(|&Reverse((count, Reverse(word)))| (word, count)));
            row.sort_unstable();
            code.encode(&row, to);
        }
    }

    fn merge(&mut self, from: &mut &[u8]) -> Option<()> {
        let code = RowCode::new(self.words);
        let mut row: Vec<(u32, u32)> = Vec::new();
        let mut words: Vec<u32> = Vec::new();
        for topic in 0..self.topics.len() as u32 {
            code.decode(from, &mut row).ok()?;
            if row.len() > self.most {
                return None;
            }
            row.iter().for_each(|&(word, count)| self.offer(topic, (count, Reverse(word))));
            // A word's count of a topic is on one server: the same word from two servers is an
            // error.
            let list = &self.topics[topic as usize];
            words.clear();
            words.extend(list.iter().map(|&Reverse((_, Reverse(word)))| word));
            words.sort_unstable();
            if words.windows(2).any(|pair| pair[0] == pair[1]) {
                return None;
            }
        }
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use std::ops::Range;

    use lda_core::counts::{VisitRow, WordCounts};
    use lda_core::eval::{Ranking, top_words};
    use proptest::prelude::*;

    use super::*;

    const TOPICS: usize = 3;

    /// Rows of all words.
    #[derive(Debug)]
    struct Table(Vec<[u32; TOPICS]>);

    impl Table {
        fn row(&self, word: usize) -> Vec<(u32, u32)> {
            (0..).zip(self.0[word]).filter(|entry| entry.1 > 0).collect()
        }
    }

    impl WordCounts for Table {
        fn num_topics(&self) -> usize {
            TOPICS
        }
        fn num_words(&self) -> usize {
            self.0.len()
        }
        fn topic_total(&self, topic: usize) -> u64 {
            self.0.iter().map(|row| u64::from(row[topic])).sum()
        }
        fn visit_words(&self, words: Range<usize>, visit: &mut VisitRow<'_>) {
            words.for_each(|word| visit(word, &self.row(word)));
        }
    }

    proptest! {
        #[test]
        fn merged_parts_are_the_lists_of_all_rows(
            // Few different counts, so that some are equal and some are not.
            rows in prop::collection::vec((any::<[u8; TOPICS]>(), 0..4usize), 1..60),
            most in 1..9u32,
            large in any::<bool>(),
        ) {
            let size = if large { 1 << 24 } else { 1 };
            let counts = rows.iter().map(|(row, _)| row.map(|count| u32::from(count % 4) * size));
            let table = Table(counts.collect());
            let (words, beta) = (table.0.len() as u32, 0.01);
            let new = || TopWords::new(TOPICS as u32, words, most);
            let mut all = new();
            for server in 0..4 {
                let mut part = new();
                // Words in another order.
                let own = (0..rows.len()).rev().filter(|&word| rows[word].1 == server);
                own.for_each(|word| part.add_row(0, word as u32, &table.row(word)));
                let mut bytes = Vec::new();
                part.encode(&mut bytes);
                let mut rest = &bytes[..];
                prop_assert_eq!(all.merge(&mut rest), Some(()));
                prop_assert!(rest.is_empty());
                for cut in 0..bytes.len() {
                    prop_assert!(new().merge(&mut &bytes[..cut]).is_none());
                }
            }
            let totals: Vec<u64> = (0..TOPICS).map(|topic| table.topic_total(topic)).collect();
            let expected = top_words(&table, beta, most as usize, Ranking::Probability).unwrap();
            prop_assert_eq!(all.lists(totals, beta), expected);
        }
    }

    #[test]
    fn the_same_word_from_two_servers_is_refused() {
        let told = |word, count| {
            let mut part = TopWords::new(1, 9, 2);
            part.add_row(0, word, &[(0, count)]);
            let mut bytes = Vec::new();
            part.encode(&mut bytes);
            bytes
        };
        let mut all = TopWords::new(1, 9, 2);
        assert_eq!(all.merge(&mut &told(3, 5)[..]), Some(()));
        assert_eq!(all.merge(&mut &told(4, 6)[..]), Some(()));
        assert_eq!(all.clone().merge(&mut &told(4, 7)[..]), None);
        assert_eq!(all.merge(&mut &told(5, 7)[..]), Some(()));
    }

    #[test]
    fn more_words_than_requested_are_refused() {
        let mut two = TopWords::new(1, 9, 2);
        two.add_row(0, 3, &[(0, 5)]);
        two.add_row(0, 4, &[(0, 6)]);
        let mut bytes = Vec::new();
        two.encode(&mut bytes);
        assert_eq!(TopWords::new(1, 9, 2).merge(&mut &bytes[..]), Some(()));
        assert_eq!(TopWords::new(1, 9, 1).merge(&mut &bytes[..]), None);
        // A word beyond the vocabulary.
        let mut bytes = Vec::new();
        RowCode::new(100).encode(&[(50, 1u32)], &mut bytes);
        assert_eq!(TopWords::new(1, 9, 2).merge(&mut &bytes[..]), None);
    }
}
