//! Sources of a job's documents, read one shard at a time: from [memory](InMemory) or from a
//! [storage](StoredDocuments).

mod manifest;
mod statistics;
mod stored;

use std::error::Error;
use std::sync::Arc;

use lda_core::Corpus;
use thiserror::Error;

use crate::config::ConfigError;
use crate::plan::cut;

pub use statistics::Statistics;
pub use stored::{StoredDocuments, StoredError, store, store_held_out};

/// Error of a source that cannot read a shard. The [source](Error::source) is the cause.
#[derive(Debug, Error)]
#[error(transparent)]
pub struct ReadShardError(Box<dyn Error + Send + Sync>);

impl ReadShardError {
    /// An error with this cause: an error of the source's own type, or a message.
    pub fn new(cause: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self(cause.into())
    }

    /// The cause, to be downcast to the error of a source, as [`StoredError`].
    pub fn get_ref(&self) -> &(dyn Error + Send + Sync + 'static) {
        &*self.0
    }
}

/// Source of documents in shards.
pub trait Documents {
    /// Reads a shard: its documents, with word ids of the job's vocabulary, and the number of its
    /// first document in the whole job.
    ///
    /// # Errors
    /// [`ReadShardError`] if there is no such shard or it cannot be read.
    fn read(&self, shard: u16) -> Result<(Corpus, u64), ReadShardError>;

    /// Word counts and lengths of all documents, if they are known without reading the shards; the default is
    /// `None`. Then each worker reads its shards before words are placed, and once more when the run starts.
    /// The answer must be the same on all nodes.
    fn statistics(&self) -> Option<&Statistics> {
        None
    }
}

/// A corpus in memory, cut into shards. Clones share the corpus.
#[derive(Clone, Debug)]
pub struct InMemory {
    corpus: Arc<Corpus>,
    /// First document of each shard, and the number of documents.
    firsts: Arc<[usize]>,
}

impl InMemory {
    /// Cuts a corpus into `shards` shards, [about evenly](cut()).
    ///
    /// # Errors
    /// [`ConfigError::Shards`].
    pub fn new(corpus: Corpus, shards: u16) -> Result<Self, ConfigError> {
        let firsts = cut(&corpus, shards)?.into();
        Ok(Self { corpus: Arc::new(corpus), firsts })
    }

    /// The whole corpus.
    pub fn corpus(&self) -> &Corpus {
        &self.corpus
    }

    /// First document of each shard, and the number of documents.
    pub fn firsts(&self) -> &[usize] {
        &self.firsts
    }
}

impl Documents for InMemory {
    fn read(&self, shard: u16) -> Result<(Corpus, u64), ReadShardError> {
        select_shard(&self.corpus, &self.firsts, shard)
    }
}

/// Selects the documents of `shard`; `firsts` has the first document of each shard, then the number
/// of documents.
pub(crate) fn select_shard(
    corpus: &Corpus,
    firsts: &[usize],
    shard: u16,
) -> Result<(Corpus, u64), ReadShardError> {
    let at = usize::from(shard);
    let Some(&[first, end]) = firsts.get(at..at + 2) else {
        let shards = firsts.len() - 1;
        return Err(ReadShardError::new(format!("there are {shards} shards, from 0")));
    };
    Ok((corpus.select(first..end), first as u64))
}
