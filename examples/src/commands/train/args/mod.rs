//! Options of `lda train`.
//!
//! Their names and meanings are stable, because other programs call this one. clap rejects what it
//! can check before any file is read, with exit status 2.

mod groups;
mod values;

use std::collections::{HashMap, HashSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::parser::ValueSource;
use clap::{ArgMatches, Parser};
use lda_core::eval::Ranking;
use lda_core::train::{Checkpoints, SamplerOptions, Snapshot, Start, TrainOptions};
use lda_examples::output::sidecar;
use lda_examples::reading::ReadingArgs;
use lda_examples::text::of_training;

use crate::commands::train::error::TrainError;
use groups::{CheckpointArgs, HoldOutArgs, MachineArgs, ModelArgs, StopArgs};
pub use groups::{InitArgs, ResultArgs};

const AFTER_HELP: &str = "\
Examples:
  lda train                                      train on the Rust sources of this machine
  lda train reviews.txt                          a text file: one document per line
  lda train papers/ --topics 50 --top-words 12   a directory: one document per file
  lda train docword.nips.txt.gz --vocabulary vocab.nips.txt.gz --topics 1000 --plot nips.png

The table of topics goes to standard output; progress and errors go to standard error.
Ctrl-C stops the run after the current epoch and writes all results; a second Ctrl-C exits at once.
Output files appear only when they are complete; a failed run leaves none behind.
Exit status: 0 success, 1 failure, 2 wrong usage.";

/// Train topics on a collection of documents (latent Dirichlet allocation)
#[derive(Debug, Parser)]
#[command(name = "train", after_help = AFTER_HELP,
    allow_negative_numbers = true, mut_args(of_training))]
pub struct Args {
    /// Documents to train on: a file, or a directory of text files. The format is detected; gzip and
    /// zstd are decompressed [default: the Rust sources in cargo's registry]
    pub path: Option<PathBuf>,

    #[command(flatten)]
    pub reading: ReadingArgs,
    #[command(flatten)]
    pub hold_out: HoldOutArgs,
    #[command(flatten)]
    pub model: ModelArgs,
    #[command(flatten)]
    pub init: InitArgs,
    #[command(flatten)]
    pub stop: StopArgs,
    #[command(flatten)]
    pub machine: MachineArgs,
    #[command(flatten)]
    pub checkpoints: CheckpointArgs,
    #[command(flatten)]
    pub results: ResultArgs,

    /// Ids of the options that were given on the command line.
    #[arg(skip)]
    given: HashSet<String>,
}

impl Args {
    /// Records which options were given on the command line.
    pub fn record_given(&mut self, matches: &ArgMatches) {
        let typed =
            |id: &&clap::Id| matches.value_source(id.as_str()) == Some(ValueSource::CommandLine);
        self.given = matches.ids().filter(typed).map(|id| id.as_str().to_owned()).collect();
    }

    /// Whether `option` was given on the command line.
    pub fn is_given(&self, option: &str) -> bool {
        self.given.contains(option)
    }

    /// Options of a resumed run: those that affect the draws are the run's unless they are given on
    /// the command line. So are its limits, unless one of them is given.
    pub fn options_of(&self, snapshot: &Snapshot) -> Result<TrainOptions, TrainError> {
        let run = SamplerOptions::from(snapshot.resolved());
        self.apply(snapshot.options(), run, |option| self.given.contains(option))
    }

    /// As [`options_of`](Self::options_of), for a run over blocks with these options.
    pub fn options_of_blocks(&self, run: TrainOptions) -> Result<TrainOptions, TrainError> {
        let sampler = run.get_sampler();
        self.apply(run, sampler, |option| self.given.contains(option))
    }

    /// Options of a new run.
    pub fn options(&self) -> Result<TrainOptions, TrainError> {
        self.apply(TrainOptions::default(), SamplerOptions::default(), |_| true)
    }

    /// Sets in `options` those options of the command line for which `is_set` is true, and all limits
    /// of the run if it is true for one of them.
    fn apply(
        &self,
        mut options: TrainOptions,
        sampler: SamplerOptions,
        is_set: impl Fn(&str) -> bool,
    ) -> Result<TrainOptions, TrainError> {
        let Self { model, stop, machine, .. } = self;
        macro_rules! set {
            ($($option:ident: $value:expr),+ $(,)?) => {
                $(if is_set(stringify!($option)) {
                    options = options.$option($value);
                })+
            };
        }
        set!(
            topics: model.topics,
            beta: model.beta,
            seed: model.seed,
            warm_up: machine.warm_up,
            start: machine.start,
            alpha_by_size: model.alpha_by_size,
            ranges: machine.ranges,
        );
        if let Some(alpha) = &model.alpha {
            options = options.alpha(alpha.clone());
        }
        if let Some(share) = machine.start_degree {
            options = options.start_degree(share);
        }
        let learn = ["learn_alpha", "learn_beta", "learn_burn_in", "learn_every"];
        if learn.iter().any(|option| is_set(option)) {
            options = options.learn(model.learn());
        }
        let sampler = if is_set("sampler") { model.sampler.0.into() } else { sampler };
        let limits = ["epochs", "seconds", "level_off", "level_off_window"];
        if limits.iter().any(|option| is_set(option)) {
            options = options.epochs(stop.epochs).seconds(stop.seconds).level_off(stop.level_off());
        }
        if is_set("evaluate_every") {
            options = options.evaluate_every(stop.evaluate_every);
        }
        // The global pool has the number of threads asked for, so that evaluation uses it too.
        Ok(options
            .sampler(machine.sampler_options(sampler)?)
            .memory_limit(machine.memory_limit)
            .isa(machine.isa))
    }

    /// Directory and schedule of checkpoints; `None` without `--checkpoint` and `--resume`.
    pub fn checkpoints(&self) -> Option<Checkpoints> {
        let CheckpointArgs { checkpoint, checkpoint_every, checkpoint_minutes, .. } =
            &self.checkpoints;
        let resume = &self.checkpoints.resume;
        let directory = checkpoint.as_ref().or(resume.as_ref())?;
        let mut checkpoints =
            Checkpoints::new(directory).keep(self.checkpoints.checkpoint_keep.into());
        if let Some(epochs) = checkpoint_every {
            checkpoints = checkpoints.every_epochs(*epochs);
        }
        if let Some(minutes) = checkpoint_minutes {
            let time = Duration::try_from_secs_f64(minutes * 60.0).unwrap_or(Duration::MAX);
            checkpoints = checkpoints.every_time(time);
        }
        let own = resume.as_ref().is_some_and(|run| identity(run) == identity(directory));
        Some(if own { checkpoints.take_over() } else { checkpoints })
    }

    /// Order of the words of a topic.
    pub fn ranking(&self) -> Ranking {
        if self.results.relevance == 1.0 {
            Ranking::Probability
        } else {
            Ranking::Relevance { lambda: self.results.relevance }
        }
    }

    /// Checks what clap cannot: priors against the number of topics, outputs that would be empty, and
    /// files named twice.
    pub fn check(&self) -> Result<(), TrainError> {
        self.check_priors()?;
        self.check_dependents()?;
        self.check_evaluations()?;
        self.check_files()
    }

    fn check_priors(&self) -> Result<(), TrainError> {
        let Some(alpha) = &self.model.alpha else { return Ok(()) };
        if self.checkpoints.resume.is_some() || self.init.from.is_some() {
            // The number of topics then comes from the run or the model.
            return Ok(());
        }
        alpha
            .check(self.model.topics as usize)
            .map_err(|error| TrainError::Usage(error.to_string()))
    }

    /// Refuses options that have no effect without another one.
    fn check_dependents(&self) -> Result<(), TrainError> {
        let needs = |option: &str, other: &str| {
            Err(TrainError::Usage(format!(
                "--{option} needs {other}: give it too, or omit --{option}"
            )))
        };
        // A resumed run has the options of its start.
        let is_new = self.checkpoints.resume.is_none();
        let learns = self.model.learn_alpha.is_some() || self.model.learn_beta;
        for (option, name) in [("learn_burn_in", "learn-burn-in"), ("learn_every", "learn-every")] {
            if self.is_given(option) && !learns {
                return needs(name, "--learn-alpha or --learn-beta");
            }
        }
        let MachineArgs { start, start_degree, .. } = &self.machine;
        if is_new && start_degree.is_some() && *start == Start::Random {
            return needs("start-degree", "--start sparse-word or --start sparse-document");
        }
        let CheckpointArgs { checkpoint, checkpoint_every, checkpoint_minutes, .. } =
            &self.checkpoints;
        if is_new && checkpoint.is_none() {
            for (name, is_given) in [
                ("checkpoint-every", checkpoint_every.is_some()),
                ("checkpoint-minutes", checkpoint_minutes.is_some()),
                ("checkpoint-keep", self.is_given("checkpoint_keep")),
            ] {
                if is_given {
                    return needs(name, "--checkpoint");
                }
            }
        }
        Ok(())
    }

    fn check_evaluations(&self) -> Result<(), TrainError> {
        let ResultArgs { log, plot, .. } = &self.results;
        for (option, path) in [("--log", log), ("--plot", plot)] {
            if path.is_some() && self.stop.evaluate_every == 0 {
                return Err(TrainError::Usage(format!(
                    "{option} needs evaluations, but --evaluate-every is 0: give 1 or more"
                )));
            }
        }
        Ok(())
    }

    fn check_files(&self) -> Result<(), TrainError> {
        let ResultArgs { log, assignments, doc_topics, topic_words, save, plot, .. } =
            &self.results;
        let stop_words = self.reading.text.words.stop_words.as_ref().filter(|list| list.exists());
        let given = [
            ("PATH", self.path.as_ref()),
            ("--vocabulary", self.reading.vocabulary.as_ref()),
            ("--dates", self.reading.dates.as_ref()),
            ("--stop-words", stop_words),
            ("--from", self.init.from.as_ref()),
            ("--seed-topics", self.init.seed_topics.as_ref()),
            ("--log", log.as_ref()),
            ("--assignments", assignments.as_ref()),
            ("--doc-topics", doc_topics.as_ref()),
            ("--topic-words", topic_words.as_ref()),
            ("--save", save.as_ref()),
            ("--plot", plot.as_ref()),
        ];
        let inputs = 6;
        let mut seen: HashMap<PathBuf, &str> = HashMap::new();
        for (place, (option, path)) in given.into_iter().enumerate() {
            let Some(path) = path else { continue };
            // The options of an output may go into its sidecar.
            let files =
                if place < inputs { vec![path.clone()] } else { vec![path.clone(), sidecar(path)] };
            for file in files {
                let first = seen.insert(identity(&file), option);
                if let Some(first) = first.filter(|_| place >= inputs && !path.starts_with("/dev"))
                {
                    return Err(TrainError::Usage(format!(
                        "{first} and {option} both name {}: give two files",
                        file.display()
                    )));
                }
            }
        }
        Ok(())
    }
}

/// A path that is equal for two spellings of the same file.
fn identity(path: &Path) -> PathBuf {
    if let Ok(path) = fs::canonicalize(path) {
        return path;
    }
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    match (fs::canonicalize(parent.unwrap_or(Path::new("."))), path.file_name()) {
        (Ok(parent), Some(name)) => parent.join(name),
        _ => path.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;
    use lda_core::simd::Isa;
    use lda_core::train::{Learn, LearnAlpha, LevelOff, SamplerKind};

    use super::*;

    fn parse(line: &str) -> Args {
        Args::try_parse_from(line.split_whitespace()).unwrap()
    }

    #[test]
    fn the_command_is_well_formed() {
        Args::command().debug_assert();
    }

    #[test]
    fn defaults_are_those_of_the_contract() {
        assert_eq!(parse("train").options().unwrap(), TrainOptions::default());
    }

    #[test]
    fn every_option_of_training_arrives() {
        let line = "train x --topics 7 --sampler hybrid --alpha 0.5 --beta 0.1 --seed 9 \
            --epochs 3 --seconds 2.5 --level-off=0.01 --evaluate-every 2 --mh-steps 2 \
            --mh-steps-cap 8 --start sparse-word --start-degree 0.2 --alpha-by-size 30 \
            --warm-up 5 --short-length 60 --ranges 4 --isa scalar \
            --memory-limit 2MiB --learn-alpha fixed --learn-beta --learn-burn-in 7 --learn-every 2";
        let hybrid = SamplerOptions::Hybrid { steps: 2, step_cap: 8, short_length: Some(60) };
        let expected = TrainOptions::new(7)
            .alpha(0.5)
            .beta(0.1)
            .sampler(hybrid)
            .seed(9)
            .epochs(3)
            .seconds(2.5)
            .level_off(LevelOff { window: 3, tolerance: 0.01 })
            .evaluate_every(2)
            .warm_up(5)
            .start(Start::SparseWord)
            .start_degree(0.2)
            .alpha_by_size(30.0)
            .learn(Learn { alpha: LearnAlpha::Fixed, beta: true, burn_in: 7, every: 2 })
            .ranges(4)
            .memory_limit(2 << 20)
            .isa(Isa::Scalar);
        assert_eq!(parse(line).options().unwrap(), expected);
        let exclude = parse("train x --exclude-converged-from 4").options().unwrap();
        let auto = SamplerOptions::Auto { exclude_from: Some(4) };
        assert_eq!(exclude, TrainOptions::default().sampler(auto));
    }

    #[test]
    fn options_that_a_sampler_does_not_have_are_refused() {
        for (option, able) in [
            ("mh-steps", "alias light warp hybrid"),
            ("mh-steps-cap", "hybrid"),
            ("short-length", "hybrid"),
            (
                "exclude-converged-from",
                "auto exact f-plus f-plus-doc sparse alias light zen zen-doc zen-hybrid",
            ),
        ] {
            let able: Vec<&str> = able.split(' ').collect();
            for sampler in SamplerKind::ALL.map(SamplerKind::name).into_iter().chain(["auto"]) {
                let line = format!("train x --sampler {sampler} --{option} 5");
                match parse(&line).options() {
                    Ok(_) => assert!(able.contains(&sampler), "{line}"),
                    Err(error) => {
                        assert!(!able.contains(&sampler), "{line}: {error}");
                        let error = error.to_string();
                        let start = format!("--{option} applies to the sampler");
                        let end =
                            format!("not to {sampler}: leave it out, or choose another sampler");
                        assert!(error.starts_with(&start) && error.ends_with(&end), "{error}");
                    }
                }
            }
        }
    }

    #[test]
    fn options_without_effect_are_refused() {
        for (line, expected) in [
            ("--start-degree 0.2", "--start-degree needs --start sparse-word or"),
            ("--start random --start-degree 0.2", "--start-degree needs --start sparse-word or"),
            ("--checkpoint-every 3", "--checkpoint-every needs --checkpoint: give it too, or omit"),
            ("--checkpoint-minutes 3", "--checkpoint-minutes needs --checkpoint:"),
        ] {
            let error = parse(&format!("train x {line}")).check().unwrap_err().to_string();
            assert!(error.starts_with(expected), "{error}");
        }
        for line in ["--start sparse-word --start-degree 0.2", "--resume d --start-degree 0.2"] {
            parse(&format!("train x {line}")).check().unwrap();
        }
    }

    #[test]
    fn priors_are_as_many_as_topics() {
        assert!(parse("train --topics 2 --alpha 1,2").check().is_ok());
        assert!(parse("train --topics 3 --alpha 1,2").check().is_err());
    }

    #[test]
    fn a_file_is_not_named_twice() {
        let twice = parse("train in --log a.csv --doc-topics ./a.csv").check();
        assert!(twice.unwrap_err().to_string().contains("--log and --doc-topics"));
        assert!(parse("train a.csv --doc-topics a.csv").check().is_err());
        assert!(parse("train a.csv --vocabulary a.csv").check().is_ok());
        assert!(parse("train --log /dev/stderr --assignments /dev/stderr").check().is_ok());
    }
}
