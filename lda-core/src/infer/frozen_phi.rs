//! Precomputed values of a fixed model for fold-in and variational inference: O(K + V) memory. The
//! entries of φ are read in place, so a memory-mapped model is not copied.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::counts::TopicIndex;
use crate::model::{Rows, TopicModel, Value};
use crate::simd::Isa;

/// Marks a sum that is not computed yet. It is the bit pattern of a NaN, which no sum of weights
/// has.
const UNKNOWN: u64 = u64::MAX;

/// Floors, scales and priors of a model, and sums over them.
#[derive(Debug)]
pub(super) struct FrozenPhi {
    /// α_k.
    pub alpha: Vec<f64>,
    /// floor_k: φ_kw of words without an entry.
    pub floors: Vec<f64>,
    /// 1 / (C_k + Vβ) for a model of counts, else 1.
    pub scales: Vec<f64>,
    /// α if symmetric.
    pub even: Option<f64>,
    /// Σ_{j≤k} α_j floor_j.
    prior_sums: Vec<f64>,
    /// Σ_k α_k excess_kw of each word as bits of an `f64`; computed on first use.
    word_sums: Vec<AtomicU64>,
    /// Whether a word without an entry may still have a known probability: in a model of weights.
    floors_are_weights: bool,
    /// `alpha`, `floors` and `scales` in single precision.
    pub single: SinglePrecision,
    /// Never affects a result.
    pub isa: Isa,
}

/// A document to infer and the model's φ.
pub(super) struct Query<'a, 'r, T, V> {
    pub frozen: &'a FrozenPhi,
    pub rows: &'a Rows<'r, T, V>,
    /// Known words of the tokens, ascending.
    pub words: &'a [u32],
}

/// α_k, floors and scales of a list of topics, in single precision.
#[derive(Clone, Debug, Default)]
pub(super) struct SinglePrecision {
    pub alpha: Vec<f32>,
    pub floors: Vec<f32>,
    pub scales: Vec<f32>,
}

impl FrozenPhi {
    pub fn new(model: &TopicModel) -> Self {
        let topics = model.num_topics();
        let alpha: Vec<f64> = (0..topics).map(|k| model.alpha().get(k)).collect();
        let floors: Vec<f64> = (0..topics).map(|k| model.floor(k)).collect();
        let scales = match model.counts() {
            Some(counts) => {
                let smoothing = counts.beta() * counts.num_words() as f64;
                counts.totals().iter().map(|&total| 1.0 / (total as f64 + smoothing)).collect()
            }
            None => vec![1.0; topics],
        };
        let single = |values: &[f64]| values.iter().map(|&value| value as f32).collect();
        let single = SinglePrecision {
            alpha: single(&alpha),
            floors: single(&floors),
            scales: single(&scales),
        };
        let mut sum = 0.0;
        let prior_sums = alpha.iter().zip(&floors).map(|(alpha, floor)| {
            sum += alpha * floor;
            sum
        });
        Self {
            prior_sums: prior_sums.collect(),
            even: alpha.first().copied().filter(|first| alpha.iter().all(|alpha| alpha == first)),
            floors_are_weights: model.knows_words_at_the_floor(),
            word_sums: (0..model.num_words()).map(|_| AtomicU64::new(UNKNOWN)).collect(),
            alpha,
            floors,
            scales,
            single,
            isa: Isa::detect(),
        }
    }

    pub fn num_words(&self) -> usize {
        self.word_sums.len()
    }

    /// Whether the model knows the word ([`TopicModel::knows`]).
    pub fn knows<T, V>(&self, rows: &Rows<'_, T, V>, word: u32) -> bool {
        let is_there = (word as usize) < self.num_words();
        is_there && (self.floors_are_weights || !rows.word(word).0.is_empty())
    }

    /// Σ_k α_k floor_k.
    #[inline]
    pub fn prior_sum(&self) -> f64 {
        self.prior_sums.last().copied().unwrap_or(0.0)
    }

    /// Topic at `mark` of Σ_k α_k floor_k. A mark that was rounded up to the total gives the last
    /// topic with a floor.
    pub fn prior_topic(&self, mark: f64) -> u32 {
        let mark = mark.min(self.prior_sum().next_down());
        self.prior_sums.partition_point(|&sum| sum <= mark) as u32
    }

    /// Σ_k α_k excess_kw, cached.
    ///
    /// Two threads may both compute it; every computation gives the same bits, so relaxed loads and
    /// stores suffice.
    #[inline]
    pub fn word_sum<T: TopicIndex, V: Value>(&self, rows: &Rows<'_, T, V>, word: u32) -> f64 {
        let cell = &self.word_sums[word as usize];
        let known = cell.load(Ordering::Relaxed);
        if known != UNKNOWN {
            return f64::from_bits(known);
        }
        let sum = self.word_parts(rows, word).map(|(_, part)| part).sum::<f64>();
        cell.store(sum.to_bits(), Ordering::Relaxed);
        sum
    }

    /// Topic at `mark` of [`word_sum`](Self::word_sum), which is above zero.
    pub fn word_topic<T: TopicIndex, V: Value>(
        &self,
        rows: &Rows<'_, T, V>,
        word: u32,
        mark: f64,
    ) -> u32 {
        let (mut sum, mut last) = (0.0, 0);
        for (topic, part) in self.word_parts(rows, word) {
            sum += part;
            if part > 0.0 {
                last = topic;
            }
            if mark < sum {
                return topic;
            }
        }
        last
    }

    fn word_parts<'a, T: TopicIndex, V: Value>(
        &'a self,
        rows: &Rows<'a, T, V>,
        word: u32,
    ) -> impl Iterator<Item = (u32, f64)> + use<'a, T, V> {
        let (topics, values) = rows.word(word);
        topics.iter().zip(values).map(|(topic, value)| {
            let k = topic.get() as usize;
            (topic.get(), self.alpha[k] * value.excess(self.scales[k]))
        })
    }

    /// Memory in bytes.
    pub fn memory(&self) -> usize {
        8 * (self.alpha.len() * 4 + self.word_sums.len()) + 4 * (self.alpha.len() * 3)
    }
}
