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
mod sources;
mod table;

use std::io::{self, Write};
use std::process::ExitCode;

use crate::args::Args;

fn main() -> ExitCode {
    match run::run(&Args::from_command_line()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // Where standard error is gone, the status still tells.
            let _ = writeln!(io::stderr(), "error: {error}");
            ExitCode::from(error.status())
        }
    }
}
