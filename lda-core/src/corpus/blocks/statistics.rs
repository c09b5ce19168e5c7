//! Frequencies of words and lengths of documents of a whole corpus, so that a run over blocks is laid out
//! before a block is read.

use std::collections::BTreeMap;
use std::io::{Read, Seek, Write};

use crate::container::{FileError, Kind, Reader, Source, Writer};
use crate::corpus::Corpus;

/// Frequencies of words and lengths of documents.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    /// Tokens of each word.
    tokens: Vec<u64>,
    /// Documents of each word.
    documents: Vec<u64>,
    /// Number of documents of each length in tokens.
    lengths: BTreeMap<u32, u64>,
}

impl Statistics {
    /// Name of their file.
    pub const NAME: &str = "statistics";

    /// Those of no documents, with `words` words.
    pub fn new(words: usize) -> Self {
        Self { tokens: vec![0; words], documents: vec![0; words], lengths: BTreeMap::new() }
    }

    /// Adds documents. They may have more words.
    pub fn add(&mut self, documents: &Corpus) {
        self.widen(documents.num_words());
        for document in documents.documents() {
            let mut length = 0;
            for (word, count) in document.iter() {
                self.tokens[word as usize] += u64::from(count);
                self.documents[word as usize] += 1;
                length += count;
            }
            *self.lengths.entry(length).or_default() += 1;
        }
    }

    /// Adds words without tokens, up to a number of words.
    pub(super) fn widen(&mut self, words: usize) {
        let words = words.max(self.tokens.len());
        self.tokens.resize(words, 0);
        self.documents.resize(words, 0);
    }

    /// Number of words V.
    pub fn num_words(&self) -> usize {
        self.tokens.len()
    }

    /// Tokens of each word.
    pub fn word_frequencies(&self) -> &[u64] {
        &self.tokens
    }

    /// Documents that have each word.
    pub fn document_frequencies(&self) -> &[u64] {
        &self.documents
    }

    /// Lengths of documents in tokens, ascending, each with the number of documents.
    pub fn lengths(&self) -> impl Iterator<Item = (u32, u64)> + '_ {
        self.lengths.iter().map(|(&length, &documents)| (length, documents))
    }

    /// Tokens of all documents.
    pub fn num_tokens(&self) -> u64 {
        self.tokens.iter().sum()
    }

    /// Documents, those without tokens included.
    pub fn num_documents(&self) -> u64 {
        self.lengths.values().sum()
    }

    /// Documents without tokens.
    pub fn num_empty(&self) -> u64 {
        self.lengths.get(&0).copied().unwrap_or(0)
    }

    /// Writes them as a file.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn write_to<W: Write + Seek>(&self, out: W) -> std::io::Result<()> {
        let mut file = Writer::new(out, Kind::Statistics, 4)?;
        file.section("tokens", self.tokens.iter().copied())?;
        file.section("documents", self.documents.iter().copied())?;
        file.section("lengths", self.lengths.keys().copied())?;
        file.section("of-length", self.lengths.values().copied())?;
        file.finish()?.flush()
    }

    /// Reads a file, which must be all of `from`. Memory is bounded by its length.
    ///
    /// # Errors
    /// [`FileError`] names the problem.
    pub fn read_from<R: Read + Seek>(from: R) -> Result<Self, FileError> {
        let mut file = Reader::open(from, Kind::Statistics)?;
        let tokens = file.numbers::<u64>("tokens")?;
        let documents = file.exactly::<u64>("documents", tokens.len() as u64)?.into_vec();
        let lengths = file.numbers::<u32>("lengths")?;
        let of_length = file.exactly::<u64>("of-length", lengths.len() as u64)?;
        let sum = |of: &[u64]| of.iter().try_fold(0u64, |sum, &n| sum.checked_add(n));
        let product = |(&length, &n): (&u32, &u64)| u64::from(length).checked_mul(n);
        let by_length = lengths.iter().zip(of_length.iter()).map(product);
        let by_length = by_length.collect::<Option<Vec<u64>>>().and_then(|all| sum(&all));
        let is_whole = lengths.is_sorted_by(|a, b| a < b)
            && sum(&of_length).is_some()
            && sum(&documents).is_some()
            && sum(&tokens).is_some_and(|tokens| by_length == Some(tokens));
        if !is_whole {
            return Err(FileError::malformed("lengths", "they are not those of the words' tokens"));
        }
        let lengths = lengths.into_iter().zip(of_length.iter().copied()).collect();
        Ok(Self { tokens, documents, lengths })
    }
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use super::*;

    fn statistics() -> Statistics {
        let corpus = Corpus::from_pairs([vec![(0, 1), (2, 3)], vec![], vec![(2, 5)]]).unwrap();
        let mut statistics = Statistics::new(0);
        statistics.widen(4);
        statistics.add(&corpus);
        statistics.add(&corpus);
        statistics
    }

    #[test]
    fn documents_add_up() {
        let found = statistics();
        assert_eq!(found.word_frequencies(), [2, 0, 16, 0]);
        assert_eq!(found.document_frequencies(), [2, 0, 4, 0]);
        assert_eq!(found.lengths().collect::<Vec<_>>(), [(0, 2), (4, 2), (5, 2)]);
        assert_eq!((found.num_tokens(), found.num_documents(), found.num_empty()), (18, 6, 2));
    }

    #[test]
    fn statistics_round_trip_and_contradictions_are_refused() {
        let written = |statistics: &Statistics| {
            let mut file = Cursor::new(Vec::new());
            statistics.write_to(&mut file).unwrap();
            file.into_inner()
        };
        let whole = written(&statistics());
        assert_eq!(Statistics::read_from(Cursor::new(&whole)).unwrap(), statistics());
        for end in 0..whole.len() {
            assert!(Statistics::read_from(Cursor::new(&whole[..end])).is_err(), "{end}");
        }
        let mut fewer = statistics();
        fewer.tokens[0] = 1;
        let error = Statistics::read_from(Cursor::new(written(&fewer))).unwrap_err().to_string();
        assert!(error.contains("not those of the words' tokens"), "{error}");
        let mut many = statistics();
        many.lengths.insert(u32::MAX, u64::MAX);
        assert!(Statistics::read_from(Cursor::new(written(&many))).is_err());
    }
}
