//! The master: it says when a round begins, and what C_k is then.

mod collecting;
mod rounds;
mod shutdown;

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use lda_transport::rpc::{Action, MessageBuf, ReplyHandle, RequestId, RequestKind};
use lda_transport::{Frame, NodeId};

use super::collected_counts::CollectedCounts;
use super::control::Control;
use super::epoch_stats::EpochStats;
use super::request_queue::RequestQueue;
use super::{Failed, Phase, Port, Report, Setup, SnapshotWriter, Topics, outcome, reject};
use crate::placement::{DocumentLengths, Placement, WordStats};
use crate::plan::place;
use crate::snapshot::{LATEST, decode_latest, encode_latest};
use crate::spec::{JOINING, Round};

/// Attempts in a row that may come to no end of an epoch.
const MOST_FRUITLESS: u32 = 100;

/// What was asked of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RequestPurpose {
    /// Of servers, all of whom have to have done it before it goes on.
    Start,
    Begin,
    End,
    Rows,
    /// Of workers, who say by themselves when they are done.
    Notice,
    /// Of workers, all of whom have to have done it.
    Keep,
    /// Of all.
    Finish,
    /// Of one that has to end, and waits until it hears that it may: whatever becomes of the attempt.
    Leave,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    /// Nodes have to be here, and workers to have said which words they have.
    Waiting,
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
    Collecting(u16),
    /// So many nodes have to hear that it was the last round.
    Finishing(u32),
    Finished,
}

/// The master of a run.
#[derive(Debug)]
pub struct Master {
    setup: Setup,
    snapshot_writer: Option<SnapshotWriter>,
    requests: RequestQueue<RequestPurpose>,
    step: Step,
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
    epoch_stats: EpochStats,
    reports: VecDeque<Report>,
    topics: Option<Topics>,
    placement: Option<Placement>,
    collected: Option<CollectedCounts>,
    /// Nodes that have to end; all, if the master has to.
    stopping: BTreeSet<NodeId>,
    stopped: Option<u32>,
    trouble: Option<String>,
    pub(super) failed: Option<Failed>,
}

impl Master {
    /// Of this run.
    pub(super) fn new(setup: Setup, snapshot_writer: Option<SnapshotWriter>) -> Self {
        Self {
            snapshot_writer,
            requests: RequestQueue::default(),
            step: Step::Waiting,
            here: BTreeSet::new(),
            words: WordStats::none(setup.spec.words() as usize),
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
            totals: vec![0; setup.spec.topics() as usize],
            gained: vec![0; setup.spec.topics() as usize],
            epoch_stats: EpochStats::default(),
            reports: VecDeque::new(),
            topics: None,
            placement: None,
            collected: None,
            stopping: BTreeSet::new(),
            stopped: None,
            trouble: None,
            failed: None,
            setup,
        }
    }

    /// The setup that the node was made with.
    pub(super) fn setup(&self) -> &Setup {
        &self.setup
    }

    /// Whether all epochs are done, and everyone knows.
    pub fn is_finished(&self) -> bool {
        self.step == Step::Finished
    }

    /// Whether all epochs are done: nodes close as they hear of it.
    pub(super) fn is_ending(&self) -> bool {
        matches!(self.step, Step::Finishing(_) | Step::Finished)
    }

    /// The first round that is on; that of [`JOINING`] before the first and after going back.
    pub fn round(&self) -> Round {
        self.round
    }

    /// How far it has come.
    pub(super) fn phase(&self) -> Phase {
        match self.step {
            Step::Waiting => Phase::Waiting,
            Step::Starting(_) => Phase::Starting,
            Step::Working if self.round.number == JOINING => Phase::Joining,
            Step::Working => Phase::Sampling,
            Step::Ending(_) => Phase::Ending,
            Step::Beginning(_) => Phase::Beginning,
            Step::Keeping(_) => Phase::Keeping,
            Step::Collecting(_) => Phase::Collecting,
            Step::Finishing(_) => Phase::Finishing,
            Step::Finished => Phase::Finished,
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

    /// C_w and C_k after the last round, if it [gathers](Setup::collect_model) them: for a
    /// [`TopicModel`](lda_core::model::TopicModel).
    pub fn counts(&self) -> Option<&CollectedCounts> {
        self.collected.as_ref().filter(|_| self.is_finished())
    }

    /// The node has started: where does a run before it stand?
    pub(super) fn start(&mut self) -> Result<(), Failed> {
        let Some(snapshot_writer) = &self.snapshot_writer else { return Ok(()) };
        let failed = |why: String| Failed::Snapshot { name: LATEST.to_owned(), why };
        let storage = snapshot_writer.storage();
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
                    self.step = Step::Waiting;
                    self.requests.forget(peer);
                    self.clear_requests(port);
                    self.release_stopping(port);
                }
                Ok(())
            }
            Action::Ready { peer } => {
                self.requests.ready(port, peer);
                Ok(())
            }
            Action::Request { reply_to, body, .. } => self.asked(reply_to, &body, port),
            Action::Completed { request, outcome: how } => {
                // Of an attempt before nobody wants to know.
                let Some(what) = self.requests.ended(port, request) else { return Ok(()) };
                match outcome(request, how)? {
                    Some(reply) => self.ended(what, request, &reply, port),
                    // Who has started anew has nothing to finish.
                    None if what == RequestPurpose::Finish => {
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
        let (spec, peer) = (&self.setup.spec, reply_to.peer);
        let nonsense = |what: String| Failed::Message { peer, what };
        match Control::decode(spec.topics(), spec.words(), body) {
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
            Some(Control::Ready { attempt }) => {
                port.reply(reply_to, MessageBuf::new());
                if !(1..=self.num_others()).contains(&peer.0) {
                    return Err(nonsense("that it is here, as nobody knows whom".to_owned()));
                }
                self.attempt = self.attempt.max(attempt);
                self.here.insert(peer);
                if self.is_ending() {
                    let finish = self
                        .finish_message(self.stopped.is_some())
                        .encode(spec.topics(), spec.words());
                    self.requests.send(
                        port,
                        peer,
                        RequestKind::Push,
                        &finish,
                        RequestPurpose::Notice,
                    );
                }
                self.try_to_start(port)
            }
            Some(Control::RestartRequest { attempt }) => {
                port.reply(reply_to, MessageBuf::new());
                if attempt == self.attempt && self.here.contains(&peer) && !self.is_ending() {
                    self.step = Step::Waiting;
                    self.clear_requests(port);
                    self.release_stopping(port);
                }
                self.try_to_start(port)
            }
            Some(Control::RoundDone { round, kept, epoch_stats }) => {
                port.reply(reply_to, MessageBuf::new());
                let is_on =
                    matches!(self.step, Step::Working | Step::Ending(_) | Step::Beginning(_));
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
                if let Some(epoch_stats) = epoch_stats {
                    self.epoch_stats.of_worker(epoch_stats);
                }
                self.kept_by.insert(peer, kept);
                if self.step == Step::Working {
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
                if self.step == Step::Waiting {
                    self.release_stopping(port);
                }
                Ok(())
            }
            Some(Control::Failed(why)) => {
                port.reply(reply_to, MessageBuf::new());
                Err(Failed::PeerFailed { peer, why })
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
        if self.step != Step::Waiting || !all {
            return Ok(());
        }
        if self.fruitless == MOST_FRUITLESS {
            return Err(Failed::Attempts { attempts: self.fruitless });
        }
        self.fruitless += 1;
        self.attempt = self.attempt.saturating_add(1);
        if self.placement.is_none() {
            let Setup { spec, options, .. } = &self.setup;
            self.placement = Some(place(spec, options, &self.words, self.lengths)?);
        }
        self.clear_requests(port);
        self.done.clear();
        self.to_begin.clear();
        self.kept_by.clear();
        self.collected = None;
        self.totals.fill(0);
        self.epoch_stats = EpochStats::default();
        self.round = Round::joining(self.kept, self.attempt);
        self.begun = self.round;
        self.step = Step::Starting(self.setup.options.servers);
        self.send_servers(&self.start_message(), RequestKind::Call, RequestPurpose::Start, port);
        Ok(())
    }

    /// Writes down what all workers have kept, for a master to come.
    fn note_kept(&mut self) {
        let all = self.kept_by.values().copied().min().unwrap_or(0);
        let Some(snapshot_writer) = self.snapshot_writer.as_ref().filter(|_| all > self.kept)
        else {
            return;
        };
        match snapshot_writer
            .storage()
            .write(LATEST, encode_latest(self.setup.run(), all).as_bytes())
        {
            Ok(()) => self.kept = all,
            Err(error) => self.trouble = Some(error.to_string()),
        }
    }

    fn ended(
        &mut self,
        what: RequestPurpose,
        request: RequestId,
        reply: &Frame,
        port: &mut dyn Port,
    ) -> Result<(), Failed> {
        let topics = self.setup.spec.topics();
        match (what, &mut self.step) {
            (RequestPurpose::Start, Step::Starting(left)) => {
                *left -= 1;
                if *left == 0 {
                    self.step = Step::Working;
                    self.send_workers(
                        &self.start_message(),
                        RequestKind::Push,
                        RequestPurpose::Notice,
                        port,
                    );
                }
            }
            (RequestPurpose::End, Step::Ending(left)) => {
                let gained = self.epoch_stats.of_server(topics, reply);
                let gained = gained.map_err(|what| Failed::Message { peer: request.peer, what })?;
                for (topic, by) in gained {
                    self.gained[topic as usize] += i64::from(by);
                }
                *left -= 1;
                if *left == 0 {
                    self.next_round(port)?;
                }
            }
            (RequestPurpose::Begin, Step::Beginning(left)) => {
                *left -= 1;
                if *left == 0 {
                    if let Some((round, gained)) = self.to_begin.pop_front() {
                        self.begun = round;
                        let begin = Control::Begin { round, kept: self.kept, gained };
                        self.send_workers(&begin, RequestKind::Push, RequestPurpose::Notice, port);
                    }
                    self.advance(port);
                }
            }
            (RequestPurpose::Rows, &mut Step::Collecting(slice)) => {
                self.collect_model(slice, reply, request)?;
                self.request_slice(slice + 1, port)?;
            }
            (RequestPurpose::Keep, Step::Keeping(left)) => {
                let kept = reply[..].try_into().map(u32::from_le_bytes);
                let Some(kept) = kept.ok().filter(|&kept| kept <= self.round.epoch) else {
                    let what = format!("that it has kept {reply:?} in {}", self.round);
                    return Err(Failed::Message { peer: request.peer, what });
                };
                self.kept_by.insert(request.peer, kept);
                *left -= 1;
                if *left == 0 {
                    self.note_kept();
                    self.release_stopping(port);
                }
            }
            (RequestPurpose::Finish, Step::Finishing(left)) => {
                *left -= 1;
                if *left == 0 {
                    self.step = Step::Finished;
                }
            }
            // Workers have taken what they were told.
            _ => {}
        }
        Ok(())
    }

    /// The attempt is over: nobody is told any more what belongs to it.
    fn clear_requests(&mut self, port: &mut dyn Port) {
        self.requests.clear_but(port, |what| *what == RequestPurpose::Leave);
    }

    fn start_message(&self) -> Control {
        let Round { epoch, attempt, .. } = self.round;
        let words = self.words.clone();
        Control::Start { attempt, epoch, lengths: self.lengths, words }
    }

    fn send_servers(
        &mut self,
        control: &Control,
        kind: RequestKind,
        what: RequestPurpose,
        port: &mut dyn Port,
    ) {
        let frame = self.frame(control);
        for server in 0..self.setup.options.servers {
            self.requests.broadcast(port, self.setup.server(server), kind, &frame, what);
        }
    }

    fn send_workers(
        &mut self,
        control: &Control,
        kind: RequestKind,
        what: RequestPurpose,
        port: &mut dyn Port,
    ) {
        let frame = self.frame(control);
        for worker in 0..self.setup.workers {
            self.requests.broadcast(port, self.setup.worker(worker), kind, &frame, what);
        }
    }

    fn frame(&self, control: &Control) -> Frame {
        Frame::from(control.encode(self.setup.spec.topics(), self.setup.spec.words()))
    }
}
