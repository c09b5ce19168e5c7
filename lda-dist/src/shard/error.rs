//! Errors of shards.

use lda_core::counts::RowsTooLarge;
use thiserror::Error;

use crate::wire::WireError;

/// Error of making a shard.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ShardError {
    /// The corpus has another vocabulary than the run.
    #[error("the corpus has {found} words, but the run {expected}: use the vocabulary of the run")]
    Words {
        /// Words of the corpus.
        found: usize,
        /// Words of the run, V.
        expected: u32,
    },
    /// The type of topic numbers is too narrow.
    #[error("{topics} topics, but the index type allows {most}: use a wider type")]
    Topics {
        /// K.
        topics: u32,
        /// Largest number of topics of the type.
        most: u64,
    },
    /// A partition has too many tokens.
    #[error(
        "one partition of a shard has {tokens} tokens, more than 2^32 - 1: use more shards or partitions"
    )]
    Tokens {
        /// Number of tokens.
        tokens: usize,
    },
    /// The rows of C_d are too large for one shard.
    #[error(transparent)]
    Rows(#[from] RowsTooLarge),
}

/// A reply of a server that does not fit the request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum AnswerError {
    /// The rows or topics of the reply are malformed.
    #[error(transparent)]
    Wire(#[from] WireError),
    /// The rows of the replies are too large.
    #[error(transparent)]
    Rows(#[from] RowsTooLarge),
    /// The reply continues after its last row.
    #[error("{bytes} bytes after the last row")]
    Rest {
        /// Number of bytes.
        bytes: usize,
    },
    /// The number of sizes in the reply differs from the number of words.
    #[error("a reply has {found} sizes of rows for {words} words")]
    Sizes {
        /// Number of sizes in the reply.
        found: usize,
        /// Number of words of the partition that the shard has.
        words: usize,
    },
    /// C_k counts fewer tokens of a topic than the shard has.
    #[error("topic {topic} has fewer tokens in the whole run than in this shard")]
    Total {
        /// The topic.
        topic: u32,
    },
    /// A row counts fewer tokens than the shard has.
    #[error("the row of word {word} counts fewer tokens than this shard has")]
    Row {
        /// The word.
        word: u32,
    },
}

/// Topics that do not fit a shard.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum RestoreError {
    /// The number of topics differs from the number of tokens.
    #[error("{found} topics are given for {expected} tokens: give one per token")]
    Tokens {
        /// Number of topics.
        found: usize,
        /// Number of tokens.
        expected: usize,
    },
    /// The number of ages differs from the number of tokens.
    #[error("{found} ages are given for {expected} tokens: give one per token, or none")]
    Ages {
        /// Number of ages.
        found: usize,
        /// Number of tokens of short documents.
        expected: usize,
    },
    /// The number of rows differs from the number of documents.
    #[error("{found} rows are given for {expected} documents: give one per document")]
    Documents {
        /// Number of rows.
        found: usize,
        /// Number of documents.
        expected: usize,
    },
    /// The topics of a row are not those of the document's tokens, or the row cannot have this form.
    #[error("the row of document {document} of the shard has other topics than its tokens")]
    Row {
        /// Number of the document in the shard.
        document: usize,
    },
    /// The run has no such topic.
    #[error("the run has no topic {topic}")]
    Topic {
        /// The topic.
        topic: u32,
    },
}
