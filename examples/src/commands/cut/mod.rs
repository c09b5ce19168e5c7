//! `lda cut`: reads documents into blocks, for training on more of them than fit in memory.
//!
//! ```text
//! lda cut reviews.jsonl.gz --text-column text --out reviews
//! lda train reviews --memory-limit 2GiB
//! ```
//!
//! Documents are read once and never all in memory. Also an example of how to embed
//! [`BlockDirectory::read_named`](lda_core::corpus::blocks::BlockDirectory::read_named).

mod args;
mod run;

use std::process::ExitCode;

use lda_examples::program;

pub use args::Args;
use run::CutRunError;

/// Runs `lda cut`.
pub fn execute(args: &Args) -> ExitCode {
    program::end(run::run(args), CutRunError::status)
}
