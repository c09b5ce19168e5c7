//! The samplers of a run: [`samplers`] makes them from the resolved options.
//!
//! An [`AnySampler`] is a sampler with its scratch behind one type; it is called once per pass.
//!
//! A new sampler touches five files beside its tests: its own under `sampler`, `sampler/mod.rs`
//! (module, export, row of the table), `options/kind.rs` and `options/sampler_options.rs` (a variant
//! each), and [`samplers`] here. The compiler does not ask for the entry in `SamplerKind::ALL`, nor
//! for the arms of `steps_mut` and `exclude_from_mut` if the sampler has these options. A sampler
//! outside the crate needs none of them
//! ([`Trainer::with_sampler`](crate::train::Trainer::with_sampler)).

use std::sync::Arc;

use crate::corpus::Corpus;
use crate::counts::TopicIndex;
use crate::sampler::{
    AliasLda, Exact, FPlus, FPlusDoc, LightLda, Pass, Requires, Sampler, SparseLda, Warp, Zen,
    ZenDoc, ZenHybrid,
};
use crate::train::options::{Resolved, SamplerKind};
use crate::train::pass::{PassParams, PassReport, Scratches, run_pass};
use crate::train::state::State;

/// A sampler at one topic width.
pub(crate) trait AnySampler<T: TopicIndex>: Send + Sync + std::fmt::Debug {
    fn requires(&self) -> Requires;
    fn passes(&self) -> &'static [Pass];
    /// Runs one pass over one token set.
    fn run(&self, params: &PassParams<'_>, state: &mut State<T>, wave: &mut u64) -> PassReport;
}

/// A topic width that samplers are compiled for.
pub(crate) trait Width: TopicIndex {
    /// The caller's sampler at this width.
    fn custom(sampler: &dyn CustomSampler) -> Box<dyn AnySampler<Self>>;
}

impl Width for u16 {
    fn custom(sampler: &dyn CustomSampler) -> Box<dyn AnySampler<u16>> {
        sampler.narrow()
    }
}

impl Width for u32 {
    fn custom(sampler: &dyn CustomSampler) -> Box<dyn AnySampler<u32>> {
        sampler.wide()
    }
}

/// A sampler of the caller ([`SamplerKind::Custom`]), at either topic width.
pub(crate) trait CustomSampler: Send + Sync + std::fmt::Debug {
    fn narrow(&self) -> Box<dyn AnySampler<u16>>;
    fn wide(&self) -> Box<dyn AnySampler<u32>>;
}

impl<S> CustomSampler for Arc<S>
where
    S: Sampler<u16, Scratch: std::fmt::Debug + 'static>
        + Sampler<u32, Scratch: std::fmt::Debug + 'static>
        + Send
        + 'static,
{
    fn narrow(&self) -> Box<dyn AnySampler<u16>> {
        with_scratch(Self::clone(self))
    }

    fn wide(&self) -> Box<dyn AnySampler<u32>> {
        with_scratch(Self::clone(self))
    }
}

/// Options that determine the samplers of a run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SamplerSetup<'a> {
    pub options: &'a Resolved,
    /// The sampler of [`SamplerKind::Custom`].
    pub custom: Option<&'a dyn CustomSampler>,
}

/// A sampler and its scratch.
#[derive(Debug)]
struct WithScratch<S, C> {
    sampler: S,
    scratches: Scratches<C>,
}

impl<T, S> AnySampler<T> for WithScratch<S, S::Scratch>
where
    T: TopicIndex,
    S: Sampler<T> + Send,
    S::Scratch: std::fmt::Debug,
{
    fn requires(&self) -> Requires {
        self.sampler.requires()
    }

    fn passes(&self) -> &'static [Pass] {
        self.sampler.passes()
    }

    fn run(&self, params: &PassParams<'_>, state: &mut State<T>, wave: &mut u64) -> PassReport {
        run_pass(&self.sampler, &self.scratches, params, state, wave)
    }
}

fn with_scratch<T, S>(sampler: S) -> Box<dyn AnySampler<T>>
where
    T: TopicIndex,
    S: Sampler<T> + Send + 'static,
    S::Scratch: std::fmt::Debug + 'static,
{
    Box::new(WithScratch { sampler, scratches: Scratches::default() })
}

/// Token sets of the hybrid.
pub(crate) const SHORT: usize = 0;
pub(crate) const LONG: usize = 1;

/// The samplers of a run, one per token set.
pub(crate) fn samplers<T: Width>(setup: SamplerSetup<'_>) -> Vec<Box<dyn AnySampler<T>>> {
    let options = setup.options;
    let warp = || with_scratch(Warp { count_own: false });
    match options.sampler {
        SamplerKind::Exact => vec![with_scratch(Exact)],
        SamplerKind::FPlus => vec![with_scratch(FPlus)],
        SamplerKind::FPlusDoc => vec![with_scratch(FPlusDoc)],
        SamplerKind::Sparse => vec![with_scratch(SparseLda)],
        SamplerKind::Alias => vec![with_scratch(AliasLda)],
        SamplerKind::Light => vec![with_scratch(LightLda { proposals: options.proposals })],
        SamplerKind::Zen => vec![with_scratch(Zen)],
        SamplerKind::ZenDoc => vec![with_scratch(ZenDoc)],
        SamplerKind::ZenHybrid => vec![with_scratch(ZenHybrid)],
        SamplerKind::Warp => vec![warp()],
        SamplerKind::Hybrid => vec![with_scratch(FPlus), warp()],
        SamplerKind::Custom => setup.custom.map(T::custom).into_iter().collect(),
    }
}

/// Documents of each token set, and what its sampler requires.
pub(crate) fn token_sets<T: Width>(
    corpus: &Corpus,
    setup: SamplerSetup<'_>,
) -> Vec<(Vec<u32>, Requires)> {
    let options = setup.options;
    let documents = 0..corpus.num_documents() as u32;
    let requires = samplers::<T>(setup).into_iter().map(|sampler| sampler.requires());
    let documents = match options.sampler {
        SamplerKind::Hybrid => {
            let (short, long) = documents
                .partition(|&d| corpus.doc_length(d as usize) <= u64::from(options.short_length));
            vec![short, long]
        }
        _ => vec![documents.collect()],
    };
    let mut sets: Vec<(Vec<u32>, Requires)> = documents.into_iter().zip(requires).collect();
    for (documents, requires) in &mut sets {
        // A sampler without tokens reads no C_w.
        requires.word_rows &= !documents.is_empty();
    }
    sets
}
