//! Where a run keeps what outlasts its nodes: objects with names, each there as a whole or not at all.
//!
//! Documents ([`documents`](crate::documents)) and snapshots ([`snapshot`](crate::snapshot)) are kept so.
//!
//! The trait is small, so that whatever a site has can be one: a directory that all nodes see ([`Directory`]), or an
//! object store, by whose library it is a few lines.

use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use lda_core::file::{FileError, replace};
use thiserror::Error;

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
}

/// Objects in memory, which are gone with it: for tests, and for what need not last.
#[derive(Debug, Default)]
pub struct Memory(Mutex<BTreeMap<String, Vec<u8>>>);

impl Memory {
    fn objects(&self) -> MutexGuard<'_, BTreeMap<String, Vec<u8>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Storage for Memory {
    fn read(&self, name: &str) -> Result<Vec<u8>, StorageError> {
        let error = || io::Error::from(io::ErrorKind::NotFound);
        let object = self.objects().get(name).cloned();
        object.ok_or_else(|| StorageError::Io { place: name.to_owned(), error: error() })
    }

    fn write(&self, name: &str, content: &[u8]) -> Result<(), StorageError> {
        self.objects().insert(name.to_owned(), content.to_vec());
        Ok(())
    }

    fn has(&self, name: &str) -> Result<bool, StorageError> {
        Ok(self.objects().contains_key(name))
    }

    fn remove(&self, name: &str) -> Result<(), StorageError> {
        self.objects().remove(name);
        Ok(())
    }
}

/// Files of a directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Directory {
    path: PathBuf,
}

impl Directory {
    /// That at `path`.
    pub fn at(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into() }
    }

    /// That at `path`, which is made if it is not there, with those that it is in.
    ///
    /// # Errors
    /// [`StorageError::Io`].
    pub fn create(path: impl Into<PathBuf>) -> Result<Self, StorageError> {
        let path = path.into();
        match fs::create_dir_all(&path) {
            Ok(()) => Ok(Self { path }),
            Err(error) => Err(StorageError::Io { place: path.display().to_string(), error }),
        }
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    fn file(&self, name: &str) -> Result<PathBuf, StorageError> {
        let mut bytes = name.bytes();
        let first = bytes.next().is_some_and(|byte| byte.is_ascii_alphanumeric());
        let rest = bytes.all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte));
        if first && rest && name.len() <= LONGEST {
            Ok(self.path.join(name))
        } else {
            Err(StorageError::Name { name: name.to_owned() })
        }
    }
}

impl Storage for Directory {
    fn read(&self, name: &str) -> Result<Vec<u8>, StorageError> {
        let file = self.file(name)?;
        fs::read(&file)
            .map_err(|error| StorageError::Io { place: file.display().to_string(), error })
    }

    fn write(&self, name: &str, content: &[u8]) -> Result<(), StorageError> {
        Ok(replace(&self.file(name)?, |file| Ok(file.write_all(content)?))?)
    }

    fn has(&self, name: &str) -> Result<bool, StorageError> {
        let file = self.file(name)?;
        file.try_exists()
            .map_err(|error| StorageError::Io { place: file.display().to_string(), error })
    }

    fn remove(&self, name: &str) -> Result<(), StorageError> {
        let file = self.file(name)?;
        match fs::remove_file(&file) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(StorageError::Io { place: file.display().to_string(), error })
            }
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_object_is_replaced_as_a_whole_and_stays_in_its_directory() {
        let path = std::env::temp_dir().join(format!("lda-storage-{}", std::process::id()));
        let directory = Directory::create(path.join("deeper")).unwrap();
        directory.write("a-1.x", b"old").unwrap();
        directory.write("a-1.x", b"new").unwrap();
        assert_eq!(directory.read("a-1.x").unwrap(), b"new");
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);
        for name in ["", "../a", ".a", "a/b", "a b", "é", &"a".repeat(129)] {
            let error = directory.write(name, b"").unwrap_err();
            assert!(matches!(error, StorageError::Name { .. }), "{name}: {error}");
        }
        assert!(directory.has("a-1.x").unwrap());
        for _ in 0..2 {
            directory.remove("a-1.x").unwrap();
            assert!(!directory.has("a-1.x").unwrap());
        }
        let error = directory.read("b").unwrap_err().to_string();
        assert!(error.contains("deeper") && error.contains('b'), "{error}");
        fs::write(path.join("file"), "").unwrap();
        assert!(Directory::create(path.join("file")).is_err());
        fs::remove_dir_all(&path).unwrap();
    }
}
