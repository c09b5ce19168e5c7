//! `lda convert`: a model in the form that another program reads, or from one.
//!
//! ```text
//! lda convert news.lda --out phi.npy                    topics × words, for NumPy
//! lda convert news.lda --out counts.npz                 the same, sparse, for SciPy
//! lda convert news.lda articles.txt --out vis.json      what pyLDAvis takes
//! lda convert state.gz --out news.lda                   MALLET's topics, to infer with or go on from
//! ```
//!
//! An example of what stands in [`lda_core::interop`], and of the forms that need no library.

mod args;
mod gensim;
mod import;
mod npz;
mod pyldavis;
mod run;

use std::process::ExitCode;

use lda_examples::program;

pub use args::Args;

/// Runs `lda convert`.
pub fn execute(args: &Args) -> ExitCode {
    program::end(run::run(args), run::ConvertError::status)
}
