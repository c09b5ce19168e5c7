//! What a run is asked to do, and what that resolves to.

use serde::{Deserialize, Serialize};

use crate::corpus::Corpus;
use crate::counts::TopicIndex;
use crate::layout::ranges_for;
use crate::prior::{Alpha, PriorError, check_beta};
use crate::sampler::Proposals;
use crate::simd::Isa;

/// Which sampler trains.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum SamplerKind {
    /// All K weights for every token; the reference.
    Exact,
    /// F+LDA by word: exact, O(K_d + log K).
    FPlus,
    /// F+LDA by document: exact, O(K_w + log K).
    FPlusDoc,
    /// SparseLDA, by document in three buckets: exact, O(K_d + K_w).
    Sparse,
    /// AliasLDA: the document's part fresh, the rest stale, Metropolis-Hastings; O(K_d + M).
    Alias,
    /// LightLDA: Metropolis-Hastings by document with two proposals in turn, O(M).
    Light,
    /// ZenLDA by word: one part fresh, the others from tables, with remedies; O(K_d).
    Zen,
    /// ZenLDA by document: O(K_w).
    ZenDoc,
    /// WarpLDA: Metropolis-Hastings with counts delayed by a pass, O(M).
    Warp,
    /// LDA*'s pair: F+LDA for short documents, WarpLDA for long ones.
    #[default]
    Hybrid,
}

impl SamplerKind {
    /// Every kind, in the order of this list.
    pub const ALL: [Self; 10] = [
        Self::Exact,
        Self::FPlus,
        Self::FPlusDoc,
        Self::Sparse,
        Self::Alias,
        Self::Light,
        Self::Zen,
        Self::ZenDoc,
        Self::Warp,
        Self::Hybrid,
    ];

    /// Name as it stands in options, reports and on command lines.
    pub fn name(self) -> &'static str {
        match self {
            Self::Exact => "exact",
            Self::FPlus => "f-plus",
            Self::FPlusDoc => "f-plus-doc",
            Self::Sparse => "sparse",
            Self::Alias => "alias",
            Self::Light => "light",
            Self::Zen => "zen",
            Self::ZenDoc => "zen-doc",
            Self::Warp => "warp",
            Self::Hybrid => "hybrid",
        }
    }
}

impl std::fmt::Display for SamplerKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

impl std::str::FromStr for SamplerKind {
    type Err = OptionsError;

    fn from_str(name: &str) -> Result<Self, OptionsError> {
        Self::ALL
            .into_iter()
            .find(|kind| kind.name() == name)
            .ok_or_else(|| OptionsError::UnknownSampler { name: name.to_owned() })
    }
}

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
    /// Which sampler.
    pub sampler: SamplerKind,
    /// Seed; 0 is as good as any.
    pub seed: u64,
    /// Epochs at most.
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
    /// Which proposals LightLDA makes.
    pub proposals: Proposals,
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
            sampler: SamplerKind::default(),
            seed: 0,
            epochs: None,
            seconds: None,
            level_off: None,
            evaluate_every: 10,
            threads: None,
            mh_steps: None,
            proposals: Proposals::default(),
            mh_steps_cap: 16,
            short_length: None,
            ranges: None,
            memory_limit: None,
            isa: None,
        }
    }
}

/// What a run was asked to do cannot be done.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OptionsError {
    /// K is 0.
    #[error("topics is 0: ask for at least 1")]
    NoTopics,
    /// K is beyond what the sampler stores.
    #[error("topics is {topics}, above the limit of {limit}: ask for fewer")]
    TooManyTopics {
        /// K.
        topics: u32,
        /// Largest possible.
        limit: u64,
    },
    /// α or β is no prior.
    #[error(transparent)]
    Prior(#[from] PriorError),
    /// There is nothing to train on.
    #[error("the corpus has no tokens: check that the documents are not empty")]
    NoTokens,
    /// More tokens than a count can hold.
    #[error("the corpus has {tokens} tokens, above the limit of {limit}: split it")]
    TooManyTokens {
        /// Tokens.
        tokens: u64,
        /// Largest possible.
        limit: u64,
    },
    /// A name that is no sampler's.
    #[error("unknown sampler {name:?}: use one of {}", SamplerKind::ALL.map(SamplerKind::name).join(", "))]
    UnknownSampler {
        /// What was given.
        name: String,
    },
    /// An option has a value that makes no sense.
    #[error("{option} is {value}: {remedy}")]
    Value {
        /// Name of the option.
        option: &'static str,
        /// What was given.
        value: String,
        /// What to give.
        remedy: &'static str,
    },
    /// The instruction set is not there.
    #[error("this machine has no {isa}: leave the option out")]
    Isa {
        /// What was asked for.
        isa: Isa,
    },
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
    /// Count rows would not fit their addresses.
    #[error(transparent)]
    Rows(#[from] crate::counts::RowsTooLarge),
    /// The thread pool could not be made.
    #[error("cannot start {threads} threads: {reason}")]
    Threads {
        /// How many were asked for.
        threads: usize,
        /// The system's word.
        reason: String,
    },
}

/// Options with nothing left open: same resolved options, same corpus, same bits.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Resolved {
    /// Topics K.
    pub topics: u32,
    /// Document-topic prior.
    pub alpha: Alpha,
    /// Topic-word prior.
    pub beta: f64,
    /// Sampler.
    pub sampler: SamplerKind,
    /// Seed.
    pub seed: u64,
    /// Ranges G on each axis.
    pub ranges: usize,
    /// Whether topics are stored in 16 bits.
    pub narrow: bool,
    /// Metropolis-Hastings steps M a token and pass; 0 where no sampler makes any.
    pub mh_steps: u32,
    /// Which proposals LightLDA makes.
    #[serde(default)]
    pub proposals: Proposals,
    /// Most Metropolis-Hastings steps a token and kind of pass in an epoch of the hybrid, whose
    /// number follows the acceptance rate; none elsewhere.
    pub mh_steps_cap: Option<u32>,
    /// The hybrid gives documents longer than this to WarpLDA.
    pub short_length: u32,
    /// Instruction set; named for the record, it never changes a result.
    pub isa: Isa,
    /// Version of this library.
    pub version: String,
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

    /// Checks everything against `corpus` and decides what was left open.
    ///
    /// # Errors
    /// [`OptionsError`] names the option, its value and what to do.
    pub fn resolve(&self, corpus: &Corpus) -> Result<Resolved, OptionsError> {
        if self.topics == 0 {
            return Err(OptionsError::NoTopics);
        }
        let limit = <u32 as TopicIndex>::MAX_TOPICS;
        if u64::from(self.topics) > limit {
            return Err(OptionsError::TooManyTopics { topics: self.topics, limit });
        }
        let topics = self.topics as usize;
        let alpha = self.alpha.clone().unwrap_or_else(|| Self::default_alpha(self.topics));
        alpha.check(topics)?;
        let tokens = corpus.num_tokens();
        if tokens == 0 {
            return Err(OptionsError::NoTokens);
        }
        let limit = u64::from(u32::MAX);
        if tokens > limit {
            return Err(OptionsError::TooManyTokens { tokens, limit });
        }
        check_beta(self.beta, corpus.num_words())?;
        let positive = |option, value: Option<f64>| match value {
            Some(value) if value.is_nan() || value <= 0.0 => Err(OptionsError::Value {
                option,
                value: value.to_string(),
                remedy: "give a number above 0",
            }),
            _ => Ok(()),
        };
        positive("seconds", self.seconds)?;
        positive("epochs", self.epochs.map(f64::from))?;
        positive("threads", self.threads.map(|n| n as f64))?;
        positive("ranges", self.ranges.map(|n| n as f64))?;
        positive("mh-steps", self.mh_steps.map(f64::from))?;
        positive("mh-steps-cap", Some(f64::from(self.mh_steps_cap)))?;
        if let Some(ranges) = self.ranges.filter(|&n| n > MAX_RANGES) {
            return Err(OptionsError::Value {
                option: "ranges",
                value: ranges.to_string(),
                remedy: "give at most 4096",
            });
        }
        if let Some(steps) = self.mh_steps.filter(|&n| n > MAX_MH_STEPS) {
            return Err(OptionsError::Value {
                option: "mh-steps",
                value: steps.to_string(),
                remedy: "give at most 64",
            });
        }
        let isa = match self.isa {
            Some(isa) if !isa.is_available() => return Err(OptionsError::Isa { isa }),
            Some(isa) => isa,
            None => Isa::detect(),
        };
        let mh_steps = match self.sampler {
            SamplerKind::Exact
            | SamplerKind::FPlus
            | SamplerKind::FPlusDoc
            | SamplerKind::Sparse
            | SamplerKind::Zen
            | SamplerKind::ZenDoc => 0,
            SamplerKind::Alias | SamplerKind::Light | SamplerKind::Warp | SamplerKind::Hybrid => {
                self.mh_steps.unwrap_or(1)
            }
        };
        Ok(Resolved {
            topics: self.topics,
            alpha,
            beta: self.beta,
            sampler: self.sampler,
            seed: self.seed,
            ranges: self.ranges.unwrap_or_else(|| ranges_for(tokens)),
            narrow: u64::from(self.topics) <= <u16 as TopicIndex>::MAX_TOPICS,
            mh_steps,
            proposals: self.proposals,
            mh_steps_cap: (self.sampler == SamplerKind::Hybrid)
                .then_some(self.mh_steps_cap.min(MAX_MH_STEPS)),
            short_length: self
                .short_length
                .unwrap_or_else(|| worth_dividing(corpus, Self::default_short_length(self.topics))),
            isa,
            version: env!("CARGO_PKG_VERSION").to_owned(),
        })
    }
}

/// `short_length`, unless the documents on one side of it hold less than a quarter of all tokens: a
/// second kernel gains less there than its passes cost, so they follow the others.
fn worth_dividing(corpus: &Corpus, short_length: u32) -> u32 {
    let lengths = (0..corpus.num_documents()).map(|d| corpus.doc_length(d));
    let short: u64 = lengths.filter(|&n| n <= u64::from(short_length)).sum();
    let all = corpus.num_tokens();
    if short < all / 4 {
        0
    } else if all - short < all / 4 {
        u32::MAX
    } else {
        short_length
    }
}

/// Finest grid: 4096 × 4096 blocks.
const MAX_RANGES: usize = 4096;
/// Most proposals a token can hold.
const MAX_MH_STEPS: u32 = 64;

#[cfg(test)]
mod tests {
    use super::*;

    /// Documents of the given lengths.
    fn short_length(lengths: &[u64], topics: u32) -> u32 {
        let documents = lengths.iter().map(|&n| (0..n as u32).map(|i| i % 7));
        let corpus = Corpus::from_tokens(documents).unwrap();
        let options = Options { topics, ..Options::default() };
        options.resolve(&corpus).unwrap().short_length
    }

    #[test]
    fn the_hybrid_divides_where_both_sides_have_a_quarter() {
        assert_eq!(short_length(&[2000, 3000], 317), 2000);
        assert_eq!(short_length(&[2000, 6000], 1000), 2000);
        assert_eq!(short_length(&[1999, 6001], 1000), 0);
        assert_eq!(short_length(&[2000, 2000, 2000, 2001], 1000), 2000);
        assert_eq!(short_length(&[2000, 2000, 2000, 2000, 2001], 1000), u32::MAX);
        // Few topics: all to WarpLDA.
        assert_eq!(short_length(&[10, 3000], 316), 0);
    }
}
