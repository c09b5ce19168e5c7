//! Two or three endpoints, frame by frame: greetings, limits, and peers that violate the protocol.

use std::time::Duration;

use lda_transport::rpc::{
    Action, Config, Endpoint, Event, FailureReason, Identity, MessageBuf, Outcome, Refusal,
    RequestId, RequestKind, Window,
};
use lda_transport::{DisconnectReason, Frame, NodeId, SendError, Time};

const IDENTITY: Identity = Identity { incarnation: 1, role: 5, run: 7, configuration: 9 };
const SECOND: Duration = Duration::from_secs(1);
const LATER: Time = Time(1_000_000_000_000);

fn config(incarnation: u64) -> Config {
    let window = Window { requests: 2, bytes: 1000 };
    let identity = Identity { incarnation, ..IDENTITY };
    Config { window, in_flight: 1000, queue: 3, ..Config::new(identity) }
}

/// Endpoints that are connected with each other, by index.
struct Nodes {
    endpoints: Vec<Endpoint>,
    now: Time,
}

fn id(place: usize) -> NodeId {
    NodeId(place as u32)
}

impl Nodes {
    fn new(configs: impl IntoIterator<Item = Config>) -> Self {
        let endpoints = configs.into_iter().map(Endpoint::new).collect();
        let mut nodes = Self { endpoints, now: Time(1) };
        for place in 0..nodes.endpoints.len() {
            for peer in (0..nodes.endpoints.len()).filter(|&peer| peer != place) {
                nodes.handle(place, Event::Up { peer: id(peer) });
            }
        }
        nodes
    }

    fn handle(&mut self, place: usize, event: Event) {
        self.endpoints[place].handle(event, self.now);
    }

    fn frame(&mut self, from: usize, to: usize, frame: Frame) {
        self.handle(to, Event::Frame { peer: id(from), frame });
    }

    /// Delivers all frames. Returns the actions.
    fn run(&mut self) -> Vec<(usize, Action)> {
        let mut actions = Vec::new();
        let mut quiet = false;
        while !quiet {
            quiet = true;
            for place in 0..self.endpoints.len() {
                while let Some((to, frame)) = self.endpoints[place].transmit(self.now) {
                    quiet = false;
                    self.frame(place, to.0 as usize, frame);
                }
            }
        }
        for (place, endpoint) in self.endpoints.iter_mut().enumerate() {
            actions.extend(std::iter::from_fn(|| endpoint.poll()).map(|action| (place, action)));
        }
        actions
    }

    fn request(&mut self, from: usize, to: usize, len: usize) -> RequestId {
        let mut message = MessageBuf::new();
        message.resize(len, 1);
        self.endpoints[from].push(id(to), message, LATER).unwrap()
    }
}

/// Two nodes that have joined.
fn pair() -> Nodes {
    let mut nodes = Nodes::new([config(1), config(2)]);
    let joined = |peer, incarnation| Action::Joined {
        peer: id(peer),
        role: 5,
        incarnation,
        restarted: false,
    };
    assert_eq!(nodes.run(), [(0, joined(1, 2)), (1, joined(0, 1))]);
    nodes
}

fn refusals(actions: &[(usize, Action)]) -> Vec<(usize, String)> {
    let refusal = |(place, action): &(usize, Action)| match action {
        Action::Refused { reason, .. } => Some((*place, reason.to_string())),
        _ => None,
    };
    actions.iter().filter_map(refusal).collect()
}

fn asked(actions: &[(usize, Action)]) -> usize {
    actions.iter().filter(|(_, action)| matches!(action, Action::Request { .. })).count()
}

#[test]
fn incompatible_peers_are_refused_on_both_sides() {
    let other = |change: fn(&mut Identity)| {
        let mut second = config(2);
        change(&mut second.identity);
        let mut nodes = Nodes::new([config(1), second]);
        let request = nodes.request(0, 1, 10);
        let actions = nodes.run();
        let outcome = Outcome::Unknown { reason: FailureReason::Refused, sent: false };
        assert!(actions.contains(&(0, Action::Completed { request, outcome })), "{actions:?}");
        assert!(nodes.endpoints.iter().all(|endpoint| endpoint.joined().next().is_none()));
        let refusals = refusals(&actions);
        assert_eq!(refusals.iter().map(|refusal| refusal.0).collect::<Vec<_>>(), [0, 1]);
        refusals[0].1.clone()
    };
    let run = other(|identity| identity.run = 8);
    assert!(run.contains("run 00000000000000000000000000000008"), "{run}");
    let configuration = other(|identity| identity.configuration = 8);
    assert!(
        configuration.contains("0000000000000008") && configuration.contains("0000000000000009")
    );
}

/// Returns the greeting of a new node.
fn hello(config: Config) -> Vec<u8> {
    let mut endpoint = Endpoint::new(config);
    endpoint.handle(Event::Up { peer: id(0) }, Time(1));
    endpoint.transmit(Time(1)).unwrap().1.to_vec()
}

#[test]
fn another_version_is_refused() {
    let mut nodes = Nodes::new([config(1), config(2)]);
    let mut bytes = hello(config(2));
    bytes[48] = 99;
    bytes.truncate(60);
    nodes.frame(1, 0, Frame::from(bytes));
    let reason = Refusal::Version { ours: 1, theirs: 99 };
    assert_eq!(nodes.endpoints[0].poll(), Some(Action::Refused { peer: id(1), reason }));
}

#[test]
fn an_invalid_message_affects_one_peer() {
    for bytes in [vec![], vec![0; 39], vec![255; 40], vec![1; 1000], b"GET / HTTP/1.1\r\n".to_vec()]
    {
        let mut nodes = Nodes::new([config(1), config(2), config(3)]);
        nodes.run();
        nodes.frame(2, 0, Frame::from(bytes));
        let actions = nodes.run();
        let refusals = refusals(&actions);
        assert_eq!(refusals.iter().map(|refusal| refusal.0).collect::<Vec<_>>(), [0, 2]);
        assert!(refusals[1].1.contains("refuses this node: it broke the protocol"), "{refusals:?}");
        nodes.request(0, 1, 10);
        assert_eq!(asked(&nodes.run()), 1);
        // After a reconnect the peer is accepted again.
        let reason = DisconnectReason::Closed;
        nodes.handle(0, Event::Down { peer: id(2), reason: reason.clone() });
        nodes.handle(2, Event::Down { peer: id(0), reason });
        nodes.handle(0, Event::Up { peer: id(2) });
        nodes.handle(2, Event::Up { peer: id(0) });
        let joined = |(_, action): &(usize, Action)| matches!(action, Action::Joined { .. });
        assert_eq!(nodes.run().iter().filter(|action| joined(action)).count(), 2);
    }
}

#[test]
fn messages_before_the_greeting_are_ignored() {
    // A request to the node from a peer that has joined it.
    let mut nodes = pair();
    nodes.request(1, 0, 10);
    let (_, request) = nodes.endpoints[1].transmit(nodes.now).unwrap();
    let mut fresh = Endpoint::new(config(1));
    fresh.handle(Event::Up { peer: id(1) }, Time(1));
    fresh.handle(Event::Frame { peer: id(1), frame: request }, Time(1));
    assert_eq!((fresh.strays(), fresh.poll()), (1, None));
}

#[test]
fn replies_to_unsent_requests_are_ignored() {
    let mut nodes = pair();
    // A reply to a request that waits and was never sent; its number can be guessed.
    let first = nodes.request(0, 1, 10);
    let [(1, Action::Request { reply_to, .. })] = &nodes.run()[..] else { panic!() };
    nodes.endpoints[1].reply(*reply_to, MessageBuf::new(), nodes.now);
    let (_, reply) = nodes.endpoints[1].transmit(nodes.now).unwrap();
    nodes.frame(1, 0, reply.clone());
    let ended = nodes.run();
    assert_eq!(
        ended,
        [(0, Action::Completed { request: first, outcome: Outcome::Done(Frame::new()) })]
    );
    nodes.request(0, 1, 10);
    let mut guess = reply.to_vec();
    guess[24] = 1;
    nodes.frame(1, 0, reply);
    nodes.frame(1, 0, Frame::from(guess));
    assert_eq!((nodes.endpoints[0].strays(), nodes.endpoints[0].poll()), (2, None));
}

#[test]
fn a_greeting_of_an_earlier_incarnation_is_ignored() {
    let mut nodes = pair();
    nodes.frame(1, 0, Frame::from(hello(config(1))));
    assert_eq!((nodes.endpoints[0].strays(), nodes.run()), (1, vec![]));
    nodes.request(1, 0, 10);
    assert_eq!(asked(&nodes.run()), 1);
}

#[test]
fn a_new_incarnation_ends_pushes_and_repeats_pulls() {
    let mut nodes = pair();
    let sent = [RequestKind::Pull, RequestKind::Push]
        .map(|kind| nodes.endpoints[0].request(id(1), kind, MessageBuf::new(), LATER).unwrap());
    let waits = nodes.request(0, 1, 10);
    assert_eq!(asked(&nodes.run()), 2);
    nodes.endpoints[1] = Endpoint::new(config(3));
    for (place, peer) in [(0, 1), (1, 0)] {
        nodes.handle(place, Event::Down { peer: id(peer), reason: DisconnectReason::Closed });
        nodes.handle(place, Event::Up { peer: id(peer) });
    }
    let actions = nodes.run();
    let restarted = Action::Joined { peer: id(1), role: 5, incarnation: 3, restarted: true };
    assert!(actions.contains(&(0, restarted)), "{actions:?}");
    let outcome = Outcome::Unknown { reason: FailureReason::NewIncarnation, sent: true };
    assert!(actions.contains(&(0, Action::Completed { request: sent[1], outcome })), "{actions:?}");
    let mut asked = actions.iter().filter_map(|(_, action)| match action {
        Action::Request { reply_to, .. } => Some(reply_to.number),
        _ => None,
    });
    assert_eq!(
        [asked.next(), asked.next(), asked.next()],
        [Some(sent[0].number), Some(waits.number), None]
    );
}

#[test]
fn windows_are_respected() {
    let mut nodes = pair();
    // By number and by bytes; a single request may be longer.
    for (len, expected) in [(10, 2), (600, 1), (5000, 1)] {
        for _ in 0..3 {
            nodes.request(0, 1, len);
        }
        let mut actions = nodes.run();
        let mut all = 0;
        while asked(&actions) > 0 {
            assert!(asked(&actions) <= expected, "{len}: {actions:?}");
            all += asked(&actions);
            for (_, action) in actions {
                if let Action::Request { reply_to, .. } = action {
                    assert!(nodes.endpoints[1].reply(reply_to, MessageBuf::new(), nodes.now));
                }
            }
            actions = nodes.run();
        }
        assert_eq!((all, nodes.endpoints[0].in_flight()), (3, 0));
    }
}

#[test]
fn an_open_request_bounds_the_numbers_of_later_ones() {
    let mut nodes = pair();
    let mut tickets = Vec::new();
    let mut passed = 0;
    for _ in 0..20 {
        if nodes.endpoints[0].push(id(1), MessageBuf::new(), LATER).is_err() {
            break;
        }
        for (_, action) in nodes.run() {
            if let Action::Request { reply_to, .. } = action {
                tickets.push(reply_to);
            }
        }
        // All requests except the first are answered.
        for reply_to in tickets.drain(1..) {
            assert!(nodes.endpoints[1].reply(reply_to, MessageBuf::new(), nodes.now));
            passed += 1;
        }
        nodes.run();
    }
    assert_eq!(passed, 7, "a span of four windows, without the first");
    assert!(nodes.endpoints[1].reply(tickets[0], MessageBuf::new(), nodes.now));
    assert!(asked(&nodes.run()) > 0);
}

#[test]
fn a_peer_that_exceeds_the_window_is_refused() {
    let generous = Config { window: Window { requests: 100, bytes: 1 << 20 }, ..config(2) };
    let mut nodes = Nodes::new([Config { queue: 50, ..config(1) }, generous]);
    nodes.run();
    // It keeps to the window of the second node, and its frames are delivered to a node with a
    // smaller one.
    for _ in 0..9 {
        nodes.request(0, 1, 10);
    }
    let mut frames = Vec::new();
    while let Some((_, frame)) = nodes.endpoints[0].transmit(nodes.now) {
        frames.push(frame);
    }
    let mut strict = pair();
    for frame in frames {
        strict.frame(0, 1, frame);
    }
    let refused = strict.run();
    assert_eq!(asked(&refused), 8);
    assert!(refusals(&refused)[0].1.contains("exceeds its window"), "{refused:?}");
}

#[test]
fn bytes_in_flight_to_all_peers_are_bounded() {
    let mut nodes = Nodes::new([config(1), config(2), config(3)]);
    nodes.run();
    nodes.request(0, 1, 700);
    nodes.request(0, 2, 700);
    let actions = nodes.run();
    assert_eq!(asked(&actions), 1);
    let Some((1, Action::Request { reply_to, .. })) = actions.into_iter().next() else { panic!() };
    nodes.endpoints[1].reply(reply_to, MessageBuf::new(), nodes.now);
    assert_eq!(asked(&nodes.run()), 1, "the other one's turn has come");
}

#[test]
fn an_overloaded_peer_becomes_ready_again() {
    let mut endpoint = Endpoint::new(config(1));
    let mut push = |body: &[u8]| endpoint.push(id(1), MessageBuf::from(body), Time(50));
    let first = push(b"1").unwrap();
    push(b"2").unwrap();
    push(b"3").unwrap();
    let busy = push(b"4").unwrap_err();
    assert_eq!((busy.peer, busy.message.body()), (id(1), &b"4"[..]));
    endpoint.cancel(first, Time(2));
    let cancelled = Outcome::Unknown { reason: FailureReason::Cancelled, sent: false };
    assert_eq!(endpoint.poll(), Some(Action::Completed { request: first, outcome: cancelled }));
    assert_eq!(endpoint.poll(), None);
    // The peer never joins; the deadlines pass.
    assert_eq!(endpoint.next_timer(), Time(50));
    endpoint.handle(Event::Tick, Time(50));
    let ends = std::iter::from_fn(|| endpoint.poll()).collect::<Vec<_>>();
    let late = Outcome::Unknown { reason: FailureReason::Deadline, sent: false };
    assert!(matches!(&ends[0], Action::Completed { outcome, .. } if *outcome == late), "{ends:?}");
    assert_eq!((ends.len(), &ends[2]), (3, &Action::Ready { peer: id(1) }));
    assert_eq!(endpoint.next_timer(), Time::NEVER);
}

#[test]
fn a_silent_peer_has_left_and_may_return() {
    let mut nodes = pair();
    nodes.request(0, 1, 10);
    assert_eq!(asked(&nodes.run()), 1);
    // Heartbeats alone keep the session.
    for _ in 0..20 {
        nodes.now = nodes.now + SECOND;
        (0..2).for_each(|place| nodes.handle(place, Event::Tick));
        assert_eq!(nodes.run(), []);
    }
    // The second node sends nothing for a while.
    for _ in 0..6 {
        nodes.now = nodes.now + SECOND;
        nodes.handle(0, Event::Tick);
        while nodes.endpoints[0].transmit(nodes.now).is_some() {}
    }
    let left = Action::Left { peer: id(1), reason: DisconnectReason::Silent };
    assert_eq!(nodes.endpoints[0].poll(), Some(left));
    nodes.handle(1, Event::Tick);
    nodes.now = nodes.now + SECOND;
    nodes.handle(0, Event::Tick);
    nodes.handle(1, Event::Tick);
    let actions = nodes.run();
    let again = Action::Joined { peer: id(1), role: 5, incarnation: 2, restarted: false };
    assert!(actions.contains(&(0, again)), "{actions:?}");
    // The request in flight is sent again and recognised.
    assert_eq!(asked(&actions), 0);
    assert!(nodes.endpoints[1].strays() > 0);
}

fn answer_all(nodes: &mut Nodes, actions: Vec<(usize, Action)>) {
    for (place, action) in actions {
        if let Action::Request { reply_to, .. } = action {
            nodes.endpoints[place].reply(reply_to, MessageBuf::new(), nodes.now);
        }
    }
}

#[test]
fn a_peer_that_counts_as_silent_still_gets_its_reply() {
    let mut nodes = pair();
    let request = nodes.request(1, 0, 10);
    let asked = nodes.run();
    // The first node receives nothing for a while from a peer that continues and has received
    // everything.
    nodes.now = nodes.now + 6 * SECOND;
    nodes.handle(0, Event::Tick);
    let left = Action::Left { peer: id(1), reason: DisconnectReason::Silent };
    assert_eq!(nodes.endpoints[0].poll(), Some(left));
    answer_all(&mut nodes, asked);
    let actions = nodes.run();
    let done = Action::Completed { request, outcome: Outcome::Done(Frame::new()) };
    assert!(actions.contains(&(1, done)), "{actions:?}");
}

#[test]
fn a_refusal_is_repeated() {
    let mut second = config(2);
    second.identity.run = 8;
    let mut nodes = Nodes::new([config(1), second]);
    // The first node refuses the second; its refusal and its greeting are lost.
    let (_, greeting) = nodes.endpoints[1].transmit(nodes.now).unwrap();
    nodes.frame(1, 0, greeting);
    while nodes.endpoints[0].transmit(nodes.now).is_some() {}
    nodes.now = nodes.now + SECOND;
    nodes.handle(1, Event::Tick);
    let refusals = refusals(&nodes.run());
    assert_eq!(refusals.iter().map(|refusal| refusal.0).collect::<Vec<_>>(), [0, 1]);
    assert!(refusals[1].1.contains("refuses this node: it belongs to run"), "{refusals:?}");
    // Requests to a refused peer end at once.
    let request = nodes.request(0, 1, 10);
    let outcome = Outcome::Unknown { reason: FailureReason::Refused, sent: false };
    assert_eq!(nodes.run(), [(0, Action::Completed { request, outcome })]);
}

#[test]
fn a_clock_that_was_set_back_is_reported() {
    let mut nodes = pair();
    for (place, peer) in [(0, 1), (1, 0)] {
        nodes.handle(place, Event::Down { peer: id(peer), reason: DisconnectReason::Closed });
    }
    nodes.endpoints[1] = Endpoint::new(config(1));
    nodes.handle(0, Event::Up { peer: id(1) });
    nodes.handle(1, Event::Up { peer: id(0) });
    let actions = nodes.run();
    let refusals = refusals(&actions);
    assert_eq!(refusals[0].0, 1);
    assert!(refusals[0].1.contains("incarnation 1 is smaller than 2"), "{refusals:?}");
}

/// Anybody may connect under the number of a node that is away.
#[test]
fn a_stranger_that_has_not_joined_ends_nothing() {
    let mut largest = config(u64::MAX);
    largest.identity.run = 8;
    for (bytes, refused) in [(vec![255; 40], 0), (vec![], 0), (hello(largest), 1)] {
        let mut nodes = Nodes::new([config(1), config(2)]);
        nodes.frame(1, 0, Frame::from(bytes));
        // It learns why, and goes.
        assert!(nodes.endpoints[0].transmit(nodes.now).is_some());
        nodes.handle(0, Event::Down { peer: id(1), reason: DisconnectReason::Closed });
        nodes.handle(0, Event::Up { peer: id(1) });
        let actions = nodes.run();
        assert_eq!(refusals(&actions).len(), refused, "{actions:?}");
        let joined = nodes.endpoints.iter().map(|endpoint| endpoint.joined().count());
        assert_eq!(joined.collect::<Vec<_>>(), [1, 1], "{actions:?}");
    }
}

/// Its executed requests are forgotten, so that copies of them would be executed again.
#[test]
fn a_node_in_whose_place_another_has_greeted_does_not_return() {
    let mut nodes = pair();
    let away = |nodes: &mut Nodes| {
        for (place, peer) in [(0, 1), (1, 0)] {
            nodes.handle(place, Event::Down { peer: id(peer), reason: DisconnectReason::Closed });
        }
    };
    let connect = |nodes: &mut Nodes| {
        nodes.handle(0, Event::Up { peer: id(1) });
        nodes.handle(1, Event::Up { peer: id(0) });
        nodes.run()
    };
    away(&mut nodes);
    nodes.handle(0, Event::Up { peer: id(1) });
    let mut other = config(3);
    other.identity.configuration = 8;
    nodes.frame(1, 0, Frame::from(hello(other)));
    assert_eq!(refusals(&nodes.run())[0].0, 0);
    away(&mut nodes);
    let actions = connect(&mut nodes);
    let why = "another process has greeted in its place: start it again";
    assert!(refusals(&actions).iter().any(|(node, text)| *node == 1 && text.contains(why)));
    assert_eq!(nodes.endpoints[0].joined().count(), 0, "{actions:?}");
    // The next process is welcome.
    away(&mut nodes);
    nodes.endpoints[1] = Endpoint::new(config(3));
    let actions = connect(&mut nodes);
    let joined = |action: &Action| matches!(action, Action::Joined { restarted: true, .. });
    assert!(actions.iter().any(|(node, action)| *node == 0 && joined(action)), "{actions:?}");
}

#[test]
fn requests_and_replies_that_are_too_long_end() {
    let mut nodes = pair();
    let too_long = SendError::TooLong { len: 540, longest: 500 };
    let request = nodes.request(0, 1, 500);
    let (to, frame) = nodes.endpoints[0].transmit(nodes.now).unwrap();
    nodes.endpoints[0].unsent(to, frame, too_long, nodes.now);
    let outcome = Outcome::Unknown { reason: FailureReason::TooLong, sent: false };
    assert_eq!(nodes.run(), [(0, Action::Completed { request, outcome })]);
    let request = nodes.request(0, 1, 10);
    let asked = nodes.run();
    answer_all(&mut nodes, asked);
    let (to, frame) = nodes.endpoints[1].transmit(nodes.now).unwrap();
    nodes.endpoints[1].unsent(to, frame, too_long, nodes.now);
    let actions = nodes.run();
    // It was executed, so repeating it would be wrong.
    let outcome = Outcome::Unknown { reason: FailureReason::ReplyTooLong, sent: true };
    assert_eq!(actions, [(0, Action::Completed { request, outcome })]);
    // A rejection stays a rejection.
    let request = nodes.request(0, 1, 10);
    let [(1, Action::Request { reply_to, .. })] = &nodes.run()[..] else { panic!() };
    nodes.endpoints[1].reject(*reply_to, MessageBuf::from(&[1; 500][..]), nodes.now);
    let (to, frame) = nodes.endpoints[1].transmit(nodes.now).unwrap();
    nodes.endpoints[1].unsent(to, frame, too_long, nodes.now);
    let actions = nodes.run();
    let [(0, Action::Completed { request: ended, outcome: Outcome::Rejected(reason) })] =
        &actions[..]
    else {
        panic!("{actions:?}")
    };
    assert_eq!(*ended, request);
    assert!(reason.starts_with(b"for a reason longer"), "{reason:?}");
}

#[test]
fn the_longest_waiting_request_is_sent_first() {
    let wide = |incarnation| Config {
        window: Window { requests: 50, bytes: 1 << 20 },
        queue: 50,
        ..config(incarnation)
    };
    let mut nodes = Nodes::new([wide(1), wide(2), wide(3)]);
    nodes.run();
    // 1,000 bytes may be in flight: short requests fill them, and more of them follow.
    for _ in 0..8 {
        nodes.request(0, 1, 60);
    }
    let mut asked = nodes.run();
    let large = nodes.request(0, 2, 900);
    let mut rounds = 0;
    loop {
        // One request is answered, and two more are made.
        let answered = asked.remove(0);
        answer_all(&mut nodes, vec![answered]);
        nodes.request(0, 1, 60);
        for (place, action) in nodes.run() {
            match action {
                Action::Request { reply_to, .. } if place == 2 => {
                    assert_eq!(reply_to.number, large.number);
                    return;
                }
                Action::Request { .. } => asked.push((place, action)),
                _ => {}
            }
        }
        rounds += 1;
        assert!(rounds < 12, "the long request waits forever");
    }
}

#[test]
fn replies_do_not_delay_requests() {
    let wide = |incarnation| Config {
        window: Window { requests: 50, bytes: 1 << 20 },
        in_flight: 1 << 20,
        queue: 50,
        ..config(incarnation)
    };
    let mut nodes = Nodes::new([wide(1), wide(2)]);
    nodes.run();
    for _ in 0..10 {
        nodes.request(1, 0, 10);
    }
    let asked = nodes.run();
    answer_all(&mut nodes, asked);
    for _ in 0..10 {
        nodes.request(0, 1, 10);
    }
    let sent = std::iter::from_fn(|| nodes.endpoints[0].transmit(nodes.now));
    let kinds: Vec<u8> = sent.map(|(_, frame)| frame[0]).collect();
    assert_eq!(kinds.len(), 20);
    assert!(kinds.windows(2).all(|two| two[0] != two[1]), "{kinds:?}");
}

#[test]
fn a_reply_below_the_floor_is_not_sent() {
    let mut nodes = pair();
    nodes.endpoints[0].pull(id(1), MessageBuf::new(), Time(1000)).unwrap();
    let asked = nodes.run();
    answer_all(&mut nodes, asked);
    // The reply waits to be sent while the deadline passes; the next request has a higher floor.
    nodes.now = Time(2000);
    nodes.handle(0, Event::Tick);
    nodes.request(0, 1, 10);
    let (_, next) = nodes.endpoints[0].transmit(nodes.now).unwrap();
    nodes.frame(0, 1, next);
    assert_eq!(nodes.endpoints[1].transmit(nodes.now), None);
}
