//! What clients get of documents.

use std::num::NonZeroU32;

use lda_core::infer::{Answer, Inference};
use lda_core::model::TopicModel;
use serde::Serialize;

/// Answers as the request asked: one, or a list under `documents`.
#[derive(Serialize)]
#[serde(untagged)]
pub enum Answers {
    One(DocumentTopics),
    Many { documents: Vec<DocumentTopics> },
}

/// Topics of a document.
#[derive(Serialize)]
pub struct DocumentTopics {
    /// Tokens of words that the model knows.
    tokens: u64,
    /// Tokens of others, which were left out.
    unknown: u64,
    /// Largest share first; those without a token are not there.
    topics: Vec<Share>,
}

#[derive(Serialize)]
struct Share {
    topic: u32,
    share: f64,
}

impl DocumentTopics {
    /// With at most `top` topics.
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

/// A document of the request, by its place, and how far it is from the one asked about.
#[derive(Serialize)]
pub struct DocumentDistance {
    pub document: usize,
    pub distance: f64,
}
