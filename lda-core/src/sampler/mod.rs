//! Samplers: each resamples the topics of one block of tokens. This is also the module for authors
//! of samplers ([below](#writing-a-sampler)).
//!
//! All of them aim at the full conditional of the collapsed model (Griffiths and Steyvers 2004),
//! where ¬i takes the token itself out of the counts:
//!
//! ```text
//! p(z_i = k | rest) ∝ (C_dk¬i + α_k) · (C_wk¬i + β) / (C_k¬i + Vβ)                         (1)
//! ```
//!
//! | sampler | method | cost per token | order | law |
//! |---|---|---|---|---|
//! | [`Exact`] | all K weights | O(K) | by word | exact |
//! | [`FPlus`] | document part scanned, prior part in a tree | O(K_d + log K) | by word | exact |
//! | [`FPlusDoc`] | word part scanned, prior part in a tree | O(K_w + log K) | by document | exact |
//! | [`SparseLda`] | word part scanned, the rest in two buckets | O(K_d + K_w) | by document | exact |
//! | [`AliasLda`] | document part fresh, the rest stale, Metropolis-Hastings | O(K_d + M) | by document | nearly exact |
//! | [`Zen`], [`ZenDoc`] | one part fresh, two in tables, remedies | O(K_d), O(K_w) | by word, by document | biased |
//! | [`ZenHybrid`] | the same, each token by its longer row | O(min(K_d, K_w)) | both, by degree | biased |
//! | [`LightLda`] | Metropolis-Hastings, two proposals in turn | O(M) | by word | nearly exact |
//! | [`Warp`] | Metropolis-Hastings, counts delayed by a pass | O(M) | words, then documents | biased |
//!
//! "Exact" leaves the posterior invariant if the corpus is one block. With several blocks per wave,
//! totals C_k are those of the wave's start plus the block's own changes: the chain is then the one
//! declared in [`train`](crate::train), and its distance to the posterior vanishes with the share
//! of tokens in flight. "Nearly exact" keeps the conditional of each token, but proposes from
//! tables built from earlier positions of other tokens: .02 to .03 from the posterior in total
//! variation on tiny corpora, where "biased" is .02 to .19.
//!
//! # Division of work
//! The driver cuts the corpus into blocks and passes each [`Block`] to the sampler, which returns
//! an [`Outcome`]. A sampler cannot tell whether a block is a slice of a whole corpus, rows fetched
//! from a server, or a decoded push request: only counts cross the boundary. The trait is called
//! once per block, so the loop over tokens is compiled for the sampler, the topic width and the
//! instruction set, and dispatches nothing.
//!
//! # Writing a sampler
//! Implement [`Sampler`] for every `T: TopicIndex`, with a scratch that is `Debug` and `'static`,
//! and run it with [`Trainer::with_sampler`](crate::train::Trainer::with_sampler).
//! `examples/polya_urn` is a complete one. The contract:
//!
//! * [`Requires`] states the layout and the counts that the sampler needs; start from
//!   `Requires::default()`. [`Pass::shape`] states how a pass is cut.
//! * In a grid pass, every change of a token's topic is made in `z`, in both count rows
//!   ([`Rows::decrement`], [`Rows::increment`]) and in [`Outcome::totals`]. In a pass over
//!   [words](WordBlock), [`WordBlock::rows`] holds the counts before the pass if the sampler
//!   [requires word rows](Requires::word_rows); a sampler that moves tokens there writes the new
//!   rows. [`Trainer::check`](crate::train::Trainer::check) compares all counts with a recount.
//! * Random numbers come from [`Context::stream`], keyed by pass, block and [`Purpose`], and
//!   nowhere else. Then results do not depend on threads. The scratch may cache values of a wave,
//!   but its contents must not affect a result.
//! * State that outlives a block is behind a lock in the sampler, keyed by [`BlockKey`]. It must
//!   follow from the assignments and the streams, or a resumed run differs. All blocks of a pass
//!   end before the next pass begins.
//! * [`discrete`](crate::discrete) has alias tables.
#![cfg_attr(
    feature = "conformance",
    doc = "* The [conformance suite](conformance) checks this contract, and the law by enumeration."
)]
#![cfg_attr(
    not(feature = "conformance"),
    doc = "* The conformance suite (feature `conformance`) checks this contract, and the law by enumeration."
)]

mod alias;
mod block;
#[cfg(feature = "conformance")]
pub mod conformance;
mod dense_row;
mod draw;
mod exact;
mod fplus;
mod gibbs;
mod light;
mod sparse;
mod tables;
mod topic_prior;
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
    /// Document ranges × word ranges, in waves of blocks that share no row. The pass samples those
    /// tokens that the [layout](Requires::token_order) has in this order, and no others.
    Grid(Order),
    /// Whole words.
    WordRanges,
    /// Whole documents.
    DocumentRanges,
}

impl Shape {
    /// Order of the tokens in a grid pass; `None` for other shapes.
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
    /// Name, for reports.
    pub name: &'static str,
    /// How the pass is cut into blocks.
    pub shape: Shape,
}

/// Length that arrays over topics are padded to: whole vectors, and at least one zero past K.
pub fn padded(topics: usize) -> usize {
    (topics + 1).next_multiple_of(LANES)
}

/// Parameters that are constant during a wave, and equal on every node.
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
    /// Number of the wave, counted through the whole run. Scratch of another wave is stale.
    pub wave: u64,
    /// The run's seed.
    pub seed: u64,
    /// Epoch, counted from 1.
    pub epoch: u32,
    /// Times that the pass ran before in this epoch.
    pub round: u16,
    /// Times that this pass has sampled the same tokens before in this round, below 64.
    pub again: u8,
    /// Metropolis-Hastings steps M per token. WarpLDA: proposals that a token carries from pass to
    /// pass. Other samplers: proposals of each kind, drawn and accepted or rejected at once.
    pub mh_steps: usize,
    /// Instruction set to run on; never changes a result.
    pub isa: Isa,
}

impl Context<'_> {
    /// The key of a stream of this epoch. `pass` is below 4.
    pub fn stream(&self, pass: u32, key: BlockKey, purpose: Purpose) -> StreamKey {
        let pass = u32::from(self.round) << 8 | u32::from(self.again) << 2 | pass;
        StreamKey { seed: self.seed, epoch: self.epoch, pass, block: key.number(), purpose }
    }
}

/// Requirements of a sampler, which the driver meets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Requires {
    /// Largest K that it supports; default no limit.
    pub max_topics: u64,
    /// Order of tokens within a block; default by word. A [grid](Shape::Grid) pass samples the
    /// tokens of its own order alone, so there must be a pass for each order that occurs here.
    pub token_order: TokenOrder,
    /// Form of the document rows C_d; `None` if it needs none. Default [`Density::Auto`].
    pub document_rows: Option<Density>,
    /// Whether it reads and writes word rows C_w; default true.
    pub word_rows: bool,
    /// Whether blocks carry stale tables of words ([`GridBlock::tables`]); default false.
    pub word_tables: bool,
    /// Whether tokens carry M pending proposals, and documents an inverse index (both are needed for
    /// passes over whole documents); default false.
    pub proposals: bool,
    /// Whether its scratch holds the topics of a document range's tokens, for the memory estimate;
    /// default false.
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

/// An LDA sampler. See the [module](self#writing-a-sampler) for its contract.
pub trait Sampler<T: TopicIndex>: Sync + std::fmt::Debug {
    /// Buffers of one thread; they never affect a result.
    type Scratch: Send;

    /// The layout and counts that the sampler needs; by default [`Requires::default`].
    fn requires(&self) -> Requires {
        Requires::default()
    }

    /// The passes of an epoch, in order; 4 at most.
    fn passes(&self) -> &'static [Pass];

    /// Fresh scratch for `topics` topics.
    fn scratch(&self, topics: usize) -> Self::Scratch;

    /// Resamples the tokens of one block in pass number `pass`.
    ///
    /// # Panics
    /// If the block does not have the pass's shape.
    fn sample(
        &self,
        pass: usize,
        cx: &Context<'_>,
        scratch: &mut Self::Scratch,
        block: Block<'_, T>,
    ) -> Outcome;
}
