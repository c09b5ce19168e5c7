//! Word frequencies.

use super::PlacementError;

/// Number of tokens and of documents of each word, which are known before any topic.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WordStats {
    tokens: Vec<u64>,
    documents: Vec<u64>,
}

impl WordStats {
    /// Statistics from the number of tokens of each word, and of documents that contain it.
    ///
    /// # Errors
    /// [`PlacementError::WordStats`] if a word has tokens and no documents or more documents than
    /// tokens, or if the two lists differ in length.
    pub fn new(tokens: Vec<u64>, documents: Vec<u64>) -> Result<Self, PlacementError> {
        let fit = |(&tokens, &documents): (&u64, &u64)| {
            documents <= tokens && (documents > 0) == (tokens > 0)
        };
        let wrong = tokens.iter().zip(&documents).position(|both| !fit(both));
        let wrong = wrong.or_else(|| {
            (tokens.len() != documents.len()).then_some(tokens.len().min(documents.len()))
        });
        match wrong {
            Some(word) => Err(PlacementError::WordStats { word: word as u32 }),
            None => Ok(Self { tokens, documents }),
        }
    }

    /// Statistics of `words` words that do not occur.
    pub fn none(words: usize) -> Self {
        Self { tokens: vec![0; words], documents: vec![0; words] }
    }

    /// Statistics of a corpus.
    pub fn of(corpus: &lda_core::Corpus) -> Self {
        let documents = corpus.document_frequencies().into_iter().map(u64::from).collect();
        Self { tokens: corpus.word_frequencies(), documents }
    }

    /// Number of words V.
    pub fn num_words(&self) -> usize {
        self.tokens.len()
    }

    /// Number of tokens of each word.
    pub fn tokens(&self) -> &[u64] {
        &self.tokens
    }

    /// Number of documents that contain each word.
    pub fn documents(&self) -> &[u64] {
        &self.documents
    }

    /// Adds tokens of a word, in documents that are not counted yet.
    ///
    /// # Errors
    /// [`PlacementError::WordStats`] if the word is not below V, if `documents` is 0 or above
    /// `tokens`, or if a sum overflows.
    pub fn add(&mut self, word: u32, tokens: u64, documents: u64) -> Result<(), PlacementError> {
        let refused = PlacementError::WordStats { word };
        if word as usize >= self.num_words() || documents == 0 || documents > tokens {
            return Err(refused);
        }
        let sum = |to: u64, more: u64| to.checked_add(more).ok_or(refused);
        let at = word as usize;
        let both = (sum(self.tokens[at], tokens)?, sum(self.documents[at], documents)?);
        (self.tokens[at], self.documents[at]) = both;
        Ok(())
    }
}

/// Statistics in which one word has an eighth of all tokens.
#[cfg(test)]
pub(super) fn with_a_hot_word() -> WordStats {
    let (mut tokens, mut documents) = (vec![600_000], vec![60_000]);
    for rank in 1..=20_000u64 {
        tokens.push(1 + 700_000 / (rank + 2));
        documents.push(tokens[rank as usize].div_ceil(2));
    }
    WordStats::new(tokens, documents).unwrap()
}

#[cfg(test)]
mod tests {
    use lda_core::Corpus;

    use super::*;

    #[test]
    fn statistics_are_those_of_the_corpus() {
        let corpus = Corpus::from_tokens([vec![0, 1, 1], vec![1], vec![3]]).unwrap();
        let words = WordStats::of(&corpus);
        assert_eq!(words, WordStats::new(vec![1, 3, 0, 1], vec![1, 2, 0, 1]).unwrap());
        let mut added = WordStats::none(4);
        for (word, tokens, documents) in [(1, 2, 1), (3, 1, 1), (1, 1, 1), (0, 1, 1)] {
            added.add(word, tokens, documents).unwrap();
        }
        assert_eq!(added, words);
    }

    #[test]
    fn contradictory_statistics_are_refused() {
        let refused = |tokens: &[u64], documents: &[u64]| {
            WordStats::new(tokens.to_vec(), documents.to_vec()).unwrap_err()
        };
        assert_eq!(refused(&[1, 1], &[1, 2]), PlacementError::WordStats { word: 1 });
        assert_eq!(refused(&[1, 1], &[0, 1]), PlacementError::WordStats { word: 0 });
        assert_eq!(refused(&[1, 1], &[1]), PlacementError::WordStats { word: 1 });
        let mut words = WordStats::none(2);
        for (word, tokens, documents) in [(2, 1, 1), (0, 1, 2), (0, 1, 0)] {
            assert_eq!(words.add(word, tokens, documents), Err(PlacementError::WordStats { word }));
        }
        words.add(0, u64::MAX, 1).unwrap();
        assert!(words.add(0, 1, 1).is_err());
        assert_eq!((words.tokens(), words.documents()), (&[u64::MAX, 0][..], &[1, 0][..]));
    }
}
