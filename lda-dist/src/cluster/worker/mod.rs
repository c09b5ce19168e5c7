//! Worker of a run: holds shards of documents, and samples them partition by partition.
//!
//! The state that a restart discards is an [`Attempt`]; a restart drops it and makes another.

mod attempt;
mod join;
mod memory_checkpoints;
mod reports;
mod snapshots;
mod tasks;

use std::time::Duration;

use lda_core::counts::TopicIndex;
use lda_transport::Frame;
use lda_transport::rpc::{Action, MessageBuf, ReplyHandle};

use super::control::Control;
use super::epoch_range::EpochRange;
use super::master_link::Link;
use super::{
    CheckpointError, Documents, Failed, MASTER, NodeState, Phase, Port, Setup, SnapshotWriter,
    Waited, reject,
};
use crate::held_rows::staying;
use crate::placement::{DocumentLengths, Placement, WordStats};
use crate::plan::place;
use crate::sampler_pool::SamplerPool;
use crate::shard::{Shard, ShardDocuments};
use crate::snapshot::Latest;
use crate::spec::{JOINING, Round};

use attempt::{AfterRound, Attempt};
use memory_checkpoints::MemoryCheckpoints;
use snapshots::{SnapshotStorage, Snapshots};

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
}

impl<T: TopicIndex> Default for WorkerState<T> {
    fn default() -> Self {
        Self { shards: Vec::new(), memory_checkpoints: MemoryCheckpoints::default() }
    }
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
            Some(attempt) if attempt.round().number == JOINING => Phase::Joining,
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

    /// Sends the word counts of the shards to a master that does not have them.
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
            let words = Control::Words { shard, lengths: DocumentLengths::of(&corpus), word_stats };
            self.link.send(&words, &self.setup, port);
        }
        let in_memory =
            self.attempt.as_ref().map_or(EpochRange::default(), Attempt::epochs_in_memory);
        let attempt = self.attempt_number().max(self.over);
        self.link.introduce(attempt, in_memory, &self.setup, port);
        Ok(())
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
        if let Control::Keep { attempt, epoch } = control {
            self.keep(reply_to, (attempt, epoch), port);
            return Ok(());
        }
        port.reply(reply_to, MessageBuf::new());
        match control {
            // The start of an attempt that is over may arrive after the message that it is over.
            Control::Start { attempt, epoch, checkpoint, lengths, words }
                if attempt > self.attempt_number().max(self.over) =>
            {
                let joining = Round::joining(epoch, attempt);
                self.restart_from((joining, checkpoint), lengths, &words, port)
            }
            Control::Begin { round, needed, write, push, delta } => {
                self.begin((round, needed), AfterRound { write, push }, delta, port)
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
                    attempt.requests.clear();
                }
                Ok(())
            }
            _ => Err(unexpected("a message for another node")),
        }
    }

    /// Writes the topics of an epoch, as nodes have to stop, and replies with the last epoch that
    /// is written.
    fn keep(&mut self, reply_to: ReplyHandle, (number, epoch): (u32, u32), port: &mut dyn Port) {
        let (Some(attempt), mut node) = self.parts(port) else {
            reject(port, reply_to, None);
            return;
        };
        let round = attempt.round();
        if (number, epoch) != (round.attempt, round.epoch) {
            reject(node.port, reply_to, None);
            return;
        }
        let kept = attempt.write_snapshots_now(&mut node);
        node.port.reply(reply_to, MessageBuf::from(&kept.to_le_bytes()[..]));
    }

    /// Starts a round, if it is one of this attempt.
    fn begin(
        &mut self,
        (round, needed): (Round, u32),
        after: AfterRound,
        delta: Vec<(u32, i32)>,
        port: &mut dyn Port,
    ) -> Result<(), Failed> {
        let (Some(attempt), mut node) = self.parts(port) else { return Ok(()) };
        if round.attempt != attempt.round().attempt {
            return Ok(());
        }
        let options = &node.setup.options;
        let oldest = attempt.round().next(options.rounds);
        if !options.sync().may_start(round, oldest, options.rounds) {
            return Err(unexpected("a round that may not start now"));
        }
        if needed > round.epoch {
            return Err(unexpected("a future epoch as the first one that is needed"));
        }
        attempt.remove_old(needed, &mut node);
        attempt.begin(round, after, delta, &mut node)
    }

    /// Starts an attempt: restores the topics of the epoch, or makes the first ones, and sends
    /// counts to the servers. If it does not have them, the master starts another one, from an epoch
    /// before. Shards of the attempt before are kept, unless the run goes back to the first topics and they
    /// are not in memory: these are made while documents are read.
    fn restart_from(
        &mut self,
        (joining, checkpoint): (Round, Latest),
        lengths: DocumentLengths,
        words: &WordStats,
        port: &mut dyn Port,
    ) -> Result<(), Failed> {
        let before = self.attempt.take();
        (self.finished, self.stopped) = (false, None);
        let (setup, epoch) = (&self.setup, joining.epoch);
        let Setup { spec, options, .. } = setup;
        let placement = place(spec, options, words, lengths)?;
        let kept = before.filter(|attempt| *attempt.placement() == placement);
        let WorkerState { shards: mut kept, mut memory_checkpoints } =
            kept.map_or_else(WorkerState::default, Attempt::into_state);
        memory_checkpoints.retain(epoch);
        let in_memory = memory_checkpoints.topics(epoch);
        if epoch == 0 && in_memory.is_none() {
            kept.clear();
        }
        let mut kept = kept.into_iter().peekable();
        let mut shards = Vec::new();
        for (index, number) in setup.shards(self.number).into_iter().enumerate() {
            let mut shard = match kept.next_if(|shard| shard.number() == number) {
                Some(shard) => shard,
                None => self.read_shard(number, &placement)?,
            };
            let topics = in_memory.and_then(|shards| shards.get(index));
            if let Err(failed) = self.restore(&mut shard, topics, epoch, checkpoint) {
                let may_fall_back = epoch > checkpoint.epoch
                    || checkpoint.before > 0 && self.storage.writer.is_some();
                return if may_fall_back {
                    self.fall_back(joining, &failed, port)
                } else {
                    Err(failed)
                };
            }
            shards.push(shard);
        }
        if in_memory.is_none() {
            memory_checkpoints.add(epoch, &shards);
        }
        let snapshots = Snapshots::new(checkpoint, setup, &mut self.storage);
        let most = self.max_join_bytes;
        let share = shards.len() as f64 / f64::from(options.shards);
        let held: usize = shards.iter().map(Shard::memory).sum();
        let stays = staying::<T>(setup.trip(&placement), words, share, held);
        let (placed, state) = ((placement, stays), WorkerState { shards, memory_checkpoints });
        self.attempt = Some(Attempt::new(setup, joining, placed, state, snapshots, most));
        if let (Some(attempt), mut node) = self.parts(port) {
            attempt.join(&mut node);
        }
        Ok(())
    }

    /// Sets the topics of a shard to those after an epoch: from memory if they are there, else from the
    /// checkpoint.
    fn restore(
        &self,
        shard: &mut Shard<T>,
        in_memory: Option<&Vec<T>>,
        epoch: u32,
        checkpoint: Latest,
    ) -> Result<(), Failed> {
        match in_memory {
            Some(topics) => shard.restore(&self.setup.spec, topics).map_err(|error| {
                Failed::Documents { shard: shard.number(), why: error.to_string() }
            }),
            // The first topics.
            None if epoch == 0 => Ok(()),
            None if epoch == checkpoint.epoch => self.storage.restore(&self.setup, shard, epoch),
            None => Err(Failed::Documents {
                shard: shard.number(),
                why: format!("its topics after epoch {epoch} are not in memory"),
            }),
        }
    }

    /// Reads the documents of a shard, with their first topics.
    fn read_shard(&self, number: u16, placement: &Placement) -> Result<Shard<T>, Failed> {
        let Setup { spec, options, .. } = &self.setup;
        let failed = |why: String| Failed::Documents { shard: number, why };
        let (corpus, first) =
            self.documents.read(number).map_err(|error| failed(error.to_string()))?;
        let range = 0..corpus.num_documents();
        let documents = ShardDocuments { corpus: &corpus, range, first };
        Ok(Shard::new(spec, options.hybrid, placement, number, documents)?)
    }

    /// Reports to the master that the topics from which an attempt starts are not here.
    fn fall_back(
        &mut self,
        joining: Round,
        failed: &Failed,
        port: &mut dyn Port,
    ) -> Result<(), Failed> {
        self.over = self.over.max(joining.attempt);
        self.storage.restarts.insert(joining.epoch);
        let unreadable = Control::Unreadable { attempt: joining.attempt, why: failed.to_string() };
        self.link.send(&unreadable, &self.setup, port);
        Ok(())
    }
}

/// Error: the master has sent a message that does not fit this node's state.
fn unexpected(what: &str) -> Failed {
    Failed::Message { peer: MASTER, what: what.to_owned() }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::rc::Rc;
    use std::sync::Arc;

    use lda_core::Corpus;

    use super::join::tests::{Recorder, from_master};
    use super::*;
    use crate::config::Options;
    use crate::documents::{InMemory, ReadShardError};
    use crate::snapshot::{SnapshotId, encode};
    use crate::spec::ModelSpec;
    use crate::storage::{Memory, Storage};

    /// Documents that count how often they are read.
    struct Counted {
        stored: InMemory,
        reads: Rc<Cell<usize>>,
    }

    impl Documents for Counted {
        fn read(&self, shard: u16) -> Result<(Corpus, u64), ReadShardError> {
            self.reads.set(self.reads.get() + 1);
            self.stored.read(shard)
        }
    }

    /// A node that goes on does not read its documents again, and has the topics of the snapshot, not of the
    /// attempt before.
    #[test]
    fn a_restart_keeps_documents() {
        let documents = (0..40).map(|d| (0..30).map(move |t| (d * 7 + t * t) % 50));
        let corpus = Corpus::from_tokens(documents).unwrap();
        let options = Options { shards: 4, partitions: 5, servers: 2, ..Options::default() };
        let setup = Setup::new(ModelSpec::new(20, 50, 0.1.into(), 0.1, 1).unwrap(), 1)
            .options(options)
            .checkpoint_every(1);
        let (words, lengths) = (WordStats::of(&corpus), DocumentLengths::of(&corpus));
        let (stored, reads) = (InMemory::new(corpus, 4).unwrap(), Rc::new(Cell::new(0)));
        let storage: Arc<dyn Storage> = Arc::new(Memory::default());
        let writer = SnapshotWriter::now(Arc::clone(&storage));
        let counted = Counted { stored, reads: Rc::clone(&reads) };
        let mut worker = Worker::<u16, _>::new(setup.clone(), 0, counted, Some(writer));
        let start = |worker: &mut Worker<u16, _>, attempt, epoch| {
            let words = words.clone();
            let checkpoint = Latest { epoch, before: 0 };
            let start = Control::Start { attempt, epoch, checkpoint, lengths, words };
            worker.act(from_master(&start), &mut Recorder::default()).unwrap();
            let shards = worker.shards().iter();
            (shards.map(|shard| shard.tokens().topics()).collect::<Vec<_>>(), reads.replace(0))
        };
        let (first, read) = start(&mut worker, 1, 0);
        assert_eq!(read, 4);
        let later: Vec<Vec<u16>> = first
            .iter()
            .map(|topics| topics.iter().map(|topic| (topic * 3 + 1) % 20).collect())
            .collect();
        for (shard, topics) in (0..).zip(&later) {
            let id = SnapshotId { run: setup.run(), epoch: 5, shard };
            storage.write(&id.name(), &encode(&id, topics)).unwrap();
        }
        assert_eq!(start(&mut worker, 2, 5), (later.clone(), 0));
        let rows = |worker: &Worker<u16, Counted>| -> Vec<Vec<(u32, u32)>> {
            let mut rows = Vec::new();
            for shard in worker.shards() {
                for document in 0..shard.tokens().num_documents() {
                    let mut row = Vec::new();
                    shard.tokens().row(document, &mut row);
                    rows.push(row);
                }
            }
            rows
        };
        let found = rows(&worker);
        // From the beginning, documents are read for the first topics.
        assert_eq!(start(&mut worker, 3, 0), (first, 4));
        assert_ne!(rows(&worker), found);
        assert_eq!(start(&mut worker, 4, 5), (later.clone(), 0));
        assert_eq!(rows(&worker), found);
        // The topics that are in memory are not read from storage.
        for shard in 0..4 {
            storage.remove(&SnapshotId { run: setup.run(), epoch: 5, shard }.name()).unwrap();
        }
        assert_eq!(start(&mut worker, 5, 5), (later, 0));
        assert_eq!(rows(&worker), found);
    }
}
