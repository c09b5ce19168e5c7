//! Topics of a shard's tokens, and the counts that follow from them.

use lda_core::counts::TopicIndex;
use lda_core::prior::Alpha;
use lda_core::special::{LnGammaRatio, ln_rising};

use super::part::PartitionTokens;
use super::{RestoreError, Shard};
use crate::spec::ModelSpec;

impl<T: TopicIndex> Shard<T> {
    /// Recounts the topics, from which the servers count too.
    pub(super) fn count(&mut self, spec: &ModelSpec) {
        self.counts.fill(0);
        self.own.fill(0);
        self.recent.clear();
        self.long.told_all();
        for topic in self.parts.iter().flat_map(|part| &part.topics) {
            self.counts[topic.get() as usize] += 1;
        }
        self.long.for_each(|_, _, _, topic| self.counts[topic as usize] += 1);
        self.count_documents();
        self.begin_epoch(spec);
    }

    /// (word, partition, place) of all words that the shard has, words ascending.
    fn by_word(&self) -> Vec<(u32, usize, usize)> {
        let places = |(part, of): (usize, &PartitionTokens<T>)| {
            of.words.iter().enumerate().map(move |(at, &word)| (word, part, at)).collect::<Vec<_>>()
        };
        let mut all: Vec<(u32, usize, usize)> =
            self.parts.iter().enumerate().flat_map(places).collect();
        all.sort_unstable();
        all
    }

    /// State from which a run can continue: the topic of every token, by word and document,
    /// independent of the partitions; then the topic and the proposals of each token of long
    /// documents.
    pub fn topics(&self) -> Vec<T> {
        let mut topics = Vec::with_capacity(self.num_values());
        for (_, part, at) in self.by_word() {
            let part = &self.parts[part];
            topics.extend_from_slice(&part.topics[part.range(at)]);
        }
        self.long.values(|part, at| self.parts[usize::from(part)].words[at as usize], &mut topics);
        topics
    }

    /// Restores the state that [`topics`](Self::topics) returned, between two epochs.
    ///
    /// # Errors
    /// [`RestoreError`]; then nothing has changed.
    pub fn restore(&mut self, spec: &ModelSpec, mut topics: &[T]) -> Result<(), RestoreError> {
        let (found, expected) = (topics.len(), self.num_values());
        if found != expected {
            return Err(RestoreError::Tokens { found, expected });
        }
        if let Some(topic) = topics.iter().find(|topic| topic.get() >= spec.topics()) {
            return Err(RestoreError::Topic { topic: topic.get() });
        }
        for (_, part, at) in self.by_word() {
            let part = &mut self.parts[part];
            let range = part.range(at);
            let (of_word, rest) = topics.split_at(range.len());
            part.topics[range].copy_from_slice(of_word);
            topics = rest;
        }
        let Self { long, parts, .. } = self;
        long.restore(|part, at| parts[usize::from(part)].words[at as usize], topics);
        self.count(spec);
        Ok(())
    }

    /// Number of values in a snapshot.
    fn num_values(&self) -> usize {
        self.num_short_tokens() + self.long.num_values()
    }

    /// Calls `f(document, word, topic)` for every token, by partition and word; tokens of long
    /// documents come last.
    pub fn for_each(&self, mut f: impl FnMut(u32, u32, u32)) {
        for part in &self.parts {
            for (at, &word) in part.words.iter().enumerate() {
                for token in part.range(at) {
                    let document = self.documents[part.documents[token] as usize];
                    f(document, word, part.topics[token].get());
                }
            }
        }
        let of_long = &self.documents[self.lengths.len()..];
        self.long.for_each(|document, part, at, topic| {
            let word = self.parts[usize::from(part)].words[at as usize];
            f(of_long[document as usize], word, topic);
        });
    }

    /// Writes a document's row of C_d, topics ascending.
    ///
    /// # Panics
    /// If there is no such document.
    pub fn row(&self, document: usize, row: &mut Vec<(u32, u32)>) {
        self.row_at(self.places[document] as usize, row);
    }

    /// As above, for the document at a place.
    pub(super) fn row_at(&self, place: usize, row: &mut Vec<(u32, u32)>) {
        row.clear();
        match place.checked_sub(self.lengths.len()) {
            None => {
                self.rows.for_each(place, |topic, count| row.push((topic, count)));
                row.sort_unstable();
            }
            Some(of_long) => {
                let mut topics = Vec::new();
                self.long.document(of_long, |topic| topics.push(topic));
                tally(&mut topics, row);
            }
        }
    }

    /// Calls `f(place, row)` for each of the shard's words of a partition, with the shard's counts
    /// of the word, topics ascending. Servers sum these rows when shards join.
    ///
    /// # Panics
    /// If there is no such partition.
    pub fn counts(&self, partition: u16, mut f: impl FnMut(u32, &[(u32, u32)])) {
        let part = &self.parts[partition as usize];
        let mut walk = self.long.walk(partition);
        let (mut row, mut topics) = (Vec::new(), Vec::new());
        for at in 0..part.words.len() {
            topics.clear();
            topics.extend(part.topics[part.range(at)].iter().map(|topic| topic.get()));
            self.long.topics(&mut walk, partition, at as u32, |topic| topics.push(topic.get()));
            row.clear();
            tally(&mut topics, &mut row);
            f(at as u32, &row);
        }
    }

    /// The documents' part of the log joint, log p(Z | α).
    pub fn log_joint(&self, spec: &ModelSpec) -> f64 {
        let alpha = spec.alpha();
        let symmetric = match alpha {
            Alpha::Symmetric(alpha) => Some(LnGammaRatio::new(*alpha)),
            Alpha::PerTopic(_) => None,
        };
        let alpha_sum = alpha.sum(spec.topics() as usize);
        let (mut sum, mut row) = (0.0, Vec::new());
        for document in 0..self.num_documents() {
            self.row(document, &mut row);
            let mut length = 0;
            for &(topic, count) in &row {
                length += count;
                sum += match &symmetric {
                    Some(ratio) => ratio.get(count.into()),
                    None => ln_rising(alpha.get(topic as usize), count.into()),
                };
            }
            sum -= ln_rising(alpha_sum, length.into());
        }
        sum
    }

    /// Non-zeros of C_d.
    pub fn non_zeros(&self) -> u64 {
        let mut row = Vec::new();
        let topics = |place| {
            self.row_at(place, &mut row);
            row.len() as u64
        };
        (0..self.num_documents()).map(topics).sum()
    }

    /// Makes the rows of C_d from the topics.
    fn count_documents(&mut self) {
        // Topics of all documents, document by document.
        let mut end = 0;
        let mut places: Vec<usize> = Vec::with_capacity(self.lengths.len());
        for &length in &self.lengths {
            end += length as usize;
            places.push(end);
        }
        let mut topics = vec![T::default(); end];
        for part in &self.parts {
            for (&document, &topic) in part.documents.iter().zip(&part.topics) {
                // Filled from the end, so that the place ends at the document's first topic.
                let place = &mut places[document as usize];
                *place -= 1;
                topics[*place] = topic;
            }
        }
        for (document, (&first, &length)) in places.iter().zip(&self.lengths).enumerate() {
            let topics = &mut topics[first..first + length as usize];
            topics.sort_unstable();
            let runs = topics.chunk_by(|a, b| a == b);
            self.rows.write(document, runs.map(|run| (run[0].get(), run.len() as u32)));
        }
    }
}

/// Appends (topic, count) pairs to `row`, topics ascending; sorts `topics`.
fn tally(topics: &mut [u32], row: &mut Vec<(u32, u32)>) {
    topics.sort_unstable();
    row.extend(topics.chunk_by(|a, b| a == b).map(|run| (run[0], run.len() as u32)));
}
