//! What one method does differently from the rest of a plan, or all of them on one corpus.
//!
//! [`Overrides`] is the one list of options of our samplers that a plan can set: the tables
//! `[sampler.X]` and `[variant.X]` and every [`Cell`](super::Cell) take in its fields. A new option
//! is a field there and a line in `apply`; records that were written without it are read on.

use std::collections::BTreeMap;

use lda_core::sampler::Proposals;
use lda_core::train::{Options, SamplerKind, Start};
use serde::de::{Error, IgnoredAny};
use serde::{Deserialize, Deserializer, Serialize};

use super::plan::Seeds;

/// Options of a sampler; as the library decides where nothing is given.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "kebab-case")]
pub struct Overrides {
    /// Epochs of WarpLDA before the first of the sampler.
    pub warm_up: Option<u32>,
    /// Metropolis-Hastings steps a token and pass.
    pub mh_steps: Option<u32>,
    /// Which proposals LightLDA makes.
    pub proposals: Option<Proposals>,
    /// Which topics tokens start with.
    pub start: Option<Start>,
    /// Share of all topics that a word or a document starts with, where the start is sparse.
    pub start_degree: Option<f64>,
    /// α' of an α that follows the topics' sizes.
    pub alpha_by_size: Option<f64>,
    /// Epoch from which on converged tokens are left out.
    pub exclude_converged_from: Option<u32>,
    /// Longest document that the hybrid gives to F+LDA.
    pub short_length: Option<u32>,
    /// Ranges of the grid.
    pub ranges: Option<usize>,
}

impl Overrides {
    /// Puts them into a run's options. No field is left out, or this does not compile.
    pub(super) fn apply(&self, options: &mut Options) {
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
        options.warm_up = warm_up;
        options.mh_steps = mh_steps;
        options.proposals = proposals;
        options.start = start.unwrap_or(options.start);
        options.start_degree = start_degree.unwrap_or(options.start_degree);
        options.alpha_by_size = alpha_by_size;
        options.exclude_converged_from = exclude_converged_from;
        options.short_length = short_length;
        options.ranges = ranges;
    }
}

/// What one sampler does differently from the rest of the plan.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "kebab-case")]
pub struct Tuning {
    /// Epochs at most.
    pub epochs: Option<u32>,
    /// CPU seconds of sampling at most.
    pub seconds: Option<f64>,
    /// Epochs between evaluations.
    pub evaluate_every: Option<u32>,
    /// Options of the sampler.
    #[serde(flatten)]
    pub overrides: Overrides,
    #[serde(flatten, skip_serializing)]
    nothing_else: NothingElse,
}

/// Is handed the keys that no other field has taken, and refuses them. Serde's own refusal does not
/// say which keys there are, once some are those of [`Overrides`].
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

/// A sampler once more, under a name of its own and with options of its own. It does not inherit
/// those of `[sampler.X]`.
// Unknown keys are refused by its tuning, which is handed all but `sampler`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Variant {
    /// Which sampler.
    pub sampler: SamplerKind,
    /// What it does differently from the rest of the plan.
    #[serde(flatten)]
    pub tuning: Tuning,
}

/// What one baseline does differently from the rest of the plan.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "kebab-case", deny_unknown_fields)]
pub struct BaselineTuning {
    /// Epochs at most.
    pub epochs: Option<u32>,
    /// CPU seconds of training at most.
    pub seconds: Option<f64>,
    /// Epochs between evaluations.
    pub evaluate_every: Option<u32>,
}

impl From<BaselineTuning> for Tuning {
    fn from(BaselineTuning { epochs, seconds, evaluate_every }: BaselineTuning) -> Self {
        Self { epochs, seconds, evaluate_every, ..Self::default() }
    }
}

/// What everybody does differently on one corpus, unless a table of their own says otherwise.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "kebab-case", deny_unknown_fields)]
pub struct CorpusTuning {
    /// Epochs at most.
    pub epochs: Option<u32>,
    /// CPU seconds of sampling at most; a method's own limit can only be lower.
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

/// The keys that are set, on one line as they stand in a plan: `epochs = 70, mh-steps = 2`.
pub(super) fn describe(tuning: &impl Serialize) -> String {
    // Numbers and names can all be written.
    let lines = toml::to_string(tuning).unwrap_or_default();
    lines.trim().replace('\n', ", ")
}

/// Whether a variant may be called so: words of lower-case letters and digits, a letter first,
/// joined by single hyphens. It becomes part of file names.
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
        let variant = Variant { sampler: SamplerKind::Light, tuning };
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
