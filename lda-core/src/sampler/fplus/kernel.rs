//! The walk over a block. See the [parent module](super) for the algorithm.

use super::FPlusScratch;
use super::tree::LeafWeights;
use crate::counts::{Form, RowMut, Rows, SparseMut, TopicIndex};
use crate::layout::Visit;
use crate::random::{Purpose, Xoshiro256PlusPlus};
use crate::sampler::draw::DenseWeights;
use crate::sampler::gibbs::{DenseRow, Full, Half, LiveTopic, Reset};
use crate::sampler::{Context, GridBlock, Outcome};
use crate::simd::{Kernel, LANES, Lanes, Line};

/// Documents whose rows are asked for ahead.
const AHEAD: usize = 8;

/// One block.
pub(super) struct SampleBlock<'a, 'b, T> {
    pub pass: u32,
    pub cx: &'a Context<'a>,
    pub scratch: &'a mut FPlusScratch<T>,
    pub block: GridBlock<'b, T>,
}

impl<T: TopicIndex> Kernel for SampleBlock<'_, '_, T> {
    type Output = Outcome;

    #[inline(always)]
    fn run<L: Lanes>(self, l: L) -> Outcome {
        let Self { pass, cx, scratch, block } = self;
        let rng = cx.stream(pass, block.key, Purpose::Draw).stream();
        let beta = cx.beta as f32;
        let alpha = LeafWeights { padded: cx.alpha, symmetric: cx.alpha_symmetric };
        let mut walk = Walk { l, cx, alpha, beta, scratch: &mut *scratch, rng, changed: 0 };
        walk.begin_block();
        let mut start = 0;
        let tokens = block.z.len();
        for &Visit { row, end } in block.visits {
            let slots = start..end as usize;
            start = end as usize;
            walk.enter(block.words, row as usize);
            for i in slots {
                if let Some(&ahead) = block.partner.get(i + AHEAD) {
                    block.documents.prefetch(l, ahead as usize);
                }
                if let Some(own) = block.z.get(i + AHEAD)
                    && size_of::<T>() > 2
                {
                    // Arrays over so many topics are not in cache.
                    walk.scratch.live.prefetch(l, own.get() as usize);
                }
                let own = block.z[i].get();
                let document = block.partner[i] as usize;
                let new = match block.documents.row_mut(document) {
                    RowMut::Sparse(row) => match walk.sparse(row, own) {
                        Drawn::Counted(new) => new,
                        Drawn::NoRoom(new) => {
                            block.documents.densify(document);
                            block.documents.increment(document, new);
                            new
                        }
                    },
                    RowMut::Dense16(lines) => walk.dense(Half(lines), own),
                    RowMut::Dense32(lines) => walk.dense(Full(lines), own),
                };
                block.z[i] = T::new(new);
            }
            walk.leave(block.words, row as usize);
        }
        let changed = walk.changed;
        Outcome {
            totals: scratch.live.totals_delta(cx),
            tokens: tokens as u64,
            changed,
            ..Outcome::default()
        }
    }
}

/// A topic drawn for a token of a sparse row.
enum Drawn {
    /// And counted in the row.
    Counted(u32),
    /// But the row is full: the old topic is out, the new one not in.
    NoRoom(u32),
}

struct Walk<'a, L, T> {
    l: L,
    cx: &'a Context<'a>,
    alpha: LeafWeights<'a>,
    beta: f32,
    scratch: &'a mut FPlusScratch<T>,
    rng: Xoshiro256PlusPlus,
    changed: u64,
}

impl<L: Lanes, T: TopicIndex> Walk<'_, L, T> {
    /// Totals are the wave's; leaves and sums follow.
    #[inline(always)]
    fn begin_block(&mut self) {
        let l = self.l;
        let FPlusScratch { live, tree, sums_valid, at_base, .. } = &mut *self.scratch;
        match live.begin_block(self.cx) {
            Reset::Topics(topics) if *at_base => {
                for topic in topics {
                    let k = topic as usize;
                    tree.set_leaf(l, k, self.beta * live.inverse(k));
                }
            }
            _ => *at_base = false,
        }
        // Sums are re-added from the leaves in every block that needs them: carried from block to
        // block they would depend on which thread had which.
        *sums_valid = false;
        self.unload_dense();
    }

    /// Sets all leaves to β/(C_k + Vβ) where they are not, after a dense row.
    #[inline(always)]
    fn unload_dense(&mut self) {
        let l = self.l;
        let FPlusScratch { live, tree, sums_valid, at_base, .. } = &mut *self.scratch;
        if *at_base {
            return;
        }
        live.clear_dense();
        live.fill_leaves(l, self.beta, tree.leaves.as_chunks_mut::<LANES>().0);
        *at_base = true;
        *sums_valid = false;
    }

    /// Loads a word.
    #[inline(always)]
    fn enter(&mut self, rows: &mut Rows<T>, row: usize) {
        if matches!(rows.form_of(row), Form::Sparse) {
            self.unload_dense();
        }
        let (l, alpha) = (self.l, self.alpha);
        let FPlusScratch { live, tree, sums_valid, at_base, .. } = &mut *self.scratch;
        if live.load(l, rows, row) {
            let few = live.nonzeros.len() * 8 <= self.cx.topics;
            if *sums_valid && few {
                for &topic in &live.nonzeros {
                    let k = topic as usize;
                    let leaf = (live.counts[k] as f32 + self.beta) * live.inverse(k);
                    tree.update(l, k, leaf, alpha.of(k));
                }
            } else {
                for &topic in &live.nonzeros {
                    let k = topic as usize;
                    tree.set_leaf(l, k, (live.counts[k] as f32 + self.beta) * live.inverse(k));
                }
                *sums_valid = false;
            }
        } else {
            live.fill_leaves(l, self.beta, tree.leaves.as_chunks_mut::<LANES>().0);
            *at_base = false;
            *sums_valid = false;
        }
    }

    /// Unloads a word.
    #[inline(always)]
    fn leave(&mut self, rows: &mut Rows<T>, row: usize) {
        let (l, alpha) = (self.l, self.alpha);
        let FPlusScratch { live, tree, sums_valid, at_base, .. } = &mut *self.scratch;
        live.store(rows, row);
        if !*at_base {
            return;
        }
        if live.nonzeros.len() * 8 > self.cx.topics {
            *sums_valid = false;
        }
        for &topic in &live.nonzeros {
            let k = topic as usize;
            let leaf = self.beta * live.inverse(k);
            if *sums_valid {
                tree.update(l, k, leaf, alpha.of(k));
            } else {
                tree.set_leaf(l, k, leaf);
            }
        }
    }

    #[inline(always)]
    fn take_out(&self, own: usize) -> LiveTopic {
        let live = &self.scratch.live;
        live.topic(live.counts[own] - 1, live.totals[own] - 1, self.beta)
    }

    /// Carries out what [`take_out`](Self::take_out) foresaw.
    #[inline(always)]
    fn commit_removal(&mut self, own: usize, out: LiveTopic, sums: bool) {
        let l = self.l;
        let FPlusScratch { live, tree, .. } = &mut *self.scratch;
        live.set(own, out);
        if sums {
            tree.update(l, own, out.leaf, self.alpha.of(own));
        } else {
            tree.set_leaf(l, own, out.leaf);
        }
    }

    /// Puts the token back with topic `new`.
    #[inline(always)]
    fn put_back(&mut self, new: usize, sums: bool) {
        let l = self.l;
        let FPlusScratch { live, tree, at_base, .. } = &mut *self.scratch;
        let count = live.counts[new] + 1;
        if *at_base && count == 1 {
            live.nonzeros.push(new as u32);
        }
        let total = live.totals[new] + 1;
        let topic = live.topic(count, total, self.beta);
        live.set(new, topic);
        if sums {
            tree.update(l, new, topic.leaf, self.alpha.of(new));
        } else {
            tree.set_leaf(l, new, topic.leaf);
        }
    }

    /// Resamples a token of a document with a sparse row.
    #[inline(always)]
    fn sparse(&mut self, mut row: SparseMut<'_, T>, own: u32) -> Drawn {
        let l = self.l;
        if !self.scratch.sums_valid {
            self.scratch.tree.rebuild(l, self.cx.alpha);
            self.scratch.sums_valid = true;
        }
        let o = own as usize;
        let out = self.take_out(o);
        let FPlusScratch { tree, draw, .. } = &mut *self.scratch;
        let scan = draw.scan::<L, T>(l, row.lines, row.chunks(), &tree.leaves, own, out.leaf);
        let document = f64::from(scan.sum);
        let prior = tree.total() + tree.difference(o, out.leaf, self.alpha.of(o));
        let u = self.rng.next_f64() * (document + prior);
        if u < document {
            let at = draw.locate(l, &scan, u);
            let (new, count) = row.entry(at);
            if new == own {
                return Drawn::Counted(own);
            }
            row.set(at, new, count + 1);
            row.decrement_at(scan.own);
            self.commit_removal(o, out, true);
            self.put_back(new as usize, true);
            self.changed += 1;
            Drawn::Counted(new)
        } else {
            self.commit_removal(o, out, true);
            let new = self.scratch.tree.locate(l, self.alpha, u - document) as u32;
            self.put_back(new as usize, true);
            if new != own {
                self.changed += 1;
                row.decrement_at(scan.own);
                match find::<L, T>(l, row.lines, row.chunks(), new) {
                    Some(at) => {
                        let count = row.entry(at).1;
                        row.set(at, new, count + 1);
                    }
                    None if row.len() == Rows::<T>::flexible_capacity(self.cx.topics) => {
                        return Drawn::NoRoom(new);
                    }
                    None => row.append(new),
                }
            }
            Drawn::Counted(new)
        }
    }

    /// Resamples a token of a document with a dense row.
    #[inline(always)]
    fn dense(&mut self, mut row: impl DenseRow, own: u32) -> u32 {
        let l = self.l;
        let o = own as usize;
        let out = self.take_out(o);
        let FPlusScratch { tree, draw, .. } = &mut *self.scratch;
        let chunks = self.cx.topics.div_ceil(LANES);
        let leaves = &tree.leaves.as_chunks::<LANES>().0[..chunks];
        let alpha = &self.cx.alpha.as_chunks::<LANES>().0[..chunks];
        let own_weight = ((row.get(o) - 1) as f32 + self.cx.alpha[o]) * out.leaf;
        let weights = DenseWeights { row: &row, alpha, leaves, own: o, own_weight };
        let uniform = self.rng.next_f64();
        let new = draw.draw_dense(l, chunks, &weights, uniform);
        if new == o {
            return own;
        }
        row.add(l, o, 1u16.wrapping_neg());
        row.add(l, new, 1);
        // Sums that a sparse row has needed in this visit may be needed by another.
        let sums = self.scratch.sums_valid;
        self.commit_removal(o, out, sums);
        self.put_back(new, sums);
        self.changed += 1;
        new as u32
    }
}

/// Entry of `topic` in a sparse row.
#[inline(always)]
fn find<L: Lanes, T: TopicIndex>(l: L, lines: &[Line], chunks: usize, topic: u32) -> Option<usize> {
    let (topic, zero) = (l.splat_u(topic), l.splat_f(0.0));
    for c in 0..chunks {
        let (topics, counts) = T::chunk(l, lines, c);
        let hit = l.eq_u(topics, topic) & l.gt_f(l.to_f(counts), zero);
        if hit != 0 {
            return Some(c * LANES + hit.trailing_zeros() as usize);
        }
    }
    None
}
