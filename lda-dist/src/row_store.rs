//! The rows of C_w that a server has, of one partition.
//!
//! Rows lie as they travel ([`RowCode`]): a row that is pulled is copied and no more, a thousand times an epoch, and is
//! made anew once. What workers add is kept aside until its round ends, so that all that is pulled in a round is as of
//! one moment, whoever comes first.
//!
//! Where rounds overlap, what one adds is not yet to be seen in the next, which is on already: rows are there in some
//! **versions**, one for each round that has ended, as long as somebody may ask for it.
//!
//! Memory: of each version the rows' bytes and 8 bytes a word; and 16 bytes for each (word, topic) that has changed in
//! a round that is on, or twice that before what is of the same topic is brought together.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;

use thiserror::Error;

use crate::spec::Round;
use crate::wire::{RowCode, WireError};

/// Changes that are kept before they are first brought together.
const FEW: usize = 1 << 16;

/// Counts that cannot be: what a peer has sent is not of this state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum RowStoreError {
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
pub struct RowStore {
    code: RowCode,
    words: usize,
    /// Rows after so many rounds; the last are those of now.
    versions: VecDeque<(u64, Encoded)>,
    /// Rounds that have ended.
    ended: u64,
    /// Of rounds that are on.
    changes: BTreeMap<Round, Changes>,
}

/// Rows, one behind the other.
#[derive(Clone, Debug)]
struct Encoded {
    /// Where each row begins, and the end.
    starts: Vec<u64>,
    bytes: Vec<u8>,
}

/// What rows gain in a round.
#[derive(Clone, Debug, Default)]
struct Changes {
    /// (word, topic, tokens gained).
    all: Vec<(u32, u32, i64)>,
    /// So many, from the front, are in order and each of a topic of its own.
    merged: usize,
}

impl Encoded {
    fn row(&self, word: u32) -> &[u8] {
        let range: Range<usize> =
            self.starts[word as usize] as usize..self.starts[word as usize + 1] as usize;
        &self.bytes[range]
    }
}

impl Changes {
    fn merge(&mut self) {
        // Stable, which finds what is in order already.
        self.all.sort_by_key(|&(word, topic, _)| (word, topic));
        self.all.dedup_by(|next, kept| {
            let same = (next.0, next.1) == (kept.0, kept.1);
            if same {
                kept.2 += next.2;
            }
            same
        });
        self.all.retain(|change| change.2 != 0);
        self.merged = self.all.len();
    }
}

impl RowStore {
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
        let versions = VecDeque::from([(0, Encoded { starts, bytes })]);
        Self { code, words, versions, ended: 0, changes: BTreeMap::new() }
    }

    /// Words.
    pub fn num_words(&self) -> usize {
        self.words
    }

    /// Rounds that have ended: the number of the last version.
    pub fn version(&self) -> u64 {
        self.ended
    }

    fn at(&self, version: u64) -> &Encoded {
        let after = self.versions.partition_point(|&(number, _)| number <= version);
        let found = after.checked_sub(1).map(|at| &self.versions[at].1);
        found.expect("a version that was not forgotten")
    }

    /// A word's row in a version, as it travels.
    ///
    /// # Panics
    /// If there is no such word, or if the version was [forgotten](Self::forget).
    pub fn encoded(&self, version: u64, word: u32) -> &[u8] {
        self.at(version).row(word)
    }

    /// A word's row of now.
    ///
    /// # Panics
    /// If there is no such word.
    pub fn row(&self, word: u32, row: &mut Vec<(u32, u32)>) {
        self.read(self.ended, word, row);
    }

    /// A word's row of now, behind what `row` has.
    ///
    /// # Panics
    /// If there is no such word.
    pub fn row_behind(&self, word: u32, row: &mut Vec<(u32, u32)>) {
        let encoded = &mut self.encoded(self.ended, word);
        self.code.decode_behind(encoded, row).expect("rows that were written here");
    }

    /// A word's row in a version.
    ///
    /// # Panics
    /// If there is no such word, or if the version was [forgotten](Self::forget).
    pub fn read(&self, version: u64, word: u32, row: &mut Vec<(u32, u32)>) {
        let read: Result<(), WireError> = self.code.decode(&mut self.encoded(version, word), row);
        read.expect("rows that were written here");
    }

    /// Adds to a word's row, from the end of this round on.
    ///
    /// # Errors
    /// [`RowStoreError::Word`].
    pub fn add(
        &mut self,
        round: Round,
        word: u32,
        gained: &[(u32, i32)],
    ) -> Result<(), RowStoreError> {
        if word as usize >= self.num_words() {
            return Err(RowStoreError::Word { word, words: self.num_words() });
        }
        let changes = self.changes.entry(round).or_default();
        changes.all.extend(gained.iter().map(|&(topic, by)| (word, topic, i64::from(by))));
        if changes.all.len() >= FEW.max(changes.merged * 2) {
            changes.merge();
        }
        Ok(())
    }

    /// Ends a round: rows of the next version have what was added to them in it. `totals` are added to, by topic.
    ///
    /// # Errors
    /// [`RowStoreError::Count`], and then all is as it was.
    ///
    /// # Panics
    /// If `totals` are not K.
    pub fn end_round(&mut self, round: Round, totals: &mut [i64]) -> Result<(), RowStoreError> {
        assert_eq!(totals.len(), self.code.topics() as usize, "a total a topic");
        let changes = self.changes.entry(round).or_default();
        changes.merge();
        let changes = &self.changes[&round].all;
        if !changes.is_empty() {
            let rows = self.after(changes)?;
            for &(_, topic, by) in changes {
                totals[topic as usize] += by;
            }
            self.versions.push_back((self.ended + 1, rows));
        }
        self.changes.remove(&round);
        self.ended += 1;
        Ok(())
    }

    /// Rows of now with these changes.
    fn after(&self, changes: &[(u32, u32, i64)]) -> Result<Encoded, RowStoreError> {
        let now = self.at(self.ended);
        let (mut starts, mut bytes) = (vec![0], Vec::with_capacity(now.bytes.len()));
        let (mut row, mut new) = (Vec::new(), Vec::new());
        let mut changes = changes.chunk_by(|a, b| a.0 == b.0).peekable();
        for word in 0..self.num_words() as u32 {
            match changes.next_if(|changes| changes[0].0 == word) {
                None => bytes.extend_from_slice(now.row(word)),
                Some(changes) => {
                    self.read(self.ended, word, &mut row);
                    add(&row, changes, &mut new)?;
                    self.code.encode(&new, &mut bytes);
                }
            }
            starts.push(bytes.len() as u64);
        }
        Ok(Encoded { starts, bytes })
    }

    /// Nobody asks for versions before this one any more.
    pub fn forget(&mut self, version: u64) {
        while self.versions.get(1).is_some_and(|&(next, _)| next <= version) {
            self.versions.pop_front();
        }
    }

    /// Bytes held.
    pub fn memory(&self) -> usize {
        let of = |rows: &Encoded| rows.bytes.capacity() + 8 * rows.starts.capacity();
        let versions: usize = self.versions.iter().map(|version| of(&version.1)).sum();
        versions + 16 * self.changes.values().map(|it| it.all.capacity()).sum::<usize>()
    }
}

/// A row and what it gains, both ascending.
fn add(
    row: &[(u32, u32)],
    changes: &[(u32, u32, i64)],
    new: &mut Vec<(u32, u32)>,
) -> Result<(), RowStoreError> {
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
            Err(_) => return Err(RowStoreError::Count { word, topic, tokens }),
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

    fn round(number: u16) -> Round {
        Round { epoch: 1, number, attempt: 0 }
    }

    type Plain = BTreeMap<(u32, u32), i64>;

    fn check(plain: &Plain, store: &RowStore, version: u64) -> Result<(), TestCaseError> {
        let mut row: Vec<(u32, u32)> = Vec::new();
        for word in 0..6 {
            store.code.decode(&mut store.encoded(version, word), &mut row).unwrap();
            let expected: Vec<(u32, u32)> = plain
                .range((word, 0)..(word + 1, 0))
                .filter(|(_, count)| **count > 0)
                .map(|(&(_, topic), &count)| (topic, count as u32))
                .collect();
            prop_assert_eq!(&row, &expected);
        }
        Ok(())
    }

    proptest! {
        #[test]
        fn rows_are_what_was_added_in_rounds_before(
            rounds in prop::collection::vec(
                prop::collection::vec((0..6u32, 0..TOPICS, 1..4i32), 0..40), 1..6),
            kept in 1..4usize,
        ) {
            let mut store = RowStore::new(TOPICS, 6);
            // What is added in a round after the last is of no matter.
            store.add(round(9), 3, &[(1, 5)]).unwrap();
            let mut plain = vec![Plain::new()];
            let mut totals = vec![0; TOPICS as usize];
            for (number, changes) in rounds.iter().enumerate() {
                let mut now = plain[number].clone();
                for &(word, topic, by) in changes {
                    // Every second round takes away what is there.
                    let there = now.get(&(word, topic)).copied().unwrap_or(0);
                    let by = if number % 2 == 1 { -(there.min(1) as i32) } else { by };
                    if by != 0 {
                        *now.entry((word, topic)).or_default() += i64::from(by);
                        store.add(round(number as u16), word, &[(topic, by)]).unwrap();
                    }
                }
                check(&plain[number], &store, store.version())?;
                store.end_round(round(number as u16), &mut totals).unwrap();
                plain.push(now);
                let first = plain.len().saturating_sub(kept);
                store.forget(first as u64);
                prop_assert!(store.versions.len() <= kept);
                for (version, rows) in plain.iter().enumerate().skip(first) {
                    check(rows, &store, version as u64)?;
                }
            }
            for topic in 0..TOPICS {
                let all: i64 = plain[rounds.len()]
                    .iter()
                    .filter(|((_, k), _)| *k == topic)
                    .map(|(_, count)| *count)
                    .sum();
                prop_assert_eq!(totals[topic as usize], all);
            }
        }
    }

    #[test]
    fn what_cannot_be_is_refused_and_changes_nothing() {
        let mut store = RowStore::new(4, 2);
        let mut totals = [0; 4];
        let refused = store.add(round(0), 2, &[(0, 1)]);
        assert_eq!(refused, Err(RowStoreError::Word { word: 2, words: 2 }));
        store.add(round(0), 1, &[(3, 2)]).unwrap();
        store.end_round(round(0), &mut totals).unwrap();
        store.add(round(1), 0, &[(0, 1)]).unwrap();
        store.add(round(1), 1, &[(3, -3)]).unwrap();
        let refused = store.end_round(round(1), &mut totals).unwrap_err();
        assert_eq!(refused, RowStoreError::Count { word: 1, topic: 3, tokens: -1 });
        assert_eq!(refused.to_string(), "topic 3 of word 1 would have -1 tokens");
        assert_eq!(totals, [0, 0, 0, 2]);
        let mut row = Vec::new();
        store.row(1, &mut row);
        assert_eq!(row, [(3, 2)]);
        // Another node takes it back.
        store.add(round(1), 1, &[(3, 3)]).unwrap();
        store.end_round(round(1), &mut totals).unwrap();
        assert_eq!(totals, [1, 0, 0, 2]);
    }

    #[test]
    fn many_changes_of_few_topics_take_little_room() {
        let mut store = RowStore::new(4, 1);
        for _ in 0..FEW * 4 {
            store.add(round(0), 0, &[(1, 1), (2, 1)]).unwrap();
        }
        let held = store.changes[&round(0)].all.capacity();
        assert!(held <= FEW * 4, "{held}");
        let mut totals = [0; 4];
        store.end_round(round(0), &mut totals).unwrap();
        assert_eq!(totals, [0, (FEW * 4) as i64, (FEW * 4) as i64, 0]);
    }
}
