//! The start of a run: checks of its options, its threads and its first state; and resuming.

use std::ops::Deref;
use std::sync::Arc;

use super::{Custom, Init, Trainer};
use crate::corpus::Corpus;
use crate::train::any_engine::AnyEngine;
use crate::train::assignments::Assignments;
use crate::train::options::{OptionsError, Resolved, SamplerKind, SamplerOptions, TrainOptions};
use crate::train::progress::Progress;
use crate::train::registry::SamplerSetup;
use crate::train::run_record::CorpusId;
use crate::train::seed_counts::Pseudo;
use crate::train::snapshot::{ResumeError, Snapshot, Width};

/// The start of a run.
struct StartFrom<'a> {
    topics: Option<&'a Assignments>,
    /// Epochs that led to `topics`.
    epoch: u32,
    pseudo: Pseudo,
    custom: Custom,
}

impl<C: Deref<Target = Corpus>> Trainer<C> {
    /// A new run.
    pub(super) fn begin(
        corpus: C,
        options: &TrainOptions,
        init: Init<'_>,
        custom: Custom,
    ) -> Result<Self, OptionsError> {
        let pseudo = init.pseudo_counts.map(Arc::new);
        let resolved = options.resolve_with(&*corpus, &pseudo)?;
        if let Some(topics) = init.topics {
            topics
                .check(&corpus, resolved.topics)
                .map_err(|reason| OptionsError::Assignments { reason })?;
        }
        let from = StartFrom { topics: init.topics, epoch: 0, pseudo, custom };
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
        check_width(setup)?;
        if let Some(pseudo) = &pseudo {
            resolved.check_pseudo(&*corpus, pseudo)?;
        }
        let pool = options.threads.map(pool).transpose()?;
        check_memory(&corpus, options, setup, &pseudo)?;
        let progress = Progress::new(options, resolved.clone(), epoch);
        if progress.warming_up.is_some() {
            // The sampler's rows are made when the warm-up ends, too late to return an error.
            setup.check_rows(&corpus, &pseudo)?;
        }
        let setup = match &progress.warming_up {
            Some(options) => SamplerSetup { options, custom: None },
            None => setup,
        };
        let engine = AnyEngine::new(&corpus, setup, first, &pseudo)?;
        Ok(Self {
            corpus,
            progress,
            custom,
            engine,
            pool,
            checkpoints: None,
            pseudo,
            held_out: None,
        })
    }

    /// A run that continues from `snapshot`.
    pub(super) fn resume_run(
        corpus: C,
        snapshot: &Snapshot,
        options: &TrainOptions,
        custom: Custom,
    ) -> Result<Self, ResumeError> {
        let run = &snapshot.run;
        let resolved = options.resolve_with(&*corpus, &run.pseudo)?;
        run.check(CorpusId::of(&corpus), corpus.vocabulary(), &resolved)?;
        let first = match &snapshot.carried {
            Width::Narrow(carried) => Assignments::taken(&corpus, &carried.tokens.topics),
            Width::Wide(carried) => Assignments::taken(&corpus, &carried.tokens.topics),
        };
        let pseudo = run.pseudo.clone();
        let from = StartFrom { topics: Some(&first), epoch: run.epoch, pseudo, custom };
        let mut trainer = Self::from(corpus, options, resolved, from)?;
        // INVARIANT: the state is made from the snapshot's topics before the rest is restored, since
        // the order of list rows is checked against their counts.
        trainer
            .engine
            .take_up(&trainer.corpus, &snapshot.carried, run.rounds)
            .map_err(|reason| ResumeError::Snapshot { reason: reason.to_owned() })?;
        let (alpha, beta) = &run.priors;
        trainer.engine.set_priors(alpha, *beta);
        run.restore(&mut trainer.progress);
        Ok(trainer)
    }
}

/// Checks K against the limit of the caller's sampler.
pub(in crate::train) fn check_width(setup: SamplerSetup<'_>) -> Result<(), OptionsError> {
    let Some(sampler) = setup.custom else { return Ok(()) };
    let limit = match setup.options.narrow {
        true => sampler.narrow().requires().max_topics,
        false => sampler.wide().requires().max_topics,
    };
    let topics = setup.options.topics;
    if u64::from(topics) > limit {
        return Err(OptionsError::TooManyTopics { topics, limit });
    }
    Ok(())
}

/// Checks the memory limit, if there is one.
fn check_memory(
    corpus: &Corpus,
    options: &TrainOptions,
    setup: SamplerSetup<'_>,
    pseudo: &Pseudo,
) -> Result<(), OptionsError> {
    let Some(limit) = options.memory_limit else { return Ok(()) };
    // The estimate itself has a number for each word.
    let words = corpus.num_words() as u64 * 20;
    if words > limit {
        return Err(OptionsError::Memory { needed: words, limit });
    }
    let threads = options.threads.unwrap_or_else(rayon::current_num_threads);
    let own = |pseudo: &_| setup.pseudo_memory(corpus, pseudo, threads);
    let needed = setup.memory(corpus, threads).total() + pseudo.as_deref().map_or(0, own);
    if needed > limit {
        return Err(OptionsError::Memory { needed, limit });
    }
    Ok(())
}

/// Makes a pool of threads.
pub(in crate::train) fn pool(threads: usize) -> Result<rayon::ThreadPool, OptionsError> {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
    pool.map_err(|error| OptionsError::Threads { threads, source: error.into() })
}

/// `options` with a custom sampler.
pub(in crate::train) fn custom_options(options: &TrainOptions) -> TrainOptions {
    match options.sampler {
        SamplerOptions::Custom { .. } => options.clone(),
        other => {
            let exclude_from = other.exclude_from();
            options.clone().sampler(SamplerOptions::Custom { steps: 0, exclude_from })
        }
    }
}
