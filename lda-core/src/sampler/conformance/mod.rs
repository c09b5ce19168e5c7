//! Conformance suite: the contract of [`Sampler`] as a program, for tests of samplers.
//!
//! [`run`] checks a sampler through [`Trainer::with_sampler`], as its users run it, and returns a
//! [`Report`]:
//!
//! | check | what is compared |
//! |---|---|
//! | the law of an epoch | topics drawn from the posterior, one epoch later, with the posterior of tiny corpora, enumerated in f64 |
//! | the law of a chain | topics after many epochs from one start, with the posterior |
//! | counts | rows and totals with a recount after each epoch: several K, grids, empty documents, repeated words |
//! | reproducible | the bits of all thread counts and instruction sets, and of a run that continues from a snapshot |
//! | the curve | log p(W, Z) after 100 epochs with that of [`Exact`](super::Exact) |
//!
//! A law is compared by a chi-square test that a right sampler fails with a probability of 1e-6 per
//! law; the draws follow from the seed, so a test that has passed passes always. A sampler that is
//! biased on purpose [claims a distance](Claims::within) from the posterior instead.
//!
//! ```
//! use lda_core::sampler::conformance::{self, Claims};
//! use lda_core::sampler::FPlus;
//!
//! let report = conformance::run(|| FPlus, &Claims::exact().draws(2_000));
//! assert!(report.passed(), "{report}");
//! ```

mod counts;
mod curve;
mod law;
mod posterior;
mod reproducible;

use std::fmt;

use super::Sampler;
use crate::corpus::Corpus;
use crate::train::{Init, OptionsError, SamplerOptions, TrainOptions, Trainer};

/// Properties that a sampler claims, and the extent of the checks.
#[derive(Clone, Debug)]
pub struct Claims {
    /// Largest distance of the law of a chain from the posterior; `None` if it is the posterior.
    distance: Option<f64>,
    /// Part by which log p(W, Z) may differ from that of the exact sampler.
    curve: f64,
    steps: u32,
    draws: u64,
    seed: u64,
}

impl Claims {
    /// With a corpus in one block, an epoch leaves the posterior as it is, and a chain reaches it.
    pub fn exact() -> Self {
        Self { distance: None, curve: 0.01, steps: 0, draws: 100_000, seed: 0 }
    }

    /// The law of a long chain is at most this far from the posterior, in total variation, on corpora
    /// of four and five tokens and two or three topics. The distance vanishes with the number of tokens
    /// for most samplers, so it is a bound for a mistake and not what users of large corpora get.
    pub fn within(distance: f64) -> Self {
        Self { distance: Some(distance), ..Self::exact() }
    }

    /// Part by which log p(W, Z) after 100 epochs may differ from that of the exact sampler; default 0.01.
    pub fn curve(mut self, part: f64) -> Self {
        self.curve = part;
        self
    }

    /// Metropolis-Hastings steps per token, [`Context::mh_steps`](super::Context::mh_steps); default 0.
    pub fn steps(mut self, steps: u32) -> Self {
        self.steps = steps;
        self
    }

    /// Draws per law of an epoch; a quarter of them per law of a chain. Default 100,000, which take about
    /// 10 seconds. A law that is d away in total variation is found with about 50 / d² draws.
    pub fn draws(mut self, draws: u64) -> Self {
        self.draws = draws.max(100);
        self
    }

    /// Seed of all draws; default 0.
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }
}

/// Results of all checks.
#[derive(Clone, Debug)]
pub struct Report {
    /// Name and result of each check, in order.
    pub checks: Vec<(&'static str, Outcome)>,
}

/// Result of a check.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Outcome {
    /// The sampler keeps the promise.
    Passed,
    /// The sampler does not claim the property.
    Skipped,
    /// The sampler breaks the promise; contains the difference.
    Failed(String),
}

impl Report {
    /// Whether no check failed.
    pub fn passed(&self) -> bool {
        self.checks.iter().all(|(_, outcome)| !matches!(outcome, Outcome::Failed(_)))
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (name, outcome) in &self.checks {
            match outcome {
                Outcome::Passed => writeln!(f, "{name}: passed")?,
                Outcome::Skipped => writeln!(f, "{name}: skipped: not claimed")?,
                Outcome::Failed(difference) => writeln!(f, "{name}: FAILED: {difference}")?,
            }
        }
        Ok(())
    }
}

/// A sampler that [`Trainer::with_sampler`] takes.
pub trait Testable:
    Sampler<u16, Scratch: fmt::Debug + 'static> + Sampler<u32, Scratch: fmt::Debug + 'static> + Send
{
}

impl<S> Testable for S where
    S: Sampler<u16, Scratch: fmt::Debug + 'static>
        + Sampler<u32, Scratch: fmt::Debug + 'static>
        + Send
{
}

/// Runs all checks of the samplers that `make` creates, one per run.
///
/// # Panics
/// If the sampler panics.
pub fn run<S: Testable + 'static>(make: impl Fn() -> S + Sync, claims: &Claims) -> Report {
    let subject = Subject { make: &make, claims };
    let checks: [(&'static str, Result<Outcome, String>); 6] = [
        ("an epoch leaves the posterior as it is", law::of_an_epoch(&subject)),
        ("a chain has the law that is claimed", law::of_a_chain(&subject)),
        ("counts equal a recount", counts::check(&subject)),
        ("threads and instruction sets change no bit", reproducible::machines(&subject)),
        ("a run continues from a snapshot", reproducible::snapshots(&subject)),
        ("training arrives where the exact sampler does", curve::check(&subject)),
    ];
    let checks = checks.map(|(name, result)| (name, result.unwrap_or_else(Outcome::Failed)));
    Report { checks: checks.into() }
}

/// The sampler under test.
struct Subject<'a, F> {
    make: &'a F,
    claims: &'a Claims,
}

impl<S: Testable + 'static, F: Fn() -> S + Sync> Subject<'_, F> {
    /// A run of a new sampler.
    fn start<'c>(
        &self,
        corpus: &'c Corpus,
        options: &TrainOptions,
        init: Init<'_>,
    ) -> Result<Trainer<&'c Corpus>, OptionsError> {
        let sampler = SamplerOptions::Custom { steps: self.claims.steps, exclude_from: None };
        let options = options.clone().sampler(sampler);
        Trainer::with_sampler(corpus, &options, (self.make)(), init)
    }

    /// Largest K.
    fn max_topics(&self) -> u64 {
        Sampler::<u32>::requires(&(self.make)()).max_topics
    }
}
