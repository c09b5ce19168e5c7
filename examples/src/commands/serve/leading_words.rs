//! Top words of topics.

use lda_core::eval::leading_words;
use lda_core::model::TopicModel;

/// The most probable words of each topic, best first. Computed once per model. Memory: 4 bytes per word.
#[derive(Debug)]
pub struct LeadingWords {
    words: Vec<Vec<u32>>,
    limit: usize,
}

impl LeadingWords {
    /// Finds at most `limit` words per topic, among the words with an entry for the topic.
    pub fn new(model: &TopicModel, limit: usize) -> Self {
        let mut words = leading_words(model, limit);
        words.iter_mut().for_each(Vec::shrink_to_fit);
        Self { words, limit }
    }

    /// Top words of a topic, at most [`limit`](Self::limit).
    pub fn topic(&self, topic: usize) -> &[u32] {
        &self.words[topic]
    }

    /// Maximum number of words per topic.
    pub fn limit(&self) -> usize {
        self.limit
    }
}
