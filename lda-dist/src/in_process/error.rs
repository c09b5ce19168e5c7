//! Errors of the in-process reference.

use thiserror::Error;

use crate::config::ConfigError;
use crate::server::RequestError;
use crate::shard::{AnswerError, ShardError};

/// Error of setting up or running an in-process run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum InProcessError {
    /// The configuration is invalid.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// A shard cannot be made.
    #[error(transparent)]
    Shard(#[from] ShardError),
    /// A server rejected a request.
    #[error(transparent)]
    Request(#[from] RequestError),
    /// A shard rejected a reply.
    #[error(transparent)]
    Answer(#[from] AnswerError),
    /// A topic has more tokens than a 32-bit count holds.
    #[error("topic {topic} has {tokens} tokens, beyond 32 bits")]
    Total {
        /// The topic.
        topic: usize,
        /// Tokens of the topic.
        tokens: i64,
    },
}
