//! Location of documents and checkpoints: a directory that all nodes see, or a prefix of an object
//! store.

use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use lda_dist::storage::{Directory, Storage, StorageError};
use serde::Deserialize;

/// A directory or object store, as configurations and options name it.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(from = "String")]
pub enum StorageUrl {
    /// A path.
    Directory(PathBuf),
    /// A URL, such as `s3://bucket/prefix`.
    Store(String),
}

impl From<String> for StorageUrl {
    fn from(name: String) -> Self {
        if name.contains("://") { Self::Store(name) } else { Self::Directory(name.into()) }
    }
}

impl From<OsString> for StorageUrl {
    /// A name that is not UTF-8 is a path.
    fn from(name: OsString) -> Self {
        name.into_string().map_or_else(|name| Self::Directory(name.into()), Self::from)
    }
}

impl fmt::Display for StorageUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Directory(path) => path.display().fmt(f),
            Self::Store(url) => f.write_str(url),
        }
    }
}

impl StorageUrl {
    /// Makes a relative path start at `base`; a URL is unchanged.
    pub fn within(self, base: &Path) -> Self {
        match self {
            Self::Directory(path) => Self::Directory(base.join(path)),
            store @ Self::Store(_) => store,
        }
    }

    /// Opens the storage.
    ///
    /// # Errors
    /// [`StorageError`], if a URL is not that of a supported store.
    pub fn open(&self) -> Result<Arc<dyn Storage>, StorageError> {
        match self {
            Self::Directory(path) => Ok(Arc::new(Directory::at(path))),
            Self::Store(url) => store(url),
        }
    }

    /// Opens the storage, and creates a directory that does not exist.
    ///
    /// # Errors
    /// As [`open`](Self::open), and if the directory cannot be created.
    pub fn create(&self) -> Result<Arc<dyn Storage>, StorageError> {
        match self {
            Self::Directory(path) => Ok(Arc::new(Directory::create(path)?)),
            Self::Store(url) => store(url),
        }
    }
}

#[cfg(feature = "object-store")]
fn store(url: &str) -> Result<Arc<dyn Storage>, StorageError> {
    use lda_dist::storage::{Access, ObjectStore};

    if url.starts_with("memory:") {
        let why =
            "its content would be lost with this process: give a directory or s3://bucket/prefix";
        return Err(StorageError::Url { url: url.to_owned(), why: why.to_owned() });
    }
    Ok(Arc::new(ObjectStore::open(url, &Access::default())?))
}

#[cfg(not(feature = "object-store"))]
fn store(url: &str) -> Result<Arc<dyn Storage>, StorageError> {
    // The rest of the URL may contain a secret.
    let (scheme, _) = url.split_once("://").unwrap_or((url, ""));
    let why = format!(
        "{scheme}:// is an object store, which this build does not support: build it with \
         --features object-store"
    );
    Err(StorageError::Url { url: format!("{scheme}://"), why })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_relative_to_a_base_and_urls_are_not() {
        let parse = |name: &str| StorageUrl::from(name.to_owned()).within(Path::new("/base"));
        assert_eq!(parse("nips"), StorageUrl::Directory("/base/nips".into()));
        assert_eq!(parse("/nips"), StorageUrl::Directory("/nips".into()));
        assert_eq!(parse("s3://bucket/nips"), StorageUrl::Store("s3://bucket/nips".to_owned()));
        assert_eq!(parse("s3://bucket/nips").to_string(), "s3://bucket/nips");
        assert_eq!(parse("nips").to_string(), Path::new("/base/nips").display().to_string());
    }

    #[test]
    fn unsupported_urls_are_refused() {
        for url in ["ftp://user:secret@host/x", "memory:///", "s3://"] {
            let error = StorageUrl::from(url.to_owned()).create().unwrap_err();
            assert!(matches!(error, StorageError::Url { .. }), "{error}");
            assert!(!error.to_string().contains("secret"), "{error}");
            #[cfg(not(feature = "object-store"))]
            assert!(error.to_string().contains("build it with --features object-store"), "{error}");
        }
    }
}
