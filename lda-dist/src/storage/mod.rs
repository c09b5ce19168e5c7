//! Where a run keeps what outlasts its nodes: objects with names, each there as a whole or not at all.
//!
//! Documents ([`documents`](crate::documents)) and snapshots ([`snapshot`](crate::snapshot)) are kept so.
//!
//! The trait is small, so that whatever a site has can be one: a directory that all nodes see ([`Directory`]), or, with
//! the feature `object-store`, a prefix of S3, Google Cloud Storage or Azure (`ObjectStore`).

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

/// Longest name.
const LONGEST: usize = 128;

/// Objects by name.
///
/// Names are ASCII letters, digits, `-`, `_` and `.`, the first one a letter or digit, 128 at most.
pub trait Storage: fmt::Debug + Send + Sync {
    /// All of an object.
    ///
    /// # Errors
    /// [`StorageError`].
    fn read(&self, name: &str) -> Result<Vec<u8>, StorageError>;

    /// Puts an object in the place of whatever had this name. Whoever reads it meanwhile, and whatever happens, finds
    /// the old one or the new one.
    ///
    /// # Errors
    /// [`StorageError`].
    fn write(&self, name: &str, content: &[u8]) -> Result<(), StorageError>;

    /// Whether there is an object of that name.
    ///
    /// # Errors
    /// [`StorageError`].
    fn has(&self, name: &str) -> Result<bool, StorageError>;

    /// Takes an object away, if there is one.
    ///
    /// # Errors
    /// [`StorageError`].
    fn remove(&self, name: &str) -> Result<(), StorageError>;

    /// Machines on which an object lies, by the names that they have where [workers are put near
    /// them](crate::locality); none where that is not known, as of directories and object stores.
    ///
    /// # Errors
    /// [`StorageError`].
    fn hosts(&self, name: &str) -> Result<Vec<String>, StorageError> {
        let _ = name;
        Ok(Vec::new())
    }
}

/// An object that cannot be read or written.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum StorageError {
    /// A name that none may have.
    #[error("{name:?} is no name of an object: take letters, digits, -, _ and .")]
    Name {
        /// The name.
        name: String,
    },
    /// The storage has refused.
    #[error("{place}: {error}; check that it exists, may be used, and that there is room")]
    Io {
        /// Where it would be.
        place: String,
        /// Why.
        #[source]
        error: io::Error,
    },
    /// A file that cannot be written.
    #[error(transparent)]
    File(#[from] FileError),
    /// An address of no storage.
    #[error("{url}: {why}")]
    Url {
        /// The address, without what may be secret in it.
        url: String,
        /// What is wrong with it, and what to give.
        why: String,
    },
    /// An object store has refused, or has not been reached.
    #[error("{place}: {error}; {remedy}")]
    Store {
        /// Where the object would be.
        place: String,
        /// Why; its kind says whether there is none, or it may not be used.
        #[source]
        error: io::Error,
        /// What to look at.
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

/// A name that an object may have.
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
