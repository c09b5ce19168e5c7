//! Change of workers between two rounds of an epoch.
//!
//! When a worker of an [elastic](Setup::min_workers) run has to leave, or another one has come, all workers write the
//! [state](crate::shard::MidEpochState) of their shards after the round that has ended, and another attempt goes
//! on with the next round. Until the epoch ends, a node that is lost costs the rounds since then only.
//!
//! A change costs as much as a restart: all states are written and read, and all shards join the servers. So
//! workers that come share one change per epoch; others wait for the epoch's end. A worker that leaves does not
//! wait. Workers change at the epoch's end if the options do not permit it [before](workers_may_change_in), if too
//! few workers are left, or if one could not write.

use lda_transport::rpc::RequestKind;
use lda_transport::{Frame, NodeId};

use super::{Master, RequestPurpose, Step, unexpected};
use crate::cluster::control::{Control, KeptRound};
use crate::cluster::epoch_stats::EpochStats;
use crate::cluster::{CheckpointError, Failed, MASTER, Port};
use crate::plan::workers_may_change_in;
use crate::spec::Round;

/// The last change of workers within an epoch.
#[derive(Debug, Default)]
pub(super) struct MidEpoch {
    /// Start of the current epoch's rest.
    start: Option<MidEpochStart>,
    /// An epoch at whose end workers change, since one could not write before or the run stops; 0 if none.
    unwritten: u32,
}

/// Rounds of an epoch that are not sampled again.
#[derive(Debug)]
struct MidEpochStart {
    /// The epoch before.
    epoch: u32,
    rounds: u16,
    /// Statistics of these rounds.
    epoch_stats: EpochStats,
}

impl MidEpoch {
    /// The start of an attempt that could start from the end of `epoch`: this epoch, or the one before the
    /// current one and its rounds that are done.
    pub fn start(&self, epoch: u32) -> (u32, u16) {
        let start = self.start.as_ref().filter(|start| start.epoch >= epoch);
        start.map_or((epoch, 0), |start| (start.epoch, start.rounds))
    }

    /// Statistics of the rounds that are done.
    pub fn epoch_stats(&self) -> EpochStats {
        self.start.as_ref().map_or_else(EpochStats::default, |start| start.epoch_stats.so_far())
    }

    /// The epoch has ended, or its start cannot be read.
    pub fn clear(&mut self) {
        *self = Self::default();
    }
}

impl Master {
    /// Returns whether workers change after a round that has ended within an epoch.
    pub(super) fn changes_after(&self, ended: Round) -> bool {
        let Round { epoch, .. } = ended;
        let stopping = &self.roster.stopping;
        let is_leaving = |worker: u32| stopping.contains(&self.setup.worker(worker));
        let (leaving, staying): (Vec<u32>, Vec<u32>) =
            self.ready_workers().into_iter().partition(|&worker| is_leaving(worker));
        let has_changed = self.mid_epoch.start(epoch - 1).1 > 0;
        self.setup.is_elastic()
            && workers_may_change_in(&self.setup.options, epoch)
            && self.mid_epoch.unwritten != epoch
            && !stopping.contains(&MASTER)
            && staying.len() >= self.setup.least_workers() as usize
            && (!leaving.is_empty() || !has_changed)
    }

    /// Lets workers write the states of their shards after this round. `delta` is that of C_k in the round.
    pub(super) fn keep_round(
        &mut self,
        round: Round,
        delta: Vec<(u32, i32)>,
        port: &mut dyn Port,
    ) -> Result<(), Failed> {
        self.rounds.hold(delta)?;
        let left = self.workers.nodes().len() as u32;
        self.step = Step::KeepingRound { left, are_written: true };
        self.ask_to_write(round, port);
        Ok(())
    }

    /// Asks the workers to write the topics after a round.
    pub(super) fn ask_to_write(&mut self, round: Round, port: &mut dyn Port) {
        let keep = Control::Keep { round };
        self.send_workers(&keep, RequestKind::Call, RequestPurpose::Keep, port);
    }

    /// A worker has written its states, or could not.
    pub(super) fn note_kept_round(
        &mut self,
        worker: NodeId,
        reply: &Frame,
        (left, are_written): (u32, bool),
        port: &mut dyn Port,
    ) -> Result<(), Failed> {
        let round = self.round();
        let spec = &self.setup.spec;
        let kept = KeptRound::decode(spec.topics(), spec.words(), reply);
        let Some(KeptRound { is_written, kept, epoch_stats }) =
            kept.filter(|reply| reply.kept < round.epoch)
        else {
            let what = format!("that it has kept {reply:?} in {round}");
            return Err(unexpected(worker, what));
        };
        self.checkpoint.note(worker, kept, false);
        self.rounds.epoch_stats.of_worker(epoch_stats);
        let are_written = are_written && is_written;
        self.step = Step::KeepingRound { left: left - 1, are_written };
        if left > 1 {
            return Ok(());
        }
        self.checkpoint.record();
        // A run that stops goes on later from an epoch's end.
        if are_written && !self.roster.stopping.contains(&MASTER) {
            return self.change_mid_epoch(round, port);
        }
        self.mid_epoch.unwritten = round.epoch;
        self.begin_next(round, Vec::new(), port)
    }

    /// Goes on with other workers after this round.
    fn change_mid_epoch(&mut self, round: Round, port: &mut dyn Port) -> Result<(), Failed> {
        let epoch_stats = std::mem::take(&mut self.rounds.epoch_stats);
        let (epoch, rounds) = (round.epoch - 1, round.number + 1);
        self.mid_epoch.start = Some(MidEpochStart { epoch, rounds, epoch_stats });
        // The rounds that are done are not sampled again.
        self.fruitless = 0;
        self.abandon_attempt(port);
        self.try_to_start(port)
    }

    /// A worker cannot read the states from which the attempt starts: it goes back to the epoch's start.
    pub(super) fn give_up_mid_epoch(&mut self, worker: String, why: String) {
        let (epoch, rounds) = self.mid_epoch.start(0);
        let before = self.kept();
        let epoch = epoch + 1;
        let trouble = CheckpointError::MidEpoch { worker, epoch, rounds, before, why };
        self.checkpoint.trouble = Some(trouble);
        self.mid_epoch.clear();
    }
}
