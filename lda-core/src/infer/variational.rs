//! The variational E-step: θ's posterior as one Dirichlet, found by iteration, no chance in it.
//!
//! Blei, Ng and Jordan 2003, section 5.2, with φ held fixed:
//!
//! ```text
//! r_wk ∝ exp(ψ(γ_k)) φ_kw            the share of topic k in the tokens of word w
//! γ_k  ← α_k + Σ_w n_w r_wk          until γ moves by less than the tolerance a token
//! ```
//!
//! With φ over floors, φ_kw = floor_k + excess_kw, the sums over all K topics are shared by all words:
//! an iteration costs O(K + Σ_w K_w). Of the exp(ψ(γ_k)) vectors are made ([`exp_digamma`]): one by one they
//! were two thirds of the time.
//!
//! Most topics are soon out of the question. One that has less than [`SMALL`] of a token, where that makes its
//! exp(ψ(γ_k)) less than [`FAINT`] of the largest, is left out of the iterations that follow, with its entries; what
//! is left lies close together. With α = 0.05 that is nearly all topics after two iterations. With α near 1 exp(ψ(α))
//! is large, no topic is left out, and every iteration costs as much as the first. That one is cheaper where α is
//! symmetric: all topics weigh the same, and Σ_k φ_kw is kept from document to document.

use super::fixed::Fixed;
use crate::counts::TopicIndex;
use crate::model::{Rows, Value};
use crate::special::{digamma, exp_digamma};

/// Less of a topic than this, in tokens, is left out of an answer.
const LEAST: f64 = 1e-4;
/// A topic with less than this, in tokens, may be left out of further iterations
pub(super) const SMALL: f64 = 1e-2;
/// if its weight is less than this of the largest.
const FAINT: f64 = 1e-7;
/// The place of a topic that is left out.
const OUT: u32 = u32::MAX;

/// One document's γ; scratch that outlives it.
#[derive(Clone, Debug, Default)]
pub(super) struct Variational {
    /// (word, tokens), words ascending.
    pairs: Vec<(u32, u32)>,
    /// Those that are not left out, ascending.
    topics: Vec<u32>,
    /// Of each of them, as what follows.
    gamma: Vec<f64>,
    /// exp(ψ(γ_k)), up to a factor.
    weights: Vec<f64>,
    /// Σ_w n_w excess_kw / Σ_j weight_j φ_jw.
    shares: Vec<f64>,
    /// Entries of the words, of topics at these places; behind them what is left of others.
    entries: Vec<(u32, f32)>,
    /// How many entries each word has.
    lengths: Vec<u32>,
    /// Where what was at a place is now.
    places: Vec<u32>,
}

impl Variational {
    /// Lists γ_k − α_k for `words`, which are sorted and all known; topics ascending, those of hardly
    /// a token left out and the others made to add up. False if `go_on`, asked before each iteration,
    /// ended it.
    #[allow(clippy::too_many_arguments)]
    pub fn run<T: TopicIndex, V: Value>(
        &mut self,
        fixed: &Fixed,
        rows: &Rows<'_, T, V>,
        words: &[u32],
        iterations: u32,
        tolerance: f64,
        go_on: &mut dyn FnMut() -> bool,
        means: &mut Vec<(u32, f64)>,
    ) -> bool {
        let topics = fixed.floors.len();
        let tokens = words.len() as f64;
        self.pairs.clear();
        self.pairs.extend(words.chunk_by(|a, b| a == b).map(|run| (run[0], run.len() as u32)));
        self.topics.clear();
        self.topics.extend(0..topics as u32);
        self.gamma.clear();
        self.gamma.extend(fixed.alpha.iter().map(|alpha| alpha + tokens / topics as f64));
        for iteration in 0..iterations {
            if !go_on() {
                return false;
            }
            let all = match (iteration, fixed.even) {
                (0, Some(alpha)) => self.share_evenly(fixed, rows, alpha),
                (0, None) => {
                    self.weigh();
                    self.share(fixed, rows)
                }
                _ => {
                    let left_out = self.leave_out(fixed);
                    if iteration == 1 {
                        self.gather(fixed, rows);
                    } else if left_out {
                        self.thin_out();
                    }
                    self.weigh();
                    self.share_on(fixed)
                }
            };
            if self.change(fixed, all) <= tolerance * tokens {
                break;
            }
        }
        let counts = || {
            let left = self.topics.iter().zip(&self.gamma);
            left.map(|(&k, gamma)| (k, gamma - fixed.alpha[k as usize]))
                .filter(|&(_, count)| count >= LEAST)
        };
        let kept: f64 = counts().map(|(_, count)| count).sum();
        if kept > 0.0 {
            let scale = tokens / kept;
            means.extend(counts().map(|(topic, count)| (topic, count * scale)));
        }
        true
    }

    /// ψ of the largest γ.
    fn most(&self) -> f64 {
        // `f64::max` looks for what is no number; here all are.
        digamma(self.gamma.iter().fold(0.0, |most, &gamma| if gamma > most { gamma } else { most }))
    }

    /// exp(ψ(γ_k)) of each topic.
    fn weigh(&mut self) {
        // The largest becomes 1: else all might underflow, ψ(10⁻⁴) being −10⁴.
        let most = self.most();
        let Self { gamma, weights, .. } = self;
        weights.clear();
        weights.extend(gamma.iter().map(|&gamma| exp_digamma(gamma, most)));
    }

    /// As [`share`](Self::share), where all topics weigh the same, as all α_k do.
    fn share_evenly<T: TopicIndex, V: Value>(
        &mut self,
        fixed: &Fixed,
        rows: &Rows<'_, T, V>,
        alpha: f64,
    ) -> f64 {
        let Self { weights, shares, pairs, topics, .. } = self;
        weights.clear();
        weights.resize(topics.len(), 1.0);
        shares.clear();
        shares.resize(topics.len(), 0.0);
        let mut all = 0.0;
        for &(word, tokens) in pairs.iter() {
            // Σ_k φ_kw, of which Fixed has α times as much.
            let sum = (fixed.prior_sum() + fixed.word_sum(rows, word)) / alpha;
            let share = f64::from(tokens) / sum.max(f64::MIN_POSITIVE);
            let (topics, values) = rows.word(word);
            for (topic, value) in topics.iter().zip(values) {
                let k = topic.get() as usize;
                shares[k] += share * value.excess(fixed.scales[k]);
            }
            all += share;
        }
        all
    }

    /// Shares out the tokens among all topics; returns Σ_w n_w / Σ_j weight_j φ_jw.
    fn share<T: TopicIndex, V: Value>(&mut self, fixed: &Fixed, rows: &Rows<'_, T, V>) -> f64 {
        let Self { weights, shares, pairs, .. } = self;
        let floor: f64 = weights.iter().zip(&fixed.floors).map(|(w, floor)| w * floor).sum();
        shares.clear();
        shares.resize(weights.len(), 0.0);
        let mut all = 0.0;
        for &(word, tokens) in pairs.iter() {
            let (topics, values) = rows.word(word);
            let entries = || {
                topics.iter().zip(values).map(|(topic, value)| {
                    let k = topic.get() as usize;
                    (k, value.excess(fixed.scales[k]))
                })
            };
            let sum: f64 = floor + entries().map(|(k, excess)| weights[k] * excess).sum::<f64>();
            let share = f64::from(tokens) / sum.max(f64::MIN_POSITIVE);
            for (k, excess) in entries() {
                shares[k] += share * excess;
            }
            all += share;
        }
        all
    }

    /// As [`share`](Self::share), among those that are left.
    fn share_on(&mut self, fixed: &Fixed) -> f64 {
        let Self { weights, shares, pairs, topics, entries, lengths, .. } = self;
        let floors = topics.iter().map(|&k| fixed.floors[k as usize]);
        let floor: f64 = weights.iter().zip(floors).map(|(w, floor)| w * floor).sum();
        shares.clear();
        shares.resize(weights.len(), 0.0);
        let mut all = 0.0;
        let mut rest = &entries[..];
        for (&(_, tokens), &len) in pairs.iter().zip(lengths.iter()) {
            let (entries, after) = rest.split_at(len as usize);
            rest = after;
            let parts =
                entries.iter().map(|&(place, excess)| weights[place as usize] * f64::from(excess));
            let sum: f64 = floor + parts.sum::<f64>();
            let share = f64::from(tokens) / sum.max(f64::MIN_POSITIVE);
            for &(place, excess) in entries {
                shares[place as usize] += share * f64::from(excess);
            }
            all += share;
        }
        all
    }

    /// The new γ; returns Σ_k |change of γ_k|.
    fn change(&mut self, fixed: &Fixed, all: f64) -> f64 {
        let Self { gamma, weights, shares, topics, .. } = self;
        let mut change = 0.0;
        for (((gamma, weight), share), &k) in
            gamma.iter_mut().zip(weights).zip(shares).zip(topics.iter())
        {
            let k = k as usize;
            let new = fixed.alpha[k] + *weight * (*share + fixed.floors[k] * all);
            change += (new - *gamma).abs();
            *gamma = new;
        }
        change
    }

    /// Leaves out topics that come to nothing; whether there was one.
    fn leave_out(&mut self, fixed: &Fixed) -> bool {
        let least = self.most() + FAINT.ln();
        let Self { topics, gamma, places, .. } = self;
        places.clear();
        let mut left = 0;
        for at in 0..topics.len() {
            let (topic, value) = (topics[at], gamma[at]);
            let k = topic as usize;
            let out = (value - fixed.alpha[k] < SMALL) & (fixed.faint[k] < least);
            // All are written, without a branch: which are left cannot be foretold.
            places.push(if out { OUT } else { left as u32 });
            (topics[left], gamma[left]) = (topic, value);
            left += usize::from(!out);
        }
        topics.truncate(left);
        gamma.truncate(left);
        left < places.len()
    }

    /// Copies the words' entries of the topics that are left.
    fn gather<T: TopicIndex, V: Value>(&mut self, fixed: &Fixed, rows: &Rows<'_, T, V>) {
        let Self { pairs, entries, lengths, places, .. } = self;
        lengths.clear();
        let mut to = 0;
        for &(word, _) in pairs.iter() {
            let (topics, values) = rows.word(word);
            // Each is written and most are written over: which stay cannot be foretold.
            if entries.len() < to + topics.len() {
                entries.resize(to + topics.len(), (OUT, 0.0));
            }
            let before = to;
            for (topic, value) in topics.iter().zip(values) {
                let k = topic.get() as usize;
                let place = places[k];
                entries[to] = (place, value.excess(fixed.scales[k]) as f32);
                to += usize::from(place != OUT);
            }
            lengths.push((to - before) as u32);
        }
    }

    /// Drops the entries of topics that are left out.
    fn thin_out(&mut self) {
        let Self { entries, lengths, places, .. } = self;
        let (mut from, mut to) = (0, 0);
        for len in lengths {
            let (end, before) = (from + *len as usize, to);
            while from < end {
                let (place, excess) = entries[from];
                let place = places[place as usize];
                entries[to] = (place, excess);
                to += usize::from(place != OUT);
                from += 1;
            }
            *len = (to - before) as u32;
        }
    }

    pub fn memory(&self) -> usize {
        8 * (self.pairs.capacity()
            + self.gamma.capacity()
            + self.weights.capacity()
            + self.shares.capacity())
            + 8 * self.entries.capacity()
            + 4 * (self.topics.capacity() + self.lengths.capacity() + self.places.capacity())
    }
}
