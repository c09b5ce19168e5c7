//! `lda report`: a model and its documents as one page of HTML, to look at and to pass on.
//!
//! ```text
//! lda report nips.lda docword.nips.txt.gz --out nips.html            topics, documents, a map
//! lda report nips.lda docword.nips.txt.gz --out nips.html \
//!     --dates times.nips.txt.gz --log nips.jsonl                 and topics over time, the curve
//! ```
//!
//! The page is a single file that asks no server for anything: it works from disk, in an archive, as an
//! attachment. What it shows is computed here ([`Contents`](contents::Contents)); what the browser does
//! is in `page/`, which is joined into the file as it stands, and held to it by a policy that lets no
//! other script run.

mod about;
mod args;
mod contents;
mod curve;
mod documents;
mod encode;
mod html;
mod run;
mod terms;
mod time;

use std::process::ExitCode;

use lda_examples::program;

pub use args::Args;

/// Runs `lda report`.
pub fn execute(args: &Args) -> ExitCode {
    program::end(run::run(args), run::ReportError::status)
}
