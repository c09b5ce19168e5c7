//! Nodes, links and time, by a seed.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::time::Duration;

use lda_transport::endpoint::{
    Action, Config, Draft, Endpoint, Event, Identity, Kind, Outcome, RequestId, Ticket, Window,
};
use lda_transport::{Frame, Loss, NodeId, SendError, Time};

const MILLISECOND: Duration = Duration::from_millis(1);

/// What may happen to a frame, in thousandths, and how often links are cut and nodes ended, a thousand steps.
#[derive(Clone, Copy, Debug, Default)]
pub struct Faults {
    pub lost: u64,
    pub doubled: u64,
    /// Delays of up to so many milliseconds, so that frames overtake each other; a frame in a hundred takes
    /// ten times as long.
    pub delay: u64,
    pub cuts: u64,
    pub ends: u64,
}

impl Faults {
    /// Each in four of five seeds or so.
    pub fn of(seed: u64) -> Self {
        let mut numbers = Numbers(seed);
        let mut some = |most: u64| if numbers.below(5) == 0 { 0 } else { numbers.below(most) };
        Self {
            lost: some(100),
            doubled: some(100),
            delay: some(30),
            cuts: some(60),
            ends: some(40),
        }
    }
}

/// What has happened.
#[derive(Debug)]
pub enum Seen {
    Made { text: String },
    Did { text: String, incarnation: u64 },
    Ended { text: String, kind: Kind, outcome: Outcome, rejected: bool },
}

struct Node {
    endpoint: Endpoint,
    /// Requests without an end.
    open: BTreeMap<RequestId, (String, Kind)>,
    /// Requests of each peer that are being done.
    doing: BTreeMap<NodeId, usize>,
}

enum Happening {
    Frame { from: NodeId, from_incarnation: u64, to: NodeId, frame: Frame },
    Link { a: NodeId, b: NodeId, up: bool },
    Start(NodeId),
    Tick(NodeId),
    Answer { by: NodeId, incarnation: u64, ticket: Ticket, text: String },
}

pub struct Network {
    now: Time,
    numbers: Numbers,
    faults: Faults,
    /// How long deadlines are.
    pub patience: u32,
    nodes: BTreeMap<NodeId, Option<Node>>,
    links: BTreeMap<(NodeId, NodeId), bool>,
    happenings: BinaryHeap<Reverse<(Time, u64)>>,
    contents: BTreeMap<u64, Happening>,
    next: u64,
    incarnations: u64,
    requests: u64,
    /// Requests of one peer that were done at once, at most.
    pub most_doing: usize,
    pub history: Vec<Seen>,
    /// How much of it came before all was healed.
    pub healed: usize,
}

impl Network {
    pub fn new(seed: u64, nodes: u32, faults: Faults) -> Self {
        let mut network = Self {
            now: Time(1),
            numbers: Numbers(seed),
            faults,
            patience: 1,
            nodes: BTreeMap::new(),
            links: BTreeMap::new(),
            happenings: BinaryHeap::new(),
            contents: BTreeMap::new(),
            next: 0,
            incarnations: 0,
            requests: 0,
            most_doing: 0,
            history: Vec::new(),
            healed: 0,
        };
        let ids = || (0..nodes).map(NodeId);
        for a in ids() {
            network.nodes.insert(a, None);
            network.links.extend(ids().filter(|&b| b > a).map(|b| ((a, b), false)));
        }
        ids().for_each(|id| network.start(id));
        network
    }

    /// So many requests and faults, and then until everything has ended.
    pub fn run(&mut self, steps: u64) {
        for _ in 0..steps {
            self.step();
            self.settle(self.now + MILLISECOND * 3);
        }
        // Healed, so that what can end well does.
        let all: Vec<_> = self.links.keys().copied().collect();
        for (a, b) in all {
            self.link(a, b, true);
        }
        let dead: Vec<NodeId> = self.living(false);
        dead.into_iter().for_each(|id| self.start(id));
        self.settle(self.now + Duration::from_secs(60));
        // And now it does.
        self.healed = self.history.len();
        let ids: Vec<NodeId> = self.nodes.keys().copied().collect();
        for (&a, kind) in ids.iter().zip([Kind::Pull, Kind::Push, Kind::Call].into_iter().cycle()) {
            for &b in ids.iter().filter(|&&b| b != a) {
                self.request(a, b, kind, 100, Duration::from_secs(30));
            }
        }
        self.settle(self.now + Duration::from_secs(60));
    }

    pub fn open(&self) -> usize {
        self.nodes.values().flatten().map(|node| node.open.len()).sum()
    }

    pub fn strays(&self) -> u64 {
        self.nodes.values().flatten().map(|node| node.endpoint.strays()).sum()
    }

    fn living(&self, living: bool) -> Vec<NodeId> {
        self.nodes.iter().filter(|(_, node)| node.is_some() == living).map(|(id, _)| *id).collect()
    }

    fn start(&mut self, id: NodeId) {
        self.incarnations += 1;
        let identity =
            Identity { incarnation: self.incarnations, role: 0, run: 1, configuration: 2 };
        let lossy = self.faults.lost > 0 || self.faults.delay > 0;
        let config = Config {
            window: Window { requests: 4, bytes: 900 },
            in_flight: 1200,
            queue: 8,
            greet_every: MILLISECOND * 50,
            beat_every: MILLISECOND * 100,
            silence: MILLISECOND * 400,
            retry: lossy.then_some(MILLISECOND * 40),
            ..Config::new(identity)
        };
        let node =
            Node { endpoint: Endpoint::new(config), open: BTreeMap::new(), doing: BTreeMap::new() };
        self.nodes.insert(id, Some(node));
        for peer in self.living(true) {
            if peer != id {
                self.link(id.min(peer), id.max(peer), true);
            }
        }
    }

    /// A request, or a fault.
    fn step(&mut self) {
        let ids: Vec<NodeId> = self.nodes.keys().copied().collect();
        let pick = |numbers: &mut Numbers| ids[numbers.below(ids.len() as u64) as usize];
        let (a, b) = (pick(&mut self.numbers), pick(&mut self.numbers));
        if a != b && self.numbers.below(1000) < self.faults.cuts {
            self.link(a.min(b), a.max(b), false);
            let later = self.now + MILLISECOND * self.numbers.below(600) as u32;
            self.at(later, Happening::Link { a: a.min(b), b: a.max(b), up: true });
        }
        if self.numbers.below(1000) < self.faults.ends && self.nodes[&a].is_some() {
            self.nodes.insert(a, None);
            for peer in ids.iter().copied().filter(|&peer| peer != a) {
                self.link(a.min(peer), a.max(peer), false);
            }
            let longest = [5, 900][self.numbers.below(2) as usize];
            let later = self.now + MILLISECOND * self.numbers.below(longest) as u32;
            self.at(later, Happening::Start(a));
        }
        let (kind, len) = (self.numbers.below(3) as usize, self.numbers.below(200) as usize);
        let kind = [Kind::Pull, Kind::Push, Kind::Call][kind];
        let patience = MILLISECOND * (100 + self.numbers.below(2000) as u32) * self.patience;
        if a != b {
            self.request(a, b, kind, len, patience);
        }
    }

    fn request(&mut self, a: NodeId, b: NodeId, kind: Kind, len: usize, patience: Duration) {
        let Some(Some(node)) = self.nodes.get_mut(&a) else { return };
        self.requests += 1;
        let text = format!("{:?} {}{}", kind, self.requests, " ".repeat(len));
        let draft = Draft::from(text.as_bytes());
        if let Ok(id) = node.endpoint.request(b, kind, draft, self.now + patience) {
            self.history.push(Seen::Made { text: text.clone() });
            node.open.insert(id, (text, kind));
        }
        self.drain(a);
    }

    fn link(&mut self, a: NodeId, b: NodeId, up: bool) {
        let alive = |id: NodeId| self.nodes[&id].is_some();
        let up = up && alive(a) && alive(b);
        if std::mem::replace(self.links.get_mut(&(a, b)).expect("both are nodes"), up) == up {
            return;
        }
        for (id, peer) in [(a, b), (b, a)] {
            let loss = Loss::Broken("cut".to_owned());
            let event = if up { Event::Up { peer } } else { Event::Down { peer, loss } };
            self.tell(id, event);
        }
    }

    fn tell(&mut self, id: NodeId, event: Event) {
        if let Some(Some(node)) = self.nodes.get_mut(&id) {
            node.endpoint.handle(event, self.now);
            self.drain(id);
        }
    }

    /// Does what the endpoint of a node says.
    fn drain(&mut self, id: NodeId) {
        let now = self.now;
        let Some(Some(node)) = self.nodes.get_mut(&id) else { return };
        let incarnation = node.endpoint.config().identity.incarnation;
        let mut asked = Vec::new();
        while let Some(action) = node.endpoint.poll() {
            match action {
                Action::Asked { ticket, body, .. } => {
                    let text = String::from_utf8(body.to_vec()).unwrap();
                    let doing = node.doing.entry(ticket.peer).or_default();
                    *doing += 1;
                    self.most_doing = self.most_doing.max(*doing);
                    if !rejected(&text) {
                        self.history.push(Seen::Did { text: text.clone(), incarnation });
                    }
                    asked.push(Happening::Answer { by: id, incarnation, ticket, text });
                }
                Action::Ended { request, outcome } => {
                    let (text, kind) =
                        node.open.remove(&request).expect("it was made, and has not ended");
                    let rejected = rejected(&text);
                    self.history.push(Seen::Ended { text, kind, outcome, rejected });
                }
                Action::Refused { peer, why } => panic!("{id} refuses {peer}: {why}"),
                _ => {}
            }
        }
        assert!(node.endpoint.in_flight() <= 1200, "{}", node.endpoint.in_flight());
        let mut sent = Vec::new();
        while let Some((to, frame)) = node.endpoint.transmit(now) {
            // A transport that is full now and then.
            if self.numbers.below(50) == 0 {
                node.endpoint.unsent(to, frame, SendError::Full, now);
                node.endpoint.handle(Event::Room { peer: to }, now);
            } else {
                sent.push((to, frame));
            }
        }
        let timer = node.endpoint.next_timer();
        for answer in asked {
            // Most at once, some after others.
            let time = [0, 0, 1, 5, 60][self.numbers.below(5) as usize];
            self.at(now + MILLISECOND * time, answer);
        }
        for (to, frame) in sent {
            self.send(id, incarnation, to, frame);
        }
        if timer < Time::NEVER {
            self.at(timer.max(now), Happening::Tick(id));
        }
    }

    fn send(&mut self, from: NodeId, from_incarnation: u64, to: NodeId, frame: Frame) {
        let copies = match self.numbers.below(1000) {
            n if n < self.faults.lost => 0,
            n if n < self.faults.lost + self.faults.doubled => 2,
            _ => 1,
        };
        for _ in 0..copies {
            let delay =
                MILLISECOND + MILLISECOND * self.numbers.below(self.faults.delay + 1) as u32;
            let frame = frame.clone();
            self.at(self.now + delay, Happening::Frame { from, from_incarnation, to, frame });
        }
    }

    fn at(&mut self, time: Time, happening: Happening) {
        self.happenings.push(Reverse((time, self.next)));
        self.contents.insert(self.next, happening);
        self.next += 1;
    }

    fn settle(&mut self, until: Time) {
        while let Some(&Reverse((time, number))) = self.happenings.peek() {
            if time > until {
                break;
            }
            self.happenings.pop();
            self.now = time;
            match self.contents.remove(&number).expect("each happens once") {
                Happening::Frame { from, from_incarnation, to, frame } => {
                    self.deliver(from, from_incarnation, to, frame);
                }
                Happening::Link { a, b, up } => self.link(a, b, up),
                Happening::Start(id) if self.nodes[&id].is_none() => self.start(id),
                Happening::Start(_) => {}
                Happening::Answer { by, incarnation, ticket, text } => {
                    self.answer(by, incarnation, ticket, &text);
                }
                Happening::Tick(id) => {
                    let due = |node: &Node| node.endpoint.next_timer() <= time;
                    if self.nodes[&id].as_ref().is_some_and(due) {
                        self.tell(id, Event::Tick);
                    }
                }
            }
        }
        self.now = until;
    }

    fn answer(&mut self, by: NodeId, incarnation: u64, ticket: Ticket, text: &str) {
        let now = self.now;
        let Some(Some(node)) = self.nodes.get_mut(&by) else { return };
        if node.endpoint.config().identity.incarnation != incarnation {
            return;
        }
        *node.doing.entry(ticket.peer).or_default() -= 1;
        let draft = |word| Draft::from(format!("{word} {text}").as_bytes());
        if rejected(text) {
            node.endpoint.reject(ticket, draft("no"), now);
        } else {
            node.endpoint.reply(ticket, draft("done"), now);
        }
        self.drain(by);
    }

    /// Where frames are delayed, they may come late, as of an incarnation before; else a cut takes them.
    fn deliver(&mut self, from: NodeId, from_incarnation: u64, to: NodeId, frame: Frame) {
        let link = self.links[&(from.min(to), from.max(to))];
        let current =
            self.nodes[&from].as_ref().map(|node| node.endpoint.config().identity.incarnation);
        let late = current != Some(from_incarnation);
        if link && (!late || self.faults.delay > 0) {
            self.tell(to, Event::Frame { peer: from, frame });
        }
    }
}

/// A request in ten is not done, by its text.
fn rejected(text: &str) -> bool {
    text.bytes().map(u64::from).sum::<u64>() % 10 == 0
}

/// Numbers that look random (Steele, Lea & Flood 2014, SplitMix64).
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % bound.max(1)
    }
}
