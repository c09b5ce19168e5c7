//! Samplers: each resamples the topics of one block of tokens.
//!
//! All of them aim at the full conditional of the collapsed model (Griffiths and Steyvers 2004),
//! where ¬i takes the token itself out of the counts:
//!
//! ```text
//! p(z_i = k | rest) ∝ (C_dk¬i + α_k) · (C_wk¬i + β) / (C_k¬i + Vβ)                         (1)
//! ```
//!
//! | sampler | how | cost a token | order | law |
//! |---|---|---|---|---|
//! | [`Exact`] | all K weights | O(K) | by word | exact |
//! | [`FPlus`] | document part scanned, prior part in a tree | O(K_d + log K) | by word | exact |
//! | [`FPlusDoc`] | word part scanned, prior part in a tree | O(K_w + log K) | by document | exact |
//! | [`SparseLda`] | word part scanned, the rest in two buckets | O(K_d + K_w) | by document | exact |
//! | [`AliasLda`] | document part fresh, the rest stale, judged | O(K_d + M) | by document | nearly exact |
//! | [`Zen`], [`ZenDoc`] | one part fresh, two in tables, remedies | O(K_d), O(K_w) | by word, by document | biased |
//! | [`ZenHybrid`] | the same, each token by its longer row | O(min(K_d, K_w)) | both, by degree | biased |
//! | [`LightLda`] | Metropolis-Hastings, two proposals in turn | O(M) | by word | nearly exact |
//! | [`Warp`] | Metropolis-Hastings, counts delayed by a pass | O(M) | words, then documents | biased |
//!
//! "Exact" leaves the posterior invariant when the corpus is one block. With several blocks a
//! wave, totals C_k are as of the wave's start plus the block's own changes: then the chain is the
//! one declared in [`train`](crate::train), and its distance to the posterior vanishes with the
//! share of tokens in flight. "Nearly exact" keeps the conditional of each token, but proposes from
//! tables that remember where other tokens were: .02 to .03 from the posterior in total variation on
//! tiny corpora, as "biased" is .02 to .19.
//!
//! # Who does what
//! The driver cuts the work and lends a [`Block`]; the sampler walks it and returns an [`Outcome`].
//! A sampler cannot tell whether a block is a slice of a whole corpus, rows fetched from a server,
//! or a push request decoded from the wire: only counts cross the boundary. The trait is called
//! once a block, so the loop over tokens is compiled for the sampler, the topic width and the
//! instruction set, and dispatches nothing.

mod alias;
mod block;
mod draw;
mod exact;
mod fplus;
mod gibbs;
mod light;
mod sparse;
mod tables;
mod warp;
mod zen;

pub use alias::AliasLda;
pub use block::{
    Block, BlockKey, Column, DocumentBlock, GridBlock, OtherTokens, Outcome, WordBlock,
};
pub use exact::Exact;
pub use fplus::{FPlus, FPlusDoc};
pub use light::{LightLda, Proposals};
pub use sparse::SparseLda;
pub use tables::WordTables;
pub use warp::Warp;
pub use zen::{Zen, ZenDoc, ZenHybrid};

pub use crate::counts::{Density, Rows, TopicIndex};
pub use crate::layout::{Order, RowRun, TokenOrder};
pub use crate::random::{Purpose, StreamKey, Xoshiro256PlusPlus};

use crate::simd::{Isa, LANES};

/// How a pass is cut into blocks that may run at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// Document ranges × word ranges, in waves of blocks that share no row; of each block, the
    /// tokens that lie in this order.
    Grid(Order),
    /// Whole words.
    WordRanges,
    /// Whole documents.
    DocumentRanges,
}

impl Shape {
    /// In which order the tokens of a grid pass lie.
    pub fn order(self) -> Option<Order> {
        match self {
            Self::Grid(order) => Some(order),
            Self::WordRanges | Self::DocumentRanges => None,
        }
    }
}

/// One pass of an epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pass {
    /// Shown in reports.
    pub name: &'static str,
    /// How it is cut.
    pub shape: Shape,
}

/// Arrays over topics are padded to this length: whole vectors, and at least one zero past K.
pub fn padded(topics: usize) -> usize {
    (topics + 1).next_multiple_of(LANES)
}

/// What is constant while a wave runs, and equal on every node.
#[derive(Clone, Copy, Debug)]
pub struct Context<'a> {
    /// Topics K.
    pub topics: usize,
    /// Document-topic prior α_k, [`padded`] with zeros.
    pub alpha: &'a [f32],
    /// Σ α_k.
    pub alpha_sum: f64,
    /// Whether all α_k are equal.
    pub alpha_symmetric: bool,
    /// Topic-word prior β.
    pub beta: f64,
    /// Vβ.
    pub beta_bar: f64,
    /// C_k at the wave's start, [`padded`] with zeros.
    pub totals: &'a [u32],
    /// Number of the wave, counted through the whole run: scratch that saw another one is stale.
    pub wave: u64,
    /// The run's seed.
    pub seed: u64,
    /// Epoch, counted from 1.
    pub epoch: u32,
    /// How often the pass ran before in this epoch.
    pub round: u16,
    /// How often the same pass has sampled these tokens in this round before, below 64.
    pub again: u8,
    /// Metropolis-Hastings steps M a token: proposals that it carries from pass to pass with
    /// WarpLDA, proposals of each kind that are drawn and judged at once with the others.
    pub mh_steps: usize,
    /// Instruction set to run on; never changes a result.
    pub isa: Isa,
}

impl Context<'_> {
    /// The key of a stream of this epoch. There are four passes at most.
    pub fn stream(&self, pass: u32, key: BlockKey, purpose: Purpose) -> StreamKey {
        let pass = u32::from(self.round) << 8 | u32::from(self.again) << 2 | pass;
        StreamKey { seed: self.seed, epoch: self.epoch, pass, block: key.number(), purpose }
    }
}

/// What a sampler asks of the driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Requires {
    /// Largest K it can do.
    pub max_topics: u64,
    /// Which tokens of a block lie by word, and which by document.
    pub token_order: TokenOrder,
    /// Form of the document rows; `None` if it keeps none.
    pub document_rows: Option<Density>,
    /// Whether word rows are read and written.
    pub word_rows: bool,
    /// Whether stale tables of words are lent.
    pub word_tables: bool,
    /// Whether tokens carry pending proposals, and documents an inverse index.
    pub proposals: bool,
    /// Whether its scratch holds the topics of a document range's tokens, document after document.
    pub positions: bool,
}

/// A grid sampler over words that reads and writes both kinds of rows.
impl Default for Requires {
    fn default() -> Self {
        Self {
            max_topics: u64::MAX,
            token_order: TokenOrder::All(Order::ByWord),
            document_rows: Some(Density::Auto),
            word_rows: true,
            word_tables: false,
            proposals: false,
            positions: false,
        }
    }
}

/// A shared sampler is a sampler.
impl<T: TopicIndex, S: Sampler<T> + Send> Sampler<T> for std::sync::Arc<S> {
    type Scratch = S::Scratch;

    fn requires(&self) -> Requires {
        S::requires(self)
    }

    fn passes(&self) -> &'static [Pass] {
        S::passes(self)
    }

    fn scratch(&self, topics: usize) -> Self::Scratch {
        S::scratch(self, topics)
    }

    fn sample(
        &self,
        pass: usize,
        cx: &Context<'_>,
        scratch: &mut Self::Scratch,
        block: Block<'_, T>,
    ) -> Outcome {
        S::sample(self, pass, cx, scratch, block)
    }
}

/// One LDA sampler. See the [module](self) for what it is handed and what it owes.
pub trait Sampler<T: TopicIndex>: Sync + std::fmt::Debug {
    /// One a thread; holds no result.
    type Scratch: Send;

    /// What the driver must provide.
    fn requires(&self) -> Requires;

    /// The passes of an epoch, in order.
    fn passes(&self) -> &'static [Pass];

    /// Fresh scratch for `topics` topics.
    fn scratch(&self, topics: usize) -> Self::Scratch;

    /// Resamples the tokens of one block in pass number `pass`.
    ///
    /// # Panics
    /// If the block has not the pass's shape.
    fn sample(
        &self,
        pass: usize,
        cx: &Context<'_>,
        scratch: &mut Self::Scratch,
        block: Block<'_, T>,
    ) -> Outcome;
}
