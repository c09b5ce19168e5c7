//! Subsets of a corpus, and changes of its vocabulary.

use crate::corpus::assembly::shrink;
use crate::corpus::{Corpus, Date, Sequence, Vocabulary, VocabularyFull};

/// New id of a word that is dropped: no word has it, as ids are below 2^32 - 1.
const DROPPED: u32 = u32::MAX;

impl Corpus {
    /// Returns the documents `kept`, in this order, with their dates, names and token order. The
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
        part.names = self.names.as_ref().map(|names| names.select(&kept));
        part.sequence = self.sequence.is_some().then(|| {
            let documents = kept.iter().map(|&d| self.tokens(d).expect("the order was kept"));
            Sequence::of(documents.map(|tokens| tokens.iter().copied()))
        });
        part
    }

    /// Returns all documents, of which those for which `kept` is false have no tokens. The vocabulary and word
    /// ids are unchanged.
    pub(crate) fn select_tokens_of(&self, kept: impl Fn(usize) -> bool) -> Self {
        let mut part = self.emptied();
        for (d, document) in self.documents().enumerate() {
            if kept(d) {
                part.words.extend_from_slice(document.words);
                part.counts.extend_from_slice(document.counts);
                part.num_tokens += document.len();
            }
            part.end_document();
        }
        part.dates.clone_from(&self.dates);
        part.names.clone_from(&self.names);
        part.sequence = self.sequence.is_some().then(|| {
            let documents = (0..self.num_documents()).map(|d| match self.tokens(d) {
                Some(tokens) if kept(d) => tokens,
                _ => &[],
            });
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
        part.names.clone_from(&self.names);
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
        let all = own.extended(vocabulary)?;
        let added = all.len() - own.len();
        self.num_words = all.len() as u32;
        self.vocabulary = Some(all);
        Ok(added)
    }

    /// Removes the words for which `keep` is false from the documents and from the vocabulary. The
    /// other words keep their order, and their ids are dense again. Documents stay, even if they
    /// become empty.
    ///
    /// Memory is O(pairs + words that are left), also with a huge vocabulary.
    pub fn retain_words(&mut self, keep: impl Fn(u32) -> bool) {
        let kept: Vec<u32> = (0..self.num_words).filter(|&word| keep(word)).collect();
        self.renumber(&kept);
    }

    /// Removes the words without a token from the vocabulary, and returns the former id of each
    /// word that is left. These keep their order, and their ids are dense again.
    ///
    /// The number of words V is part of the model: β̄ = V·β, so unused words make topics more even.
    /// They remain after [`select`](Self::select) and [`select_words`](Self::select_words), and if a
    /// vocabulary file lists more words than the documents have.
    ///
    /// ```
    /// use lda_core::Corpus;
    ///
    /// let corpus = Corpus::from_words([vec!["a", "b"], vec!["c", "a"]])?;
    /// let mut part = corpus.select([1]);
    /// assert_eq!((part.num_words(), part.compact()), (3, vec![0, 2]));
    /// assert_eq!(part.vocabulary().unwrap().iter().collect::<Vec<_>>(), ["a", "c"]);
    /// # Ok::<(), lda_core::corpus::BuildError>(())
    /// ```
    pub fn compact(&mut self) -> Vec<u32> {
        let used = self.used_words();
        self.renumber(&used);
        used
    }

    /// Ids of the words that occur, ascending. Memory is O(pairs), also for a huge vocabulary.
    pub(super) fn used_words(&self) -> Vec<u32> {
        // A bitmap of all words would exceed the pairs: sort the words instead.
        if self.num_words() / 64 > self.num_pairs() / 8 {
            let mut used: Vec<u32> = self.words.clone();
            used.sort_unstable();
            used.dedup();
            return used;
        }
        let mut seen = vec![0u64; self.num_words().div_ceil(64)];
        for &word in &self.words {
            seen[word as usize / 64] |= 1 << (word % 64);
        }
        (0..self.num_words)
            .filter(|&word| seen[word as usize / 64] >> (word % 64) & 1 == 1)
            .collect()
    }

    /// Keeps the words `kept`, ascending, with these places as their ids.
    fn renumber(&mut self, kept: &[u32]) {
        if kept.len() == self.num_words() {
            return;
        }
        // A table of all words would exceed the pairs of a wide corpus: search for them instead.
        let wide = self.num_words() > self.num_pairs() + kept.len();
        let mut table = vec![DROPPED; if wide { 0 } else { self.num_words() }];
        if !wide {
            (0..).zip(kept).for_each(|(new, &old)| table[old as usize] = new);
        }
        let new_id = |word: u32| match table.get(word as usize) {
            Some(&new) => new,
            None => kept.binary_search(&word).map_or(DROPPED, |new| new as u32),
        };
        let (mut begin, mut end) = (0, 0);
        for offset in &mut self.offsets[1..] {
            for i in begin..*offset as usize {
                let word = new_id(self.words[i]);
                if word != DROPPED {
                    self.words[end] = word;
                    self.counts[end] = self.counts[i];
                    end += 1;
                }
            }
            begin = *offset as usize;
            *offset = end as u32;
        }
        self.words.truncate(end);
        self.counts.truncate(end);
        shrink(&mut self.words);
        shrink(&mut self.counts);
        self.num_words = kept.len() as u32;
        self.num_tokens = self.counts.iter().map(|&count| u64::from(count)).sum();
        if let Some(sequence) = &mut self.sequence {
            sequence.renumber(new_id);
        }
        if let Some(vocabulary) = &mut self.vocabulary {
            *vocabulary = vocabulary.retain(|word| new_id(word) != DROPPED);
        }
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
            names: None,
        }
    }

    fn end_document(&mut self) {
        self.offsets.push(u32::try_from(self.words.len()).expect("at most MAX_PAIRS pairs"));
    }
}

impl Sequence {
    /// Gives each token its new word, and drops those whose new word is [`DROPPED`].
    fn renumber(&mut self, new_id: impl Fn(u32) -> u32) {
        let (mut begin, mut end) = (0, 0);
        for start in &mut self.starts[1..] {
            for i in begin..*start as usize {
                let word = new_id(self.tokens[i]);
                if word != DROPPED {
                    self.tokens[end] = word;
                    end += 1;
                }
            }
            begin = *start as usize;
            *start = end as u64;
        }
        self.tokens.truncate(end);
        shrink(&mut self.tokens);
    }

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
    fn ids_are_dense_after_words_have_left() {
        let mut corpus = ordered();
        corpus.retain_words(|word| word != 1);
        assert_eq!(corpus.vocabulary().unwrap().iter().collect::<Vec<_>>(), ["b", "c"]);
        assert_eq!((corpus.num_documents(), corpus.num_tokens(), corpus.num_words()), (4, 4, 2));
        let tokens: Vec<_> = (0..4).map(|d| corpus.tokens(d).unwrap().to_vec()).collect();
        assert_eq!(tokens, [vec![0, 0], vec![], vec![1], vec![1]]);
        assert_eq!((corpus.document(0).counts, corpus.document(2).words), (&[2][..], &[1][..]));
        let before = corpus.clone();
        assert_eq!((corpus.compact(), corpus == before), (vec![0, 1], true));
    }

    #[test]
    fn unused_words_leave_corpora_of_any_width() {
        for num_words in [9, 4_000_000_000] {
            let mut builder = CorpusBuilder::new().num_words(num_words);
            builder.push_pairs([(8, 2), (2, 1)]).unwrap();
            builder.push_pairs([(5, 1), (2, 4)]).unwrap();
            let mut corpus = builder.build().unwrap();
            assert_eq!((corpus.compact(), corpus.num_words()), (vec![2, 5, 8], 3));
            let documents: Vec<Vec<_>> =
                corpus.documents().map(|document| document.iter().collect()).collect();
            assert_eq!(documents, [vec![(0, 1), (2, 2)], vec![(0, 4), (1, 1)]]);
        }
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
