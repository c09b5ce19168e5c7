//! The trainer: a run that is driven epoch by epoch or to its end.

mod setup;

use std::ops::Deref;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

pub(in crate::train) use self::setup::{check_width, custom_options, pool};
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
use crate::train::options::{OptionsError, Resolved, TrainOptions};
use crate::train::pass::PassReport;
use crate::train::progress::Progress;
use crate::train::registry::{CustomSampler, SamplerSetup};
use crate::train::report::{EpochReport, Flow, Observer};
use crate::train::run_record::{CorpusId, RunRecord};
use crate::train::seed_counts::{Pseudo, PseudoCounts};
use crate::train::snapshot::{ResumeError, Snapshot};
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
    progress: Progress,
    /// The sampler of [`SamplerKind::Custom`](crate::train::SamplerKind::Custom).
    custom: Custom,
    engine: AnyEngine,
    pool: Option<rayon::ThreadPool>,
    checkpoints: Option<CheckpointWriter>,
    pseudo: Pseudo,
    held_out: Option<HeldOut>,
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
        self.checkpoints = Some(CheckpointWriter::start(checkpoints, self.epochs())?);
        Ok(())
    }

    /// Computes held-out perplexity at every evaluation of [`run`](Self::run), and stops early if
    /// `held_out` asks for it. Must be set again after [`resume`](Self::resume).
    ///
    /// # Errors
    /// [`CompletionError`], if the held-out documents cannot be evaluated.
    pub fn early_stopping(&mut self, held_out: HeldOut) -> Result<(), CompletionError> {
        held_out.check(|documents, once| self.perplexity_of(documents, once))?;
        self.progress.patience = Some(held_out.rule);
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
        let found = self.perplexity_of(&held_out.documents, &held_out.completion);
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
        let epoch = self.epochs();
        let due = checkpoints.is_due(epoch) || is_last && checkpoints.is_behind(epoch);
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
        let corpus = &*self.corpus;
        let of_engine = (self.engine.rounds(), self.priors());
        let documents = (CorpusId::of(corpus), corpus.vocabulary());
        Snapshot {
            run: RunRecord::new(&self.progress, of_engine, documents, &self.pseudo),
            carried: self.engine.carried(corpus),
        }
    }

    /// Samples every token once; no likelihood is computed.
    pub fn epoch(&mut self) -> EpochReport {
        let start = Instant::now();
        if self.progress.ends_warm_up() {
            self.end_warm_up();
        }
        let (epoch, resolved) = (self.progress.epoch + 1, self.progress.current());
        let (corpus, engine) = (&*self.corpus, &mut self.engine);
        let pass = install(&self.pool, || engine.epoch(corpus, resolved, epoch));
        let seconds = start.elapsed().as_secs_f64();
        self.progress.note_epoch(seconds);
        self.report(&pass, self.corpus.num_tokens(), seconds)
    }

    fn report(&self, pass: &PassReport, tokens: u64, seconds: f64) -> EpochReport {
        let mh_steps = self.engine.mh_steps(self.progress.current());
        self.progress.report(pass, tokens, seconds, mh_steps)
    }

    /// Ends the warm-up: the sampler continues from its topics.
    fn end_warm_up(&mut self) {
        let assignments = self.assignments();
        let (alpha, beta) = self.priors();
        // The warm-up's state is dropped before the sampler's is built, to save memory.
        self.engine = AnyEngine::empty();
        let resolved = &self.progress.resolved;
        let setup = SamplerSetup { options: resolved, custom: self.custom.as_deref() };
        self.engine = AnyEngine::new(&self.corpus, setup, Some(&assignments), &self.pseudo)
            .expect("its rows were checked");
        self.engine.set_priors(&alpha, beta);
        self.progress.end_warm_up();
    }

    /// Whether the run has reached the limits of its options: epochs, seconds, or a rule for
    /// evaluations. A run that was resumed may have.
    pub fn is_finished(&self) -> bool {
        self.progress.is_finished()
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
        loop {
            self.progress.shorten_warm_up();
            let mut report = self.epoch();
            let spent = self.progress.is_spent() || cancelled();
            let mut level = false;
            if self.progress.is_evaluated(spent) {
                let (joint, perplexity) = (self.log_joint(), self.held_out_perplexity());
                let tokens = self.corpus.num_tokens();
                level = self.progress.note_evaluation(&mut report, joint, perplexity, tokens);
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
        self.progress.epoch
    }

    /// Pseudo-counts that the run started with.
    pub fn pseudo_counts(&self) -> Option<&PseudoCounts> {
        self.pseudo.as_deref()
    }

    /// The resolved options. A run with a limit of [seconds](TrainOptions::seconds) may shorten a
    /// default warm-up; the options then have the length that it had.
    pub fn resolved(&self) -> &Resolved {
        &self.progress.resolved
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
        Provenance {
            documents: Some(self.corpus.num_documents() as u64),
            tokens: Some(self.corpus.num_tokens()),
            corpus: Some(self.corpus.fingerprint()),
            pseudo_counts: self.pseudo_counts().map(PseudoCounts::fingerprint),
            ..self.progress.provenance()
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
pub(in crate::train) fn install<R: Send>(
    pool: &Option<rayon::ThreadPool>,
    f: impl FnOnce() -> R + Send,
) -> R {
    match pool {
        Some(pool) => pool.install(f),
        None => f(),
    }
}
