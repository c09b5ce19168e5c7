//! Building a corpus from documents in memory.

use std::borrow::Borrow;
use std::fmt;

use thiserror::Error;

use super::assembly::{Assembly, Excess, Extent, Repairs, push, shrink};
use super::blocks::Destination;
use super::names::DocumentNames;
use super::{Corpus, Date, MAX_TOKENS, MAX_WORD, Sequence, Vocabulary, VocabularyFull};

/// Error of building a corpus.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum BuildError {
    /// A word id at or above the number of words.
    #[error(
        "document {document}: word id {word} is not below the number of words, {limit}; \
         raise `num_words`, or omit it"
    )]
    WordOutOfRange {
        /// Index of the document, from 0.
        document: usize,
        /// The id.
        word: u32,
        /// Number of words.
        limit: u32,
    },
    /// Ids and strings in one corpus: strings get ids in order of first occurrence, so an external
    /// id would refer to an arbitrary word.
    #[error(
        "document {document}: word ids and strings do not mix; \
         look the ids up in one vocabulary, or push strings only"
    )]
    IdsAndStrings {
        /// Index of the document, from 0.
        document: usize,
    },
    /// The counts of a word in one document add up to more than 2^32 - 1.
    #[error(
        "document {document}: the counts of word {word} add up to more than 2^32 - 1; \
         split the document"
    )]
    CountOverflow {
        /// Index of the document, from 0.
        document: usize,
        /// The word id.
        word: u32,
    },
    /// The original order is to be kept, but a document was given as pairs.
    #[error(
        "document {document}: (word, count) pairs have no order to keep; \
         push tokens, or omit `keep_order`"
    )]
    OrderOfPairs {
        /// Index of the document, from 0.
        document: usize,
    },
    /// The number of dates is neither 0 nor the number of documents.
    #[error("{dates} dates for {documents} documents; date every document, or none")]
    Dates {
        /// Number of dates.
        dates: usize,
        /// Number of documents.
        documents: usize,
    },
    /// Only some documents have a name.
    #[error("{names} names for {documents} documents; give one per document, or none")]
    Names {
        /// Number of names.
        names: usize,
        /// Number of documents.
        documents: usize,
    },
    /// The length of the vocabulary differs from the number of words.
    #[error("a vocabulary of {words} words for a corpus of {num_words}; give one line per word")]
    VocabularyLength {
        /// Words in the vocabulary.
        words: usize,
        /// Words of the corpus.
        num_words: usize,
    },
    /// The corpus has no tokens.
    #[error("no document has a token, so there is nothing to train on")]
    NoTokens,
    /// A limit of [`Corpus`] is exceeded.
    #[error("more {what} than a corpus can hold; split it")]
    TooLarge {
        /// The limited quantity.
        what: &'static str,
    },
    /// The vocabulary is full.
    #[error(transparent)]
    Vocabulary(#[from] VocabularyFull),
    /// An allocation failed.
    #[error("out of memory for the documents; split them, or free some")]
    OutOfMemory,
    /// A block of documents could not be written.
    #[error("a block of documents could not be written")]
    Block,
}

impl BuildError {
    fn from_excess(excess: Excess, document: usize) -> Self {
        match excess {
            Excess::Count { word } => Self::CountOverflow { document, word },
            Excess::Memory => Self::OutOfMemory,
            Excess::Pairs => Self::TooLarge { what: "pairs (2^32 - 1)" },
            Excess::Tokens => Self::TooLarge { what: "tokens (2^32)" },
            Excess::Block => Self::Block,
            Excess::Documents | Excess::EmptyDocuments { .. } | Excess::OutOfOrder => {
                Self::TooLarge { what: "documents (2^32 - 2)" }
            }
        }
    }
}

/// Source of word ids.
#[derive(Clone, Debug)]
enum Words {
    /// No word has been pushed yet.
    Unsettled,
    /// Ids of the caller.
    Ids,
    /// Strings get ids in order of first occurrence.
    Strings(Vocabulary),
    /// Strings and ids refer to a given vocabulary; unknown strings are dropped.
    Given(Vocabulary),
}

/// Builder of a [`Corpus`].
///
/// A document is a sequence of word ids, of (word id, count) pairs in any order, or of strings.
/// Repeats are merged, empty documents are kept, and pairs with count 0 are dropped. Cost: 8 bytes
/// per pair, and one sort per document.
///
/// ```
/// use lda_core::corpus::CorpusBuilder;
///
/// let mut builder = CorpusBuilder::new().num_words(10);
/// builder.push_tokens([3, 1, 3])?;
/// builder.push_pairs([(9, 2), (0, 1)])?;
/// let corpus = builder.build()?;
/// assert_eq!(corpus.num_words(), 10);
/// assert_eq!(corpus.document(0).words, [1, 3]);
/// assert_eq!(corpus.document(1).counts, [1, 2]);
/// # Ok::<(), lda_core::corpus::BuildError>(())
/// ```
pub struct CorpusBuilder {
    assembly: Assembly,
    words: Words,
    num_words: Option<u32>,
    sequence: Option<Sequence>,
    dates: Vec<Date>,
    names: DocumentNames,
    dropped_tokens: u64,
    scratch: Vec<u32>,
    extent: Extent,
}

/// Prints sizes instead of contents.
impl fmt::Debug for CorpusBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CorpusBuilder")
            .field("documents", &self.num_documents())
            .field("num_words", &self.num_words)
            .field("dates", &self.dates.len())
            .field("order", &self.sequence.is_some())
            .finish_non_exhaustive()
    }
}

impl Default for CorpusBuilder {
    fn default() -> Self {
        Self::new()
    }
}

impl CorpusBuilder {
    /// Creates an empty builder.
    pub fn new() -> Self {
        Self::into_destination(Destination::default(), u64::MAX)
    }

    /// A builder of documents in memory, or of blocks.
    pub(super) fn into_destination(destination: Destination, max_empty: u64) -> Self {
        let extent = destination.extent.clone();
        Self {
            assembly: Assembly::new(destination, max_empty),
            words: Words::Unsettled,
            num_words: None,
            sequence: None,
            dates: Vec::new(),
            names: DocumentNames::default(),
            dropped_tokens: 0,
            scratch: Vec::new(),
            extent,
        }
    }

    /// Fixes the number of words V; ids at or above it are rejected. By default V is the
    /// largest id plus one.
    #[must_use]
    pub fn num_words(mut self, num_words: u32) -> Self {
        self.num_words = Some(num_words);
        self
    }

    /// Fixes the vocabulary: ids refer to it, and strings that are not in it are dropped (see
    /// [`dropped_tokens`](Self::dropped_tokens)). Use it for documents of an existing model.
    #[must_use]
    pub fn vocabulary(mut self, vocabulary: Vocabulary) -> Self {
        // A vocabulary has at most u32::MAX words.
        self.num_words = Some(vocabulary.len() as u32);
        self.words = Words::Given(vocabulary);
        self
    }

    /// Keeps the order of the tokens, at 4 bytes per token; documents of pairs are then rejected.
    #[must_use]
    pub fn keep_order(mut self) -> Self {
        self.sequence = Some(Sequence { tokens: Vec::new(), starts: vec![0] });
        self
    }

    /// Number of documents pushed so far.
    pub fn num_documents(&self) -> usize {
        self.assembly.num_documents()
    }

    /// Number of tokens dropped so far because the given vocabulary does not have them.
    pub fn dropped_tokens(&self) -> u64 {
        self.dropped_tokens
    }

    /// Adds a document of word ids, one per token.
    ///
    /// # Errors
    /// [`BuildError::WordOutOfRange`], [`BuildError::IdsAndStrings`], [`BuildError::TooLarge`].
    /// After an error the builder has a part of the document and should be dropped.
    pub fn push_tokens<I>(&mut self, tokens: I) -> Result<(), BuildError>
    where
        I: IntoIterator<Item: Borrow<u32>>,
    {
        self.settle_on_ids()?;
        self.scratch.clear();
        for token in tokens {
            let word = self.checked(*token.borrow())?;
            self.scratch.push(word);
        }
        self.push_scratch()
    }

    /// Adds a document of (word id, count) pairs.
    ///
    /// # Errors
    /// As [`push_tokens`](Self::push_tokens), and [`BuildError::OrderOfPairs`].
    pub fn push_pairs<I>(&mut self, pairs: I) -> Result<(), BuildError>
    where
        I: IntoIterator<Item: Borrow<(u32, u32)>>,
    {
        self.settle_on_ids()?;
        let document = self.num_documents();
        if self.sequence.is_some() {
            return Err(BuildError::OrderOfPairs { document });
        }
        for pair in pairs {
            let (word, count) = *pair.borrow();
            let word = self.checked(word)?;
            self.assembly
                .push(word, count)
                .map_err(|excess| BuildError::from_excess(excess, document))?;
        }
        self.end_document()
    }

    /// Adds a document of strings, one per token. Strings get ids in order of first occurrence,
    /// unless the [`vocabulary`](Self::vocabulary) is fixed.
    ///
    /// # Errors
    /// As [`push_tokens`](Self::push_tokens).
    pub fn push_words<I>(&mut self, words: I) -> Result<(), BuildError>
    where
        I: IntoIterator<Item: AsRef<str>>,
    {
        for word in words {
            self.push_word(word.as_ref())?;
        }
        self.end_words()
    }

    /// Adds a token to the document that [`end_words`](Self::end_words) will end.
    pub(super) fn push_word(&mut self, word: &str) -> Result<(), BuildError> {
        let id = self.word_id(word)?;
        self.push_id(id);
        Ok(())
    }

    /// Id of a word, which is added if the vocabulary is not fixed. It does not change until the corpus is built.
    pub(super) fn word_id(&mut self, word: &str) -> Result<Option<u32>, BuildError> {
        let id = match &mut self.words {
            Words::Given(vocabulary) => vocabulary.id(word),
            Words::Strings(vocabulary) => Some(vocabulary.intern(word)?),
            Words::Unsettled => {
                let mut vocabulary = Vocabulary::new();
                let id = vocabulary.intern(word)?;
                self.words = Words::Strings(vocabulary);
                Some(id)
            }
            Words::Ids => return Err(BuildError::IdsAndStrings { document: self.num_documents() }),
        };
        id.map(|id| self.checked(id)).transpose()
    }

    /// Adds a token by the id that [`word_id`](Self::word_id) has returned.
    pub(super) fn push_id(&mut self, id: Option<u32>) {
        match id {
            Some(id) => self.scratch.push(id),
            None => self.dropped_tokens += 1,
        }
    }

    /// Drops the words that were pushed since the last document ended. They stay in the vocabulary.
    #[cfg(feature = "text")]
    pub(super) fn clear_words(&mut self) {
        self.scratch.clear();
    }

    /// Ends the document of strings.
    pub(super) fn end_words(&mut self) -> Result<(), BuildError> {
        self.push_scratch()
    }

    /// Adds documents of word ids.
    ///
    /// # Errors
    /// As [`push_tokens`](Self::push_tokens).
    pub fn extend_tokens<D>(&mut self, documents: D) -> Result<(), BuildError>
    where
        D: IntoIterator<Item: IntoIterator<Item: Borrow<u32>>>,
    {
        documents.into_iter().try_for_each(|document| self.push_tokens(document))
    }

    /// Adds documents of pairs.
    ///
    /// # Errors
    /// As [`push_pairs`](Self::push_pairs).
    pub fn extend_pairs<D>(&mut self, documents: D) -> Result<(), BuildError>
    where
        D: IntoIterator<Item: IntoIterator<Item: Borrow<(u32, u32)>>>,
    {
        documents.into_iter().try_for_each(|document| self.push_pairs(document))
    }

    /// Adds documents of strings.
    ///
    /// # Errors
    /// As [`push_words`](Self::push_words).
    pub fn extend_words<D>(&mut self, documents: D) -> Result<(), BuildError>
    where
        D: IntoIterator<Item: IntoIterator<Item: AsRef<str>>>,
    {
        documents.into_iter().try_for_each(|document| self.push_words(document))
    }

    /// Sets the date of the next document that has none. Call it once per document, in order.
    pub fn push_date(&mut self, date: Date) {
        self.dates.push(date);
    }

    /// Sets the [name](Corpus::document_name) of the next document that has none. Call it once per
    /// document, in order.
    pub fn push_name(&mut self, name: &str) {
        self.names.push(name);
    }

    /// Builds the corpus.
    ///
    /// # Errors
    /// [`BuildError::NoTokens`] if no document has tokens, and [`BuildError::Dates`] or
    /// [`BuildError::Names`] if only some documents have dates or names.
    pub fn build(self) -> Result<Corpus, BuildError> {
        let corpus = self.build_any()?.0;
        if corpus.num_tokens() == 0 { Err(BuildError::NoTokens) } else { Ok(corpus) }
    }

    /// Builds the corpus, which may have no tokens, and returns the irregularities normalised.
    pub(super) fn build_any(self) -> Result<(Corpus, Repairs), BuildError> {
        // Those that are in blocks have theirs there.
        let documents = self.num_documents() - self.assembly.num_in_blocks();
        if !self.dates.is_empty() && self.dates.len() != documents {
            return Err(BuildError::Dates { dates: self.dates.len(), documents });
        }
        if self.names.len() > 0 && self.names.len() != documents {
            return Err(BuildError::Names { names: self.names.len(), documents });
        }
        let (mut corpus, repairs) =
            self.assembly.finish().map_err(|excess| BuildError::from_excess(excess, documents))?;
        if let Some(num_words) = self.num_words {
            corpus.num_words = num_words;
            corpus.width_is_open = false;
        }
        if let Words::Strings(vocabulary) | Words::Given(vocabulary) = self.words {
            corpus.set_vocabulary(vocabulary)?;
        }
        if let Some(mut sequence) = self.sequence {
            shrink(&mut sequence.tokens);
            shrink(&mut sequence.starts);
            corpus.sequence = Some(sequence);
        }
        corpus.dates = (!self.dates.is_empty()).then_some(self.dates);
        corpus.names = (self.names.len() > 0).then_some(self.names);
        Ok((corpus, repairs))
    }

    fn settle_on_ids(&mut self) -> Result<(), BuildError> {
        match self.words {
            Words::Unsettled => self.words = Words::Ids,
            Words::Ids | Words::Given(_) => {}
            Words::Strings(_) => {
                return Err(BuildError::IdsAndStrings { document: self.num_documents() });
            }
        }
        Ok(())
    }

    fn checked(&self, word: u32) -> Result<u32, BuildError> {
        let limit = self.num_words.unwrap_or(MAX_WORD + 1);
        if word < limit {
            return Ok(word);
        }
        Err(BuildError::WordOutOfRange { document: self.num_documents(), word, limit })
    }

    /// Adds the tokens in `scratch` as a document.
    fn push_scratch(&mut self) -> Result<(), BuildError> {
        let document = self.num_documents();
        let fail = |excess| BuildError::from_excess(excess, document);
        if let Some(sequence) = &mut self.sequence {
            for &token in &self.scratch {
                push(&mut sequence.tokens, token, &self.extent).map_err(fail)?;
            }
            sequence.starts.push(sequence.tokens.len() as u64);
        }
        if self.scratch.len() as u64 > MAX_TOKENS {
            return Err(fail(Excess::Tokens));
        }
        self.scratch.sort_unstable();
        for run in self.scratch.chunk_by(|a, b| a == b) {
            let word = run[0];
            let count = u32::try_from(run.len()).map_err(|_| fail(Excess::Count { word }))?;
            self.assembly.push(word, count).map_err(fail)?;
        }
        self.scratch.clear();
        self.end_document()
    }

    fn end_document(&mut self) -> Result<(), BuildError> {
        let document = self.num_documents();
        let Self { assembly, dates, names, .. } = self;
        let ended = assembly.end_document_with(|block, documents| {
            block.dates = take_first(dates, documents);
            block.names = names.take_first(documents);
        });
        ended.map_err(|excess| BuildError::from_excess(excess, document))
    }
}

/// Removes the first `documents` dates; `None` if there are none.
fn take_first(dates: &mut Vec<Date>, documents: usize) -> Option<Vec<Date>> {
    (dates.len() >= documents && documents > 0).then(|| dates.drain(..documents).collect())
}

impl Corpus {
    /// Builds a corpus of word ids, one per token; V is the largest id plus one.
    ///
    /// # Errors
    /// [`BuildError::NoTokens`], [`BuildError::WordOutOfRange`], [`BuildError::TooLarge`].
    ///
    /// ```
    /// use lda_core::Corpus;
    ///
    /// let corpus = Corpus::from_tokens([[0, 4, 0], [4, 4, 1]])?;
    /// assert_eq!(corpus.document(0).counts, [2, 1]);
    /// # Ok::<(), lda_core::corpus::BuildError>(())
    /// ```
    pub fn from_tokens<D>(documents: D) -> Result<Self, BuildError>
    where
        D: IntoIterator<Item: IntoIterator<Item: Borrow<u32>>>,
    {
        let mut builder = CorpusBuilder::new();
        builder.extend_tokens(documents)?;
        builder.build()
    }

    /// Builds a corpus of (word id, count) pairs; V is the largest id plus one.
    ///
    /// # Errors
    /// As [`from_tokens`](Self::from_tokens).
    pub fn from_pairs<D>(documents: D) -> Result<Self, BuildError>
    where
        D: IntoIterator<Item: IntoIterator<Item: Borrow<(u32, u32)>>>,
    {
        let mut builder = CorpusBuilder::new();
        builder.extend_pairs(documents)?;
        builder.build()
    }

    /// Builds a corpus of strings, one per token, and their vocabulary. It is a bag of words; to keep
    /// the order of the tokens, for coherence in windows:
    ///
    /// ```
    /// use lda_core::corpus::CorpusBuilder;
    ///
    /// let mut builder = CorpusBuilder::new().keep_order();
    /// builder.extend_words([["b", "a", "b"]])?;
    /// assert_eq!(builder.build()?.tokens(0), Some([0, 1, 0].as_slice()));
    /// # Ok::<(), lda_core::corpus::BuildError>(())
    /// ```
    ///
    /// # Errors
    /// As [`from_tokens`](Self::from_tokens).
    pub fn from_words<D>(documents: D) -> Result<Self, BuildError>
    where
        D: IntoIterator<Item: IntoIterator<Item: AsRef<str>>>,
    {
        let mut builder = CorpusBuilder::new();
        builder.extend_words(documents)?;
        builder.build()
    }

    /// Sets the vocabulary.
    ///
    /// # Errors
    /// [`BuildError::VocabularyLength`] if its length differs from the number of words. If the
    /// number of words is only the largest id plus one, a longer vocabulary is accepted and
    /// increases it.
    pub fn set_vocabulary(&mut self, vocabulary: Vocabulary) -> Result<(), BuildError> {
        let (words, num_words) = (vocabulary.len(), self.num_words());
        if words < num_words || words > num_words && !self.width_is_open {
            return Err(BuildError::VocabularyLength { words, num_words });
        }
        self.num_words = words as u32;
        self.width_is_open = false;
        self.vocabulary = Some(vocabulary);
        Ok(())
    }

    /// Removes and returns the vocabulary, so that parts of a corpus need not each have a copy.
    pub fn take_vocabulary(&mut self) -> Option<Vocabulary> {
        self.vocabulary.take()
    }

    /// Sets the dates, one per document.
    ///
    /// # Errors
    /// [`BuildError::Dates`] if their number differs from the number of documents.
    pub fn set_dates(&mut self, dates: Vec<Date>) -> Result<(), BuildError> {
        if dates.len() != self.num_documents() {
            let documents = self.num_documents();
            return Err(BuildError::Dates { dates: dates.len(), documents });
        }
        self.dates = Some(dates);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_shape_of_document_gives_the_same_corpus() {
        let tokens = Corpus::from_tokens([vec![1, 0, 1], vec![], vec![2]]).unwrap();
        let pairs = Corpus::from_pairs(&[vec![(1, 1), (0, 1), (1, 1)], vec![], vec![(2, 1)]]);
        assert_eq!(pairs.unwrap(), tokens);
        let words = Corpus::from_words([vec!["a", "b", "b"], vec![], vec!["c"]]).unwrap();
        assert_eq!(words.document(0), tokens.document(0));
        assert_eq!(words.vocabulary().unwrap().id("c"), Some(2));
    }

    #[test]
    fn order_is_kept_on_request() {
        let mut builder = CorpusBuilder::new().keep_order();
        builder.push_words(["b", "a", "b"]).unwrap();
        builder.push_words::<[&str; 0]>([]).unwrap();
        builder.push_words(["c", "a"]).unwrap();
        let corpus = builder.build().unwrap();
        assert_eq!(corpus.tokens(0).unwrap(), [0, 1, 0]);
        assert_eq!(corpus.tokens(1).unwrap(), [] as [u32; 0]);
        assert_eq!(corpus.tokens(2).unwrap(), [2, 1]);
        assert_eq!(Corpus::from_tokens([[1]]).unwrap().tokens(0), None);
    }

    #[test]
    fn a_given_vocabulary_drops_what_it_lacks() {
        let known = Corpus::from_words([["a", "b"]]).unwrap();
        let mut builder = CorpusBuilder::new().vocabulary(known.vocabulary().unwrap().clone());
        builder.push_words(["b", "x", "b"]).unwrap();
        builder.push_tokens([0]).unwrap();
        assert_eq!(builder.dropped_tokens(), 1);
        let error = builder.push_tokens([2]).unwrap_err();
        assert_eq!(error, BuildError::WordOutOfRange { document: 2, word: 2, limit: 2 });
    }

    #[test]
    fn refusals_say_what_and_where() {
        assert_eq!(Corpus::from_tokens([[0u32; 0]]).unwrap_err(), BuildError::NoTokens);
        assert_eq!(Corpus::from_pairs([[(3, 0)]]).unwrap_err(), BuildError::NoTokens);
        let limit = u32::MAX;
        let error = Corpus::from_tokens([[u32::MAX]]).unwrap_err();
        assert_eq!(error, BuildError::WordOutOfRange { document: 0, word: u32::MAX, limit });
        let error = Corpus::from_pairs([[(3, u32::MAX), (3, 1)]]).unwrap_err();
        assert_eq!(error, BuildError::CountOverflow { document: 0, word: 3 });

        let mut mixed = CorpusBuilder::new();
        mixed.push_words(["a"]).unwrap();
        assert_eq!(mixed.push_tokens([0]), Err(BuildError::IdsAndStrings { document: 1 }));
        let mut mixed = CorpusBuilder::new();
        mixed.push_tokens([0]).unwrap();
        assert_eq!(mixed.push_words(["a"]), Err(BuildError::IdsAndStrings { document: 1 }));
        let mut ordered = CorpusBuilder::new().keep_order();
        assert_eq!(ordered.push_pairs([(0, 1)]), Err(BuildError::OrderOfPairs { document: 0 }));
    }

    #[test]
    fn dates_are_for_all_or_none() {
        let mut builder = CorpusBuilder::new();
        builder.push_tokens([0]).unwrap();
        builder.push_date("1999".parse().unwrap());
        builder.push_tokens([0]).unwrap();
        let error = builder.build().unwrap_err();
        assert_eq!(error, BuildError::Dates { dates: 1, documents: 2 });

        let mut corpus = Corpus::from_tokens([[0], [0]]).unwrap();
        let dates: Vec<Date> = vec!["1999".parse().unwrap(); 2];
        assert!(corpus.set_dates(vec![]).is_err());
        corpus.set_dates(dates.clone()).unwrap();
        assert_eq!(corpus.dates(), Some(&dates[..]));
    }

    #[test]
    fn a_vocabulary_may_be_longer_only_where_the_width_was_guessed() {
        let three = Corpus::from_words([["a", "b", "c"]]).unwrap().vocabulary().unwrap().clone();
        let mut guessed = Corpus::from_tokens([[0, 1]]).unwrap();
        guessed.set_vocabulary(three.clone()).unwrap();
        assert_eq!(guessed.num_words(), 3);

        let mut builder = CorpusBuilder::new().num_words(2);
        builder.push_tokens([0, 1]).unwrap();
        let mut stated = builder.build().unwrap();
        let error = BuildError::VocabularyLength { words: 3, num_words: 2 };
        assert_eq!(stated.set_vocabulary(three.clone()), Err(error));
        let mut wider = Corpus::from_tokens([[3]]).unwrap();
        let error = BuildError::VocabularyLength { words: 3, num_words: 4 };
        assert_eq!(wider.set_vocabulary(three), Err(error));
    }
}
