//! A run from the command line to the model.

use std::sync::Arc;
use std::time::Instant;

use lda_core::Corpus;
use lda_core::file::FileError;
use lda_core::model::TopicModel;
use lda_dist::cluster::{Documents, Failed, Gathered, Report, RunError, Setup, run_local};
use lda_dist::job::{Job, JobError};
use lda_dist::together::{Options, TogetherError, cut, place};
use lda_examples::output::{Output, OutputError};
use lda_examples::program::ThreadsError;
use lda_examples::reading::{self, ReadingError};
use thiserror::Error;

use crate::args::{Args, Command, Local};

/// Shards where nothing else is asked for: as many workers have something to do.
const SHARDS: u16 = 8;
/// Partitions, likewise.
const PARTITIONS: u16 = 16;
/// Of a server, so that they have about as much to do each.
const A_SERVER: u32 = 4;

/// Why a run failed.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ClusterError {
    /// The documents cannot be read.
    #[error(transparent)]
    Reading(#[from] ReadingError),
    /// The documents are none.
    #[error("{0} has no documents with words")]
    Empty(String),
    /// The job makes no sense.
    #[error(transparent)]
    Job(#[from] JobError),
    /// A node has given up.
    #[error(transparent)]
    Run(#[from] RunError),
    /// The model cannot be written.
    #[error(transparent)]
    Output(#[from] OutputError),
    /// The model cannot be written.
    #[error(transparent)]
    Model(#[from] FileError),
    /// The thread pool could not be started.
    #[error(transparent)]
    Threads(#[from] ThreadsError),
}

impl ClusterError {
    /// Exit status: 2 where the command line is to blame, 1 otherwise.
    pub fn status(&self) -> u8 {
        match self {
            Self::Job(_) | Self::Reading(ReadingError::Usage(_)) => 2,
            Self::Run(RunError::Role(Failed::Divided(error))) => match error {
                TogetherError::Request(_) | TogetherError::Answer(_) => 1,
                _ => 2,
            },
            _ => 1,
        }
    }
}

/// A corpus in memory, a shard at a time.
#[derive(Clone, Debug)]
struct Stored {
    corpus: Arc<Corpus>,
    firsts: Arc<Vec<usize>>,
}

impl Documents for Stored {
    fn read(&self, shard: u16) -> Result<(Corpus, u64), String> {
        let ends = self.firsts.get(usize::from(shard)..usize::from(shard) + 2);
        let &[first, end] = ends.unwrap_or_default() else {
            return Err("there is none".to_owned());
        };
        Ok((self.corpus.select(first..end), first as u64))
    }
}

/// Runs what was asked for.
///
/// # Errors
/// [`ClusterError`].
pub fn run(args: &Args) -> Result<(), ClusterError> {
    match &args.command {
        Command::Local(args) => local(args),
    }
}

fn local(args: &Local) -> Result<(), ClusterError> {
    args.program.start_threads()?;
    let note = |text: &str| args.program.note(text);
    let output = args.save.as_deref().map(Output::create_file).transpose()?;
    let read = reading::read(&args.path, &args.reading, &mut |text| note(text))?;
    let corpus = read.corpus;
    if corpus.num_tokens() == 0 {
        return Err(ClusterError::Empty(args.path.display().to_string()));
    }
    let alpha = args.alpha.unwrap_or(50.0 / f64::from(args.topics)).into();
    let job = Job::new(args.topics, corpus.num_words() as u32, alpha, args.beta, args.seed)?;
    let options = divide(args, &corpus);
    let (epochs, judge_every) = (args.epochs, args.evaluate_every);
    let setup = Setup { job, options, workers: args.workers, epochs, judge_every };
    // Here all is known that nodes would find out.
    let frequencies = corpus.word_frequencies();
    let check = || {
        setup.check()?;
        place(&setup.job, &setup.options, &frequencies, corpus.num_documents() as u64)?;
        cut(&corpus, setup.options.shards)
    };
    let firsts = check().map_err(Failed::from).map_err(RunError::from)?;
    let Options { shards, partitions, rounds, servers, .. } = options;
    note(&format!(
        "{} workers, {servers} servers; {shards} shards of documents, {partitions} partitions of words, {rounds} rounds \
         an epoch",
        setup.workers
    ));
    let firsts = Arc::new(firsts);
    let tokens = corpus.num_tokens() as f64;
    let vocabulary = corpus.vocabulary().cloned();
    let stored = Stored { corpus: Arc::new(corpus), firsts };
    let mut begun = Instant::now();
    let report = |report: &Report| {
        let seconds = begun.elapsed().as_secs_f64();
        begun = Instant::now();
        if report.epoch.is_multiple_of(judge_every.max(1)) || report.epoch == epochs {
            let joint = report.log_joint.map_or(String::new(), |joint| {
                format!("log joint a token {:.4}, ", joint / tokens)
            });
            note(&format!(
                "epoch {}: {joint}{:.2} MB moved, {:.2} M tokens/s",
                report.epoch,
                report.bytes.total() as f64 * 1e-6,
                tokens / seconds.max(1e-9) * 1e-6,
            ));
        }
    };
    let counts = if u64::from(args.topics) <= 1 << 16 {
        Gathered::new(&setup, &run_local::<u16, _>(&setup, &stored, report)?)
    } else {
        Gathered::new(&setup, &run_local::<u32, _>(&setup, &stored, report)?)
    };
    if let Some(output) = output {
        let model = TopicModel::from_counts(&counts, setup.job.alpha().clone(), setup.job.beta())
            .with_vocabulary(vocabulary);
        output.fill(|out| model.write_to(out))?;
    }
    Ok(())
}

/// What was asked for, and what suits the documents where nothing was.
fn divide(args: &Local, corpus: &Corpus) -> Options {
    let documents = u16::try_from(corpus.num_documents()).unwrap_or(u16::MAX);
    let workers = u16::try_from(args.workers).unwrap_or(u16::MAX);
    let shards = args.shards.unwrap_or(SHARDS.max(workers).min(documents));
    let words = corpus.num_words() as u32;
    let suits = u32::from(PARTITIONS).max(A_SERVER * args.servers).max(shards.into());
    let partitions = args.partitions.map_or(suits.min(words), u32::from).max(1);
    let most = u16::try_from(partitions).unwrap_or(u16::MAX);
    let rounds = args.rounds.unwrap_or(shards.min(most));
    let servers = args.servers;
    let routing = args.routing.routing();
    Options { shards, partitions, rounds, servers, routing, ..Options::default() }
}
