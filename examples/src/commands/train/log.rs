//! The log of a run: one JSON object per evaluated epoch.

use std::io::Write;

use lda_core::train::EpochReport;
use serde::Serialize;

use crate::commands::train::provenance::Provenance;
use lda_examples::output::{Output, OutputError};

/// A log that is being written.
#[derive(Debug)]
pub struct Log {
    output: Output,
    provenance: Provenance,
    /// First write error. Training continues without the log and fails at the end.
    failed: Option<std::io::Error>,
}

#[derive(Serialize)]
struct Line<'a> {
    #[serde(flatten)]
    report: &'a EpochReport,
    log_joint_per_token: Option<f64>,
    options: &'a Provenance,
}

impl Log {
    /// A log whose lines each carry `provenance`.
    pub fn new(output: Output, provenance: Provenance) -> Self {
        Self { output, provenance, failed: None }
    }

    /// Appends an epoch, if it was evaluated.
    pub fn add(&mut self, report: &EpochReport) {
        let log_joint_per_token = report.log_joint_per_token();
        if log_joint_per_token.is_none() || self.failed.is_some() {
            return;
        }
        let line = Line { report, log_joint_per_token, options: &self.provenance };
        let line = serde_json::to_string(&line).expect("plain data serializes to JSON");
        // Each line is flushed, so that a pipe shows it at once.
        if let Err(error) = writeln!(self.output, "{line}").and_then(|()| self.output.flush()) {
            self.failed = Some(error);
        }
    }

    /// Makes the file appear, or returns the first write error.
    pub fn finish(self) -> Result<(), OutputError> {
        let Self { output, failed, .. } = self;
        output.fill(|_| failed.map_or(Ok(()), Err))
    }
}
