//! The trainer: a run that is driven epoch by epoch or to its end.

mod setup;

use std::ops::Deref;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use self::setup::custom_options;
use crate::container::FileError;
use crate::corpus::Corpus;
use crate::eval::{CompletionError, CompletionOptions, Diagnostics, DocumentCompletion, LogJoint};
use crate::model::{Provenance, TopicModel};
use crate::prior::Alpha;
use crate::sampler::Sampler;
use crate::train::any_engine::AnyEngine;
use crate::train::assignments::Assignments;
use crate::train::checkpoint::{CheckpointWriter, Checkpoints};
use crate::train::held_out::HeldOut;
use crate::train::options::{LevelOff, OptionsError, Resolved, TrainOptions};
use crate::train::pass::PassReport;
use crate::train::registry::{CustomSampler, SamplerSetup};
use crate::train::report::{EpochReport, Flow, Observer};
use crate::train::seed_counts::{Pseudo, PseudoCounts};
use crate::train::snapshot::{CorpusId, ResumeError, Snapshot, hash_of_words};
use crate::train::state::CountsError;

/// Initial state of a run: pseudo-counts and first topics.
#[derive(Clone, Debug, Default)]
pub struct Init<'a> {
    /// Seed words of topics, or a model to continue from
    /// ([`seed_counts`](crate::train::seed_counts)).
    pub pseudo_counts: Option<PseudoCounts>,
    /// The first topic of every token; drawn by default. With them a run continues from a changed
    /// state: with other documents ([`Assignments::select`]), or with other options.
    pub topics: Option<&'a Assignments>,
}

/// A run of training, epoch by epoch.
///
/// ```
/// use lda_core::corpus::CorpusBuilder;
/// use lda_core::train::{TrainOptions, Trainer};
///
/// let mut builder = CorpusBuilder::new();
/// builder.push_words(["tree", "leaf", "tree"])?;
/// let corpus = builder.build()?;
/// let mut trainer = Trainer::new(&corpus, &TrainOptions::new(3))?;
/// let report = trainer.epoch();
/// assert_eq!((report.epoch, report.tokens), (1, 3));
/// assert!(trainer.log_joint().total() < 0.0);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// The corpus is borrowed (`Trainer<&Corpus>`) or shared (`Trainer<Arc<Corpus>>`), so that a trainer can
/// be stored beside its corpus.
#[derive(Debug)]
pub struct Trainer<C> {
    corpus: C,
    options: TrainOptions,
    resolved: Resolved,
    /// Options of the warm-up, while it lasts.
    warming_up: Option<Resolved>,
    /// The sampler of [`SamplerKind::Custom`](crate::train::SamplerKind::Custom).
    custom: Custom,
    engine: AnyEngine,
    pool: Option<rayon::ThreadPool>,
    epoch: u32,
    seconds: f64,
    evaluations: Vec<f64>,
    checkpoints: Option<CheckpointWriter>,
    pseudo: Pseudo,
    held_out: Option<HeldOut>,
    /// Perplexities of the held-out documents since the warm-up.
    perplexities: Vec<f64>,
}

/// The caller's sampler, if there is one.
type Custom = Option<Arc<dyn CustomSampler>>;

impl<C: Deref<Target = Corpus>> Trainer<C> {
    /// Checks the options, lays the corpus out and draws the first topics.
    ///
    /// # Errors
    /// [`OptionsError`] names the option, its value and what to do.
    pub fn new(corpus: C, options: &TrainOptions) -> Result<Self, OptionsError> {
        Self::with_init(corpus, options, Init::default())
    }

    /// Starts from seed words of topics, from a model, or from given topics.
    ///
    /// # Errors
    /// [`OptionsError`], also if `init` does not fit the corpus and the options.
    pub fn with_init(
        corpus: C,
        options: &TrainOptions,
        init: Init<'_>,
    ) -> Result<Self, OptionsError> {
        Self::begin(corpus, options, init, None)
    }

    /// A run with a [`Sampler`] of the caller. Everything that works with the library's samplers
    /// works with it: epochs, threads, warm-up, evaluation, checkpoints, the same bits at any
    /// thread count.
    ///
    /// The sampler in `options` is replaced by a [custom](crate::train::SamplerOptions::Custom)
    /// one, unless it is one already; the first epoch of an exclusion is kept, and there are no
    /// Metropolis-Hastings steps unless such options set them. A [memory
    /// limit](TrainOptions::memory_limit) does not count memory that the sampler itself allocates.
    /// `examples/polya_urn` is such a sampler.
    ///
    /// # Errors
    /// As [`with_init`](Self::with_init).
    pub fn with_sampler<S>(
        corpus: C,
        options: &TrainOptions,
        sampler: S,
        init: Init<'_>,
    ) -> Result<Self, OptionsError>
    where
        S: Sampler<u16, Scratch: std::fmt::Debug + 'static>
            + Sampler<u32, Scratch: std::fmt::Debug + 'static>
            + Send
            + 'static,
    {
        let options = custom_options(options);
        Self::begin(corpus, &options, init, Some(Arc::new(Arc::new(sampler))))
    }

    /// Writes snapshots during [`run`](Self::run).
    ///
    /// # Errors
    /// [`FileError`], if the directory cannot be created or read, or already holds snapshots and
    /// [`take_over`](Checkpoints::take_over) is not set.
    pub fn checkpoint(&mut self, checkpoints: Checkpoints) -> Result<(), FileError> {
        self.checkpoints = Some(CheckpointWriter::start(checkpoints, self.epoch)?);
        Ok(())
    }

    /// Computes held-out perplexity at every evaluation of [`run`](Self::run), and stops early if
    /// `held_out` asks for it. Must be set again after [`resume`](Self::resume).
    ///
    /// # Errors
    /// [`CompletionError`], if the held-out documents cannot be evaluated.
    pub fn early_stopping(&mut self, held_out: HeldOut) -> Result<(), CompletionError> {
        let once = CompletionOptions { burn_in: 0, samples: 1, ..held_out.completion };
        self.perplexity_of(&held_out.corpus, &once)?;
        if held_out.completion.samples == 0 {
            return Err(CompletionError::NoSamples);
        }
        self.held_out = Some(held_out);
        Ok(())
    }

    /// Perplexity of other documents with the corpus's word ids, by document completion
    /// ([`eval::perplexity`](crate::eval::perplexity)).
    ///
    /// # Errors
    /// [`CompletionError`], for example if no document can be evaluated.
    pub fn perplexity_of(
        &self,
        documents: &Corpus,
        options: &CompletionOptions,
    ) -> Result<DocumentCompletion, CompletionError> {
        let (corpus, engine) = (&*self.corpus, &self.engine);
        install(&self.pool, || engine.perplexity_of(corpus, documents, options))
    }

    /// Perplexity of the held-out documents, if there are any.
    fn held_out_perplexity(&self) -> Option<f64> {
        let held_out = self.held_out.as_ref()?;
        let found = self.perplexity_of(&held_out.corpus, &held_out.completion);
        Some(found.expect("the held-out documents were checked").perplexity())
    }

    /// Takes a snapshot if one is due, and after the last epoch; reports the result of the previous one.
    fn keep(&mut self, observer: &mut impl Observer, is_last: bool) {
        let Some(mut checkpoints) = self.checkpoints.take() else { return };
        let mut report = |outcome: Option<Result<PathBuf, FileError>>| {
            if let Some(outcome) = outcome {
                observer.checkpoint(outcome.as_deref());
            }
        };
        let due = checkpoints.is_due(self.epoch) || is_last && checkpoints.is_behind(self.epoch);
        report(checkpoints.outcome(due || is_last));
        if due {
            checkpoints.write(self.snapshot());
        }
        if is_last {
            report(checkpoints.outcome(true));
        }
        self.checkpoints = Some(checkpoints);
    }

    /// Resumes a run from `snapshot`. It gives the same bits as a run that was never interrupted.
    ///
    /// `options` set the limits and the number of threads; all others must be the run's, as
    /// [`Snapshot::options`] returns them. `epochs` and `seconds` count from the start of the run.
    ///
    /// # Errors
    /// [`ResumeError`], if corpus or options are not the run's, or the snapshot is inconsistent.
    pub fn resume(
        corpus: C,
        snapshot: &Snapshot,
        options: &TrainOptions,
    ) -> Result<Self, ResumeError> {
        Self::resume_run(corpus, snapshot, options, None)
    }

    /// As [`resume`](Self::resume), for a run of [`with_sampler`](Self::with_sampler). State inside
    /// the sampler is not in a snapshot: it must follow from the assignments and the random
    /// streams.
    ///
    /// # Errors
    /// As [`resume`](Self::resume).
    pub fn resume_with_sampler<S>(
        corpus: C,
        snapshot: &Snapshot,
        options: &TrainOptions,
        sampler: S,
    ) -> Result<Self, ResumeError>
    where
        S: Sampler<u16, Scratch: std::fmt::Debug + 'static>
            + Sampler<u32, Scratch: std::fmt::Debug + 'static>
            + Send
            + 'static,
    {
        let options = custom_options(options);
        Self::resume_run(corpus, snapshot, &options, Some(Arc::new(Arc::new(sampler))))
    }

    /// α and β of the last epoch: those of the options, unless they are learnt or α follows topic
    /// sizes.
    pub fn priors(&self) -> (Alpha, f64) {
        self.engine.priors()
    }

    /// A snapshot of the run: a copy of [`Snapshot::memory`] bytes.
    pub fn snapshot(&self) -> Snapshot {
        let (corpus, resolved) = (&*self.corpus, self.resolved.clone());
        let (alpha_now, beta_now) = self.priors();
        Snapshot {
            resolved,
            limits: TrainOptions::default().limits_of(&self.options),
            epoch: self.epoch,
            seconds: self.seconds,
            evaluations: self.evaluations.clone(),
            perplexities: self.perplexities.clone(),
            rounds: self.engine.rounds(),
            alpha_now,
            beta_now,
            corpus: CorpusId::of(corpus),
            vocabulary: hash_of_words(corpus),
            pseudo: self.pseudo.clone(),
            carried: self.engine.carried(corpus),
        }
    }

    /// Samples every token once; no likelihood is computed.
    pub fn epoch(&mut self) -> EpochReport {
        let start = Instant::now();
        if self.warming_up.is_some() && self.epoch >= self.resolved.warm_up {
            self.end_warm_up();
        }
        let (epoch, resolved) =
            (self.epoch + 1, self.warming_up.as_ref().unwrap_or(&self.resolved));
        let (corpus, engine) = (&*self.corpus, &mut self.engine);
        let pass = install(&self.pool, || engine.epoch(corpus, resolved, epoch));
        let seconds = start.elapsed().as_secs_f64();
        self.epoch = epoch;
        self.seconds += seconds;
        self.report(&pass, self.corpus.num_tokens(), seconds)
    }

    /// Report of an epoch over so many tokens that took `seconds`; nothing is evaluated.
    fn report(&self, pass: &PassReport, tokens: u64, seconds: f64) -> EpochReport {
        let resolved = self.warming_up.as_ref().unwrap_or(&self.resolved);
        let share = |part: u64, whole: u64| part as f64 / whole.max(1) as f64;
        EpochReport {
            epoch: self.epoch,
            sampler: resolved.sampler,
            seconds: self.seconds,
            tokens_per_second: tokens as f64 / seconds.max(1e-9),
            tokens,
            sampled: resolved.exclude_converged_from.map(|_| share(pass.tokens, tokens)),
            changed: share(pass.changed, pass.tokens),
            acceptance: (pass.proposed > 0).then(|| share(pass.accepted, pass.proposed)),
            acceptance_with_repeats: (pass.proposed + pass.repeated > 0)
                .then(|| share(pass.accepted + pass.repeated, pass.proposed + pass.repeated)),
            mh_steps: self.engine.mh_steps(resolved),
            log_joint: None,
            log_joint_doc: None,
            log_joint_word: None,
            perplexity: None,
        }
    }

    /// Ends a warm-up of the default length after half of the seconds of the run, as it has at most
    /// half of the epochs: both are meant for the sampler.
    fn shorten_warm_up(&mut self) {
        let is_default = self.options.warm_up.is_none();
        let half = self.options.seconds.filter(|_| is_default).map(|seconds| seconds / 2.0);
        if self.warming_up.is_some() && half.is_some_and(|half| self.seconds >= half) {
            self.resolved.warm_up = self.resolved.warm_up.min(self.epoch);
        }
    }

    /// Ends the warm-up: the sampler continues from its topics.
    fn end_warm_up(&mut self) {
        let assignments = self.assignments();
        let (alpha, beta) = self.priors();
        // The warm-up's state is dropped before the sampler's is built, to save memory.
        self.engine = AnyEngine::empty();
        let setup = SamplerSetup { options: &self.resolved, custom: self.custom.as_deref() };
        self.engine = AnyEngine::new(&self.corpus, setup, Some(&assignments), &self.pseudo)
            .expect("its rows were checked");
        self.engine.set_priors(&alpha, beta);
        self.warming_up = None;
        self.evaluations.clear();
        self.perplexities.clear();
    }

    /// Whether the run has reached the limits of its options: epochs, seconds, or a rule for
    /// evaluations. A run that was resumed may have.
    pub fn is_finished(&self) -> bool {
        self.is_spent() || self.is_level()
    }

    /// Whether the run has had all of its epochs or seconds.
    fn is_spent(&self) -> bool {
        self.options.epochs.is_some_and(|n| self.epoch >= n)
            || self.options.seconds.is_some_and(|s| self.seconds >= s)
    }

    /// Whether its evaluations end the run.
    fn is_level(&self) -> bool {
        let is_over = |held_out: &HeldOut| held_out.is_over(&self.perplexities);
        self.warming_up.is_none()
            && (self.level_off().is_some_and(|rule| rule.is_reached(&self.evaluations))
                || self.held_out.as_ref().is_some_and(is_over))
    }

    /// Whether held-out documents may end the run.
    fn is_judged(&self) -> bool {
        self.held_out.as_ref().is_some_and(HeldOut::ends)
    }

    /// The rule for the likelihoods: that of the options, or the default if nothing else ends the
    /// run.
    fn level_off(&self) -> Option<LevelOff> {
        let TrainOptions { epochs, seconds, level_off, .. } = &self.options;
        let is_bounded = self.is_judged() || epochs.is_some() || seconds.is_some();
        level_off.or_else(|| (!is_bounded).then(LevelOff::default))
    }

    /// Runs epochs until the options, the observer or `cancelled` end the run: at least one, unless
    /// it [is finished](Self::is_finished) already. The report of such a run has no tokens.
    pub fn run(
        &mut self,
        mut observer: impl Observer,
        cancelled: impl Fn() -> bool,
    ) -> EpochReport {
        if self.is_finished() {
            return self.report(&PassReport::default(), 0, 0.0);
        }
        // Both rules need evaluations.
        let every = match self.options.evaluate_every {
            0 if self.is_judged() || self.level_off().is_some() => 10,
            every => every,
        };
        loop {
            self.shorten_warm_up();
            let mut report = self.epoch();
            let spent = self.is_spent() || cancelled();
            let mut level = false;
            if every > 0 && (spent || self.epoch.is_multiple_of(every)) {
                let joint = self.log_joint();
                report.set_log_joint(joint);
                self.evaluations.push(joint.per_token(self.corpus.num_tokens()));
                report.perplexity = self.held_out_perplexity();
                self.perplexities.extend(report.perplexity);
                level = self.is_level();
            }
            let is_last = observer.epoch(&report) == Flow::Stop || spent || level;
            self.keep(&mut observer, is_last);
            if is_last {
                return report;
            }
        }
    }

    /// The corpus.
    pub fn corpus(&self) -> &Corpus {
        &self.corpus
    }

    /// Epochs sampled so far.
    pub fn epochs(&self) -> u32 {
        self.epoch
    }

    /// Pseudo-counts that the run started with.
    pub fn pseudo_counts(&self) -> Option<&PseudoCounts> {
        self.pseudo.as_deref()
    }

    /// The resolved options. A run with a limit of [seconds](TrainOptions::seconds) may shorten a
    /// default warm-up; the options then have the length that it had.
    pub fn resolved(&self) -> &Resolved {
        &self.resolved
    }

    /// Bytes of the state, without the corpus.
    pub fn memory(&self) -> u64 {
        self.engine.memory()
    }

    /// Log joint likelihood log p(W, Z | α, β) of the current state; log p(W, Z | α, β, B) where there
    /// are pseudo-counts.
    pub fn log_joint(&self) -> LogJoint {
        let (corpus, engine) = (&*self.corpus, &self.engine);
        let pseudo = self.pseudo.as_deref();
        install(&self.pool, || engine.log_joint(corpus, pseudo))
    }

    /// Log likelihood of the training words given θ and φ of the current state
    /// ([`eval::predictive`](crate::eval::predictive)).
    pub fn log_predictive(&self) -> f64 {
        let (corpus, engine) = (&*self.corpus, &self.engine);
        install(&self.pool, || engine.log_predictive(corpus))
    }

    /// Diagnostics of the topics, by their `words` most probable words
    /// ([`eval::diagnostics`](crate::eval::diagnostics)).
    pub fn diagnose(&self, words: usize) -> Diagnostics {
        let (corpus, engine) = (&*self.corpus, &self.engine);
        install(&self.pool, || engine.diagnose(corpus, words))
    }

    /// A model of the current state.
    pub fn model(&self) -> TopicModel {
        self.engine
            .model(&self.corpus)
            .with_vocabulary(self.corpus.vocabulary().cloned())
            .with_provenance(self.provenance())
    }

    fn provenance(&self) -> Provenance {
        // A run may end within its warm-up: all of its epochs are then WarpLDA's.
        let warm_up = self.resolved.warm_up.min(self.epoch);
        let resolved = Resolved { warm_up, ..self.resolved.clone() };
        Provenance {
            options: resolved.to_named(),
            initial_alpha: Some(self.resolved.alpha.clone()),
            epochs: Some(self.epoch),
            log_joint: self.evaluations.last().copied(),
            documents: Some(self.corpus.num_documents() as u64),
            tokens: Some(self.corpus.num_tokens()),
            corpus: Some(self.corpus.fingerprint()),
            pseudo_counts: self.pseudo_counts().map(PseudoCounts::fingerprint),
            notes: Vec::new(),
        }
    }

    /// The current topic of every token.
    pub fn assignments(&self) -> Assignments {
        self.engine.assignments(&self.corpus)
    }

    /// Compares all counts with a recount from the assignments.
    ///
    /// # Errors
    /// [`CountsError`] names the first count that is wrong.
    pub fn check(&self) -> Result<(), CountsError> {
        self.engine.check(&self.corpus)
    }
}

/// Runs `f` in the run's own pool, or in the caller's.
fn install<R: Send>(pool: &Option<rayon::ThreadPool>, f: impl FnOnce() -> R + Send) -> R {
    match pool {
        Some(pool) => pool.install(f),
        None => f(),
    }
}
