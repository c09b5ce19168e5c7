//! The master: it says when a round begins, and what C_k is then.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use lda_core::special::ln_rising;
use lda_transport::endpoint::{Action, Draft, Kind, RequestId, Ticket};
use lda_transport::{Frame, NodeId};

use super::control::{Control, Took, take_parts};
use super::gathered::Gathered;
use super::outbox::Outbox;
use super::{Failed, Port, Report, Setup, fatal, outcome};
use crate::job::Round;
use crate::placement::Placement;
use crate::together::{Bytes, place};
use crate::wire::RowCode;

/// What was asked of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum For {
    /// Of servers, all of whom have to have done it before it goes on.
    Plan,
    Begin,
    End,
    Rows,
    /// Of workers, who say by themselves when they are done.
    Told,
    /// Of all.
    Finish,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// Workers say which words they have.
    Words,
    /// So many servers are told where words are placed.
    PlanServers(u32),
    /// Workers join servers, or sample; so many are done.
    Working(u32),
    /// So many servers have to say what their rows have gained.
    Ending(u32),
    /// So many servers have to begin.
    Beginning(u32),
    /// This partition's rows have to come.
    Gathering(u16),
    /// So many nodes have to hear that it was the last round.
    Finishing(u32),
    Finished,
}

/// The master of a run.
#[derive(Debug)]
pub struct Master {
    setup: Setup,
    outbox: Outbox<For>,
    phase: Phase,
    frequencies: Vec<u64>,
    documents: u64,
    heard: BTreeSet<u16>,
    done: BTreeSet<NodeId>,
    /// The round that is on.
    round: Round,
    totals: Vec<i64>,
    gained: Vec<i64>,
    /// Of this epoch.
    bytes: Bytes,
    /// Parts of the log joint, of documents by shard and of words by partition: added up in this order.
    documents_parts: BTreeMap<u16, f64>,
    words_parts: BTreeMap<u16, f64>,
    reports: VecDeque<Report>,
    placement: Option<Placement>,
    gathered: Option<Gathered>,
    failed: Option<Failed>,
}

impl Master {
    /// Of this run.
    pub fn new(setup: Setup) -> Self {
        Self {
            outbox: Outbox::default(),
            phase: Phase::Words,
            frequencies: vec![0; setup.job.words() as usize],
            documents: 0,
            heard: BTreeSet::new(),
            done: BTreeSet::new(),
            round: Round { epoch: 0, number: 0 },
            totals: vec![0; setup.job.topics() as usize],
            gained: vec![0; setup.job.topics() as usize],
            bytes: Bytes::default(),
            documents_parts: BTreeMap::new(),
            words_parts: BTreeMap::new(),
            reports: VecDeque::new(),
            placement: None,
            gathered: None,
            failed: None,
            setup,
        }
    }

    /// Whether all epochs are done, and everyone knows.
    pub fn is_finished(&self) -> bool {
        self.phase == Phase::Finished
    }

    /// Why it has given up, if it has.
    pub fn failed(&self) -> Option<&Failed> {
        self.failed.as_ref()
    }

    /// The round that is on; epoch 0 before the first.
    pub fn round(&self) -> Round {
        self.round
    }

    /// C_k as of the last round's end.
    pub fn totals(&self) -> &[i64] {
        &self.totals
    }

    /// What is known of an epoch, of each once, in order.
    pub fn report(&mut self) -> Option<Report> {
        self.reports.pop_front()
    }

    /// C_w and C_k after the last round, if it [gathers](Setup::gather) them: for a
    /// [`TopicModel`](lda_core::model::TopicModel).
    pub fn counts(&self) -> Option<&Gathered> {
        self.gathered.as_ref().filter(|_| self.is_finished())
    }

    /// A node has closed.
    pub fn closed(&mut self, peer: NodeId) {
        // After the last round nodes close as they hear of it.
        if !matches!(self.phase, Phase::Finishing(_) | Phase::Finished) {
            self.failed.get_or_insert(Failed::Away { peer });
        }
    }

    /// What the endpoint says.
    pub fn act(&mut self, action: Action, port: &mut dyn Port) {
        if self.failed.is_some() {
            return;
        }
        if let Some(failed) = fatal(&action) {
            self.failed = Some(failed);
            return;
        }
        let acted = match action {
            Action::Ready { peer } => {
                self.outbox.ready(port, peer);
                Ok(())
            }
            Action::Asked { ticket, body, .. } => self.asked(ticket, &body, port),
            Action::Ended { request, outcome: how } => {
                outcome(request, how).and_then(|frame| self.ended(request, &frame, port))
            }
            _ => Ok(()),
        };
        self.failed = acted.err();
    }

    fn asked(&mut self, ticket: Ticket, body: &Frame, port: &mut dyn Port) -> Result<(), Failed> {
        let (job, peer) = (&self.setup.job, ticket.peer);
        let nonsense = |what: String| Failed::Message { peer, what };
        match (Control::decode(job.topics(), job.words(), body), self.phase) {
            (Some(Control::Words { shard, documents, frequencies }), Phase::Words) => {
                port.reply(ticket, Draft::new());
                if shard >= self.setup.options.shards || !self.heard.insert(shard) {
                    return Err(nonsense(format!("words of shard {shard}")));
                }
                self.documents += documents;
                for (word, tokens) in frequencies {
                    self.frequencies[word as usize] += u64::from(tokens);
                }
                if self.heard.len() == usize::from(self.setup.options.shards) {
                    let Setup { job, options, .. } = &self.setup;
                    self.placement = Some(place(job, options, &self.frequencies, self.documents)?);
                    self.phase = Phase::PlanServers(self.setup.options.servers);
                    self.tell_servers(&self.plan(), Kind::Push, For::Plan, port);
                }
                Ok(())
            }
            (Some(Control::Done { round, took }), Phase::Working(_)) if round == self.round => {
                port.reply(ticket, Draft::new());
                if !self.done.insert(peer) {
                    return Err(nonsense("that it is done, twice".to_owned()));
                }
                if let Some(Took { bytes, parts }) = took {
                    self.bytes.add(&bytes);
                    self.documents_parts.extend(parts);
                }
                if self.done.len() == self.setup.workers as usize {
                    self.done.clear();
                    self.gained.fill(0);
                    self.phase = Phase::Ending(self.setup.options.servers);
                    let judged = self.is_judged();
                    let end = Control::End { round, judged };
                    self.tell_servers(&end, Kind::Call, For::End, port);
                }
                Ok(())
            }
            (Some(Control::Failed(why)), _) => {
                port.reply(ticket, Draft::new());
                Err(Failed::Told { peer, why })
            }
            (control, phase) => {
                port.reject(ticket, Draft::from(&b"not now"[..]));
                Err(nonsense(format!("{control:?} in {phase:?}")))
            }
        }
    }

    fn ended(
        &mut self,
        request: RequestId,
        reply: &Frame,
        port: &mut dyn Port,
    ) -> Result<(), Failed> {
        let topics = self.setup.job.topics();
        match (self.outbox.ended(request), &mut self.phase) {
            (Some(For::Plan), Phase::PlanServers(left)) => {
                *left -= 1;
                if *left == 0 {
                    self.phase = Phase::Working(0);
                    self.tell_workers(&self.plan(), For::Told, port);
                }
            }
            (Some(For::End), Phase::Ending(left)) => {
                let (mut gained, mut rest) = (Vec::<(u32, i32)>::new(), &reply[..]);
                let read = RowCode::new(topics).decode(&mut rest, &mut gained);
                self.bytes.totals += (reply.len() - rest.len()) as u64;
                let judged = rest.is_empty().then(Vec::new).or_else(|| take_parts(&mut rest));
                let (Ok(()), Some(parts), []) = (read, judged, rest) else {
                    let what = "totals that are none".to_owned();
                    return Err(Failed::Message { peer: request.peer, what });
                };
                self.words_parts.extend(parts);
                for (topic, by) in gained {
                    self.gained[topic as usize] += i64::from(by);
                }
                *left -= 1;
                if *left == 0 {
                    self.next_round(port)?;
                }
            }
            (Some(For::Begin), Phase::Beginning(left)) => {
                *left -= 1;
                if *left == 0 {
                    self.phase = Phase::Working(0);
                    self.tell_workers(&self.begin()?, For::Told, port);
                }
            }
            (Some(For::Rows), &mut Phase::Gathering(partition)) => {
                self.gather(partition, reply, request)?;
                self.go_on_gathering(partition + 1, port)?;
            }
            (Some(For::Finish), Phase::Finishing(left)) => {
                *left -= 1;
                if *left == 0 {
                    self.phase = Phase::Finished;
                }
            }
            // Workers have taken what they were told.
            _ => {}
        }
        Ok(())
    }

    fn next_round(&mut self, port: &mut dyn Port) -> Result<(), Failed> {
        for (total, gained) in self.totals.iter_mut().zip(&self.gained) {
            *total += gained;
        }
        let Round { epoch, number } = self.round;
        let last = number + 1 == self.setup.options.rounds;
        let all = RowCode::new(self.setup.job.topics()).size(&self.gained_row()?) as u64;
        self.bytes.totals += all * u64::from(self.setup.options.servers + self.setup.workers);
        if last && epoch > 0 {
            let log_joint = self.is_judged().then(|| self.log_joint());
            self.reports.push_back(Report { epoch, bytes: self.bytes, log_joint });
            self.documents_parts.clear();
            self.words_parts.clear();
        }
        if last || epoch == 0 {
            self.bytes = Bytes::default();
        }
        // What shards join with is round 0 of epoch 0.
        if epoch == self.setup.epochs && (last || epoch == 0) {
            if self.setup.gather {
                let (topics, words) = (self.totals.len(), self.frequencies.len());
                self.gathered = Some(Gathered::new(topics, words));
                return self.go_on_gathering(0, port);
            }
            self.finish(port);
            return Ok(());
        }
        self.round = if last || epoch == 0 {
            Round { epoch: epoch + 1, number: 0 }
        } else {
            Round { epoch, number: number + 1 }
        };
        self.phase = Phase::Beginning(self.setup.options.servers);
        self.tell_servers(&self.begin()?, Kind::Push, For::Begin, port);
        Ok(())
    }

    fn finish(&mut self, port: &mut dyn Port) {
        self.phase = Phase::Finishing(self.setup.options.servers + self.setup.workers);
        self.tell_servers(&Control::Finish, Kind::Push, For::Finish, port);
        self.tell_workers(&Control::Finish, For::Finish, port);
    }

    /// Asks for the rows of a partition, or ends if there is none left: then they add up to C_k.
    fn go_on_gathering(&mut self, partition: u16, port: &mut dyn Port) -> Result<(), Failed> {
        let Some(placement) = &self.placement else { return Ok(()) };
        if usize::from(partition) == placement.num_partitions() {
            let adds_up = |gathered: &Gathered| gathered.add_up_to(&self.totals);
            if !self.gathered.as_ref().is_some_and(adds_up) {
                let what = "rows that do not add up to the totals".to_owned();
                return Err(Failed::Message { peer: super::MASTER, what });
            }
            self.finish(port);
            return Ok(());
        }
        self.phase = Phase::Gathering(partition);
        let server = self.setup.server(placement.server(partition.into()));
        let (topics, words) = (self.setup.job.topics(), self.setup.job.words());
        let control = Control::Rows { partition }.encode(topics, words);
        self.outbox.send(port, server, Kind::Pull, &control, For::Rows);
        Ok(())
    }

    /// Takes the rows of a partition.
    fn gather(
        &mut self,
        partition: u16,
        mut rows: &[u8],
        request: RequestId,
    ) -> Result<(), Failed> {
        let nonsense =
            |what: String| Failed::Message { peer: request.peer, what: format!("rows: {what}") };
        let code = RowCode::new(self.setup.job.topics());
        let (Some(placement), Some(gathered)) = (&self.placement, &mut self.gathered) else {
            return Ok(());
        };
        for word in placement.words(partition.into()) {
            let mut row: Vec<(u32, u32)> = Vec::new();
            code.decode(&mut rows, &mut row).map_err(|error| nonsense(error.to_string()))?;
            gathered.set(word, row);
        }
        if rows.is_empty() { Ok(()) } else { Err(nonsense(format!("{} bytes more", rows.len()))) }
    }

    fn plan(&self) -> Control {
        Control::Plan { documents: self.documents, frequencies: self.frequencies.clone() }
    }

    /// Whether the round that is on is an epoch's last, after which the model is judged.
    fn is_judged(&self) -> bool {
        let Round { epoch, number } = self.round;
        epoch > 0 && number + 1 == self.setup.options.rounds && self.setup.judges(epoch)
    }

    fn log_joint(&self) -> f64 {
        let Setup { job, .. } = &self.setup;
        let beta_bar = job.beta() * f64::from(job.words());
        let of_totals = self.totals.iter().map(|&total| ln_rising(beta_bar, total as u64));
        let documents: f64 = self.documents_parts.values().sum();
        let words: f64 = self.words_parts.values().sum();
        documents + words - of_totals.sum::<f64>()
    }

    fn begin(&self) -> Result<Control, Failed> {
        Ok(Control::Begin { round: self.round, gained: self.gained_row()? })
    }

    fn gained_row(&self) -> Result<Vec<(u32, i32)>, Failed> {
        let there = self.gained.iter().enumerate().filter(|(_, by)| **by != 0);
        let gained: Result<Vec<(u32, i32)>, _> =
            there.map(|(topic, &by)| i32::try_from(by).map(|by| (topic as u32, by))).collect();
        gained.map_err(|_| Failed::Message {
            peer: super::MASTER,
            what: "a topic gains more than 2^31 tokens in a round".to_owned(),
        })
    }

    fn tell_servers(&mut self, control: &Control, kind: Kind, what: For, port: &mut dyn Port) {
        let bytes = control.encode(self.setup.job.topics(), self.setup.job.words());
        for server in 0..self.setup.options.servers {
            self.outbox.send(port, self.setup.server(server), kind, &bytes, what);
        }
    }

    fn tell_workers(&mut self, control: &Control, what: For, port: &mut dyn Port) {
        let bytes = control.encode(self.setup.job.topics(), self.setup.job.words());
        for worker in 0..self.setup.workers {
            self.outbox.send(port, self.setup.worker(worker), Kind::Push, &bytes, what);
        }
    }
}
