//! The sampler lab: one command runs samplers × corpora × K × threads × seeds and writes the tables
//! and plots that a researcher compares. Baselines (other people's programs) run next to our
//! samplers.
//!
//! A [`Plan`] is a list of [`Cell`]s. The [`Runner`] runs each in a child process ([`serve`]) and
//! saves every finished [`Record`] in a [`Store`]; an interrupted plan continues where it stopped.
//! [`report::write`] turns the records into CSV, a Markdown table and plots. [`thresholds`]
//! computes the time to a likelihood; [`calibrate`] finds the faster sampler by document length on
//! this machine; [`traffic`] counts the bytes of a cluster, [`links`] times a cluster behind slow
//! links, [`recovery`] one whose processes are killed, and [`scale`] projects one that is not available.
//!
//! How each figure is measured is documented at the code that measures it and in the README of this
//! package. Needs the feature `lab`.

mod baseline;
pub mod calibrate;
mod cell;
mod child;
mod corpora;
mod cut;
mod documents;
mod error;
mod files;
mod held_out;
mod lengths;
pub mod links;
mod machine;
mod method;
mod plan;
mod plot;
/// The example of a sampler written outside the library, which the lab runs beside its own.
#[path = "../../../lda-core/examples/polya_urn/sampler.rs"]
mod polya_urn;
mod process;
pub mod recovery;
pub mod report;
mod runner;
pub mod scale;
mod store;
pub mod threshold_entry;
pub mod thresholds;
pub mod traffic;
mod tuning;

pub use cell::{Cell, Done, Memory, Outcome, Point, Score};
pub use child::serve;
pub use corpora::CorpusName;
pub use documents::LengthBin;
pub use error::LabError;
pub use machine::Machine;
pub use method::{Baseline, Method, baseline_names, sampler_names};
pub use plan::Plan;
pub use process::end_with;
pub use runner::{Event, Failure, Results, Runner};
pub use store::{Record, Store};
pub use tuning::{BaselineTuning, CorpusTuning, Overrides, Seeds, Tuning, Variant};

/// Median: the middle value, or the mean of the two middle ones; `None` if empty. Infinite values
/// take part: the median of runs most of which never reach a likelihood is infinite.
fn median(values: impl IntoIterator<Item = f64>) -> Option<f64> {
    let mut values: Vec<f64> = values.into_iter().collect();
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    match values.len() {
        0 => None,
        n if n % 2 == 1 => Some(values[middle]),
        _ => Some((values[middle - 1] + values[middle]) / 2.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians() {
        assert_eq!(median([]), None);
        assert_eq!(median([3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median([4.0, 1.0, 2.0, 3.0]), Some(2.5));
        assert_eq!(median([1.0, f64::INFINITY, f64::INFINITY]), Some(f64::INFINITY));
        assert_eq!(median([1.0, 2.0, f64::INFINITY]), Some(2.0));
    }
}
