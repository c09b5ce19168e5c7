//! Documents of a job, a shard at a time: in memory, or [stored](StoredDocuments).

mod stored;

use std::sync::Arc;

use lda_core::Corpus;

use crate::together::{TogetherError, cut};

pub use stored::{StoredDocuments, StoredError, store};

/// Documents, as they are kept: a shard at a time.
pub trait Documents {
    /// The documents of a shard, over the job's vocabulary, and the number of the first one in the whole job.
    ///
    /// # Errors
    /// Why they cannot be had.
    fn read(&self, shard: u16) -> Result<(Corpus, u64), String>;
}

/// A corpus in memory, cut into shards. A copy is of the same.
#[derive(Clone, Debug)]
pub struct InMemory {
    corpus: Arc<Corpus>,
    /// First document of each shard, and the end.
    firsts: Arc<[usize]>,
}

impl InMemory {
    /// These documents in so many shards, [cut](cut()) about evenly.
    ///
    /// # Errors
    /// [`TogetherError::Shards`].
    pub fn new(corpus: Corpus, shards: u16) -> Result<Self, TogetherError> {
        let firsts = cut(&corpus, shards)?.into();
        Ok(Self { corpus: Arc::new(corpus), firsts })
    }

    /// All documents.
    pub fn corpus(&self) -> &Corpus {
        &self.corpus
    }

    /// First document of each shard, and the end.
    pub fn firsts(&self) -> &[usize] {
        &self.firsts
    }
}

impl Documents for InMemory {
    fn read(&self, shard: u16) -> Result<(Corpus, u64), String> {
        let shard = usize::from(shard);
        let Some(&[first, end]) = self.firsts.get(shard..shard + 2) else {
            return Err(format!("there are {}", self.firsts.len() - 1));
        };
        Ok((self.corpus.select(first..end), first as u64))
    }
}
