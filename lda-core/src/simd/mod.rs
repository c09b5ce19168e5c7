//! Portable vectors of sixteen lanes: AVX-512, AVX2, or scalar code.
//!
//! Samplers are written once, over the [`Lanes`] trait, and compiled once for each instruction set.
//! Every operation is defined lane by lane and rounds as IEEE 754 requires. There is no fused
//! multiply-add, no reciprocal estimate and only one order of additions ([`Lanes::prefix`]). The
//! three paths therefore give the same bits, and a run on one machine can be repeated on another.
//! The scalar path is the definition; it has to be right, not fast.
//!
//! Most of the crate's `unsafe` code is in this module; memory-mapped files have the rest. The
//! gain: at 1,000 topics an epoch of the exact sampler on a corpus of 0.5 M tokens took 0.09 s with
//! AVX-512, 0.27 s with AVX2 and 0.53 s with the scalar path, F+LDA 0.06, 0.08 and 0.21 s (`cargo
//! bench -p lda-benches --bench epoch` compares them on any machine). Gathers and scatters clamp
//! their indices, so a wrong index gives a wrong number and never an access out of bounds.

#![allow(unsafe_code)]

mod aligned;
#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
mod scalar;
mod table;

pub use aligned::Aligned;
pub use scalar::Scalar;
#[cfg(target_arch = "x86_64")]
pub use {avx2::Avx2, avx512::Avx512};

use serde::{Deserialize, Serialize};

use self::table::lanewise;

/// Lanes per vector, on every path.
pub const LANES: usize = 16;

/// One cache line of sixteen 32-bit words, aligned to its size.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C, align(64))]
pub struct Line(pub [u32; LANES]);

/// Declares the operations of the table.
macro_rules! declare {
    ($($doc:literal, $op:ident, $type:ident, $avx2:ident, $avx512:ident, $lane:expr;)+) => {
        $(
            #[doc = $doc]
            fn $op(self, a: Self::$type, b: Self::$type) -> Self::$type;
        )+
    };
}

/// Operations on vectors of sixteen lanes. A value of the type proves that the CPU has the
/// instructions, so all methods are safe.
pub trait Lanes: Copy + Send + Sync + 'static {
    /// Sixteen `f32`.
    type F: Copy;
    /// Sixteen `u32`.
    type U: Copy;

    /// Whether a vector takes one or two registers, so that unrolling a loop over a few vectors is
    /// worthwhile.
    const WIDE: bool;

    /// All lanes `x`.
    fn splat_f(self, x: f32) -> Self::F;
    /// All lanes `x`.
    fn splat_u(self, x: u32) -> Self::U;
    /// Reads sixteen floats.
    fn load_f(self, from: &[f32; LANES]) -> Self::F;
    /// Writes sixteen floats.
    fn store_f(self, to: &mut [f32; LANES], x: Self::F);
    /// Reads sixteen words.
    fn load_u(self, from: &[u32; LANES]) -> Self::U;
    /// Writes sixteen words.
    fn store_u(self, to: &mut [u32; LANES], x: Self::U);
    /// Reads sixteen 16-bit values packed two per word, the lower half first.
    fn load_u16(self, from: &[u32; LANES / 2]) -> Self::U;
    /// Adds `by`, wrapping, to 16-bit value number `lane` of sixteen packed two per word; reads and
    /// writes all of them at once.
    fn add_u16_at(self, at: &mut [u32; LANES / 2], lane: usize, by: u16);
    /// Reads sixteen 16-bit values.
    fn load_halves(self, from: &[u16; LANES]) -> Self::U;
    /// Writes the lower halves of sixteen words.
    fn store_halves(self, to: &mut [u16; LANES], x: Self::U);
    /// Reads sixteen doubles, rounded to `f32`.
    fn load_f64(self, from: &[f64; LANES]) -> Self::F;

    lanewise!(declare);
    /// `a << N`.
    fn shl_u<const N: u32>(self, a: Self::U) -> Self::U;
    /// `a >> N`, shifting in zeros.
    fn shr_u<const N: u32>(self, a: Self::U) -> Self::U;
    /// The smaller of `a` and `b`, unsigned.
    fn min_u(self, a: Self::U, b: Self::U) -> Self::U;

    /// The upper 32 bits of the 64-bit product: `b` scaled by the fraction a / 2³².
    fn mul_high(self, a: Self::U, b: Self::U) -> Self::U;

    /// Each word as a float, correctly rounded.
    fn to_f(self, x: Self::U) -> Self::F;
    /// Each float, in 0 ≤ x < 2³¹, truncated to a word.
    fn truncate(self, x: Self::F) -> Self::U;

    /// Bit i is set where `a[i] > b[i]`.
    fn gt_f(self, a: Self::F, b: Self::F) -> u16;
    /// Bit i is set where `a[i] == b[i]`.
    fn eq_u(self, a: Self::U, b: Self::U) -> u16;
    /// Lane i of `yes` where bit i of `mask` is set, else of `no`.
    fn select_f(self, mask: u16, yes: Self::F, no: Self::F) -> Self::F;
    /// Lane i of `yes` where bit i of `mask` is set, else of `no`.
    fn select_u(self, mask: u16, yes: Self::U, no: Self::U) -> Self::U;

    /// `from[min(index, len − 1)]` for each lane.
    ///
    /// # Panics
    /// If `from` is empty.
    fn gather_f(self, from: &[f32], index: Self::U) -> Self::F;
    /// `from[min(index, len − 1)]` for each lane.
    ///
    /// # Panics
    /// If `from` is empty.
    fn gather_u(self, from: &[u32], index: Self::U) -> Self::U;
    /// The two halves of `from[min(index, len − 1)]` for each lane.
    ///
    /// # Panics
    /// If `from` is empty.
    fn gather_both(self, from: &[[u32; 2]], index: Self::U) -> (Self::U, Self::U);
    /// `to[min(index, len − 1)] = x` for each lane, in ascending order of lanes.
    ///
    /// # Panics
    /// If `to` is empty.
    fn scatter_u(self, to: &mut [u32], index: Self::U, x: Self::U);

    /// Reads sixteen pairs of 16-bit values, the first of a pair in the lower half.
    fn load_pairs(self, from: &[[u16; 2]; LANES]) -> Self::U;
    /// Writes sixteen pairs.
    fn store_pairs(self, to: &mut [[u16; 2]; LANES], x: Self::U);
    /// `from[min(index, len − 1)]` for each lane, as [`load_pairs`](Self::load_pairs) packs them.
    ///
    /// # Panics
    /// If `from` is empty.
    fn gather_pairs(self, from: &[[u16; 2]], index: Self::U) -> Self::U;
    /// `to[min(index, len − 1)] = x` for each lane, in ascending order of lanes.
    ///
    /// # Panics
    /// If `to` is empty.
    fn scatter_pairs(self, to: &mut [[u16; 2]], index: Self::U, x: Self::U);
    /// Writes the lanes with a set bit to the front of `to`, in order; the rest of `to` is
    /// unspecified.
    fn compress(self, mask: u16, x: Self::U, to: &mut [u32; LANES]);

    /// Inclusive prefix sums over the lanes, added in this order: within each group of four lanes
    /// by distances 1 and 2; then the sums of the groups before, the nearest two first. No other
    /// operation adds lanes to each other.
    fn prefix(self, x: Self::F) -> Self::F;

    /// Prefetches the cache line of `at[index]`; nothing if out of bounds. Never affects a result.
    fn prefetch<T>(self, at: &[T], index: usize);
}

/// A computation generic over [`Lanes`], run by [`Isa::run`]. Every function it calls must be
/// `#[inline(always)]`, or that part is compiled without the vector instructions.
pub trait SimdKernel {
    /// Result of the computation.
    type Output;
    /// Runs the computation.
    fn run<L: Lanes>(self, lanes: L) -> Self::Output;
}

/// An instruction set that kernels are compiled for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Isa {
    /// Scalar code, which runs on every machine.
    Scalar,
    /// x86-64 with AVX2.
    Avx2,
    /// x86-64 with AVX-512 F, BW, DQ and VL.
    Avx512,
}

impl Isa {
    /// Every set, narrowest first.
    pub const ALL: [Self; 3] = [Self::Scalar, Self::Avx2, Self::Avx512];

    /// The widest set of this machine.
    ///
    /// ```
    /// use lda_core::simd::Isa;
    /// assert!(Isa::detect().is_available());
    /// ```
    pub fn detect() -> Self {
        [Isa::Avx512, Isa::Avx2].into_iter().find(|isa| isa.is_available()).unwrap_or(Isa::Scalar)
    }

    /// Name in options and on command lines.
    pub fn name(self) -> &'static str {
        match self {
            Isa::Scalar => "scalar",
            Isa::Avx2 => "avx2",
            Isa::Avx512 => "avx512",
        }
    }

    /// Whether this machine has the instructions.
    pub fn is_available(self) -> bool {
        match self {
            Isa::Scalar => true,
            #[cfg(target_arch = "x86_64")]
            Isa::Avx2 => Avx2::detect().is_some(),
            #[cfg(target_arch = "x86_64")]
            Isa::Avx512 => Avx512::detect().is_some(),
            #[cfg(not(target_arch = "x86_64"))]
            _ => false,
        }
    }

    /// All sets of this machine, scalar first.
    pub fn available() -> impl Iterator<Item = Self> {
        Self::ALL.into_iter().filter(|isa| isa.is_available())
    }

    /// Runs `kernel` compiled for this set, or for scalar code if the machine lacks the set.
    /// Results have the same bits.
    ///
    /// A build for fuzzing (`--cfg fuzzing`) has the scalar path only: fuzz targets test readers of
    /// untrusted bytes, which kernels do not read, and two more instrumented copies of each kernel
    /// take long to compile.
    pub fn run<K: SimdKernel>(self, kernel: K) -> K::Output {
        #[cfg(all(target_arch = "x86_64", not(fuzzing)))]
        match self {
            Isa::Avx512 => {
                if let Some(lanes) = Avx512::detect() {
                    return avx512::run(lanes, kernel);
                }
            }
            Isa::Avx2 => {
                if let Some(lanes) = Avx2::detect() {
                    return avx2::run(lanes, kernel);
                }
            }
            Isa::Scalar => {}
        }
        // The only scalar call: the kernel is inlined at each call.
        kernel.run(Scalar)
    }
}

impl std::fmt::Display for Isa {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests;
