//! The workers of an attempt, and their shards.

use std::collections::{BTreeMap, BTreeSet};

use lda_transport::NodeId;

use super::super::Setup;
use super::super::assignment::Assigned;

/// The workers of the attempt, or of the last one.
#[derive(Debug)]
pub(super) struct Workers {
    assigned: Assigned,
    nodes: BTreeSet<NodeId>,
    /// False before the first attempt of an elastic run: workers that a master before had may have other
    /// shards.
    is_known: bool,
    /// Workers for which no attempt waits: they have left, or were given up.
    absent: BTreeSet<NodeId>,
    /// Workers that were given up while they had a part in the run, and may come back with old state.
    left_behind: BTreeSet<NodeId>,
    /// Workers that are ready and do not take part, as the topics of their shards could not be written.
    ignored: BTreeSet<NodeId>,
    /// Workers that were asked for the words of shards that are not theirs.
    asked: BTreeMap<u16, NodeId>,
}

impl Workers {
    /// Before the first attempt.
    pub fn new(setup: &Setup) -> Self {
        Self {
            assigned: setup.assigned(),
            nodes: BTreeSet::new(),
            is_known: !setup.is_elastic(),
            absent: BTreeSet::new(),
            left_behind: BTreeSet::new(),
            ignored: BTreeSet::new(),
            asked: BTreeMap::new(),
        }
    }

    /// The worker of each shard.
    pub fn assigned(&self) -> &Assigned {
        &self.assigned
    }

    /// Nodes of the workers that take part.
    pub fn nodes(&self) -> &BTreeSet<NodeId> {
        &self.nodes
    }

    /// Returns whether a node is a worker that takes part.
    pub fn take_part(&self, node: NodeId) -> bool {
        self.nodes.contains(&node)
    }

    /// Returns whether these are the workers that take part.
    pub fn are(&self, workers: &[u32], setup: &Setup) -> bool {
        self.nodes.iter().copied().eq(workers.iter().map(|&worker| setup.worker(worker)))
    }

    /// Gives the shards to these workers, numbers ascending. Returns true if each has the shards that it had
    /// in the attempt before.
    pub fn assign(&mut self, workers: &[u32], setup: &Setup) -> bool {
        let is_all = workers.len() == setup.workers as usize;
        let assigned = if is_all { setup.assigned() } else { self.assigned.among(workers) };
        let is_same = self.is_known && assigned == self.assigned;
        self.nodes = workers.iter().map(|&worker| setup.worker(worker)).collect();
        (self.assigned, self.is_known) = (assigned, true);
        is_same
    }

    /// A worker has left, or was given up: no attempt waits for it until it is ready again.
    pub fn note_absent(&mut self, node: NodeId) {
        self.absent.insert(node);
    }

    /// A worker is ready.
    pub fn note_ready(&mut self, node: NodeId) {
        self.absent.remove(&node);
    }

    /// Returns whether no attempt waits for a worker.
    pub fn is_absent(&self, node: NodeId) -> bool {
        self.absent.contains(&node)
    }

    /// The run goes on without a worker that had a part in it.
    pub fn leave_behind(&mut self, node: NodeId) {
        self.left_behind.insert(node);
    }

    /// Returns whether the run has gone on without this process of a worker.
    pub fn is_left_behind(&self, node: NodeId) -> bool {
        self.left_behind.contains(&node)
    }

    /// Leaves those of the workers out that do not take part now.
    pub fn ignore_others(&mut self, workers: &[u32], setup: &Setup) {
        let nodes = workers.iter().map(|&worker| setup.worker(worker));
        self.ignored.extend(nodes.filter(|node| !self.nodes.contains(node)));
    }

    /// Lets workers take part that were left out.
    pub fn ignore_none(&mut self) {
        self.ignored.clear();
    }

    /// Returns whether a worker is left out.
    pub fn is_ignored(&self, node: NodeId) -> bool {
        self.ignored.contains(&node)
    }

    /// Notes that a worker is asked for the words of a shard; false if one was before.
    pub fn may_ask(&mut self, shard: u16, worker: NodeId) -> bool {
        let is_new = !self.asked.contains_key(&shard);
        self.asked.entry(shard).or_insert(worker);
        is_new
    }

    /// Requests for words may not have been sent: they are repeated.
    pub fn forget_asked(&mut self) {
        self.asked.clear();
    }

    /// A worker has ended: another one may have to count the words of its shards.
    pub fn remove(&mut self, node: NodeId) {
        self.ignored.remove(&node);
        self.left_behind.remove(&node);
        self.asked.retain(|_, worker| *worker != node);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Options;
    use crate::spec::ModelSpec;

    fn setup() -> Setup {
        let options = Options { shards: 8, ..Options::default() };
        let spec = ModelSpec::new(3, 2, 0.1.into(), 0.1, 1).unwrap();
        Setup::new(spec, 1).options(options).workers(4)
    }

    #[test]
    fn topics_in_memory_are_of_the_shards_that_a_worker_had() {
        let fixed = setup();
        assert!(Workers::new(&fixed).assign(&[0, 1, 2, 3], &fixed), "there is no other assignment");
        let setup = setup().min_workers(1);
        let mut workers = Workers::new(&setup);
        for (numbers, is_same) in [
            (&[0, 1, 2, 3][..], false),
            (&[0, 1, 2, 3], true),
            (&[0, 2], false),
            (&[0, 2], true),
            (&[0, 1, 2, 3], false),
        ] {
            assert_eq!(workers.assign(numbers, &setup), is_same, "{numbers:?}");
            assert!(workers.are(numbers, &setup) && !workers.are(&[1, 2], &setup));
        }
        assert_eq!(*workers.assigned(), setup.assigned());
    }

    #[test]
    fn a_worker_is_absent_until_it_is_ready() {
        let setup = setup().min_workers(1);
        let mut workers = Workers::new(&setup);
        let node = setup.worker(2);
        assert!(!workers.is_absent(node), "it may still come");
        workers.note_absent(node);
        assert!(workers.is_absent(node));
        workers.note_ready(node);
        assert!(!workers.is_absent(node));
        workers.leave_behind(node);
        assert!(workers.is_left_behind(node));
        // Another process has taken its place.
        workers.remove(node);
        assert!(!workers.is_left_behind(node));
    }

    #[test]
    fn words_are_requested_once_unless_the_worker_ends() {
        let setup = setup().min_workers(1);
        let mut workers = Workers::new(&setup);
        let [first, second] = [0, 1].map(|worker| setup.worker(worker));
        assert!(workers.may_ask(5, first) && !workers.may_ask(5, second));
        workers.remove(second);
        assert!(!workers.may_ask(5, second));
        workers.remove(first);
        assert!(workers.may_ask(5, second));
        workers.forget_asked();
        assert!(workers.may_ask(5, second));
    }

    #[test]
    fn workers_are_left_out_until_a_checkpoint_is_written() {
        let setup = setup().min_workers(1);
        let mut workers = Workers::new(&setup);
        workers.assign(&[0, 1], &setup);
        workers.ignore_others(&[0, 1, 3], &setup);
        let ignored =
            |workers: &Workers| [0, 1, 2, 3].map(|it| workers.is_ignored(setup.worker(it)));
        assert_eq!(ignored(&workers), [false, false, false, true]);
        workers.ignore_none();
        assert_eq!(ignored(&workers), [false; 4]);
    }
}
