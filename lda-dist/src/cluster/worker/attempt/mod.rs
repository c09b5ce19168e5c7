//! An attempt at a worker: rounds, and the partitions of its shards, some of which are in flight.
//!
//! Rows and their sizes are those of the round's start, whenever they are requested, so rows of the
//! next partitions are pulled while one is sampled. Documents are pushed later, when the shard's
//! earlier partitions are finished, because rows of C_d travel with them and the earlier partitions
//! change these. While the answer to a push is in flight, the worker samples the partition's pulled
//! words, and partitions of other shards. Deltas are pushed as soon as a partition is sampled. Long
//! documents are sampled while the first rows of the epoch are in flight. None of this changes a
//! bit of the result. [`Trip`] has the steps of one partition.
//!
//! Rows of [hot words](crate::placement) come from several servers and are sampled when all are
//! there. Their sizes are not requested, as they are always pulled.
//!
//! With a [staleness](crate::config::Options::sync) this continues across rounds: rows of the
//! next round are pulled while the last partitions of this round are sampled, and deltas of this
//! round are still in flight then. An epoch starts with nothing in flight, because sizes of C_d
//! rows are measured then, from which the routes of words follow.

mod flight;
mod sampling;

use std::collections::{BTreeMap, VecDeque};

use lda_core::counts::TopicIndex;
use lda_core::prior::learn::CountHistograms;
use lda_transport::Frame;
use lda_transport::rpc::{FailureReason, Outcome, RequestId, RequestKind};

use super::super::control::{Control, WorkerEpochStats};
use super::super::epoch_range::EpochRange;
use super::super::request_queue::RequestQueue;
use super::super::{Failed, MASTER, Setup, Waited, outcome};
use super::Node;
use super::WorkerState;
use super::join::JoinQueue;
use super::memory_checkpoints::MemoryCheckpoints;
use super::reports::{Reports, SampledRound};
use super::snapshots::Snapshots;
use super::tasks::{PartitionTask, TaskQueue};
use crate::config::Options;
use crate::held_rows::{HeldRows, RowsRequest};
use crate::placement::Placement;
use crate::plan::{group, rows_may_stay};
use crate::priors::Priors;
use crate::request;
use crate::shard::{AnswerError, Shard, ShardState};
use crate::spans::{Span, span};
use crate::spec::{ModelSpec, Round, SpecError};
use crate::trip::{Trip, TripRequest};
use flight::{PartitionInFlight, Source};
use sampling::turns;

/// Purpose of a request to a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RequestPurpose {
    Join(Round),
    Deltas(Round),
    Sizes(PartitionTask),
    /// Rows: the reply to the request at this position.
    Rows(PartitionTask, u32),
    Answer(PartitionTask),
}

/// Duties of a worker after a round.
#[derive(Clone, Copy, Debug)]
pub(super) struct AfterRound {
    /// To write the topics.
    pub write: bool,
    /// To push all changes of rows.
    pub push: bool,
}

/// Start of a round.
#[derive(Debug)]
pub(super) struct RoundStart {
    /// Delta of C_k since the round before.
    pub delta: Vec<(u32, i32)>,
    /// Priors of the epoch, if it starts and priors are learnt.
    pub priors: Option<Priors>,
}

/// State of one attempt. A restart drops it.
#[derive(Debug)]
pub(super) struct Attempt<T: TopicIndex> {
    placement: Placement,
    /// For each partition, whether its [rows stay](crate::held_rows) here.
    stays: Vec<bool>,
    /// The model with the priors of the current epoch.
    spec: ModelSpec,
    shards: Vec<Shard<T>>,
    memory_checkpoints: MemoryCheckpoints<T>,
    pub snapshots: Snapshots,
    /// The last epoch after which the master wants snapshots.
    writes_after: u32,
    /// The last epoch after which servers must have all changes of rows.
    pushes_after: u32,
    /// Requests to servers.
    pub requests: RequestQueue<RequestPurpose>,
    joins: JoinQueue,
    /// The round that this worker samples, or has sampled last.
    round: Round,
    /// C_k at the start of `round`.
    totals: Vec<u32>,
    /// Span of `round` while a part of it is still to be sampled.
    sampling: Option<Span>,
    /// Later rounds that may start, in the order of rounds. Messages may arrive in any order.
    may_begin: BTreeMap<Round, RoundStart>,
    tasks: TaskQueue,
    /// Shards whose long documents are sampled before any partition.
    long_documents: VecDeque<usize>,
    /// Partitions in flight; those of a shard are in the order in which it samples them.
    in_flight: VecDeque<PartitionInFlight<T>>,
    /// Rows that stay here, by partition, while none of the shards samples them.
    held: BTreeMap<u16, HeldRows<T>>,
    /// Partitions of which servers must have all changes before the next epoch.
    to_push: VecDeque<u16>,
    reports: Reports,
    /// Statistics of the current epoch so far.
    epoch_stats: WorkerEpochStats,
}

impl<T: TopicIndex> Attempt<T> {
    /// Creates an attempt that continues from the topics of the shards; nothing is sent yet. `placed` are
    /// the placement of words, and for each partition whether its rows stay here.
    pub fn new(
        setup: &Setup,
        round: Round,
        placed: (Placement, Vec<bool>),
        state: WorkerState<T>,
        snapshots: Snapshots,
        max_join_bytes: usize,
    ) -> Self {
        let (placement, stays) = placed;
        let WorkerState { shards, memory_checkpoints, spec } = state;
        let joins = JoinQueue::new(shards.len(), placement.num_slices() as u16, max_join_bytes);
        let mut reports = Reports::default();
        reports.add(SampledRound {
            round,
            delta: Vec::new(),
            priors: (!spec.updates().is_none()).then(|| spec.priors()),
            documents: match round.joins_after() {
                Some(0) => document_histograms(&spec, round.epoch, &shards),
                _ => None,
            },
            epoch_stats: None,
        });
        // Requests that are not sent yet are not acknowledged either.
        reports.expect(round, joins.len());
        Self {
            totals: vec![0; setup.spec.topics() as usize],
            placement,
            stays,
            spec,
            shards,
            memory_checkpoints,
            snapshots,
            writes_after: 0,
            pushes_after: 0,
            requests: RequestQueue::default(),
            joins,
            round,
            sampling: None,
            may_begin: BTreeMap::new(),
            tasks: TaskQueue::new(round),
            long_documents: VecDeque::new(),
            in_flight: VecDeque::new(),
            held: BTreeMap::new(),
            to_push: VecDeque::new(),
            reports,
            epoch_stats: WorkerEpochStats::default(),
        }
    }

    /// The placement of words by which the shards are laid out.
    pub fn placement(&self) -> &Placement {
        &self.placement
    }

    /// The state for another attempt.
    pub fn into_state(self) -> WorkerState<T> {
        let Self { shards, memory_checkpoints, spec, .. } = self;
        WorkerState { shards, memory_checkpoints, spec }
    }

    /// Epochs whose topics are in memory.
    pub fn epochs_in_memory(&self) -> EpochRange {
        self.memory_checkpoints.epochs()
    }

    /// Shards of this worker.
    pub fn shards(&self) -> &[Shard<T>] {
        &self.shards
    }

    /// The round that is sampled here, or was the last.
    pub fn round(&self) -> Round {
        self.round
    }

    /// Returns whether nothing is left to do until the master starts another round.
    pub fn is_done(&self) -> bool {
        self.sampling.is_none() && self.reports.is_empty()
    }

    /// Adds time without work to the epoch's statistics.
    pub fn add_waited(&mut self, waited: &Waited) {
        self.epoch_stats.waited.add(waited);
    }

    /// The master allows a round to start.
    pub fn begin(
        &mut self,
        round: Round,
        after: AfterRound,
        start: RoundStart,
        node: &mut Node<'_, T>,
    ) -> Result<(), Failed> {
        if after.write {
            self.writes_after = round.epoch;
        }
        if after.push {
            self.pushes_after = round.epoch;
        }
        if round.number >= node.setup.options.sync.staleness() {
            // All workers have ended the epoch before, and the master has reported it.
            self.memory_checkpoints.forget_before(round.epoch.saturating_sub(1));
        }
        self.may_begin.insert(round, start);
        self.advance(node)
    }

    /// Sends the shards' counts to servers, as many bytes as may be in flight.
    pub fn join(&mut self, node: &mut Node<'_, T>) {
        while let Some((shard, slice)) = self.joins.pop(self.requests.bytes()) {
            let mut body = Vec::new();
            let spec = &node.setup.spec;
            self.shards[shard].join(spec, &self.placement, slice, self.round, &mut body);
            let server = node.setup.server(self.placement.server(slice.into()));
            let purpose = RequestPurpose::Join(self.round);
            self.requests.send(node.port, server, RequestKind::Push, &body, purpose);
        }
    }

    /// Starts partitions, as many as may be in flight, and ends and starts rounds.
    fn advance(&mut self, node: &mut Node<'_, T>) -> Result<(), Failed> {
        loop {
            while self.requested() < node.setup.max_partitions_in_flight(self.shards.len()) {
                if self.tasks.is_empty() && !self.queue_next_round(node.setup) {
                    break;
                }
                let Some(task) = self.tasks.pop() else { continue };
                self.start_partition(task, node);
            }
            if self.sampling.is_some() && self.is_sampled() {
                self.sampling = None;
                let is_last = self.round.is_last(node.setup.options.rounds);
                if is_last && self.pushes_at_end(&node.setup.options) {
                    self.push_held_rows(node);
                }
                let delta = self.round_delta(node.setup)?;
                let epoch_stats = self.take_epoch_stats(node);
                let (round, epoch) = (self.round, self.round.epoch);
                let mut documents = None;
                if is_last {
                    let Self { memory_checkpoints, shards, spec, .. } = self;
                    let mut states: Vec<_> =
                        shards.iter().map(|it| (it, ShardState::default())).collect();
                    let gather = |it: &mut (&Shard<T>, _)| it.1 = it.0.tokens().state();
                    node.samplers.for_each(&mut states, gather);
                    let states = states.into_iter().map(|(it, state)| (it.number(), state));
                    memory_checkpoints.add(epoch, states.collect(), spec.priors());
                    if self.writes_after == epoch {
                        self.snapshots.write((epoch, spec), shards, node);
                    }
                    documents = document_histograms(spec, epoch, shards);
                }
                let priors = None;
                self.reports.add(SampledRound { round, delta, priors, documents, epoch_stats });
            }
            let is_busy = self.sampling.is_some() || !self.to_push.is_empty();
            if is_busy || !self.start_next_round(node)? {
                break;
            }
        }
        self.report_done(node);
        Ok(())
    }

    /// Number of partitions in flight whose rows were not here when they started.
    fn requested(&self) -> usize {
        self.in_flight.iter().filter(|flight| flight.is_requested).count()
    }

    /// Returns whether nothing of this round is left to sample.
    fn is_sampled(&self) -> bool {
        let left = self.tasks.iter().chain(self.in_flight.iter().map(|flight| &flight.task));
        self.long_documents.is_empty() && !left.into_iter().any(|task| task.round == self.round)
    }

    /// Queues the partitions of the next round of this epoch, if it may start already.
    fn queue_next_round(&mut self, setup: &Setup) -> bool {
        let next = self.tasks.last().next(setup.options.rounds);
        let may_begin = next.epoch == self.round.epoch && self.may_begin.contains_key(&next);
        if may_begin {
            self.queue_round(next, setup);
        }
        may_begin
    }

    /// Queues the partitions of a round. Those whose rows stay are queued for shards that sample none of their
    /// tokens too, as it may be their turn to push.
    fn queue_round(&mut self, round: Round, setup: &Setup) {
        let Self { tasks, placement, stays, shards, .. } = self;
        tasks.add_round(round, shards, |shard| {
            let group = group(&setup.options, placement, shard.number(), round.number);
            group.filter(|&it| stays[usize::from(it)] || shard.samples(it)).collect()
        });
    }

    /// Returns whether all changes of rows are pushed at the end of the current epoch. Rows do not stay for an
    /// epoch that excludes converged tokens, as its words are not known before.
    fn pushes_at_end(&self, options: &Options) -> bool {
        let epoch = self.round.epoch;
        self.pushes_after == epoch || options.excludes_in(epoch + 1)
    }

    /// Changes of C_k in this round by all shards, if servers do not have them all at its end.
    fn round_delta(&self, setup: &Setup) -> Result<Vec<(u32, i32)>, Failed> {
        if !rows_may_stay(&setup.options) {
            return Ok(Vec::new());
        }
        let mut by_topic = vec![0i64; self.totals.len()];
        for shard in &self.shards {
            let changes = shard.round_changes();
            by_topic.iter_mut().zip(changes).for_each(|(all, by)| *all += i64::from(by));
        }
        let changed = (0..).zip(by_topic).filter(|(_, by)| *by != 0);
        let delta = changed.map(|(topic, by)| i32::try_from(by).map(|by| (topic, by)));
        delta.collect::<Result<_, _>>().map_err(|_| Failed::Message {
            peer: MASTER,
            what: "a round in which a topic gains or loses 2^31 tokens".to_owned(),
        })
    }

    /// Starts to sample the next round; returns false if it may not start yet.
    fn start_next_round(&mut self, node: &mut Node<'_, T>) -> Result<bool, Failed> {
        let Setup { spec, options, .. } = node.setup;
        let round = self.round.next(options.rounds);
        let Some(start) = self.may_begin.remove(&round) else { return Ok(false) };
        let RoundStart { delta, priors } = start;
        self.add_to_totals(&delta)?;
        self.round = round;
        self.sampling = Some(span!(INFO, "round", epoch = round.epoch, round = round.number));
        if round.number == 0 {
            if let Some(priors) = priors {
                let spec = spec.with_priors(&priors);
                let unexpected = |error: SpecError| Failed::Message {
                    peer: MASTER,
                    what: format!("priors: {error}"),
                };
                self.spec = spec.map_err(unexpected)?;
            }
            if let Some(spec) = self.spec.by_size(&self.totals) {
                self.spec = spec;
            }
            let is_long = |index: &usize| self.shards[*index].has_long();
            self.long_documents.extend((0..self.shards.len()).filter(is_long));
            let begin = |shard: &mut Shard<T>| shard.begin_epoch(spec, options, round.epoch);
            node.samplers.for_each(&mut self.shards, begin);
            let sampled = self.shards.iter().map(Shard::num_sampled).sum::<usize>();
            self.epoch_stats.sampled = sampled as u64;
            if options.excludes_in(round.epoch) {
                // They may lack words of this epoch.
                self.held.clear();
            }
        }
        let ahead =
            if options.sync.reads_newest() { self.add_later_totals(options.rounds)? } else { 0 };
        let lacking =
            if spec.waits_before(round) { 0 } else { options.sync.own_rounds_lacking(ahead) };
        for shard in &mut self.shards {
            shard.begin_round(&self.totals, lacking)?;
        }
        if self.tasks.last() < round {
            self.queue_round(round, node.setup);
        }
        (0..self.shards.len()).for_each(|shard| self.push_next(shard, node));
        Ok(true)
    }

    /// Adds changes of C_k.
    fn add_to_totals(&mut self, delta: &[(u32, i32)]) -> Result<(), Failed> {
        for &(topic, by) in delta {
            let total = &mut self.totals[topic as usize];
            *total = total.checked_add_signed(by).ok_or_else(|| Failed::Message {
                peer: MASTER,
                what: "totals below 0".to_owned(),
            })?;
        }
        Ok(())
    }

    /// Adds the changes of C_k that have arrived with the starts of later rounds of this epoch; returns the
    /// number of these rounds. An epoch's first totals are the same at all nodes, as
    /// [α by size](ModelSpec::by_size) follows from them.
    fn add_later_totals(&mut self, rounds: u16) -> Result<usize, Failed> {
        let mut next = self.round.next(rounds);
        let mut ahead = 0;
        while next.epoch == self.round.epoch
            && let Some(start) = self.may_begin.get_mut(&next)
        {
            let delta = std::mem::take(&mut start.delta);
            self.add_to_totals(&delta)?;
            next = next.next(rounds);
            ahead += 1;
        }
        Ok(ahead)
    }

    /// Reports rounds to the master that servers have acknowledged, in order.
    fn report_done(&mut self, node: &mut Node<'_, T>) {
        while let Some(sampled) = self.reports.pop() {
            let SampledRound { round, delta, priors, documents, epoch_stats } = sampled;
            self.snapshots.note_written(node.storage);
            let kept = self.snapshots.kept();
            let writing = node.storage.is_busy();
            let done =
                Control::RoundDone { round, kept, writing, delta, priors, documents, epoch_stats };
            node.link.send(&done, node.setup, node.port);
        }
    }

    /// Takes the statistics of the epoch after its last round.
    fn take_epoch_stats(&mut self, node: &mut Node<'_, T>) -> Option<WorkerEpochStats> {
        if !self.round.is_last(node.setup.options.rounds) {
            return None;
        }
        let mut stats = std::mem::take(&mut self.epoch_stats);
        if node.setup.evaluates(self.round.epoch) {
            let mut parts: Vec<_> = self.shards.iter().map(|shard| (shard, (0, 0.0))).collect();
            node.samplers.for_each(&mut parts, |(shard, part)| {
                *part = (shard.number(), shard.tokens().log_joint(&self.spec));
            });
            stats.parts = parts.into_iter().map(|(_, part)| part).collect();
            stats.non_zeros = self.shards.iter().map(|shard| shard.tokens().non_zeros()).sum();
        }
        stats.memory = self.memory_with(node);
        Some(stats)
    }

    /// Removes snapshots of epochs before `needed`.
    pub fn remove_old(&mut self, needed: u32, node: &mut Node<'_, T>) {
        self.snapshots.remove_old(needed, &self.shards, node);
    }

    /// Removes snapshots within epochs before this one, or all of them.
    pub fn remove_mid_epoch(&mut self, before: Option<u32>, node: &mut Node<'_, T>) {
        self.snapshots.remove_mid_epoch(before, &self.shards, node);
    }

    /// Writes the topics of the epoch that is done, and waits until they are written. Returns the
    /// last epoch that is written.
    pub fn write_snapshots_now(&mut self, node: &mut Node<'_, T>) -> u32 {
        self.snapshots.write_now((self.round.epoch, &self.spec), &self.shards, node);
        self.snapshots.kept()
    }

    /// Writes the state of the shards after the round that is done, within an epoch, and waits until it is
    /// written; returns whether it is.
    pub fn write_mid_epoch_now(&mut self, node: &mut Node<'_, T>) -> bool {
        self.snapshots.write_mid_epoch_now((self.round, &self.spec), &self.shards, node)
    }

    /// Takes the statistics of the epoch so far.
    pub fn take_stats_so_far(&mut self, node: &Node<'_, T>) -> WorkerEpochStats {
        let memory = self.memory_with(node);
        WorkerEpochStats { memory, ..std::mem::take(&mut self.epoch_stats) }
    }

    /// Bytes held by this worker.
    fn memory_with(&self, node: &Node<'_, T>) -> u64 {
        (node.samplers.memory() + *node.planned) as u64 + self.memory()
    }

    /// Bytes held by the shards, their checkpoints in memory, and rows that stay here.
    pub fn memory(&self) -> u64 {
        let shards: usize = self.shards.iter().map(Shard::memory).sum();
        let shards = shards + self.memory_checkpoints.memory();
        let in_flight = self.in_flight.iter().filter_map(|flight| match &flight.source {
            Source::Held(rows) => Some(rows.memory()),
            _ => None,
        });
        (shards + self.held.values().map(HeldRows::memory).chain(in_flight).sum::<usize>()) as u64
    }

    /// Starts a partition: requests its rows, if they are not here.
    fn start_partition(&mut self, task: PartitionTask, node: &mut Node<'_, T>) {
        if self.stays[usize::from(task.partition)] {
            return self.start_visit(task, node);
        }
        let shard = &self.shards[task.shard];
        let mut trip = Trip::new(shard.number(), task.partition, task.round);
        let request = trip.start(node.setup.trip(&self.placement), shard);
        self.in_flight.push_back(PartitionInFlight::requested(task, Source::Trip(trip)));
        match request {
            Some(sizes) => self.send(&sizes, RequestPurpose::Sizes(task), node),
            None => self.pull(task, node),
        }
    }

    /// Starts a partition whose rows stay here after this shard has sampled it, or came from the shard
    /// before.
    fn start_visit(&mut self, task: PartitionTask, node: &mut Node<'_, T>) {
        if let Some(rows) = self.held.remove(&task.partition) {
            self.in_flight.push_back(PartitionInFlight::held(task, rows));
            return;
        }
        if !self.shards[task.shard].samples(task.partition) {
            return;
        }
        let cx = node.setup.trip(&self.placement);
        let turns = turns(task, &node.setup.options, &self.shards);
        let turns: Vec<&Shard<T>> = turns.into_iter().map(|index| &self.shards[index]).collect();
        let mut request = RowsRequest::new(cx, task.partition, &turns);
        let requests = request.requests(cx, task.round);
        self.in_flight.push_back(PartitionInFlight::requested(task, Source::Requested(request)));
        for (position, request) in (0..).zip(requests) {
            self.send(&request, RequestPurpose::Rows(task, position), node);
        }
    }

    fn flight(&mut self, task: PartitionTask) -> Option<&mut PartitionInFlight<T>> {
        self.in_flight.iter_mut().find(|flight| flight.task == task)
    }

    /// Requests the rows of a partition whose routes are known, and pushes its documents if it is
    /// the shard's first.
    fn pull(&mut self, task: PartitionTask, node: &mut Node<'_, T>) {
        let Self { placement, in_flight, .. } = self;
        let flight = in_flight.iter_mut().find(|flight| flight.task == task);
        let Some(trip) = flight.and_then(PartitionInFlight::trip) else { return };
        for (position, request) in (0..).zip(trip.pull(node.setup.trip(placement))) {
            self.send(&request, RequestPurpose::Rows(task, position), node);
        }
        self.push_next(task.shard, node);
    }

    /// Pushes the documents of a shard's first partition in flight, once its routes are known.
    fn push_next(&mut self, shard: usize, node: &mut Node<'_, T>) {
        let Self { placement, shards, in_flight, round, .. } = self;
        let first = in_flight.iter_mut().find(|flight| flight.task.shard == shard);
        let Some(flight) = first.filter(|flight| flight.task.round == *round) else { return };
        let task = flight.task;
        let Some(trip) = flight.trip().filter(|trip| trip.awaits_push()) else { return };
        let request = trip.push(node.setup.trip(placement), &shards[shard]);
        let planned: usize = in_flight.iter().map(PartitionInFlight::planned).sum();
        *node.planned = planned.max(*node.planned);
        if let Some(request) = request {
            self.send(&request, RequestPurpose::Answer(task), node);
        }
    }

    /// Sends a request of a trip.
    fn send(&mut self, request: &TripRequest, purpose: RequestPurpose, node: &mut Node<'_, T>) {
        let kind = request.kind;
        let bytes = request.encode();
        self.epoch_stats.bytes.count_request(kind, bytes.len() as u64);
        let server = node.setup.server(self.placement.server(request.slice()));
        let how = match kind {
            request::Kind::Sizes | request::Kind::Pull => RequestKind::Pull,
            request::Kind::Push => RequestKind::Call,
            request::Kind::Join | request::Kind::PushDeltas | request::Kind::PushRows => {
                RequestKind::Push
            }
        };
        self.requests.send(node.port, server, how, &bytes, purpose);
    }

    /// A request to a server has ended.
    pub fn ended(
        &mut self,
        request: RequestId,
        how: Outcome,
        node: &mut Node<'_, T>,
    ) -> Result<(), Failed> {
        // Unknown requests are those of an earlier attempt.
        let Some(purpose) = self.requests.ended(node.port, request) else { return Ok(()) };
        let lost = matches!(how, Outcome::Unknown { reason: FailureReason::NewIncarnation, .. });
        match outcome(request, how)? {
            Some(reply) => self.accept(purpose, request, reply, node),
            None if lost => {
                // The server has crashed since. The server in its place may be in this attempt
                // already, if the master noticed the restart before this node did.
                self.requests.clear();
                let restart = Control::RestartRequest { attempt: self.round.attempt };
                node.link.send(&restart, node.setup, node.port);
                Ok(())
            }
            // The server is in another attempt, which will reach this node as well; or it is refused, and
            // counts as lost.
            None => Ok(()),
        }
    }

    /// Accepts a server's reply.
    fn accept(
        &mut self,
        purpose: RequestPurpose,
        request: RequestId,
        reply: Frame,
        node: &mut Node<'_, T>,
    ) -> Result<(), Failed> {
        let (bytes, len) = (&mut self.epoch_stats.bytes, reply.len() as u64);
        match purpose {
            RequestPurpose::Join(round) => {
                self.reports.acknowledge(round);
                self.join(node);
                self.report_done(node);
            }
            RequestPurpose::Deltas(round) => {
                self.reports.acknowledge(round);
                if self.to_push.is_empty() {
                    self.report_done(node);
                } else {
                    self.push_more(node);
                    self.advance(node)?;
                }
            }
            RequestPurpose::Sizes(task) => {
                bytes.count_reply(request::Kind::Sizes, len);
                let Self { placement, shards, in_flight, .. } = self;
                let flight = in_flight.iter_mut().find(|flight| flight.task == task);
                let Some(trip) = flight.and_then(PartitionInFlight::trip) else { return Ok(()) };
                let (run, shard) = (node.setup.trip(placement), &shards[task.shard]);
                let failed = |error: AnswerError| Failed::Message {
                    peer: request.peer,
                    what: error.to_string(),
                };
                trip.accept_sizes(run, shard, &reply).map_err(failed)?;
                self.pull(task, node);
            }
            RequestPurpose::Rows(task, position) => {
                bytes.count_reply(request::Kind::Pull, len);
                if let Some(flight) = self.flight(task) {
                    flight.source.accept_rows(position as usize, reply);
                }
            }
            RequestPurpose::Answer(task) => {
                bytes.count_reply(request::Kind::Push, len);
                if let Some(trip) = self.flight(task).and_then(PartitionInFlight::trip) {
                    trip.accept_answer(reply);
                }
                self.finish_partition(task, node)?;
            }
        }
        Ok(())
    }
}

/// Histograms of the shards' C_d at the end of an epoch, if α is learnt from them.
fn document_histograms<T: TopicIndex>(
    spec: &ModelSpec,
    epoch: u32,
    shards: &[Shard<T>],
) -> Option<Box<CountHistograms>> {
    let learn = spec.updates().due_after(epoch)?;
    let mut documents = learn.document_histograms(spec.topics() as usize)?;
    shards.iter().for_each(|shard| shard.tokens().add_to(&mut documents));
    documents.merge();
    Some(Box::new(documents))
}
