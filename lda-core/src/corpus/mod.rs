//! Tokens of documents, fixed after building.
//!
//! A [`Corpus`] is a compressed-sparse-row matrix: for each document the distinct words it holds,
//! ascending, and how often. Word ids are dense, `0..num_words()`; a vocabulary gives them names.
//!
//! Memory: 8 bytes a (word, count) pair and 8 bytes a document, plus the vocabulary where there is
//! one.

/// One document: the words it holds, ascending, and the tokens of each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Document<'a> {
    /// Distinct word ids, strictly ascending.
    pub words: &'a [u32],
    /// Tokens of each word, at least 1; as long as `words`.
    pub counts: &'a [u32],
}

impl Document<'_> {
    /// Tokens in the document.
    pub fn len(&self) -> u64 {
        self.counts.iter().map(|&count| u64::from(count)).sum()
    }

    /// Whether the document holds no token.
    pub fn is_empty(&self) -> bool {
        self.words.is_empty()
    }
}

/// Documents as bags of words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Corpus {
    /// `offsets[d]..offsets[d + 1]` are document d's pairs.
    offsets: Vec<u64>,
    words: Vec<u32>,
    counts: Vec<u32>,
    num_words: u32,
    num_tokens: u64,
}

impl Corpus {
    /// Number of documents D, empty ones included.
    pub fn num_documents(&self) -> usize {
        self.offsets.len() - 1
    }

    /// Vocabulary size V: word ids are below it.
    pub fn num_words(&self) -> usize {
        self.num_words as usize
    }

    /// Number of tokens T.
    pub fn num_tokens(&self) -> u64 {
        self.num_tokens
    }

    /// Number of (word, count) pairs.
    pub fn num_pairs(&self) -> usize {
        self.words.len()
    }

    /// Document `d`.
    ///
    /// # Panics
    /// If `d` is not below [`num_documents`](Self::num_documents).
    pub fn document(&self, d: usize) -> Document<'_> {
        let pairs = self.offsets[d] as usize..self.offsets[d + 1] as usize;
        Document { words: &self.words[pairs.clone()], counts: &self.counts[pairs] }
    }
}
