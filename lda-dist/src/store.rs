//! The rows of C_w that a server has, of one partition.
//!
//! Rows lie as they travel ([`RowCode`]): a row that is pulled is copied and no more, a thousand times an epoch, and is
//! made anew once. What workers add is kept aside until the round ends, so that all that is pulled in a round is as of
//! its start, whoever comes first.
//!
//! Memory: the rows' bytes, 8 bytes a word, and 16 bytes for each (word, topic) that has changed in the round, or twice
//! that before what is of the same topic is brought together.

use std::ops::Range;

use thiserror::Error;

use crate::wire::{RowCode, WireError};

/// Changes that are kept before they are first brought together.
const FEW: usize = 1 << 16;

/// Counts that cannot be: what a peer has sent is not of this state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum StoreError {
    /// A count below 0, or beyond 32 bits.
    #[error("topic {topic} of word {word} would have {tokens} tokens")]
    Count {
        /// In its partition.
        word: u32,
        /// Topic.
        topic: u32,
        /// Tokens.
        tokens: i64,
    },
    /// A word beyond the last.
    #[error("word {word} of a partition of {words}")]
    Word {
        /// Which.
        word: u32,
        /// How many there are.
        words: usize,
    },
}

/// The rows of one partition's words, which have numbers of their own from 0 on.
#[derive(Clone, Debug)]
pub struct Store {
    code: RowCode,
    /// Where each row begins, and the end.
    starts: Vec<u64>,
    bytes: Vec<u8>,
    /// (word, topic, tokens gained) since the round's start.
    changes: Vec<(u32, u32, i64)>,
    /// So many changes, from the front, are in order and each of a topic of its own.
    merged: usize,
}

impl Store {
    /// Of so many words with rows of K topics, which are empty.
    ///
    /// # Panics
    /// If there are no topics.
    pub fn new(topics: u32, words: usize) -> Self {
        let code = RowCode::new(topics);
        let mut bytes = Vec::new();
        (0..words).for_each(|_| code.encode::<u32>(&[], &mut bytes));
        let each = bytes.len() / words.max(1);
        let starts = (0..=words).map(|word| (word * each) as u64).collect();
        Self { code, starts, bytes, changes: Vec::new(), merged: 0 }
    }

    /// Words.
    pub fn num_words(&self) -> usize {
        self.starts.len() - 1
    }

    fn range(&self, word: u32) -> Range<usize> {
        self.starts[word as usize] as usize..self.starts[word as usize + 1] as usize
    }

    /// A word's row as of the round's start, as it travels.
    ///
    /// # Panics
    /// If there is no such word.
    pub fn encoded(&self, word: u32) -> &[u8] {
        &self.bytes[self.range(word)]
    }

    /// The same, read.
    ///
    /// # Panics
    /// If there is no such word.
    pub fn row(&self, word: u32, row: &mut Vec<(u32, u32)>) {
        let read: Result<(), WireError> = self.code.decode(&mut self.encoded(word), row);
        read.expect("rows that were written here");
    }

    /// Adds to a word's row, from the next round on.
    ///
    /// # Errors
    /// [`StoreError::Word`].
    pub fn add(&mut self, word: u32, gained: &[(u32, i32)]) -> Result<(), StoreError> {
        if word as usize >= self.num_words() {
            return Err(StoreError::Word { word, words: self.num_words() });
        }
        self.changes.extend(gained.iter().map(|&(topic, by)| (word, topic, i64::from(by))));
        if self.changes.len() >= FEW.max(self.merged * 2) {
            self.merge();
        }
        Ok(())
    }

    fn merge(&mut self) {
        // Stable, which finds what is in order already.
        self.changes.sort_by_key(|&(word, topic, _)| (word, topic));
        self.changes.dedup_by(|next, kept| {
            let same = (next.0, next.1) == (kept.0, kept.1);
            if same {
                kept.2 += next.2;
            }
            same
        });
        self.changes.retain(|change| change.2 != 0);
        self.merged = self.changes.len();
    }

    /// Ends the round: rows become what was added to them. `totals` are added to, by topic.
    ///
    /// # Errors
    /// [`StoreError::Count`], and then all is as it was.
    ///
    /// # Panics
    /// If `totals` are not K.
    pub fn end_round(&mut self, totals: &mut [i64]) -> Result<(), StoreError> {
        assert_eq!(totals.len(), self.code.topics() as usize, "a total a topic");
        self.merge();
        if self.changes.is_empty() {
            return Ok(());
        }
        let (mut starts, mut bytes) = (vec![0], Vec::with_capacity(self.bytes.len()));
        let (mut row, mut new) = (Vec::new(), Vec::new());
        let mut changes = self.changes.chunk_by(|a, b| a.0 == b.0).peekable();
        for word in 0..self.num_words() as u32 {
            match changes.next_if(|changes| changes[0].0 == word) {
                None => bytes.extend_from_slice(self.encoded(word)),
                Some(changes) => {
                    self.row(word, &mut row);
                    add(&row, changes, &mut new)?;
                    self.code.encode(&new, &mut bytes);
                }
            }
            starts.push(bytes.len() as u64);
        }
        for &(_, topic, by) in &self.changes {
            totals[topic as usize] += by;
        }
        (self.starts, self.bytes) = (starts, bytes);
        self.changes.clear();
        self.merged = 0;
        Ok(())
    }

    /// Bytes held.
    pub fn memory(&self) -> usize {
        self.bytes.capacity() + 8 * self.starts.capacity() + 16 * self.changes.capacity()
    }
}

/// A row and what it gains, both ascending.
fn add(
    row: &[(u32, u32)],
    changes: &[(u32, u32, i64)],
    new: &mut Vec<(u32, u32)>,
) -> Result<(), StoreError> {
    new.clear();
    let mut row = row.iter().copied().peekable();
    for &(word, topic, by) in changes {
        while let Some(entry) = row.next_if(|entry| entry.0 < topic) {
            new.push(entry);
        }
        let before = row.next_if(|entry| entry.0 == topic).map_or(0, |entry| entry.1);
        let tokens = i64::from(before) + by;
        match u32::try_from(tokens) {
            Ok(0) => {}
            Ok(count) => new.push((topic, count)),
            Err(_) => return Err(StoreError::Count { word, topic, tokens }),
        }
    }
    new.extend(row);
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    const TOPICS: u32 = 20;

    proptest! {
        #[test]
        fn rows_are_what_was_added_in_rounds_before(
            rounds in prop::collection::vec(
                prop::collection::vec((0..6u32, 0..TOPICS, 1..4i32), 0..40), 1..5)
        ) {
            let mut store = Store::new(TOPICS, 6);
            let mut plain: BTreeMap<(u32, u32), i64> = BTreeMap::new();
            let mut totals = vec![0; TOPICS as usize];
            let mut row = Vec::new();
            for (number, round) in rounds.iter().enumerate() {
                let before = plain.clone();
                for &(word, topic, by) in round {
                    // Every second round takes away what is there.
                    let there = plain.get(&(word, topic)).copied().unwrap_or(0);
                    let by = if number % 2 == 1 { -(there.min(1) as i32) } else { by };
                    if by != 0 {
                        *plain.entry((word, topic)).or_default() += i64::from(by);
                        store.add(word, &[(topic, by)]).unwrap();
                    }
                    store.row(word, &mut row);
                    let then = |topic: u32| before.get(&(word, topic)).copied().unwrap_or(0);
                    prop_assert!(row.iter().all(|&(k, count)| i64::from(count) == then(k)));
                }
                store.end_round(&mut totals).unwrap();
                for word in 0..6 {
                    store.row(word, &mut row);
                    let expected: Vec<(u32, u32)> = plain
                        .range((word, 0)..(word + 1, 0))
                        .filter(|(_, count)| **count > 0)
                        .map(|(&(_, topic), &count)| (topic, count as u32))
                        .collect();
                    prop_assert_eq!(&row, &expected);
                }
            }
            for topic in 0..TOPICS {
                let all: i64 =
                    plain.iter().filter(|((_, k), _)| *k == topic).map(|(_, count)| *count).sum();
                prop_assert_eq!(totals[topic as usize], all);
            }
        }
    }

    #[test]
    fn what_cannot_be_is_refused_and_changes_nothing() {
        let mut store = Store::new(4, 2);
        let mut totals = [0; 4];
        assert_eq!(store.add(2, &[(0, 1)]), Err(StoreError::Word { word: 2, words: 2 }));
        store.add(1, &[(3, 2)]).unwrap();
        store.end_round(&mut totals).unwrap();
        store.add(0, &[(0, 1)]).unwrap();
        store.add(1, &[(3, -3)]).unwrap();
        let refused = store.end_round(&mut totals).unwrap_err();
        assert_eq!(refused, StoreError::Count { word: 1, topic: 3, tokens: -1 });
        assert_eq!(refused.to_string(), "topic 3 of word 1 would have -1 tokens");
        assert_eq!(totals, [0, 0, 0, 2]);
        let mut row = Vec::new();
        store.row(1, &mut row);
        assert_eq!(row, [(3, 2)]);
        // Another node takes it back.
        store.add(1, &[(3, 3)]).unwrap();
        store.end_round(&mut totals).unwrap();
        assert_eq!(totals, [1, 0, 0, 2]);
    }

    #[test]
    fn many_changes_of_few_topics_take_little_room() {
        let mut store = Store::new(4, 1);
        for _ in 0..FEW * 4 {
            store.add(0, &[(1, 1), (2, 1)]).unwrap();
        }
        assert!(store.changes.capacity() <= FEW * 4, "{}", store.changes.capacity());
        let mut totals = [0; 4];
        store.end_round(&mut totals).unwrap();
        assert_eq!(totals, [0, (FEW * 4) as i64, (FEW * 4) as i64, 0]);
    }
}
