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
use super::super::{Failed, MASTER, Port};
use super::{RequestPurpose, Worker};
use crate::documents::Documents;
use crate::partition_sampler::SliceRows;
use crate::plan::{group, needs_sizes, routes};
use crate::request::{self, put_routes, size_of_byte};
use crate::route::Route;
use crate::shard::{Plan, Shard};
use crate::spec::Round;
use crate::stats::Bytes;
use crate::wire::PushCode;

/// A partition of a shard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PartitionTask {
    pub round: Round,
    /// Among this worker's shards.
    pub shard: usize,
    pub partition: u16,
}

/// A partition that is underway.
#[derive(Debug)]
pub(super) struct PartitionInFlight {
    task: PartitionTask,
    /// From when they are known until its turn.
    routes: Option<Vec<Route>>,
    /// From its turn on.
    plan: Option<Plan>,
    pulled: RowsState,
    answer: Option<Frame>,
}

/// What becomes of tokens whose rows are pulled.
#[derive(Debug)]
enum RowsState {
    /// Rows of some slices have come.
    Awaited(Vec<Option<Frame>>),
    /// Of all slices.
    There(Vec<Frame>),
    Sampled,
}

impl RowsState {
    /// Rows of the slice at this place have come.
    fn put(&mut self, at: usize, frame: Frame) {
        let Self::Awaited(slices) = self else { return };
        if let Some(slice) = slices.get_mut(at) {
            *slice = Some(frame);
        }
        if slices.iter().all(Option::is_some) {
            *self = Self::There(slices.drain(..).flatten().collect());
        }
    }
}

impl PartitionInFlight {
    fn new(task: PartitionTask) -> Self {
        Self {
            task,
            routes: None,
            plan: None,
            pulled: RowsState::Awaited(Vec::new()),
            answer: None,
        }
    }

    /// Whether its tokens can be sampled here.
    fn has_work(&self) -> bool {
        self.plan.is_some() && matches!(self.pulled, RowsState::There(_))
    }

    /// Whether all tokens have their topics, but for those that the answer has.
    fn is_done(&self) -> bool {
        self.plan.is_some() && matches!(self.pulled, RowsState::Sampled) && self.answer.is_some()
    }
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
                self.in_flight.push_back(PartitionInFlight::new(task));
                self.start_partition(task, port)?;
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
            shard.begin_round(&self.totals, self.setup.options.staleness)?;
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

    /// Asks for what does not depend on the partitions before.
    fn start_partition(&mut self, task: PartitionTask, port: &mut dyn Port) -> Result<(), Failed> {
        let Self { setup, placement: Some(placement), shards, .. } = self else { return Ok(()) };
        let partition = task.partition;
        if needs_sizes(&setup.options, placement, partition) {
            self.ask(task, partition, request::Kind::Sizes, &[], RequestPurpose::Sizes(task), port);
            return Ok(());
        }
        let routes = routes(&setup.options, placement, &shards[task.shard], partition, &[]);
        self.pull(task, routes, port)
    }

    /// Slices of a partition, by topics.
    fn slices(&self, task: PartitionTask) -> Vec<u16> {
        let Some(placement) = &self.placement else { return Vec::new() };
        placement.slices(task.partition.into()).map(|slice| slice as u16).collect()
    }

    /// Asks for rows.
    fn pull(
        &mut self,
        task: PartitionTask,
        routes: Vec<Route>,
        port: &mut dyn Port,
    ) -> Result<(), Failed> {
        let slices = self.slices(task);
        let Some(flight) = self.in_flight.iter_mut().find(|flight| flight.task == task) else {
            return Ok(());
        };
        if routes.contains(&Route::Pull) {
            let mut body = Vec::new();
            put_routes(&routes, &mut body);
            flight.routes = Some(routes);
            flight.pulled = RowsState::Awaited(vec![None; slices.len()]);
            for (at, slice) in (0..).zip(slices) {
                self.ask(
                    task,
                    slice,
                    request::Kind::Pull,
                    &body,
                    RequestPurpose::Rows(task, at),
                    port,
                );
            }
        } else {
            flight.routes = Some(routes);
            flight.pulled = RowsState::Sampled;
        }
        self.push_next(task.shard, port);
        Ok(())
    }

    /// Pushes documents of the partition of a shard whose turn it is, once its routes are known.
    fn push_next(&mut self, shard: usize, port: &mut dyn Port) {
        let first = self.in_flight.iter_mut().find(|flight| flight.task.shard == shard);
        let Some(flight) = first.filter(|flight| flight.task.round == self.round) else { return };
        let Some(routes) = flight.routes.take() else { return };
        let task = flight.task;
        let plan = self.shards[shard].request(task.partition, routes);
        let code = self.code(&plan);
        let mut body = Vec::new();
        plan.pushed.iter().for_each(|document| code.encode(document, &mut body));
        let first = self.in_flight.iter_mut().find(|flight| flight.task == task);
        let flight = first.expect("it is underway");
        flight.answer = plan.pushed.is_empty().then(|| Vec::new().into());
        flight.plan = Some(plan);
        let plans = self.in_flight.iter().filter_map(|flight| flight.plan.as_ref());
        self.planned = self.planned.max(plans.map(Plan::memory).sum());
        if !body.is_empty() {
            self.ask(
                task,
                task.partition,
                request::Kind::Push,
                &body,
                RequestPurpose::Answer(task),
                port,
            );
        }
    }

    fn code(&self, plan: &Plan) -> PushCode {
        let words = plan.routes.len() as u32;
        PushCode::new(self.setup.spec.topics(), words, self.setup.options.max_pushed_len)
    }

    /// Asks the server of a slice of a partition.
    fn ask(
        &mut self,
        task: PartitionTask,
        slice: u16,
        kind: request::Kind,
        body: &[u8],
        what: RequestPurpose,
        port: &mut dyn Port,
    ) {
        let Some(placement) = &self.placement else { return };
        let PartitionTask { round, shard, .. } = task;
        let mut bytes = Vec::new();
        request::begin(kind, &self.shards[shard].header(slice, round), &mut bytes);
        bytes.extend_from_slice(body);
        self.bytes.count_request(kind, bytes.len() as u64);
        let server = self.setup.server(placement.server(slice.into()));
        let how = match kind {
            request::Kind::Sizes | request::Kind::Pull => RequestKind::Pull,
            request::Kind::Push => RequestKind::Call,
            request::Kind::Join | request::Kind::PushDeltas => RequestKind::Push,
        };
        self.requests.send(port, server, how, &bytes, what);
    }

    /// A server has done what it was asked.
    pub(super) fn ended(
        &mut self,
        what: RequestPurpose,
        request: RequestId,
        frame: Frame,
        port: &mut dyn Port,
    ) -> Result<(), Failed> {
        let Bytes { sizes, answers, rows, .. } = &mut self.bytes;
        let len = frame.len() as u64;
        match what {
            RequestPurpose::Join(round) | RequestPurpose::Deltas(round) => {
                if let Some(left) = self.unacknowledged.get_mut(&round) {
                    *left = left.saturating_sub(1);
                }
                self.join(port);
                self.report_done(port);
                Ok(())
            }
            RequestPurpose::Sizes(task) => {
                *sizes += len;
                let shard = &self.shards[task.shard];
                let (found, words) = (frame.len(), shard.words(task.partition).len());
                if found != words {
                    let what = format!("{found} sizes of {words} words");
                    return Err(Failed::Message { peer: request.peer, what });
                }
                let sizes: Vec<u32> = frame.iter().map(|&byte| size_of_byte(byte)).collect();
                let Some(placement) = &self.placement else { return Ok(()) };
                let routes = routes(&self.setup.options, placement, shard, task.partition, &sizes);
                self.pull(task, routes, port)
            }
            RequestPurpose::Rows(task, at) => {
                *rows += len;
                let mut in_flight = self.in_flight.iter_mut();
                if let Some(flight) = in_flight.find(|flight| flight.task == task) {
                    flight.pulled.put(usize::from(at), frame);
                }
                Ok(())
            }
            RequestPurpose::Answer(task) => {
                *answers += len;
                let mut in_flight = self.in_flight.iter_mut();
                if let Some(flight) = in_flight.find(|flight| flight.task == task) {
                    flight.answer = Some(frame);
                }
                self.finish_partition(task, port)
            }
        }
    }

    /// Samples a partition whose rows have come and whose turn it is, and before it long documents by themselves; false
    /// where there is none. What was asked before should have left by then.
    pub(in super::super) fn work(&mut self, port: &mut dyn Port) -> Result<bool, Failed> {
        if let Some(shard) = self.long_documents.pop_front() {
            let Self { setup, shards, sampler, totals, round, .. } = self;
            shards[shard].sample_documents(sampler, &setup.spec, *round, totals);
            if self.long_documents.is_empty() {
                self.advance(port)?;
            }
            return Ok(true);
        }
        let Some(flight) = self.in_flight.iter_mut().find(|flight| flight.has_work()) else {
            return Ok(false);
        };
        let PartitionInFlight { task, plan: Some(plan), pulled, .. } = flight else {
            return Ok(false);
        };
        let (task, before) = (*task, std::mem::replace(pulled, RowsState::Sampled));
        let RowsState::There(rows) = before else { return Ok(false) };
        let Self { setup, placement: Some(placement), shards, sampler, totals, round, .. } = self
        else {
            return Ok(false);
        };
        let mut body = Vec::new();
        put_routes(&plan.routes, &mut body);
        let numbers = placement.slices(task.partition.into());
        let topics = numbers.map(|slice| placement.slice(slice, setup.spec.topics()).1);
        let of_slice = |(topics, rows)| SliceRows { topics, rows, deltas: body.clone() };
        let mut slices: Vec<SliceRows<'_>> =
            topics.zip(rows.iter().map(|it| &it[..])).map(of_slice).collect();
        let shard = &mut shards[task.shard];
        let (spec, passes) = (&setup.spec, setup.options.passes);
        shard.sample(sampler, spec, *round, task.partition, plan, passes, totals, &mut slices)?;
        let gained: Vec<Vec<u8>> = slices.into_iter().map(|slice| slice.deltas).collect();
        for (slice, gained) in self.slices(task).into_iter().zip(gained) {
            let what = RequestPurpose::Deltas(task.round);
            self.ask(task, slice, request::Kind::PushDeltas, &gained, what, port);
            *self.unacknowledged.entry(task.round).or_default() += 1;
        }
        self.finish_partition(task, port)?;
        Ok(true)
    }

    /// Ends a partition, if all of it is done: then the next of its shard has its turn.
    fn finish_partition(&mut self, task: PartitionTask, port: &mut dyn Port) -> Result<(), Failed> {
        let done = |flight: &PartitionInFlight| flight.task == task && flight.is_done();
        let Some(at) = self.in_flight.iter().position(done) else { return Ok(()) };
        let Some(PartitionInFlight { plan: Some(plan), answer: Some(answer), .. }) =
            self.in_flight.remove(at)
        else {
            return Ok(());
        };
        let code = self.code(&plan);
        self.shards[task.shard].answered(code, task.partition, &plan, &answer)?;
        self.push_next(task.shard, port);
        self.advance(port)
    }
}
