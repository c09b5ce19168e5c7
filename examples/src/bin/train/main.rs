//! `train`: finds the topics of a collection of documents.
//!
//! ```text
//! train                                        the Rust sources on this machine
//! train docword.nips.txt.gz --vocabulary vocab.nips.txt.gz --topics 1000 --log nips.jsonl
//! ```
//!
//! A program around lda-core, and an example of how to embed it: `run` reads a corpus, drives a
//! [`Trainer`](lda_core::train::Trainer) with an observer, and writes what came out. `train --help`
//! lists the options; their names are stable.

mod args;
mod basis;
mod error;
mod held_out;
mod input;
mod interrupt;
mod log;
mod plot;
mod progress;
mod provenance;
mod results;
mod run;

use std::process::ExitCode;

use lda_examples::program;

use crate::args::Args;
use crate::error::TrainError;

fn main() -> ExitCode {
    program::end(run::run(&Args::from_command_line()), TrainError::status)
}
