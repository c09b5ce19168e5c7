//! Why a request is refused.

use thiserror::Error;

use crate::request::HeadError;
use crate::row_store::RowStoreError;
use crate::spec::Round;
use crate::wire::WireError;

/// A request that cannot be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum RequestError {
    /// Bytes that are no request.
    #[error(transparent)]
    Wire(#[from] WireError),
    /// Bytes that are no request.
    #[error(transparent)]
    Head(#[from] HeadError),
    /// Of another round than those that are on, or of before the run went back, or of after.
    #[error("a request of {found} in {now}")]
    Round {
        /// Of which.
        found: Round,
        /// In which: the first that is on.
        now: Round,
    },
    /// Bytes behind the last row or document.
    #[error("{bytes} bytes too many")]
    Rest {
        /// How many.
        bytes: usize,
    },
    /// A slice of a partition that lies elsewhere.
    #[error("slice {slice} of the partitions is not on this server")]
    Slice {
        /// Which.
        slice: u16,
    },
    /// Tokens of words whose rows are not here as a whole.
    #[error("tokens are pushed to slice {slice}, which has not all topics of its words")]
    PartialRows {
        /// Which.
        slice: u16,
    },
    /// A shard that has joined before.
    #[error("shard {shard} has joined slice {slice} already")]
    Joined {
        /// Which.
        shard: u16,
        /// Which slice.
        slice: u16,
    },
    /// No round is on.
    #[error("no round is on")]
    NotYet,
    /// A shard that has not said which words it has.
    #[error("shard {shard} has not said which words of slice {slice} it has")]
    Shard {
        /// Which.
        shard: u16,
        /// Of which slice.
        slice: u16,
    },
    /// Words that are not the slice's, or do not ascend.
    #[error("shard {shard} has words that slice {slice} has not")]
    Words {
        /// Whose.
        shard: u16,
        /// Of which slice.
        slice: u16,
    },
    /// Tokens that the word's row has not.
    #[error("word {word} has not the tokens that are pushed of it")]
    Tokens {
        /// Its place among the shard's.
        word: u32,
    },
    /// A document that is longer than may be pushed.
    #[error("a document of {tokens} tokens, of {longest} at most")]
    Length {
        /// Its tokens.
        tokens: u64,
        /// Most that may be.
        longest: u32,
    },
    /// Tokens of a topic that has not so many in all.
    #[error("more tokens of topic {topic} than there are")]
    Topic {
        /// Which.
        topic: u32,
    },
    /// A word that has gained or lost tokens: they only change their topics.
    #[error("a word has gained {tokens} tokens")]
    TokenCount {
        /// How many.
        tokens: i64,
    },
    /// Counts that cannot be.
    #[error(transparent)]
    RowStore(#[from] RowStoreError),
}

impl RequestError {
    /// Whether it came at a wrong time and may be right by itself: who asks is behind or ahead.
    pub fn is_of_another_time(&self) -> bool {
        matches!(self, Self::Round { .. } | Self::NotYet)
    }
}
