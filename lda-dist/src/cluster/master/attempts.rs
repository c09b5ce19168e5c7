//! Start and end of attempts: the nodes that take part, and the epoch from which the run goes on.
//!
//! In an [elastic](Setup::min_workers) run an attempt waits for the workers that have not left and were not
//! given up. When one has come or has to leave, all workers write their topics at the end of the epoch, or
//! [before](super::mid_epoch), and another attempt goes on from there with other workers. When one is lost and does not come back, the run
//! goes back to the last checkpoint without it.

use lda_transport::rpc::RequestKind;
use lda_transport::{Frame, NodeId};

use super::epoch_priors::EpochPriors;
use super::rounds::Rounds;
use super::{MAX_FRUITLESS, Master, RequestPurpose, Step, unexpected};
use crate::cluster::control::Control;
use crate::cluster::epoch_range::EpochRange;
use crate::cluster::{Failed, LEFT_BEHIND, NodeRole, Port, Setup};
use crate::plan::place;
use crate::spec::Round;

impl Master {
    /// A node is ready for an attempt.
    pub(super) fn note_ready(
        &mut self,
        peer: NodeId,
        attempt: u32,
        in_memory: EpochRange,
        port: &mut dyn Port,
    ) -> Result<(), Failed> {
        self.check_member(peer, "that it is ready")?;
        if let Some(epoch) = in_memory.last().filter(|&last| last > self.setup.epochs) {
            return Err(unexpected(peer, format!("that it has topics of epoch {epoch}")));
        }
        self.roster.add_node(peer, attempt, in_memory);
        self.workers.note_ready(peer);
        if self.is_ending() {
            let finish = self.encode(&self.finish_message(self.stopped.is_some()));
            let purpose = RequestPurpose::Notice;
            self.requests.send(port, peer, RequestKind::Push, &finish, purpose);
        }
        self.try_to_start(port)
    }

    /// A worker does not have the topics from which the attempt starts: the next attempt starts from the
    /// last checkpoint, or from the one before if it is that.
    pub(super) fn fall_back(
        &mut self,
        peer: NodeId,
        attempt: u32,
        why: String,
        port: &mut dyn Port,
    ) -> Result<(), Failed> {
        let is_current = attempt == self.attempt && self.roster.ready.contains(&peer);
        if is_current && !self.is_ending() {
            let worker = self.setup.role_of(peer).to_string();
            if self.round().joins_after() > Some(0) {
                self.give_up_mid_epoch(worker, why);
            } else if self.round().epoch == self.kept() && !self.checkpoint.fall_back(worker, why) {
                return Err(unexpected(peer, "that it cannot read the only checkpoint".to_owned()));
            }
            self.roster.forget_epochs();
            self.abandon_attempt(port);
        }
        self.try_to_start(port)
    }

    /// A node has to stop, which it does between two epochs.
    pub(super) fn note_stopping(
        &mut self,
        node: NodeId,
        port: &mut dyn Port,
    ) -> Result<(), Failed> {
        if !self.is_ending() {
            self.roster.stopping.insert(node);
        }
        if self.step == Step::Waiting {
            self.release_stopping(port);
        }
        self.try_to_start(port)
    }

    /// Ends the attempt: nodes that have to stop are released, and another attempt starts when all
    /// nodes are ready.
    pub(super) fn abandon_attempt(&mut self, port: &mut dyn Port) {
        self.step = Step::Waiting;
        self.clear_requests(port);
        self.release_stopping(port);
    }

    /// Removes a node whose process has ended, or that is refused. If it takes part in the attempt, that is
    /// over.
    pub(super) fn remove(&mut self, node: NodeId, port: &mut dyn Port) -> Result<(), Failed> {
        self.roster.remove_node(node);
        self.workers.remove(node);
        // An incarnation that had to stop has stopped.
        self.roster.stopping.remove(&node);
        if self.is_ending() {
            return Ok(());
        }
        self.requests.forget(node);
        if self.is_server(node) || self.workers.take_part(node) || self.step == Step::Waiting {
            self.abandon_attempt(port);
        }
        self.try_to_start(port)
    }

    /// Goes on without a worker that is lost, if enough others are left; returns false if the run cannot.
    pub(in crate::cluster) fn go_on_without(
        &mut self,
        worker: NodeId,
        port: &mut dyn Port,
    ) -> Result<bool, Failed> {
        let is_worker = matches!(self.setup.role_of(worker), NodeRole::Worker(_));
        let workers = (0..self.setup.workers).map(|other| self.setup.worker(other));
        let others = workers.filter(|&other| other != worker && !self.workers.is_absent(other));
        let is_enough = others.count() >= self.setup.least_workers() as usize;
        if !is_worker || !self.setup.is_elastic() || !is_enough {
            return Ok(false);
        }
        self.workers.note_absent(worker);
        let has_state = self.roster.ready.contains(&worker);
        self.remove(worker, port)?;
        if has_state {
            self.workers.leave_behind(worker);
            self.refuse_left_behind(worker, port);
        }
        Ok(true)
    }

    /// A worker without which the run has gone on is connected, now or again: another process has to take
    /// its place, without old state.
    pub(super) fn refuse_left_behind(&mut self, worker: NodeId, port: &mut dyn Port) {
        if self.workers.is_left_behind(worker) {
            port.refuse(worker, LEFT_BEHIND.to_owned());
        }
    }

    /// Numbers of the workers that are ready and may take part in the next attempt, ascending.
    pub(super) fn ready_workers(&self) -> Vec<u32> {
        let workers = 0..self.setup.workers;
        let is_ready = |&worker: &u32| {
            let node = self.setup.worker(worker);
            self.roster.ready.contains(&node) && !self.workers.is_ignored(node)
        };
        workers.filter(is_ready).collect()
    }

    /// Returns true if a server, or a worker that may still come, is not ready.
    fn waits_for_nodes(&self) -> bool {
        let nodes = (1..=self.num_others()).map(NodeId);
        let mut missing = nodes.filter(|node| !self.roster.ready.contains(node));
        missing.any(|node| !self.workers.is_absent(node))
    }

    /// Returns true if other workers than those of the attempt should take part in the next one.
    pub(super) fn workers_change(&self) -> bool {
        self.setup.is_elastic() && !self.workers.are(&self.ready_workers(), &self.setup)
    }

    /// Requests the words of shards whose worker is not there from workers that are.
    fn request_words(&mut self, workers: &[u32], port: &mut dyn Port) {
        let assigned = self.setup.assigned();
        for (shard, owner) in (0..).zip(&assigned.0) {
            if workers.contains(owner) || self.roster.is_counted(shard) {
                continue;
            }
            let worker = self.setup.worker(workers[usize::from(shard) % workers.len()]);
            if self.workers.may_ask(shard, worker) {
                let count = Frame::from(self.encode(&Control::Count { shard }));
                let purpose = RequestPurpose::Notice;
                self.requests.broadcast(port, worker, RequestKind::Push, &count, purpose);
            }
        }
    }

    /// Starts another attempt, if enough nodes are ready.
    pub(super) fn try_to_start(&mut self, port: &mut dyn Port) -> Result<(), Failed> {
        let workers = self.ready_workers();
        let is_enough = workers.len() >= self.setup.least_workers() as usize;
        if self.step != Step::Waiting || !is_enough || self.waits_for_nodes() {
            return Ok(());
        }
        if !self.roster.is_counted_whole(&self.setup) {
            self.request_words(&workers, port);
            return Ok(());
        }
        if self.fruitless == MAX_FRUITLESS {
            return Err(Failed::Attempts { attempts: self.fruitless });
        }
        self.fruitless += 1;
        self.attempt = self.attempt.max(self.roster.last_attempt()).saturating_add(1);
        if self.setup.is_elastic() {
            self.checkpoint.record_attempt(self.attempt)?;
        }
        if self.placement.is_none() {
            let Setup { spec, options, .. } = &self.setup;
            let (words, lengths) = (self.roster.words(), self.roster.lengths());
            self.placement = Some(place(spec, options, words, lengths)?);
        }
        let same_shards = self.workers.assign(&workers, &self.setup);
        // Workers have the topics of other shards in memory if they had other shards.
        let in_memory = same_shards.then(|| self.roster.epoch_in_memory(self.workers.nodes()));
        let epoch = self.kept().max(in_memory.flatten().unwrap_or(0));
        self.start_attempt(self.mid_epoch.start(epoch), port);
        Ok(())
    }

    /// Starts an attempt that goes on from an epoch, or after some rounds of the next one.
    fn start_attempt(&mut self, (epoch, rounds): (u32, u16), port: &mut dyn Port) {
        self.roster.start_from(epoch);
        let joining = Round::joining_within(epoch, rounds, self.attempt);
        self.rounds = Rounds::new(joining, self.setup.spec.topics());
        if rounds > 0 {
            // Workers have no topics in memory that are not changed in this epoch.
            self.roster.forget_epochs();
            self.rounds.epoch_stats = self.mid_epoch.epoch_stats();
        }
        self.priors = EpochPriors::new(self.setup.spec.clone());
        (self.ended, self.model) = (None, None);
        self.checkpoint.start_attempt();
        self.clear_requests(port);
        self.step = Step::Starting(self.setup.options.servers);
        self.send_servers(&self.start_message(), RequestKind::Call, RequestPurpose::Start, port);
    }

    /// All workers have written their topics, or have failed to: nodes that have to stop are released, and
    /// an elastic run goes on with the workers that are ready then.
    pub(super) fn change_workers(&mut self, port: &mut dyn Port) -> Result<(), Failed> {
        self.checkpoint.record();
        if self.kept() < self.round().epoch {
            // A worker that has come would not get the topics of its shards.
            let ready = self.ready_workers();
            self.workers.ignore_others(&ready, &self.setup);
        }
        self.release_stopping(port);
        if matches!(self.step, Step::Keeping(_)) {
            self.step = Step::Waiting;
            self.clear_requests(port);
        }
        self.try_to_start(port)
    }

    pub(super) fn start_message(&self) -> Control {
        let Round { epoch, attempt, .. } = self.round();
        let rounds = self.round().joins_after().unwrap_or(0);
        let (words, lengths) = (self.roster.words().clone(), self.roster.lengths());
        let checkpoint = self.checkpoint.latest();
        let assigned = self.workers.assigned().clone();
        Control::Start { attempt, epoch, rounds, checkpoint, assigned, lengths, words }
    }
}
