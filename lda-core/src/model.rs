//! What is left when training ends: topic counts of words, priors, names.

use std::ops::Range;

use crate::corpus::Vocabulary;
use crate::eval::{Visit, WordCounts};
use crate::prior::Alpha;

/// A trained model: C_w by word, sparse, and C_k; φ_kw = (C_wk + β) / (C_k + Vβ).
///
/// Memory: 8 bytes a non-zero of C_w, 8 bytes a word, 8 bytes a topic, and the vocabulary.
#[derive(Clone, Debug, PartialEq)]
pub struct TopicModel {
    /// Word w's non-zeros are `entries[offsets[w]..offsets[w + 1]]`, topics ascending.
    offsets: Vec<u64>,
    entries: Vec<(u32, u32)>,
    totals: Vec<u64>,
    alpha: Alpha,
    beta: f64,
    vocabulary: Option<Vocabulary>,
}

impl TopicModel {
    /// Copies the counts that `view` shows.
    pub fn from_counts(view: &impl WordCounts, alpha: Alpha, beta: f64) -> Self {
        let words = view.num_words();
        let mut offsets = vec![0; words + 1];
        let mut entries: Vec<(u32, u32)> = Vec::new();
        view.visit_words(0..words, &mut |word, row| {
            let start = entries.len();
            entries.extend_from_slice(row);
            entries[start..].sort_unstable();
            offsets[word + 1] = row.len() as u64;
        });
        for w in 0..words {
            offsets[w + 1] += offsets[w];
        }
        let totals = (0..view.num_topics()).map(|k| view.topic_total(k)).collect();
        Self { offsets, entries, totals, alpha, beta, vocabulary: None }
    }

    /// Attaches names of words.
    pub fn with_vocabulary(mut self, vocabulary: Option<Vocabulary>) -> Self {
        self.vocabulary = vocabulary;
        self
    }

    /// Topics K.
    pub fn num_topics(&self) -> usize {
        self.totals.len()
    }

    /// Vocabulary size V.
    pub fn num_words(&self) -> usize {
        self.offsets.len() - 1
    }

    /// Document-topic prior.
    pub fn alpha(&self) -> &Alpha {
        &self.alpha
    }

    /// Topic-word prior.
    pub fn beta(&self) -> f64 {
        self.beta
    }

    /// Names of words, where the corpus had them.
    pub fn vocabulary(&self) -> Option<&Vocabulary> {
        self.vocabulary.as_ref()
    }

    /// Non-zeros of C_w: (topic, tokens), topics ascending.
    ///
    /// # Panics
    /// If `word` is not below [`num_words`](Self::num_words).
    pub fn word(&self, word: usize) -> &[(u32, u32)] {
        &self.entries[self.offsets[word] as usize..self.offsets[word + 1] as usize]
    }

    /// Tokens of each topic, C_k.
    pub fn totals(&self) -> &[u64] {
        &self.totals
    }

    /// φ_kw, the probability of `word` in `topic`.
    pub fn phi(&self, topic: usize, word: usize) -> f64 {
        let row = self.word(word);
        let count = match row.binary_search_by_key(&(topic as u32), |&(k, _)| k) {
            Ok(at) => f64::from(row[at].1),
            Err(_) => 0.0,
        };
        (count + self.beta) / (self.totals[topic] as f64 + self.beta * self.num_words() as f64)
    }
}

impl WordCounts for TopicModel {
    fn num_topics(&self) -> usize {
        self.totals.len()
    }

    fn num_words(&self) -> usize {
        self.offsets.len() - 1
    }

    fn topic_total(&self, topic: usize) -> u64 {
        self.totals[topic]
    }

    fn visit_words(&self, words: Range<usize>, visit: &mut Visit<'_>) {
        for word in words {
            let row = self.word(word);
            if !row.is_empty() {
                visit(word, row);
            }
        }
    }
}
