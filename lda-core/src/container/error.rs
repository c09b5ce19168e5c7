//! Errors of reading and writing files.

use std::error::Error;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use super::kind::Kind;

/// Error of reading or writing a file: a [problem](FileProblem) and the path.
#[derive(Debug)]
pub struct FileError {
    path: Option<PathBuf>,
    pub(super) problem: FileProblem,
}

/// Reason why a file cannot be read or written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FileProblem {
    /// I/O error.
    #[error("{0}; check that the file exists, its permissions, and the free space")]
    Io(io::Error),
    /// The file begins with the bytes of another format.
    #[error("it is not a file of this library: it begins with {found:?}")]
    Foreign {
        /// Its first bytes, escaped as ASCII.
        found: String,
    },
    /// A file of another kind, as a snapshot where a model is expected.
    #[error("it is a {found} file: give a {expected} file")]
    Kind {
        /// Kind in the file's header.
        found: String,
        /// Expected kind.
        expected: &'static str,
    },
    /// Written by a newer version of the library.
    #[error(
        "it has format version {version}, and this program reads up to {known}: use a newer program"
    )]
    Newer {
        /// Version of the file.
        version: u32,
        /// Newest version that can be read.
        known: u32,
    },
    /// The file was truncated, or bytes were appended.
    #[error("it has {found} bytes of {expected}: copy it again, or use an earlier file")]
    Length {
        /// Length in the header, in bytes.
        expected: u64,
        /// Actual length, in bytes.
        found: u64,
    },
    /// A checksum differs.
    #[error("{part} is damaged, its checksum differs: copy the file again, or use an earlier one")]
    Damaged {
        /// `header`, `table`, or the name of a section.
        part: String,
    },
    /// All checksums match, but the content is inconsistent.
    #[error("{part} is invalid: {reason}; the file was written by an incompatible program")]
    Malformed {
        /// `header`, `table`, or the name of a section.
        part: String,
        /// The inconsistency.
        reason: String,
    },
    /// The directory for a new run's snapshots already has snapshots.
    #[error("it has snapshots of another run: resume that run, or give another directory")]
    Occupied,
    /// A required section is missing.
    #[error("section {name:?} is missing; the file was written by an incompatible program")]
    Missing {
        /// Name of the section.
        name: String,
    },
}

impl FileError {
    /// The reason.
    pub fn problem(&self) -> &FileProblem {
        &self.problem
    }

    /// Path of the file, unless it was read from a stream.
    pub fn path(&self) -> Option<&Path> {
        self.path.as_deref()
    }

    /// Adds the path.
    pub(crate) fn at(self, path: &Path) -> Self {
        Self { path: Some(path.to_owned()), ..self }
    }

    pub(crate) fn malformed(part: impl Into<String>, reason: impl Into<String>) -> Self {
        FileProblem::Malformed { part: part.into(), reason: reason.into() }.into()
    }

    pub(super) fn damaged(part: impl Into<String>) -> Self {
        FileProblem::Damaged { part: part.into() }.into()
    }

    pub(super) fn kind(found: &[u8; 8], expected: Kind) -> Self {
        FileProblem::Kind { found: text(found), expected: expected.name() }.into()
    }

    pub(crate) fn foreign(head: &[u8]) -> Self {
        FileProblem::Foreign { found: text(&head[..head.len().min(8)]) }.into()
    }
}

/// Bytes as text: bytes that are not printable ASCII are escaped, zeros at the end are dropped.
fn text(bytes: &[u8]) -> String {
    let end = bytes.iter().rposition(|&byte| byte != 0).map_or(0, |last| last + 1);
    bytes[..end].escape_ascii().to_string()
}

impl fmt::Display for FileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(path) = &self.path {
            write!(f, "{}: ", path.display())?;
        }
        self.problem.fmt(f)
    }
}

impl Error for FileError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match &self.problem {
            // The message has the text of the I/O error itself, so the chain goes on with its cause.
            FileProblem::Io(error) => error.source(),
            _ => None,
        }
    }
}

impl From<FileProblem> for FileError {
    fn from(problem: FileProblem) -> Self {
        Self { path: None, problem }
    }
}

impl From<io::Error> for FileError {
    fn from(error: io::Error) -> Self {
        FileProblem::Io(error).into()
    }
}
