//! Walker's alias table over the non-zeros of a sparse row; it returns topics, not positions.
//!
//! Same as [`AliasTable`](super::AliasTable), with the topics stored in the entries so that a draw
//! still reads one entry: 12 bytes per non-zero. The numerics are the same, with n the number of
//! non-zeros.

use super::{AliasScratch, DiscreteError, MAX_LEN, alias::split, checked, pairing};
use rand::Rng;
use std::hint::select_unpredictable;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Entry {
    threshold: u32,
    topic: u32,
    alias: u32,
}

/// An alias table over (topic, weight) pairs: O(n) to build, O(1) to draw, 12 bytes per
/// non-zero.
#[derive(Clone, Debug, PartialEq)]
pub struct SparseAlias {
    entries: Vec<Entry>,
    total: f64,
}

impl SparseAlias {
    /// Builds the table of `pairs`, in any order. Weights of 0 are left out; the weights of a
    /// repeated topic add up.
    ///
    /// ```
    /// use lda_core::discrete::SparseAlias;
    ///
    /// let table = SparseAlias::new([(17, 1.0), (40_000, 3.0), (5, 0.0)])?;
    /// assert_eq!((table.len(), table.total()), (2, 4.0));
    /// assert!([17, 40_000].contains(&table.locate(1 << 63)));
    /// # Ok::<(), lda_core::discrete::DiscreteError>(())
    /// ```
    ///
    /// # Errors
    /// No pairs, too many, a weight that is negative, not finite or too large, or none positive.
    pub fn new(pairs: impl IntoIterator<Item = (u32, f64)>) -> Result<Self, DiscreteError> {
        let mut table = Self { entries: Vec::new(), total: 0.0 };
        table.rebuild(pairs, &mut AliasScratch::default())?;
        Ok(table)
    }

    /// Replaces the pairs. Allocates only if table or scratch have not held this many before.
    ///
    /// # Errors
    /// As [`new`](Self::new); the table is then unchanged.
    pub fn rebuild(
        &mut self,
        pairs: impl IntoIterator<Item = (u32, f64)>,
        scratch: &mut AliasScratch,
    ) -> Result<(), DiscreteError> {
        let AliasScratch { masses, weights, topics } = scratch;
        weights.clear();
        topics.clear();
        let mut any = false;
        for (index, (topic, weight)) in pairs.into_iter().enumerate() {
            any = true;
            let weight = checked(index, weight)?;
            if weight > 0.0 {
                if topics.len() == MAX_LEN {
                    return Err(DiscreteError::TooMany);
                }
                topics.push(topic);
                weights.push(weight);
            }
        }
        if topics.is_empty() {
            return Err(if any { DiscreteError::AllZero } else { DiscreteError::Empty });
        }
        self.total = pairing::quantise(weights, masses)?;
        self.entries.resize(topics.len(), Entry::default());
        let entries = &mut self.entries[..];
        pairing::pair(masses, pairing::ONE, |k, own, other| {
            // A whole column, 2^32, does not fit the threshold. Its alias is the column itself, so
            // the threshold does not matter.
            let threshold = u32::try_from(own).unwrap_or(u32::MAX);
            entries[k] = Entry { threshold, topic: topics[k], alias: topics[other] };
        });
        Ok(())
    }

    /// Sum of the weights the table was built from, before rounding to units.
    pub fn total(&self) -> f64 {
        self.total
    }

    /// Number of positive weights.
    #[expect(clippy::len_without_is_empty, reason = "it is never empty")]
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Topic at point `u` of 2^64. The upper word of `u` times n is the column, the lower word the
    /// height.
    #[inline]
    pub fn locate(&self, u: u64) -> u32 {
        let (column, height) = split(u, self.entries.len());
        let entry = self.entries[column];
        select_unpredictable(height < entry.threshold, entry.topic, entry.alias)
    }

    /// Draws a topic; consumes one `u64` of the generator.
    #[inline]
    pub fn sample(&self, rng: &mut (impl Rng + ?Sized)) -> u32 {
        self.locate(rng.next_u64())
    }

    /// (topic, probability) pairs that the table represents, ascending by topic, read back from its
    /// entries.
    pub fn probabilities(&self) -> Vec<(u32, f64)> {
        let units = (pairing::ONE * self.entries.len() as u64) as f64;
        self.masses().into_iter().map(|(topic, mass)| (topic, mass as f64 / units)).collect()
    }

    /// (topic, weight) pairs that the table represents, ascending by topic.
    pub fn weights(&self) -> Vec<(u32, f64)> {
        let scaled = |(topic, p): (u32, f64)| (topic, p * self.total);
        self.probabilities().into_iter().map(scaled).collect()
    }

    /// Units of each topic, ascending by topic.
    fn masses(&self) -> Vec<(u32, u64)> {
        let parts = self.entries.iter().flat_map(|entry| {
            let own = u64::from(entry.threshold);
            [(entry.topic, own), (entry.alias, pairing::ONE - own)]
        });
        let mut parts: Vec<_> = parts.collect();
        parts.sort_unstable();
        parts.dedup_by(|next, kept| {
            let same = next.0 == kept.0;
            if same {
                kept.1 += next.1;
            }
            same
        });
        parts
    }
}

#[cfg(test)]
mod tests {
    use super::super::alias::tests::join;
    use super::*;

    #[test]
    fn table_holds_the_quantised_masses_exactly() {
        let pairs = [(9, 0.25), (2, 7.0), (4, 0.0), (900, 1e-9), (3, 1.0)];
        let positive: Vec<_> = pairs.into_iter().filter(|pair| pair.1 > 0.0).collect();
        let weights: Vec<f64> = positive.iter().map(|pair| pair.1).collect();
        let mut masses = Vec::new();
        pairing::quantise(&weights, &mut masses).unwrap();
        let mut expected: Vec<_> = positive.iter().map(|pair| pair.0).zip(masses).collect();
        expected.sort_unstable();
        let table = SparseAlias::new(pairs).unwrap();
        assert_eq!(table.masses(), expected);
        assert_eq!(table.len(), 4);
    }

    #[test]
    fn columns_change_owner_at_the_threshold() {
        let pairs = (0..50).map(|k| (k * 10, f64::from((k * 31) % 17)));
        let table = SparseAlias::new(pairs).unwrap();
        let mut shared = 0;
        for (k, entry) in table.entries.iter().enumerate() {
            let owner = |height| table.locate(join(k, height, table.len()));
            assert_eq!(owner(entry.threshold.saturating_sub(1)), entry.topic);
            assert_eq!(owner(entry.threshold), entry.alias);
            assert_eq!(owner(u32::MAX), entry.alias);
            shared += usize::from(entry.topic != entry.alias);
        }
        assert!(shared > 20, "{shared}");
    }

    #[test]
    fn weights_of_a_repeated_topic_add_up() {
        let table = SparseAlias::new([(1, 1.0), (2, 2.0), (1, 1.0)]).unwrap();
        assert_eq!(table.weights().len(), 2);
        assert!((table.weights()[0].1 - 2.0).abs() < 1e-8);
    }

    #[test]
    fn invalid_pairs_are_rejected_and_keep_the_table() {
        let mut scratch = AliasScratch::default();
        let mut table = SparseAlias::new([(u32::MAX, 1.0)]).unwrap();
        let before = table.clone();
        assert_eq!(table.rebuild([], &mut scratch), Err(DiscreteError::Empty));
        assert_eq!(table.rebuild([(1, 0.0)], &mut scratch), Err(DiscreteError::AllZero));
        let negative = table.rebuild([(1, 1.0), (7, -1.0)], &mut scratch);
        assert_eq!(negative, Err(DiscreteError::Negative { index: 1, weight: -1.0 }));
        assert_eq!(table, before);
        assert_eq!(table.locate(u64::MAX), u32::MAX);
    }
}
