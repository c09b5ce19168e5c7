//! Server of a run: holds rows, and starts and ends rounds as the master says.

use std::collections::BTreeSet;

use lda_core::counts::TopicIndex;
use lda_transport::rpc::{Action, MessageBuf, ReplyHandle};
use lda_transport::{Frame, NodeId};

use super::control::Control;
use super::epoch_range::EpochRange;
use super::master_link::Link;
use super::{Failed, MASTER, NodeState, Phase, Port, Setup, Waited, reject};
use crate::aggregate::{Aggregate, AggregateRequest};
use crate::placement::{DocumentLengths, WordStats};
use crate::plan::{place, workers_report};
use crate::priors::Priors;
use crate::server::Server;
use crate::spec::Round;
use crate::wire::RowCode;

/// Server of a run.
#[derive(Debug)]
pub struct ServerNode<T: TopicIndex> {
    setup: Setup,
    number: u32,
    link: Link,
    attempt: u32,
    /// The last attempt that the master has declared over.
    over: u32,
    server: Option<Server<T>>,
    /// The last round that was started, and the last that has ended here.
    round: Round,
    ended: Option<Round>,
    totals: Vec<u32>,
    /// Workers of the attempt; none before the first.
    workers: BTreeSet<NodeId>,
    /// Requests of workers that are not processed yet.
    waiting: Vec<(ReplyHandle, Frame)>,
    finished: bool,
    /// The epoch from which the run goes on, if it was stopped.
    stopped: Option<u32>,
    pub(super) failed: Option<Failed>,
}

/// Why a message is rejected.
enum Refusal {
    /// It came at a wrong time: the sender is behind or ahead.
    WrongTime,
    /// It is invalid.
    Fatal(Failed),
}

impl<E: Into<Failed>> From<E> for Refusal {
    fn from(error: E) -> Self {
        Self::Fatal(error.into())
    }
}

impl<T: TopicIndex> ServerNode<T> {
    /// Server `number` of this run, counted from 0.
    pub(super) fn new(setup: Setup, number: u32) -> Self {
        let totals = vec![0; setup.spec.topics() as usize];
        let round = Round::joining(0, 0);
        Self {
            setup,
            number,
            link: Link::default(),
            attempt: 0,
            over: 0,
            server: None,
            round,
            ended: None,
            totals,
            workers: BTreeSet::new(),
            waiting: Vec::new(),
            finished: false,
            stopped: None,
            failed: None,
        }
    }

    /// Setup of the run.
    pub(super) fn setup(&self) -> &Setup {
        &self.setup
    }

    /// Rows of this server, once the words are placed.
    pub fn rows(&self) -> Option<&Server<T>> {
        self.server.as_ref()
    }

    /// Returns whether the master has ended the run, or released this node.
    pub fn is_finished(&self) -> bool {
        self.finished
    }

    /// Returns whether the run needs this node's connection to a peer.
    pub(super) fn needs(&self, peer: NodeId) -> bool {
        !self.finished
            && (peer == MASTER || self.workers.is_empty() || self.workers.contains(&peer))
    }

    /// Progress of this node.
    pub(super) fn phase(&self) -> Phase {
        match &self.server {
            _ if self.finished => Phase::Finished,
            None => Phase::Waiting,
            Some(_) if self.ended == Some(self.round) => Phase::Between,
            Some(_) if self.round.is_joining() => Phase::Joining,
            Some(_) => Phase::Sampling,
        }
    }

    /// Round and memory.
    pub(super) fn state(&self) -> NodeState {
        let memory = self.server.as_ref().map_or(0, |server| server.memory() as u64);
        NodeState { round: self.round, memory, waited: Waited::default() }
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

    /// Processes an event of the endpoint.
    pub(super) fn act(&mut self, action: Action, port: &mut dyn Port) -> Result<(), Failed> {
        match action {
            Action::Joined { peer: MASTER, incarnation, .. } => {
                if self.link.is_new(incarnation) {
                    let attempt = self.attempt.max(self.over);
                    self.link.introduce(attempt, EpochRange::default(), &self.setup, port);
                }
                Ok(())
            }
            Action::Ready { peer: MASTER } => {
                self.link.ready(port);
                Ok(())
            }
            Action::Completed { request, outcome } => self.link.ended(request, outcome, port),
            Action::Request { reply_to, body, .. } if reply_to.peer != MASTER => {
                self.waiting.push((reply_to, body));
                Ok(())
            }
            Action::Request { reply_to, body, .. } => match self.receive(&body) {
                Ok(reply) => {
                    port.reply(reply_to, MessageBuf::from(&reply[..]));
                    Ok(())
                }
                Err(Refusal::WrongTime) => {
                    reject(port, reply_to, None);
                    Ok(())
                }
                Err(Refusal::Fatal(failed)) => {
                    reject(port, reply_to, Some(&failed));
                    match failed {
                        Failed::Rows(error) => Err(unexpected(&error.to_string())),
                        failed => Err(failed),
                    }
                }
            },
            _ => Ok(()),
        }
    }

    /// Processes the requests of workers that have arrived; returns whether there were any.
    pub(super) fn work(&mut self, port: &mut dyn Port) -> bool {
        let waiting = std::mem::take(&mut self.waiting);
        let Some(server) = &mut self.server else {
            waiting.iter().for_each(|(reply_to, _)| reject(port, *reply_to, None));
            return !waiting.is_empty();
        };
        let bodies: Vec<&[u8]> = waiting.iter().map(|(_, body)| &body[..]).collect();
        for ((reply_to, _), reply) in waiting.iter().zip(server.serve_all(&bodies)) {
            match reply {
                Ok(reply) => port.reply(*reply_to, MessageBuf::from(&reply[..])),
                Err(error) if error.is_of_another_time() => reject(port, *reply_to, None),
                // An invalid request of a worker is the worker's error.
                Err(error) => reject(port, *reply_to, Some(&error.into())),
            }
        }
        !waiting.is_empty()
    }

    /// Processes a message of the master; returns the reply.
    fn receive(&mut self, body: &Frame) -> Result<Vec<u8>, Refusal> {
        let spec = &self.setup.spec;
        match Control::decode(spec.topics(), spec.words(), body) {
            Some(Control::Start { attempt, epoch, rounds, assigned, lengths, words, .. }) => {
                let joining = Round::joining_within(epoch, rounds, attempt);
                let reply = self.start(joining, lengths, &words)?;
                let worker =
                    |&worker: &u32| NodeId(1 + self.setup.options.servers.saturating_add(worker));
                self.workers = assigned.0.iter().map(worker).collect();
                Ok(reply)
            }
            // A server that was restarted, or that has no words yet, must accept it too.
            Some(Control::Finish { attempt, kept, stopped, .. }) => {
                self.over = attempt.max(self.over);
                self.finished = true;
                self.stopped = stopped.then_some(kept);
                Ok(Vec::new())
            }
            Some(Control::End { round, wanted }) => self.end_round(round, wanted),
            Some(Control::Begin { round, delta, priors, .. }) => {
                self.begin_round(round, &delta, priors.as_ref())
            }
            Some(Control::Rows { attempt, slice }) => {
                let server = self.server.as_ref().ok_or(Refusal::WrongTime)?;
                if attempt != self.attempt {
                    return Err(Refusal::WrongTime);
                }
                let mut reply = Vec::new();
                server.rows(slice, &mut reply)?;
                Ok(reply)
            }
            Some(_) if self.server.is_none() => Err(Refusal::WrongTime),
            Some(_) => Err(unexpected("a message for another node").into()),
            None => Err(unexpected("malformed bytes").into()),
        }
    }

    /// Starts an attempt with empty rows.
    fn start(
        &mut self,
        joining: Round,
        lengths: DocumentLengths,
        words: &WordStats,
    ) -> Result<Vec<u8>, Refusal> {
        // The start of an attempt that is over may arrive after the message that it is over.
        if joining.attempt <= self.over.max(self.attempt) {
            return Err(Refusal::WrongTime);
        }
        let Setup { spec, options, .. } = &self.setup;
        let placement = place(spec, options, words, lengths).map_err(Failed::from)?;
        let own = placement.slices_on(self.number, spec.topics());
        self.attempt = joining.attempt;
        (self.round, self.ended) = (joining, None);
        let server = Server::new(spec, options, joining, own);
        self.server = Some(server.threads(self.setup.threads));
        self.totals.fill(0);
        self.finished = false;
        self.stopped = None;
        Ok(Vec::new())
    }

    /// Ends the oldest open round; returns the delta of C_k, the bytes held, and aggregates. The delta is empty
    /// if workers report it.
    fn end_round(&mut self, round: Round, wanted: AggregateRequest) -> Result<Vec<u8>, Refusal> {
        let server = self.server.as_mut().ok_or(Refusal::WrongTime)?;
        let Setup { options, aggregates, .. } = &self.setup;
        let first = self.ended.map_or(self.round, |last| last.next(options.rounds));
        if round != first || round > self.round {
            return Err(Refusal::WrongTime);
        }
        let mut delta = vec![0; self.totals.len()];
        // Deltas are still held beside the rows.
        let before = server.memory();
        server.end_round(round, &mut delta)?;
        self.ended = Some(round);
        if workers_report(options, round) {
            delta.fill(0);
        }
        let non_zero = delta.iter().enumerate().filter(|(_, by)| **by != 0);
        let row: Result<Vec<(u32, i32)>, _> =
            non_zero.map(|(topic, &by)| i32::try_from(by).map(|by| (topic as u32, by))).collect();
        let row = row.map_err(|_| unexpected("a round that adds 2^31 tokens to a topic"))?;
        let (spec, mut reply) = (server.spec(), Vec::new());
        RowCode::new(spec.topics()).encode(&row, &mut reply);
        reply.extend((before.max(server.memory()) as u64).to_le_bytes());
        let mut found = aggregates.aggregates(wanted, spec);
        if !found.is_empty() {
            server.aggregate(&mut found);
        }
        found.encode(&mut reply);
        Ok(reply)
    }

    /// Starts the round after the last one.
    fn begin_round(
        &mut self,
        round: Round,
        delta: &[(u32, i32)],
        priors: Option<&Priors>,
    ) -> Result<Vec<u8>, Refusal> {
        let server = self.server.as_mut().ok_or(Refusal::WrongTime)?;
        let options = &self.setup.options;
        if round != self.round.next(options.rounds) {
            return Err(Refusal::WrongTime);
        }
        if server.num_rounds() >= options.sync.max_open() {
            return Err(unexpected("more open rounds than the staleness allows").into());
        }
        for &(topic, by) in delta {
            let total = &mut self.totals[topic as usize];
            *total = total.checked_add_signed(by).ok_or_else(|| unexpected("totals below 0"))?;
        }
        if let Some(priors) = priors {
            let set = server.set_priors(priors);
            set.map_err(|error| unexpected(&format!("priors: {error}")))?;
        }
        server.begin_round(round, &self.totals);
        self.round = round;
        Ok(Vec::new())
    }
}

/// Error: the master has sent a message that does not fit this node's state.
fn unexpected(what: &str) -> Failed {
    Failed::Message { peer: MASTER, what: what.to_owned() }
}
