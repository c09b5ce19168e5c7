//! One row of counts: a list of (topic, count), or K counts.

use std::marker::PhantomData;

use crate::counts::topic::TopicIndex;
use crate::simd::{LANES, Lanes, Line};

/// Count of `topic` in a 16-bit dense row.
#[inline(always)]
pub fn dense16(lines: &[Line], topic: usize) -> u32 {
    let word = lines[topic / (2 * LANES)].0[topic / 2 % LANES];
    word >> (16 * (topic % 2)) & 0xffff
}

/// Adds `by`, which may be −1 as a wrapping word, to the count of `topic` in a 16-bit dense row.
#[inline(always)]
pub fn dense16_add(lines: &mut [Line], topic: usize, by: u32) {
    let word = &mut lines[topic / (2 * LANES)].0[topic / 2 % LANES];
    // INVARIANT: counts stay within 0..65,536, so that no carry or borrow crosses into the other
    // half.
    *word = word.wrapping_add(by << (16 * (topic % 2)));
}

/// One row, by storage form.
#[derive(Debug)]
pub enum RowMut<'a, T> {
    /// List of (topic, count).
    Sparse(SparseMut<'a, T>),
    /// Two topics per 32-bit word, the lower half first.
    Dense16(&'a mut [Line]),
    /// One topic per 32-bit word.
    Dense32(&'a mut [Line]),
}

/// A sparse row. Entries are numbered from 1; entry 0 is the header.
#[derive(Debug)]
pub struct SparseMut<'a, T> {
    /// Lines from the row's first one to the end of the arena; the row ends at its capacity.
    pub(crate) lines: &'a mut [Line],
    topic_index: PhantomData<T>,
}

impl<'a, T: TopicIndex> SparseMut<'a, T> {
    #[inline(always)]
    pub(super) fn new(lines: &'a mut [Line]) -> Self {
        Self { lines, topic_index: PhantomData }
    }

    /// Number of entries.
    #[inline(always)]
    pub fn len(&self) -> usize {
        T::entry(self.lines, 0).0 as usize
    }

    /// Whether there are no entries.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Number of chunks of sixteen that have the header and all entries, at least 1.
    #[inline(always)]
    pub fn chunks(&self) -> usize {
        self.len() / LANES + 1
    }

    /// Entry `i`, from 1 on.
    #[inline(always)]
    pub fn entry(&self, i: usize) -> (u32, u32) {
        T::entry(self.lines, i)
    }

    /// Chunk `c`, from 0 on: topics and counts of sixteen entries. Lane 0 of chunk 0 is the header,
    /// whose count is 0; lanes past the end are zeros.
    ///
    /// # Panics
    /// If `c` is beyond the arena that holds the row.
    #[inline(always)]
    pub fn chunk<L: Lanes>(&self, l: L, c: usize) -> (L::U, L::U) {
        T::chunk(l, self.lines, c)
    }

    /// Sets entry `i`, from 1 on.
    #[inline(always)]
    pub fn set(&mut self, i: usize, topic: u32, count: u32) {
        T::set_entry(self.lines, i, topic, count);
    }

    /// Removes one token from entry `i`; an entry that reaches 0 is replaced by the last one.
    #[inline(always)]
    pub fn decrement_at(&mut self, i: usize) {
        let (topic, count) = self.entry(i);
        if count > 1 {
            self.set(i, topic, count - 1);
        } else {
            let last = self.len();
            let (moved, tokens) = self.entry(last);
            self.set(i, moved, tokens);
            self.set(last, 0, 0);
            self.set(0, last as u32 - 1, 0);
        }
    }

    /// Appends an entry with one token.
    #[inline(always)]
    pub fn append(&mut self, topic: u32) {
        let last = self.len() + 1;
        self.set(last, topic, 1);
        self.set(0, last as u32, 0);
    }

    /// Adds one token of `topic`, scanning for it.
    pub fn increment(&mut self, topic: u32) {
        for i in 1..=self.len() {
            let (t, count) = self.entry(i);
            if t == topic {
                return self.set(i, topic, count + 1);
            }
        }
        self.append(topic);
    }

    /// Empties the row.
    pub fn clear(&mut self) {
        let lines = self.chunks() * T::LINES;
        self.lines[..lines].fill(Line::default());
    }
}
