//! Storage in a directory of the file system.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use lda_core::container::replace;

use super::{Storage, StorageError, checked};

/// Storage with one file per object in a directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Directory {
    path: PathBuf,
}

impl Directory {
    /// Uses the directory at `path`, which need not exist yet.
    pub fn at(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into() }
    }

    /// Uses the directory at `path`, and creates it and its parents if needed.
    ///
    /// # Errors
    /// [`StorageError::Io`] if it cannot be created.
    pub fn create(path: impl Into<PathBuf>) -> Result<Self, StorageError> {
        let path = path.into();
        match fs::create_dir_all(&path) {
            Ok(()) => Ok(Self { path }),
            Err(error) => Err(StorageError::Io { place: path.display().to_string(), error }),
        }
    }

    /// Path of the directory.
    pub fn path(&self) -> &Path {
        &self.path
    }

    fn file(&self, name: &str) -> Result<PathBuf, StorageError> {
        Ok(self.path.join(checked(name)?))
    }
}

impl Storage for Directory {
    fn read(&self, name: &str) -> Result<Vec<u8>, StorageError> {
        let file = self.file(name)?;
        fs::read(&file)
            .map_err(|error| StorageError::Io { place: file.display().to_string(), error })
    }

    fn write(&self, name: &str, content: &[u8]) -> Result<(), StorageError> {
        let file = self.file(name)?;
        // A directory that was removed is made again. Its parent is not: it may be a file system that is
        // not mounted.
        if !self.path.exists() {
            let _ = fs::create_dir(&self.path);
        }
        Ok(replace(&file, |file| Ok(file.write_all(content)?))?)
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
