//! Tokens of one partition.

use std::ops::Range;

use lda_core::counts::TopicIndex;

use super::ShardError;

/// A shard's tokens of one partition, by word and document.
#[derive(Debug)]
pub(super) struct PartitionTokens<T> {
    /// Words of the partition that the shard has, ascending.
    pub words: Vec<u32>,
    /// First token of each word, and the end.
    pub starts: Vec<u32>,
    /// Document of each token.
    pub documents: Vec<u32>,
    pub topics: Vec<T>,
}

impl<T: TopicIndex> PartitionTokens<T> {
    /// Creates it from tokens (word, document, topic), the documents of a word in order, and from
    /// further words, which may repeat those of the tokens.
    pub fn new(mut tokens: Vec<(u32, u32, T)>, also: Vec<u32>) -> Result<Self, ShardError> {
        if u32::try_from(tokens.len()).is_err() {
            return Err(ShardError::Tokens { tokens: tokens.len() });
        }
        tokens.sort_by_key(|token| token.0);
        let mut words: Vec<u32> = tokens.iter().map(|token| token.0).chain(also).collect();
        words.sort_unstable();
        words.dedup();
        words.shrink_to_fit();
        let (mut starts, mut rest) = (Vec::with_capacity(words.len() + 1), &tokens[..]);
        for &word in &words {
            starts.push((tokens.len() - rest.len()) as u32);
            rest = &rest[rest.partition_point(|token| token.0 <= word)..];
        }
        starts.push(tokens.len() as u32);
        let documents = tokens.iter().map(|token| token.1).collect();
        Ok(Self { words, starts, documents, topics: tokens.iter().map(|token| token.2).collect() })
    }

    /// Bytes held.
    pub fn memory(&self) -> usize {
        let numbers = self.words.capacity() + self.starts.capacity() + self.documents.capacity();
        4 * numbers + size_of::<T>() * self.topics.capacity()
    }

    /// Range of a word's tokens.
    pub fn range(&self, word: usize) -> Range<usize> {
        self.starts[word] as usize..self.starts[word + 1] as usize
    }
}
