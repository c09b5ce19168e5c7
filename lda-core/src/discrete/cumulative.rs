//! Prefix sums and a search: the plain way, against which the others are tested.
//!
//! `sums[k]` is the sum of the weights up to and including k, added from left to right; a point u
//! belongs to the first k with `sums[k] > u`. Such a k has a positive weight, since `sums[k - 1]`
//! is at most u: adding 0 changes no sum.
//!
//! Numerics: a prefix sum is off by at most its number of terms times 2^-53, relatively. Integers
//! up to 2^53 in total are exact.

use super::{DiscreteError, check, clamp, uniform};
use rand::Rng;

/// Up to this length all sums are compared instead of searched: no branch to mispredict.
const SHORT: usize = 32;

/// A distribution held as its prefix sums: O(K) to build, O(log K) to draw.
#[derive(Clone, Debug, PartialEq)]
pub struct Cumulative {
    sums: Vec<f64>,
}

impl Cumulative {
    /// Sums up `weights`.
    ///
    /// ```
    /// use lda_core::discrete::Cumulative;
    ///
    /// let law = Cumulative::new(&[1.0, 0.0, 2.0])?;
    /// assert_eq!(law.total(), 3.0);
    /// assert_eq!([0.0, 0.9, 1.0, 2.9].map(|u| law.locate(u)), [0, 0, 2, 2]);
    /// # Ok::<(), lda_core::discrete::DiscreteError>(())
    /// ```
    ///
    /// # Errors
    /// No weights, too many, a weight that is negative, not finite or too large, or none positive.
    pub fn new(weights: &[f64]) -> Result<Self, DiscreteError> {
        let mut law = Self { sums: Vec::new() };
        law.rebuild(weights)?;
        Ok(law)
    }

    /// Replaces the weights, reusing the memory; any length.
    ///
    /// # Errors
    /// As [`new`](Self::new); the old weights are kept then.
    pub fn rebuild(&mut self, weights: &[f64]) -> Result<(), DiscreteError> {
        check(weights)?;
        if weights.iter().all(|&w| w == 0.0) {
            return Err(DiscreteError::AllZero);
        }
        let mut sum = 0.0;
        self.sums.clear();
        self.sums.extend(weights.iter().map(|w| {
            sum += w;
            sum
        }));
        Ok(())
    }

    /// The sum of all weights.
    pub fn total(&self) -> f64 {
        // A value of this type holds at least one sum.
        self.sums[self.sums.len() - 1]
    }

    /// Number of weights, those of 0 included.
    #[expect(clippy::len_without_is_empty, reason = "it is never empty")]
    pub fn len(&self) -> usize {
        self.sums.len()
    }

    /// The prefix sums: entry k is the sum of weights 0 to k.
    pub fn sums(&self) -> &[f64] {
        &self.sums
    }

    /// The index whose share of `[0, total)` holds `u`. Its weight is positive for any `u`.
    pub fn locate(&self, u: f64) -> usize {
        let u = clamp(u, self.total());
        if self.sums.len() <= SHORT {
            self.sums.iter().map(|&sum| usize::from(sum <= u)).sum()
        } else {
            self.sums.partition_point(|&sum| sum <= u)
        }
    }

    /// Draws an index.
    pub fn sample(&self, rng: &mut (impl Rng + ?Sized)) -> usize {
        self.locate(uniform(rng, self.total()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Both searches at every edge: the point of an edge belongs to the right, the float before it
    /// to the left.
    #[test]
    fn every_edge_is_half_open() {
        for len in [1, 2, SHORT - 1, SHORT, SHORT + 1, 500] {
            let weights: Vec<f64> = (0..len).map(|k| ((k * 7 + 1) % 4) as f64).collect();
            let law = Cumulative::new(&weights).unwrap();
            let mut edge = 0.0;
            for (k, &w) in weights.iter().enumerate() {
                if w > 0.0 {
                    assert_eq!(law.locate(edge), k);
                    edge += w;
                    assert_eq!(law.locate(edge.next_down()), k);
                }
            }
            assert_eq!(edge, law.total());
        }
    }

    #[test]
    fn points_outside_find_a_positive_weight() {
        let law = Cumulative::new(&[0.0, 1.0, 2.0, 0.0]).unwrap();
        assert_eq!(law.locate(-1.0), 1);
        assert_eq!(law.locate(3.0), 2);
        assert_eq!(law.locate(f64::INFINITY), 2);
        assert_eq!(law.locate(f64::NAN), 2);
    }

    #[test]
    fn a_refused_rebuild_keeps_the_old_weights() {
        let mut law = Cumulative::new(&[1.0, 2.0]).unwrap();
        let before = law.clone();
        assert_eq!(law.rebuild(&[0.0, 0.0]), Err(DiscreteError::AllZero));
        assert!(law.rebuild(&[1.0, f64::NAN]).is_err());
        assert_eq!(law.rebuild(&[]), Err(DiscreteError::Empty));
        assert_eq!(law, before);
        law.rebuild(&[4.0]).unwrap();
        assert_eq!((law.len(), law.total()), (1, 4.0));
    }
}
