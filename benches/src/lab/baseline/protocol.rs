//! What the lab and an adapter say to each other, a JSON object a line.
//!
//! The lab writes a [`Job`] to the adapter's standard input. The adapter trains, writes a file into
//! the scratch directory at every evaluation, prints a [`Report::Evaluated`] and waits for a line:
//! `go` to go on, `stop` to end. The lab is judging meanwhile, so that nothing disturbs the clocks.
//! The last line is a [`Report::Done`]. An end of its input means that the lab is gone.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::super::Cell;

/// What an adapter is asked to do.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) struct Job {
    /// The corpus to train on, as a UCI docword file, not compressed.
    pub corpus: PathBuf,
    /// Topics K.
    pub topics: u32,
    /// α of every topic, fixed.
    pub alpha: f64,
    /// β, fixed.
    pub beta: f64,
    /// Passes over the corpus at most.
    pub epochs: u32,
    /// Passes between evaluations.
    pub evaluate_every: u32,
    /// CPU seconds of training at most, if that is given.
    pub seconds: Option<f64>,
    /// Seed of the run.
    pub seed: u64,
    /// Threads.
    pub threads: usize,
    /// Where files are to be written.
    pub scratch: PathBuf,
}

impl Job {
    pub(super) fn new(cell: &Cell, corpus: PathBuf, scratch: PathBuf) -> Self {
        Self {
            corpus,
            topics: cell.topics,
            alpha: cell.alpha,
            beta: cell.beta,
            epochs: cell.epochs,
            evaluate_every: cell.evaluate_every,
            seconds: cell.seconds,
            seed: cell.seed,
            threads: cell.threads,
            scratch,
        }
    }
}

/// A line of an adapter.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Report {
    /// A state was written down.
    Evaluated(Evaluated),
    /// The end.
    Done(Done),
}

/// A state that was written down.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(super) struct Evaluated {
    /// Passes over the corpus so far.
    pub epoch: u32,
    /// CPU seconds of training so far, user and system, of all its processes.
    pub cpu_seconds: f64,
    /// Seconds of training so far.
    pub wall_seconds: f64,
    /// Name of the file in the scratch directory; the lab removes it.
    pub file: String,
}

/// What an adapter says last.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Done {
    /// Version of the baseline and of what it runs on.
    pub version: String,
    /// Options that it really was given, by their own names.
    pub options: String,
    /// What is in its CPU seconds, where that is more than training.
    pub clock: String,
    /// Largest resident set of its processes, in bytes, where it knows.
    pub peak_bytes: Option<u64>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_read_and_mistakes_named() {
        let parse = |text: &str| serde_json::from_str::<Report>(text);
        let line = r#"{"evaluated":{"epoch":3,"cpu-seconds":1.5,"wall-seconds":2,"file":"a"}}"#;
        let file = "a".to_owned();
        let expected = Evaluated { epoch: 3, cpu_seconds: 1.5, wall_seconds: 2.0, file };
        assert_eq!(parse(line).unwrap(), Report::Evaluated(expected));
        let line = r#"{"done":{"version":"1","options":"k=2","clock":"","peak-bytes":null}}"#;
        assert!(matches!(parse(line).unwrap(), Report::Done(Done { peak_bytes: None, .. })));
        assert!(parse(r#"{"evaluated":{"epoch":-1}}"#).unwrap_err().to_string().contains("-1"));
        assert!(parse(r#"{"evaluated":{"epochs":1}}"#).unwrap_err().to_string().contains("epoch"));
    }
}
