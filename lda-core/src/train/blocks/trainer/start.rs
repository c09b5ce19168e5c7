//! The start of a run over blocks: checks of its options and its first state; and resuming.

use std::path::Path;
use std::sync::Arc;

use super::{BlockTrainer, Custom, corpus_id};
use crate::container::FileError;
use crate::corpus::blocks::Blocks;
use crate::sampler::Sampler;
use crate::train::blocks::any_engine::read_record;
use crate::train::blocks::memory::held_blocks;
use crate::train::blocks::store::TopicStore;
use crate::train::blocks::{BlockRunError, BlockSizes};
use crate::train::options::{OptionsError, Resolved, SamplerKind, TrainOptions};
use crate::train::progress::Progress;
use crate::train::registry::SamplerSetup;
use crate::train::seed_counts::{Pseudo, PseudoCounts};
use crate::train::snapshot::ResumeError;
use crate::train::trainer::{check_width, custom_options, pool};

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
            held_out: None,
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

    /// True if the directory has a run over blocks; its files may be damaged.
    pub fn is_at(directory: impl AsRef<Path>) -> bool {
        TopicStore::is_at(directory.as_ref())
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
}

/// Sizes of documents in blocks.
fn sizes<B: Blocks>(blocks: &B) -> BlockSizes<'_> {
    let largest = blocks.parts().iter().map(|part| part.tokens).max().unwrap_or(0);
    BlockSizes { statistics: blocks.statistics(), largest }
}

/// Checks the options and decides those that are not set.
pub(in crate::train::blocks) fn resolve<B: Blocks>(
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
