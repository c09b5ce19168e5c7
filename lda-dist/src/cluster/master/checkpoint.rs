//! The last two epochs that all workers have written, from which a restart goes on if a worker was lost.
//!
//! Workers write snapshots in the background, some of them more slowly than others. A checkpoint is
//! complete if *each* worker has written its topics after the *same* epoch; so the master lets all of
//! them begin the next one only when none is still writing the last.

use std::collections::{BTreeMap, BTreeSet};

use lda_transport::NodeId;

use super::super::{CheckpointError, Failed, SnapshotWriter};
use crate::config::Options;
use crate::saved_options::{self, OPTIONS};
use crate::snapshot::{LATEST, Latest, decode_latest, encode_latest};
use crate::storage::Storage;

/// Name of the object with the number of the last attempt.
const ATTEMPT: &str = "attempt";

/// Record of the last epochs that all workers have written.
#[derive(Debug)]
pub(super) struct Checkpoint {
    /// Access to storage; without it the run goes back to the beginning if a worker is lost.
    writer: Option<SnapshotWriter>,
    /// Identifies the run in storage.
    run: u64,
    /// Options of the run, as they are saved.
    options: String,
    /// The last epoch that each worker has written in this attempt.
    by_worker: BTreeMap<NodeId, u32>,
    /// Workers that are writing.
    writing: BTreeSet<NodeId>,
    /// The last epochs that all workers have written, as recorded in storage.
    latest: Latest,
    /// The last error that was not reported yet.
    pub trouble: Option<CheckpointError>,
}

impl Checkpoint {
    /// A checkpoint of the beginning of a run.
    pub fn new(writer: Option<SnapshotWriter>, run: u64, options: &Options) -> Self {
        let (by_worker, writing, latest) = (BTreeMap::new(), BTreeSet::new(), Latest::default());
        let options = saved_options::encode(options);
        Self { writer, run, options, by_worker, writing, latest, trouble: None }
    }

    /// Returns whether checkpoints are written anywhere.
    pub fn has_storage(&self) -> bool {
        self.writer.is_some()
    }

    /// The last epoch that all workers have written, and the one before.
    pub fn latest(&self) -> Latest {
        self.latest
    }

    /// Reads the epochs that an earlier master has recorded, and saves the options.
    pub fn load(&mut self) -> Result<(), Failed> {
        let Some(writer) = &self.writer else { return Ok(()) };
        let storage = writer.storage();
        if let Some(text) = read(storage, LATEST)? {
            let latest = decode_latest(self.run, &text);
            self.latest = latest.map_err(|error| failed(LATEST, &error))?;
        }
        let before = read(storage, OPTIONS)?.unwrap_or_default();
        if before == self.options.as_bytes() {
            return Ok(());
        }
        let Latest { epoch, .. } = self.latest;
        if epoch > 0 {
            let changes = saved_options::changes(&before, &self.options);
            self.trouble = changes.map(|changes| CheckpointError::OtherOptions { epoch, changes });
        }
        if let Err(error) = storage.write(OPTIONS, self.options.as_bytes()) {
            self.trouble = Some(CheckpointError::NotWritten { why: error.to_string() });
        }
        Ok(())
    }

    /// The last attempt that an earlier master of an elastic run has started; 0 if none.
    pub fn last_attempt(&self) -> Result<u32, Failed> {
        let Some(writer) = &self.writer else { return Ok(0) };
        let Some(text) = read(writer.storage(), ATTEMPT)? else { return Ok(0) };
        let number = std::str::from_utf8(&text).ok().and_then(|text| text.trim().parse().ok());
        number.ok_or_else(|| Failed::Snapshot {
            name: ATTEMPT.to_owned(),
            why: "it is not a number: end all nodes of this run, then remove it".to_owned(),
        })
    }

    /// Records that an attempt of an elastic run starts, before any node learns of it. So no attempt of a later
    /// master has its number: a worker that was out of reach could take it for its own.
    pub fn record_attempt(&self, attempt: u32) -> Result<(), Failed> {
        let Some(writer) = &self.writer else { return Ok(()) };
        let written = writer.storage().write(ATTEMPT, format!("{attempt}\n").as_bytes());
        written.map_err(|error| failed(ATTEMPT, &error))
    }

    /// Forgets what workers have written in the previous attempt.
    pub fn start_attempt(&mut self) {
        self.by_worker.clear();
        self.writing.clear();
    }

    /// A worker has written an epoch, and may be writing a later one.
    pub fn note(&mut self, worker: NodeId, epoch: u32, is_writing: bool) {
        self.by_worker.insert(worker, epoch);
        if is_writing {
            self.writing.insert(worker);
        } else {
            self.writing.remove(&worker);
        }
    }

    /// Whether all workers may write their topics: none is still writing earlier ones.
    pub fn may_write(&self) -> bool {
        self.writing.is_empty()
    }

    /// Records the last epoch that the workers have written, if it is the same for all of them, and a
    /// later one. Returns whether it has.
    pub fn record(&mut self) -> bool {
        let mut epochs = self.by_worker.values().copied();
        let epoch = epochs.next().unwrap_or(0);
        if epoch <= self.latest.epoch || epochs.any(|other| other != epoch) {
            return false;
        }
        let Some(writer) = &self.writer else { return false };
        let latest = Latest { epoch, before: self.latest.epoch };
        match writer.storage().write(LATEST, encode_latest(self.run, latest).as_bytes()) {
            Ok(()) => {
                self.latest = latest;
                true
            }
            Err(error) => {
                self.trouble = Some(CheckpointError::NotWritten { why: error.to_string() });
                false
            }
        }
    }

    /// Goes back to the epoch before the last, as a worker cannot read the snapshots of that; false if
    /// there is none.
    pub fn fall_back(&mut self, worker: String, why: String) -> bool {
        let Latest { epoch, before } = self.latest;
        if before == 0 {
            return false;
        }
        self.latest = Latest { epoch: before, before: 0 };
        self.trouble = Some(CheckpointError::Unreadable { worker, epoch, before, why });
        true
    }
}

/// An object of the storage, if it exists.
fn read(storage: &dyn Storage, name: &str) -> Result<Option<Vec<u8>>, Failed> {
    if !storage.has(name).map_err(|error| failed(name, &error))? {
        return Ok(None);
    }
    storage.read(name).map(Some).map_err(|error| failed(name, &error))
}

fn failed(name: &str, error: &dyn std::error::Error) -> Failed {
    Failed::Snapshot { name: name.to_owned(), why: error.to_string() }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::storage::Memory;

    const WORKERS: [NodeId; 2] = [NodeId(3), NodeId(4)];

    fn checkpoint(storage: &Arc<Memory>) -> Checkpoint {
        let writer = SnapshotWriter::now(Arc::clone(storage) as Arc<dyn Storage>);
        Checkpoint::new(Some(writer), 7, &Options::default())
    }

    fn note(checkpoint: &mut Checkpoint, epochs: [u32; 2]) -> Latest {
        for (worker, epoch) in WORKERS.into_iter().zip(epochs) {
            checkpoint.note(worker, epoch, false);
        }
        checkpoint.record();
        checkpoint.latest()
    }

    /// Otherwise a restart would miss snapshots: a worker that has written epoch 40 may have left out
    /// epoch 30.
    #[test]
    fn an_epoch_is_recorded_if_all_workers_have_written_it() {
        let storage = Arc::new(Memory::default());
        let mut checkpoint = checkpoint(&storage);
        assert_eq!(note(&mut checkpoint, [20, 0]), Latest::default());
        assert_eq!(note(&mut checkpoint, [20, 20]), Latest { epoch: 20, before: 0 });
        assert_eq!(note(&mut checkpoint, [40, 30]), Latest { epoch: 20, before: 0 });
        let latest = Latest { epoch: 40, before: 20 };
        assert_eq!(note(&mut checkpoint, [40, 40]), latest);
        assert_eq!(note(&mut checkpoint, [20, 20]), latest, "an earlier one");
        assert_eq!(storage.read(LATEST).unwrap(), encode_latest(7, latest).as_bytes());
    }

    #[test]
    fn other_options_are_reported_once() {
        let storage = Arc::new(Memory::default());
        let trouble = |options: Options| {
            let writer = SnapshotWriter::now(Arc::clone(&storage) as Arc<dyn Storage>);
            let mut checkpoint = Checkpoint::new(Some(writer), 7, &options);
            checkpoint.load().unwrap();
            checkpoint.trouble.map(|trouble| trouble.to_string())
        };
        let (two, three) = (
            Options { rounds: 2, ..Options::default() },
            Options { rounds: 3, ..Options::default() },
        );
        // Nothing depends on the options before the first checkpoint.
        assert_eq!([two, three, two].map(trouble), [None, None, None]);
        note(&mut checkpoint(&storage), [20, 20]);
        assert_eq!(trouble(two), None);
        let reported = trouble(three).unwrap();
        assert!(
            reported.contains("from epoch 20 with other options, rounds 3 instead of 2"),
            "{reported}"
        );
        assert_eq!(trouble(three), None);
    }

    #[test]
    fn all_workers_write_or_none() {
        let mut checkpoint = checkpoint(&Arc::new(Memory::default()));
        assert!(checkpoint.may_write());
        checkpoint.note(WORKERS[0], 0, true);
        checkpoint.note(WORKERS[1], 10, false);
        assert!(!checkpoint.may_write());
        checkpoint.note(WORKERS[0], 10, false);
        assert!(checkpoint.may_write());
        checkpoint.note(WORKERS[1], 10, true);
        checkpoint.start_attempt();
        assert!(checkpoint.may_write());
    }

    #[test]
    fn it_falls_back_once() {
        let mut checkpoint = checkpoint(&Arc::new(Memory::default()));
        let fall_back = |checkpoint: &mut Checkpoint| {
            checkpoint.fall_back("worker 1".to_owned(), "it is damaged".to_owned())
        };
        assert!(!fall_back(&mut checkpoint));
        note(&mut checkpoint, [20, 20]);
        assert!(!fall_back(&mut checkpoint), "the initial topics are no checkpoint");
        note(&mut checkpoint, [40, 40]);
        assert!(fall_back(&mut checkpoint));
        assert_eq!(checkpoint.latest(), Latest { epoch: 20, before: 0 });
        assert!(checkpoint.trouble.take().unwrap().to_string().contains("that of epoch 20: it is"));
        assert!(!fall_back(&mut checkpoint));
        // The epoch is written again.
        assert_eq!(note(&mut checkpoint, [40, 40]), Latest { epoch: 40, before: 20 });
    }
}
