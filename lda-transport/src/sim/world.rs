//! Nodes, links and time of a simulation, and the operations of a test on them.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use super::Options;
use super::chaos::Chaos;
use super::coverage::Coverage;
use super::event_queue::EventQueue;
use super::network::{Direction, Link, Network};
use super::observer::Observer;
use super::program::NodeStart;
use super::trace::Trace;
use crate::frame::Frame;
use crate::rpc::{Config, Context, Endpoint, Program};
use crate::split_mix::{SplitMix64, mixed};
use crate::time::Time;
use crate::transport::NodeId;

/// Nodes with a [`Program`] each, links between all of them, and the time, which advances from
/// event to event.
///
/// # Panics
/// Methods panic for a node that was not [added](Self::add), and if a program panics. They also
/// panic if more than a million events (more with many links) happen at one instant, for example
/// because a program sets timers of zero or repeats a request to a peer that refuses it.
pub struct World<P> {
    pub(super) now: Time,
    /// Random numbers for frames, and for failures: two streams, so that one change of a test does
    /// not change everything.
    pub(super) frame_rng: SplitMix64,
    pub(super) fault_rng: SplitMix64,
    pub(super) chaos: Chaos,
    /// Number of changes of `chaos`.
    pub(super) chaos_serial: u64,
    pub(super) network: Network,
    pub(super) nodes: BTreeMap<NodeId, Node<P>>,
    /// By the smaller and the larger number of the nodes.
    pub(super) links: BTreeMap<(NodeId, NodeId), Link>,
    pub(super) events: EventQueue,
    /// Number of starts of all nodes.
    pub(super) starts: u64,
    pub(super) trace: Trace,
    pub(super) coverage: Coverage,
    pub(super) faults: u64,
    pub(super) steps: u64,
    /// Number of events since the time has changed.
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
    /// Number of its last start among those of all nodes.
    pub last: u64,
    pub running: Option<RunningNode<P>>,
}

/// A node between its start and its crash.
pub(super) struct RunningNode<P> {
    pub endpoint: Endpoint,
    pub program: P,
    /// Time of the next tick of its endpoint.
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
    /// Creates a world without nodes.
    pub fn new(options: &Options) -> Self {
        let Options { seed, network, chaos, keep } = *options;
        let mut world = Self {
            // At time 0 nothing has happened.
            now: Time(1),
            frame_rng: SplitMix64::new(mixed(seed ^ 1 << 32)),
            fault_rng: SplitMix64::new(mixed(seed ^ 2 << 32)),
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

    /// Adds a node and starts it. `make` creates its configuration and program, now and at each
    /// restart. State that survives a crash is what `make` owns or shares.
    ///
    /// # Panics
    /// If the number is in use.
    pub fn add(&mut self, id: NodeId, make: impl FnMut(&NodeStart) -> (Config, P) + 'static) {
        assert!(!self.nodes.contains_key(&id), "{id} has been added already");
        for &peer in self.nodes.keys() {
            self.links.insert((id.min(peer), id.max(peer)), Link::new(self.network));
        }
        let rng = SplitMix64::new(mixed(mixed(self.seed) ^ u64::from(id.0)));
        self.nodes.insert(id, Node { make: Box::new(make), rng, last: 0, running: None });
        self.start(id);
    }

    /// Returns the time.
    pub fn now(&self) -> Time {
        self.now
    }

    /// Returns the number of events: frames that arrived or would have, timers, failures.
    pub fn steps(&self) -> u64 {
        self.steps
    }

    /// Returns the number of faults: cuts, silences and crashes, and frames that were lost,
    /// duplicated, overtaken, late or not taken. Frames that a cut, silence or crash loses do not
    /// count.
    pub fn faults(&self) -> u64 {
        self.faults
    }

    /// Returns the trace.
    pub fn trace(&self) -> &Trace {
        &self.trace
    }

    /// Returns the counts of frames by fate.
    pub fn coverage(&self) -> &Coverage {
        &self.coverage
    }

    /// Returns the nodes that run.
    pub fn living(&self) -> impl Iterator<Item = NodeId> {
        self.nodes.iter().filter(|(_, node)| node.running.is_some()).map(|(id, _)| *id)
    }

    /// Returns the nodes that have crashed and not restarted.
    pub fn crashed(&self) -> impl Iterator<Item = NodeId> {
        self.nodes.iter().filter(|(_, node)| node.running.is_none()).map(|(id, _)| *id)
    }

    /// Returns the endpoint of a node, if it runs.
    pub fn endpoint(&self, id: NodeId) -> Option<&Endpoint> {
        self.nodes[&id].running.as_ref().map(|running| &running.endpoint)
    }

    /// Returns the program of a node, if it runs.
    pub fn program(&self, id: NodeId) -> Option<&P> {
        self.nodes[&id].running.as_ref().map(|running| &running.program)
    }

    /// Calls `act` with the program of a node, if it runs.
    pub fn with<R>(
        &mut self,
        id: NodeId,
        act: impl FnOnce(&mut P, &mut Context<'_>) -> R,
    ) -> Option<R> {
        let result = self.run_program(id, act);
        self.drain(id);
        result
    }

    /// Runs until `time`.
    pub fn run_until(&mut self, time: Time) {
        while self.events.next_time() <= time {
            self.step();
        }
        self.advance_to(time);
    }

    /// Runs for `duration`.
    pub fn run_for(&mut self, duration: Duration) {
        self.run_until(self.now + duration);
    }

    /// Changes frames as they arrive. `rewrite` gets the sender, the receiver and the frame. For
    /// seeded bugs.
    pub fn rewrite(&mut self, rewrite: impl FnMut(NodeId, NodeId, Frame) -> Frame + 'static) {
        self.rewrite = Some(Box::new(rewrite));
    }

    /// Sets the observer of messages from now on.
    pub fn observe(&mut self, observer: impl Observer<P> + 'static) {
        self.observer = Some(Box::new(observer));
    }

    /// Changes the network of all links, also of nodes that are added later. Frames in flight are
    /// not affected.
    pub fn change(&mut self, change: impl Fn(&mut Network)) {
        change(&mut self.network);
        let directions = self.links.values_mut().flat_map(|link| &mut link.directions);
        directions.for_each(|direction| change(&mut direction.network));
    }

    /// Changes the network of one link in one direction.
    pub fn change_way(&mut self, from: NodeId, to: NodeId, change: impl FnOnce(&mut Network)) {
        change(&mut self.direction(from, to).network);
    }

    /// Cuts a link: the frames in flight are lost, and both ends receive `Down`.
    pub fn cut(&mut self, a: NodeId, b: NodeId) {
        let link = self.link(a, b);
        link.serial += 1;
        if !link.cut {
            link.cut = true;
            self.faults += 1;
            self.trace.add(self.now, a, [17, u64::from(b.0)], || format!("the link to {b} is cut"));
            self.update_link(a, b);
        }
    }

    /// Ends a cut.
    pub fn mend(&mut self, a: NodeId, b: NodeId) {
        self.link(a, b).cut = false;
        self.update_link(a, b);
    }

    /// Loses all frames of one node to another from now on, including those in flight, silently.
    pub fn silence(&mut self, from: NodeId, to: NodeId) {
        let direction = self.direction(from, to);
        direction.serial += 1;
        if !direction.silent {
            direction.silent = true;
            self.faults += 1;
            let words = [18, u64::from(to.0)];
            self.trace.add(self.now, from, words, || format!("nothing reaches {to} any more"));
        }
    }

    /// Ends a silence.
    pub fn unsilence(&mut self, from: NodeId, to: NodeId) {
        if std::mem::take(&mut self.direction(from, to).silent) {
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

    /// Ends all random failures, cuts and silences, and restarts all crashed nodes. The
    /// [network](Self::change) of links stays as it is.
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

    /// Crashes a node, if it runs.
    pub fn crash(&mut self, id: NodeId) {
        self.announce_crash(id);
        let node = self.nodes.get_mut(&id).unwrap_or_else(|| panic!("there is no {id}"));
        if node.running.take().is_none() {
            return;
        }
        self.faults += 1;
        self.trace.add(self.now, id, [10], || "crashed".to_owned());
        for peer in self.peers(id) {
            self.direction(id, peer).known_epoch = None;
            self.update_link(id, peer);
        }
    }

    /// Restarts a node, after a crash if it runs.
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

    pub(super) fn direction(&mut self, from: NodeId, to: NodeId) -> &mut Direction {
        &mut self.link(from, to).directions[usize::from(from > to)]
    }
}
