//! How to read, and what was read.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A file format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Format {
    /// UCI bag-of-words, see [`uci`](super::uci).
    Uci,
}

impl Format {
    pub(super) const NAMES: &'static str = "uci";

    /// The name, as options and reports write it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Uci => "uci",
        }
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
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
/// options.format = Some(Format::Uci);
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct ReadOptions {
    /// The format; `None` (default): told from content and name.
    pub format: Option<Format>,
    /// Most documents without a token before a file is refused; default 2^24. Formats that
    /// number their documents can claim any number of them in a few bytes, at 4 bytes each.
    pub max_empty_documents: u64,
}

impl Default for ReadOptions {
    fn default() -> Self {
        Self { format: None, max_empty_documents: 1 << 24 }
    }
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
    /// Times that a smaller document id followed a larger one; sorted.
    pub out_of_order_documents: u64,
}
