//! Snapshots: the topics that a worker writes to storage, and from which a restart goes on.

use std::collections::BTreeSet;

use lda_core::counts::TopicIndex;

use super::super::snapshot_writer::Written;
use super::super::{CheckpointError, Failed, Setup, SnapshotWriter};
use super::Node;
use crate::priors::Priors;
use crate::shard::Shard;
use crate::snapshot::{Latest, MidEpochId, Snapshot, SnapshotId, decode, encode};
use crate::spec::{ModelSpec, Round};
use crate::storage::StorageError;

/// Access to storage, which outlives attempts.
#[derive(Debug)]
pub(super) struct SnapshotStorage {
    /// Without it no snapshots are written.
    pub writer: Option<SnapshotWriter>,
    /// Epochs that may have snapshots beside those of regular checkpoints: the run has gone on from
    /// them.
    pub restarts: BTreeSet<u32>,
    /// Epochs, and rounds of the next one, that may have snapshots within an epoch.
    pub mid_epoch: BTreeSet<(u32, u16)>,
    /// The last error of writing or removing that was not reported yet.
    pub trouble: Option<CheckpointError>,
}

impl SnapshotStorage {
    /// The storage behind a writer, if there is one.
    pub fn new(writer: Option<SnapshotWriter>) -> Self {
        Self { writer, restarts: BTreeSet::new(), mid_epoch: BTreeSet::new(), trouble: None }
    }

    /// Sets a shard's topics to those of a snapshot. Returns the priors of its epoch.
    pub fn restore<T: TopicIndex>(
        &self,
        setup: &Setup,
        shard: &mut Shard<T>,
        epoch: u32,
    ) -> Result<Priors, Failed> {
        let id = id(setup, shard, epoch);
        let bytes = self.read(&id.name())?;
        let restored = decode::<T>(&id, &bytes).map_err(|error| error.to_string());
        let restored = restored.and_then(|Snapshot { state, priors }| {
            let priors = checked(setup, priors)?;
            shard.restore(&setup.spec, &state).map_err(|error| error.to_string())?;
            Ok(priors)
        });
        restored.map_err(|why| Failed::Snapshot { name: id.name(), why })
    }

    /// Sets a shard's topics to those of the snapshot within an epoch from which an attempt starts, after so
    /// many rounds. Returns the priors of the epoch.
    pub fn restore_mid_epoch<T: TopicIndex>(
        &self,
        setup: &Setup,
        shard: &mut Shard<T>,
        (epoch, rounds): (u32, u16),
    ) -> Result<Priors, Failed> {
        let id = MidEpochId { of: id(setup, shard, epoch), rounds };
        let bytes = self.read(&id.name())?;
        let restored = id.decode::<T>(&bytes).map_err(|error| error.to_string());
        let restored = restored.and_then(|(state, priors)| {
            let priors = checked(setup, priors)?;
            let restored = shard.restore_mid_epoch(&setup.spec, &state);
            restored.map_err(|error| error.to_string())?;
            Ok(priors)
        });
        restored.map_err(|why| Failed::Snapshot { name: id.name(), why })
    }

    /// The bytes of a snapshot.
    fn read(&self, name: &str) -> Result<Vec<u8>, Failed> {
        let failed = |why: String| Failed::Snapshot { name: name.to_owned(), why };
        let Some(writer) = &self.writer else {
            let why = "this worker has no storage: give it the storage of the other workers";
            return Err(failed(why.to_owned()));
        };
        writer.storage().read(name).map_err(|error| failed(error.to_string()))
    }

    /// Notes the last error of removing snapshots.
    fn note_left_over(&mut self) {
        let errors = self.writer.as_mut().map_or(Vec::new(), SnapshotWriter::left_over);
        if let Some(error) = errors.last() {
            self.note_trouble(error);
        }
    }

    fn note_trouble(&mut self, error: &StorageError) {
        self.trouble = Some(CheckpointError::NotWritten { why: error.to_string() });
    }

    /// Whether snapshots are being written.
    pub fn is_busy(&self) -> bool {
        self.writer.as_ref().is_some_and(SnapshotWriter::is_busy)
    }
}

/// Snapshots of an attempt.
#[derive(Debug)]
pub(super) struct Snapshots {
    /// The last epoch of which all shards are written.
    kept: u32,
    /// Snapshots of earlier epochs are removed.
    pub(super) cleaned: u32,
    in_progress: Option<SnapshotsInProgress>,
}

/// Snapshots of an epoch that are being written.
#[derive(Debug)]
struct SnapshotsInProgress {
    epoch: u32,
    /// Names of the snapshots that are not written yet.
    left: BTreeSet<String>,
}

impl Snapshots {
    /// Snapshots of an attempt before which these were the last.
    pub fn new(latest: Latest, setup: &Setup, storage: &mut SnapshotStorage) -> Self {
        storage.restarts.extend([latest.epoch, latest.before]);
        // A worker that was there before may not know that all workers have written this epoch.
        let cleaned = latest.first_needed().saturating_sub(setup.checkpoint_every);
        Self { kept: latest.epoch, cleaned, in_progress: None }
    }

    /// The last epoch of which all shards are written.
    pub fn kept(&self) -> u32 {
        self.kept
    }

    /// Starts to write the topics of an epoch, and its priors if they change, unless others are still being
    /// written.
    pub fn write<T: TopicIndex>(
        &mut self,
        (epoch, spec): (u32, &ModelSpec),
        shards: &[Shard<T>],
        node: &mut Node<'_, T>,
    ) {
        let Some(writer) = node.storage.writer.as_mut().filter(|writer| !writer.is_busy()) else {
            return;
        };
        let mut left = BTreeSet::new();
        let priors = (!spec.updates().is_none()).then(|| spec.priors());
        for shard in shards {
            let id = id(node.setup, shard, epoch);
            writer.write(id.name(), encode(&id, &shard.tokens().state(), priors.as_ref()));
            left.insert(id.name());
        }
        self.in_progress = Some(SnapshotsInProgress { epoch, left });
    }

    /// Notes which snapshots are written by now.
    pub fn note_written(&mut self, storage: &mut SnapshotStorage) {
        let written = storage.writer.as_mut().map_or(Vec::new(), SnapshotWriter::written);
        self.note(written, storage);
        storage.note_left_over();
    }

    fn note(&mut self, written: Vec<Written>, storage: &mut SnapshotStorage) {
        for (name, ended) in written {
            match (ended, &mut self.in_progress) {
                (Ok(()), Some(SnapshotsInProgress { left, .. })) => drop(left.remove(&name)),
                (Ok(()), None) => {}
                (Err(error), _) => {
                    storage.note_trouble(&error);
                    self.in_progress = None;
                }
            }
        }
        if let Some(done) = self.in_progress.take_if(|it| it.left.is_empty()) {
            self.kept = done.epoch;
        }
    }

    /// Writes the topics of the epoch that is done, and waits until they are written.
    pub fn write_now<T: TopicIndex>(
        &mut self,
        (epoch, spec): (u32, &ModelSpec),
        shards: &[Shard<T>],
        node: &mut Node<'_, T>,
    ) {
        // The snapshots that are being written may be those of this epoch.
        self.wait(node.storage);
        if self.kept < epoch {
            self.write((epoch, spec), shards, node);
            self.wait(node.storage);
        }
    }

    /// Writes the state of the shards after a round within an epoch, one after the other, and waits until they
    /// are written; returns whether they all are.
    pub fn write_mid_epoch_now<T: TopicIndex>(
        &mut self,
        (round, spec): (Round, &ModelSpec),
        shards: &[Shard<T>],
        node: &mut Node<'_, T>,
    ) -> bool {
        // Snapshots of the epoch before may still be being written.
        self.wait(node.storage);
        let (epoch, rounds) = (round.epoch - 1, round.number + 1);
        node.storage.mid_epoch.insert((epoch, rounds));
        let priors = (!spec.updates().is_none()).then(|| spec.priors());
        for shard in shards {
            let Some(writer) = &mut node.storage.writer else { return false };
            let id = MidEpochId { of: id(node.setup, shard, epoch), rounds };
            let state = shard.tokens().mid_epoch_state();
            writer.write(id.name(), id.encode(&state, priors.as_ref()));
            let written = writer.wait();
            if let Some(error) = written.into_iter().find_map(|(_, written)| written.err()) {
                node.storage.note_trouble(&error);
                return false;
            }
        }
        true
    }

    /// Removes the snapshots within epochs before this one, or all of them.
    pub fn remove_mid_epoch<T: TopicIndex>(
        &mut self,
        before: Option<u32>,
        shards: &[Shard<T>],
        node: &mut Node<'_, T>,
    ) {
        let SnapshotStorage { writer, mid_epoch, .. } = &mut *node.storage;
        let setup = node.setup;
        mid_epoch.retain(|&(epoch, rounds)| {
            let is_needed = before.is_some_and(|before| epoch + 1 >= before);
            if let Some(writer) = writer.as_mut().filter(|_| !is_needed) {
                let of = |shard| MidEpochId { of: id(setup, shard, epoch), rounds };
                shards.iter().for_each(|shard| writer.remove(of(shard).name()));
            }
            is_needed
        });
        node.storage.note_left_over();
    }

    fn wait(&mut self, storage: &mut SnapshotStorage) {
        let written = storage.writer.as_mut().map_or(Vec::new(), SnapshotWriter::wait);
        self.note(written, storage);
    }

    /// Removes the snapshots of epochs before `needed`, from which no run goes on any more.
    pub fn remove_old<T: TopicIndex>(
        &mut self,
        needed: u32,
        shards: &[Shard<T>],
        node: &mut Node<'_, T>,
    ) {
        let (setup, restarts) = (node.setup, &node.storage.restarts);
        // A stopped run may have gone on from any epoch.
        let exists = |epoch: u32| setup.checkpoints_after(epoch) || restarts.contains(&epoch);
        let old = (self.cleaned..needed).filter(|&epoch| epoch > 0 && exists(epoch));
        let ids: Vec<SnapshotId> =
            old.flat_map(|epoch| shards.iter().map(move |shard| id(setup, shard, epoch))).collect();
        self.cleaned = self.cleaned.max(needed);
        node.storage.restarts.retain(|&epoch| epoch >= needed);
        let Some(writer) = &mut node.storage.writer else { return };
        ids.iter().for_each(|id| writer.remove(id.name()));
        node.storage.note_left_over();
    }
}

/// The priors of a snapshot, or those of the run.
fn checked(setup: &Setup, priors: Option<Priors>) -> Result<Priors, String> {
    let priors = priors.unwrap_or_else(|| setup.spec.priors());
    setup.spec.with_priors(&priors).map_err(|error| error.to_string())?;
    Ok(priors)
}

fn id<T: TopicIndex>(setup: &Setup, shard: &Shard<T>, epoch: u32) -> SnapshotId {
    SnapshotId { run: setup.run(), epoch, shard: shard.number() }
}

#[cfg(test)]
mod tests {
    use super::super::Worker;
    use super::super::join::MAX_JOIN_BYTES;
    use super::super::join::tests::{Recorder, from_master, worker};
    use crate::cluster::control::Control;
    use crate::documents::InMemory;
    use crate::spec::Round;

    fn cleaned(worker: &Worker<u16, InMemory>) -> u32 {
        worker.attempt.as_ref().map_or(0, |attempt| attempt.snapshots.cleaned)
    }

    /// The number comes from a peer: no loop may be as long as it is large.
    #[test]
    fn a_needed_epoch_is_never_a_future_one() {
        let begin = |needed| {
            let (mut worker, start) = worker(MAX_JOIN_BYTES);
            let mut port = Recorder::default();
            worker.act(start(1), &mut port).unwrap();
            let round = Round { epoch: 1, number: 0, attempt: 1 };
            let delta = (0..20).map(|topic| (topic, 1200)).collect();
            let begin =
                Control::Begin { round, needed, write: false, push: true, delta, priors: None };
            let ended = worker.act(from_master(&begin), &mut port);
            (ended.map_err(|failed| failed.to_string()), cleaned(&worker))
        };
        for needed in [0, 1] {
            assert_eq!(begin(needed), (Ok(()), needed));
        }
        for needed in [2, u32::MAX] {
            let (ended, cleaned) = begin(needed);
            assert!(ended.unwrap_err().contains("a future epoch"));
            assert_eq!(cleaned, 0);
        }
    }

    #[test]
    fn a_restarted_worker_accepts_the_end_and_removes_nothing() {
        let (mut worker, _) = worker(MAX_JOIN_BYTES);
        let (kept, needed) = (u32::MAX, u32::MAX);
        let finish = Control::Finish { attempt: 3, kept, needed, stopped: true };
        worker.act(from_master(&finish), &mut Recorder::default()).unwrap();
        assert!(worker.is_finished());
        assert_eq!((worker.stopped(), cleaned(&worker)), (Some(u32::MAX), 0));
        // Nor does one that has started since.
        let (mut worker, start) = super::super::join::tests::worker(MAX_JOIN_BYTES);
        worker.act(start(1), &mut Recorder::default()).unwrap();
        worker.act(from_master(&finish), &mut Recorder::default()).unwrap();
        assert_eq!((worker.stopped(), cleaned(&worker)), (Some(u32::MAX), 0));
    }
}
