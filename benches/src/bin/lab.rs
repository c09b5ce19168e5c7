//! The sampler lab's command line: `lab run plan.toml`.

use std::collections::BTreeMap;
use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, Parser, Subcommand};
use lda_benches::lab::calibrate::Calibration;
use lda_benches::lab::links::{self, LinksPlan};
use lda_benches::lab::recovery::{self, RecoveryPlan};
use lda_benches::lab::scale::{self, ScalePlan};
use lda_benches::lab::threshold_entry;
use lda_benches::lab::thresholds::Thresholds;
use lda_benches::lab::traffic::{self, TrafficPlan};
use lda_benches::lab::{
    Baseline, CorpusName, Event, LabError, Machine, Method, Plan, Results, Runner, Seeds, Store,
    baseline_names, end_with, report, sampler_names, serve,
};
use lda_core::train::SamplerKind;

/// Runs samplers side by side and writes CSV, a table and plots.
#[derive(Debug, Parser)]
#[command(version)]
struct Arguments {
    #[command(subcommand)]
    command: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Runs samplers and baselines × corpora × K × threads × seeds; run it again to continue after
    /// an interruption.
    Run(Box<RunArguments>),
    /// Writes CSV, table and plots again from the finished runs of an output directory.
    Report(ReportArguments),
    /// Counts the bytes between workers and servers of a cluster in one process, for several
    /// divisions of the work.
    Traffic(TrafficArguments),
    /// Times a cluster of processes whose servers are behind links of a given rate, for several
    /// divisions of the work. Needs root, ip and tc (iproute2), and the program `lda` with the
    /// feature `grpc`.
    Links(LinksArguments),
    /// Times how long a cluster of processes takes to sample again after one of them was killed. Needs the
    /// program `lda` with the feature `grpc`.
    Recovery(RecoveryArguments),
    /// Projects bytes, memory and time per epoch of a cluster that is not available from rates
    /// measured here, and compares the model with runs.
    Scale(ScaleArguments),
    /// Finds the document length from which WarpLDA reaches a likelihood before F+LDA on this
    /// machine; prints TOML.
    Calibrate(CalibrateArguments),
    /// Makes an entry of thresholds.toml from long runs of the exact sampler; prints TOML.
    Thresholds(ThresholdArguments),
    /// Runs one cell; started by `run`.
    #[command(hide = true)]
    Cell,
}

#[derive(Debug, Args)]
struct RunArguments {
    /// Plan file; the options below override it.
    plan: Option<PathBuf>,
    #[arg(
        long = "sampler",
        value_name = "NAMES",
        value_delimiter = ',',
        help = format!("Samplers: {}", sampler_names())
    )]
    samplers: Option<Vec<Method>>,
    #[arg(
        long = "baseline",
        value_name = "NAMES",
        value_delimiter = ',',
        help = format!("Programs of other people that run beside them: {}", baseline_names())
    )]
    baselines: Option<Vec<Baseline>>,
    /// Corpora: kos for docword.kos.txt.gz in $LDA_CORPORA; acl+nips for two joined; nytlike@0.1
    /// for a generated one.
    #[arg(long = "corpus", value_name = "NAMES", value_delimiter = ',')]
    corpora: Option<Vec<CorpusName>>,
    /// Numbers of topics K.
    #[arg(long, value_name = "NUMBERS", value_delimiter = ',')]
    topics: Option<Vec<u32>>,
    /// Numbers of threads.
    #[arg(long, value_name = "NUMBERS", value_delimiter = ',')]
    threads: Option<Vec<usize>>,
    /// Number of seeds: 1 to this.
    #[arg(long, value_name = "N")]
    seeds: Option<u32>,
    #[command(flatten)]
    limits: Limits,
    /// Upper bounds of document length bins with separate likelihoods: 60,600.
    #[arg(long, value_name = "NUMBERS", value_delimiter = ',')]
    length_bins: Option<Vec<u64>>,
    /// Share of the documents that are held out for perplexity: 0.1.
    #[arg(long, value_name = "SHARE")]
    held_out: Option<f64>,
    /// Ends a run at this share of the best likelihood (95, 98, 99 or 99.8), if it is known.
    #[arg(long, value_name = "PERCENT")]
    until: Option<f64>,
    /// Number of runs at once, each in its own process. Defaults to 1, which gives the best
    /// timings.
    #[arg(long, value_name = "N")]
    jobs: Option<usize>,
    /// Repeats finished runs.
    #[arg(long)]
    again: bool,
    #[command(flatten)]
    output: Output,
}

#[derive(Debug, Args)]
struct Limits {
    /// Document-topic prior per topic. Defaults to 50/K.
    #[arg(long, value_name = "X")]
    alpha: Option<f64>,
    /// Topic-word prior.
    #[arg(long, value_name = "X")]
    beta: Option<f64>,
    /// Largest number of epochs, for every sampler.
    #[arg(long, value_name = "N")]
    epochs: Option<u32>,
    /// Limit of the CPU seconds of sampling, for every sampler.
    #[arg(long, value_name = "X")]
    seconds: Option<f64>,
    /// Epochs between evaluations, for every sampler.
    #[arg(long, value_name = "N")]
    evaluate_every: Option<u32>,
}

#[derive(Debug, Args)]
struct Output {
    /// Output directory. Defaults to target/lab/NAME OF THE PLAN.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// File of target likelihoods, instead of those of this repository.
    #[arg(long, value_name = "FILE")]
    thresholds: Option<PathBuf>,
}

#[derive(Debug, Args)]
struct ReportArguments {
    /// Output directory of a run.
    directory: PathBuf,
    /// File of target likelihoods, instead of those of this repository.
    #[arg(long, value_name = "FILE")]
    thresholds: Option<PathBuf>,
}

#[derive(Debug, Args)]
struct TrafficArguments {
    /// Plan file.
    plan: PathBuf,
    /// Output directory. Defaults to target/lab/NAME OF THE PLAN.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Number of epochs, instead of the plan's.
    #[arg(long, value_name = "N")]
    epochs: Option<u32>,
    /// Number of runs at once, each on a thread, instead of the plan's.
    #[arg(long, value_name = "N")]
    jobs: Option<usize>,
    /// Repeats finished runs.
    #[arg(long)]
    again: bool,
}

#[derive(Debug, Args)]
struct LinksArguments {
    /// Plan file.
    plan: PathBuf,
    /// The program `lda`. Defaults to the one next to this program.
    #[arg(long, value_name = "FILE")]
    lda: Option<PathBuf>,
    /// Output directory. Defaults to target/lab/NAME OF THE PLAN.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Number of epochs, instead of the plan's.
    #[arg(long, value_name = "N")]
    epochs: Option<u32>,
    /// Rates in Mbit/s, instead of the plan's.
    #[arg(long, value_name = "NUMBERS", value_delimiter = ',')]
    rates: Option<Vec<u32>>,
    /// Repeats finished runs.
    #[arg(long)]
    again: bool,
}

#[derive(Debug, Args)]
struct RecoveryArguments {
    /// Plan file.
    plan: PathBuf,
    /// The program `lda`. Defaults to the one next to this program.
    #[arg(long, value_name = "FILE")]
    lda: Option<PathBuf>,
    /// Output directory. Defaults to target/lab/NAME OF THE PLAN.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

#[derive(Debug, Args)]
struct CalibrateArguments {
    /// Document lengths.
    #[arg(long, value_name = "NUMBERS", value_delimiter = ',')]
    lengths: Option<Vec<u32>>,
    /// Numbers of topics K.
    #[arg(long, value_name = "NUMBERS", value_delimiter = ',')]
    topics: Option<Vec<u32>>,
    /// Approximate number of tokens per corpus.
    #[arg(long, value_name = "N")]
    tokens: Option<u32>,
    /// Epochs of F+LDA, whose final likelihood WarpLDA has to reach.
    #[arg(long, value_name = "N")]
    epochs: Option<u32>,
}

#[derive(Debug, Args)]
struct ScaleArguments {
    /// Plan file.
    plan: PathBuf,
    /// Repeats finished measurements.
    #[arg(long)]
    again: bool,
    /// Output directory. Defaults to target/lab/NAME.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

#[derive(Debug, Args)]
struct ThresholdArguments {
    /// Corpus.
    #[arg(long, value_name = "NAME")]
    corpus: CorpusName,
    /// Number of topics K.
    #[arg(long, value_name = "K")]
    topics: u32,
    /// An exact sampler.
    #[arg(long, value_name = "NAME", default_value = "f-plus")]
    sampler: SamplerKind,
    /// Number of seeds: 1 to this.
    #[arg(long, value_name = "N", default_value_t = 1)]
    seeds: u32,
    /// Number of threads.
    #[arg(long, value_name = "N", default_value_t = 1)]
    threads: usize,
    #[command(flatten)]
    limits: Limits,
    #[command(flatten)]
    output: Output,
}

fn main() -> ExitCode {
    let result = match Arguments::parse().command {
        Action::Run(arguments) => run(*arguments),
        Action::Report(arguments) => report(&arguments),
        Action::Traffic(arguments) => traffic(&arguments),
        Action::Links(arguments) => links(&arguments),
        Action::Recovery(arguments) => recovery(&arguments),
        Action::Scale(arguments) => scale(&arguments),
        Action::Calibrate(arguments) => calibrate(arguments),
        Action::Thresholds(arguments) => make_threshold(arguments),
        Action::Cell => cell(),
    };
    match result {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            say(&format!("error: {error}"));
            // An invalid plan is misuse, as an unknown option is.
            let misuse = matches!(error, LabError::Value { .. });
            ExitCode::from(if misuse { 2 } else { 1 })
        }
    }
}

/// Returns whether every run finished.
fn run(arguments: RunArguments) -> Result<bool, LabError> {
    let mut plan = match &arguments.plan {
        Some(path) => Plan::read(path)?,
        None => Plan::default(),
    };
    replace(&mut plan.samplers, arguments.samplers);
    replace(&mut plan.baselines, arguments.baselines);
    if let Some(corpora) = arguments.corpora {
        // Tables of corpora that are not selected do not apply.
        plan.corpus.retain(|name, _| corpora.contains(name));
        plan.corpora = corpora;
    }
    replace(&mut plan.topics, arguments.topics);
    replace(&mut plan.threads, arguments.threads);
    // As with limits, a value given here applies everywhere.
    if let Some(seeds) = arguments.seeds {
        plan.seeds = Seeds::Count(seeds);
        plan.corpus.values_mut().for_each(|tuning| tuning.seeds = None);
    }
    plan.held_out = arguments.held_out.or(plan.held_out);
    plan.until = arguments.until.or(plan.until);
    plan.length_bins = arguments.length_bins.unwrap_or(plan.length_bins);
    replace(&mut plan.jobs, arguments.jobs);
    arguments.limits.apply(&mut plan);
    let runner = arguments.output.runner(&plan, arguments.again)?;
    let results = runner.run(&plan, Progress::default().listener())?;
    finish(&runner.store, &plan, &results, &runner.thresholds)
}

fn traffic(arguments: &TrafficArguments) -> Result<bool, LabError> {
    let mut plan = TrafficPlan::read(&arguments.plan)?;
    replace(&mut plan.epochs, arguments.epochs);
    replace(&mut plan.jobs, arguments.jobs);
    let default = || PathBuf::from("target/lab").join(&plan.name);
    let directory = arguments.out.clone().unwrap_or_else(default);
    for path in traffic::run(&plan, &directory, arguments.again, &say)? {
        say(&format!("wrote {}", path.display()));
    }
    Ok(true)
}

fn links(arguments: &LinksArguments) -> Result<bool, LabError> {
    let mut plan = LinksPlan::read(&arguments.plan)?;
    replace(&mut plan.epochs, arguments.epochs);
    replace(&mut plan.rates, arguments.rates.clone());
    let default = || PathBuf::from("target/lab").join(&plan.name);
    let directory = arguments.out.clone().unwrap_or_else(default);
    let program = lda(arguments.lda.as_deref())?;
    for path in links::run(&plan, &directory, &program, arguments.again, &say)? {
        say(&format!("wrote {}", path.display()));
    }
    Ok(true)
}

/// The program `lda`: the one that is given, or that next to this program.
fn lda(given: Option<&Path>) -> Result<PathBuf, LabError> {
    let this = || std::env::current_exe().map(|this| this.with_file_name("lda"));
    given
        .map_or_else(this, |given| Ok(given.to_owned()))
        .map_err(|source| LabError::Read { path: "the program itself".into(), source })
}

fn recovery(arguments: &RecoveryArguments) -> Result<bool, LabError> {
    let plan = RecoveryPlan::read(&arguments.plan)?;
    let default = || PathBuf::from("target/lab").join(&plan.name);
    let directory = arguments.out.clone().unwrap_or_else(default);
    for path in recovery::run(&plan, &directory, &lda(arguments.lda.as_deref())?, &say)? {
        say(&format!("wrote {}", path.display()));
    }
    Ok(true)
}

fn scale(arguments: &ScaleArguments) -> Result<bool, LabError> {
    let plan = ScalePlan::read(&arguments.plan)?;
    let default = || PathBuf::from("target/lab").join(&plan.name);
    let directory = arguments.out.clone().unwrap_or_else(default);
    for path in scale::run(&plan, &directory, arguments.again, &say)? {
        say(&format!("wrote {}", path.display()));
    }
    Ok(true)
}

/// Runs a cell in a child process, which ends when the lab does.
fn cell() -> Result<bool, LabError> {
    let mut job = String::new();
    let read = io::stdin().read_line(&mut job);
    read.map_err(|source| LabError::Read { path: "standard input".into(), source })?;
    if !job.is_empty() {
        end_with(io::stdin());
    }
    serve(&job, io::stdout().lock()).map(|()| true)
}

fn replace<T>(value: &mut T, by: Option<T>) {
    if let Some(by) = by {
        *value = by;
    }
}

impl Limits {
    /// Applies the options to every method and corpus, overriding the plan's tables.
    fn apply(&self, plan: &mut Plan) {
        plan.alpha = self.alpha.or(plan.alpha);
        replace(&mut plan.beta, self.beta);
        replace(&mut plan.epochs, self.epochs);
        plan.seconds = self.seconds.or(plan.seconds);
        replace(&mut plan.evaluate_every, self.evaluate_every);
        let variants = plan.variant.values_mut().map(|variant| &mut variant.tuning);
        for tuning in plan.sampler.values_mut().chain(variants) {
            tuning.epochs = tuning.epochs.filter(|_| self.epochs.is_none());
            tuning.seconds = tuning.seconds.filter(|_| self.seconds.is_none());
            tuning.evaluate_every = tuning.evaluate_every.filter(|_| self.evaluate_every.is_none());
        }
        for tuning in plan.baseline.values_mut() {
            tuning.epochs = tuning.epochs.filter(|_| self.epochs.is_none());
            tuning.seconds = tuning.seconds.filter(|_| self.seconds.is_none());
            tuning.evaluate_every = tuning.evaluate_every.filter(|_| self.evaluate_every.is_none());
        }
        for tuning in plan.corpus.values_mut() {
            tuning.epochs = tuning.epochs.filter(|_| self.epochs.is_none());
            tuning.seconds = tuning.seconds.filter(|_| self.seconds.is_none());
            tuning.evaluate_every = tuning.evaluate_every.filter(|_| self.evaluate_every.is_none());
        }
    }
}

impl Output {
    fn runner(&self, plan: &Plan, again: bool) -> Result<Runner, LabError> {
        let default = || PathBuf::from("target/lab").join(&plan.name);
        let program = std::env::current_exe()
            .map_err(|source| LabError::Read { path: "the program itself".into(), source })?;
        Ok(Runner {
            program,
            store: Store::new(self.out.clone().unwrap_or_else(default)),
            thresholds: read_thresholds(self.thresholds.as_ref())?,
            again,
        })
    }
}

fn read_thresholds(path: Option<&PathBuf>) -> Result<Thresholds, LabError> {
    path.map_or_else(|| Ok(Thresholds::built_in()), |path| Thresholds::read(path))
}

fn finish(
    store: &Store,
    plan: &Plan,
    results: &Results,
    thresholds: &Thresholds,
) -> Result<bool, LabError> {
    if results.records.is_empty() && !results.failures.is_empty() {
        return Ok(false);
    }
    let files = report::write(store, plan, results, thresholds)?;
    print(&std::fs::read_to_string(store.directory().join("summary.md")).unwrap_or_default());
    say(&format!("{} files in {}", files.len(), store.directory().display()));
    Ok(results.failures.is_empty())
}

fn report(arguments: &ReportArguments) -> Result<bool, LabError> {
    let store = Store::new(&arguments.directory);
    let thresholds = read_thresholds(arguments.thresholds.as_ref())?;
    let plan = store.plan()?;
    let mut results = Results::default();
    for cell in plan.cells(&thresholds)? {
        results.records.extend(store.load(&cell)?);
    }
    finish(&store, &plan, &results, &thresholds)
}

fn calibrate(arguments: CalibrateArguments) -> Result<bool, LabError> {
    let mut calibration = Calibration::default();
    replace(&mut calibration.lengths, arguments.lengths);
    replace(&mut calibration.topics, arguments.topics);
    replace(&mut calibration.tokens, arguments.tokens);
    replace(&mut calibration.epochs, arguments.epochs);
    let costs = calibration.measure(|topics, length, pair| {
        let warp = match pair.warp {
            Some(seconds) => format!("{seconds:.2} s"),
            None => "over four times that".to_owned(),
        };
        say(&format!(
            "K = {topics}, {length} tokens per document: f-plus {:.2} s, warp {warp}",
            pair.f_plus
        ));
    })?;
    print(&calibration.toml(&costs, &Machine::detect()));
    Ok(true)
}

fn make_threshold(arguments: ThresholdArguments) -> Result<bool, LabError> {
    let mut plan = Plan {
        name: format!("thresholds-{}-{}", arguments.corpus, arguments.topics),
        samplers: vec![arguments.sampler.into()],
        corpora: vec![arguments.corpus],
        topics: vec![arguments.topics],
        threads: vec![arguments.threads],
        seeds: Seeds::Count(arguments.seeds),
        epochs: 500,
        ..Plan::default()
    };
    arguments.limits.apply(&mut plan);
    let runner = arguments.output.runner(&plan, false)?;
    let results = runner.run(&plan, Progress::default().listener())?;
    print(&threshold_entry::entry(&results.records).unwrap_or_default());
    Ok(results.failures.is_empty())
}

/// Shows progress on standard error: one changing line on a terminal, otherwise a line per run.
#[derive(Debug)]
struct Progress {
    changing: bool,
    /// Running cells, by number.
    running: BTreeMap<usize, Running>,
}

/// Progress of a run, in words.
#[derive(Debug)]
struct Running {
    /// Text if the run is the only one.
    long: String,
    /// Text if several runs share a line.
    short: String,
}

impl Default for Progress {
    fn default() -> Self {
        Self { changing: io::stderr().is_terminal(), running: BTreeMap::new() }
    }
}

impl Progress {
    fn listener(mut self) -> impl FnMut(usize, usize, Event<'_>) {
        move |number, total, event| self.tell(number, total, event)
    }

    fn tell(&mut self, number: usize, total: usize, event: Event<'_>) {
        let (begin, erase) = if self.changing { ("\r", "\x1b[K") } else { ("", "") };
        let place = format!("[{number}/{total}]");
        match event {
            Event::Started { cell } => {
                let name = cell.name();
                let (long, short) = (format!("{place} {name}"), format!("[{number}] {name}"));
                self.change(number, Some(Running { long, short }));
            }
            Event::Evaluated { cell, epoch, score, tokens_per_cpu_second } => {
                let (name, epochs) = (cell.name(), cell.epochs);
                let speed = tokens_per_cpu_second / 1e6;
                let long = format!(
                    "{place} {name}  epoch {epoch}/{epochs}  {score}  {speed:.2} M tokens/s"
                );
                let short = format!("[{number}] {name} {epoch}");
                self.change(number, Some(Running { long, short }));
            }
            Event::Finished { record, kept } => {
                let outcome = &record.outcome;
                let Some(last) = outcome.points.last() else {
                    return self.change(number, None);
                };
                say(&format!(
                    "{begin}{place} {}: {} epochs, {:.1} CPU s, {}, {:.2} M tokens/s{}{erase}",
                    record.cell.name(),
                    last.epoch,
                    last.cpu_seconds,
                    last.score(outcome.tokens),
                    outcome.tokens_per_cpu_second / 1e6,
                    if kept { " (finished before)" } else { "" }
                ));
                self.change(number, None);
            }
            Event::Failed { failure } => {
                say(&format!("{begin}{place} failed: {}{erase}", failure.message));
                self.change(number, None);
            }
            _ => {}
        }
    }

    /// Updates the progress of a run; `None` means it has ended.
    fn change(&mut self, number: usize, state: Option<Running>) {
        match state {
            Some(state) => drop(self.running.insert(number, state)),
            None => drop(self.running.remove(&number)),
        }
        if !self.changing {
            return;
        }
        let runs: Vec<&Running> = self.running.values().collect();
        let line = match runs.as_slice() {
            [] => return,
            [alone] => alone.long.clone(),
            several => several.iter().map(|run| run.short.as_str()).collect::<Vec<_>>().join("  "),
        };
        // A failed write to the terminal is ignored.
        let _ = write!(io::stderr(), "\r{line}\x1b[K");
    }
}

fn say(text: &str) {
    // If standard error is closed, there is nowhere to report it.
    let _ = writeln!(io::stderr(), "{text}");
}

fn print(text: &str) {
    // The reader may close the pipe early.
    let _ = io::stdout().write_all(text.as_bytes());
}
