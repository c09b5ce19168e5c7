//! An alias table over integer weights without any rounding (ZenLDA §5.3).
//!
//! With n weights that add up to S, weight c is worth c * n cells out of n columns of S cells: all
//! thresholds are integers, no division is made while building, and a uniform cell out of n * S
//! gives each topic exactly its share. `probability(k) = weight(k) / S`, not nearly but exactly.
//!
//! What it costs beside [`SparseAlias`](super::SparseAlias): a draw divides a 64-bit integer by S
//! to find its column.

use super::{AliasScratch, DiscreteError, MAX_LEN, pairing, uniform_below};
use rand::Rng;
use std::hint::select_unpredictable;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Entry {
    threshold: u32,
    topic: u32,
    alias: u32,
}

/// An exact alias table over (topic, count) pairs: O(n) to build, O(1) to draw, 12 bytes a
/// non-zero.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IntegerAlias {
    entries: Vec<Entry>,
    total: u32,
}

impl IntegerAlias {
    /// Builds the table of `pairs`, in any order. Counts of 0 are left out; a topic that comes
    /// twice has the sum of its counts.
    ///
    /// ```
    /// use lda_core::discrete::IntegerAlias;
    ///
    /// let table = IntegerAlias::new([(8, 1), (3, 2)])?;
    /// // 2 topics and 3 tokens are 6 cells: topic 8 owns 2 of them, topic 3 owns 4.
    /// let eights = (0..table.cells()).filter(|&cell| table.locate(cell) == 8).count();
    /// assert_eq!((table.cells(), eights), (6, 2));
    /// # Ok::<(), lda_core::discrete::DiscreteError>(())
    /// ```
    ///
    /// # Errors
    /// No pairs, too many, none positive, or a total above `u32::MAX`.
    pub fn new(pairs: impl IntoIterator<Item = (u32, u32)>) -> Result<Self, DiscreteError> {
        let mut table = Self { entries: Vec::new(), total: 0 };
        table.rebuild(pairs, &mut AliasScratch::default())?;
        Ok(table)
    }

    /// Replaces the pairs. Nothing is allocated where table and scratch have held as many before.
    ///
    /// # Errors
    /// As [`new`](Self::new); the old table is kept then.
    pub fn rebuild(
        &mut self,
        pairs: impl IntoIterator<Item = (u32, u32)>,
        scratch: &mut AliasScratch,
    ) -> Result<(), DiscreteError> {
        let AliasScratch { masses, topics, .. } = scratch;
        masses.clear();
        topics.clear();
        let mut any = false;
        let mut total = 0_u32;
        for (topic, count) in pairs {
            any = true;
            total = total.checked_add(count).ok_or(DiscreteError::TotalTooLarge)?;
            if count > 0 {
                if topics.len() == MAX_LEN {
                    return Err(DiscreteError::TooMany);
                }
                topics.push(topic);
                masses.push(u64::from(count));
            }
        }
        if topics.is_empty() {
            return Err(if any { DiscreteError::AllZero } else { DiscreteError::Empty });
        }
        // At most MAX_LEN * u32::MAX < 2^59 in sum.
        let n = topics.len() as u64;
        masses.iter_mut().for_each(|mass| *mass *= n);
        self.total = total;
        self.entries.resize(topics.len(), Entry::default());
        let entries = &mut self.entries[..];
        pairing::pair(masses, u64::from(total), |k, own, other| {
            // At most the total, which is a u32.
            entries[k] = Entry { threshold: own as u32, topic: topics[k], alias: topics[other] };
        });
        Ok(())
    }

    /// The sum of the counts.
    pub fn total(&self) -> u32 {
        self.total
    }

    /// Number of positive counts.
    #[expect(clippy::len_without_is_empty, reason = "it is never empty")]
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Number of cells, [`len`](Self::len) times [`total`](Self::total).
    #[inline]
    pub fn cells(&self) -> u64 {
        self.entries.len() as u64 * u64::from(self.total)
    }

    /// The topic that owns `cell`; cells beyond the last count as the last.
    #[inline]
    pub fn locate(&self, cell: u64) -> u32 {
        let cell = cell.min(self.cells() - 1);
        let entry = self.entries[(cell / u64::from(self.total)) as usize];
        let height = (cell % u64::from(self.total)) as u32;
        select_unpredictable(height < entry.threshold, entry.topic, entry.alias)
    }

    /// Draws a topic, exactly in proportion to its count.
    #[inline]
    pub fn sample(&self, rng: &mut (impl Rng + ?Sized)) -> u32 {
        self.locate(uniform_below(rng, self.cells()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    #[test]
    fn every_cell_enumerated_gives_the_counts_exactly() {
        let cases: [&[(u32, u32)]; 7] = [
            &[(5, 1)],
            &[(5, 1000)],
            &[(1, 1), (2, 1), (3, 1)],
            &[(9, 3), (0, 0), (2, 50), (7, 1), (u32::MAX, 6)],
            &[(4, 1), (3, 99_999), (2, 1)],
            &[(1, 2), (2, 3), (1, 5)],
            &[(0, 17), (1, 4), (2, 8), (3, 0), (4, 15), (5, 16), (6, 23), (7, 42)],
        ];
        for pairs in cases {
            let table = IntegerAlias::new(pairs.iter().copied()).unwrap();
            let mut cells = BTreeMap::<u32, u64>::new();
            for cell in 0..table.cells() {
                *cells.entry(table.locate(cell)).or_default() += 1;
            }
            let mut expected = BTreeMap::<u32, u64>::new();
            for &(topic, count) in pairs.iter().filter(|pair| pair.1 > 0) {
                *expected.entry(topic).or_default() += u64::from(count) * table.len() as u64;
            }
            assert_eq!(cells, expected);
        }
    }

    #[test]
    fn the_largest_total_is_exact_at_its_edges() {
        let table = IntegerAlias::new([(1, u32::MAX - 1), (2, 1)]).unwrap();
        let ones = [0, 1, table.cells() - 1].map(|cell| table.locate(cell));
        assert_eq!(ones, [1; 3]);
        // Topic 2 owns the first two cells of its column, the second one.
        let column = u64::from(u32::MAX);
        let owners = [column - 1, column, column + 1, column + 2].map(|cell| table.locate(cell));
        assert_eq!(owners, [1, 2, 2, 1]);
        assert_eq!(table.locate(u64::MAX), 1);
    }

    #[test]
    fn bad_pairs_are_refused_and_change_nothing() {
        let mut scratch = AliasScratch::default();
        let mut table = IntegerAlias::new([(3, 4)]).unwrap();
        let before = table.clone();
        assert_eq!(table.rebuild([], &mut scratch), Err(DiscreteError::Empty));
        assert_eq!(table.rebuild([(1, 0)], &mut scratch), Err(DiscreteError::AllZero));
        let sum = table.rebuild([(1, u32::MAX), (2, 1)], &mut scratch);
        assert_eq!(sum, Err(DiscreteError::TotalTooLarge));
        assert_eq!(table, before);
    }
}
