//! What a run is asked to do, and what that resolves to.

mod auto;
mod error;
mod kind;
mod learn;
mod pairs;
mod resolve;

use serde::{Deserialize, Serialize};

use crate::prior::Alpha;
use crate::sampler::Proposals;
use crate::simd::Isa;
use crate::train::Start;

pub use auto::Choice;
pub use error::OptionsError;
pub use kind::SamplerKind;
pub use learn::{Learn, LearnAlpha};
pub use resolve::Resolved;

/// When the likelihood counts as levelled off: the mean of the last `window` evaluations is less
/// than `tolerance` (relative) above the mean of the `window` before.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct LevelOff {
    /// Evaluations averaged, at least 1.
    pub window: usize,
    /// Relative gain that still counts as progress.
    pub tolerance: f64,
}

impl Default for LevelOff {
    fn default() -> Self {
        Self { window: 3, tolerance: 5e-4 }
    }
}

/// What a run is asked to do. `Default` is a sensible start; `None` means "decide for me", and what
/// was decided stands in [`Resolved`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "kebab-case")]
pub struct Options {
    /// Topics K.
    pub topics: u32,
    /// Document-topic prior; 50/K a topic unless given.
    pub alpha: Option<Alpha>,
    /// Topic-word prior β.
    pub beta: f64,
    /// Which sampler; unless given, [one](Choice::auto) by K and the lengths of the documents.
    pub sampler: Option<SamplerKind>,
    /// Epochs of WarpLDA before the first of the sampler. Its epochs are several times as short, and
    /// far from the posterior they lead there as well as any; the sampler then goes on from their
    /// topics, and converges to what it always converges to. Unless given: none where a sampler is,
    /// else [by K and the lengths](Choice::auto), but no more than half of `epochs`.
    pub warm_up: Option<u32>,
    /// Seed; 0 is as good as any.
    pub seed: u64,
    /// Epochs at most, those of a warm-up among them.
    pub epochs: Option<u32>,
    /// Seconds of sampling at most, checked after each epoch.
    pub seconds: Option<f64>,
    /// Stop when the likelihood has levelled off; on unless `epochs` or `seconds` is given.
    pub level_off: Option<LevelOff>,
    /// Evaluate the likelihood every so many epochs, and after the last; 0 is never.
    pub evaluate_every: u32,
    /// Threads of a pool of its own; `None` runs in the caller's pool.
    pub threads: Option<usize>,
    /// Metropolis-Hastings steps M a token and pass; 1 unless given. With WarpLDA each is a proposal
    /// that the token carries, and more of them cost memory and mix less a second than more passes:
    /// on 26 M tokens in long documents and K = 1,000, M = 2 took 1.3 times as long to a likelihood as
    /// M = 1.
    pub mh_steps: Option<u32>,
    /// Which proposals LightLDA makes; both kinds in turn unless given.
    pub proposals: Option<Proposals>,
    /// Which topics tokens start with.
    pub start: Start,
    /// Share of all topics that a word or a document starts with, where the start is sparse.
    pub start_degree: f64,
    /// Topic sizes in the document-topic prior: unless `None`, each epoch samples with
    /// α_k = ᾱ (C_k + α'/K) / (T + α'), the C_k as of its start (ZenLDA eq. 3). This is α', in tokens:
    /// the larger, the more alike the α_k. `alpha` says what they sum up to.
    pub alpha_by_size: Option<f64>,
    /// Priors that are learnt as the run goes on; none unless given.
    pub learn: Option<Learn>,
    /// From this epoch on, a token that keeps its topic is sampled less and less often (ZenLDA's
    /// converged-token exclusion): with probability min{1, 2^(i−t)}, t being how often in a row it was
    /// sampled and kept its topic, i how many epochs it has been left out since. **Biased**: which
    /// tokens move depends on whether they moved before. Costs one byte a token.
    pub exclude_converged_from: Option<u32>,
    /// The hybrid repeats WarpLDA's passes until a token has had as many steps as one acceptance
    /// takes on average (LDA* heuristic 2), but no more than this.
    pub mh_steps_cap: u32,
    /// The hybrid gives documents longer than this to WarpLDA (LDA* heuristic 1). Unless given, it
    /// goes by K, see [`default_short_length`](Self::default_short_length); and where either side
    /// would have less than a quarter of the tokens, all go to the other.
    pub short_length: Option<u32>,
    /// Ranges G on each axis of the grid; from the number of tokens unless given.
    pub ranges: Option<usize>,
    /// Refuse a run that needs more bytes than this.
    pub memory_limit: Option<u64>,
    /// Instruction set; the best this machine has unless given. Never changes a result.
    pub isa: Option<Isa>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            topics: 100,
            alpha: None,
            beta: 0.01,
            sampler: None,
            warm_up: None,
            seed: 0,
            epochs: None,
            seconds: None,
            level_off: None,
            evaluate_every: 10,
            threads: None,
            mh_steps: None,
            proposals: None,
            start: Start::default(),
            start_degree: 0.1,
            alpha_by_size: None,
            learn: None,
            exclude_converged_from: None,
            mh_steps_cap: 16,
            short_length: None,
            ranges: None,
            memory_limit: None,
            isa: None,
        }
    }
}

impl Options {
    /// α where none is given: 50/K.
    pub fn default_alpha(topics: u32) -> Alpha {
        Alpha::Symmetric(50.0 / f64::from(topics))
    }

    /// Length up to which the hybrid leaves documents to F+LDA where none is given: 0 up to 316
    /// topics, 2,000 above.
    ///
    /// Few topics: an epoch of WarpLDA is about six times as fast, and it needs three to six times as
    /// many (K = 100, the corpora below). Many topics: F+LDA is first at every length measured but
    /// the longest, where a token's document has hundreds of topics. The table is fixed, so that a
    /// run is the same everywhere; `lab calibrate` of the project's benchmarks prints one for
    /// another machine.
    ///
    /// CPU seconds to 99 % of the best log joint known, F+LDA / WarpLDA, α = 50/K, β = 0.01, on
    /// corpora of mean length 19 (reddit), 40 (acl), 109 (news20), 136 (kos), 1,341 (nips) and 3,131
    /// (scotus):
    ///
    /// | K | reddit | acl | news20 | kos | nips | scotus |
    /// |---|---|---|---|---|---|---|
    /// | 100 | 90 / 44 | 23 / 13 | 8.6 / 7.6 | 2.2 / 2.7 | 12.9 / 14.1 | 123 / 99 |
    /// | 1,000 | 79 / 80 | 26 / > 100 | 18 / 24 | 3.8 / > 19 | 26 / 30 | 194 / 106 |
    /// | 10,000 | 130 / > 72 | 42 / > 100 | 24 / 56 | 6.5 / > 29 | 32 / 40 | 346 / 228 |
    ///
    /// So the table mostly gives a corpus to one kernel, and that is right: no corpus was found that
    /// gains much from being divided. Lengths matter less than tokens a topic do, and those both
    /// kinds of documents share: the kernel that is ahead on the short documents is ahead on the
    /// long ones too, or close behind. Log likelihood a token of documents of up to 600 tokens /
    /// of longer ones after 60 CPU seconds (`two-lengths` of the benchmarks' presets):
    ///
    /// | corpus | K | F+LDA | WarpLDA | divided at 600 |
    /// |---|---|---|---|---|
    /// | acl and nips, joined | 1,000 | −8.378 / −8.093 | −8.424 / −8.088 | −8.384 / −8.093 |
    /// | | 10,000 | −9.281 / −7.770 | −9.585 / −7.796 | −9.421 / −7.829 |
    /// | half of baikelike | 1,000 | −10.781 / −9.104 | −10.478 / −8.408 | −10.562 / −8.865 |
    /// | | 10,000 | −10.492 / −8.583 | −10.321 / −8.440 | −10.273 / −8.686 |
    ///
    /// WarpLDA's bias shows in the last tenths of a percent: on kos and K = 100 it was at −8.320 a
    /// token after 6,000 epochs, F+LDA at −8.286 after 800. Ask for F+LDA where that counts.
    pub fn default_short_length(topics: u32) -> u32 {
        if topics <= 316 { 0 } else { 2000 }
    }
}
