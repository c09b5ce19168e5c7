//! Checks of options, and decisions on what they leave open.

use serde::{Deserialize, Serialize};

use super::{Choice, Learn, LearnAlpha, Options, OptionsError, SamplerKind};
use crate::corpus::Corpus;
use crate::counts::TopicIndex;
use crate::layout::ranges_for;
use crate::prior::{Alpha, check_beta};
use crate::sampler::Proposals;
use crate::simd::Isa;
use crate::train::PseudoCounts;
use crate::train::Start;

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
    /// Epochs of WarpLDA before its first.
    #[serde(default)]
    pub warm_up: u32,
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
    /// Which topics tokens start with.
    #[serde(default)]
    pub start: Start,
    /// Share of all topics that a word or a document starts with, where the start is sparse.
    #[serde(default)]
    pub start_degree: f64,
    /// α' of an α that follows the topics' sizes.
    #[serde(default)]
    pub alpha_by_size: Option<f64>,
    /// Priors that are learnt; `alpha` and `beta` are what they start from.
    #[serde(default)]
    pub learn: Option<Learn>,
    /// Epoch from which on converged tokens are left out.
    #[serde(default)]
    pub exclude_converged_from: Option<u32>,
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

impl Resolved {
    /// Whether pseudo-counts fit.
    pub(crate) fn check_pseudo(
        &self,
        corpus: &Corpus,
        pseudo: &PseudoCounts,
    ) -> Result<(), OptionsError> {
        let (words, topics) = (pseudo.num_words(), pseudo.num_topics());
        if (words, topics) != (corpus.num_words(), self.topics as usize) {
            let (corpus, asked) = (corpus.num_words(), self.topics);
            return Err(OptionsError::PseudoCounts { words, topics, corpus, asked });
        }
        let (tokens, limit) = (corpus.num_tokens() + pseudo.sum(), u64::from(u32::MAX));
        if tokens > limit {
            return Err(OptionsError::TooManyTokens { tokens, limit });
        }
        if self.learn.is_some_and(|learn| learn.beta) {
            return Err(OptionsError::Value {
                option: "learn-beta",
                value: "set beside pseudo-counts".to_owned(),
                remedy: "leave one of them out",
            });
        }
        Ok(())
    }
}

impl Options {
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
        positive("start-degree", Some(self.start_degree))?;
        positive("exclude-converged-from", self.exclude_converged_from.map(f64::from))?;
        if self.start_degree > 1.0 {
            return Err(OptionsError::Value {
                option: "start-degree",
                value: self.start_degree.to_string(),
                remedy: "give a share of the topics, 1 at most",
            });
        }
        if let Some(smoothing) = self.alpha_by_size.filter(|x| !(1e-6..=1e15).contains(x)) {
            return Err(OptionsError::Value {
                option: "alpha-by-size",
                value: smoothing.to_string(),
                remedy: "give a number from 1e-6 to 1e15",
            });
        }
        if self.alpha_by_size.is_some() && matches!(alpha, Alpha::PerTopic(_)) {
            return Err(OptionsError::Value {
                option: "alpha-by-size",
                value: "set beside one alpha a topic".to_owned(),
                remedy: "give one alpha for all topics, or leave alpha-by-size out",
            });
        }
        if let Some(learn) = self.learn {
            positive("learn-every", Some(f64::from(learn.every)))?;
            if self.alpha_by_size.is_some() && learn.alpha != LearnAlpha::Fixed {
                return Err(OptionsError::Value {
                    option: "alpha-by-size",
                    value: "set beside a learnt alpha".to_owned(),
                    remedy: "leave one of them out",
                });
            }
            if learn.alpha == LearnAlpha::Symmetric && matches!(alpha, Alpha::PerTopic(_)) {
                return Err(OptionsError::Value {
                    option: "learn-alpha",
                    value: "symmetric beside one alpha a topic".to_owned(),
                    remedy: "ask for per-topic, or give one alpha for all topics",
                });
            }
        }
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
        let choice = match self.sampler {
            Some(sampler) => Choice { sampler, warm_up: 0 },
            None => Choice::auto(self.topics, corpus),
        };
        let sampler = choice.sampler;
        // Whoever counts epochs means those of a sampler: half of them at least.
        let most = self.epochs.map_or(u32::MAX, |epochs| epochs / 2);
        let warm_up = self.warm_up.unwrap_or(choice.warm_up.min(most));
        type Able = fn(SamplerKind) -> bool;
        let asked: [(&str, bool, Able); 4] = [
            ("warm-up", warm_up > 0, SamplerKind::takes_warm_up),
            ("mh-steps", self.mh_steps.is_some(), SamplerKind::takes_mh_steps),
            ("proposals", self.proposals.is_some(), SamplerKind::takes_proposals),
            (
                "exclude-converged-from",
                self.exclude_converged_from.is_some(),
                SamplerKind::takes_exclusion,
            ),
        ];
        for (option, is_asked, able) in asked {
            if is_asked && !able(sampler) {
                let able = SamplerKind::names(able);
                return Err(OptionsError::NotWithSampler { option, sampler, able });
            }
        }
        let mh_steps = if sampler.takes_mh_steps() { self.mh_steps.unwrap_or(1) } else { 0 };
        Ok(Resolved {
            topics: self.topics,
            alpha,
            beta: self.beta,
            sampler,
            warm_up,
            seed: self.seed,
            ranges: self.ranges.unwrap_or_else(|| ranges_for(tokens)),
            narrow: u64::from(self.topics) <= <u16 as TopicIndex>::MAX_TOPICS,
            mh_steps,
            proposals: self.proposals.unwrap_or_default(),
            start: self.start,
            start_degree: self.start_degree,
            alpha_by_size: self.alpha_by_size,
            learn: self.learn,
            exclude_converged_from: self.exclude_converged_from,
            mh_steps_cap: (sampler == SamplerKind::Hybrid)
                .then_some(self.mh_steps_cap.min(MAX_MH_STEPS)),
            short_length: self
                .short_length
                .unwrap_or_else(|| worth_dividing(corpus, Self::default_short_length(self.topics))),
            isa,
            version: env!("CARGO_PKG_VERSION").to_owned(),
        })
    }
}

impl Resolved {
    /// What the epochs of the warm-up run with: WarpLDA, and nothing that is the sampler's.
    pub(crate) fn of_warm_up(&self) -> Self {
        Self {
            sampler: SamplerKind::Warp,
            warm_up: 0,
            mh_steps: 1,
            mh_steps_cap: None,
            proposals: Proposals::default(),
            exclude_converged_from: None,
            ..self.clone()
        }
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

    #[test]
    fn a_warm_up_nobody_asked_for_takes_no_more_than_half_of_the_epochs() {
        let corpus = Corpus::from_tokens([0..200u32, 50..250]).unwrap();
        let warm_up = |options: Options| options.resolve(&corpus).unwrap().warm_up;
        let options = Options { topics: 1000, ..Options::default() };
        assert_eq!(warm_up(options.clone()), 80);
        assert_eq!(warm_up(Options { epochs: Some(51), ..options.clone() }), 25);
        assert_eq!(warm_up(Options { epochs: Some(1000), ..options.clone() }), 80);
        let asked = Options { epochs: Some(51), warm_up: Some(60), ..options.clone() };
        assert_eq!(warm_up(asked), 60);
        assert_eq!(warm_up(Options { sampler: Some(SamplerKind::FPlus), ..options }), 0);
    }
}
