//! Storage in memory.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::{Storage, StorageError, checked};

/// Storage in memory, for tests and for data that need not outlive the process.
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
        let object = self.objects().get(checked(name)?).cloned();
        object.ok_or_else(|| StorageError::Io { place: name.to_owned(), error: error() })
    }

    fn write(&self, name: &str, content: &[u8]) -> Result<(), StorageError> {
        self.objects().insert(checked(name)?.to_owned(), content.to_vec());
        Ok(())
    }

    fn has(&self, name: &str) -> Result<bool, StorageError> {
        Ok(self.objects().contains_key(checked(name)?))
    }

    fn remove(&self, name: &str) -> Result<(), StorageError> {
        self.objects().remove(checked(name)?);
        Ok(())
    }
}
