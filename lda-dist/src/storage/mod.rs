//! Storage for data that outlives the nodes of a run: named objects that are replaced atomically.
//!
//! It holds documents ([`documents`](crate::documents)) and snapshots
//! ([`snapshot`](crate::snapshot)).
//!
//! The trait is small, so that it is easy to implement for other systems. Implementations are a
//! directory that all nodes can access ([`Directory`]), and, with the feature `object-store`, a
//! prefix of S3, Google Cloud Storage or Azure (`ObjectStore`).

mod directory;
mod memory;
#[cfg(feature = "object-store")]
mod remote;
#[cfg(test)]
mod tests;

use std::fmt;
use std::io;
use std::sync::Arc;

use lda_core::container::FileError;
use thiserror::Error;

pub use directory::Directory;
pub use memory::Memory;
#[cfg(feature = "object-store")]
pub use remote::{Access, ObjectStore};

/// Longest name of an object, in bytes.
const LONGEST: usize = 128;

/// Store of named objects.
///
/// Names have 1 to 128 ASCII letters, digits, `-`, `_` and `.`, and begin with a letter or digit.
pub trait Storage: fmt::Debug + Send + Sync {
    /// Reads a whole object.
    ///
    /// # Errors
    /// [`StorageError`] if there is no such object, or it cannot be read.
    fn read(&self, name: &str) -> Result<Vec<u8>, StorageError>;

    /// Writes an object, and replaces an existing one. Atomic: concurrent readers, and readers
    /// after a crash, find either the old or the new content.
    ///
    /// # Errors
    /// [`StorageError`] if the object cannot be written.
    fn write(&self, name: &str, content: &[u8]) -> Result<(), StorageError>;

    /// Whether there is an object of this name.
    ///
    /// # Errors
    /// [`StorageError`] if that cannot be determined.
    fn has(&self, name: &str) -> Result<bool, StorageError>;

    /// Removes an object, if it exists.
    ///
    /// # Errors
    /// [`StorageError`] if it exists and cannot be removed.
    fn remove(&self, name: &str) -> Result<(), StorageError>;

    /// Names of the machines that store an object locally, for the
    /// [assignment of shards](crate::locality). Empty if they are not known, as for directories and
    /// object stores; this is the default.
    ///
    /// # Errors
    /// [`StorageError`] if the lookup fails.
    fn hosts(&self, name: &str) -> Result<Vec<String>, StorageError> {
        let _ = name;
        Ok(Vec::new())
    }
}

/// Error of reading or writing an object.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum StorageError {
    /// The name of an object is invalid.
    #[error("{name:?} is not a valid name of an object: use letters, digits, -, _ and .")]
    Name {
        /// The name.
        name: String,
    },
    /// An operation on the storage failed.
    #[error(
        "{place}: {error}; check that it exists, that you have access, and that there is space"
    )]
    Io {
        /// Path or name of the object.
        place: String,
        /// The cause.
        #[source]
        error: io::Error,
    },
    /// A file cannot be written.
    #[error(transparent)]
    File(#[from] FileError),
    /// The URL is not that of a storage.
    #[error("{url}: {why}")]
    Url {
        /// The URL, without secrets.
        url: String,
        /// The problem, and what to use instead.
        why: String,
    },
    /// An object store refused the operation, or could not be reached.
    #[error("{place}: {error}; {remedy}")]
    Store {
        /// URL of the object.
        place: String,
        /// The cause; its kind distinguishes a missing object from a refused one.
        #[source]
        error: io::Error,
        /// Advice for the user.
        remedy: &'static str,
    },
}

impl<S: Storage + ?Sized> Storage for Arc<S> {
    fn read(&self, name: &str) -> Result<Vec<u8>, StorageError> {
        (**self).read(name)
    }

    fn write(&self, name: &str, content: &[u8]) -> Result<(), StorageError> {
        (**self).write(name, content)
    }

    fn has(&self, name: &str) -> Result<bool, StorageError> {
        (**self).has(name)
    }

    fn remove(&self, name: &str) -> Result<(), StorageError> {
        (**self).remove(name)
    }

    fn hosts(&self, name: &str) -> Result<Vec<String>, StorageError> {
        (**self).hosts(name)
    }
}

/// Checks that a name is valid.
fn checked(name: &str) -> Result<&str, StorageError> {
    let mut bytes = name.bytes();
    let first = bytes.next().is_some_and(|byte| byte.is_ascii_alphanumeric());
    let rest = bytes.all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte));
    if first && rest && name.len() <= LONGEST {
        Ok(name)
    } else {
        Err(StorageError::Name { name: name.to_owned() })
    }
}
