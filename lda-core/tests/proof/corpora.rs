//! Corpora for tests: real ones where they are at hand, made ones with known topics everywhere.

use std::path::PathBuf;

use lda_benches::synthetic::{Lengths, Spec};
use lda_core::Corpus;

/// The corpus of that name, or `None`, said aloud, where it is not on this machine: `LDA_CORPORA`,
/// or the folder beside the repository.
#[allow(clippy::print_stderr, reason = "a test that is skipped says so")]
pub(crate) fn real(name: &str) -> Option<Corpus> {
    let folder = std::env::var_os("LDA_CORPORA").map_or_else(
        || concat!(env!("CARGO_MANIFEST_DIR"), "/../../shared/corpora").into(),
        PathBuf::from,
    );
    let path = folder.join(format!("docword.{name}.txt.gz"));
    if !path.exists() {
        eprintln!("skipped: {} is not here; set LDA_CORPORA", path.display());
        return None;
    }
    Some(Corpus::read(path).expect("a published file"))
}

/// A corpus drawn from the model itself, lengths spread so widely that some documents have a few
/// tokens and some many hundreds.
pub(crate) fn made(documents: usize, words: usize, topics: usize, mean_length: f64) -> Corpus {
    let spec = Spec {
        num_documents: documents,
        num_words: words,
        num_topics: topics,
        lengths: vec![Lengths { weight: 1.0, mean: mean_length, sigma: 1.0 }],
        ..Spec::default()
    };
    spec.generate(1).expect("the law is a legal one").corpus
}

/// The index at `u`, in [0, 1), of a running sum.
pub(crate) fn locate(cumulative: &[f64], u: f64) -> usize {
    let total = cumulative.last().expect("a law has cells");
    cumulative.partition_point(|&sum| sum <= u * total).min(cumulative.len() - 1)
}
