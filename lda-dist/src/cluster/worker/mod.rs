//! A worker of a run: shards of documents, sampled a partition at a time.

mod join;
mod round;
mod snapshots;

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use lda_core::counts::TopicIndex;
use lda_transport::Frame;
use lda_transport::rpc::{Action, FailureReason, MessageBuf, Outcome, ReplyHandle};

use super::control::{Control, WorkerEpochStats};
use super::master_link::Link;
use super::request_queue::RequestQueue;
use super::{
    Documents, Failed, MASTER, NodeState, Phase, Port, Setup, SnapshotWriter, Waited, outcome,
    reject,
};
use crate::config::Options;
use crate::partition_sampler::PartitionSampler;
use crate::placement::{DocumentLengths, Placement, WordStats};
use crate::plan::place;
use crate::shard::Shard;
use crate::spec::{JOINING, Round};
use crate::stats::Bytes;

use round::{PartitionInFlight, PartitionTask};
use snapshots::SnapshotsInProgress;

/// What a server was asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RequestPurpose {
    Join(Round),
    Deltas(Round),
    Sizes(PartitionTask),
    /// Of a slice, which is at this place among the partition's.
    Rows(PartitionTask, u16),
    Answer(PartitionTask),
}

/// A worker of a run.
#[derive(Debug)]
pub struct Worker<T: TopicIndex, D> {
    setup: Setup,
    number: u32,
    documents: D,
    snapshot_writer: Option<SnapshotWriter>,
    link: Link,
    /// What servers are asked.
    requests: RequestQueue<RequestPurpose>,
    attempt: u32,
    /// The last that it was told is over.
    over: u32,
    placement: Option<Placement>,
    shards: Vec<Shard<T>>,
    sampler: PartitionSampler<T>,
    /// Bytes that plans of partitions that were underway took at once, the most there were.
    planned: usize,
    /// The round that is sampled here, or was the last, and C_k in it.
    round: Round,
    totals: Vec<u32>,
    /// Slices that shards have to join yet, and how many bytes of it may be underway.
    to_join: VecDeque<(usize, u16)>,
    max_join_bytes: usize,
    /// Whether something of it is left to sample.
    sampling: bool,
    /// Rounds that may begin after it, in whatever order that was heard, and what C_k has gained in each of them.
    may_begin: BTreeMap<Round, Vec<(u32, i32)>>,
    /// The last of which partitions may be underway.
    queued: Round,
    /// Partitions of shards that are left of these rounds.
    left: VecDeque<PartitionTask>,
    /// Shards whose long documents are to be sampled before any partition.
    long_documents: VecDeque<usize>,
    /// Those that are underway; of a shard in the order that it samples them in.
    in_flight: VecDeque<PartitionInFlight>,
    /// What moved in this epoch, and how long this node waited.
    bytes: Bytes,
    waited: Waited,
    /// The same since the beginning.
    waited_in_all: Waited,
    /// Rounds of which nothing is left here, but that servers do what they were asked: what each of them took, and how
    /// many requests servers have to do before it is done.
    unreported: VecDeque<(Round, Option<WorkerEpochStats>)>,
    unacknowledged: BTreeMap<Round, usize>,
    /// The last epoch whose topics are kept here, and that before which all are taken away.
    kept: u32,
    cleaned: u32,
    /// The epoch that this attempt began with.
    gone_on_from: u32,
    snapshots_in_progress: Option<SnapshotsInProgress>,
    trouble: Option<String>,
    finished: bool,
    /// The epoch that the run goes on from, if it was stopped.
    stopped: Option<u32>,
    pub(super) failed: Option<Failed>,
}

impl<T: TopicIndex, D: Documents> Worker<T, D> {
    /// Worker `number` of this run, from 0 on.
    pub(super) fn new(
        setup: Setup,
        number: u32,
        documents: D,
        snapshot_writer: Option<SnapshotWriter>,
    ) -> Self {
        Self {
            snapshot_writer,
            link: Link::default(),
            requests: RequestQueue::default(),
            attempt: 0,
            over: 0,
            placement: None,
            shards: Vec::new(),
            sampler: PartitionSampler::new(setup.spec.topics()),
            planned: 0,
            round: Round::joining(0, 0),
            totals: vec![0; setup.spec.topics() as usize],
            to_join: VecDeque::new(),
            max_join_bytes: join::MOST,
            sampling: false,
            may_begin: BTreeMap::new(),
            queued: Round::joining(0, 0),
            left: VecDeque::new(),
            long_documents: VecDeque::new(),
            in_flight: VecDeque::new(),
            bytes: Bytes::default(),
            waited: Waited::default(),
            waited_in_all: Waited::default(),
            unreported: VecDeque::new(),
            unacknowledged: BTreeMap::new(),
            kept: 0,
            cleaned: 0,
            gone_on_from: 0,
            snapshots_in_progress: None,
            trouble: None,
            finished: false,
            stopped: None,
            failed: None,
            setup,
            number,
            documents,
        }
    }

    /// The setup that the node was made with.
    pub(super) fn setup(&self) -> &Setup {
        &self.setup
    }

    /// Its shards, once words are placed.
    pub fn shards(&self) -> &[Shard<T>] {
        &self.shards
    }

    /// Whether the master has said that it was the last round.
    pub fn is_finished(&self) -> bool {
        self.finished
    }

    /// So much time has gone by with nothing to do.
    pub(super) fn waited(&mut self, time: Duration) {
        let is_done = self.is_done();
        let (servers, master) =
            if is_done { (Duration::ZERO, time) } else { (time, Duration::ZERO) };
        let waited = Waited { servers, master };
        self.waited.add(&waited);
        self.waited_in_all.add(&waited);
    }

    /// Whether nothing is left to do here until the master begins another round.
    fn is_done(&self) -> bool {
        !self.sampling && self.unreported.is_empty()
    }

    /// How far it has come.
    pub(super) fn phase(&self) -> Phase {
        match self.round.number {
            _ if self.finished => Phase::Finished,
            _ if self.shards.is_empty() => Phase::Waiting,
            _ if self.is_done() => Phase::Between,
            JOINING => Phase::Joining,
            _ => Phase::Sampling,
        }
    }

    /// How it stands.
    pub(super) fn state(&self) -> NodeState {
        let Self { round, waited_in_all: waited, .. } = *self;
        NodeState { round, memory: self.memory(), waited }
    }

    /// The epoch that the run goes on from when it is begun again, if it was stopped.
    pub fn stopped(&self) -> Option<u32> {
        self.stopped
    }

    /// This node has to end.
    pub(super) fn stop(&mut self, port: &mut dyn Port) {
        self.link.stop(&self.setup, port);
    }

    /// Why topics could not be kept, once each time. The run goes on, and may have to go back further.
    pub fn trouble(&mut self) -> Option<String> {
        self.trouble.take()
    }

    /// A master that does not know this node is told which words its shards have.
    fn introduce(&mut self, port: &mut dyn Port) -> Result<(), Failed> {
        let words = self.setup.spec.words();
        for shard in self.setup.shards(self.number) {
            let failed = |why: String| Failed::Documents { shard, why };
            let (corpus, _) =
                self.documents.read(shard).map_err(|error| failed(error.to_string()))?;
            if corpus.num_words() != words as usize {
                return Err(failed(format!("{} words for a job of {words}", corpus.num_words())));
            }
            let both = corpus.word_frequencies().into_iter().zip(corpus.document_frequencies());
            let there = (0..).zip(both).filter(|(_, (tokens, _))| *tokens > 0);
            let word_stats: Result<Vec<(u32, u32, u32)>, _> = there
                .map(|(word, (tokens, documents))| {
                    u32::try_from(tokens).map(|tokens| (word, tokens, documents))
                })
                .collect();
            let word_stats = word_stats.map_err(|_| {
                failed("a word of more than 2^32 tokens: cut it into more shards".to_owned())
            })?;
            let told = Control::Words { shard, lengths: DocumentLengths::of(&corpus), word_stats };
            self.link.send(&told, &self.setup, port);
        }
        self.link.introduce(self.attempt.max(self.over), &self.setup, port);
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
                self.requests.ready(port, peer);
                Ok(())
            }
            Action::Request { reply_to, body, .. } => self.asked(reply_to, &body, port),
            Action::Completed { request, outcome } if request.peer == MASTER => {
                self.link.ended(request, outcome, port)
            }
            Action::Completed { request, outcome: how } => {
                // Of an attempt before nobody wants to know.
                let Some(what) = self.requests.ended(port, request) else { return Ok(()) };
                let lost =
                    matches!(how, Outcome::Unknown { reason: FailureReason::NewIncarnation, .. });
                match outcome(request, how)? {
                    Some(reply) => self.ended(what, request, reply, port),
                    None if lost => {
                        // It was asked of a server that had crashed. The one in its place may be in this attempt, if
                        // the master knew of it before this node did.
                        self.requests.clear();
                        self.link.send(
                            &Control::RestartRequest { attempt: self.attempt },
                            &self.setup,
                            port,
                        );
                        Ok(())
                    }
                    // The server is in another attempt, and this node will be.
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
        let nonsense = |what: &str| Failed::Message { peer, what: what.to_owned() };
        let control = match Control::decode(spec.topics(), spec.words(), body) {
            Some(control) if peer == MASTER => control,
            _ => {
                let failed = nonsense("a message for somebody else");
                reject(port, reply_to, Some(&failed));
                return if peer == MASTER { Err(failed) } else { Ok(()) };
            }
        };
        if let Control::Keep { attempt, epoch } = control {
            if attempt != self.attempt || epoch != self.round.epoch {
                reject(port, reply_to, None);
                return Ok(());
            }
            self.write_snapshots_now();
            port.reply(reply_to, MessageBuf::from(&self.kept.to_le_bytes()[..]));
            return Ok(());
        }
        port.reply(reply_to, MessageBuf::new());
        match control {
            // One that is over may come behind the word that it is.
            Control::Start { attempt, epoch, lengths, words }
                if attempt > self.attempt.max(self.over) =>
            {
                self.attempt = attempt;
                self.restart_from(epoch, lengths, &words, port)
            }
            Control::Begin { round, kept, gained } if round.attempt == self.attempt => {
                let Options { rounds, .. } = self.setup.options;
                let oldest = self.round.next(rounds);
                if !self.setup.options.sync().may_start(round, oldest, rounds) {
                    return Err(nonsense("a round that cannot be now"));
                }
                if kept > round.epoch {
                    return Err(nonsense("that an epoch is kept which is to come"));
                }
                self.remove_old(kept);
                self.may_begin.insert(round, gained);
                self.advance(port)
            }
            // Of an attempt before.
            Control::Start { .. } | Control::Begin { .. } => Ok(()),
            Control::Finish { attempt, kept, stopped } => {
                self.over = attempt.max(self.over);
                // Who has started anew may hear of any epoch, and has nothing to take away.
                self.remove_old(kept.min(self.round.epoch));
                self.finished = true;
                self.stopped = stopped.then_some(kept);
                self.requests.clear();
                Ok(())
            }
            _ => Err(nonsense("a message for somebody else")),
        }
    }

    /// Goes to where topics are those of an epoch's end, or the first ones, and brings counts to the servers.
    fn restart_from(
        &mut self,
        epoch: u32,
        lengths: DocumentLengths,
        words: &WordStats,
        port: &mut dyn Port,
    ) -> Result<(), Failed> {
        self.requests.clear();
        self.left.clear();
        self.long_documents.clear();
        self.in_flight.clear();
        self.may_begin.clear();
        self.sampling = false;
        self.unreported.clear();
        self.to_join.clear();
        self.unacknowledged.clear();
        self.bytes = Bytes::default();
        self.waited = Waited::default();
        self.totals.fill(0);
        self.shards.clear();
        self.snapshots_in_progress = None;
        (self.kept, self.gone_on_from, self.finished, self.stopped) = (epoch, epoch, false, None);
        self.round = Round::joining(epoch, self.attempt);
        self.queued = self.round;
        self.unreported.push_back((self.round, None));
        let placement = place(&self.setup.spec, &self.setup.options, words, lengths)?;
        for number in self.setup.shards(self.number) {
            let (corpus, first) = self
                .documents
                .read(number)
                .map_err(|error| Failed::Documents { shard: number, why: error.to_string() })?;
            let all = 0..corpus.num_documents();
            let Setup { spec, options, .. } = &self.setup;
            let hybrid = options.hybrid;
            let mut shard = Shard::new(spec, hybrid, &placement, number, &corpus, all, first)?;
            if epoch > 0 {
                self.restore(&mut shard, epoch)?;
            }
            self.shards.push(shard);
        }
        self.placement = Some(placement);
        self.plan_join();
        self.join(port);
        // Who was here before may not have heard that all have kept this one.
        self.cleaned = epoch.saturating_sub(self.setup.checkpoint_every);
        self.remove_old(epoch);
        Ok(())
    }
}
