//! Removal of tokens from a model, for example of a deleted document or of an unwanted word.

use thiserror::Error;

use super::{Counts, CountsBuilder, Parameters, TopicModel};

/// Error of removing tokens.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum RemoveError {
    /// The model has weights instead of counts.
    #[error("the model has weights and no counts, so that tokens cannot be removed")]
    NoCounts,
    /// More tokens than the model counts.
    #[error(
        "cannot remove {asked} tokens of word {word} and topic {topic}, the model counts {counted}: \
         they belong to another run, or were removed before"
    )]
    NotThere {
        /// The word.
        word: u32,
        /// The topic.
        topic: u32,
        /// Tokens to remove.
        asked: u32,
        /// Tokens in the model.
        counted: u32,
    },
}

impl TopicModel {
    /// Removes `tokens`, each a (word, topic). The result has the counts of all other tokens,
    /// exactly: integers minus integers. [`Assignments::tokens`](crate::train::Assignments::tokens)
    /// are the tokens of a document at the end of the run.
    ///
    /// The topics of other tokens do not change; to update them, continue training
    /// ([`Trainer::with_init`](crate::train::Trainer::with_init) with the remaining
    /// assignments). Log joint, documents and tokens of the provenance are unchanged.
    ///
    /// ```
    /// use lda_core::Corpus;
    /// use lda_core::train::{EpochReport, Flow, Lda};
    ///
    /// let corpus = Corpus::from_words([["tree", "leaf"], ["sea", "wave"]])?;
    /// let trained = Lda::topics(2).epochs(9).train(&corpus, |_: &EpochReport| Flow::Continue)?;
    /// let forgotten = trained.model.without(trained.assignments.tokens(&corpus, 1))?;
    /// assert_eq!(forgotten.counts().unwrap().totals().iter().sum::<u64>(), 2);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`RemoveError`] if the model does not count these tokens.
    pub fn without(
        &self,
        tokens: impl IntoIterator<Item = (u32, u32)>,
    ) -> Result<Self, RemoveError> {
        let counts = self.counts().ok_or(RemoveError::NoCounts)?;
        let mut tokens: Vec<(u32, u32)> = tokens.into_iter().collect();
        tokens.sort_unstable();
        let mut gone = tokens.chunk_by(|a, b| a == b).map(|same| (same[0], same.len() as u32));
        let mut next = gone.next();
        let mut left = CountsBuilder::new(counts.num_topics());
        for word in 0..counts.num_words() {
            for (topic, counted) in counts.word(word).iter() {
                let at = (word as u32, topic);
                // Both sequences are sorted. A requested pair below `at` was skipped: the model
                // has no entry for it.
                let asked = match next {
                    Some((place, _)) if place > at => 0,
                    Some((place, asked)) if place == at && asked <= counted => {
                        next = gone.next();
                        asked
                    }
                    Some(((word, topic), asked)) => {
                        let counted = if (word, topic) == at { counted } else { 0 };
                        return Err(RemoveError::NotThere { word, topic, asked, counted });
                    }
                    None => 0,
                };
                left.push(topic, counted - asked);
            }
            left.end_word();
        }
        if let Some(((word, topic), asked)) = next {
            return Err(RemoveError::NotThere { word, topic, asked, counted: 0 });
        }
        Ok(self.with_counts(left.finish(counts.beta())))
    }

    /// Removes all tokens of the words for which `gone` is true. The words keep their ids and β.
    ///
    /// # Errors
    /// [`RemoveError::NoCounts`].
    pub fn without_words(&self, gone: impl Fn(u32) -> bool) -> Result<Self, RemoveError> {
        let counts = self.counts().ok_or(RemoveError::NoCounts)?;
        let mut left = CountsBuilder::new(counts.num_topics());
        for word in 0..counts.num_words() {
            if !gone(word as u32) {
                counts.word(word).iter().for_each(|(topic, count)| left.push(topic, count));
            }
            left.end_word();
        }
        Ok(self.with_counts(left.finish(counts.beta())))
    }

    fn with_counts(&self, counts: Counts) -> Self {
        let (alpha, names) = (self.alpha.clone(), self.names.clone());
        let parameters = Parameters::Counts(counts);
        Self { parameters, alpha, names, provenance: self.provenance.clone() }
    }
}
