//! Master of a run: starts attempts and rounds, and adds up C_k.
//!
//! A round starts when all servers have started it, and ends when all workers have finished it.
//! The state that a restart discards is in [`Rounds`].

mod attempts;
mod checkpoint;
mod ending;
mod epoch_priors;
mod mid_epoch;
mod progress;
mod roster;
mod rounds;
#[cfg(test)]
mod tests;
mod workers;

use std::collections::VecDeque;
use std::sync::Arc;

use lda_core::prior::learn::CountHistograms;
use lda_transport::rpc::{Action, MessageBuf, ReplyHandle, RequestId, RequestKind};
use lda_transport::{Frame, NodeId};

use super::collected_counts::CollectedCounts;
use super::control::{Control, WorkerEpochStats};
use super::request_queue::RequestQueue;
use super::{
    CheckpointError, Failed, MASTER, NodeRole, Phase, Port, Report, Setup, SnapshotWriter, Topics,
    outcome, reject,
};
use crate::aggregate::Aggregates;
use crate::config::ConfigError;
use crate::documents::Statistics;
use crate::placement::Placement;
use crate::priors::Priors;
use crate::spec::Round;

use checkpoint::Checkpoint;
use epoch_priors::EpochPriors;
use mid_epoch::MidEpoch;
use roster::Roster;
use rounds::Rounds;
use workers::Workers;

/// Largest number of attempts in a row that complete no epoch.
const MAX_FRUITLESS: u32 = 100;

/// Purpose of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RequestPurpose {
    /// To servers, all of which must reply before the master continues.
    Start,
    Begin,
    End,
    Rows,
    /// To workers, which report later that they are done.
    Notice,
    /// To workers, all of which must reply.
    Keep,
    /// To all.
    Finish,
    /// To a node that has to stop and waits for its release. Restarts do not cancel it.
    Leave,
}

/// Event for which the master waits. Numbers count replies that are missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    /// Nodes have to be ready, and workers have to send word counts.
    Waiting,
    /// Servers have to place the words.
    Starting(u32),
    /// Workers join servers, or sample.
    Working,
    /// Servers have to end the round.
    Ending(u32),
    /// Servers have to start a round.
    Beginning(u32),
    /// Workers have to write their topics, as nodes have to stop.
    Keeping(u32),
    /// The same within an epoch, as workers change.
    KeepingRound {
        left: u32,
        are_written: bool,
    },
    /// The rows of this slice have to arrive.
    Collecting(u16),
    /// Workers have to write their topics, as the run ends.
    KeepingLast(u32),
    /// Nodes have to acknowledge the end of the run.
    Finishing(u32),
    Finished,
}

/// An epoch that has ended at all servers, and is not reported yet.
#[derive(Debug)]
struct EndedEpoch {
    report: Report,
    /// Aggregates that servers have found.
    found: Arc<Aggregates>,
    /// Delta of C_k in the last round.
    delta: Vec<(u32, i32)>,
}

/// Counts and priors that a worker reports after a round.
#[derive(Debug)]
struct RoundCounts {
    delta: Vec<(u32, i32)>,
    priors: Option<Priors>,
    documents: Option<Box<CountHistograms>>,
    epoch_stats: Option<WorkerEpochStats>,
}

/// Master of a run.
#[derive(Debug)]
pub struct Master {
    setup: Setup,
    requests: RequestQueue<RequestPurpose>,
    step: Step,
    roster: Roster,
    workers: Workers,
    checkpoint: Checkpoint,
    /// The last attempt that any node knows.
    attempt: u32,
    /// Attempts since an epoch was completed.
    fruitless: u32,
    rounds: Rounds,
    priors: EpochPriors,
    mid_epoch: MidEpoch,
    reports: VecDeque<Report>,
    topics: Option<Topics>,
    /// The epoch whose report waits for all rows.
    ended: Option<EndedEpoch>,
    /// All rows after the last epoch.
    model: Option<Arc<CollectedCounts>>,
    placement: Option<Placement>,
    /// The epoch after which the run ends, if it ends [early](Self::end_early).
    ends_after: Option<u32>,
    /// The epoch from which the run goes on, if it was stopped.
    stopped: Option<u32>,
    pub(super) failed: Option<Failed>,
}

impl Master {
    /// The master of this run. Without statistics of the documents, it gets the word counts from workers.
    pub(super) fn new(
        setup: Setup,
        writer: Option<SnapshotWriter>,
        statistics: Option<&Statistics>,
    ) -> Self {
        Self {
            requests: RequestQueue::default(),
            step: Step::Waiting,
            roster: Roster::new(&setup, statistics),
            workers: Workers::new(&setup),
            checkpoint: Checkpoint::new(writer, setup.run(), &setup.options),
            attempt: 0,
            fruitless: 0,
            rounds: Rounds::new(Round::joining(0, 0), setup.spec.topics()),
            priors: EpochPriors::new(setup.spec.clone()),
            mid_epoch: MidEpoch::default(),
            reports: VecDeque::new(),
            topics: None,
            ended: None,
            model: None,
            placement: None,
            ends_after: None,
            stopped: None,
            failed: None,
            setup,
        }
    }

    /// Setup of the run.
    pub(super) fn setup(&self) -> &Setup {
        &self.setup
    }

    /// Returns whether all epochs are done, and all nodes have acknowledged it.
    pub fn is_finished(&self) -> bool {
        self.step == Step::Finished
    }

    /// Returns whether all epochs are done. Nodes close when they have acknowledged it.
    pub(super) fn is_ending(&self) -> bool {
        matches!(self.step, Step::Finishing(_) | Step::Finished)
    }

    /// Returns true if the master waits for this node when it is lost. An elastic run with enough other
    /// workers goes on [without](Self::go_on_without) one of them when the wait is over.
    pub(super) fn needs(&self, peer: NodeId) -> bool {
        match self.step {
            Step::Finishing(_) => self.requests.awaits(peer),
            Step::Finished => false,
            _ if !self.setup.is_elastic() || self.is_server(peer) => true,
            Step::Waiting => !self.workers.is_absent(peer),
            _ => self.workers.take_part(peer),
        }
    }

    /// The oldest open round; before the first round and after a restart, a [joining](Round::is_joining).
    pub fn round(&self) -> Round {
        self.rounds.oldest
    }

    /// Progress of this node.
    pub(super) fn phase(&self) -> Phase {
        match self.step {
            Step::Waiting => Phase::Waiting,
            Step::Starting(_) => Phase::Starting,
            Step::Working if self.round().is_joining() => Phase::Joining,
            Step::Working => Phase::Sampling,
            Step::Ending(_) => Phase::Ending,
            Step::Beginning(_) => Phase::Beginning,
            Step::Keeping(_) | Step::KeepingRound { .. } | Step::KeepingLast(_) => Phase::Keeping,
            Step::Collecting(_) => Phase::Collecting,
            Step::Finishing(_) => Phase::Finishing,
            Step::Finished => Phase::Finished,
        }
    }

    /// Last epoch whose topics all workers have written: the run continues from it after a worker is lost, or
    /// when all nodes are started again. 0 if none.
    pub fn kept(&self) -> u32 {
        self.checkpoint.latest().epoch
    }

    /// C_k after the last round that has ended.
    pub fn totals(&self) -> &[i64] {
        &self.rounds.totals
    }

    /// α and β of the epoch that has started last: those of the setup, unless they
    /// [change](crate::priors).
    pub fn priors(&self) -> Priors {
        self.priors.spec.priors()
    }

    /// Takes the next report. Epochs are reported in order, and again if they are repeated after a
    /// restart.
    pub fn report(&mut self) -> Option<Report> {
        self.reports.pop_front()
    }

    /// Top words of the last epoch for which they were [requested](Setup::top_words).
    pub fn topics(&self) -> Option<&Topics> {
        self.topics.as_ref()
    }

    /// Takes the last error of a checkpoint. The run continues.
    pub fn trouble(&mut self) -> Option<CheckpointError> {
        self.checkpoint.trouble.take()
    }

    /// C_w and C_k after the last round, if the run [collects](Setup::collect_model) them, for a
    /// [`TopicModel`](lda_core::model::TopicModel).
    pub fn counts(&self) -> Option<&CollectedCounts> {
        self.model.as_deref().filter(|_| self.is_finished())
    }

    /// Ends the run after the epoch that is being sampled, or after the next one if this epoch's last
    /// round has begun, as if it had no more: with its model and without an error, and with the bits of
    /// a run of so many epochs. That epoch is evaluated only if it is [due](Setup::evaluate_every).
    /// Later calls change nothing.
    pub fn end_early(&mut self) {
        // Workers learn with the last round of an epoch whether the run ends with it.
        let next = self.rounds.last_begun().next(self.setup.options.rounds);
        // After a restart earlier epochs are sampled again, which must not move the end.
        self.ends_after.get_or_insert(next.epoch);
    }

    /// Last epoch of the run.
    fn last_epoch(&self) -> u32 {
        self.ends_after.map_or(self.setup.epochs, |epoch| epoch.min(self.setup.epochs))
    }

    /// The epoch from which the run goes on when it is started again, if it was stopped.
    pub fn stopped(&self) -> Option<u32> {
        self.stopped.filter(|_| self.is_finished())
    }

    /// Reads the checkpoint of an earlier master of this run.
    pub(super) fn start(&mut self) -> Result<(), Failed> {
        if self.setup.is_elastic() && !self.checkpoint.has_storage() {
            return Err(ConfigError::ElasticWithoutStorage.into());
        }
        if self.setup.is_elastic() {
            self.attempt = self.checkpoint.last_attempt()?;
        }
        self.checkpoint.load()
    }

    /// Stops the run at the end of the epoch.
    pub(super) fn stop(&mut self, port: &mut dyn Port) {
        if let Err(failed) = self.note_stopping(MASTER, port) {
            self.failed = Some(failed);
        }
    }

    /// Processes an event of the endpoint.
    pub(super) fn act(&mut self, action: Action, port: &mut dyn Port) -> Result<(), Failed> {
        match action {
            Action::Joined { peer, restarted: true, .. } => self.remove(peer, port),
            Action::Joined { peer, .. } => {
                self.refuse_left_behind(peer, port);
                Ok(())
            }
            Action::Ready { peer } => {
                self.requests.ready(port, peer);
                Ok(())
            }
            Action::Request { reply_to, body, .. } => self.receive(reply_to, &body, port),
            Action::Completed { request, outcome: how } => {
                // Unknown requests are those of an earlier attempt.
                let Some(purpose) = self.requests.ended(port, request) else { return Ok(()) };
                // A released node may have ended, or be out of reach for ever.
                if purpose == RequestPurpose::Leave {
                    return Ok(());
                }
                match outcome(request, how)? {
                    Some(reply) => self.ended(purpose, request, &reply, port),
                    // A restarted node has nothing to finish.
                    None if purpose == RequestPurpose::Finish => {
                        self.ended(purpose, request, &Frame::default(), port)
                    }
                    None => Ok(()),
                }
            }
            _ => Ok(()),
        }
    }

    /// Refuses a node that has sent a message that does not fit the state of the run. Its successor
    /// takes part in the next attempt.
    pub(super) fn refuse(&mut self, peer: NodeId, what: String, port: &mut dyn Port) {
        port.refuse(peer, what);
        if let Err(failed) = self.remove(peer, port) {
            self.failed = Some(failed);
        }
    }

    /// Processes a message.
    fn receive(
        &mut self,
        reply_to: ReplyHandle,
        body: &Frame,
        port: &mut dyn Port,
    ) -> Result<(), Failed> {
        let (spec, peer) = (&self.setup.spec, reply_to.peer);
        let control = match Control::decode(spec.topics(), spec.words(), body) {
            Some(
                control @ (Control::Words { .. }
                | Control::Ready { .. }
                | Control::RestartRequest { .. }
                | Control::Unreadable { .. }
                | Control::RoundDone { .. }
                | Control::Stop {}
                | Control::Failed { .. }),
            ) => control,
            other => {
                let failed = unexpected(peer, format!("{other:?}"));
                reject(port, reply_to, Some(&failed));
                return Err(failed);
            }
        };
        port.reply(reply_to, MessageBuf::new());
        match control {
            Control::Words { shard, lengths, word_stats } => {
                if shard >= self.setup.options.shards {
                    return Err(unexpected(peer, format!("words of shard {shard}")));
                }
                let added = self.roster.add(shard, lengths, word_stats);
                added.map_err(|error| unexpected(peer, error.to_string()))?;
                self.try_to_start(port)
            }
            Control::Ready { attempt, in_memory } => {
                self.note_ready(peer, attempt, in_memory, port)
            }
            Control::RestartRequest { attempt } => {
                let is_current = attempt == self.attempt && self.roster.ready.contains(&peer);
                if is_current && !self.is_ending() {
                    self.abandon_attempt(port);
                }
                self.try_to_start(port)
            }
            Control::Unreadable { attempt, why } => self.fall_back(peer, attempt, why, port),
            Control::RoundDone { round, kept, writing, delta, priors, documents, epoch_stats } => {
                let counts = RoundCounts { delta, priors, documents, epoch_stats };
                self.note_done(peer, (round, kept, writing), counts, port)
            }
            Control::Stop {} => {
                self.check_member(peer, "that it has to stop")?;
                self.note_stopping(peer, port)
            }
            Control::Failed { why } => Err(Failed::PeerFailed { peer, why }),
            _ => Ok(()),
        }
    }

    /// Fails if a node that is neither a server nor a worker has sent a message.
    fn check_member(&self, peer: NodeId, what: &str) -> Result<(), Failed> {
        if (1..=self.num_others()).contains(&peer.0) {
            return Ok(());
        }
        Err(unexpected(peer, format!("{what}, but it is not a server or worker of this run")))
    }

    /// A worker has finished a round, and has written the topics of an epoch.
    fn note_done(
        &mut self,
        peer: NodeId,
        (round, kept, is_writing): (Round, u32, bool),
        counts: RoundCounts,
        port: &mut dyn Port,
    ) -> Result<(), Failed> {
        let is_on = matches!(self.step, Step::Working | Step::Ending(_) | Step::Beginning(_));
        if !is_on || round.attempt != self.round().attempt {
            // The worker will start another attempt.
            return Ok(());
        }
        let may_be = self.workers.take_part(peer) && self.rounds.note_done(peer, round);
        if !may_be {
            return Err(unexpected(peer, format!("that it is done with {round}")));
        }
        if kept > round.epoch {
            return Err(unexpected(peer, format!("that it has kept epoch {kept} in {round}")));
        }
        self.rounds
            .add_worker_delta(&self.setup.options, round, &counts.delta)
            .map_err(|what| unexpected(peer, what))?;
        let is_last = round.is_last(self.setup.options.rounds);
        self.priors
            .of_worker((round, is_last), counts.priors, counts.documents)
            .map_err(|what| unexpected(peer, what))?;
        if let Some(epoch_stats) = counts.epoch_stats {
            self.rounds.epoch_stats.of_worker(epoch_stats);
        }
        self.checkpoint.note(peer, kept, is_writing);
        if is_last {
            self.roster.note_epoch(peer, round.epoch);
        }
        if self.step == Step::Working {
            self.try_to_end(port);
        }
        Ok(())
    }

    /// Returns whether a node is a server.
    fn is_server(&self, node: NodeId) -> bool {
        matches!(self.setup.role_of(node), NodeRole::Server(_))
    }

    /// Number of servers and workers.
    fn num_others(&self) -> u32 {
        self.setup.options.servers + self.setup.workers
    }

    /// A node has replied to a request.
    fn ended(
        &mut self,
        purpose: RequestPurpose,
        request: RequestId,
        reply: &Frame,
        port: &mut dyn Port,
    ) -> Result<(), Failed> {
        match (purpose, self.step) {
            (RequestPurpose::Start, Step::Starting(left)) => {
                self.step = Step::Starting(left - 1);
                if left == 1 {
                    self.step = Step::Working;
                    let start = self.start_message();
                    self.send_workers(&start, RequestKind::Push, RequestPurpose::Notice, port);
                }
            }
            (RequestPurpose::End, Step::Ending(left)) => {
                let topics = self.setup.spec.topics();
                let delta = self.rounds.epoch_stats.of_server(topics, reply);
                self.rounds.add_delta(delta.map_err(|what| unexpected(request.peer, what))?);
                self.step = Step::Ending(left - 1);
                if left == 1 {
                    self.next_round(port)?;
                }
            }
            (RequestPurpose::Begin, Step::Beginning(left)) => {
                self.step = Step::Beginning(left - 1);
                if left == 1 {
                    if let Some((round, delta)) = self.rounds.to_begin.pop_front() {
                        self.rounds.begun = round;
                        let begin = self.begin_message(round, delta);
                        self.send_workers(&begin, RequestKind::Push, RequestPurpose::Notice, port);
                    }
                    self.advance(port);
                }
            }
            (RequestPurpose::Rows, Step::Collecting(slice)) => {
                self.collect_slice(slice, reply, request)?;
                self.request_slice(slice + 1, port)?;
            }
            (RequestPurpose::Keep, Step::Keeping(left)) => {
                self.note_kept(request.peer, reply)?;
                self.step = Step::Keeping(left - 1);
                if left == 1 {
                    self.change_workers(port)?;
                }
            }
            (RequestPurpose::Keep, Step::KeepingRound { left, are_written }) => {
                self.note_kept_round(request.peer, reply, (left, are_written), port)?;
            }
            (RequestPurpose::Keep, Step::KeepingLast(left)) => {
                self.note_kept(request.peer, reply)?;
                self.step = Step::KeepingLast(left - 1);
                if left == 1 {
                    self.checkpoint.record();
                    self.finish(port);
                }
            }
            (RequestPurpose::Finish, Step::Finishing(left)) => {
                self.note_finished(left);
            }
            // A worker has received a message.
            _ => {}
        }
        Ok(())
    }

    /// A worker has replied with the last epoch that it has written.
    fn note_kept(&mut self, worker: NodeId, reply: &Frame) -> Result<(), Failed> {
        let kept = reply[..].try_into().map(u32::from_le_bytes);
        let Some(kept) = kept.ok().filter(|&kept| kept <= self.round().epoch) else {
            let what = format!("that it has kept {reply:?} in {}", self.round());
            return Err(unexpected(worker, what));
        };
        self.checkpoint.note(worker, kept, false);
        Ok(())
    }

    /// Drops all requests of an attempt, but not the releases of nodes.
    fn clear_requests(&mut self, port: &mut dyn Port) {
        self.requests.clear_but(port, |purpose| *purpose == RequestPurpose::Leave);
        self.workers.forget_asked();
    }

    fn begin_message(&self, round: Round, delta: Vec<(u32, i32)>) -> Control {
        let Setup { options, .. } = &self.setup;
        let is_due = round.is_last(options.rounds) && self.setup.checkpoints_after(round.epoch);
        let write = is_due && self.checkpoint.may_write();
        let needed = self.checkpoint.latest().first_needed();
        let push = self.rounds.needs_all_rows(round, &self.setup, self.last_epoch());
        let priors = if self.rounds.begun.joins_after() > Some(0) {
            // Servers have started with the priors of the run. Workers have those of the epoch.
            self.priors.joined()
        } else {
            self.priors.learnt().filter(|_| round.number == 0)
        };
        Control::Begin { round, needed, write, push, delta, priors }
    }

    fn send_servers(
        &mut self,
        control: &Control,
        kind: RequestKind,
        purpose: RequestPurpose,
        port: &mut dyn Port,
    ) {
        let frame = Frame::from(self.encode(control));
        for server in 0..self.setup.options.servers {
            self.requests.broadcast(port, self.setup.server(server), kind, &frame, purpose);
        }
    }

    /// Sends a message to the workers that take part.
    fn send_workers(
        &mut self,
        control: &Control,
        kind: RequestKind,
        purpose: RequestPurpose,
        port: &mut dyn Port,
    ) {
        let frame = Frame::from(self.encode(control));
        for &worker in self.workers.nodes() {
            self.requests.broadcast(port, worker, kind, &frame, purpose);
        }
    }

    fn encode(&self, control: &Control) -> Vec<u8> {
        control.encode(self.setup.spec.topics(), self.setup.spec.words())
    }
}

/// Error: a node has sent a message that does not fit the state of the run.
fn unexpected(peer: NodeId, what: String) -> Failed {
    Failed::Message { peer, what }
}
