//! Tokens of a partition, word by word, with their topics before and after sampling.

use std::ops::Range;

use lda_core::counts::TopicIndex;
use lda_core::layout::RowRun;

/// Tokens that F+LDA samples, in the order in which they were added. One entry per token in
/// `documents`, `before` and `after`.
pub(super) struct Tokens<T> {
    /// Word of each visit, and the end of its tokens.
    pub visits: Vec<RowRun>,
    pub documents: Vec<u32>,
    /// Topics before sampling.
    pub before: Vec<T>,
    /// Topics after sampling.
    pub after: Vec<T>,
}

impl<T: TopicIndex> Tokens<T> {
    pub fn new() -> Self {
        Self { visits: Vec::new(), documents: Vec::new(), before: Vec::new(), after: Vec::new() }
    }

    /// Bytes allocated.
    pub fn memory(&self) -> usize {
        let Self { visits, documents, before, after } = self;
        size_of::<RowRun>() * visits.capacity()
            + size_of::<u32>() * documents.capacity()
            + size_of::<T>() * (before.capacity() + after.capacity())
    }

    pub fn clear(&mut self) {
        self.visits.clear();
        self.documents.clear();
        self.before.clear();
    }

    /// Adds a token to the word that [`end_word`](Self::end_word) will end.
    pub fn push(&mut self, document: u32, topic: T) {
        self.documents.push(document);
        self.before.push(topic);
    }

    /// Topics of the tokens that were added since the last word ended.
    pub fn since_last_word(&self) -> &[T] {
        &self.before[self.visits.last().map_or(0, |visit| visit.end as usize)..]
    }

    /// Ends a word: the tokens since the last one are its own, and its row is the next one.
    pub fn end_word(&mut self) {
        self.add_word_of(self.visits.len() as u32, &[], &[]);
    }

    /// Adds tokens to the word, and ends it with this row.
    pub fn add_word_of(&mut self, row: u32, documents: &[u32], topics: &[T]) {
        self.documents.extend_from_slice(documents);
        self.before.extend_from_slice(topics);
        self.visits.push(RowRun { row, end: self.before.len() as u32 });
    }

    /// Returns whether each word has at least one token.
    pub fn each_word_has_some(&self) -> bool {
        self.words().all(|(_, tokens)| !tokens.is_empty())
    }

    /// Row of each word with the positions of its tokens.
    pub fn words(&self) -> impl Iterator<Item = (u32, Range<u32>)> + '_ {
        let mut start = 0;
        self.visits
            .iter()
            .map(move |&RowRun { row, end }| (row, std::mem::replace(&mut start, end)..end))
    }
}

/// Topics of the tokens that WarpLDA samples: tokens of long documents.
pub(super) struct LongTokens<T> {
    /// End of each word's tokens in `before` and `after`.
    ends: Vec<u32>,
    /// Topics as the rows count them.
    pub before: Vec<T>,
    /// Topics of the same tokens after WarpLDA's pass.
    pub after: Vec<T>,
}

impl<T: TopicIndex> LongTokens<T> {
    pub fn new() -> Self {
        Self { ends: Vec::new(), before: Vec::new(), after: Vec::new() }
    }

    /// Bytes allocated.
    pub fn memory(&self) -> usize {
        size_of::<u32>() * self.ends.capacity()
            + size_of::<T>() * (self.before.capacity() + self.after.capacity())
    }

    pub fn clear(&mut self) {
        self.ends.clear();
        self.before.clear();
        self.after.clear();
    }

    /// Topics of the tokens that were added since the last word ended.
    pub fn since_last_word(&self) -> &[T] {
        &self.before[self.ends.last().map_or(0, |&end| end as usize)..]
    }

    /// Ends a word: the tokens since the last one are its own.
    pub fn end_word(&mut self) {
        self.ends.push(self.before.len() as u32);
    }

    /// Positions of each word's tokens.
    pub fn words(&self) -> impl Iterator<Item = Range<usize>> + '_ {
        let mut start = 0;
        self.ends.iter().map(move |&end| std::mem::replace(&mut start, end as usize)..end as usize)
    }
}
