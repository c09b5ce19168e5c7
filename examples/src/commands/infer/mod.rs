//! `lda infer`: infers topics of new documents with a model of `lda train --save`.
//!
//! ```text
//! lda infer news.lda articles.txt                       one JSON line per document on standard output
//! cat articles.txt | lda infer news.lda --method rt     the fastest method, documents from a pipe
//! lda infer news.lda docword.txt.gz --out theta.npy     shares of all topics, documents by topics
//! ```
//!
//! Also an example of how to embed inference: [`Inference`](lda_core::infer::Inference) prepares a model,
//! [`Translation`](lda_core::infer::Translation) maps documents to its word ids, and the rayon pool
//! infers them in parallel.

mod args;
mod documents;
mod run;
mod write;

use std::process::ExitCode;

use lda_examples::program;

pub use args::Args;

/// Runs `lda infer`.
pub fn execute(args: &Args) -> ExitCode {
    program::end(run::run(args), run::InferError::status)
}
