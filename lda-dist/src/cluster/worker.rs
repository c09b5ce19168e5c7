//! A worker of a run: shards of documents, sampled a partition at a time.

use std::collections::VecDeque;

use lda_core::counts::TopicIndex;
use lda_transport::endpoint::{Action, Draft, Kind, RequestId, Ticket};
use lda_transport::{Frame, NodeId};

use super::control::{Control, Took};
use super::outbox::Outbox;
use super::{Documents, Failed, MASTER, Port, Setup, fatal, outcome};
use crate::bench::Bench;
use crate::job::Round;
use crate::placement::Placement;
use crate::request::{self, put_routes, size_of_byte};
use crate::route::Route;
use crate::shard::{Plan, Shard};
use crate::together::{Bytes, Routing, group, place};
use crate::wire::PushCode;

/// What was asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum For {
    /// Of the master: it is told something.
    Told,
    Join,
    Sizes,
    Answer,
    Rows,
    Gained,
}

/// A partition of a shard, as far as it has come.
#[derive(Debug)]
struct Current {
    /// Place among this worker's shards.
    shard: usize,
    partition: u16,
    plan: Plan,
    /// What has to come, and what has.
    answer: Option<Frame>,
    rows: Option<Frame>,
}

/// A worker of a run.
#[derive(Debug)]
pub struct Worker<T: TopicIndex, D> {
    setup: Setup,
    number: u32,
    documents: D,
    outbox: Outbox<For>,
    placement: Option<Placement>,
    shards: Vec<Shard<T>>,
    bench: Bench<T>,
    totals: Vec<u32>,
    round: Round,
    /// Partitions of shards that are left of this round.
    left: VecDeque<(usize, u16)>,
    current: Option<Current>,
    /// What moved in this epoch.
    bytes: Bytes,
    /// Requests that servers have to do before the round is done here.
    to_be_done: usize,
    finished: bool,
    failed: Option<Failed>,
}

impl<T: TopicIndex, D: Documents> Worker<T, D> {
    /// Worker `number` of this run, from 0 on.
    pub fn new(setup: Setup, number: u32, documents: D) -> Self {
        Self {
            outbox: Outbox::default(),
            placement: None,
            shards: Vec::new(),
            bench: Bench::new(setup.job.topics()),
            totals: vec![0; setup.job.topics() as usize],
            round: Round { epoch: 0, number: 0 },
            left: VecDeque::new(),
            current: None,
            bytes: Bytes::default(),
            to_be_done: 0,
            finished: false,
            failed: None,
            setup,
            number,
            documents,
        }
    }

    /// Its shards, once words are placed.
    pub fn shards(&self) -> &[Shard<T>] {
        &self.shards
    }

    /// Whether the master has said that it was the last round.
    pub fn is_finished(&self) -> bool {
        self.finished
    }

    /// Why it has given up, if it has.
    pub fn failed(&self) -> Option<&Failed> {
        self.failed.as_ref()
    }

    /// The node has started: the master is told which words its shards have.
    pub fn start(&mut self, port: &mut dyn Port) {
        let (topics, words) = (self.setup.job.topics(), self.setup.job.words());
        for shard in self.setup.shards(self.number) {
            let corpus = match self.documents.read(shard) {
                Ok((corpus, _)) => corpus,
                Err(why) => {
                    self.failed = Some(Failed::Documents { shard, why });
                    return;
                }
            };
            if corpus.num_words() != words as usize {
                let why = format!("{} words for a job of {words}", corpus.num_words());
                self.failed = Some(Failed::Documents { shard, why });
                return;
            }
            let tokens = corpus.word_frequencies().into_iter().enumerate();
            let there = tokens.filter(|(_, tokens)| *tokens > 0);
            let row: Result<Vec<(u32, u32)>, _> = there
                .map(|(word, tokens)| u32::try_from(tokens).map(|n| (word as u32, n)))
                .collect();
            let Ok(frequencies) = row else {
                let why = "a word of more than 2^32 tokens: cut it into more shards".to_owned();
                self.failed = Some(Failed::Documents { shard, why });
                return;
            };
            let documents = corpus.num_documents() as u64;
            let told = Control::Words { shard, documents, frequencies }.encode(topics, words);
            self.outbox.send(port, MASTER, Kind::Push, &told, For::Told);
        }
    }

    /// A node has closed.
    pub fn closed(&mut self, peer: NodeId) {
        if peer == MASTER && !self.finished {
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
                outcome(request, how).and_then(|frame| self.ended(request, frame, port))
            }
            _ => Ok(()),
        };
        self.failed = acted.err();
    }

    fn asked(&mut self, ticket: Ticket, body: &Frame, port: &mut dyn Port) -> Result<(), Failed> {
        let (topics, words) = (self.setup.job.topics(), self.setup.job.words());
        let control = Control::decode(topics, words, body).filter(|_| ticket.peer == MASTER);
        match (control, &self.placement) {
            (Some(Control::Plan { documents, frequencies }), None) => {
                port.reply(ticket, Draft::new());
                self.join(&frequencies, documents, port)
            }
            (Some(Control::Begin { round, gained }), Some(_)) if self.is_idle() => {
                port.reply(ticket, Draft::new());
                for (topic, by) in gained {
                    let total = &mut self.totals[topic as usize];
                    *total = total.checked_add_signed(by).ok_or(Failed::Message {
                        peer: MASTER,
                        what: format!("a total of topic {topic} below 0"),
                    })?;
                }
                self.begin(round, port)
            }
            (Some(Control::Finish), Some(_)) if self.is_idle() => {
                port.reply(ticket, Draft::new());
                self.finished = true;
                Ok(())
            }
            _ => {
                port.reject(ticket, Draft::from(&b"not now"[..]));
                let what = "a message at a wrong time".to_owned();
                Err(Failed::Message { peer: ticket.peer, what })
            }
        }
    }

    fn is_idle(&self) -> bool {
        self.left.is_empty() && self.current.is_none() && self.to_be_done == 0
    }

    /// Joins the servers.
    fn join(
        &mut self,
        frequencies: &[u64],
        documents: u64,
        port: &mut dyn Port,
    ) -> Result<(), Failed> {
        let placement = place(&self.setup.job, &self.setup.options, frequencies, documents)?;
        let mut body = Vec::new();
        for number in self.setup.shards(self.number) {
            let (corpus, first) = self
                .documents
                .read(number)
                .map_err(|why| Failed::Documents { shard: number, why })?;
            let all = 0..corpus.num_documents();
            let shard = Shard::new(&self.setup.job, &placement, number, &corpus, all, first)?;
            for partition in 0..placement.num_partitions() as u16 {
                body.clear();
                shard.join(&self.setup.job, &placement, partition, &mut body);
                let server = self.setup.server(placement.server(partition.into()));
                self.outbox.send(port, server, Kind::Push, &body, For::Join);
                self.to_be_done += 1;
            }
            self.shards.push(shard);
        }
        self.placement = Some(placement);
        Ok(())
    }

    fn begin(&mut self, round: Round, port: &mut dyn Port) -> Result<(), Failed> {
        self.round = round;
        let Some(placement) = &self.placement else { return Ok(()) };
        for (at, shard) in self.shards.iter_mut().enumerate() {
            if round.number == 0 {
                shard.begin_epoch(&self.setup.job);
            }
            shard.begin_round(&self.totals)?;
            let group = group(&self.setup.options, placement, shard.number(), round.number);
            let some = group.filter(|&partition| !shard.words(partition).is_empty());
            self.left.extend(some.map(|partition| (at, partition)));
        }
        self.go_on(port)
    }

    /// The next partition, or the round's end.
    fn go_on(&mut self, port: &mut dyn Port) -> Result<(), Failed> {
        if self.current.is_some() {
            return Ok(());
        }
        let Some((shard, partition)) = self.left.pop_front() else {
            if self.to_be_done == 0 {
                let (topics, words) = (self.setup.job.topics(), self.setup.job.words());
                let took = self.took();
                let told = Control::Done { round: self.round, took }.encode(topics, words);
                self.outbox.send(port, MASTER, Kind::Push, &told, For::Told);
            }
            return Ok(());
        };
        let plan = Plan::default();
        self.current = Some(Current { shard, partition, plan, answer: None, rows: None });
        let words = self.shards[shard].words(partition).len();
        match self.setup.options.routing {
            Routing::Cheapest => {
                self.ask(shard, partition, request::Kind::Sizes, &[], For::Sizes, port);
                Ok(())
            }
            Routing::Pull => {
                let plan = self.shards[shard].request(partition, vec![Route::Pull; words]);
                self.exchange(plan, port)
            }
            Routing::Push => {
                let dear = vec![crate::together::DEAR; words];
                let plan = self.shards[shard].plan(partition, &dear, self.setup.options.longest);
                self.exchange(plan, port)
            }
        }
    }

    /// What an epoch took, after its last round.
    fn took(&mut self) -> Option<Took> {
        let Round { epoch, number } = self.round;
        if epoch == 0 || number + 1 < self.setup.options.rounds {
            return None;
        }
        let part = |shard: &Shard<T>| (shard.number(), shard.log_joint(&self.setup.job));
        let judged = self.setup.judges(epoch);
        let parts = if judged { self.shards.iter().map(part).collect() } else { Vec::new() };
        Some(Took { bytes: std::mem::take(&mut self.bytes), parts })
    }

    /// Asks the server of a partition.
    fn ask(
        &mut self,
        shard: usize,
        partition: u16,
        kind: request::Kind,
        body: &[u8],
        what: For,
        port: &mut dyn Port,
    ) {
        let Some(placement) = &self.placement else { return };
        let mut bytes = Vec::new();
        request::begin(kind, &self.shards[shard].about(partition, self.round), &mut bytes);
        bytes.extend_from_slice(body);
        self.bytes.count_request(kind, bytes.len() as u64);
        let server = self.setup.server(placement.server(partition.into()));
        let how = match kind {
            request::Kind::Sizes | request::Kind::Pull => Kind::Pull,
            request::Kind::Push => Kind::Call,
            request::Kind::Join | request::Kind::Gained => Kind::Push,
        };
        self.outbox.send(port, server, how, &bytes, what);
    }

    /// Pushes and pulls.
    fn exchange(&mut self, plan: Plan, port: &mut dyn Port) -> Result<(), Failed> {
        let code = self.code(&plan);
        let (mut documents, mut routes) = (Vec::new(), Vec::new());
        plan.pushed.iter().for_each(|document| code.encode(document, &mut documents));
        put_routes(&plan.routes, &mut routes);
        let pulls = plan.routes.contains(&Route::Pull);
        let Some(current) = &mut self.current else { return Ok(()) };
        current.plan = plan;
        // What need not come is there.
        current.answer = documents.is_empty().then(|| Vec::new().into());
        current.rows = (!pulls).then(|| Vec::new().into());
        let (shard, partition) = (current.shard, current.partition);
        if !documents.is_empty() {
            self.ask(shard, partition, request::Kind::Push, &documents, For::Answer, port);
        }
        if pulls {
            self.ask(shard, partition, request::Kind::Pull, &routes, For::Rows, port);
        }
        Ok(())
    }

    fn code(&self, plan: &Plan) -> PushCode {
        let words = plan.routes.len() as u32;
        PushCode::new(self.setup.job.topics(), words, self.setup.options.longest)
    }

    fn ended(
        &mut self,
        request: RequestId,
        frame: Frame,
        port: &mut dyn Port,
    ) -> Result<(), Failed> {
        let what = self.outbox.ended(request);
        let len = frame.len() as u64;
        match what {
            Some(For::Sizes) => self.bytes.sizes += len,
            Some(For::Answer) => self.bytes.answers += len,
            Some(For::Rows) => self.bytes.rows += len,
            _ => {}
        }
        match what {
            None | Some(For::Told) => Ok(()),
            Some(For::Join | For::Gained) => {
                self.to_be_done -= 1;
                self.go_on(port)
            }
            Some(For::Sizes) => {
                let Some(Current { shard, partition, .. }) = self.current else { return Ok(()) };
                let shard = &self.shards[shard];
                let (found, words) = (frame.len(), shard.words(partition).len());
                if found != words {
                    let what = format!("{found} sizes of {words} words");
                    return Err(Failed::Message { peer: request.peer, what });
                }
                let sizes: Vec<u32> = frame.iter().map(|&byte| size_of_byte(byte)).collect();
                let plan = shard.plan(partition, &sizes, self.setup.options.longest);
                self.exchange(plan, port)
            }
            Some(For::Answer) => {
                self.current.iter_mut().for_each(|current| current.answer = Some(frame.clone()));
                self.sample(port)
            }
            Some(For::Rows) => {
                self.current.iter_mut().for_each(|current| current.rows = Some(frame.clone()));
                self.sample(port)
            }
        }
    }

    /// Samples the current partition, if all has come.
    fn sample(&mut self, port: &mut dyn Port) -> Result<(), Failed> {
        let all = |current: &mut Current| current.answer.is_some() && current.rows.is_some();
        let Some(current) = self.current.take_if(all) else { return Ok(()) };
        let Current { shard: at, partition, plan, answer, rows } = current;
        let code = self.code(&plan);
        let Self { setup, shards, bench, totals, round, .. } = self;
        let shard = &mut shards[at];
        let mut body = Vec::new();
        let pulls = plan.routes.contains(&Route::Pull);
        if pulls {
            let rows = rows.as_deref().unwrap_or_default();
            put_routes(&plan.routes, &mut body);
            shard.sample(bench, &setup.job, *round, partition, &plan, totals, rows, &mut body)?;
        }
        shard.answered(code, partition, &plan, answer.as_deref().unwrap_or_default())?;
        if pulls {
            self.ask(at, partition, request::Kind::Gained, &body, For::Gained, port);
            self.to_be_done += 1;
        }
        self.go_on(port)
    }
}
