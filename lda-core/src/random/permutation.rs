//! Pseudo-random permutations in constant memory.

use super::{StreamKey, mix};

const ROUNDS: u64 = 10;

/// A permutation of 0, …, n − 1 selected by a key. Any element is computed in O(1), without a
/// table.
///
/// A Feistel network over the smallest even number of bits that holds n (Luby and Rackoff 1988). A
/// result that is not below n passes through the network again, fewer than three more times on
/// average (Black and Rogaway 2002). Ten rounds: four suffice for many bits, but for n = 10 they
/// map 9 to itself a quarter too often. Suitable for subsets and orders in sampling, not for
/// cryptography.
///
/// ```
/// use lda_core::random::{Permutation, Purpose, StreamKey};
///
/// let key = StreamKey { seed: 1, epoch: 0, pass: 0, block: 7, purpose: Purpose::Initialise };
/// let permutation = Permutation::new(5, &key);
/// let mut all: Vec<u32> = (0..5).map(|i| permutation.get(i)).collect();
/// all.sort();
/// assert_eq!(all, [0, 1, 2, 3, 4]);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Permutation {
    n: u32,
    /// Number of bits of each half.
    half: u32,
    key: u64,
}

impl Permutation {
    /// The permutation of 0, …, n − 1 for `key`.
    pub fn new(n: u32, key: &StreamKey) -> Self {
        let bits = n.saturating_sub(1).checked_ilog2().map_or(0, |log| log + 1);
        Self { n, half: bits.div_ceil(2), key: key.digest() }
    }

    /// Image of `i`.
    ///
    /// # Panics
    /// If `i` is not below n.
    pub fn get(&self, i: u32) -> u32 {
        assert!(i < self.n, "{i} is not below {}", self.n);
        let mut x = u64::from(i);
        loop {
            x = self.rounds(x);
            if x < u64::from(self.n) {
                return x as u32;
            }
        }
    }

    fn rounds(&self, x: u64) -> u64 {
        let mask = (1 << self.half) - 1;
        let (mut left, mut right) = (x >> self.half, x & mask);
        for round in 0..ROUNDS {
            let digest = mix(self.key.wrapping_add(round << 32 | right));
            (left, right) = (right, left ^ digest & mask);
        }
        left << self.half | right
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Purpose;

    fn permutation(n: u32, block: u64) -> Permutation {
        let key = StreamKey { seed: 3, epoch: 0, pass: 0, block, purpose: Purpose::Initialise };
        Permutation::new(n, &key)
    }

    #[test]
    fn permutation_is_a_bijection() {
        for n in [1, 2, 3, 4, 5, 16, 17, 100, 1000, 65_537] {
            let permutation = permutation(n, 1);
            let mut seen = vec![false; n as usize];
            for i in 0..n {
                let to = permutation.get(i) as usize;
                assert!(!std::mem::replace(&mut seen[to], true), "{n}: {to} twice");
            }
        }
        // The largest n.
        let permutation = permutation(u32::MAX, 1);
        assert_ne!(permutation.get(0), permutation.get(u32::MAX - 1));
    }

    /// Over many keys, each element is mapped uniformly: chi-square at 10⁻⁹.
    #[test]
    fn images_are_uniform_over_keys() {
        let keys = 20_000;
        for (n, i) in [(3, 1), (5, 4), (10, 0), (10, 4), (10, 9)] {
            let mut seen = vec![0u32; n as usize];
            (0..keys).for_each(|key| seen[permutation(n, key).get(i) as usize] += 1);
            let expected = keys as f64 / f64::from(n);
            let chi: f64 = seen.iter().map(|&x| (f64::from(x) - expected).powi(2) / expected).sum();
            assert!(chi < 60.0, "{i} of {n}: {seen:?}");
        }
    }
}
