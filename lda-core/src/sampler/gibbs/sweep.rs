//! The sweep over a block. The [parent module](super) has the formulas.
//!
//! ```text
//! for each row of the visited axis:
//!     b_k ← (count + prior)/(C_k + Vβ) at the row's non-zeros      (prior/(C_k + Vβ) elsewhere)
//!     for each of its tokens, whose partner is p and whose topic is o:
//!         take the token out: both rows, C_o, b_o                                            (a)
//!         r ← Σ over the non-zeros of p's row of count · b_k                                 (b)
//!         u ← uniform in [0, r + Σ partner's prior · b_k)
//!         t ← if u < r: search the scan, else: the second part                                      (c)
//!         put the token back with topic t                                                    (d)
//!     b_k ← prior/(C_k + Vβ) at the row's non-zeros
//! ```
//!
//! 1. (a) and (d) are skipped if t = o, as for every second token once the chain has settled: the
//!    scan leaves the token out on the fly, and only a change of topic writes to memory.
//! 2. (b) runs over sixteen entries at a time and adds *by lane*; (c) first finds the lane, then
//!    the entry in it. The order of additions is fixed, and no branch depends on the entry.
//! 3. A partner that has a large share of all K topics has a dense row. Its tokens are drawn from
//!    all K weights (count + prior) b_k in one contiguous scan, which reads no indices and needs no
//!    second part. The form of a row is chosen at the start of the epoch, as the one that is faster
//!    to scan. The sums of the second part are not updated in a row whose partners are all dense.

use std::marker::PhantomData;

use super::axis::{Axis, Priors};
use super::other_axis::find;
use super::visited_row::{Reset, TopicEntry, VisitedRow};
use crate::counts::{Form, RowMut, Rows, SparseMut, TopicIndex};
use crate::layout::RowRun;
use crate::random::{Purpose, Xoshiro256PlusPlus};
use crate::sampler::dense_row::{DenseRow, Row16, Row32};
use crate::sampler::draw::{DenseWeights, DrawScratch};
use crate::sampler::topic_prior::TopicPrior;
use crate::sampler::{Context, GridBlock, Outcome, padded};
use crate::simd::{Aligned, LANES, Lanes, SimdKernel};

/// Distance of prefetches, in tokens.
const AHEAD: usize = 8;

/// The second part of the conditional, which is not scanned: its sum over all topics, and draws
/// from it. Topic k has weight `weight(k) · leaf(k)`.
pub(in crate::sampler) trait SmoothingBucket<T: TopicIndex>:
    std::fmt::Debug + Send
{
    /// Whether draws walk [`VisitedRow::nonzeros`], which must then list no topic twice.
    const WALKS_NONZEROS: bool;

    /// Creates the sums for `topics` topics.
    fn new(topics: usize) -> Self;

    /// A block begins.
    #[inline(always)]
    fn begin_block(&mut self, _cx: &Context<'_>, _priors: &Priors<'_>) {}

    /// Row `row` has been loaded.
    #[inline(always)]
    fn enter(&mut self, _live: &VisitedRow<T>, _row: &RowMut<'_, T>, _priors: &Priors<'_>) {}

    /// Chooses the part that a token is drawn from. `unscanned` is [`total`](Self::total) without the
    /// token.
    #[inline(always)]
    fn choose<L: Lanes>(
        &mut self,
        _l: L,
        _live: &VisitedRow<T>,
        (scanned, unscanned): (f64, f64),
        _own: (u32, TopicEntry),
        rng: &mut Xoshiro256PlusPlus,
    ) -> Part {
        let u = rng.next_f64() * (scanned + unscanned);
        if u < scanned { Part::Scanned(u) } else { Part::Smoothing(u - scanned) }
    }

    /// Recomputes the sums from the leaves.
    fn rebuild<L: Lanes>(&mut self, l: L, leaves: &[[f32; LANES]], weights: TopicPrior<'_>);

    /// Sum of all weights.
    fn total(&self) -> f64;

    /// The weight of `topic` changes by `by`.
    fn change(&mut self, topic: usize, by: f64);

    /// The topic at `u` of the total; one of positive weight whatever `u` is.
    fn locate<L: Lanes>(
        &self,
        l: L,
        leaves: &[[f32; LANES]],
        live: &VisitedRow<T>,
        priors: &Priors<'_>,
        u: f64,
    ) -> usize;
}

/// The part that a draw ends in.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(in crate::sampler) enum Part {
    /// The scanned part, at this point of its sum.
    Scanned(f64),
    /// The smoothing bucket, at this point of its total without the token.
    Smoothing(f64),
    /// A topic that is known already.
    Topic(u32),
}

/// Arrays over topics of one thread.
#[derive(Debug)]
pub(in crate::sampler) struct SweepScratch<T, R> {
    live: VisitedRow<T>,
    /// b_k, zero past K.
    leaves: Aligned<f32>,
    smoothing: R,
    draw: DrawScratch,
    /// INVARIANT: if set, the sums of `smoothing` match `leaves`.
    sums_valid: bool,
    /// INVARIANT: if set, leaves of topics that the loaded row lacks are prior/(C_k + Vβ).
    at_base: bool,
}

impl<T: TopicIndex, R: SmoothingBucket<T>> SweepScratch<T, R> {
    /// For `topics` topics.
    pub fn new(topics: usize) -> Self {
        let padded = padded(topics);
        Self {
            live: VisitedRow::new(topics),
            leaves: Aligned::new(padded),
            smoothing: R::new(topics),
            draw: DrawScratch::new(padded),
            sums_valid: false,
            at_base: false,
        }
    }
}

/// One block.
struct SampleBlock<'a, 'b, T, A, R> {
    pass: u32,
    cx: &'a Context<'a>,
    scratch: &'a mut SweepScratch<T, R>,
    block: GridBlock<'b, T>,
    axis: PhantomData<A>,
}

/// Resamples the tokens of `block` in pass number `pass`.
pub(in crate::sampler) fn sweep_block<T: TopicIndex, A: Axis, R: SmoothingBucket<T>>(
    pass: usize,
    cx: &Context<'_>,
    scratch: &mut SweepScratch<T, R>,
    block: GridBlock<'_, T>,
) -> Outcome {
    let pass = pass as u32;
    cx.isa.run(SampleBlock { pass, cx, scratch, block, axis: PhantomData::<A> })
}

impl<T: TopicIndex, A: Axis, R: SmoothingBucket<T>> SimdKernel for SampleBlock<'_, '_, T, A, R> {
    type Output = Outcome;

    #[inline(always)]
    fn run<L: Lanes>(self, l: L) -> Outcome {
        let Self { pass, cx, scratch, block, .. } = self;
        let rng = cx.stream(pass, block.key, Purpose::Draw).stream();
        let (rows, partners) = A::rows(block.words, block.documents);
        let mut sweep =
            Sweep { l, cx, priors: A::priors(cx), scratch: &mut *scratch, rng, changed: 0 };
        sweep.begin_block();
        sweep.scratch.smoothing.begin_block(cx, &sweep.priors);
        let mut start = 0;
        let tokens = block.z.len();
        for &RowRun { row, end } in block.visits {
            let slots = start..end as usize;
            start = end as usize;
            sweep.enter(rows, row as usize);
            for i in slots {
                // PERF: partners' rows are scattered over memory, so that each would be a cache miss.
                if let Some(&ahead) = block.partner.get(i + AHEAD) {
                    partners.prefetch(l, ahead as usize);
                }
                if let Some(own) = block.z.get(i + AHEAD)
                    && size_of::<T>() > 2
                {
                    // With 32-bit topics the arrays over topics are not in cache.
                    sweep.scratch.live.prefetch(l, own.get() as usize);
                }
                let own = block.z[i].get();
                let partner = block.partner[i] as usize;
                let new = match partners.row_mut(partner) {
                    RowMut::Sparse(row) => match sweep.sparse(row, own) {
                        Drawn::Counted(new) => new,
                        Drawn::NoRoom(new) => {
                            partners.densify(partner);
                            partners.increment(partner, new);
                            new
                        }
                    },
                    RowMut::Dense16(lines) => sweep.dense(Row16(lines), own),
                    RowMut::Dense32(lines) => sweep.dense(Row32(lines), own),
                };
                block.z[i] = T::new(new);
            }
            sweep.leave(rows, row as usize);
        }
        let changed = sweep.changed;
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
    /// The topic is counted in the row.
    Counted(u32),
    /// The row is full: the old topic is taken out, the new one not counted yet.
    NoRoom(u32),
}

struct Sweep<'a, L, T, R> {
    l: L,
    cx: &'a Context<'a>,
    priors: Priors<'a>,
    scratch: &'a mut SweepScratch<T, R>,
    rng: Xoshiro256PlusPlus,
    changed: u64,
}

impl<L: Lanes, T: TopicIndex, R: SmoothingBucket<T>> Sweep<'_, L, T, R> {
    /// Resets totals to those of the wave, and the leaves that depend on them.
    #[inline(always)]
    fn begin_block(&mut self) {
        let (l, prior) = (self.l, self.priors.visited);
        let SweepScratch { live, leaves, sums_valid, at_base, .. } = &mut *self.scratch;
        match live.begin_block(self.cx) {
            // PERF: within a wave only the leaves of the last block's own changes differ.
            Reset::Topics(topics) if *at_base => {
                for topic in topics {
                    let k = topic as usize;
                    set_leaf(l, leaves, k, prior.of(k) * live.inverse(k));
                }
            }
            _ => *at_base = false,
        }
        // INVARIANT: sums are recomputed from the leaves in every block that needs them. Carried from
        // block to block, they would depend on the blocks that the thread had before.
        *sums_valid = false;
        self.unload_dense();
    }

    /// Sets all leaves to prior/(C_k + Vβ) where they are not, after a dense row.
    #[inline(always)]
    fn unload_dense(&mut self) {
        if self.scratch.at_base {
            return;
        }
        self.scratch.live.clear_dense();
        self.fill_leaves();
        self.scratch.at_base = true;
    }

    /// Sets all leaves by the counts loaded.
    #[inline(always)]
    fn fill_leaves(&mut self) {
        let SweepScratch { live, leaves, sums_valid, .. } = &mut *self.scratch;
        let leaves = leaves.as_chunks_mut::<LANES>().0;
        live.fill_leaves(self.l, self.priors.visited, leaves, self.cx.topics);
        *sums_valid = false;
    }

    /// Sets the leaf of `topic`, and updates the sums if they are valid.
    #[inline(always)]
    fn set_leaf(&mut self, topic: usize, leaf: f32) {
        let weight = self.priors.partner.of(topic);
        let SweepScratch { leaves, smoothing, sums_valid, .. } = &mut *self.scratch;
        if *sums_valid {
            smoothing.change(topic, difference(weight, leaves[topic], leaf));
        }
        set_leaf(self.l, leaves, topic, leaf);
    }

    /// Whether the loaded row has so few topics that updating the sums costs less than recomputing
    /// them.
    #[inline(always)]
    fn few(&self) -> bool {
        self.scratch.live.nonzeros.len() * 8 <= self.cx.topics
    }

    /// Loads a row.
    #[inline(always)]
    fn enter(&mut self, rows: &mut Rows<T>, row: usize) {
        if matches!(rows.form_of(row), Form::Sparse) {
            self.unload_dense();
        }
        self.scratch.live.load(self.l, rows, row);
        let SweepScratch { live, smoothing, .. } = &mut *self.scratch;
        smoothing.enter(live, &rows.row_mut(row), &self.priors);
        if self.scratch.live.dense {
            self.fill_leaves();
            self.scratch.at_base = false;
            return;
        }
        // INVARIANT: leaves of other topics are at their base, so that only those of the row change.
        self.scratch.sums_valid &= self.few();
        for i in 0..self.scratch.live.nonzeros.len() {
            let k = self.scratch.live.nonzeros[i] as usize;
            self.set_leaf(k, self.scratch.live.leaf(k, self.priors.visited.of(k)));
        }
    }

    /// Unloads a row.
    #[inline(always)]
    fn leave(&mut self, rows: &mut Rows<T>, row: usize) {
        self.scratch.live.store(rows, row);
        if !self.scratch.at_base {
            return;
        }
        self.scratch.sums_valid &= self.few();
        for i in 0..self.scratch.live.nonzeros.len() {
            let k = self.scratch.live.nonzeros[i] as usize;
            self.set_leaf(k, self.priors.visited.of(k) * self.scratch.live.inverse(k));
        }
    }

    #[inline(always)]
    fn take_out(&self, own: usize) -> TopicEntry {
        let live = &self.scratch.live;
        live.topic(live.counts[own] - 1, live.totals[own] - 1, self.priors.visited.of(own))
    }

    /// Stores the values that [`take_out`](Self::take_out) computed.
    #[inline(always)]
    fn commit_removal(&mut self, own: usize, out: TopicEntry) {
        self.scratch.live.set(own, out);
        self.set_leaf(own, out.leaf);
    }

    /// Puts the token back with topic `new`.
    #[inline(always)]
    fn put_back(&mut self, new: usize) {
        let SweepScratch { live, at_base, .. } = &mut *self.scratch;
        let count = live.counts[new] + 1;
        if *at_base && count == 1 && !(R::WALKS_NONZEROS && live.nonzeros.contains(&(new as u32))) {
            live.nonzeros.push(new as u32);
        }
        let topic = live.topic(count, live.totals[new] + 1, self.priors.visited.of(new));
        live.set(new, topic);
        self.set_leaf(new, topic.leaf);
    }

    /// Resamples a token of a partner with a sparse row.
    #[inline(always)]
    fn sparse(&mut self, mut row: SparseMut<'_, T>, own: u32) -> Drawn {
        let l = self.l;
        let o = own as usize;
        let out = self.take_out(o);
        let weight = self.priors.partner.of(o);
        let SweepScratch { live, leaves, smoothing, draw, sums_valid, .. } = &mut *self.scratch;
        if !*sums_valid {
            smoothing.rebuild(l, leaves.as_chunks().0, self.priors.partner);
            *sums_valid = true;
        }
        // INVARIANT: nothing is written before the topic is drawn. The scan and the total leave the
        // token out by `out` alone, so a token that keeps its topic costs no store.
        let scan = draw.scan::<L, T>(l, row.lines, row.chunks(), leaves, own, out.leaf);
        let scanned = f64::from(scan.sum);
        let unscanned = smoothing.total() + difference(weight, leaves[o], out.leaf);
        let part = smoothing.choose(l, live, (scanned, unscanned), (own, out), &mut self.rng);
        if let Part::Scanned(u) = part {
            let at = draw.locate(l, &scan, u);
            let (new, count) = row.entry(at);
            if new == own {
                return Drawn::Counted(own);
            }
            // INVARIANT: counted first, since a decrement to 0 moves the last entry, perhaps `at`.
            row.set(at, new, count + 1);
            row.decrement_at(scan.own);
            self.commit_removal(o, out);
            self.put_back(new as usize);
            self.changed += 1;
            Drawn::Counted(new)
        } else {
            // INVARIANT: the removal is stored before `locate`, which descends the stored sums.
            self.commit_removal(o, out);
            let SweepScratch { live, leaves, smoothing, .. } = &*self.scratch;
            let leaves = leaves.as_chunks().0;
            let new = match part {
                Part::Topic(topic) => topic,
                Part::Scanned(u) | Part::Smoothing(u) => {
                    smoothing.locate(l, leaves, live, &self.priors, u) as u32
                }
            };
            self.put_back(new as usize);
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

    /// Resamples a token of a partner with a dense row.
    #[inline(always)]
    fn dense(&mut self, mut row: impl DenseRow, own: u32) -> u32 {
        let l = self.l;
        let o = own as usize;
        let out = self.take_out(o);
        let prior = self.priors.partner;
        let SweepScratch { leaves, draw, .. } = &mut *self.scratch;
        let chunks = self.cx.topics.div_ceil(LANES);
        let leaves = &leaves.as_chunks::<LANES>().0[..chunks];
        // INVARIANT: the token is in the row's count, so the subtraction cannot wrap.
        let own_weight = ((row.get(o) - 1) as f32 + prior.of(o)) * out.leaf;
        let weights = DenseWeights { row: &row, prior, leaves, own: o, own_weight };
        let uniform = self.rng.next_f64();
        let new = draw.draw_dense(l, chunks, &weights, uniform);
        if new == o {
            return own;
        }
        row.add(l, o, 1u16.wrapping_neg());
        row.add(l, new, 1);
        self.commit_removal(o, out);
        self.put_back(new);
        self.changed += 1;
        new as u32
    }
}

/// Change of the smoothing total when a leaf of weight `weight` goes from `from` to `to`.
#[inline(always)]
fn difference(weight: f32, from: f32, to: f32) -> f64 {
    f64::from(weight * to) - f64::from(weight * from)
}

/// Sets a leaf. Writes its whole vector: the next scan loads vectors, and a load cannot be forwarded
/// from a narrower store.
#[inline(always)]
fn set_leaf<L: Lanes>(l: L, leaves: &mut Aligned<f32>, topic: usize, leaf: f32) {
    let (chunks, _) = leaves.as_chunks_mut::<LANES>();
    let chunk = &mut chunks[topic / LANES];
    let leaves = l.select_f(1 << (topic % LANES), l.splat_f(leaf), l.load_f(chunk));
    l.store_f(chunk, leaves);
}
