//! Overrides for one method, or for all methods on one corpus.
//!
//! [`Overrides`] is the one list of sampler options that a plan can set: the tables `[sampler.X]`
//! and `[variant.X]` and every [`Cell`](super::Cell) include its fields. A new option is a field
//! there and a line in `apply`; records without it remain readable.

use std::collections::BTreeMap;

use lda_core::sampler::Proposals;
use lda_core::train::{OptionsError, SamplerKind, SamplerOptions, Start, TrainOptions};
use serde::de::{Error, IgnoredAny};
use serde::{Deserialize, Deserializer, Serialize};

use super::Method;
use super::method::sampler_names;

/// Seeds: 1 to n, or a list.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged, expecting = "a number of seeds (5) or a list of them ([1, 7])")]
pub enum Seeds {
    /// 1 to n.
    Count(u32),
    /// These seeds.
    List(Vec<u64>),
}

impl Seeds {
    /// Number of seeds.
    pub(super) fn count(&self) -> usize {
        match self {
            Self::Count(n) => *n as usize,
            Self::List(list) => list.len(),
        }
    }

    /// The seeds.
    pub(super) fn list(&self) -> Vec<u64> {
        match self {
            Self::Count(n) => (1..=u64::from(*n)).collect(),
            Self::List(list) => list.clone(),
        }
    }
}

/// Options of a sampler; unset options keep the library's defaults.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "kebab-case")]
pub struct Overrides {
    /// Warm-up epochs of WarpLDA before the sampler's own.
    pub warm_up: Option<u32>,
    /// Metropolis-Hastings steps per token and pass.
    pub mh_steps: Option<u32>,
    /// Proposal kinds of LightLDA.
    pub proposals: Option<Proposals>,
    /// Initial topics.
    pub start: Option<Start>,
    /// Share of all topics that a word or a document starts with, for sparse starts.
    pub start_degree: Option<f64>,
    /// α' of the prior that follows topic sizes.
    pub alpha_by_size: Option<f64>,
    /// Epoch from which converged tokens are excluded.
    pub exclude_converged_from: Option<u32>,
    /// Length of the longest document that the hybrid gives to F+LDA.
    pub short_length: Option<u32>,
    /// Ranges per axis of the grid.
    pub ranges: Option<usize>,
}

impl Overrides {
    /// Sets them in the options of a run with `method`. Destructures all fields, so a forgotten one
    /// does not compile. Refuses options that the sampler does not have.
    pub(super) fn apply(
        &self,
        mut options: TrainOptions,
        method: Method,
    ) -> Result<TrainOptions, OptionsError> {
        let &Self {
            warm_up,
            mh_steps,
            proposals,
            start,
            start_degree,
            alpha_by_size,
            exclude_converged_from,
            short_length,
            ranges,
        } = self;
        let mut sampler = match method {
            Method::Sampler(kind) => SamplerOptions::from(kind),
            Method::PolyaUrn => SamplerOptions::from(SamplerKind::Custom),
            Method::Auto | Method::Baseline(_) => SamplerOptions::default(),
        };
        if let (Some(steps), Method::PolyaUrn) = (mh_steps, method) {
            return Err(OptionsError::Value {
                option: "mh-steps",
                value: steps.to_string(),
                remedy: "polya-urn makes no Metropolis-Hastings steps: leave it out",
            });
        }
        if let Some(steps) = mh_steps {
            sampler = sampler.with_steps(steps)?;
        }
        if let Some(proposals) = proposals {
            sampler = sampler.with_proposals(proposals)?;
        }
        if let Some(epoch) = exclude_converged_from {
            sampler = sampler.with_exclusion(epoch)?;
        }
        if let Some(tokens) = short_length {
            sampler = sampler.with_short_length(tokens)?;
        }
        options = options.sampler(sampler).warm_up(warm_up).alpha_by_size(alpha_by_size);
        if let Some(start) = start {
            options = options.start(start);
        }
        if let Some(share) = start_degree {
            if start.is_none_or(|start| start == Start::Random) {
                return Err(OptionsError::Value {
                    option: "start-degree",
                    value: share.to_string(),
                    remedy: "it applies to sparse starts: set start to sparse-word or \
                             sparse-document, or leave it out",
                });
            }
            options = options.start_degree(share);
        }
        Ok(options.ranges(ranges))
    }
}

/// Overrides for one sampler.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "kebab-case")]
pub struct Tuning {
    /// Largest number of epochs.
    pub epochs: Option<u32>,
    /// Limit of the CPU seconds of sampling.
    pub seconds: Option<f64>,
    /// Epochs between evaluations.
    pub evaluate_every: Option<u32>,
    /// Options of the sampler.
    #[serde(flatten)]
    pub overrides: Overrides,
    #[serde(flatten, skip_serializing)]
    nothing_else: NothingElse,
}

/// Receives the keys that no other field has taken, and refuses them. Serde's own error cannot list
/// the valid keys once some of them are flattened from [`Overrides`].
#[derive(Clone, Debug, Default, PartialEq)]
struct NothingElse;

impl<'de> Deserialize<'de> for NothingElse {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let rest = BTreeMap::<String, IgnoredAny>::deserialize(deserializer)?;
        let Some(key) = rest.keys().next() else { return Ok(Self) };
        Err(D::Error::custom(format!("unknown key `{key}`: use {}", known_keys().join(", "))))
    }
}

/// The keys of a [`Tuning`].
fn known_keys() -> Vec<String> {
    match serde_json::to_value(Tuning::default()) {
        Ok(serde_json::Value::Object(keys)) => keys.into_iter().map(|(key, _)| key).collect(),
        _ => Vec::new(),
    }
}

/// A sampler that the plan runs once more, with other options under a name of its own. It does not
/// inherit from `[sampler.X]`.
// Unknown keys are refused by its tuning, which receives all keys but `sampler`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Variant {
    /// The sampler.
    #[serde(deserialize_with = "sampler")]
    pub sampler: Method,
    /// Its overrides.
    #[serde(flatten)]
    pub tuning: Tuning,
}

/// Reads the name of a sampler: any method but a baseline and `auto`.
fn sampler<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Method, D::Error> {
    let name = String::deserialize(deserializer)?;
    match name.parse() {
        Ok(method @ (Method::Sampler(_) | Method::PolyaUrn)) => Ok(method),
        _ => Err(D::Error::custom(format!("{name:?} is not a sampler: use {}", sampler_names()))),
    }
}

/// Overrides for one baseline.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "kebab-case", deny_unknown_fields)]
pub struct BaselineTuning {
    /// Largest number of epochs.
    pub epochs: Option<u32>,
    /// Limit of the CPU seconds of training.
    pub seconds: Option<f64>,
    /// Epochs between evaluations.
    pub evaluate_every: Option<u32>,
}

impl From<BaselineTuning> for Tuning {
    fn from(BaselineTuning { epochs, seconds, evaluate_every }: BaselineTuning) -> Self {
        Self { epochs, seconds, evaluate_every, ..Self::default() }
    }
}

/// Overrides for all methods on one corpus, unless their own tables set the option.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "kebab-case", deny_unknown_fields)]
pub struct CorpusTuning {
    /// Largest number of epochs.
    pub epochs: Option<u32>,
    /// Limit of the CPU seconds of sampling. A method's own limit can only be lower.
    pub seconds: Option<f64>,
    /// Epochs between evaluations.
    pub evaluate_every: Option<u32>,
    /// Seeds.
    pub seeds: Option<Seeds>,
}

impl From<CorpusTuning> for Tuning {
    fn from(CorpusTuning { epochs, seconds, evaluate_every, seeds: _ }: CorpusTuning) -> Self {
        Self { epochs, seconds, evaluate_every, ..Self::default() }
    }
}

/// The set keys on one line, as in a plan: `epochs = 70, mh-steps = 2`.
pub(super) fn describe(tuning: &impl Serialize) -> String {
    // Serialising numbers and names cannot fail.
    let lines = toml::to_string(tuning).unwrap_or_default();
    lines.trim().replace('\n', ", ")
}

/// Whether `name` is valid for a variant: words of lower-case letters and digits that start with a
/// letter, joined by single hyphens. It becomes part of file names.
pub(super) fn is_name(name: &str) -> bool {
    let word = |word: &str| {
        !word.is_empty() && word.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit())
    };
    name.len() <= 40
        && name.starts_with(|c: char| c.is_ascii_lowercase())
        && name.split('-').all(word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_that_are_set_are_described() {
        let overrides = Overrides { mh_steps: Some(2), ..Overrides::default() };
        assert_eq!(describe(&overrides), "mh-steps = 2");
        assert_eq!(describe(&Overrides::default()), "");
        let tuning = Tuning { epochs: Some(70), overrides, ..Tuning::default() };
        assert_eq!(describe(&tuning), "epochs = 70, mh-steps = 2");
        let seeds = Some(Seeds::List(vec![1, 7]));
        let corpus = CorpusTuning { seconds: Some(60.0), seeds, ..CorpusTuning::default() };
        assert_eq!(describe(&corpus), "seconds = 60.0, seeds = [1, 7]");
        let variant = Variant { sampler: SamplerKind::Light.into(), tuning };
        assert_eq!(describe(&variant), "sampler = \"light\", epochs = 70, mh-steps = 2");
    }

    #[test]
    fn names_are_words_joined_by_hyphens() {
        assert!(["light-doc", "w", "warp-2"].into_iter().all(is_name));
        let bad = ["", "-a", "a-", "a--b", "2x", "Light", "light_doc", "a/b", "a b", "ä"];
        assert!(!bad.into_iter().any(is_name));
        assert!(!is_name(&"a".repeat(41)));
    }
}
