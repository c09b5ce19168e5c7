//! [`Lda`]: a run from options to model in one call.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::corpus::Corpus;
use crate::model::TopicModel;
use crate::prior::Alpha;
use crate::train::assignments::Assignments;
use crate::train::options::{OptionsError, Resolved, SamplerOptions, TrainOptions};
use crate::train::report::{EpochReport, Observer};
use crate::train::seed_counts::PseudoCounts;
use crate::train::trainer::{Init, Trainer};

/// Trains a model: options, then [`train`](Lda::train).
///
/// ```
/// use lda_core::corpus::CorpusBuilder;
/// use lda_core::train::{EpochReport, Flow, Lda};
///
/// let mut builder = CorpusBuilder::new();
/// builder.push_words(["tree", "leaf", "tree"])?;
/// builder.push_words(["sea", "wave", "sea"])?;
/// let corpus = builder.build()?;
/// let trained = Lda::topics(2).seed(42).epochs(50).train(&corpus, |epoch: &EpochReport| {
///     assert!(epoch.epoch <= 50);
///     Flow::Continue
/// })?;
/// assert_eq!(trained.model.num_topics(), 2);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Default)]
#[must_use = "a run does not start before `train` is called"]
pub struct Lda {
    options: TrainOptions,
    pseudo_counts: Option<PseudoCounts>,
    cancel: Option<Arc<AtomicBool>>,
}

/// A finished run.
#[derive(Clone, Debug)]
pub struct Trained {
    /// The topics.
    pub model: TopicModel,
    /// The topic of every token.
    pub assignments: Assignments,
    /// The resolved options.
    pub resolved: Resolved,
    /// Report of the last epoch.
    pub last: EpochReport,
}

impl Trained {
    /// A finished run of another trainer, such as `lda_dist::Distributed`.
    pub fn new(
        model: TopicModel,
        assignments: Assignments,
        resolved: Resolved,
        last: EpochReport,
    ) -> Self {
        Self { model, assignments, resolved, last }
    }
}

impl Lda {
    /// A run with `topics` topics and defaults for the rest.
    pub fn topics(topics: u32) -> Self {
        Self::new(TrainOptions::new(topics))
    }

    /// A run with the given options.
    pub fn new(options: TrainOptions) -> Self {
        Self { options, pseudo_counts: None, cancel: None }
    }

    /// Document-topic prior α; see [`TrainOptions::alpha`].
    pub fn alpha(mut self, alpha: impl Into<Alpha>) -> Self {
        self.options = self.options.alpha(alpha);
        self
    }

    /// Topic-word prior β; see [`TrainOptions::beta`].
    pub fn beta(mut self, beta: f64) -> Self {
        self.options = self.options.beta(beta);
        self
    }

    /// The sampler; see [`TrainOptions::sampler`].
    pub fn sampler(mut self, sampler: impl Into<SamplerOptions>) -> Self {
        self.options = self.options.sampler(sampler);
        self
    }

    /// Random seed; default 0.
    pub fn seed(mut self, seed: u64) -> Self {
        self.options = self.options.seed(seed);
        self
    }

    /// Number of epochs; by default the run ends when the likelihood has levelled off.
    pub fn epochs(mut self, epochs: u32) -> Self {
        self.options = self.options.epochs(epochs);
        self
    }

    /// Threads of a pool that the run creates; see [`TrainOptions::threads`].
    pub fn threads(mut self, threads: usize) -> Self {
        self.options = self.options.threads(threads);
        self
    }

    /// Seed words of topics, or a model to continue from
    /// ([`seed_counts`](crate::train::seed_counts)).
    pub fn pseudo_counts(mut self, counts: PseudoCounts) -> Self {
        self.pseudo_counts = Some(counts);
        self
    }

    /// Ends the run after the current epoch once `flag` is true; any thread can set it.
    pub fn cancel_when(mut self, flag: Arc<AtomicBool>) -> Self {
        self.cancel = Some(flag);
        self
    }

    /// Trains on `corpus`; `observer` receives a report per epoch and can end the run. `()` is an
    /// observer that does nothing.
    ///
    /// # Errors
    /// [`OptionsError`] before any work is done.
    pub fn train(&self, corpus: &Corpus, observer: impl Observer) -> Result<Trained, OptionsError> {
        let init = Init { pseudo_counts: self.pseudo_counts.clone(), topics: None };
        let mut trainer = Trainer::with_init(corpus, &self.options, init)?;
        let cancelled = || self.cancel.as_ref().is_some_and(|flag| flag.load(Ordering::Relaxed));
        let last = trainer.run(observer, cancelled);
        Ok(Trained {
            model: trainer.model(),
            assignments: trainer.assignments(),
            resolved: trainer.resolved().clone(),
            last,
        })
    }
}
