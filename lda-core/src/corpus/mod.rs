//! Corpora: immutable documents as bags of words.
//!
//! A [`Corpus`] is a compressed-sparse-row matrix: for each document its distinct words, ascending,
//! and their counts. Word ids are dense, `0..num_words()`; a [`Vocabulary`] names them. Optionally
//! a document has a [`Date`] and the original order of its tokens.
//!
//! A corpus comes from a file ([`Corpus::read`]) or from a [`CorpusBuilder`]. It can be
//! [saved](Corpus::save) in binary form, which loads many times faster than any text format.
//!
//! | part | bytes |
//! |---|---|
//! | pairs | 8 per (word, count) pair |
//! | documents | 4 per document |
//! | vocabulary | the words, plus 9 to 14 per word |
//! | dates | 4 per document |
//! | original order | 4 per token, 8 per document |
//!
//! Limits: 2^32 tokens, 2^32 - 1 pairs, 2^32 - 2 documents, word ids below 2^32 - 1.

mod assembly;
pub mod blocks;
mod builder;
mod date;
mod file;
mod names;
pub mod read;
mod select;
mod vocabulary;
mod write;

use std::fmt;

use names::DocumentNames;

pub use builder::{BuildError, CorpusBuilder};
pub use date::{Date, DateError};
#[doc(inline)]
pub use read::{Format, ReadError, ReadOptions, ReadReport};
pub use vocabulary::{Vocabulary, VocabularyFull};
pub use write::write_uci;

/// Maximum number of tokens of a corpus, so that the index of a token fits 32 bits.
pub const MAX_TOKENS: u64 = 1 << 32;
/// Maximum number of pairs of a corpus.
const MAX_PAIRS: usize = u32::MAX as usize;
/// Maximum number of documents of a corpus.
const MAX_DOCUMENTS: usize = u32::MAX as usize - 1;
/// Largest word id, so that the number of words fits 32 bits.
const MAX_WORD: u32 = u32::MAX - 1;

/// One document: its distinct words and their counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Document<'a> {
    /// Distinct word ids, strictly ascending.
    pub words: &'a [u32],
    /// Number of tokens of each word, at least 1; as long as `words`.
    pub counts: &'a [u32],
}

impl<'a> Document<'a> {
    /// Number of tokens: a sum over the pairs.
    pub fn len(&self) -> u64 {
        self.counts.iter().map(|&count| u64::from(count)).sum()
    }

    /// Whether the document has no tokens.
    pub fn is_empty(&self) -> bool {
        self.words.is_empty()
    }

    /// The (word, count) pairs, by ascending word.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (u32, u32)> + use<'a> {
        self.words.iter().copied().zip(self.counts.iter().copied())
    }
}

/// Tokens of each document in their original order.
#[derive(Clone, PartialEq, Eq)]
struct Sequence {
    tokens: Vec<u32>,
    /// `starts[d]..starts[d + 1]` are document d's tokens. u64, because 2^32 itself must be
    /// representable.
    starts: Vec<u64>,
}

/// Documents as bags of words.
///
/// ```
/// use lda_core::Corpus;
///
/// let corpus = Corpus::from_words([
///     vec!["apple", "pie", "apple"],
///     vec![],
///     vec!["pie", "chart"],
/// ])?;
/// assert_eq!((corpus.num_documents(), corpus.num_words(), corpus.num_tokens()), (3, 3, 5));
/// assert_eq!(corpus.document(0).words, [0, 1]);
/// assert_eq!(corpus.document(0).counts, [2, 1]);
/// assert_eq!(corpus.vocabulary().unwrap().word(2), "chart");
/// # Ok::<(), lda_core::corpus::BuildError>(())
/// ```
#[derive(Clone)]
pub struct Corpus {
    /// `offsets[d]..offsets[d + 1]` are document d's pairs.
    offsets: Vec<u32>,
    words: Vec<u32>,
    counts: Vec<u32>,
    num_words: u32,
    num_tokens: u64,
    /// Whether `num_words` is only the largest id plus one, so that a longer vocabulary may be set.
    width_is_open: bool,
    vocabulary: Option<Vocabulary>,
    /// One per document.
    dates: Option<Vec<Date>>,
    sequence: Option<Sequence>,
    names: Option<DocumentNames>,
}

impl Corpus {
    /// Number of documents D, including empty ones.
    pub fn num_documents(&self) -> usize {
        self.offsets.len() - 1
    }

    /// Vocabulary size V: word ids are below it.
    pub fn num_words(&self) -> usize {
        self.num_words as usize
    }

    /// Number of tokens T.
    pub fn num_tokens(&self) -> u64 {
        self.num_tokens
    }

    /// Number of documents without tokens. O(D).
    pub fn num_empty(&self) -> usize {
        self.offsets.windows(2).filter(|ends| ends[0] == ends[1]).count()
    }

    /// Mean number of tokens of the documents that have tokens; 0 without any. O(D).
    pub fn mean_length(&self) -> f64 {
        let documents = self.num_documents() - self.num_empty();
        if documents == 0 { 0.0 } else { self.num_tokens as f64 / documents as f64 }
    }

    /// Number of (word, count) pairs.
    pub fn num_pairs(&self) -> usize {
        self.words.len()
    }

    /// Document `d`.
    ///
    /// # Panics
    /// If `d` is not below [`num_documents`](Self::num_documents).
    pub fn document(&self, d: usize) -> Document<'_> {
        let pairs = self.offsets[d] as usize..self.offsets[d + 1] as usize;
        Document { words: &self.words[pairs.clone()], counts: &self.counts[pairs] }
    }

    /// The documents in order.
    pub fn documents(&self) -> impl ExactSizeIterator<Item = Document<'_>> {
        (0..self.num_documents()).map(|d| self.document(d))
    }

    /// Number of tokens of document `d`: a sum over its pairs.
    ///
    /// # Panics
    /// If `d` is not below [`num_documents`](Self::num_documents).
    pub fn doc_length(&self, d: usize) -> u64 {
        self.document(d).len()
    }

    /// Number of tokens of each word; 0 for a word that never occurs. O(pairs + V).
    pub fn word_frequencies(&self) -> Vec<u64> {
        let mut frequencies = vec![0; self.num_words()];
        for (&word, &count) in self.words.iter().zip(&self.counts) {
            frequencies[word as usize] += u64::from(count);
        }
        frequencies
    }

    /// Number of documents that have each word. O(pairs + V).
    pub fn document_frequencies(&self) -> Vec<u32> {
        let mut frequencies = vec![0; self.num_words()];
        for &word in &self.words {
            frequencies[word as usize] += 1;
        }
        frequencies
    }

    /// Names of the words, if known; `num_words()` long.
    pub fn vocabulary(&self) -> Option<&Vocabulary> {
        self.vocabulary.as_ref()
    }

    /// Dates of the documents, if known; `num_documents()` long.
    pub fn dates(&self) -> Option<&[Date]> {
        self.dates.as_deref()
    }

    /// Name of document `d`: the path of its file in a directory that was read, or the column that
    /// [names documents](crate::corpus::read::Columns::id). `None` if documents have no names.
    ///
    /// # Panics
    /// If documents have names and `d` is not below [`num_documents`](Self::num_documents).
    pub fn document_name(&self, d: usize) -> Option<&str> {
        self.names.as_ref().map(|names| names.get(d))
    }

    /// Whether the original order of the tokens was kept.
    pub fn has_token_order(&self) -> bool {
        self.sequence.is_some()
    }

    /// Tokens of document `d` in their original order, if it was kept.
    ///
    /// # Panics
    /// If the order was kept and `d` is not below [`num_documents`](Self::num_documents).
    pub fn tokens(&self, d: usize) -> Option<&[u32]> {
        let sequence = self.sequence.as_ref()?;
        Some(&sequence.tokens[sequence.starts[d] as usize..sequence.starts[d + 1] as usize])
    }

    /// Hash of the documents and the number of words, but not of vocabulary, dates or order. It is
    /// used to check that a snapshot belongs to this corpus. The value is the same on every machine
    /// and does not change between versions. One pass over the pairs.
    ///
    /// It detects mistakes, and is not collision-resistant against an adversary.
    pub fn fingerprint(&self) -> u64 {
        let mut hash = mix(0x6c64_615f_636f_7270, self.num_documents() as u64);
        hash = mix(hash, u64::from(self.num_words));
        for document in self.documents() {
            hash = mix(hash, document.words.len() as u64);
            for (word, count) in document.iter() {
                hash = mix(hash, u64::from(word) << 32 | u64::from(count));
            }
        }
        hash
    }

    /// Heap memory in bytes.
    pub fn memory(&self) -> usize {
        let pairs = 4 * (self.offsets.capacity() + self.words.capacity() + self.counts.capacity());
        let vocabulary = self.vocabulary.as_ref().map_or(0, Vocabulary::memory);
        let dates = self.dates.as_ref().map_or(0, |dates| 4 * dates.capacity());
        let sequence = self
            .sequence
            .as_ref()
            .map_or(0, |sequence| 4 * sequence.tokens.capacity() + 8 * sequence.starts.capacity());
        let names = self.names.as_ref().map_or(0, DocumentNames::memory);
        pairs + vocabulary + dates + sequence + names
    }

    /// Number of words that never occur.
    fn unused_words(&self) -> u64 {
        (self.num_words() - self.used_words().len()) as u64
    }
}

/// One step of the fingerprint: xor, multiply by an odd constant (2^64 / golden ratio), fold.
fn mix(hash: u64, item: u64) -> u64 {
    let product = (hash ^ item).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    product ^ product >> 29
}

/// Corpora are equal if documents, number of words, vocabulary, dates, names and order are.
impl PartialEq for Corpus {
    fn eq(&self, other: &Self) -> bool {
        self.num_words == other.num_words
            && self.offsets == other.offsets
            && self.words == other.words
            && self.counts == other.counts
            && self.vocabulary == other.vocabulary
            && self.dates == other.dates
            && self.sequence == other.sequence
            && self.names == other.names
    }
}

impl Eq for Corpus {}

/// Prints sizes instead of contents.
impl fmt::Debug for Corpus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Corpus")
            .field("documents", &self.num_documents())
            .field("words", &self.num_words)
            .field("pairs", &self.num_pairs())
            .field("tokens", &self.num_tokens)
            .field("vocabulary", &self.vocabulary.is_some())
            .field("dates", &self.dates.is_some())
            .field("order", &self.sequence.is_some())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Corpus {
        Corpus::from_pairs([vec![(0, 1), (2, 3)], vec![], vec![(2, 5)]]).unwrap()
    }

    #[test]
    fn frequencies_sum_to_the_tokens() {
        let corpus = sample();
        assert_eq!(corpus.word_frequencies(), [1, 0, 8]);
        assert_eq!(corpus.document_frequencies(), [1, 0, 2]);
        assert_eq!(corpus.doc_length(0), 4);
        assert_eq!(corpus.doc_length(1), 0);
        assert!(corpus.document(1).is_empty());
        assert_eq!(corpus.unused_words(), 1);
    }

    #[test]
    fn unused_words_of_a_wide_corpus() {
        let corpus = Corpus::from_pairs([[(4_000_000_000, 1), (7, 1)]]).unwrap();
        assert_eq!(corpus.unused_words(), 4_000_000_001 - 2);
    }

    #[test]
    fn fingerprint_is_pinned_and_sees_every_part() {
        let corpus = sample();
        assert_eq!(
            corpus.fingerprint(),
            0xf3ff_c95f_066a_53de,
            "pinned: a change would orphan snapshots"
        );
        let mut wider = CorpusBuilder::new().num_words(4);
        wider.extend_pairs([vec![(0, 1), (2, 3)], vec![], vec![(2, 5)]]).unwrap();
        let others = [
            Corpus::from_pairs([vec![(0, 1), (2, 3)], vec![(2, 5)], vec![]]),
            Corpus::from_pairs([vec![(0, 3), (2, 1)], vec![], vec![(2, 5)]]),
            Corpus::from_pairs([vec![(1, 1), (2, 3)], vec![], vec![(2, 5)]]),
            Corpus::from_pairs([vec![(0, 1)], vec![(2, 3)], vec![(2, 5)]]),
            wider.build(),
        ];
        for other in others {
            assert_ne!(other.unwrap().fingerprint(), corpus.fingerprint());
        }
    }

    #[test]
    fn a_corpus_can_be_shared_between_threads() {
        fn shared<T: Send + Sync + 'static>() {}
        shared::<Corpus>();
        shared::<CorpusBuilder>();
        shared::<ReadError>();
    }
}
