//! Jensen-Shannon distances between topics.
//!
//! The Jensen-Shannon divergence of two topics is the mean of their Kullback-Leibler divergences
//! from their mixture:
//!
//! ```text
//! JSD(p, q) = ½ Σ_w p_w log2(p_w / m_w) + ½ Σ_w q_w log2(q_w / m_w),   m = (p + q) / 2
//! ```
//!
//! in bits, 0 for equal topics and 1 for topics without a common word. Its square root is a metric
//! (Endres and Schindelin 2003) that embeds in a Euclidean space (Fuglede and Topsøe 2004).
//! Distances here are therefore square roots, and [`classical_scaling`](super::classical_scaling)
//! has no negative eigenvalues.
//!
//! # Cost
//! φ is sparse over a floor, and many entries of a topic are equal, such as those of all words with
//! a single token. A pair of topics costs
//!
//! * for each entry of the smaller topic a look-up of the word in the larger one, and a logarithm
//!   if both have an entry;
//! * a logarithm for each distinct value of the entries that only one topic has;
//! * one logarithm for all words at both floors.
//!
//! 1,000 topics over 100,000 words, of 1.8 million entries, took 3.0 CPU seconds of a virtual AMD
//! EPYC.
//!
//! Nothing is approximated, no term is negative, and no terms are subtracted: equal topics have
//! distance exactly 0. Memory: 24 bytes per entry at first, then 8; 8 bytes per pair of topics,
//! briefly twice that; 4 bytes per word and thread.

use rayon::prelude::*;

use super::sum::Sum;
use crate::model::TopicModel;

/// Matrix of distances between the topics of a model. See the [module](self).
///
/// ```
/// use lda_core::eval::TopicDistances;
/// use lda_core::model::{TopicModel, Weights};
///
/// let rows = [[0.5, 0.5, 0.0], [0.0, 0.0, 1.0], [0.5, 0.25, 0.25]];
/// let model = TopicModel::from_weights(Weights::from_rows(&rows)?, 0.1.into());
/// let distances = TopicDistances::jensen_shannon(&model);
/// assert_eq!((distances.get(0, 1), distances.get(1, 1)), (1.0, 0.0));
/// assert_eq!(distances.nearest(0, 1)[0].0, 2);
/// # Ok::<(), lda_core::model::WeightsError>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct TopicDistances {
    num_topics: usize,
    /// Rows of the upper triangle without the diagonal.
    pairs: Vec<f64>,
}

impl TopicDistances {
    /// Square roots of the Jensen-Shannon divergences in bits, 0 to 1, in the current rayon pool:
    /// the same bits on any number of threads.
    pub fn jensen_shannon(model: &TopicModel) -> Self {
        let mut topics: Vec<Topic> = model
            .by_topic()
            .into_par_iter()
            .enumerate()
            .map(|(topic, entries)| Topic::new(topic, model.floor(topic), &entries))
            .collect();
        // The larger topic of a pair is expanded to a dense array, the smaller one is iterated.
        topics.sort_by_key(|topic| (std::cmp::Reverse(topic.entries.len()), topic.id));
        let num_topics = topics.len();
        let rows: Vec<Vec<f64>> = (0..num_topics)
            .into_par_iter()
            .map_init(
                || Spread::new(model.num_words()),
                |spread, place| {
                    let (first, others) = topics[place..].split_first().expect("itself");
                    spread.with(first, |spread| {
                        others.iter().map(|other| spread.divergence(first, other).sqrt()).collect()
                    })
                },
            )
            .collect();
        let mut distances = Self { num_topics, pairs: vec![0.0; pairs(num_topics)] };
        for (place, row) in rows.iter().enumerate() {
            for (other, &distance) in topics[place + 1..].iter().zip(row) {
                let at = distances.place(topics[place].id, other.id);
                distances.pairs[at] = distance;
            }
        }
        distances
    }

    /// Number of topics K.
    pub fn num_topics(&self) -> usize {
        self.num_topics
    }

    /// Distance between two topics.
    ///
    /// # Panics
    /// If a topic is not below K.
    pub fn get(&self, first: usize, second: usize) -> f64 {
        assert!(first.max(second) < self.num_topics, "{first} and {second} are topics");
        if first == second { 0.0 } else { self.pairs[self.place(first, second)] }
    }

    /// The `n` topics nearest to `topic`, nearest first; ties: lower topic first.
    ///
    /// # Panics
    /// If `topic` is not below K.
    pub fn nearest(&self, topic: usize, n: usize) -> Vec<(u32, f64)> {
        let others = (0..self.num_topics).filter(|&other| other != topic);
        let mut found: Vec<(u32, f64)> =
            others.map(|other| (other as u32, self.get(topic, other))).collect();
        found.sort_by(|a, b| a.1.total_cmp(&b.1));
        found.truncate(n);
        found
    }

    /// Index of a pair of different topics in `distances`.
    fn place(&self, first: usize, second: usize) -> usize {
        let (low, high) = (first.min(second), first.max(second));
        pairs(self.num_topics) - pairs(self.num_topics - low) + high - low - 1
    }

    /// Distances from a function.
    pub(super) fn from_fn(num_topics: usize, distance: impl Fn(usize, usize) -> f64) -> Self {
        let row = |i| (i + 1..num_topics).map(move |j| (i, j));
        let pairs = (0..num_topics).flat_map(row).map(|(i, j)| distance(i, j)).collect();
        Self { num_topics, pairs }
    }
}

/// Number of pairs of `n` items.
fn pairs(n: usize) -> usize {
    n * n.saturating_sub(1) / 2
}

/// A probability, and p ln p.
#[derive(Clone, Copy, Debug)]
struct Share {
    p: f64,
    p_ln_p: f64,
}

impl Share {
    fn new(p: f64) -> Self {
        Self { p, p_ln_p: if p > 0.0 { p * p.ln() } else { 0.0 } }
    }

    /// p ln(p/m) + q ln(q/m) with m the mean of p and q: never negative, and 0 if they are equal.
    #[inline]
    fn against(self, other: Self) -> f64 {
        let sum = self.p + other.p;
        if sum > 0.0 { (self.p_ln_p + other.p_ln_p - sum * (sum / 2.0).ln()).max(0.0) } else { 0.0 }
    }
}

/// φ of a topic, grouped by distinct values.
struct Topic {
    id: usize,
    floor: Share,
    /// (word, class of its value), words ascending.
    entries: Vec<(u32, u32)>,
    /// Distinct values and the number of entries of each.
    classes: Vec<Share>,
    sizes: Vec<u32>,
}

impl Topic {
    fn new(id: usize, floor: f64, entries: &[(u32, f64)]) -> Self {
        let mut values: Vec<f64> = entries.iter().map(|&(_, phi)| phi).collect();
        values.sort_unstable_by(f64::total_cmp);
        values.dedup();
        let mut sizes = vec![0; values.len()];
        let class = |&(word, phi): &(u32, f64)| {
            let class = values.partition_point(|&value| value < phi);
            sizes[class] += 1;
            (word, class as u32)
        };
        let entries = entries.iter().map(class).collect();
        let classes = values.into_iter().map(Share::new).collect();
        Self { id, floor: Share::new(floor), entries, classes, sizes }
    }
}

/// Scratch memory of a thread: one topic as a dense array by word.
struct Spread {
    /// Class of each word's entry in the topic, from 1; 0 without an entry.
    class: Vec<u32>,
    /// Number of entries of each class, for both topics, whose words have no entry in the other
    /// topic.
    alone: [Vec<u32>; 2],
}

impl Spread {
    fn new(words: usize) -> Self {
        Self { class: vec![0; words], alone: [Vec::new(), Vec::new()] }
    }

    /// Expands `topic`, calls `f`, and clears the array again.
    fn with<T>(&mut self, topic: &Topic, f: impl FnOnce(&mut Self) -> T) -> T {
        topic.entries.iter().for_each(|&(word, class)| self.class[word as usize] = class + 1);
        let result = f(self);
        topic.entries.iter().for_each(|&(word, _)| self.class[word as usize] = 0);
        result
    }

    /// Divergence between the expanded topic and another one.
    fn divergence(&mut self, first: &Topic, second: &Topic) -> f64 {
        let Self { class, alone: [of_first, of_second] } = self;
        of_first.clone_from(&first.sizes);
        of_second.clone_from(&second.sizes);
        let mut sum = Sum::default();
        let mut neither = class.len() - first.entries.len();
        for &(word, theirs) in &second.entries {
            let theirs = theirs as usize;
            match class[word as usize] as usize {
                0 => neither -= 1,
                own => {
                    of_first[own - 1] -= 1;
                    of_second[theirs] -= 1;
                    sum.add(first.classes[own - 1].against(second.classes[theirs]));
                }
            }
        }
        for (topic, alone, floor) in
            [(first, of_first, second.floor), (second, of_second, first.floor)]
        {
            for (&share, &words) in topic.classes.iter().zip(&*alone).filter(|(_, n)| **n > 0) {
                sum.add(f64::from(words) * share.against(floor));
            }
        }
        sum.add(neither as f64 * first.floor.against(second.floor));
        // Rounding may exceed the maximum for topics without a common word.
        (sum.value() / (2.0 * std::f64::consts::LN_2)).min(1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Corpus;
    use crate::model::Weights;
    use crate::random::Xoshiro256PlusPlus;
    use crate::train::Lda;

    /// Reference: the formula, word by word.
    fn plain(model: &TopicModel, k: usize, j: usize) -> f64 {
        let part = |p: f64, m: f64| if p > 0.0 { p * (p / m).log2() } else { 0.0 };
        let word = |w| {
            let (p, q) = (model.phi(k, w), model.phi(j, w));
            (part(p, (p + q) / 2.0) + part(q, (p + q) / 2.0)) / 2.0
        };
        (0..model.num_words()).map(word).sum::<f64>().max(0.0).sqrt()
    }

    fn weights(rows: &[Vec<f64>]) -> TopicModel {
        TopicModel::from_weights(Weights::from_rows(rows).unwrap(), 0.1.into())
    }

    fn trained(topics: u32) -> TopicModel {
        let documents = (0..40u32).map(|d| (0..20).map(move |i| (d % 4) * 5 + i * (d + 1) % 7));
        let corpus = Corpus::from_tokens(documents).unwrap();
        Lda::topics(topics).alpha(0.1).seed(3).epochs(30).train(&corpus, ()).unwrap().model
    }

    #[test]
    fn distances_are_those_of_the_formula() {
        let mut rng = Xoshiro256PlusPlus::from_seed(5);
        let rows: Vec<Vec<f64>> = (0..9)
            .map(|_| (0..40).map(|_| (rng.next_f64() * 6.0 - 3.0).max(0.0).floor()).collect())
            .collect();
        let smooth: Vec<Vec<f64>> =
            rows.iter().map(|row| row.iter().map(|x| x + 0.01).collect()).collect();
        for model in [weights(&rows), weights(&smooth), trained(6), trained(30)] {
            let found = TopicDistances::jensen_shannon(&model);
            for k in 0..model.num_topics() {
                for j in 0..model.num_topics() {
                    let (found, expected) = (found.get(k, j), plain(&model, k, j));
                    // The square root of a rounding error of 1e-15 is 3e-8.
                    assert!((found - expected).abs() < 1e-7, "{k}, {j}: {found}, not {expected}");
                    assert!((found * found - expected * expected).abs() < 1e-13);
                }
            }
        }
    }

    #[test]
    fn distances_by_hand() {
        let model = weights(&[
            vec![1.0, 0.0, 0.0],
            vec![0.0, 0.5, 0.5],
            vec![0.5, 0.5, 0.0],
            vec![0.0, 1.0, 1.0],
        ]);
        let distances = TopicDistances::jensen_shannon(&model);
        assert_eq!(distances.get(0, 1), 1.0);
        assert_eq!(distances.get(1, 3), 0.0);
        // (1, 0) and (½, ½): entropy of (¾, ¼) less half a bit.
        let expected = 0.25 * 4.0_f64.log2() + 0.75 * (4.0_f64 / 3.0).log2() - 0.5;
        assert!((distances.get(2, 0).powi(2) - expected).abs() < 1e-15);
        assert_eq!(distances.get(2, 0), distances.get(0, 2));
        // One word of two in common: half of the mass of each topic is on a word that only it has.
        assert!((distances.get(1, 2).powi(2) - 0.5).abs() < 1e-15);
        assert_eq!(distances.nearest(1, 2), [(3, 0.0), (2, distances.get(1, 2))]);
        assert_eq!(distances.nearest(0, 9).len(), 3);
    }

    #[test]
    fn threads_do_not_matter_and_few_topics_do_no_harm() {
        let model = trained(12);
        let on = |threads| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| TopicDistances::jensen_shannon(&model))
        };
        assert_eq!(on(1), on(3));
        let one = TopicDistances::jensen_shannon(&weights(&[vec![1.0, 2.0]]));
        assert_eq!((one.num_topics(), one.get(0, 0)), (1, 0.0));
        assert!(one.nearest(0, 3).is_empty());
    }
}
