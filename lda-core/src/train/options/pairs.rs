//! Resolved options as pairs of name and value, as files store them, except α, which may be long.
//!
//! Names are those of the JSON form. A float is written in the shortest form that reads back to the
//! same bits.
//!
//! Serde is not used: the crate depends on no serde format, so a serializer and a deserializer
//! would be needed, about twice as long as this file. Besides, the derived form has neither the
//! order of pairs of the files (an option that is not set is left out, and optional ones come last)
//! nor the flat `learn-` names. A new option takes a line in `to_pairs` and one in `from_pairs`,
//! which does not compile without it.

use super::{Learn, LearnAlpha, Resolved, SamplerKind, SamplerOptions, TrainOptions};
use crate::container::FileError;
use crate::container::pairs::Pairs;
use crate::model::Provenance;
use crate::prior::Alpha;
use crate::sampler::Proposals;
use crate::simd::Isa;
use crate::train::Start;

impl Resolved {
    /// The options that are stored in `provenance`, if there are any.
    ///
    /// # Errors
    /// [`FileError`], if an option is missing or has a value that this version does not have.
    pub fn from_provenance(provenance: &Provenance) -> Result<Option<Self>, FileError> {
        let Some(alpha) = &provenance.initial_alpha else { return Ok(None) };
        Self::from_pairs(&Pairs(provenance.options.clone()), alpha.clone()).map(Some)
    }

    /// [`to_pairs`](Self::to_pairs) with owned names.
    pub(crate) fn to_named(&self) -> Vec<(String, String)> {
        self.to_pairs().into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
    }

    /// All options but α.
    pub(crate) fn to_pairs(&self) -> Vec<(&'static str, String)> {
        let mut pairs = vec![
            ("topics", self.topics.to_string()),
            ("beta", self.beta.to_string()),
            ("sampler", self.sampler.name().to_owned()),
            ("warm-up", self.warm_up.to_string()),
            ("seed", self.seed.to_string()),
            ("ranges", self.ranges.to_string()),
            ("narrow", self.narrow.to_string()),
            ("mh-steps", self.mh_steps.to_string()),
            ("proposals", self.proposals.name().to_owned()),
            ("start", self.start.name().to_owned()),
            ("start-degree", self.start_degree.to_string()),
            ("short-length", self.short_length.to_string()),
            ("isa", self.isa.name().to_owned()),
            ("version", self.version.clone()),
        ];
        let optional = [
            ("alpha-by-size", self.alpha_by_size.map(|x| x.to_string())),
            ("learn-alpha", self.learn.map(|learn| learn.alpha.name().to_owned())),
            ("learn-beta", self.learn.map(|learn| learn.beta.to_string())),
            ("learn-burn-in", self.learn.map(|learn| learn.burn_in.to_string())),
            ("learn-every", self.learn.map(|learn| learn.every.to_string())),
            ("exclude-converged-from", self.exclude_converged_from.map(|x| x.to_string())),
            ("mh-steps-cap", self.mh_steps_cap.map(|x| x.to_string())),
        ];
        pairs.extend(optional.into_iter().filter_map(|(name, value)| Some((name, value?))));
        pairs
    }

    /// Reads them back. Each value is checked by itself; [`TrainOptions::resolve`] checks them
    /// together.
    pub(crate) fn from_pairs(pairs: &Pairs, alpha: Alpha) -> Result<Self, FileError> {
        let learnt = |name: &str| LearnAlpha::ALL.into_iter().find(|alpha| alpha.name() == name);
        let learn = match pairs.parsed("learn-alpha", learnt)? {
            None => None,
            Some(alpha) => Some(Learn {
                alpha,
                beta: pairs.read("learn-beta")?,
                burn_in: pairs.read("learn-burn-in")?,
                every: pairs.read("learn-every")?,
            }),
        };
        Ok(Self {
            topics: pairs.read("topics")?,
            alpha,
            beta: pairs.read("beta")?,
            sampler: pairs.read::<SamplerKind>("sampler")?,
            warm_up: pairs.read("warm-up")?,
            seed: pairs.read("seed")?,
            ranges: pairs.read("ranges")?,
            narrow: pairs.read("narrow")?,
            mh_steps: pairs.read("mh-steps")?,
            proposals: pairs.required("proposals", |name| {
                Proposals::ALL.into_iter().find(|proposals| proposals.name() == name)
            })?,
            start: pairs.required("start", |name| {
                Start::ALL.into_iter().find(|start| start.name() == name)
            })?,
            start_degree: pairs.read("start-degree")?,
            alpha_by_size: pairs.read_if("alpha-by-size")?,
            learn,
            exclude_converged_from: pairs.read_if("exclude-converged-from")?,
            mh_steps_cap: pairs.read_if("mh-steps-cap")?,
            short_length: pairs.read("short-length")?,
            isa: pairs
                .required("isa", |name| Isa::ALL.into_iter().find(|isa| isa.name() == name))?,
            version: pairs.read("version")?,
        })
    }

    /// The first option that affects draws and differs between the two: its name, and both values.
    pub(crate) fn difference(&self, other: &Self) -> Option<(&'static str, String, String)> {
        let (mine, theirs) = (self.to_pairs(), other.to_pairs());
        let value = |pairs: &[(&str, String)], name: &str| {
            let found = pairs.iter().find(|(found, _)| *found == name);
            found.map_or_else(|| "none".to_owned(), |(_, value)| value.clone())
        };
        let names = mine.iter().chain(&theirs).map(|&(name, _)| name);
        let drawn = names.filter(|name| !["isa", "version"].contains(name));
        let mut differing = drawn
            .map(|name| (name, value(&mine, name), value(&theirs, name)))
            .filter(|(_, mine, theirs)| mine != theirs);
        let alpha = || {
            let one = |alpha: &Alpha| match alpha {
                Alpha::Symmetric(alpha) => alpha.to_string(),
                Alpha::PerTopic(_) => "one for each topic".to_owned(),
            };
            (self.alpha != other.alpha).then(|| ("alpha", one(&self.alpha), one(&other.alpha)))
        };
        differing.next().or_else(alpha)
    }
}

/// Options that resolve to these again, on any corpus that they fit. Options that decide when to
/// stop have their defaults.
impl From<&Resolved> for TrainOptions {
    fn from(resolved: &Resolved) -> Self {
        Self::new(resolved.topics)
            .alpha(resolved.alpha.clone())
            .beta(resolved.beta)
            .sampler(SamplerOptions::from(resolved))
            .warm_up(resolved.warm_up)
            .seed(resolved.seed)
            .start(resolved.start)
            .start_degree(resolved.start_degree)
            .alpha_by_size(resolved.alpha_by_size)
            .learn(resolved.learn)
            .ranges(resolved.ranges)
    }
}
