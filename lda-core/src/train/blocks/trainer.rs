//! The trainer: a run over blocks that is driven epoch by epoch or to its end.

use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use super::any_engine::{AnyBlockEngine, read_record};
use super::engine::{FromDocuments, Run};
use super::memory::held_blocks;
use super::store::TopicStore;
use super::{BlockRunError, BlockSizes};
use crate::container::FileError;
use crate::corpus::Corpus;
use crate::corpus::blocks::{Blocks, fingerprint};
use crate::eval::{
    CompletionError, CompletionOptions, DocumentCompletion, LogJoint, held_out_perplexity,
};
use crate::model::{Provenance, TopicModel};
use crate::prior::Alpha;
use crate::sampler::Sampler;
use crate::train::held_out::HeldOut;
use crate::train::options::{OptionsError, Resolved, SamplerKind, TrainOptions};
use crate::train::pass::PassReport;
use crate::train::progress::Progress;
use crate::train::registry::{CustomSampler, SamplerSetup};
use crate::train::report::{EpochReport, Flow, Observer};
use crate::train::run_record::{CorpusId, RunRecord};
use crate::train::seed_counts::{Pseudo, PseudoCounts};
use crate::train::snapshot::ResumeError;
use crate::train::state::CountsError;
use crate::train::trainer::{check_width, custom_options, install, pool};

/// A run over blocks, epoch by epoch. The [module](super) says what is in memory and what is in files.
///
/// ```
/// use lda_core::Corpus;
/// use lda_core::corpus::blocks::BlockDirectory;
/// use lda_core::train::TrainOptions;
/// use lda_core::train::blocks::BlockTrainer;
///
/// let path = std::env::temp_dir().join(format!("lda-block-trainer-{}", std::process::id()));
/// let themes = [["tree", "leaf", "wood"], ["sea", "wave", "foam"]];
/// let corpus = Corpus::from_words((0..40).map(|d| themes[d % 2]))?;
/// let blocks = BlockDirectory::cut(&corpus, 30, path.join("blocks"))?;
///
/// let options = TrainOptions::new(2).epochs(20);
/// let mut trainer = BlockTrainer::new(&blocks, &options, path.join("run"))?;
/// let last = trainer.run((), || false)?;
/// assert_eq!((last.epoch, last.tokens), (20, 120));
/// let model = trainer.model();
/// trainer.remove_files()?;
/// # std::fs::remove_dir_all(&path)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct BlockTrainer<B> {
    blocks: B,
    store: TopicStore,
    progress: Progress,
    custom: Option<Arc<dyn CustomSampler>>,
    /// None after an error.
    engine: Option<AnyBlockEngine>,
    pool: Option<rayon::ThreadPool>,
    pseudo: Pseudo,
    /// Number of blocks that stay in memory.
    held: usize,
    /// The last epoch of the warm-up, if it is over.
    handed_over: Option<u32>,
}

/// The caller's sampler, if there is one.
type Custom = Option<Arc<dyn CustomSampler>>;

/// Start of a run over blocks.
struct Begin<'a> {
    options: &'a TrainOptions,
    store: TopicStore,
    pseudo: Pseudo,
    custom: Custom,
}

impl<B: Blocks> BlockTrainer<B> {
    /// Checks the options, reads all blocks once, and draws their first topics. The directory is created if it
    /// is missing.
    ///
    /// With a [memory limit](TrainOptions::memory_limit), as many blocks stay in memory as it allows; without
    /// one, none do.
    ///
    /// # Errors
    /// [`BlockRunError`], also if the directory has the files of another run.
    pub fn new(
        blocks: B,
        options: &TrainOptions,
        directory: impl AsRef<Path>,
    ) -> Result<Self, BlockRunError> {
        Self::with_pseudo_counts(blocks, options, directory, None)
    }

    /// As [`new`](Self::new), from seed words of topics or from a model.
    ///
    /// # Errors
    /// As [`new`](Self::new), and if the pseudo-counts do not fit the documents and the options.
    pub fn with_pseudo_counts(
        blocks: B,
        options: &TrainOptions,
        directory: impl AsRef<Path>,
        pseudo_counts: Option<PseudoCounts>,
    ) -> Result<Self, BlockRunError> {
        let (store, pseudo) =
            (TopicStore::create(directory.as_ref())?, pseudo_counts.map(Arc::new));
        Self::begin(blocks, Begin { options, store, pseudo, custom: None })
    }

    /// As [`with_pseudo_counts`](Self::with_pseudo_counts), with a sampler of the caller
    /// ([`Trainer::with_sampler`](crate::train::Trainer::with_sampler)).
    ///
    /// # Errors
    /// As [`with_pseudo_counts`](Self::with_pseudo_counts).
    pub fn with_sampler<S>(
        blocks: B,
        options: &TrainOptions,
        directory: impl AsRef<Path>,
        sampler: S,
        pseudo_counts: Option<PseudoCounts>,
    ) -> Result<Self, BlockRunError>
    where
        S: Sampler<u16, Scratch: std::fmt::Debug + 'static>
            + Sampler<u32, Scratch: std::fmt::Debug + 'static>
            + Send
            + 'static,
    {
        let (store, pseudo) =
            (TopicStore::create(directory.as_ref())?, pseudo_counts.map(Arc::new));
        let (options, custom) = (custom_options(options), Arc::new(Arc::new(sampler)));
        Self::begin(blocks, Begin { options: &options, store, pseudo, custom: Some(custom) })
    }

    /// A new run.
    fn begin(blocks: B, begin: Begin<'_>) -> Result<Self, BlockRunError> {
        let resolved = resolve(&blocks, begin.options, &begin.pseudo)?;
        let progress = Progress::new(begin.options, resolved, 0);
        let mut trainer = Self::without_counts(blocks, begin, progress)?;
        trainer.count(None)?;
        trainer.keep()?;
        Ok(trainer)
    }

    /// A run whose tokens are not counted yet.
    fn without_counts(
        blocks: B,
        begin: Begin<'_>,
        progress: Progress,
    ) -> Result<Self, BlockRunError> {
        let Begin { options, store, pseudo, custom } = begin;
        let resolved = &progress.resolved;
        if resolved.sampler == SamplerKind::Custom && custom.is_none() {
            return Err(OptionsError::NoCustomSampler.into());
        }
        let setup = SamplerSetup { options: resolved, custom: custom.as_deref() };
        check_width(setup)?;
        if let Some(pseudo) = &pseudo {
            resolved.check_pseudo(&sizes(&blocks), pseudo)?;
        }
        let pool = options.threads.map(pool).transpose()?;
        let held = held_blocks(&blocks, setup, options)?;
        Ok(Self {
            blocks,
            store,
            progress,
            custom,
            engine: None,
            pool,
            pseudo,
            held,
            handed_over: None,
        })
    }

    /// Goes on with a run from the last epoch that was completed, with the same bits as one that was never
    /// interrupted.
    ///
    /// `options` set the limits and the number of threads; all others must be the run's, as
    /// [`options_of`](Self::options_of) returns them.
    ///
    /// # Errors
    /// [`BlockRunError`], if documents or options are not the run's, or a file is missing or damaged.
    pub fn resume(
        blocks: B,
        options: &TrainOptions,
        directory: impl AsRef<Path>,
    ) -> Result<Self, BlockRunError> {
        Self::resume_run(blocks, options, directory.as_ref(), None)
    }

    /// As [`resume`](Self::resume), for a run of [`with_sampler`](Self::with_sampler).
    ///
    /// # Errors
    /// As [`resume`](Self::resume).
    pub fn resume_with_sampler<S>(
        blocks: B,
        options: &TrainOptions,
        directory: impl AsRef<Path>,
        sampler: S,
    ) -> Result<Self, BlockRunError>
    where
        S: Sampler<u16, Scratch: std::fmt::Debug + 'static>
            + Sampler<u32, Scratch: std::fmt::Debug + 'static>
            + Send
            + 'static,
    {
        let (options, custom) = (custom_options(options), Arc::new(Arc::new(sampler)));
        Self::resume_run(blocks, &options, directory.as_ref(), Some(custom))
    }

    fn resume_run(
        blocks: B,
        options: &TrainOptions,
        directory: &Path,
        custom: Custom,
    ) -> Result<Self, BlockRunError> {
        let store = TopicStore::open(directory);
        let (record, words) = read_record(&store)?;
        let resolved = resolve(&blocks, options, &record.pseudo)?;
        record.check(corpus_id(&blocks), blocks.vocabulary(), &resolved)?;
        store.remove_other_epochs(record.epoch)?;
        let progress = Progress::new(options, resolved, record.epoch);
        let begin = Begin { options, store, pseudo: record.pseudo.clone(), custom };
        let mut trainer = Self::without_counts(blocks, begin, progress)?;
        trainer.count(Some(record.epoch))?;
        let engine = trainer.engine.as_mut().expect("it was made");
        engine
            .restore(&record, &words)
            .map_err(|reason| ResumeError::Snapshot { reason: reason.to_owned() })?;
        record.restore(&mut trainer.progress);
        Ok(trainer)
    }

    /// Options to [resume](Self::resume) the run of a directory with: those that affect draws and those that
    /// decide when to stop.
    ///
    /// # Errors
    /// [`FileError`], if the directory has no run, or its record is damaged.
    pub fn options_of(directory: impl AsRef<Path>) -> Result<TrainOptions, FileError> {
        let (record, _) = read_record(&TopicStore::open(directory.as_ref()))?;
        Ok(TrainOptions::from(&record.resolved).limits_of(&record.limits))
    }

    /// Counts all tokens for the sampler that is at work: with drawn topics, or those after an epoch.
    fn count(&mut self, after: Option<u32>) -> Result<(), BlockRunError> {
        let Parts { engine, run, pool } = self.parts();
        *engine = None;
        *engine = Some(install(pool, || AnyBlockEngine::start(run, after))?);
        Ok(())
    }

    fn parts(&mut self) -> Parts<'_, B> {
        let Self { blocks, store, progress, custom, engine, pool, pseudo, held, handed_over } =
            self;
        // The warm-up is WarpLDA's.
        let custom = custom.as_deref().filter(|_| progress.warming_up.is_none());
        let setup = SamplerSetup { options: progress.current(), custom };
        let (held, handed_over) = (*held, *handed_over);
        Parts { engine, run: Run { blocks, store, setup, held, pseudo, handed_over }, pool }
    }

    /// Calls `f` with the engine, in the run's pool. After an error the run cannot go on.
    fn with<R: Send>(
        &mut self,
        f: impl FnOnce(&mut AnyBlockEngine, Run<'_, B>) -> Result<R, BlockRunError> + Send,
    ) -> Result<R, BlockRunError> {
        let Parts { engine, run, pool } = self.parts();
        let mut own = engine.take().ok_or(BlockRunError::Failed)?;
        let done = install(pool, || f(&mut own, run))?;
        *engine = Some(own);
        Ok(done)
    }

    /// The engine, for what needs no block.
    fn engine(&self) -> Result<&AnyBlockEngine, BlockRunError> {
        self.engine.as_ref().ok_or(BlockRunError::Failed)
    }

    /// Samples every token once, and writes their topics; no likelihood is computed.
    ///
    /// # Errors
    /// [`BlockRunError::File`], if a block cannot be read or written. The trainer cannot go on then; the run can
    /// be [resumed](Self::resume).
    pub fn epoch(&mut self) -> Result<EpochReport, BlockRunError> {
        let (report, _) = self.sample(false)?;
        self.keep()?;
        Ok(report)
    }

    /// Samples every token once. The document part of the log joint is found if the epoch is evaluated.
    fn sample(
        &mut self,
        is_evaluated: bool,
    ) -> Result<(EpochReport, FromDocuments), BlockRunError> {
        let start = Instant::now();
        if self.progress.ends_warm_up() {
            self.end_warm_up()?;
        }
        let epoch = self.progress.epoch + 1;
        let (pass, found) = self.with(|engine, run| engine.epoch(run, epoch, is_evaluated))?;
        let seconds = start.elapsed().as_secs_f64();
        self.progress.note_epoch(seconds);
        Ok((self.report(&pass, self.num_tokens(), seconds)?, found))
    }

    /// Ends the warm-up: the sampler continues from its topics.
    fn end_warm_up(&mut self) -> Result<(), BlockRunError> {
        let (epoch, priors) = (self.progress.epoch, self.engine()?.priors());
        self.handed_over = Some(epoch);
        self.progress.end_warm_up();
        self.count(Some(epoch))?;
        if let Some(engine) = &mut self.engine {
            engine.set_priors(&priors);
        }
        Ok(())
    }

    /// Records that the last epoch is complete.
    fn keep(&mut self) -> Result<(), BlockRunError> {
        let engine = self.engine()?;
        let of_engine = (engine.rounds(), engine.priors());
        let documents = (corpus_id(&self.blocks), self.blocks.vocabulary());
        let record = RunRecord::new(&self.progress, of_engine, documents, &self.pseudo);
        let kept = engine.keep(&self.store, &record);
        if kept.is_err() {
            self.engine = None;
        }
        Ok(kept?)
    }

    /// Report of an epoch over so many tokens that took `seconds`; nothing is evaluated.
    fn report(
        &self,
        pass: &PassReport,
        tokens: u64,
        seconds: f64,
    ) -> Result<EpochReport, BlockRunError> {
        let mh_steps = self.engine()?.mh_steps(self.progress.current());
        Ok(self.progress.report(pass, tokens, seconds, mh_steps))
    }

    /// Runs epochs until the options, the observer or `cancelled` end the run: at least one, unless
    /// it [is finished](Self::is_finished) already. The report of such a run has no tokens.
    ///
    /// # Errors
    /// As [`epoch`](Self::epoch).
    pub fn run(
        &mut self,
        mut observer: impl Observer,
        cancelled: impl Fn() -> bool,
    ) -> Result<EpochReport, BlockRunError> {
        if self.is_finished() {
            return self.report(&PassReport::default(), 0, 0.0);
        }
        loop {
            self.progress.shorten_warm_up();
            let (mut report, found) = self.sample(self.progress.expects_evaluation())?;
            let spent = self.progress.is_spent() || cancelled();
            let mut level = false;
            if self.progress.is_evaluated(spent) {
                let epoch = self.progress.epoch;
                let joint = self.with(|engine, run| engine.log_joint(run, epoch, Some(found)))?;
                let (perplexity, tokens) = (self.held_out_perplexity()?, self.num_tokens());
                level = self.progress.note_evaluation(&mut report, joint, perplexity, tokens);
            }
            self.keep()?;
            let is_last = observer.epoch(&report) == Flow::Stop || spent || level;
            if is_last {
                return Ok(report);
            }
        }
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
        self.progress.held_out = Some(held_out);
        Ok(())
    }

    /// Perplexity of other documents with the same word ids, by document completion
    /// ([`eval::perplexity`](crate::eval::perplexity)).
    ///
    /// # Errors
    /// [`CompletionError`], for example if no document can be evaluated.
    ///
    /// # Panics
    /// If the run has failed before.
    pub fn perplexity_of(
        &self,
        documents: &Corpus,
        options: &CompletionOptions,
    ) -> Result<DocumentCompletion, CompletionError> {
        let engine = self.engine().expect("the run has not failed");
        install(&self.pool, || {
            held_out_perplexity(documents, &engine.phi(), &engine.priors().0, options)
        })
    }

    /// Perplexity of the held-out documents, if there are any.
    fn held_out_perplexity(&self) -> Result<Option<f64>, BlockRunError> {
        self.engine()?;
        let Some(held_out) = self.progress.held_out.as_ref() else { return Ok(None) };
        let found = self.perplexity_of(&held_out.corpus, &held_out.completion);
        Ok(Some(found.expect("the held-out documents were checked").perplexity()))
    }

    /// Log joint likelihood log p(W, Z | α, β) of the current state. It reads all blocks.
    ///
    /// # Errors
    /// As [`epoch`](Self::epoch).
    pub fn log_joint(&mut self) -> Result<LogJoint, BlockRunError> {
        let epoch = self.progress.epoch;
        self.with(|engine, run| engine.log_joint(run, epoch, None))
    }

    /// Calls `f(document, topics)` for each document that has tokens, in order: the number of the document in
    /// the whole corpus, and its tokens by topic. It reads all blocks.
    ///
    /// # Errors
    /// As [`epoch`](Self::epoch).
    pub fn visit_documents(
        &mut self,
        mut f: impl FnMut(u64, &[(u32, u32)]) + Send,
    ) -> Result<(), BlockRunError> {
        let epoch = self.progress.epoch;
        self.with(|engine, run| engine.visit_documents(run, epoch, &mut f))
    }

    /// Compares C_w and C_k with a recount from the topics. It reads all blocks, and takes as much memory for
    /// counts again.
    ///
    /// # Errors
    /// As [`epoch`](Self::epoch); within, [`CountsError`] names the first count that is wrong.
    pub fn check(&mut self) -> Result<Result<(), CountsError>, BlockRunError> {
        let epoch = self.progress.epoch;
        self.with(|engine, run| engine.check(run, epoch))
    }

    /// A model of the current state.
    ///
    /// # Panics
    /// If the run has failed before.
    pub fn model(&self) -> TopicModel {
        let engine = self.engine().expect("the run has not failed");
        engine
            .model()
            .with_vocabulary(self.blocks.vocabulary().cloned())
            .with_provenance(self.provenance())
    }

    fn provenance(&self) -> Provenance {
        let CorpusId { documents, tokens, fingerprint, .. } = corpus_id(&self.blocks);
        Provenance {
            documents: Some(documents),
            tokens: Some(tokens),
            corpus: Some(fingerprint),
            pseudo_counts: self.pseudo.as_ref().map(|pseudo| pseudo.fingerprint()),
            ..self.progress.provenance()
        }
    }

    /// Removes the files of the run, which cannot be resumed afterwards.
    ///
    /// # Errors
    /// [`FileError`] of the first file that cannot be removed.
    pub fn remove_files(self) -> Result<(), FileError> {
        self.store.remove()
    }

    /// Pseudo-counts that the run started with.
    pub fn pseudo_counts(&self) -> Option<&PseudoCounts> {
        self.pseudo.as_deref()
    }

    /// The documents.
    pub fn blocks(&self) -> &B {
        &self.blocks
    }

    /// Tokens of all blocks.
    fn num_tokens(&self) -> u64 {
        self.blocks.statistics().num_tokens()
    }

    /// Epochs sampled so far.
    pub fn epochs(&self) -> u32 {
        self.progress.epoch
    }

    /// Returns true if the run has reached the limits of its options: epochs, seconds, or a rule for
    /// evaluations. A run that was resumed may have.
    pub fn is_finished(&self) -> bool {
        self.progress.is_finished()
    }

    /// The resolved options ([`Trainer::resolved`](crate::train::Trainer::resolved)).
    pub fn resolved(&self) -> &Resolved {
        &self.progress.resolved
    }

    /// α and β of the last epoch.
    ///
    /// # Panics
    /// If the run has failed before.
    pub fn priors(&self) -> (Alpha, f64) {
        self.engine().expect("the run has not failed").priors()
    }

    /// Number of blocks that stay in memory: as many as the [memory limit](TrainOptions::memory_limit) allows.
    pub fn held_blocks(&self) -> usize {
        self.held
    }

    /// Bytes of the counts, and of the blocks that stay in memory.
    pub fn memory(&self) -> u64 {
        self.engine.as_ref().map_or(0, AnyBlockEngine::memory)
    }
}

/// The engine, and the parts of a run that it uses.
struct Parts<'a, B> {
    engine: &'a mut Option<AnyBlockEngine>,
    run: Run<'a, B>,
    pool: &'a Option<rayon::ThreadPool>,
}

/// Sizes of documents in blocks.
fn sizes<B: Blocks>(blocks: &B) -> BlockSizes<'_> {
    let largest = blocks.parts().iter().map(|part| part.tokens).max().unwrap_or(0);
    BlockSizes { statistics: blocks.statistics(), largest }
}

/// Checks the options and decides those that are not set.
pub(super) fn resolve<B: Blocks>(
    blocks: &B,
    options: &TrainOptions,
    pseudo: &Pseudo,
) -> Result<Resolved, OptionsError> {
    // A block has two token sets in the hybrid, and sets have numbers of 16 bits.
    if blocks.parts().len() > MAX_BLOCKS {
        return Err(OptionsError::Value {
            option: "blocks",
            value: blocks.parts().len().to_string(),
            remedy: "cut the documents into 32,768 blocks at most",
        });
    }
    options.resolve_with(&sizes(blocks), pseudo)
}

/// Largest number of blocks.
const MAX_BLOCKS: usize = 1 << 15;

/// Identifies the documents of all blocks.
fn corpus_id<B: Blocks>(blocks: &B) -> CorpusId {
    let statistics = blocks.statistics();
    let words = statistics.num_words();
    CorpusId {
        documents: statistics.num_documents(),
        words: words as u64,
        tokens: statistics.num_tokens(),
        fingerprint: fingerprint(words as u32, blocks.parts()),
    }
}

#[cfg(test)]
impl<B: Blocks> BlockTrainer<B> {
    /// Topics of all tokens: documents in order, in each document words ascending.
    pub(super) fn topics(&mut self) -> Vec<u32> {
        let epoch = self.progress.epoch;
        self.with(|engine, run| engine.topics(run, epoch)).unwrap()
    }
}
