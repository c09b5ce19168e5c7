//! The trainer: a run that is driven epoch by epoch or to its end.

use std::ops::Deref;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use crate::container::FileError;
use crate::corpus::Corpus;
use crate::counts::RowsTooLarge;
use crate::eval::{
    CompletionError, CompletionOptions, Diagnostics, DocumentCompletion, LogJoint, Phi, Ranking,
    diagnose, held_out_perplexity, log_joint, log_predictive, top_words,
};
use crate::model::{Provenance, TopicModel};
use crate::prior::{Alpha, check_beta};
use crate::sampler::Sampler;
use crate::train::assignments::Assignments;
use crate::train::checkpoint::{CheckpointWriter, Checkpoints};
use crate::train::engine::Engine;
use crate::train::held_out::HeldOut;
use crate::train::options::{
    LevelOff, OptionsError, Resolved, SamplerKind, SamplerOptions, TrainOptions,
};
use crate::train::pass::PassReport;
use crate::train::registry::{CustomSampler, SamplerSetup};
use crate::train::report::{EpochReport, Flow, Observer};
use crate::train::seed_counts::{Pseudo, PseudoCounts};
use crate::train::snapshot::{CorpusId, ResumeError, Snapshot, Width};
use crate::train::state::CountsError;
use crate::train::view::CountsView;

/// Initial state of a run: pseudo-counts and first topics.
#[derive(Clone, Debug, Default)]
pub struct Init<'a> {
    /// Seeds of topics, or a model to go on from ([`seed_counts`](crate::train::seed_counts)).
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

#[derive(Debug)]
enum AnyEngine {
    Narrow(Engine<u16>),
    Wide(Engine<u32>),
}

/// The caller's sampler, if there is one.
type Custom = Option<Arc<dyn CustomSampler>>;

impl AnyEngine {
    fn new(
        corpus: &Corpus,
        setup: SamplerSetup<'_>,
        from: Option<&Assignments>,
        pseudo: &Pseudo,
    ) -> Result<Self, RowsTooLarge> {
        Ok(if setup.options.narrow {
            Self::Narrow(Engine::new(corpus, setup, from, pseudo)?)
        } else {
            Self::Wide(Engine::new(corpus, setup, from, pseudo)?)
        })
    }
}

/// Runs the body for either topic width.
macro_rules! any_engine {
    ($engine:expr, $e:ident => $body:expr) => {
        match $engine {
            AnyEngine::Narrow($e) => $body,
            AnyEngine::Wide($e) => $body,
        }
    };
}

impl<C: Deref<Target = Corpus>> Trainer<C> {
    /// Checks the options, lays the corpus out and draws the first topics.
    ///
    /// # Errors
    /// [`OptionsError`] names the option, its value and what to do.
    pub fn new(corpus: C, options: &TrainOptions) -> Result<Self, OptionsError> {
        Self::with_init(corpus, options, Init::default())
    }

    /// Starts from seeds of topics, a model, or given topics.
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

    /// A run with a [`Sampler`] of the caller. It gets everything that the library's samplers get:
    /// epochs, threads, warm-up, evaluation, checkpoints, the same bits at any thread count.
    ///
    /// The sampler in `options` is replaced by [`SamplerOptions::Custom`], unless it is that already;
    /// first epoch of an exclusion stays. A [memory limit](TrainOptions::memory_limit) does not count
    /// what the sampler itself allocates. `examples/polya_urn.rs` is such a sampler.
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

    fn begin(
        corpus: C,
        options: &TrainOptions,
        init: Init<'_>,
        custom: Custom,
    ) -> Result<Self, OptionsError> {
        let resolved = options.resolve(&corpus)?;
        if let Some(topics) = init.topics {
            topics
                .check(&corpus, resolved.topics)
                .map_err(|reason| OptionsError::Assignments { reason })?;
        }
        let from = StartFrom {
            topics: init.topics,
            epoch: 0,
            pseudo: init.pseudo_counts.map(Arc::new),
            custom,
        };
        Self::from(corpus, options, resolved, from)
    }

    /// A run from the start, or from given topics after some epochs.
    fn from(
        corpus: C,
        options: &TrainOptions,
        resolved: Resolved,
        from: StartFrom<'_>,
    ) -> Result<Self, OptionsError> {
        let StartFrom { topics: first, epoch, pseudo, custom } = from;
        if resolved.sampler == SamplerKind::Custom && custom.is_none() {
            return Err(OptionsError::NoCustomSampler);
        }
        let setup = SamplerSetup { options: &resolved, custom: custom.as_deref() };
        if let Some(sampler) = setup.custom {
            let limit = match resolved.narrow {
                true => sampler.narrow().requires().max_topics,
                false => sampler.wide().requires().max_topics,
            };
            if u64::from(resolved.topics) > limit {
                return Err(OptionsError::TooManyTopics { topics: resolved.topics, limit });
            }
        }
        if let Some(pseudo) = &pseudo {
            resolved.check_pseudo(&corpus, pseudo)?;
        }
        let pool = match options.threads {
            None => None,
            Some(threads) => Some(
                rayon::ThreadPoolBuilder::new()
                    .num_threads(threads)
                    .build()
                    .map_err(|e| OptionsError::Threads { threads, reason: e.to_string() })?,
            ),
        };
        if let Some(limit) = options.memory_limit {
            let threads = options.threads.unwrap_or_else(rayon::current_num_threads);
            let pseudo =
                pseudo.as_ref().map_or(0, |pseudo| resolved.pseudo_memory(&corpus, pseudo));
            let needed = setup.memory(&corpus, threads).total() + pseudo;
            if needed > limit {
                return Err(OptionsError::Memory { needed, limit });
            }
        }
        // INVARIANT: the state is WarpLDA's until the first epoch after the warm-up begins, so that a
        // snapshot taken at its last epoch holds WarpLDA's state.
        let is_warming_up = resolved.warm_up > 0 && epoch <= resolved.warm_up;
        let warming_up = is_warming_up.then(|| resolved.of_warm_up());
        if warming_up.is_some() {
            // The sampler's rows are made when the warm-up ends, too late to return an error.
            setup.check_rows(&corpus, &pseudo)?;
        }
        let setup = match &warming_up {
            Some(options) => SamplerSetup { options, custom: None },
            None => setup,
        };
        let engine = AnyEngine::new(&corpus, setup, first, &pseudo)?;
        let options = options.clone();
        Ok(Self {
            corpus,
            options,
            resolved,
            warming_up,
            custom,
            engine,
            pool,
            epoch,
            seconds: 0.0,
            evaluations: Vec::new(),
            checkpoints: None,
            pseudo,
            held_out: None,
            perplexities: Vec::new(),
        })
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
        Self::install(&self.pool, || {
            any_engine!(engine, engine => {
                let view = CountsView::new(&engine.state, corpus);
                let phi = Phi::from_counts(&view, engine.beta).expect("priors were checked");
                held_out_perplexity(documents, &phi, &engine.alpha, options)
            })
        })
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

    /// [`resume`](Self::resume) for a run of [`with_sampler`](Self::with_sampler). State that the sampler
    /// keeps itself is not in a snapshot: it must follow from the assignments and the random streams.
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

    fn resume_run(
        corpus: C,
        snapshot: &Snapshot,
        options: &TrainOptions,
        custom: Custom,
    ) -> Result<Self, ResumeError> {
        let given = CorpusId::of(&corpus);
        if given != snapshot.corpus {
            let (snapshot, given) = (snapshot.corpus.to_string(), given.to_string());
            return Err(ResumeError::Corpus { snapshot, given });
        }
        let resolved = options.resolve(&corpus)?;
        if let Some((option, snapshot, asked)) = snapshot.resolved.difference(&resolved) {
            return Err(ResumeError::Option { option, snapshot, asked });
        }
        let spent = options.epochs.is_some_and(|n| snapshot.epoch >= n)
            || options.seconds.is_some_and(|limit| snapshot.seconds >= limit);
        if spent {
            let (epochs, seconds) = (snapshot.epoch, snapshot.seconds);
            return Err(ResumeError::Finished { epochs, seconds });
        }
        let nonsense = |reason: &str| ResumeError::Snapshot { reason: reason.to_owned() };
        let topics = resolved.topics as usize;
        snapshot
            .alpha_now
            .check(topics)
            .and_then(|()| check_beta(snapshot.beta_now, corpus.num_words()))
            .map_err(|error| nonsense(&error.to_string()))?;
        let first = match &snapshot.carried {
            Width::Narrow(carried) => Assignments::taken(&corpus, &carried.topics),
            Width::Wide(carried) => Assignments::taken(&corpus, &carried.topics),
        };
        let pseudo = snapshot.pseudo.clone();
        let from = StartFrom { topics: Some(&first), epoch: snapshot.epoch, pseudo, custom };
        let mut trainer = Self::from(corpus, options, resolved, from)?;
        let (rounds, corpus) = (snapshot.rounds, &*trainer.corpus);
        match (&mut trainer.engine, &snapshot.carried) {
            (AnyEngine::Narrow(engine), Width::Narrow(carried)) => {
                engine.take_up(corpus, carried, rounds)
            }
            (AnyEngine::Wide(engine), Width::Wide(carried)) => {
                engine.take_up(corpus, carried, rounds)
            }
            _ => Err("topics: not of the width that the options say"),
        }
        .map_err(nonsense)?;
        let (alpha, beta) = (&snapshot.alpha_now, snapshot.beta_now);
        any_engine!(&mut trainer.engine, engine => engine.set_priors(alpha, beta));
        trainer.seconds = snapshot.seconds;
        trainer.evaluations.clone_from(&snapshot.evaluations);
        trainer.perplexities.clone_from(&snapshot.perplexities);
        Ok(trainer)
    }

    /// α and β of the last epoch: those of the options, unless they are learnt or α follows topic
    /// sizes.
    pub fn priors(&self) -> (Alpha, f64) {
        any_engine!(&self.engine, engine => (engine.alpha.clone(), engine.beta))
    }

    /// A snapshot of the run: a copy of [`Snapshot::memory`] bytes.
    pub fn snapshot(&self) -> Snapshot {
        let (corpus, resolved) = (&*self.corpus, self.resolved.clone());
        let (alpha_now, beta_now) = self.priors();
        let rounds = any_engine!(&self.engine, engine => engine.rounds());
        Snapshot {
            resolved,
            epoch: self.epoch,
            seconds: self.seconds,
            evaluations: self.evaluations.clone(),
            perplexities: self.perplexities.clone(),
            rounds,
            alpha_now,
            beta_now,
            corpus: CorpusId::of(corpus),
            pseudo: self.pseudo.clone(),
            carried: match &self.engine {
                AnyEngine::Narrow(engine) => Width::Narrow(engine.state.carried(corpus)),
                AnyEngine::Wide(engine) => Width::Wide(engine.state.carried(corpus)),
            },
        }
    }

    fn install<R: Send>(pool: &Option<rayon::ThreadPool>, f: impl FnOnce() -> R + Send) -> R {
        match pool {
            Some(pool) => pool.install(f),
            None => f(),
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
        let pass: PassReport = Self::install(
            &self.pool,
            || any_engine!(engine, engine => engine.epoch(corpus, resolved, epoch)),
        );
        let seconds = start.elapsed().as_secs_f64();
        self.epoch = epoch;
        self.seconds += seconds;
        let share = |part: u64, whole: u64| part as f64 / whole.max(1) as f64;
        EpochReport {
            epoch,
            sampler: resolved.sampler,
            seconds: self.seconds,
            tokens_per_second: self.corpus.num_tokens() as f64 / seconds.max(1e-9),
            tokens: self.corpus.num_tokens(),
            sampled: resolved
                .exclude_converged_from
                .map(|_| share(pass.tokens, self.corpus.num_tokens())),
            changed: share(pass.changed, pass.tokens),
            acceptance: (pass.proposed > 0).then(|| share(pass.accepted, pass.proposed)),
            mh_steps: any_engine!(&self.engine, engine => engine.mh_steps(resolved)),
            log_joint: None,
            log_joint_doc: None,
            log_joint_word: None,
            perplexity: None,
        }
    }

    /// Ends the warm-up: the sampler continues from its topics.
    fn end_warm_up(&mut self) {
        let assignments = self.assignments();
        let (alpha, beta) = self.priors();
        // The warm-up's state is dropped before the sampler's is built, to save memory.
        self.engine = AnyEngine::Narrow(Engine::empty());
        let setup = SamplerSetup { options: &self.resolved, custom: self.custom.as_deref() };
        self.engine = AnyEngine::new(&self.corpus, setup, Some(&assignments), &self.pseudo)
            .expect("its rows were checked");
        any_engine!(&mut self.engine, engine => engine.set_priors(&alpha, beta));
        self.warming_up = None;
        self.evaluations.clear();
        self.perplexities.clear();
    }

    /// Runs epochs until the options, the observer or `cancelled` end the run; at least one.
    pub fn run(
        &mut self,
        mut observer: impl Observer,
        cancelled: impl Fn() -> bool,
    ) -> EpochReport {
        let judged = self.held_out.as_ref().is_some_and(HeldOut::ends);
        let bounded = judged || self.options.epochs.is_some() || self.options.seconds.is_some();
        let level_off = match self.options.level_off {
            Some(rule) => Some(rule),
            None => (!bounded).then(LevelOff::default),
        };
        loop {
            let mut report = self.epoch();
            let spent = self.options.epochs.is_some_and(|n| self.epoch >= n)
                || self.options.seconds.is_some_and(|s| self.seconds >= s)
                || cancelled();
            // Both rules need evaluations.
            let every = match self.options.evaluate_every {
                0 if judged || level_off.is_some() => 10,
                every => every,
            };
            let mut level = false;
            if every > 0 && (spent || self.epoch.is_multiple_of(every)) {
                let joint = self.log_joint();
                report.set_log_joint(joint);
                self.evaluations.push(joint.per_token(self.corpus.num_tokens()));
                report.perplexity = self.held_out_perplexity();
                self.perplexities.extend(report.perplexity);
                let over = |held_out: &HeldOut| held_out.is_over(&self.perplexities);
                level = self.warming_up.is_none()
                    && (level_off.is_some_and(|rule| has_levelled_off(&self.evaluations, rule))
                        || self.held_out.as_ref().is_some_and(over));
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

    /// The resolved options.
    pub fn resolved(&self) -> &Resolved {
        &self.resolved
    }

    /// Bytes of the state, without the corpus.
    pub fn memory(&self) -> u64 {
        any_engine!(&self.engine, engine => engine.state.memory())
    }

    /// Log joint likelihood log p(W, Z | α, β) of the current state; log p(W, Z | α, β, B) where there
    /// are pseudo-counts.
    pub fn log_joint(&self) -> LogJoint {
        let (corpus, engine) = (&*self.corpus, &self.engine);
        let pseudo = self.pseudo.as_deref();
        Self::install(&self.pool, || {
            any_engine!(engine, engine => {
                let view = CountsView::new(&engine.state, corpus);
                let all = log_joint(&view, &engine.alpha, engine.beta).expect("priors were checked");
                let own = pseudo.map_or(0.0, |pseudo| pseudo.word_part(engine.beta));
                LogJoint { words: all.words - own, ..all }
            })
        })
    }

    /// Log likelihood of the training words given θ and φ of the current state
    /// ([`eval::predictive`](crate::eval::predictive)).
    pub fn log_predictive(&self) -> f64 {
        let (corpus, engine) = (&*self.corpus, &self.engine);
        Self::install(&self.pool, || {
            any_engine!(engine, engine => {
                let view = CountsView::new(&engine.state, corpus);
                log_predictive(&view, corpus, &engine.alpha, engine.beta).expect("priors were checked")
            })
        })
    }

    /// Diagnostics of the topics, by their `words` most probable words
    /// ([`eval::diagnostics`](crate::eval::diagnostics)).
    pub fn diagnose(&self, words: usize) -> Diagnostics {
        let (corpus, engine) = (&*self.corpus, &self.engine);
        Self::install(&self.pool, || {
            any_engine!(engine, engine => {
                let view = CountsView::new(&engine.state, corpus);
                let phi = Phi::from_counts(&view, engine.beta).expect("priors were checked");
                let top = top_words(&view, engine.beta, words, Ranking::Probability)
                    .expect("priors were checked");
                let lists = top.iter().map(|list| list.iter().map(|word| word.word).collect());
                diagnose(&view, &phi, &lists.collect::<Vec<Vec<u32>>>())
            })
        })
    }

    /// A model of the current state.
    pub fn model(&self) -> TopicModel {
        any_engine!(&self.engine, engine => {
            let view = CountsView::new(&engine.state, &self.corpus);
            TopicModel::from_counts(&view, engine.alpha.clone(), engine.beta)
                .with_vocabulary(self.corpus.vocabulary().cloned())
                .with_provenance(self.provenance())
        })
    }

    fn provenance(&self) -> Provenance {
        Provenance {
            options: Some(self.resolved.clone()),
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
        any_engine!(&self.engine, engine => engine.state.assignments(&self.corpus))
    }

    /// Compares all counts with a recount from the assignments.
    ///
    /// # Errors
    /// [`CountsError`] is the first count that is wrong.
    pub fn check(&self) -> Result<(), CountsError> {
        any_engine!(&self.engine, engine => engine.state.check(&self.corpus))
    }
}

/// The start of a run.
struct StartFrom<'a> {
    topics: Option<&'a Assignments>,
    /// Epochs that led to `topics`.
    epoch: u32,
    pseudo: Pseudo,
    custom: Custom,
}

/// `options` with a custom sampler.
fn custom_options(options: &TrainOptions) -> TrainOptions {
    match options.sampler {
        SamplerOptions::Custom { .. } => options.clone(),
        other => {
            let exclude_from = other.exclude_from();
            options.clone().sampler(SamplerOptions::Custom { steps: 0, exclude_from })
        }
    }
}

/// Whether the mean of the last window is less than the tolerance above the mean of the window before.
fn has_levelled_off(evaluations: &[f64], rule: LevelOff) -> bool {
    let window = rule.window.max(1);
    let Some(start) = evaluations.len().checked_sub(2 * window) else { return false };
    let (before, last) = evaluations[start..].split_at(window);
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
    mean(last) - mean(before) < rule.tolerance * mean(before).abs()
}
