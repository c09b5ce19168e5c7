//! Training on the blocks of a directory that `lda cut` has written.

use std::path::{Path, PathBuf};

use clap::{Args as _, Command};
use lda_core::Corpus;
use lda_core::corpus::blocks::{BlockDirectory, Blocks};
use lda_core::model::TopicModel;
use lda_core::train::blocks::{BlockRunError, BlockTrainer};
use lda_core::train::{OptionsError, TrainOptions};
use lda_examples::memory;
use lda_examples::reading::ReadingArgs;

use crate::commands::train::args::Args;
use crate::commands::train::error::TrainError;
use crate::commands::train::log::Log;
use crate::commands::train::progress::{Goal, Progress};
use crate::commands::train::provenance::{Init, Input, Provenance};
use crate::commands::train::results::{OfModel, Results};
use crate::commands::train::run::{Watch, show};
use crate::commands::train::{init, interrupt};

/// Trains on the blocks at `path`, writes the output files and prints the table.
///
/// # Errors
/// [`TrainError`]. If one output file fails, the others are still written.
pub fn run(args: &Args, path: &Path, mut progress: Progress) -> Result<(), TrainError> {
    refuse(args)?;
    let mut results = Results::create(&args.results)?;
    let blocks = BlockDirectory::open(path)?;
    let (directory, is_new) = directory(args, path);
    // Also after an error.
    let _own = (!args.keeps_blocks()).then(|| OwnDirectory(directory.clone()));
    let options = match is_new {
        true => args.options()?,
        false => {
            args.options_of_blocks(BlockTrainer::<&BlockDirectory>::options_of(&directory)?)?
        }
    };
    let options = match args.machine.memory_limit {
        Some(_) => options,
        None => options.memory_limit(memory::of_process()),
    };
    progress.set_goal(Goal { epochs: options.get_epochs(), seconds: options.get_seconds() });
    progress.busy("preparing");
    let mut input = Input::of_blocks(path.display().to_string(), &blocks);
    let mut trainer = match is_new {
        true => begin(args, &blocks, &options, &directory, &progress)?,
        false => BlockTrainer::resume(&blocks, &options, &directory)?,
    };
    if is_new {
        input.init = Init::of(&args.init);
    }
    input.pseudo_counts =
        trainer.pseudo_counts().map(|counts| format!("{:016x}", counts.fingerprint()));
    progress.note(&summary(&blocks, trainer.held_blocks(), trainer.epochs()));
    let provenance = Provenance::new(trainer.resolved(), options.get_evaluate_every(), input);
    progress.note(&provenance.caption());
    let log = results.log.take().map(|output| Log::new(output, provenance.clone()));
    let mut watch = Watch::new(progress, log);
    interrupt::training_starts();
    let last = trainer.run(&mut watch, interrupt::asked)?;
    let Watch { progress, log, curve, .. } = watch;
    progress.finish(&last);

    let provenance = provenance.after(trainer.resolved(), last.epoch);
    let model = trainer.model();
    let log_written = log.map_or(Ok(()), Log::finish);
    let written = results.write_of_model(&OfModel { model: &model, curve }, &provenance);
    let shown = show(args, &model, options.get_seed(), None, &provenance);
    log_written?;
    written?;
    shown
}

/// A new run.
fn begin<'a>(
    args: &Args,
    blocks: &'a BlockDirectory,
    options: &TrainOptions,
    directory: &Path,
    progress: &Progress,
) -> Result<BlockTrainer<&'a BlockDirectory>, TrainError> {
    let words: Corpus = blocks.words()?;
    let topics = options.get_topics();
    let pseudo = init::pseudo_counts(&args.init, None::<&TopicModel>, &words, topics, progress)?;
    let begun = BlockTrainer::with_pseudo_counts(blocks, options, directory, pseudo);
    begun.map_err(|error| match error {
        BlockRunError::Options(OptionsError::Memory { needed, limit })
            if args.machine.memory_limit.is_none() =>
        {
            TrainError::Memory { needed, limit }
        }
        error => error.into(),
    })
}

/// The directory of the run's files, and true if the run is new. Without `--checkpoint` it is one beside the
/// blocks, which is removed in the end.
fn directory(args: &Args, path: &Path) -> (PathBuf, bool) {
    let checkpoints = &args.checkpoints;
    match (&checkpoints.resume, &checkpoints.checkpoint) {
        (Some(run), _) => (run.clone(), false),
        (None, Some(run)) => (run.clone(), true),
        (None, None) => (path.join(format!(".run-{}", std::process::id())), true),
    }
}

/// The files of a run that cannot be resumed, which are removed when it ends.
struct OwnDirectory(PathBuf);

impl Drop for OwnDirectory {
    fn drop(&mut self) {
        // Its files do no harm where they cannot be removed.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Refuses options that need all documents in memory, and those of reading, which were given to `lda cut`.
fn refuse(args: &Args) -> Result<(), TrainError> {
    let reading = ReadingArgs::augment_args(Command::new("reading"));
    if let Some(given) = reading.get_arguments().find(|arg| args.is_given(arg.get_id().as_str())) {
        let option = given.get_long().unwrap_or(given.get_id().as_str());
        return Err(TrainError::Usage(format!(
            "--{option} applies when documents are read, and PATH is a directory of blocks: give it to lda cut"
        )));
    }
    let results = &args.results;
    for (option, is_given) in [
        ("--held-out", args.hold_out.held_out.is_some()),
        ("--from", args.init.from.is_some()),
        ("--coherence", results.coherence),
        ("--diagnostics", results.diagnostics.is_some()),
        ("--assignments", results.assignments.is_some()),
        ("--doc-topics", results.doc_topics.is_some()),
        (
            "--checkpoint beside --resume",
            args.checkpoints.resume.is_some() && args.checkpoints.checkpoint.is_some(),
        ),
        ("--checkpoint-every", args.checkpoints.checkpoint_every.is_some()),
        ("--checkpoint-minutes", args.checkpoints.checkpoint_minutes.is_some()),
        ("--checkpoint-keep", args.is_given("checkpoint_keep")),
    ] {
        if is_given {
            return Err(TrainError::Usage(format!(
                "{option} is for documents in memory, and PATH is a directory of blocks: omit it"
            )));
        }
    }
    Ok(())
}

/// How the blocks are used, for people.
fn summary(blocks: &BlockDirectory, held: usize, epochs: u32) -> String {
    let all = blocks.parts().len();
    let held = match held {
        _ if held == all => "all in memory".to_owned(),
        0 => "three in memory at a time".to_owned(),
        held => format!("{held} in memory, and three of the others at a time"),
    };
    let resumed = match epochs {
        0 => String::new(),
        epochs => format!("; going on after {epochs} epochs"),
    };
    format!("{}: {all} blocks, {held}{resumed}", blocks.path().display())
}
