//! How to read, and what was read.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::ReadError;

/// A file format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Format {
    /// UCI bag-of-words, see [`uci`](super::uci).
    Uci,
    /// SVMlight, libsvm, see [`svmlight`](super::svmlight).
    Svmlight,
    /// LDA-C, see [`ldac`](super::ldac).
    Ldac,
    /// MatrixMarket coordinates, see [`matrix_market`](super::matrix_market).
    MatrixMarket,
    /// Plain text, a document a line or a file, see [`text`](super::text).
    Text,
}

impl Format {
    const ALL: [Self; 5] = [Self::Uci, Self::Svmlight, Self::Ldac, Self::MatrixMarket, Self::Text];

    pub(super) const NAMES: &'static str = "uci, svmlight, ldac, matrix-market, text";

    /// The name, as options and reports write it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Uci => "uci",
            Self::Svmlight => "svmlight",
            Self::Ldac => "ldac",
            Self::MatrixMarket => "matrix-market",
            Self::Text => "text",
        }
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Format {
    type Err = ReadError;

    fn from_str(name: &str) -> Result<Self, ReadError> {
        Self::ALL.into_iter().find(|format| format.name() == name).ok_or_else(|| {
            ReadError::Option {
                name: "format",
                value: name.to_owned(),
                remedy: "give one of uci, svmlight, ldac, matrix-market, text",
            }
        })
    }
}

/// How a file is packed; found by its first bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Compression {
    /// Not at all.
    #[default]
    None,
    /// gzip, one member or several.
    Gzip,
    /// Zstandard, one frame or several.
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

/// How to read a corpus. The defaults read what the formats' documents describe.
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
    /// The format; `None` (default): told from content and name.
    pub format: Option<Format>,
    /// SVMlight: the index of the first word; 1 by default, some programs write from 0.
    pub index_base: u32,
    /// SVMlight and LDA-C, which do not state it: the number of words V. `None` (default): one
    /// above the largest id that occurs.
    pub num_words: Option<u32>,
    /// MatrixMarket: columns are documents, rows are words; false by default.
    pub transpose: bool,
    /// Text: keep the order of the tokens, at 4 bytes a token; false by default.
    pub keep_order: bool,
    /// Most documents without a token before a UCI or MatrixMarket file is refused; default
    /// 2^24. These formats number their documents, so that a few bytes can claim any number of
    /// them, at 4 bytes each.
    pub max_empty_documents: u64,
    /// Text: what is a word.
    pub text: TextOptions,
}

impl Default for ReadOptions {
    fn default() -> Self {
        Self {
            format: None,
            index_base: 1,
            num_words: None,
            transpose: false,
            keep_order: false,
            max_empty_documents: 1 << 24,
            text: TextOptions::default(),
        }
    }
}

impl ReadOptions {
    /// Refuses options that say something the format has no place for, rather than ignore them.
    pub(super) fn check(&self, format: Format) -> Result<(), ReadError> {
        use Format::{Ldac, MatrixMarket, Svmlight, Text};
        let refuse = |name, value: String, remedy| Err(ReadError::Option { name, value, remedy });
        if self.keep_order && format != Text {
            let remedy = "only text has an order of tokens; leave it out";
            return refuse("keep_order", "true".into(), remedy);
        }
        if self.transpose && format != MatrixMarket {
            let remedy = "only MatrixMarket is transposed; leave it out";
            return refuse("transpose", "true".into(), remedy);
        }
        match self.num_words {
            Some(n) if !matches!(format, Svmlight | Ldac) => {
                let remedy = "the format states the number of words itself; leave it out";
                refuse("num_words", n.to_string(), remedy)
            }
            _ => self.text.check(),
        }
    }
}

/// What is a word of plain text.
///
/// A text is cut at the word boundaries of Unicode (UAX #29) and pieces without a letter or digit
/// are left out; then, in this order: identifiers are split, letters made lower-case, numbers,
/// words too short or too long and stop words dropped; at the end, words in too few or too many
/// documents.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct TextOptions {
    /// Split words at underscores and other punctuation and where the case changes, as source
    /// code wants: `readHTTPHeader` is read, http, header. False by default.
    pub split_identifiers: bool,
    /// Make letters lower-case; true by default.
    pub lowercase: bool,
    /// Keep words without any letter; false by default.
    pub numbers: bool,
    /// Fewest characters of a word; 2 by default.
    pub min_length: u32,
    /// Most characters of a word; 64 by default.
    pub max_length: u32,
    /// Words that are dropped; English ones by default.
    pub stop_words: StopWords,
    /// Fewest documents that a word must be in; 1 by default.
    pub min_document_frequency: u32,
    /// Largest share of the documents, above 0 and up to 1 (default), that a word may be in.
    pub max_document_frequency: f64,
    /// Extensions, without the dot, of the files of a directory that are read; all if empty
    /// (default). Files and directories whose name starts with a dot are always left out.
    pub extensions: Vec<String>,
}

impl Default for TextOptions {
    fn default() -> Self {
        Self {
            split_identifiers: false,
            lowercase: true,
            numbers: false,
            min_length: 2,
            max_length: 64,
            stop_words: StopWords::English,
            min_document_frequency: 1,
            max_document_frequency: 1.0,
            extensions: Vec::new(),
        }
    }
}

impl TextOptions {
    fn check(&self) -> Result<(), ReadError> {
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

/// Words that carry no topic.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum StopWords {
    /// Articles, pronouns, prepositions, auxiliaries and their like in English.
    #[default]
    English,
    /// None.
    None,
    /// These; compared after letters are made lower-case.
    List(Vec<String>),
    /// A file with a word a line, which may be compressed; compared after letters are made
    /// lower-case.
    File(PathBuf),
}

/// What a file held, and what was set right in it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ReadReport {
    /// The format.
    pub format: Format,
    /// How it was packed.
    pub compression: Compression,
    /// Bytes of text, unpacked.
    pub bytes: u64,
    /// Bytes fetched from the input.
    pub packed_bytes: u64,
    /// Documents, the empty ones included.
    pub documents: u64,
    /// Size of the vocabulary.
    pub words: u64,
    /// Distinct (document, word) pairs.
    pub pairs: u64,
    /// Tokens.
    pub tokens: u64,
    /// Documents without a token; kept.
    pub empty_documents: u64,
    /// Words that never occur; kept.
    pub unused_words: u64,
    /// Pairs whose word is smaller than the one before in the same document; sorted.
    pub unsorted_pairs: u64,
    /// Pairs that repeat an earlier one of their document; merged.
    pub repeated_pairs: u64,
    /// Pairs of count 0; dropped.
    pub zero_counts: u64,
    /// Text: tokens that are not in the corpus because the options drop them.
    pub dropped_tokens: u64,
    /// Times that a smaller document id followed a larger one; sorted.
    pub out_of_order_documents: u64,
}

/// One line for a person.
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
        ];
        for (count, what) in repairs.into_iter().filter(|repair| repair.0 > 0) {
            write!(f, ", {count} {what}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_parse_back() {
        for format in Format::ALL {
            assert_eq!(format.name().parse::<Format>().unwrap(), format);
            let quoted = format!("\"{format}\"");
            assert_eq!(serde_json::to_string(&format).unwrap(), quoted);
            assert!(Format::NAMES.contains(format.name()));
        }
        let error = "word2vec".parse::<Format>().unwrap_err().to_string();
        assert!(error.contains("`format` = word2vec: give one of uci"), "{error}");
    }

    #[test]
    fn options_survive_serde() {
        let mut options = ReadOptions::default();
        options.text.stop_words = StopWords::List(vec!["foo".into()]);
        options.format = Some(Format::Text);
        let json = serde_json::to_string(&options).unwrap();
        assert_eq!(serde_json::from_str::<ReadOptions>(&json).unwrap(), options);
        assert_eq!(serde_json::from_str::<ReadOptions>("{}").unwrap(), ReadOptions::default());
        assert!(serde_json::from_str::<ReadOptions>("{\"index\": 0}").is_err());
    }

    #[test]
    fn options_without_a_place_are_refused() {
        let mut options = ReadOptions { keep_order: true, ..ReadOptions::default() };
        assert!(options.check(Format::Text).is_ok());
        assert!(options.check(Format::Uci).is_err());
        options = ReadOptions { transpose: true, ..ReadOptions::default() };
        assert!(options.check(Format::MatrixMarket).is_ok());
        assert!(options.check(Format::Ldac).is_err());
        options = ReadOptions { num_words: Some(3), ..ReadOptions::default() };
        assert!(options.check(Format::Ldac).is_ok());
        assert!(options.check(Format::Uci).is_err());
        for share in [0.0, -0.1, 1.1, f64::NAN] {
            options = ReadOptions::default();
            options.text.max_document_frequency = share;
            assert!(options.check(Format::Text).is_err(), "{share}");
        }
    }
}
