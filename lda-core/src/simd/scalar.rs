//! Scalar lanes: the definition of every operation, one lane after the other.
//!
//! On x86-64 this path serves CPUs without AVX2 and tests. Its longer operations are not inlined
//! there, because they would make up most of each kernel's code and compile time. On other
//! architectures it is the only path, everything is inlined, and the compiler vectorises it for the
//! target.

use super::table::lanewise;
use super::{LANES, Lanes};

/// Sixteen lanes in plain arrays. Available on every CPU.
#[derive(Clone, Copy, Debug)]
pub struct Scalar;

#[inline(always)]
fn map2<A: Copy, B: Copy, C: Copy + Default>(
    a: [A; LANES],
    b: [B; LANES],
    f: impl Fn(A, B) -> C,
) -> [C; LANES] {
    std::array::from_fn(|i| f(a[i], b[i]))
}

#[inline(always)]
fn mask(f: impl Fn(usize) -> bool) -> u16 {
    (0..LANES).fold(0, |bits, i| bits | (u16::from(f(i)) << i))
}

/// Implements the operations of the table.
macro_rules! implement {
    ($($doc:literal, $op:ident, $type:ident, $avx2:ident, $avx512:ident, $lane:expr;)+) => {
        $(
            #[inline(always)]
            fn $op(self, a: Self::$type, b: Self::$type) -> Self::$type {
                map2(a, b, $lane)
            }
        )+
    };
}

impl Lanes for Scalar {
    type F = [f32; LANES];
    type U = [u32; LANES];

    const WIDE: bool = false;

    #[inline(always)]
    fn splat_f(self, x: f32) -> Self::F {
        [x; LANES]
    }
    #[inline(always)]
    fn splat_u(self, x: u32) -> Self::U {
        [x; LANES]
    }
    #[inline(always)]
    fn load_f(self, from: &[f32; LANES]) -> Self::F {
        *from
    }
    #[inline(always)]
    fn store_f(self, to: &mut [f32; LANES], x: Self::F) {
        *to = x;
    }
    #[inline(always)]
    fn load_u(self, from: &[u32; LANES]) -> Self::U {
        *from
    }
    #[inline(always)]
    fn store_u(self, to: &mut [u32; LANES], x: Self::U) {
        *to = x;
    }
    #[cfg_attr(target_arch = "x86_64", inline(never))]
    #[cfg_attr(not(target_arch = "x86_64"), inline(always))]
    fn load_u16(self, from: &[u32; LANES / 2]) -> Self::U {
        std::array::from_fn(|i| (from[i / 2] >> (16 * (i % 2))) & 0xffff)
    }
    #[cfg_attr(target_arch = "x86_64", inline(never))]
    #[cfg_attr(not(target_arch = "x86_64"), inline(always))]
    fn add_u16_at(self, at: &mut [u32; LANES / 2], lane: usize, by: u16) {
        let (word, shift) = (&mut at[lane / 2], 16 * (lane % 2));
        let value = ((*word >> shift) as u16).wrapping_add(by);
        *word = *word & !(0xffff << shift) | u32::from(value) << shift;
    }
    #[cfg_attr(target_arch = "x86_64", inline(never))]
    #[cfg_attr(not(target_arch = "x86_64"), inline(always))]
    fn load_halves(self, from: &[u16; LANES]) -> Self::U {
        from.map(u32::from)
    }
    #[cfg_attr(target_arch = "x86_64", inline(never))]
    #[cfg_attr(not(target_arch = "x86_64"), inline(always))]
    fn store_halves(self, to: &mut [u16; LANES], x: Self::U) {
        *to = x.map(|x| x as u16);
    }
    #[cfg_attr(target_arch = "x86_64", inline(never))]
    #[cfg_attr(not(target_arch = "x86_64"), inline(always))]
    fn load_f64(self, from: &[f64; LANES]) -> Self::F {
        from.map(|x| x as f32)
    }
    lanewise!(implement);
    #[inline(always)]
    fn shl_u<const N: u32>(self, a: Self::U) -> Self::U {
        a.map(|a| a << N)
    }
    #[inline(always)]
    fn shr_u<const N: u32>(self, a: Self::U) -> Self::U {
        a.map(|a| a >> N)
    }
    #[cfg_attr(target_arch = "x86_64", inline(never))]
    #[cfg_attr(not(target_arch = "x86_64"), inline(always))]
    fn min_u(self, a: Self::U, b: Self::U) -> Self::U {
        map2(a, b, u32::min)
    }
    #[cfg_attr(target_arch = "x86_64", inline(never))]
    #[cfg_attr(not(target_arch = "x86_64"), inline(always))]
    fn to_f(self, x: Self::U) -> Self::F {
        x.map(|x| x as f32)
    }
    #[cfg_attr(target_arch = "x86_64", inline(never))]
    #[cfg_attr(not(target_arch = "x86_64"), inline(always))]
    fn truncate(self, x: Self::F) -> Self::U {
        x.map(|x| x as i32 as u32)
    }
    #[cfg_attr(target_arch = "x86_64", inline(never))]
    #[cfg_attr(not(target_arch = "x86_64"), inline(always))]
    fn gt_f(self, a: Self::F, b: Self::F) -> u16 {
        mask(|i| a[i] > b[i])
    }
    #[cfg_attr(target_arch = "x86_64", inline(never))]
    #[cfg_attr(not(target_arch = "x86_64"), inline(always))]
    fn eq_u(self, a: Self::U, b: Self::U) -> u16 {
        mask(|i| a[i] == b[i])
    }
    #[cfg_attr(target_arch = "x86_64", inline(never))]
    #[cfg_attr(not(target_arch = "x86_64"), inline(always))]
    fn select_f(self, mask: u16, yes: Self::F, no: Self::F) -> Self::F {
        std::array::from_fn(|i| if mask >> i & 1 == 1 { yes[i] } else { no[i] })
    }
    #[cfg_attr(target_arch = "x86_64", inline(never))]
    #[cfg_attr(not(target_arch = "x86_64"), inline(always))]
    fn select_u(self, mask: u16, yes: Self::U, no: Self::U) -> Self::U {
        std::array::from_fn(|i| if mask >> i & 1 == 1 { yes[i] } else { no[i] })
    }
    #[cfg_attr(target_arch = "x86_64", inline(never))]
    #[cfg_attr(not(target_arch = "x86_64"), inline(always))]
    fn gather_f(self, from: &[f32], index: Self::U) -> Self::F {
        let last = from.len() - 1;
        index.map(|i| from[(i as usize).min(last)])
    }
    #[cfg_attr(target_arch = "x86_64", inline(never))]
    #[cfg_attr(not(target_arch = "x86_64"), inline(always))]
    fn gather_u(self, from: &[u32], index: Self::U) -> Self::U {
        let last = from.len() - 1;
        index.map(|i| from[(i as usize).min(last)])
    }
    #[cfg_attr(target_arch = "x86_64", inline(never))]
    #[cfg_attr(not(target_arch = "x86_64"), inline(always))]
    fn gather_both(self, from: &[[u32; 2]], index: Self::U) -> (Self::U, Self::U) {
        let last = from.len() - 1;
        let at = |half: usize| index.map(|i| from[(i as usize).min(last)][half]);
        (at(0), at(1))
    }
    #[cfg_attr(target_arch = "x86_64", inline(never))]
    #[cfg_attr(not(target_arch = "x86_64"), inline(always))]
    fn scatter_u(self, to: &mut [u32], index: Self::U, x: Self::U) {
        let last = to.len() - 1;
        for (i, x) in index.into_iter().zip(x) {
            to[(i as usize).min(last)] = x;
        }
    }
    #[cfg_attr(target_arch = "x86_64", inline(never))]
    #[cfg_attr(not(target_arch = "x86_64"), inline(always))]
    fn mul_high(self, a: Self::U, b: Self::U) -> Self::U {
        map2(a, b, |a, b| ((u64::from(a) * u64::from(b)) >> 32) as u32)
    }
    #[cfg_attr(target_arch = "x86_64", inline(never))]
    #[cfg_attr(not(target_arch = "x86_64"), inline(always))]
    fn load_pairs(self, from: &[[u16; 2]; LANES]) -> Self::U {
        from.map(|pair| u32::from(pair[0]) | u32::from(pair[1]) << 16)
    }
    #[cfg_attr(target_arch = "x86_64", inline(never))]
    #[cfg_attr(not(target_arch = "x86_64"), inline(always))]
    fn store_pairs(self, to: &mut [[u16; 2]; LANES], x: Self::U) {
        *to = x.map(|x| [x as u16, (x >> 16) as u16]);
    }
    #[cfg_attr(target_arch = "x86_64", inline(never))]
    #[cfg_attr(not(target_arch = "x86_64"), inline(always))]
    fn gather_pairs(self, from: &[[u16; 2]], index: Self::U) -> Self::U {
        let last = from.len() - 1;
        let at = |i: u32| from[(i as usize).min(last)];
        index.map(|i| u32::from(at(i)[0]) | u32::from(at(i)[1]) << 16)
    }
    #[cfg_attr(target_arch = "x86_64", inline(never))]
    #[cfg_attr(not(target_arch = "x86_64"), inline(always))]
    fn scatter_pairs(self, to: &mut [[u16; 2]], index: Self::U, x: Self::U) {
        let last = to.len() - 1;
        for (i, x) in index.into_iter().zip(x) {
            to[(i as usize).min(last)] = [x as u16, (x >> 16) as u16];
        }
    }
    #[cfg_attr(target_arch = "x86_64", inline(never))]
    #[cfg_attr(not(target_arch = "x86_64"), inline(always))]
    fn compress(self, mask: u16, x: Self::U, to: &mut [u32; LANES]) {
        let mut at = 0;
        for (i, x) in x.into_iter().enumerate() {
            if mask >> i & 1 == 1 {
                to[at] = x;
                at += 1;
            }
        }
    }
    #[cfg_attr(target_arch = "x86_64", inline(never))]
    #[cfg_attr(not(target_arch = "x86_64"), inline(always))]
    fn prefix(self, x: Self::F) -> Self::F {
        let in_group = |x: [f32; LANES], by: usize| -> [f32; LANES] {
            std::array::from_fn(|i| if i % 4 >= by { x[i] + x[i - by] } else { x[i] + 0.0 })
        };
        let x = in_group(in_group(x, 1), 2);
        let group = |g: usize, back: usize| if g >= back { x[4 * (g - back) + 3] } else { 0.0 };
        std::array::from_fn(|i| {
            let g = i / 4;
            x[i] + ((group(g, 1) + group(g, 2)) + group(g, 3))
        })
    }
    #[inline(always)]
    fn prefetch<T>(self, _at: &[T], _index: usize) {}
}
