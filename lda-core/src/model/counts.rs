//! φ as counts, the result of sampling.

use std::ops::Range;

use super::rows::{Builder, Entries, Pattern, TopicArray, Topics};
use crate::container::{Array, FileError};
use crate::counts::{VisitRow, WordCounts};

/// C_w, sparse by word, and C_k; φ_kw = (C_wk + β) / (C_k + Vβ).
///
/// Memory: 6 bytes per non-zero of C_w (8 above 65,536 topics), 8 bytes per word and per topic.
#[derive(Clone, Debug, PartialEq)]
pub struct Counts {
    pub(super) pattern: Pattern,
    pub(super) counts: Array<u32>,
    pub(super) totals: Array<u64>,
    pub(super) beta: f64,
}

impl Counts {
    pub(super) fn from_view(view: &impl WordCounts, beta: f64) -> Self {
        let (words, num_topics) = (view.num_words(), view.num_topics());
        let mut offsets = Vec::with_capacity(words + 1);
        offsets.push(0);
        let mut topics = TopicArray::with_capacity(num_topics, 0);
        let mut counts: Vec<u32> = Vec::new();
        let mut row: Vec<(u32, u32)> = Vec::new();
        view.visit_words(0..words, &mut |word, entries| {
            offsets.resize(word + 1, counts.len() as u64);
            row.clear();
            row.extend_from_slice(entries);
            row.sort_unstable();
            for &(topic, count) in &row {
                topics.push(topic);
                counts.push(count);
            }
        });
        offsets.resize(words + 1, counts.len() as u64);
        let totals: Vec<u64> = (0..num_topics).map(|k| view.topic_total(k)).collect();
        let pattern = Pattern { offsets: offsets.into(), topics: topics.finish() };
        Self { pattern, counts: counts.into(), totals: totals.into(), beta }
    }

    /// Number of topics K.
    pub fn num_topics(&self) -> usize {
        self.totals.len()
    }

    /// Vocabulary size V.
    pub fn num_words(&self) -> usize {
        self.pattern.num_words()
    }

    /// Topic-word prior β.
    pub fn beta(&self) -> f64 {
        self.beta
    }

    /// Number of tokens of each topic, C_k.
    pub fn totals(&self) -> &[u64] {
        &self.totals
    }

    /// Non-zeros of C_w for `word`: topics, ascending, and numbers of tokens.
    ///
    /// # Panics
    /// If `word` is not below [`num_words`](Self::num_words).
    #[inline]
    pub fn word(&self, word: usize) -> Entries<'_, u32> {
        let values = &self.counts[self.pattern.range(word)];
        Entries { topics: self.pattern.topics(word), values }
    }

    /// Number of non-zeros of C_w.
    pub fn num_entries(&self) -> usize {
        self.counts.len()
    }

    pub(super) fn topics(&self, word: usize) -> Topics<'_> {
        self.pattern.topics(word)
    }

    pub(super) fn phi(&self, topic: usize, word: usize) -> f64 {
        let row = self.word(word);
        let count = row.topics.position(topic as u32).map_or(0, |at| row.values[at]);
        self.phi_of(topic, count)
    }

    /// φ_kw for C_wk = `count`.
    pub(super) fn phi_of(&self, topic: usize, count: u32) -> f64 {
        (f64::from(count) + self.beta) / self.denominator(topic)
    }

    pub(super) fn floor(&self, topic: usize) -> f64 {
        self.beta / self.denominator(topic)
    }

    /// C_k + Vβ.
    fn denominator(&self, topic: usize) -> f64 {
        self.totals[topic] as f64 + self.beta * self.num_words() as f64
    }

    /// Checks that the entries are valid counts and add up to the totals.
    pub(super) fn check(&self) -> Result<(), FileError> {
        self.pattern.check_topics(self.num_topics())?;
        let mut totals = vec![0u64; self.num_topics()];
        for word in 0..self.num_words() {
            for (topic, count) in self.word(word).iter() {
                if count == 0 {
                    let reason = format!("word {word} has a count of 0 for topic {topic}");
                    return Err(FileError::malformed("counts", reason));
                }
                totals[topic as usize] += u64::from(count);
            }
        }
        match totals.iter().zip(&*self.totals).position(|(sum, total)| sum != total) {
            None => Ok(()),
            Some(topic) => {
                let reason =
                    format!("topic {topic} has {}, not the sum of its counts", self.totals[topic]);
                Err(FileError::malformed("totals", reason))
            }
        }
    }

    pub(super) fn memory(&self) -> usize {
        self.pattern.memory() + self.counts.memory() + self.totals.memory()
    }
}

/// Builder of [`Counts`], word by word.
pub(crate) struct CountsBuilder {
    offsets: Vec<u64>,
    topics: Builder,
    counts: Vec<u32>,
    totals: Vec<u64>,
}

impl CountsBuilder {
    /// A builder for `topics` topics.
    pub fn new(topics: usize) -> Self {
        let (offsets, totals) = (vec![0], vec![0; topics]);
        Self { offsets, topics: TopicArray::with_capacity(topics, 0), counts: Vec::new(), totals }
    }

    /// Adds an entry of the current word. Topics must ascend; a count of 0 is skipped.
    pub fn push(&mut self, topic: u32, count: u32) {
        if count > 0 {
            self.topics.push(topic);
            self.counts.push(count);
            self.totals[topic as usize] += u64::from(count);
        }
    }

    /// Moves to the next word.
    pub fn end_word(&mut self) {
        self.offsets.push(self.counts.len() as u64);
    }

    /// Finishes the counts.
    pub fn finish(self, beta: f64) -> Counts {
        let pattern = Pattern { offsets: self.offsets.into(), topics: self.topics.finish() };
        Counts { pattern, counts: self.counts.into(), totals: self.totals.into(), beta }
    }
}

impl WordCounts for Counts {
    fn num_topics(&self) -> usize {
        self.totals.len()
    }

    fn num_words(&self) -> usize {
        self.pattern.num_words()
    }

    fn topic_total(&self, topic: usize) -> u64 {
        self.totals[topic]
    }

    fn visit_words(&self, words: Range<usize>, visit: &mut VisitRow<'_>) {
        let mut row = Vec::new();
        for word in words {
            row.clear();
            row.extend(self.word(word).iter());
            if !row.is_empty() {
                visit(word, &row);
            }
        }
    }
}
