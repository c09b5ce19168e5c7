//! Gibbs sampling of one document's topics with φ fixed, for estimates of held-out probability.
//!
//! The weights are split into three parts; each draw sums two of them (the buckets of SparseLDA,
//! Yao et al. 2009, with φ fixed and split as in [`phi`](super::phi)):
//!
//! ```text
//! (C_dk + α_k) φ_kw = (C_dk + α_k) excess_kw     the K_w topics of the word
//!                   + C_dk floor_k               the K_d topics of the document
//!                   + α_k floor_k                summed once per model
//! ```

use super::phi::Phi;
use crate::prior::Alpha;
use crate::random::Xoshiro256PlusPlus;

/// φ, α and sums shared by all documents.
pub(super) struct Model<'a> {
    pub phi: &'a Phi,
    pub alpha: &'a Alpha,
    pub alpha_sum: f64,
    /// Σ_{j≤k} α_j floor_j for each topic k.
    prior_sums: Vec<f64>,
}

impl<'a> Model<'a> {
    pub fn new(phi: &'a Phi, alpha: &'a Alpha) -> Self {
        let mut sum = 0.0;
        let prior_sums = phi
            .floors()
            .iter()
            .enumerate()
            .map(|(topic, floor)| {
                sum += alpha.get(topic) * floor;
                sum
            })
            .collect();
        Self { phi, alpha, alpha_sum: alpha.sum(phi.num_topics()), prior_sums }
    }

    /// Σ_k α_k floor_k.
    fn prior_sum(&self) -> f64 {
        self.prior_sums.last().copied().unwrap_or(0.0)
    }
}

/// Topics of one document's first half. The memory is reused for the next document.
pub(super) struct FoldIn {
    /// C_dk by topic; zero except for the listed topics.
    counts: Vec<u32>,
    /// Topics whose count is not zero, in order of arrival.
    present: Vec<u32>,
    /// Topic of each token.
    pub topics: Vec<u32>,
    weights: Vec<f64>,
}

impl FoldIn {
    pub fn new(num_topics: usize) -> Self {
        let (present, topics, weights) = (Vec::new(), Vec::new(), Vec::new());
        Self { counts: vec![0; num_topics], present, topics, weights }
    }

    /// Draws a topic for every token, conditional on the tokens before it.
    pub fn start(&mut self, model: &Model<'_>, tokens: &[u32], stream: &mut Xoshiro256PlusPlus) {
        for &word in tokens {
            let topic = self.draw(model, word, stream.next_f64());
            self.topics.push(topic);
            self.add(topic);
        }
    }

    pub fn sweep(&mut self, model: &Model<'_>, tokens: &[u32], stream: &mut Xoshiro256PlusPlus) {
        for (token, &word) in tokens.iter().enumerate() {
            self.remove(self.topics[token]);
            let topic = self.draw(model, word, stream.next_f64());
            self.topics[token] = topic;
            self.add(topic);
        }
    }

    /// Topic at `unit`, in [0, 1), of the mass (C_dk + α_k) φ_kw. Its weight is above zero unless
    /// all weights underflow.
    pub fn draw(&mut self, model: &Model<'_>, word: u32, unit: f64) -> u32 {
        let (topics, excesses) = model.phi.row(word);
        self.weights.clear();
        let mut sum = 0.0;
        for (&topic, excess) in topics.iter().zip(excesses) {
            let count = f64::from(self.counts[topic as usize]);
            sum += (count + model.alpha.get(topic as usize)) * excess;
            self.weights.push(sum);
        }
        for &topic in &self.present {
            let count = f64::from(self.counts[topic as usize]);
            sum += count * model.phi.floors()[topic as usize];
            self.weights.push(sum);
        }
        let built = sum;
        let mark = unit * (built + model.prior_sum());
        if mark < built {
            let at = self.weights.partition_point(|&weight| weight <= mark);
            return topics.get(at).copied().unwrap_or_else(|| self.present[at - topics.len()]);
        }
        // If rounding puts the mark at the end of the sum, the last topic with a positive floor is
        // drawn.
        let mark = (mark - built).min(model.prior_sum().next_down());
        model.prior_sums.partition_point(|&sum| sum <= mark) as u32
    }

    pub fn add(&mut self, topic: u32) {
        self.counts[topic as usize] += 1;
        if self.counts[topic as usize] == 1 {
            self.present.push(topic);
        }
    }

    pub fn remove(&mut self, topic: u32) {
        self.counts[topic as usize] -= 1;
        if self.counts[topic as usize] == 0 {
            self.present.retain(|&other| other != topic);
        }
    }

    /// Σ_k (C_dk + α_k) floor_k, the part of the prediction that is the same for all words.
    pub fn floor_sum(&self, model: &Model<'_>) -> f64 {
        let floor = |&topic: &u32| {
            f64::from(self.counts[topic as usize]) * model.phi.floors()[topic as usize]
        };
        model.prior_sum() + self.present.iter().map(floor).sum::<f64>()
    }

    /// Σ_k φ_kw (C_dk + α_k) / (L_fold + ᾱ).
    pub fn probability(&self, model: &Model<'_>, word: u32, floor_sum: f64) -> f64 {
        let (topics, excesses) = model.phi.row(word);
        let mut sum = floor_sum;
        for (&topic, excess) in topics.iter().zip(excesses) {
            let count = f64::from(self.counts[topic as usize]);
            sum += (count + model.alpha.get(topic as usize)) * excess;
        }
        sum / (self.topics.len() as f64 + model.alpha_sum)
    }

    pub fn clear(&mut self) {
        for &topic in &self.present {
            self.counts[topic as usize] = 0;
        }
        self.present.clear();
        self.topics.clear();
    }
}
