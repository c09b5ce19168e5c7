//! Arrays aligned to a cache line.
//!
//! Three out of four vector loads from a plain `Vec` straddle two lines and take two accesses.

use std::ops::{Deref, DerefMut};

use super::LANES;

/// Sixteen values: one cache line of 32-bit values, two of 64-bit values.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(64))]
struct Chunk<X>([X; LANES]);

/// An array of whole vectors that starts at a multiple of 64 bytes. Its length is fixed.
#[derive(Clone, Debug)]
pub struct Aligned<X> {
    chunks: Vec<Chunk<X>>,
}

impl<X: Copy + Default> Aligned<X> {
    /// Makes an array of `len` default values.
    ///
    /// # Panics
    /// If `len` is not a multiple of sixteen, or a value is not 4 or 8 bytes wide.
    pub fn new(len: usize) -> Self {
        assert!(len.is_multiple_of(LANES), "{len} is not a multiple of {LANES}");
        assert_eq!(size_of::<Chunk<X>>(), LANES * size_of::<X>());
        Self { chunks: vec![Chunk([X::default(); LANES]); len / LANES] }
    }
}

impl<X> Deref for Aligned<X> {
    type Target = [X];

    #[inline(always)]
    fn deref(&self) -> &[X] {
        // SAFETY: a chunk is sixteen values without padding (checked at construction), so the
        // chunks are `chunks.len() * LANES` consecutive values.
        unsafe {
            std::slice::from_raw_parts(self.chunks.as_ptr().cast(), self.chunks.len() * LANES)
        }
    }
}

impl<X> DerefMut for Aligned<X> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut [X] {
        let len = self.chunks.len() * LANES;
        // SAFETY: as in `deref`, and the borrow is exclusive.
        unsafe { std::slice::from_raw_parts_mut(self.chunks.as_mut_ptr().cast(), len) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn array_is_aligned_and_keeps_its_values() {
        let mut values = Aligned::<u32>::new(48);
        assert_eq!(values.as_ptr().addr() % 64, 0);
        for (i, value) in values.iter_mut().enumerate() {
            *value = i as u32;
        }
        assert!(values.iter().copied().eq(0..48));
    }
}
