//! Atomic replacement of files.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use super::error::FileError;

/// Maximum number of temporary files of one process for the same target.
const MAX_ATTEMPTS: u32 = 1000;

/// Replaces the file at `path` atomically by the output of `write`: at any time, also after a
/// crash, `path` has either its previous content or all of the new one. Writes a temporary file in
/// the same directory, syncs it, renames it, and syncs the directory.
///
/// A process that is killed leaves its temporary file, `.NAME.PID-N.partial`, which no reader
/// opens.
///
/// ```
/// use std::io::Write;
/// use lda_core::container::replace;
///
/// let path = std::env::temp_dir().join(format!("lda-doc-{}", std::process::id()));
/// replace(&path, |file| Ok(file.write_all(b"old")?))?;
/// let failed = replace(&path, |file| {
///     file.write_all(b"ne")?;
///     Err(std::io::Error::other("no more").into())
/// });
/// assert!(failed.is_err());
/// assert_eq!(std::fs::read(&path)?, b"old");
/// # std::fs::remove_file(&path)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// I/O errors and those of `write`, with the path. If only the last step failed, the sync of the
/// directory, the new file is already in place.
pub fn replace(
    path: &Path,
    write: impl FnOnce(&mut BufWriter<File>) -> Result<(), FileError>,
) -> Result<(), FileError> {
    let named = |error: FileError| if error.path().is_some() { error } else { error.at(path) };
    let target = follow(path).map_err(|error| named(error.into()))?;
    let (temporary, file) = create_beside(&target).map_err(|error| named(error.into()))?;
    let fill = || {
        let mut writer = BufWriter::new(file);
        write(&mut writer)?;
        writer.flush()?;
        writer.get_ref().sync_all()?;
        fs::rename(&temporary, &target)?;
        Ok::<(), FileError>(())
    };
    fill()
        .inspect_err(|_| {
            // Report the first error, not that of the clean-up.
            let _ = fs::remove_file(&temporary);
        })
        .and_then(|()| Ok(sync_directory(&target)?))
        .map_err(named)
}

/// Resolves a symbolic link, so that its target is replaced and the link stays a link.
fn follow(path: &Path) -> io::Result<PathBuf> {
    match fs::symlink_metadata(path) {
        Ok(found) if found.is_symlink() => fs::canonicalize(path),
        _ => Ok(path.to_owned()),
    }
}

/// Creates a file in the directory of `path`, so that the rename stays within one file system.
fn create_beside(path: &Path) -> io::Result<(PathBuf, File)> {
    let name = path.file_name().ok_or(io::ErrorKind::InvalidFilename)?;
    for number in 0.. {
        let mut hidden = std::ffi::OsString::from(".");
        hidden.push(name);
        hidden.push(format!(".{}-{number}.partial", std::process::id()));
        let temporary = path.with_file_name(hidden);
        match OpenOptions::new().write(true).create_new(true).open(&temporary) {
            Ok(file) => return Ok((temporary, file)),
            // Another thread's, or left by a killed process that had the same id.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && number < MAX_ATTEMPTS => {
            }
            Err(error) => return Err(error),
        }
    }
    unreachable!("the last attempt returns")
}

/// Makes a rename durable across a power failure, on systems where directories can be synced.
fn sync_directory(path: &Path) -> io::Result<()> {
    if !cfg!(unix) {
        return Ok(());
    }
    let directory = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    File::open(directory)?.sync_all()
}
