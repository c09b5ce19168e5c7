//! Subsets of a corpus, and extension of its vocabulary.

use crate::corpus::{Corpus, Date, Sequence, Vocabulary, VocabularyFull};

impl Corpus {
    /// Returns the documents `kept`, in this order, with their dates and token order. The
    /// vocabulary and word ids are unchanged.
    ///
    /// ```
    /// use lda_core::Corpus;
    ///
    /// let corpus = Corpus::from_words([vec!["a", "b"], vec!["c"], vec!["b", "b"]])?;
    /// let part = corpus.select([2, 0]);
    /// assert_eq!((part.num_documents(), part.num_words(), part.num_tokens()), (2, 3, 4));
    /// assert_eq!(part.document(0).counts, [2]);
    /// # Ok::<(), lda_core::corpus::BuildError>(())
    /// ```
    ///
    /// # Panics
    /// If an index is not below [`num_documents`](Self::num_documents), or if repeated documents
    /// exceed the maximum number of pairs.
    pub fn select(&self, kept: impl IntoIterator<Item = usize>) -> Self {
        let kept: Vec<usize> = kept.into_iter().collect();
        let mut part = self.emptied();
        for &d in &kept {
            let document = self.document(d);
            part.words.extend_from_slice(document.words);
            part.counts.extend_from_slice(document.counts);
            part.end_document();
            part.num_tokens += document.len();
        }
        part.dates = self.dates.as_ref().map(|dates| {
            let dates: Vec<Date> = kept.iter().map(|&d| dates[d]).collect();
            dates
        });
        part.sequence = self.sequence.is_some().then(|| {
            let documents = kept.iter().map(|&d| self.tokens(d).expect("the order was kept"));
            Sequence::of(documents.map(|tokens| tokens.iter().copied()))
        });
        part
    }

    /// Returns all documents without the tokens of words for which `kept` is false. The vocabulary
    /// and word ids are unchanged.
    pub fn select_words(&self, kept: impl Fn(u32) -> bool) -> Self {
        let mut part = self.emptied();
        for document in self.documents() {
            for (word, count) in document.iter().filter(|&(word, _)| kept(word)) {
                part.words.push(word);
                part.counts.push(count);
                part.num_tokens += u64::from(count);
            }
            part.end_document();
        }
        part.dates.clone_from(&self.dates);
        part.sequence = self.sequence.is_some().then(|| {
            let documents = (0..self.num_documents()).map(|d| self.tokens(d));
            let tokens = documents.map(|tokens| tokens.expect("the order was kept"));
            Sequence::of(tokens.map(|tokens| tokens.iter().copied().filter(|&word| kept(word))))
        });
        part
    }

    /// Appends the words of `vocabulary` that the corpus does not have, and returns their number.
    /// No document has them. A corpus without a vocabulary is unchanged, and 0 is returned.
    ///
    /// Needed when training continues from a model on new documents: otherwise words that occur
    /// only in the model are lost ([`train::seed_counts`](crate::train::seed_counts)).
    ///
    /// # Errors
    /// [`VocabularyFull`]; the corpus is then unchanged.
    pub fn add_words(&mut self, vocabulary: &Vocabulary) -> Result<usize, VocabularyFull> {
        let Some(own) = &self.vocabulary else { return Ok(0) };
        let mut all = own.clone();
        for word in vocabulary.iter() {
            all.intern(word)?;
        }
        let added = all.len() - own.len();
        self.num_words = all.len() as u32;
        self.vocabulary = Some(all);
        Ok(added)
    }

    /// A corpus with the same words and no documents.
    fn emptied(&self) -> Self {
        Self {
            offsets: vec![0],
            words: Vec::new(),
            counts: Vec::new(),
            num_words: self.num_words,
            num_tokens: 0,
            width_is_open: false,
            vocabulary: self.vocabulary.clone(),
            dates: None,
            sequence: None,
        }
    }

    fn end_document(&mut self) {
        self.offsets.push(u32::try_from(self.words.len()).expect("at most MAX_PAIRS pairs"));
    }
}

impl Sequence {
    fn of(documents: impl Iterator<Item = impl Iterator<Item = u32>>) -> Self {
        let mut sequence = Self { tokens: Vec::new(), starts: vec![0] };
        for document in documents {
            sequence.tokens.extend(document);
            sequence.starts.push(sequence.tokens.len() as u64);
        }
        sequence
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::corpus::CorpusBuilder;

    fn ordered() -> Corpus {
        let mut builder = CorpusBuilder::new().keep_order();
        for document in [vec!["b", "a", "b"], vec![], vec!["c", "a"], vec!["c"]] {
            builder.push_words(document).unwrap();
        }
        let mut corpus = builder.build().unwrap();
        let dates = ["2001", "2002", "2003", "2004"].map(|date| date.parse().unwrap());
        corpus.set_dates(dates.to_vec()).unwrap();
        corpus
    }

    #[test]
    fn documents_keep_their_dates_and_order() {
        let corpus = ordered();
        let part = corpus.select([3, 0, 1]);
        assert_eq!(part.tokens(1), Some([0, 1, 0].as_slice()));
        assert_eq!(part.tokens(2), Some([].as_slice()));
        assert_eq!((part.doc_length(0), part.num_tokens(), part.num_words()), (1, 4, 3));
        let dates = corpus.dates().unwrap();
        assert_eq!(part.dates(), Some([dates[3], dates[0], dates[1]].as_slice()));
        assert!(corpus.select(0..4).fingerprint() == corpus.fingerprint());
        assert_eq!(corpus.select([]).num_documents(), 0);
    }

    #[test]
    fn dropped_words_lose_their_tokens() {
        let corpus = ordered();
        let part = corpus.select_words(|word| word != 1);
        assert_eq!(part.word_frequencies(), [2, 0, 2]);
        assert_eq!((part.num_documents(), part.num_tokens(), part.num_words()), (4, 4, 3));
        assert_eq!(part.tokens(0), Some([0, 0].as_slice()));
        assert_eq!(part.document(2).words, [2]);
        assert_eq!(part.dates(), corpus.dates());
    }

    #[test]
    fn new_words_are_appended() {
        let mut corpus = ordered();
        let other = Corpus::from_words([["c", "x", "a", "y"]]).unwrap();
        assert_eq!(corpus.add_words(other.vocabulary().unwrap()), Ok(2));
        assert_eq!(corpus.num_words(), 5);
        assert_eq!(
            corpus.vocabulary().unwrap().iter().collect::<Vec<_>>(),
            ["b", "a", "c", "x", "y"]
        );
        assert_eq!(corpus.word_frequencies(), [2, 2, 2, 0, 0]);
        let mut unnamed = Corpus::from_tokens([[0, 1]]).unwrap();
        assert_eq!(unnamed.add_words(other.vocabulary().unwrap()), Ok(0));
    }
}
