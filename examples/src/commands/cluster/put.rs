//! `lda cluster put`: writes files to a storage, for launchers that make shards on several machines.

use std::fs;
use std::path::PathBuf;

use lda_dist::storage::StorageError;

use crate::commands::cluster::args::Put;
use crate::commands::cluster::error::ClusterError;

/// A file, and the name of its object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedFile {
    name: String,
    path: PathBuf,
}

impl NamedFile {
    /// Parses `NAME=FILE`.
    ///
    /// # Errors
    /// A message for the user.
    pub fn parse(text: &str) -> Result<Self, String> {
        match text.split_once('=') {
            Some((name, path)) if !name.is_empty() && !path.is_empty() => {
                Ok(Self { name: name.to_owned(), path: path.into() })
            }
            _ => Err("give NAME=FILE, as in shard-00003=made/shard-00000".to_owned()),
        }
    }
}

/// Removes objects, and then writes files, each as a whole.
///
/// # Errors
/// [`ClusterError`].
pub fn run(args: &Put) -> Result<(), ClusterError> {
    let storage = args.out.create()?;
    for name in &args.remove {
        storage.remove(name)?;
    }
    for NamedFile { name, path } in &args.files {
        let content = fs::read(path).map_err(|error| {
            ClusterError::from(StorageError::Io { place: path.display().to_string(), error })
        })?;
        storage.write(name, &content)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_has_a_name() {
        let file = NamedFile { name: "shard-00003".to_owned(), path: "a=b".into() };
        assert_eq!(NamedFile::parse("shard-00003=a=b"), Ok(file));
        for wrong in ["shard-00003", "=a", "a=", ""] {
            assert!(NamedFile::parse(wrong).unwrap_err().contains("NAME=FILE"), "{wrong}");
        }
    }
}
