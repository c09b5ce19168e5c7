//! One word or one document: judge the pending proposals, draw new ones.

use crate::discrete::AliasTable;
use crate::random::{WideState, WideXoshiro};
use crate::sampler::{Context, Outcome, padded};
use crate::simd::{Aligned, LANES, Lanes};

/// A row longer than this share of K is weighed topic by topic, a shorter one token by token.
const DENSE_SHARE: usize = 2;

/// Per-thread state of [`Warp`](super::Warp).
#[derive(Debug)]
pub struct WarpScratch {
    topics: usize,
    /// Tokens of the row a topic; zero between rows.
    counts: Aligned<u32>,
    /// β or α_k of the pass.
    prior: Aligned<f32>,
    /// 1 / (C_k + Vβ) of the pass.
    inverse: Aligned<f32>,
    /// f(k) of a topic without tokens, prior · inverse.
    base: Aligned<f32>,
    /// f(k) = (count + prior) · inverse; equals `base` between rows.
    weight: Aligned<f32>,
    /// f(k) for a token that has topic k itself; only valid at topics of the row.
    own: Aligned<f32>,
    /// 1 / (C_k + Vβ) as `own` wants it.
    own_inverse: Aligned<f32>,
    /// Tokens that a token takes out of its own topic's count: 1, or 0 to count itself.
    own_token: f32,
    /// Draws from α where it is not symmetric.
    alias: Option<AliasTable>,
    /// Topics of the row's tokens, the movable ones first, before and after judging. Room for a
    /// whole vector past the end, as in all per-token buffers.
    pub(super) z: Vec<u32>,
    pub(super) next: Vec<u32>,
    /// Proposals: all tokens' first ones, then all second ones, ...; `stride` apart.
    pub(super) pending: Vec<u32>,
    pub(super) stride: usize,
    /// Topics left and entered, by moves.
    left: Vec<u32>,
    entered: Vec<u32>,
    /// Change of C_k by the block, and the topics it touched.
    gained: Vec<i32>,
    touched: Vec<u32>,
    is_touched: Vec<bool>,
}

/// What the proposals of a pass are drawn from beside the row's own tokens.
#[derive(Clone, Copy, Debug)]
pub(super) struct Mixture {
    /// Kβ or Σ α_k.
    pub prior_sum: f64,
    /// Whether the prior is one value for all topics.
    pub symmetric: bool,
}

/// Streams of a block, in registers.
#[derive(Clone, Copy, Debug)]
pub(super) struct Streams<L: Lanes> {
    pub accept: WideState<L>,
    pub propose: WideState<L>,
}

impl<L: Lanes> Streams<L> {
    #[inline(always)]
    pub fn new(l: L, accept: &WideXoshiro, propose: &WideXoshiro) -> Self {
        Self { accept: accept.load(l), propose: propose.load(l) }
    }
}

impl WarpScratch {
    pub(super) fn new(topics: usize) -> Self {
        let len = padded(topics);
        Self {
            topics,
            counts: Aligned::new(len),
            prior: Aligned::new(len),
            inverse: Aligned::new(len),
            base: Aligned::new(len),
            weight: Aligned::new(len),
            own: Aligned::new(len),
            own_inverse: Aligned::new(len),
            own_token: 1.0,
            alias: None,
            z: Vec::new(),
            next: Vec::new(),
            pending: Vec::new(),
            stride: 0,
            left: Vec::new(),
            entered: Vec::new(),
            gained: vec![0; len],
            touched: Vec::new(),
            is_touched: vec![false; len],
        }
    }

    /// Starts a block: totals and prior of the pass.
    pub(super) fn begin_block(
        &mut self,
        cx: &Context<'_>,
        words: bool,
        count_own: bool,
    ) -> Mixture {
        let norm = cx.beta_bar as f32;
        self.own_token = if count_own { 0.0 } else { 1.0 };
        for (inverse, &total) in self.own_inverse.iter_mut().zip(cx.totals) {
            // Topics without tokens are nobody's own.
            *inverse = 1.0 / ((total as f32 - self.own_token).max(0.0) + norm);
        }
        for (inverse, &total) in self.inverse.iter_mut().zip(cx.totals) {
            *inverse = 1.0 / (total as f32 + norm);
        }
        if words {
            self.prior[..self.topics].fill(cx.beta as f32);
        } else {
            self.prior.copy_from_slice(cx.alpha);
        }
        for ((base, prior), inverse) in
            self.base.iter_mut().zip(self.prior.iter()).zip(self.inverse.iter())
        {
            *base = prior * inverse;
        }
        self.weight.copy_from_slice(&self.base);
        if words {
            Mixture { prior_sum: cx.topics as f64 * cx.beta, symmetric: true }
        } else {
            if !cx.alpha_symmetric {
                let alpha: Vec<f64> =
                    cx.alpha[..self.topics].iter().map(|&a| f64::from(a)).collect();
                self.alias = AliasTable::new(&alpha).ok();
            }
            Mixture { prior_sum: cx.alpha_sum, symmetric: cx.alpha_symmetric }
        }
    }

    /// Ends a block: the change of each total.
    pub(super) fn end_block(&mut self, outcome: &mut Outcome) {
        for topic in self.touched.drain(..) {
            let k = topic as usize;
            self.is_touched[k] = false;
            let by = std::mem::take(&mut self.gained[k]);
            if by != 0 {
                outcome.totals.push((topic, by));
            }
        }
    }

    /// Makes room for a row of `all` tokens with `mh_steps` proposals each.
    #[inline(always)]
    pub(super) fn reserve(&mut self, all: usize, mh_steps: usize) {
        self.grow(all);
        self.stride = all.next_multiple_of(LANES) + LANES;
        let len = self.stride * mh_steps;
        if self.pending.len() < len {
            self.pending.resize(len.next_power_of_two(), 0);
        }
    }

    /// Makes room for the topics of `all` tokens.
    #[inline(always)]
    pub(super) fn grow(&mut self, all: usize) {
        let len = all.next_multiple_of(LANES) + LANES;
        if self.z.len() < len {
            let len = len.next_power_of_two();
            for buffer in [&mut self.z, &mut self.next, &mut self.left, &mut self.entered] {
                buffer.resize(len, 0);
            }
        }
    }

    /// Judges the pending proposals of the first `movable` of the row's `all` tokens in `z`: their
    /// topics after that stand in `next`, the others' are copied.
    #[inline(always)]
    pub(super) fn judge<L: Lanes>(
        &mut self,
        l: L,
        movable: usize,
        all: usize,
        steps: usize,
        accept: &mut WideState<L>,
        outcome: &mut Outcome,
    ) {
        let dense = all * DENSE_SHARE >= self.topics;
        for &z in &self.z[..all] {
            self.counts[z as usize] += 1;
        }
        self.weigh(l, all, dense);
        let mut moves = 0;
        let mut at = 0;
        while at < movable {
            let valid = if movable - at >= LANES { u16::MAX } else { (1 << (movable - at)) - 1 };
            let start = l.load_u(chunk(&self.z, at));
            let mut now = start;
            let own = l.gather_f(&self.own, start);
            let mut weight = own;
            for m in 0..steps {
                let proposal = l.load_u(chunk(&self.pending, m * self.stride + at));
                let back = l.eq_u(start, proposal);
                let proposed = l.select_f(back, own, l.gather_f(&self.weight, proposal));
                let u = accept.next_unit(l);
                let taken = l.gt_f(proposed, l.mul_f(u, weight)) & valid;
                let other = !l.eq_u(now, proposal);
                outcome.proposed += u64::from((other & valid).count_ones());
                outcome.accepted += u64::from((other & taken).count_ones());
                now = l.select_u(taken, proposal, now);
                weight = l.select_f(taken, proposed, weight);
            }
            l.store_u(chunk_mut(&mut self.next, at), now);
            let moved = !l.eq_u(start, now);
            l.compress(moved, start, chunk_mut(&mut self.left, moves));
            l.compress(moved, now, chunk_mut(&mut self.entered, moves));
            moves += moved.count_ones() as usize;
            at += LANES;
        }
        self.next[movable..all].copy_from_slice(&self.z[movable..all]);
        self.unweigh(all, dense);
        outcome.changed += moves as u64;
        for i in 0..moves {
            self.gain(self.left[i], -1);
            self.gain(self.entered[i], 1);
        }
    }

    /// f(k) from the row's counts.
    #[inline(always)]
    fn weigh<L: Lanes>(&mut self, l: L, all: usize, dense: bool) {
        if dense {
            let (counts, _) = self.counts.as_chunks::<LANES>();
            let (prior, _) = self.prior.as_chunks::<LANES>();
            let (inverse, _) = self.inverse.as_chunks::<LANES>();
            let (own_inverse, _) = self.own_inverse.as_chunks::<LANES>();
            let (weight, _) = self.weight.as_chunks_mut::<LANES>();
            let (own, _) = self.own.as_chunks_mut::<LANES>();
            let own_token = l.splat_f(self.own_token);
            for c in 0..weight.len() {
                let count = l.to_f(l.load_u(&counts[c]));
                let prior = l.load_f(&prior[c]);
                let sum = l.add_f(count, prior);
                l.store_f(&mut weight[c], l.mul_f(sum, l.load_f(&inverse[c])));
                let sum = l.add_f(l.sub_f(count, own_token), prior);
                l.store_f(&mut own[c], l.mul_f(sum, l.load_f(&own_inverse[c])));
            }
        } else {
            for &z in &self.z[..all] {
                let k = z as usize;
                let (count, prior) = (self.counts[k] as f32, self.prior[k]);
                self.weight[k] = (count + prior) * self.inverse[k];
                self.own[k] = (count - self.own_token + prior) * self.own_inverse[k];
            }
        }
    }

    /// Counts and weights as between rows.
    #[inline(always)]
    fn unweigh(&mut self, all: usize, dense: bool) {
        if dense {
            self.counts.fill(0);
            self.weight.copy_from_slice(&self.base);
        } else {
            for &z in &self.z[..all] {
                let k = z as usize;
                self.counts[k] = 0;
                self.weight[k] = self.base[k];
            }
        }
    }

    #[inline(always)]
    fn gain(&mut self, topic: u32, by: i32) {
        let k = topic as usize;
        self.gained[k] += by;
        if !self.is_touched[k] {
            self.is_touched[k] = true;
            self.touched.push(topic);
        }
    }

    /// Draws `steps` proposals for each of the first `movable` tokens from the topics `next` of all
    /// `all` and the prior.
    #[inline(always)]
    pub(super) fn propose<L: Lanes>(
        &mut self,
        l: L,
        movable: usize,
        all: usize,
        steps: usize,
        mixture: Mixture,
        propose: &mut WideState<L>,
    ) {
        let share = all as f64 / (all as f64 + mixture.prior_sum);
        let share = l.splat_f(share as f32);
        let tokens = l.splat_u(all as u32);
        let topics = l.splat_u(self.topics as u32);
        let next = &self.next[..all];
        for m in 0..steps {
            let mut at = 0;
            while at < movable {
                let place = propose.next(l);
                let from_token = l.gt_f(share, propose.next_unit(l));
                let token = l.gather_u(next, l.mul_high(place, tokens));
                let other = if mixture.symmetric {
                    l.mul_high(place, topics)
                } else {
                    from_alias(l, self.alias.as_ref(), place, propose.next(l))
                };
                let proposal = l.select_u(from_token, token, other);
                l.store_u(chunk_mut(&mut self.pending, m * self.stride + at), proposal);
                at += LANES;
            }
        }
    }

    /// Calls `f(topic, tokens)` for the topics of the `all` tokens in `next`.
    pub(super) fn recount(&mut self, all: usize) -> impl Iterator<Item = (u32, u32)> {
        for &z in &self.next[..all] {
            self.counts[z as usize] += 1;
        }
        let counts = &mut self.counts;
        self.next[..all].iter().filter_map(|&z| {
            let count = std::mem::take(&mut counts[z as usize]);
            (count > 0).then_some((z, count))
        })
    }
}

/// One draw a lane from the table; 0 where there is none.
#[inline(always)]
fn from_alias<L: Lanes>(l: L, alias: Option<&AliasTable>, high: L::U, low: L::U) -> L::U {
    let (mut h, mut o) = ([0; LANES], [0; LANES]);
    l.store_u(&mut h, high);
    l.store_u(&mut o, low);
    if let Some(alias) = alias {
        for (h, o) in h.iter_mut().zip(o) {
            *h = alias.locate(u64::from(*h) << 32 | u64::from(o)) as u32;
        }
    }
    l.load_u(&h)
}

/// Sixteen values from `at` on.
#[inline(always)]
pub(super) fn chunk(buffer: &[u32], at: usize) -> &[u32; LANES] {
    buffer[at..].first_chunk().expect("buffers have room for a whole vector")
}

/// Sixteen values from `at` on.
#[inline(always)]
pub(super) fn chunk_mut(buffer: &mut [u32], at: usize) -> &mut [u32; LANES] {
    buffer[at..].first_chunk_mut().expect("buffers have room for a whole vector")
}
