//! What cannot be a shard, or come to one.

use lda_core::counts::RowsTooLarge;
use thiserror::Error;

use crate::wire::WireError;

/// Why there is no such shard.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ShardError {
    /// The corpus is not of the job's vocabulary.
    #[error("a corpus of {found} words for a job of {expected}")]
    Words {
        /// Words of the corpus.
        found: usize,
        /// V.
        expected: u32,
    },
    /// Numbers of topics are too narrow.
    #[error("{topics} topics, of which {most} have numbers here: take wider ones")]
    Topics {
        /// K.
        topics: u32,
        /// Most that there may be.
        most: u64,
    },
    /// Too many tokens of one partition.
    #[error("{tokens} tokens of one partition in one shard: cut the documents into more shards")]
    Tokens {
        /// How many.
        tokens: usize,
    },
    /// Too much for one shard.
    #[error(transparent)]
    Rows(#[from] RowsTooLarge),
}

/// An answer or rows that do not fit what was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum AnswerError {
    /// Bytes that are none.
    #[error(transparent)]
    Wire(#[from] WireError),
    /// Bytes behind the last row.
    #[error("{bytes} bytes behind the last row")]
    Rest {
        /// How many.
        bytes: usize,
    },
    /// A reply with another number of sizes than there are words.
    #[error("reply has {found} sizes for {words} words")]
    Sizes {
        /// Sizes of the reply.
        found: usize,
        /// Words that the shard has of the partition.
        words: usize,
    },
    /// Totals that have not the tokens of this shard.
    #[error("topic {topic} has fewer tokens than this shard has of it")]
    Total {
        /// Which.
        topic: u32,
    },
    /// A row that has not the tokens of this shard.
    #[error("the row of word {word} has not the tokens that this shard has of it")]
    Row {
        /// Which.
        word: u32,
    },
}

/// Topics that are not those of a shard.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum RestoreError {
    /// Not one a token.
    #[error("{found} topics of {expected} tokens")]
    Tokens {
        /// How many.
        found: usize,
        /// How many tokens there are.
        expected: usize,
    },
    /// A topic that there is not.
    #[error("topic {topic} is not one of the job's")]
    Topic {
        /// Which.
        topic: u32,
    },
}
