//! Draws over K weights: an index comes out with probability weight / total.
//!
//! Nothing here knows topics beyond the word; each structure is usable on its own. K weights, n of
//! them non-zero; in brackets nanoseconds at K = n = 1,000 and 100,000 (one core of a virtual AMD
//! EPYC, 2 of them; `benches/discrete.rs` measures yours):
//!
//! | structure | build, a weight | change one weight | draw | bytes a weight | choose it when |
//! |---|---|---|---|---|---|
//! | [`Cumulative`] | O(1) \[1.0, 1.0\] | build again | O(log K) \[13, 32\] | 8 | a few draws, then all weights change; the reference of every test |
//! | [`AliasTable`] | O(1) \[4.4, 4.6\] | build again | O(1) \[1.4, 1.9\] | 8 | K / 3 or more draws from the same dense weights |
//! | [`SparseAlias`] | O(1) \[6.3, 6.8\] | build again | O(1) \[1.6, 2.2\] | 12 a non-zero | the same, most weights zero |
//! | [`IntegerAlias`] | O(1) \[3.7, 3.8\] | build again | O(1) \[2.4, 5.0\] | 12 a non-zero | weights are counts, and not even rounding may bend the law |
//! | [`FPlusTree`] | O(1) \[0.75, 0.75\] | O(log K) \[12, 25\] | O(log K) \[17, 43\] | 10.7 | draws and changes alternate |
//!
//! An [`AliasScratch`] of up to 20 bytes a weight serves all alias tables of a thread.
//!
//! # The contract they share
//! - `locate(u)` is a pure function from a point to an index: sweep `u` and the whole law is seen.
//!   `sample(rng)` is one line over it, and its draws at a seed are stable: a change of them is
//!   value-breaking.
//! - **A weight of 0 never comes out**, for any `u`: not at an edge, not beyond the range, not for
//!   NaN. Points outside the range are moved to its nearest end.
//! - A weight is finite, not negative and at most [`MAX_WEIGHT`]; there are 1 to [`MAX_LEN`] of
//!   them. So no sum overflows, and everything else is a [`DiscreteError`]. After an error from
//!   `rebuild` the structure is as it was.
//! - Weights as small as the smallest subnormal and ratios of 1e600 are legal.
//!
//! # Which point a structure takes
//! [`Cumulative`] and [`FPlusTree`] take a real `u` in `[0, total)`, drawn by [`uniform`]. The
//! alias tables take integers, because then the law of a draw can be counted: any `u64` for
//! [`AliasTable`] and [`SparseAlias`], a cell in `0..n * total` for [`IntegerAlias`], drawn without
//! bias by [`uniform_below`].
//!
//! ```
//! use lda_core::discrete::{AliasTable, FPlusTree};
//! use rand::{SeedableRng, rngs::Xoshiro256PlusPlus};
//!
//! let weights = [0.5, 0.0, 1.5];
//! let mut rng = Xoshiro256PlusPlus::seed_from_u64(7);
//!
//! let table = AliasTable::new(&weights)?;
//! assert_ne!(table.sample(&mut rng), 1);
//!
//! let mut tree = FPlusTree::new(&weights)?;
//! assert_eq!(tree.locate(0.49), Some(0));
//! assert_eq!(tree.locate(0.50), Some(2));
//! tree.set(2, 0.0)?;
//! assert_eq!(tree.sample(&mut rng), Some(0));
//! # Ok::<(), lda_core::discrete::DiscreteError>(())
//! ```

mod alias;
mod cumulative;
mod fplus;
mod integer_alias;
mod pairing;
mod sparse_alias;

pub use alias::AliasTable;
pub use cumulative::Cumulative;
pub use fplus::FPlusTree;
pub use integer_alias::IntegerAlias;
pub use pairing::AliasScratch;
pub use sparse_alias::SparseAlias;

use rand::Rng;

/// The most weights a structure takes, 2^27.
pub const MAX_LEN: usize = 1 << 27;

/// The largest weight. [`MAX_LEN`] of them add up to 1.4e308, so no sum is ever infinite.
pub const MAX_WEIGHT: f64 = 1e300;

/// Why weights were refused.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum DiscreteError {
    /// There was no weight.
    #[error("no weights: a distribution needs at least one")]
    Empty,
    /// A weight was below 0.
    #[error("weight {weight} at position {index} is negative: weights start at 0")]
    Negative {
        /// Where it stood.
        index: usize,
        /// The weight.
        weight: f64,
    },
    /// A weight was NaN or infinite.
    #[error("weight {weight} at position {index} is not a finite number")]
    NotFinite {
        /// Where it stood.
        index: usize,
        /// The weight.
        weight: f64,
    },
    /// A weight was above [`MAX_WEIGHT`].
    #[error("weight {weight} at position {index} is above 1e300: divide all weights by a constant")]
    TooLarge {
        /// Where it stood.
        index: usize,
        /// The weight.
        weight: f64,
    },
    /// No weight was above 0, so that nothing can come out.
    #[error("all weights are zero: at least one must be positive")]
    AllZero,
    /// There were more than [`MAX_LEN`] weights.
    #[error("more than {MAX_LEN} weights: draw in two steps, a group and then its member")]
    TooMany,
    /// A weight was to be set beyond the last.
    #[error("there is no position {index}: the weights are 0 to {}", .len - 1)]
    OutOfRange {
        /// The position asked for.
        index: usize,
        /// How many weights there are.
        len: usize,
    },
    /// Integer weights added up to more than `u32::MAX`.
    #[error("integer weights add up to more than 4294967295: use a table of real weights")]
    TotalTooLarge,
}

/// A real number in `[0, 1)`, uniform over the multiples of 2^-53.
///
/// ```
/// use rand::{SeedableRng, rngs::Xoshiro256PlusPlus};
///
/// let u = lda_core::discrete::unit(&mut Xoshiro256PlusPlus::seed_from_u64(1));
/// assert!((0.0..1.0).contains(&u));
/// ```
#[inline]
pub fn unit(rng: &mut (impl Rng + ?Sized)) -> f64 {
    (rng.next_u64() >> 11) as f64 * (1.0 / (1_u64 << 53) as f64)
}

/// A real number in `[0, total)`, uniform up to rounding; `total` is positive and finite.
///
/// The result is below `total` whatever is drawn, also where `total` is subnormal: there the point
/// is rounded down to the grid of the subnormal numbers, so that a grid weight keeps its share.
///
/// ```
/// use rand::{SeedableRng, rngs::Xoshiro256PlusPlus};
///
/// let u = lda_core::discrete::uniform(&mut Xoshiro256PlusPlus::seed_from_u64(1), 2.5);
/// assert!((0.0..2.5).contains(&u));
/// ```
#[inline]
pub fn uniform(rng: &mut (impl Rng + ?Sized), total: f64) -> f64 {
    stretch(unit(rng), total)
}

/// An integer in `0..bound`, exactly uniform; 0 for a bound of 0.
///
/// Lemire, Fast random integer generation in an interval (2019): a multiplication, and a division
/// only with probability `bound` / 2^64.
///
/// ```
/// use rand::{SeedableRng, rngs::Xoshiro256PlusPlus};
///
/// let die = lda_core::discrete::uniform_below(&mut Xoshiro256PlusPlus::seed_from_u64(1), 6);
/// assert!(die < 6);
/// ```
#[inline]
pub fn uniform_below(rng: &mut (impl Rng + ?Sized), bound: u64) -> u64 {
    let mut wide = u128::from(rng.next_u64()) * u128::from(bound);
    if (wide as u64) < bound {
        let surplus = bound.wrapping_neg() % bound;
        while (wide as u64) < surplus {
            wide = u128::from(rng.next_u64()) * u128::from(bound);
        }
    }
    (wide >> 64) as u64
}

/// `unit * total`, always below `total`.
#[inline]
fn stretch(unit: f64, total: f64) -> f64 {
    // Above this bound unit * total is a normal number, and (1 - 2^-53) * total rounds to below
    // total: the difference is at least half a unit in the last place of what lies below it.
    const SAFE: f64 = 1e-280;
    const LIFT: f64 = (1_u128 << 100) as f64;
    if total >= SAFE {
        return unit * total;
    }
    let lifted = unit * (total * LIFT);
    let point = lifted / LIFT;
    if point * LIFT > lifted { below(point) } else { point }
}

/// The float before a positive one; 0 stays 0. Unlike `next_down` it has no special cases.
#[inline]
fn below(x: f64) -> f64 {
    f64::from_bits(x.to_bits().saturating_sub(1))
}

/// `u` moved into `[0, total)`, for a positive `total`; NaN goes to the upper end.
#[inline]
fn clamp(u: f64, total: f64) -> f64 {
    let last = below(total);
    let u = if u < last { u } else { last };
    if u > 0.0 { u } else { 0.0 }
}

/// The weight as it will be stored: -0 becomes 0.
#[inline]
fn checked(index: usize, weight: f64) -> Result<f64, DiscreteError> {
    if (0.0..=MAX_WEIGHT).contains(&weight) {
        Ok(weight + 0.0)
    } else {
        Err(refusal(index, weight))
    }
}

#[cold]
fn refusal(index: usize, weight: f64) -> DiscreteError {
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
    // PERF: without an early exit the loop is vectorised; the culprit is looked for only if any.
    if weights.iter().fold(true, |good, w| good & (0.0..=MAX_WEIGHT).contains(w)) {
        return Ok(());
    }
    weights.iter().enumerate().try_for_each(|(index, &w)| checked(index, w).map(|_| ()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::{SeedableRng, rngs::Xoshiro256PlusPlus};

    const TINY: f64 = 5e-324;
    const LAST: f64 = 1.0 - 1.0 / (1_u64 << 53) as f64;

    #[test]
    fn stretched_points_stay_below_the_total() {
        let mut total = TINY;
        while total <= f64::MAX / 4.0 {
            for t in [total, total.next_up(), total * 1.5, total * 1.999] {
                assert!(stretch(LAST, t) < t, "{t:e}");
                assert_eq!(stretch(0.0, t), 0.0);
            }
            total *= 2.0;
        }
    }

    #[test]
    fn subnormal_totals_keep_shares() {
        // Three cells of the grid: each must own a third of [0, 1), edges within one unit.
        for (cell, edge) in [(1.0, 1.0 / 3.0), (2.0, 2.0 / 3.0)] {
            assert_eq!(stretch(edge - 1e-12, 3.0 * TINY), (cell - 1.0) * TINY);
            assert_eq!(stretch(edge + 1e-12, 3.0 * TINY), cell * TINY);
        }
    }

    #[test]
    fn clamping_reaches_both_ends() {
        assert_eq!(clamp(-1.0, 2.0), 0.0);
        assert_eq!(clamp(f64::NEG_INFINITY, TINY), 0.0);
        assert_eq!(clamp(2.0, 2.0), 2.0_f64.next_down());
        assert_eq!(clamp(f64::NAN, TINY), 0.0);
        assert_eq!(clamp(1.0, 2.0), 1.0);
    }

    #[test]
    fn integers_below_a_bound_are_exactly_uniform() {
        // A generator that counts through the extremes: with bound 3, one of 2^64 values is
        // surplus and must be rejected, and it is the one whose low product word is 0.
        struct Counter(u64);
        impl rand::TryRng for Counter {
            type Error = std::convert::Infallible;
            fn try_next_u32(&mut self) -> Result<u32, Self::Error> {
                Ok(self.try_next_u64()? as u32)
            }
            fn try_next_u64(&mut self) -> Result<u64, Self::Error> {
                self.0 = self.0.wrapping_add(1);
                Ok(self.0)
            }
            fn try_fill_bytes(&mut self, _: &mut [u8]) -> Result<(), Self::Error> {
                unreachable!("uniform_below takes whole words")
            }
        }
        let mut rejecting = Counter(u64::MAX);
        assert_eq!(uniform_below(&mut rejecting, 3), 0);
        assert_eq!(rejecting.0, 1, "0 is the surplus value and is drawn again");
        assert_eq!(uniform_below(&mut Counter(u64::MAX - 1), 3), 2);
        assert_eq!(uniform_below(&mut Counter(u64::MAX / 3 - 1), 3), 0);
        assert_eq!(uniform_below(&mut Counter(u64::MAX / 3), 3), 1);
        assert_eq!(uniform_below(&mut Counter(5), 0), 0);
        assert_eq!(uniform_below(&mut Counter(u64::MAX - 1), u64::MAX), u64::MAX - 1);
    }

    #[test]
    fn unit_has_53_bits() {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(3);
        for _ in 0..1000 {
            let u = unit(&mut rng);
            assert!((0.0..1.0).contains(&u));
            assert_eq!((u * (1_u64 << 53) as f64).fract(), 0.0);
        }
    }

    #[test]
    fn every_refusal_names_its_reason() {
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
