//! The last epoch that all workers have written, from which a restart goes on.

use std::collections::BTreeMap;

use lda_transport::NodeId;

use super::super::{Failed, SnapshotWriter};
use crate::snapshot::{LATEST, decode_latest, encode_latest};

/// Record of the last epoch that all workers have written.
#[derive(Debug)]
pub(super) struct Checkpoint {
    /// Access to storage; without it every restart goes back to the beginning.
    writer: Option<SnapshotWriter>,
    /// Identifies the run in storage.
    run: u64,
    /// The last epoch that each worker has written in this attempt.
    by_worker: BTreeMap<NodeId, u32>,
    /// The last epoch that all workers have written, as recorded in storage.
    epoch: u32,
    /// The last error of recording it that was not reported yet.
    pub trouble: Option<String>,
}

impl Checkpoint {
    /// A checkpoint of the beginning of a run.
    pub fn new(writer: Option<SnapshotWriter>, run: u64) -> Self {
        Self { writer, run, by_worker: BTreeMap::new(), epoch: 0, trouble: None }
    }

    /// The last epoch that all workers have written; 0 if none.
    pub fn epoch(&self) -> u32 {
        self.epoch
    }

    /// Reads the epoch that an earlier master has recorded.
    pub fn load(&mut self) -> Result<(), Failed> {
        let Some(writer) = &self.writer else { return Ok(()) };
        let failed = |why: String| Failed::Snapshot { name: LATEST.to_owned(), why };
        let storage = writer.storage();
        if storage.has(LATEST).map_err(|error| failed(error.to_string()))? {
            let text = storage.read(LATEST).map_err(|error| failed(error.to_string()))?;
            let epoch = decode_latest(self.run, &text);
            self.epoch = epoch.map_err(|error| failed(error.to_string()))?;
        }
        Ok(())
    }

    /// Forgets what workers have written in the previous attempt.
    pub fn start_attempt(&mut self) {
        self.by_worker.clear();
    }

    /// A worker has written an epoch.
    pub fn note(&mut self, worker: NodeId, epoch: u32) {
        self.by_worker.insert(worker, epoch);
    }

    /// Records the last epoch that all workers have written, if it is a later one.
    pub fn record(&mut self) {
        let all = self.by_worker.values().copied().min().unwrap_or(0);
        let Some(writer) = self.writer.as_ref().filter(|_| all > self.epoch) else { return };
        match writer.storage().write(LATEST, encode_latest(self.run, all).as_bytes()) {
            Ok(()) => self.epoch = all,
            Err(error) => self.trouble = Some(error.to_string()),
        }
    }
}
