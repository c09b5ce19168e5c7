//! Decoded rows of a server, shared by the pushes to the same words.
//!
//! With more shards than rounds, several shards push tokens to the rows of one version, and
//! decoding a row takes longer than sampling the few tokens of a request: with 300 shards, one
//! round and K = 8,000 on reddit it was a quarter of a server's time, and converting the row for
//! each request another quarter. So decoded rows are cached until there is a newer version, and a
//! request samples with copies of them.
//!
//! With overlapping rounds, pushes alternate between several versions, and each version has a cache
//! of its own: with 300 shards, two rounds and staleness 1, K = 8,000 on reddit, an epoch took 9.7
//! s, and with a cache of the newest version alone 12.3 s. Requests that read the newest rows share one
//! cache, to which changes are applied as they come.
//!
//! Memory: for each version rows of counts of all words ([`Rows`]: 2 to 4 bytes per count with
//! 16-bit topics), of which unused ones are never touched, and a byte per word. Rows beyond
//! [`ROW_CACHE_BYTES`] are not cached.

use lda_core::counts::{Density, Rows, TopicIndex};

use crate::row_store::{ReadAt, RowBuffers, RowStore, RowStoreError};

/// Largest number of bytes of all cached rows, except those of one partition and version.
pub(crate) const ROW_CACHE_BYTES: usize = 64 << 20;

/// Cached rows of a partition.
#[derive(Debug)]
pub(crate) struct RowCache<T> {
    versions: Vec<Version<T>>,
    buffers: RowBuffers,
}

#[derive(Debug)]
struct Version<T> {
    at: ReadAt,
    rows: Rows<T>,
    /// Whether the row of each word is decoded.
    is_read: Vec<bool>,
}

impl<T> Default for RowCache<T> {
    fn default() -> Self {
        Self { versions: Vec::new(), buffers: RowBuffers::default() }
    }
}

impl<T: TopicIndex> RowCache<T> {
    /// Returns the place of a version's rows, and makes one if they fit: the first version into
    /// [`ROW_CACHE_BYTES`], others into the bytes that are `left`. A version before `oldest` is
    /// replaced, because no open round reads it. `tokens` are those of each word, the same in every
    /// version.
    pub fn version(
        &mut self,
        topics: u32,
        tokens: &[u64],
        at: ReadAt,
        oldest: u64,
        left: usize,
    ) -> Option<usize> {
        if let Some(place) = self.versions.iter().position(|it| it.at == at) {
            return Some(place);
        }
        if let Some(place) = self.versions.iter().position(|it| it.at.is_before(oldest)) {
            let version = &mut self.versions[place];
            version.at = at;
            version.is_read.fill(false);
            return Some(place);
        }
        let most = if self.versions.is_empty() { ROW_CACHE_BYTES } else { left };
        let (topics, each) = (topics as usize, || tokens.iter().copied());
        let beside = tokens.len() + 2 * topics * size_of::<(u32, u32)>();
        if Rows::<T>::bytes(topics, each(), Density::Auto) + beside as u64 > most as u64 {
            return None;
        }
        let rows = Rows::new(topics, each(), Density::Auto).ok()?;
        self.versions.push(Version { at, rows, is_read: vec![false; tokens.len()] });
        Some(self.versions.len() - 1)
    }

    /// Returns the rows of the version at a place, after decoding that of the word.
    ///
    /// # Errors
    /// See [`RowStore::decode_at`].
    ///
    /// # Panics
    /// If there is no such word or place, or if the store has forgotten the version.
    pub fn rows(
        &mut self,
        place: usize,
        store: &RowStore,
        word: u32,
    ) -> Result<&Rows<T>, RowStoreError> {
        let Version { at, rows, is_read } = &mut self.versions[place];
        let is_read = &mut is_read[word as usize];
        if !*is_read {
            let row = store.decode_at(*at, word, &mut self.buffers)?;
            rows.write(word as usize, row.iter().copied());
            *is_read = true;
        }
        Ok(rows)
    }

    /// Applies a delta of an open round, topics ascending, to the newest row of a word, if that is decoded.
    ///
    /// # Panics
    /// If there is no such word.
    pub fn change(&mut self, word: u32, delta: &[(u32, i32)]) {
        let newest = self.versions.iter_mut().filter(|version| version.at == ReadAt::Newest);
        for Version { rows, is_read, .. } in newest {
            let is_read = &mut is_read[word as usize];
            *is_read = *is_read && apply(rows, word as usize, delta);
        }
    }

    /// Bytes held.
    pub fn memory(&self) -> usize {
        let of = |it: &Version<T>| it.rows.memory() as usize + it.is_read.capacity();
        self.versions.iter().map(of).sum::<usize>() + self.buffers.memory()
    }
}

/// Largest change of a count that is applied to a decoded row; with a larger one it is decoded again.
const MAX_CHANGE: u32 = 64;

/// Applies a delta to a row, topics ascending. Returns false if the row has to be decoded again: a change is
/// large, or does not fit.
fn apply<T: TopicIndex>(rows: &mut Rows<T>, row: usize, delta: &[(u32, i32)]) -> bool {
    let fits = |&(topic, by): &(u32, i32)| {
        by.unsigned_abs() <= MAX_CHANGE && (by >= 0 || rows.get(row, topic) >= by.unsigned_abs())
    };
    let tokens: i64 = delta.iter().map(|entry| i64::from(entry.1)).sum();
    if tokens != 0 || !delta.iter().all(fits) {
        return false;
    }
    // The row is full, so tokens must leave before others come.
    for &(topic, by) in delta {
        (by..0).for_each(|_| rows.decrement(row, topic));
    }
    for &(topic, by) in delta {
        (0..by).for_each(|_| rows.increment(row, topic));
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::row_store::ReadAt::Version;
    use crate::spec::Round;

    const TOKENS: [u64; 3] = [0, 7, 2];

    fn round(number: u16) -> Round {
        Round { epoch: 1, number, attempt: 0 }
    }

    /// Version 1 has 7 of topic 2 and 2 of topic 0; version 2 has moved the former to topic 4.
    fn store() -> RowStore {
        let mut store = RowStore::new(5, 3);
        store.add(round(0), 1, &[(2, 7)]).unwrap();
        store.add(round(0), 2, &[(0, 2)]).unwrap();
        store.end_round(round(0), &mut [0; 5]).unwrap();
        store.add(round(1), 1, &[(2, -7), (4, 7)]).unwrap();
        store.end_round(round(1), &mut [0; 5]).unwrap();
        store
    }

    fn row(row_cache: &mut RowCache<u16>, place: usize, word: u32) -> [u32; 5] {
        let store = store();
        let rows = row_cache.rows(place, &store, word).unwrap();
        [0, 1, 2, 3, 4].map(|topic| rows.get(word as usize, topic))
    }

    #[test]
    fn rows_are_those_of_the_version() {
        let mut row_cache = RowCache::<u16>::default();
        assert_eq!(row_cache.memory(), 0);
        let first = row_cache.version(5, &TOKENS, Version(1), 1, 0).unwrap();
        for _ in 0..2 {
            assert_eq!(row(&mut row_cache, first, 1), [0, 0, 7, 0, 0]);
            assert_eq!(row(&mut row_cache, first, 0), [0; 5]);
        }
        let is_read = &row_cache.versions[first].is_read;
        assert_eq!(*is_read, [true, true, false], "rows are decoded once, and on request");
        // Version 1 is no longer read.
        let memory = row_cache.memory();
        let second = row_cache.version(5, &TOKENS, Version(2), 2, usize::MAX).unwrap();
        assert_eq!(row(&mut row_cache, second, 1), [0, 0, 0, 0, 7]);
        assert_eq!(row(&mut row_cache, second, 2), [2, 0, 0, 0, 0]);
        assert_eq!((row_cache.versions.len(), row_cache.memory()), (1, memory));
    }

    #[test]
    fn versions_that_are_asked_for_have_rows_of_their_own() {
        let mut row_cache = RowCache::<u16>::default();
        let first = row_cache.version(5, &TOKENS, Version(1), 1, 0).unwrap();
        assert_eq!(row(&mut row_cache, first, 1), [0, 0, 7, 0, 0]);
        // Without room for two versions, the second is not cached.
        assert_eq!(row_cache.version(5, &TOKENS, Version(2), 1, 0), None);
        let second = row_cache.version(5, &TOKENS, Version(2), 1, usize::MAX).unwrap();
        assert_ne!(first, second);
        for _ in 0..2 {
            let places = [1, 2].map(|it| row_cache.version(5, &TOKENS, Version(it), 1, 0));
            assert_eq!(places, [Some(first), Some(second)]);
            assert_eq!(row(&mut row_cache, second, 1), [0, 0, 0, 0, 7]);
            assert_eq!(row(&mut row_cache, first, 1), [0, 0, 7, 0, 0]);
        }
        assert_eq!(row_cache.version(5, &TOKENS, Version(3), 2, 0), Some(first));
        assert_eq!(row_cache.versions[first].is_read, [false; 3]);
        assert_eq!(row_cache.version(5, &TOKENS, Version(2), 2, 0), Some(second));
    }

    #[test]
    fn newest_rows_change_with_every_delta() {
        let (mut row_cache, mut store) = (RowCache::<u16>::default(), store());
        let newest = row_cache.version(5, &TOKENS, ReadAt::Newest, 9, 0).unwrap();
        let row = |row_cache: &mut RowCache<u16>, store: &RowStore| {
            let rows = row_cache.rows(newest, store, 1).unwrap();
            [0, 1, 2, 3, 4].map(|topic| rows.get(1, topic))
        };
        assert_eq!(row(&mut row_cache, &store), [0, 0, 0, 0, 7]);
        store.add(round(3), 1, &[(0, 2), (4, -2)]).unwrap();
        row_cache.change(1, &[(0, 2), (4, -2)]);
        assert!(row_cache.versions[newest].is_read[1], "it need not be decoded again");
        assert_eq!(row(&mut row_cache, &store), [2, 0, 0, 0, 5]);
        // The end of the round changes nothing, and no end makes the newest rows old.
        store.end_round(round(3), &mut [0; 5]).unwrap();
        assert_eq!(row_cache.version(5, &TOKENS, ReadAt::Newest, u64::MAX, 0), Some(newest));
        assert_eq!(row(&mut row_cache, &store), [2, 0, 0, 0, 5]);
        // Deltas that do not fit are found when the row is decoded.
        for delta in [&[(0, 6), (4, -6)][..], &[(1, 1)], &[(0, 70), (4, -70)]] {
            let mut bad = store.clone();
            bad.add(round(4), 1, delta).unwrap();
            row_cache.change(1, delta);
            assert!(!row_cache.versions[newest].is_read[1], "{delta:?}");
            let is_error = row_cache.rows(newest, &bad, 1).is_err();
            assert_eq!(is_error, delta[0].0 == 0, "{delta:?}");
            row_cache.versions[newest].is_read[1] = false;
            assert_eq!(row(&mut row_cache, &store), [2, 0, 0, 0, 5]);
        }
    }

    #[test]
    fn a_version_beside_another_takes_no_more_than_is_left() {
        let fits = |left: usize| {
            let mut row_cache = RowCache::<u16>::default();
            row_cache.version(5, &TOKENS, Version(1), 1, 0).unwrap();
            let before = row_cache.memory();
            let Some(second) = row_cache.version(5, &TOKENS, Version(2), 1, left) else {
                return false;
            };
            assert_eq!(row(&mut row_cache, second, 2), [2, 0, 0, 0, 0]);
            assert!(row_cache.memory() <= before + left, "{} + {left}", before);
            true
        };
        assert!((0..2000).any(fits));
    }

    #[test]
    fn rows_of_too_many_bytes_are_not_kept() {
        let mut row_cache = RowCache::<u32>::default();
        let tokens = vec![u64::from(u32::MAX); 2_000];
        assert_eq!(row_cache.version(10_000, &tokens, Version(1), 1, usize::MAX), None);
        assert_eq!(row_cache.memory(), 0);
    }
}
