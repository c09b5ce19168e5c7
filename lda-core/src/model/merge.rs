//! Detection and merging of duplicate topics.
//!
//! If a model has more topics than the corpus supports, several become duplicates. They are
//! detected by the L1 distance of their word distributions, Σ_w |φ_kw − φ_jw|, which is 0 for equal
//! topics and 2 for topics without common words, and merged by adding their counts (ZenLDA §4.3).
//!
//! Most of the K² pairs are skipped. For a distance below t, two topics must share mass: Σ_w
//! min(φ_kw, φ_jw) > 1 − t/2. Take n words that hold more than t/2 + n/V of the mass of one topic.
//! A topic without an entry for any of them shares less than that: the remaining mass, and its
//! floors at these words, at most 1/V each. So only topics that have entries for a few heavy words
//! are compared.

use std::collections::HashMap;

use rayon::prelude::*;

use super::counts::Counts;
use super::rows::{Pattern, TopicArray};
use super::weights::Weights;
use super::{Parameters, TopicModel};
use crate::prior::Alpha;

/// Result of a merge: a model with fewer topics, and the mapping of the old ones.
#[derive(Clone, Debug, PartialEq)]
pub struct Merged {
    /// The merged model.
    pub model: TopicModel,
    /// New topic of each old topic.
    pub topics: Vec<u32>,
}

impl TopicModel {
    /// Clusters of duplicate topics: each topic is nearer than `threshold` (L1 distance, 0 to 2) to
    /// another topic of its cluster. Topics without duplicates are not listed. Clusters are ordered
    /// by their lowest topic, topics are ascending.
    ///
    /// For each topic, the cost is the entries of its heaviest words plus those of the topics found
    /// there. Runs in the current rayon pool.
    ///
    /// ```
    /// use lda_core::model::{TopicModel, Weights};
    ///
    /// let rows = [[0.8, 0.1, 0.1], [0.1, 0.1, 0.8], [0.7, 0.2, 0.1]];
    /// let model = TopicModel::from_weights(Weights::from_rows(&rows)?, 0.1.into());
    /// let clusters = model.duplicates(0.5);
    /// assert_eq!(clusters, [[0, 2]]);
    /// let merged = model.merge(&clusters);
    /// assert_eq!((merged.model.num_topics(), merged.topics), (2, vec![0, 1, 0]));
    /// # Ok::<(), lda_core::model::WeightsError>(())
    /// ```
    pub fn duplicates(&self, threshold: f64) -> Vec<Vec<u32>> {
        let topics = self.by_topic();
        let near: Vec<Vec<u32>> = (0..self.num_topics())
            .into_par_iter()
            .map(|k| self.near(k, &topics, threshold))
            .collect();
        // Union-find: each topic points to a lower one of its cluster, the lowest to itself.
        let mut lowest: Vec<usize> = (0..self.num_topics()).collect();
        let root = |lowest: &[usize], mut k: usize| {
            while lowest[k] != k {
                k = lowest[k];
            }
            k
        };
        for (k, near) in near.iter().enumerate() {
            for &j in near {
                let (a, b) = (root(&lowest, k), root(&lowest, j as usize));
                lowest[a.max(b)] = a.min(b);
            }
        }
        let mut clusters = vec![Vec::new(); self.num_topics()];
        for k in 0..self.num_topics() {
            clusters[root(&lowest, k)].push(k as u32);
        }
        clusters.retain(|cluster| cluster.len() > 1);
        clusters
    }

    /// Topics above `k` whose distance to it is below `threshold`.
    fn near(&self, k: usize, topics: &[Vec<(u32, f64)>], threshold: f64) -> Vec<u32> {
        let mut heavy = topics[k].clone();
        heavy.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
        let mut mass = 0.0;
        let mut candidates: Vec<u32> = Vec::new();
        let mut covered = false;
        for (n, &(word, phi)) in (1..).zip(&heavy) {
            candidates.extend(self.topics(word as usize).iter().filter(|&j| j as usize > k));
            mass += phi;
            // A topic without an entry for these n words has its floor there, at most 1/V each. The
            // remaining mass of `k` and these floors are too little to be near.
            covered = mass > threshold / 2.0 + f64::from(n) / self.num_words() as f64;
            if covered {
                break;
            }
        }
        if covered {
            candidates.sort_unstable();
            candidates.dedup();
        } else {
            // Most of the mass of `k` is floor, so that it may be near any topic.
            candidates = (k as u32 + 1..self.num_topics() as u32).collect();
        }
        let near =
            |&j: &u32| self.distance(k, j as usize, &topics[k], &topics[j as usize]) < threshold;
        candidates.retain(near);
        candidates
    }

    /// Σ_w |φ_kw − φ_jw|.
    fn distance(&self, k: usize, j: usize, a: &[(u32, f64)], b: &[(u32, f64)]) -> f64 {
        let (floor_k, floor_j) = (self.floor(k), self.floor(j));
        let (mut sum, mut words, mut at) = (0.0, 0, 0);
        for &(word, phi) in a {
            while at < b.len() && b[at].0 < word {
                sum += (b[at].1 - floor_k).abs();
                (words, at) = (words + 1, at + 1);
            }
            let other = match b.get(at) {
                Some(&(same, phi)) if same == word => {
                    at += 1;
                    phi
                }
                _ => floor_j,
            };
            sum += (phi - other).abs();
            words += 1;
        }
        sum += b[at..].iter().map(|&(_, phi)| (phi - floor_k).abs()).sum::<f64>();
        words += b.len() - at;
        sum + (self.num_words() - words) as f64 * (floor_k - floor_j).abs()
    }

    /// (word, φ_kw) of each topic's entries, words ascending.
    pub(crate) fn by_topic(&self) -> Vec<Vec<(u32, f64)>> {
        let mut topics = vec![Vec::new(); self.num_topics()];
        for word in 0..self.num_words() {
            self.for_each_phi(word, |topic, phi| topics[topic as usize].push((word as u32, phi)));
        }
        topics
    }

    /// Merges each cluster into one topic, which takes the place of its lowest; the order of topics
    /// is kept. Counts and α are added; φ of [`Weights`] is averaged with weights α. Vocabulary and
    /// provenance are kept.
    ///
    /// # Panics
    /// If a topic of a cluster is not below K or occurs twice.
    pub fn merge(&self, clusters: &[Vec<u32>]) -> Merged {
        let topics = self.num_topics();
        let mut leader: Vec<usize> = (0..topics).collect();
        let mut named = vec![false; topics];
        for cluster in clusters {
            let Some(&lowest) = cluster.iter().min() else { continue };
            for &topic in cluster {
                let again = std::mem::replace(&mut named[topic as usize], true);
                assert!(!again, "topic {topic} occurs twice");
                leader[topic as usize] = lowest as usize;
            }
        }
        let mut numbers = HashMap::new();
        let mut new = vec![0u32; topics];
        for k in 0..topics {
            let next = numbers.len() as u32;
            new[k] = *numbers.entry(leader[k]).or_insert(next);
        }
        let kept = numbers.len();
        let mut alpha = vec![0.0; kept];
        (0..topics).for_each(|k| alpha[new[k] as usize] += self.alpha.get(k));
        let parameters = match &self.parameters {
            Parameters::Counts(counts) => Parameters::Counts(merge_counts(counts, &new, kept)),
            Parameters::Weights(weights) => {
                let share = |k: usize| self.alpha.get(k) / alpha[new[k] as usize];
                Parameters::Weights(merge_weights(weights, &new, kept, share))
            }
        };
        let alpha = match &self.alpha {
            Alpha::Symmetric(alpha) if kept == topics => Alpha::Symmetric(*alpha),
            _ => Alpha::PerTopic(alpha),
        };
        let (names, provenance) = (self.names.clone(), self.provenance.clone());
        Merged { model: Self { parameters, alpha, names, provenance }, topics: new }
    }
}

/// Entries by word, with those of merged topics added.
fn merge_rows<V: Copy + Default>(
    words: usize,
    topics: usize,
    row: impl Fn(usize, &mut dyn FnMut(u32, V)),
    add: impl Fn(V, V) -> V,
) -> (Pattern, Vec<V>) {
    let mut offsets = vec![0];
    let mut ids = TopicArray::with_capacity(topics, 0);
    let mut values = Vec::new();
    let mut entries: Vec<(u32, V)> = Vec::new();
    for word in 0..words {
        entries.clear();
        row(word, &mut |topic, value| entries.push((topic, value)));
        entries.sort_by_key(|entry| entry.0);
        for same in entries.chunk_by(|a, b| a.0 == b.0) {
            ids.push(same[0].0);
            values.push(same.iter().fold(V::default(), |sum, entry| add(sum, entry.1)));
        }
        offsets.push(values.len() as u64);
    }
    (Pattern { offsets: offsets.into(), topics: ids.finish() }, values)
}

fn merge_counts(counts: &Counts, new: &[u32], kept: usize) -> Counts {
    let row = |word: usize, f: &mut dyn FnMut(u32, u32)| {
        counts.word(word).iter().for_each(|(topic, count)| f(new[topic as usize], count));
    };
    let (pattern, values) = merge_rows(counts.num_words(), kept, row, |a, b| a + b);
    let mut totals = vec![0; kept];
    new.iter().zip(counts.totals()).for_each(|(&k, total)| totals[k as usize] += total);
    Counts { pattern, counts: values.into(), totals: totals.into(), beta: counts.beta() }
}

fn merge_weights(
    weights: &Weights,
    new: &[u32],
    kept: usize,
    share: impl Fn(usize) -> f64,
) -> Weights {
    let row = |word: usize, f: &mut dyn FnMut(u32, f64)| {
        for (topic, excess) in weights.word(word).iter() {
            f(new[topic as usize], share(topic as usize) * f64::from(excess));
        }
    };
    let (pattern, values) = merge_rows(weights.num_words(), kept, row, |a: f64, b: f64| a + b);
    let mut floors = vec![0.0; kept];
    for (k, floor) in weights.floors().iter().enumerate() {
        floors[new[k] as usize] += share(k) * floor;
    }
    let excesses: Vec<f32> = values.iter().map(|&value| value as f32).collect();
    Weights { pattern, excesses: excesses.into(), floors: floors.into() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Corpus;
    use crate::random::Xoshiro256PlusPlus;
    use crate::train::Lda;

    fn trained(topics: u32) -> TopicModel {
        let documents = (0..40u32).map(|d| (0..20).map(move |i| (d % 4) * 5 + (i * i + d) % 5));
        let corpus = Corpus::from_tokens(documents).unwrap();
        Lda::topics(topics).alpha(0.1).epochs(40).train(&corpus, ()).unwrap().model
    }

    fn plain_distance(model: &TopicModel, k: usize, j: usize) -> f64 {
        (0..model.num_words()).map(|w| (model.phi(k, w) - model.phi(j, w)).abs()).sum()
    }

    #[test]
    fn distances_are_sums_over_all_words() {
        let model = trained(9);
        let topics = model.by_topic();
        for k in 0..9 {
            for j in 0..9 {
                let found = model.distance(k, j, &topics[k], &topics[j]);
                assert!((found - plain_distance(&model, k, j)).abs() < 1e-12);
            }
        }
    }

    #[test]
    fn every_near_pair_is_found() {
        let mut rng = Xoshiro256PlusPlus::from_seed(3);
        let rows: Vec<Vec<f64>> = (0..40)
            .map(|k| {
                let theme = k % 13;
                let heavy = |w: usize| if w / 4 == theme { 1.0 } else { 0.0 };
                (0..60).map(|w| heavy(w) + 0.02 + 0.3 * rng.next_f64().powi(6)).collect()
            })
            .collect();
        let real =
            TopicModel::from_weights(Weights::from_rows(&rows).unwrap(), Alpha::Symmetric(0.1));
        for model in [trained(12), trained(30), real] {
            let topics = model.by_topic();
            for threshold in [0.05, 0.4, 1.0, 1.9] {
                for k in 0..model.num_topics() {
                    let near = (k + 1..model.num_topics())
                        .filter(|&j| plain_distance(&model, k, j) < threshold)
                        .map(|j| j as u32)
                        .collect::<Vec<_>>();
                    assert_eq!(model.near(k, &topics, threshold), near, "{k} {threshold}");
                }
            }
        }
    }

    #[test]
    fn merged_counts_add_up() {
        let model = trained(12);
        let merged = model.merge(&[vec![5, 2, 7], vec![11, 3], vec![]]);
        assert_eq!(merged.topics, [0, 1, 2, 3, 4, 2, 5, 2, 6, 7, 8, 3]);
        let (old, new) = (model.counts().unwrap(), merged.model.counts().unwrap());
        assert_eq!(new.num_topics(), 9);
        assert_eq!(new.totals()[2], old.totals()[2] + old.totals()[5] + old.totals()[7]);
        new.check().unwrap();
        assert!((merged.model.alpha().get(2) - 0.3).abs() < 1e-12);
        assert!((merged.model.alpha().sum(9) - 1.2).abs() < 1e-12);
        // Nothing to merge, nothing changed.
        assert_eq!(model.merge(&[]).model, model);
    }

    #[test]
    fn merged_weights_are_means() {
        let rows = [[0.5, 0.5, 0.0], [0.1, 0.1, 0.8], [0.25, 0.25, 0.5]];
        let weights = Weights::from_rows(&rows).unwrap();
        let model = TopicModel::from_weights(weights, Alpha::PerTopic(vec![1.0, 0.5, 3.0]));
        let merged = model.merge(&[vec![0, 2]]).model;
        assert_eq!(merged.alpha(), &Alpha::PerTopic(vec![4.0, 0.5]));
        for (word, (a, b)) in rows[0].iter().zip(rows[2]).enumerate() {
            let expected = 0.25 * a + 0.75 * b;
            assert!((merged.phi(0, word) - expected).abs() < 1e-6);
        }
        let sum: f64 = (0..3).map(|word| merged.phi(0, word)).sum();
        assert!((sum - 1.0).abs() < 1e-6);
    }

    #[test]
    #[should_panic(expected = "topic 1 occurs twice")]
    fn a_topic_in_two_clusters_is_rejected() {
        trained(3).merge(&[vec![0, 1], vec![1, 2]]);
    }
}
