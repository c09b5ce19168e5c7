//! AVX2 lanes: two 256-bit registers per vector, the lower lanes in the first.

use std::arch::x86_64::*;

use super::table::lanewise;
use super::{LANES, Lanes, SimdKernel};

/// Proof that the CPU has AVX2, BMI1, BMI2, LZCNT and POPCNT.
///
/// INVARIANT: values are made by [`detect`](Self::detect) only.
#[derive(Clone, Copy, Debug)]
pub struct Avx2(());

impl Avx2 {
    /// Returns `Some` if the CPU has the instructions.
    pub fn detect() -> Option<Self> {
        let all = is_x86_feature_detected!("avx2")
            && is_x86_feature_detected!("bmi1")
            && is_x86_feature_detected!("bmi2")
            && is_x86_feature_detected!("lzcnt")
            && is_x86_feature_detected!("popcnt");
        all.then_some(Self(()))
    }
}

/// Runs a kernel compiled with these instructions.
#[cfg_attr(fuzzing, allow(dead_code))]
pub(super) fn run<K: SimdKernel>(lanes: Avx2, kernel: K) -> K::Output {
    #[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
    fn wide<K: SimdKernel>(lanes: Avx2, kernel: K) -> K::Output {
        kernel.run(lanes)
    }
    // SAFETY: an `Avx2` exists only where `detect` found every feature named above.
    unsafe { wide(lanes, kernel) }
}

/// Evaluates intrinsics that access registers only. To be used in methods of [`Avx2`] only.
macro_rules! registers {
    ($e:expr) => {{
        // SAFETY: the intrinsics access no memory, and the `self` of the method that uses the macro
        // proves that the CPU has the instructions.
        #[allow(unused_unsafe)]
        unsafe {
            $e
        }
    }};
}

type Floats = (__m256, __m256);
type Words = (__m256i, __m256i);

/// Applies one intrinsic to both halves.
macro_rules! both {
    ($f:ident, $a:expr, $b:expr) => {{
        let (a, b) = ($a, $b);
        registers!(($f(a.0, b.0), $f(a.1, b.1)))
    }};
}

impl Avx2 {
    /// Converts u32 to f32, which AVX2 has for i32 only. Both 16-bit halves are exact as floats, so
    /// their sum rounds once.
    #[inline(always)]
    fn word_to_float(self, x: __m256i) -> __m256 {
        registers!({
            let high = _mm256_cvtepi32_ps(_mm256_srli_epi32::<16>(x));
            let low = _mm256_cvtepi32_ps(_mm256_and_si256(x, _mm256_set1_epi32(0xffff)));
            _mm256_add_ps(_mm256_mul_ps(high, _mm256_set1_ps(65536.0)), low)
        })
    }

    /// Spreads bit i of `mask` over lane i: all ones or all zeros.
    #[inline(always)]
    fn spread(self, mask: u16) -> Words {
        registers!({
            let all = _mm256_set1_epi32(i32::from(mask));
            let low = _mm256_setr_epi32(1, 2, 4, 8, 16, 32, 64, 128);
            let high = _mm256_slli_epi32::<8>(low);
            (
                _mm256_cmpeq_epi32(_mm256_and_si256(all, low), low),
                _mm256_cmpeq_epi32(_mm256_and_si256(all, high), high),
            )
        })
    }
}

/// Implements the operations of the table.
macro_rules! implement {
    ($($doc:literal, $op:ident, $type:ident, $avx2:ident, $avx512:ident, $lane:expr;)+) => {
        $(
            #[inline(always)]
            fn $op(self, a: Self::$type, b: Self::$type) -> Self::$type {
                both!($avx2, a, b)
            }
        )+
    };
}

impl Lanes for Avx2 {
    type F = Floats;
    type U = Words;

    const WIDE: bool = true;

    #[inline(always)]
    fn splat_f(self, x: f32) -> Self::F {
        registers!((_mm256_set1_ps(x), _mm256_set1_ps(x)))
    }
    #[inline(always)]
    fn splat_u(self, x: u32) -> Self::U {
        registers!((_mm256_set1_epi32(x as i32), _mm256_set1_epi32(x as i32)))
    }
    #[inline(always)]
    fn load_f(self, from: &[f32; LANES]) -> Self::F {
        // SAFETY: the reference covers the 64 bytes read.
        unsafe { (_mm256_loadu_ps(from.as_ptr()), _mm256_loadu_ps(from.as_ptr().add(8))) }
    }
    #[inline(always)]
    fn store_f(self, to: &mut [f32; LANES], x: Self::F) {
        // SAFETY: the reference covers the 64 bytes written.
        unsafe {
            _mm256_storeu_ps(to.as_mut_ptr(), x.0);
            _mm256_storeu_ps(to.as_mut_ptr().add(8), x.1);
        }
    }
    #[inline(always)]
    fn load_u(self, from: &[u32; LANES]) -> Self::U {
        // SAFETY: the reference covers the 64 bytes read.
        unsafe {
            (
                _mm256_loadu_si256(from.as_ptr().cast()),
                _mm256_loadu_si256(from.as_ptr().add(8).cast()),
            )
        }
    }
    #[inline(always)]
    fn store_u(self, to: &mut [u32; LANES], x: Self::U) {
        // SAFETY: the reference covers the 64 bytes written.
        unsafe {
            _mm256_storeu_si256(to.as_mut_ptr().cast(), x.0);
            _mm256_storeu_si256(to.as_mut_ptr().add(8).cast(), x.1);
        }
    }
    #[inline(always)]
    fn load_u16(self, from: &[u32; LANES / 2]) -> Self::U {
        // SAFETY: the reference covers the 32 bytes read.
        unsafe {
            (
                _mm256_cvtepu16_epi32(_mm_loadu_si128(from.as_ptr().cast())),
                _mm256_cvtepu16_epi32(_mm_loadu_si128(from.as_ptr().add(4).cast())),
            )
        }
    }
    #[inline(always)]
    fn add_u16_at(self, at: &mut [u32; LANES / 2], lane: usize, by: u16) {
        // SAFETY: the reference covers the 32 bytes read and written.
        unsafe {
            let places = _mm256_setr_epi16(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
            let here = _mm256_cmpeq_epi16(places, _mm256_set1_epi16(lane as i16));
            let by = _mm256_and_si256(here, _mm256_set1_epi16(by as i16));
            let values = _mm256_add_epi16(_mm256_loadu_si256(at.as_ptr().cast()), by);
            _mm256_storeu_si256(at.as_mut_ptr().cast(), values);
        }
    }
    #[inline(always)]
    fn load_halves(self, from: &[u16; LANES]) -> Self::U {
        // SAFETY: the reference covers the 32 bytes read.
        unsafe {
            (
                _mm256_cvtepu16_epi32(_mm_loadu_si128(from.as_ptr().cast())),
                _mm256_cvtepu16_epi32(_mm_loadu_si128(from.as_ptr().add(8).cast())),
            )
        }
    }
    #[inline(always)]
    fn store_halves(self, to: &mut [u16; LANES], x: Self::U) {
        // SAFETY: the reference covers the 32 bytes written.
        unsafe {
            let low = _mm256_set1_epi32(0xffff);
            let packed =
                _mm256_packus_epi32(_mm256_and_si256(x.0, low), _mm256_and_si256(x.1, low));
            let packed = _mm256_permute4x64_epi64::<0b11_01_10_00>(packed);
            _mm256_storeu_si256(to.as_mut_ptr().cast(), packed);
        }
    }
    #[inline(always)]
    fn load_f64(self, from: &[f64; LANES]) -> Self::F {
        // SAFETY: the reference covers the 128 bytes read.
        unsafe {
            let quarter = |i: usize| _mm256_cvtpd_ps(_mm256_loadu_pd(from.as_ptr().add(4 * i)));
            (_mm256_set_m128(quarter(1), quarter(0)), _mm256_set_m128(quarter(3), quarter(2)))
        }
    }
    lanewise!(implement);
    #[inline(always)]
    fn shl_u<const N: u32>(self, a: Self::U) -> Self::U {
        registers!({
            let n = _mm_cvtsi32_si128(N as i32);
            (_mm256_sll_epi32(a.0, n), _mm256_sll_epi32(a.1, n))
        })
    }
    #[inline(always)]
    fn shr_u<const N: u32>(self, a: Self::U) -> Self::U {
        registers!({
            let n = _mm_cvtsi32_si128(N as i32);
            (_mm256_srl_epi32(a.0, n), _mm256_srl_epi32(a.1, n))
        })
    }
    #[inline(always)]
    fn min_u(self, a: Self::U, b: Self::U) -> Self::U {
        both!(_mm256_min_epu32, a, b)
    }
    #[inline(always)]
    fn to_f(self, x: Self::U) -> Self::F {
        (self.word_to_float(x.0), self.word_to_float(x.1))
    }
    #[inline(always)]
    fn truncate(self, x: Self::F) -> Self::U {
        registers!((_mm256_cvttps_epi32(x.0), _mm256_cvttps_epi32(x.1)))
    }
    #[inline(always)]
    fn gt_f(self, a: Self::F, b: Self::F) -> u16 {
        registers!({
            let low = _mm256_movemask_ps(_mm256_cmp_ps::<_CMP_GT_OQ>(a.0, b.0));
            let high = _mm256_movemask_ps(_mm256_cmp_ps::<_CMP_GT_OQ>(a.1, b.1));
            (low | high << 8) as u16
        })
    }
    #[inline(always)]
    fn eq_u(self, a: Self::U, b: Self::U) -> u16 {
        registers!({
            let low = _mm256_movemask_ps(_mm256_castsi256_ps(_mm256_cmpeq_epi32(a.0, b.0)));
            let high = _mm256_movemask_ps(_mm256_castsi256_ps(_mm256_cmpeq_epi32(a.1, b.1)));
            (low | high << 8) as u16
        })
    }
    #[inline(always)]
    fn select_f(self, mask: u16, yes: Self::F, no: Self::F) -> Self::F {
        let mask = self.spread(mask);
        registers!((
            _mm256_blendv_ps(no.0, yes.0, _mm256_castsi256_ps(mask.0)),
            _mm256_blendv_ps(no.1, yes.1, _mm256_castsi256_ps(mask.1)),
        ))
    }
    #[inline(always)]
    fn select_u(self, mask: u16, yes: Self::U, no: Self::U) -> Self::U {
        let mask = self.spread(mask);
        registers!((
            _mm256_blendv_epi8(no.0, yes.0, mask.0),
            _mm256_blendv_epi8(no.1, yes.1, mask.1),
        ))
    }
    #[inline(always)]
    fn gather_f(self, from: &[f32], index: Self::U) -> Self::F {
        assert!(!from.is_empty() && from.len() <= i32::MAX as usize);
        let index = self.min_u(index, self.splat_u(from.len() as u32 - 1));
        // SAFETY: every index is clamped to the last element, which fits in an i32.
        unsafe {
            (
                _mm256_i32gather_ps::<4>(from.as_ptr(), index.0),
                _mm256_i32gather_ps::<4>(from.as_ptr(), index.1),
            )
        }
    }
    #[inline(always)]
    fn gather_u(self, from: &[u32], index: Self::U) -> Self::U {
        assert!(!from.is_empty() && from.len() <= i32::MAX as usize);
        let index = self.min_u(index, self.splat_u(from.len() as u32 - 1));
        // SAFETY: every index is clamped to the last element, which fits in an i32.
        unsafe {
            (
                _mm256_i32gather_epi32::<4>(from.as_ptr().cast(), index.0),
                _mm256_i32gather_epi32::<4>(from.as_ptr().cast(), index.1),
            )
        }
    }
    #[inline(always)]
    fn gather_both(self, from: &[[u32; 2]], index: Self::U) -> (Self::U, Self::U) {
        assert!(!from.is_empty() && from.len() <= i32::MAX as usize);
        let mut at = [0u32; LANES];
        self.store_u(&mut at, self.min_u(index, self.splat_u(from.len() as u32 - 1)));
        // SAFETY: every index is clamped to the last element; an element is 8 bytes.
        unsafe {
            let p = from.as_ptr().cast::<i64>();
            let half = |i: usize| {
                let four = |i: usize| {
                    let pair = |i: usize| {
                        let x = _mm_cvtsi64_si128(p.add(at[i] as usize).read_unaligned());
                        _mm_insert_epi64::<1>(x, p.add(at[i + 1] as usize).read_unaligned())
                    };
                    _mm256_castsi256_ps(_mm256_set_m128i(pair(i + 2), pair(i)))
                };
                let (a, b) = (four(i), four(i + 4));
                let first = _mm256_castps_si256(_mm256_shuffle_ps::<0b10_00_10_00>(a, b));
                let second = _mm256_castps_si256(_mm256_shuffle_ps::<0b11_01_11_01>(a, b));
                (
                    _mm256_permute4x64_epi64::<0b11_01_10_00>(first),
                    _mm256_permute4x64_epi64::<0b11_01_10_00>(second),
                )
            };
            let (low, high) = (half(0), half(8));
            ((low.0, high.0), (low.1, high.1))
        }
    }
    #[inline(always)]
    fn scatter_u(self, to: &mut [u32], index: Self::U, x: Self::U) {
        let last = to.len() - 1;
        let (mut at, mut value) = ([0; LANES], [0; LANES]);
        self.store_u(&mut at, index);
        self.store_u(&mut value, x);
        for (i, x) in at.into_iter().zip(value) {
            to[(i as usize).min(last)] = x;
        }
    }
    #[inline(always)]
    fn mul_high(self, a: Self::U, b: Self::U) -> Self::U {
        registers!({
            let half = |a: __m256i, b: __m256i| {
                let even = _mm256_srli_epi64::<32>(_mm256_mul_epu32(a, b));
                let odd = _mm256_mul_epu32(_mm256_srli_epi64::<32>(a), _mm256_srli_epi64::<32>(b));
                _mm256_blend_epi32::<0xaa>(even, odd)
            };
            (half(a.0, b.0), half(a.1, b.1))
        })
    }
    #[inline(always)]
    fn load_pairs(self, from: &[[u16; 2]; LANES]) -> Self::U {
        // SAFETY: the reference covers the 64 bytes read.
        unsafe {
            (
                _mm256_loadu_si256(from.as_ptr().cast()),
                _mm256_loadu_si256(from.as_ptr().add(8).cast()),
            )
        }
    }
    #[inline(always)]
    fn store_pairs(self, to: &mut [[u16; 2]; LANES], x: Self::U) {
        // SAFETY: the reference covers the 64 bytes written.
        unsafe {
            _mm256_storeu_si256(to.as_mut_ptr().cast(), x.0);
            _mm256_storeu_si256(to.as_mut_ptr().add(8).cast(), x.1);
        }
    }
    #[inline(always)]
    fn gather_pairs(self, from: &[[u16; 2]], index: Self::U) -> Self::U {
        assert!(!from.is_empty() && from.len() <= i32::MAX as usize);
        let index = self.min_u(index, self.splat_u(from.len() as u32 - 1));
        // SAFETY: every index is clamped to the last pair, which fits in an i32; a pair is 4 bytes.
        unsafe {
            (
                _mm256_i32gather_epi32::<4>(from.as_ptr().cast(), index.0),
                _mm256_i32gather_epi32::<4>(from.as_ptr().cast(), index.1),
            )
        }
    }
    #[inline(always)]
    fn scatter_pairs(self, to: &mut [[u16; 2]], index: Self::U, x: Self::U) {
        let last = to.len() - 1;
        let (mut at, mut value) = ([0; LANES], [0; LANES]);
        self.store_u(&mut at, index);
        self.store_u(&mut value, x);
        for (i, x) in at.into_iter().zip(value) {
            to[(i as usize).min(last)] = [x as u16, (x >> 16) as u16];
        }
    }
    #[inline(always)]
    fn compress(self, mask: u16, x: Self::U, to: &mut [u32; LANES]) {
        let mut value = [0; LANES];
        self.store_u(&mut value, x);
        let mut at = 0;
        for (i, x) in value.into_iter().enumerate() {
            // PERF: every lane is written, and overwritten by the next unless its bit is set: there
            // is no branch on a random bit.
            to[at & (LANES - 1)] = x;
            at += usize::from(mask >> i & 1);
        }
    }
    #[inline(always)]
    fn prefix(self, x: Self::F) -> Self::F {
        registers!({
            let in_group = |x: __m256| {
                let by1 = _mm256_castsi256_ps(_mm256_slli_si256::<4>(_mm256_castps_si256(x)));
                let x = _mm256_add_ps(x, by1);
                let by2 = _mm256_castsi256_ps(_mm256_slli_si256::<8>(_mm256_castps_si256(x)));
                _mm256_add_ps(x, by2)
            };
            let (low, high) = (in_group(x.0), in_group(x.1));
            let g_low = _mm256_permute_ps::<0xff>(low);
            let g_high = _mm256_permute_ps::<0xff>(high);
            // Groups of four lanes are 0 1 | 2 3; their sums move up by 1, 2 and 3 groups, zeros
            // are shifted in. Zeros are added to the low half as well, in the order of the other
            // paths.
            let zero = _mm256_setzero_ps();
            let up1_low = _mm256_permute2f128_ps::<0x08>(g_low, g_low);
            let up1_high = _mm256_permute2f128_ps::<0x21>(g_low, g_high);
            let up2_high = g_low;
            let up3_high = up1_low;
            (
                _mm256_add_ps(low, _mm256_add_ps(_mm256_add_ps(up1_low, zero), zero)),
                _mm256_add_ps(high, _mm256_add_ps(_mm256_add_ps(up1_high, up2_high), up3_high)),
            )
        })
    }
    #[inline(always)]
    fn prefetch<T>(self, at: &[T], index: usize) {
        if let Some(at) = at.get(index) {
            // SAFETY: a prefetch never faults, and the address is inside the slice.
            unsafe { _mm_prefetch::<_MM_HINT_T0>(std::ptr::from_ref(at).cast()) }
        }
    }
}
