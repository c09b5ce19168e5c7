//! Nodes with threads of their own: requests from any thread, and how nodes end.

use std::future::Future;
use std::pin::pin;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex, mpsc};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::Duration;

use lda_transport::batch::{self, Items};
use lda_transport::node::{Asked, Failed, Handle, Member, Node, PullError, Service, Silent};
use lda_transport::rpc::{
    BeginError, Collective, CollectiveError, Config, Element, FailureReason, Group, Identity,
    MessageBuf, Outcome, RequestKind, Window,
};
use lda_transport::{Frame, NodeId, local};

const LONG: Duration = Duration::from_secs(60);
const SHORT: Duration = Duration::from_millis(20);

fn config() -> Config {
    let identity = Identity { incarnation: 1, role: 3, run: 1, configuration: 1 };
    let window = Window { requests: 8, bytes: 1 << 20 };
    Config { window, queue: 16, piece: 1 << 10, ..Config::new(identity) }
}

/// A node with this service, 0, and one that asks, 1.
fn pair(service: impl Service) -> (Node, Node) {
    let mut transports = local::mesh(2, &local::Options::default()).into_iter().map(Box::new);
    let server = Node::start(transports.next().unwrap(), config(), service).unwrap();
    let client = Node::start(transports.next().unwrap(), config(), Silent).unwrap();
    client.wait_for(&[NodeId(0)], LONG).unwrap();
    (server, client)
}

fn message(bytes: &[u8]) -> MessageBuf {
    MessageBuf::from(bytes)
}

fn closed(sent: bool) -> Outcome {
    Outcome::Unknown { reason: FailureReason::Closed, sent }
}

#[test]
fn requests_of_many_threads_end_with_their_own_answers() {
    let done = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&done);
    let (server, client) = pair(move |asked: Asked| {
        counted.fetch_add(1, SeqCst);
        let mut answer = asked.message();
        assert!(answer.body().is_empty());
        answer.extend_from_slice(asked.body());
        answer.extend_from_slice(&[asked.kind() as u8]);
        if asked.body()[0] == 7 { asked.reject(answer) } else { asked.reply(answer) }
    });
    let kinds = [RequestKind::Pull, RequestKind::Push, RequestKind::Call];
    thread::scope(|scope| {
        for thread in 0..8 {
            let client = &client;
            scope.spawn(move || {
                for round in 0..200u8 {
                    let kind = kinds[usize::from(round) % 3];
                    let body = [thread, round];
                    let pending = client.request(NodeId(0), kind, message(&body), LONG);
                    let answer = Frame::from(vec![thread, round, kind as u8]);
                    let expected =
                        if thread == 7 { Outcome::Rejected(answer) } else { Outcome::Done(answer) };
                    assert_eq!(pending.wait(), expected);
                }
            });
        }
    });
    assert_eq!(done.load(SeqCst), 1600);
    client.close(LONG).unwrap();
    server.close(LONG).unwrap();
}

#[test]
fn who_makes_one_too_many_waits() {
    // The service keeps what it is asked.
    let kept = Arc::new(Mutex::new(Vec::new()));
    let keeps = Arc::clone(&kept);
    let (server, client) = pair(move |asked: Asked| keeps.lock().unwrap().push(asked));
    let push = |client: &Handle, within| client.push(NodeId(0), message(b"x"), within);
    let pending: Vec<_> = (0..16).map(|_| push(&client, LONG)).collect();
    let late = push(&client, SHORT);
    assert!(late.has_ended(), "it has waited");
    assert_eq!(late.wait(), Outcome::Unknown { reason: FailureReason::Deadline, sent: false });
    thread::scope(|scope| {
        let waits = scope.spawn(|| push(&client, LONG).wait());
        while !waits.is_finished() {
            // Dropped, they are rejected.
            kept.lock().unwrap().clear();
            thread::yield_now();
        }
        assert!(matches!(waits.join().unwrap(), Outcome::Rejected(_)));
    });
    for pending in pending {
        let Outcome::Rejected(words) = pending.wait() else { panic!() };
        assert_eq!(&words[..], b"the program of this node did not answer");
    }
    drop(server);
}

#[test]
fn a_deadline_and_a_cancel_end_what_waits() {
    let kept = Arc::new(Mutex::new(Vec::new()));
    let keeps = Arc::clone(&kept);
    let (_server, client) = pair(move |asked: Asked| keeps.lock().unwrap().push(asked));
    let late = client.push(NodeId(0), message(b"x"), SHORT);
    assert_eq!(late.wait(), Outcome::Unknown { reason: FailureReason::Deadline, sent: true });
    let given_up = client.push(NodeId(0), message(b"x"), LONG);
    client.cancel(&given_up);
    assert!(matches!(given_up.wait(), Outcome::Unknown { reason: FailureReason::Cancelled, .. }));
    // To one that is not there.
    let nobody = client.push(NodeId(9), message(b"x"), SHORT);
    assert_eq!(nobody.wait(), Outcome::Unknown { reason: FailureReason::Deadline, sent: false });
}

#[test]
fn who_does_not_come_is_named() {
    let hub = local::Hub::new(&local::Options::default());
    let join = |id| Box::new(hub.join(NodeId(id)).unwrap());
    let mut other = config();
    other.identity.configuration = 2;
    let first = Node::start(join(0), config(), Silent).unwrap();
    let error = first.wait_for(&[NodeId(1)], SHORT).unwrap_err().to_string();
    assert!(error.contains("node 1: it was never heard of"), "{error}");
    let second = Node::start(join(1), other, Silent).unwrap();
    for (node, peer) in [(&first, 1), (&second, 0)] {
        let error = node.wait_for(&[NodeId(peer)], LONG).unwrap_err().to_string();
        assert!(error.contains("fingerprint"), "{error}");
        let refused = node.push(NodeId(peer), message(b"x"), LONG).wait();
        assert_eq!(refused, Outcome::Unknown { reason: FailureReason::Refused, sent: false });
    }
    drop(second);
    while matches!(first.members()[&NodeId(1)], Member::Refused(_)) {
        thread::yield_now();
    }
    let third = Node::start(join(1), config(), Silent).unwrap();
    first.wait_for(&[NodeId(1)], LONG).unwrap();
    let joined = Member::Joined { role: 3, incarnation: 1 };
    assert_eq!(first.members(), [(NodeId(1), joined)].into());
    drop(third);
    while matches!(first.members()[&NodeId(1)], Member::Joined { .. }) {
        thread::yield_now();
    }
    assert_eq!(first.members()[&NodeId(1)].to_string(), "it has closed");
}

#[test]
fn closing_lets_what_is_open_end() {
    let (asks, asked) = mpsc::channel();
    let (server, client) = pair(move |request: Asked| asks.send(request).unwrap());
    let pending = client.push(NodeId(0), message(b"x"), LONG);
    let request = asked.recv().unwrap();
    let client = thread::spawn(move || client.close(LONG));
    let server = thread::spawn(move || server.close(LONG));
    request.reply(message(b"done"));
    assert_eq!(pending.wait(), Outcome::Done(b"done".to_vec().into()));
    client.join().unwrap().unwrap();
    server.join().unwrap().unwrap();
}

#[test]
fn closing_without_patience_ends_what_is_open() {
    let (_server, client) = pair(|asked: Asked| std::mem::forget(asked));
    let open = client.push(NodeId(0), message(b"x"), LONG);
    let group = Group::new(1, vec![NodeId(0), NodeId(1)], NodeId(1)).unwrap();
    let barrier = client.begin(&group, Collective::Barrier, LONG);
    let handle = Handle::clone(&client);
    client.close(Duration::ZERO).unwrap();
    assert!(matches!(open.wait(), Outcome::Unknown { reason: FailureReason::Closed, .. }));
    assert_eq!(barrier.wait(), Err(CollectiveError::Cancelled));
    // Nobody sees to these any more.
    assert_eq!(handle.push(NodeId(0), message(b"x"), LONG).wait(), closed(false));
    assert_eq!(handle.barrier(&group, LONG), Err(CollectiveError::Cancelled));
}

#[test]
fn a_service_that_panics_ends_its_node_and_nothing_waits() {
    let (server, client) = pair(|_: Asked| panic!("on purpose"));
    let stuck = server.push(NodeId(7), message(b"x"), LONG);
    let handle = Handle::clone(&server);
    let pending = client.push(NodeId(0), message(b"x"), Duration::from_millis(500));
    assert!(matches!(stuck.wait(), Outcome::Unknown { reason: FailureReason::Closed, .. }));
    assert_eq!(handle.push(NodeId(1), message(b"x"), LONG).wait(), closed(false));
    assert_eq!(server.close(LONG), Err(Failed::Panicked("on purpose".to_owned())));
    assert_eq!(pending.wait(), Outcome::Unknown { reason: FailureReason::Deadline, sent: true });
    assert!(!matches!(client.members()[&NodeId(0)], Member::Joined { .. }));
}

/// Asks another node before it answers, without waiting on its own thread.
struct Relay(Option<Handle>);

impl Service for Relay {
    fn started(&mut self, node: &Handle) {
        self.0 = Some(node.clone());
    }

    fn asked(&mut self, asked: Asked) {
        let node = self.0.clone().expect("started first");
        let relayed = node.call(NodeId(0), message(asked.body()), LONG);
        thread::spawn(move || match relayed.wait() {
            Outcome::Done(body) => asked.reply(message(&body)),
            other => asked.reject(message(format!("{other:?}").as_bytes())),
        });
    }
}

#[test]
fn a_service_makes_requests_of_its_own() {
    let mut transports = local::mesh(3, &local::Options::default()).into_iter().map(Box::new);
    let mut transport = || transports.next().unwrap();
    let echo = |asked: Asked| {
        let body = message(asked.body());
        asked.reply(body);
    };
    let _last = Node::start(transport(), config(), echo).unwrap();
    let _relay = Node::start(transport(), config(), Relay(None)).unwrap();
    let client = Node::start(transport(), config(), Silent).unwrap();
    let answer = client.call(NodeId(1), message(b"over there"), LONG).wait();
    assert_eq!(answer, Outcome::Done(b"over there".to_vec().into()));
}

#[test]
fn rows_come_by_their_keys() {
    let (_server, client) = pair(|asked: Asked| {
        let mut rows = asked.message();
        match Items::of(asked.body()) {
            Ok(keys) if keys.clone().any(|key| key == b"none") => {
                return asked.reject(message(b"no such row"));
            }
            Ok(keys) => {
                let fewer = keys.clone().any(|key| key == b"fewer");
                keys.skip(usize::from(fewer)).for_each(|key| batch::put(&mut rows, &key.repeat(3)));
            }
            Err(error) => return asked.reject(message(error.to_string().as_bytes())),
        }
        if asked.body().ends_with(b"cut") {
            rows.resize(rows.body().len() - 1, 0);
        }
        asked.reply(rows);
    });
    let pull = |keys: &[&'static [u8]]| client.pull_rows(NodeId(0), keys.iter().copied(), LONG);
    let rows = pull(&[b"ab", b"", b"c"]).unwrap();
    assert_eq!(rows.iter().collect::<Vec<_>>(), [&b"ababab"[..], b"", b"ccc"]);
    assert!(pull(&[]).unwrap().is_empty());
    let error = pull(&[b"none"]).unwrap_err().to_string();
    assert_eq!(error, "node 0 does not give them: no such row");
    assert!(matches!(pull(&[b"a", b"fewer"]), Err(PullError::Number { keys: 2, rows: 1, .. })));
    assert!(matches!(pull(&[b"cut"]), Err(PullError::Malformed { .. })));
    let nobody = client.pull_rows(NodeId(9), [&b"a"[..]], SHORT);
    assert!(matches!(nobody, Err(PullError::Unknown { why: FailureReason::Deadline, .. })));
}

#[test]
fn nodes_do_operations_together() {
    for members in [1, 2, 5] {
        let transports = local::mesh(members, &local::Options::default());
        let ids: Vec<NodeId> = (0..members).map(NodeId).collect();
        thread::scope(|scope| {
            for transport in transports {
                let ids = ids.clone();
                scope.spawn(move || {
                    let node = Node::start(Box::new(transport), config(), Silent).unwrap();
                    let me = node.id();
                    let group = Group::new(1, ids, me).unwrap();
                    node.barrier(&group, LONG).unwrap();
                    let root = NodeId(members - 1);
                    let content = (me == root).then(|| Frame::from(vec![9; 100_000]));
                    let got = node.broadcast(&group, root, content, LONG).unwrap();
                    assert_eq!(&got[..], [9; 100_000]);
                    let long = me.0 as usize * 10_000;
                    let all = node.all_gather(&group, vec![me.0 as u8; long].into(), LONG).unwrap();
                    for (rank, content) in all.iter().enumerate() {
                        assert_eq!(content[..], vec![rank as u8; rank * 10_000]);
                    }
                    let values: Vec<u32> = (0..10_000).map(|at| at * (me.0 + 1)).collect();
                    let times = (1..=members).sum::<u32>();
                    let part = node.reduce_scatter(&group, &values, LONG).unwrap();
                    let mine = me.0 * 10_000 / members..(me.0 + 1) * 10_000 / members;
                    assert!(part.into_iter().eq(mine.map(|at| at * times)));
                    let sums = node.all_reduce(&group, &[0.5f32, -3.0, 1e9], LONG).unwrap();
                    assert_eq!(
                        sums,
                        [0.5 * members as f32, -3.0 * members as f32, 1e9 * members as f32]
                    );
                    let odd = Collective::ReduceScatter {
                        element: Element::F32,
                        values: Frame::from(vec![0; 3]),
                    };
                    let begun = node.begin(&group, odd, LONG).wait();
                    let error = BeginError::Values { bytes: 3, element: 4 };
                    assert_eq!(begun, Err(CollectiveError::Begin(error)));
                    // All stay until all are here.
                    node.barrier(&group, LONG).unwrap();
                    node.close(LONG).unwrap();
                });
            }
        });
    }
}

/// Runs a future on this thread.
fn block_on<T>(future: impl Future<Output = T>) -> T {
    struct Unpark(Thread);
    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let mut future = pin!(future);
    loop {
        if let Poll::Ready(value) = future.as_mut().poll(&mut Context::from_waker(&waker)) {
            return value;
        }
        thread::park();
    }
}

#[test]
fn what_is_pending_is_a_future() {
    let (_server, client) = pair(|asked: Asked| {
        thread::spawn(move || {
            thread::sleep(SHORT);
            asked.reply(MessageBuf::new());
        });
    });
    let both = async {
        let first = client.push(NodeId(0), message(b"x"), LONG);
        let second = client.push(NodeId(0), message(b"y"), LONG);
        (first.await, second.await)
    };
    assert_eq!(block_on(both), (Outcome::Done(Frame::new()), Outcome::Done(Frame::new())));
}
