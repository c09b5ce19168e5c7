//! Options of readers, and the report of a read.

use std::fmt;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::{Format, ReadError, TokenizerOptions};

/// Compression of a file, detected by its first bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Compression {
    /// Not compressed.
    #[default]
    None,
    /// gzip with one or several members.
    Gzip,
    /// Zstandard with one or several frames.
    Zstd,
}

impl fmt::Display for Compression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::None => "plain",
            Self::Gzip => "gzip",
            Self::Zstd => "zstd",
        })
    }
}

/// Options for reading a corpus. The defaults follow the specifications of the formats.
///
/// ```
/// use lda_core::corpus::{Format, ReadOptions};
///
/// let mut options = ReadOptions::default();
/// options.format = Some(Format::Svmlight);
/// options.index_base = 0;
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct ReadOptions {
    /// The format; `None` (default): detected from name and content.
    pub format: Option<Format>,
    /// Encoding of the texts, by its name in the
    /// [Encoding Standard](https://encoding.spec.whatwg.org/#names-and-labels), such as `windows-1252`;
    /// a byte order mark wins over it. `None` (default): UTF-8, or UTF-16 with a mark. Needs feature
    /// `encodings`.
    pub encoding: Option<String>,
    /// SVMlight: index of the first word. Default 1; some programs write indices from 0.
    pub index_base: u32,
    /// SVMlight and LDA-C: number of words V, which these formats do not state. `None` (default):
    /// one above the largest id that occurs.
    pub num_words: Option<u32>,
    /// MatrixMarket: columns are documents and rows are words. Default false.
    pub transpose: bool,
    /// Text: keep the order of the tokens, at 4 bytes per token. Default false.
    pub keep_order: bool,
    /// UCI and MatrixMarket: maximum number of documents without tokens. Default 2^24. These
    /// formats number their documents, so that a few bytes can claim any number of documents, which
    /// cost 4 bytes each.
    pub max_empty_documents: u64,
    /// Formats with word numbers: maximum number of words without a token below the largest number.
    /// Default 2^24. A few bytes can claim any number of words, which training keeps in memory.
    pub max_unused_words: u64,
    /// CSV and JSON lines: columns or fields with the texts, the names and the dates of documents.
    pub columns: Columns,
    /// Text: words, and which of them are dropped.
    pub text: TextOptions,
}

impl Default for ReadOptions {
    fn default() -> Self {
        Self {
            format: None,
            encoding: None,
            index_base: 1,
            num_words: None,
            transpose: false,
            keep_order: false,
            max_empty_documents: 1 << 24,
            max_unused_words: 1 << 24,
            columns: Columns::default(),
            text: TextOptions::default(),
        }
    }
}

/// Columns of a [table](Format::Csv), or fields of [JSON lines](Format::JsonLines). A column of a table
/// is its name in the first line, or its number, from 1.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct Columns {
    /// Columns with the text of a document, which follow each other in it. At least one must be given.
    pub text: Vec<String>,
    /// Column with the [name](crate::Corpus::document_name) of a document.
    pub id: Option<String>,
    /// Column with the [date](crate::corpus::Date) of a document; a time of day after it is ignored.
    pub date: Option<String>,
    /// A table: the first line names the columns and is not a document. Default true.
    pub header: bool,
}

impl Default for Columns {
    fn default() -> Self {
        Self { text: Vec::new(), id: None, date: None, header: true }
    }
}

impl ReadOptions {
    /// Rejects options that the format does not support, instead of ignoring them.
    pub(super) fn check(&self, format: Format) -> Result<(), ReadError> {
        let supported = format.description().options;
        let refuse = |name, value: String, remedy| Err(ReadError::Option { name, value, remedy });
        if self.keep_order && !supported.keep_order {
            let remedy = "only text has an order of tokens; leave it out";
            return refuse("keep_order", "true".into(), remedy);
        }
        if self.transpose && !supported.transpose {
            let remedy = "only MatrixMarket is transposed; leave it out";
            return refuse("transpose", "true".into(), remedy);
        }
        if self.columns != Columns::default() && !supported.columns {
            let remedy = "only CSV and JSON lines have columns; leave it out";
            return refuse("columns", "given".into(), remedy);
        }
        match self.num_words {
            Some(n) if !supported.num_words => {
                let remedy = "the format states the number of words itself; leave it out";
                refuse("num_words", n.to_string(), remedy)
            }
            _ => self.text.check(),
        }
    }
}

/// Reading of plain text.
///
/// Text is [tokenized](TokenizerOptions); then words in too few or too many documents are dropped.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct TextOptions {
    /// Words of a text.
    pub tokenizer: TokenizerOptions,
    /// Search for phrases, which are added to those of the tokenizer; `None` (default): no search.
    pub phrases: Option<PhraseOptions>,
    /// Minimum number of documents that have the word. Default 1.
    pub min_document_frequency: u32,
    /// Maximum share of documents that have the word, above 0 and at most 1 (default).
    pub max_document_frequency: f64,
    /// Extensions, without the dot, of the files in a directory to read; empty (default): all.
    /// Files and directories whose name starts with a dot are always left out.
    pub extensions: Vec<String>,
    /// A directory: fail at the first file that is no text, instead of skipping it. Default false.
    pub strict: bool,
    /// Largest number of bytes of the beginning of each text to keep for [`ReadReport::texts`]; 0
    /// (default): none. It is halved, down to 32, while all texts together exceed 512 MiB.
    #[serde(skip_serializing_if = "is_zero")]
    pub keep_text: usize,
}

/// Options that change no result are left out of its record.
fn is_zero(bytes: &usize) -> bool {
    *bytes == 0
}

impl Default for TextOptions {
    fn default() -> Self {
        Self {
            tokenizer: TokenizerOptions::default(),
            phrases: None,
            min_document_frequency: 1,
            max_document_frequency: 1.0,
            extensions: Vec::new(),
            strict: false,
            keep_text: 0,
        }
    }
}

/// Search for phrases: neighbouring words that occur together more often than by chance.
///
/// Words have nothing but stop words between them, at most two. A pair is joined if it is frequent enough
/// and its score reaches the threshold; then pairs of pairs and words, up to `max_words`. The search keeps
/// all words of the texts in memory, at 8 bytes each.
///
/// ```
/// use lda_core::corpus::read::PhraseOptions;
/// use lda_core::corpus::{Format, ReadOptions};
///
/// let mut options = ReadOptions::default();
/// let mut phrases = PhraseOptions::default();
/// phrases.min_count = 3;
/// options.text.phrases = Some(phrases);
/// let text = "New York in May\nrain in New York\nNew York, old bridges\nnew bridges in May\n";
/// let (corpus, _) = Format::Text.read_from(text.as_bytes(), "text", &options)?;
/// let words = corpus.vocabulary().unwrap();
/// assert!(words.id("new_york").is_some() && words.id("york").is_none());
/// assert_eq!(words.tokenizer().unwrap().phrases, ["new york"]);
/// # Ok::<(), lda_core::corpus::ReadError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct PhraseOptions {
    /// Measure of association.
    pub score: PhraseScore,
    /// Minimum score. Default 0.5, which is for [`PhraseScore::Npmi`].
    pub threshold: f64,
    /// Minimum number of occurrences. Default 10.
    pub min_count: u32,
    /// Maximum number of words that are not stop words, at least 2. Default 3.
    pub max_words: u32,
}

impl Default for PhraseOptions {
    fn default() -> Self {
        Self { score: PhraseScore::Npmi, threshold: 0.5, min_count: 10, max_words: 3 }
    }
}

/// Measure of association of two neighbouring words.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum PhraseScore {
    /// Normalised pointwise mutual information, ln(p(ab) / p(a)p(b)) / -ln p(ab) (Bouma 2009): 0 by
    /// chance, 1 if neither word occurs without the other. It does not grow with the corpus.
    #[default]
    Npmi,
    /// Log-likelihood ratio G² of the 2 × 2 table of the two words (Dunning 1993), 0 for pairs that are
    /// rarer than by chance. It grows with the number of occurrences. Independent words reach 10.83 with
    /// a probability of 0.001.
    LogLikelihood,
}

impl PhraseOptions {
    fn check(&self) -> Result<(), ReadError> {
        let refuse = |name, value: String, remedy| Err(ReadError::Option { name, value, remedy });
        if !self.threshold.is_finite() {
            return refuse("threshold", self.threshold.to_string(), "give a number");
        }
        if self.min_count == 0 {
            return refuse("min_count", "0".into(), "give 1 or more");
        }
        if self.max_words < 2 {
            return refuse("max_words", self.max_words.to_string(), "a phrase has 2 words or more");
        }
        Ok(())
    }
}

impl TextOptions {
    fn check(&self) -> Result<(), ReadError> {
        if let Some(phrases) = &self.phrases {
            phrases.check()?;
        }
        let share = self.max_document_frequency;
        if share > 0.0 && share <= 1.0 {
            return Ok(());
        }
        Err(ReadError::Option {
            name: "max_document_frequency",
            value: share.to_string(),
            remedy: "give a share of the documents, above 0 and at most 1",
        })
    }
}

/// Content of a file, and the irregularities that were normalised.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ReadReport {
    /// Format of the file.
    pub format: Format,
    /// Compression of the file.
    pub compression: Compression,
    /// Bytes of text after decompression; a line end counts one.
    pub bytes: u64,
    /// Bytes read from the input, before decompression.
    pub packed_bytes: u64,
    /// Number of documents, including empty ones.
    pub documents: u64,
    /// Vocabulary size V.
    pub words: u64,
    /// Number of distinct (document, word) pairs.
    pub pairs: u64,
    /// Number of tokens.
    pub tokens: u64,
    /// Documents without tokens, which are kept.
    pub empty_documents: u64,
    /// Words that never occur, which are kept.
    pub unused_words: u64,
    /// Pairs whose word id is smaller than the previous one in the document, which are sorted.
    pub unsorted_pairs: u64,
    /// Pairs that repeat a word of their document, which are merged.
    pub repeated_pairs: u64,
    /// Pairs with count 0, which are dropped.
    pub zero_counts: u64,
    /// Text: tokens that the options dropped.
    pub dropped_tokens: u64,
    /// Number of times that a smaller document id followed a larger one; documents are sorted.
    pub out_of_order_documents: u64,
    /// A directory: files that are no text, and links to nothing, which are not documents.
    pub skipped_files: Vec<SkippedFile>,
    /// Text: the beginning of each document's text, without blanks around it and with an ellipsis where it
    /// was cut, if [`TextOptions::keep_text`] asked for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub texts: Option<Vec<String>>,
}

/// A file of a directory that was skipped.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct SkippedFile {
    /// The file.
    pub path: PathBuf,
    /// The error that reading it gave.
    pub reason: String,
}

/// One line of text: the totals, then the irregularities.
impl fmt::Display for ReadReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { format, compression, documents, words, tokens, .. } = self;
        write!(
            f,
            "{format}, {compression}: {documents} documents, {words} words, {tokens} tokens"
        )?;
        let repairs = [
            (self.empty_documents, "empty documents kept"),
            (self.unused_words, "unused words kept"),
            (self.unsorted_pairs, "unsorted pairs sorted"),
            (self.repeated_pairs, "repeated pairs merged"),
            (self.zero_counts, "pairs of count 0 dropped"),
            (self.out_of_order_documents, "documents out of order sorted"),
            (self.dropped_tokens, "tokens dropped"),
            (self.skipped_files.len() as u64, "files skipped"),
        ];
        for (count, what) in repairs.into_iter().filter(|repair| repair.0 > 0) {
            write!(f, ", {count} {what}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::StopWords;
    use super::*;

    #[test]
    fn options_survive_serde() {
        let mut options = ReadOptions::default();
        options.text.tokenizer.stop_words = StopWords::List(vec!["foo".into()]);
        options.format = Some(Format::Text);
        let json = serde_json::to_string(&options).unwrap();
        assert_eq!(serde_json::from_str::<ReadOptions>(&json).unwrap(), options);
        assert_eq!(serde_json::from_str::<ReadOptions>("{}").unwrap(), ReadOptions::default());
        assert!(serde_json::from_str::<ReadOptions>("{\"index\": 0}").is_err());
    }

    #[test]
    fn unsupported_options_are_rejected() {
        let mut options = ReadOptions { keep_order: true, ..ReadOptions::default() };
        assert!(options.check(Format::Text).is_ok());
        assert!(options.check(Format::Uci).is_err());
        options = ReadOptions { transpose: true, ..ReadOptions::default() };
        assert!(options.check(Format::MatrixMarket).is_ok());
        assert!(options.check(Format::Ldac).is_err());
        options = ReadOptions::default();
        options.columns.id = Some("id".into());
        assert!(options.check(Format::Csv).is_ok() && options.check(Format::JsonLines).is_ok());
        assert!(options.check(Format::Text).is_err());
        options = ReadOptions { num_words: Some(3), ..ReadOptions::default() };
        assert!(options.check(Format::Ldac).is_ok());
        assert!(options.check(Format::Uci).is_err());
        for share in [0.0, -0.1, 1.1, f64::NAN] {
            options = ReadOptions::default();
            options.text.max_document_frequency = share;
            assert!(options.check(Format::Text).is_err(), "{share}");
        }
        let phrases = PhraseOptions::default();
        for (phrases, is_valid) in [
            (phrases, true),
            (PhraseOptions { threshold: f64::NAN, ..phrases }, false),
            (PhraseOptions { min_count: 0, ..phrases }, false),
            (PhraseOptions { max_words: 1, ..phrases }, false),
        ] {
            options = ReadOptions::default();
            options.text.phrases = Some(phrases);
            assert_eq!(options.check(Format::Text).is_ok(), is_valid, "{phrases:?}");
        }
    }
}
