//! Errors of options.

use super::SamplerKind;
use crate::prior::PriorError;
use crate::simd::Isa;

/// Error: options that are invalid, or do not fit the corpus.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OptionsError {
    /// K is 0.
    #[error("topics is 0: ask for at least 1")]
    NoTopics,
    /// K is above the limit of the sampler.
    #[error("topics is {topics}, above the limit of {limit}: ask for fewer")]
    TooManyTopics {
        /// K.
        topics: u32,
        /// Largest possible number.
        limit: u64,
    },
    /// α or β is not a valid prior.
    #[error(transparent)]
    Prior(#[from] PriorError),
    /// There is nothing to train on.
    #[error("the corpus has no tokens: check that the documents are not empty")]
    NoTokens,
    /// The corpus has more tokens than a count can hold.
    #[error("the corpus has {tokens} tokens, above the limit of {limit}: split it")]
    TooManyTokens {
        /// Number of tokens.
        tokens: u64,
        /// Largest possible number.
        limit: u64,
    },
    /// Unknown name of a sampler.
    #[error("unknown sampler {name:?}: use one of {}", SamplerKind::names())]
    UnknownSampler {
        /// The value given.
        name: String,
    },
    /// The chosen sampler does not have the option.
    #[error(
        "{option} applies to the sampler{} {}, not to {sampler}: leave it out, or choose another \
         sampler",
        if samplers.len() == 1 { "" } else { "s" }, names_of(samplers)
    )]
    NotOfSampler {
        /// Name of the option.
        option: &'static str,
        /// Name of the chosen sampler.
        sampler: &'static str,
        /// Samplers that have the option.
        samplers: Vec<SamplerKind>,
    },
    /// An option has an invalid value.
    #[error("{option} is {value}: {remedy}")]
    Value {
        /// Name of the option.
        option: &'static str,
        /// The value given.
        value: String,
        /// Valid values, or what to do.
        remedy: &'static str,
    },
    /// Pseudo-counts were made for another corpus or number of topics.
    #[error(
        "the pseudo-counts are of {words} words and {topics} topics, the run of {corpus} words and \
         {asked} topics: make them for this one"
    )]
    PseudoCounts {
        /// Number of words of the pseudo-counts.
        words: usize,
        /// Number of topics of the pseudo-counts.
        topics: usize,
        /// Number of words of the corpus.
        corpus: usize,
        /// Number of topics of the run.
        asked: u32,
    },
    /// The initial topics do not fit this corpus, or are not below K.
    #[error("the topics to begin with do not fit: {reason}")]
    Assignments {
        /// The mismatch.
        reason: String,
    },
    /// This machine lacks the instruction set.
    #[error("this machine has no {isa}: leave the option out")]
    Isa {
        /// The instruction set asked for.
        isa: Isa,
    },
    /// The options name a custom sampler, and none was given.
    #[error("the sampler is custom: pass it to Trainer::with_sampler")]
    NoCustomSampler,
    /// Training would need more memory than allowed.
    #[error(
        "training needs about {needed} bytes and the memory limit is {limit}: raise the limit, \
         ask for fewer topics, or use the warp sampler, which needs least"
    )]
    Memory {
        /// Estimate in bytes.
        needed: u64,
        /// The limit.
        limit: u64,
    },
    /// The count rows of a range would need more than 64 GiB.
    #[error(transparent)]
    Rows(#[from] crate::counts::RowsTooLarge),
    /// The thread pool could not be created.
    #[error("cannot start {threads} threads: ask for fewer")]
    Threads {
        /// Number of threads asked for.
        threads: usize,
        /// The system's error.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
}

/// The samplers by name: "alias, light and warp".
fn names_of(samplers: &[SamplerKind]) -> String {
    let names: Vec<&str> = samplers.iter().map(|sampler| sampler.name()).collect();
    match names.split_last() {
        Some((last, [])) => (*last).to_owned(),
        Some((last, first)) => format!("{} and {last}", first.join(", ")),
        None => String::new(),
    }
}
