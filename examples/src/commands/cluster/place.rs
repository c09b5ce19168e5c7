//! Where documents and snapshots are: a directory that all nodes see, or a prefix of an object store.

use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use lda_dist::storage::{Directory, Storage, StorageError};
use serde::Deserialize;

use crate::commands::cluster::error::ClusterError;

/// A place, as configurations and command lines name it.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(from = "String")]
pub enum Place {
    /// A path.
    Directory(PathBuf),
    /// An address, as `s3://bucket/prefix`.
    Store(String),
}

impl From<String> for Place {
    fn from(name: String) -> Self {
        if name.contains("://") { Self::Store(name) } else { Self::Directory(name.into()) }
    }
}

impl From<OsString> for Place {
    /// What is no text is a path.
    fn from(name: OsString) -> Self {
        name.into_string().map_or_else(|name| Self::Directory(name.into()), Self::from)
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Directory(path) => path.display().fmt(f),
            Self::Store(url) => f.write_str(url),
        }
    }
}

impl Place {
    /// A path begins there; an address stays.
    pub fn within(self, base: &Path) -> Self {
        match self {
            Self::Directory(path) => Self::Directory(base.join(path)),
            store @ Self::Store(_) => store,
        }
    }

    /// What is there.
    ///
    /// # Errors
    /// [`ClusterError::Usage`] and [`ClusterError::Storage`], where an address is of no store.
    pub fn open(&self) -> Result<Arc<dyn Storage>, ClusterError> {
        match self {
            Self::Directory(path) => Ok(Arc::new(Directory::at(path))),
            Self::Store(url) => store(url),
        }
    }

    /// The same, and makes a directory that is not there.
    ///
    /// # Errors
    /// As [`open`](Self::open), and [`ClusterError::Storage`] where that cannot be.
    pub fn create(&self) -> Result<Arc<dyn Storage>, ClusterError> {
        match self {
            Self::Directory(path) => Ok(Arc::new(Directory::create(path)?)),
            Self::Store(url) => store(url),
        }
    }
}

#[cfg(feature = "object-store")]
fn store(url: &str) -> Result<Arc<dyn Storage>, ClusterError> {
    use lda_dist::storage::{Access, ObjectStore};

    if url.starts_with("memory:") {
        let why = "it would be gone with this process: give a directory, or s3://bucket/prefix";
        return Err(StorageError::Url { url: url.to_owned(), why: why.to_owned() }.into());
    }
    Ok(Arc::new(ObjectStore::open(url, &Access::default())?))
}

#[cfg(not(feature = "object-store"))]
fn store(url: &str) -> Result<Arc<dyn Storage>, ClusterError> {
    // What follows may have a secret in it.
    let (scheme, _) = url.split_once("://").unwrap_or((url, ""));
    let why = format!(
        "{scheme}:// is an object store, and this build has directories only: build it with \
         --features object-store"
    );
    Err(StorageError::Url { url: format!("{scheme}://"), why }.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_begin_somewhere_and_addresses_do_not() {
        let place = |name: &str| Place::from(name.to_owned()).within(Path::new("/base"));
        assert_eq!(place("nips"), Place::Directory("/base/nips".into()));
        assert_eq!(place("/nips"), Place::Directory("/nips".into()));
        assert_eq!(place("s3://bucket/nips"), Place::Store("s3://bucket/nips".to_owned()));
        assert_eq!(place("s3://bucket/nips").to_string(), "s3://bucket/nips");
        assert_eq!(place("nips").to_string(), Path::new("/base/nips").display().to_string());
    }

    #[test]
    fn addresses_of_no_store_are_wrong_usage() {
        for url in ["ftp://user:secret@host/x", "memory:///", "s3://"] {
            let error = Place::from(url.to_owned()).create().unwrap_err();
            assert_eq!(error.status(), 2, "{error}");
            assert!(!error.to_string().contains("secret"), "{error}");
            #[cfg(not(feature = "object-store"))]
            assert!(error.to_string().contains("build it with --features object-store"), "{error}");
        }
    }
}
