//! Why a file cannot be used.

use std::error::Error;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use super::table::Kind;

/// A file that cannot be read or written, and why.
#[derive(Debug)]
pub struct FileError {
    path: Option<PathBuf>,
    pub(super) problem: FileProblem,
}

/// What is wrong with a file.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FileProblem {
    /// The system refused.
    #[error("{0}; check that it exists, may be used, and that there is room")]
    Io(io::Error),
    /// The first bytes are another format's.
    #[error("it is no file of this library: it begins with {found:?}")]
    Foreign {
        /// Its first bytes, as text where they are.
        found: String,
    },
    /// A model where a snapshot is expected, or the reverse.
    #[error("it is a {found} file: give a {expected} file")]
    Kind {
        /// What the file says it is.
        found: String,
        /// What was asked for.
        expected: &'static str,
    },
    /// Written by a later version.
    #[error(
        "it has format version {version} and this program reads up to {known}: use a newer one"
    )]
    Newer {
        /// The file's.
        version: u32,
        /// The last that is known.
        known: u32,
    },
    /// Cut off, or something was appended.
    #[error("it has {found} bytes of {expected}: copy it anew, or go back to an earlier one")]
    Length {
        /// Bytes that the file says it has.
        expected: u64,
        /// Bytes that it has.
        found: u64,
    },
    /// A checksum differs.
    #[error("{part} is damaged, its checksum differs: copy it anew, or go back to an earlier one")]
    Damaged {
        /// Which part: `header`, `table`, or the name of a section.
        part: String,
    },
    /// The parts are whole, and contradict each other.
    #[error("{part} makes no sense: {reason}; whoever wrote it has to be asked")]
    Malformed {
        /// Which part: `header`, `table`, or the name of a section.
        part: String,
        /// What is wrong with it.
        reason: String,
    },
    /// A directory for a new run's snapshots holds some.
    #[error("it holds snapshots of a run: take that one up, or name another directory")]
    Occupied,
    /// A section is not there.
    #[error("section {name:?} is missing; whoever wrote it has to be asked")]
    Missing {
        /// Its name.
        name: String,
    },
}

impl FileError {
    /// What is wrong.
    pub fn problem(&self) -> &FileProblem {
        &self.problem
    }

    /// Which file, where it has a name.
    pub fn path(&self) -> Option<&Path> {
        self.path.as_deref()
    }

    /// The same, of the file at `path`.
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

    pub(super) fn foreign(head: &[u8]) -> Self {
        FileProblem::Foreign { found: text(&head[..head.len().min(8)]) }.into()
    }
}

/// Bytes as text: what is not ASCII is escaped, and zeros at the end are left out.
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
            FileProblem::Io(error) => Some(error),
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
