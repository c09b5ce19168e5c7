//! Blocks, which a driver passes to a sampler, and outcomes, which it returns.

use std::ops::Range;

use crate::counts::{Rows, TopicIndex};
use crate::layout::RowRun;
use crate::sampler::WordTables;

/// Identifies a block, and with it the random streams of the block.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct BlockKey {
    /// Set of documents: shard of a distributed job, or one of a hybrid's two token sets.
    pub shard: u16,
    /// Document range.
    pub documents: u16,
    /// Word range.
    pub words: u16,
}

impl BlockKey {
    /// The key as one number.
    pub fn number(self) -> u64 {
        u64::from(self.shard) << 32 | u64::from(self.documents) << 16 | u64::from(self.words)
    }
}

/// Tokens and counts that a sampler works on; the variant is the pass's [`Shape`](super::Shape).
#[derive(Debug)]
pub enum Block<'a, T> {
    /// A document range × a word range, with both kinds of rows.
    Grid(GridBlock<'a, T>),
    /// Whole words.
    Words(WordBlock<'a, T>),
    /// Whole documents.
    Documents(DocumentBlock<'a, T>),
}

/// Tokens of one document range and one word range, in the sampler's
/// [`Order`](crate::layout::Order); both count rows are complete.
#[derive(Debug)]
pub struct GridBlock<'a, T> {
    /// Key, also of the random streams ([`Context::stream`](super::Context::stream)).
    pub key: BlockKey,
    /// One run of tokens for each word, or for each document where the sampler goes by document; in
    /// order of the tokens.
    pub visits: &'a [RowRun],
    /// Local document of each token; its local word if the sampler goes by document.
    pub partner: &'a [u32],
    /// Topic of each token; as long as `partner`.
    pub z: &'a mut [T],
    /// C_w rows, by local word.
    pub words: &'a mut Rows<T>,
    /// C_d rows, by local document.
    pub documents: &'a mut Rows<T>,
    /// Stale tables of the words, for samplers that [require](super::Requires) them.
    pub tables: Option<&'a mut WordTables<T>>,
}

/// All tokens of a range of words, in as many columns as there are document ranges.
#[derive(Debug)]
pub struct WordBlock<'a, T> {
    /// Key, also of the random streams ([`Context::stream`](super::Context::stream)).
    pub key: BlockKey,
    /// Number of words in the range; local ids are below it.
    pub num_words: usize,
    /// The tokens to resample.
    pub columns: Vec<Column<'a, T>>,
    /// Further tokens of the same words, sampled by another sampler. They count, and proposals may be
    /// drawn from them, but they do not move.
    pub others: Vec<OtherTokens<'a, T>>,
    /// C_w rows of the words, if the run keeps them: before the pass the current counts, to be
    /// overwritten with the new ones.
    pub rows: Option<&'a mut Rows<T>>,
    /// Whether `rows` holds counts of external tokens alone: tokens that are not in this block and do
    /// not move. They are added to all counts, and stay in the rows that are written.
    pub counted: bool,
}

/// One document range's share of a [`WordBlock`].
#[derive(Debug)]
pub struct Column<'a, T> {
    /// Words, ascending by local id.
    pub visits: &'a [RowRun],
    /// 1 + M values per token: its topic, then its pending proposals.
    pub tokens: &'a mut [T],
}

/// Tokens that count and do not move.
#[derive(Debug)]
pub struct OtherTokens<'a, T> {
    /// Words, ascending by local id.
    pub visits: &'a [RowRun],
    /// Topic of each token.
    pub z: &'a [T],
}

/// All tokens of a range of documents.
#[derive(Debug)]
pub struct DocumentBlock<'a, T> {
    /// Key, also of the random streams ([`Context::stream`](super::Context::stream)).
    pub key: BlockKey,
    /// Tokens of each document.
    pub lengths: &'a [u32],
    /// Slots of each document's tokens, documents one after the other.
    pub inverse: &'a [u32],
    /// 1 + M values per slot: its topic, then its pending proposals.
    pub tokens: &'a mut [T],
    /// Slots whose tokens move; `None` if all do. If set, a document's slots ascend. The other tokens
    /// count, and proposals may be drawn from them, but they keep their topics and pending proposals.
    pub moving: Option<Range<u32>>,
}

/// Result of sampling a block.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// Change of C_k: (topic, tokens gained), each topic once, no zeros needed; sums to 0.
    pub totals: Vec<(u32, i32)>,
    /// Tokens sampled.
    pub tokens: u64,
    /// Tokens whose topic changed.
    pub changed: u64,
    /// Metropolis-Hastings proposals, without those of the current topic.
    pub proposed: u64,
    /// Accepted ones of these proposals.
    pub accepted: u64,
    /// Proposals of the current topic, which change nothing. LDA*'s algorithm 1 counts them as
    /// accepted.
    pub repeated: u64,
}

impl<'a, T: TopicIndex> Block<'a, T> {
    pub(crate) fn into_grid(self) -> GridBlock<'a, T> {
        match self {
            Block::Grid(block) => block,
            other => panic!("a grid pass got {}", other.shape()),
        }
    }

    fn shape(&self) -> &'static str {
        match self {
            Block::Grid(_) => "a grid block",
            Block::Words(_) => "a range of words",
            Block::Documents(_) => "a range of documents",
        }
    }
}
