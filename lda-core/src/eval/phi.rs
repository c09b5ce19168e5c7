//! φ, the word distribution of each topic, stored as sparse excess over a floor per topic.
//!
//! ```text
//! φ_kw = (C_wk + β) / (C_k + β̄) = β / (C_k + β̄)  +  C_wk / (C_k + β̄)
//!                                 floor of topic k    excess, where C_wk > 0
//! ```
//!
//! Only the excess is stored: 12 bytes per non-zero of C_w, 8 bytes per word and 8 per topic. The
//! K × V matrix is never formed. A sum Σ_k x_k φ_kw costs Σ_k x_k floor_k, which is the same for
//! all words, plus the K_w non-zeros of the word.

use thiserror::Error;

use super::sum::map_chunks;
use crate::counts::WordCounts;
use crate::model::TopicModel;
use crate::prior::{PriorError, check_beta};

const WORDS_PER_CHUNK: usize = 1024;

/// Error of building [`Phi`] from rows.
#[derive(Clone, Debug, PartialEq, Error)]
#[non_exhaustive]
pub enum PhiError {
    /// There are no topics, or the topics have no words.
    #[error("there are no probabilities: give at least one topic with at least one word")]
    Empty,
    /// The rows differ in length.
    #[error("topic {topic} has {found} words and topic 0 has {expected}: give each one a word")]
    Ragged {
        /// The first topic that differs.
        topic: usize,
        /// Its number of words.
        found: usize,
        /// Number of words of topic 0.
        expected: usize,
    },
    /// A value is negative, above 1, or NaN.
    #[error("the probability of word {word} in topic {topic} is {value}: give one from 0 to 1")]
    NotAProbability {
        /// Topic of the value.
        topic: usize,
        /// Word of the value.
        word: usize,
        /// The value.
        value: f64,
    },
}

/// φ: the probability of each word in each topic.
///
/// ```
/// use lda_core::eval::Phi;
///
/// let phi = Phi::from_rows(&[[0.7, 0.2, 0.1], [0.1, 0.3, 0.6]])?;
/// assert_eq!((phi.num_topics(), phi.num_words()), (2, 3));
/// assert_eq!(phi.probability(1, 2), 0.6);
/// assert!(!phi.knows(3));
/// # Ok::<(), lda_core::eval::PhiError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Phi {
    floors: Vec<f64>,
    /// Whether a word without an entry may still have a known probability: in a model of weights.
    floors_are_weights: bool,
    /// `offsets[w]..offsets[w + 1]` are word w's entries, ascending by topic.
    offsets: Vec<usize>,
    topics: Vec<u32>,
    excesses: Vec<f64>,
}

impl Phi {
    /// φ̂_kw = (C_wk + β) / (C_k + β̄), the mean of φ given the counts.
    ///
    /// Cost: the non-zeros of C_w, in the current rayon pool.
    ///
    /// # Errors
    /// [`PriorError`], if β is not finite and positive.
    pub fn from_counts<C>(counts: &C, beta: f64) -> Result<Self, PriorError>
    where
        C: WordCounts + ?Sized,
    {
        let num_words = counts.num_words();
        check_beta(beta, num_words)?;
        let beta_sum = beta * num_words as f64;
        let totals: Vec<f64> = (0..counts.num_topics())
            .map(|topic| counts.topic_total(topic) as f64 + beta_sum)
            .collect();
        let chunks = map_chunks(num_words, WORDS_PER_CHUNK, &|words| {
            let mut rows = Rows::default();
            let first = words.start;
            let end = words.end - first;
            counts.visit_words(words, &mut |word, row| {
                rows.start_row(word - first);
                rows.entries.extend_from_slice(row);
            });
            rows.start_row(end);
            rows
        });
        let mut phi = Self::with_floors(totals.iter().map(|total| beta / total).collect(), false);
        let entries = chunks.iter().map(|rows| rows.entries.len()).sum();
        phi.offsets.reserve_exact(num_words);
        phi.topics.reserve_exact(entries);
        phi.excesses.reserve_exact(entries);
        for mut rows in chunks {
            for word in 0..rows.starts.len() - 1 {
                let row = &mut rows.entries[rows.starts[word]..rows.starts[word + 1]];
                // In one order whatever the view's: sums over a row then have the same bits.
                row.sort_unstable();
                for &mut (topic, count) in row {
                    phi.push(topic, f64::from(count) / totals[topic as usize]);
                }
                phi.end_word();
            }
        }
        Ok(phi)
    }

    /// φ of a model of counts or of weights.
    ///
    /// # Errors
    /// [`PriorError`], if the model consists of counts and its β is not finite and positive.
    pub fn from_model(model: &TopicModel) -> Result<Self, PriorError> {
        if let Some(counts) = model.counts() {
            return Self::from_counts(counts, counts.beta());
        }
        let mut phi = Self::with_floors(
            (0..model.num_topics()).map(|topic| model.floor(topic)).collect(),
            model.knows_words_at_the_floor(),
        );
        if let Some(weights) = model.weights() {
            phi.topics.reserve_exact(weights.num_entries());
            phi.excesses.reserve_exact(weights.num_entries());
            for word in 0..weights.num_words() {
                for (topic, excess) in weights.word(word).iter() {
                    phi.push(topic, f64::from(excess));
                }
                phi.end_word();
            }
        }
        Ok(phi)
    }

    /// φ from one row of V probabilities per topic.
    ///
    /// A row need not sum to 1: a model may reserve mass for words outside its vocabulary.
    ///
    /// # Errors
    /// [`PhiError`], which names the invalid row or value.
    pub fn from_rows<R: AsRef<[f64]>>(rows: &[R]) -> Result<Self, PhiError> {
        let num_words = rows.first().map_or(0, |row| row.as_ref().len());
        if num_words == 0 {
            return Err(PhiError::Empty);
        }
        for (topic, row) in rows.iter().enumerate() {
            let row = row.as_ref();
            if row.len() != num_words {
                return Err(PhiError::Ragged { topic, found: row.len(), expected: num_words });
            }
            if let Some(word) = row.iter().position(|value| !(0.0..=1.0).contains(value)) {
                return Err(PhiError::NotAProbability { topic, word, value: row[word] });
            }
        }
        let mut phi = Self::with_floors(vec![0.0; rows.len()], false);
        for word in 0..num_words {
            for (topic, row) in rows.iter().enumerate() {
                if row.as_ref()[word] > 0.0 {
                    phi.push(topic as u32, row.as_ref()[word]);
                }
            }
            phi.end_word();
        }
        Ok(phi)
    }

    fn with_floors(floors: Vec<f64>, floors_are_weights: bool) -> Self {
        let (topics, excesses) = (Vec::new(), Vec::new());
        Self { floors, floors_are_weights, offsets: vec![0], topics, excesses }
    }

    fn push(&mut self, topic: u32, excess: f64) {
        self.topics.push(topic);
        self.excesses.push(excess);
    }

    fn end_word(&mut self) {
        self.offsets.push(self.topics.len());
    }

    /// Number of topics K.
    pub fn num_topics(&self) -> usize {
        self.floors.len()
    }

    /// Vocabulary size V.
    pub fn num_words(&self) -> usize {
        self.offsets.len() - 1
    }

    /// φ_kw. Costs a binary search among the word's topics.
    ///
    /// # Panics
    /// If the topic is not below K or the word not below V.
    pub fn probability(&self, topic: usize, word: u32) -> f64 {
        let (topics, excesses) = self.row(word);
        let excess = topics.binary_search(&(topic as u32)).map_or(0.0, |at| excesses[at]);
        self.floors[topic] + excess
    }

    /// Whether the word is known: counted in training, or with a positive probability in a topic of
    /// a model of weights.
    ///
    /// A word without a token has φ_kw = floor_k, which is largest in the topic with the fewest
    /// tokens: it says nothing about the word.
    pub fn knows(&self, word: u32) -> bool {
        let is_there = (word as usize) < self.num_words();
        is_there && (self.floors_are_weights || !self.row(word).0.is_empty())
    }

    /// floor_k by topic: the part of φ_kw that is the same for all words.
    pub(super) fn floors(&self) -> &[f64] {
        &self.floors
    }

    /// Topics with φ_kw above their floor, ascending, and the excesses.
    #[inline]
    pub(super) fn row(&self, word: u32) -> (&[u32], &[f64]) {
        let range = self.offsets[word as usize]..self.offsets[word as usize + 1];
        (&self.topics[range.clone()], &self.excesses[range])
    }
}

/// Rows of a chunk of words.
#[derive(Default)]
struct Rows {
    /// Start of each row; rows that were not visited are empty.
    starts: Vec<usize>,
    entries: Vec<(u32, u32)>,
}

impl Rows {
    fn start_row(&mut self, row: usize) {
        self.starts.resize(row + 1, self.entries.len());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::counts::VisitRow;

    /// Words 0 and 3 never occur; rows come in no order.
    struct Words;

    impl WordCounts for Words {
        fn num_topics(&self) -> usize {
            3
        }
        fn num_words(&self) -> usize {
            4
        }
        fn topic_total(&self, topic: usize) -> u64 {
            [5, 0, 9][topic]
        }
        fn visit_words(&self, words: std::ops::Range<usize>, visit: &mut VisitRow<'_>) {
            for (word, row) in [(1, [(2, 7), (0, 1)]), (2, [(0, 4), (2, 2)])] {
                if words.contains(&word) {
                    visit(word, &row);
                }
            }
        }
    }

    #[test]
    fn counts_become_smoothed_probabilities() {
        let phi = Phi::from_counts(&Words, 0.5).unwrap();
        let counts = [[0.0, 1.0, 4.0, 0.0], [0.0; 4], [0.0, 7.0, 2.0, 0.0]];
        for (topic, total) in [5.0, 0.0, 9.0].into_iter().enumerate() {
            let mut sum = 0.0;
            for word in 0..4 {
                let expected = (counts[topic][word as usize] + 0.5) / (total + 2.0);
                let found = phi.probability(topic, word);
                assert!((found - expected).abs() < 1e-15, "topic {topic} word {word}: {found}");
                sum += found;
            }
            assert!((sum - 1.0).abs() < 1e-15);
        }
        assert_eq!([0, 1, 2, 3, 4].map(|word| phi.knows(word)), [false, true, true, false, false]);
        assert_eq!(phi.row(1).0, [0, 2]);
        assert!(Phi::from_counts(&Words, 0.0).is_err());
    }

    #[test]
    fn a_word_without_probability_is_unknown() {
        let phi = Phi::from_rows(&[[0.5, 0.0, 0.5], [0.0, 0.0, 1.0]]).unwrap();
        assert_eq!([0, 1, 2, 3].map(|word| phi.knows(word)), [true, false, true, false]);
    }

    #[test]
    fn rows_are_checked() {
        let none: [[f64; 0]; 1] = [[]];
        assert_eq!(Phi::from_rows(&none).unwrap_err(), PhiError::Empty);
        assert_eq!(Phi::from_rows::<[f64; 1]>(&[]).unwrap_err(), PhiError::Empty);
        assert_eq!(
            Phi::from_rows(&[vec![1.0, 0.0], vec![1.0]]).unwrap_err(),
            PhiError::Ragged { topic: 1, found: 1, expected: 2 }
        );
        for value in [f64::NAN, -0.1, 1.1, f64::INFINITY] {
            let error = Phi::from_rows(&[[0.5, 0.5], [0.5, value]]).unwrap_err();
            assert!(
                matches!(error, PhiError::NotAProbability { topic: 1, word: 1, .. }),
                "{error}"
            );
        }
    }
}
