//! `lda infer`: topics of new documents, by a model that `train --save` left.
//!
//! ```text
//! lda infer news.lda articles.txt                       a JSON line a document on standard output
//! cat articles.txt | lda infer news.lda --method rt     the quickest method, documents from a pipe
//! lda infer news.lda docword.txt.gz --out theta.npy     shares of all topics, documents by topics
//! ```
//!
//! An example of how to embed inference: [`Inference`](lda_core::infer::Inference) makes a model ready,
//! [`Translation`](lda_core::infer::Translation) brings documents to its words, and the rayon pool
//! works on all of them.

mod args;
mod run;
mod write;

use std::process::ExitCode;

use lda_examples::program;

pub use args::Args;

/// Runs `lda infer`.
pub fn execute(args: &Args) -> ExitCode {
    program::end(run::run(args), run::InferError::status)
}
