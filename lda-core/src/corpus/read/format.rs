//! The table of corpus formats.
//!
//! A new format takes these edits: here a variant of [`Format`] with a row in [`FORMATS`], and its
//! name in the two lists for error messages; its module in `read/mod.rs`, with a parser and a
//! [`CorpusFormat`]; its name in the list of the program `lda` (`examples/src/reading.rs`); its
//! tests and a fuzz target (a file, and an entry in `fuzz/Cargo.toml`); a line in
//! `docs/formats.md`.

use std::fmt;
use std::io::Read;
use std::path::Path;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::detect::Sample;
use super::error::ReadError;
use super::scan::Scanner;
use super::{
    Input, Parsed, ReadOptions, ReadReport, ldac, matrix_market, structured, svmlight, uci,
};
use crate::corpus::Corpus;
use crate::corpus::blocks::BlockSink;

/// A file format.
///
/// In all of them lines end with `\n`, `\r\n` or `\r`; text is UTF-8, UTF-16 with a byte order
/// mark, or of [another encoding](ReadOptions::encoding); counts are whole numbers, also written as reals (`3`, `3.0`, `3e0`); and the file may be
/// compressed with gzip or zstd.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Format {
    /// UCI bag-of-words: `docword.NAME.txt`.
    ///
    /// Three lines with the number of documents D, of words W and of pairs NNZ; then NNZ lines
    /// `document word count`, ids from 1. A second file names the words, one per line.
    ///
    /// Accepted: documents and words in any order, repeated pairs (their counts are summed), ids
    /// that never occur, counts of 0, any spaces and empty lines. Rejected: ids out of range, a
    /// number of pairs other than NNZ.
    Uci,
    /// SVMlight and libsvm: one line `label index:count index:count ... # comment` per document.
    ///
    /// The label and a `qid:` are ignored; the label may be missing. The option
    /// [`index_base`](ReadOptions::index_base) is the first index: 1 by default, as in both
    /// programs. The file does not state the number of words: it is one above the largest index, or
    /// the option [`num_words`](ReadOptions::num_words).
    ///
    /// Accepted: indices in any order, repeated indices (counts are summed), counts of 0, lines
    /// with only a label (empty documents). Empty lines and lines with only a comment are not
    /// documents.
    Svmlight,
    /// LDA-C: one line `N index:count index:count ...` per document, where N is the number of
    /// pairs; indices from 0.
    ///
    /// The file does not state the number of words: it is one above the largest index, or the
    /// option [`num_words`](ReadOptions::num_words).
    ///
    /// Accepted: indices in any order, repeated indices (counts are summed), counts of 0, `0` for
    /// an empty document. Empty lines are not documents. Rejected: a number of pairs other than N.
    Ldac,
    /// MatrixMarket: `matrix coordinate` files with counts.
    ///
    /// A first line `%%MatrixMarket matrix coordinate FIELD general`, comment lines that start with
    /// `%`, a line `rows columns entries`, then one line `row column value` per entry, numbered
    /// from 1. FIELD is `integer`, `unsigned-integer`, `real` (values must be integers: `3`, `3.0`,
    /// `3e0`) or `pattern` (no values: each entry counts 1). Rows are documents and columns are
    /// words, or the reverse with the option [`transpose`](ReadOptions::transpose).
    ///
    /// Accepted: entries in any order, repeated entries (counts are summed), values of 0. Rejected:
    /// arrays, complex values, symmetries; indices out of range; a number of entries other than
    /// stated.
    MatrixMarket,
    /// A table of texts: CSV, with commas or semicolons, or TSV. The feature `tables` reads it.
    ///
    /// [`Columns`](super::Columns) name the columns with the text, the name and the date of a document.
    /// The separator is the comma, semicolon or tab that the first line has most of. Fields may be
    /// quoted as in RFC 4180, except between tabs, where quotation marks are part of the text. Texts
    /// become words as those of [plain text](Self::Text). Rejected: lines with more or fewer fields
    /// than the first; records of more than 16 MiB.
    Csv,
    /// JSON lines: one object per line, whose fields are the columns. The feature `tables` reads them.
    ///
    /// A text is a string, a number, or an array of strings; a field that is missing or null is an
    /// empty text. Blank lines are not documents. Rejected: lines of more than 16 MiB, and files in
    /// which no line has the fields of the text.
    JsonLines,
    /// Plain text: a file with one document per line, or a directory with one document per file.
    ///
    /// [`TextOptions`](super::TextOptions) define words and which of them are dropped. Ids are
    /// assigned in order of first occurrence among the words that are kept. An empty line is an
    /// empty document, so that document numbers match line numbers. In a directory, files are read
    /// in order of their names, then its directories in the same way; links to directories and
    /// names that start with a dot are left out. Files that are no text and links to nothing are
    /// [skipped](ReadReport::skipped_files), if [`strict`](super::TextOptions::strict) is not set.
    ///
    /// Memory: pairs and vocabulary. Words that are dropped by document frequency take memory until
    /// the end, because the frequencies are not known before.
    Text,
}

/// Description of a format: how it is recognised and read.
pub(super) struct CorpusFormat {
    pub format: Format,
    /// Name in options and reports; the same as serde writes for the variant.
    pub name: &'static str,
    /// File extensions that belong to this format alone: lower-case, without the dot.
    pub extensions: &'static [&'static str],
    /// Beginnings of file names that belong to this format alone: lower-case.
    pub prefixes: &'static [&'static str],
    /// Whether the beginning of a file looks like this format, and like none of an earlier row.
    pub sniff: fn(&Sample<'_>) -> bool,
    /// Options that the format supports.
    pub options: SupportedOptions,
    /// Parses one file.
    pub parse: fn(&mut Scanner<'_>, &ReadOptions) -> Result<Parsed, ReadError>,
    /// Reads a directory, if the format has a meaning for one.
    pub read_directory: Option<ReadDirectory>,
}

/// Reader of a directory.
pub(super) type ReadDirectory =
    fn(&Path, &ReadOptions, Option<&BlockSink>) -> Result<(Corpus, ReadReport), ReadError>;

/// Options of [`ReadOptions`] that only some formats support.
#[derive(Clone, Copy, Default)]
pub(super) struct SupportedOptions {
    pub columns: bool,
    pub keep_order: bool,
    pub num_words: bool,
    pub transpose: bool,
}

impl SupportedOptions {
    /// Options of tables of texts.
    pub const OF_TABLES: Self =
        Self { columns: true, keep_order: true, num_words: false, transpose: false };
    /// Options of plain text.
    pub const OF_TEXT: Self =
        Self { columns: false, keep_order: true, num_words: false, transpose: false };
}

/// All formats, in the order in which their `sniff` functions are tried.
///
/// INVARIANT: LDA-C and SVMlight come before UCI, because an LDA-C file may begin like a UCI
/// header, with three empty documents of one line `0` each. Tables come after all formats of numbers,
/// which tabs may separate. Text is last: it accepts any UTF-8.
pub(super) static FORMATS: [&CorpusFormat; 7] = [
    &matrix_market::FORMAT,
    &ldac::FORMAT,
    &svmlight::FORMAT,
    &uci::FORMAT,
    &JSON_LINES,
    &CSV,
    &TEXT,
];

static CSV: CorpusFormat = CorpusFormat {
    format: Format::Csv,
    name: "csv",
    extensions: &["csv", "tsv", "tab"],
    prefixes: &[],
    sniff: structured::is_table,
    options: SupportedOptions::OF_TABLES,
    #[cfg(feature = "tables")]
    parse: super::csv::parse,
    #[cfg(not(feature = "tables"))]
    parse: |input, _| Err(not_built(input.path(), "a table of texts", "tables")),
    read_directory: None,
};

static JSON_LINES: CorpusFormat = CorpusFormat {
    format: Format::JsonLines,
    name: "json-lines",
    extensions: &["jsonl", "ndjson"],
    prefixes: &[],
    sniff: structured::is_json_lines,
    options: SupportedOptions::OF_TABLES,
    #[cfg(feature = "tables")]
    parse: super::json_lines::parse,
    #[cfg(not(feature = "tables"))]
    parse: |input, _| Err(not_built(input.path(), "JSON lines", "tables")),
    read_directory: None,
};

#[cfg(feature = "text")]
use super::text::FORMAT as TEXT;

/// Plain text is recognised by every build, so that the error can name the missing feature.
#[cfg(not(feature = "text"))]
static TEXT: CorpusFormat = CorpusFormat {
    format: Format::Text,
    name: "text",
    extensions: &[],
    prefixes: &[],
    sniff: |sample| sample.is_text(),
    options: SupportedOptions::OF_TEXT,
    parse: |input, _| Err(not_built(input.path(), "plain text", "text")),
    read_directory: Some(|path, _, _| Err(not_built(path, "plain text", "text"))),
};

#[cfg(not(all(feature = "text", feature = "tables")))]
fn not_built(path: &Path, what: &'static str, feature: &'static str) -> ReadError {
    ReadError::NotBuilt { path: path.to_owned(), what, feature }
}

impl Format {
    /// Names of all formats, for error messages.
    pub(super) const NAMES: &'static str =
        "uci, svmlight, ldac, matrix-market, csv, json-lines, text";

    /// The row of the table.
    pub(super) fn description(self) -> &'static CorpusFormat {
        let mut rows = FORMATS.into_iter();
        rows.find(|row| row.format == self).expect("every format has a row")
    }

    /// Whether the documents are texts, which are cut into words by the
    /// [tokenizer](super::TokenizerOptions).
    pub fn has_texts(self) -> bool {
        matches!(self, Self::Text | Self::Csv | Self::JsonLines)
    }

    /// The name, as in options and reports.
    pub fn name(self) -> &'static str {
        self.description().name
    }

    /// Reads a file in this format, or a directory if the format is [`Text`](Self::Text).
    /// [`ReadOptions::format`] is ignored.
    ///
    /// # Errors
    /// [`ReadError`], as in [`Corpus::read_with_report`].
    pub fn read(
        self,
        path: impl AsRef<Path>,
        options: &ReadOptions,
    ) -> Result<(Corpus, ReadReport), ReadError> {
        let path = path.as_ref();
        match self.description().read_directory {
            Some(read_directory) if path.is_dir() => read_directory(path, options, None),
            _ => super::parse(
                &mut Scanner::new(Input::file(path)?.encoded(options)?)?,
                self,
                options,
            ),
        }
    }

    /// Reads a stream in this format, which may be compressed. Errors refer to it as `name`.
    /// [`ReadOptions::format`] is ignored.
    ///
    /// # Errors
    /// [`ReadError`], as in [`Corpus::read_with_report`].
    ///
    /// ```
    /// use lda_core::corpus::{Format, ReadOptions};
    ///
    /// let file = "2\n4\n3\n1 4 1\n1 2 5\n2 2 1\n";
    /// let options = ReadOptions::default();
    /// let (corpus, report) = Format::Uci.read_from(file.as_bytes(), "docword", &options)?;
    /// assert_eq!(corpus.document(0).words, [1, 3]);
    /// assert_eq!((report.unsorted_pairs, report.unused_words), (1, 2));
    /// # Ok::<(), lda_core::corpus::ReadError>(())
    /// ```
    pub fn read_from(
        self,
        reader: impl Read,
        name: impl AsRef<Path>,
        options: &ReadOptions,
    ) -> Result<(Corpus, ReadReport), ReadError> {
        super::parse(
            &mut Scanner::new(Input::stream(reader, name.as_ref()).encoded(options)?)?,
            self,
            options,
        )
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
        let row = FORMATS.into_iter().find(|row| row.name == name);
        row.map(|row| row.format).ok_or_else(|| ReadError::Option {
            name: "format",
            value: name.to_owned(),
            remedy: "give one of uci, svmlight, ldac, matrix-market, csv, json-lines, text",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_parse_back() {
        for row in FORMATS {
            let format = row.format;
            assert_eq!(format.name().parse::<Format>().unwrap(), format);
            let quoted = format!("\"{format}\"");
            assert_eq!(serde_json::to_string(&format).unwrap(), quoted);
            assert!(Format::NAMES.contains(format.name()));
        }
        let error = "word2vec".parse::<Format>().unwrap_err().to_string();
        assert!(error.contains("`format` = word2vec: give one of uci"), "{error}");
    }
}
