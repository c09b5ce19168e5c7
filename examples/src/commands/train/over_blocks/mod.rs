//! Training on blocks: those of a directory that `lda cut` has written, or those of documents that do not fit
//! into `--memory-limit`.

mod documents;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::{Args as _, Command};
use lda_core::Corpus;
use lda_core::corpus::blocks::{BlockDirectory, BlockView, Blocks};
use lda_core::eval::CompletionOptions;
use lda_core::model::TopicModel;
use lda_core::train::blocks::{BlockRunError, BlockTrainer};
use lda_core::train::{Assignments, HeldOut, OptionsError, TrainOptions};
use lda_examples::matrix::DocumentTopics;
use lda_examples::memory;
use lda_examples::output::TemporaryDirectory;
use lda_examples::reading::ReadingArgs;

use self::documents::Documents;
pub use self::documents::{can_cut, needs_blocks};
use crate::commands::train::args::Args;
use crate::commands::train::diagnostics::TopicDiagnostics;
use crate::commands::train::error::TrainError;
use crate::commands::train::log::Log;
use crate::commands::train::progress::{Goal, Progress};
use crate::commands::train::provenance::{Init, Input, Provenance};
use crate::commands::train::results::{Outcome, Results};
use crate::commands::train::run::{Watch, check_sizes, print, show, show_perplexity};
use crate::commands::train::{init, interrupt};

/// A view of the blocks of a directory.
type View = BlockView<Arc<BlockDirectory>>;

/// Trains on the blocks at `path`, or cuts the documents at `path` first; writes the output files and prints the
/// table.
///
/// # Errors
/// [`TrainError`]. If one output file fails, the others are still written.
pub fn run(args: &Args, path: &Path, mut progress: Progress) -> Result<(), TrainError> {
    let are_blocks = BlockDirectory::is_at(path);
    refuse(args, are_blocks)?;
    let mut results = Results::create(&args.results)?;
    let model = init::model(&args.init)?;
    let options = options(args, model.as_ref())?;
    progress.set_goal(Goal { epochs: options.get_epochs(), seconds: options.get_seconds() });
    let mut documents = match are_blocks {
        true => Documents::open(path)?,
        false => Documents::cut(args, path, model.as_ref(), &progress)?,
    };
    documents.hold_out(args, options.get_seed())?;
    if let Some(model) = &model {
        documents.add_words(model, &progress)?;
    }
    let (view, sizes) = (&documents.train, documents.train.statistics());
    let sizes = (sizes.num_documents() as usize, sizes.num_words());
    check_sizes(args, options.get_topics(), sizes)?;

    progress.busy("preparing");
    let (directory, _own) = run_directory(args, documents.path());
    let mut input = Input::of_blocks(path.display().to_string(), view, view.fingerprint());
    input.held_out = args.hold_out.held_out;
    let mut trainer = match &args.checkpoints.resume {
        Some(_) => BlockTrainer::resume(view, &options, &directory)?,
        None => {
            input.init = Init::of(&args.init);
            begin(args, (view, model.as_ref()), &options, &directory, &progress)?
        }
    };
    drop(model);
    input.pseudo_counts =
        trainer.pseudo_counts().map(|counts| format!("{:016x}", counts.fingerprint()));
    let completion = CompletionOptions { seed: options.get_seed(), ..Default::default() };
    if let (Some(patience), Some(held)) = (args.hold_out.patience, &documents.held) {
        let judge = HeldOut::new(held.clone()).completion(completion.clone()).patience(patience);
        trainer.early_stopping_with_blocks(judge)?;
    }
    progress.note(&summary(&documents, trainer.held_blocks(), trainer.epochs()));
    let provenance = Provenance::new(trainer.resolved(), options.get_evaluate_every(), input);
    progress.note(&provenance.caption());
    let log = results.log.take().map(|output| Log::new(output, provenance.clone()));
    let mut watch = Watch::new(progress, log);
    watch.note_finished(trainer.is_finished(), trainer.epochs());
    interrupt::training_starts();
    let last = trainer.run(&mut watch, interrupt::asked)?;
    let Watch { progress, log, curve, .. } = watch;
    progress.finish(&last);

    let provenance = provenance.after(trainer.resolved(), last.epoch);
    let model = trainer.model();
    let log_written = log.map_or(Ok(()), Log::finish);
    let held = documents.held.as_ref();
    let perplexity = held.map(|held| trainer.perplexity_of_blocks(held, &completion)).transpose();
    let top_words = args.results.top_words;
    let mut measure = || TopicDiagnostics::of_blocks(&mut trainer, &model, top_words);
    let measured = args.results.measures_topics().then(&mut measure).transpose();
    let outcome = Outcome {
        documents: &mut TrainedBlocks(&mut trainer),
        model: &model,
        diagnostics: measured.as_ref().ok().and_then(Option::as_ref),
        curve,
    };
    let written = results.write(outcome, &provenance);
    let shown = show(args, &model, &provenance);
    log_written?;
    written?;
    shown?;
    perplexity?.map_or(Ok(()), |found| show_perplexity(&found))?;
    match measured?.filter(|_| args.results.coherence) {
        Some(found) => print(|out| found.print(args.results.show_topics, out)),
        None => Ok(()),
    }
}

/// Options of a new run, which may go on from a model, or of one that is resumed.
fn options(args: &Args, model: Option<&TopicModel>) -> Result<TrainOptions, TrainError> {
    let options = match (&args.checkpoints.resume, model) {
        (Some(run), _) => args.options_of_blocks(BlockTrainer::<&View>::options_of(run)?)?,
        (None, Some(model)) => init::inherit(args, model, args.options()?),
        (None, None) => args.options()?,
    };
    Ok(match args.machine.memory_limit {
        Some(_) => options,
        None => options.memory_limit(memory::of_process()),
    })
}

/// A new run.
fn begin<'a>(
    args: &Args,
    (view, model): (&'a View, Option<&TopicModel>),
    options: &TrainOptions,
    directory: &Path,
    progress: &Progress,
) -> Result<BlockTrainer<&'a View>, TrainError> {
    let (words, topics) = (view.words(), options.get_topics());
    let pseudo = init::pseudo_counts(&args.init, model, &words, topics, progress)?;
    let begun = BlockTrainer::with_pseudo_counts(view, options, directory, pseudo);
    begun.map_err(|error| match error {
        BlockRunError::Options(OptionsError::Memory { needed, limit }) => {
            TrainError::BlockMemory { needed, limit }
        }
        error => error.into(),
    })
}

/// The directory of the run's files. Without `--checkpoint` and `--resume` it is one beside the blocks, which is
/// removed in the end.
fn run_directory(args: &Args, blocks: &Path) -> (PathBuf, Option<TemporaryDirectory>) {
    let checkpoints = &args.checkpoints;
    match checkpoints.resume.as_ref().or(checkpoints.checkpoint.as_ref()) {
        Some(run) => (run.clone(), None),
        None => {
            let own = blocks.join(format!(".run-{}", std::process::id()));
            (own.clone(), Some(TemporaryDirectory::new(own)))
        }
    }
}

/// Topics of the documents of a run, which are read block by block.
struct TrainedBlocks<'a, 'b>(&'a mut BlockTrainer<&'b View>);

impl DocumentTopics for TrainedBlocks<'_, '_> {
    fn num_documents(&self) -> u64 {
        self.0.blocks().statistics().num_documents()
    }

    fn visit(
        &mut self,
        f: &mut (dyn FnMut(u64, &Corpus, &Assignments) -> io::Result<()> + Send),
    ) -> io::Result<()> {
        self.0.visit_topics(f).map_err(io::Error::other)?
    }
}

/// Refuses options that runs over blocks do not have, and, for blocks, those of reading, which were given to
/// `lda cut`.
fn refuse(args: &Args, are_blocks: bool) -> Result<(), TrainError> {
    let reading = ReadingArgs::augment_args(Command::new("reading"));
    let mut given = reading.get_arguments().filter(|arg| args.is_given(arg.get_id().as_str()));
    if let Some(given) = given.next().filter(|_| are_blocks) {
        let option = given.get_long().unwrap_or(given.get_id().as_str());
        return Err(TrainError::Usage(format!(
            "--{option} applies when documents are read, and PATH is a directory of blocks: give it to lda cut"
        )));
    }
    let checkpoints = &args.checkpoints;
    for (option, is_given) in [
        (
            "--checkpoint beside --resume",
            checkpoints.resume.is_some() && checkpoints.checkpoint.is_some(),
        ),
        ("--checkpoint-every", checkpoints.checkpoint_every.is_some()),
        ("--checkpoint-minutes", checkpoints.checkpoint_minutes.is_some()),
        ("--checkpoint-keep", args.is_given("checkpoint_keep")),
    ] {
        if is_given {
            return Err(TrainError::Usage(format!(
                "{option} is for documents in memory; a run over blocks keeps every epoch in the directory of \
                 --checkpoint: omit it"
            )));
        }
    }
    Ok(())
}

/// How the blocks are used, for people.
fn summary(documents: &Documents, held: usize, epochs: u32) -> String {
    let all = documents.train.parts().len();
    let held = match held {
        _ if held == all => "all in memory".to_owned(),
        0 => "three in memory at a time".to_owned(),
        held => format!("{held} in memory, and three of the others at a time"),
    };
    let resumed = match epochs {
        0 => String::new(),
        epochs => format!("; going on after {epochs} epochs"),
    };
    format!("{}: {all} blocks, {held}{resumed}", documents.path().display())
}
