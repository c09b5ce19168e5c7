//! A training run, from the options to the table of topics.

use std::io::{self, Write};
use std::path::Path;

use lda_core::Corpus;
use lda_core::container::FileError;
use lda_core::corpus::BuildError;
use lda_core::corpus::blocks::BlockDirectory;
use lda_core::eval::{CompletionOptions, Phi, held_out_perplexity, top_words};
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
use crate::commands::train::results::{Outcome, Results};
use crate::commands::train::{init, input, interrupt, over_blocks};
use lda_examples::held_out;
use lda_examples::matrix::Layout;
use lda_examples::program::{self, StartError};
use lda_examples::{memory, table};

/// Reads the corpus, trains, writes the output files and prints the table.
///
/// # Errors
/// [`TrainError`]. If one output file fails, the others are still written.
pub fn run(args: &Args) -> Result<(), TrainError> {
    args.check()?;
    interrupt::listen().map_err(StartError::Signals)?;
    // The global pool, which everything runs on.
    args.machine.threads.map_or(Ok(()), program::start_threads)?;
    let mut progress = Progress::new(args.results.quiet);
    if let Some(path) = args.path.as_ref().filter(|path| BlockDirectory::is_at(path)) {
        return over_blocks::run(args, path, progress);
    }
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
    let (mut corpus, mut input) = input::load(args, model.as_ref(), &progress)?;
    if let Some(model) = &model {
        init::widen(&mut corpus, model, &progress)?;
        input.measure(&corpus);
    }
    let (corpus, held) = hold_out(args, options.get_seed(), corpus, &mut input)?;
    check_sizes(args, options.get_topics(), &corpus)?;

    progress.busy("preparing");
    let mut trainer = match &snapshot {
        Some(snapshot) => Trainer::resume(&corpus, snapshot, &options)?,
        None => {
            let (model, topics) = (model.as_ref(), options.get_topics());
            let pseudo_counts = init::pseudo_counts(&args.init, model, &corpus, topics, &progress)?;
            let init = train::Init { pseudo_counts, topics: None };
            Trainer::with_init(&corpus, &options, init).map_err(|error| match error {
                OptionsError::Memory { needed, limit } if args.machine.memory_limit.is_none() => {
                    TrainError::Memory { needed, limit }
                }
                error => error.into(),
            })?
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
    if let (Some(patience), Some(held)) = (args.hold_out.patience, &held) {
        let completion = CompletionOptions { seed: options.get_seed(), ..Default::default() };
        let judge = HeldOut::new(held.clone()).completion(completion).patience(patience);
        trainer.early_stopping(judge)?;
    }
    let provenance = Provenance::new(trainer.resolved(), options.get_evaluate_every(), input);
    progress.note(&provenance.caption());
    let log = results.log.take().map(|output| Log::new(output, provenance.clone()));
    let mut watch = Watch::new(progress, log);
    if trainer.is_finished() {
        let epochs = trainer.epochs();
        watch.progress.note(&format!(
            "the run has ended after {epochs} epochs: its results are written; a larger --epochs continues it"
        ));
    }
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
        corpus: &corpus,
        model: &model,
        assignments: &assignments,
        diagnostics: measured.as_ref().ok().and_then(Option::as_ref),
        curve,
    };
    let written = results.write(&outcome, &provenance);
    let shown = show(args, &model, options.get_seed(), held.as_ref(), &provenance);
    log_written?;
    written?;
    shown?;
    if let Some(found) = measured?.filter(|_| args.results.coherence) {
        print(|out| found.print(args.results.show_topics, out))?;
    }
    unwritten.map_or(Ok(()), |error| Err(TrainError::Checkpoint(error)))
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

fn check_sizes(args: &Args, topics: u32, corpus: &Corpus) -> Result<(), TrainError> {
    let topics = topics as usize;
    let ResultArgs { doc_topics, topic_words, .. } = &args.results;
    for (option, path, rows, columns) in [
        ("--doc-topics", doc_topics, corpus.num_documents(), topics),
        ("--topic-words", topic_words, topics, corpus.num_words()),
    ] {
        if let Some((path, layout)) = path.as_ref().and_then(|path| Some((path, Layout::of(path)?)))
        {
            layout.check_size(option, path, rows, columns)?;
        }
    }
    Ok(())
}

/// Prints the options, the table of topics, and the held-out perplexity.
pub(super) fn show(
    args: &Args,
    model: &TopicModel,
    seed: u64,
    held: Option<&Corpus>,
    provenance: &Provenance,
) -> Result<(), TrainError> {
    let counts = model.counts().expect("a trained model has counts");
    let words = top_words(counts, counts.beta(), args.results.top_words, args.ranking())?;
    print(|out| {
        writeln!(out, "# options: {}", provenance.to_json())?;
        let (totals, limit) = (counts.totals(), args.results.show_topics);
        table::write(out, totals, model.vocabulary(), &words, limit)
    })?;
    let Some(held) = held else { return Ok(()) };
    let phi = Phi::from_model(model).expect("beta was checked");
    let options = CompletionOptions { seed, ..Default::default() };
    let found = held_out_perplexity(held, &phi, model.alpha(), &options)?;
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

fn print(write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<(), TrainError> {
    table::print(write).map_err(TrainError::Print)
}
