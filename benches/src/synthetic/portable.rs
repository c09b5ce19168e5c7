//! Random streams and elementary functions that give the same bits on every machine.
//!
//! A platform's `ln` and `exp` may differ in the last digit, and one digit decides on which side
//! of a threshold a draw falls. The functions here use +, −, ×, ÷ and √ on `f64` only, which IEEE
//! 754 rounds correctly and Rust neither reorders nor contracts. Assumed is a machine that does so:
//! all of today's 64-bit targets and 32-bit x86 with SSE2, but not x87.

use std::f64::consts::{LN_2, SQRT_2};

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

/// Purpose of a stream. Streams of different purposes are independent.
#[derive(Clone, Copy, Debug)]
#[repr(u64)]
pub(super) enum Purpose {
    WordOrder = 1,
    Topic = 2,
    Document = 3,
}

/// xoshiro256++ (Blackman & Vigna 2021), keyed by seed, purpose and number.
#[derive(Clone, Debug)]
pub(super) struct Stream(Xoshiro256PlusPlus);

impl Stream {
    pub(super) fn new(seed: u64, purpose: Purpose, number: u64) -> Self {
        let key = mix(mix(mix(seed) ^ purpose as u64) ^ number);
        Self(Xoshiro256PlusPlus::seed_from_u64(key))
    }

    pub(super) fn bits(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// Uniform in [0, 1), on a grid of 2⁻⁵³.
    pub(super) fn unit(&mut self) -> f64 {
        (self.bits() >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
    }

    /// Uniform below `n`. The bias is at most n · 2⁻⁶⁴.
    pub(super) fn below(&mut self, n: u64) -> u64 {
        ((u128::from(self.bits()) * u128::from(n)) >> 64) as u64
    }

    /// Standard normal, by Marsaglia's polar method. The second value of the pair is dropped: a
    /// stream then holds no hidden state.
    pub(super) fn normal(&mut self) -> f64 {
        loop {
            let x = 2.0 * self.unit() - 1.0;
            let y = 2.0 * self.unit() - 1.0;
            let square = x * x + y * y;
            if square > 0.0 && square < 1.0 {
                return x * (-2.0 * ln(square) / square).sqrt();
            }
        }
    }
}

/// The finaliser of splitmix64: every bit of the key moves every bit of the result.
fn mix(key: u64) -> u64 {
    let key = key.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let key = (key ^ (key >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let key = (key ^ (key >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    key ^ (key >> 31)
}

/// Natural logarithm of a normal positive number, to 2 units in the last place: the exponent and
/// 2·artanh of the fraction scaled to [√½, √2].
pub(super) fn ln(x: f64) -> f64 {
    debug_assert!(x.is_normal() && x > 0.0, "ln of {x}");
    let bits = x.to_bits();
    let mut exponent = (bits >> 52) as i64 - 1023;
    let mut fraction = f64::from_bits(bits & ((1 << 52) - 1) | 1023 << 52);
    if fraction > SQRT_2 {
        fraction *= 0.5;
        exponent += 1;
    }
    let s = (fraction - 1.0) / (fraction + 1.0);
    let square = s * s;
    // |s| ≤ 0.172: the first term left out, s²⁴/25, is below 2⁻⁶⁰.
    let series = (0..12).rev().fold(0.0, |sum, i| sum * square + 1.0 / f64::from(2 * i + 1));
    exponent as f64 * LN_2 + 2.0 * s * series
}

/// The exponential function for |x| ≤ 700, to 2 units in the last place.
pub(super) fn exp(x: f64) -> f64 {
    debug_assert!(x.abs() <= 700.0, "exp of {x}");
    // ln 2 in two pieces, the first with enough zeros at its end for the product to be exact.
    const HIGH: f64 = f64::from_bits(0x3FE6_2E42_FEE0_0000);
    const LOW: f64 = f64::from_bits(0x3DEA_39EF_3579_3C76);
    let power = (x * (1.0 / LN_2) + 0.5).floor();
    let rest = (x - power * HIGH) - power * LOW;
    // |rest| ≤ 0.347: the first term left out, rest¹⁴/14!, is below 2⁻⁵⁷.
    let series = (1..14).rev().fold(1.0, |sum, i| 1.0 + sum * rest / f64::from(i));
    series * f64::from_bits(((power as i64 + 1023) as u64) << 52)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn logarithm_and_exponential_are_accurate() {
        let mut stream = Stream::new(1, Purpose::Document, 0);
        for _ in 0..200_000 {
            let x = (stream.unit() - 0.5) * 1_390.0;
            let y = exp(x);
            assert!((y / x.exp() - 1.0).abs() < 5e-16, "exp({x}) = {y}");
            let z = ln(y);
            assert!((z - y.ln()).abs() <= 5e-16 * z.abs().max(1e-3), "ln({y}) = {z}");
        }
        assert_eq!((ln(1.0), exp(0.0)), (0.0, 1.0));
    }

    /// The exact values a hash of a corpus would lose in one number.
    #[test]
    fn bits_are_pinned() {
        assert_eq!(ln(3.0).to_bits(), 0x3FF1_93EA_7AAD_030A);
        assert_eq!(exp(-1.5).to_bits(), 0x3FCC_8F87_724B_5C1D);
    }

    #[test]
    fn normals_have_mean_zero_and_variance_one() {
        let mut stream = Stream::new(7, Purpose::Document, 0);
        let draws: Vec<f64> = (0..400_000).map(|_| stream.normal()).collect();
        let moment = |power| draws.iter().map(|x: &f64| x.powi(power)).sum::<f64>() / 400_000.0;
        // Five standard errors each, at a fixed seed.
        assert!(moment(1).abs() < 5.0 / 632.0);
        assert!((moment(2) - 1.0).abs() < 5.0 * 1.4143 / 632.0);
        assert!((moment(4) - 3.0).abs() < 5.0 * 9.8 / 632.0);
    }

    #[test]
    fn below_reaches_every_number_evenly() {
        let mut stream = Stream::new(9, Purpose::Topic, 3);
        let mut seen = [0u32; 7];
        for _ in 0..70_000 {
            seen[stream.below(7) as usize] += 1;
        }
        let chi_square: f64 = seen.iter().map(|&n| (f64::from(n) - 1e4).powi(2) / 1e4).sum();
        // 6 degrees of freedom: exceeded by chance once in 10⁵ seeds.
        assert!(chi_square < 33.1, "{chi_square}");
    }

    #[test]
    fn streams_differ_in_each_part_of_the_key() {
        let first = |seed, purpose, number| Stream::new(seed, purpose, number).bits();
        let base = first(1, Purpose::Topic, 5);
        assert_eq!(base, first(1, Purpose::Topic, 5));
        assert_ne!(base, first(2, Purpose::Topic, 5));
        assert_ne!(base, first(1, Purpose::Document, 5));
        assert_ne!(base, first(1, Purpose::Topic, 6));
    }
}
