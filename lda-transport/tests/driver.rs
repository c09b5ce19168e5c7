//! The event loop: requests between threads, timers, wake-ups, and connections that come and go.

use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use lda_transport::local::{Hub, Local, Options, mesh};
use lda_transport::rpc::{
    Action, Config, Context, Driver, FailureReason, Identity, MessageBuf, Outcome, Program,
    RequestId, RequestKind,
};
use lda_transport::{DisconnectReason, Frame, NodeId, ReceiveError, Time, Transport};

const LONG: Duration = Duration::from_secs(60);
const SHORT: Duration = Duration::from_millis(20);

fn config() -> Config {
    Config::new(Identity { incarnation: 1, role: 3, run: 1, configuration: 1 })
}

fn pair() -> (Driver<Local>, Driver<Local>) {
    let mut nodes = mesh(2, &Options::default()).into_iter();
    let mut next = || Driver::new(nodes.next().expect("there are two"), config());
    (next(), next())
}

/// Answers requests with their body, unless it is mute, and records everything else.
#[derive(Debug, Default, PartialEq)]
struct Recorder {
    mute: bool,
    outcomes: Vec<(RequestId, Outcome)>,
    timers: Vec<u64>,
    joined: Vec<NodeId>,
    connections: Vec<(NodeId, bool)>,
}

impl Program for Recorder {
    fn start(&mut self, cx: &mut Context<'_>) {
        for (after, timer) in [(SHORT * 2, 3), (SHORT, 1), (Duration::ZERO, 0), (SHORT, 2)] {
            cx.set_timer(after, timer);
        }
    }

    fn act(&mut self, action: Action, cx: &mut Context<'_>) {
        match action {
            Action::Request { reply_to, body, .. } if !self.mute => {
                cx.reply(reply_to, body[..].into());
            }
            Action::Completed { request, outcome } => self.outcomes.push((request, outcome)),
            Action::Joined { peer, .. } => self.joined.push(peer),
            _ => {}
        }
    }

    fn connected(&mut self, peer: NodeId, _: &mut Context<'_>) {
        self.connections.push((peer, true));
    }

    fn disconnected(&mut self, peer: NodeId, reason: &DisconnectReason, _: &mut Context<'_>) {
        assert_eq!(*reason, DisconnectReason::Closed);
        self.connections.push((peer, false));
    }

    fn timer(&mut self, timer: u64, _: &mut Context<'_>) {
        self.timers.push(timer);
    }
}

fn push(driver: &mut Driver<Local>, to: u32, body: &[u8], timeout: Duration) -> RequestId {
    let message = MessageBuf::from(body);
    driver.context().request(NodeId(to), RequestKind::Push, message, timeout).unwrap()
}

/// Runs a node until `condition` holds.
fn until(
    driver: &mut Driver<Local>,
    program: &mut Recorder,
    condition: impl Fn(&Recorder) -> bool,
) {
    while !condition(program) {
        driver.step(program, Time::NEVER).unwrap();
    }
}

#[test]
fn requests_end_with_their_own_answers() {
    let (mut server, mut client) = pair();
    let (stopped, stop) = mpsc::channel::<()>();
    let waker = server.transport().waker();
    thread::scope(|scope| {
        scope.spawn(move || {
            let mut program = Recorder::default();
            while stop.try_recv() != Err(mpsc::TryRecvError::Disconnected) {
                server.step(&mut program, Time::NEVER).unwrap();
            }
        });
        let mut program = Recorder::default();
        for round in 0..200u8 {
            let request = push(&mut client, 0, &[round; 3], LONG);
            until(&mut client, &mut program, |program| !program.outcomes.is_empty());
            let expected = Outcome::Done(Frame::from(vec![round; 3]));
            assert_eq!(program.outcomes.pop(), Some((request, expected)));
        }
        // The other thread waits without a limit; the wake-up ends its wait.
        drop(stopped);
        waker.wake();
    });
}

#[test]
fn a_deadline_ends_a_request() {
    let (mut server, mut client) = pair();
    let (mut mute, mut program) = (Recorder::default(), Recorder::default());
    mute.mute = true;
    let sent = push(&mut client, 0, b"x", SHORT);
    let unsent = push(&mut client, 9, b"x", SHORT);
    while program.outcomes.len() < 2 {
        server.step(&mut mute, Time::ZERO).unwrap();
        client.step(&mut program, Time::ZERO).unwrap();
    }
    program.outcomes.sort_by_key(|(request, _)| *request);
    let unknown = |sent| Outcome::Unknown { reason: FailureReason::Deadline, sent };
    assert_eq!(program.outcomes, [(sent, unknown(true)), (unsent, unknown(false))]);
}

#[test]
fn timers_expire_in_order() {
    let (mut driver, _other) = pair();
    let mut program = Recorder::default();
    let start = driver.now();
    driver.start(&mut program);
    until(&mut driver, &mut program, |program| program.timers.len() == 4);
    assert_eq!(program.timers, [0, 1, 2, 3]);
    assert!(driver.now().since(start) >= SHORT * 2);
}

#[test]
fn a_wait_ends_at_its_limit() {
    let (mut driver, _other) = pair();
    let mut program = Recorder::default();
    // The arrival of the other node, without waiting for it.
    assert_eq!(driver.wait(&mut program, Time::ZERO), Ok(Duration::ZERO));
    assert_eq!(program.connections, [(NodeId(1), true)]);
    let until = driver.now() + SHORT;
    let waited = driver.wait(&mut program, until).unwrap();
    assert!(driver.now() >= until && waited >= SHORT / 2, "{waited:?}");
}

#[test]
fn programs_learn_of_connections_that_never_joined() {
    let hub = Hub::new(&Options::default());
    let mut driver = Driver::new(hub.join(NodeId(0)).unwrap(), config());
    let mut program = Recorder::default();
    for _ in 0..2 {
        let other = hub.join(NodeId(1)).unwrap();
        until(&mut driver, &mut program, |program| program.connections.len() % 2 == 1);
        drop(other);
        until(&mut driver, &mut program, |program| program.connections.len() % 2 == 0);
    }
    let (up, down) = ((NodeId(1), true), (NodeId(1), false));
    assert_eq!(program.connections, [up, down, up, down]);
    assert!(program.joined.is_empty());
    driver.transport().close(Duration::ZERO);
    assert_eq!(driver.step(&mut program, Time::NEVER), Err(ReceiveError::Closed));
}
