//! Consensus of several runs: the topics that most of them found.
//!
//! Runs with other random seeds find other topics, and a topic of one run alone may be chance. Topics of
//! all pairs of models are [aligned](super::align()); the model that the others agree with most is the
//! reference. A topic of it is in the consensus if its partners in more than half of the models overlap
//! with it enough, and φ is then the mean over it and these partners.
//!
//! The idea of matching topics over runs and keeping the stable ones is that of Mäntylä, Claes and Farooq
//! 2018 ("Measuring LDA topic stability from clusters of replicated runs"); the matching is one-to-one
//! here, and the mean is over whole distributions.

use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::align::{Alignment, align};
use crate::corpus::Vocabulary;
use crate::model::{Provenance, TopicModel, Weights, WeightsError};
use crate::prior::Alpha;

/// Error of [`consensus()`].
#[derive(Clone, Debug, PartialEq, Error)]
#[non_exhaustive]
pub enum ConsensusError {
    /// There are fewer than two models.
    #[error("{0} models: a consensus needs at least two")]
    TooFew(usize),
    /// The models have other words.
    #[error("models 0 and {model} have other words: give models of the same documents")]
    Words {
        /// Number of the model.
        model: usize,
    },
    /// No topic is in more than half of the models.
    #[error(
        "no topic is in more than half of the {models} models: give a smaller overlap than {overlap}, or \
         models with fewer topics"
    )]
    Nothing {
        /// Number of models.
        models: usize,
        /// Least overlap.
        overlap: f64,
    },
    /// The mean of topics is no distribution.
    #[error(transparent)]
    Weights(#[from] WeightsError),
}

/// The topics that several models share, the most stable first.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Consensus {
    /// Number of the model whose topics the others share most.
    pub reference: usize,
    /// Topics of `model`.
    pub topics: Vec<SharedTopic>,
    /// Mean φ and α of the shared topics.
    pub model: TopicModel,
}

/// A topic of a consensus.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct SharedTopic {
    /// Topic of the reference.
    pub topic: u32,
    /// Number of models that have it, the reference included.
    pub support: usize,
    /// Mean overlap with its partners in all other models, 0 to 1: how stable it is.
    pub overlap: f64,
}

/// Topics that more than half of the models share: whose partners overlap by at least `least_overlap`
/// (Σ_w min(φ_kw, φ'_jw); 0.5 is a good choice).
///
/// Time: that of [`align()`] per pair of models. Memory: 8 bytes per word and shared topic, and 16 bytes per
/// entry of a model.
///
/// ```
/// use lda_core::eval::consensus;
/// use lda_core::model::{TopicModel, Weights};
///
/// let model = |rows: [[f64; 4]; 2]| {
///     Weights::from_rows(&rows).map(|weights| TopicModel::from_weights(weights, 0.1.into()))
/// };
/// let runs = [
///     model([[0.8, 0.2, 0.0, 0.0], [0.0, 0.0, 0.5, 0.5]])?,
///     model([[0.0, 0.1, 0.5, 0.4], [0.6, 0.4, 0.0, 0.0]])?,
///     model([[0.7, 0.3, 0.0, 0.0], [0.3, 0.0, 0.0, 0.7]])?,
/// ];
/// let found = consensus(&runs, 0.7)?;
/// let support: Vec<usize> = found.topics.iter().map(|topic| topic.support).collect();
/// assert_eq!(support, [3, 2]);
/// assert!((found.model.phi(0, 0) - 0.7).abs() < 1e-6);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// [`ConsensusError`].
pub fn consensus(models: &[TopicModel], least_overlap: f64) -> Result<Consensus, ConsensusError> {
    check(models)?;
    let pairs: Vec<(usize, usize)> =
        (0..models.len()).flat_map(|i| (0..i).map(move |j| (j, i))).collect();
    let alignments: Vec<Alignment> = pairs
        .par_iter()
        .map(|&(i, j)| align(&models[i], &models[j]).expect("they have the same words"))
        .collect();
    let mut agreement = vec![0.0; models.len()];
    for (&(i, j), found) in pairs.iter().zip(&alignments) {
        agreement[i] += found.mean();
        agreement[j] += found.mean();
    }
    let best = agreement.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let reference = agreement.iter().position(|&mean| mean == best).unwrap_or(0);

    let mut groups: Vec<Group> = (0..models[reference].num_topics() as u32)
        .map(|topic| Group::new(reference, topic))
        .collect();
    for (&(i, j), found) in pairs.iter().zip(&alignments) {
        for &(first, second, overlap) in &found.pairs {
            let (own, partner) = match reference {
                reference if reference == i => (first, (j, second)),
                reference if reference == j => (second, (i, first)),
                _ => continue,
            };
            groups[own as usize].add(partner, overlap, least_overlap);
        }
    }
    groups.retain(|group| 2 * group.members.len() > models.len());
    // The order is stable: topics of equal support and overlap stay in the reference's order.
    groups.sort_by(|a, b| {
        let support = b.members.len().cmp(&a.members.len());
        support.then(b.overlaps.total_cmp(&a.overlaps))
    });
    if groups.is_empty() {
        return Err(ConsensusError::Nothing { models: models.len(), overlap: least_overlap });
    }
    Ok(Consensus {
        reference,
        topics: shared(&groups, models.len()),
        model: mean(models, &groups, reference)?,
    })
}

fn check(models: &[TopicModel]) -> Result<(), ConsensusError> {
    if models.len() < 2 {
        return Err(ConsensusError::TooFew(models.len()));
    }
    let first = &models[0];
    for (number, model) in models.iter().enumerate() {
        let names = [first, model].map(|model| model.vocabulary().map(Vocabulary::parts));
        if model.num_words() != first.num_words() || names[0] != names[1] {
            return Err(ConsensusError::Words { model: number });
        }
    }
    Ok(())
}

/// A topic of the reference and its partners.
struct Group {
    /// (model, topic) of the reference, and of the partners that overlap enough.
    members: Vec<(usize, u32)>,
    /// Sum of the overlaps of all partners.
    overlaps: f64,
}

impl Group {
    fn new(reference: usize, topic: u32) -> Self {
        Self { members: vec![(reference, topic)], overlaps: 0.0 }
    }

    fn add(&mut self, partner: (usize, u32), overlap: f64, least: f64) {
        self.overlaps += overlap;
        if overlap >= least {
            self.members.push(partner);
        }
    }
}

fn shared(groups: &[Group], models: usize) -> Vec<SharedTopic> {
    let of = |group: &Group| SharedTopic {
        topic: group.members[0].1,
        support: group.members.len(),
        // Sums of φ may exceed 1 by rounding.
        overlap: (group.overlaps / (models - 1) as f64).min(1.0),
    };
    groups.iter().map(of).collect()
}

/// The model of the means of all groups.
fn mean(
    models: &[TopicModel],
    groups: &[Group],
    reference: usize,
) -> Result<TopicModel, ConsensusError> {
    let (words, by_topic): (usize, Vec<_>) =
        (models[0].num_words(), models.iter().map(TopicModel::by_topic).collect());
    let rows: Vec<Vec<f64>> = groups
        .par_iter()
        .map(|group| {
            let mut row = vec![0.0; words];
            for &(model, topic) in &group.members {
                let floor = models[model].floor(topic as usize);
                row.iter_mut().for_each(|phi| *phi += floor);
                for &(word, phi) in &by_topic[model][topic as usize] {
                    row[word as usize] += phi - floor;
                }
            }
            row.iter_mut().for_each(|phi| *phi /= group.members.len() as f64);
            row
        })
        .collect();
    let alpha = |group: &Group| {
        let sum: f64 = group
            .members
            .iter()
            .map(|&(model, topic)| models[model].alpha().get(topic as usize))
            .sum();
        sum / group.members.len() as f64
    };
    let alpha = Alpha::PerTopic(groups.iter().map(alpha).collect());
    let reference = &models[reference];
    let notes = vec![("consensus".to_owned(), format!("{} models", models.len()))];
    let Provenance { documents, tokens, corpus, .. } = *reference.provenance();
    let provenance = Provenance { documents, tokens, corpus, notes, ..Provenance::default() };
    Ok(TopicModel::from_weights(Weights::from_rows(&rows)?, alpha)
        .with_vocabulary(reference.vocabulary().cloned())
        .with_provenance(provenance))
}

#[cfg(test)]
mod tests {
    use std::cmp::Reverse;

    use super::*;
    use crate::{Corpus, Lda};

    fn model(rows: &[[f64; 6]], alpha: &[f64]) -> TopicModel {
        let weights = Weights::from_rows(rows).unwrap();
        TopicModel::from_weights(weights, Alpha::PerTopic(alpha.to_vec()))
    }

    const TREE: [f64; 6] = [0.5, 0.5, 0.0, 0.0, 0.0, 0.0];
    const SEA: [f64; 6] = [0.0, 0.0, 0.5, 0.5, 0.0, 0.0];
    const STAR: [f64; 6] = [0.0, 0.0, 0.0, 0.0, 0.5, 0.5];
    const MIXED: [f64; 6] = [0.2, 0.0, 0.2, 0.2, 0.2, 0.2];

    #[test]
    fn topics_of_most_models_are_averaged() {
        let sea = [0.0, 0.0, 0.75, 0.25, 0.0, 0.0];
        let models = [
            model(&[TREE, STAR, SEA], &[0.1, 0.2, 0.3]),
            model(&[sea, TREE, MIXED], &[0.5, 0.3, 1.0]),
            model(&[MIXED, TREE, SEA], &[9.0, 0.2, 0.1]),
        ];
        let found = consensus(&models, 0.7).unwrap();
        // The last two models share three topics, so one of them is the reference.
        assert_eq!(found.reference, 2);
        let support: Vec<_> =
            found.topics.iter().map(|topic| (topic.topic, topic.support)).collect();
        assert_eq!(support, [(1, 3), (2, 3), (0, 2)]);
        assert!((found.topics[0].overlap - 1.0).abs() < 1e-6);
        assert!((found.topics[1].overlap - 0.875).abs() < 1e-6);
        let phi = |topic: usize, word: usize| found.model.phi(topic, word);
        for (topic, word, expected) in
            [(0, 0, 0.5), (1, 2, 1.75 / 3.0), (1, 3, 1.25 / 3.0), (2, 0, 0.2)]
        {
            assert!((phi(topic, word) - expected).abs() < 1e-6, "{topic}, {word}");
        }
        let alpha = found.model.alpha().as_slice();
        assert!((alpha[0] - 0.2).abs() < 1e-12 && (alpha[2] - 5.0).abs() < 1e-12, "{alpha:?}");
        // A larger overlap leaves fewer.
        let strict = consensus(&models, 0.9).unwrap();
        let support: Vec<_> =
            strict.topics.iter().map(|topic| (topic.topic, topic.support)).collect();
        assert_eq!(support, [(1, 3), (2, 2), (0, 2)]);
    }

    #[test]
    fn models_that_have_nothing_in_common_are_refused() {
        let tree = || model(&[TREE], &[0.1]);
        let said = |models: &[TopicModel]| consensus(models, 0.5).unwrap_err().to_string();
        assert!(said(&[tree()]).starts_with("1 models: "));
        assert!(
            said(&[tree(), model(&[SEA], &[0.1])])
                .starts_with("no topic is in more than half of the 2")
        );
        let words = Weights::from_rows(&[[0.5, 0.5]]).unwrap();
        let other = TopicModel::from_weights(words, 0.1.into());
        assert!(said(&[tree(), other]).starts_with("models 0 and 1 have other words"));
        // The same letters, divided otherwise.
        let named = |words: [&str; 2]| {
            let corpus = Corpus::from_words([words]).unwrap();
            Lda::topics(2).epochs(2).train(&corpus, ()).unwrap().model
        };
        let models = [named(["ab", "c"]), named(["a", "bc"])];
        assert!(said(&models).starts_with("models 0 and 1 have other words"));
    }

    #[test]
    fn runs_agree_on_the_themes_of_their_documents() {
        let themes = [["tree", "leaf", "root"], ["sea", "wave", "sand"], ["star", "moon", "dust"]];
        let corpus = Corpus::from_words((0..90).map(|d| themes[d % 3].repeat(4))).unwrap();
        let train = |seed| {
            let lda = Lda::topics(3).alpha(0.1).seed(seed).epochs(60);
            lda.train(&corpus, ()).unwrap().model
        };
        let found = consensus(&[1, 2, 3, 4, 5].map(train), 0.5).unwrap();
        assert!(found.topics.len() >= 2 && found.topics[0].support >= 3, "{:?}", found.topics);
        assert!(found.topics.is_sorted_by_key(|topic| Reverse(topic.support)));
        assert_eq!(found.model.vocabulary().unwrap().len(), 9);
    }
}
