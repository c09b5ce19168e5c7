//! Start of an attempt at a worker: its shards, with the topics of the epoch from which the run goes on.

use std::collections::BTreeMap;

use lda_core::counts::TopicIndex;

use super::attempt::Attempt;
use super::memory_checkpoints::{MemoryCheckpoint, MemoryCheckpoints};
use super::snapshots::Snapshots;
use super::{Failed, Port, Setup, Worker, WorkerState, unexpected};
use crate::cluster::Documents;
use crate::cluster::assignment::Assigned;
use crate::cluster::control::Control;
use crate::held_rows::staying;
use crate::placement::{DocumentLengths, Placement, WordStats};
use crate::plan::{place, workers_may_change_in};
use crate::shard::{Shard, ShardDocuments};
use crate::snapshot::Latest;
use crate::spec::Round;

impl<T: TopicIndex, D: Documents> Worker<T, D> {
    /// Shards of this worker in an attempt.
    pub(super) fn assigned_shards(&self, assigned: &Assigned) -> Result<Vec<u16>, Failed> {
        let Setup { options, workers, .. } = &self.setup;
        let is_whole = assigned.0.len() == usize::from(options.shards);
        let shards = assigned.shards(self.number);
        if !is_whole || assigned.0.iter().any(|worker| worker >= workers) || shards.is_empty() {
            return Err(unexpected(
                "shards that are not those of the run, or none for this worker",
            ));
        }
        Ok(shards)
    }

    /// Starts an attempt: restores the topics of the epoch, or makes the first ones, and sends
    /// counts to the servers. If it does not have them, the master starts another one, from an epoch
    /// before.
    pub(super) fn restart_from(
        &mut self,
        (joining, checkpoint): (Round, Latest),
        shards: &[u16],
        (lengths, words): (DocumentLengths, &WordStats),
        port: &mut dyn Port,
    ) -> Result<(), Failed> {
        let (setup, epoch) = (&self.setup, joining.epoch);
        let Setup { spec, options, .. } = setup;
        let rounds = joining.joins_after().unwrap_or(0);
        let next = epoch.saturating_add(1);
        if rounds > 0 && (rounds >= options.rounds || !workers_may_change_in(options, next)) {
            return Err(unexpected("rounds of an epoch from which no attempt can go on"));
        }
        let before = self.attempt.take();
        (self.finished, self.stopped) = (false, None);
        let placement = place(spec, options, words, lengths)?;
        let before = before.filter(|attempt| *attempt.placement() == placement);
        let mut state = self.state_at((epoch, rounds), before, shards, &placement)?;
        let restored = if rounds > 0 {
            self.storage.mid_epoch.insert((epoch, rounds));
            self.restore_mid_epoch(&mut state, (epoch, rounds))
        } else {
            self.restore(&mut state, epoch, checkpoint)
        };
        if let Err(failed) = restored {
            let is_checkpoint = rounds == 0 && epoch == checkpoint.epoch;
            let may_fall_back =
                !is_checkpoint || checkpoint.before > 0 && self.storage.writer.is_some();
            return if may_fall_back {
                self.fall_back(joining, &failed, port)
            } else {
                Err(failed)
            };
        }
        let snapshots = Snapshots::new(checkpoint, setup, &mut self.storage);
        let most = self.max_join_bytes;
        let share = state.shards.len() as f64 / f64::from(options.shards);
        let held: usize = state.shards.iter().map(Shard::memory).sum();
        let stays = staying::<T>(setup.trip(&placement), words, share, held);
        let placed = (placement, stays);
        self.attempt = Some(Attempt::new(setup, joining, placed, state, snapshots, most));
        if let (Some(attempt), mut node) = self.parts(port) {
            attempt.join(&mut node);
        }
        Ok(())
    }

    /// Shards of the attempt before, and its topics of the epoch if they are in memory. Shards that are not
    /// here are read, and all of them if the run goes back to the first topics and these are not in
    /// memory: they are made while documents are read. Topics within an epoch, after some rounds of the next
    /// one, are never in memory.
    fn state_at(
        &self,
        (epoch, rounds): (u32, u16),
        before: Option<Attempt<T>>,
        shards: &[u16],
        placement: &Placement,
    ) -> Result<WorkerState<T>, Failed> {
        let none = || WorkerState {
            shards: Vec::new(),
            memory_checkpoints: MemoryCheckpoints::default(),
            spec: self.setup.spec.clone(),
        };
        let mut state = before.map_or_else(none, Attempt::into_state);
        if rounds > 0 {
            state.memory_checkpoints = MemoryCheckpoints::default();
        }
        state.memory_checkpoints.retain(epoch);
        let in_memory = state.memory_checkpoints.get(epoch);
        let has_topics = |shard| in_memory.is_some_and(|it| it.shards.contains_key(&shard));
        let mut kept: BTreeMap<u16, Shard<T>> = std::mem::take(&mut state.shards)
            .into_iter()
            .filter(|shard| epoch > 0 || rounds > 0 || has_topics(shard.number()))
            .map(|shard| (shard.number(), shard))
            .collect();
        for &number in shards {
            state.shards.push(match kept.remove(&number) {
                Some(shard) => shard,
                None => self.read_shard(number, placement)?,
            });
        }
        Ok(state)
    }

    /// Sets the topics of the shards, and the priors, to those after an epoch: from memory if they are
    /// there, else from the checkpoint.
    fn restore(
        &self,
        state: &mut WorkerState<T>,
        epoch: u32,
        checkpoint: Latest,
    ) -> Result<(), Failed> {
        let WorkerState { shards, memory_checkpoints, spec } = state;
        let setup = &self.setup;
        let (mut states, priors) = match memory_checkpoints.take(epoch) {
            Some(MemoryCheckpoint { shards, priors, .. }) => (shards, Some(priors)),
            None => (BTreeMap::new(), None),
        };
        // Shards that were at another worker before are not in memory.
        states.retain(|number, _| shards.iter().any(|shard| shard.number() == *number));
        let mut priors = priors.unwrap_or_else(|| setup.spec.priors());
        for shard in &mut *shards {
            let number = shard.number();
            let failed = |why: String| Failed::Documents { shard: number, why };
            match states.get(&number) {
                Some(state) => {
                    let restored = shard.restore(&setup.spec, state);
                    restored.map_err(|error| failed(error.to_string()))?;
                    continue;
                }
                // They have the first topics.
                None if epoch == 0 => {}
                None if epoch == checkpoint.epoch => {
                    priors = self.storage.restore(setup, shard, epoch)?;
                }
                None => {
                    return Err(failed(format!(
                        "its topics after epoch {epoch} are not in memory"
                    )));
                }
            }
            states.insert(number, shard.tokens().state());
        }
        *spec = setup.spec.with_priors(&priors).expect("priors that were checked");
        memory_checkpoints.add(epoch, states, priors);
        Ok(())
    }

    /// Sets the topics of the shards, and the priors, to those within an epoch: after some rounds of the one
    /// after `epoch`.
    fn restore_mid_epoch(
        &self,
        state: &mut WorkerState<T>,
        (epoch, rounds): (u32, u16),
    ) -> Result<(), Failed> {
        let mut priors = self.setup.spec.priors();
        for shard in &mut state.shards {
            priors = self.storage.restore_mid_epoch(&self.setup, shard, (epoch, rounds))?;
        }
        state.spec = self.setup.spec.with_priors(&priors).expect("priors that were checked");
        Ok(())
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

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::rc::Rc;
    use std::sync::Arc;

    use lda_core::Corpus;

    use super::super::join::tests::{Recorder, from_master};
    use super::*;
    use crate::cluster::SnapshotWriter;
    use crate::config::Options;
    use crate::documents::{InMemory, ReadShardError};
    use crate::shard::ShardState;
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
            let assigned = setup.assigned();
            let rounds = 0;
            let start =
                Control::Start { attempt, epoch, rounds, checkpoint, assigned, lengths, words };
            worker.act(from_master(&start), &mut Recorder::default()).unwrap();
            let shards = worker.shards().iter();
            (shards.map(|shard| shard.tokens().topics()).collect::<Vec<_>>(), reads.replace(0))
        };
        let introduce = |worker: &mut Worker<u16, _>| {
            let mut sent = Recorder::default();
            worker.introduce(&mut sent).unwrap();
            (sent.to_master, reads.replace(0))
        };
        let (sent, read) = introduce(&mut worker);
        assert_eq!((sent.len(), read), (5, 4));
        let (first, read) = start(&mut worker, 1, 0);
        assert_eq!(read, 4);
        // A new master gets the word counts from the shards.
        assert_eq!(introduce(&mut worker), (sent, 0));
        let later: Vec<Vec<u16>> = first
            .iter()
            .map(|topics| topics.iter().map(|topic| (topic * 3 + 1) % 20).collect())
            .collect();
        for (shard, topics) in (0..).zip(&later) {
            let id = SnapshotId { run: setup.run(), epoch: 5, shard };
            let state = ShardState { topics: topics.clone(), ages: Vec::new() };
            storage.write(&id.name(), &encode(&id, &state, None)).unwrap();
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
