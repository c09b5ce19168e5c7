//! Tokens taken out of a model: a document that must be forgotten, a word that should not be there.

use thiserror::Error;

use super::{Counts, CountsBuilder, Parameters, TopicModel};

/// Tokens cannot be taken out.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum RemoveError {
    /// The model is made of weights.
    #[error("the model has weights and no counts: there is nothing to take tokens out of")]
    NoCounts,
    /// More tokens than the model has counted.
    #[error(
        "{asked} tokens of word {word} and topic {topic} are to be taken out, and the model counts \
         {counted}: they are of another run, or were taken out before"
    )]
    NotThere {
        /// The word.
        word: u32,
        /// The topic.
        topic: u32,
        /// Tokens to take out.
        asked: u32,
        /// Tokens counted.
        counted: u32,
    },
}

impl TopicModel {
    /// The model without `tokens`, (word, topic) of each: what it would have counted had they not
    /// been there when it was taken. Exact: integers less integers. A document's tokens are
    /// [`Assignments::tokens`](crate::train::Assignments::tokens), as the run left them.
    ///
    /// Topics do not move by it; to let the others take notice, train on
    /// ([`Trainer::with_init`](crate::train::Trainer::with_init) with the assignments that are
    /// left). Log joint, documents and tokens of the provenance are those before.
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
    /// [`RemoveError`], if they were never counted.
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
                // What is asked for before this was passed over: the model has none of it.
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

    /// The model without any token of the words that `gone` names; they keep their ids and β.
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
