//! What may be wrong with a file, and what to do about it.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use thiserror::Error;

use super::{Compression, Format};
use crate::corpus::assembly::Excess;
use crate::corpus::{BuildError, DateError};

/// A place in a file: displayed as `path:line`, or `path` where no single line is to blame.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Place {
    /// The file, or the name that the caller gave a stream.
    pub path: PathBuf,
    /// Line from 1; 0 where no single line is to blame. Lines of a compressed file are counted
    /// in what it unpacks to.
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

/// Why a number is no count.
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

/// A file that is not read. Every message names the place and a remedy.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ReadError {
    /// The file cannot be opened or read.
    #[error("{path}: {source}; check that the path is right and may be read", path = path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A compressed file ends too early.
    #[error(
        "{path}: the {compression} data end too early; the file was cut off, copy it again",
        path = path.display()
    )]
    Truncated {
        /// The file.
        path: PathBuf,
        /// How it is compressed.
        compression: Compression,
    },
    /// A compressed file does not unpack, or a checksum differs.
    #[error(
        "{path}: the {compression} data are damaged ({source}); copy the file again",
        path = path.display()
    )]
    Corrupt {
        /// The file.
        path: PathBuf,
        /// How it is compressed.
        compression: Compression,
        /// What the decoder said.
        source: io::Error,
    },
    /// A compression, or format, that this build leaves out.
    #[error("{path}: {what} is not part of this build; enable feature `{feature}` of lda-core",
        path = path.display())]
    NotBuilt {
        /// The file.
        path: PathBuf,
        /// What is missing.
        what: &'static str,
        /// The cargo feature that adds it.
        feature: &'static str,
    },
    /// The format could not be told.
    #[error(
        "{path}: neither name nor content tell the format, and it is no text; \
         name one of {formats} as `format`",
        path = path.display(), formats = Format::NAMES
    )]
    UnknownFormat {
        /// The file.
        path: PathBuf,
    },
    /// Something else than the format wants.
    #[error("{at}: expected {expected}, found {found}; correct the line")]
    Syntax {
        /// Where.
        at: Place,
        /// What the format wants here.
        expected: &'static str,
        /// What is there, shortened.
        found: String,
    },
    /// An id beyond the range that the file, or an option, states.
    #[error("{at}: {what} {found} is not in {first}..={last}; correct the id, or {stated_by}")]
    OutOfRange {
        /// Where.
        at: Place,
        /// Which id.
        what: &'static str,
        /// The id; 2^64 - 1 stands for anything above.
        found: u64,
        /// The smallest id allowed.
        first: u64,
        /// The largest id allowed.
        last: u64,
        /// What states the range.
        stated_by: &'static str,
    },
    /// Index 0 in a file whose indices should start at 1.
    #[error(
        "{at}: index 0, but indices start at 1; \
         if this file counts from 0, set the option `index_base` to 0"
    )]
    IndexZero {
        /// Where.
        at: Place,
    },
    /// A count that is none.
    #[error("{at}: the count {found} {problem}; counts are whole numbers from 0 to 2^32 - 1")]
    Count {
        /// Where.
        at: Place,
        /// What is there, shortened.
        found: String,
        /// What is wrong with it.
        problem: CountProblem,
    },
    /// The counts of one word in one document sum to more than 32 bits hold.
    #[error(
        "{at}: the counts of word id {word} (from 0) in one document sum above 2^32 - 1; \
        remove the repeats"
    )]
    CountOverflow {
        /// Where the document ends, as far as it is known.
        at: Place,
        /// The word, from 0.
        word: u32,
    },
    /// A header that states something else than follows.
    #[error(
        "{at}: {stated} {what} are stated, but {found} follow; \
        the file was cut off or its header is wrong"
    )]
    Header {
        /// Where the disagreement shows.
        at: Place,
        /// What is counted.
        what: &'static str,
        /// As the header has it.
        stated: u64,
        /// As counted; at the first too many, it is one above `stated`.
        found: u64,
    },
    /// A corpus without tokens.
    #[error("{path}: there is no token in it; there is nothing to train on, give another file",
        path = path.display())]
    NoTokens {
        /// The file.
        path: PathBuf,
    },
    /// Bytes that are no UTF-8.
    #[error("{at}: invalid UTF-8 ({found}); convert the file to UTF-8")]
    Utf8 {
        /// Where.
        at: Place,
        /// The first bytes that are wrong.
        found: String,
    },
    /// A vocabulary or a list of dates that does not fit the corpus.
    #[error("{path}: {found} {what}, but the corpus has {expected}; give the file of this corpus",
        path = path.display())]
    Length {
        /// The file.
        path: PathBuf,
        /// What its lines are.
        what: &'static str,
        /// Lines in the file.
        found: u64,
        /// Lines the corpus needs.
        expected: u64,
    },
    /// A line that is no date.
    #[error("{at}: {source}")]
    Date {
        /// Where.
        at: Place,
        /// What is wrong with it.
        source: DateError,
    },
    /// More than a corpus holds.
    #[error("{at}: more {what} than a corpus holds; split the file")]
    TooLarge {
        /// Where.
        at: Place,
        /// What there is too much of.
        what: &'static str,
    },
    /// More documents without tokens than the options allow: most likely a wrong id or header,
    /// and each would cost memory.
    #[error(
        "{at}: more than {limit} documents without tokens; correct the document ids or the \
         header, or raise the option `max_empty_documents`"
    )]
    EmptyDocuments {
        /// Where.
        at: Place,
        /// The option's value.
        limit: u64,
    },
    /// A line, or a run without any space, longer than is held in memory.
    #[error("{at}: more than {limit} bytes without a {delimiter}; is this the right file?")]
    TooLong {
        /// Where.
        at: Place,
        /// Bytes allowed.
        limit: usize,
        /// What was expected before that.
        delimiter: &'static str,
    },
    /// An option that does not go with the file, or has no meaning.
    #[error("option `{name}` = {value}: {remedy}")]
    Option {
        /// The option's name.
        name: &'static str,
        /// Its value.
        value: String,
        /// What to give instead.
        remedy: &'static str,
    },
    /// The allocator refused.
    #[error("{at}: out of memory; free some, or split the file")]
    OutOfMemory {
        /// How far reading came.
        at: Place,
    },
    /// A corpus that cannot be put together.
    #[error("{at}: {source}")]
    Build {
        /// Where.
        at: Place,
        /// What is wrong.
        source: BuildError,
    },
}

impl ReadError {
    pub(super) fn from_excess(excess: Excess, at: Place) -> Self {
        match excess {
            Excess::Documents => Self::TooLarge { at, what: "documents (2^32 - 2)" },
            Excess::Pairs => Self::TooLarge { at, what: "pairs (2^32 - 1)" },
            Excess::Tokens => Self::TooLarge { at, what: "tokens (2^32)" },
            Excess::EmptyDocuments { limit } => Self::EmptyDocuments { at, limit },
            Excess::Count { word } => Self::CountOverflow { at, word },
            Excess::Memory => Self::OutOfMemory { at },
        }
    }
}
