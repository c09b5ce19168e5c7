//! Checks of options, and defaults that depend on the corpus.

use serde::{Deserialize, Serialize};

use super::{
    Choice, Learn, OptionsError, SamplerKind, SamplerOptions, TrainOptions, check_prior_updates,
};
use crate::corpus::Corpus;
use crate::counts::TopicIndex;
use crate::layout::ranges_for;
use crate::prior::{Alpha, check_beta};
use crate::sampler::Proposals;
use crate::simd::Isa;
use crate::train::PseudoCounts;
use crate::train::Start;
use crate::train::document_sizes::DocumentSizes;
use crate::train::seed_counts::Pseudo;

/// Options with all defaults filled in. Runs with the same resolved options on the same corpus give
/// the same bits.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub struct Resolved {
    /// Topics K.
    pub topics: u32,
    /// Document-topic prior.
    pub alpha: Alpha,
    /// Topic-word prior.
    pub beta: f64,
    /// Sampler.
    pub sampler: SamplerKind,
    /// Epochs of warm-up by WarpLDA.
    #[serde(default)]
    pub warm_up: u32,
    /// Seed.
    pub seed: u64,
    /// Ranges G on each axis.
    pub ranges: usize,
    /// Whether topics are stored in 16 bits.
    pub narrow: bool,
    /// Metropolis-Hastings steps M per token and pass; 0 if the sampler makes none.
    pub mh_steps: u32,
    /// Kinds of proposals of LightLDA.
    #[serde(default)]
    pub proposals: Proposals,
    /// Rule for the first topics of tokens.
    #[serde(default)]
    pub start: Start,
    /// Share of all topics that a word or a document starts with, if the start is sparse.
    #[serde(default)]
    pub start_degree: f64,
    /// α' of an α that follows topic sizes.
    #[serde(default)]
    pub alpha_by_size: Option<f64>,
    /// Priors that are learnt; `alpha` and `beta` are what they start from.
    #[serde(default)]
    pub learn: Option<Learn>,
    /// First epoch of converged-token exclusion.
    #[serde(default)]
    pub exclude_converged_from: Option<u32>,
    /// Largest number of Metropolis-Hastings steps per token and kind of pass in an epoch of the
    /// hybrid, whose number adapts to the acceptance rate; `None` for other samplers.
    pub mh_steps_cap: Option<u32>,
    /// The hybrid gives documents longer than this to WarpLDA.
    pub short_length: u32,
    /// Instruction set, for the record; it never changes a result.
    pub isa: Isa,
    /// Version of this library.
    pub version: String,
}

impl Resolved {
    /// Checks that pseudo-counts fit the corpus and K.
    pub(crate) fn check_pseudo(
        &self,
        documents: &dyn DocumentSizes,
        pseudo: &PseudoCounts,
    ) -> Result<(), OptionsError> {
        let (words, topics) = (pseudo.num_words(), pseudo.num_topics());
        if (words, topics) != (documents.num_words(), self.topics as usize) {
            let (corpus, asked) = (documents.num_words(), self.topics);
            return Err(OptionsError::PseudoCounts { words, topics, corpus, asked });
        }
        let (tokens, limit) = (documents.largest_count() + pseudo.sum(), u64::from(u32::MAX));
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

impl TrainOptions {
    /// Checks all options against `corpus` and decides those that are not set.
    ///
    /// # Errors
    /// [`OptionsError`] names the option, its value and what to do.
    pub fn resolve(&self, corpus: &Corpus) -> Result<Resolved, OptionsError> {
        self.resolve_for(corpus)
    }

    /// [`resolve`](Self::resolve), for documents in memory or in blocks.
    pub(crate) fn resolve_for(
        &self,
        documents: &dyn DocumentSizes,
    ) -> Result<Resolved, OptionsError> {
        let alpha = self.check_model(documents)?;
        self.check_numbers()?;
        check_prior_updates(&alpha, self.alpha_by_size, self.learn)?;
        let isa = match self.isa {
            Some(isa) if !isa.is_available() => return Err(OptionsError::Isa { isa }),
            Some(isa) => isa,
            None => Isa::detect(),
        };
        let (sampler, warm_up) = self.choose_sampler(documents);
        let default_short = || worth_dividing(documents, Self::default_short_length(self.topics));
        let (proposals, mh_steps_cap, short_length) = match sampler {
            SamplerOptions::Light { proposals, .. } => (proposals, None, None),
            SamplerOptions::Hybrid { step_cap, short_length, .. } => {
                (Proposals::default(), Some(step_cap.min(MAX_MH_STEPS)), short_length)
            }
            _ => (Proposals::default(), None, None),
        };
        Ok(Resolved {
            topics: self.topics,
            alpha,
            beta: self.beta,
            sampler: sampler.kind().expect("a sampler was chosen"),
            warm_up,
            seed: self.seed,
            ranges: self.ranges.unwrap_or_else(|| ranges_for(documents.most_at_once())),
            narrow: u64::from(self.topics) <= <u16 as TopicIndex>::MAX_TOPICS,
            mh_steps: sampler.steps().unwrap_or(0),
            proposals,
            start: self.start,
            start_degree: self.start_degree,
            alpha_by_size: self.alpha_by_size,
            learn: self.learn,
            exclude_converged_from: sampler.exclude_from(),
            mh_steps_cap,
            short_length: short_length.unwrap_or_else(default_short),
            isa,
            version: env!("CARGO_PKG_VERSION").to_owned(),
        })
    }

    /// [`resolve`](Self::resolve), for a run with pseudo-counts.
    ///
    /// # Errors
    /// As `resolve`.
    pub(crate) fn resolve_with(
        &self,
        documents: &dyn DocumentSizes,
        pseudo: &Pseudo,
    ) -> Result<Resolved, OptionsError> {
        let mut resolved = self.resolve_for(documents)?;
        // PERF: WarpLDA visits pseudo-counts like tokens. If they are many more than the tokens, its
        // epochs cost more than they save; and such a run starts near its end.
        let many = 4 * documents.num_tokens();
        if self.warm_up.is_none() && pseudo.as_ref().is_some_and(|pseudo| pseudo.sum() > many) {
            resolved.warm_up = 0;
        }
        Ok(resolved)
    }

    /// The sampler, and its epochs of warm-up.
    fn choose_sampler(&self, documents: &dyn DocumentSizes) -> (SamplerOptions, u32) {
        let SamplerOptions::Auto { exclude_from } = self.sampler else {
            return (self.sampler, self.warm_up.unwrap_or(0));
        };
        let Choice { sampler, warm_up } = Choice::of(self.topics, documents);
        let sampler = SamplerOptions::from(sampler);
        let sampler = exclude_from
            .map_or(sampler, |epoch| sampler.with_exclusion(epoch).expect("the choice is F+LDA"));
        // A limit of epochs is meant for the sampler, so it gets at least half of them.
        let most = self.epochs.map_or(u32::MAX, |epochs| epochs / 2);
        (sampler, self.warm_up.unwrap_or(warm_up.min(most)))
    }

    /// Checks K, the corpus and the priors; returns α.
    fn check_model(&self, documents: &dyn DocumentSizes) -> Result<Alpha, OptionsError> {
        if self.topics == 0 {
            return Err(OptionsError::NoTopics);
        }
        let limit = <u32 as TopicIndex>::MAX_TOPICS;
        if u64::from(self.topics) > limit {
            return Err(OptionsError::TooManyTopics { topics: self.topics, limit });
        }
        if documents.num_tokens() == 0 {
            return Err(OptionsError::NoTokens);
        }
        let usual = || Self::default_alpha(self.topics, documents.mean_length());
        let alpha = self.alpha.clone().unwrap_or_else(usual);
        alpha.check(self.topics as usize)?;
        let (tokens, limit) = (documents.largest_count(), u64::from(u32::MAX));
        if tokens > limit {
            return Err(OptionsError::TooManyTokens { tokens, limit });
        }
        check_beta(self.beta, documents.num_words())?;
        Ok(alpha)
    }

    /// Checks the range of each number by itself.
    fn check_numbers(&self) -> Result<(), OptionsError> {
        positive("seconds", self.seconds)?;
        positive("epochs", self.epochs.map(f64::from))?;
        positive("threads", self.threads.map(|n| n as f64))?;
        positive("ranges", self.ranges.map(|n| n as f64))?;
        let custom = matches!(self.sampler, SamplerOptions::Custom { .. });
        positive("mh-steps", self.sampler.steps().filter(|_| !custom).map(f64::from))?;
        if let SamplerOptions::Hybrid { step_cap, .. } = self.sampler {
            positive("mh-steps-cap", Some(f64::from(step_cap)))?;
        }
        positive("start-degree", Some(self.start_degree))?;
        positive("exclude-converged-from", self.sampler.exclude_from().map(f64::from))?;
        if self.start_degree > 1.0 {
            let remedy = "give a share of the topics, 1 at most";
            return Err(value("start-degree", self.start_degree, remedy));
        }
        if let Some(ranges) = self.ranges.filter(|&n| n > MAX_RANGES) {
            return Err(value("ranges", ranges, "give at most 4096"));
        }
        if let Some(steps) = self.sampler.steps().filter(|&n| n > MAX_MH_STEPS) {
            return Err(value("mh-steps", steps, "give at most 64"));
        }
        Ok(())
    }
}

pub(super) fn value(
    option: &'static str,
    value: impl ToString,
    remedy: &'static str,
) -> OptionsError {
    OptionsError::Value { option, value: value.to_string(), remedy }
}

pub(super) fn positive(option: &'static str, number: Option<f64>) -> Result<(), OptionsError> {
    match number {
        Some(number) if number.is_nan() || number <= 0.0 => {
            Err(value(option, number, "give a number above 0"))
        }
        _ => Ok(()),
    }
}

impl Resolved {
    /// Options of the warm-up: WarpLDA, without the options of the sampler.
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

/// `short_length`, unless the documents on one side of it have less than a quarter of all tokens: a
/// second sampler gains less there than its passes cost, so these documents go to the sampler of
/// the others.
fn worth_dividing(documents: &dyn DocumentSizes, short_length: u32) -> u32 {
    let (short, all) = (documents.tokens_up_to(short_length), documents.num_tokens());
    if short < all / 4 {
        0
    } else if all - short < all / 4 {
        u32::MAX
    } else {
        short_length
    }
}

/// Largest number of ranges: the finest grid has 4096 × 4096 blocks.
const MAX_RANGES: usize = 4096;
/// Largest number of proposals that a token can carry.
const MAX_MH_STEPS: u32 = 64;

#[cfg(test)]
mod tests {
    use super::*;

    /// Documents of the given lengths.
    fn short_length(lengths: &[u64], topics: u32) -> u32 {
        let documents = lengths.iter().map(|&n| (0..n as u32).map(|i| i % 7));
        let corpus = Corpus::from_tokens(documents).unwrap();
        let options = TrainOptions::new(topics);
        options.resolve(&corpus).unwrap().short_length
    }

    #[test]
    fn the_default_prior_depends_on_the_lengths() {
        let alpha = |lengths: &[u32]| {
            let corpus = Corpus::from_tokens(lengths.iter().map(|&n| (0..n).map(|i| i % 7)));
            TrainOptions::new(10).resolve(&corpus.unwrap()).unwrap().alpha
        };
        // Documents without tokens, as those that are held out, do not count.
        for (lengths, sum) in [
            (&[4, 6][..], 1.0),
            (&[20, 0], 2.5),
            (&[100, 60], 10.0),
            (&[400, 400], 50.0),
            (&[9_000], 50.0),
        ] {
            assert_eq!(alpha(lengths), Alpha::Symmetric(sum / 10.0), "{lengths:?}");
        }
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
    fn a_default_warm_up_takes_at_most_half_of_the_epochs() {
        let corpus = Corpus::from_tokens([0..200u32, 50..250]).unwrap();
        let warm_up = |options: TrainOptions| options.resolve(&corpus).unwrap().warm_up;
        let options = TrainOptions::new(1000);
        assert_eq!(warm_up(options.clone()), 80);
        assert_eq!(warm_up(options.clone().epochs(51)), 25);
        assert_eq!(warm_up(options.clone().epochs(1000)), 80);
        assert_eq!(warm_up(options.clone().epochs(51).warm_up(60)), 60);
        assert_eq!(warm_up(options.sampler(SamplerKind::FPlus)), 0);
    }
}
