//! The part of every proposal that does not depend on the word.

use super::columns::{Column, Order, build, locate};
use crate::sampler::topic_prior::TopicPrior;
use crate::sampler::{Context, padded};

/// A Walker table over all topics with weights scale · f_k / (C_k + Vβ); C_k as of the wave's
/// start.
#[derive(Debug)]
pub(in crate::sampler) struct SharedTable {
    weights: Vec<f32>,
    columns: Vec<Column>,
    order: Order,
    total: f64,
    /// K / total.
    scale: f64,
    /// Wave it was built in.
    wave: Option<u64>,
}

impl SharedTable {
    /// An empty table for `topics` topics.
    pub fn new(topics: usize) -> Self {
        let columns = vec![Column::default(); topics];
        let weights = Vec::with_capacity(padded(topics));
        Self { weights, columns, order: Order::default(), total: 0.0, scale: 0.0, wave: None }
    }

    /// Builds it with f_k = `factors`, times `scale`, unless it was built in this wave.
    pub fn begin_wave(&mut self, cx: &Context<'_>, factors: TopicPrior<'_>, scale: f64) {
        if self.wave == Some(cx.wave) {
            return;
        }
        let norm = cx.beta_bar as f32;
        let weight =
            |(k, &total): (usize, &u32)| factors.of(k) * scale as f32 / (total as f32 + norm);
        self.rebuild(cx.totals[..cx.topics].iter().enumerate().map(weight));
        self.wave = Some(cx.wave);
    }

    /// Builds a table of the f_k themselves, which are the same during a wave.
    pub fn begin_prior(&mut self, cx: &Context<'_>, factors: TopicPrior<'_>) {
        if self.wave != Some(cx.wave) {
            self.rebuild((0..cx.topics).map(|k| factors.of(k)));
            self.wave = Some(cx.wave);
        }
    }

    fn rebuild(&mut self, weights: impl Iterator<Item = f32>) {
        self.weights.clear();
        self.weights.extend(weights);
        self.total = self.weights.iter().map(|&weight| f64::from(weight)).sum();
        self.scale = self.weights.len() as f64 / self.total;
        build(&self.weights, self.total, &mut self.order, |j, column| self.columns[j] = column);
    }

    /// Sum of all weights.
    #[inline(always)]
    pub fn total(&self) -> f64 {
        self.total
    }

    /// Weight of `topic`.
    #[inline(always)]
    pub fn weight(&self, topic: usize) -> f32 {
        self.weights[topic]
    }

    /// Sum of all weights except that of `topic`.
    pub fn total_but(&self, topic: usize) -> f64 {
        self.total - f64::from(self.weights[topic])
    }

    /// The topic at `u` of [`total_but`](Self::total_but), by a scan; the last positive one if
    /// rounding left none above `u`.
    pub fn locate_but(&self, topic: usize, mut u: f64) -> usize {
        let mut last = topic;
        for (k, &weight) in self.weights.iter().enumerate() {
            if k != topic && weight > 0.0 {
                last = k;
                u -= f64::from(weight);
                if u < 0.0 {
                    break;
                }
            }
        }
        last
    }

    /// The topic at `u` of the total.
    #[inline(always)]
    pub fn locate(&self, u: f64) -> usize {
        locate(self.columns.len(), u * self.scale, |j| self.columns[j])
    }
}
