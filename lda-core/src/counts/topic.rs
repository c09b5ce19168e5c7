//! Topic ids in storage: 16 bits if K ≤ 65,536, otherwise 32.
//!
//! 16 bits halve the memory of the topic assignments, and the counts of a short document take one
//! cache line instead of two. Code is compiled for both widths; the choice is made once per run.

use crate::simd::{LANES, Lanes, Line};

/// Storage type of a topic id.
pub trait TopicIndex: Copy + Default + Eq + Ord + Send + Sync + std::fmt::Debug + 'static {
    /// Maximum number of topics for this width.
    const MAX_TOPICS: u64;
    /// Cache lines of sixteen (topic, count) entries.
    const LINES: usize;

    /// Converts a topic id.
    fn new(topic: u32) -> Self;
    /// The topic id.
    fn get(self) -> u32;

    /// Entry `i` of the entries that start at `lines[0]`: (topic, count).
    fn entry(lines: &[Line], i: usize) -> (u32, u32);
    /// Sets entry `i`.
    fn set_entry(lines: &mut [Line], i: usize, topic: u32, count: u32);
    /// Chunk `c`: the topics and the counts of sixteen entries.
    fn chunk<L: Lanes>(l: L, lines: &[Line], c: usize) -> (L::U, L::U);

    /// The ids as 16-bit values, if this type is `u16`.
    fn as_u16(ids: &[Self]) -> Option<&[u16]>;
    /// The ids as 16-bit values, if this type is `u16`.
    fn as_u16_mut(ids: &mut [Self]) -> Option<&mut [u16]>;

    /// Reads sixteen ids.
    fn load<L: Lanes>(l: L, from: &[Self; LANES]) -> L::U;
    /// Writes sixteen ids.
    fn store<L: Lanes>(l: L, to: &mut [Self; LANES], x: L::U);
}

impl TopicIndex for u16 {
    const MAX_TOPICS: u64 = 1 << 16;
    const LINES: usize = 1;

    #[inline(always)]
    fn new(topic: u32) -> Self {
        topic as u16
    }
    #[inline(always)]
    fn get(self) -> u32 {
        u32::from(self)
    }
    #[inline(always)]
    fn entry(lines: &[Line], i: usize) -> (u32, u32) {
        let word = lines[i / LANES].0[i % LANES];
        (word >> 16, word & 0xffff)
    }
    #[inline(always)]
    fn set_entry(lines: &mut [Line], i: usize, topic: u32, count: u32) {
        lines[i / LANES].0[i % LANES] = topic << 16 | count;
    }
    #[inline(always)]
    fn chunk<L: Lanes>(l: L, lines: &[Line], c: usize) -> (L::U, L::U) {
        let words = l.load_u(&lines[c].0);
        (l.shr_u::<16>(words), l.and_u(words, l.splat_u(0xffff)))
    }
    #[inline(always)]
    fn as_u16(ids: &[Self]) -> Option<&[u16]> {
        Some(ids)
    }
    #[inline(always)]
    fn as_u16_mut(ids: &mut [Self]) -> Option<&mut [u16]> {
        Some(ids)
    }
    #[inline(always)]
    fn load<L: Lanes>(l: L, from: &[Self; LANES]) -> L::U {
        l.load_halves(from)
    }
    #[inline(always)]
    fn store<L: Lanes>(l: L, to: &mut [Self; LANES], x: L::U) {
        l.store_halves(to, x);
    }
}

impl TopicIndex for u32 {
    const MAX_TOPICS: u64 = 1 << 31;
    const LINES: usize = 2;

    #[inline(always)]
    fn new(topic: u32) -> Self {
        topic
    }
    #[inline(always)]
    fn get(self) -> u32 {
        self
    }
    #[inline(always)]
    fn entry(lines: &[Line], i: usize) -> (u32, u32) {
        let c = i / LANES * 2;
        (lines[c].0[i % LANES], lines[c + 1].0[i % LANES])
    }
    #[inline(always)]
    fn set_entry(lines: &mut [Line], i: usize, topic: u32, count: u32) {
        let c = i / LANES * 2;
        lines[c].0[i % LANES] = topic;
        lines[c + 1].0[i % LANES] = count;
    }
    #[inline(always)]
    fn chunk<L: Lanes>(l: L, lines: &[Line], c: usize) -> (L::U, L::U) {
        (l.load_u(&lines[2 * c].0), l.load_u(&lines[2 * c + 1].0))
    }
    #[inline(always)]
    fn as_u16(_ids: &[Self]) -> Option<&[u16]> {
        None
    }
    #[inline(always)]
    fn as_u16_mut(_ids: &mut [Self]) -> Option<&mut [u16]> {
        None
    }
    #[inline(always)]
    fn load<L: Lanes>(l: L, from: &[Self; LANES]) -> L::U {
        l.load_u(from)
    }
    #[inline(always)]
    fn store<L: Lanes>(l: L, to: &mut [Self; LANES], x: L::U) {
        l.store_u(to, x);
    }
}
