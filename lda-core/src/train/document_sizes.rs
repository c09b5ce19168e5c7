//! Sizes of the documents of a run, from which the defaults of its options follow.

use crate::corpus::Corpus;

/// Sizes of documents in memory, or in blocks.
pub(crate) trait DocumentSizes {
    /// V.
    fn num_words(&self) -> usize;

    /// Tokens of all documents.
    fn num_tokens(&self) -> u64;

    /// Documents that have tokens.
    fn num_with_tokens(&self) -> u64;

    /// Tokens of the documents of at most this length.
    fn tokens_up_to(&self, length: u32) -> u64;

    /// Most tokens that are laid out at once: those of the largest block.
    fn most_at_once(&self) -> u64;

    /// Largest number that a 32-bit count of tokens must hold, as far as it is known: tokens of a topic are
    /// known only during the run.
    fn largest_count(&self) -> u64;

    /// Mean number of tokens of the documents that have tokens; 0 without any.
    fn mean_length(&self) -> f64 {
        match self.num_with_tokens() {
            0 => 0.0,
            documents => self.num_tokens() as f64 / documents as f64,
        }
    }
}

impl DocumentSizes for Corpus {
    fn num_words(&self) -> usize {
        self.num_words()
    }

    fn num_tokens(&self) -> u64 {
        self.num_tokens()
    }

    fn num_with_tokens(&self) -> u64 {
        (self.num_documents() - self.num_empty()) as u64
    }

    fn tokens_up_to(&self, length: u32) -> u64 {
        let lengths = (0..self.num_documents()).map(|d| self.doc_length(d));
        lengths.filter(|&n| n <= u64::from(length)).sum()
    }

    fn most_at_once(&self) -> u64 {
        self.num_tokens()
    }

    fn largest_count(&self) -> u64 {
        self.num_tokens()
    }
}
