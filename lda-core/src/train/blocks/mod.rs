//! Training over blocks: more documents than fit in memory.
//!
//! The counts of words C_w and the totals C_k stay in memory; documents, their topics and C_d are there one
//! block at a time (LightLDA, Yuan et al., WWW 2015, section 5.2; Yahoo!LDA, Ahmed et al., WSDM 2012, keeps
//! documents and topics on disk in the same way). In an epoch, blocks are visited in order. While one is
//! sampled, the next is read and laid out, and the topics of the one before are written.
//!
//! # Files
//! The directory of a run has the topics of all tokens after the last complete epoch, and while an epoch is
//! sampled those of the blocks that it has visited: 2 bytes per token each (4 above 65,536 topics), and as much
//! for each pending proposal of WarpLDA. A run that is killed at any time goes on from the last complete epoch
//! with the same bits ([`BlockTrainer::resume`]). There is no other checkpoint.
//!
//! # Exact, and reproducible
//! Rows are always current, as in a run over one corpus, and C_k is current at the beginning of each block. The
//! bits depend on options, documents and how they are cut, and on nothing else: neither on threads, nor on the
//! number of blocks that stay in memory, nor on interruptions. They differ from those of a run over one corpus,
//! since rows of C_d are counted again in each epoch, in the order of the document's tokens.
//!
//! WarpLDA counts a word from its tokens, of which only those of one block are there: the others are in C_w, as
//! counts that do not move. Its passes over a block's documents and words follow each other, so that a token
//! sees the moves of all blocks before it.
//!
//! # Cost
//! A block is laid out once, and its layout is a file too. Beside the sampling, an epoch reads the layout of each
//! block that does not stay in memory (2 bytes per token, and 8 per visit of a word or document) and the topics,
//! counts C_d, and writes 2 bytes per token. Samplers with stale tables make them once per block.

mod any_engine;
mod engine;
mod layout_file;
mod loaded;
mod memory;
mod store;
#[cfg(test)]
mod tests;
mod trainer;
mod visit;

use crate::container::FileError;
use crate::corpus::blocks::Statistics;
use crate::counts::RowsTooLarge;
use crate::eval::{CoherenceError, CompletionError};
use crate::train::document_sizes::DocumentSizes;
use crate::train::options::OptionsError;
use crate::train::snapshot::ResumeError;

pub use memory::BlockMemory;
pub use trainer::BlockTrainer;

/// Error of a run over blocks.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BlockRunError {
    /// The options are invalid, or do not fit the documents.
    #[error(transparent)]
    Options(#[from] OptionsError),
    /// A file cannot be read or written. The run can be [resumed](BlockTrainer::resume) from its last complete
    /// epoch.
    #[error(transparent)]
    File(#[from] FileError),
    /// The run cannot be resumed with these documents and options.
    #[error(transparent)]
    Resume(#[from] ResumeError),
    /// A topic has more tokens than a 32-bit count holds.
    #[error(
        "a topic has more than 4,294,967,295 tokens, of which a run with {topics} topics cannot hold the count: \
         ask for more topics"
    )]
    TopicOverflow {
        /// Topics K.
        topics: u32,
    },
    /// Held-out documents cannot be evaluated.
    #[error("held-out documents: {0}")]
    Completion(#[from] CompletionError),
    /// The coherence of topics cannot be measured.
    #[error(transparent)]
    Coherence(#[from] CoherenceError),
    /// The run has failed before.
    #[error("the run has failed before: resume it from its directory")]
    Failed,
}

impl From<RowsTooLarge> for BlockRunError {
    fn from(error: RowsTooLarge) -> Self {
        Self::Options(error.into())
    }
}

/// Sizes of documents in blocks.
#[derive(Clone, Copy, Debug)]
struct BlockSizes<'a> {
    statistics: &'a Statistics,
    /// Tokens of the largest block.
    largest: u64,
}

impl DocumentSizes for BlockSizes<'_> {
    fn num_words(&self) -> usize {
        self.statistics.num_words()
    }

    fn num_tokens(&self) -> u64 {
        self.statistics.num_tokens()
    }

    fn num_with_tokens(&self) -> u64 {
        self.statistics.num_documents() - self.statistics.num_empty()
    }

    fn tokens_up_to(&self, length: u32) -> u64 {
        let short = self.statistics.lengths().take_while(|&(n, _)| n <= length);
        short.map(|(n, documents)| u64::from(n) * documents).sum()
    }

    fn most_at_once(&self) -> u64 {
        self.largest
    }

    fn largest_count(&self) -> u64 {
        let word = self.statistics.word_frequencies().iter().copied().max().unwrap_or(0);
        word.max(self.largest)
    }
}
