//! Wrappers around transports.

use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use lda_transport::conformance::{self, Effort, Subject};
use lda_transport::rpc::{
    Action, Config, Context, Driver, Identity, MessageBuf, Outcome, Program, RequestKind,
};
use lda_transport::wrap::{Count, Counting, Failing, Faults, Spinning};
use lda_transport::{
    Arrival, DisconnectReason, NodeId, ReceiveError, SendError, Time, Transport, Wait, local,
};

const SECOND: Duration = Duration::from_secs(1);

/// Nodes of `local`, each in a wrapper.
struct Wrapped<F> {
    hub: local::Hub,
    wrap: F,
}

impl<F> Wrapped<F> {
    fn new(wrap: F) -> Self {
        Self { hub: local::Hub::new(&local::Options::default()), wrap }
    }
}

impl<F: Fn(local::Local) -> Box<dyn Transport>> Subject for Wrapped<F> {
    fn mesh(&mut self, nodes: u32) -> Vec<Box<dyn Transport>> {
        self.hub = local::Hub::new(&local::Options::default());
        (0..nodes).map(|id| (self.wrap)(self.hub.join(NodeId(id)).unwrap())).collect()
    }

    fn rejoin(&mut self, id: NodeId) -> Option<Box<dyn Transport>> {
        Some((self.wrap)(self.hub.join(id).unwrap()))
    }
}

fn conforms(wrap: impl Fn(local::Local) -> Box<dyn Transport>) {
    let effort = Effort { bytes: 4 << 20, ..Effort::default() };
    let report = conformance::run(&mut Wrapped::new(wrap), &effort);
    assert!(report.passed(), "{report}");
}

#[test]
fn observing_wrappers_keep_the_contract() {
    conforms(|inner| Box::new(Counting::new(inner)));
    #[cfg(feature = "tracing")]
    conforms(|inner| Box::new(lda_transport::wrap::Logging::new(inner)));
}

#[test]
fn spinning_keeps_the_contract() {
    conforms(|inner| Box::new(Spinning::new(inner, Duration::from_micros(200))));
}

#[test]
fn spinning_polls_before_it_sleeps() {
    /// Returns arrivals at every third call, and records the waits.
    #[derive(Debug)]
    struct Third(local::Local, Arc<Mutex<Vec<Wait>>>);
    impl Transport for Third {
        fn id(&self) -> NodeId {
            self.0.id()
        }
        fn capabilities(&self) -> lda_transport::Capabilities {
            self.0.capabilities()
        }
        fn send(
            &mut self,
            to: NodeId,
            frame: lda_transport::Frame,
        ) -> Result<(), lda_transport::Unsent> {
            self.0.send(to, frame)
        }
        fn receive(&mut self, wait: Wait) -> Result<Option<Arrival>, ReceiveError> {
            let mut looks = self.1.lock().unwrap();
            looks.push(wait);
            if looks.len() == 3 { self.0.receive(wait) } else { Ok(None) }
        }
        fn waker(&self) -> std::task::Waker {
            self.0.waker()
        }
        fn close(&mut self, patience: Duration) {
            self.0.close(patience);
        }
    }
    let (a, b) = pair();
    let looks = Arc::new(Mutex::new(Vec::new()));
    let looked = || looks.lock().unwrap().clone();
    let mut spinning = Spinning::new(Third(b, Arc::clone(&looks)), Duration::MAX);
    assert_eq!(spinning.receive(Wait::Forever), Ok(Some(Arrival::Up { peer: NodeId(0) })));
    assert_eq!(looked(), [Wait::No; 3], "polls until something arrives");
    // Nothing arrives: it sleeps for the rest of the wait.
    let (_c, d) = pair();
    looks.lock().unwrap().extend([Wait::No; 3]);
    let mut spinning = Spinning::new(Third(d, Arc::clone(&looks)), Duration::from_millis(1));
    assert_eq!(spinning.receive(Wait::For(SECOND)), Ok(None));
    assert!(matches!(looked().last(), Some(Wait::For(left)) if *left < SECOND), "{:?}", looked());
    assert_eq!(spinning.receive(Wait::For(Duration::ZERO)), Ok(None));
    assert_eq!(looked().last(), Some(&Wait::For(Duration::ZERO)), "not longer than the wait");
    drop(a);
}

fn pair() -> (local::Local, local::Local) {
    let mut nodes = local::mesh(2, &local::Options::default()).into_iter();
    let mut next = || nodes.next().unwrap();
    (next(), next())
}

#[test]
fn frames_are_counted() {
    let mut options = local::Options::default();
    options.queue_frames = 2;
    let mut nodes = local::mesh(2, &options).into_iter().map(Counting::new);
    let (mut a, mut b) = (nodes.next().unwrap(), nodes.next().unwrap());
    let (sent, received) = (a.counts(), b.counts());
    a.receive(Wait::No).unwrap();
    for _ in 0..3 {
        let _ = a.send(NodeId(1), vec![0; 10].into());
    }
    while b.receive(Wait::No).unwrap().is_some() {}
    a.close(SECOND);
    while b.receive(Wait::No).unwrap().is_some() {}
    let two = Count { frames: 2, bytes: 20 };
    let of = sent.of(NodeId(1));
    assert_eq!((of.sent, of.received, of.full, of.ups, of.downs), (two, Count::default(), 1, 1, 0));
    let of = received.all()[&NodeId(0)];
    assert_eq!((of.sent, of.received, of.full, of.ups, of.downs), (Count::default(), two, 0, 1, 1));
}

/// Returns the arrivals of a thousand frames under faults.
fn arrivals(faults: Faults, seed: u64) -> (Vec<String>, Faults) {
    let (mut a, b) = pair();
    let mut b = Failing::new(b, faults, seed);
    a.receive(Wait::No).unwrap();
    let mut come = Vec::new();
    for number in 0..1000u32 {
        a.send(NodeId(1), number.to_le_bytes().to_vec().into()).unwrap();
        while let Some(arrival) = b.receive(Wait::No).unwrap() {
            come.push(format!("{arrival:?}"));
        }
    }
    (come, b.done())
}

#[test]
fn a_seed_determines_the_faults() {
    let faults = Faults { lost: 50, doubled: 60, changed: 70, cut: 0, away: Duration::ZERO };
    let (come, done) = arrivals(faults, 7);
    assert_eq!(arrivals(faults, 7).0, come);
    assert_ne!(arrivals(faults, 8).0, come);
    let near = |done: u32, rate: u32| done.abs_diff(rate) < 40;
    assert!(near(done.lost, 50) && near(done.doubled, 60) && near(done.changed, 70), "{done:?}");
    assert_eq!(come.len(), (1001 - done.lost + done.doubled) as usize);
    assert_eq!(arrivals(Faults::default(), 7).0.len(), 1001);
}

#[test]
fn a_disconnected_peer_reconnects() {
    let (mut a, b) = pair();
    let away = Duration::from_millis(20);
    let mut b = Failing::new(b, Faults { cut: 1000, away, ..Faults::default() }, 1);
    let peer = NodeId(0);
    assert_eq!(b.receive(Wait::Forever), Ok(Some(Arrival::Up { peer })));
    a.receive(Wait::Forever).unwrap();
    a.send(NodeId(1), vec![1].into()).unwrap();
    let down = b.receive(Wait::Forever).unwrap().unwrap();
    assert!(matches!(down, Arrival::Down { reason: DisconnectReason::Broken(_), .. }), "{down:?}");
    let unsent = b.send(peer, vec![2].into()).unwrap_err();
    assert_eq!(unsent.error, SendError::NotUp);
    a.send(NodeId(1), vec![3].into()).unwrap();
    assert_eq!(
        b.receive(Wait::Forever),
        Ok(Some(Arrival::Up { peer })),
        "frames that arrived meanwhile are lost"
    );
    b.send(peer, vec![4].into()).unwrap();
}

/// Acknowledges pushes and keeps their bodies; records the outcomes of its own requests.
#[derive(Default)]
struct Pushes {
    bodies: Vec<Vec<u8>>,
    outcomes: Vec<Outcome>,
}

impl Program for Pushes {
    fn act(&mut self, action: Action, cx: &mut Context<'_>) {
        match action {
            Action::Request { reply_to, body, .. } => {
                self.bodies.push(body.to_vec());
                cx.reply(reply_to, MessageBuf::new());
            }
            Action::Completed { outcome, .. } => self.outcomes.push(outcome),
            _ => {}
        }
    }
}

#[test]
fn each_push_is_executed_once_under_faults() {
    const PUSHES: u32 = 300;
    let faults =
        Faults { lost: 100, doubled: 100, changed: 0, cut: 5, away: Duration::from_millis(5) };
    let mut config = Config::new(Identity { incarnation: 1, role: 0, run: 1, configuration: 1 });
    config.retry = Some(Duration::from_millis(20));
    config.queue = PUSHES as usize;
    let (a, b) = pair();
    let mut server = Driver::new(Failing::new(a, faults, 1), config.clone());
    let mut client = Driver::new(Failing::new(b, faults, 2), config);
    let finished = AtomicBool::new(false);
    let (served, pushed) = thread::scope(|scope| {
        let serving = scope.spawn(|| {
            let mut program = Pushes::default();
            while !finished.load(SeqCst) {
                let until = server.now() + Duration::from_millis(5);
                server.step(&mut program, until).unwrap();
            }
            program.bodies
        });
        let mut program = Pushes::default();
        for number in 0..PUSHES {
            let message = MessageBuf::from(&number.to_le_bytes()[..]);
            let mut cx = client.context();
            cx.request(NodeId(0), RequestKind::Push, message, 60 * SECOND).unwrap();
        }
        while program.outcomes.len() < PUSHES as usize {
            client.step(&mut program, Time::NEVER).unwrap();
        }
        finished.store(true, SeqCst);
        (serving.join().unwrap(), program.outcomes)
    });
    assert!(pushed.iter().all(|outcome| matches!(outcome, Outcome::Done(_))), "{pushed:?}");
    let mut served: Vec<u32> =
        served.iter().map(|body| u32::from_le_bytes(body[..].try_into().unwrap())).collect();
    served.sort_unstable();
    assert!(served.into_iter().eq(0..PUSHES));
}
