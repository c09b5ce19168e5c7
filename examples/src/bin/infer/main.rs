//! `infer`: topics of new documents, by a model that `train --save` left.
//!
//! ```text
//! infer news.lda articles.txt                       a JSON line a document on standard output
//! cat articles.txt | infer news.lda --method rt     the quickest method, documents from a pipe
//! infer news.lda docword.txt.gz --out theta.npy     shares of all topics, documents by topics
//! ```
//!
//! An example of how to embed inference: [`Inference`](lda_core::infer::Inference) makes a model ready,
//! [`Translation`](lda_core::infer::Translation) brings documents to its words, and the rayon pool
//! works on all of them.

mod args;
mod run;
mod write;

use std::process::ExitCode;

use clap::Parser;
use lda_examples::program;

fn main() -> ExitCode {
    program::end(run::run(&args::Args::parse()), run::InferError::status)
}
