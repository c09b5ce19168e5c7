//! How tokens move between their records (1 + M values: topic, proposals) and a row's buffers.
//!
//! 16-bit topics with one proposal, the usual case, are pairs that move sixteen at a time.

use super::row::{WarpScratch, chunk, chunk_mut};
use crate::counts::TopicIndex;
use crate::simd::{LANES, Lanes};

/// Reads `len` neighbouring tokens from `first` on into the buffers at `at`.
#[allow(clippy::too_many_arguments)]
#[inline(always)]
pub(super) fn gather_run<L: Lanes, T: TopicIndex>(
    l: L,
    tokens: &[T],
    first: usize,
    len: usize,
    steps: usize,
    stored: usize,
    scratch: &mut WarpScratch,
    at: usize,
) {
    let mut done = 0;
    if let Some(pairs) = pairs(tokens, stored) {
        let low = l.splat_u(0xffff);
        while done < len {
            // Reading past the run is harmless: the next run overwrites it, or nobody looks.
            let Some(from) = pairs[first + done..].first_chunk() else { break };
            let both = l.load_pairs(from);
            l.store_u(chunk_mut(&mut scratch.z, at + done), l.and_u(both, low));
            l.store_u(chunk_mut(&mut scratch.pending, at + done), l.shr_u::<16>(both));
            done += LANES;
        }
    }
    for i in done..len {
        scratch.read(tokens, first + i, steps, stored, at + i);
    }
}

/// Writes `len` neighbouring tokens back.
#[allow(clippy::too_many_arguments)]
#[inline(always)]
pub(super) fn scatter_run<L: Lanes, T: TopicIndex>(
    l: L,
    tokens: &mut [T],
    first: usize,
    len: usize,
    steps: usize,
    stored: usize,
    scratch: &WarpScratch,
    at: usize,
) {
    let mut done = 0;
    if let Some(pairs) = pairs_mut(tokens, stored) {
        while done < len {
            let Some(to) = pairs[first + done..].first_chunk_mut() else { break };
            let z = l.load_u(chunk(&scratch.next, at + done));
            let pending = l.load_u(chunk(&scratch.pending, at + done));
            let new = l.or_u(z, l.shl_u::<16>(pending));
            // Tokens past the run keep what they have.
            let mask = if len - done >= LANES { u16::MAX } else { (1 << (len - done)) - 1 };
            let old = l.load_pairs(to);
            l.store_pairs(to, l.select_u(mask, new, old));
            done += LANES;
        }
    }
    for i in done..len {
        scratch.write(tokens, first + i, steps, stored, at + i);
    }
}

/// Reads the tokens of `slots`; `ahead` begins with them and goes on with the next document's.
#[inline(always)]
pub(super) fn gather_slots<L: Lanes, T: TopicIndex>(
    l: L,
    tokens: &[T],
    slots: &[u32],
    ahead: &[u32],
    steps: usize,
    stored: usize,
    scratch: &mut WarpScratch,
) {
    let mut done = 0;
    if let Some(pairs) = pairs(tokens, stored) {
        let low = l.splat_u(0xffff);
        while done < slots.len() {
            let Some(index) = ahead[done..].first_chunk() else { break };
            let both = l.gather_pairs(pairs, l.load_u(index));
            l.store_u(chunk_mut(&mut scratch.z, done), l.and_u(both, low));
            l.store_u(chunk_mut(&mut scratch.pending, done), l.shr_u::<16>(both));
            done += LANES;
        }
    }
    for i in done..slots.len() {
        scratch.read(tokens, slots[i] as usize, steps, stored, i);
    }
}

/// Writes the tokens of `slots` back.
#[inline(always)]
pub(super) fn scatter_slots<L: Lanes, T: TopicIndex>(
    l: L,
    tokens: &mut [T],
    slots: &[u32],
    steps: usize,
    stored: usize,
    scratch: &WarpScratch,
) {
    let mut done = 0;
    if let Some(pairs) = pairs_mut(tokens, stored) {
        while slots.len() - done >= LANES {
            let index = l.load_u(chunk(slots, done));
            let z = l.load_u(chunk(&scratch.next, done));
            let pending = l.load_u(chunk(&scratch.pending, done));
            l.scatter_pairs(pairs, index, l.or_u(z, l.shl_u::<16>(pending)));
            done += LANES;
        }
        for (i, &slot) in slots.iter().enumerate().skip(done) {
            pairs[slot as usize] = [scratch.next[i] as u16, scratch.pending[i] as u16];
        }
        return;
    }
    for (i, &slot) in slots.iter().enumerate() {
        scratch.write(tokens, slot as usize, steps, stored, i);
    }
}

/// The tokens as pairs, where they are such.
#[inline(always)]
fn pairs<T: TopicIndex>(tokens: &[T], stored: usize) -> Option<&[[u16; 2]]> {
    T::as_u16(tokens).filter(|_| stored == 1).map(|tokens| tokens.as_chunks().0)
}

/// The tokens as pairs, where they are such.
#[inline(always)]
fn pairs_mut<T: TopicIndex>(tokens: &mut [T], stored: usize) -> Option<&mut [[u16; 2]]> {
    T::as_u16_mut(tokens).filter(|_| stored == 1).map(|tokens| tokens.as_chunks_mut().0)
}

impl WarpScratch {
    /// Appends topics of tokens that do not move behind the first `at`.
    #[inline(always)]
    pub(super) fn extend(&mut self, at: usize, topics: impl ExactSizeIterator<Item = u32>) {
        self.grow(at + topics.len());
        for (to, topic) in self.z[at..].iter_mut().zip(topics) {
            *to = topic;
        }
    }

    #[inline(always)]
    fn read<T: TopicIndex>(
        &mut self,
        tokens: &[T],
        token: usize,
        steps: usize,
        stored: usize,
        at: usize,
    ) {
        let record = &tokens[token * (1 + stored)..][..1 + stored];
        self.z[at] = record[0].get();
        for m in 0..steps {
            self.pending[m * self.stride + at] = record[1 + m].get();
        }
    }

    #[inline(always)]
    fn write<T: TopicIndex>(
        &self,
        tokens: &mut [T],
        token: usize,
        steps: usize,
        stored: usize,
        at: usize,
    ) {
        let record = &mut tokens[token * (1 + stored)..][..1 + stored];
        record[0] = T::new(self.next[at]);
        for m in 0..steps {
            record[1 + m] = T::new(self.pending[m * self.stride + at]);
        }
    }
}
