//! Workers of an elastic history that are cut off for ever, or for so long that the run goes on without them.

use std::collections::BTreeMap;
use std::time::Duration;

use lda_dist::cluster::{Loss, LostPeer, Phase};
use lda_transport::sim::{SplitMix64, World};
use lda_transport::{NodeId, Time};

use super::{End, Failed, MASTER, Node, Role, Setup};

const MILLISECOND: Duration = Duration::from_millis(1);
/// Time in which nodes notice that frames were lost, and greet each other again.
const SETTLED: Duration = Duration::from_secs(10);

/// A worker that no other node reaches.
#[derive(Clone, Copy, Debug)]
struct Lost {
    /// Time from which the master may give it up.
    given_up_at: Time,
    /// Time at which it is within reach again; `None` for never.
    back_at: Option<Time>,
}

/// The lost workers of a history.
#[derive(Debug, Default)]
pub struct LostWorkers {
    lost: BTreeMap<NodeId, Lost>,
    next: Time,
    /// Time after the last fault from which the next worker may be given up.
    given_up_next: Option<Time>,
    /// Workers that the master gave up.
    pub given_up: u64,
    /// Workers that came back after the run had gone on without them.
    pub left_behind: u64,
}

impl LostWorkers {
    /// Loses a worker now and then, gives lost ones up, and lets some of them come back.
    pub fn act(&mut self, world: &mut World<Node>, setup: &Setup, numbers: &mut SplitMix64) {
        let now = world.now();
        let any = setup.worker(numbers.below(setup.workers.into()) as u32);
        let is_due = now >= self.next && !self.lost.contains_key(&any);
        if is_due && self.has_others(world, setup, any) {
            let given_up_at = now + numbers.up_to(4 * MILLISECOND);
            let is_back = numbers.below(3) > 0;
            let back_at = is_back.then(|| now + numbers.up_to(50 * MILLISECOND));
            self.lost.insert(any, Lost { given_up_at, back_at });
            self.next = now + numbers.up_to(100 * MILLISECOND);
        }
        let back = self.lost.iter().filter(|(_, it)| it.back_at.is_some_and(|at| now >= at));
        for id in back.map(|(&id, _)| id).collect::<Vec<_>>() {
            self.lost.remove(&id);
            peers(world, id).into_iter().for_each(|peer| world.mend(id, peer));
        }
        self.isolate(world);
        let due = self.lost.iter().filter(|(_, it)| now >= it.given_up_at);
        for id in due.map(|(&id, _)| id).collect::<Vec<_>>() {
            if is_ending(world) || self.has_others(world, setup, id) {
                self.give_up(world, id);
            }
        }
        self.restart_left_behind(world, setup);
    }

    /// The same after the last fault. Workers that never come back are given up one after the other, when those
    /// that had left have had the time to come back.
    pub fn act_at_end(&mut self, world: &mut World<Node>, setup: &Setup) {
        let now = world.now();
        self.lost.retain(|_, it| it.back_at.is_none());
        self.isolate(world);
        self.given_up_next.get_or_insert(now + SETTLED);
        if is_ending(world) || self.given_up_next.is_some_and(|next| now >= next) {
            let needed = self.lost.keys().find(|&&id| is_needed(world, id)).copied();
            needed.into_iter().for_each(|id| self.give_up(world, id));
            self.given_up_next = Some(now + SETTLED);
        }
        self.restart_left_behind(world, setup);
    }

    /// Cuts lost workers off again, as random cuts of the same links may have ended.
    fn isolate(&self, world: &mut World<Node>) {
        for &id in self.lost.keys() {
            peers(world, id).into_iter().for_each(|peer| world.cut(id, peer));
        }
    }

    /// Returns whether the master counts on another worker that is not lost.
    fn has_others(&self, world: &World<Node>, setup: &Setup, than: NodeId) -> bool {
        let workers = (0..setup.workers).map(|worker| setup.worker(worker));
        let others = workers.filter(|id| *id != than && !self.lost.contains_key(id));
        others.filter(|&id| is_needed(world, id)).count() > 0
    }

    /// The master gives a worker up, if it needs it.
    fn give_up(&mut self, world: &mut World<Node>, id: NodeId) {
        let lost = LostPeer::new(id, Loss::Closed, Duration::ZERO, Duration::ZERO);
        if is_needed(world, id) {
            world.with(MASTER, |master, cx| master.give_up(lost, cx));
            self.given_up += 1;
        }
    }

    /// A worker that comes back learns that the run has gone on, and is started again.
    fn restart_left_behind(&mut self, world: &mut World<Node>, setup: &Setup) {
        for id in (0..setup.workers).map(|worker| setup.worker(worker)) {
            let failed = world.program(id).and_then(Role::failed);
            if failed == Some(&Failed::LeftBehind) {
                self.left_behind += 1;
                world.restart(id);
            }
        }
    }
}

/// Returns whether the run is over, and the master waits until all nodes know.
fn is_ending(world: &World<Node>) -> bool {
    world.program(MASTER).map(Role::phase) == Some(Phase::Finishing)
}

/// Returns whether the run cannot go on without a node, as the master sees it now.
fn is_needed(world: &World<Node>, id: NodeId) -> bool {
    world.program(MASTER).is_some_and(|master| master.needs(id))
}

fn peers(world: &World<Node>, of: NodeId) -> Vec<NodeId> {
    world.living().chain(world.crashed()).filter(|&id| id != of).collect()
}

/// State at the end of an elastic run, from the nodes that take part; `None` if some have crashed since.
pub fn end_of_those_who_take_part(
    world: &mut World<Node>,
    setup: &Setup,
    firsts: &[usize],
) -> Option<End> {
    let attempt = world.program(MASTER)?.state().round.attempt;
    let mut shards = Vec::new();
    let mut taking_part = vec![MASTER];
    for id in (1..1 + setup.options.servers + setup.workers).map(NodeId) {
        let node = world.program(id);
        let is_of_attempt = node.is_some_and(|node| node.state().round.attempt == attempt);
        match node {
            Some(Role::Server(server)) => {
                server.rows().filter(|_| server.is_finished())?;
                taking_part.push(id);
            }
            Some(Role::Worker(worker))
                if worker.is_finished() && worker.stopped().is_none() && is_of_attempt =>
            {
                shards.extend(worker.shards().iter().map(|shard| shard.number()));
                taking_part.push(id);
            }
            _ => {}
        }
    }
    shards.sort_unstable();
    if !shards.into_iter().eq(0..setup.options.shards) {
        return None;
    }
    let mut end = End::default();
    for id in taking_part {
        world.with(id, |node, _| end.collect_model(node, firsts))?;
    }
    Some(end)
}
