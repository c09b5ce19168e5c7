//! Walker's alias table over dense weights.
//!
//! The table is n columns of equal height, each split between at most two indices: column k is k's
//! up to a threshold and an alias's above it. A draw takes a column and a height from one random
//! word and reads one entry.
//!
//! # Numerics
//! An entry is 8 bytes: the threshold in units of 2^-32 of a column, and the alias. Weights are
//! first rounded to whole units and then paired in integer arithmetic, so the table represents the
//! rounded distribution exactly, and [`probabilities`](AliasTable::probabilities) reads it back
//! without error:
//! - a weight of 0 has no unit, a positive weight has at least one;
//! - the probability of an index is off by at most 2^-32 / n, plus a relative 2^-46 for the sums;
//! - the heaviest index absorbs all rounding errors and is off by at most 2^-32.
//!
//! The total variation distance is therefore at most 2^-32. An f32 threshold would take the same
//! memory and be 2^7 times worse. A draw multiplies one 64-bit word by n: the number of words that
//! lead to each owner of a column is off by at most one in 2^64.

use super::{AliasScratch, DiscreteError, pairing};
use rand::Rng;
use std::hint::select_unpredictable;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Entry {
    /// Units of the column that belong to its own index.
    threshold: u32,
    /// Index that owns the rest; the column's own index if the column is not shared.
    alias: u32,
}

/// An alias table over dense weights: O(K) to build, O(1) to draw, 8 bytes per weight.
#[derive(Clone, Debug, PartialEq)]
pub struct AliasTable {
    entries: Vec<Entry>,
    total: f64,
}

impl AliasTable {
    /// Builds the table of `weights`.
    ///
    /// ```
    /// use lda_core::discrete::AliasTable;
    ///
    /// let table = AliasTable::new(&[1.0, 0.0, 3.0])?;
    /// assert_eq!(table.total(), 4.0);
    /// assert!((table.probabilities()[2] - 0.75).abs() < 1e-9);
    /// # Ok::<(), lda_core::discrete::DiscreteError>(())
    /// ```
    ///
    /// # Errors
    /// No weights, too many, a weight that is negative, not finite or too large, or none positive.
    pub fn new(weights: &[f64]) -> Result<Self, DiscreteError> {
        let mut table = Self { entries: Vec::new(), total: 0.0 };
        table.rebuild(weights, &mut AliasScratch::default())?;
        Ok(table)
    }

    /// Replaces the weights; the new number may differ. Allocates only if table or scratch have not
    /// held this many weights before.
    ///
    /// ```
    /// use lda_core::discrete::{AliasScratch, AliasTable};
    ///
    /// let mut scratch = AliasScratch::default(); // one per thread
    /// let mut table = AliasTable::new(&[1.0, 2.0])?;
    /// table.rebuild(&[0.0, 5.0], &mut scratch)?;
    /// assert_eq!(table.locate(0), 1);
    /// # Ok::<(), lda_core::discrete::DiscreteError>(())
    /// ```
    ///
    /// # Errors
    /// As [`new`](Self::new); the table is then unchanged.
    pub fn rebuild(
        &mut self,
        weights: &[f64],
        scratch: &mut AliasScratch,
    ) -> Result<(), DiscreteError> {
        self.total = pairing::quantise(weights, &mut scratch.masses)?;
        self.entries.resize(weights.len(), Entry::default());
        let entries = &mut self.entries[..];
        pairing::pair(&scratch.masses, pairing::ONE, |k, own, other| {
            // A whole column, 2^32, does not fit the threshold. Its alias is the column itself, so
            // the threshold does not matter.
            let threshold = u32::try_from(own).unwrap_or(u32::MAX);
            entries[k] = Entry { threshold, alias: other as u32 };
        });
        Ok(())
    }

    /// Sum of the weights the table was built from, before rounding to units.
    pub fn total(&self) -> f64 {
        self.total
    }

    /// Number of weights, including those of 0.
    #[expect(clippy::len_without_is_empty, reason = "it is never empty")]
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Index at point `u` of 2^64. The upper word of `u` times n is the column, the lower word the
    /// height.
    #[inline]
    pub fn locate(&self, u: u64) -> usize {
        let (column, height) = split(u, self.entries.len());
        self.cell(column, height)
    }

    /// Draws an index; consumes one `u64` of the generator.
    #[inline]
    pub fn sample(&self, rng: &mut (impl Rng + ?Sized)) -> usize {
        self.locate(rng.next_u64())
    }

    /// Probabilities that the table represents, read back from its entries.
    pub fn probabilities(&self) -> Vec<f64> {
        let units = (pairing::ONE * self.entries.len() as u64) as f64;
        self.masses().into_iter().map(|mass| mass as f64 / units).collect()
    }

    /// Weights that the table represents: [`probabilities`](Self::probabilities) times
    /// [`total`](Self::total).
    pub fn weights(&self) -> Vec<f64> {
        self.probabilities().into_iter().map(|p| p * self.total).collect()
    }

    #[inline]
    fn cell(&self, column: usize, height: u32) -> usize {
        let entry = self.entries[column];
        select_unpredictable(height < entry.threshold, column, entry.alias as usize)
    }

    /// Units of each index.
    fn masses(&self) -> Vec<u64> {
        let mut masses = vec![0; self.entries.len()];
        for (k, entry) in self.entries.iter().enumerate() {
            masses[k] += u64::from(entry.threshold);
            masses[entry.alias as usize] += pairing::ONE - u64::from(entry.threshold);
        }
        masses
    }
}

/// Splits a random word into a column below n and a height in it.
///
/// PERF: both come from one widening multiplication, `u * n` as a 128-bit number in fixed point:
/// its upper 64 bits are the column, the next 32 the height.
#[inline]
pub(super) fn split(u: u64, n: usize) -> (usize, u32) {
    let wide = u128::from(u) * n as u128;
    ((wide >> 64) as usize, (wide >> 32) as u32)
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// Smallest random word at a height of a column: the inverse of [`split`].
    pub(in super::super) fn join(column: usize, height: u32, n: usize) -> u64 {
        let wide = (column as u128) << 64 | u128::from(height) << 32;
        wide.div_ceil(n as u128) as u64
    }

    #[test]
    fn table_holds_the_quantised_masses_exactly() {
        let cases: [&[f64]; 7] = [
            &[3.0],
            &[0.0, 1.0],
            &[1.0, 1.0, 1.0],
            &[1.0, 2.0, 3.0, 4.0, 0.0, 0.1],
            &[1e-300, 1e300, 0.0, 1.0],
            &[5e-324, 0.0, 1e-323],
            &[1e300, 1e300, 1e300],
        ];
        for weights in cases {
            let mut masses = Vec::new();
            pairing::quantise(weights, &mut masses).unwrap();
            let table = AliasTable::new(weights).unwrap();
            assert_eq!(table.masses(), masses, "{weights:?}");
        }
    }

    /// Tests each column at the heights that matter: below and at the threshold, and both ends.
    #[test]
    fn columns_change_owner_at_the_threshold() {
        let weights = [0.0, 2.0, 0.5, 0.0, 9.0, 1e-12, 0.0];
        let table = AliasTable::new(&weights).unwrap();
        for (k, entry) in table.entries.iter().enumerate() {
            for height in [0, entry.threshold.saturating_sub(1), entry.threshold, u32::MAX] {
                let index = table.cell(k, height);
                assert!(weights[index] > 0.0);
                assert_eq!(index == k, height < entry.threshold || entry.alias as usize == k);
            }
        }
    }

    #[test]
    fn words_are_split_evenly() {
        for n in [1, 2, 3, 7, 1000, super::super::MAX_LEN] {
            assert_eq!(split(0, n), (0, 0));
            assert_eq!(split(u64::MAX, n).0, n - 1);
            for c in [1, n / 2, n - 1].into_iter().filter(|&c| (1..n).contains(&c)) {
                let first = join(c, 0, n);
                assert_eq!(split(first, n).0, c);
                assert_eq!(split(first - 1, n).0, c - 1);
                assert!(split(first - 1, n).1 > split(first, n).1);
            }
        }
    }

    #[test]
    fn rebuilding_reuses_the_memory() {
        let mut scratch = AliasScratch::default();
        let mut table = AliasTable::new(&[1.0; 100]).unwrap();
        table.rebuild(&[2.0; 100], &mut scratch).unwrap();
        let place = (table.entries.as_ptr(), scratch.masses.as_ptr());
        for n in [1, 50, 100] {
            table.rebuild(&vec![0.5; n], &mut scratch).unwrap();
            assert_eq!(table.len(), n);
            assert_eq!((table.entries.as_ptr(), scratch.masses.as_ptr()), place);
        }
    }

    #[test]
    fn failed_rebuild_keeps_the_table() {
        let mut scratch = AliasScratch::default();
        let mut table = AliasTable::new(&[1.0, 2.0]).unwrap();
        let before = table.clone();
        assert_eq!(table.rebuild(&[0.0], &mut scratch), Err(DiscreteError::AllZero));
        assert_eq!(table.rebuild(&[], &mut scratch), Err(DiscreteError::Empty));
        assert!(table.rebuild(&[1.0, -1.0], &mut scratch).is_err());
        assert_eq!(table, before);
    }
}
