//! Messages between the lab and an adapter, one JSON object per line.
//!
//! The lab writes a [`Job`] to the adapter's standard input. The adapter trains, writes a file into
//! the scratch directory at every evaluation, prints a [`Report::Evaluated`] and waits for a line:
//! `go` to continue, `stop` to end. The lab evaluates meanwhile, so that nothing disturbs the
//! clocks. The last line is a [`Report::Done`]. If the adapter's input closes, the lab is gone.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::super::cell::{Cell, Done};

/// Request to an adapter.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) struct Job {
    /// Training corpus, an uncompressed UCI docword file.
    pub corpus: PathBuf,
    /// Number of topics K.
    pub topics: u32,
    /// Document-topic prior α per topic, fixed.
    pub alpha: f64,
    /// Topic-word prior β, fixed.
    pub beta: f64,
    /// Largest number of passes over the corpus.
    pub epochs: u32,
    /// Passes between evaluations.
    pub evaluate_every: u32,
    /// Limit of the CPU seconds of training, if any.
    pub seconds: Option<f64>,
    /// Random seed.
    pub seed: u64,
    /// Number of threads.
    pub threads: usize,
    /// Directory for output files.
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

/// A message of an adapter.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Report {
    /// A state was written.
    Evaluated(Evaluated),
    /// Training has ended.
    Done(Done),
}

/// A state written to the scratch directory.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(super) struct Evaluated {
    /// Completed passes over the corpus.
    pub epoch: u32,
    /// CPU seconds of training so far (user and system, all processes).
    pub cpu_seconds: f64,
    /// Wall-clock seconds of training so far.
    pub wall_seconds: f64,
    /// Name of the file in the scratch directory; the lab removes it.
    pub file: String,
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
