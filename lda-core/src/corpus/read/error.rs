//! Errors of reading a corpus, each with a remedy.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use thiserror::Error;

use super::{Compression, DroppedWords, Format};
use crate::corpus::assembly::Excess;
use crate::corpus::{BuildError, DateError};

/// A position in a file: displayed as `path:line`, or as `path` if no single line is at fault.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Place {
    /// Path of the file, or the caller's name for a stream.
    pub path: PathBuf,
    /// Line, counted from 1 in the decompressed file; 0 if no single line is at fault.
    pub line: u64,
}

impl Place {
    pub(super) fn line(path: &Path, line: u64) -> Self {
        Self { path: path.to_owned(), line }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.path.display())?;
        if self.line > 0 { write!(f, ":{}", self.line) } else { Ok(()) }
    }
}

/// Reason why a number is not a count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CountProblem {
    /// Not a number.
    Syntax,
    /// Below zero.
    Negative,
    /// Not whole.
    Fractional,
    /// Above 2^32 - 1.
    Overflow,
}

impl fmt::Display for CountProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Syntax => "is not a number",
            Self::Negative => "is negative",
            Self::Fractional => "is not whole",
            Self::Overflow => "is above 2^32 - 1",
        })
    }
}

/// Error of reading a corpus. Every message names the position and a remedy.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ReadError {
    /// The file cannot be opened or read.
    #[error("{path}: {source}; check that the path is right and may be read", path = path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The I/O error.
        source: io::Error,
    },
    /// A compressed file is truncated.
    #[error(
        "{path}: the {compression} data are truncated; copy the file again",
        path = path.display()
    )]
    Truncated {
        /// The file.
        path: PathBuf,
        /// Its compression.
        compression: Compression,
    },
    /// A compressed file cannot be decompressed, or its checksum differs.
    #[error(
        "{path}: the {compression} data are damaged ({source}); copy the file again",
        path = path.display()
    )]
    Corrupt {
        /// The file.
        path: PathBuf,
        /// Its compression.
        compression: Compression,
        /// Error of the decoder.
        source: io::Error,
    },
    /// A compression or a format that is not compiled in.
    #[error("{path}: {what} is not part of this build; enable feature `{feature}` of lda-core",
        path = path.display())]
    NotBuilt {
        /// The file.
        path: PathBuf,
        /// The missing part.
        what: &'static str,
        /// Cargo feature that enables it.
        feature: &'static str,
    },
    /// The format could not be detected.
    #[error(
        "{path}: cannot detect the format from name or content, and the file is not text; \
         set `format` to one of {formats}",
        path = path.display(), formats = Format::NAMES
    )]
    UnknownFormat {
        /// The file.
        path: PathBuf,
    },
    /// A line that does not match the format.
    #[error("{at}: expected {expected}, found {found}; correct the line")]
    Syntax {
        /// Position.
        at: Place,
        /// Expected element.
        expected: &'static str,
        /// Actual text, shortened.
        found: String,
    },
    /// An id outside the range that is stated by the file or an option.
    #[error("{at}: {what} {found} is not in {first}..={last}; correct the id, or {stated_by}")]
    OutOfRange {
        /// Position.
        at: Place,
        /// Kind of id.
        what: &'static str,
        /// The id, saturated at 2^64 - 1.
        found: u64,
        /// The smallest id allowed.
        first: u64,
        /// The largest id allowed.
        last: u64,
        /// Source of the range, as part of the remedy.
        stated_by: &'static str,
    },
    /// Index 0 in a file whose indices start at 1.
    #[error(
        "{at}: index 0, but indices start at 1; \
         if this file counts from 0, set `index_base` to 0"
    )]
    IndexZero {
        /// Position.
        at: Place,
    },
    /// An invalid count.
    #[error("{at}: the count {found} {problem}; counts are whole numbers from 0 to 2^32 - 1")]
    Count {
        /// Position.
        at: Place,
        /// Actual text, shortened.
        found: String,
        /// Reason.
        problem: CountProblem,
    },
    /// The counts of one word in one document add up to more than 2^32 - 1.
    #[error(
        "{at}: the counts of word id {word} (from 0) in one document add up to more than 2^32 - 1; \
        remove the repeats"
    )]
    CountOverflow {
        /// End of the document, as far as it is known.
        at: Place,
        /// The word, from 0.
        word: u32,
    },
    /// A header whose numbers differ from the content.
    #[error(
        "{at}: {stated} {what} are stated, but {found} follow; \
        the file is truncated or its header is wrong"
    )]
    Header {
        /// Line where the difference was found.
        at: Place,
        /// The counted items.
        what: &'static str,
        /// Number in the header.
        stated: u64,
        /// Number found so far: `stated` + 1 if there are too many.
        found: u64,
    },
    /// A corpus without tokens.
    #[error("{path}: the corpus has no tokens, so there is nothing to train on{}",
        why_no_tokens(dropped, *skipped), path = path.display())]
    NoTokens {
        /// The file or directory.
        path: PathBuf,
        /// Number of documents, all empty.
        documents: u64,
        /// Text: words that the options dropped.
        dropped: DroppedWords,
        /// A directory: number of files that were skipped.
        skipped: usize,
    },
    /// A directory has no file to read.
    #[error("{path}: no file {}", missing_files(extensions), path = path.display())]
    NoFiles {
        /// The directory.
        path: PathBuf,
        /// The extensions that were asked for; empty if any would do.
        extensions: Vec<String>,
    },
    /// A file whose content is not read, such as an archive.
    #[error("{path}: {kind}, which is not read; unpack or convert it first", path = path.display())]
    UnreadKind {
        /// The file.
        path: PathBuf,
        /// Its kind, with an article.
        kind: &'static str,
    },
    /// The column of the texts is not given, or a column does not exist.
    #[error(
        "{at}: {}the columns are {}; name those of the texts in `columns.text`{}, or set `format` to \
         text to read the file as it is",
        missing_column(missing),
        listed(columns),
        if *header { NO_HEADER } else { "" }
    )]
    Column {
        /// Position of the names.
        at: Place,
        /// The column that does not exist; `None` if none was given for the texts.
        missing: Option<String>,
        /// Names of all columns.
        columns: Vec<String>,
        /// Whether the names are the first line of a table.
        header: bool,
    },
    /// A text file that is data rather than prose.
    #[error(
        "{path}: this is {kind}, and its names and labels would be words of the documents; \
         {remedy}, or set `format` to text to read it as it is",
        path = path.display()
    )]
    Structured {
        /// The file.
        path: PathBuf,
        /// Its kind, with an article where it has one.
        kind: &'static str,
        /// How to get documents from it.
        remedy: &'static str,
    },
    /// A file with the byte order mark of UTF-16 that is not UTF-16.
    #[error(
        "{path}: it begins with the mark of UTF-16, but its text is invalid; convert it to UTF-8",
        path = path.display()
    )]
    Utf16 {
        /// The file.
        path: PathBuf,
    },
    /// An invalid regular expression.
    #[error("`words`: the pattern {pattern:?} is invalid: {reason}")]
    Pattern {
        /// The expression.
        pattern: String,
        /// The problem.
        reason: String,
    },
    /// Bytes that are not text of the encoding that was named.
    #[error(
        "{at}: invalid {encoding}; set `encoding` to that of the file, or convert the file to UTF-8"
    )]
    Encoding {
        /// Position.
        at: Place,
        /// The encoding.
        encoding: &'static str,
    },
    /// A file in UTF-8, where another encoding was named.
    #[error("{path}: it is UTF-8, not {encoding}; leave `encoding` out", path = path.display())]
    NotEncoded {
        /// The file.
        path: PathBuf,
        /// The encoding that was named.
        encoding: &'static str,
    },
    /// Bytes that are not UTF-8.
    #[error(
        "{at}: invalid UTF-8 ({found}); convert the file, for example with \
         `iconv -f WINDOWS-1252 -t UTF-8`, or, for texts, set `encoding` to theirs"
    )]
    Utf8 {
        /// Position.
        at: Place,
        /// First invalid bytes.
        found: String,
    },
    /// A vocabulary or a list of dates with another length than the corpus needs.
    #[error("{path}: {found} {what}, but the corpus has {expected}; give the file of this corpus",
        path = path.display())]
    Length {
        /// The file.
        path: PathBuf,
        /// Content of its lines.
        what: &'static str,
        /// Number of lines in the file.
        found: u64,
        /// Number of lines that the corpus needs.
        expected: u64,
    },
    /// An invalid date.
    #[error("{at}: {source}")]
    Date {
        /// Position.
        at: Place,
        /// Reason.
        source: DateError,
    },
    /// A limit of [`Corpus`](crate::Corpus) is exceeded.
    #[error("{at}: more {what} than a corpus can hold; split the file")]
    TooLarge {
        /// Position.
        at: Place,
        /// The limited quantity.
        what: &'static str,
    },
    /// More documents without tokens than the options allow. Each costs memory, and the likely
    /// cause is a wrong id or header.
    #[error(
        "{at}: more than {limit} documents without tokens; correct the document ids or the \
         header, or raise the option `max_empty_documents`"
    )]
    EmptyDocuments {
        /// Position.
        at: Place,
        /// Value of `max_empty_documents`.
        limit: u64,
    },
    /// More words without a token than the options allow. Each costs memory, and the likely cause is
    /// a wrong number or header.
    #[error(
        "{path}: {words} words, of which {unused} have no token, more than {limit}; the largest word \
         number is in document {document} (the first is 1): correct it or the header, number the \
         words without gaps, or raise the option `max_unused_words`"
    )]
    UnusedWords {
        /// The file.
        path: PathBuf,
        /// Number of words V.
        words: u64,
        /// Number of words without a token.
        unused: u64,
        /// Value of `max_unused_words`.
        limit: u64,
        /// First document with the largest word number that occurs, from 1.
        document: u64,
    },
    /// A line, or a run without spaces, that exceeds the buffer.
    #[error("{at}: more than {limit} bytes without a {delimiter}; is this the right file?")]
    TooLong {
        /// Position.
        at: Place,
        /// Limit in bytes.
        limit: usize,
        /// Delimiter that was expected before the limit.
        delimiter: &'static str,
    },
    /// An option that is invalid or not supported by the format.
    #[error("option `{name}` = {value}: {remedy}")]
    Option {
        /// Name of the option.
        name: &'static str,
        /// Its value.
        value: String,
        /// Remedy.
        remedy: &'static str,
    },
    /// Documents that go into blocks are not in order.
    #[error(
        "{at}: this document comes after one with a larger number, and documents go into blocks in their order: \
         sort the lines by document"
    )]
    OutOfOrder {
        /// Line reached.
        at: Place,
    },
    /// An allocation failed.
    #[error("{at}: out of memory; free some, or split the file")]
    OutOfMemory {
        /// Line reached.
        at: Place,
    },
    /// The corpus cannot be built.
    #[error("{at}: {source}")]
    Build {
        /// Position.
        at: Place,
        /// Reason.
        source: BuildError,
    },
}

/// Reasons and remedies for a corpus without tokens.
fn why_no_tokens(dropped: &DroppedWords, skipped: usize) -> String {
    let words = match dropped.all() {
        0 => String::new(),
        all => format!("; of its {all} words {dropped}"),
    };
    match (dropped.all(), skipped) {
        (0, 0) => "; give another file".to_owned(),
        (_, 0) => words,
        (_, files) => format!("{words}; {files} files are no text (`strict` names the first)"),
    }
}

/// Advice for a table whose first line is a document.
const NO_HEADER: &str =
    " (their numbers, with `columns.header` set to false, if the first line is a document)";

fn missing_column(missing: &Option<String>) -> String {
    missing.as_ref().map_or_else(String::new, |name| format!("no column `{name}`: "))
}

/// The first names of a list.
fn listed(columns: &[String]) -> String {
    const SHOWN: usize = 20;
    let shown: Vec<String> = columns.iter().take(SHOWN).map(|name| format!("`{name}`")).collect();
    let more = if columns.len() > SHOWN { ", and more" } else { "" };
    shown.join(", ") + more
}

/// Files that a directory does not have.
fn missing_files(extensions: &[String]) -> String {
    match extensions {
        [] => "is there; names that start with a dot are left out".to_owned(),
        some => format!("has a name with the extension {}", some.join(" or ")),
    }
}

impl ReadError {
    /// Whether the file is no text: a directory may be read without it.
    #[cfg(feature = "text")]
    pub(super) fn is_of_no_text(&self) -> bool {
        matches!(
            self,
            Self::Utf8 { .. }
                | Self::Utf16 { .. }
                | Self::Encoding { .. }
                | Self::NotEncoded { .. }
                | Self::UnreadKind { .. }
                | Self::UnknownFormat { .. }
                | Self::TooLong { .. }
        )
    }

    pub(super) fn from_excess(excess: Excess, at: Place) -> Self {
        match excess {
            Excess::Documents => Self::TooLarge { at, what: "documents (2^32 - 2)" },
            Excess::Pairs => Self::TooLarge { at, what: "pairs (2^32 - 1)" },
            Excess::Tokens => Self::TooLarge { at, what: "tokens (2^32)" },
            Excess::EmptyDocuments { limit } => Self::EmptyDocuments { at, limit },
            Excess::Count { word } => Self::CountOverflow { at, word },
            Excess::Memory => Self::OutOfMemory { at },
            Excess::OutOfOrder => Self::OutOfOrder { at },
            Excess::Block => Self::Build { at, source: BuildError::Block },
        }
    }
}
