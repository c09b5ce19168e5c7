//! AVX-512 lanes: one 512-bit register per vector.

use std::arch::x86_64::*;

use super::table::lanewise;
use super::{LANES, Lanes, SimdKernel};

/// Proof that the CPU has AVX-512 F, BW, DQ and VL, BMI1, BMI2, LZCNT and POPCNT.
///
/// INVARIANT: values are made by [`detect`](Self::detect) only.
#[derive(Clone, Copy, Debug)]
pub struct Avx512(());

impl Avx512 {
    /// Returns `Some` if the CPU has the instructions.
    pub fn detect() -> Option<Self> {
        let all = is_x86_feature_detected!("avx512f")
            && is_x86_feature_detected!("avx512bw")
            && is_x86_feature_detected!("avx512dq")
            && is_x86_feature_detected!("avx512vl")
            && is_x86_feature_detected!("bmi1")
            && is_x86_feature_detected!("bmi2")
            && is_x86_feature_detected!("lzcnt")
            && is_x86_feature_detected!("popcnt");
        all.then_some(Self(()))
    }
}

/// Runs a kernel compiled with these instructions.
#[cfg_attr(fuzzing, allow(dead_code))]
pub(super) fn run<K: SimdKernel>(lanes: Avx512, kernel: K) -> K::Output {
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi1,bmi2,lzcnt,popcnt")]
    fn wide<K: SimdKernel>(lanes: Avx512, kernel: K) -> K::Output {
        kernel.run(lanes)
    }
    // SAFETY: an `Avx512` exists only where `detect` found every feature named above.
    unsafe { wide(lanes, kernel) }
}

/// Evaluates intrinsics that access registers only. To be used in methods of [`Avx512`] only.
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

/// min(lane, `len − 1`) for each lane.
///
/// # Safety
/// The CPU must have AVX-512.
#[inline(always)]
unsafe fn clamp(index: __m512i, len: usize) -> __m512i {
    // SAFETY: registers only; the caller guarantees the instruction.
    unsafe { _mm512_min_epu32(index, _mm512_set1_epi32(len as u32 as i32 - 1)) }
}

/// The four indices of a vector, by two 64-bit extractions.
///
/// # Safety
/// The CPU must have AVX-512.
#[inline(always)]
unsafe fn split(index: __m128i) -> [usize; 4] {
    // SAFETY: registers only; the caller guarantees the instructions.
    let (low, high) =
        unsafe { (_mm_cvtsi128_si64(index) as u64, _mm_extract_epi64::<1>(index) as u64) };
    [low as u32 as usize, (low >> 32) as usize, high as u32 as usize, (high >> 32) as usize]
}

/// `from[index]` for each lane, by sixteen scalar loads.
///
/// PERF: the gather instruction is microcoded on Zen 4. From a table in the L1 cache it took twice
/// as long (8.2 against 4.2 ns), and an epoch of F+LDA took 2 to 10 % longer.
///
/// # Safety
/// Every index must be inside the array at `from`; the CPU must have AVX-512.
#[inline(always)]
unsafe fn gather(from: *const i32, index: __m512i) -> __m512i {
    // SAFETY: the caller guarantees the indices and the instructions.
    unsafe {
        let four = |index: __m128i| {
            let [a, b, c, d] = split(index);
            let x = _mm_cvtsi32_si128(from.add(a).read_unaligned());
            let x = _mm_insert_epi32::<1>(x, from.add(b).read_unaligned());
            let x = _mm_insert_epi32::<2>(x, from.add(c).read_unaligned());
            _mm_insert_epi32::<3>(x, from.add(d).read_unaligned())
        };
        let x = _mm512_castsi128_si512(four(_mm512_castsi512_si128(index)));
        let x = _mm512_inserti32x4::<1>(x, four(_mm512_extracti32x4_epi32::<1>(index)));
        let x = _mm512_inserti32x4::<2>(x, four(_mm512_extracti32x4_epi32::<2>(index)));
        _mm512_inserti32x4::<3>(x, four(_mm512_extracti32x4_epi32::<3>(index)))
    }
}

/// Implements the operations of the table.
macro_rules! implement {
    ($($doc:literal, $op:ident, $type:ident, $avx2:ident, $avx512:ident, $lane:expr;)+) => {
        $(
            #[inline(always)]
            fn $op(self, a: Self::$type, b: Self::$type) -> Self::$type {
                registers!($avx512(a, b))
            }
        )+
    };
}

impl Lanes for Avx512 {
    type F = __m512;
    type U = __m512i;

    const WIDE: bool = true;

    #[inline(always)]
    fn splat_f(self, x: f32) -> Self::F {
        registers!(_mm512_set1_ps(x))
    }
    #[inline(always)]
    fn splat_u(self, x: u32) -> Self::U {
        registers!(_mm512_set1_epi32(x as i32))
    }
    #[inline(always)]
    fn load_f(self, from: &[f32; LANES]) -> Self::F {
        // SAFETY: the reference covers the 64 bytes read.
        unsafe { _mm512_loadu_ps(from.as_ptr()) }
    }
    #[inline(always)]
    fn store_f(self, to: &mut [f32; LANES], x: Self::F) {
        // SAFETY: the reference covers the 64 bytes written.
        unsafe { _mm512_storeu_ps(to.as_mut_ptr(), x) }
    }
    #[inline(always)]
    fn load_u(self, from: &[u32; LANES]) -> Self::U {
        // SAFETY: the reference covers the 64 bytes read.
        unsafe { _mm512_loadu_si512(from.as_ptr().cast()) }
    }
    #[inline(always)]
    fn store_u(self, to: &mut [u32; LANES], x: Self::U) {
        // SAFETY: the reference covers the 64 bytes written.
        unsafe { _mm512_storeu_si512(to.as_mut_ptr().cast(), x) }
    }
    #[inline(always)]
    fn load_u16(self, from: &[u32; LANES / 2]) -> Self::U {
        // SAFETY: the reference covers the 32 bytes read.
        unsafe { _mm512_cvtepu16_epi32(_mm256_loadu_si256(from.as_ptr().cast())) }
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
        unsafe { _mm512_cvtepu16_epi32(_mm256_loadu_si256(from.as_ptr().cast())) }
    }
    #[inline(always)]
    fn store_halves(self, to: &mut [u16; LANES], x: Self::U) {
        // SAFETY: the reference covers the 32 bytes written.
        unsafe { _mm256_storeu_si256(to.as_mut_ptr().cast(), _mm512_cvtepi32_epi16(x)) }
    }
    #[inline(always)]
    fn load_f64(self, from: &[f64; LANES]) -> Self::F {
        // SAFETY: the reference covers the 128 bytes read.
        unsafe {
            let low = _mm512_cvtpd_ps(_mm512_loadu_pd(from.as_ptr()));
            let high = _mm512_cvtpd_ps(_mm512_loadu_pd(from.as_ptr().add(8)));
            _mm512_insertf32x8::<1>(_mm512_castps256_ps512(low), high)
        }
    }
    lanewise!(implement);
    #[inline(always)]
    fn shl_u<const N: u32>(self, a: Self::U) -> Self::U {
        registers!(_mm512_slli_epi32::<N>(a))
    }
    #[inline(always)]
    fn shr_u<const N: u32>(self, a: Self::U) -> Self::U {
        registers!(_mm512_srli_epi32::<N>(a))
    }
    #[inline(always)]
    fn min_u(self, a: Self::U, b: Self::U) -> Self::U {
        registers!(_mm512_min_epu32(a, b))
    }
    #[inline(always)]
    fn to_f(self, x: Self::U) -> Self::F {
        registers!(_mm512_cvtepu32_ps(x))
    }
    #[inline(always)]
    fn truncate(self, x: Self::F) -> Self::U {
        registers!(_mm512_cvttps_epi32(x))
    }
    #[inline(always)]
    fn gt_f(self, a: Self::F, b: Self::F) -> u16 {
        registers!(_mm512_cmp_ps_mask::<_CMP_GT_OQ>(a, b))
    }
    #[inline(always)]
    fn eq_u(self, a: Self::U, b: Self::U) -> u16 {
        registers!(_mm512_cmpeq_epi32_mask(a, b))
    }
    #[inline(always)]
    fn select_f(self, mask: u16, yes: Self::F, no: Self::F) -> Self::F {
        registers!(_mm512_mask_blend_ps(mask, no, yes))
    }
    #[inline(always)]
    fn select_u(self, mask: u16, yes: Self::U, no: Self::U) -> Self::U {
        registers!(_mm512_mask_blend_epi32(mask, no, yes))
    }
    #[inline(always)]
    fn gather_f(self, from: &[f32], index: Self::U) -> Self::F {
        assert!(!from.is_empty() && from.len() <= i32::MAX as usize);
        // SAFETY: the clamp keeps every index inside, and an f32 is 4 bytes.
        unsafe { _mm512_castsi512_ps(gather(from.as_ptr().cast(), clamp(index, from.len()))) }
    }
    #[inline(always)]
    fn gather_u(self, from: &[u32], index: Self::U) -> Self::U {
        assert!(!from.is_empty() && from.len() <= i32::MAX as usize);
        // SAFETY: the clamp keeps every index inside, and a u32 is 4 bytes.
        unsafe { gather(from.as_ptr().cast(), clamp(index, from.len())) }
    }
    #[inline(always)]
    fn gather_both(self, from: &[[u32; 2]], index: Self::U) -> (Self::U, Self::U) {
        assert!(!from.is_empty() && from.len() <= i32::MAX as usize);
        // SAFETY: the clamp keeps every index inside; an element is 8 bytes.
        unsafe {
            let at = clamp(index, from.len());
            let p = from.as_ptr().cast::<i64>();
            let four = |index: __m128i| {
                let [a, b, c, d] = split(index);
                let low = _mm_cvtsi64_si128(p.add(a).read_unaligned());
                let low = _mm_insert_epi64::<1>(low, p.add(b).read_unaligned());
                let high = _mm_cvtsi64_si128(p.add(c).read_unaligned());
                let high = _mm_insert_epi64::<1>(high, p.add(d).read_unaligned());
                _mm256_set_m128i(high, low)
            };
            let eight = |low, high| _mm512_inserti64x4::<1>(_mm512_castsi256_si512(low), high);
            let low =
                eight(four(_mm512_castsi512_si128(at)), four(_mm512_extracti32x4_epi32::<1>(at)));
            let high = eight(
                four(_mm512_extracti32x4_epi32::<2>(at)),
                four(_mm512_extracti32x4_epi32::<3>(at)),
            );
            let even = _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
            let odd = _mm512_or_si512(even, _mm512_set1_epi32(1));
            (_mm512_permutex2var_epi32(low, even, high), _mm512_permutex2var_epi32(low, odd, high))
        }
    }
    #[inline(always)]
    fn scatter_u(self, to: &mut [u32], index: Self::U, x: Self::U) {
        assert!(!to.is_empty() && to.len() <= i32::MAX as usize);
        // SAFETY: every index is clamped to the last element, which fits in an i32.
        unsafe {
            let index = _mm512_min_epu32(index, _mm512_set1_epi32(to.len() as i32 - 1));
            _mm512_i32scatter_epi32::<4>(to.as_mut_ptr().cast(), index, x)
        }
    }
    #[inline(always)]
    fn mul_high(self, a: Self::U, b: Self::U) -> Self::U {
        registers!({
            let even = _mm512_srli_epi64::<32>(_mm512_mul_epu32(a, b));
            let odd = _mm512_mul_epu32(_mm512_srli_epi64::<32>(a), _mm512_srli_epi64::<32>(b));
            _mm512_mask_blend_epi32(0xaaaa, even, odd)
        })
    }
    #[inline(always)]
    fn load_pairs(self, from: &[[u16; 2]; LANES]) -> Self::U {
        // SAFETY: the reference covers the 64 bytes read.
        unsafe { _mm512_loadu_si512(from.as_ptr().cast()) }
    }
    #[inline(always)]
    fn store_pairs(self, to: &mut [[u16; 2]; LANES], x: Self::U) {
        // SAFETY: the reference covers the 64 bytes written.
        unsafe { _mm512_storeu_si512(to.as_mut_ptr().cast(), x) }
    }
    #[inline(always)]
    fn gather_pairs(self, from: &[[u16; 2]], index: Self::U) -> Self::U {
        assert!(!from.is_empty() && from.len() <= i32::MAX as usize);
        // SAFETY: the clamp keeps every index inside, and a pair is 4 bytes.
        unsafe { gather(from.as_ptr().cast(), clamp(index, from.len())) }
    }
    #[inline(always)]
    fn scatter_pairs(self, to: &mut [[u16; 2]], index: Self::U, x: Self::U) {
        assert!(!to.is_empty() && to.len() <= i32::MAX as usize);
        // SAFETY: every index is clamped to the last pair, which fits in an i32; a pair is 4 bytes.
        unsafe {
            let index = _mm512_min_epu32(index, _mm512_set1_epi32(to.len() as i32 - 1));
            _mm512_i32scatter_epi32::<4>(to.as_mut_ptr().cast(), index, x)
        }
    }
    #[inline(always)]
    fn compress(self, mask: u16, x: Self::U, to: &mut [u32; LANES]) {
        // PERF: compressing in a register and storing all of it is far cheaper than a compressing
        // store.
        self.store_u(to, registers!(_mm512_maskz_compress_epi32(mask, x)));
    }
    #[inline(always)]
    fn prefix(self, x: Self::F) -> Self::F {
        registers!({
            let by1 = _mm512_castsi512_ps(_mm512_bslli_epi128::<4>(_mm512_castps_si512(x)));
            let x = _mm512_add_ps(x, by1);
            let by2 = _mm512_castsi512_ps(_mm512_bslli_epi128::<8>(_mm512_castps_si512(x)));
            let x = _mm512_add_ps(x, by2);
            let last = _mm512_permute_ps::<0xff>(x);
            // Sums of groups of four lanes move up by 1, 2 and 3 groups; zeros are shifted in.
            let up1 = _mm512_maskz_shuffle_f32x4::<0b10_01_00_00>(0xfff0, last, last);
            let up2 = _mm512_maskz_shuffle_f32x4::<0b01_00_00_00>(0xff00, last, last);
            let up3 = _mm512_maskz_shuffle_f32x4::<0b00_00_00_00>(0xf000, last, last);
            _mm512_add_ps(x, _mm512_add_ps(_mm512_add_ps(up1, up2), up3))
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
