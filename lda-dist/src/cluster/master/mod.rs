//! The master: it says when a round begins, and what C_k is then.

mod gathering;
mod leaving;
mod rounds;

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use lda_transport::rpc::{Action, MessageBuf, ReplyHandle, RequestId, RequestKind};
use lda_transport::{Frame, NodeId};

use super::control::Control;
use super::gathered::Gathered;
use super::outbox::Outbox;
use super::tally::Tally;
use super::{Failed, Keeper, Port, Report, Setup, Stage, Topics, outcome, reject};
use crate::job::{JOINING, Round};
use crate::placement::{DocumentLengths, Placement, WordStats};
use crate::snapshot::{LATEST, decode_latest, encode_latest};
use crate::together::place;

/// Attempts in a row that may come to no end of an epoch.
const MOST_FRUITLESS: u32 = 100;

/// What was asked of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum For {
    /// Of servers, all of whom have to have done it before it goes on.
    Start,
    Begin,
    End,
    Rows,
    /// Of workers, who say by themselves when they are done.
    Told,
    /// Of workers, all of whom have to have done it.
    Keep,
    /// Of all.
    Finish,
    /// Of one that has to end, and waits until it hears that it may: whatever becomes of the attempt.
    Leave,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// Nodes have to be here, and workers to have said which words they have.
    Gone,
    /// So many servers have to place words.
    Starting(u32),
    /// Workers join servers, or sample.
    Working,
    /// So many servers have to say what their rows have gained.
    Ending(u32),
    /// So many servers have to begin.
    Beginning(u32),
    /// So many workers have to keep their topics, as nodes have to end.
    Keeping(u32),
    /// This slice's rows have to come.
    Gathering(u16),
    /// So many nodes have to hear that it was the last round.
    Finishing(u32),
    Finished,
}

/// The master of a run.
#[derive(Debug)]
pub struct Master {
    setup: Setup,
    keeper: Option<Keeper>,
    outbox: Outbox<For>,
    phase: Phase,
    /// Nodes that wait for what they are told, or do it.
    here: BTreeSet<NodeId>,
    words: WordStats,
    lengths: DocumentLengths,
    heard: BTreeSet<u16>,
    /// The last that any node has heard of.
    attempt: u32,
    /// Attempts since an epoch was done.
    fruitless: u32,
    /// Workers that are done with each round that is on.
    done: BTreeMap<Round, BTreeSet<NodeId>>,
    /// The last epoch that each worker has kept, and the last that all have.
    kept_by: BTreeMap<NodeId, u32>,
    kept: u32,
    /// The first round that is on, and the last that workers were told to begin.
    round: Round,
    begun: Round,
    /// Rounds to begin, one after the other, and what C_k has gained since the one before was.
    to_begin: VecDeque<(Round, Vec<(u32, i32)>)>,
    totals: Vec<i64>,
    gained: Vec<i64>,
    /// Of this epoch.
    tally: Tally,
    reports: VecDeque<Report>,
    topics: Option<Topics>,
    placement: Option<Placement>,
    gathered: Option<Gathered>,
    /// Nodes that have to end; all, if the master has to.
    stopping: BTreeSet<NodeId>,
    stopped: Option<u32>,
    trouble: Option<String>,
    pub(super) failed: Option<Failed>,
}

impl Master {
    /// Of this run.
    pub(super) fn new(setup: Setup, keeper: Option<Keeper>) -> Self {
        Self {
            keeper,
            outbox: Outbox::default(),
            phase: Phase::Gone,
            here: BTreeSet::new(),
            words: WordStats::none(setup.job.words() as usize),
            lengths: DocumentLengths::default(),
            heard: BTreeSet::new(),
            attempt: 0,
            fruitless: 0,
            done: BTreeMap::new(),
            kept_by: BTreeMap::new(),
            kept: 0,
            round: Round::joining(0, 0),
            begun: Round::joining(0, 0),
            to_begin: VecDeque::new(),
            totals: vec![0; setup.job.topics() as usize],
            gained: vec![0; setup.job.topics() as usize],
            tally: Tally::default(),
            reports: VecDeque::new(),
            topics: None,
            placement: None,
            gathered: None,
            stopping: BTreeSet::new(),
            stopped: None,
            trouble: None,
            failed: None,
            setup,
        }
    }

    /// Whether all epochs are done, and everyone knows.
    pub fn is_finished(&self) -> bool {
        self.phase == Phase::Finished
    }

    /// Whether all epochs are done: nodes close as they hear of it.
    pub(super) fn is_ending(&self) -> bool {
        matches!(self.phase, Phase::Finishing(_) | Phase::Finished)
    }

    /// The first round that is on; that of [`JOINING`] before the first and after going back.
    pub fn round(&self) -> Round {
        self.round
    }

    /// How far it has come.
    pub(super) fn stage(&self) -> Stage {
        match self.phase {
            Phase::Gone => Stage::Waiting,
            Phase::Starting(_) => Stage::Starting,
            Phase::Working if self.round.number == JOINING => Stage::Joining,
            Phase::Working => Stage::Sampling,
            Phase::Ending(_) => Stage::Ending,
            Phase::Beginning(_) => Stage::Beginning,
            Phase::Keeping(_) => Stage::Keeping,
            Phase::Gathering(_) => Stage::Gathering,
            Phase::Finishing(_) => Stage::Finishing,
            Phase::Finished => Stage::Finished,
        }
    }

    /// C_k as of the last round's end.
    pub fn totals(&self) -> &[i64] {
        &self.totals
    }

    /// What is known of an epoch, of each once, in order; again of those that are done again.
    pub fn report(&mut self) -> Option<Report> {
        self.reports.pop_front()
    }

    /// Words that stand for topics, as of the last epoch of which they were [asked for](Setup::top_words).
    pub fn topics(&self) -> Option<&Topics> {
        self.topics.as_ref()
    }

    /// Why what all have kept could not be written down, once each time. The run goes on.
    pub fn trouble(&mut self) -> Option<String> {
        self.trouble.take()
    }

    /// C_w and C_k after the last round, if it [gathers](Setup::gather) them: for a
    /// [`TopicModel`](lda_core::model::TopicModel).
    pub fn counts(&self) -> Option<&Gathered> {
        self.gathered.as_ref().filter(|_| self.is_finished())
    }

    /// The node has started: where does a run before it stand?
    pub(super) fn start(&mut self) -> Result<(), Failed> {
        let Some(keeper) = &self.keeper else { return Ok(()) };
        let failed = |why: String| Failed::Snapshot { name: LATEST.to_owned(), why };
        let storage = keeper.storage();
        if storage.has(LATEST).map_err(|error| failed(error.to_string()))? {
            let text = storage.read(LATEST).map_err(|error| failed(error.to_string()))?;
            self.kept = decode_latest(self.setup.run(), &text)
                .map_err(|error| failed(error.to_string()))?;
        }
        Ok(())
    }

    /// What the endpoint says.
    pub(super) fn act(&mut self, action: Action, port: &mut dyn Port) -> Result<(), Failed> {
        match action {
            Action::Joined { peer, restarted: true, .. } => {
                self.here.remove(&peer);
                // In another life.
                self.stopping.remove(&peer);
                if !self.is_ending() {
                    self.phase = Phase::Gone;
                    self.outbox.forget(peer);
                    self.clear_outbox(port);
                    self.let_go(port);
                }
                Ok(())
            }
            Action::Ready { peer } => {
                self.outbox.ready(port, peer);
                Ok(())
            }
            Action::Request { reply_to, body, .. } => self.asked(reply_to, &body, port),
            Action::Completed { request, outcome: how } => {
                // Of an attempt before nobody wants to know.
                let Some(what) = self.outbox.ended(port, request) else { return Ok(()) };
                match outcome(request, how)? {
                    Some(reply) => self.ended(what, request, &reply, port),
                    // Who has started anew has nothing to finish.
                    None if what == For::Finish => {
                        self.ended(what, request, &Frame::default(), port)
                    }
                    None => Ok(()),
                }
            }
            _ => Ok(()),
        }
    }

    fn asked(
        &mut self,
        reply_to: ReplyHandle,
        body: &Frame,
        port: &mut dyn Port,
    ) -> Result<(), Failed> {
        let (job, peer) = (&self.setup.job, reply_to.peer);
        let nonsense = |what: String| Failed::Message { peer, what };
        match Control::decode(job.topics(), job.words(), body) {
            Some(Control::Words { shard, lengths, word_stats }) => {
                port.reply(reply_to, MessageBuf::new());
                if shard >= self.setup.options.shards {
                    return Err(nonsense(format!("words of shard {shard}")));
                }
                // Who has started anew says it again.
                if self.heard.insert(shard) {
                    self.lengths.add(lengths);
                    for (word, tokens, documents) in word_stats {
                        let added = self.words.add(word, tokens.into(), documents.into());
                        added.map_err(|error| nonsense(error.to_string()))?;
                    }
                }
                self.try_to_start(port)
            }
            Some(Control::Here { attempt }) => {
                port.reply(reply_to, MessageBuf::new());
                if !(1..=self.num_others()).contains(&peer.0) {
                    return Err(nonsense("that it is here, as nobody knows whom".to_owned()));
                }
                self.attempt = self.attempt.max(attempt);
                self.here.insert(peer);
                if self.is_ending() {
                    let finish = self
                        .finish_message(self.stopped.is_some())
                        .encode(job.topics(), job.words());
                    self.outbox.send(port, peer, RequestKind::Push, &finish, For::Told);
                }
                self.try_to_start(port)
            }
            Some(Control::Again { attempt }) => {
                port.reply(reply_to, MessageBuf::new());
                if attempt == self.attempt && self.here.contains(&peer) && !self.is_ending() {
                    self.phase = Phase::Gone;
                    self.clear_outbox(port);
                    self.let_go(port);
                }
                self.try_to_start(port)
            }
            Some(Control::Done { round, kept, took }) => {
                port.reply(reply_to, MessageBuf::new());
                let is_on =
                    matches!(self.phase, Phase::Working | Phase::Ending(_) | Phase::Beginning(_));
                if !is_on || round.attempt != self.round.attempt {
                    // It will hear of another attempt.
                    return Ok(());
                }
                let on = self.round..=self.begun;
                let workers = self.setup.worker(0)..=NodeId(self.num_others());
                let may_be = workers.contains(&peer) && on.contains(&round);
                if !may_be || !self.done.entry(round).or_default().insert(peer) {
                    return Err(nonsense(format!("that it is done with {round:?}")));
                }
                if kept > round.epoch {
                    return Err(nonsense(format!("that it has kept epoch {kept} in {round}")));
                }
                if let Some(took) = took {
                    self.tally.of_worker(took);
                }
                self.kept_by.insert(peer, kept);
                if self.phase == Phase::Working {
                    self.try_to_end(port);
                }
                Ok(())
            }
            Some(Control::Stop) => {
                port.reply(reply_to, MessageBuf::new());
                if !(1..=self.num_others()).contains(&peer.0) {
                    return Err(nonsense("that it has to end, as nobody knows whom".to_owned()));
                }
                if !self.is_ending() {
                    self.stopping.insert(peer);
                }
                if self.phase == Phase::Gone {
                    self.let_go(port);
                }
                Ok(())
            }
            Some(Control::Failed(why)) => {
                port.reply(reply_to, MessageBuf::new());
                Err(Failed::Told { peer, why })
            }
            control => {
                let failed = nonsense(format!("{control:?}"));
                reject(port, reply_to, Some(&failed));
                Err(failed)
            }
        }
    }

    /// Servers and workers.
    fn num_others(&self) -> u32 {
        self.setup.options.servers + self.setup.workers
    }

    /// Begins another attempt, if all are here.
    fn try_to_start(&mut self, port: &mut dyn Port) -> Result<(), Failed> {
        let all = self.here.len() == self.num_others() as usize
            && self.heard.len() == usize::from(self.setup.options.shards);
        if self.phase != Phase::Gone || !all {
            return Ok(());
        }
        if self.fruitless == MOST_FRUITLESS {
            return Err(Failed::Attempts { attempts: self.fruitless });
        }
        self.fruitless += 1;
        self.attempt = self.attempt.saturating_add(1);
        if self.placement.is_none() {
            let Setup { job, options, .. } = &self.setup;
            self.placement = Some(place(job, options, &self.words, self.lengths)?);
        }
        self.clear_outbox(port);
        self.done.clear();
        self.to_begin.clear();
        self.kept_by.clear();
        self.gathered = None;
        self.totals.fill(0);
        self.tally = Tally::default();
        self.round = Round::joining(self.kept, self.attempt);
        self.begun = self.round;
        self.phase = Phase::Starting(self.setup.options.servers);
        self.tell_servers(&self.start_message(), RequestKind::Call, For::Start, port);
        Ok(())
    }

    /// Writes down what all workers have kept, for a master to come.
    fn note_kept(&mut self) {
        let all = self.kept_by.values().copied().min().unwrap_or(0);
        let Some(keeper) = self.keeper.as_ref().filter(|_| all > self.kept) else { return };
        match keeper.storage().write(LATEST, encode_latest(self.setup.run(), all).as_bytes()) {
            Ok(()) => self.kept = all,
            Err(error) => self.trouble = Some(error.to_string()),
        }
    }

    fn ended(
        &mut self,
        what: For,
        request: RequestId,
        reply: &Frame,
        port: &mut dyn Port,
    ) -> Result<(), Failed> {
        let topics = self.setup.job.topics();
        match (what, &mut self.phase) {
            (For::Start, Phase::Starting(left)) => {
                *left -= 1;
                if *left == 0 {
                    self.phase = Phase::Working;
                    self.tell_workers(&self.start_message(), RequestKind::Push, For::Told, port);
                }
            }
            (For::End, Phase::Ending(left)) => {
                let Some(gained) = self.tally.of_server(topics, reply) else {
                    let what = "totals that are none".to_owned();
                    return Err(Failed::Message { peer: request.peer, what });
                };
                for (topic, by) in gained {
                    self.gained[topic as usize] += i64::from(by);
                }
                *left -= 1;
                if *left == 0 {
                    self.next_round(port)?;
                }
            }
            (For::Begin, Phase::Beginning(left)) => {
                *left -= 1;
                if *left == 0 {
                    if let Some((round, gained)) = self.to_begin.pop_front() {
                        self.begun = round;
                        let begin = Control::Begin { round, kept: self.kept, gained };
                        self.tell_workers(&begin, RequestKind::Push, For::Told, port);
                    }
                    self.go_on(port);
                }
            }
            (For::Rows, &mut Phase::Gathering(slice)) => {
                self.gather(slice, reply, request)?;
                self.go_on_gathering(slice + 1, port)?;
            }
            (For::Keep, Phase::Keeping(left)) => {
                let kept = reply[..].try_into().map(u32::from_le_bytes);
                let Some(kept) = kept.ok().filter(|&kept| kept <= self.round.epoch) else {
                    let what = format!("that it has kept {reply:?} in {}", self.round);
                    return Err(Failed::Message { peer: request.peer, what });
                };
                self.kept_by.insert(request.peer, kept);
                *left -= 1;
                if *left == 0 {
                    self.note_kept();
                    self.let_go(port);
                }
            }
            (For::Finish, Phase::Finishing(left)) => {
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

    /// The attempt is over: nobody is told any more what belongs to it.
    fn clear_outbox(&mut self, port: &mut dyn Port) {
        self.outbox.clear_but(port, |what| *what == For::Leave);
    }

    fn start_message(&self) -> Control {
        let Round { epoch, attempt, .. } = self.round;
        let words = self.words.clone();
        Control::Start { attempt, epoch, lengths: self.lengths, words }
    }

    fn tell_servers(
        &mut self,
        control: &Control,
        kind: RequestKind,
        what: For,
        port: &mut dyn Port,
    ) {
        let frame = self.frame(control);
        for server in 0..self.setup.options.servers {
            self.outbox.tell(port, self.setup.server(server), kind, &frame, what);
        }
    }

    fn tell_workers(
        &mut self,
        control: &Control,
        kind: RequestKind,
        what: For,
        port: &mut dyn Port,
    ) {
        let frame = self.frame(control);
        for worker in 0..self.setup.workers {
            self.outbox.tell(port, self.setup.worker(worker), kind, &frame, what);
        }
    }

    fn frame(&self, control: &Control) -> Frame {
        Frame::from(control.encode(self.setup.job.topics(), self.setup.job.words()))
    }
}
