//! Counts of the word or document being visited, in a dense scratch; and the totals C_k, as of the
//! wave's start plus the block's own changes.
//!
//! Entering a row spreads it over `counts`, and leaving writes it back. For a sparse row both cost
//! O(non-zeros of the row).

use std::marker::PhantomData;

use crate::counts::{Form, RowMut, Rows, TopicIndex};
use crate::sampler::dense_row::halves;
use crate::sampler::topic_prior::TopicPrior;
use crate::sampler::{Context, padded};
use crate::simd::{Aligned, LANES, Lanes};

/// Distance of prefetches in entries of a row, if arrays over topics are not in cache.
const AHEAD: usize = 8;

/// Per-thread state of a Gibbs sampler: arrays over topics, [`padded`].
#[derive(Debug)]
pub(in crate::sampler) struct VisitedRow<T> {
    /// Counts of the word or document being visited.
    pub counts: Aligned<u32>,
    /// C_k: the wave's plus the block's own changes.
    pub totals: Aligned<u32>,
    /// 1 / (C_k + Vβ), updated with `totals`. Empty if there are so many topics that another array
    /// means another cache miss, which takes longer than a division.
    inverse: Aligned<f32>,
    /// Topics that `counts` may hold, while a sparse row is loaded.
    pub nonzeros: Vec<u32>,
    /// Whether the row last loaded is dense.
    pub dense: bool,
    /// Topics whose total has changed in this block, as a list and as a bit set with 64 topics per
    /// word.
    moved: Vec<u32>,
    has_moved: Vec<u64>,
    /// Wave that `totals` belongs to.
    wave: Option<u64>,
    /// Vβ.
    norm: f32,
    topic_index: PhantomData<T>,
}

impl<T: TopicIndex> VisitedRow<T> {
    /// Whether arrays over topics do not fit the caches.
    pub const LARGE: bool = size_of::<T>() > 2;

    pub fn new(topics: usize) -> Self {
        let len = padded(topics);
        Self {
            counts: Aligned::new(len),
            totals: Aligned::new(len),
            inverse: Aligned::new(if Self::LARGE { 0 } else { len }),
            nonzeros: Vec::new(),
            dense: false,
            moved: Vec::new(),
            has_moved: vec![0; len.div_ceil(64)],
            wave: None,
            norm: 0.0,
            topic_index: PhantomData,
        }
    }

    /// Starts a block: resets totals to those of the wave. Returns the topics whose totals changed.
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

    /// Prefetches the counts of a topic.
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

    /// 1 / (C_k + Vβ) of the sixteen topics of chunk `c`.
    #[inline(always)]
    pub fn inverse_chunk<L: Lanes>(&self, l: L, c: usize) -> L::F {
        if Self::LARGE {
            let (totals, _) = self.totals.as_chunks::<LANES>();
            let sum = l.add_f(l.to_f(l.load_u(&totals[c])), l.splat_f(self.norm));
            l.div_f(l.splat_f(1.0), sum)
        } else {
            l.load_f(&self.inverse.as_chunks::<LANES>().0[c])
        }
    }

    /// b_k of `topic`.
    #[inline(always)]
    pub fn leaf(&self, topic: usize, prior: f32) -> f32 {
        (self.counts[topic] as f32 + prior) * self.inverse(topic)
    }

    /// Sets b_k = (count + prior) / (C_k + Vβ) of all topics, 0 past K.
    #[inline(always)]
    pub fn fill_leaves<L: Lanes>(
        &self,
        l: L,
        prior: TopicPrior<'_>,
        leaves: &mut [[f32; LANES]],
        topics: usize,
    ) {
        let (counts, _) = self.counts.as_chunks::<LANES>();
        for (c, leaf) in leaves.iter_mut().enumerate() {
            let inverse = self.inverse_chunk(l, c);
            let sum = l.add_f(l.to_f(l.load_u(&counts[c])), prior.chunk(l, c));
            l.store_f(leaf, l.mul_f(sum, inverse));
        }
        leaves.as_flattened_mut()[topics..].fill(0.0);
    }

    /// The entry of a topic with `count` in the row and `total` in C_k.
    #[inline(always)]
    pub fn topic(&self, count: u32, total: u32, prior: f32) -> TopicEntry {
        let inverse = reciprocal(total, self.norm);
        TopicEntry { count, total, inverse, leaf: (count as f32 + prior) * inverse }
    }

    /// Sets the counts of `topic`.
    #[inline(always)]
    pub fn set(&mut self, topic: usize, TopicEntry { count, total, inverse, .. }: TopicEntry) {
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

    /// Enters a row: it goes into `counts`. The topics of a sparse one
    /// are listed in `nonzeros`.
    #[inline(always)]
    pub fn load<L: Lanes>(&mut self, l: L, rows: &mut Rows<T>, row: usize) {
        self.dense = !matches!(rows.form_of(row), Form::Sparse);
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
            }
            RowMut::Dense16(lines) => {
                let (counts, _) = self.counts.as_chunks_mut::<LANES>();
                for (to, from) in counts.iter_mut().zip(halves(lines)) {
                    l.store_u(to, l.load_u16(from));
                }
            }
            RowMut::Dense32(lines) => {
                let (counts, _) = self.counts.as_chunks_mut::<LANES>();
                for (to, from) in counts.iter_mut().zip(lines) {
                    l.store_u(to, l.load_u(&from.0));
                }
            }
        }
    }

    /// Leaves a row: writes it back. After a sparse row `counts` is zero again; a dense row leaves
    /// its counts in place for [`clear_dense`](Self::clear_dense) or the next dense load.
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

/// Counts of a topic for the visited row, and values computed from them.
#[derive(Clone, Copy)]
pub(in crate::sampler) struct TopicEntry {
    /// Count in the row.
    pub count: u32,
    /// C_k.
    pub total: u32,
    /// 1 / (C_k + Vβ).
    pub inverse: f32,
    /// b_k = (count + prior) / (C_k + Vβ).
    pub leaf: f32,
}

/// 1 / (C_k + Vβ).
#[inline(always)]
fn reciprocal(total: u32, norm: f32) -> f32 {
    1.0 / (total as f32 + norm)
}

/// Topics that [`VisitedRow::begin_block`] reset.
#[derive(Debug)]
pub(in crate::sampler) enum Reset {
    /// Every topic.
    All,
    /// These topics.
    Topics(Vec<u32>),
}
