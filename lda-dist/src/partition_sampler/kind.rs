//! Kinds of samplers: the order in which each visits the tokens of a partition, and its sampler.

use std::fmt;

use lda_core::counts::TopicIndex;
use lda_core::sampler::{
    AliasLda, Block, Context, Exact, FPlus, FPlusDoc, GridBlock, LightLda, Outcome, Sampler,
    SparseLda, Zen, ZenDoc, ZenHybrid,
};
use lda_core::train::{SamplerKind, SamplerOptions};

/// Order in which the tokens of a partition are visited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order {
    /// All by word.
    ByWord,
    /// All by document.
    ByDocument,
    /// Each token by the longer of its two rows: by word first, then by document.
    ByDegree,
    /// The tokens of each word in the way that is faster: by word first, then by document.
    Cheapest,
}

impl Order {
    /// The order of a kind of sampler.
    pub fn of(sampler: &SamplerOptions) -> Self {
        match sampler.kind() {
            Some(SamplerKind::FPlus) => Self::Cheapest,
            Some(SamplerKind::ZenHybrid) => Self::ByDegree,
            Some(SamplerKind::Exact | SamplerKind::Light | SamplerKind::Zen) => Self::ByWord,
            _ => Self::ByDocument,
        }
    }
}

/// A sampler with its scratch memory.
pub(super) trait BlockSampler<T>: Send + Sync {
    /// Whether blocks carry tables of words.
    fn needs_tables(&self) -> bool;

    /// Samples the tokens of a block.
    fn sample(&mut self, context: &Context<'_>, block: GridBlock<'_, T>) -> Outcome;
}

impl<T> fmt::Debug for dyn BlockSampler<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BlockSampler").finish_non_exhaustive()
    }
}

struct WithScratch<S, C> {
    sampler: S,
    scratch: C,
    /// The sampler's pass that goes over the tokens.
    pass: usize,
    mh_steps: usize,
}

impl<T, S> BlockSampler<T> for WithScratch<S, S::Scratch>
where
    T: TopicIndex,
    S: Sampler<T, Scratch: Sync> + Send,
{
    fn needs_tables(&self) -> bool {
        self.sampler.requires().word_tables
    }

    fn sample(&mut self, context: &Context<'_>, block: GridBlock<'_, T>) -> Outcome {
        let context = Context { mh_steps: self.mh_steps, ..*context };
        self.sampler.sample(self.pass, &context, &mut self.scratch, Block::Grid(block))
    }
}

/// The sampler of tokens that are visited by word, for K topics.
///
/// # Panics
/// If the kind does not visit tokens by word.
pub(super) fn by_word<T: TopicIndex>(
    options: &SamplerOptions,
    topics: u32,
) -> Box<dyn BlockSampler<T>> {
    match *options {
        SamplerOptions::Exact { .. } => with_scratch(Exact, 0, options, topics),
        SamplerOptions::FPlus { .. } => with_scratch(FPlus, 0, options, topics),
        SamplerOptions::Zen { .. } => with_scratch(Zen, 0, options, topics),
        SamplerOptions::ZenHybrid { .. } => with_scratch(ZenHybrid, 0, options, topics),
        SamplerOptions::Light { proposals, .. } => {
            with_scratch(LightLda { proposals }, 0, options, topics)
        }
        _ => unreachable!("{options:?} visits no tokens by word"),
    }
}

/// The sampler of tokens that are visited by document, for K topics.
///
/// # Panics
/// If the kind does not visit tokens by document.
pub(super) fn by_document<T: TopicIndex>(
    options: &SamplerOptions,
    topics: u32,
) -> Box<dyn BlockSampler<T>> {
    match options {
        SamplerOptions::FPlus { .. } | SamplerOptions::FPlusDoc { .. } => {
            with_scratch(FPlusDoc, 0, options, topics)
        }
        SamplerOptions::Sparse { .. } => with_scratch(SparseLda, 0, options, topics),
        SamplerOptions::Alias { .. } => with_scratch(AliasLda, 0, options, topics),
        SamplerOptions::ZenDoc { .. } => with_scratch(ZenDoc, 0, options, topics),
        SamplerOptions::ZenHybrid { .. } => with_scratch(ZenHybrid, 1, options, topics),
        _ => unreachable!("{options:?} visits no tokens by document"),
    }
}

fn with_scratch<T, S>(
    sampler: S,
    pass: usize,
    options: &SamplerOptions,
    topics: u32,
) -> Box<dyn BlockSampler<T>>
where
    T: TopicIndex,
    S: Sampler<T, Scratch: Sync + 'static> + Send + 'static,
{
    let mh_steps = options.steps().unwrap_or(0) as usize;
    let scratch = sampler.scratch(topics as usize);
    Box::new(WithScratch { sampler, scratch, pass, mh_steps })
}
