//! A worker of a run: shards of documents, sampled a partition at a time.

use std::collections::{BTreeSet, VecDeque};

use lda_core::counts::TopicIndex;
use lda_transport::Frame;
use lda_transport::endpoint::{Action, Draft, Kind, RequestId, Ticket};

use super::control::{Control, Took};
use super::master_link::Link;
use super::outbox::Outbox;
use super::{Documents, Failed, Keeper, MASTER, Port, Setup, outcome, reject};
use crate::bench::Bench;
use crate::job::{JOINING, Round};
use crate::placement::Placement;
use crate::request::{self, put_routes, size_of_byte};
use crate::route::Route;
use crate::shard::{Plan, Shard};
use crate::snapshot::{Of, decode, encode};
use crate::together::{Bytes, Routing, group, place};
use crate::wire::PushCode;

/// What was asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum For {
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

/// Topics of an epoch that are being kept: names of what is not there yet.
#[derive(Debug)]
struct Keeping {
    epoch: u32,
    left: BTreeSet<String>,
}

/// A worker of a run.
#[derive(Debug)]
pub struct Worker<T: TopicIndex, D> {
    setup: Setup,
    number: u32,
    documents: D,
    keeper: Option<Keeper>,
    link: Link,
    /// What servers are asked.
    outbox: Outbox<For>,
    attempt: u32,
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
    /// The last epoch whose topics are kept here, and that before which all are taken away.
    kept: u32,
    cleaned: u32,
    keeping: Option<Keeping>,
    trouble: Option<String>,
    finished: bool,
    pub(super) failed: Option<Failed>,
}

impl<T: TopicIndex, D: Documents> Worker<T, D> {
    /// Worker `number` of this run, from 0 on.
    pub(super) fn new(setup: Setup, number: u32, documents: D, keeper: Option<Keeper>) -> Self {
        Self {
            keeper,
            link: Link::default(),
            outbox: Outbox::default(),
            attempt: 0,
            placement: None,
            shards: Vec::new(),
            bench: Bench::new(setup.job.topics()),
            totals: vec![0; setup.job.topics() as usize],
            round: Round { epoch: 0, number: JOINING, attempt: 0 },
            left: VecDeque::new(),
            current: None,
            bytes: Bytes::default(),
            to_be_done: 0,
            kept: 0,
            cleaned: 0,
            keeping: None,
            trouble: None,
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

    /// Why topics could not be kept, once each time. The run goes on, and may have to go back further.
    pub fn trouble(&mut self) -> Option<String> {
        self.trouble.take()
    }

    /// A master that does not know this node is told which words its shards have.
    fn introduce(&mut self, port: &mut dyn Port) -> Result<(), Failed> {
        let words = self.setup.job.words();
        for shard in self.setup.shards(self.number) {
            let failed = |why: String| Failed::Documents { shard, why };
            let (corpus, _) = self.documents.read(shard).map_err(failed)?;
            if corpus.num_words() != words as usize {
                return Err(failed(format!("{} words for a job of {words}", corpus.num_words())));
            }
            let tokens = corpus.word_frequencies().into_iter().enumerate();
            let there = tokens.filter(|(_, tokens)| *tokens > 0);
            let row: Result<Vec<(u32, u32)>, _> = there
                .map(|(word, tokens)| u32::try_from(tokens).map(|n| (word as u32, n)))
                .collect();
            let frequencies = row.map_err(|_| {
                failed("a word of more than 2^32 tokens: cut it into more shards".to_owned())
            })?;
            let documents = corpus.num_documents() as u64;
            let told = Control::Words { shard, documents, frequencies };
            self.link.tell(&told, &self.setup, port);
        }
        self.link.tell(&Control::Here { attempt: self.attempt }, &self.setup, port);
        Ok(())
    }

    /// What the endpoint says.
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
                self.outbox.ready(port, peer);
                Ok(())
            }
            Action::Asked { ticket, body, .. } => self.asked(ticket, &body, port),
            Action::Ended { request, outcome } if request.peer == MASTER => {
                self.link.ended(request, outcome)
            }
            Action::Ended { request, outcome: how } => {
                // Of an attempt before nobody wants to know.
                let Some(what) = self.outbox.ended(request) else { return Ok(()) };
                match outcome(request, how)? {
                    Some(reply) => self.ended(what, request, reply, port),
                    // The server is in another attempt, and this node will be.
                    None => Ok(()),
                }
            }
            _ => Ok(()),
        }
    }

    fn asked(&mut self, ticket: Ticket, body: &Frame, port: &mut dyn Port) -> Result<(), Failed> {
        let (job, peer) = (&self.setup.job, ticket.peer);
        let nonsense = |what: &str| Failed::Message { peer, what: what.to_owned() };
        let control = match Control::decode(job.topics(), job.words(), body) {
            Some(control) if peer == MASTER => control,
            _ => {
                let failed = nonsense("a message for somebody else");
                reject(port, ticket, Some(&failed));
                return if peer == MASTER { Err(failed) } else { Ok(()) };
            }
        };
        port.reply(ticket, Draft::new());
        match control {
            Control::Start { attempt, epoch, documents, frequencies } if attempt > self.attempt => {
                self.attempt = attempt;
                self.go_to(epoch, documents, &frequencies, port)
            }
            Control::Begin { round, kept, gained } if round.attempt == self.attempt => {
                for (topic, by) in gained {
                    let total = &mut self.totals[topic as usize];
                    let sum = total.checked_add_signed(by);
                    *total = sum.ok_or_else(|| nonsense("totals below 0"))?;
                }
                self.clean(kept);
                self.begin(round, port)
            }
            // Of an attempt before.
            Control::Start { .. } | Control::Begin { .. } => Ok(()),
            Control::Finish { kept } => {
                self.clean(kept);
                self.finished = true;
                self.outbox.clear();
                Ok(())
            }
            _ => Err(nonsense("a message for somebody else")),
        }
    }

    /// Goes to where topics are those of an epoch's end, or the first ones, and brings counts to the servers.
    fn go_to(
        &mut self,
        epoch: u32,
        documents: u64,
        frequencies: &[u64],
        port: &mut dyn Port,
    ) -> Result<(), Failed> {
        self.outbox.clear();
        self.left.clear();
        self.current = None;
        self.to_be_done = 0;
        self.bytes = Bytes::default();
        self.totals.fill(0);
        self.shards.clear();
        self.keeping = None;
        (self.kept, self.finished) = (epoch, false);
        self.round = Round { epoch, number: JOINING, attempt: self.attempt };
        let placement = place(&self.setup.job, &self.setup.options, frequencies, documents)?;
        let mut body = Vec::new();
        for number in self.setup.shards(self.number) {
            let (corpus, first) = self
                .documents
                .read(number)
                .map_err(|why| Failed::Documents { shard: number, why })?;
            let all = 0..corpus.num_documents();
            let mut shard = Shard::new(&self.setup.job, &placement, number, &corpus, all, first)?;
            if epoch > 0 {
                self.restore(&mut shard, epoch)?;
            }
            for partition in 0..placement.num_partitions() as u16 {
                body.clear();
                shard.join(&self.setup.job, &placement, partition, self.round, &mut body);
                let server = self.setup.server(placement.server(partition.into()));
                self.outbox.send(port, server, Kind::Push, &body, For::Join);
                self.to_be_done += 1;
            }
            self.shards.push(shard);
        }
        self.placement = Some(placement);
        // Who was here before may not have heard that all have kept this one.
        self.cleaned = epoch.saturating_sub(self.setup.keep_every);
        self.clean(epoch);
        Ok(())
    }

    fn of(&self, shard: u16, epoch: u32) -> Of {
        Of { run: self.setup.run(), epoch, shard }
    }

    fn restore(&self, shard: &mut Shard<T>, epoch: u32) -> Result<(), Failed> {
        let of = self.of(shard.number(), epoch);
        let failed = |why: String| Failed::Snapshot { name: of.name(), why };
        let Some(keeper) = &self.keeper else {
            return Err(failed(
                "this worker has no storage: give it the one of the others".to_owned(),
            ));
        };
        let bytes = keeper.storage().read(&of.name()).map_err(|error| failed(error.to_string()))?;
        let topics = decode::<T>(&of, &bytes).map_err(|error| failed(error.to_string()))?;
        shard.restore(&self.setup.job, &topics).map_err(|error| failed(error.to_string()))
    }

    /// Begins to keep the topics of this epoch, unless others are still being written.
    fn keep(&mut self) {
        let epoch = self.round.epoch;
        let ofs: Vec<Of> = self.shards.iter().map(|shard| self.of(shard.number(), epoch)).collect();
        let Some(keeper) = self.keeper.as_mut().filter(|keeper| !keeper.is_busy()) else { return };
        for (of, shard) in ofs.iter().zip(&self.shards) {
            keeper.write(of.name(), encode(of, &shard.topics()));
        }
        self.keeping = Some(Keeping { epoch, left: ofs.iter().map(Of::name).collect() });
    }

    /// Sees what is kept now.
    fn note_kept(&mut self) {
        let written = self.keeper.as_mut().map_or(Vec::new(), Keeper::written);
        for (name, ended) in written {
            match (ended, &mut self.keeping) {
                (Ok(()), Some(Keeping { left, .. })) => drop(left.remove(&name)),
                (Ok(()), None) => {}
                (Err(error), _) => {
                    self.trouble = Some(error.to_string());
                    self.keeping = None;
                }
            }
        }
        if let Some(Keeping { epoch, .. }) = self.keeping.take_if(|it| it.left.is_empty()) {
            self.kept = epoch;
        }
    }

    /// Takes away what nobody goes back to.
    fn clean(&mut self, kept: u32) {
        let old = (self.cleaned..kept).filter(|&epoch| epoch > 0 && self.setup.keeps(epoch));
        let shards = || self.shards.iter().map(Shard::number);
        let ofs: Vec<Of> = old
            .flat_map(|epoch| shards().map(move |shard| (shard, epoch)))
            .map(|(shard, epoch)| self.of(shard, epoch))
            .collect();
        self.cleaned = self.cleaned.max(kept);
        let Some(keeper) = &self.keeper else { return };
        for of in ofs {
            if let Err(error) = keeper.storage().remove(&of.name()) {
                self.trouble = Some(error.to_string());
            }
        }
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
                let took = self.took();
                if took.is_some() && self.setup.keeps(self.round.epoch) {
                    self.keep();
                }
                self.note_kept();
                let told = Control::Done { round: self.round, kept: self.kept, took };
                self.link.tell(&told, &self.setup, port);
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
        let Round { epoch, number, .. } = self.round;
        if number == JOINING || number + 1 < self.setup.options.rounds {
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
        what: For,
        request: RequestId,
        frame: Frame,
        port: &mut dyn Port,
    ) -> Result<(), Failed> {
        let len = frame.len() as u64;
        match what {
            For::Sizes => self.bytes.sizes += len,
            For::Answer => self.bytes.answers += len,
            For::Rows => self.bytes.rows += len,
            For::Join | For::Gained => {}
        }
        match what {
            For::Join | For::Gained => {
                self.to_be_done -= 1;
                self.go_on(port)
            }
            For::Sizes => {
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
            For::Answer => {
                self.current.iter_mut().for_each(|current| current.answer = Some(frame.clone()));
                self.sample(port)
            }
            For::Rows => {
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
