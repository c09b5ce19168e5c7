//! Runs the cells of a plan, each in a child process, up to `jobs` at once.
//!
//! Workers take cells in the plan's order and report to the caller's thread, which alone calls the
//! listener and sorts results in the order of the plan, so tables do not depend on the order of
//! completion. A child exits when its standard input closes. [`Children`] holds all inputs, so one
//! call ends all running children, and the operating system does the same if the lab itself dies.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use super::cell::{Job, Message, Outcome, Score};
use super::machine::load;
use super::process::{end_group, last_line, lead_group};
use super::thresholds::Thresholds;
use super::{Cell, LabError, Machine, Plan, Record, Store};

/// Default timeout of a baseline that hangs.
const BASELINES_TIMEOUT: Duration = Duration::from_secs(3600);

/// Progress of a runner.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Event<'a> {
    /// A run starts.
    Started {
        /// The run.
        cell: &'a Cell,
    },
    /// An epoch was evaluated.
    Evaluated {
        /// The run.
        cell: &'a Cell,
        /// Number of the epoch, from 1.
        epoch: u32,
        /// Quality after the epoch.
        score: Score,
        /// Speed of the epoch.
        tokens_per_cpu_second: f64,
    },
    /// A run is finished.
    Finished {
        /// Its result.
        record: &'a Record,
        /// Whether the result was stored by an earlier call, so that nothing was run.
        kept: bool,
    },
    /// A run failed; the others continue.
    Failed {
        /// The failed run and its reason.
        failure: &'a Failure,
    },
}

/// A run that failed.
#[derive(Clone, Debug)]
pub struct Failure {
    /// The run.
    pub cell: Cell,
    /// The reason, in one line.
    pub message: String,
}

/// Results of a plan.
#[derive(Clone, Debug, Default)]
pub struct Results {
    /// Finished runs, in the plan's order.
    pub records: Vec<Record>,
    /// Runs that failed, in the plan's order.
    pub failures: Vec<Failure>,
}

/// Runs plans.
#[derive(Debug)]
pub struct Runner {
    /// Program that handles the subcommand `cell` by calling [`serve`](super::serve): the lab
    /// itself.
    pub program: PathBuf,
    /// Storage of finished runs.
    pub store: Store,
    /// Likelihoods at which runs end early.
    pub thresholds: Thresholds,
    /// Whether to repeat runs that are already stored.
    pub again: bool,
}

impl Runner {
    /// Runs every cell that is not finished, [`jobs`](Plan::jobs) at once. `on` receives each event
    /// with the run's number, from 1, and the total number of runs; it is called by this thread
    /// only.
    ///
    /// # Errors
    /// An invalid plan or a missing corpus (both before anything runs), or an output directory that
    /// cannot be written, which ends the running cells. A failed run is not an error here.
    pub fn run(
        &self,
        plan: &Plan,
        mut on: impl FnMut(usize, usize, Event<'_>),
    ) -> Result<Results, LabError> {
        let cells = plan.cells(&self.thresholds)?;
        for corpus in &plan.corpora {
            corpus.check()?;
        }
        self.store.save_plan(plan)?;
        let shared = Shared {
            cells: &cells,
            next: AtomicUsize::new(0),
            jobs: plan.jobs.min(cells.len()),
            machine: Machine::detect(),
            timeout: plan.timeout.map(Duration::from_secs_f64),
            corpora: Mutex::default(),
            children: Children::default(),
        };
        // Indexed by the cell's position in the plan.
        let mut ends: Vec<Option<Result<Record, Failure>>> = Vec::new();
        ends.resize_with(cells.len(), || None);
        thread::scope(|scope| {
            let (sender, news) = channel();
            for _ in 0..shared.jobs {
                let (sender, shared) = (sender.clone(), &shared);
                scope.spawn(move || self.work(shared, &sender));
            }
            drop(sender);
            for (i, news) in news {
                let mut tell = |event: Event<'_>| on(i + 1, cells.len(), event);
                let cell = &cells[i];
                match news {
                    News::Started => tell(Event::Started { cell }),
                    News::Evaluated { epoch, score, tokens_per_cpu_second } => {
                        tell(Event::Evaluated { cell, epoch, score, tokens_per_cpu_second });
                    }
                    News::Finished { record, kept } => {
                        tell(Event::Finished { record: &record, kept });
                        ends[i] = Some(Ok(*record));
                    }
                    News::Failed(failure) => {
                        tell(Event::Failed { failure: &failure });
                        ends[i] = Some(Err(failure));
                    }
                    News::Stopped(error) => {
                        shared.children.end();
                        return Err(error);
                    }
                }
            }
            Ok(())
        })?;
        let mut results = Results::default();
        for end in ends.into_iter().flatten() {
            match end {
                Ok(record) => results.records.push(record),
                Err(failure) => results.failures.push(failure),
            }
        }
        Ok(results)
    }

    /// Takes cells until none is left or everything is to stop.
    fn work(&self, shared: &Shared<'_>, sender: &Sender<(usize, News)>) {
        while !shared.children.ended() {
            let i = shared.next.fetch_add(1, Ordering::Relaxed);
            let Some(cell) = shared.cells.get(i) else { return };
            // The receiver is gone once everything is to stop.
            let tell = |news| drop(sender.send((i, news)));
            match self.finish(i, cell, shared, &tell) {
                Ok(news) => tell(news),
                Err(error) => tell(News::Stopped(error)),
            }
        }
    }

    /// Runs a cell unless it is finished, and returns its result.
    fn finish(
        &self,
        i: usize,
        cell: &Cell,
        shared: &Shared<'_>,
        tell: &impl Fn(News),
    ) -> Result<News, LabError> {
        if let Some(record) = self.finished(cell)? {
            return Ok(News::Finished { record: Box::new(record), kept: true });
        }
        tell(News::Started);
        let load = load();
        match self.child(i, cell, shared, tell) {
            Ok(outcome) => {
                let (cell, machine) = (cell.clone(), shared.machine.clone());
                let record = Record { cell, machine, load, jobs: shared.jobs, outcome };
                self.store.save(&record)?;
                Ok(News::Finished { record: Box::new(record), kept: false })
            }
            Err(error) => {
                Ok(News::Failed(Failure { cell: cell.clone(), message: error.to_string() }))
            }
        }
    }

    fn finished(&self, cell: &Cell) -> Result<Option<Record>, LabError> {
        if self.again { Ok(None) } else { self.store.load(cell) }
    }

    fn child(
        &self,
        i: usize,
        cell: &Cell,
        shared: &Shared<'_>,
        tell: &impl Fn(News),
    ) -> Result<Outcome, LabError> {
        let timeout = shared.timeout.or(cell.sampler.is_baseline().then_some(BASELINES_TIMEOUT));
        let path = {
            // Only one run may generate a corpus file at a time.
            let _making = lock(&shared.corpora);
            cell.corpus.file(&self.store.corpora())?
        };
        let fail = |message: String| LabError::Child { cell: cell.name(), message };
        let scratch = self.store.scratch(cell);
        // Remove the states of an interrupted run.
        clear(&scratch);
        let job = Job { cell: cell.clone(), path, scratch: scratch.clone() };
        let (mut child, input) = start(&self.program, &job)
            .map_err(|error| fail(format!("cannot start {}: {error}", self.program.display())))?;
        // INVARIANT: stays open until the child has exited, since closing it ends the child.
        let _input = input.map(|input| shared.children.hold(i, input));
        let complaints = thread::spawn({
            let stderr = child.stderr.take();
            move || stderr.map(last_line).unwrap_or_default()
        });
        let messages = listen(&mut child);
        let outcome = collect(&messages, timeout, |epoch, score, tokens_per_cpu_second| {
            tell(News::Evaluated { epoch, score, tokens_per_cpu_second });
        });
        if let Err(Ended::Late) = outcome {
            end_group(&mut child);
        }
        let status = child.wait().map_err(|error| fail(format!("lost: {error}")))?;
        // Processes started by a baseline may outlive it.
        end_group(&mut child);
        clear(&scratch);
        let complaint = complaints.join().unwrap_or_default();
        match outcome {
            Ok(outcome) if status.success() => Ok(outcome),
            Err(Ended::Late) => Err(fail("exceeded the timeout and was killed".to_owned())),
            _ => Err(fail(describe(status, &complaint))),
        }
    }
}

/// State shared by the workers of a plan.
struct Shared<'a> {
    cells: &'a [Cell],
    /// Index of the next cell to run.
    next: AtomicUsize,
    /// Largest number of cells that run at once.
    jobs: usize,
    machine: Machine,
    /// The plan's timeout for all runs.
    timeout: Option<Duration>,
    /// Held while a corpus file is generated.
    corpora: Mutex<()>,
    children: Children,
}

/// Message from a worker about a cell.
enum News {
    Started,
    Evaluated {
        epoch: u32,
        score: Score,
        tokens_per_cpu_second: f64,
    },
    Finished {
        record: Box<Record>,
        kept: bool,
    },
    Failed(Failure),
    /// Nothing more can be run.
    Stopped(LabError),
}

/// Standard inputs of the running children, by the number of their cell; `None` once all are to
/// end.
struct Children(Mutex<Option<BTreeMap<usize, ChildStdin>>>);

/// Closes a child's input when it is dropped.
struct Held<'a> {
    children: &'a Children,
    number: usize,
}

impl Default for Children {
    fn default() -> Self {
        Self(Mutex::new(Some(BTreeMap::new())))
    }
}

impl Children {
    /// Keeps a child's input open; closes it at once if all are to end.
    fn hold(&self, number: usize, input: ChildStdin) -> Held<'_> {
        if let Some(inputs) = &mut *lock(&self.0) {
            inputs.insert(number, input);
        }
        Held { children: self, number }
    }

    /// Ends all children, including those not yet started.
    fn end(&self) {
        *lock(&self.0) = None;
    }

    fn ended(&self) -> bool {
        lock(&self.0).is_none()
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        if let Some(inputs) = &mut *lock(&self.children.0) {
            inputs.remove(&self.number);
        }
    }
}

/// No critical section here can be left half done, so a poisoned lock is safe to use.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Removes a run's scratch directory, if any. Only baselines have one.
fn clear(scratch: &Path) {
    let _ = std::fs::remove_dir_all(scratch);
}

fn describe(status: ExitStatus, complaint: &str) -> String {
    let complaint = complaint.strip_prefix("error: ").unwrap_or(complaint);
    match (status.success(), complaint) {
        (true, "") => "exited without a result".to_owned(),
        (_, "") => format!("exited with {status}"),
        (_, complaint) => complaint.to_owned(),
    }
}

fn start(program: &Path, job: &Job) -> std::io::Result<(Child, Option<ChildStdin>)> {
    let mut command = Command::new(program);
    command.arg("cell").stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = lead_group(&mut command).spawn()?;
    let mut input = child.stdin.take();
    if let Some(input) = &mut input {
        let mut line = serde_json::to_vec(job)?;
        line.push(b'\n');
        // If the child has already exited, its status reports it.
        let _ = input.write_all(&line);
    }
    Ok((child, input))
}

fn listen(child: &mut Child) -> Receiver<Message> {
    let (sender, receiver) = channel();
    if let Some(stdout) = child.stdout.take() {
        thread::spawn(move || {
            let lines = BufReader::new(stdout).lines().map_while(Result::ok);
            for message in lines.map_while(|line| serde_json::from_str(&line).ok()) {
                // The receiver is gone after a timeout.
                if sender.send(message).is_err() {
                    break;
                }
            }
        });
    }
    receiver
}

enum Ended {
    /// The child closed its output.
    Silent,
    /// The timeout expired.
    Late,
}

fn collect(
    messages: &Receiver<Message>,
    timeout: Option<Duration>,
    mut evaluated: impl FnMut(u32, Score, f64),
) -> Result<Outcome, Ended> {
    let start = Instant::now();
    loop {
        let message = match timeout {
            None => messages.recv().map_err(|_| Ended::Silent)?,
            Some(timeout) => {
                let left = timeout.saturating_sub(start.elapsed());
                messages.recv_timeout(left).map_err(|error| match error {
                    RecvTimeoutError::Timeout => Ended::Late,
                    RecvTimeoutError::Disconnected => Ended::Silent,
                })?
            }
        };
        match message {
            Message::Evaluated { epoch, score, tokens_per_cpu_second } => {
                evaluated(epoch, score, tokens_per_cpu_second);
            }
            Message::Done(outcome) => return Ok(*outcome),
        }
    }
}
