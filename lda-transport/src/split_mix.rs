//! Seeded random numbers, for tests and simulations.

use std::time::Duration;

/// Pseudorandom number generator SplitMix64 (Steele, Lea & Flood 2014). The same seed gives the
/// same rng. Not for secrets, nor for statistics that need every bit to be fair.
///
/// ```
/// use lda_transport::rpc::SplitMix64;
///
/// let (mut one, mut other) = (SplitMix64::new(7), SplitMix64::new(7));
/// assert_eq!(one.draw(), other.draw());
/// assert!((0..100).all(|_| one.below(6) < 6));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SplitMix64(u64);

impl SplitMix64 {
    /// Creates a generator. All seeds are equally good.
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Returns the next number.
    pub const fn draw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mixed(self.0)
    }

    /// Returns a number below `bound`, or 0 if that is 0. Small numbers are more likely, by one
    /// part in 2⁶⁴ / `bound`.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.draw() % bound.max(1)
    }

    /// Returns true with this probability.
    pub fn chance(&mut self, probability: f64) -> bool {
        // 53 bits convert to `f64` without rounding.
        ((self.draw() >> 11) as f64) < probability * (1u64 << 53) as f64
    }

    /// Returns a time from 0 to `longest`.
    pub fn up_to(&mut self, longest: Duration) -> Duration {
        let longest = u64::try_from(longest.as_nanos()).unwrap_or(u64::MAX);
        Duration::from_nanos(self.below(longest.saturating_add(1)))
    }
}

/// A bijection in which every output bit depends on every input bit.
pub(crate) const fn mixed(mut bits: u64) -> u64 {
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_match_the_reference_implementation() {
        // First numbers of seed 0 from the program of the authors.
        let mut rng = SplitMix64::new(0);
        assert_eq!([rng.draw(), rng.draw()], [0xe220_a839_7b1d_cdaf, 0x6e78_9e6a_a1b9_65f4]);
    }

    #[test]
    fn chance_has_the_given_probability() {
        let mut rng = SplitMix64::new(1);
        for probability in [0.0, 0.001, 0.3, 1.0] {
            let times = (0..100_000).filter(|_| rng.chance(probability)).count() as f64;
            let sigma = (1e5 * probability * (1.0 - probability)).sqrt();
            assert!((times - 1e5 * probability).abs() <= 5.0 * sigma, "{probability}: {times}");
        }
    }

    #[test]
    fn numbers_stay_within_bounds() {
        let mut rng = SplitMix64::new(2);
        assert_eq!((rng.below(0), rng.below(1)), (0, 0));
        assert_eq!(rng.up_to(Duration::ZERO), Duration::ZERO);
        let longest = Duration::from_nanos(2);
        let seen = (0..100).map(|_| rng.up_to(longest)).max();
        assert_eq!(seen, Some(longest));
        assert!(rng.up_to(Duration::MAX) <= Duration::from_nanos(u64::MAX));
    }
}
