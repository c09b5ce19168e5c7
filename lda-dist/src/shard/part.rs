//! Tokens of one partition.

use std::ops::Range;

use lda_core::counts::TopicIndex;

use super::ShardError;
use super::exclusion::Exclusion;

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
    /// Tokens that the current epoch leaves out.
    pub exclusion: Exclusion,
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
        let topics = tokens.iter().map(|token| token.2).collect();
        Ok(Self { words, starts, documents, topics, exclusion: Exclusion::default() })
    }

    /// Bytes held.
    pub fn memory(&self) -> usize {
        let numbers = self.words.capacity() + self.starts.capacity() + self.documents.capacity();
        4 * numbers + size_of::<T>() * self.topics.capacity() + self.exclusion.memory()
    }

    /// Range of a word's tokens.
    pub fn range(&self, word: usize) -> Range<usize> {
        self.starts[word] as usize..self.starts[word + 1] as usize
    }

    /// Tokens of a word that the current epoch samples, in order.
    pub fn due(&self, word: usize) -> impl Iterator<Item = usize> {
        self.exclusion.due(self.range(word))
    }

    /// Returns whether the current epoch samples a token of a word.
    pub fn is_due(&self, word: usize) -> bool {
        self.due(word).next().is_some()
    }

    /// Sets the topics of the tokens of a word that the current epoch samples, and removes them from the
    /// front of `topics`.
    ///
    /// # Panics
    /// If there are fewer topics.
    pub fn set_sampled(&mut self, word: usize, topics: &mut &[T]) {
        let range = self.range(word);
        if self.exclusion.is_none() {
            let (of_word, rest) = topics.split_at(range.len());
            self.topics[range].copy_from_slice(of_word);
            *topics = rest;
            return;
        }
        for token in range {
            if self.exclusion.is_due(token) {
                let (&topic, rest) = topics.split_first().expect("a topic for each token");
                self.set_topic(token, topic);
                *topics = rest;
            }
        }
    }

    /// Sets the topic of a token that was sampled.
    pub fn set_topic(&mut self, token: usize, topic: T) {
        let before = std::mem::replace(&mut self.topics[token], topic);
        self.exclusion.note_sampled(token, before != topic);
    }
}
