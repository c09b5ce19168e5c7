//! Output files that appear complete or not at all.
//!
//! An [`Output`] writes to a temporary file next to its target and renames it to the target on
//! commit. It is created before the work starts, so that a path that cannot be written fails at once
//! and not after hours. An output that is dropped without a commit is removed.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use thiserror::Error;

/// Errors of writing a file.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum OutputError {
    /// The system returned an error.
    #[error("{path}: cannot write: {source}; check that the directory exists, may be written \
        and has room", path = path.display())]
    Io {
        /// The requested file.
        path: PathBuf,
        /// Error of the system.
        source: io::Error,
    },
    /// The path names a directory.
    #[error("{path} is a directory: name a file in it", path = path.display())]
    Directory {
        /// The path.
        path: PathBuf,
    },
    /// The path names a device or a pipe.
    #[error("{path} is a device or a pipe: name a file", path = path.display())]
    NoFile {
        /// The path.
        path: PathBuf,
    },
    /// The file exists and is read-only.
    #[error("{path} is read-only: make it writable, or name another file", path = path.display())]
    ReadOnly {
        /// The path.
        path: PathBuf,
    },
}

/// End of the names of temporary files.
const SUFFIX: &str = ".partial";

/// Temporary files that are not committed yet, and temporary directories, so that an exit without drops can
/// remove them.
static TEMPORARIES: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// Removes all temporary directories, and all temporary files that are not committed. Call it before an exit outside of `main`.
pub fn remove_temporaries() {
    for path in TEMPORARIES.lock().unwrap_or_else(PoisonError::into_inner).drain(..) {
        // The process exits: there is nowhere to report an error.
        let _ = if path.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) };
    }
}

/// A directory that is removed with all of its files when this is dropped.
#[derive(Debug)]
pub struct TemporaryDirectory(PathBuf);

impl TemporaryDirectory {
    /// Removes `path` in the end. It need not exist yet.
    pub fn new(path: PathBuf) -> Self {
        TEMPORARIES.lock().unwrap_or_else(PoisonError::into_inner).push(path.clone());
        Self(path)
    }

    /// The directory.
    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for TemporaryDirectory {
    fn drop(&mut self) {
        // Its files do no harm where they cannot be removed.
        let _ = fs::remove_dir_all(&self.0);
        let mut all = TEMPORARIES.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|path| *path != self.0);
    }
}

/// A file that is being written.
#[derive(Debug)]
pub struct Output {
    /// Path as the user gave it.
    path: PathBuf,
    /// Temporary file and target; `None` for a device or a pipe, which is written directly.
    renaming: Option<(PathBuf, PathBuf)>,
    writer: BufWriter<File>,
}

impl Output {
    /// Starts a file that will appear at `path`.
    ///
    /// # Errors
    /// [`OutputError`], if `path` cannot be written.
    pub fn create(path: &Path) -> Result<Self, OutputError> {
        let fail = |source| OutputError::Io { path: path.to_owned(), source };
        let existing = fs::metadata(path).ok();
        match &existing {
            Some(found) if found.is_dir() => {
                return Err(OutputError::Directory { path: path.to_owned() });
            }
            // /dev/stdout may be a link to a file, which must not be replaced.
            Some(found) if !found.is_file() || path.starts_with("/dev") => {
                let file = OpenOptions::new().append(true).open(path).map_err(fail)?;
                let writer = BufWriter::new(file);
                return Ok(Self { path: path.to_owned(), renaming: None, writer });
            }
            Some(found) if found.permissions().readonly() => {
                return Err(OutputError::ReadOnly { path: path.to_owned() });
            }
            _ => {}
        }
        // A link stays a link: its target is replaced.
        let target = match existing {
            Some(_) => fs::canonicalize(path).map_err(fail)?,
            None => path.to_owned(),
        };
        if target.file_name().is_none() {
            return Err(fail(io::Error::from(io::ErrorKind::InvalidFilename)));
        }
        let (temporary, file) = create_beside(&target).map_err(fail)?;
        let renaming = Some((temporary, target));
        Ok(Self { path: path.to_owned(), renaming, writer: BufWriter::new(file) })
    }

    /// Starts a file that is not written sequentially; `path` must not be a device or a pipe.
    ///
    /// # Errors
    /// [`OutputError`], if `path` cannot be written.
    pub fn create_file(path: &Path) -> Result<Self, OutputError> {
        let output = Self::create(path)?;
        if output.is_file() {
            Ok(output)
        } else {
            Err(OutputError::NoFile { path: path.to_owned() })
        }
    }

    /// Whether the target is a file, and not a device or a pipe.
    pub fn is_file(&self) -> bool {
        self.renaming.is_some()
    }

    /// Writes with `write`, then commits.
    ///
    /// # Errors
    /// [`OutputError::Io`]; the target is then unchanged.
    pub fn fill(
        mut self,
        write: impl FnOnce(&mut BufWriter<File>) -> io::Result<()>,
    ) -> Result<(), OutputError> {
        write(&mut self.writer).map_err(|source| self.error(source))?;
        self.commit()
    }

    /// Renames the temporary file to the target.
    ///
    /// # Errors
    /// [`OutputError::Io`]; the target is then unchanged.
    pub fn commit(mut self) -> Result<(), OutputError> {
        self.finish().map_err(|source| self.error(source))
    }

    fn finish(&mut self) -> io::Result<()> {
        self.writer.flush()?;
        let Some((temporary, target)) = &self.renaming else { return Ok(()) };
        self.writer.get_ref().sync_all()?;
        let mut temporaries = TEMPORARIES.lock().unwrap_or_else(PoisonError::into_inner);
        fs::rename(temporary, target)?;
        temporaries.retain(|path| path != temporary);
        let directory = directory_of(target).to_owned();
        self.renaming = None;
        sync(&directory)?;
        Ok(())
    }

    fn error(&self, source: io::Error) -> OutputError {
        OutputError::Io { path: self.path.clone(), source }
    }
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.writer.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.writer.flush()
    }
}

impl Drop for Output {
    fn drop(&mut self) {
        let Some((temporary, _)) = self.renaming.take() else { return };
        let mut temporaries = TEMPORARIES.lock().unwrap_or_else(PoisonError::into_inner);
        temporaries.retain(|path| path != &temporary);
        // The run failed already, and its error is the one to report.
        let _ = fs::remove_file(temporary);
    }
}

/// Creates a temporary file in the directory of `target`, so that the rename stays on one file
/// system.
fn create_beside(target: &Path) -> io::Result<(PathBuf, File)> {
    let prefix = format!(".lda-{}-", machine());
    remove_orphans(directory_of(target), &prefix);
    let mut number = 0;
    loop {
        let path =
            target.with_file_name(format!("{prefix}{}-{number}{SUFFIX}", std::process::id()));
        let mut temporaries = TEMPORARIES.lock().unwrap_or_else(PoisonError::into_inner);
        match OpenOptions::new().write(true).create_new(true).open(&path) {
            Ok(file) => {
                temporaries.push(path.clone());
                return Ok((path, file));
            }
            // Left by a killed process with the same id, or ours for another target.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && number < 1000 => {
                number += 1;
            }
            Err(error) => return Err(error),
        }
    }
}

/// Removes the temporary files of processes of this machine that were killed.
fn remove_orphans(directory: &Path, prefix: &str) {
    // Without such a directory there is no telling which processes live.
    let processes = Path::new("/proc");
    if !processes.join("self").exists() {
        return;
    }
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let rest = name.to_str().and_then(|name| name.strip_prefix(prefix)?.strip_suffix(SUFFIX));
        let process = rest.and_then(|rest| rest.split_once('-')?.0.parse::<u32>().ok());
        if process.is_some_and(|process| !processes.join(process.to_string()).exists()) {
            // Another process may have removed it.
            let _ = fs::remove_file(entry.path());
        }
    }
}

/// Name of this machine in names of files: in a directory that machines share, only their own processes
/// are known to live or not.
fn machine() -> String {
    let name = fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    name.trim().chars().filter(|c| c.is_ascii_alphanumeric()).collect()
}

fn directory_of(target: &Path) -> &Path {
    match target.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

/// Makes a rename in a directory durable, if the directory can be read and its file system syncs
/// directories.
#[cfg(unix)]
fn sync(directory: &Path) -> io::Result<()> {
    match File::open(directory).and_then(|directory| directory.sync_all()) {
        Err(error)
            if !matches!(
                error.kind(),
                io::ErrorKind::PermissionDenied | io::ErrorKind::InvalidInput
            ) =>
        {
            Err(error)
        }
        _ => Ok(()),
    }
}

/// A directory cannot be opened as a file on this system.
#[cfg(not(unix))]
fn sync(_: &Path) -> io::Result<()> {
    Ok(())
}

/// The path with `.json` appended to its name.
pub fn sidecar(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".json");
    PathBuf::from(name)
}
