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
//! an iteration costs O(K + Σ_w K_w). Of the K exp(ψ(γ_k)) vectors are made
//! ([`exp_digamma`]): one by one they were two thirds of the time.

use super::fixed::Fixed;
use crate::counts::TopicIndex;
use crate::model::{Rows, Value};
use crate::special::{digamma, exp_digamma};

/// Less of a topic than this, in tokens, is left out of an answer.
const LEAST: f64 = 1e-4;

/// One document's γ; scratch that outlives it.
#[derive(Clone, Debug, Default)]
pub(super) struct Variational {
    gamma: Vec<f64>,
    /// exp(ψ(γ_k)), up to a factor.
    weights: Vec<f64>,
    /// Σ_w n_w excess_kw / Σ_j weight_j φ_jw.
    shares: Vec<f64>,
    /// (word, tokens), words ascending.
    pairs: Vec<(u32, u32)>,
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
        self.gamma.clear();
        self.gamma.extend(fixed.alpha.iter().map(|alpha| alpha + tokens / topics as f64));
        for _ in 0..iterations {
            if !go_on() {
                return false;
            }
            if self.step(fixed, rows) <= tolerance * tokens {
                break;
            }
        }
        let counts = || self.gamma.iter().zip(&fixed.alpha).map(|(gamma, alpha)| gamma - alpha);
        let kept: f64 = counts().filter(|&count| count >= LEAST).sum();
        if kept > 0.0 {
            let scale = tokens / kept;
            let kept = (0..).zip(counts()).filter(|&(_, count)| count >= LEAST);
            means.extend(kept.map(|(topic, count)| (topic, count * scale)));
        }
        true
    }

    /// One iteration; returns Σ_k |change of γ_k|.
    fn step<T: TopicIndex, V: Value>(&mut self, fixed: &Fixed, rows: &Rows<'_, T, V>) -> f64 {
        let Self { gamma, weights, shares, pairs } = self;
        // The largest becomes 1: else all might underflow, ψ(10⁻⁴) being −10⁴.
        let most = digamma(gamma.iter().copied().fold(0.0, f64::max));
        weights.resize(gamma.len(), 0.0);
        for (weight, &gamma) in weights.iter_mut().zip(gamma.iter()) {
            *weight = exp_digamma(gamma, most);
        }
        let floor: f64 = weights.iter().zip(&fixed.floors).map(|(w, floor)| w * floor).sum();
        shares.clear();
        shares.resize(gamma.len(), 0.0);
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
        let mut change = 0.0;
        for (k, gamma) in gamma.iter_mut().enumerate() {
            let new = fixed.alpha[k] + weights[k] * (shares[k] + fixed.floors[k] * all);
            change += (new - *gamma).abs();
            *gamma = new;
        }
        change
    }

    pub fn memory(&self) -> usize {
        8 * (self.gamma.capacity()
            + self.weights.capacity()
            + self.shares.capacity()
            + self.pairs.capacity())
    }
}
