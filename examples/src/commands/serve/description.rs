//! The answer of `GET /model`: which model the service answers with, and how.

use std::collections::BTreeMap;

use lda_core::corpus::read::TokenizerOptions;
use lda_core::infer::Method;
use serde::Serialize;

use crate::commands::serve::model::Ready;

/// The model in use and the options of its answers.
#[derive(Serialize)]
pub struct ModelDescription<'a> {
    fingerprint: &'a str,
    topics: usize,
    words: usize,
    /// Whether it has counts; otherwise it has probabilities.
    counts: bool,
    /// Whether texts and words are found in it.
    vocabulary: bool,
    /// Method of inference and its options.
    inference: Method,
    seed: u64,
    /// Rules by which texts are cut into words.
    tokenizer: &'a TokenizerOptions,
    /// Options of its training, by name, as far as the model records them.
    training: BTreeMap<&'a str, &'a str>,
}

impl<'a> ModelDescription<'a> {
    /// The description of a model.
    pub fn of(ready: &'a Ready) -> Self {
        let model = ready.model();
        let options = model.provenance().options.iter();
        Self {
            fingerprint: &ready.fingerprint,
            topics: model.num_topics(),
            words: model.num_words(),
            counts: model.counts().is_some(),
            vocabulary: model.vocabulary().is_some(),
            inference: ready.inference.method(),
            seed: ready.seed,
            tokenizer: ready.tokenizer.options(),
            training: options.map(|(name, value)| (name.as_str(), value.as_str())).collect(),
        }
    }
}
