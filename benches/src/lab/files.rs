//! Files that are whole or not there.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::Path;

use super::LabError;

/// Writes beside the target and renames, so that an interruption leaves no half of a file behind.
pub(super) fn write_whole(
    path: &Path,
    write: impl FnOnce(&mut BufWriter<File>) -> io::Result<()>,
) -> Result<(), LabError> {
    let mut partial = path.as_os_str().to_owned();
    partial.push(".partial");
    let written = File::create(&partial).and_then(|file| {
        let mut out = BufWriter::new(file);
        write(&mut out)?;
        out.flush()
    });
    written.and_then(|()| fs::rename(&partial, path)).map_err(|error| {
        // Its own failure says nothing new: the file may never have been there.
        let _ = fs::remove_file(&partial);
        LabError::write(path)(error)
    })
}

/// [`write_whole`] of bytes that are at hand.
pub(super) fn write_bytes(path: &Path, bytes: &[u8]) -> Result<(), LabError> {
    write_whole(path, |out| out.write_all(bytes))
}

pub(super) fn create_directory(path: &Path) -> Result<(), LabError> {
    fs::create_dir_all(path).map_err(LabError::write(path))
}
