//! Errors of requests.

use thiserror::Error;

use crate::request::HeadError;
use crate::row_store::RowStoreError;
use crate::spec::Round;
use crate::wire::WireError;

/// A request that a server rejects.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum RequestError {
    /// Rows or documents of the request are malformed.
    #[error(transparent)]
    Wire(#[from] WireError),
    /// The header or the routes are malformed.
    #[error(transparent)]
    Head(#[from] HeadError),
    /// The request is for a round that is not open, or for another attempt.
    #[error("a request is for {found}, but the oldest open round is {now}")]
    Round {
        /// Round of the request.
        found: Round,
        /// The oldest open round.
        now: Round,
    },
    /// The request continues after its last row or document.
    #[error("a request has {bytes} bytes after its end")]
    Rest {
        /// Number of bytes.
        bytes: usize,
    },
    /// The slice is on another server.
    #[error("slice {slice} of the partitions is on another server")]
    Slice {
        /// The slice.
        slice: u16,
    },
    /// Tokens are pushed to a slice that lacks some topics.
    #[error("tokens are pushed to slice {slice}, which does not have all topics of its words")]
    PartialRows {
        /// The slice.
        slice: u16,
    },
    /// The shard has joined the slice before.
    #[error("shard {shard} has joined slice {slice} already")]
    Joined {
        /// The shard.
        shard: u16,
        /// The slice.
        slice: u16,
    },
    /// No round is open.
    #[error("a request arrived before the first round was open")]
    NotYet,
    /// The shard has not joined the slice.
    #[error("shard {shard} has not joined slice {slice}")]
    Shard {
        /// The shard.
        shard: u16,
        /// The slice.
        slice: u16,
    },
    /// The shard joins with words that are not in the slice.
    #[error("shard {shard} joins slice {slice} with words that are not in it")]
    Words {
        /// The shard.
        shard: u16,
        /// The slice.
        slice: u16,
    },
    /// The row counts fewer tokens than are pushed.
    #[error("the row of word {word} counts fewer tokens than are pushed")]
    Tokens {
        /// Index of the word among the shard's.
        word: u32,
    },
    /// The document is longer than the limit.
    #[error("a pushed document has {tokens} tokens, more than the limit of {longest}")]
    Length {
        /// Tokens of the document.
        tokens: u64,
        /// The limit.
        longest: u32,
    },
    /// More tokens of a topic are pushed than C_k counts.
    #[error("more tokens of topic {topic} are pushed than exist")]
    Topic {
        /// The topic.
        topic: u32,
    },
    /// A row, or the delta of a whole row, changes the number of tokens, but tokens only change their topics.
    #[error("the delta of a row adds {tokens} tokens, and must add 0")]
    TokenCount {
        /// Sum of the delta.
        tokens: i64,
    },
    /// Rows are pushed, but other shards may change them in the same round, or this slice has only a part of
    /// them.
    #[error("rows of slice {slice} are pushed, and only their deltas may be")]
    OnlyDeltas {
        /// The slice.
        slice: u16,
    },
    /// The deltas do not fit the rows.
    #[error(transparent)]
    RowStore(#[from] RowStoreError),
}

impl RequestError {
    /// Returns whether the request came at a wrong time: the sender is behind or ahead, and the
    /// request may be valid otherwise.
    pub fn is_of_another_time(&self) -> bool {
        matches!(self, Self::Round { .. } | Self::NotYet)
    }
}
