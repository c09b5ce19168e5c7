//! One word or one document: accept or reject the pending proposals, then draw new ones.

use super::external_counts::ExternalCounts;
use super::topic_delta::TopicDelta;
use crate::discrete::AliasTable;
use crate::random::{WideState, WideXoshiro};
use crate::sampler::{Context, Outcome, padded};
use crate::simd::{Aligned, LANES, Lanes};

/// Per-thread state of [`Warp`](super::Warp).
#[derive(Debug)]
pub struct WarpScratch {
    /// By topic: the row's tokens, zero between rows, and C_k. Side by side, so that one access
    /// brings both.
    counts: Aligned<[u32; 2]>,
    /// Wave whose C_k `counts` holds.
    wave: Option<u64>,
    /// Draws from α if it is not symmetric.
    alias: Option<AliasTable>,
    /// Topics of the tokens of the current rows, before and after the accept step. All per-token
    /// buffers have room for a whole vector past the end.
    pub(super) z: Vec<u32>,
    pub(super) next: Vec<u32>,
    /// Proposals to accept or reject, then those drawn: all tokens' first ones, then all second ones, ...;
    /// `stride` apart.
    pub(super) pending: Vec<u32>,
    pub(super) stride: usize,
    /// External tokens of the row, of which only counts are known.
    pub(super) external: ExternalCounts,
    delta: TopicDelta,
}

/// Range of a row's tokens in the buffers: tokens that move, then tokens that only count.
#[derive(Clone, Copy, Debug)]
pub(super) struct Span {
    pub first: usize,
    pub movable: usize,
    pub all: usize,
}

/// Parameters that differ between the two passes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Axis<'a> {
    /// β, or α_k if all are equal.
    prior: f32,
    /// α_k if they differ.
    alpha: Option<&'a [f32]>,
    /// Kβ or Σ α_k.
    prior_sum: f32,
    /// Vβ.
    beta_bar: f32,
    /// Tokens that a token takes out of its own topic's counts: 1, or 0 to count itself.
    own: u32,
    /// K.
    topics: u32,
    /// M.
    pub steps: usize,
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

impl<'a> Axis<'a> {
    pub(super) fn words(cx: &Context<'a>, count_own: bool) -> Self {
        Self {
            prior: cx.beta as f32,
            alpha: None,
            prior_sum: (cx.topics as f64 * cx.beta) as f32,
            beta_bar: cx.beta_bar as f32,
            own: u32::from(!count_own),
            topics: cx.topics as u32,
            steps: cx.mh_steps,
        }
    }

    pub(super) fn documents(cx: &Context<'a>, count_own: bool) -> Self {
        Self {
            prior: cx.alpha[0],
            alpha: (!cx.alpha_symmetric).then_some(cx.alpha),
            prior_sum: cx.alpha_sum as f32,
            ..Self::words(cx, count_own)
        }
    }

    /// β or α_k.
    #[inline(always)]
    fn prior<L: Lanes>(&self, l: L, topics: L::U) -> L::F {
        match self.alpha {
            None => l.splat_f(self.prior),
            Some(alpha) => l.gather_f(alpha, topics),
        }
    }

    /// Numerator and denominator of (count + prior) / (C_k + Vβ).
    #[inline(always)]
    fn weigh<L: Lanes>(&self, l: L, topics: L::U, count: L::U, total: L::U) -> (L::F, L::F) {
        (
            l.add_f(l.to_f(count), self.prior(l, topics)),
            l.add_f(l.to_f(total), l.splat_f(self.beta_bar)),
        )
    }
}

impl WarpScratch {
    pub(super) fn new(topics: usize) -> Self {
        let len = padded(topics);
        Self {
            counts: Aligned::new(len),
            wave: None,
            alias: None,
            z: Vec::new(),
            next: Vec::new(),
            pending: Vec::new(),
            stride: 0,
            external: ExternalCounts::default(),
            delta: TopicDelta::new(len),
        }
    }

    /// Starts a block: totals of its wave.
    pub(super) fn begin_block(&mut self, cx: &Context<'_>, axis: &Axis<'_>) {
        self.external.clear();
        if self.wave == Some(cx.wave) {
            return;
        }
        self.wave = Some(cx.wave);
        for (counts, &total) in self.counts.iter_mut().zip(cx.totals) {
            *counts = [0, total];
        }
        self.alias = axis.alpha.and_then(|alpha| {
            let alpha: Vec<f64> = alpha[..cx.topics].iter().map(|&a| f64::from(a)).collect();
            AliasTable::new(&alpha).ok()
        });
    }

    /// Ends a block of a pass with `steps` steps per token: the change of each total, and the
    /// proposals that repeated the current topic.
    pub(super) fn end_block(&mut self, steps: usize, outcome: &mut Outcome) {
        self.delta.take(outcome);
        // PERF: computed once per block; the loop over tokens counts only the other proposals.
        outcome.repeated = outcome.tokens * steps as u64 - outcome.proposed;
    }

    /// Makes room for rows of `tokens` tokens together, with `proposals` proposals each.
    #[inline(always)]
    pub(super) fn reserve(&mut self, tokens: usize, proposals: usize) {
        if self.z.len() < tokens + LANES || self.pending.len() < self.stride * proposals {
            self.grow(tokens + LANES, proposals);
        }
    }

    #[cold]
    fn grow(&mut self, len: usize, proposals: usize) {
        self.stride = len + len / 4;
        for buffer in [&mut self.z, &mut self.next] {
            buffer.resize(self.stride, 0);
        }
        self.pending.resize(self.stride * proposals, 0);
    }

    /// Accepts or rejects the pending proposals of the row's movable tokens. The new topics are written
    /// to `next`; those of the other tokens are copied.
    #[inline(always)]
    pub(super) fn accept_reject<L: Lanes>(
        &mut self,
        l: L,
        axis: &Axis<'_>,
        row: Span,
        accept: &mut WideState<L>,
        outcome: &mut Outcome,
    ) {
        let Span { first, movable, all } = row;
        let (steps, stride) = (axis.steps, self.stride);
        let Self { counts, z, next, pending, delta, external, .. } = self;
        // PERF: separate slices keep their bounds in registers in the loops.
        let (counts, next) = (&mut counts[..], &mut next[first..]);
        let (z, pending) = (&z[first..], &pending[first..]);
        count_row(counts, &z[..all], external.row());
        let own_tokens = l.splat_u(axis.own);
        let mut at = 0;
        while at < movable {
            let valid = if movable - at >= LANES { u16::MAX } else { (1 << (movable - at)) - 1 };
            let start = l.load_u(chunk(z, at));
            let (count, total) = l.gather_both(counts, start);
            // INVARIANT: a valid lane's token is in its own count, so the subtraction cannot wrap.
            let (count, total) = (l.sub_u(count, own_tokens), l.sub_u(total, own_tokens));
            let own = axis.weigh(l, start, count, total);
            let (mut now, mut weight) = (start, own);
            for m in 0..steps {
                let proposal = l.load_u(chunk(pending, m * stride + at));
                let (count, total) = l.gather_both(counts, proposal);
                let mut proposed = axis.weigh(l, proposal, count, total);
                if steps > 1 {
                    // A proposal of the starting topic has the weight without the token. With one
                    // step it changes nothing, whatever its weight is.
                    let back = l.eq_u(start, proposal);
                    proposed.0 = l.select_f(back, own.0, proposed.0);
                    proposed.1 = l.select_f(back, own.1, proposed.1);
                }
                let u = accept.next_unit(l);
                // u < (proposed.0 / proposed.1) / (weight.0 / weight.1), without dividing.
                let bar = l.mul_f(u, l.mul_f(weight.0, proposed.1));
                let taken = l.gt_f(l.mul_f(proposed.0, weight.1), bar) & valid;
                let other = !l.eq_u(now, proposal);
                outcome.proposed += u64::from((other & valid).count_ones());
                outcome.accepted += u64::from((other & taken).count_ones());
                now = l.select_u(taken, proposal, now);
                if m + 1 < steps {
                    weight.0 = l.select_f(taken, proposed.0, weight.0);
                    weight.1 = l.select_f(taken, proposed.1, weight.1);
                }
            }
            l.store_u(chunk_mut(next, at), now);
            delta.list(l, !l.eq_u(start, now), start, now);
            at += LANES;
        }
        next[movable..all].copy_from_slice(&z[movable..all]);
        clear_row(counts, &z[..all], external.row());
    }

    /// Draws M proposals for each of the row's movable tokens from the topics `next` of all its
    /// tokens and the prior. They overwrite the pending ones of this row and of up to fifteen
    /// tokens after it, so all rows of the batch must have been accepted or rejected before.
    #[inline(always)]
    pub(super) fn propose<L: Lanes>(
        &mut self,
        l: L,
        axis: &Axis<'_>,
        row: Span,
        propose: &mut WideState<L>,
    ) {
        let Span { first, movable, all } = row;
        let steps = axis.steps;
        let whole = all as u32 + self.external.tokens();
        let share = l.splat_f(whole as f32 / (whole as f32 + axis.prior_sum));
        let (tokens, topics) = (l.splat_u(whole), l.splat_u(axis.topics));
        let last = l.splat_u((all as u32).saturating_sub(1));
        let next = &self.next[first..first + all];
        let (stride, pending) = (self.stride, &mut self.pending[first..]);
        for m in 0..steps {
            let mut at = 0;
            while at < movable {
                // PERF: one word picks the token or the topic, whichever is drawn; the two are
                // exclusive, so they may share it.
                let place = propose.next(l);
                let from_token = l.gt_f(share, propose.next_unit(l));
                let token = if self.external.tokens() == 0 {
                    l.gather_u(next, l.mul_high(place, tokens))
                } else {
                    let at = l.mul_high(place, tokens);
                    let nearest = l.min_u(at, last);
                    let is_here = l.eq_u(at, nearest);
                    let token = l.gather_u(next, nearest);
                    l.select_u(is_here, token, self.external.draw(l, propose))
                };
                let other = match axis.alpha {
                    None => l.mul_high(place, topics),
                    Some(_) => from_alias(l, self.alias.as_ref(), place, propose.next(l)),
                };
                let proposal = l.select_u(from_token, token, other);
                l.store_u(chunk_mut(pending, m * stride + at), proposal);
                at += LANES;
            }
        }
    }

    /// (topic, tokens) of the first `all` tokens in `next` and of the external tokens.
    pub(super) fn recount(&mut self, all: usize) -> impl Iterator<Item = (u32, u32)> {
        for &z in &self.next[..all] {
            self.counts[z as usize][0] += 1;
        }
        for &(topic, count) in self.external.row() {
            self.counts[topic as usize][0] += count;
        }
        let counts = &mut self.counts;
        let external = self.external.row().iter().map(|entry| entry.0);
        self.next[..all].iter().copied().chain(external).filter_map(|z| {
            // INVARIANT: a topic is listed at its first token; taking its count skips the others and
            // leaves zeros for the next row.
            let count = std::mem::take(&mut counts[z as usize][0]);
            (count > 0).then_some((z, count))
        })
    }
}

/// Counts the row's tokens and external tokens.
#[inline(always)]
fn count_row(counts: &mut [[u32; 2]], z: &[u32], external: &[(u32, u32)]) {
    for &z in z {
        counts[z as usize][0] += 1;
    }
    for &(topic, count) in external {
        counts[topic as usize][0] += count;
    }
}

/// Zeroes the row's counts.
///
/// PERF: topic by topic, or all of them, by the number of writes.
#[inline(always)]
fn clear_row(counts: &mut [[u32; 2]], z: &[u32], external: &[(u32, u32)]) {
    if z.len() + external.len() < counts.len() {
        for &z in z {
            counts[z as usize][0] = 0;
        }
        for &(topic, _) in external {
            counts[topic as usize][0] = 0;
        }
    } else {
        counts.iter_mut().for_each(|counts| counts[0] = 0);
    }
}

/// One draw per lane from the table; 0 if there is no table.
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
