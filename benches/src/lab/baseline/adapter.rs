//! The process of an adapter: its location, start and messages.
//!
//! The program is `baselines/baseline` of this package, or of the directory `$LDA_BASELINES`; it
//! gets the baseline's name as its only argument. The messages are described in
//! [`protocol`](super::protocol).

use std::io::{BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::thread::{self, JoinHandle};

use serde::Serialize;

use super::super::process::last_line;
use super::super::{Baseline, LabError};
use super::lines::Lines;
use super::protocol::Report;

/// Longest line of an adapter; options are the longest message.
const MOST_BYTES: usize = 1 << 16;

/// A running adapter.
pub(super) struct Adapter {
    baseline: Baseline,
    child: Child,
    input: ChildStdin,
    output: Lines<BufReader<ChildStdout>>,
    complaints: JoinHandle<String>,
}

impl Adapter {
    pub(super) fn start(baseline: Baseline, job: &impl Serialize) -> Result<Self, LabError> {
        installed(baseline)?;
        let fail = |message: String| LabError::Baseline { baseline, message };
        let program = program();
        let mut child = Command::new(&program)
            .arg(baseline.name())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|error| fail(format!("cannot start {}: {error}", program.display())))?;
        let pipes = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let (Some(input), Some(stdout), Some(stderr)) = pipes else {
            return Err(fail("started without its pipes".to_owned()));
        };
        let output = Lines::new(BufReader::new(stdout));
        let complaints = thread::spawn(move || last_line(stderr));
        let mut adapter = Self { baseline, child, input, output, complaints };
        let job = serde_json::to_string(job).map_err(|error| fail(error.to_string()))?;
        adapter.say(&job);
        Ok(adapter)
    }

    /// Next message; `None` if the adapter has ended.
    pub(super) fn next(&mut self) -> Result<Option<Report>, LabError> {
        let baseline = self.baseline;
        let fail = |message: String| LabError::Baseline { baseline, message };
        let line = self.output.next(MOST_BYTES);
        let line = line.map_err(|error| fail(format!("standard output, {error}")))?;
        let Some(line) = line.map(str::to_owned) else { return Ok(None) };
        let report = serde_json::from_str(&line).map(Some);
        let number = self.output.number();
        report.map_err(|error| fail(format!("standard output, line {number}: {error}")))
    }

    /// Sends the job, or the reply to an evaluation.
    pub(super) fn say(&mut self, line: &str) {
        // If the adapter has exited, its status reports it.
        let _ = writeln!(self.input, "{line}").and_then(|()| self.input.flush());
    }

    /// Waits for the adapter and checks its exit status.
    pub(super) fn end(mut self) -> Result<(), LabError> {
        drop(self.input);
        let status = self.child.wait();
        let complaint = self.complaints.join().unwrap_or_default();
        let message = match status {
            Ok(status) if status.success() => return Ok(()),
            Ok(status) if complaint.is_empty() => format!("exited with {status}"),
            Ok(_) => complaint,
            Err(error) => format!("lost: {error}"),
        };
        Err(LabError::Baseline { baseline: self.baseline, message })
    }

    /// Kills the adapter. Its own children end with the run's process group.
    pub(super) fn kill(mut self) {
        // It may already have exited.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Checks that the program exists. Whether a Python package is installed only its adapter can find
/// out.
fn installed(baseline: Baseline) -> Result<(), LabError> {
    let missing = |remedy: String| {
        Err(LabError::Baseline { baseline, message: format!("not installed: {remedy}") })
    };
    if let Some(variable) = baseline.variable() {
        return match std::env::var_os(variable) {
            Some(path) if Path::new(&path).is_file() => Ok(()),
            Some(path) if !path.is_empty() => {
                missing(format!("{variable} is {}, which is not a file", path.display()))
            }
            _ => missing(format!("set {variable} to its executable")),
        };
    }
    Ok(())
}

fn program() -> PathBuf {
    let directory = match std::env::var_os("LDA_BASELINES") {
        Some(directory) if !directory.is_empty() => PathBuf::from(directory),
        _ => Path::new(env!("CARGO_MANIFEST_DIR")).join("baselines"),
    };
    directory.join("baseline")
}
