//! `lda convert`: converts a model to or from the format of another program.
//!
//! ```text
//! lda convert news.lda --out phi.npy                    topics × words, for NumPy
//! lda convert news.lda --out counts.npz                 the same, sparse, for SciPy
//! lda convert news.lda articles.txt --out vis.json      arguments of pyLDAvis.prepare
//! lda convert checkpoints articles.txt --out news.lda   the last snapshot of `lda train --checkpoint`
//! lda convert state.gz --out news.lda                   a MALLET state, to infer with or continue from
//! ```
//!
//! Also an example of [`lda_core::interop`], and of formats that need no library.

mod args;
mod arrays;
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
