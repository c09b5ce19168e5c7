//! Rounds at a worker: partitions of its shards, some of which are underway at once.
//!
//! Rows and their sizes are as of the round's start, whenever they are asked for: those of the next partitions come
//! while one is sampled. What is pushed is another matter, since rows of C_d go with it, which the shard's partitions
//! before have changed. It leaves when it is the partition's **turn**, when those before it of the same shard are done;
//! what the partition pulls is sampled while its answer is underway, and other shards' partitions are. What words have
//! gained leaves as soon as it is known. Long documents are sampled by themselves while the epoch's first rows are on
//! their way. None of this changes a bit.
//!
//! Rows of [hot words](crate::placement) come from several servers, and are sampled when all are there; nothing is
//! asked before, as they are pulled in any case.
//!
//! Where rounds [overlap](crate::config::Options::staleness) this goes on from one to the next: rows of the next round
//! come while this one's last are sampled, and what this one has gained is still on its way then. Only an epoch begins
//! with nothing underway, as rows of C_d are measured then, by which words are pulled or pushed.
//!
//! ```text
//! departs:   sizes → routes → pull
//! its turn:                        push ────────────────→ answer
//!                                  sample what has come → gained      both are there: it is done
//! ```

use lda_core::counts::TopicIndex;
use lda_transport::Frame;
use lda_transport::rpc::{RequestId, RequestKind};

use super::super::control::{Control, WorkerEpochStats};
use super::super::{Failed, MASTER, Port, Setup};
use super::{RequestPurpose, Worker};
use crate::documents::Documents;
use crate::partition_sampler::RoundContext;
use crate::plan::group;
use crate::request;
use crate::shard::{AnswerError, Shard};
use crate::spec::Round;
use crate::trip::{Sampled, Trip, TripRequest};

/// A partition of a shard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PartitionTask {
    pub round: Round,
    /// Among this worker's shards.
    pub shard: usize,
    pub partition: u16,
}

/// A partition whose trip has started.
#[derive(Debug)]
pub(super) struct PartitionInFlight {
    task: PartitionTask,
    trip: Trip<Frame>,
}

impl<T: TopicIndex, D: Documents> Worker<T, D> {
    /// More partitions, as many as may be underway, and rounds as they end and begin.
    pub(super) fn advance(&mut self, port: &mut dyn Port) -> Result<(), Failed> {
        loop {
            while self.in_flight.len() <= usize::from(self.setup.prefetch) {
                if self.left.is_empty() && !self.queue() {
                    break;
                }
                let Some(task) = self.left.pop_front() else { continue };
                self.in_flight
                    .push_back(PartitionInFlight { task, trip: Trip::new(task.partition) });
                self.start_partition(task, port);
            }
            if self.sampling && self.is_sampled() {
                self.sampling = false;
                let epoch_stats = self.epoch_stats();
                if epoch_stats.is_some() && self.setup.checkpoints_after(self.round.epoch) {
                    self.write_snapshots();
                }
                self.unreported.push_back((self.round, epoch_stats));
            }
            if self.sampling || !self.enter(port)? {
                break;
            }
        }
        self.report_done(port);
        Ok(())
    }

    /// Whether nothing of this round is left to sample.
    fn is_sampled(&self) -> bool {
        let left = self.left.iter().chain(self.in_flight.iter().map(|flight| &flight.task));
        self.long_documents.is_empty() && !left.into_iter().any(|task| task.round == self.round)
    }

    /// Puts the partitions of the next round of this epoch behind those that are left; false where it may not begin
    /// yet.
    fn queue(&mut self) -> bool {
        let next = self.queued.next(self.setup.options.rounds);
        let may_begin = next.epoch == self.round.epoch && self.may_begin.contains_key(&next);
        if may_begin {
            self.queue_round(next);
        }
        may_begin
    }

    fn queue_round(&mut self, round: Round) {
        self.queued = round;
        let Some(placement) = &self.placement else { return };
        // Shards take turns: one's tokens are sampled while another's are underway.
        let mut by_position: Vec<(usize, PartitionTask)> = Vec::new();
        for (at, shard) in self.shards.iter().enumerate() {
            let group = group(&self.setup.options, placement, shard.number(), round.number);
            let some = group.filter(|&partition| !shard.words(partition).is_empty());
            by_position.extend(
                some.map(|partition| PartitionTask { round, shard: at, partition }).enumerate(),
            );
        }
        by_position.sort_by_key(|(position, _)| *position);
        self.left.extend(by_position.into_iter().map(|(_, task)| task));
    }

    /// Begins to sample the next round; false where it may not begin yet.
    fn enter(&mut self, port: &mut dyn Port) -> Result<bool, Failed> {
        let round = self.round.next(self.setup.options.rounds);
        let Some(gained) = self.may_begin.remove(&round) else { return Ok(false) };
        for (topic, by) in gained {
            let total = &mut self.totals[topic as usize];
            *total = total.checked_add_signed(by).ok_or_else(|| Failed::Message {
                peer: MASTER,
                what: "totals below 0".to_owned(),
            })?;
        }
        (self.round, self.sampling) = (round, true);
        for (at, shard) in self.shards.iter_mut().enumerate() {
            if round.number == 0 {
                shard.begin_epoch(&self.setup.spec);
                if shard.has_long() {
                    self.long_documents.push_back(at);
                }
            }
            shard.begin_round(&self.totals, self.setup.options.sync())?;
        }
        if self.queued < round {
            self.queue_round(round);
        }
        (0..self.shards.len()).for_each(|shard| self.push_next(shard, port));
        Ok(true)
    }

    /// Tells the master of rounds that are done, in order.
    fn report_done(&mut self, port: &mut dyn Port) {
        while let Some((round, _)) = self.unreported.front() {
            if self.unacknowledged.get(round).is_some_and(|&left| left > 0) {
                return;
            }
            self.unacknowledged.remove(round);
            let Some((round, epoch_stats)) = self.unreported.pop_front() else { return };
            self.note_written();
            let told = Control::RoundDone { round, kept: self.kept, epoch_stats };
            self.link.send(&told, &self.setup, port);
        }
    }

    /// What an epoch took, after its last round.
    fn epoch_stats(&mut self) -> Option<WorkerEpochStats> {
        let epoch = self.round.epoch;
        if !self.round.is_last(self.setup.options.rounds) {
            return None;
        }
        let part = |shard: &Shard<T>| (shard.number(), shard.log_joint(&self.setup.spec));
        let judged = self.setup.evaluates(epoch);
        let parts = if judged { self.shards.iter().map(part).collect() } else { Vec::new() };
        let non_zeros = if judged { self.shards.iter().map(Shard::non_zeros).sum() } else { 0 };
        let (bytes, waited) = (std::mem::take(&mut self.bytes), std::mem::take(&mut self.waited));
        Some(WorkerEpochStats { bytes, waited, memory: self.memory(), non_zeros, parts })
    }

    /// Bytes held, without what travels.
    pub(super) fn memory(&self) -> u64 {
        let shards: usize = self.shards.iter().map(Shard::memory).sum();
        (shards + self.sampler.memory() + self.planned) as u64
    }

    /// Starts the trip of a partition that was added to `in_flight`.
    fn start_partition(&mut self, task: PartitionTask, port: &mut dyn Port) {
        let Self { setup, placement: Some(placement), shards, in_flight, .. } = self else {
            return;
        };
        let Some(flight) = in_flight.iter_mut().find(|flight| flight.task == task) else { return };
        match flight.trip.start(setup.trip(placement), &shards[task.shard]) {
            Some(sizes) => self.send(task, &sizes, RequestPurpose::Sizes(task), port),
            None => self.pull(task, port),
        }
    }

    /// Requests the rows of a partition whose routes are known, and pushes its documents if it is
    /// the shard's first.
    fn pull(&mut self, task: PartitionTask, port: &mut dyn Port) {
        let Self { setup, placement: Some(placement), in_flight, .. } = self else { return };
        let Some(flight) = in_flight.iter_mut().find(|flight| flight.task == task) else { return };
        for (at, request) in (0..).zip(flight.trip.pull(setup.trip(placement))) {
            self.send(task, &request, RequestPurpose::Rows(task, at), port);
        }
        self.push_next(task.shard, port);
    }

    /// Pushes the documents of a shard's first partition in flight, once its routes are known.
    fn push_next(&mut self, shard: usize, port: &mut dyn Port) {
        let Self { setup, placement: Some(placement), shards, in_flight, round, .. } = self else {
            return;
        };
        let first = in_flight.iter_mut().find(|flight| flight.task.shard == shard);
        let Some(flight) = first.filter(|flight| flight.task.round == *round) else { return };
        if !flight.trip.awaits_push() {
            return;
        }
        let task = flight.task;
        let request = flight.trip.push(setup.trip(placement), &shards[shard]);
        let planned = in_flight.iter().map(|flight| flight.trip.memory()).sum();
        self.planned = self.planned.max(planned);
        if let Some(request) = request {
            self.send(task, &request, RequestPurpose::Answer(task), port);
        }
    }

    /// Sends a request of a trip.
    fn send(
        &mut self,
        task: PartitionTask,
        request: &TripRequest,
        purpose: RequestPurpose,
        port: &mut dyn Port,
    ) {
        let Some(placement) = &self.placement else { return };
        let kind = request.kind;
        let bytes = request.encode(self.shards[task.shard].number(), task.round);
        self.bytes.count_request(kind, bytes.len() as u64);
        let server = self.setup.server(placement.server(request.slice.into()));
        let how = match kind {
            request::Kind::Sizes | request::Kind::Pull => RequestKind::Pull,
            request::Kind::Push => RequestKind::Call,
            request::Kind::Join | request::Kind::PushDeltas => RequestKind::Push,
        };
        self.requests.send(port, server, how, &bytes, purpose);
    }

    /// Accepts a server's reply.
    pub(super) fn ended(
        &mut self,
        purpose: RequestPurpose,
        request: RequestId,
        reply: Frame,
        port: &mut dyn Port,
    ) -> Result<(), Failed> {
        let bytes = reply.len() as u64;
        match purpose {
            RequestPurpose::Join(round) | RequestPurpose::Deltas(round) => {
                if let Some(left) = self.unacknowledged.get_mut(&round) {
                    *left = left.saturating_sub(1);
                }
                self.join(port);
                self.report_done(port);
                Ok(())
            }
            RequestPurpose::Sizes(task) => {
                self.bytes.count_reply(request::Kind::Sizes, bytes);
                let Self { setup, placement: Some(placement), shards, in_flight, .. } = self else {
                    return Ok(());
                };
                let mut in_flight = in_flight.iter_mut();
                if let Some(flight) = in_flight.find(|flight| flight.task == task) {
                    let run = setup.trip(placement);
                    let accepted = flight.trip.accept_sizes(run, &shards[task.shard], &reply);
                    let failed = |error: AnswerError| Failed::Message {
                        peer: request.peer,
                        what: error.to_string(),
                    };
                    accepted.map_err(failed)?;
                    self.pull(task, port);
                }
                Ok(())
            }
            RequestPurpose::Rows(task, position) => {
                self.bytes.count_reply(request::Kind::Pull, bytes);
                let mut in_flight = self.in_flight.iter_mut();
                if let Some(flight) = in_flight.find(|flight| flight.task == task) {
                    flight.trip.accept_rows(usize::from(position), reply);
                }
                Ok(())
            }
            RequestPurpose::Answer(task) => {
                self.bytes.count_reply(request::Kind::Push, bytes);
                let mut in_flight = self.in_flight.iter_mut();
                if let Some(flight) = in_flight.find(|flight| flight.task == task) {
                    flight.trip.accept_answer(reply);
                }
                self.finish_partition(task, port)
            }
        }
    }

    /// Samples the long documents of one shard, or one partition whose rows are there; returns
    /// whether there was any. Requests that wait should be sent before this is called.
    pub(in super::super) fn work(&mut self, port: &mut dyn Port) -> Result<bool, Failed> {
        let Self { setup, placement: Some(placement), shards, sampler, in_flight, .. } = self
        else {
            return Ok(false);
        };
        let setup = &*setup;
        let Setup { spec, options, .. } = setup;
        let (round, totals) = (self.round, &self.totals[..]);
        let context = RoundContext { spec, round, totals, passes: options.passes };
        if let Some(shard) = self.long_documents.pop_front() {
            shards[shard].sample_documents(sampler, &context);
            if self.long_documents.is_empty() {
                self.advance(port)?;
            }
            return Ok(true);
        }
        let Some(flight) = in_flight.iter_mut().find(|flight| flight.trip.is_ready()) else {
            return Ok(false);
        };
        let (task, run) = (flight.task, setup.trip(placement));
        let sampled = flight.trip.sample(run, &mut shards[task.shard], sampler, &context)?;
        let Some(Sampled { deltas, .. }) = sampled else { return Ok(false) };
        for request in deltas {
            self.send(task, &request, RequestPurpose::Deltas(task.round), port);
            *self.unacknowledged.entry(task.round).or_default() += 1;
        }
        self.finish_partition(task, port)?;
        Ok(true)
    }

    /// Ends the trip of a partition if it is done; then the shard's next partition may push.
    fn finish_partition(&mut self, task: PartitionTask, port: &mut dyn Port) -> Result<(), Failed> {
        let Self { setup, placement: Some(placement), shards, in_flight, .. } = self else {
            return Ok(());
        };
        let is_done = |flight: &PartitionInFlight| flight.task == task && flight.trip.is_done();
        let Some(at) = in_flight.iter().position(is_done) else { return Ok(()) };
        let Some(flight) = in_flight.remove(at) else { return Ok(()) };
        flight.trip.finish(setup.trip(placement), &mut shards[task.shard])?;
        self.push_next(task.shard, port);
        self.advance(port)
    }
}
