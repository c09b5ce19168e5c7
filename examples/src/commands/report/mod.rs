//! `lda report`: writes a model and its documents as one self-contained HTML page.
//!
//! ```text
//! lda report nips.lda docword.nips.txt.gz --out nips.html            topics, documents, a map
//! lda report nips.lda docword.nips.txt.gz --out nips.html \
//!     --dates times.nips.txt.gz --log nips.jsonl                 and topics over time, the curve
//! ```
//!
//! The page is a single file without network access: it works from disk, in an archive, as an
//! attachment. Its data are computed here ([`Contents`](contents::Contents)); the scripts and styles in
//! `page/` are embedded unchanged, and a content security policy lets no other script run.

mod about;
mod args;
mod coherence;
mod contents;
mod curve;
mod documents;
mod encode;
mod html;
mod run;
mod similar;
mod terms;
mod time;

use std::process::ExitCode;

use lda_examples::program;

pub use args::Args;

/// Runs `lda report`.
pub fn execute(args: &Args) -> ExitCode {
    program::end(run::run(args), run::ReportError::status)
}
