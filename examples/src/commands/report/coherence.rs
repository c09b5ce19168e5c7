//! Coherence of the topics in the documents of a page.

use lda_core::Corpus;
use lda_core::eval::{CoherenceError, CoherenceOptions, Measure, coherence, leading_words};
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
    /// Nothing for a model of many topics.
    ///
    /// # Errors
    /// [`CoherenceError`], if there are no documents.
    pub fn new(model: &TopicModel, documents: &Corpus) -> Result<Self, CoherenceError> {
        if model.num_topics() > MAX_TOPICS {
            return Ok(Self { name: None, topics: vec![None; model.num_topics()] });
        }
        let frequencies = documents.word_frequencies();
        let occurs = |word: u32| frequencies.get(word as usize).is_some_and(|&n| n > 0);
        let mut words = leading_words(model, WORDS);
        words.iter_mut().for_each(|list| list.retain(|&word| occurs(word)));
        let options = CoherenceOptions::fitting(Measure::Npmi, documents);
        let found = coherence(documents, &words, &options)?;
        Ok(Self { name: Some(found.name), topics: found.topics })
    }
}
