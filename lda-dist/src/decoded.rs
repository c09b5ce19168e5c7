//! Rows of a server as its sampler wants them, for the next who pushes tokens of these words.
//!
//! Where more shards than rounds are, several shards push tokens to the rows of one version, and reading a row takes
//! longer than sampling the few tokens of a request: with 300 shards, one round and K = 8,000 on reddit it was a
//! quarter of a server's time, and laying it out anew for each request another quarter. So rows stand here as they were
//! read, until there is a newer version, and a request samples by copies of them.
//!
//! Memory: rows of counts of all words ([`Rows`]: 2 to 4 bytes a count with 16-bit topics), of which those that nobody
//! asks for are never touched, and a byte a word. Rows of more than [`MOST_DECODED`] are not kept.

use lda_core::counts::{Density, Rows, TopicIndex};

use crate::store::Store;

/// Most bytes of rows that are kept, but for those of one partition.
pub(crate) const MOST_DECODED: usize = 64 << 20;

/// Rows of a partition.
#[derive(Debug)]
pub(crate) struct Decoded<T> {
    version: u64,
    rows: Option<Rows<T>>,
    /// By word: whether its row is of the version.
    is_read: Vec<bool>,
    row: Vec<(u32, u32)>,
}

impl<T> Default for Decoded<T> {
    fn default() -> Self {
        Self { version: 0, rows: None, is_read: Vec::new(), row: Vec::new() }
    }
}

impl<T: TopicIndex> Decoded<T> {
    /// Turns to a version; whether its rows can be kept: not where there are rows of a newer one already, lest two take
    /// turns and each reads all again, or where they are too large. A word has so many `tokens` in every version.
    pub fn turn(&mut self, topics: u32, tokens: &[u64], version: u64) -> bool {
        if self.rows.is_none() {
            let (topics, tokens) = (topics as usize, || tokens.iter().copied());
            if Rows::<T>::bytes(topics, tokens(), Density::Auto) > MOST_DECODED as u64 {
                return false;
            }
            self.rows = Rows::new(topics, tokens(), Density::Auto).ok();
            self.is_read = vec![false; tokens().len()];
            self.version = version;
        } else if version > self.version {
            self.is_read.fill(false);
            self.version = version;
        }
        self.rows.is_some() && version == self.version
    }

    /// Rows, of which the word's is of the version that was turned to.
    ///
    /// # Panics
    /// If there is no such word, if the version was forgotten, or if it could not be turned to.
    pub fn with(&mut self, store: &Store, word: u32) -> &Rows<T> {
        let rows = self.rows.as_mut().expect("rows of a version that was turned to");
        if !std::mem::replace(&mut self.is_read[word as usize], true) {
            store.read(self.version, word, &mut self.row);
            rows.write(word as usize, self.row.iter().copied());
        }
        rows
    }

    /// Bytes held.
    pub fn memory(&self) -> usize {
        let rows = self.rows.as_ref().map_or(0, |rows| rows.memory() as usize);
        rows + self.is_read.capacity() + 8 * self.row.capacity()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::Round;

    #[test]
    fn rows_are_those_of_the_version() {
        let round = |number| Round { epoch: 1, number, attempt: 0 };
        let mut store = Store::new(5, 3);
        let tokens = [0, 7, 2];
        store.add(round(0), 1, &[(2, 7)]).unwrap();
        store.add(round(0), 2, &[(0, 2)]).unwrap();
        store.end_round(round(0), &mut [0; 5]).unwrap();
        let mut decoded = Decoded::<u16>::default();
        assert_eq!(decoded.memory(), 0);
        let rows = |decoded: &mut Decoded<u16>, store: &Store, word: u32| {
            let rows = decoded.with(store, word);
            [0, 1, 2, 3, 4].map(|topic| rows.get(word as usize, topic))
        };
        assert!(decoded.turn(5, &tokens, 1));
        for _ in 0..2 {
            assert_eq!(rows(&mut decoded, &store, 1), [0, 0, 7, 0, 0]);
            assert_eq!(rows(&mut decoded, &store, 0), [0; 5]);
        }
        assert_eq!(
            decoded.is_read,
            [true, true, false],
            "each is read once, and when somebody asks"
        );
        store.add(round(1), 1, &[(2, -7), (4, 7)]).unwrap();
        store.end_round(round(1), &mut [0; 5]).unwrap();
        assert!(decoded.turn(5, &tokens, 1));
        assert_eq!(rows(&mut decoded, &store, 1), [0, 0, 7, 0, 0]);
        assert!(decoded.turn(5, &tokens, 2));
        assert_eq!(rows(&mut decoded, &store, 1), [0, 0, 0, 0, 7]);
        assert_eq!(rows(&mut decoded, &store, 2), [2, 0, 0, 0, 0]);
        // Who is behind reads for himself.
        assert!(!decoded.turn(5, &tokens, 1));
        assert!(decoded.turn(5, &tokens, 2));
        assert!(decoded.memory() > 0);
    }

    #[test]
    fn rows_of_too_many_bytes_are_not_kept() {
        let mut decoded = Decoded::<u32>::default();
        let tokens = vec![u64::from(u32::MAX); 2_000];
        assert!(!decoded.turn(10_000, &tokens, 1));
        assert_eq!(decoded.memory(), 0);
    }
}
