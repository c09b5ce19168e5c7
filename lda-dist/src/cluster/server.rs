//! A server of a run: rows that workers ask for, in rounds that the master calls.

use lda_core::counts::TopicIndex;
use lda_transport::Frame;
use lda_transport::rpc::{Action, MessageBuf, ReplyHandle};

use super::control::Control;
use super::master_link::Link;
use super::{Failed, MASTER, NodeState, Phase, Port, Setup, Waited, reject};
use crate::aggregate::Aggregate;
use crate::config::Options;
use crate::plan::place;
use crate::server::Server;
use crate::spec::{JOINING, Round};
use crate::wire::RowCode;

/// A server of a run.
#[derive(Debug)]
pub struct ServerNode<T: TopicIndex> {
    setup: Setup,
    number: u32,
    link: Link,
    attempt: u32,
    /// The last that it was told is over.
    over: u32,
    server: Option<Server<T>>,
    /// The last that was begun, and the last that has ended here.
    round: Round,
    ended: Option<Round>,
    totals: Vec<u32>,
    finished: bool,
    /// The epoch that the run goes on from, if it was stopped.
    stopped: Option<u32>,
    pub(super) failed: Option<Failed>,
}

/// Why a message is not done.
enum Refusal {
    /// It came at a wrong time: who sent it is behind, or ahead.
    Now,
    /// It makes no sense.
    Ever(Failed),
}

impl<E: Into<Failed>> From<E> for Refusal {
    fn from(error: E) -> Self {
        Self::Ever(error.into())
    }
}

impl<T: TopicIndex> ServerNode<T> {
    /// Server `number` of this run, from 0 on.
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
            finished: false,
            stopped: None,
            failed: None,
        }
    }

    /// The setup that the node was made with.
    pub(super) fn setup(&self) -> &Setup {
        &self.setup
    }

    /// Its rows, once words are placed.
    pub fn rows(&self) -> Option<&Server<T>> {
        self.server.as_ref()
    }

    /// Whether the master has said that it was the last round.
    pub fn is_finished(&self) -> bool {
        self.finished
    }

    /// How far it has come.
    pub(super) fn phase(&self) -> Phase {
        match &self.server {
            _ if self.finished => Phase::Finished,
            None => Phase::Waiting,
            Some(_) if self.ended == Some(self.round) => Phase::Between,
            Some(_) if self.round.number == JOINING => Phase::Joining,
            Some(_) => Phase::Sampling,
        }
    }

    /// How it stands.
    pub(super) fn state(&self) -> NodeState {
        let memory = self.server.as_ref().map_or(0, |server| server.memory() as u64);
        NodeState { round: self.round, memory, waited: Waited::default() }
    }

    /// The epoch that the run goes on from when it is begun again, if it was stopped.
    pub fn stopped(&self) -> Option<u32> {
        self.stopped
    }

    /// This node has to end.
    pub(super) fn stop(&mut self, port: &mut dyn Port) {
        self.link.stop(&self.setup, port);
    }

    /// What the endpoint says.
    pub(super) fn act(&mut self, action: Action, port: &mut dyn Port) -> Result<(), Failed> {
        match action {
            Action::Joined { peer: MASTER, incarnation, .. } => {
                if self.link.is_new(incarnation) {
                    self.link.introduce(self.attempt.max(self.over), &self.setup, port);
                }
                Ok(())
            }
            Action::Ready { peer: MASTER } => {
                self.link.ready(port);
                Ok(())
            }
            Action::Completed { request, outcome } => self.link.ended(request, outcome, port),
            Action::Request { reply_to, body, .. } => match self.asked(reply_to, &body) {
                Ok(reply) => {
                    port.reply(reply_to, MessageBuf::from(&reply[..]));
                    Ok(())
                }
                Err(Refusal::Now) => {
                    reject(port, reply_to, None);
                    Ok(())
                }
                // A worker's mistake is the worker's to hear of; the master's ends the run here.
                Err(Refusal::Ever(failed)) => {
                    reject(port, reply_to, Some(&failed));
                    if reply_to.peer == MASTER { Err(failed) } else { Ok(()) }
                }
            },
            _ => Ok(()),
        }
    }

    fn asked(&mut self, reply_to: ReplyHandle, body: &Frame) -> Result<Vec<u8>, Refusal> {
        let Self { setup, server, totals, attempt: now, round: of, ended, .. } = self;
        let (spec, peer) = (&setup.spec, reply_to.peer);
        let nonsense = |what: &str| Failed::Message { peer, what: what.to_owned() };
        if peer != MASTER {
            let server = server.as_mut().ok_or(Refusal::Now)?;
            let mut reply = Vec::new();
            return match server.serve(body, &mut reply) {
                Ok(()) => Ok(reply),
                Err(error) if error.is_of_another_time() => Err(Refusal::Now),
                Err(error) => Err(error.into()),
            };
        }
        let control = Control::decode(spec.topics(), spec.words(), body)
            .ok_or_else(|| nonsense("bytes that are no message"))?;
        if let Control::Start { attempt, epoch, lengths, words } = control {
            // One that is over may come behind the word that it is.
            if attempt <= self.over.max(*now) {
                return Err(Refusal::Now);
            }
            let placement = place(spec, &setup.options, &words, lengths).map_err(Failed::from)?;
            let own = placement.slices_on(self.number, spec.topics());
            *now = attempt;
            (*of, *ended) = (Round::joining(epoch, attempt), None);
            *server = Some(Server::new(spec, &setup.options, *of, own));
            totals.fill(0);
            self.finished = false;
            self.stopped = None;
            return Ok(Vec::new());
        }
        // Who has started anew since, or never had words, has to hear of it too.
        if let Control::Finish { attempt, kept, stopped } = control {
            self.over = attempt.max(self.over);
            self.finished = true;
            self.stopped = stopped.then_some(kept);
            return Ok(Vec::new());
        }
        let server = server.as_mut().ok_or(Refusal::Now)?;
        match control {
            Control::End { round, wanted } => {
                let rounds = setup.options.rounds;
                let first = ended.map_or(*of, |last| last.next(rounds));
                if round != first || round > *of {
                    return Err(Refusal::Now);
                }
                let mut gained = vec![0; totals.len()];
                // What is brought into the rows is still beside them.
                let before = server.memory();
                server.end_round(round, &mut gained)?;
                *ended = Some(round);
                let there = gained.iter().enumerate().filter(|(_, by)| **by != 0);
                let row: Result<Vec<(u32, i32)>, _> = there
                    .map(|(topic, &by)| i32::try_from(by).map(|by| (topic as u32, by)))
                    .collect();
                let row = row.map_err(|_| nonsense("a topic gains more than 2^31 tokens here"))?;
                let mut reply = Vec::new();
                RowCode::new(spec.topics()).encode(&row, &mut reply);
                reply.extend((before.max(server.memory()) as u64).to_le_bytes());
                let mut found = setup.aggregates.aggregates(wanted, spec);
                if !found.is_empty() {
                    server.aggregate(&mut found);
                }
                found.encode(&mut reply);
                Ok(reply)
            }
            Control::Begin { round, gained, .. } => {
                let Options { rounds, .. } = setup.options;
                if round != of.next(rounds) {
                    return Err(Refusal::Now);
                }
                if server.num_rounds() >= setup.options.sync().max_open() {
                    return Err(nonsense("more rounds at once than there may be").into());
                }
                for (topic, by) in gained {
                    let total = &mut totals[topic as usize];
                    *total =
                        total.checked_add_signed(by).ok_or_else(|| nonsense("totals below 0"))?;
                }
                server.begin_round(round, totals);
                *of = round;
                Ok(Vec::new())
            }
            Control::Rows { attempt, slice } => {
                if attempt != *now {
                    return Err(Refusal::Now);
                }
                let mut reply = Vec::new();
                server.rows(slice, &mut reply)?;
                Ok(reply)
            }
            _ => Err(nonsense("a message for somebody else").into()),
        }
    }
}
