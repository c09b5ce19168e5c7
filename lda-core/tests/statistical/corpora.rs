//! Corpora for tests: generated ones with known topics, and real ones where they are asked for.

use lda_benches::synthetic::{Lengths, Spec};
use lda_core::Corpus;
use lda_core::train::{SamplerKind, SamplerOptions};

#[path = "../common/real.rs"]
mod real_files;
pub(crate) use real_files::required;

/// The real corpus of that name.
#[track_caller]
pub(crate) fn real(name: &str) -> Corpus {
    let path = real_files::file(&format!("docword.{name}.txt.gz"));
    Corpus::read(path).expect("a published file")
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

/// Options of `sampler`; the hybrid gives documents of more than `tokens` tokens to WarpLDA.
pub(crate) fn with_short_length(sampler: SamplerKind, tokens: u32) -> SamplerOptions {
    let options = SamplerOptions::from(sampler);
    options.with_short_length(tokens).unwrap_or(options)
}
