//! Faults that lie in wait for one kind of message, so that each meets each fault at each stage of its receiver.
//!
//! Messages that fail at random fail where most messages are: in a round. A history therefore has **prey**, a kind of
//! message and a stage of its receiver. Such messages are lost, doubled, delayed or not taken more often than others,
//! and some wait on their way until their receiver comes to that stage. Then others to that one are delayed, so that it
//! stays there; and the message arrives, or either end crashes, or the link between them fails. What brings the
//! receiver to the stage is [another matter](super::targeted_setup).

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::rc::Rc;

use lda_dist::cluster::{Message, Phase};
use lda_transport::rpc::MessageKind;
use lda_transport::sim::{self, Fate, Observer, SplitMix64};

use super::coverage::{Fault, Kind, Part, Table, Who};
use super::*;

/// For what faults lie in wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Target {
    pub kind: Kind,
    pub phase: Phase,
}

/// What has been seen of a history.
#[derive(Debug)]
pub struct Seen {
    pub table: Table,
    /// The last attempt that the master has begun.
    pub attempts: u32,
    /// Crashes of masters, servers and workers.
    pub crashes: [u64; 3],
    /// Why nodes had given up that crashed then.
    pub failed: Vec<String>,
    servers: u32,
    /// None when all is to go well again.
    target: Option<Target>,
    numbers: SplitMix64,
    /// What was asked, by who asked, whom, and the request's number.
    asked: HashMap<(u64, NodeId, u64), Message>,
    /// Stages of incarnations that have crashed.
    crashed: HashMap<u64, Phase>,
    /// Copies of prey that are underway, by who sent them to whom, and to which incarnation.
    underway: BTreeMap<(NodeId, NodeId, u64), u32>,
    /// Those of which the first copy is held.
    held: BTreeSet<(NodeId, NodeId, u64)>,
}

/// Sees a history, and prepares what prey meets on its way.
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

    /// From now on prey is left alone.
    pub fn rest(&self) {
        self.0.borrow_mut().target = None;
    }

    pub fn seen(&self) -> std::cell::Ref<'_, Seen> {
        self.0.borrow()
    }

    /// Sender and receiver of prey that is underway, and whether its receiver is at its stage; of those that are rather
    /// than of others.
    pub fn prey_underway(&self, world: &World<Node>) -> Option<(NodeId, NodeId, bool)> {
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

    /// None where it is no request or reply.
    fn kind(&mut self, sent: &sim::Message<'_>) -> Option<Kind> {
        let &sim::Message { from, to, kind, sender, receiver, number, body, .. } = sent;
        let part = match kind {
            MessageKind::Pull | MessageKind::Push | MessageKind::Call => Part::Asked,
            MessageKind::Done | MessageKind::Rejected => Part::Answered,
            // A greeting that comes late, of who has started anew since, is refused; who hears it is gone.
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

    /// Of messages of which so many, and all copies, are delayed.
    fn detour(&mut self, reordering: f64) -> Network {
        self.detour_of(reordering, [200, 1000, 3000, 10_000, 40_000])
    }

    fn detour_of(&mut self, reordering: f64, longest: [u32; 5]) -> Network {
        let longest = longest[self.numbers.below(5) as usize];
        let detour = self.numbers.up_to(Duration::from_micros(longest.into()));
        Network { reordering, late_delivery: 0.5, detour, ..Network::default() }
    }

    /// What befalls prey: one thing for sure, so that it is known how much is underway; how many copies that are, and
    /// whether the first of them is held until its receiver comes to its stage. A second one always is: the first does
    /// what it is for meanwhile.
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

    /// Whether other messages to the receiver of prey wait, so that it stays at its stage.
    fn is_awaited(&self, to: NodeId, receiver: Option<&Node>) -> bool {
        let Some(target) = self.target else { return false };
        let is_at = receiver.is_some_and(|receiver| receiver.phase() == target.phase);
        is_at && self.underway.keys().any(|&(_, of, _)| of == to)
    }

    /// Whether a message is held back, as it is to arrive at another stage.
    fn is_held(&mut self, sent: &sim::Message<'_>, receiver: Option<&Node>) -> bool {
        let Some(target) = self.target else { return false };
        let held = sent.copy || self.held.contains(&(sent.from, sent.to, sent.serial));
        if !held
            || self.crashed.contains_key(&sent.receiver)
            || self.kind(sent) != Some(target.kind)
        {
            return false;
        }
        // It does not come at once, so that something can befall it there; and not all wait for ever.
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
        // Who has been told something waits for nothing any more, whatever is held.
        if target.is_for_who_waits() && receiver.is_none_or(|it| it.phase() != target.phase) {
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
        seen.failed.extend(program.failed().map(ToString::to_string));
    }
}
