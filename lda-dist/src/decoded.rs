//! Rows of a server as they were read, for the next who pushes tokens of these words.
//!
//! Where more shards than rounds are, several shards push tokens to the rows of one version, and reading a row takes
//! longer than sampling the few tokens of a request: with 300 shards, one round and K = 8,000 on reddit it was a quarter
//! of a server's time. So rows that were read are kept until there is a newer version.
//!
//! Memory: 8 bytes an entry and 4 bytes a word, of the rows that were asked for.

use crate::store::Store;
use crate::wire::Lists;

/// Rows of a partition that were read.
#[derive(Debug, Default)]
pub(crate) struct Decoded {
    version: u64,
    rows: Lists<u32>,
    /// By word: which of these rows is its, counted from 1.
    at: Vec<u32>,
}

impl Decoded {
    /// A word's row in a version; none where rows of a newer one are kept.
    ///
    /// # Panics
    /// If there is no such word, or if the version was forgotten.
    pub fn row(&mut self, store: &Store, version: u64, word: u32) -> Option<&[(u32, u32)]> {
        if self.at.is_empty() || version > self.version {
            self.version = version;
            self.rows.clear();
            self.at.clear();
            self.at.resize(store.num_words(), 0);
        } else if version < self.version {
            return None;
        }
        let at = &mut self.at[word as usize];
        if *at == 0 {
            store.read_behind(version, word, &mut self.rows);
            *at = self.rows.len() as u32;
        }
        Some(self.rows.get(*at as usize - 1))
    }

    /// Bytes held.
    pub fn memory(&self) -> usize {
        self.rows.memory() + 4 * self.at.capacity()
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
        store.add(round(0), 1, &[(2, 7)]).unwrap();
        store.end_round(round(0), &mut [0; 5]).unwrap();
        let mut decoded = Decoded::default();
        for _ in 0..2 {
            assert_eq!(decoded.row(&store, 1, 1), Some(&[(2, 7)][..]));
            assert_eq!(decoded.row(&store, 1, 0), Some(&[][..]));
        }
        assert_eq!(decoded.rows.len(), 2, "each is read once");
        store.add(round(1), 1, &[(2, -7), (4, 7)]).unwrap();
        store.end_round(round(1), &mut [0; 5]).unwrap();
        assert_eq!(decoded.row(&store, 1, 1), Some(&[(2, 7)][..]));
        assert_eq!(decoded.row(&store, 2, 1), Some(&[(4, 7)][..]));
        // Who is behind reads for himself, lest two take turns and each reads all again.
        assert_eq!(decoded.row(&store, 1, 1), None);
        assert!(decoded.memory() > 0);
    }
}
