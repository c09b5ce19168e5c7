//! Coherence of the topics in the documents of a page.

use lda_core::Corpus;
use lda_core::eval::{CoherenceOptions, Measure, Ranking, Window, coherence, top_words};
use lda_core::model::TopicModel;

/// Number of words per topic.
const WORDS: usize = 10;
/// Maximum number of topics that are measured: pairs of their words are counted in memory.
const MAX_TOPICS: usize = 2000;

/// Measure with its windows, and the value of each topic.
#[derive(Debug, Default)]
pub struct TopicCoherence {
    pub name: Option<String>,
    pub topics: Vec<Option<f64>>,
}

impl TopicCoherence {
    /// NPMI of the most probable words that occur in `documents`, which have the words of the model:
    /// in windows of ten tokens, or in whole documents if the order of their tokens is not known.
    /// Nothing for a model of real numbers or of many topics.
    pub fn new(model: &TopicModel, documents: &Corpus) -> Self {
        let none = Self { name: None, topics: vec![None; model.num_topics()] };
        let Some(counts) = model.counts().filter(|_| model.num_topics() <= MAX_TOPICS) else {
            return none;
        };
        let Ok(lists) = top_words(counts, counts.beta(), WORDS, Ranking::Probability) else {
            return none;
        };
        let frequencies = documents.word_frequencies();
        let occurs = |word: u32| frequencies.get(word as usize).is_some_and(|&n| n > 0);
        let words: Vec<Vec<u32>> = lists
            .iter()
            .map(|list| list.iter().map(|top| top.word).filter(|&word| occurs(word)).collect())
            .collect();
        let is_ordered = documents.num_documents() > 0 && documents.tokens(0).is_some();
        let window = (!is_ordered).then_some(Window::Documents);
        let options = CoherenceOptions { window, ..CoherenceOptions::new(Measure::Npmi) };
        match coherence(documents, &words, &options) {
            Ok(found) => Self { name: Some(found.name), topics: found.topics },
            Err(_) => none,
        }
    }
}
