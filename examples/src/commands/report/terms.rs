//! Candidates for the word list of a topic: the union of its top words at every step of λ.
//!
//! The page orders them by [relevance](mod@lda_core::eval::top_words) while a slider moves. It has
//! the counts and uses the library's formula, so its order is the library's; the candidates are the
//! union of the library's lists at every step, so that no top word is missing at any step.
//!
//! A model of real numbers is converted to counts: C_wk = φ_kw times the tokens of topic k, in
//! units small enough that rounding does not change a list. The floor of a topic is in its total
//! and in the frequencies, but not in the counts of words: words at the floor come last and are no
//! candidates.

use std::ops::Range;

use lda_core::counts::{VisitRow, WordCounts};
use lda_core::eval::{Ranking, TopWordsError, top_words};
use lda_core::model::TopicModel;
use rayon::prelude::*;

use crate::commands::report::contents::CountsScale;

/// Number of words in a list.
pub const SHOWN: usize = 30;
/// Steps of the slider: 0, 0.05, ..., 1.
pub const STEPS: u32 = 20;

/// Candidates with their counts, totals and smoothing.
pub struct Terms {
    /// (word, count) by topic, words ascending.
    pub candidates: Vec<Vec<(u32, u32)>>,
    /// Number of tokens per topic.
    pub totals: Vec<u64>,
    /// Number of tokens per word in all topics.
    pub frequencies: Vec<u64>,
    pub scale: CountsScale,
}

impl Terms {
    /// Candidates of a model. The tokens of its topics in the documents are used only for a model of
    /// real numbers.
    ///
    /// # Errors
    /// [`TopWordsError`], if β of the model is invalid.
    pub fn new(model: &TopicModel, tokens: &[f64]) -> Result<Self, TopWordsError> {
        match model.counts() {
            Some(counts) => Self::of(counts, counts.beta(), true),
            None => {
                let weighted = Weighted::new(model, tokens);
                let mut terms = Self::of(&weighted, Weighted::BETA, false)?;
                terms.frequencies = weighted.frequencies();
                Ok(terms)
            }
        }
    }

    fn of(counts: &impl WordCounts, beta: f64, exact: bool) -> Result<Self, TopWordsError> {
        let mut candidates: Vec<Vec<(u32, u32)>> = vec![Vec::new(); counts.num_topics()];
        let steps: Vec<u32> = (0..=STEPS).collect();
        // PERF: as many steps at a time as there are threads: all lists of 100,000 topics would take
        // 1.5 GB.
        for steps in steps.chunks(rayon::current_num_threads()) {
            let lists = steps
                .par_iter()
                .map(|&step| {
                    let lambda = f64::from(step) / f64::from(STEPS);
                    top_words(counts, beta, SHOWN, Ranking::Relevance { lambda })
                })
                .collect::<Result<Vec<_>, _>>()?;
            candidates.par_iter_mut().enumerate().for_each(|(topic, words)| {
                let lists = lists.iter().flat_map(|lists| &lists[topic]);
                words.extend(lists.map(|top| (top.word, top.count)));
                words.sort_unstable();
                words.dedup();
            });
        }
        let totals: Vec<u64> = (0..counts.num_topics()).map(|k| counts.topic_total(k)).collect();
        let mut frequencies = vec![0; counts.num_words()];
        counts.visit_words(0..counts.num_words(), &mut |word, row| {
            frequencies[word] = row.iter().map(|entry| u64::from(entry.1)).sum();
        });
        let scale = CountsScale {
            beta,
            beta_sum: beta * counts.num_words() as f64,
            tokens: totals.iter().sum(),
            exact,
            shown: SHOWN,
            steps: STEPS,
        };
        Ok(Self { candidates, totals, frequencies, scale })
    }
}

/// A model of real numbers, converted to counts.
struct Weighted<'a> {
    model: &'a TopicModel,
    /// Count per unit of φ, by topic.
    scales: Vec<f64>,
    totals: Vec<u64>,
}

impl<'a> Weighted<'a> {
    /// A negligible β, because the real numbers are already smoothed.
    const BETA: f64 = 1e-9;

    fn new(model: &'a TopicModel, tokens: &[f64]) -> Self {
        // A topic without tokens in the documents still has words.
        let largest = tokens.iter().copied().fold(1.0, f64::max);
        let unit = f64::from(u32::MAX) / largest;
        let scales: Vec<f64> =
            tokens.iter().map(|tokens| tokens.max(largest * 1e-3) * unit).collect();
        // The probabilities of a topic sum to 1.
        let totals = scales.iter().map(|scale| scale.round() as u64).collect();
        Self { model, scales, totals }
    }

    /// Tokens per word, including the floors of the topics.
    fn frequencies(&self) -> Vec<u64> {
        let floor = |topic: usize| self.model.floor(topic) * self.scales[topic];
        let floors: f64 = (0..self.model.num_topics()).map(floor).sum();
        let frequency = |word| {
            let mut tokens = floors;
            self.model.for_each_phi(word, |topic, phi| {
                let topic = topic as usize;
                tokens += phi * self.scales[topic] - floor(topic);
            });
            tokens.round() as u64
        };
        (0..self.model.num_words()).map(frequency).collect()
    }
}

impl WordCounts for Weighted<'_> {
    fn num_topics(&self) -> usize {
        self.model.num_topics()
    }

    fn num_words(&self) -> usize {
        self.model.num_words()
    }

    fn topic_total(&self, topic: usize) -> u64 {
        self.totals[topic]
    }

    fn visit_words(&self, words: Range<usize>, visit: &mut VisitRow<'_>) {
        let mut row = Vec::new();
        for word in words {
            row.clear();
            self.model.for_each_phi(word, |topic, phi| {
                let count = (phi * self.scales[topic as usize]).round() as u32;
                row.extend((count > 0).then_some((topic, count)));
            });
            visit(word, &row);
        }
    }
}

#[cfg(test)]
mod tests {
    use lda_core::Corpus;
    use lda_core::model::Weights;
    use lda_core::train::Lda;

    use super::*;

    fn trained() -> TopicModel {
        let documents =
            (0..60u32).map(|d| (0..50).map(move |i| (d % 3) * 60 + i * i * (d + 1) % 90));
        let corpus = Corpus::from_tokens(documents).unwrap();
        Lda::topics(3).alpha(0.1).seed(1).epochs(20).train(&corpus, ()).unwrap().model
    }

    #[test]
    fn no_list_lacks_a_top_word() {
        let model = trained();
        let counts = model.counts().unwrap();
        let terms = Terms::new(&model, &[0.0; 3]).unwrap();
        assert!(terms.scale.exact && terms.totals == counts.totals());
        assert_eq!(terms.frequencies.iter().sum::<u64>(), terms.scale.tokens);
        for lambda in [0.0, 0.35, 0.6, 1.0] {
            let ranking = Ranking::Relevance { lambda };
            let lists = top_words(counts, counts.beta(), SHOWN, ranking).unwrap();
            for (list, candidates) in lists.iter().zip(&terms.candidates) {
                assert_eq!(list.len(), SHOWN);
                assert!(candidates.is_sorted() && candidates.len() < counts.num_words());
                for top in list {
                    assert!(candidates.contains(&(top.word, top.count)), "{lambda}: {top:?}");
                }
            }
        }
    }

    #[test]
    fn real_numbers_keep_their_proportions() {
        let rows = [[0.5, 0.25, 0.25, 0.0], [0.1, 0.1, 0.1, 0.7]];
        let model = TopicModel::from_weights(Weights::from_rows(&rows).unwrap(), 0.1.into());
        let terms = Terms::new(&model, &[300.0, 100.0]).unwrap();
        assert!(!terms.scale.exact);
        let share = |topic: usize, at: usize| {
            f64::from(terms.candidates[topic][at].1) / terms.totals[topic] as f64
        };
        assert!((share(0, 0) - 0.5).abs() < 1e-6 && (share(0, 1) - 0.25).abs() < 1e-6);
        assert_eq!(terms.candidates[1].len(), 1);
        assert!((share(1, 0) - 0.7).abs() < 1e-6);
        let sizes = terms.totals[0] as f64 / terms.totals[1] as f64;
        assert!((sizes - 3.0).abs() < 1e-6, "{sizes}");
        // 300 × 0.5 + 100 × 0.1, and so on, in the same units.
        let unit = terms.totals[1] as f64 / 100.0;
        let expected = [160.0, 85.0, 85.0, 70.0];
        for (frequency, expected) in terms.frequencies.iter().zip(expected) {
            assert!((*frequency as f64 / unit - expected).abs() < 1e-4, "{frequency}");
        }
    }
}
