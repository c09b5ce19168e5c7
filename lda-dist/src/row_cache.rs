//! Rows of a server as its sampler wants them, for the next who pushes tokens of these words.
//!
//! Where more shards than rounds are, several shards push tokens to the rows of one version, and reading a row takes
//! longer than sampling the few tokens of a request: with 300 shards, one round and K = 8,000 on reddit it was a
//! quarter of a server's time, and laying it out anew for each request another quarter. So rows stand here as they were
//! read, until there is a newer version, and a request samples by copies of them.
//!
//! Where rounds overlap, rows of several versions are asked for by turns, and each of these has rows of its own: with
//! 300 shards, two rounds and staleness 1, K = 8,000 on reddit, an epoch took 9.7 s and with the newest version
//! alone 12.3.
//!
//! Memory: for each version rows of counts of all words ([`Rows`]: 2 to 4 bytes a count with 16-bit topics), of which
//! those that nobody asks for are never touched, and a byte a word. Rows of more than [`ROW_CACHE_BYTES`] are not kept.

use lda_core::counts::{Density, Rows, TopicIndex};

use crate::row_store::RowStore;

/// Most bytes of rows that are kept, but for those of one partition and version.
pub(crate) const ROW_CACHE_BYTES: usize = 64 << 20;

/// Rows of a partition.
#[derive(Debug)]
pub(crate) struct RowCache<T> {
    versions: Vec<Version<T>>,
    row: Vec<(u32, u32)>,
}

#[derive(Debug)]
struct Version<T> {
    number: u64,
    rows: Rows<T>,
    /// By word: whether its row is of this version.
    is_read: Vec<bool>,
}

impl<T> Default for RowCache<T> {
    fn default() -> Self {
        Self { versions: Vec::new(), row: Vec::new() }
    }
}

impl<T: TopicIndex> RowCache<T> {
    /// The place of a version's rows, if they can be kept: those of the first in [`ROW_CACHE_BYTES`] bytes, those of others
    /// beside it in what is `left`. Versions before `oldest` make way, for nobody will ask for them. A word has so many
    /// `tokens` in every version.
    pub fn turn(
        &mut self,
        topics: u32,
        tokens: &[u64],
        number: u64,
        oldest: u64,
        left: usize,
    ) -> Option<usize> {
        if let Some(place) = self.versions.iter().position(|it| it.number == number) {
            return Some(place);
        }
        if let Some(place) = self.versions.iter().position(|it| it.number < oldest) {
            let version = &mut self.versions[place];
            version.number = number;
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
        self.versions.push(Version { number, rows, is_read: vec![false; tokens.len()] });
        Some(self.versions.len() - 1)
    }

    /// Rows, of which the word's is of the version that has this place.
    ///
    /// # Panics
    /// If there is no such word or place, or if the version was forgotten.
    pub fn with(&mut self, place: usize, store: &RowStore, word: u32) -> &Rows<T> {
        let Version { number, rows, is_read } = &mut self.versions[place];
        if !std::mem::replace(&mut is_read[word as usize], true) {
            store.read(*number, word, &mut self.row);
            rows.write(word as usize, self.row.iter().copied());
        }
        rows
    }

    /// Bytes held.
    pub fn memory(&self) -> usize {
        let of = |it: &Version<T>| it.rows.memory() as usize + it.is_read.capacity();
        self.versions.iter().map(of).sum::<usize>() + 8 * self.row.capacity()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::Round;

    const TOKENS: [u64; 3] = [0, 7, 2];

    fn round(number: u16) -> Round {
        Round { epoch: 1, number, attempt: 0 }
    }

    /// Version 1 has 7 of topic 2 and 2 of topic 0, version 2 has moved the former to topic 4.
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
        let rows = row_cache.with(place, &store, word);
        [0, 1, 2, 3, 4].map(|topic| rows.get(word as usize, topic))
    }

    #[test]
    fn rows_are_those_of_the_version() {
        let mut row_cache = RowCache::<u16>::default();
        assert_eq!(row_cache.memory(), 0);
        let first = row_cache.turn(5, &TOKENS, 1, 1, 0).unwrap();
        for _ in 0..2 {
            assert_eq!(row(&mut row_cache, first, 1), [0, 0, 7, 0, 0]);
            assert_eq!(row(&mut row_cache, first, 0), [0; 5]);
        }
        let is_read = &row_cache.versions[first].is_read;
        assert_eq!(*is_read, [true, true, false], "each is read once, and when somebody asks");
        // Nobody asks for the first any more.
        let memory = row_cache.memory();
        let second = row_cache.turn(5, &TOKENS, 2, 2, usize::MAX).unwrap();
        assert_eq!(row(&mut row_cache, second, 1), [0, 0, 0, 0, 7]);
        assert_eq!(row(&mut row_cache, second, 2), [2, 0, 0, 0, 0]);
        assert_eq!((row_cache.versions.len(), row_cache.memory()), (1, memory));
    }

    #[test]
    fn versions_that_are_asked_for_have_rows_of_their_own() {
        let mut row_cache = RowCache::<u16>::default();
        let first = row_cache.turn(5, &TOKENS, 1, 1, 0).unwrap();
        assert_eq!(row(&mut row_cache, first, 1), [0, 0, 7, 0, 0]);
        // There is no room for two, and who asks for the other reads for himself.
        assert_eq!(row_cache.turn(5, &TOKENS, 2, 1, 0), None);
        let second = row_cache.turn(5, &TOKENS, 2, 1, usize::MAX).unwrap();
        assert_ne!(first, second);
        for _ in 0..2 {
            let places = [1, 2].map(|it| row_cache.turn(5, &TOKENS, it, 1, 0));
            assert_eq!(places, [Some(first), Some(second)]);
            assert_eq!(row(&mut row_cache, second, 1), [0, 0, 0, 0, 7]);
            assert_eq!(row(&mut row_cache, first, 1), [0, 0, 7, 0, 0]);
        }
        assert_eq!(row_cache.turn(5, &TOKENS, 3, 2, 0), Some(first));
        assert_eq!(row_cache.versions[first].is_read, [false; 3]);
        assert_eq!(row_cache.turn(5, &TOKENS, 2, 2, 0), Some(second));
    }

    #[test]
    fn a_version_beside_another_takes_no_more_than_is_left() {
        let fits = |left: usize| {
            let mut row_cache = RowCache::<u16>::default();
            row_cache.turn(5, &TOKENS, 1, 1, 0).unwrap();
            let before = row_cache.memory();
            let Some(second) = row_cache.turn(5, &TOKENS, 2, 1, left) else { return false };
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
        assert_eq!(row_cache.turn(10_000, &tokens, 1, 1, usize::MAX), None);
        assert_eq!(row_cache.memory(), 0);
    }
}
