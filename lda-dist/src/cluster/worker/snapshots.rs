//! The topics that a worker keeps, which a run goes back to.

use std::collections::BTreeSet;

use lda_core::counts::TopicIndex;

use super::super::snapshot_writer::Written;
use super::super::{Failed, SnapshotWriter};
use super::Worker;
use crate::documents::Documents;
use crate::shard::Shard;
use crate::snapshot::{SnapshotId, decode, encode};

/// Topics of an epoch that are being kept: names of what is not there yet.
#[derive(Debug)]
pub(super) struct SnapshotsInProgress {
    epoch: u32,
    left: BTreeSet<String>,
}

impl<T: TopicIndex, D: Documents> Worker<T, D> {
    fn of(&self, shard: u16, epoch: u32) -> SnapshotId {
        SnapshotId { run: self.setup.run(), epoch, shard }
    }

    pub(super) fn restore(&self, shard: &mut Shard<T>, epoch: u32) -> Result<(), Failed> {
        let of = self.of(shard.number(), epoch);
        let failed = |why: String| Failed::Snapshot { name: of.name(), why };
        let Some(snapshot_writer) = &self.snapshot_writer else {
            return Err(failed(
                "this worker has no storage: give it the one of the others".to_owned(),
            ));
        };
        let bytes = snapshot_writer
            .storage()
            .read(&of.name())
            .map_err(|error| failed(error.to_string()))?;
        let topics = decode::<T>(&of, &bytes).map_err(|error| failed(error.to_string()))?;
        shard.restore(&self.setup.spec, &topics).map_err(|error| failed(error.to_string()))
    }

    /// Begins to keep the topics of this epoch, unless others are still being written.
    pub(super) fn write_snapshots(&mut self) {
        let epoch = self.round.epoch;
        let ofs: Vec<SnapshotId> =
            self.shards.iter().map(|shard| self.of(shard.number(), epoch)).collect();
        let Some(snapshot_writer) =
            self.snapshot_writer.as_mut().filter(|snapshot_writer| !snapshot_writer.is_busy())
        else {
            return;
        };
        for (of, shard) in ofs.iter().zip(&self.shards) {
            snapshot_writer.write(of.name(), encode(of, &shard.topics()));
        }
        self.snapshots_in_progress =
            Some(SnapshotsInProgress { epoch, left: ofs.iter().map(SnapshotId::name).collect() });
    }

    /// Sees what is kept now.
    pub(super) fn note_written(&mut self) {
        let written = self.snapshot_writer.as_mut().map_or(Vec::new(), SnapshotWriter::written);
        self.note(written);
        self.note_left_over();
    }

    /// Sees what could not be taken away.
    fn note_left_over(&mut self) {
        let errors = self.snapshot_writer.as_mut().map_or(Vec::new(), SnapshotWriter::left_over);
        if let Some(error) = errors.last() {
            self.trouble = Some(error.to_string());
        }
    }

    fn note(&mut self, written: Vec<Written>) {
        for (name, ended) in written {
            match (ended, &mut self.snapshots_in_progress) {
                (Ok(()), Some(SnapshotsInProgress { left, .. })) => drop(left.remove(&name)),
                (Ok(()), None) => {}
                (Err(error), _) => {
                    self.trouble = Some(error.to_string());
                    self.snapshots_in_progress = None;
                }
            }
        }
        if let Some(SnapshotsInProgress { epoch, .. }) =
            self.snapshots_in_progress.take_if(|it| it.left.is_empty())
        {
            self.kept = epoch;
        }
    }

    /// Keeps the topics of the epoch that is done, and waits until they are written.
    pub(super) fn write_snapshots_now(&mut self) {
        // What is being written may be just them.
        let written = self.snapshot_writer.as_mut().map_or(Vec::new(), SnapshotWriter::wait);
        self.note(written);
        if self.kept < self.round.epoch {
            self.write_snapshots();
            let written = self.snapshot_writer.as_mut().map_or(Vec::new(), SnapshotWriter::wait);
            self.note(written);
        }
    }

    /// Takes away what nobody goes back to.
    pub(super) fn remove_old(&mut self, kept: u32) {
        // A run that was stopped may have gone on from any epoch.
        let is_kept =
            |epoch: u32| self.setup.checkpoints_after(epoch) || epoch == self.gone_on_from;
        let old = (self.cleaned..kept).filter(|&epoch| epoch > 0 && is_kept(epoch));
        let shards = || self.shards.iter().map(Shard::number);
        let ofs: Vec<SnapshotId> = old
            .flat_map(|epoch| shards().map(move |shard| (shard, epoch)))
            .map(|(shard, epoch)| self.of(shard, epoch))
            .collect();
        self.cleaned = self.cleaned.max(kept);
        let Some(snapshot_writer) = &mut self.snapshot_writer else { return };
        ofs.iter().for_each(|of| snapshot_writer.remove(of.name()));
        self.note_left_over();
    }
}

#[cfg(test)]
mod tests {
    use super::super::join::MOST;
    use super::super::join::tests::{Asked, told, worker};
    use crate::cluster::control::Control;
    use crate::spec::Round;

    /// The master's word is that of a peer: nothing may be as long as the number that it says.
    #[test]
    fn no_epoch_to_come_is_kept() {
        let begin = |kept| {
            let (mut worker, start) = worker(MOST);
            let mut asked = Asked::default();
            worker.act(start(1), &mut asked).unwrap();
            let round = Round { epoch: 1, number: 0, attempt: 1 };
            let gained = (0..20).map(|topic| (topic, 1200)).collect();
            let begin = Control::Begin { round, kept, gained };
            let ended = worker.act(told(&begin), &mut asked);
            (ended.map_err(|failed| failed.to_string()), worker.cleaned)
        };
        for kept in [0, 1] {
            assert_eq!(begin(kept), (Ok(()), kept));
        }
        for kept in [2, u32::MAX] {
            let (ended, cleaned) = begin(kept);
            assert!(ended.unwrap_err().contains("an epoch is kept which is to come"));
            assert_eq!(cleaned, 0);
        }
    }

    #[test]
    fn who_has_started_anew_hears_of_the_end_and_takes_nothing_away() {
        let (mut worker, _) = worker(MOST);
        let finish = Control::Finish { attempt: 3, kept: u32::MAX, stopped: true };
        worker.act(told(&finish), &mut Asked::default()).unwrap();
        assert!(worker.is_finished());
        assert_eq!((worker.stopped(), worker.cleaned), (Some(u32::MAX), 0));
    }
}
