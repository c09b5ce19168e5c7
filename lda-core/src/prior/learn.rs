//! Optimization of the priors from counts by Minka's fixed-point iteration.
//!
//! T. Minka, "Estimating a Dirichlet distribution" (2000), equation 55, for the
//! Dirichlet-multinomial with its counts; Wallach 2008, section 2.3, computes it from histograms,
//! because most counts are small and many are equal:
//!
//! ```text
//! N_k[m]: documents with C_dk = m     H[n]: documents of n tokens     Δ(a, m) = Σ_{j<m} 1 / (a + j)
//!
//! α_k ← α_k · Σ_m N_k[m] Δ(α_k, m) / Σ_n H[n] Δ(ᾱ, n)                 all k from the old ᾱ
//! α   ← α · Σ_k Σ_m N_k[m] Δ(α, m) / K Σ_n H[n] Δ(Kα, n)              one for all topics
//! β   ← β · Σ_{w,k} Δ(β, C_wk) / V Σ_k Δ(Vβ, C_k)
//! ```
//!
//! Each step increases the likelihood of the counts. A value never falls below 10⁻⁸, because the
//! iteration cannot leave 0.
//!
//! Cost: a pass over the non-zeros, then a few sums over the histograms per step. Counts up to 64
//! (fewer above 262,144 topics) are kept in arrays, larger ones in a list. Histograms hold integers
//! and are added up in one order, so that results do not depend on the order of rows' entries, or
//! on threads.

use super::Alpha;
use crate::counts::{DocumentCounts, WordCounts};
use crate::special::digamma;

/// Lower bound of an optimized prior.
const LEAST: f64 = 1e-8;
/// Counts up to this are kept in arrays.
const MOST_SMALL: usize = 64;
/// Maximum number of array entries: 128 MiB.
const ARRAY_LIMIT: usize = 1 << 24;

/// Δ(a, m) = Σ_{j<m} 1/(a + j) = ψ(a + m) − ψ(a).
fn delta(a: f64, m: u64) -> f64 {
    if m <= 8 {
        return (0..m).map(|j| 1.0 / (a + j as f64)).sum();
    }
    digamma(a + m as f64) - digamma(a)
}

/// Histograms of counts and of their sums: all that priors are learnt from. Those of parts of the
/// documents or words are added to those of the whole, in any order, with the same result to the bit.
///
/// ```
/// use lda_core::prior::learn::CountHistograms;
///
/// let mut documents = CountHistograms::per_topic(2);
/// documents.add_row(&[(0, 3), (1, 1)]);
/// documents.add_row(&[(1, 3)]);
/// documents.merge();
/// let found: Vec<_> = documents.counts().collect();
/// assert_eq!(found, [(0, 3, 1), (1, 1, 1), (1, 3, 1)]);
/// assert_eq!(documents.sums().collect::<Vec<_>>(), [(3, 1), (4, 1)]);
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct CountHistograms {
    /// Number of topics; 1 if all topics share one histogram.
    topics: usize,
    small: usize,
    /// `counts[k * small + m - 1]`: number of occurrences of count m.
    counts: Vec<u64>,
    /// (topic, count, occurrences), sorted by [`merge`](Self::merge).
    large: Vec<(u32, u32, u64)>,
    /// (sum, occurrences), sorted by [`merge`](Self::merge).
    sums: Vec<(u64, u64)>,
}

impl CountHistograms {
    /// Empty histograms of K topics.
    pub fn per_topic(topics: usize) -> Self {
        let small = (ARRAY_LIMIT / topics.max(1)).clamp(1, MOST_SMALL);
        Self { topics, small, counts: vec![0; topics * small], large: Vec::new(), sums: Vec::new() }
    }

    /// An empty histogram of all topics together.
    pub fn of_all_topics() -> Self {
        Self::per_topic(1)
    }

    /// Adds the counts of a row, (topic, count), and their sum.
    ///
    /// # Panics
    /// If a topic is not below K.
    pub fn add_row(&mut self, row: &[(u32, u32)]) {
        let mut sum = 0;
        for &(topic, count) in row {
            self.add(topic, count, 1);
            sum += u64::from(count);
        }
        self.add_sum(sum, 1);
    }

    /// Adds the rows of all documents.
    pub fn add_documents<C: DocumentCounts + ?Sized>(&mut self, counts: &C) {
        counts.visit_documents(0..counts.num_documents(), &mut |_, row| self.add_row(row));
    }

    /// Adds the rows of all words, with C_k for their sums.
    pub fn add_words<C: WordCounts + ?Sized>(&mut self, counts: &C) {
        counts.visit_words(0..counts.num_words(), &mut |_, row| {
            row.iter().for_each(|&(topic, count)| self.add(topic, count, 1));
        });
        (0..counts.num_topics()).for_each(|topic| self.add_sum(counts.topic_total(topic), 1));
    }

    /// Adds a count of a topic that occurs `times`. Zeros do not count.
    ///
    /// # Panics
    /// If the topic is not below K.
    pub fn add(&mut self, topic: u32, count: u32, times: u64) {
        let topic = if self.topics == 1 { 0 } else { topic as usize };
        assert!(topic < self.topics, "topic {topic} of {}", self.topics);
        match count as usize {
            0 => {}
            m if m <= self.small => self.counts[topic * self.small + m - 1] += times,
            _ => self.large.push((topic as u32, count, times)),
        }
    }

    /// Adds the sum of a row that occurs `times`. Zeros do not count.
    pub fn add_sum(&mut self, sum: u64, times: u64) {
        if sum > 0 {
            self.sums.push((sum, times));
        }
    }

    /// Makes one entry of equal counts, and of equal sums. Learning does it too.
    pub fn merge(&mut self) {
        self.large.sort_unstable();
        self.large.dedup_by(|next, kept| {
            let same = (next.0, next.1) == (kept.0, kept.1);
            kept.2 += if same { next.2 } else { 0 };
            same
        });
        self.sums.sort_unstable();
        self.sums.dedup_by(|next, kept| {
            let same = next.0 == kept.0;
            kept.1 += if same { next.1 } else { 0 };
            same
        });
    }

    /// (topic, count, occurrences) of all counts that occur, each once after a [merge](Self::merge).
    pub fn counts(&self) -> impl Iterator<Item = (u32, u32, u64)> + '_ {
        let small = self.counts.iter().enumerate().filter(|(_, times)| **times > 0);
        let place = |at: usize| ((at / self.small) as u32, (at % self.small) as u32 + 1);
        let small = small.map(move |(at, &times)| (place(at).0, place(at).1, times));
        small.chain(self.large.iter().copied())
    }

    /// (sum, occurrences) of all sums that occur, ascending and each once after a [merge](Self::merge).
    pub fn sums(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.sums.iter().copied()
    }

    /// Bytes held.
    pub fn memory(&self) -> usize {
        let Self { counts, large, sums, .. } = self;
        8 * counts.capacity() + 16 * (large.capacity() + sums.capacity())
    }

    /// α of all topics after `steps` iterations from `alpha`, from the histogram of all documents' counts
    /// for K topics.
    pub fn symmetric_alpha(&mut self, topics: usize, alpha: f64, steps: u32) -> f64 {
        self.symmetric(topics as f64, alpha, steps)
    }

    /// α per topic after `steps` iterations from `alpha`, from the histograms of all documents' counts.
    ///
    /// # Panics
    /// If `alpha` has values for fewer topics.
    pub fn alpha_per_topic(&mut self, alpha: &Alpha, steps: u32) -> Vec<f64> {
        self.merge();
        let mut alphas: Vec<f64> = (0..self.topics).map(|k| alpha.get(k)).collect();
        let mut sums = vec![0.0; self.topics];
        for _ in 0..steps {
            sums.fill(0.0);
            self.numerators(|k| alphas[k], &mut sums);
            let denominator = self.denominator(alphas.iter().sum());
            for (alpha, sum) in alphas.iter_mut().zip(&sums) {
                *alpha = step(*alpha, sum / denominator);
            }
        }
        alphas
    }

    /// β after `steps` iterations from `beta`, from the histogram of all counts of V `words`, whose sums
    /// are those of topics.
    pub fn beta(&mut self, words: usize, beta: f64, steps: u32) -> f64 {
        self.symmetric(words as f64, beta, steps)
    }

    /// A symmetric prior of `dimensions`.
    fn symmetric(&mut self, dimensions: f64, value: f64, steps: u32) -> f64 {
        self.merge();
        let mut value = value;
        for _ in 0..steps {
            let mut sum = [0.0];
            self.numerators(|_| value, &mut sum);
            let denominator = dimensions * self.denominator(dimensions * value);
            value = step(value, sum[0] / denominator);
        }
        value
    }

    /// Adds Σ_m N_k[m] Δ(a_k, m) of each topic to `to`.
    fn numerators(&self, a: impl Fn(usize) -> f64, to: &mut [f64]) {
        for (k, to) in to.iter_mut().enumerate().take(self.topics) {
            let (a, mut delta) = (a(k), 0.0);
            for (j, &often) in self.counts[k * self.small..(k + 1) * self.small].iter().enumerate()
            {
                delta += 1.0 / (a + j as f64);
                *to += often as f64 * delta;
            }
        }
        for &(k, count, often) in &self.large {
            to[k as usize] += often as f64 * delta(a(k as usize), count.into());
        }
    }

    /// Σ_n H[n] Δ(a, n).
    fn denominator(&self, a: f64) -> f64 {
        self.sums.iter().map(|&(sum, often)| often as f64 * delta(a, sum)).sum()
    }
}

/// `value * factor`, at least [`LEAST`]; `value` if the product is not finite.
fn step(value: f64, factor: f64) -> f64 {
    let new = value * factor;
    if new.is_finite() { new.max(LEAST) } else { value }
}

#[cfg(test)]
mod tests {
    use std::ops::Range;

    use super::*;
    use crate::counts::VisitRow;
    use crate::eval::{LogJoint, log_joint};
    use crate::random::Xoshiro256PlusPlus;

    struct Counts {
        topics: usize,
        documents: Vec<Vec<(u32, u32)>>,
        words: Vec<Vec<(u32, u32)>>,
    }

    impl DocumentCounts for Counts {
        fn num_topics(&self) -> usize {
            self.topics
        }
        fn num_documents(&self) -> usize {
            self.documents.len()
        }
        fn visit_documents(&self, documents: Range<usize>, visit: &mut VisitRow<'_>) {
            documents.for_each(|d| visit(d, &self.documents[d]));
        }
    }

    impl WordCounts for Counts {
        fn num_topics(&self) -> usize {
            self.topics
        }
        fn num_words(&self) -> usize {
            self.words.len()
        }
        fn topic_total(&self, topic: usize) -> u64 {
            let all = self.words.iter().flatten().filter(|entry| entry.0 as usize == topic);
            all.map(|entry| u64::from(entry.1)).sum()
        }
        fn visit_words(&self, words: Range<usize>, visit: &mut VisitRow<'_>) {
            words.for_each(|word| visit(word, &self.words[word]));
        }
    }

    fn symmetric_alpha(counts: &Counts, alpha: f64, steps: u32) -> f64 {
        let mut histogram = CountHistograms::of_all_topics();
        histogram.add_documents(counts);
        histogram.symmetric_alpha(counts.topics, alpha, steps)
    }

    fn alpha_per_topic(counts: &Counts, alpha: &Alpha, steps: u32) -> Vec<f64> {
        let mut histograms = CountHistograms::per_topic(counts.topics);
        histograms.add_documents(counts);
        histograms.alpha_per_topic(alpha, steps)
    }

    fn beta(counts: &Counts, beta: f64, steps: u32) -> f64 {
        let mut histogram = CountHistograms::of_all_topics();
        histogram.add_words(counts);
        histogram.beta(counts.words.len(), beta, steps)
    }

    #[test]
    fn golden_step() {
        // Tokens (0,0)(0,1)(0,2)(1,0)(1,1) in topics 0, 1, 1, 0, 1; α = (.5, 1.5), β = .3.
        let counts = Counts {
            topics: 2,
            documents: vec![vec![(0, 1), (1, 2)], vec![(0, 1), (1, 1)]],
            words: vec![vec![(0, 2)], vec![(1, 2)], vec![(1, 1)]],
        };
        let alphas = alpha_per_topic(&counts, &Alpha::PerTopic(vec![0.5, 1.5]), 1);
        assert!((alphas[0] - 1.043_478_260_9).abs() < 1e-9, "{alphas:?}");
        assert!((alphas[1] - 1.356_521_739_1).abs() < 1e-9, "{alphas:?}");
        let beta = beta(&counts, 0.3, 1);
        assert!((beta - 0.318_770_087_9).abs() < 1e-9, "{beta}");
    }

    /// Documents sampled from the model, with short and long rows.
    fn drawn(alphas: &[f64], seed: u64) -> Counts {
        let mut rng = Xoshiro256PlusPlus::from_seed(seed);
        let topics = alphas.len();
        let document = |d: usize| {
            // Pólya's urn.
            let mut counts = vec![0u32; topics];
            let sum: f64 = alphas.iter().sum();
            for n in 0..[5, 60, 900][d % 3] {
                let mut mark = rng.next_f64() * (sum + f64::from(n));
                let mut k = 0;
                while k + 1 < topics && mark >= alphas[k] + f64::from(counts[k]) {
                    mark -= alphas[k] + f64::from(counts[k]);
                    k += 1;
                }
                counts[k] += 1;
            }
            (0..).zip(counts).filter(|&(_, count)| count > 0).collect()
        };
        Counts { topics, documents: (0..1500).map(document).collect(), words: vec![vec![]; 4] }
    }

    #[test]
    fn priors_of_synthetic_documents_are_recovered() {
        let alphas = [0.05, 0.3, 1.0, 0.1, 2.0];
        let counts = drawn(&alphas, 1);
        let found = alpha_per_topic(&counts, &Alpha::Symmetric(0.5), 500);
        for (found, expected) in found.iter().zip(alphas) {
            assert!((found / expected - 1.0).abs() < 0.15, "{found}, not {expected}");
        }
        let found = symmetric_alpha(&drawn(&[0.2; 6], 2), 3.0, 500);
        assert!((found / 0.2 - 1.0).abs() < 0.05, "{found}");
    }

    #[test]
    fn every_step_increases_the_likelihood() {
        let mut counts = drawn(&[0.1, 0.7, 0.2], 3);
        counts.words =
            (0..50u32).map(|w| vec![(w % 3, 1 + w * w % 90), ((w + 1) % 3, 1)]).collect();
        let total = |alpha: &Alpha, beta: f64| {
            let LogJoint { documents, words } = log_joint(&counts, alpha, beta).unwrap();
            (documents, words)
        };
        let (mut alpha, mut symmetric, mut beta_now) = (Alpha::Symmetric(5.0), 5.0, 2.0);
        for _ in 0..20 {
            let before = (total(&alpha, beta_now), total(&symmetric.into(), beta_now).0);
            alpha = alpha_per_topic(&counts, &alpha, 1).into();
            symmetric = symmetric_alpha(&counts, symmetric, 1);
            beta_now = beta(&counts, beta_now, 1);
            let after = (total(&alpha, beta_now), total(&symmetric.into(), beta_now).0);
            let slack = 1e-9 * before.0.0.abs();
            assert!(after.0.0 >= before.0.0 - slack && after.0.1 >= before.0.1 - slack);
            assert!(after.1 >= before.1 - slack, "{before:?} {after:?}");
        }
    }

    #[test]
    fn empty_counts_leave_priors_unchanged() {
        let counts = Counts { topics: 2, documents: vec![vec![]], words: vec![vec![]] };
        assert_eq!(symmetric_alpha(&counts, 0.3, 5), 0.3);
        assert_eq!(alpha_per_topic(&counts, &Alpha::Symmetric(0.3), 5), [0.3, 0.3]);
        assert_eq!(beta(&counts, 0.2, 5), 0.2);
        // A topic without tokens keeps the lower bound.
        let counts = Counts { topics: 2, documents: vec![vec![(0, 7)]; 9], words: vec![] };
        assert_eq!(alpha_per_topic(&counts, &Alpha::Symmetric(0.3), 50)[1], LEAST);
    }

    #[test]
    fn arrays_and_lists_agree() {
        let counts = drawn(&[0.1, 0.7, 0.2], 4);
        let mut small = CountHistograms::per_topic(3);
        small.add_documents(&counts);
        small.merge();
        let mut all = vec![0.0; 3];
        small.numerators(|k| 0.1 + k as f64, &mut all);
        // The same with every count above 1 in the list.
        let mut listed = CountHistograms::per_topic(3);
        listed.small = 1;
        listed.counts = vec![0; 3];
        listed.add_documents(&counts);
        let mut sums: Vec<f64> = vec![0.0; 3];
        listed.numerators(|k| 0.1 + k as f64, &mut sums);
        for (a, b) in all.iter().zip(&sums) {
            assert!((a - b).abs() < 1e-9 * a, "{a} {b}");
        }
        small.large.clear();
        let mut without = vec![0.0; 3];
        small.numerators(|k| 0.1 + k as f64, &mut without);
        assert!(without < all, "there are large counts");
    }
}
