//! Numbers that look random, for what is tested by seed.

use std::time::Duration;

/// Numbers that look random, the same for the same seed (Steele, Lea & Flood 2014, SplitMix64). Nothing
/// that has to be secret or fair in every bit should be made of them.
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
    /// Those of a seed; every seed is as good as another.
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next one.
    pub const fn draw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mixed(self.0)
    }

    /// One from 0 to `bound`, or 0 where that is 0. Small numbers are likelier, by one in 2⁶⁴ / `bound`.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.draw() % bound.max(1)
    }

    /// True so often.
    pub fn chance(&mut self, probability: f64) -> bool {
        // 53 bits are a real number without rounding.
        ((self.draw() >> 11) as f64) < probability * (1u64 << 53) as f64
    }

    /// A time that is not longer.
    pub fn up_to(&mut self, longest: Duration) -> Duration {
        let longest = u64::try_from(longest.as_nanos()).unwrap_or(u64::MAX);
        Duration::from_nanos(self.below(longest.saturating_add(1)))
    }
}

/// A bijection of which every bit depends on every bit.
pub(crate) const fn mixed(mut bits: u64) -> u64 {
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn they_are_those_of_the_paper() {
        // The first of seed 0, as the authors' program gives them.
        let mut numbers = SplitMix64::new(0);
        assert_eq!(
            [numbers.draw(), numbers.draw()],
            [0xe220_a839_7b1d_cdaf, 0x6e78_9e6a_a1b9_65f4]
        );
    }

    #[test]
    fn chances_are_as_often_as_they_say() {
        let mut numbers = SplitMix64::new(1);
        for probability in [0.0, 0.001, 0.3, 1.0] {
            let times = (0..100_000).filter(|_| numbers.chance(probability)).count() as f64;
            let sigma = (1e5 * probability * (1.0 - probability)).sqrt();
            assert!((times - 1e5 * probability).abs() <= 5.0 * sigma, "{probability}: {times}");
        }
    }

    #[test]
    fn bounds_are_kept() {
        let mut numbers = SplitMix64::new(2);
        assert_eq!((numbers.below(0), numbers.below(1)), (0, 0));
        assert_eq!(numbers.up_to(Duration::ZERO), Duration::ZERO);
        let longest = Duration::from_nanos(2);
        let seen = (0..100).map(|_| numbers.up_to(longest)).max();
        assert_eq!(seen, Some(longest));
        assert!(numbers.up_to(Duration::MAX) <= Duration::from_nanos(u64::MAX));
    }
}
