//! Pseudo-counts, with which a run starts: seed words of topics, or an earlier model.
//!
//! Pseudo-counts B_wk are added to the counts of the tokens, as if B_wk further tokens of word w
//! had topic k and never moved:
//!
//! ```text
//! p(z_i = k | rest) ∝ (C_dk¬i + α_k) · (C_wk¬i + B_wk + β) / (C_k¬i + B_k + Vβ)
//! ```
//!
//! which is (1) of [`sampler`](crate::sampler) with the topic-word prior β + B_wk. Every sampler
//! supports them, since it reads only counts. They have two uses:
//!
//! * **Seeded topics** ([`seeds`](PseudoCounts::seeds)): words that describe a topic, with a weight
//!   in tokens. A few tokens attract the topic to them; as many tokens as the corpus has of those
//!   words nearly fix it.
//! * **Continuing from a model** ([`from_model`](PseudoCounts::from_model)) with new documents, new
//!   words, other priors or more topics (ZenLDA §4.3): the counts of the old documents stand for
//!   the documents. With a share below 1, the old documents count less.
//!
//! Tokens of words that have pseudo-counts start in those topics, with probabilities proportional
//! to B_wk.
//!
//! The model of such a run includes the pseudo-counts, so φ is the posterior mean under that prior,
//! and the next run can continue from it. The log joint is log p(W, Z | α, β, B): the part that
//! depends on B alone is subtracted. β cannot be learnt in such a run.
//!
//! Memory: 8 bytes per entry and per word, and their share of the rows. WarpLDA, which keeps no
//! rows, visits pseudo-counts like tokens: each token of them takes a topic id of memory, and as
//! much time in every word pass as a token of the corpus. Therefore a run with more than four times as
//! many pseudo-counts as tokens has no [warm-up](crate::train::TrainOptions::warm_up) by default.

use std::sync::Arc;

use thiserror::Error;

use crate::checksum::Xxh64;
use crate::corpus::Corpus;
use crate::counts::{VisitRow, WordCounts};
use crate::eval::likelihood::word_part;
use crate::infer::Translation;
use crate::model::TopicModel;
use crate::random::Xoshiro256PlusPlus;

/// Counts by word and topic in addition to those of the tokens. See the [module](self).
///
/// ```
/// use lda_core::Corpus;
/// use lda_core::train::{EpochReport, Flow, Lda, PseudoCounts};
///
/// let corpus = Corpus::from_words([["tree", "leaf"], ["wave", "sea"], ["leaf", "wood"]])?;
/// let seeds = PseudoCounts::seeds(&corpus, 2, &[vec!["sea"], vec!["tree", "wood"]], 100)?;
/// let lda = Lda::topics(2).alpha(0.1).epochs(20).pseudo_counts(seeds);
/// let trained = lda.train(&corpus, |_: &EpochReport| Flow::Continue)?;
/// let sea = corpus.vocabulary().and_then(|words| words.id("sea")).unwrap() as usize;
/// assert!(trained.model.phi(0, sea) > trained.model.phi(1, sea));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PseudoCounts {
    /// Range of word w's entries: `offsets[w]..offsets[w + 1]`.
    pub(super) offsets: Vec<u64>,
    /// (topic, count), topics ascending within a word, no count 0.
    pub(super) entries: Vec<(u32, u32)>,
    topics: u32,
}

/// Weight of a model's counts in a new run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Weight {
    /// This share of its counts: with 1 the run continues as if the model's documents were still
    /// there, with less they count less.
    Share(f64),
    /// This many tokens per topic of the model, distributed like its φ.
    TokensPerTopic(f64),
}

/// Error of invalid pseudo-counts.
#[derive(Clone, Debug, PartialEq, Error)]
#[non_exhaustive]
pub enum PseudoCountsError {
    /// An entry is out of range.
    #[error(
        "a pseudo-count of word {word} and topic {topic} is out of range: the corpus has {words} \
         words and the run {topics} topics"
    )]
    Range {
        /// The word of the entry.
        word: u32,
        /// The topic of the entry.
        topic: u32,
        /// Words V.
        words: usize,
        /// Topics K.
        topics: u32,
    },
    /// The sum exceeds the range of a count.
    #[error(
        "the pseudo-counts add up to {sum} tokens, above the limit of {limit}: give smaller ones"
    )]
    TooMany {
        /// Sum of the pseudo-counts.
        sum: u64,
        /// Largest possible sum.
        limit: u64,
    },
    /// There are more lists of seeds than topics.
    #[error(
        "{seeded} lists of seeds for {topics} topics: set at least {seeded} topics, or remove lists"
    )]
    TooManySeeds {
        /// Number of lists of words.
        seeded: usize,
        /// Topics K.
        topics: u32,
    },
    /// None of the seed words of a topic is in the corpus.
    #[error(
        "none of the seeds of topic {topic} is a word of the corpus ({first:?}, …): give words as the \
         corpus spells them"
    )]
    UnknownSeeds {
        /// The topic, from 0.
        topic: usize,
        /// The first seed of the topic.
        first: String,
    },
    /// The corpus has no vocabulary.
    #[error("the corpus has no vocabulary, so that seeds cannot be found in it: give it one")]
    NoVocabulary,
    /// The model has more topics than the run.
    #[error(
        "the model has {model} topics, the run {topics}: set at least {model} topics, or merge topics \
         of the model first"
    )]
    FewerTopics {
        /// Number of topics of the model.
        model: usize,
        /// Topics K.
        topics: u32,
    },
    /// A weight is not a number above 0, or is a share and the model has no counts.
    #[error("the weight of a model is {weight:?}: {remedy}")]
    Weight {
        /// The given value.
        weight: Weight,
        /// The valid values.
        remedy: &'static str,
    },
}

impl PseudoCounts {
    /// Pseudo-counts from (word, topic, count) in any order. Counts of a repeated pair are added; a
    /// count of 0 adds nothing.
    ///
    /// # Errors
    /// [`Range`](PseudoCountsError::Range) and [`TooMany`](PseudoCountsError::TooMany).
    pub fn new(
        num_words: usize,
        topics: u32,
        entries: impl IntoIterator<Item = (u32, u32, u32)>,
    ) -> Result<Self, PseudoCountsError> {
        let mut all: Vec<(u32, u32, u64)> = Vec::new();
        let mut sum = 0u64;
        for (word, topic, count) in entries {
            if word as usize >= num_words || topic >= topics {
                return Err(PseudoCountsError::Range { word, topic, words: num_words, topics });
            }
            sum = sum.saturating_add(u64::from(count));
            if count > 0 {
                all.push((word, topic, u64::from(count)));
            }
        }
        let limit = u64::from(u32::MAX);
        if sum > limit {
            return Err(PseudoCountsError::TooMany { sum, limit });
        }
        all.sort_unstable();
        all.dedup_by(|next, kept| {
            let same = (next.0, next.1) == (kept.0, kept.1);
            kept.2 += if same { next.2 } else { 0 };
            same
        });
        let mut counts = Self {
            offsets: vec![0; num_words + 1],
            entries: Vec::with_capacity(all.len()),
            topics,
        };
        for (word, topic, count) in all {
            counts.offsets[word as usize + 1] += 1;
            counts.entries.push((topic, count as u32));
        }
        (0..num_words).for_each(|word| counts.offsets[word + 1] += counts.offsets[word]);
        Ok(counts)
    }

    /// `weight` tokens of every word of `seeds[k]` in topic k; topics without seeds are free. Seeds
    /// that the corpus does not have are left out ([`unknown_seeds`] lists them).
    ///
    /// [`unknown_seeds`]: Self::unknown_seeds
    ///
    /// # Errors
    /// [`PseudoCountsError`], for example if all seeds of a topic are unknown.
    pub fn seeds<S: AsRef<str>>(
        corpus: &Corpus,
        topics: u32,
        seeds: &[Vec<S>],
        weight: u32,
    ) -> Result<Self, PseudoCountsError> {
        let vocabulary = corpus.vocabulary().ok_or(PseudoCountsError::NoVocabulary)?;
        if seeds.len() > topics as usize {
            return Err(PseudoCountsError::TooManySeeds { seeded: seeds.len(), topics });
        }
        let mut entries = Vec::new();
        for (topic, words) in seeds.iter().enumerate() {
            let known = words.iter().filter_map(|word| vocabulary.id(word.as_ref()));
            let before = entries.len();
            entries.extend(known.map(|word| (word, topic as u32, weight)));
            if let Some(first) = words.first().filter(|_| entries.len() == before) {
                let first = first.as_ref().to_owned();
                return Err(PseudoCountsError::UnknownSeeds { topic, first });
            }
        }
        Self::new(corpus.num_words(), topics, entries)
    }

    /// Seeds that are not words of the corpus.
    pub fn unknown_seeds<'a, S: AsRef<str>>(corpus: &Corpus, seeds: &'a [Vec<S>]) -> Vec<&'a str> {
        let known = |word: &str| corpus.vocabulary().is_some_and(|words| words.id(word).is_some());
        seeds.iter().flatten().map(AsRef::as_ref).filter(|word| !known(word)).collect()
    }

    /// Counts of `model` for the corpus's words. `translation` maps the corpus's word ids to the
    /// model's; `topics` may exceed the model's number. Fractions are carried from entry to entry,
    /// so that the rounded sum is off by less than a token. Words that the corpus does not have are
    /// left out; [`Corpus::add_words`] can add the model's words to it.
    ///
    /// # Errors
    /// [`PseudoCountsError`].
    pub fn from_model(
        model: &TopicModel,
        translation: &Translation,
        corpus: &Corpus,
        topics: u32,
        weight: Weight,
    ) -> Result<Self, PseudoCountsError> {
        if model.num_topics() > topics as usize {
            return Err(PseudoCountsError::FewerTopics { model: model.num_topics(), topics });
        }
        let fail = |remedy| PseudoCountsError::Weight { weight, remedy };
        let (Weight::Share(amount) | Weight::TokensPerTopic(amount)) = weight;
        if !(amount > 0.0 && amount <= 1e9) {
            return Err(fail("give a number above 0, and 1e9 at most"));
        }
        let counts = match weight {
            Weight::Share(_) => Some(model.counts().ok_or_else(|| {
                fail("the model has no counts to take a share of; give tokens per topic")
            })?),
            Weight::TokensPerTopic(_) => None,
        };
        let mut entries = Vec::new();
        let (mut sum, mut given) = (0.0, 0u64);
        for word in 0..corpus.num_words() as u32 {
            let Some(theirs) = translation.word(word) else { continue };
            let mut add = |topic: u32, count: f64| {
                sum += count;
                let whole = (sum.round() as u64).saturating_sub(given);
                given += whole;
                entries.push((word, topic, u32::try_from(whole).unwrap_or(u32::MAX)));
            };
            match counts {
                Some(counts) => {
                    let row = counts.word(theirs as usize);
                    row.iter().for_each(|(topic, count)| add(topic, f64::from(count) * amount));
                }
                None => model.for_each_phi(theirs as usize, |topic, phi| add(topic, phi * amount)),
            }
        }
        Self::new(corpus.num_words(), topics, entries)
    }

    /// Topics K.
    pub fn num_topics(&self) -> usize {
        self.topics as usize
    }

    /// Vocabulary size V.
    pub fn num_words(&self) -> usize {
        self.offsets.len() - 1
    }

    /// (topic, count) of `word`, topics ascending.
    ///
    /// # Panics
    /// If `word` is not below V.
    pub fn word(&self, word: usize) -> &[(u32, u32)] {
        &self.entries[self.offsets[word] as usize..self.offsets[word + 1] as usize]
    }

    /// B_k for all K topics, by summation.
    pub fn totals(&self) -> Vec<u64> {
        let mut totals = vec![0; self.topics as usize];
        self.entries.iter().for_each(|&(topic, count)| totals[topic as usize] += u64::from(count));
        totals
    }

    /// Sum of all pseudo-counts.
    pub fn sum(&self) -> u64 {
        self.entries.iter().map(|&(_, count)| u64::from(count)).sum()
    }

    /// A hash of all entries that does not change between versions or machines (XXH64 of
    /// little-endian words: V, K, then word, topic and count of each entry).
    pub fn fingerprint(&self) -> u64 {
        let mut hash = Xxh64::new();
        hash.update(&(self.num_words() as u64).to_le_bytes());
        hash.update(&u64::from(self.topics).to_le_bytes());
        for word in 0..self.num_words() {
            for &(topic, count) in self.word(word) {
                [word as u32, topic, count].iter().for_each(|n| hash.update(&n.to_le_bytes()));
            }
        }
        hash.digest()
    }

    /// Part of the log joint that depends on B alone: Σ_k ln Γ(Vβ) − ln Γ(Vβ + B_k) + Σ_w ln Γ(β +
    /// B_wk) − ln Γ(β).
    ///
    /// # Panics
    /// If β is no [valid prior](crate::prior::check_beta).
    pub fn word_part(&self, beta: f64) -> f64 {
        let view = Totalled { counts: self, totals: self.totals() };
        word_part(&view, beta).expect("priors were checked")
    }

    /// Sum of the pseudo-counts of `word`.
    pub(super) fn of_word(&self, word: usize) -> u64 {
        self.word(word).iter().map(|&(_, count)| u64::from(count)).sum()
    }

    /// Bytes of heap memory held.
    pub fn memory(&self) -> usize {
        8 * (self.offsets.capacity() + self.entries.capacity())
    }

    /// Draws a topic of `word` with probability proportional to its pseudo-count; `None` if it has
    /// none.
    pub(super) fn draw(&self, word: usize, rng: &mut Xoshiro256PlusPlus) -> Option<u32> {
        let entries = self.word(word);
        let sum: u32 = entries.iter().map(|&(_, count)| count).sum();
        let mut at = (sum > 0).then(|| rng.below(sum))?;
        entries.iter().find_map(|&(topic, count)| match at.checked_sub(count) {
            None => Some(topic),
            Some(rest) => {
                at = rest;
                None
            }
        })
    }
}

/// Pseudo-counts with their sums B_k.
struct Totalled<'a> {
    counts: &'a PseudoCounts,
    totals: Vec<u64>,
}

impl WordCounts for Totalled<'_> {
    fn num_topics(&self) -> usize {
        self.totals.len()
    }

    fn num_words(&self) -> usize {
        self.counts.num_words()
    }

    fn topic_total(&self, topic: usize) -> u64 {
        self.totals[topic]
    }

    fn visit_words(&self, words: std::ops::Range<usize>, visit: &mut VisitRow<'_>) {
        for word in words {
            let row = self.counts.word(word);
            if !row.is_empty() {
                visit(word, row);
            }
        }
    }
}

/// Pseudo-counts that a run's states and snapshots share.
pub(crate) type Pseudo = Option<Arc<PseudoCounts>>;

/// Entries of `word`; empty without pseudo-counts.
pub(super) fn of_word(pseudo: &Pseudo, word: u32) -> &[(u32, u32)] {
    pseudo.as_ref().map_or(&[], |pseudo| pseudo.word(word as usize))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_add_up_by_word_and_topic() {
        let counts =
            PseudoCounts::new(3, 4, [(2, 3, 5), (0, 1, 2), (2, 0, 1), (2, 3, 4), (1, 1, 0)])
                .unwrap();
        assert_eq!(counts.word(0), [(1, 2)]);
        assert_eq!(counts.word(1), []);
        assert_eq!(counts.word(2), [(0, 1), (3, 9)]);
        assert_eq!(counts.totals(), [1, 2, 0, 9]);
        assert_eq!((counts.sum(), counts.of_word(2)), (12, 10));
    }

    #[test]
    fn fingerprints_tell_counts_apart() {
        let of = |words, topics, entries: &[(u32, u32, u32)]| {
            PseudoCounts::new(words, topics, entries.iter().copied()).unwrap().fingerprint()
        };
        let first = of(3, 4, &[(0, 1, 2), (2, 0, 1)]);
        assert_eq!(first, of(3, 4, &[(2, 0, 1), (0, 1, 1), (0, 1, 1)]));
        for other in [
            of(4, 4, &[(0, 1, 2), (2, 0, 1)]),
            of(3, 5, &[(0, 1, 2), (2, 0, 1)]),
            of(3, 4, &[(1, 1, 2), (2, 0, 1)]),
            of(3, 4, &[(0, 2, 2), (2, 0, 1)]),
            of(3, 4, &[(0, 1, 3), (2, 0, 1)]),
            of(3, 4, &[(0, 1, 2)]),
        ] {
            assert_ne!(first, other);
        }
    }

    #[test]
    fn what_is_out_of_range_is_refused() {
        let range = |word, topic| PseudoCountsError::Range { word, topic, words: 2, topics: 3 };
        assert_eq!(PseudoCounts::new(2, 3, [(2, 0, 1)]), Err(range(2, 0)));
        assert_eq!(PseudoCounts::new(2, 3, [(0, 3, 1)]), Err(range(0, 3)));
        let most = (0, 0, u32::MAX);
        assert!(PseudoCounts::new(2, 3, [most]).is_ok());
        let too_many = PseudoCounts::new(2, 3, [most, (1, 0, 1)]);
        let limit = u64::from(u32::MAX);
        assert_eq!(too_many, Err(PseudoCountsError::TooMany { sum: limit + 1, limit }));
    }

    #[test]
    fn topics_are_drawn_as_often_as_they_are_counted() {
        let counts = PseudoCounts::new(2, 9, [(0, 2, 30), (0, 7, 70)]).unwrap();
        let mut rng = Xoshiro256PlusPlus::from_seed(1);
        let mut seen = [0; 9];
        (0..10_000).for_each(|_| seen[counts.draw(0, &mut rng).unwrap() as usize] += 1);
        assert_eq!(seen[2] + seen[7], 10_000);
        // Six standard deviations.
        assert!((2725..3275).contains(&seen[2]), "{seen:?}");
        assert_eq!(counts.draw(1, &mut rng), None);
    }
}
