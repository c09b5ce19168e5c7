//! Reports of finished runs: `epochs.csv`, `cells.csv`, `summary.md`, plots, and `lengths.csv` if
//! there are length bins.

mod colors;
mod csv;
mod figures;
mod lengths;
mod machines;
mod overview;
mod panel;
mod quantities;
mod summary;
mod table;

use std::path::PathBuf;

pub use summary::{Arrival, Group, group};

use super::files::write_report;
use super::thresholds::Thresholds;
use super::{LabError, Plan, Results, Store};

/// Writes the whole report into the store's directory and returns the files.
///
/// # Errors
/// [`LabError::Empty`] if no run is finished; [`LabError::Write`].
pub fn write(
    store: &Store,
    plan: &Plan,
    results: &Results,
    thresholds: &Thresholds,
) -> Result<Vec<PathBuf>, LabError> {
    let directory = store.directory();
    if results.records.is_empty() {
        return Err(LabError::Empty { path: directory.to_owned() });
    }
    let groups = group(results, thresholds);
    let mut files = vec![
        ("epochs.csv".to_owned(), csv::epochs(&results.records).into_bytes()),
        ("cells.csv".to_owned(), csv::cells(results, thresholds).into_bytes()),
        ("summary.md".to_owned(), table::markdown(plan, results, &groups).into_bytes()),
    ];
    if results.records.iter().any(|record| !record.cell.length_bins.is_empty()) {
        files.push(("lengths.csv".to_owned(), csv::lengths(&results.records).into_bytes()));
    }
    write_report(directory, files, figures::draw(plan, results, &groups, thresholds))
}

#[cfg(test)]
mod tests {
    use lda_core::train::TrainOptions;

    use super::super::cell::tests::cell;
    use super::super::{Cell, Machine, Memory, Outcome, Point, Record, Results};

    /// A run on "kos" of 1,000 tokens, rising linearly from −14 per token to `end` in 20 epochs of
    /// `seconds` / 10.
    pub(super) fn kos_record(seed: u64, seconds: f64, end: f64) -> Record {
        let mut builder = lda_core::corpus::CorpusBuilder::new();
        builder.push_tokens([0, 1]).unwrap();
        let corpus = builder.build().unwrap();
        let point = |epoch: u32| Point {
            epoch,
            cpu_seconds: seconds * f64::from(epoch) / 10.0,
            wall_seconds: seconds * f64::from(epoch) / 10.0,
            changed: Some(0.5),
            log_joint: Some(1000.0 * (-14.0 + (end + 14.0) * f64::from(epoch) / 20.0)),
            log_joint_doc: Some(-1.0),
            log_joint_word: Some(-1.0),
            ..Point::default()
        };
        let corpus_name = "kos".parse().unwrap();
        let cell =
            Cell { corpus: corpus_name, topics: 1000, alpha: 0.05, beta: 0.01, seed, ..cell() };
        Record {
            cell,
            machine: Machine::detect(),
            load: Some(0.5),
            jobs: 1,
            outcome: Outcome {
                resolved: Some(TrainOptions::default().resolve(&corpus).unwrap()),
                documents: 1,
                words: 2,
                tokens: 1000,
                lengths: Vec::new(),
                corpus_fingerprint: 0xabc,
                read_seconds: 0.1,
                start_seconds: Some(0.2),
                points: [0, 10, 20].map(point).into(),
                tokens_per_cpu_second: 10_000.0 / seconds,
                tokens_per_second: 10_000.0 / seconds,
                memory: Memory {
                    peak: Some(1 << 24),
                    peak_reading: None,
                    corpus: Some(1),
                    state: Some(2),
                },
                assignments_fingerprint: Some(u64::MAX),
                baseline: None,
            },
        }
    }

    pub(super) fn results(records: impl IntoIterator<Item = Record>) -> Results {
        Results { records: records.into_iter().collect(), failures: Vec::new() }
    }
}
