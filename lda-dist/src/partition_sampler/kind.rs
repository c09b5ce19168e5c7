//! Kinds of samplers: the order in which each visits the tokens of a partition, and its passes.

use lda_core::counts::TopicIndex;
use lda_core::sampler::{
    AliasLda, Block, Context, Exact, FPlus, FPlusDoc, GridBlock, LightLda, Outcome, Sampler,
    SparseLda, Zen, ZenDoc, ZenHybrid,
};
use lda_core::train::SamplerOptions;

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

/// A pass of a sampler over tokens in one order, with its scratch memory.
pub(super) trait Pass<T>: Send + Sync {
    /// Whether blocks carry tables of words.
    fn needs_tables(&self) -> bool;

    /// Samples the tokens of a block.
    fn sample(&mut self, context: &Context<'_>, block: GridBlock<'_, T>) -> Outcome;
}

/// Order and passes of a sampler.
pub(super) struct Kind<T> {
    pub order: Order,
    /// True if draws by word depend on the order of the words' lists. F+LDA and the exact sampler copy a
    /// word's list into an array first.
    pub depends_on_order: bool,
    by_word: Option<Box<dyn Pass<T>>>,
    by_document: Option<Box<dyn Pass<T>>>,
}

impl<T: TopicIndex> Kind<T> {
    /// The kind of a sampler.
    ///
    /// # Panics
    /// If it is not one of [`SAMPLERS`](crate::config::SAMPLERS).
    pub fn of(options: &SamplerOptions) -> Self {
        let steps = options.steps().unwrap_or(0) as usize;
        let (order, by_word, by_document) = match *options {
            SamplerOptions::Exact { .. } => (Order::ByWord, pass(Exact, 0, steps), None),
            SamplerOptions::FPlus { .. } => {
                (Order::Cheapest, pass(FPlus, 0, steps), pass(FPlusDoc, 0, steps))
            }
            SamplerOptions::FPlusDoc { .. } => (Order::ByDocument, None, pass(FPlusDoc, 0, steps)),
            SamplerOptions::Sparse { .. } => (Order::ByDocument, None, pass(SparseLda, 0, steps)),
            SamplerOptions::Alias { .. } => (Order::ByDocument, None, pass(AliasLda, 0, steps)),
            SamplerOptions::Light { proposals, .. } => {
                (Order::ByWord, pass(LightLda { proposals }, 0, steps), None)
            }
            SamplerOptions::Zen { .. } => (Order::ByWord, pass(Zen, 0, steps), None),
            SamplerOptions::ZenDoc { .. } => (Order::ByDocument, None, pass(ZenDoc, 0, steps)),
            SamplerOptions::ZenHybrid { .. } => {
                (Order::ByDegree, pass(ZenHybrid, 0, steps), pass(ZenHybrid, 1, steps))
            }
            _ => panic!("{options:?} is not a sampler of partitions"),
        };
        let in_arrays =
            matches!(options, SamplerOptions::Exact { .. } | SamplerOptions::FPlus { .. });
        Self { order, depends_on_order: !in_arrays, by_word, by_document }
    }

    /// The pass over tokens that are visited by word.
    pub fn by_word(&mut self) -> &mut dyn Pass<T> {
        self.by_word.as_deref_mut().expect("this order has no visits by word")
    }

    /// The pass over tokens that are visited by document.
    pub fn by_document(&mut self) -> &mut dyn Pass<T> {
        self.by_document.as_deref_mut().expect("this order has no visits by document")
    }
}

struct WithScratch<S, C> {
    sampler: S,
    /// Created on first use.
    scratch: Option<C>,
    /// Number of the sampler's pass.
    pass: usize,
    mh_steps: usize,
}

impl<T, S> Pass<T> for WithScratch<S, S::Scratch>
where
    T: TopicIndex,
    S: Sampler<T, Scratch: Sync> + Send,
{
    fn needs_tables(&self) -> bool {
        self.sampler.requires().word_tables
    }

    fn sample(&mut self, context: &Context<'_>, block: GridBlock<'_, T>) -> Outcome {
        let Self { sampler, scratch, pass, mh_steps } = self;
        let scratch = scratch.get_or_insert_with(|| sampler.scratch(block.words.topics()));
        let context = Context { mh_steps: *mh_steps, ..*context };
        sampler.sample(*pass, &context, scratch, Block::Grid(block))
    }
}

fn pass<T, S>(sampler: S, pass: usize, mh_steps: usize) -> Option<Box<dyn Pass<T>>>
where
    T: TopicIndex,
    S: Sampler<T, Scratch: Sync + 'static> + Send + 'static,
{
    Some(Box::new(WithScratch { sampler, scratch: None, pass, mh_steps }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::SAMPLERS;

    #[test]
    fn every_sampler_has_the_passes_of_its_order() {
        for sampler in SAMPLERS {
            let kind = Kind::<u16>::of(&sampler.into());
            let (by_word, by_document) = match kind.order {
                Order::ByWord => (true, false),
                Order::ByDocument => (false, true),
                Order::ByDegree | Order::Cheapest => (true, true),
            };
            assert_eq!(kind.by_word.is_some(), by_word, "{sampler:?}");
            assert_eq!(kind.by_document.is_some(), by_document, "{sampler:?}");
        }
    }
}
