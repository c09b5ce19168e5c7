//! Checkpoints: snapshots of a run, written to a directory while it runs.
//!
//! Between two epochs the state is copied, and a separate thread writes the copy while sampling
//! continues. Files are replaced, never changed, and an older one is removed only after a newer one is
//! complete. If the process is killed, the last complete snapshot remains; at most one interval and
//! the time of one write are lost. One snapshot is written at a time; if the next is due earlier,
//! sampling waits. The copy needs memory ([`Snapshot::memory`]) in addition to
//! [`MemoryEstimate`](crate::train::MemoryEstimate).
//!
//! The times of snapshots never change results.

use std::fs;
use std::path::{Path, PathBuf};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::container::{FileError, FileProblem};
use crate::train::snapshot::Snapshot;

/// Directory, interval and number of the snapshots of a run.
///
/// ```
/// use lda_core::Corpus;
/// use lda_core::train::{Checkpoints, TrainOptions, Trainer};
///
/// let directory = std::env::temp_dir().join(format!("lda-checkpoints-{}", std::process::id()));
/// let corpus = Corpus::from_words([vec!["tree", "leaf", "tree"], vec!["sea", "wave", "sea"]])?;
/// let options = TrainOptions::new(3).epochs(12);
///
/// let mut trainer = Trainer::new(&corpus, &options)?;
/// trainer.checkpoint(Checkpoints::new(&directory).every_epochs(5))?;
/// trainer.run((), || false);
///
/// let latest = Checkpoints::latest(&directory)?;
/// assert_eq!(latest.snapshot.epochs(), 12);
/// # std::fs::remove_dir_all(&directory)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
#[must_use = "setters return the changed value; `Trainer::checkpoint` uses it"]
pub struct Checkpoints {
    directory: PathBuf,
    every: Every,
    keep: usize,
    take_over: bool,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Every {
    Epochs(u32),
    Time(Duration),
}

/// The last snapshot of a directory.
#[derive(Debug)]
#[non_exhaustive]
pub struct Latest {
    /// The snapshot.
    pub snapshot: Snapshot,
    /// Its file.
    pub path: PathBuf,
    /// Errors of later snapshots that cannot be read.
    pub unreadable: Vec<FileError>,
}

const PREFIX: &str = "epoch-";
const SUFFIX: &str = ".snapshot";

impl Checkpoints {
    /// A snapshot every ten minutes; the last two are kept. The directory is created if it is
    /// missing.
    pub fn new(directory: impl Into<PathBuf>) -> Self {
        let every = Every::Time(Duration::from_secs(600));
        Self { directory: directory.into(), every, keep: 2, take_over: false }
    }

    /// A snapshot every `n` epochs, and after the last epoch; 0 counts as 1.
    pub fn every_epochs(mut self, n: u32) -> Self {
        self.every = Every::Epochs(n.max(1));
        self
    }

    /// A snapshot after the first epoch that ends `time` after the previous snapshot, and after the last
    /// epoch.
    pub fn every_time(mut self, time: Duration) -> Self {
        self.every = Every::Time(time);
        self
    }

    /// Number of snapshots kept; 0 counts as 1.
    pub fn keep(mut self, snapshots: usize) -> Self {
        self.keep = snapshots.max(1);
        self
    }

    /// Allows a directory that already holds snapshots: those of the run that is resumed.
    pub fn take_over(mut self) -> Self {
        self.take_over = true;
        self
    }

    /// The directory.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Reads the last readable snapshot of a directory.
    ///
    /// # Errors
    /// [`FileError`] of the directory, or of its last snapshot if none is readable.
    pub fn latest(directory: impl AsRef<Path>) -> Result<Latest, FileError> {
        let directory = directory.as_ref();
        let mut found = list(directory)?;
        found.sort_unstable();
        let mut unreadable = Vec::new();
        for (_, path) in found.into_iter().rev() {
            match Snapshot::load(&path) {
                Ok(snapshot) => return Ok(Latest { snapshot, path, unreadable }),
                Err(error) => unreadable.push(error),
            }
        }
        let nothing = || {
            let reason = format!("no {PREFIX}*{SUFFIX} in it");
            FileError::from(std::io::Error::new(std::io::ErrorKind::NotFound, reason)).at(directory)
        };
        Err(unreadable.into_iter().next().unwrap_or_else(nothing))
    }
}

/// Snapshots of a directory by epoch, in no order.
fn list(directory: &Path) -> Result<Vec<(u32, PathBuf)>, FileError> {
    let read = || {
        let mut found = Vec::new();
        for entry in fs::read_dir(directory)? {
            let entry = entry?;
            let epoch = |name: &str| {
                let number = name.strip_prefix(PREFIX)?.strip_suffix(SUFFIX)?;
                number.parse::<u32>().ok()
            };
            if let Some(epoch) = entry.file_name().to_str().and_then(epoch) {
                found.push((epoch, entry.path()));
            }
        }
        Ok(found)
    };
    read().map_err(|error: std::io::Error| FileError::from(error).at(directory))
}

/// Takes snapshots when they are due, and writes them on a thread.
#[derive(Debug)]
pub(super) struct CheckpointWriter {
    settings: Checkpoints,
    last_epoch: u32,
    last_time: Instant,
    writing: Option<JoinHandle<Result<PathBuf, FileError>>>,
}

impl CheckpointWriter {
    /// Prepares the directory for a run after `epoch` epochs.
    pub fn start(settings: Checkpoints, epoch: u32) -> Result<Self, FileError> {
        let directory = &settings.directory;
        fs::create_dir_all(directory).map_err(|error| FileError::from(error).at(directory))?;
        if !settings.take_over && !list(directory)?.is_empty() {
            let problem = FileProblem::Occupied;
            return Err(FileError::from(problem).at(directory));
        }
        remove_partial(directory);
        Ok(Self { settings, last_epoch: epoch, last_time: Instant::now(), writing: None })
    }

    /// Whether a snapshot is due after `epoch`.
    pub fn is_due(&self, epoch: u32) -> bool {
        match self.settings.every {
            Every::Epochs(n) => epoch.saturating_sub(self.last_epoch) >= n,
            Every::Time(time) => self.last_time.elapsed() >= time,
        }
    }

    /// Whether the last snapshot taken is of an earlier epoch.
    pub fn is_behind(&self, epoch: u32) -> bool {
        self.last_epoch != epoch
    }

    /// Result of the write in progress, if it has ended or `wait` is set.
    pub fn outcome(&mut self, wait: bool) -> Option<Result<PathBuf, FileError>> {
        let writing = self.writing.take_if(|writing| wait || writing.is_finished())?;
        Some(writing.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
    }

    /// Starts to write `snapshot`; the previous write must have ended.
    pub fn write(&mut self, snapshot: Snapshot) {
        debug_assert!(self.writing.is_none());
        (self.last_epoch, self.last_time) = (snapshot.epochs(), Instant::now());
        let settings = self.settings.clone();
        let write = move || write(&settings, &snapshot);
        self.writing = Some(std::thread::spawn(write));
    }
}

fn write(settings: &Checkpoints, snapshot: &Snapshot) -> Result<PathBuf, FileError> {
    let name = format!("{PREFIX}{:010}{SUFFIX}", snapshot.epochs());
    let path = settings.directory.join(name);
    snapshot.save(&path)?;
    let mut found = list(&settings.directory)?;
    found.sort_unstable();
    // A later one is unreadable, or the run would have resumed from it.
    found.retain(|&(epoch, _)| epoch <= snapshot.epochs());
    let old = found.len().saturating_sub(settings.keep);
    for (_, path) in &found[..old] {
        fs::remove_file(path).map_err(|error| FileError::from(error).at(path))?;
    }
    Ok(path)
}

/// Removes partial files of killed processes.
fn remove_partial(directory: &Path) {
    let Ok(entries) = fs::read_dir(directory) else { return };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let name = name.to_string_lossy();
        if name.starts_with(&format!(".{PREFIX}")) && name.ends_with(".partial") {
            // A file that cannot be removed does no harm.
            let _ = fs::remove_file(entry.path());
        }
    }
}
