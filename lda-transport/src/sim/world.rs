//! Nodes, links and time, and what a test does to them.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use super::Options;
use super::chaos::Chaos;
use super::coverage::Coverage;
use super::event_queue::EventQueue;
use super::network::{Link, Network, Way};
use super::observer::Observer;
use super::program::NodeStart;
use super::trace::Trace;
use crate::frame::Frame;
use crate::rpc::{Config, Context, Endpoint, Program};
use crate::split_mix::{SplitMix64, mixed};
use crate::time::Time;
use crate::transport::NodeId;

/// Nodes that run a [`Program`] each, links between all of them, and time, which goes on from one thing that
/// happens to the next.
///
/// # Panics
/// Where a node is named that was not [added](Self::add); what a program panics with; and where a million
/// things, and more with many links, happen at one instant, as when a program sets timers of no time, or asks
/// one who refuses it again and again.
pub struct World<P> {
    pub(super) now: Time,
    /// What happens to frames, and when something fails: two streams, so that one change of a test does not
    /// change all.
    pub(super) luck: SplitMix64,
    pub(super) chances: SplitMix64,
    pub(super) chaos: Chaos,
    /// Changes with it.
    pub(super) chaos_serial: u64,
    pub(super) network: Network,
    pub(super) nodes: BTreeMap<NodeId, Node<P>>,
    /// By the smaller number and the larger.
    pub(super) links: BTreeMap<(NodeId, NodeId), Link>,
    pub(super) events: EventQueue,
    /// Starts of all nodes.
    pub(super) starts: u64,
    pub(super) trace: Trace,
    pub(super) coverage: Coverage,
    pub(super) faults: u64,
    pub(super) steps: u64,
    /// What has happened since the time has changed.
    pub(super) at_once: u64,
    pub(super) rewrite: Option<Box<Rewrite>>,
    pub(super) observer: Option<Box<dyn Observer<P>>>,
    seed: u64,
}

pub(super) type Make<P> = dyn FnMut(&NodeStart) -> (Config, P);

pub(super) type Rewrite = dyn FnMut(NodeId, NodeId, Frame) -> Frame;

pub(super) struct Node<P> {
    pub make: Box<Make<P>>,
    pub rng: SplitMix64,
    /// Which start of all its last one was.
    pub last: u64,
    pub life: Option<Life<P>>,
}

/// From a start to a crash.
pub(super) struct Life<P> {
    pub endpoint: Endpoint,
    pub program: P,
    /// When its endpoint is told next that time has passed.
    pub tick: Time,
}

impl<P> fmt::Debug for World<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("World")
            .field("seed", &self.seed)
            .field("now", &self.now)
            .field("nodes", &self.nodes.keys())
            .field("steps", &self.steps)
            .finish_non_exhaustive()
    }
}

impl<P: Program> World<P> {
    /// One without nodes.
    pub fn new(options: &Options) -> Self {
        let Options { seed, network, chaos, keep } = *options;
        let mut world = Self {
            // At the origin nothing has happened yet.
            now: Time(1),
            luck: SplitMix64::new(mixed(seed ^ 1 << 32)),
            chances: SplitMix64::new(mixed(seed ^ 2 << 32)),
            chaos: Chaos::default(),
            chaos_serial: 0,
            network,
            nodes: BTreeMap::new(),
            links: BTreeMap::new(),
            events: EventQueue::default(),
            starts: 0,
            trace: Trace::new(keep),
            coverage: Coverage::default(),
            faults: 0,
            steps: 0,
            at_once: 0,
            rewrite: None,
            observer: None,
            seed,
        };
        world.set_chaos(chaos);
        world
    }

    /// Adds a node and starts it. `make` gives its bounds and its program, now and at each start after a crash;
    /// what it holds itself, or shares, is what a crash leaves.
    ///
    /// # Panics
    /// If there is one of this number.
    pub fn add(&mut self, id: NodeId, make: impl FnMut(&NodeStart) -> (Config, P) + 'static) {
        assert!(!self.nodes.contains_key(&id), "{id} is there already");
        for &peer in self.nodes.keys() {
            self.links.insert((id.min(peer), id.max(peer)), Link::new(self.network));
        }
        let rng = SplitMix64::new(mixed(mixed(self.seed) ^ u64::from(id.0)));
        self.nodes.insert(id, Node { make: Box::new(make), rng, last: 0, life: None });
        self.start(id);
    }

    /// The time.
    pub fn now(&self) -> Time {
        self.now
    }

    /// How much has happened: frames that arrived or would have, timers, failures.
    pub fn steps(&self) -> u64 {
        self.steps
    }

    /// How much has gone wrong: cuts, silences and crashes, and frames that were lost, doubled, overtaken, late
    /// or not taken. What a cut, silence or crash takes with it does not count.
    pub fn faults(&self) -> u64 {
        self.faults
    }

    /// What has happened.
    pub fn trace(&self) -> &Trace {
        &self.trace
    }

    /// What has befallen which frames.
    pub fn coverage(&self) -> &Coverage {
        &self.coverage
    }

    /// Nodes that run.
    pub fn living(&self) -> impl Iterator<Item = NodeId> {
        self.nodes.iter().filter(|(_, node)| node.life.is_some()).map(|(id, _)| *id)
    }

    /// Nodes that have crashed and not started again.
    pub fn crashed(&self) -> impl Iterator<Item = NodeId> {
        self.nodes.iter().filter(|(_, node)| node.life.is_none()).map(|(id, _)| *id)
    }

    /// A node's endpoint, if it runs.
    pub fn endpoint(&self, id: NodeId) -> Option<&Endpoint> {
        self.nodes[&id].life.as_ref().map(|life| &life.endpoint)
    }

    /// A node's program, if it runs.
    pub fn program(&self, id: NodeId) -> Option<&P> {
        self.nodes[&id].life.as_ref().map(|life| &life.program)
    }

    /// Has a node's program do something now, if it runs.
    pub fn with<R>(
        &mut self,
        id: NodeId,
        act: impl FnOnce(&mut P, &mut Context<'_>) -> R,
    ) -> Option<R> {
        let result = self.run_program(id, act);
        self.drain(id);
        result
    }

    /// Goes on until a time, which it then is.
    pub fn run_until(&mut self, time: Time) {
        while self.events.next_time() <= time {
            self.step();
        }
        self.go_on(time);
    }

    /// Goes on for so long.
    pub fn run_for(&mut self, duration: Duration) {
        self.run_until(self.now + duration);
    }

    /// Has frames changed as they arrive, given their sender and receiver: for mistakes made on purpose.
    pub fn rewrite(&mut self, rewrite: impl FnMut(NodeId, NodeId, Frame) -> Frame + 'static) {
        self.rewrite = Some(Box::new(rewrite));
    }

    /// Has someone see what is sent and what becomes of it, from now on.
    pub fn observe(&mut self, observer: impl Observer<P> + 'static) {
        self.observer = Some(Box::new(observer));
    }

    /// Changes what all links are like, of nodes that are added too. What is underway is not changed.
    pub fn change(&mut self, change: impl Fn(&mut Network)) {
        change(&mut self.network);
        let ways = self.links.values_mut().flat_map(|link| &mut link.ways);
        ways.for_each(|way| change(&mut way.network));
    }

    /// Changes what one link is like, in one direction.
    pub fn change_way(&mut self, from: NodeId, to: NodeId, change: impl FnOnce(&mut Network)) {
        change(&mut self.way(from, to).network);
    }

    /// Cuts a link: what is underway is lost, and both ends hear that the other is down.
    pub fn cut(&mut self, a: NodeId, b: NodeId) {
        let link = self.link(a, b);
        link.serial += 1;
        if !link.cut {
            link.cut = true;
            self.faults += 1;
            self.trace.add(self.now, a, [17, u64::from(b.0)], || format!("the link to {b} is cut"));
            self.settle(a, b);
        }
    }

    /// Ends a cut.
    pub fn mend(&mut self, a: NodeId, b: NodeId) {
        self.link(a, b).cut = false;
        self.settle(a, b);
    }

    /// Has all frames of one node to another vanish from now on, those underway too, and nobody hears of it.
    pub fn silence(&mut self, from: NodeId, to: NodeId) {
        let way = self.way(from, to);
        way.serial += 1;
        if !way.silent {
            way.silent = true;
            self.faults += 1;
            let words = [18, u64::from(to.0)];
            self.trace.add(self.now, from, words, || format!("nothing reaches {to} any more"));
        }
    }

    /// Ends a silence.
    pub fn unsilence(&mut self, from: NodeId, to: NodeId) {
        if std::mem::take(&mut self.way(from, to).silent) {
            let words = [19, u64::from(to.0)];
            self.trace.add(self.now, from, words, || format!("frames reach {to} again"));
        }
    }

    /// Cuts all links between these nodes and the others.
    pub fn partition(&mut self, part: &[NodeId]) {
        for (a, b) in self.links_between(part) {
            self.cut(a, b);
        }
    }

    /// Silences all links between these nodes and the others, in both directions.
    pub fn partition_silently(&mut self, part: &[NodeId]) {
        for (a, b) in self.links_between(part) {
            self.silence(a, b);
            self.silence(b, a);
        }
    }

    fn links_between(&self, part: &[NodeId]) -> Vec<(NodeId, NodeId)> {
        let between = |&(a, b): &(NodeId, NodeId)| part.contains(&a) != part.contains(&b);
        self.links.keys().copied().filter(between).collect()
    }

    /// Has nothing fail by itself any more, ends all cuts and silences, and starts all that have crashed. What
    /// befalls frames on links that are up [goes on](Self::change).
    pub fn heal(&mut self) {
        self.set_chaos(Chaos::default());
        let all: Vec<_> = self.links.keys().copied().collect();
        for (a, b) in all {
            self.unsilence(a, b);
            self.unsilence(b, a);
            self.mend(a, b);
        }
        let crashed: Vec<NodeId> = self.crashed().collect();
        crashed.into_iter().for_each(|id| self.start(id));
    }

    /// Ends a node, if it runs, without a word of its own.
    pub fn crash(&mut self, id: NodeId) {
        self.announce_crash(id);
        let node = self.nodes.get_mut(&id).unwrap_or_else(|| panic!("there is no {id}"));
        if node.life.take().is_none() {
            return;
        }
        self.faults += 1;
        self.trace.add(self.now, id, [10], || "crashed".to_owned());
        for peer in self.peers(id) {
            self.way(id, peer).told = None;
            self.settle(id, peer);
        }
    }

    /// Starts a node, which crashes first if it runs.
    pub fn restart(&mut self, id: NodeId) {
        self.crash(id);
        self.start(id);
    }

    pub(super) fn peers(&self, id: NodeId) -> Vec<NodeId> {
        self.nodes.keys().copied().filter(|&peer| peer != id).collect()
    }

    pub(super) fn link(&mut self, a: NodeId, b: NodeId) -> &mut Link {
        let link = self.links.get_mut(&(a.min(b), a.max(b)));
        link.unwrap_or_else(|| panic!("there is no link of {a} and {b}"))
    }

    pub(super) fn way(&mut self, from: NodeId, to: NodeId) -> &mut Way {
        &mut self.link(from, to).ways[usize::from(from > to)]
    }
}
