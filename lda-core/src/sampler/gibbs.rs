//! What the Gibbs samplers that walk by word share: one word's counts in a dense scratch, and the
//! totals of the wave plus the block's own changes.
//!
//! Entering a word spreads its C_w row over `counts`; leaving writes it back. Neither costs more
//! than the row has non-zeros while the row is sparse.

use std::marker::PhantomData;

use crate::counts::{RowMut, Rows, TopicIndex};
use crate::sampler::{Context, padded};
use crate::simd::{Aligned, LANES, Lanes, Line};

/// Entries of a row whose topics are asked for ahead, where arrays over topics are not in cache.
const AHEAD: usize = 8;

/// Per-thread state of a Gibbs sampler: arrays over topics, [`padded`].
#[derive(Debug)]
pub(super) struct Live<T> {
    /// C_w of the word being visited; zero elsewhere.
    pub counts: Aligned<u32>,
    /// C_k: the wave's plus the block's own changes.
    pub totals: Aligned<u32>,
    /// 1 / (C_k + Vβ), kept up with `totals`. Empty where topics are so many that another array is
    /// another cache miss, which takes longer than a division.
    inverse: Aligned<f32>,
    /// Topics that `counts` may hold, while a sparse row is loaded.
    pub nonzeros: Vec<u32>,
    /// Topics whose total moved in this block, and whether a topic is among them, 64 a word.
    moved: Vec<u32>,
    has_moved: Vec<u64>,
    /// Wave that `totals` belongs to.
    wave: Option<u64>,
    /// Vβ.
    norm: f32,
    topic_index: PhantomData<T>,
}

impl<T: TopicIndex> Live<T> {
    /// Whether arrays over topics outgrow the caches.
    pub const LARGE: bool = size_of::<T>() > 2;

    pub fn new(topics: usize) -> Self {
        let len = padded(topics);
        Self {
            counts: Aligned::new(len),
            totals: Aligned::new(len),
            inverse: Aligned::new(if Self::LARGE { 0 } else { len }),
            nonzeros: Vec::new(),
            moved: Vec::new(),
            has_moved: vec![0; len.div_ceil(64)],
            wave: None,
            norm: 0.0,
            topic_index: PhantomData,
        }
    }

    /// Starts a block: totals are the wave's again. Says which topics' totals that set back.
    pub fn begin_block(&mut self, cx: &Context<'_>) -> Reset {
        self.norm = cx.beta_bar as f32;
        let reset = if self.wave == Some(cx.wave) {
            Reset::Topics(std::mem::take(&mut self.moved))
        } else {
            self.moved.clear();
            self.wave = Some(cx.wave);
            self.totals.copy_from_slice(cx.totals);
            for (inverse, &total) in self.inverse.iter_mut().zip(cx.totals) {
                *inverse = reciprocal(total, self.norm);
            }
            self.has_moved.fill(0);
            Reset::All
        };
        if let Reset::Topics(moved) = &reset {
            for &topic in moved {
                let k = topic as usize;
                self.totals[k] = cx.totals[k];
                if !Self::LARGE {
                    self.inverse[k] = reciprocal(self.totals[k], self.norm);
                }
                self.has_moved[k / 64] = 0;
            }
        }
        reset
    }

    /// Ends a block: the change of each total.
    pub fn totals_delta(&self, cx: &Context<'_>) -> Vec<(u32, i32)> {
        let delta =
            |&k: &u32| (k, self.totals[k as usize].wrapping_sub(cx.totals[k as usize]) as i32);
        self.moved.iter().map(delta).filter(|&(_, by)| by != 0).collect()
    }

    /// Asks for what is kept of a topic ahead of its use.
    #[inline(always)]
    pub fn prefetch<L: Lanes>(&self, l: L, topic: usize) {
        l.prefetch(&self.counts, topic);
        l.prefetch(&self.totals, topic);
    }

    /// 1 / (C_k + Vβ) of `topic`.
    #[inline(always)]
    pub fn inverse(&self, topic: usize) -> f32 {
        if Self::LARGE { reciprocal(self.totals[topic], self.norm) } else { self.inverse[topic] }
    }

    /// Sets b_k = (C_wk + β) / (C_k + Vβ) of all topics.
    #[inline(always)]
    pub fn fill_leaves<L: Lanes>(&self, l: L, beta: f32, leaves: &mut [[f32; LANES]]) {
        let (counts, _) = self.counts.as_chunks::<LANES>();
        let (totals, _) = self.totals.as_chunks::<LANES>();
        let (inverse, _) = self.inverse.as_chunks::<LANES>();
        let (norm, beta, one) = (l.splat_f(self.norm), l.splat_f(beta), l.splat_f(1.0));
        // Leaves past K get a value too: α is zero there, and no row has a count.
        for (c, leaf) in leaves.iter_mut().enumerate() {
            let inverse = if Self::LARGE {
                l.div_f(one, l.add_f(l.to_f(l.load_u(&totals[c])), norm))
            } else {
                l.load_f(&inverse[c])
            };
            let sum = l.add_f(l.to_f(l.load_u(&counts[c])), beta);
            l.store_f(leaf, l.mul_f(sum, inverse));
        }
    }

    /// What follows of the counts `count` in C_w and `total` in C_k.
    #[inline(always)]
    pub fn topic(&self, count: u32, total: u32, beta: f32) -> LiveTopic {
        let inverse = reciprocal(total, self.norm);
        LiveTopic { count, total, inverse, leaf: (count as f32 + beta) * inverse }
    }

    /// Sets the counts of `topic`.
    #[inline(always)]
    pub fn set(&mut self, topic: usize, LiveTopic { count, total, inverse, .. }: LiveTopic) {
        self.counts[topic] = count;
        self.totals[topic] = total;
        if !Self::LARGE {
            self.inverse[topic] = inverse;
        }
        let (word, bit) = (&mut self.has_moved[topic / 64], 1 << (topic % 64));
        if *word & bit == 0 {
            *word |= bit;
            self.moved.push(topic as u32);
        }
    }

    /// Enters a word: its row goes into `counts`. Returns whether the row is sparse, and then lists
    /// its topics in `nonzeros`.
    #[inline(always)]
    pub fn load<L: Lanes>(&mut self, l: L, rows: &mut Rows<T>, row: usize) -> bool {
        match rows.row_mut(row) {
            RowMut::Sparse(sparse) => {
                self.nonzeros.clear();
                for i in 1..=sparse.len() {
                    let (topic, count) = sparse.entry(i);
                    if Self::LARGE && i + AHEAD <= sparse.len() {
                        self.prefetch(l, sparse.entry(i + AHEAD).0 as usize);
                    }
                    self.counts[topic as usize] = count;
                    self.nonzeros.push(topic);
                }
                true
            }
            RowMut::Dense16(lines) => {
                let (counts, _) = self.counts.as_chunks_mut::<LANES>();
                for (to, from) in counts.iter_mut().zip(halves(lines)) {
                    l.store_u(to, l.load_u16(from));
                }
                false
            }
            RowMut::Dense32(lines) => {
                let (counts, _) = self.counts.as_chunks_mut::<LANES>();
                for (to, from) in counts.iter_mut().zip(lines) {
                    l.store_u(to, l.load_u(&from.0));
                }
                false
            }
        }
    }

    /// Leaves a word: writes the row back. `counts` is zero again where the row is sparse; a dense
    /// row leaves its counts behind for [`clear_dense`](Self::clear_dense) or the next dense load.
    #[inline(always)]
    pub fn store(&mut self, rows: &mut Rows<T>, row: usize) {
        match rows.row_mut(row) {
            RowMut::Sparse(mut sparse) => {
                let before = sparse.len();
                let mut len = 0;
                for &topic in &self.nonzeros {
                    // A topic that went to zero and came back is listed twice; the second time its
                    // count has been taken.
                    let count = std::mem::take(&mut self.counts[topic as usize]);
                    if count > 0 {
                        len += 1;
                        sparse.set(len, topic, count);
                    }
                }
                for i in len + 1..=before {
                    sparse.set(i, 0, 0);
                }
                sparse.set(0, len as u32, 0);
            }
            RowMut::Dense16(lines) => {
                let (counts, _) = self.counts.as_chunks::<2>();
                for (pair, to) in counts.iter().zip(lines.iter_mut().flat_map(|line| &mut line.0)) {
                    *to = pair[0] | pair[1] << 16;
                }
            }
            RowMut::Dense32(lines) => {
                let (counts, _) = self.counts.as_chunks::<LANES>();
                for (counts, line) in counts.iter().zip(lines) {
                    line.0 = *counts;
                }
            }
        }
    }

    /// Zeroes `counts` after a dense row.
    pub fn clear_dense(&mut self) {
        self.counts.fill(0);
    }
}

/// A topic's counts for the word being visited, and what follows of them.
#[derive(Clone, Copy)]
pub(super) struct LiveTopic {
    /// C_wk.
    pub count: u32,
    /// C_k.
    pub total: u32,
    /// 1 / (C_k + Vβ).
    inverse: f32,
    /// b_k = (C_wk + β) / (C_k + Vβ).
    pub leaf: f32,
}

/// 1 / (C_k + Vβ).
#[inline(always)]
fn reciprocal(total: u32, norm: f32) -> f32 {
    1.0 / (total as f32 + norm)
}

/// What [`Live::begin_block`] set back.
#[derive(Debug)]
pub(super) enum Reset {
    /// Every topic.
    All,
    /// These.
    Topics(Vec<u32>),
}

/// Lines of a 16-bit dense row, sixteen counts at a time.
#[inline(always)]
pub(super) fn halves(lines: &[Line]) -> impl Iterator<Item = &[u32; LANES / 2]> {
    lines.iter().flat_map(|line| line.0.as_chunks::<{ LANES / 2 }>().0)
}

/// A dense row of either width.
pub(super) trait DenseRow {
    fn get(&self, topic: usize) -> u32;
    /// Adds `by`, which may be −1 as a wrapping word, to a count. Writes the whole vector that a scan
    /// reads: a load cannot be served from a narrower store still under way.
    fn add<L: Lanes>(&mut self, l: L, topic: usize, by: u16);
    /// The `N` chunks from `first` on.
    fn chunks<L: Lanes, const N: usize>(&self, l: L, first: usize) -> [L::U; N];
}

pub(super) struct Half<'a>(pub &'a mut [Line]);
pub(super) struct Full<'a>(pub &'a mut [Line]);

impl DenseRow for Half<'_> {
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

impl DenseRow for Full<'_> {
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
