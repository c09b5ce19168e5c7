//! `lda train`: trains topics on a collection of documents.
//!
//! ```text
//! lda train                                        the Rust sources of this machine
//! lda train docword.nips.txt.gz --vocabulary vocab.nips.txt.gz --topics 1000 --log nips.jsonl
//! ```
//!
//! Also an example of how to embed lda-core: `run` reads a corpus, drives a
//! [`Trainer`](lda_core::train::Trainer) with an observer, and writes the results. `lda train --help`
//! lists the options; their names are stable.

mod args;
mod diagnostics;
mod error;
mod init;
mod input;
mod interrupt;
mod log;
mod over_blocks;
pub mod plot;
mod progress;
mod provenance;
mod results;
mod run;

use std::process::ExitCode;

use lda_examples::program;

pub use args::Args;
use error::TrainError;

/// Runs `lda train`.
pub fn execute(args: &Args) -> ExitCode {
    program::end(run::run(args), TrainError::status)
}
