//! Collective operations through endpoints: results, cost and failures.

use std::collections::BTreeMap;
use std::time::Duration;

use lda_transport::rpc::{
    Action, BeginError, Collective, CollectiveError, Config, Element, Endpoint, Event,
    FailureReason, Group, Identity, MessageBuf, OperationId, Outcome, RequestKind, Window,
};
use lda_transport::{DisconnectReason, Frame, NodeId, SendError, Time};

const LATER: Time = Time(1_000_000_000_000);

fn config(incarnation: u64) -> Config {
    let identity = Identity { incarnation, role: 0, run: 7, configuration: 9 };
    let window = Window { requests: 4, bytes: 1000 };
    Config { window, part_len: 64, max_content_len: 1 << 20, ..Config::new(identity) }
}

type Ended = (OperationId, Result<Vec<Frame>, CollectiveError>);

/// Endpoints that are connected with each other, by number.
struct Nodes {
    endpoints: Vec<Endpoint>,
    /// Nodes whose frames are lost in both directions.
    mute: Vec<usize>,
    ended: BTreeMap<usize, Vec<Ended>>,
    now: Time,
    /// Longest frame and number of frames.
    longest: usize,
    frames: usize,
    /// Requests that have arrived, besides parts of operations.
    requests: usize,
}

fn id(place: usize) -> NodeId {
    NodeId(place as u32)
}

fn group(number: u64, members: usize, this: usize) -> Group {
    Group::new(number, (0..members).map(id).collect(), id(this)).unwrap()
}

impl Nodes {
    fn new(count: usize) -> Self {
        let endpoints = (0..count).map(|place| Endpoint::new(config(place as u64 + 1))).collect();
        let (mute, ended) = Default::default();
        let mut nodes =
            Self { endpoints, mute, ended, now: Time(1), longest: 0, frames: 0, requests: 0 };
        for place in 0..count {
            for peer in (0..count).filter(|&peer| peer != place) {
                nodes.endpoints[place].handle(Event::Up { peer: id(peer) }, nodes.now);
            }
        }
        nodes.run();
        nodes.frames = 0;
        nodes
    }

    fn begin(&mut self, place: usize, collective: Collective) -> OperationId {
        self.begin_in(1, place, collective)
    }

    fn begin_in(&mut self, number: u64, place: usize, collective: Collective) -> OperationId {
        let group = group(number, self.endpoints.len(), place);
        let deadline = self.now + Duration::from_secs(1000);
        self.endpoints[place].begin(&group, collective, deadline, self.now).unwrap()
    }

    fn run(&mut self) {
        let mut quiet = false;
        while !quiet {
            quiet = true;
            for place in 0..self.endpoints.len() {
                while let Some(action) = self.endpoints[place].poll() {
                    match action {
                        Action::CollectiveDone { operation, result } => {
                            self.ended.entry(place).or_default().push((operation, result));
                        }
                        Action::Request { .. } => self.requests += 1,
                        Action::Completed { .. } => panic!("{action:?}"),
                        _ => {}
                    }
                }
                while let Some((to, frame)) = self.endpoints[place].transmit(self.now) {
                    quiet = false;
                    self.longest = self.longest.max(frame.len());
                    self.frames += 1;
                    if !self.mute.contains(&place) && !self.mute.contains(&(to.0 as usize)) {
                        let event = Event::Frame { peer: id(place), frame };
                        self.endpoints[to.0 as usize].handle(event, self.now);
                    }
                }
            }
        }
    }

    fn pass(&mut self, time: Duration) {
        self.now = self.now + time;
        self.endpoints.iter_mut().for_each(|endpoint| endpoint.handle(Event::Tick, self.now));
        self.run();
    }

    fn take(&mut self, place: usize) -> Vec<Ended> {
        self.ended.remove(&place).unwrap_or_default()
    }
}

fn content(of: usize, len: usize) -> Frame {
    Frame::from((0..len).map(|at| (at + of) as u8).collect::<Vec<u8>>())
}

#[test]
fn operations_return_their_results_at_all_members() {
    for members in [1, 2, 3, 5, 8] {
        let mut nodes = Nodes::new(members);
        // Four at once, which the last member begins after the others.
        for place in 0..members {
            let root = members - 1;
            nodes.begin(place, Collective::Barrier);
            let whole = (place == root).then(|| content(9, 5000));
            nodes.begin(place, Collective::Broadcast { root: id(root), content: whole });
            nodes.begin(place, Collective::AllGather { content: content(place, place * 70) });
            let values = [place as u64 + 1; 100].map(u64::to_le_bytes).concat();
            let sum = Collective::ReduceScatter { element: Element::I64, values: values.into() };
            let last = nodes.begin(place, sum);
            assert_eq!(last, OperationId { group: 1, number: 3 });
            nodes.run();
            // All operations wait for the last member.
            let ended = nodes.ended.contains_key(&place);
            assert_eq!(ended, place == members - 1, "an operation ended before all had begun it");
        }
        assert!(nodes.longest <= 40 + 56 + 64);
        for place in 0..members {
            let mut ended = nodes.take(place);
            ended.sort_by_key(|ended| ended.0);
            let got: Vec<Vec<Frame>> =
                ended.into_iter().map(|(_, result)| result.unwrap()).collect();
            assert_eq!(got[..2], [vec![], vec![content(9, 5000)]]);
            let all: Vec<Frame> = (0..members).map(|of| content(of, of * 70)).collect();
            assert_eq!(got[2], all);
            let sum = (1..=members as u64).sum::<u64>().to_le_bytes();
            let part = place * 100 / members..(place + 1) * 100 / members;
            assert_eq!(got[3], [Frame::from(sum.repeat(part.len()))]);
        }
    }
}

#[test]
fn a_barrier_takes_at_most_three_messages_per_member() {
    for members in [2, 7, 17] {
        let mut nodes = Nodes::new(members);
        (0..members).for_each(|place| {
            nodes.begin(place, Collective::Barrier);
        });
        nodes.run();
        // Two messages per edge of the tree, with a reply each.
        assert_eq!(nodes.frames, 4 * (members - 1));
    }
}

#[test]
fn invalid_operations_do_not_begin() {
    let mut nodes = Nodes::new(2);
    let mut begin = |collective| {
        nodes.endpoints[0].begin(&group(1, 2, 0), collective, LATER, Time(2)).unwrap_err()
    };
    let broadcast = |root, content| Collective::Broadcast { root: NodeId(root), content };
    assert_eq!(begin(broadcast(7, None)), BeginError::Root(NodeId(7)));
    assert_eq!(begin(broadcast(1, Some(Frame::new()))), BeginError::Content(true));
    assert_eq!(begin(broadcast(0, None)), BeginError::Content(false));
    let sum =
        |bytes| Collective::ReduceScatter { element: Element::I64, values: content(0, bytes) };
    assert_eq!(begin(sum(12)), BeginError::Values { bytes: 12, element: 8 });
    let long = begin(Collective::AllGather { content: content(0, (1 << 20) + 1) });
    assert!(matches!(long, BeginError::TooLong { .. }));
    // None of them has used a number.
    let first = nodes.begin(0, Collective::Barrier);
    assert_eq!(first.number, 0);
}

#[test]
fn parts_that_arrive_before_their_operation_begins_do_not_block_requests() {
    let mut nodes = Nodes::new(2);
    // As many parts as may be in flight; member 1 has not begun any of these operations.
    for _ in 0..4 {
        nodes.begin(0, Collective::AllGather { content: content(0, 10) });
    }
    nodes.run();
    let deadline = nodes.now + Duration::from_secs(1000);
    let endpoint = &mut nodes.endpoints[0];
    endpoint.request(id(1), RequestKind::Push, MessageBuf::new(), deadline).unwrap();
    nodes.run();
    assert_eq!(nodes.requests, 1, "the request has arrived");
    for _ in 0..4 {
        nodes.begin(1, Collective::AllGather { content: content(1, 10) });
    }
    nodes.run();
    assert!(nodes.take(0).iter().chain(&nodes.take(1)).all(|(_, result)| result.is_ok()));
}

#[test]
fn members_with_different_operations_fail() {
    let mut nodes = Nodes::new(2);
    nodes.begin(0, Collective::Barrier);
    nodes.begin(1, Collective::AllGather { content: content(1, 10) });
    nodes.run();
    let mut words = Vec::new();
    for place in 0..2 {
        let ended = nodes.take(place);
        let [(_, Err(error))] = &ended[..] else { panic!("{ended:?}") };
        words.push(error.to_string());
    }
    assert!(words.iter().any(|words| words.contains("runs another operation")), "{words:?}");
    assert!(words.iter().all(|words| words.contains("a barrier in parts")), "{words:?}");
}

#[test]
fn a_deadline_names_the_missing_members() {
    let mut nodes = Nodes::new(4);
    (0..3).for_each(|place| {
        nodes.begin(place, Collective::Barrier);
    });
    nodes.run();
    for _ in 0..1001 {
        nodes.pass(Duration::from_secs(1));
    }
    let ended = nodes.take(0);
    let missing = vec![id(1)];
    assert_eq!(
        ended,
        [(ended[0].0, Err(CollectiveError::Deadline { missing }))],
        "the message of 3 comes by way of 1"
    );
    // The last member begins too late.
    let error =
        nodes.endpoints[3].begin(&group(1, 4, 3), Collective::Barrier, Time::NEVER, nodes.now);
    let Err(error @ BeginError::Broken { .. }) = error else { panic!("{error:?}") };
    assert!(
        error.to_string().contains("the operation did not end by its deadline; missing are"),
        "{error}"
    );
    // In another group operations work again.
    (0..4).for_each(|place| {
        nodes.begin_in(2, place, Collective::Barrier);
    });
    nodes.run();
    assert!((0..4).all(|place| nodes.take(place).pop().unwrap().1 == Ok(vec![])));
}

#[test]
fn a_member_that_restarts_ends_the_operations() {
    let mut nodes = Nodes::new(3);
    let operations = [0, 1].map(|place| nodes.begin(place, Collective::Barrier));
    nodes.run();
    nodes.endpoints[2] = Endpoint::new(config(99));
    for place in [0, 1] {
        for (of, peer) in [(place, 2), (2, place)] {
            nodes.endpoints[of].handle(
                Event::Down { peer: id(peer), reason: DisconnectReason::Closed },
                nodes.now,
            );
            nodes.endpoints[of].handle(Event::Up { peer: id(peer) }, nodes.now);
        }
    }
    nodes.run();
    let lost = CollectiveError::Lost { peer: id(2), reason: FailureReason::NewIncarnation };
    assert_eq!(nodes.take(0), [(operations[0], Err(lost))]);
    let [(ended, Err(error))] = &nodes.take(1)[..] else { panic!() };
    assert_eq!(*ended, operations[1]);
    assert!(error.to_string().contains("it has restarted"), "{error}");
    // The new incarnation has been notified.
    let error = nodes.endpoints[2].begin(&group(1, 3, 2), Collective::Barrier, LATER, Time(2));
    assert!(matches!(error, Err(BeginError::Broken { group: 1, .. })));
}

#[test]
fn a_member_that_restarts_before_another_begins_ends_the_operation() {
    let mut nodes = Nodes::new(3);
    let gather = |place| Collective::AllGather { content: content(place, 300) };
    nodes.begin(2, gather(2));
    nodes.run();
    let down = |of: &mut Nodes, at: usize, peer| {
        let reason = DisconnectReason::Closed;
        of.endpoints[at].handle(Event::Down { peer: id(peer), reason }, of.now);
    };
    down(&mut nodes, 0, 2);
    // The part is here, and its sender is away.
    let operation = nodes.begin(0, gather(0));
    nodes.endpoints[2] = Endpoint::new(config(99));
    for (at, peer) in [(0, 2), (2, 0)] {
        nodes.endpoints[at].handle(Event::Up { peer: id(peer) }, nodes.now);
    }
    nodes.run();
    let lost = CollectiveError::Lost { peer: id(2), reason: FailureReason::NewIncarnation };
    assert_eq!(nodes.take(0), [(operation, Err(lost))]);
}

#[test]
fn a_member_that_reconnects_continues() {
    let mut nodes = Nodes::new(3);
    nodes.mute = vec![2];
    for place in 0..3 {
        nodes.begin(place, Collective::AllGather { content: content(place, 300) });
        nodes.run();
    }
    assert!(nodes.ended.is_empty());
    for place in [0, 1] {
        for (of, peer) in [(place, 2), (2, place)] {
            nodes.endpoints[of].handle(
                Event::Down { peer: id(peer), reason: DisconnectReason::Closed },
                nodes.now,
            );
        }
    }
    nodes.mute.clear();
    for place in [0, 1] {
        for (of, peer) in [(place, 2), (2, place)] {
            nodes.endpoints[of].handle(Event::Up { peer: id(peer) }, nodes.now);
        }
    }
    nodes.run();
    let all: Vec<Frame> = (0..3).map(|of| content(of, 300)).collect();
    assert!((0..3).all(|place| nodes.take(place)[0].1 == Ok(all.clone())));
}

#[test]
fn abandoned_and_closed_operations_end() {
    let mut nodes = Nodes::new(2);
    let first = nodes.begin(0, Collective::Barrier);
    nodes.endpoints[0].abandon(first, nodes.now);
    let broken = nodes.endpoints[0].begin(&group(1, 2, 0), Collective::Barrier, LATER, Time(2));
    assert!(matches!(broken, Err(BeginError::Broken { group: 1, .. })));
    let second = nodes.begin_in(2, 0, Collective::Barrier);
    let request = nodes.endpoints[0].push(id(1), MessageBuf::new(), LATER).unwrap();
    // The notice that the first is abandoned, and the push.
    while nodes.endpoints[0].transmit(nodes.now).is_some() {}
    nodes.endpoints[0].close(nodes.now);
    let late = nodes.endpoints[0].push(id(1), MessageBuf::new(), LATER).unwrap();
    let actions: Vec<Action> = std::iter::from_fn(|| nodes.endpoints[0].poll())
        .filter(|action| matches!(action, Action::CollectiveDone { .. } | Action::Completed { .. }))
        .collect();
    let cancelled =
        |operation| Action::CollectiveDone { operation, result: Err(CollectiveError::Cancelled) };
    let closed = |request, sent| {
        let outcome = Outcome::Unknown { reason: FailureReason::Closed, sent };
        Action::Completed { request, outcome }
    };
    let ends = [closed(request, true), closed(late, false)];
    assert_eq!(actions, [vec![cancelled(first), cancelled(second)], ends.into()].concat());
    assert!(nodes.endpoints[0].is_idle());
}

#[test]
fn parts_that_are_too_long_end_the_operation() {
    let mut nodes = Nodes::new(2);
    let operation = nodes.begin(0, Collective::AllGather { content: content(0, 64) });
    let (to, frame) = nodes.endpoints[0].transmit(nodes.now).unwrap();
    let error = SendError::TooLong { len: frame.len(), longest: 100 };
    nodes.endpoints[0].unsent(to, frame, error, nodes.now);
    nodes.run();
    let ended = nodes.take(0);
    let [(ended, Err(error))] = &ended[..] else { panic!("{ended:?}") };
    assert_eq!(*ended, operation);
    assert!(error.to_string().contains("make `part_len` smaller"), "{error}");
}
