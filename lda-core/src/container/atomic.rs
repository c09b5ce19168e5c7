//! Files that are there as a whole or not at all.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use super::error::FileError;

/// Most temporaries of one process beside one another.
const MAX_ATTEMPTS: u32 = 1000;

/// Writes a file by `write` so that, whatever happens and whenever, either what was there before is
/// at `path` or all of the new: to a temporary beside it, which is synced, renamed, and its directory
/// synced.
///
/// A process that is killed leaves its temporary, `.NAME.PID-N.partial`, which nobody reads.
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
/// Those of the system and of `write`, with the path. Where only the last step failed, the sync of
/// the directory, the new file is there already.
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
            // The first error is the one to show.
            let _ = fs::remove_file(&temporary);
        })
        .and_then(|()| Ok(sync_directory(&target)?))
        .map_err(named)
}

/// A link stays a link: what it leads to is replaced.
fn follow(path: &Path) -> io::Result<PathBuf> {
    match fs::symlink_metadata(path) {
        Ok(found) if found.is_symlink() => fs::canonicalize(path),
        _ => Ok(path.to_owned()),
    }
}

/// A new file in the directory of `path`, from where a rename cannot cross file systems.
fn create_beside(path: &Path) -> io::Result<(PathBuf, File)> {
    let name = path.file_name().ok_or(io::ErrorKind::InvalidFilename)?;
    for number in 0.. {
        let mut hidden = std::ffi::OsString::from(".");
        hidden.push(name);
        hidden.push(format!(".{}-{number}.partial", std::process::id()));
        let temporary = path.with_file_name(hidden);
        match OpenOptions::new().write(true).create_new(true).open(&temporary) {
            Ok(file) => return Ok((temporary, file)),
            // Of another thread, or of a process of the same id that was killed.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && number < MAX_ATTEMPTS => {
            }
            Err(error) => return Err(error),
        }
    }
    unreachable!("the last attempt returns")
}

/// Makes a rename survive a loss of power, where directories can be synced.
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
