//! Tokens of a shard's documents, with which a shard is made.

use std::ops::Range;

use lda_core::Corpus;
use lda_core::counts::TopicIndex;
use lda_core::layout::{greedy_partition, ranges_for};
use lda_core::train::FirstTopics;

use super::ShardError;
use super::long::Token;
use super::part::PartitionTokens;
use crate::placement::Placement;
use crate::spec::ModelSpec;

/// Documents of a shard.
#[derive(Clone, Debug)]
pub struct ShardDocuments<'a> {
    /// Corpus that contains the documents.
    pub corpus: &'a Corpus,
    /// The documents.
    pub range: Range<usize>,
    /// Number of the corpus' first document in the whole run. The initial topics depend on it, so
    /// that they are those of a run in one process.
    pub first: u64,
}

/// Documents from which a shard is made. They are named by their index in the range.
pub(super) struct Source<'a> {
    pub first_topics: FirstTopics,
    pub spec: &'a ModelSpec,
    pub placement: &'a Placement,
    pub documents: ShardDocuments<'a>,
}

/// A range of long documents: their lengths and their tokens.
type LongRange<T> = (Vec<u32>, Vec<Token<T>>);

/// Tokens of a shard: those of short documents by partition, those of long ones by range.
pub(super) struct Tokens<T> {
    pub parts: Vec<PartitionTokens<T>>,
    pub long: Vec<LongRange<T>>,
}

impl Source<'_> {
    /// Number of documents.
    pub fn num_documents(&self) -> u32 {
        self.documents.range.len() as u32
    }

    /// Number of tokens of a document.
    pub fn length(&self, local: u32) -> u64 {
        let ShardDocuments { corpus, range, .. } = &self.documents;
        corpus.doc_length(range.start + local as usize)
    }

    /// Numbers of tokens of some documents.
    pub fn lengths(&self, documents: &[u32]) -> Vec<u32> {
        documents.iter().map(|&local| self.length(local) as u32).collect()
    }

    /// Calls `f(word, topic)` with the words of a document, each as often as it occurs, and their first topics.
    fn first_topics<T: TopicIndex>(&self, local: u32, mut f: impl FnMut(u32, T)) {
        let ShardDocuments { corpus, range, first } = &self.documents;
        let document = range.start + local as usize;
        let mut topics = self.first_topics.of_document(first + document as u64);
        for (word, count) in corpus.document(document).iter() {
            topics.of_word(word).take(count as usize).for_each(|topic| f(word, T::new(topic)));
        }
    }

    /// Makes the tokens. Partitions have all words of the shard, also those of long documents.
    pub fn tokens<T: TopicIndex>(
        &self,
        short: &[u32],
        long: &[Vec<u32>],
    ) -> Result<Tokens<T>, ShardError> {
        let placement = self.placement;
        // (word, document, topic). Documents are in order, and the sort by word is stable.
        let mut tokens: Vec<Vec<(u32, u32, T)>> = vec![Vec::new(); placement.num_partitions()];
        for (place, &local) in (0..).zip(short) {
            self.first_topics(local, |word, topic| {
                tokens[placement.partition(word) as usize].push((word, place, topic));
            });
        }
        let mut long_words: Vec<Vec<u32>> = vec![Vec::new(); placement.num_partitions()];
        let mut of_range = |range: &Vec<u32>| {
            let mut tokens: Vec<Token<T>> = Vec::new();
            for (place, &local) in (0..).zip(range) {
                self.first_topics(local, |word, topic| {
                    let partition = placement.partition(word);
                    tokens.push((partition as u16, word, place, topic));
                    let words = &mut long_words[partition as usize];
                    if words.last() != Some(&word) {
                        words.push(word);
                    }
                });
            }
            (self.lengths(range), tokens)
        };
        let long: Vec<LongRange<T>> = long.iter().map(&mut of_range).collect();
        let parts = tokens.into_iter().zip(long_words);
        let parts = parts.map(|(tokens, also)| PartitionTokens::new(tokens, also));
        Ok(Tokens { parts: parts.collect::<Result<_, _>>()?, long })
    }
}

/// Cuts documents into ranges as `lda_core::layout` does, so that the rows of a range fit into a
/// cache.
pub(super) fn ranges(documents: &[u32], length: impl Fn(u32) -> u64) -> Vec<Vec<u32>> {
    if documents.is_empty() {
        return Vec::new();
    }
    let lengths = documents.iter().map(|&document| length(document));
    let ranges = greedy_partition(lengths.clone(), ranges_for(lengths.sum()));
    let named =
        |range: Vec<u32>| range.into_iter().rev().map(|at| documents[at as usize]).collect();
    ranges.into_iter().map(named).collect()
}
