//! JSON answers about documents.

use std::num::NonZeroU32;

use lda_core::infer::{Answer, Inference};
use lda_core::model::TopicModel;
use serde::Serialize;

/// One answer, or for a batch a list under `documents`.
#[derive(Serialize)]
#[serde(untagged)]
pub enum Answers {
    One(DocumentTopics),
    Many { documents: Vec<DocumentTopics> },
}

/// Topics of a document.
#[derive(Serialize)]
pub struct DocumentTopics {
    /// Number of tokens in the model's vocabulary.
    tokens: u64,
    /// Number of other tokens, which are ignored.
    unknown: u64,
    /// Topics with tokens, largest share first.
    topics: Vec<Share>,
}

#[derive(Serialize)]
struct Share {
    topic: u32,
    share: f64,
}

impl DocumentTopics {
    /// Answer with at most `top` topics; all with tokens if `None`.
    pub fn new(
        inference: &Inference<Box<TopicModel>>,
        answer: &Answer,
        top: Option<NonZeroU32>,
    ) -> Self {
        let top = top.map_or(usize::MAX, |top| top.get() as usize);
        let share = |(topic, share)| Share { topic, share };
        let topics = inference.leading(answer).into_iter().take(top).map(share).collect();
        Self { tokens: answer.tokens, unknown: answer.unknown, topics }
    }
}

/// Position of a document in the request, and its distance from the query document.
#[derive(Serialize)]
pub struct DocumentDistance {
    pub document: usize,
    pub distance: f64,
}
