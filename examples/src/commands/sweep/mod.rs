//! `lda sweep`: trains models with several numbers of topics, to choose one.
//!
//! ```text
//! lda sweep reviews.txt --topics 10,20,50,100 --seeds 3 --out reviews
//! ```
//!
//! The documents are read once, and the runs are side by side. The directory gets a line per finished run
//! (`runs.jsonl`), one model per number of topics, a table (`sweep.csv`) and a page with plots
//! (`index.html`). The same command continues a sweep that was interrupted; more numbers of topics may
//! be added.
//!
//! Also an example of how to embed [`Sweep`](lda_core::train::Sweep).

mod args;
mod directory;
mod error;
mod page;
mod results;
mod run;

use std::process::ExitCode;

use lda_examples::program;

pub use args::Args;
use error::SweepError;

/// Runs `lda sweep`.
pub fn execute(args: &Args) -> ExitCode {
    program::end(run::run(args), SweepError::status)
}
