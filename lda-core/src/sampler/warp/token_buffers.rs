//! Copies tokens between their records (1 + M values: topic, proposals) and the buffers of rows.
//!
//! 16-bit topics with one proposal, the usual case, are pairs that move sixteen at a time. Other
//! records are copied one by one, their length known to the compiler up to four proposals.

use super::row::{WarpScratch, chunk, chunk_mut};
use crate::counts::TopicIndex;
use crate::simd::{LANES, Lanes};

/// Runs `$body` with the record length as a constant `N`, or with `N = 0` where it is above 5.
macro_rules! with_length {
    ($stored:expr, $N:ident => $body:expr) => {
        match $stored {
            1 => {
                const $N: usize = 2;
                $body
            }
            2 => {
                const $N: usize = 3;
                $body
            }
            3 => {
                const $N: usize = 4;
                $body
            }
            4 => {
                const $N: usize = 5;
                $body
            }
            _ => {
                const $N: usize = 0;
                $body
            }
        }
    };
}

/// Neighbouring tokens, and their place in the buffers.
#[derive(Clone, Copy, Debug)]
pub(super) struct Run {
    /// First token.
    pub first: usize,
    pub len: usize,
    /// Place of the first token in the buffers.
    pub at: usize,
}

/// Reads the tokens of `run` into the buffers.
#[inline(always)]
pub(super) fn gather_run<L: Lanes, T: TopicIndex>(
    l: L,
    tokens: &[T],
    stored: usize,
    run: Run,
    scratch: &mut WarpScratch,
) {
    let Run { first, len, at } = run;
    let mut done = 0;
    if let Some(pairs) = pairs(tokens, stored) {
        let low = l.splat_u(0xffff);
        let (z, pending) = (&mut scratch.z[at..], &mut scratch.pending[at..]);
        while done < len {
            // Reading past the run is harmless: the next run overwrites these lanes, or they are unused.
            let Some(from) = pairs[first + done..].first_chunk() else { break };
            let both = l.load_pairs(from);
            l.store_u(chunk_mut(z, done), l.and_u(both, low));
            l.store_u(chunk_mut(pending, done), l.shr_u::<16>(both));
            done += LANES;
        }
    }
    if done < len {
        let slots = (first + done) as u32..(first + len) as u32;
        with_length!(stored, N => scratch.read::<T, N>(tokens, stored, slots, at + done));
    }
}

/// Writes the tokens of `run` back.
#[inline(always)]
pub(super) fn scatter_run<L: Lanes, T: TopicIndex>(
    l: L,
    tokens: &mut [T],
    stored: usize,
    run: Run,
    scratch: &WarpScratch,
) {
    let Run { first, len, at } = run;
    let mut done = 0;
    if let Some(pairs) = pairs_mut(tokens, stored) {
        let (next, pending) = (&scratch.next[at..], &scratch.pending[at..]);
        while done < len {
            let Some(to) = pairs[first + done..].first_chunk_mut() else { break };
            let z = l.load_u(chunk(next, done));
            let proposals = l.load_u(chunk(pending, done));
            let new = l.or_u(z, l.shl_u::<16>(proposals));
            // Tokens past the run keep what they have.
            let mask = if len - done >= LANES { u16::MAX } else { (1 << (len - done)) - 1 };
            let old = l.load_pairs(to);
            l.store_pairs(to, l.select_u(mask, new, old));
            done += LANES;
        }
    }
    if done < len {
        let slots = (first + done) as u32..(first + len) as u32;
        with_length!(stored, N => scratch.write::<T, N>(tokens, stored, slots, at + done));
    }
}

/// Reads the tokens of `slots` to the front of the buffers.
#[inline(always)]
pub(super) fn gather_slots<L: Lanes, T: TopicIndex>(
    l: L,
    tokens: &[T],
    stored: usize,
    slots: &[u32],
    scratch: &mut WarpScratch,
) {
    let mut done = 0;
    if let Some(pairs) = pairs(tokens, stored) {
        let low = l.splat_u(0xffff);
        let (z, pending) = (&mut scratch.z[..], &mut scratch.pending[..]);
        while let Some(index) = slots[done..].first_chunk() {
            let both = l.gather_pairs(pairs, l.load_u(index));
            l.store_u(chunk_mut(z, done), l.and_u(both, low));
            l.store_u(chunk_mut(pending, done), l.shr_u::<16>(both));
            done += LANES;
        }
    }
    let rest = slots[done..].iter().copied();
    with_length!(stored, N => scratch.read::<T, N>(tokens, stored, rest, done));
}

/// Writes the tokens of `slots` back.
#[inline(always)]
pub(super) fn scatter_slots<L: Lanes, T: TopicIndex>(
    l: L,
    tokens: &mut [T],
    stored: usize,
    slots: &[u32],
    scratch: &WarpScratch,
) {
    let mut done = 0;
    if let Some(pairs) = pairs_mut(tokens, stored) {
        let (next, pending) = (&scratch.next[..], &scratch.pending[..]);
        while let Some(index) = slots[done..].first_chunk() {
            let z = l.load_u(chunk(next, done));
            let proposals = l.load_u(chunk(pending, done));
            l.scatter_pairs(pairs, l.load_u(index), l.or_u(z, l.shl_u::<16>(proposals)));
            done += LANES;
        }
    }
    let rest = slots[done..].iter().copied();
    with_length!(stored, N => scratch.write::<T, N>(tokens, stored, rest, done));
}

/// Prefetches the records of `slots`.
#[inline(always)]
pub(super) fn prefetch<L: Lanes, T: TopicIndex>(l: L, tokens: &[T], stored: usize, slots: &[u32]) {
    for &slot in slots {
        l.prefetch(tokens, slot as usize * (1 + stored));
    }
}

/// The tokens as (topic, proposal) pairs, if records are 16-bit pairs.
#[inline(always)]
fn pairs<T: TopicIndex>(tokens: &[T], stored: usize) -> Option<&[[u16; 2]]> {
    T::as_u16(tokens).filter(|_| stored == 1).map(|tokens| tokens.as_chunks().0)
}

/// The tokens as (topic, proposal) pairs, if records are 16-bit pairs.
#[inline(always)]
fn pairs_mut<T: TopicIndex>(tokens: &mut [T], stored: usize) -> Option<&mut [[u16; 2]]> {
    T::as_u16_mut(tokens).filter(|_| stored == 1).map(|tokens| tokens.as_chunks_mut().0)
}

impl WarpScratch {
    /// Appends topics of tokens that do not move behind the first `at`.
    #[inline(always)]
    pub(super) fn extend(&mut self, at: usize, topics: impl ExactSizeIterator<Item = u32>) {
        for (to, topic) in self.z[at..].iter_mut().zip(topics) {
            *to = topic;
        }
    }

    /// Reads the records of `slots` into the buffers at `at`; `N` is their length or 0.
    #[inline(always)]
    fn read<T: TopicIndex, const N: usize>(
        &mut self,
        tokens: &[T],
        stored: usize,
        slots: impl Iterator<Item = u32>,
        at: usize,
    ) {
        let length = if N > 0 { N } else { 1 + stored };
        for (i, slot) in slots.enumerate() {
            let record = &tokens[slot as usize * length..][..length];
            self.z[at + i] = record[0].get();
            for (m, topic) in record[1..].iter().enumerate() {
                self.pending[m * self.stride + at + i] = topic.get();
            }
        }
    }

    /// Writes the records of `slots` back from the buffers at `at`; `N` is their length or 0.
    #[inline(always)]
    fn write<T: TopicIndex, const N: usize>(
        &self,
        tokens: &mut [T],
        stored: usize,
        slots: impl Iterator<Item = u32>,
        at: usize,
    ) {
        let length = if N > 0 { N } else { 1 + stored };
        for (i, slot) in slots.enumerate() {
            let record = &mut tokens[slot as usize * length..][..length];
            record[0] = T::new(self.next[at + i]);
            for (m, topic) in record[1..].iter_mut().enumerate() {
                *topic = T::new(self.pending[m * self.stride + at + i]);
            }
        }
    }
}
