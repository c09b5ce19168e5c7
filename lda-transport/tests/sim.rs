//! The simulator: each fault, and what nodes notice of it.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

use lda_transport::rpc::{
    Action, Config, Context, FailureReason, Identity, MessageBuf, MessageKind, Outcome, Program,
    RequestKind,
};
use lda_transport::sim::{
    self, Chaos, Fate, FaultWindow, Network, Observer, Options, State, World,
};
use lda_transport::{DisconnectReason, Frame, NodeId, Time};

const MILLISECOND: Duration = Duration::from_millis(1);
const SECOND: Duration = Duration::from_secs(1);
const NEVER: Duration = Duration::MAX;

/// Actions of programs, with their times. Survives crashes.
type Actions = Rc<RefCell<Vec<(Time, NodeId, Action)>>>;

/// Answers at once, and records its actions.
struct Recorder {
    actions: Actions,
    timers: Rc<RefCell<Vec<(Time, u64)>>>,
}

impl Program for Recorder {
    fn act(&mut self, action: Action, cx: &mut Context<'_>) {
        if let Action::Request { reply_to, .. } = action {
            cx.reply(reply_to, MessageBuf::new());
        }
        self.actions.borrow_mut().push((cx.now(), cx.id(), action));
    }

    fn timer(&mut self, timer: u64, cx: &mut Context<'_>) {
        self.timers.borrow_mut().push((cx.now(), timer));
    }
}

struct Nodes {
    world: World<Recorder>,
    actions: Actions,
    timers: Rc<RefCell<Vec<(Time, u64)>>>,
}

fn id(id: u32) -> NodeId {
    NodeId(id)
}

/// Creates nodes with heartbeats each 10 s, and runs them for a second, so that they join.
fn nodes(count: u32, options: &Options) -> Nodes {
    let (actions, timers) = (Actions::default(), Rc::default());
    let mut nodes = Nodes { world: World::new(options), actions, timers };
    for node in 0..count {
        let (actions, timers) = (nodes.actions.clone(), nodes.timers.clone());
        nodes.world.add(id(node), move |start| {
            let incarnation = start.incarnation;
            let identity = Identity { incarnation, role: 0, run: 1, configuration: 1 };
            let config = Config {
                hello_interval: SECOND,
                heartbeat_interval: SECOND * 10,
                silence_timeout: SECOND * 25,
                ..Config::new(identity)
            };
            (config, Recorder { actions: actions.clone(), timers: timers.clone() })
        });
    }
    nodes.world.run_for(SECOND);
    nodes
}

impl Nodes {
    /// Returns the actions since the last call, of one node or of all.
    fn actions(&self, by: Option<u32>) -> Vec<(Time, Action)> {
        let all = self.actions.take().into_iter();
        let these = all.filter(|(_, node, _)| by.is_none_or(|by| *node == id(by)));
        these.map(|(time, _, action)| (time, action)).collect()
    }

    fn push(&mut self, from: u32, to: u32, len: usize) {
        let mut message = MessageBuf::new();
        message.resize(len, 1);
        let made = self
            .world
            .with(id(from), |_, cx| cx.request(id(to), RequestKind::Push, message, NEVER));
        made.expect("the node runs").expect("the queue is longer");
    }

    fn joined(&self, node: u32) -> Vec<NodeId> {
        self.world.endpoint(id(node)).unwrap().joined().collect()
    }
}

fn is_request(actions: &(Time, Action)) -> bool {
    matches!(actions.1, Action::Request { .. })
}

fn is_done(actions: &(Time, Action)) -> bool {
    matches!(actions.1, Action::Completed { outcome: Outcome::Done(_), .. })
}

fn has_left(actions: &(Time, Action), silent: bool) -> bool {
    matches!(&actions.1, Action::Left { reason, .. } if (*reason == DisconnectReason::Silent) == silent)
}

#[test]
fn a_frame_takes_its_time() {
    let latency = MILLISECOND * 10;
    let network = Network { latency, bandwidth: 10_000, ..Network::default() };
    let mut nodes = nodes(2, &Options { network, ..Options::default() });
    nodes.actions(None);
    let begun = nodes.world.now();
    // Headers have 40 bytes.
    nodes.push(0, 1, 960);
    nodes.push(0, 1, 60);
    nodes.world.run_for(SECOND);
    let came: Vec<Duration> =
        nodes.actions(Some(1)).iter().map(|actions| actions.0.since(begun)).collect();
    assert_eq!(came, [MILLISECOND * 110, MILLISECOND * 120]);
    // One direction of one link may be slower.
    nodes.world.change_way(id(1), id(0), |network| network.latency = SECOND);
    let begun = nodes.world.now();
    nodes.push(0, 1, 60);
    nodes.world.run_for(SECOND * 2);
    let came: Vec<Duration> =
        nodes.actions(None).iter().map(|actions| actions.0.since(begun)).collect();
    assert_eq!(came, [MILLISECOND * 20, MILLISECOND * 1024]);
}

#[test]
fn a_full_queue_becomes_writable_again() {
    let network = Network { queue_bytes: 500, bandwidth: 100_000, ..Network::default() };
    let mut nodes = nodes(2, &Options { network, ..Options::default() });
    nodes.actions(None);
    (0..50).for_each(|_| nodes.push(0, 1, 100));
    nodes.world.run_for(SECOND);
    assert_eq!(nodes.actions(Some(0)).iter().filter(|actions| is_done(actions)).count(), 50);
    let count = |fate| nodes.world.coverage().count(MessageKind::Push, fate, State::Joined);
    assert!(count(Fate::Full) > 10, "{}", nodes.world.coverage());
    assert_eq!(count(Fate::Arrived), 50);
    // Frames that are too long are never sent.
    nodes.world.change(|network| network.max_frame_len = 100);
    nodes.push(0, 1, 100);
    let actions = nodes.actions(None);
    let outcome = Outcome::Unknown { reason: FailureReason::TooLong, sent: false };
    assert!(matches!(&actions[0].1, Action::Completed { outcome: ended, .. } if *ended == outcome));
}

#[test]
fn a_cut_is_reported_within_the_detection_delay() {
    for detection_delay in [Duration::ZERO, SECOND] {
        let network = Network { detection_delay, latency: SECOND / 10, ..Network::default() };
        let mut nodes = nodes(3, &Options { network, ..Options::default() });
        nodes.actions(None);
        nodes.push(0, 1, 10);
        let begun = nodes.world.now();
        nodes.world.cut(id(0), id(1));
        nodes.world.run_for(SECOND);
        let actions = nodes.actions(None);
        assert!(
            actions.iter().all(|actions| has_left(actions, false)) && actions.len() == 2,
            "{actions:?}"
        );
        assert!(actions.iter().all(|actions| actions.0.since(begun) <= detection_delay));
        assert_eq!((nodes.joined(0), nodes.joined(2)), (vec![id(2)], vec![id(0), id(1)]));
        let cut = nodes.world.coverage().count(MessageKind::Push, Fate::Cut, State::Away);
        assert!(cut == 1 || detection_delay > Duration::ZERO, "{}", nodes.world.coverage());
        // After the cut, open requests continue.
        nodes.world.mend(id(0), id(1));
        nodes.world.run_for(SECOND);
        let actions = nodes.actions(None);
        assert_eq!(actions.iter().filter(|actions| is_request(actions)).count(), 1);
        assert_eq!(actions.iter().filter(|actions| is_done(actions)).count(), 1);
        // A cut that ends before the nodes notice it is reported too.
        nodes.world.cut(id(0), id(1));
        nodes.world.mend(id(0), id(1));
        assert_eq!(
            nodes.actions(None).iter().filter(|actions| has_left(actions, false)).count(),
            2
        );
    }
}

#[test]
fn a_silence_is_not_reported() {
    let mut nodes = nodes(2, &Options::default());
    nodes.actions(None);
    nodes.world.silence(id(0), id(1));
    nodes.push(0, 1, 10);
    nodes.push(1, 0, 10);
    nodes.world.run_for(SECOND * 20);
    // The request from the second node has arrived; nothing from the first has.
    let actions = nodes.actions(None);
    assert!(actions.len() == 1 && is_request(&actions[0]), "{actions:?}");
    nodes.world.run_for(SECOND * 20);
    let actions = nodes.actions(None);
    assert!(
        actions.iter().all(|actions| has_left(actions, true)) && actions.len() == 1,
        "{actions:?}"
    );
    assert_eq!(nodes.world.faults(), 1);
    nodes.world.unsilence(id(0), id(1));
    nodes.world.run_for(SECOND * 20);
    assert_eq!((nodes.joined(0), nodes.joined(1)), (vec![id(1)], vec![id(0)]));
}

#[test]
fn partitions_separate_nodes() {
    for silently in [false, true] {
        let mut nodes = nodes(4, &Options::default());
        if silently {
            nodes.world.partition_silently(&[id(0), id(3)]);
        } else {
            nodes.world.partition(&[id(0), id(3)]);
        }
        assert_eq!(nodes.world.faults(), if silently { 8 } else { 4 });
        nodes.world.run_for(SECOND * 60);
        let joined = [0, 1, 2, 3].map(|node| nodes.joined(node));
        assert_eq!(joined, [vec![id(3)], vec![id(2)], vec![id(1)], vec![id(0)]]);
        nodes.world.heal();
        nodes.world.run_for(SECOND * 10);
        assert!((0..4).all(|node| nodes.joined(node).len() == 3));
    }
}

#[test]
fn state_outside_a_program_survives_a_crash() {
    let mut nodes = nodes(2, &Options::default());
    let set = |_: &mut Recorder, cx: &mut Context<'_>| {
        (1..3).for_each(|timer| cx.set_timer(SECOND * timer as u32, timer));
        cx.incarnation()
    };
    let begun = nodes.world.now();
    assert_eq!(nodes.world.with(id(1), set), Some(2));
    nodes.world.run_for(MILLISECOND * 1500);
    nodes.actions(None);
    nodes.world.crash(id(1));
    nodes.world.run_for(SECOND);
    assert_eq!(nodes.world.with(id(1), set), None);
    assert!(nodes.world.program(id(1)).is_none() && nodes.world.endpoint(id(1)).is_none());
    let (living, crashed) = (nodes.world.living(), nodes.world.crashed());
    assert_eq!((living.collect(), crashed.collect()), (vec![id(0)], vec![id(1)]));
    assert_eq!(*nodes.timers.borrow(), [(begun + SECOND, 1)], "timers end with their program");
    nodes.world.restart(id(1));
    nodes.world.run_for(SECOND);
    let actions: Vec<Action> =
        nodes.actions(Some(0)).into_iter().map(|actions| actions.1).collect();
    let restarted = Action::Joined { peer: id(1), role: 0, incarnation: 3, restarted: true };
    assert!(
        matches!(actions[0], Action::Left { .. }) && actions[1..] == [restarted],
        "{actions:?}"
    );
    // A running node crashes first.
    nodes.world.restart(id(1));
    assert_eq!((nodes.world.with(id(1), set), nodes.world.faults()), (Some(4), 2));
}

#[test]
fn corrupted_frames_are_refused() {
    let mut nodes = nodes(2, &Options { keep: 1000, ..Options::default() });
    nodes.actions(None);
    nodes.world.rewrite(|from, to, frame| {
        assert_eq!((from, to), (id(0), id(1)));
        Frame::from(vec![7; frame.len()])
    });
    nodes.push(0, 1, 10);
    nodes.world.step();
    let actions = nodes.actions(None);
    assert!(matches!(actions[..], [(_, Action::Refused { .. })]), "{actions:?}");
    let text = nodes.world.trace().to_string();
    assert!(text.contains("node 0: sends node 1 a Push of 50 bytes"), "{text}");
    assert!(text.contains("node 1: of node 0 a Push of 50 bytes: Arrived, Joined"), "{text}");
    assert!(text.contains("node 1: Refused"), "{text}");
    nodes.world.silence(id(0), id(1));
    nodes.world.unsilence(id(0), id(1));
    nodes.world.cut(id(0), id(1));
    let last = nodes.world.trace().lines().map(|line| &line.text[..]).collect::<Vec<_>>();
    let expected = [
        "nothing reaches node 1 any more",
        "frames reach node 1 again",
        "the link to node 1 is cut",
    ];
    assert_eq!(last[last.len() - 3..], expected);
}

/// Loses the first push, delays the second, and records the fates of pushes, and crashes.
#[derive(Clone, Default)]
struct Observing {
    pushes: Rc<RefCell<Vec<(u64, bool, Fate)>>>,
    held: Rc<RefCell<u32>>,
    crashed: Rc<RefCell<Vec<NodeId>>>,
}

impl Observer<Recorder> for Observing {
    fn sends(
        &mut self,
        message: &sim::Message<'_>,
        receiver: Option<&Recorder>,
    ) -> Option<Network> {
        assert!(receiver.is_some());
        let is_first = message.kind == MessageKind::Push && message.number == 0;
        is_first.then(|| Network { loss: 1.0, ..Network::default() })
    }

    fn holds(&mut self, message: &sim::Message<'_>, _: Option<&Recorder>) -> Option<Duration> {
        let mut held = self.held.borrow_mut();
        if message.kind != MessageKind::Push || message.number != 1 || *held > 2 {
            return None;
        }
        *held += 1;
        Some(SECOND)
    }

    fn passes(&mut self, message: &sim::Message<'_>, fate: Fate, _: Option<&Recorder>) {
        if message.kind == MessageKind::Push {
            assert_eq!((message.from, message.to, message.body), (id(0), id(1), &[1; 60][..]));
            self.pushes.borrow_mut().push((message.number, message.copy, fate));
        }
    }

    fn crashes(&mut self, node: NodeId, incarnation: u64, _: &Recorder) {
        assert!(incarnation > 0);
        self.crashed.borrow_mut().push(node);
    }
}

#[test]
fn an_observer_sees_fates_and_changes_networks() {
    let mut nodes = nodes(2, &Options::default());
    let observing = Observing::default();
    nodes.world.observe(observing.clone());
    nodes.actions(None);
    let begun = nodes.world.now();
    (0..2).for_each(|_| nodes.push(0, 1, 60));
    nodes.world.run_for(SECOND * 10);
    let asked: Vec<(Time, Action)> =
        nodes.actions(Some(1)).into_iter().filter(is_request).collect();
    let [(came, _)] = &asked[..] else { panic!("{asked:?}") };
    assert_eq!((came.since(begun).as_secs(), *observing.held.borrow()), (3, 3));
    let pushes = observing.pushes.borrow().clone();
    assert_eq!(pushes, [(0, false, Fate::Lost), (1, false, Fate::Arrived)]);
    nodes.world.crash(id(1));
    assert_eq!(*observing.crashed.borrow(), [id(1)]);
}

#[test]
fn probabilities_are_as_configured() {
    let network = Network { loss: 0.3, duplication: 0.2, reordering: 0.1, ..Network::default() };
    let mut nodes = nodes(8, &Options { seed: 5, network, ..Options::default() });
    nodes.world.run_for(SECOND * 3600);
    let sum = |fate| {
        let cells = nodes.world.coverage().cells().filter(|cell| cell.1 == fate);
        cells.map(|cell| cell.3 as f64).sum::<f64>()
    };
    let all: f64 = Fate::ALL.map(sum).iter().sum();
    let share = |fate| sum(fate) / all;
    assert!(all > 20_000.0 && (share(Fate::Lost) - 0.3).abs() < 0.02, "{}", nodes.world.coverage());
    // One of six frames is a second copy, and 0.7 of all arrive.
    assert!((share(Fate::Doubled) - 0.7 / 6.0).abs() < 0.02, "{}", nodes.world.coverage());
}

#[test]
fn failures_are_as_frequent_as_configured() {
    let spell = Some(FaultWindow { every: SECOND * 10, lasting: SECOND * 5 });
    for (chaos, least, most) in [
        (Chaos { crashes: spell, ..Chaos::default() }, 300, 420),
        // One in four affects up to four links.
        (Chaos { cuts: spell, ..Chaos::default() }, 400, 700),
        (Chaos { silences: spell, ..Chaos::default() }, 400, 700),
    ] {
        let mut nodes = nodes(4, &Options { seed: 3, chaos, ..Options::default() });
        nodes.world.run_for(SECOND * 3600);
        let faults = nodes.world.faults();
        assert!((least..most).contains(&faults), "{faults} with {chaos:?}");
        nodes.world.heal();
        nodes.world.run_for(SECOND * 30);
        assert!((0..4).all(|node| nodes.joined(node).len() == 3));
        nodes.world.run_for(SECOND * 3600);
        assert_eq!(nodes.world.faults(), faults, "healed");
    }
}

#[test]
fn notes_are_part_of_the_fingerprint() {
    let run = |note: &'static str| {
        let mut nodes = nodes(2, &Options { keep: 1, ..Options::default() });
        nodes.world.with(id(1), |_, cx| cx.note(note));
        (nodes.world.trace().fingerprint(), nodes.world.trace().to_string())
    };
    assert_eq!(run("one").1, "1.000000 s node 1: one\n");
    assert_eq!(run("one"), run("one"));
    assert_ne!(run("one").0, run("two").0);
}

/// Requests the time from node 0 each second, and keeps the answers.
struct Client(Rc<RefCell<Vec<Frame>>>);

impl Program for Client {
    fn start(&mut self, cx: &mut Context<'_>) {
        cx.set_timer(SECOND, 0);
    }

    fn act(&mut self, action: Action, _: &mut Context<'_>) {
        if let Action::Completed { outcome: Outcome::Done(body), .. } = action {
            self.0.borrow_mut().push(body);
        }
    }

    fn timer(&mut self, _: u64, cx: &mut Context<'_>) {
        cx.request(id(0), RequestKind::Pull, MessageBuf::new(), SECOND).expect("few requests wait");
        cx.set_timer(SECOND, 0);
    }
}

/// Answers requests with the time.
struct Server;

impl Program for Server {
    fn act(&mut self, action: Action, cx: &mut Context<'_>) {
        if let Action::Request { reply_to, .. } = action {
            let seconds = cx.now().since(Time::ZERO).as_secs() as u8;
            cx.reply(reply_to, MessageBuf::from(&[seconds][..]));
        }
    }
}

#[test]
fn programs_of_several_kinds_share_a_world() {
    let mut world: World<Box<dyn Program>> = World::new(&Options::default());
    let identity = |incarnation| Identity { incarnation, role: 0, run: 1, configuration: 1 };
    world.add(id(0), move |start| (Config::new(identity(start.incarnation)), Box::new(Server)));
    let answers: Rc<RefCell<Vec<Frame>>> = Rc::default();
    let kept = Rc::clone(&answers);
    world.add(id(9), move |start| {
        (Config::new(identity(start.incarnation)), Box::new(Client(kept.clone())))
    });
    world.run_for(MILLISECOND * 3500);
    assert_eq!(*answers.borrow(), [1, 2, 3].map(|second| Frame::from(vec![second])));
}

/// Sets a timer of zero whenever it expires.
struct Spins;

impl Program for Spins {
    fn start(&mut self, cx: &mut Context<'_>) {
        cx.set_timer(Duration::ZERO, 0);
    }

    fn act(&mut self, _: Action, _: &mut Context<'_>) {}

    fn timer(&mut self, _: u64, cx: &mut Context<'_>) {
        self.start(cx);
    }
}

#[test]
#[should_panic(expected = "do not end: a timer of zero")]
fn timers_of_zero_panic() {
    let mut world = World::new(&Options::default());
    let identity = Identity { incarnation: 1, role: 0, run: 1, configuration: 1 };
    world.add(id(0), move |_| (Config::new(identity), Spins));
    world.run_for(SECOND);
}

/// Repeats its request at once, whatever the outcome.
struct Repeats;

impl Program for Repeats {
    fn start(&mut self, cx: &mut Context<'_>) {
        cx.request(id(0), RequestKind::Pull, MessageBuf::new(), SECOND).expect("no request waits");
    }

    fn act(&mut self, action: Action, cx: &mut Context<'_>) {
        if let Action::Completed { .. } = action {
            self.start(cx);
        }
    }
}

#[test]
#[should_panic(expected = "do not end: a timer of zero")]
fn endless_actions_panic() {
    let mut world: World<Box<dyn Program>> = World::new(&Options::default());
    // The nodes belong to two runs and refuse each other.
    let config = |run| Config::new(Identity { incarnation: 1, role: 0, run, configuration: 1 });
    world.add(id(0), move |_| (config(1), Box::new(Server)));
    world.add(id(1), move |_| (config(2), Box::new(Repeats)));
    world.run_for(SECOND);
}

#[test]
#[should_panic(expected = "there is no node 5")]
fn unknown_nodes_panic() {
    nodes(2, &Options::default()).world.crash(id(5));
}
