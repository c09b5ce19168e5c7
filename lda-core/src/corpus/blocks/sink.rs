//! Receiver of documents that a reader has completed, so that a corpus need never be in memory.

use std::sync::{Arc, Mutex, PoisonError};

use super::BlockWriter;
use crate::container::FileError;
use crate::corpus::Corpus;
use crate::corpus::assembly::Extent;

/// Destination of the documents of a reader: memory, or blocks.
#[derive(Clone, Debug, Default)]
pub(in crate::corpus) struct Destination {
    pub extent: Extent,
    pub blocks: Option<BlockSink>,
}

impl From<Extent> for Destination {
    /// Memory, of which the extent of the input says how much is needed.
    fn from(extent: Extent) -> Self {
        Self { extent, blocks: None }
    }
}

/// A writer of blocks, shared between a reader and what it calls. Clones share it.
#[derive(Clone, Debug)]
pub(in crate::corpus) struct BlockSink {
    /// Tokens of a block: it ends with the document that reaches them.
    tokens: u64,
    /// Largest number of words without tokens: each takes memory.
    max_unused: u64,
    state: Arc<Mutex<SinkState>>,
}

#[derive(Debug)]
struct SinkState {
    writer: Option<BlockWriter>,
    failed: Option<Result<FileError, TooWide>>,
}

/// The words of a block are too many for its tokens.
#[derive(Clone, Copy, Debug)]
pub(in crate::corpus) struct TooWide {
    pub words: u64,
    /// Words without tokens, at least.
    pub unused: u64,
    /// The first document with the largest word, from 1.
    pub document: u64,
}

impl BlockSink {
    /// Blocks of about so many tokens.
    pub fn new(writer: BlockWriter, tokens: u64, max_unused: u64) -> Self {
        let state = SinkState { writer: Some(writer), failed: None };
        Self { tokens, max_unused, state: Arc::new(Mutex::new(state)) }
    }

    /// Returns true if documents of so many tokens make a block.
    pub fn is_full(&self, tokens: u64) -> bool {
        tokens >= self.tokens
    }

    /// Writes documents as a block; returns false if it could not be written.
    pub fn push(&self, documents: &Corpus) -> bool {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let SinkState { writer, failed } = &mut *state;
        let Some(writer) = writer.as_mut().filter(|_| failed.is_none()) else { return false };
        let words = documents.num_words() as u64;
        let most = writer.num_pairs() + documents.num_pairs() as u64;
        let unused = words.saturating_sub(most);
        if unused > self.max_unused {
            let largest = |d: usize| documents.document(d).words.iter().max().copied();
            let last = (0..documents.num_documents()).filter_map(largest).max();
            let of = (0..documents.num_documents()).position(|d| largest(d) == last);
            let document = writer.statistics().num_documents() + of.unwrap_or(0) as u64 + 1;
            *failed = Some(Err(TooWide { words, unused, document }));
            return false;
        }
        *failed = writer.push(documents).err().map(Ok);
        failed.is_none()
    }

    /// The writer, after all documents were read; or the error of a block.
    pub fn into_writer(self) -> Result<Option<BlockWriter>, Result<FileError, TooWide>> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        match state.failed.take() {
            Some(error) => Err(error),
            None => Ok(state.writer.take()),
        }
    }
}
