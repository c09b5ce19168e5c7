//! JSON of topics, and distances between topics.

use lda_core::model::TopicModel;
use serde::Serialize;

use crate::commands::serve::model::Ready;

/// Number of words between two checks for a disconnected client.
const WORDS_PER_LOOK: usize = 4096;

/// JSON of a topic.
#[derive(Serialize)]
pub struct Topic<'a> {
    topic: usize,
    alpha: f64,
    /// Number of tokens; absent if the model has no counts.
    #[serde(skip_serializing_if = "Option::is_none")]
    tokens: Option<u64>,
    terms: Vec<Term<'a>>,
}

/// JSON of a word of a topic.
#[derive(Serialize)]
struct Term<'a> {
    id: u32,
    /// Absent if the model has no vocabulary.
    #[serde(skip_serializing_if = "Option::is_none")]
    word: Option<&'a str>,
    probability: f64,
}

impl<'a> Topic<'a> {
    /// JSON of `topic` with its top `terms` words.
    pub fn of(ready: &'a Ready, topic: usize, terms: usize) -> Self {
        let model = ready.model();
        let term = |&id: &u32| Term {
            id,
            word: model.vocabulary().and_then(|names| names.get(id)),
            probability: model.phi(topic, id as usize),
        };
        Self {
            topic,
            alpha: model.alpha().get(topic),
            tokens: model.counts().map(|counts| counts.totals()[topic]),
            terms: ready.leading.topic(topic).iter().take(terms).map(term).collect(),
        }
    }
}

/// A topic and its distance from the query topic.
#[derive(Serialize)]
pub struct Neighbour {
    pub topic: usize,
    pub distance: f64,
}

/// All other topics, nearest first, the lower topic first at equal distances; `None` if `is_left`
/// reports that the client is gone.
pub fn neighbours(
    model: &TopicModel,
    topic: usize,
    is_left: &dyn Fn() -> bool,
) -> Option<Vec<Neighbour>> {
    let distances = distances(model, topic, is_left)?;
    let neighbour = |(topic, distance)| Neighbour { topic, distance };
    let mut all: Vec<_> = distances.into_iter().enumerate().map(neighbour).collect();
    all.remove(topic);
    all.sort_by(|a, b| a.distance.total_cmp(&b.distance));
    Some(all)
}

/// Hellinger distances √(½ Σ_w (√φ_tw − √φ_kw)²) of φ of topic t from φ of each topic k, from 0 to 1.
///
/// The sum over words separates where φ is sparse above a floor: with φ_kw = floor_k except at the
/// entries of k,
///
/// ```text
/// Σ_w √(φ_tw φ_kw) = √floor_k Σ_w √φ_tw + Σ of entries √φ_tw (√φ_kw − √floor_k)
/// ```
///
/// so that it costs one pass over the entries and not K × V. The Jensen-Shannon distance needs every
/// word.
fn distances(model: &TopicModel, topic: usize, is_left: &dyn Fn() -> bool) -> Option<Vec<f64>> {
    let words = model.num_words();
    let floors: Vec<f64> = (0..model.num_topics()).map(|k| model.floor(k)).collect();
    let roots: Vec<f64> = floors.iter().map(|floor| floor.sqrt()).collect();
    // Sums over entries: Σ √φ_tw (√φ_kw − √floor_k), and Σ φ_kw − floor_k.
    let (mut overlaps, mut masses) = (vec![0.0; floors.len()], vec![0.0; floors.len()]);
    let mut sum = 0.0;
    for word in 0..words {
        if word % WORDS_PER_LOOK == 0 && is_left() {
            return None;
        }
        let root = model.phi(topic, word).sqrt();
        sum += root;
        model.for_each_phi(word, |k, phi| {
            let k = k as usize;
            overlaps[k] += root * (phi.sqrt() - roots[k]);
            masses[k] += phi - floors[k];
        });
    }
    // The mass may differ from 1: weights are rounded, and a model may reserve mass.
    let mass = |k: usize| masses[k] + floors[k] * words as f64;
    let distance = |k: usize| {
        let squared = 0.5 * (mass(topic) + mass(k)) - (overlaps[k] + roots[k] * sum);
        squared.max(0.0).sqrt()
    };
    Some((0..floors.len()).map(distance).collect())
}

/// Hellinger distance of two distributions.
pub fn hellinger(p: &[f64], q: &[f64]) -> f64 {
    let squared = |(p, q): (&f64, &f64)| (p.sqrt() - q.sqrt()).powi(2);
    (0.5 * p.iter().zip(q).map(squared).sum::<f64>()).sqrt()
}

#[cfg(test)]
mod tests {
    use lda_core::model::Weights;

    use super::*;

    fn model() -> (TopicModel, [[f64; 5]; 4]) {
        let rows = [
            [0.4, 0.3, 0.1, 0.1, 0.1],
            [0.1, 0.1, 0.1, 0.3, 0.4],
            [0.0, 0.5, 0.5, 0.0, 0.0],
            [0.4, 0.3, 0.1, 0.1, 0.1],
        ];
        (TopicModel::from_weights(Weights::from_rows(&rows).unwrap(), 0.1.into()), rows)
    }

    #[test]
    fn distances_equal_those_of_dense_rows() {
        let (model, rows) = model();
        for (topic, row) in rows.iter().enumerate() {
            let found = distances(&model, topic, &|| false).unwrap();
            for (found, other) in found.iter().zip(&rows) {
                // An excess has 24 bits, and the root is steep near 0.
                assert!((found - hellinger(row, other)).abs() < 1e-3, "{found}");
                assert!((found.powi(2) - hellinger(row, other).powi(2)).abs() < 1e-7, "{found}");
            }
        }
        let nearest = neighbours(&model, 3, &|| false).unwrap();
        assert_eq!(nearest.iter().map(|other| other.topic).collect::<Vec<_>>(), [0, 1, 2]);
        assert!(neighbours(&model, 3, &|| true).is_none());
        let apart = hellinger(&[1.0, 0.0], &[0.0, 1.0]);
        assert!((apart - 1.0).abs() < 1e-15);
    }
}
