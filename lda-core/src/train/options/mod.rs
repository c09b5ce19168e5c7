//! The options of a run, and the values that they resolve to.
//!
//! A new option touches three files: here its field, default and setter; in `resolve.rs` its field of
//! [`Resolved`] and its check; in `pairs.rs` a line to write and a line to read it. An option of one
//! sampler is a field of its variant in `sampler_options.rs` instead of the first. Command lines
//! (`train/args` of the program `lda`, `tuning.rs` of the lab) name the options that they offer.

mod auto;
mod error;
mod kind;
mod learn;
mod pairs;
mod resolve;
mod sampler_options;

use serde::{Deserialize, Serialize};

use crate::prior::Alpha;
use crate::simd::Isa;
use crate::train::Start;

pub use auto::Choice;
pub use error::OptionsError;
pub use kind::SamplerKind;
pub use learn::{Learn, LearnAlpha, check_prior_updates};
pub use resolve::Resolved;
pub use sampler_options::SamplerOptions;

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

impl LevelOff {
    /// Returns whether the log joints of all evaluations so far, oldest first, have levelled off: no with
    /// fewer than 2 · [`window`](Self::window) of them; a log joint that is NaN never has.
    ///
    /// ```
    /// use lda_core::train::LevelOff;
    ///
    /// let rule = LevelOff { window: 2, tolerance: 0.01 };
    /// assert!(!rule.is_reached(&[-900.0, -800.0, -700.0, -690.0]));
    /// assert!(rule.is_reached(&[-900.0, -700.0, -699.0, -698.0, -697.0]));
    /// ```
    pub fn is_reached(self, evaluations: &[f64]) -> bool {
        let window = self.window.max(1);
        let Some(start) = evaluations.len().checked_sub(2 * window) else { return false };
        let (before, last) = evaluations[start..].split_at(window);
        let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
        mean(last) - mean(before) < self.tolerance * mean(before).abs()
    }
}

/// The options of a run. Every option has a default; [`Resolved`] has the values that a run uses.
///
/// ```
/// use lda_core::train::{SamplerKind, TrainOptions};
///
/// let options = TrainOptions::new(200).sampler(SamplerKind::FPlus).alpha(0.1).epochs(100).seed(7);
/// assert_ne!(options, TrainOptions::new(200));
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "kebab-case")]
#[must_use = "setters return the changed options"]
pub struct TrainOptions {
    pub(super) topics: u32,
    pub(super) alpha: Option<Alpha>,
    pub(super) beta: f64,
    pub(super) sampler: SamplerOptions,
    pub(super) warm_up: Option<u32>,
    pub(super) seed: u64,
    pub(super) epochs: Option<u32>,
    pub(super) seconds: Option<f64>,
    pub(super) level_off: Option<LevelOff>,
    pub(super) evaluate_every: u32,
    pub(super) threads: Option<usize>,
    pub(super) start: Start,
    pub(super) start_degree: f64,
    pub(super) alpha_by_size: Option<f64>,
    pub(super) learn: Option<Learn>,
    pub(super) ranges: Option<usize>,
    pub(super) memory_limit: Option<u64>,
    pub(super) isa: Option<Isa>,
}

impl Default for TrainOptions {
    fn default() -> Self {
        Self {
            topics: 100,
            alpha: None,
            beta: 0.01,
            sampler: SamplerOptions::default(),
            warm_up: None,
            seed: 0,
            epochs: None,
            seconds: None,
            level_off: None,
            evaluate_every: 10,
            threads: None,
            start: Start::default(),
            start_degree: 0.1,
            alpha_by_size: None,
            learn: None,
            ranges: None,
            memory_limit: None,
            isa: None,
        }
    }
}

/// Setters. Those that take `impl Into<Option<_>>` take a value, or `None` for the default.
impl TrainOptions {
    /// Options with `topics` topics and defaults for the rest.
    pub fn new(topics: u32) -> Self {
        Self { topics, ..Self::default() }
    }

    /// The value set for the number of topics K.
    pub fn get_topics(&self) -> u32 {
        self.topics
    }

    /// The value set for the random seed.
    pub fn get_seed(&self) -> u64 {
        self.seed
    }

    /// Limit of epochs.
    pub fn get_epochs(&self) -> Option<u32> {
        self.epochs
    }

    /// Limit of seconds of sampling.
    pub fn get_seconds(&self) -> Option<f64> {
        self.seconds
    }

    /// The sampler, with its own options.
    pub fn get_sampler(&self) -> SamplerOptions {
        self.sampler
    }

    /// Epochs between evaluations.
    pub fn get_evaluate_every(&self) -> u32 {
        self.evaluate_every
    }

    /// These options with the limits of others: epochs, seconds, level-off and evaluations.
    pub(super) fn limits_of(self, other: &Self) -> Self {
        let Self { epochs, seconds, level_off, evaluate_every, .. } = *other;
        Self { epochs, seconds, level_off, evaluate_every, ..self }
    }

    /// Topics K; default 100.
    pub fn topics(mut self, topics: u32) -> Self {
        self.topics = topics;
        self
    }

    /// Document-topic prior α, one value for every topic or one value per topic; default
    /// [by the mean length of documents](Self::default_alpha).
    pub fn alpha(mut self, alpha: impl Into<Alpha>) -> Self {
        self.alpha = Some(alpha.into());
        self
    }

    /// Topic-word prior β; default 0.01.
    pub fn beta(mut self, beta: f64) -> Self {
        self.beta = beta;
        self
    }

    /// The sampler, by its [kind](SamplerKind) or with its [options](SamplerOptions); default
    /// [by K and the lengths of documents](Choice::auto).
    pub fn sampler(mut self, sampler: impl Into<SamplerOptions>) -> Self {
        self.sampler = sampler.into();
        self
    }

    /// Epochs of WarpLDA before the first epoch of the sampler. They are several times as short as
    /// epochs of an exact sampler, and approach the posterior as well as those while it is far
    /// away. The sampler then continues from their topics and converges to its own law. Default: 0
    /// if a sampler is set, otherwise [by K and the lengths of documents](Choice::auto), but no
    /// more than half of [`epochs`](Self::epochs), and no longer than half of
    /// [`seconds`](Self::seconds); 0 with more than four times as many pseudo-counts as tokens.
    pub fn warm_up(mut self, epochs: impl Into<Option<u32>>) -> Self {
        self.warm_up = epochs.into();
        self
    }

    /// Random seed; default 0.
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// Largest number of epochs, warm-up included; default unlimited.
    pub fn epochs(mut self, epochs: impl Into<Option<u32>>) -> Self {
        self.epochs = epochs.into();
        self
    }

    /// Largest time of sampling in seconds, warm-up included, checked after each epoch; default
    /// unlimited.
    pub fn seconds(mut self, seconds: impl Into<Option<f64>>) -> Self {
        self.seconds = seconds.into();
        self
    }

    /// Stops when the likelihood has levelled off; default on, unless `epochs` or `seconds` is set.
    pub fn level_off(mut self, rule: impl Into<Option<LevelOff>>) -> Self {
        self.level_off = rule.into();
        self
    }

    /// Epochs between two evaluations of the likelihood; the last epoch is evaluated too. 0: never.
    /// Default 10.
    pub fn evaluate_every(mut self, epochs: u32) -> Self {
        self.evaluate_every = epochs;
        self
    }

    /// Threads of a pool that the run creates; default `None`, which runs in the caller's pool
    /// (`pool.install(|| …)`), or in rayon's global one. Never changes a result.
    pub fn threads(mut self, threads: impl Into<Option<usize>>) -> Self {
        self.threads = threads.into();
        self
    }

    /// Topics that tokens start with; default [`Start::Random`].
    pub fn start(mut self, start: Start) -> Self {
        self.start = start;
        self
    }

    /// Share of all topics that a word or a document starts with, if the start is sparse; above 0,
    /// at most 1; default 0.1.
    pub fn start_degree(mut self, share: f64) -> Self {
        self.start_degree = share;
        self
    }

    /// α' of a document-topic prior that follows topic sizes: each epoch samples with
    /// α_k = ᾱ (C_k + α'/K) / (T + α'), with the C_k at its start (ZenLDA eq. 3). α' is in tokens,
    /// from 1e-6 to 1e15; the larger, the more alike the α_k. [`alpha`](Self::alpha) sets their sum ᾱ.
    /// Default off.
    pub fn alpha_by_size(mut self, tokens: impl Into<Option<f64>>) -> Self {
        self.alpha_by_size = tokens.into();
        self
    }

    /// Priors that are learnt during the run; default none.
    pub fn learn(mut self, learn: impl Into<Option<Learn>>) -> Self {
        self.learn = learn.into();
        self
    }

    /// Ranges G on each axis of the grid, 1 to 4096; default from the number of tokens. Changes
    /// results as a seed does.
    pub fn ranges(mut self, ranges: impl Into<Option<usize>>) -> Self {
        self.ranges = ranges.into();
        self
    }

    /// Refuses a run that needs more bytes than this; default unlimited.
    pub fn memory_limit(mut self, bytes: impl Into<Option<u64>>) -> Self {
        self.memory_limit = bytes.into();
        self
    }

    /// Instruction set; default the best one of this machine. Never changes a result.
    pub fn isa(mut self, isa: impl Into<Option<Isa>>) -> Self {
        self.isa = isa.into();
        self
    }
}

/// Default values that depend on K and the documents.
impl TrainOptions {
    /// α if none is set: its sum ᾱ is an eighth of the [mean length of
    /// documents](crate::Corpus::mean_length), at least 1 and at most 50; divided by K for every topic.
    ///
    /// The prior then weighs an eighth of a document. With 50/K (Griffiths & Steyvers 2004, for abstracts)
    /// it outweighs short documents: at K = 50 the largest share of a topic of four words is 9 %, here 80 %
    /// after training on texts as short. Held-out perplexity (`lda train --topics 100 --epochs 200 --seed 1
    /// --held-out 0.1 --alpha ᾱ/100`), by ᾱ:
    ///
    /// | corpus, mean length | 50 | default | 5 | 1 |
    /// |---|---|---|---|---|
    /// | stackoverflow, 4.4 | 764 | 576 | 573 | 576 |
    /// | googlenews, 5.2 | 683 | 161 | 238 | 161 |
    /// | tweet, 5.6 | 317 | 87 | 121 | 87 |
    /// | snippets, 14 | 939 | 506 | 513 | 519 |
    /// | bbc, 119 | 911 | 847 | 834 | 925 |
    /// | kos, 136 | 1,689 | 1,620 | 1,657 | 1,872 |
    /// | ap, 194 | 2,561 | 2,452 | 2,493 | 2,748 |
    ///
    /// ```
    /// use lda_core::TrainOptions;
    /// use lda_core::prior::Alpha;
    ///
    /// assert_eq!(TrainOptions::default_alpha(50, 20.0), Alpha::Symmetric(0.05));
    /// assert_eq!(TrainOptions::default_alpha(50, 1_000.0), Alpha::Symmetric(1.0));
    /// ```
    pub fn default_alpha(topics: u32, mean_length: f64) -> Alpha {
        Alpha::Symmetric((mean_length / 8.0).clamp(1.0, 50.0) / f64::from(topics))
    }

    /// Length up to which the hybrid leaves documents to F+LDA unless set: 0 up to 316 topics,
    /// 2,000 above.
    ///
    /// With few topics, an epoch of WarpLDA is about six times as fast, but three to six times as
    /// many epochs are needed (K = 100, the corpora below). With many topics, F+LDA is first at
    /// every measured length but the longest, at which a token's document has hundreds of topics.
    /// These values are fixed, so that a run is the same everywhere; `lab calibrate` of the
    /// project's benchmarks prints a table for another machine.
    ///
    /// CPU seconds to 99 % of the best log joint known, F+LDA / WarpLDA, α = 50/K, β = 0.01, on
    /// corpora of mean length 19 (reddit), 40 (acl), 109 (news20), 136 (kos), 1,341 (nips) and
    /// 3,131 (scotus):
    ///
    /// | K | reddit | acl | news20 | kos | nips | scotus |
    /// |---|---|---|---|---|---|---|
    /// | 100 | 90 / 44 | 23 / 13 | 8.6 / 7.6 | 2.2 / 2.7 | 12.9 / 14.1 | 123 / 99 |
    /// | 1,000 | 79 / 80 | 26 / > 100 | 18 / 24 | 3.8 / > 19 | 26 / 30 | 194 / 106 |
    /// | 10,000 | 130 / > 72 | 42 / > 100 | 24 / 56 | 6.5 / > 29 | 32 / 40 | 346 / 228 |
    ///
    /// So by default most corpora go to one sampler as a whole, which the measurements support: no
    /// corpus was found that gains much from being divided. Lengths matter less than the number of
    /// tokens per topic, which is the same for both kinds of documents: the sampler that is ahead
    /// on the short documents is also ahead on the long ones, or close behind. Log likelihood per
    /// token of documents of up to 600 tokens / of longer ones after 60 CPU seconds (`two-lengths`
    /// of the benchmarks' presets):
    ///
    /// | corpus | K | F+LDA | WarpLDA | divided at 600 |
    /// |---|---|---|---|---|
    /// | acl and nips, joined | 1,000 | −8.378 / −8.093 | −8.424 / −8.088 | −8.384 / −8.093 |
    /// | | 10,000 | −9.281 / −7.770 | −9.585 / −7.796 | −9.421 / −7.829 |
    /// | half of baikelike | 1,000 | −10.781 / −9.104 | −10.478 / −8.408 | −10.562 / −8.865 |
    /// | | 10,000 | −10.492 / −8.583 | −10.321 / −8.440 | −10.273 / −8.686 |
    ///
    /// WarpLDA's bias shows in the last tenths of a percent: on kos with K = 100 it was at −8.320
    /// per token after 6,000 epochs, F+LDA at −8.286 after 800. Use F+LDA if that matters.
    pub fn default_short_length(topics: u32) -> u32 {
        if topics <= 316 { 0 } else { 2000 }
    }
}
