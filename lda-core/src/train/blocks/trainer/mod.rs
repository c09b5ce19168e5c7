//! The trainer: a run over blocks that is driven epoch by epoch or to its end.

mod evaluate;
mod start;

use std::sync::Arc;
use std::time::Instant;

use self::evaluate::HeldOutDocuments;
pub(super) use self::start::resolve;
use super::BlockRunError;
use super::any_engine::AnyBlockEngine;
use super::engine::{FromDocuments, Run};
use super::store::TopicStore;
use crate::container::FileError;
use crate::corpus::blocks::{Blocks, fingerprint};
use crate::model::{Provenance, TopicModel};
use crate::prior::Alpha;
use crate::train::options::Resolved;
use crate::train::pass::PassReport;
use crate::train::progress::Progress;
use crate::train::registry::{CustomSampler, SamplerSetup};
use crate::train::report::{EpochReport, Flow, Observer};
use crate::train::run_record::{CorpusId, RunRecord};
use crate::train::seed_counts::{Pseudo, PseudoCounts};
use crate::train::trainer::install;

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
    held_out: Option<HeldOutDocuments>,
}

/// The caller's sampler, if there is one.
type Custom = Option<Arc<dyn CustomSampler>>;

impl<B: Blocks> BlockTrainer<B> {
    /// Counts all tokens for the sampler that is at work: with drawn topics, or those after an epoch.
    fn count(&mut self, after: Option<u32>) -> Result<(), BlockRunError> {
        let Parts { engine, run, pool } = self.parts();
        *engine = None;
        *engine = Some(install(pool, || AnyBlockEngine::start(run, after))?);
        Ok(())
    }

    fn parts(&mut self) -> Parts<'_, B> {
        let (held, handed_over) = (self.held, self.handed_over);
        let Self { blocks, store, progress, custom, engine, pool, pseudo, .. } = self;
        // The warm-up is WarpLDA's.
        let custom = custom.as_deref().filter(|_| progress.warming_up.is_none());
        let setup = SamplerSetup { options: progress.current(), custom };
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

    /// Number of blocks that stay in memory: as many as the [memory limit](crate::train::TrainOptions::memory_limit)
    /// allows.
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
        let mut all = Vec::new();
        let visited = self.visit_topics(|_, _, topics| {
            all.extend_from_slice(topics.as_slice());
            Ok::<(), ()>(())
        });
        visited.unwrap().unwrap();
        all
    }
}
