//! Rows of C_w of one partition on a server.
//!
//! Rows are stored in their wire format ([`RowCode`]): a row is copied when it is pulled, which
//! happens a thousand times per epoch, and re-encoded once per round. Deltas are kept apart until
//! their round ends, so all pulls of a round read the rows of one moment, in whatever order they
//! arrive.
//!
//! With overlapping rounds, a round must not see the deltas of its predecessor, so rows are
//! multi-versioned: one **version** per round that has ended, as long as an open round reads it.
//!
//! Memory: the encoded rows of each version and 8 bytes per word; and 16 bytes for each (word,
//! topic) that has changed in an open round, or twice that before deltas of the same topic are
//! merged.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;

use thiserror::Error;

use crate::spec::Round;
use crate::wire::{RowCode, WireError};

/// Deltas of a round before they are first merged.
const FEW: usize = 1 << 16;

/// A delta that does not fit the rows: a peer has sent a message of another state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum RowStoreError {
    /// A count would be negative, or exceed 32 bits.
    #[error(
        "a delta would make the count of topic {topic} and word {word} {tokens}, which is below 0 or above 2^32 - 1"
    )]
    Count {
        /// Index of the word in its partition.
        word: u32,
        /// The topic.
        topic: u32,
        /// The count that would result.
        tokens: i64,
    },
    /// The partition has no such word.
    #[error("there is no word {word}: the partition has {words} words, numbered from 0")]
    Word {
        /// Index of the word.
        word: u32,
        /// Number of words.
        words: usize,
    },
}

/// Rows of one partition's words, which are numbered from 0.
#[derive(Clone, Debug)]
pub struct RowStore {
    code: RowCode,
    words: usize,
    /// Versions of the rows, named by the number of rounds that had ended; the last one is current.
    versions: VecDeque<(u64, Encoded)>,
    /// Number of rounds that have ended.
    ended: u64,
    /// Deltas of open rounds.
    changes: BTreeMap<Round, Changes>,
}

/// Encoded rows, concatenated.
#[derive(Clone, Debug)]
struct Encoded {
    /// Start of each row, and the end.
    starts: Vec<u64>,
    bytes: Vec<u8>,
}

/// Deltas of a round.
#[derive(Clone, Debug, Default)]
struct Changes {
    /// (word, topic, change of the count).
    all: Vec<(u32, u32, i64)>,
    /// Length of the prefix that is sorted and has distinct (word, topic) pairs.
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
        // PERF: a stable sort, which recognises the sorted prefix.
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
    /// Empty rows of K topics, for this number of words.
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

    /// Number of words.
    pub fn num_words(&self) -> usize {
        self.words
    }

    /// Number of rounds that have ended, which names the current version.
    pub fn version(&self) -> u64 {
        self.ended
    }

    fn at(&self, version: u64) -> &Encoded {
        let after = self.versions.partition_point(|&(number, _)| number <= version);
        let found = after.checked_sub(1).map(|at| &self.versions[at].1);
        found.expect("a version that was not forgotten")
    }

    /// Encoded row of a word in a version.
    ///
    /// # Panics
    /// If there is no such word, or if the version was [forgotten](Self::forget).
    pub fn encoded(&self, version: u64, word: u32) -> &[u8] {
        self.at(version).row(word)
    }

    /// Decodes the current row of a word.
    ///
    /// # Panics
    /// If there is no such word.
    pub fn row(&self, word: u32, row: &mut Vec<(u32, u32)>) {
        self.read(self.ended, word, row);
    }

    /// Appends the current row of a word to `row`.
    ///
    /// # Panics
    /// If there is no such word.
    pub fn row_behind(&self, word: u32, row: &mut Vec<(u32, u32)>) {
        let encoded = &mut self.encoded(self.ended, word);
        self.code.decode_behind(encoded, row).expect("rows that were written here");
    }

    /// Decodes the row of a word in a version.
    ///
    /// # Panics
    /// If there is no such word, or if the version was [forgotten](Self::forget).
    pub fn read(&self, version: u64, word: u32, row: &mut Vec<(u32, u32)>) {
        let read: Result<(), WireError> = self.code.decode(&mut self.encoded(version, word), row);
        read.expect("rows that were written here");
    }

    /// Adds a delta to a word's row, which takes effect when the round ends.
    ///
    /// # Errors
    /// [`RowStoreError::Word`].
    pub fn add(
        &mut self,
        round: Round,
        word: u32,
        delta: &[(u32, i32)],
    ) -> Result<(), RowStoreError> {
        if word as usize >= self.num_words() {
            return Err(RowStoreError::Word { word, words: self.num_words() });
        }
        let changes = self.changes.entry(round).or_default();
        changes.all.extend(delta.iter().map(|&(topic, by)| (word, topic, i64::from(by))));
        if changes.all.len() >= FEW.max(changes.merged * 2) {
            changes.merge();
        }
        Ok(())
    }

    /// Ends a round: makes a version that contains its deltas. Adds the deltas of each topic to
    /// `totals`.
    ///
    /// # Errors
    /// [`RowStoreError::Count`]; then nothing has changed.
    ///
    /// # Panics
    /// If `totals` does not have K entries.
    pub fn end_round(&mut self, round: Round, totals: &mut [i64]) -> Result<(), RowStoreError> {
        assert_eq!(totals.len(), self.code.topics() as usize, "one total per topic");
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

    /// The current rows with these changes.
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

    /// Frees versions that are older than this one, which no open round reads.
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

/// Adds changes to a row, both with topics ascending.
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
            // A delta of a later round has no effect.
            store.add(round(9), 3, &[(1, 5)]).unwrap();
            let mut plain = vec![Plain::new()];
            let mut totals = vec![0; TOPICS as usize];
            for (number, changes) in rounds.iter().enumerate() {
                let mut now = plain[number].clone();
                for &(word, topic, by) in changes {
                    // Every second round subtracts.
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
        assert_eq!(
            refused.to_string(),
            "a delta would make the count of topic 3 and word 1 -1, which is below 0 or above 2^32 - 1"
        );
        assert_eq!(totals, [0, 0, 0, 2]);
        let mut row = Vec::new();
        store.row(1, &mut row);
        assert_eq!(row, [(3, 2)]);
        // Another worker compensates for it.
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
