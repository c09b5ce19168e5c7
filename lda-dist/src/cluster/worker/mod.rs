//! Worker of a run: holds shards of documents, and samples them partition by partition.
//!
//! The state that a restart discards is an [`Attempt`]; a restart drops it and makes another.

mod attempt;
mod introduction;
mod join;
mod memory_checkpoints;
mod reports;
mod restart;
mod snapshots;
mod tasks;

use std::time::Duration;

use lda_core::counts::TopicIndex;
use lda_transport::Frame;
use lda_transport::rpc::{Action, MessageBuf, ReplyHandle};

use super::control::{Control, KeptRound};
use super::master_link::Link;
use super::{
    CheckpointError, Documents, Failed, MASTER, NodeState, Phase, Port, Setup, SnapshotWriter,
    Waited, reject,
};
use crate::plan::workers_may_change_in;
use crate::sampler_pool::SamplerPool;
use crate::shard::Shard;
use crate::spec::{ModelSpec, Round};

use attempt::{AfterRound, Attempt, RoundStart};
use memory_checkpoints::MemoryCheckpoints;
use snapshots::SnapshotStorage;

/// Worker of a run.
#[derive(Debug)]
pub struct Worker<T: TopicIndex, D> {
    setup: Setup,
    number: u32,
    documents: D,
    storage: SnapshotStorage,
    link: Link,
    samplers: SamplerPool<T>,
    /// Largest number of bytes that pushed documents took at once.
    planned: usize,
    /// None until the master has started an attempt.
    attempt: Option<Attempt<T>>,
    /// The last attempt that the master has declared over.
    over: u32,
    /// Time without work since the node started.
    waited: Waited,
    max_join_bytes: usize,
    finished: bool,
    /// The epoch from which the run goes on, if it was stopped.
    stopped: Option<u32>,
    pub(super) failed: Option<Failed>,
}

/// State of a worker that another attempt goes on with.
#[derive(Debug)]
struct WorkerState<T: TopicIndex> {
    shards: Vec<Shard<T>>,
    memory_checkpoints: MemoryCheckpoints<T>,
    /// The model with the priors of the current epoch.
    spec: ModelSpec,
}

/// Parts of a worker that an attempt uses and does not own.
struct Node<'a, T: TopicIndex> {
    setup: &'a Setup,
    link: &'a mut Link,
    samplers: &'a mut SamplerPool<T>,
    planned: &'a mut usize,
    storage: &'a mut SnapshotStorage,
    port: &'a mut dyn Port,
}

impl<T: TopicIndex, D: Documents> Worker<T, D> {
    /// Worker `number` of this run, counted from 0.
    pub(super) fn new(
        setup: Setup,
        number: u32,
        documents: D,
        writer: Option<SnapshotWriter>,
    ) -> Self {
        Self {
            samplers: SamplerPool::new(setup.spec.topics(), setup.options.sampler, setup.threads),
            planned: 0,
            setup,
            number,
            documents,
            storage: SnapshotStorage::new(writer),
            link: Link::default(),
            attempt: None,
            over: 0,
            waited: Waited::default(),
            max_join_bytes: join::MAX_JOIN_BYTES,
            finished: false,
            stopped: None,
            failed: None,
        }
    }

    /// Setup of the run.
    pub(super) fn setup(&self) -> &Setup {
        &self.setup
    }

    /// Shards of this worker; none until the words are placed.
    pub fn shards(&self) -> &[Shard<T>] {
        self.attempt.as_ref().map_or(&[], Attempt::shards)
    }

    /// Returns whether the master has ended the run, or released this node.
    pub fn is_finished(&self) -> bool {
        self.finished
    }

    /// Adds time in which there was nothing to do.
    pub(super) fn waited(&mut self, time: Duration) {
        let waited = match &self.attempt {
            Some(attempt) if !attempt.is_done() => Waited { servers: time, ..Waited::default() },
            _ => Waited { master: time, ..Waited::default() },
        };
        self.waited.add(&waited);
        if let Some(attempt) = &mut self.attempt {
            attempt.add_waited(&waited);
        }
    }

    /// Progress of this node.
    pub(super) fn phase(&self) -> Phase {
        match &self.attempt {
            _ if self.finished => Phase::Finished,
            None => Phase::Waiting,
            Some(attempt) if attempt.is_done() => Phase::Between,
            Some(attempt) if attempt.round().is_joining() => Phase::Joining,
            Some(_) => Phase::Sampling,
        }
    }

    /// Round, memory and waiting time.
    pub(super) fn state(&self) -> NodeState {
        let round = self.attempt.as_ref().map_or(Round::joining(0, 0), Attempt::round);
        let shards = self.attempt.as_ref().map_or(0, Attempt::memory);
        let sampling = (self.samplers.memory() + self.planned) as u64;
        NodeState { round, memory: shards + sampling, waited: self.waited }
    }

    /// The epoch from which the run goes on when it is started again, if it was stopped.
    pub fn stopped(&self) -> Option<u32> {
        self.stopped
    }

    /// Refuses a master whose message does not fit the state of this node. Its successor starts another
    /// attempt.
    pub(super) fn refuse_master(&mut self, what: String, port: &mut dyn Port) {
        self.link.refuse(what, port);
    }

    /// Asks the master to release this node.
    pub(super) fn stop(&mut self, port: &mut dyn Port) {
        self.link.stop(&self.setup, port);
    }

    /// Takes the last error of writing or removing snapshots. The run continues, and a restart may
    /// have to go back further.
    pub fn trouble(&mut self) -> Option<CheckpointError> {
        self.storage.trouble.take()
    }

    /// Number of the current attempt; 0 before the first.
    fn attempt_number(&self) -> u32 {
        self.attempt.as_ref().map_or(0, |attempt| attempt.round().attempt)
    }

    /// The attempt, and the parts of the worker that it uses.
    fn parts<'a>(
        &'a mut self,
        port: &'a mut dyn Port,
    ) -> (Option<&'a mut Attempt<T>>, Node<'a, T>) {
        let Self { setup, link, samplers, planned, storage, attempt, .. } = self;
        (attempt.as_mut(), Node { setup, link, samplers, planned, storage, port })
    }

    /// Processes an event of the endpoint.
    pub(super) fn act(&mut self, action: Action, port: &mut dyn Port) -> Result<(), Failed> {
        match action {
            Action::Joined { peer: MASTER, incarnation, .. } if self.link.is_new(incarnation) => {
                self.introduce(port)
            }
            Action::Ready { peer: MASTER } => {
                self.link.ready(port);
                Ok(())
            }
            Action::Ready { peer } => {
                if let Some(attempt) = &mut self.attempt {
                    attempt.requests.ready(port, peer);
                }
                Ok(())
            }
            Action::Request { reply_to, body, .. } => self.receive(reply_to, &body, port),
            Action::Completed { request, outcome } if request.peer == MASTER => {
                self.link.ended(request, outcome, port)
            }
            Action::Completed { request, outcome } => {
                let (Some(attempt), mut node) = self.parts(port) else { return Ok(()) };
                attempt.ended(request, outcome, &mut node)
            }
            _ => Ok(()),
        }
    }

    /// Samples something that needs no further message; returns whether there was any.
    pub(super) fn work(&mut self, port: &mut dyn Port) -> Result<bool, Failed> {
        let (Some(attempt), mut node) = self.parts(port) else { return Ok(false) };
        attempt.work(&mut node)
    }

    /// Processes a message, which only the master may send.
    fn receive(
        &mut self,
        reply_to: ReplyHandle,
        body: &Frame,
        port: &mut dyn Port,
    ) -> Result<(), Failed> {
        let (spec, peer) = (&self.setup.spec, reply_to.peer);
        let control = match Control::decode(spec.topics(), spec.words(), body) {
            Some(control) if peer == MASTER => control,
            _ => {
                let what = "a message for another node".to_owned();
                let failed = Failed::Message { peer, what };
                reject(port, reply_to, Some(&failed));
                return if peer == MASTER { Err(failed) } else { Ok(()) };
            }
        };
        if let Control::Keep { round } = control {
            self.keep(reply_to, round, port);
            return Ok(());
        }
        port.reply(reply_to, MessageBuf::new());
        match control {
            // The start of an attempt that is over may arrive after the message that it is over.
            Control::Start { attempt, epoch, rounds, checkpoint, assigned, lengths, words }
                if attempt > self.attempt_number().max(self.over) =>
            {
                let joining = Round::joining_within(epoch, rounds, attempt);
                let shards = self.assigned_shards(&assigned)?;
                self.restart_from((joining, checkpoint), &shards, (lengths, &words), port)
            }
            Control::Count { shard } if shard < self.setup.options.shards => {
                self.send_words(shard, port)
            }
            Control::Begin { round, needed, write, push, delta, priors } => {
                let start = RoundStart { delta, priors };
                self.begin((round, needed), AfterRound { write, push }, start, port)
            }
            // The message belongs to an earlier attempt.
            Control::Start { .. } => Ok(()),
            Control::Finish { attempt, kept, needed, stopped } => {
                self.over = attempt.max(self.over);
                self.finished = true;
                self.stopped = stopped.then_some(kept);
                if let (Some(attempt), mut node) = self.parts(port) {
                    // A worker that was restarted may get any epoch, and has nothing to remove.
                    attempt.remove_old(needed.min(attempt.round().epoch), &mut node);
                    if !stopped {
                        attempt.remove_mid_epoch(None, &mut node);
                    }
                    attempt.requests.clear();
                }
                Ok(())
            }
            _ => Err(unexpected("a message for another node")),
        }
    }

    /// Writes the topics after a round, as workers change or the run ends. Replies with the last epoch that is
    /// written, or, within an epoch, with whether the topics are written and with the statistics of the epoch
    /// so far.
    fn keep(&mut self, reply_to: ReplyHandle, after: Round, port: &mut dyn Port) {
        let (Some(attempt), mut node) = self.parts(port) else {
            reject(port, reply_to, None);
            return;
        };
        let options = &node.setup.options;
        let is_last = after.is_last(options.rounds);
        let may_change = !after.is_joining() && workers_may_change_in(options, after.epoch);
        if after != attempt.round() || !is_last && !may_change {
            reject(node.port, reply_to, None);
            return;
        }
        let reply = if is_last {
            attempt.write_snapshots_now(&mut node).to_le_bytes().to_vec()
        } else {
            let is_written = attempt.write_mid_epoch_now(&mut node);
            let (topics, words) = (node.setup.spec.topics(), node.setup.spec.words());
            let epoch_stats = attempt.take_stats_so_far(&node);
            KeptRound { is_written, kept: attempt.snapshots.kept(), epoch_stats }
                .encode(topics, words)
        };
        node.port.reply(reply_to, MessageBuf::from(&reply[..]));
    }

    /// Starts a round, if it is one of this attempt.
    fn begin(
        &mut self,
        (round, needed): (Round, u32),
        after: AfterRound,
        start: RoundStart,
        port: &mut dyn Port,
    ) -> Result<(), Failed> {
        let (Some(attempt), mut node) = self.parts(port) else { return Ok(()) };
        if round.attempt != attempt.round().attempt {
            return Ok(());
        }
        let options = &node.setup.options;
        let oldest = attempt.round().next(options.rounds);
        if !options.sync.may_start(round, oldest, options.rounds) {
            return Err(unexpected("a round that may not start now"));
        }
        if needed > round.epoch {
            return Err(unexpected("a future epoch as the first one that is needed"));
        }
        attempt.remove_old(needed, &mut node);
        attempt.remove_mid_epoch(Some(round.epoch), &mut node);
        attempt.begin(round, after, start, &mut node)
    }
}

/// Error: the master has sent a message that does not fit this node's state.
fn unexpected(what: &str) -> Failed {
    Failed::Message { peer: MASTER, what: what.to_owned() }
}
