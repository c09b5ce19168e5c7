//! A dense row of either width, as the scans of a draw see it.

use crate::simd::{LANES, Lanes, Line};

/// Lines of a 16-bit dense row, sixteen counts at a time.
#[inline(always)]
pub(in crate::sampler) fn halves(lines: &[Line]) -> impl Iterator<Item = &[u32; LANES / 2]> {
    lines.iter().flat_map(|line| line.0.as_chunks::<{ LANES / 2 }>().0)
}

/// A dense row of either width.
pub(in crate::sampler) trait DenseRow {
    fn get(&self, topic: usize) -> u32;
    /// Adds `by` to a count; −1 is passed as a wrapping word. Writes the whole vector: a scan loads
    /// vectors, and a load cannot be forwarded from a narrower store.
    fn add<L: Lanes>(&mut self, l: L, topic: usize, by: u16);
    /// The `N` chunks from `first` on.
    fn chunks<L: Lanes, const N: usize>(&self, l: L, first: usize) -> [L::U; N];
}

pub(in crate::sampler) struct Row16<'a>(pub &'a mut [Line]);
pub(in crate::sampler) struct Row32<'a>(pub &'a mut [Line]);

impl DenseRow for Row16<'_> {
    #[inline(always)]
    fn get(&self, topic: usize) -> u32 {
        self.0[topic / (2 * LANES)].0[topic / 2 % LANES] >> (topic % 2 * 16) & 0xffff
    }
    #[inline(always)]
    fn add<L: Lanes>(&mut self, l: L, topic: usize, by: u16) {
        let (halves, _) = self.0[topic / (2 * LANES)].0.as_chunks_mut::<{ LANES / 2 }>();
        l.add_u16_at(&mut halves[topic / LANES % 2], topic % LANES, by);
    }
    #[inline(always)]
    fn chunks<L: Lanes, const N: usize>(&self, l: L, first: usize) -> [L::U; N] {
        let lines = &self.0[first / 2..];
        let odd = first % 2;
        assert!((odd + N).div_ceil(2) <= lines.len());
        let mut chunks = [l.splat_u(0); N];
        for (j, chunk) in chunks.iter_mut().enumerate() {
            let (halves, _) = lines[(odd + j) / 2].0.as_chunks::<{ LANES / 2 }>();
            *chunk = l.load_u16(&halves[(odd + j) % 2]);
        }
        chunks
    }
}

impl DenseRow for Row32<'_> {
    #[inline(always)]
    fn get(&self, topic: usize) -> u32 {
        self.0[topic / LANES].0[topic % LANES]
    }
    #[inline(always)]
    fn add<L: Lanes>(&mut self, l: L, topic: usize, by: u16) {
        let line = &mut self.0[topic / LANES].0;
        let counts = l.load_u(line);
        let by = l.splat_u(i32::from(by as i16) as u32);
        l.store_u(line, l.select_u(1 << (topic % LANES), l.add_u(counts, by), counts));
    }
    #[inline(always)]
    fn chunks<L: Lanes, const N: usize>(&self, l: L, first: usize) -> [L::U; N] {
        let lines: &[Line; N] = self.0[first..].first_chunk().expect("the chunks exist");
        let mut chunks = [l.splat_u(0); N];
        for (chunk, line) in chunks.iter_mut().zip(lines) {
            *chunk = l.load_u(&line.0);
        }
        chunks
    }
}
