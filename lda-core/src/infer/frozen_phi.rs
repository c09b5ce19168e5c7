//! What inference by sampling and by variation read of a model, beside its entries: O(K + V), so
//! that a model that lies in a mapped file is used where it lies.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::counts::TopicIndex;
use crate::model::{Rows, TopicModel, Value};
use crate::simd::Isa;

/// No sum of weights has these bits.
const UNKNOWN: u64 = u64::MAX;

/// A model's floors and priors.
#[derive(Debug)]
pub(super) struct FrozenPhi {
    /// α_k.
    pub alpha: Vec<f64>,
    /// φ_kw of words without an entry.
    pub floors: Vec<f64>,
    /// 1 / (C_k + Vβ) where the model is made of counts.
    pub scales: Vec<f64>,
    /// α_k, where all are the same.
    pub even: Option<f64>,
    /// Σ_{j≤k} α_j floor_j.
    prior_sums: Vec<f64>,
    /// Σ_k α_k excess_kw of each word, computed when it is first asked for; bits of `f64`.
    word_sums: Vec<AtomicU64>,
    has_floor: bool,
    /// The same in single precision.
    pub single: SinglePrecision,
    /// Never affects a result.
    pub isa: Isa,
}

/// α_k, floors and scales of some topics.
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
            has_floor: floors.iter().any(|&floor| floor > 0.0),
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

    /// Whether any topic gives the word a probability above zero.
    pub fn supports<T, V>(&self, rows: &Rows<'_, T, V>, word: u32) -> bool {
        (word as usize) < self.num_words() && (self.has_floor || !rows.word(word).0.is_empty())
    }

    /// Σ_k α_k floor_k.
    #[inline]
    pub fn prior_sum(&self) -> f64 {
        self.prior_sums.last().copied().unwrap_or(0.0)
    }

    /// The topic at `mark` of Σ_k α_k floor_k; rounding may leave the mark at the very end, where
    /// the last topic with a floor takes it.
    pub fn prior_topic(&self, mark: f64) -> u32 {
        let mark = mark.min(self.prior_sum().next_down());
        self.prior_sums.partition_point(|&sum| sum <= mark) as u32
    }

    /// Σ_k α_k excess_kw. The same bits whoever computes it, so that threads need not agree on one.
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

    /// The topic at `mark` of [`word_sum`](Self::word_sum), which is above zero.
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

    /// Bytes.
    pub fn memory(&self) -> usize {
        8 * (self.alpha.len() * 4 + self.word_sums.len()) + 4 * (self.alpha.len() * 3)
    }
}
