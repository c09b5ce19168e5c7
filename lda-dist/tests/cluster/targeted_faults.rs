//! Faults that target one kind of message, so that every message meets every fault in every phase
//! of its receiver.
//!
//! Random faults hit the messages that are most frequent: those of a round. Each history therefore
//! has a **target**, a kind of message and a phase of its receiver. Target messages are lost,
//! duplicated, delayed or refused more often than others, and some are held until their receiver
//! reaches the phase. Other messages to the receiver are then delayed, so that it stays in the
//! phase; and the message arrives, or either end crashes, or the link between them fails.
//! [`targeted_setup`](super::targeted_setup) leads the receiver to the phase.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::rc::Rc;

use lda_dist::cluster::{Message, Phase};
use lda_transport::rpc::MessageKind;
use lda_transport::sim::{self, Fate, Observer, SplitMix64};

use super::coverage::{Fault, Kind, Part, Table, Who};
use super::*;

/// Target of the faults of a history.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Target {
    pub kind: Kind,
    pub phase: Phase,
}

/// Observations of a history.
#[derive(Debug)]
pub struct Seen {
    pub table: Table,
    /// Last attempt that the master has started.
    pub attempts: u32,
    /// Crashes of masters, servers and workers.
    pub crashes: [u64; 3],
    /// Errors of nodes that had failed when they crashed.
    pub failed: Vec<String>,
    servers: u32,
    /// `None` once faults have ended.
    target: Option<Target>,
    numbers: SplitMix64,
    /// Requests by sender, receiver and number.
    asked: HashMap<(u64, NodeId, u64), Message>,
    /// Phases of crashed incarnations.
    crashed: HashMap<u64, Phase>,
    /// Copies of target messages in flight, by sender, receiver and incarnation of the receiver.
    underway: BTreeMap<(NodeId, NodeId, u64), u32>,
    /// Target messages whose first copy is held.
    held: BTreeSet<(NodeId, NodeId, u64)>,
}

/// Observes a history, and decides the faults of target messages.
#[derive(Clone, Debug)]
pub struct Watch(Rc<RefCell<Seen>>);

impl Watch {
    pub fn new(setup: &Setup, target: Target, seed: u64) -> Self {
        Self(Rc::new(RefCell::new(Seen {
            table: Table::default(),
            attempts: 0,
            crashes: [0; 3],
            failed: Vec::new(),
            servers: setup.options.servers,
            target: Some(target),
            numbers: SplitMix64::new(seed ^ 1 << 40),
            asked: HashMap::new(),
            crashed: HashMap::new(),
            underway: BTreeMap::new(),
            held: BTreeSet::new(),
        })))
    }

    /// Ends the faults of target messages.
    pub fn rest(&self) {
        self.0.borrow_mut().target = None;
    }

    pub fn seen(&self) -> std::cell::Ref<'_, Seen> {
        self.0.borrow()
    }

    /// Sender and receiver of a target message in flight, and whether the receiver is in the phase;
    /// such messages are preferred.
    pub fn target_in_flight(&self, world: &World<Node>) -> Option<(NodeId, NodeId, bool)> {
        let seen = self.0.borrow();
        let target = seen.target?;
        let is_at = |to| world.program(to).is_some_and(|node| node.phase() == target.phase);
        let all = seen.underway.keys().map(|&(from, to, _)| (from, to, is_at(to)));
        all.max_by_key(|&(.., is_at)| is_at)
    }
}

impl Seen {
    fn who(&self, id: NodeId) -> Who {
        match id.0 {
            0 => Who::Master,
            id if id <= self.servers => Who::Server,
            _ => Who::Worker,
        }
    }

    /// `None` unless it is a request or a reply.
    fn kind(&mut self, sent: &sim::Message<'_>) -> Option<Kind> {
        let &sim::Message { from, to, kind, sender, receiver, number, body, .. } = sent;
        let part = match kind {
            MessageKind::Pull | MessageKind::Push | MessageKind::Call => Part::Asked,
            MessageKind::Done | MessageKind::Rejected => Part::Answered,
            // A late greeting of a node that has restarted since is refused; its sender is gone.
            MessageKind::Hello | MessageKind::Heartbeat | MessageKind::Refusal => return None,
            other => panic!("{from} sends {to} a {other:?}"),
        };
        let message = if part == Part::Asked {
            let message = Message::of(body).expect("a request is a message");
            self.asked.insert((sender, to, number), message);
            message
        } else {
            *self.asked.get(&(receiver, from, number)).expect("it was asked")
        };
        Some(Kind { to: self.who(to), message, part })
    }

    /// A network that delays this share of the messages, and all copies.
    fn detour(&mut self, reordering: f64) -> Network {
        self.detour_of(reordering, [200, 1000, 3000, 10_000, 40_000])
    }

    fn detour_of(&mut self, reordering: f64, longest: [u32; 5]) -> Network {
        let longest = longest[self.numbers.below(5) as usize];
        let detour = self.numbers.up_to(Duration::from_micros(longest.into()));
        Network { reordering, late_delivery: 0.5, detour, ..Network::default() }
    }

    /// The fault of a target message: exactly one, so that the number of copies in flight is known.
    /// Returns that number, and whether the first copy is held until the receiver reaches its
    /// phase. A second copy is always held, while the first does its work.
    fn course(&mut self) -> (Network, u32, bool) {
        let course = self.detour_of(0.0, [100, 200, 500, 1000, 3000]);
        match self.numbers.below(16) {
            0 | 1 => (Network { loss: 1.0, reordering: 1.0, ..course }, 1, false),
            2..=8 => (Network { duplication: 1.0, loss: 0.3, ..course }, 2, false),
            9 => (Network { full: 1.0, ..course }, 1, false),
            10..=12 => (course, 1, true),
            _ => (course, 1, false),
        }
    }

    /// Whether other messages to the receiver of a target message are delayed, so that it stays in
    /// its phase.
    fn is_awaited(&self, to: NodeId, receiver: Option<&Node>) -> bool {
        let Some(target) = self.target else { return false };
        let is_at = receiver.is_some_and(|receiver| receiver.phase() == target.phase);
        is_at && self.underway.keys().any(|&(_, of, _)| of == to)
    }

    /// Whether a message is held back until another phase.
    fn is_held(&mut self, sent: &sim::Message<'_>, receiver: Option<&Node>) -> bool {
        let Some(target) = self.target else { return false };
        let held = sent.copy || self.held.contains(&(sent.from, sent.to, sent.serial));
        if !held
            || self.crashed.contains_key(&sent.receiver)
            || self.kind(sent) != Some(target.kind)
        {
            return false;
        }
        // It does not arrive at once, so that a fault can hit it in the phase; and not all messages
        // are held forever.
        let rarely = if receiver.is_some_and(|it| it.phase() == target.phase) { 2 } else { 400 };
        self.numbers.below(rarely) > 0
    }
}

impl Observer<Node> for Watch {
    fn sends(&mut self, message: &sim::Message<'_>, receiver: Option<&Node>) -> Option<Network> {
        let mut seen = self.0.borrow_mut();
        let kind = seen.kind(message)?;
        let target = seen.target?;
        if target.kind != kind {
            let late = target.is_of_early_end() && kind.message == Message::Ready;
            let delayed = seen.is_awaited(message.to, receiver) || late;
            return delayed.then(|| seen.detour(1.0));
        }
        // After this message the receiver waits for no other one, so nothing is held for it.
        if target.is_for_restarted_node() && receiver.is_none_or(|it| it.phase() != target.phase) {
            return None;
        }
        let (network, copies, is_held) = seen.course();
        if is_held {
            seen.held.insert((message.from, message.to, message.serial));
        }
        let way = (message.from, message.to, message.receiver);
        *seen.underway.entry(way).or_default() += copies;
        Some(network)
    }

    fn holds(&mut self, message: &sim::Message<'_>, receiver: Option<&Node>) -> Option<Duration> {
        let mut seen = self.0.borrow_mut();
        if seen.is_held(message, receiver) {
            return Some(seen.numbers.up_to(Duration::from_micros(400)));
        }
        let waits = seen.is_awaited(message.to, receiver)
            && seen.kind(message).is_some_and(|kind| seen.target.is_some_and(|it| it.kind != kind))
            && seen.numbers.below(32) > 0;
        waits.then(|| seen.numbers.up_to(Duration::from_micros(200)))
    }

    fn passes(&mut self, message: &sim::Message<'_>, fate: Fate, receiver: Option<&Node>) {
        let mut seen = self.0.borrow_mut();
        let Some(kind) = seen.kind(message) else { return };
        let way = (message.from, message.to, message.receiver);
        if seen.target.is_some_and(|target| target.kind == kind)
            && let Some(copies) = seen.underway.get_mut(&way)
        {
            *copies -= 1;
            if *copies == 0 {
                seen.underway.remove(&way);
            }
        }
        let crashed = seen.crashed.get(&message.receiver).copied();
        let phase = crashed.or(receiver.map(Node::phase)).expect("it runs or has crashed");
        if let Some(fault) = Fault::of(fate) {
            seen.table.add(kind, fault, phase);
        }
    }

    fn crashes(&mut self, node: NodeId, incarnation: u64, program: &Node) {
        let mut seen = self.0.borrow_mut();
        let who = seen.who(node);
        seen.crashes[who as usize] += 1;
        seen.attempts = seen.attempts.max(program.state().round.attempt);
        seen.crashed.insert(incarnation, program.phase());
        // The run has gone on without it.
        let failed = program.failed().filter(|failed| **failed != Failed::LeftBehind);
        seen.failed.extend(failed.map(ToString::to_string));
    }
}
