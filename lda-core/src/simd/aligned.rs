//! Arrays that begin on a cache line.
//!
//! A vector load from a plain `Vec` straddles two lines three times out of four, and costs two
//! accesses then.

use std::ops::{Deref, DerefMut};

use super::LANES;

/// Sixteen values on one line (of 32-bit values) or two.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(64))]
struct Chunk<X>([X; LANES]);

/// A fixed number of values, whole vectors, the first at a multiple of 64 bytes.
#[derive(Clone, Debug)]
pub struct Aligned<X> {
    chunks: Vec<Chunk<X>>,
}

impl<X: Copy + Default> Aligned<X> {
    /// `len` default values.
    ///
    /// # Panics
    /// If `len` is no multiple of sixteen, or a value is not 4 or 8 bytes wide.
    pub fn new(len: usize) -> Self {
        assert!(len.is_multiple_of(LANES), "{len} is no multiple of {LANES}");
        assert_eq!(size_of::<Chunk<X>>(), LANES * size_of::<X>());
        Self { chunks: vec![Chunk([X::default(); LANES]); len / LANES] }
    }
}

impl<X> Deref for Aligned<X> {
    type Target = [X];

    #[inline(always)]
    fn deref(&self) -> &[X] {
        // SAFETY: a chunk is sixteen values and no padding (checked at construction), so the chunks
        // are that many values in a row.
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
    fn begins_on_a_line_and_keeps_values() {
        let mut values = Aligned::<u32>::new(48);
        assert_eq!(values.as_ptr().addr() % 64, 0);
        for (i, value) in values.iter_mut().enumerate() {
            *value = i as u32;
        }
        assert!(values.iter().copied().eq(0..48));
    }
}
