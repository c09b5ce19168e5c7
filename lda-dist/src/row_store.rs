//! Rows of C_w of one partition on a server.
//!
//! Rows are stored in their wire format ([`RowCode`]): a row is copied when it is pulled, and encoded
//! again when a round has ended that changed it. Deltas are kept apart until their round ends, so all pulls of a
//! round read the rows of one moment, in whatever order they arrive. A reader may ask for the newest rows
//! instead, which contain the deltas that are kept apart ([`ReadAt::Newest`]): the row is decoded, changed and
//! encoded again for each such read.
//!
//! A peer that alone changes a row in a round may send the whole row instead of its delta. It is then kept as it
//! came, which saves decoding, adding and encoding.
//!
//! With overlapping rounds, a round must not see the deltas of its predecessor, so rows are
//! multi-versioned: one **version** per round that has ended, as long as an open round reads it. A version
//! has only the rows that were replaced when the next one began.
//!
//! Cost: the end of a round takes O(entries of its deltas, and of the rows that they change), and O(1) per row
//! that is replaced, however many rows there are.
//!
//! Memory: the encoded rows, those of older versions, as many bytes again of rows that no version needs
//! any more, and 16 bytes per word; and 8 bytes for each (word, topic) that has changed in an open round,
//! or twice that before deltas of the same topic are merged.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;

use hashbrown::HashMap;
use thiserror::Error;

use crate::round_deltas::RoundDeltas;
use crate::spec::Round;
use crate::wire::{RowCode, WireError};

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
    /// The row is replaced, and changed once more in the same round.
    #[error("the row of word {word} is replaced, and changed once more in the same round")]
    Replaced {
        /// Index of the word in its partition.
        word: u32,
    },
}

/// Rows of one partition's words, which are numbered from 0.
#[derive(Clone, Debug)]
pub struct RowStore {
    code: RowCode,
    /// Current row of each word.
    rows: Vec<Place>,
    /// Encoded rows of all versions, and unused ones.
    bytes: Vec<u8>,
    /// Number of bytes that no version needs.
    unused: usize,
    /// Rows that the end of a round replaced, words ascending, with the number of the version that it made.
    replaced: VecDeque<(u64, Vec<(u32, Place)>)>,
    /// Number of rounds that have ended.
    ended: u64,
    /// The oldest version that was not forgotten.
    oldest: u64,
    /// Deltas of open rounds.
    changes: BTreeMap<Round, RoundDeltas>,
    /// New rows of the words whose rows the end of an open round will replace.
    replacements: BTreeMap<Round, HashMap<u32, Place>>,
}

/// The changes that a read row contains.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadAt {
    /// Those of the rounds that had ended when this [version](RowStore::version) was the current one.
    Version(u64),
    /// All that have been added, also those of open rounds.
    Newest,
}

impl ReadAt {
    /// Returns whether this is a version before that with the number `oldest`.
    pub(crate) fn is_before(self, oldest: u64) -> bool {
        matches!(self, Self::Version(number) if number < oldest)
    }
}

/// Scratch of [`RowStore::read_at`] and [`RowStore::decode_at`], whose contents have no meaning.
#[derive(Debug, Default)]
pub struct RowBuffers {
    row: Vec<(u32, u32)>,
    changed: Vec<(u32, u32)>,
    delta: Vec<(u32, i64)>,
    encoded: Vec<u8>,
}

impl RowBuffers {
    /// Bytes held.
    pub fn memory(&self) -> usize {
        let Self { row, changed, delta, encoded } = self;
        8 * (row.capacity() + changed.capacity()) + 16 * delta.capacity() + encoded.capacity()
    }
}

/// Position of an encoded row.
#[derive(Clone, Copy, Debug)]
struct Place {
    start: usize,
    len: u32,
}

impl Place {
    fn range(self) -> Range<usize> {
        self.start..self.start + self.len as usize
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
        let mut empty = |_| {
            let start = bytes.len();
            code.encode::<u32>(&[], &mut bytes);
            Place { start, len: (bytes.len() - start) as u32 }
        };
        let rows = (0..words).map(&mut empty).collect();
        Self {
            code,
            rows,
            bytes,
            unused: 0,
            replaced: VecDeque::new(),
            ended: 0,
            oldest: 0,
            changes: BTreeMap::new(),
            replacements: BTreeMap::new(),
        }
    }

    /// Number of words.
    pub fn num_words(&self) -> usize {
        self.rows.len()
    }

    /// Number of rounds that have ended, which names the current version.
    pub fn version(&self) -> u64 {
        self.ended
    }

    /// Encoded row of a word in a version.
    ///
    /// # Panics
    /// If there is no such word, or if the version was [forgotten](Self::forget).
    pub fn encoded(&self, version: u64, word: u32) -> &[u8] {
        assert!(version >= self.oldest, "a version that was forgotten");
        let later = self.replaced.iter().skip_while(|(number, _)| *number <= version);
        let mut replaced = later.filter_map(|(_, rows)| {
            let at = rows.binary_search_by_key(&word, |row| row.0).ok()?;
            Some(rows[at].1)
        });
        let place = replaced.next().unwrap_or(self.rows[word as usize]);
        &self.bytes[place.range()]
    }

    /// Encoded row of a word with the changes of `at`.
    ///
    /// # Errors
    /// [`RowStoreError::Count`] if deltas of open rounds do not fit the row.
    ///
    /// # Panics
    /// See [`encoded`](Self::encoded).
    pub fn read_at<'a>(
        &'a self,
        at: ReadAt,
        word: u32,
        buffers: &'a mut RowBuffers,
    ) -> Result<&'a [u8], RowStoreError> {
        match at {
            ReadAt::Version(version) => return Ok(self.encoded(version, word)),
            ReadAt::Newest if self.open_deltas(word).next().is_none() => {
                return Ok(self.newest(word));
            }
            ReadAt::Newest => {}
        }
        self.decode_at(at, word, buffers)?;
        let RowBuffers { row, encoded, .. } = buffers;
        encoded.clear();
        self.code.encode(row, encoded);
        Ok(encoded)
    }

    /// Decodes the row of a word with the changes of `at`.
    ///
    /// # Errors
    /// [`RowStoreError::Count`] if deltas of open rounds do not fit the row.
    ///
    /// # Panics
    /// See [`encoded`](Self::encoded).
    pub fn decode_at<'a>(
        &self,
        at: ReadAt,
        word: u32,
        buffers: &'a mut RowBuffers,
    ) -> Result<&'a [(u32, u32)], RowStoreError> {
        let RowBuffers { row, changed, delta, .. } = buffers;
        match at {
            ReadAt::Version(version) => self.read(version, word, row),
            ReadAt::Newest => {
                self.read_encoded(self.newest(word), row);
                for deltas in self.open_deltas(word) {
                    deltas.read(word, delta);
                    add(word, row, delta, changed)?;
                    std::mem::swap(row, changed);
                }
            }
        }
        Ok(row)
    }

    /// The last row that an open round will put in the place of a word's, and the round.
    fn replacement(&self, word: u32) -> Option<(Round, Place)> {
        let last_first = self.replacements.iter().rev();
        last_first.into_iter().find_map(|(round, of)| Some((*round, *of.get(&word)?)))
    }

    /// Deltas of a word in open rounds after the last that replaces its row.
    fn open_deltas(&self, word: u32) -> impl Iterator<Item = &RoundDeltas> {
        let replaced = self.replacement(word).map(|last| last.0);
        let later = self.changes.iter().filter(move |(round, _)| Some(**round) > replaced);
        later.map(|(_, deltas)| deltas).filter(move |deltas| deltas.has(word))
    }

    /// Encoded row of a word with the replacements of open rounds, without later deltas.
    fn newest(&self, word: u32) -> &[u8] {
        let place = self.replacement(word).map_or(self.rows[word as usize], |last| last.1);
        &self.bytes[place.range()]
    }

    /// Checks that a round does not change the row of a word yet, so that the round may
    /// [replace](Self::replace) it.
    ///
    /// # Errors
    /// [`RowStoreError::Replaced`].
    pub(crate) fn check_unchanged(&self, round: Round, word: u32) -> Result<(), RowStoreError> {
        let has_delta = self.changes.get(&round).is_some_and(|deltas| deltas.has(word));
        if has_delta || self.is_replaced(round, word) {
            return Err(RowStoreError::Replaced { word });
        }
        Ok(())
    }

    /// Returns whether a round replaces the row of a word.
    fn is_replaced(&self, round: Round, word: u32) -> bool {
        self.replacements.get(&round).is_some_and(|rows| rows.contains_key(&word))
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
        self.read_encoded(self.encoded(version, word), row);
    }

    fn read_encoded(&self, mut encoded: &[u8], row: &mut Vec<(u32, u32)>) {
        let read: Result<(), WireError> = self.code.decode(&mut encoded, row);
        read.expect("rows that were written here");
    }

    /// Adds a delta to a word's row, which takes effect when the round ends. The same topic may occur more
    /// than once.
    ///
    /// # Errors
    /// [`RowStoreError::Word`], or [`RowStoreError::Replaced`].
    pub fn add(
        &mut self,
        round: Round,
        word: u32,
        delta: &[(u32, i32)],
    ) -> Result<(), RowStoreError> {
        let words = self.num_words();
        if word as usize >= words {
            return Err(RowStoreError::Word { word, words });
        }
        if self.is_replaced(round, word) {
            return Err(RowStoreError::Replaced { word });
        }
        self.changes.entry(round).or_insert_with(|| RoundDeltas::new(words)).add(word, delta);
        Ok(())
    }

    /// Replaces a word's row by one that was encoded with the code of these rows, when the round ends. It
    /// contains the changes of earlier rounds, also of those that arrive later.
    ///
    /// # Errors
    /// [`RowStoreError::Replaced`] if the round changes the row already.
    ///
    /// # Panics
    /// If there is no such word.
    pub(crate) fn replace(
        &mut self,
        round: Round,
        word: u32,
        encoded: &[u8],
    ) -> Result<(), RowStoreError> {
        assert!((word as usize) < self.num_words(), "a word of the partition");
        self.check_unchanged(round, word)?;
        let place = Place { start: self.bytes.len(), len: encoded.len() as u32 };
        self.bytes.extend_from_slice(encoded);
        self.replacements.entry(round).or_default().insert(word, place);
        Ok(())
    }

    /// Ends a round: makes a version that contains its deltas and the rows that it replaces. Adds the deltas
    /// of each topic to `totals`. The changes of replaced rows are left out, since these rows are not decoded.
    ///
    /// # Errors
    /// [`RowStoreError::Count`]; then nothing has changed.
    ///
    /// # Panics
    /// If `totals` does not have K entries.
    pub fn end_round(&mut self, round: Round, totals: &mut [i64]) -> Result<(), RowStoreError> {
        assert_eq!(totals.len(), self.code.topics() as usize, "one total per topic");
        let mut rows = Vec::new();
        if let Some(mut deltas) = self.changes.remove(&round) {
            let len = self.bytes.len();
            rows = match self.write_changed(&mut deltas) {
                Ok(rows) => rows,
                Err(error) => {
                    self.bytes.truncate(len);
                    self.changes.insert(round, deltas);
                    return Err(error);
                }
            };
            for (topic, by) in deltas.changes() {
                totals[topic as usize] += by;
            }
        }
        if let Some(replacements) = self.replacements.remove(&round) {
            rows.extend(replacements);
            rows.sort_unstable_by_key(|row| row.0);
        }
        if !rows.is_empty() {
            for (word, place) in &mut rows {
                std::mem::swap(&mut self.rows[*word as usize], place);
            }
            self.replaced.push_back((self.ended + 1, rows));
        }
        self.ended += 1;
        Ok(())
    }

    /// Appends the rows that deltas change, as they are afterwards.
    fn write_changed(
        &mut self,
        deltas: &mut RoundDeltas,
    ) -> Result<Vec<(u32, Place)>, RowStoreError> {
        let (mut row, mut new_row, mut new) = (Vec::new(), Vec::new(), Vec::new());
        deltas.for_each(|word, delta| {
            self.read(self.ended, word, &mut row);
            add(word, &row, delta, &mut new_row)?;
            let start = self.bytes.len();
            self.code.encode(&new_row, &mut self.bytes);
            let len = (self.bytes.len() - start) as u32;
            new.push((word, Place { start, len }));
            Ok(())
        })?;
        Ok(new)
    }

    /// Frees versions that are older than this one, which no open round reads.
    pub fn forget(&mut self, version: u64) {
        self.oldest = self.oldest.max(version);
        while let Some((number, rows)) = self.replaced.front()
            && *number <= version
        {
            self.unused += rows.iter().map(|row| row.1.len as usize).sum::<usize>();
            self.replaced.pop_front();
        }
        if self.unused > self.bytes.len() / 2 {
            self.compact();
        }
    }

    /// Drops the bytes that no version needs.
    fn compact(&mut self) {
        let mut bytes = Vec::with_capacity(self.bytes.len() - self.unused);
        let older = self.replaced.iter_mut().flat_map(|(_, rows)| rows).map(|row| &mut row.1);
        let newer = self.replacements.values_mut().flat_map(|rows| rows.values_mut());
        for place in self.rows.iter_mut().chain(older).chain(newer) {
            let start = bytes.len();
            bytes.extend_from_slice(&self.bytes[place.range()]);
            place.start = start;
        }
        (self.bytes, self.unused) = (bytes, 0);
    }

    /// Bytes held.
    pub fn memory(&self) -> usize {
        let places: usize = self.replaced.iter().map(|(_, rows)| rows.capacity()).sum();
        let changes: usize = self.changes.values().map(RoundDeltas::memory).sum();
        let newer: usize = self.replacements.values().map(|rows| 32 * rows.capacity()).sum();
        let current = self.bytes.capacity() + size_of::<Place>() * self.rows.capacity();
        current + 24 * places + changes + newer
    }
}

/// Adds the delta of a word to its row, both with topics ascending.
fn add(
    word: u32,
    row: &[(u32, u32)],
    delta: &[(u32, i64)],
    new: &mut Vec<(u32, u32)>,
) -> Result<(), RowStoreError> {
    new.clear();
    let mut row = row.iter().copied().peekable();
    for &(topic, by) in delta {
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
mod tests;
