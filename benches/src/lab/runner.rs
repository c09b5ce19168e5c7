//! Runs the cells of a plan, each in a child process, one after the other.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

use super::cell::{Job, Message, Outcome, Score};
use super::machine::load;
use super::process::{end_group, last_line, lead_group};
use super::thresholds::Thresholds;
use super::{Cell, LabError, Machine, Plan, Record, Store};

/// A rival that hangs is given up after this, unless the plan says when.
const RIVALS_TIMEOUT: Duration = Duration::from_secs(3600);

/// What a runner tells while it works.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Event<'a> {
    /// A run begins.
    Started {
        /// Which.
        cell: &'a Cell,
    },
    /// An epoch was evaluated.
    Evaluated {
        /// Of which run.
        cell: &'a Cell,
        /// Which epoch.
        epoch: u32,
        /// How good its state is.
        score: Score,
        /// Speed of the epoch.
        tokens_per_cpu_second: f64,
    },
    /// A run is finished.
    Finished {
        /// What came out.
        record: &'a Record,
        /// Whether it was finished before, so that nothing was run.
        kept: bool,
    },
    /// A run failed; the others go on.
    Failed {
        /// Why.
        failure: &'a Failure,
    },
}

/// A run that failed.
#[derive(Clone, Debug)]
pub struct Failure {
    /// Which.
    pub cell: Cell,
    /// Why, in one line.
    pub message: String,
}

/// What a plan came to.
#[derive(Clone, Debug, Default)]
pub struct Results {
    /// Finished runs, in the plan's order.
    pub records: Vec<Record>,
    /// Runs that failed.
    pub failures: Vec<Failure>,
}

/// Runs plans.
#[derive(Debug)]
pub struct Runner {
    /// A program that answers `cell` by calling [`serve`](super::serve): the lab itself.
    pub program: PathBuf,
    /// Where finished runs are kept.
    pub store: Store,
    /// Likelihoods that end runs early.
    pub thresholds: Thresholds,
    /// Runs again what was finished before.
    pub again: bool,
}

impl Runner {
    /// Runs every cell that is not finished yet. `on` hears of each with its number, from 1, and the
    /// number of all.
    ///
    /// # Errors
    /// A plan that makes no sense, a corpus that is not there (both before anything is run), or an
    /// output directory that cannot be written. A run that fails is no error here.
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
        let machine = Machine::detect();
        let timeout = plan.timeout.map(Duration::from_secs_f64);
        let mut results = Results::default();
        for (i, cell) in cells.iter().enumerate() {
            let mut tell = |event: Event<'_>| on(i + 1, cells.len(), event);
            if let Some(record) = self.finished(cell)? {
                tell(Event::Finished { record: &record, kept: true });
                results.records.push(record);
                continue;
            }
            tell(Event::Started { cell });
            let load = load();
            let timeout = timeout.or(cell.sampler.is_rival().then_some(RIVALS_TIMEOUT));
            let outcome = self.child(cell, timeout, |epoch, score, tokens_per_cpu_second| {
                tell(Event::Evaluated { cell, epoch, score, tokens_per_cpu_second });
            });
            match outcome {
                Ok(outcome) => {
                    let (cell, machine) = (cell.clone(), machine.clone());
                    let record = Record { cell, machine, load, outcome };
                    self.store.save(&record)?;
                    tell(Event::Finished { record: &record, kept: false });
                    results.records.push(record);
                }
                Err(error) => {
                    let failure = Failure { cell: cell.clone(), message: error.to_string() };
                    tell(Event::Failed { failure: &failure });
                    results.failures.push(failure);
                }
            }
        }
        Ok(results)
    }

    fn finished(&self, cell: &Cell) -> Result<Option<Record>, LabError> {
        if self.again { Ok(None) } else { self.store.load(cell) }
    }

    fn child(
        &self,
        cell: &Cell,
        timeout: Option<Duration>,
        evaluated: impl FnMut(u32, Score, f64),
    ) -> Result<Outcome, LabError> {
        let path = cell.corpus.file(&self.store.corpora())?;
        let fail = |message: String| LabError::Child { cell: cell.name(), message };
        let scratch = self.store.scratch(cell);
        // States of a run that was interrupted are not this one's.
        clear(&scratch);
        let job = Job { cell: cell.clone(), path, scratch: scratch.clone() };
        // Its input stays open, since the end of it ends the child.
        let (mut child, _input) = start(&self.program, &job)
            .map_err(|error| fail(format!("cannot start {}: {error}", self.program.display())))?;
        let complaints = thread::spawn({
            let stderr = child.stderr.take();
            move || stderr.map(last_line).unwrap_or_default()
        });
        let messages = listen(&mut child);
        let outcome = collect(&messages, timeout, evaluated);
        if let Err(Ended::Late) = outcome {
            end_group(&mut child);
        }
        let status = child.wait().map_err(|error| fail(format!("lost: {error}")))?;
        // What a rival has started may outlive it.
        end_group(&mut child);
        clear(&scratch);
        let complaint = complaints.join().unwrap_or_default();
        match outcome {
            Ok(outcome) if status.success() => Ok(outcome),
            Err(Ended::Late) => Err(fail("took longer than the timeout and was ended".to_owned())),
            _ => Err(fail(describe(status, &complaint))),
        }
    }
}

/// Removes a run's scratch directory. Only rivals have one, so that often there is none.
fn clear(scratch: &Path) {
    let _ = std::fs::remove_dir_all(scratch);
}

fn describe(status: ExitStatus, complaint: &str) -> String {
    let complaint = complaint.strip_prefix("error: ").unwrap_or(complaint);
    match (status.success(), complaint) {
        (true, "") => "ended without a result".to_owned(),
        (_, "") => format!("ended with {status}"),
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
        // A child that is gone already says so by its status.
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
                // Nobody listens any more after a timeout.
                if sender.send(message).is_err() {
                    break;
                }
            }
        });
    }
    receiver
}

enum Ended {
    /// The child said no more.
    Silent,
    /// The time was over.
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
