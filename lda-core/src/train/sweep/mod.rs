//! Runs with several numbers of topics, side by side, to choose one.
//!
//! No measure knows the right number of topics: it depends on what the topics are for. A [`Sweep`] trains
//! a model for each number and several seeds, and measures each model in the ways that people use
//! ([`ModelMeasures`]); [`Summary`] brings the seeds of a number together, and [`best`] names the number
//! that a [`Criterion`] prefers. Those numbers are worth a look; a reader decides.
//!
//! # Cost
//! As the runs and their measures. The order in which they finish depends on the machine; models and
//! measures do not: the same bits at any number of threads and of runs side by side.

mod measures;
mod summary;
#[cfg(test)]
mod tests;

use std::collections::{HashSet, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::thread;

use thiserror::Error;

use crate::corpus::Corpus;
use crate::eval::{CoherenceError, CompletionError};
use crate::model::TopicModel;
use crate::train::options::{OptionsError, TrainOptions};
use crate::train::report::Flow;
use crate::train::trainer::Trainer;

pub use measures::ModelMeasures;
pub use summary::{Criterion, Stability, Summary, best, stability};

/// Trains and measures models with several numbers of topics. See the [module](self).
///
/// ```
/// use lda_core::train::sweep::{Criterion, Summary, Sweep, best};
/// use lda_core::train::Flow;
/// use lda_core::Corpus;
///
/// let themes = [["tree", "leaf", "wood"], ["sea", "wave", "foam"], ["star", "moon", "sky"]];
/// let corpus = Corpus::from_words((0..90).map(|d| [themes[d % 3], themes[d % 3]].concat()))?;
/// let mut runs = Vec::new();
/// Sweep::new([2, 3, 4]).seeds(2).train(|options| options.alpha(0.1).epochs(50)).run(&corpus, |run| {
///     runs.push((run.topics, run.measures));
///     Flow::Continue
/// })?;
/// let summaries = [2, 3, 4].map(|topics| {
///     let own: Vec<_> = runs.iter().filter(|run| run.0 == topics).map(|run| run.1.clone()).collect();
///     Summary::new(topics, &own, None)
/// });
/// assert_eq!(best(&summaries, Criterion::Npmi), Some(3));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
#[must_use = "a sweep does not start before `run` is called"]
pub struct Sweep {
    topics: Vec<u32>,
    seeds: u32,
    options: TrainOptions,
    held_out: Option<Corpus>,
    top_words: usize,
    jobs: Option<usize>,
    done: HashSet<(u32, u64)>,
    cancel: Option<Arc<AtomicBool>>,
}

/// A finished run of a [`Sweep`].
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct SweepRun {
    /// Number of topics K.
    pub topics: u32,
    /// Random seed.
    pub seed: u64,
    /// Measures of the model.
    pub measures: ModelMeasures,
    /// The model.
    pub model: TopicModel,
}

/// Error of a [`Sweep`].
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum SweepError {
    /// There is nothing to train.
    #[error("topics: give at least one number of topics, and at least one seed")]
    Empty,
    /// A run cannot be trained.
    #[error("{topics} topics: {source}")]
    Options {
        /// Number of topics of the run.
        topics: u32,
        /// Cause.
        source: OptionsError,
    },
    /// Held-out documents cannot be evaluated.
    #[error("held-out documents: {0}")]
    Completion(#[from] CompletionError),
    /// Coherence cannot be computed.
    #[error("coherence: {0}")]
    Coherence(#[from] CoherenceError),
}

impl SweepError {
    /// Whether the caller has cancelled the measures of a model.
    fn is_cancelled(&self) -> bool {
        matches!(
            self,
            Self::Completion(CompletionError::Cancelled)
                | Self::Coherence(CoherenceError::Cancelled)
        )
    }
}

impl Sweep {
    /// A sweep over these numbers of topics, with one seed and the defaults of [`TrainOptions`] otherwise.
    pub fn new(topics: impl IntoIterator<Item = u32>) -> Self {
        let mut topics: Vec<u32> = topics.into_iter().collect();
        topics.sort_unstable();
        topics.dedup();
        Self {
            topics,
            seeds: 1,
            options: TrainOptions::default(),
            held_out: None,
            top_words: 10,
            jobs: None,
            done: HashSet::new(),
            cancel: None,
        }
    }

    /// Number of runs per number of topics; their seeds follow that of the options.
    pub fn seeds(mut self, seeds: u32) -> Self {
        self.seeds = seeds;
        self
    }

    /// Changes the options of all runs; the number of topics in them does not matter.
    pub fn train(mut self, change: impl FnOnce(TrainOptions) -> TrainOptions) -> Self {
        self.options = change(self.options);
        self
    }

    /// Documents whose perplexity is a measure. Their words have the numbers of the corpus.
    pub fn held_out(mut self, documents: Corpus) -> Self {
        self.held_out = Some(documents);
        self
    }

    /// Words per topic for coherence and exclusivity; 10 by default.
    pub fn top_words(mut self, words: usize) -> Self {
        self.top_words = words;
        self
    }

    /// Number of runs at a time; by default as many as there are threads, or fewer if they would exceed
    /// the [memory limit](TrainOptions::memory_limit) together. Does not change results.
    pub fn jobs(mut self, jobs: usize) -> Self {
        self.jobs = Some(jobs);
        self
    }

    /// Leaves out runs that are done, by number of topics and seed.
    pub fn skip(mut self, done: impl IntoIterator<Item = (u32, u64)>) -> Self {
        self.done.extend(done);
        self
    }

    /// Ends the sweep after the current epochs once `flag` is true; their runs have no results.
    pub fn cancel_when(mut self, flag: Arc<AtomicBool>) -> Self {
        self.cancel = Some(flag);
        self
    }

    /// The runs that are left, by number of topics and seed, in the order in which they start: the
    /// longest first.
    pub fn left(&self) -> Vec<(u32, u64)> {
        let first = self.options.get_seed();
        let seeds = (0..self.seeds).map(move |seed| first.wrapping_add(seed.into()));
        let of = |&topics: &u32| seeds.clone().map(move |seed| (topics, seed));
        let all = self.topics.iter().rev().flat_map(of);
        all.filter(|run| !self.done.contains(run)).collect()
    }

    /// Checks the options of all runs, and the memory of each, before anything is trained.
    ///
    /// # Errors
    /// [`SweepError::Empty`], [`SweepError::Options`].
    pub fn check(&self, corpus: &Corpus) -> Result<(), SweepError> {
        if self.topics.is_empty() || self.seeds == 0 {
            return Err(SweepError::Empty);
        }
        self.division(corpus, &self.left()).map(drop)
    }

    /// Trains and measures all runs; `each` gets every finished one and may end the sweep.
    ///
    /// # Errors
    /// Those of [`check`](Self::check), before the first run starts; [`SweepError`].
    ///
    /// # Panics
    /// If a run does.
    pub fn run(
        &self,
        corpus: &Corpus,
        mut each: impl FnMut(SweepRun) -> Flow,
    ) -> Result<(), SweepError> {
        self.check(corpus)?;
        let left = self.left();
        let (jobs, threads) = self.division(corpus, &left)?;
        let (queue, stop) = (Mutex::new(VecDeque::from(left)), AtomicBool::new(false));
        let mut failed = None;
        thread::scope(|scope| {
            let (sender, results) = mpsc::channel();
            for _ in 0..jobs {
                let (sender, queue, stop) = (sender.clone(), &queue, &stop);
                scope.spawn(move || {
                    while !self.is_cancelled(stop) {
                        let next = queue.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
                        let Some((topics, seed)) = next else { break };
                        let run = self.one(corpus, (topics, seed), threads, stop).transpose();
                        // The receiver lives as long as this scope.
                        run.into_iter().for_each(|run| drop(sender.send(run)));
                    }
                });
            }
            drop(sender);
            for run in results {
                let ends = match run {
                    Ok(_) if stop.load(Ordering::Relaxed) => true,
                    Ok(run) => each(run) == Flow::Stop,
                    Err(error) => {
                        failed.get_or_insert(error);
                        true
                    }
                };
                stop.fetch_or(ends, Ordering::Relaxed);
            }
        });
        failed.map_or(Ok(()), Err)
    }

    fn is_cancelled(&self, stop: &AtomicBool) -> bool {
        let asked = self.cancel.as_ref().is_some_and(|flag| flag.load(Ordering::Relaxed));
        asked || stop.load(Ordering::Relaxed)
    }

    /// Runs at a time, and threads of each. Checks the options of all runs.
    fn division(&self, corpus: &Corpus, left: &[(u32, u64)]) -> Result<(usize, usize), SweepError> {
        let all = self.options.threads.unwrap_or_else(rayon::current_num_threads).max(1);
        let jobs = self.jobs.unwrap_or(all).clamp(1, all).min(left.len().max(1));
        let threads = all / jobs;
        let mut needed = Vec::with_capacity(left.len());
        for &(topics, _) in left {
            let options = self.options.clone().topics(topics).threads(threads);
            let estimate = options.estimate_memory(corpus);
            let estimate = estimate.map_err(|source| SweepError::Options { topics, source })?;
            let (total, limit) = (estimate.total(), self.options.memory_limit);
            if let Some(limit) = limit.filter(|&limit| total > limit) {
                let source = OptionsError::Memory { needed: total, limit };
                return Err(SweepError::Options { topics, source });
            }
            needed.push(total);
        }
        let Some(limit) = self.options.memory_limit else { return Ok((jobs, threads)) };
        needed.sort_unstable_by(|a, b| b.cmp(a));
        let mut sum = 0u64;
        let fitting = needed.iter().take_while(|&&bytes| {
            sum = sum.saturating_add(bytes);
            sum <= limit
        });
        let jobs = fitting.count().clamp(1, jobs);
        Ok((jobs, all / jobs))
    }

    /// Trains and measures one model; `None` if it was cancelled.
    fn one(
        &self,
        corpus: &Corpus,
        (topics, seed): (u32, u64),
        threads: usize,
        stop: &AtomicBool,
    ) -> Result<Option<SweepRun>, SweepError> {
        let refused = |source| SweepError::Options { topics, source };
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
        let pool =
            pool.map_err(|error| refused(OptionsError::Threads { threads, source: error.into() }))?;
        pool.install(|| {
            let options = self.options.clone().topics(topics).seed(seed).threads(None);
            let mut trainer = Trainer::new(corpus, &options).map_err(refused)?;
            let last = trainer.run((), || self.is_cancelled(stop));
            if self.is_cancelled(stop) {
                return Ok(None);
            }
            let model = trainer.model();
            let go_on = || !self.is_cancelled(stop);
            let held_out = self.held_out.as_ref();
            let measures =
                measures::measure(&trainer, &model, &last, held_out, self.top_words, &go_on);
            match measures {
                Err(error) if error.is_cancelled() => Ok(None),
                measures => Ok(Some(SweepRun { topics, seed, measures: measures?, model })),
            }
        })
    }
}
