//! φ as real numbers, for models that were made by other programs.

use thiserror::Error;

use super::rows::{Entries, Pattern, TopicArray, Topics};
use crate::container::{Array, FileError};

/// Error of building [`Weights`].
#[derive(Clone, Debug, PartialEq, Error)]
#[non_exhaustive]
pub enum WeightsError {
    /// There are no topics, or no words.
    #[error("there are no weights: give at least one topic with at least one word")]
    Empty,
    /// The number of words differs between topics.
    #[error("topic {topic} has {found} words and topic 0 has {expected}: give one weight per word")]
    Ragged {
        /// The first topic that differs.
        topic: usize,
        /// Number of words of this topic.
        found: usize,
        /// Number of words of topic 0.
        expected: usize,
    },
    /// A weight that is negative, infinite or NaN.
    #[error(
        "the weight of word {word} in topic {topic} is {value}: give a finite one, not below 0"
    )]
    NotAWeight {
        /// Topic of the value.
        topic: usize,
        /// Word of the value.
        word: usize,
        /// The value.
        value: f64,
    },
    /// The weights of a topic add up to 0 or to infinity.
    #[error(
        "the weights of topic {topic} add up to {sum}: give weights with a positive finite sum"
    )]
    NoShare {
        /// The topic.
        topic: usize,
        /// Sum of its weights.
        sum: f64,
    },
}

/// Relative tolerance: a value above its floor by less than this share of the floor counts as the
/// floor. Covers rounding in single precision and in sums.
const ROUNDING: f64 = 1e-6;

/// φ as a floor per topic plus sparse excesses: φ_kw = floor_k + excess_kw, where only excesses
/// above 0 are stored.
///
/// Memory: 6 bytes per excess (8 above 65,536 topics), 8 bytes per word and per topic. An excess
/// has 24 bits of precision.
#[derive(Clone, Debug, PartialEq)]
pub struct Weights {
    pub(super) pattern: Pattern,
    pub(super) excesses: Array<f32>,
    pub(super) floors: Array<f64>,
}

impl Weights {
    /// φ_kw ∝ `rows[k][w]`: weights of any scale, one row per topic. The smallest weight of a row
    /// becomes its floor, so a smoothed model, in which most words of a topic have the same weight,
    /// is stored sparsely. A weight that exceeds the floor by less than a millionth of it, as by
    /// rounding, counts as the floor.
    ///
    /// ```
    /// use lda_core::model::Weights;
    ///
    /// let weights = Weights::from_rows(&[[7.0, 2.0, 1.0], [0.0, 0.0, 3.0]])?;
    /// assert_eq!((weights.num_topics(), weights.num_words(), weights.num_entries()), (2, 3, 3));
    /// # Ok::<(), lda_core::model::WeightsError>(())
    /// ```
    ///
    /// # Errors
    /// [`WeightsError`] names the row or value at fault.
    pub fn from_rows<R: AsRef<[f64]>>(rows: &[R]) -> Result<Self, WeightsError> {
        let words = rows.first().map_or(0, |row| row.as_ref().len());
        if words == 0 {
            return Err(WeightsError::Empty);
        }
        let mut floors = Vec::with_capacity(rows.len());
        let mut scales = Vec::with_capacity(rows.len());
        for (topic, row) in rows.iter().enumerate() {
            let row = row.as_ref();
            if row.len() != words {
                return Err(WeightsError::Ragged { topic, found: row.len(), expected: words });
            }
            if let Some(word) = row.iter().position(|value| !value.is_finite() || *value < 0.0) {
                return Err(WeightsError::NotAWeight { topic, word, value: row[word] });
            }
            let sum: f64 = row.iter().sum();
            if !(sum > 0.0 && sum.is_finite() && sum.recip().is_finite()) {
                return Err(WeightsError::NoShare { topic, sum });
            }
            floors.push(row.iter().copied().fold(f64::INFINITY, f64::min) / sum);
            scales.push(sum.recip());
        }
        let mut offsets = vec![0];
        let mut topics = TopicArray::with_capacity(rows.len(), 0);
        let mut excesses: Vec<f32> = Vec::new();
        for word in 0..words {
            for (topic, row) in rows.iter().enumerate() {
                let excess = row.as_ref()[word] * scales[topic] - floors[topic];
                // A tiny excess may round to 0 in single precision.
                if excess > ROUNDING * floors[topic] && excess as f32 > 0.0 {
                    topics.push(topic as u32);
                    excesses.push(excess as f32);
                }
            }
            offsets.push(excesses.len() as u64);
        }
        let pattern = Pattern { offsets: offsets.into(), topics: topics.finish() };
        Ok(Self { pattern, excesses: excesses.into(), floors: floors.into() })
    }

    /// Number of topics K.
    pub fn num_topics(&self) -> usize {
        self.floors.len()
    }

    /// Vocabulary size V.
    pub fn num_words(&self) -> usize {
        self.pattern.num_words()
    }

    /// Number of excesses stored.
    pub fn num_entries(&self) -> usize {
        self.excesses.len()
    }

    /// The smallest φ_kw of each topic.
    pub fn floors(&self) -> &[f64] {
        &self.floors
    }

    /// Topics, ascending, in which φ of `word` is above the floor, and the excesses.
    ///
    /// # Panics
    /// If `word` is not below [`num_words`](Self::num_words).
    #[inline]
    pub fn word(&self, word: usize) -> Entries<'_, f32> {
        let values = &self.excesses[self.pattern.range(word)];
        Entries { topics: self.pattern.topics(word), values }
    }

    pub(super) fn topics(&self, word: usize) -> Topics<'_> {
        self.pattern.topics(word)
    }

    pub(super) fn phi(&self, topic: usize, word: usize) -> f64 {
        let row = self.word(word);
        let excess = row.topics.position(topic as u32).map_or(0.0, |at| row.values[at]);
        self.floors[topic] + f64::from(excess)
    }

    pub(super) fn floor(&self, topic: usize) -> f64 {
        self.floors[topic]
    }

    /// Checks that floors are probabilities.
    pub(super) fn check_floors(&self) -> Result<(), FileError> {
        match self.floors.iter().position(|floor| !(0.0..=1.0).contains(floor)) {
            None => Ok(()),
            Some(topic) => {
                let reason =
                    format!("topic {topic} has {}, which is not a probability", self.floors[topic]);
                Err(FileError::malformed("floors", reason))
            }
        }
    }

    /// Checks that the entries are valid excesses.
    pub(super) fn check(&self) -> Result<(), FileError> {
        self.pattern.check_topics(self.num_topics())?;
        match self.excesses.iter().position(|excess| !(*excess > 0.0 && *excess <= 1.0)) {
            None => Ok(()),
            Some(entry) => {
                let reason = format!(
                    "entry {entry} is {}, which is not a probability",
                    self.excesses[entry]
                );
                Err(FileError::malformed("weights", reason))
            }
        }
    }

    pub(super) fn memory(&self) -> usize {
        self.pattern.memory() + self.excesses.memory() + self.floors.memory()
    }
}
