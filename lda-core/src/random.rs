//! Reproducible random streams, keyed by the unit of work.
//!
//! A [`StreamKey`] identifies a stream: seed, epoch, pass, block, purpose. Thread and order of
//! execution are not part of it, so results are bit-identical at any thread count, and a stream can
//! be recreated on resume.
//!
//! The generators are fixed by tests, and will not change without a "value-breaking" entry in the
//! changelog: xoshiro256++ for one value at a time and xoshiro128++ in sixteen
//! interleaved streams for vectors (Blackman and Vigna, "Scrambled linear pseudorandom number
//! generators", 2021), both seeded through SplitMix64.

mod permutation;

use std::convert::Infallible;

use rand::TryRng;

use crate::simd::{LANES, Lanes};

pub use permutation::Permutation;

/// Purpose of a random stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
#[non_exhaustive]
pub enum Purpose {
    /// Initial topics of tokens.
    Initialise = 1,
    /// Draws of a Gibbs sampler.
    Draw = 2,
    /// Acceptance of proposals.
    Accept = 3,
    /// Proposals.
    Propose = 4,
    /// Evaluation: splits, particles, fold-in.
    Evaluate = 5,
    /// Exclusion of converged tokens from an epoch.
    Exclude = 6,
    /// Inference of topics of a new document.
    Infer = 7,
}

/// Key of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct StreamKey {
    /// Seed of the run; any value, including 0.
    pub seed: u64,
    /// Epoch, counted from 1; 0 is before the first.
    pub epoch: u32,
    /// Index of the pass in its epoch.
    pub pass: u32,
    /// Index of the block, document or other unit of the purpose.
    pub block: u64,
    /// Purpose of the numbers.
    pub purpose: Purpose,
}

/// SplitMix64's step: spreads a state over 64 bits (Steele, Lea and Flood 2014).
#[inline]
fn splitmix(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    mix(*state)
}

/// SplitMix64's output function, a bijection on 64 bits.
#[inline]
pub fn mix(x: u64) -> u64 {
    let x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

impl StreamKey {
    /// Hash of the key.
    fn digest(&self) -> u64 {
        let mut hash = mix(self.seed ^ 0x6c64_615f_636f_7265);
        let place = u64::from(self.epoch) << 32 | u64::from(self.pass) << 8 | self.purpose as u64;
        hash = mix(hash.wrapping_add(0x9e37_79b9_7f4a_7c15) ^ place);
        mix(hash.wrapping_add(0x9e37_79b9_7f4a_7c15) ^ self.block)
    }

    /// The stream of single values.
    ///
    /// ```
    /// use lda_core::random::{Purpose, StreamKey};
    /// let key = StreamKey { seed: 0, epoch: 1, pass: 0, block: 0, purpose: Purpose::Draw };
    /// assert_eq!(key.stream().next_u64(), key.stream().next_u64());
    /// ```
    pub fn stream(&self) -> Xoshiro256PlusPlus {
        Xoshiro256PlusPlus::from_seed(self.digest())
    }

    /// The stream of vectors.
    pub fn wide_stream(&self) -> WideXoshiro {
        WideXoshiro::from_seed(self.digest())
    }
}

/// xoshiro256++: 256 bits of state; a few additions, shifts and xors per value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Xoshiro256PlusPlus {
    state: [u64; 4],
}

impl Xoshiro256PlusPlus {
    /// Fills the state from SplitMix64 started at `seed`; every seed is legal.
    pub fn from_seed(mut seed: u64) -> Self {
        Self { state: std::array::from_fn(|_| splitmix(&mut seed)) }
    }

    /// The next 64 bits.
    #[inline(always)]
    pub fn next_u64(&mut self) -> u64 {
        let s = &mut self.state;
        let result = s[0].wrapping_add(s[3]).rotate_left(23).wrapping_add(s[0]);
        let t = s[1] << 17;
        s[2] ^= s[0];
        s[3] ^= s[1];
        s[1] ^= s[2];
        s[0] ^= s[3];
        s[2] ^= t;
        s[3] = s[3].rotate_left(45);
        result
    }

    /// Uniform in [0, 1), a multiple of 2⁻⁵³.
    #[inline(always)]
    pub fn next_f64(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
    }

    /// Uniform below `n`, by the high half of a product; the bias is below n · 2⁻⁶⁴.
    #[inline(always)]
    pub fn below(&mut self, n: u32) -> u32 {
        ((u128::from(self.next_u64()) * u128::from(n)) >> 64) as u32
    }
}

/// For [`discrete`](crate::discrete), whose tables accept any `rand` generator.
impl TryRng for Xoshiro256PlusPlus {
    type Error = Infallible;

    fn try_next_u32(&mut self) -> Result<u32, Infallible> {
        Ok((self.next_u64() >> 32) as u32)
    }

    fn try_next_u64(&mut self) -> Result<u64, Infallible> {
        Ok(Xoshiro256PlusPlus::next_u64(self))
    }

    fn try_fill_bytes(&mut self, bytes: &mut [u8]) -> Result<(), Infallible> {
        for chunk in bytes.chunks_mut(8) {
            let value = Xoshiro256PlusPlus::next_u64(self).to_le_bytes();
            chunk.copy_from_slice(&value[..chunk.len()]);
        }
        Ok(())
    }
}

/// Sixteen xoshiro128++ generators, one per SIMD lane.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WideXoshiro {
    state: [[u32; LANES]; 4],
}

impl WideXoshiro {
    /// Fills all lanes from SplitMix64 started at `seed`.
    pub fn from_seed(mut seed: u64) -> Self {
        let mut state = [[0; LANES]; 4];
        let [s0, s1, s2, s3] = &mut state;
        for (((s0, s1), s2), s3) in s0.iter_mut().zip(s1).zip(s2).zip(s3) {
            let (a, b) = (splitmix(&mut seed), splitmix(&mut seed));
            (*s0, *s1, *s2) = (a as u32, (a >> 32) as u32, b as u32);
            // Bit 0 is forced: the all-zero state, which xoshiro never leaves, cannot occur.
            *s3 = (b >> 32) as u32 | 1;
        }
        Self { state }
    }

    /// Loads the state into registers for a loop; [`WideState::save`] stores it back.
    #[inline(always)]
    pub fn load<L: Lanes>(&self, l: L) -> WideState<L> {
        WideState { s: std::array::from_fn(|i| l.load_u(&self.state[i])) }
    }
}

/// [`WideXoshiro`] in registers.
#[derive(Clone, Copy)]
pub struct WideState<L: Lanes> {
    s: [L::U; 4],
}

impl<L: Lanes> std::fmt::Debug for WideState<L> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("WideState").finish_non_exhaustive()
    }
}

impl<L: Lanes> WideState<L> {
    /// Sixteen values of 32 bits.
    #[inline(always)]
    pub fn next(&mut self, l: L) -> L::U {
        let s = &mut self.s;
        let sum = l.add_u(s[0], s[3]);
        let rotated = l.or_u(l.shl_u::<7>(sum), l.shr_u::<25>(sum));
        let result = l.add_u(rotated, s[0]);
        let t = l.shl_u::<9>(s[1]);
        s[2] = l.xor_u(s[2], s[0]);
        s[3] = l.xor_u(s[3], s[1]);
        s[1] = l.xor_u(s[1], s[2]);
        s[0] = l.xor_u(s[0], s[3]);
        s[2] = l.xor_u(s[2], t);
        s[3] = l.or_u(l.shl_u::<11>(s[3]), l.shr_u::<21>(s[3]));
        result
    }

    /// Sixteen uniforms in [0, 1), multiples of 2⁻²⁴.
    #[inline(always)]
    pub fn next_unit(&mut self, l: L) -> L::F {
        let bits = self.next(l);
        l.mul_f(l.to_f(l.shr_u::<8>(bits)), l.splat_f(1.0 / (1 << 24) as f32))
    }

    /// Stores the state.
    #[inline(always)]
    pub fn save(&self, l: L, to: &mut WideXoshiro) {
        for (row, s) in to.state.iter_mut().zip(self.s) {
            l.store_u(row, s);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simd::Scalar;

    #[test]
    fn xoshiro256_follows_the_reference() {
        // First outputs of the authors' reference code for the state 1, 2, 3, 4.
        let mut rng = Xoshiro256PlusPlus { state: [1, 2, 3, 4] };
        let expected: [u64; 4] =
            [41_943_041, 58_720_359, 3_588_806_011_781_223, 3_591_011_842_654_386];
        assert_eq!(std::array::from_fn(|_| rng.next_u64()), expected);
    }

    #[test]
    fn xoshiro128_follows_the_reference_in_every_lane() {
        // First outputs of the authors' reference code for the state 1, 2, 3, 4.
        let expected = [641, 1_573_767, 3_222_811_527, 3_517_856_514];
        let rng = WideXoshiro { state: std::array::from_fn(|i| [i as u32 + 1; LANES]) };
        let mut state = rng.load(Scalar);
        for value in expected {
            assert_eq!(state.next(Scalar), [value; LANES]);
        }
    }

    #[test]
    fn streams_depend_on_every_part_of_the_key() {
        let key = StreamKey { seed: 1, epoch: 2, pass: 3, block: 4, purpose: Purpose::Draw };
        let keys = [
            key,
            StreamKey { seed: 2, ..key },
            StreamKey { epoch: 3, ..key },
            StreamKey { pass: 2, ..key },
            StreamKey { block: 5, ..key },
            StreamKey { purpose: Purpose::Accept, ..key },
        ];
        let mut first: Vec<u64> = keys.iter().map(|key| key.stream().next_u64()).collect();
        first.sort_unstable();
        first.dedup();
        assert_eq!(first.len(), keys.len());
    }

    #[test]
    fn streams_do_not_change_between_versions() {
        let key = StreamKey { seed: 42, epoch: 1, pass: 0, block: 7, purpose: Purpose::Draw };
        assert_eq!(key.stream().next_u64(), 8_502_510_713_478_254_738);
    }
}
