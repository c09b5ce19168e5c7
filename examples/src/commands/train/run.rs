//! A training run, from the options to the table of topics.

use std::io::{self, Write};
use std::path::Path;

use lda_core::Corpus;
use lda_core::container::FileError;
use lda_core::corpus::blocks::BlockDirectory;
use lda_core::corpus::{BuildError, Vocabulary};
use lda_core::eval::{CompletionOptions, DocumentCompletion, Phi, held_out_perplexity, top_words};
use lda_core::model::TopicModel;
use lda_core::train::{
    self, Checkpoints, EpochReport, Flow, HeldOut, Observer, OptionsError, Snapshot, Trainer,
};

use crate::commands::train::args::{Args, ResultArgs};
use crate::commands::train::diagnostics::TopicDiagnostics;
use crate::commands::train::error::TrainError;
use crate::commands::train::log::Log;
use crate::commands::train::progress::{Goal, Progress};
use crate::commands::train::provenance::{Init, Input, Provenance};
use crate::commands::train::results::{AtOnce, Outcome, Results};
use crate::commands::train::{init, input, interrupt, over_blocks};
use lda_examples::held_out;
use lda_examples::matrix::Layout;
use lda_examples::program::{self, StartError};
use lda_examples::{allocator, memory, table};

/// Reads the corpus, trains, writes the output files and prints the table.
///
/// # Errors
/// [`TrainError`]. If one output file fails, the others are still written.
pub fn run(args: &Args) -> Result<(), TrainError> {
    args.check()?;
    interrupt::listen().map_err(StartError::Signals)?;
    if args.machine.memory_limit.is_some()
        || args.path.as_deref().is_some_and(BlockDirectory::is_at)
    {
        allocator::return_large_buffers();
    }
    // The global pool, which everything runs on.
    args.machine.threads.map_or(Ok(()), program::start_threads)?;
    let progress = Progress::new(args.results.quiet);
    let Some(path) = &args.path else { return in_memory(args, progress).map(|_| ()) };
    if BlockDirectory::is_at(path) || over_blocks::needs_blocks(args, path) {
        return over_blocks::run(args, path, progress);
    }
    match in_memory(args, progress)? {
        InMemory::Trained => Ok(()),
        InMemory::TooLarge => over_blocks::run(args, path, Progress::new(args.results.quiet)),
    }
}

/// Outcome of a run with all documents in memory.
enum InMemory {
    Trained,
    /// The documents do not fit into `--memory-limit`, and may fit in blocks.
    TooLarge,
}

/// A run with all documents in memory.
fn in_memory(args: &Args, mut progress: Progress) -> Result<InMemory, TrainError> {
    let mut results = Results::create(&args.results)?;
    let snapshot = resumed(args, &progress)?;
    let model = init::model(&args.init)?;
    let options = match (&snapshot, &model) {
        (Some(run), _) => args.options_of(run)?,
        (None, Some(model)) => init::inherit(args, model, args.options()?),
        (None, None) => args.options()?,
    };
    progress.set_goal(Goal { epochs: options.get_epochs(), seconds: options.get_seconds() });
    let options = match args.machine.memory_limit {
        Some(_) => options,
        None => options.memory_limit(memory::of_process()),
    };
    let (corpus, mut input) = input::load(args, model.as_ref(), &progress)?;
    let (mut corpus, mut held) = hold_out(args, options.get_seed(), corpus, &mut input)?;
    if let Some(model) = &model {
        let words = corpus.num_words();
        let add = |vocabulary: &Vocabulary| {
            // Both have the same words before and after.
            held.as_mut().map_or(Ok(0), |held| held.add_words(vocabulary))?;
            corpus.add_words(vocabulary)
        };
        init::widen(model, words, add, &progress)?;
        input.measure(&corpus);
    }
    check_sizes(args, options.get_topics(), (corpus.num_documents(), corpus.num_words()))?;

    progress.busy("preparing");
    let mut trainer = match &snapshot {
        Some(snapshot) => Trainer::resume(&corpus, snapshot, &options)?,
        None => {
            let (model, topics) = (model.as_ref(), options.get_topics());
            let pseudo_counts = init::pseudo_counts(&args.init, model, &corpus, topics, &progress)?;
            let init = train::Init { pseudo_counts, topics: None };
            match Trainer::with_init(&corpus, &options, init) {
                Ok(trainer) => trainer,
                Err(OptionsError::Memory { needed, limit })
                    if args.machine.memory_limit.is_none() =>
                {
                    return Err(TrainError::Memory { needed, limit });
                }
                Err(OptionsError::Memory { limit, .. })
                    if over_blocks::can_cut(args, corpus.num_words(), limit) =>
                {
                    return Ok(InMemory::TooLarge);
                }
                Err(error) => return Err(error.into()),
            }
        }
    };
    if snapshot.is_none() {
        input.init = Init::of(&args.init);
    }
    let pseudo_counts = trainer.pseudo_counts().map(|counts| counts.fingerprint());
    input.pseudo_counts = pseudo_counts.map(|hash| format!("{hash:016x}"));
    drop((snapshot, model));
    if let Some(checkpoints) = args.checkpoints() {
        trainer.checkpoint(checkpoints)?;
    }
    let completion = CompletionOptions { seed: options.get_seed(), ..Default::default() };
    if let (Some(patience), Some(held)) = (args.hold_out.patience, &held) {
        let judge = HeldOut::new(held.clone()).completion(completion.clone()).patience(patience);
        trainer.early_stopping(judge)?;
    }
    let provenance = Provenance::new(trainer.resolved(), options.get_evaluate_every(), input);
    progress.note(&provenance.caption());
    let log = results.log.take().map(|output| Log::new(output, provenance.clone()));
    let mut watch = Watch::new(progress, log);
    watch.note_finished(trainer.is_finished(), trainer.epochs());
    interrupt::training_starts();
    let last = trainer.run(&mut watch, interrupt::asked);
    let Watch { progress, log, curve, unwritten } = watch;
    progress.finish(&last);

    let provenance = provenance.after(trainer.resolved(), last.epoch);
    let model = trainer.model();
    let assignments = trainer.assignments();
    let log_written = log.map_or(Ok(()), Log::finish);
    let measure = || TopicDiagnostics::new(&trainer, &model, args.results.top_words);
    let measured = args.results.measures_topics().then(measure).transpose();
    let outcome = Outcome {
        documents: &mut AtOnce(&corpus, assignments),
        model: &model,
        diagnostics: measured.as_ref().ok().and_then(Option::as_ref),
        curve,
    };
    let written = results.write(outcome, &provenance);
    let shown = show(args, &model, &provenance);
    log_written?;
    written?;
    shown?;
    if let Some(held) = &held {
        let phi = Phi::from_model(&model).expect("beta was checked");
        show_perplexity(&held_out_perplexity(held, &phi, model.alpha(), &completion)?)?;
    }
    if let Some(found) = measured?.filter(|_| args.results.coherence) {
        print(|out| found.print(args.results.show_topics, out))?;
    }
    unwritten.map_or(Ok(InMemory::Trained), |error| Err(TrainError::Checkpoint(error)))
}

/// Observer of the run.
pub(super) struct Watch {
    pub progress: Progress,
    pub log: Option<Log>,
    /// (seconds, log joint likelihood per token) of each evaluation.
    pub curve: Vec<(f64, f64)>,
    /// Error of the last checkpoint, if it could not be written.
    unwritten: Option<String>,
}

impl Watch {
    /// An observer that has seen nothing.
    pub fn new(progress: Progress, log: Option<Log>) -> Self {
        Self { progress, log, curve: Vec::new(), unwritten: None }
    }

    /// Says so if the run that is resumed had ended before.
    pub fn note_finished(&self, is_finished: bool, epochs: u32) {
        if is_finished {
            self.progress.note(&format!(
                "the run has ended after {epochs} epochs: its results are written; a larger --epochs continues it"
            ));
        }
    }
}

impl Observer for &mut Watch {
    fn epoch(&mut self, report: &EpochReport) -> Flow {
        self.progress.epoch(report);
        if let Some(log) = &mut self.log {
            log.add(report);
        }
        self.curve.extend(report.log_joint_per_token().map(|joint| (report.seconds, joint)));
        if interrupt::asked() { Flow::Stop } else { Flow::Continue }
    }

    fn checkpoint(&mut self, outcome: Result<&Path, &FileError>) {
        self.unwritten = outcome.err().map(FileError::to_string);
        if let Some(error) = &self.unwritten {
            self.progress.note(&format!("warning: no checkpoint: {error}; the run continues"));
        }
    }
}

/// The checkpoint to resume from; `None` without `--resume`.
fn resumed(args: &Args, progress: &Progress) -> Result<Option<Snapshot>, TrainError> {
    let Some(directory) = &args.checkpoints.resume else { return Ok(None) };
    let latest = Checkpoints::latest(directory)?;
    for error in &latest.unreadable {
        progress.note(&format!("warning: {error}"));
    }
    let (path, epochs) = (latest.path.display(), latest.snapshot.epochs());
    progress.note(&format!("resuming from {path} after {epochs} epochs"));
    Ok(Some(latest.snapshot))
}

fn hold_out(
    args: &Args,
    seed: u64,
    corpus: Corpus,
    input: &mut Input,
) -> Result<(Corpus, Option<Corpus>), TrainError> {
    let Some(share) = args.hold_out.held_out else { return Ok((corpus, None)) };
    let (train, held) = held_out::split(&corpus, share, seed).map_err(|source| match source {
        BuildError::NoTokens => {
            TrainError::HeldOut { share, documents: held_out::num_documents(&corpus) }
        }
        source => TrainError::Build { path: input.path.clone().into(), source },
    })?;
    input.held_out = Some(share);
    input.measure(&train);
    Ok((train, Some(held)))
}

/// Checks that dense files of (documents, words) are not too large.
pub(super) fn check_sizes(
    args: &Args,
    topics: u32,
    (documents, words): (usize, usize),
) -> Result<(), TrainError> {
    let topics = topics as usize;
    let ResultArgs { doc_topics, topic_words, .. } = &args.results;
    for (option, path, rows, columns) in [
        ("--doc-topics", doc_topics, documents, topics),
        ("--topic-words", topic_words, topics, words),
    ] {
        if let Some((path, layout)) = path.as_ref().and_then(|path| Some((path, Layout::of(path)?)))
        {
            layout.check_size(option, path, rows, columns)?;
        }
    }
    Ok(())
}

/// Prints the options and the table of topics.
pub(super) fn show(
    args: &Args,
    model: &TopicModel,
    provenance: &Provenance,
) -> Result<(), TrainError> {
    let counts = model.counts().expect("a trained model has counts");
    let words = top_words(counts, counts.beta(), args.results.top_words, args.ranking())?;
    print(|out| {
        writeln!(out, "# options: {}", provenance.to_json())?;
        let (totals, limit) = (counts.totals(), args.results.show_topics);
        table::write(out, totals, model.vocabulary(), &words, limit)
    })
}

/// Prints the held-out perplexity.
pub(super) fn show_perplexity(found: &DocumentCompletion) -> Result<(), TrainError> {
    print(|out| {
        writeln!(
            out,
            "held-out perplexity {:.2} (document completion: {} tokens of {} documents)",
            found.perplexity(),
            found.tokens,
            found.documents
        )
    })
}

pub(super) fn print(
    write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> Result<(), TrainError> {
    table::print(write).map_err(TrainError::Print)
}
