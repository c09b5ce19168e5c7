//! Models that are used in place in a memory-mapped file.

// `memmap2::Mmap::map` is unsafe, and so are the functions below, which pass its contract on.
#![allow(unsafe_code)]

use std::path::Path;

use super::TopicModel;
use crate::container::FileError;

impl TopicModel {
    /// Opens the model file at `path` in place: the system reads entries when they are needed, and
    /// processes that map the same file share its memory.
    ///
    /// Like [`load`](Self::load), compares every checksum and checks every entry, which takes one
    /// pass over the file. On a big-endian machine the file is loaded instead of mapped.
    ///
    /// # Safety
    /// The file must not be modified or truncated as long as the model or a clone of it exists,
    /// neither by this process nor by another one. Otherwise the behaviour is undefined; a
    /// truncated file typically ends the process with `SIGBUS`.
    ///
    /// [`save`](Self::save) keeps this contract: it replaces the file by a rename, and the mapped
    /// model continues to use the old file.
    ///
    /// ```no_run
    /// use lda_core::model::TopicModel;
    ///
    /// // SAFETY: model files here are only ever replaced by a rename, never written in place.
    /// let model = unsafe { TopicModel::map("model.lda")? };
    /// # Ok::<(), lda_core::container::FileError>(())
    /// ```
    ///
    /// # Errors
    /// [`FileError`] names the file and the problem.
    pub unsafe fn map(path: impl AsRef<Path>) -> Result<Self, FileError> {
        // SAFETY: the caller promises that the file does not change.
        unsafe { open(path.as_ref(), true) }
    }

    /// Like [`map`](Self::map), but checks only header, words and topics, so that a model of any
    /// size opens in the time that these take.
    ///
    /// Use it only for files from a trusted source: an invalid entry panics when it is used, or
    /// gives wrong results.
    ///
    /// # Safety
    /// As for [`map`](Self::map).
    ///
    /// # Errors
    /// [`FileError`] names the file and the problem.
    pub unsafe fn map_unverified(path: impl AsRef<Path>) -> Result<Self, FileError> {
        // SAFETY: the caller promises that the file does not change.
        unsafe { open(path.as_ref(), false) }
    }
}

/// Maps the file at `path`, and checks its entries if `verify`.
///
/// # Safety
/// The file must not change while the model exists.
#[cfg(target_endian = "little")]
unsafe fn open(path: &Path, verify: bool) -> Result<TopicModel, FileError> {
    use crate::container::{Kind, MappedReader};

    let open = || {
        let file = std::fs::File::open(path)?;
        // An empty file cannot be mapped, and the error of the system would not say why.
        if file.metadata()?.len() == 0 {
            return Err(FileError::foreign(&[]));
        }
        // SAFETY: the caller promises that the file does not change while the model exists. The
        // model owns the mapping: every array that borrows from it shares its ownership.
        let map = unsafe { memmap2::Mmap::map(&file)? };
        let mut reader = MappedReader::new(map, Kind::Model)?;
        if verify {
            reader.verify()?;
        }
        let model = super::file::read(&mut reader)?;
        if verify {
            model.check_entries()?;
        }
        Ok(model)
    };
    open().map_err(|error: FileError| error.at(path))
}

/// Loads the file: its numbers must be byte-swapped, so it cannot be used in place.
///
/// # Safety
/// Always sound; `unsafe` only to match the signature on little-endian machines.
#[cfg(target_endian = "big")]
unsafe fn open(path: &Path, _verify: bool) -> Result<TopicModel, FileError> {
    TopicModel::load(path)
}
