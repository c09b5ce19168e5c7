//! [`Distributed`]: training with a parameter server in this process, in one call.

mod results;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use lda_core::Corpus;
use lda_core::counts::TopicIndex;
use lda_core::prior::Alpha;
use lda_core::train::{
    EpochReport, Flow, Learn, Observer, OptionsError, PseudoCounts, Resolved, SamplerKind,
    SamplerOptions, Start, TrainOptions, Trained,
};
use thiserror::Error;

use crate::aggregate::Registry;
use crate::cluster::{EpochTimer, Report, Role, RunError, Setup, run_local};
use crate::config::{ConfigError, Options, Routing};
use crate::division::{Division, default_routing};
use crate::documents::{Documents, ReadShardError, select_shard};
use crate::placement::{DocumentLengths, WordStats};
use crate::plan::{cut, place};
use crate::spec::{ModelSpec, SpecError};
use crate::sync::SyncMode;

/// Trains with a parameter server whose nodes are threads of this process: options, then
/// [`train`](Self::train), which returns what [`Lda::train`](lda_core::Lda::train) returns.
///
/// ```
/// use lda_core::Corpus;
/// use lda_dist::Distributed;
///
/// let themes = [["tree", "leaf", "wood"], ["sea", "wave", "foam"]];
/// let corpus = Corpus::from_words((0..100).map(|d| themes[d % 2]))?;
/// let trained = Distributed::topics(2).alpha(0.1).workers(2).epochs(50).seed(1).train(&corpus, ())?;
/// assert_eq!(trained.model.num_topics(), 2);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Reproducible
/// Same options and same corpus: same assignments, bit for bit, for any number of
/// [workers](Self::workers), and with the same [`Setup`] on any transport. The division into
/// shards, partitions, rounds and servers changes results as a seed does.
///
/// # Differences from `Lda`
/// * The [sampler](Self::sampler) is F+LDA unless it is set, and there is no warm-up. WarpLDA makes
///   as many [passes](Self::passes) in every epoch.
/// * The run has a fixed number of epochs, 200 unless it is [set](Self::epochs).
/// * The next epoch begins before the observer receives the report of the last one. If the observer
///   stops the run, or it is cancelled, the run ends after the epoch that is being sampled, or after
///   the next one if this epoch's last round has begun.
/// * Of [`EpochReport`], `changed` is NaN and `acceptance` is `None`, because nodes do not count
///   draws; `seconds` includes evaluations. A stopped run may end with an epoch that was not
///   evaluated.
/// * [`Trained::resolved`] has the topics, priors, seed and kind of sampler of this run. Its other
///   options are defaults of `Lda` that this run did not use; the division of the run is in the
///   notes of the model's [provenance](lda_core::TopicModel::provenance).
///
/// Checkpoints and nodes on other machines: [`cluster`](crate::cluster).
#[derive(Clone, Debug)]
#[must_use = "a run does not start before `train` is called"]
pub struct Distributed {
    topics: u32,
    /// Priors, start and seed.
    model: TrainOptions,
    pseudo_counts: Option<Arc<PseudoCounts>>,
    epochs: u32,
    evaluate_every: u32,
    workers: u32,
    sampler: SamplerOptions,
    short_length: Option<u32>,
    routing: Option<Routing>,
    division: Division,
    options: Options,
    prefetch: u16,
    threads: Option<usize>,
    aggregates: Registry,
    cancel: Option<Arc<AtomicBool>>,
}

/// Error of a run.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum DistributedError {
    /// An option is illegal or does not fit the corpus.
    #[error(transparent)]
    Options(#[from] OptionsError),
    /// The model has impossible dimensions.
    #[error(transparent)]
    Spec(#[from] SpecError),
    /// The work cannot be divided like this.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// A node failed.
    #[error(transparent)]
    Run(#[from] RunError),
}

/// Setters.
impl Distributed {
    /// A run with `topics` topics and defaults for the rest.
    pub fn topics(topics: u32) -> Self {
        Self {
            topics,
            model: TrainOptions::new(topics),
            pseudo_counts: None,
            epochs: 200,
            evaluate_every: 10,
            workers: 1,
            sampler: SamplerKind::FPlus.into(),
            short_length: None,
            routing: None,
            division: Division::default(),
            options: Options::default(),
            prefetch: 1,
            threads: None,
            aggregates: Registry::default(),
            cancel: None,
        }
    }

    /// Document-topic prior α, one value for every topic or one value per topic; default
    /// [by the mean length of documents](lda_core::TrainOptions::default_alpha).
    pub fn alpha(mut self, alpha: impl Into<Alpha>) -> Self {
        self.model = self.model.alpha(alpha);
        self
    }

    /// Topic-word prior β; default 0.01.
    pub fn beta(mut self, beta: f64) -> Self {
        self.model = self.model.beta(beta);
        self
    }

    /// Lets α follow topic sizes, see [`TrainOptions::alpha_by_size`]; default it does not.
    pub fn alpha_by_size(mut self, tokens: impl Into<Option<f64>>) -> Self {
        self.model = self.model.alpha_by_size(tokens);
        self
    }

    /// Priors that are learnt during the run; default none. The model has those of the last epoch.
    ///
    /// ```
    /// use lda_core::Corpus;
    /// use lda_core::train::Learn;
    /// use lda_dist::Distributed;
    ///
    /// let corpus = Corpus::from_tokens((0..40).map(|d| vec![d % 4, d % 4 + 4, d % 4]))?;
    /// let learn = Learn { burn_in: 5, every: 5, ..Learn::default() };
    /// let run = Distributed::topics(4).beta(0.5).epochs(20).workers(2).learn(learn);
    /// let model = run.train(&corpus, ())?.model;
    /// assert_eq!(model.alpha().as_slice().len(), 4, "one value per topic");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn learn(mut self, learn: impl Into<Option<Learn>>) -> Self {
        self.model = self.model.learn(learn);
        self
    }

    /// Rule for the first topics of tokens; default uniform over all topics.
    pub fn start(mut self, start: Start) -> Self {
        self.model = self.model.start(start);
        self
    }

    /// Share of all topics that a word or a document starts with, if the start is sparse; above 0, at most 1;
    /// default 0.1.
    pub fn start_degree(mut self, share: f64) -> Self {
        self.model = self.model.start_degree(share);
        self
    }

    /// Counts in addition to those of the tokens, see [`PseudoCounts`]: seed words of topics, or an earlier
    /// model, from which the run goes on with these documents; default none. The model includes them.
    ///
    /// ```
    /// use lda_core::Corpus;
    /// use lda_core::train::PseudoCounts;
    /// use lda_dist::Distributed;
    ///
    /// let corpus = Corpus::from_words([["tree", "leaf"], ["wave", "sea"], ["leaf", "wood"]])?;
    /// let seeds = PseudoCounts::seeds(&corpus, 2, &[vec!["sea"], vec!["tree", "wood"]], 100)?;
    /// let run = Distributed::topics(2).alpha(0.1).shards(2).epochs(20).pseudo_counts(seeds);
    /// let model = run.train(&corpus, ())?.model;
    /// let sea = corpus.vocabulary().and_then(|words| words.id("sea")).unwrap() as usize;
    /// assert!(model.phi(0, sea) > model.phi(1, sea));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn pseudo_counts(mut self, counts: impl Into<Option<PseudoCounts>>) -> Self {
        self.pseudo_counts = counts.into().map(Arc::new);
        self
    }

    /// Random seed; default 0.
    pub fn seed(mut self, seed: u64) -> Self {
        self.model = self.model.seed(seed);
        self
    }

    /// Number of epochs, at least 1; default 200.
    pub fn epochs(mut self, epochs: u32) -> Self {
        self.epochs = epochs;
        self
    }

    /// Epochs between two evaluations of the likelihood; the last epoch is evaluated too. 0: never.
    /// Default 10.
    pub fn evaluate_every(mut self, epochs: u32) -> Self {
        self.evaluate_every = epochs;
        self
    }

    /// Number of workers, each a thread, at most the number of [shards](Self::shards); default 1.
    /// Does not change the result.
    pub fn workers(mut self, workers: u32) -> Self {
        self.workers = workers;
        self
    }

    /// Number of servers, each a thread; default 1.
    pub fn servers(mut self, servers: u32) -> Self {
        self.options.servers = servers;
        self
    }

    /// Number of shards of the documents, at most the number of documents; default 8, or one per
    /// document if there are fewer.
    pub fn shards(mut self, shards: u16) -> Self {
        self.division = self.division.shards(shards);
        self
    }

    /// Number of partitions of the words; default [by the other numbers](Division::partitions).
    pub fn partitions(mut self, partitions: u16) -> Self {
        self.division = self.division.partitions(partitions);
        self
    }

    /// Number of rounds per epoch; default [shards · (staleness + 1)](Division::rounds).
    pub fn rounds(mut self, rounds: u16) -> Self {
        self.division = self.division.rounds(rounds);
        self
    }

    /// Synchronisation of rounds; default bulk-synchronous. With [`SyncMode::Bounded`] results depend on
    /// the timing.
    pub fn sync(mut self, sync: SyncMode) -> Self {
        self.options.sync = sync;
        self
    }

    /// Words that are pulled; default [by the number of shards](default_routing).
    pub fn routing(mut self, routing: Routing) -> Self {
        self.routing = Some(routing);
        self
    }

    /// Sampler, a [`SamplerKind`] or [`SamplerOptions`]; default F+LDA, which is also what
    /// [`SamplerOptions::Auto`] is here.
    ///
    /// ```
    /// use lda_core::train::{SamplerKind, SamplerOptions};
    /// use lda_dist::Distributed;
    ///
    /// let kind = Distributed::topics(100).sampler(SamplerKind::Sparse);
    /// let with_options = Distributed::topics(100).sampler(SamplerOptions::Warp { steps: 2 });
    /// ```
    pub fn sampler(mut self, sampler: impl Into<SamplerOptions>) -> Self {
        self.sampler = match sampler.into() {
            SamplerOptions::Auto { exclude_from } => SamplerOptions::FPlus { exclude_from },
            sampler => sampler,
        };
        self
    }

    /// Longest document, in tokens, that the [sampler](Self::sampler) samples; WarpLDA samples longer
    /// ones. Default: no limit, or that of the hybrid. WarpLDA itself takes none.
    pub fn short_length(mut self, tokens: u32) -> Self {
        self.short_length = Some(tokens);
        self
    }

    /// Number of times that tokens are sampled per pull of rows; default 1. See [`Options::passes`].
    pub fn passes(mut self, passes: u8) -> Self {
        self.options.passes = passes;
        self
    }

    /// Number of partitions whose rows a worker requests while it samples another; default 1. Does
    /// not change the result.
    pub fn prefetch(mut self, partitions: u16) -> Self {
        self.prefetch = partitions;
        self
    }

    /// Number of threads of a node, see [`Setup::threads`](field@Setup::threads); default those of rayon. Does
    /// not change the result.
    pub fn threads(mut self, threads: usize) -> Self {
        self.threads = Some(threads);
        self
    }

    /// Aggregates that servers compute in every evaluated epoch; default the built-in ones. The
    /// observer of [`train_reporting`](Self::train_reporting) receives the values.
    pub fn aggregates(mut self, aggregates: Registry) -> Self {
        self.aggregates = aggregates;
        self
    }

    /// Ends the run once `flag` is true, after the epoch that is being sampled or the next one, and after
    /// at least one; any thread can set it.
    pub fn cancel_when(mut self, flag: Arc<AtomicBool>) -> Self {
        self.cancel = Some(flag);
        self
    }
}

impl Distributed {
    /// Trains on `corpus`; `observer` receives a report per epoch, on this thread, and can end the
    /// run. `()` is an observer that does nothing. Starts one thread per worker and server, and runs
    /// the master on this one.
    ///
    /// # Errors
    /// [`DistributedError`]; wrong options are found before any work is done.
    ///
    /// # Panics
    /// If `observer` panics.
    pub fn train(
        &self,
        corpus: &Corpus,
        mut observer: impl Observer,
    ) -> Result<Trained, DistributedError> {
        self.train_reporting(corpus, |epoch, _| observer.epoch(epoch))
    }

    /// As [`train`](Self::train); `observer` receives the master's [`Report`] of each epoch, too: bytes,
    /// memory, waiting times and aggregates.
    ///
    /// # Errors
    /// [`DistributedError`].
    ///
    /// # Panics
    /// If `observer` panics.
    pub fn train_reporting(
        &self,
        corpus: &Corpus,
        observer: impl FnMut(&EpochReport, &Report) -> Flow,
    ) -> Result<Trained, DistributedError> {
        let resolved = self.resolve(corpus)?;
        let setup = self.setup(&resolved, corpus)?;
        let documents = Borrowed { corpus, firsts: &cut(corpus, setup.options.shards)? };
        if u64::from(self.topics) <= u16::MAX_TOPICS {
            self.run::<u16>(&setup, documents, resolved, observer)
        } else {
            self.run::<u32>(&setup, documents, resolved, observer)
        }
    }

    /// The setup that the run has, to run the same elsewhere: the result has the same bits. For a
    /// model, set [`Setup::collect_model`] in it, on every node.
    ///
    /// # Errors
    /// [`DistributedError`].
    pub fn setup_for(&self, corpus: &Corpus) -> Result<Setup, DistributedError> {
        self.setup(&self.resolve(corpus)?, corpus)
    }

    fn resolve(&self, corpus: &Corpus) -> Result<Resolved, OptionsError> {
        let options = self.model.clone().sampler(self.reported_sampler());
        options.epochs(self.epochs).resolve(corpus)
    }

    /// The sampler that [`Trained::resolved`] names.
    fn reported_sampler(&self) -> SamplerOptions {
        let hybrid = match (self.sampler, self.short_length) {
            (sampler @ SamplerOptions::Hybrid { .. }, Some(_)) => sampler,
            (SamplerOptions::FPlus { .. }, Some(0)) => return SamplerKind::Warp.into(),
            (SamplerOptions::FPlus { .. }, Some(tokens)) if tokens < u32::MAX => {
                SamplerKind::Hybrid.into()
            }
            (sampler, _) => return sampler,
        };
        let tokens = self.short_length.expect("matched above");
        hybrid.with_short_length(tokens).expect("the hybrid has this option")
    }

    fn setup(&self, resolved: &Resolved, corpus: &Corpus) -> Result<Setup, DistributedError> {
        let (documents, words) = (corpus.num_documents() as u64, corpus.num_words() as u32);
        let spec = ModelSpec::builder(resolved.topics, words)
            .alpha(resolved.alpha.clone())
            .beta(resolved.beta)
            .seed(resolved.seed)
            .alpha_by_size(resolved.alpha_by_size)
            .learn(resolved.learn)
            .start(resolved.start, resolved.start_degree)
            .pseudo_counts(self.pseudo_counts.clone())
            .build()?;
        let Options { servers, sync, .. } = self.options;
        let (shards, partitions, rounds) =
            self.division.resolve(servers, sync.staleness(), documents, words);
        let routing = self.routing.unwrap_or_else(|| default_routing(shards));
        let sampling =
            self.options.with_sampler(self.sampler, self.short_length, resolved.short_length)?;
        let options = Options { shards, partitions, rounds, routing, ..sampling };
        let setup = Setup::new(spec, corpus.fingerprint())
            .options(options)
            .workers(self.workers)
            .epochs(self.epochs)
            .evaluate_every(self.evaluate_every)
            .prefetch(self.prefetch)
            .threads(self.threads.unwrap_or_else(rayon::current_num_threads))
            .aggregates(self.aggregates.clone());
        setup.check()?;
        // Nodes place words by themselves; here it finds errors before they start.
        place(&setup.spec, &options, &WordStats::of(corpus), DocumentLengths::of(corpus))?;
        Ok(setup)
    }

    fn run<T: TopicIndex>(
        &self,
        setup: &Setup,
        documents: Borrowed<'_>,
        resolved: Resolved,
        mut observer: impl FnMut(&EpochReport, &Report) -> Flow,
    ) -> Result<Trained, DistributedError> {
        let (mut timer, mut last) = (EpochTimer::default(), None);
        let tokens = documents.corpus.num_tokens();
        let watch = |role: &mut Role<T, Borrowed<'_>>| {
            let Role::Master(master) = role else { return };
            while let Some(report) = master.report() {
                let epoch = epoch_report(&report, resolved.sampler, tokens, &mut timer);
                if observer(&epoch, &report) == Flow::Stop {
                    master.end_early();
                }
                last = Some(epoch);
            }
            timer.observe(master.round());
            let cancel = self.cancel.as_ref().filter(|_| last.is_some());
            if cancel.is_some_and(|flag| flag.load(Ordering::Relaxed)) {
                master.end_early();
            }
        };
        let nodes = run_local(setup, &documents, None, None, watch)?;
        let last = last.expect("a run that ends without an error has an epoch at least");
        Ok(results::trained(setup, documents, &nodes, resolved, last)?)
    }
}

/// A report in the form of `lda_core`.
fn epoch_report(
    report: &Report,
    sampler: SamplerKind,
    tokens: u64,
    timer: &mut EpochTimer,
) -> EpochReport {
    let time = timer.end_epoch();
    let mut epoch = EpochReport::new(report.epoch, sampler, tokens, time.total, time.epoch);
    epoch.log_joint = report.log_joint;
    epoch.log_joint_doc = report.log_joint_doc;
    epoch.log_joint_word = report.log_joint_word;
    epoch
}

/// Shards of a corpus that the caller owns.
#[derive(Clone, Copy, Debug)]
struct Borrowed<'a> {
    corpus: &'a Corpus,
    /// First document of each shard, and the number of documents.
    firsts: &'a [usize],
}

impl Documents for Borrowed<'_> {
    fn read(&self, shard: u16) -> Result<(Corpus, u64), ReadShardError> {
        select_shard(self.corpus, self.firsts, shard)
    }
}
