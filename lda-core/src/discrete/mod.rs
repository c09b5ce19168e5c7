//! Alias tables: draws of an index with probability weight / total in O(1).
//!
//! The tables are independent of LDA and usable on their own. K weights, n of them non-zero; in
//! brackets nanoseconds at K = n = 1,000 and 100,000 (one core of a virtual AMD EPYC with 2 cores;
//! `benches/discrete.rs` measures other machines):
//!
//! | structure | build, per weight | draw | bytes per weight | use it when |
//! |---|---|---|---|---|
//! | [`AliasTable`] | O(1) \[4.4, 4.6\] | O(1) \[1.4, 1.9\] | 8 | K / 3 or more draws from the same dense weights |
//! | [`SparseAlias`] | O(1) \[6.3, 6.8\] | O(1) \[1.6, 2.2\] | 12 per non-zero | the same, most weights zero |
//!
//! A changed weight takes a rebuild. One [`AliasScratch`] of up to 20 bytes per weight serves all
//! tables of a thread.
//!
//! # Contract
//! - `locate(u)` is a pure function from a `u64` to an index, so a sweep over `u` measures the
//!   distribution. `sample(rng)` calls it with one word of the generator. Its draws for a seed are
//!   stable: changing them is a value-breaking change.
//! - **An index of weight 0 is never returned**, for any `u`.
//! - A weight is finite, not negative and at most [`MAX_WEIGHT`]; a table has 1 to [`MAX_LEN`]
//!   weights. These limits keep every sum finite; anything else is a [`DiscreteError`]. After an
//!   error from `rebuild` the table is unchanged.
//! - Weights down to the smallest subnormal and ratios of 1e600 are accepted.
//!
//! ```
//! use lda_core::discrete::AliasTable;
//! use rand::{SeedableRng, rngs::Xoshiro256PlusPlus};
//!
//! let weights = [0.5, 0.0, 1.5];
//! let mut rng = Xoshiro256PlusPlus::seed_from_u64(7);
//!
//! let table = AliasTable::new(&weights)?;
//! assert_ne!(table.sample(&mut rng), 1);
//! # Ok::<(), lda_core::discrete::DiscreteError>(())
//! ```

mod alias;
mod pairing;
mod sparse_alias;

pub use alias::AliasTable;
pub use pairing::AliasScratch;
pub use sparse_alias::SparseAlias;

/// Largest number of weights of a table, 2^27.
pub const MAX_LEN: usize = 1 << 27;

/// Largest weight. [`MAX_LEN`] of them add up to 1.4e308, so every sum is finite.
pub const MAX_WEIGHT: f64 = 1e300;

/// Error of building a table.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum DiscreteError {
    /// There are no weights.
    #[error("no weights: a distribution needs at least one")]
    Empty,
    /// A weight is below 0.
    #[error("weight {weight} at position {index} is negative: weights start at 0")]
    Negative {
        /// Position of the weight, from 0.
        index: usize,
        /// The weight.
        weight: f64,
    },
    /// A weight is NaN or infinite.
    #[error("weight {weight} at position {index} is not a finite number")]
    NotFinite {
        /// Position of the weight, from 0.
        index: usize,
        /// The weight.
        weight: f64,
    },
    /// A weight is above [`MAX_WEIGHT`].
    #[error("weight {weight} at position {index} is above 1e300: divide all weights by a constant")]
    TooLarge {
        /// Position of the weight, from 0.
        index: usize,
        /// The weight.
        weight: f64,
    },
    /// No weight is above 0.
    #[error("all weights are zero: at least one must be positive")]
    AllZero,
    /// There are more than [`MAX_LEN`] weights.
    #[error("more than {MAX_LEN} weights: draw in two steps, a group and then its member")]
    TooMany,
}

/// Checks one weight and returns it as it is stored: -0 becomes 0.
#[inline]
fn checked(index: usize, weight: f64) -> Result<f64, DiscreteError> {
    if (0.0..=MAX_WEIGHT).contains(&weight) {
        Ok(weight + 0.0)
    } else {
        Err(weight_error(index, weight))
    }
}

#[cold]
fn weight_error(index: usize, weight: f64) -> DiscreteError {
    if !weight.is_finite() {
        DiscreteError::NotFinite { index, weight }
    } else if weight < 0.0 {
        DiscreteError::Negative { index, weight }
    } else {
        DiscreteError::TooLarge { index, weight }
    }
}

fn check_len(len: usize) -> Result<(), DiscreteError> {
    match len {
        0 => Err(DiscreteError::Empty),
        1..=MAX_LEN => Ok(()),
        _ => Err(DiscreteError::TooMany),
    }
}

/// Checks the length and every weight.
fn check(weights: &[f64]) -> Result<(), DiscreteError> {
    check_len(weights.len())?;
    // PERF: without an early exit the compiler vectorises the loop. The position of a bad weight is
    // searched for only if there is one.
    if weights.iter().fold(true, |good, w| good & (0.0..=MAX_WEIGHT).contains(w)) {
        return Ok(());
    }
    weights.iter().enumerate().try_for_each(|(index, &w)| checked(index, w).map(|_| ()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TINY: f64 = 5e-324;

    #[test]
    fn each_error_names_its_reason() {
        use DiscreteError as E;
        assert_eq!(check(&[]), Err(E::Empty));
        assert_eq!(check(&[1.0, -2.0]), Err(E::Negative { index: 1, weight: -2.0 }));
        assert!(matches!(check(&[f64::NAN]), Err(E::NotFinite { index: 0, .. })));
        assert!(matches!(check(&[0.0, f64::INFINITY]), Err(E::NotFinite { index: 1, .. })));
        assert!(matches!(check(&[f64::NEG_INFINITY]), Err(E::NotFinite { index: 0, .. })));
        assert!(matches!(check(&[2e300]), Err(E::TooLarge { index: 0, .. })));
        assert_eq!(check(&[0.0, -0.0, MAX_WEIGHT, TINY]), Ok(()));
        assert_eq!(check_len(MAX_LEN), Ok(()));
        assert_eq!(check_len(MAX_LEN + 1), Err(E::TooMany));
        assert_eq!(checked(0, -0.0).map(f64::to_bits), Ok(0));
    }
}
