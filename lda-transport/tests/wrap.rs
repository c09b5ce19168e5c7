//! Wrappers around transports.

use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use lda_transport::conformance::{self, Effort, Subject};
use lda_transport::rpc::{
    Action, Config, Context, Driver, Identity, MessageBuf, Outcome, Program, RequestKind,
};
use lda_transport::wrap::{
    Count, Counting, Delaying, Entry, Failing, Faults, Happened, Log, LogError, Recording,
    Replaying, Spinning,
};
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
    conforms(|inner| Box::new(Recording::new(inner, io::sink()).unwrap()));
    #[cfg(feature = "tracing")]
    conforms(|inner| Box::new(lda_transport::wrap::Logging::new(inner)));
}

#[test]
fn delaying_keeps_the_contract() {
    conforms(|inner| Box::new(Delaying::new(inner, Duration::from_micros(200))));
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

#[test]
fn delayed_arrivals_keep_their_order() {
    let (mut a, b) = pair();
    let delay = Duration::from_millis(30);
    let mut b = Delaying::new(b, delay);
    a.receive(Wait::Forever).unwrap();
    let began = Instant::now();
    for number in 0..10u8 {
        a.send(NodeId(1), vec![number].into()).unwrap();
    }
    a.close(SECOND);
    assert_eq!(b.receive(Wait::No), Ok(None));
    assert_eq!(b.receive(Wait::For(Duration::from_millis(1))), Ok(None));
    b.waker().wake();
    assert_eq!(b.receive(Wait::Forever), Ok(Some(Arrival::Woken)));
    let peer = NodeId(0);
    assert_eq!(b.receive(Wait::Forever), Ok(Some(Arrival::Up { peer })));
    assert!(began.elapsed() >= delay);
    for number in 0..10 {
        let frame = vec![number].into();
        assert_eq!(b.receive(Wait::Forever), Ok(Some(Arrival::Frame { peer, frame })));
    }
    assert_eq!(
        b.receive(Wait::Forever),
        Ok(Some(Arrival::Down { peer, reason: DisconnectReason::Closed }))
    );
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

/// A writer whose bytes can be read meanwhile.
#[derive(Clone, Default)]
struct Shared(Arc<Mutex<Vec<u8>>>);

impl Write for Shared {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A program: it answers each frame with the sum of its bytes, and notifies node 2.
fn answer(transport: &mut dyn Transport, plus: u8) -> Result<(), ReceiveError> {
    let long = 60 * SECOND;
    while let Some(arrival) = transport.receive(Wait::For(long))? {
        if let Arrival::Frame { peer, frame } = arrival {
            let sum = frame.iter().fold(plus, |sum, byte| sum.wrapping_add(*byte));
            let _ = transport.send(peer, vec![sum].into());
            let _ = transport.send(NodeId(2), vec![0; frame.len()].into());
        }
    }
    Ok(())
}

/// Returns the recording of a node with that program.
fn recorded() -> Vec<u8> {
    let log = Shared::default();
    let mut nodes = local::mesh(2, &local::Options::default()).into_iter();
    let mut recording = Recording::new(nodes.next().unwrap(), log.clone()).unwrap();
    let mut other = nodes.next().unwrap();
    let peer = NodeId(0);
    assert_eq!(other.receive(Wait::Forever), Ok(Some(Arrival::Up { peer })));
    for len in [0, 1, 5, 1000] {
        other.send(peer, vec![len as u8; len].into()).unwrap();
    }
    other.close(SECOND);
    recording.waker().wake();
    for _ in 0..8 {
        // It answers what it receives; nothing arrives at the end.
        let mut once = Once(&mut recording, false);
        let _ = answer(&mut once, 0);
    }
    recording.close(SECOND);
    assert!(answer(&mut recording, 0).is_err());
    assert!(recording.status().take().is_none());
    let bytes = log.0.lock().unwrap();
    bytes.clone()
}

/// Returns one arrival, without waiting.
#[derive(Debug)]
struct Once<'a>(&'a mut dyn Transport, bool);

impl Transport for Once<'_> {
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

    fn receive(&mut self, _wait: Wait) -> Result<Option<Arrival>, ReceiveError> {
        if std::mem::replace(&mut self.1, true) { Ok(None) } else { self.0.receive(Wait::No) }
    }

    fn waker(&self) -> std::task::Waker {
        self.0.waker()
    }

    fn close(&mut self, patience: Duration) {
        self.0.close(patience);
    }
}

#[test]
fn a_log_contains_all_events() {
    let bytes = recorded();
    let log = Log::read(&bytes[..]).unwrap();
    assert_eq!((log.node(), log.capabilities().reconnects), (NodeId(0), true));
    let entries: Vec<Entry> = log.map(Result::unwrap).collect();
    let times: Vec<Time> = entries.iter().map(|entry| entry.time).collect();
    assert!(times.is_sorted());
    let kinds: Vec<&str> = entries
        .iter()
        .map(|entry| match &entry.happened {
            Happened::Sent { .. } => "sent",
            Happened::NotSent { error: SendError::NotUp, .. } => "not up",
            Happened::Arrived(Arrival::Up { .. }) => "up",
            Happened::Arrived(Arrival::Frame { .. }) => "frame",
            Happened::Arrived(Arrival::Down { reason: DisconnectReason::Closed, .. }) => "closed",
            Happened::Arrived(Arrival::Woken) => "woken",
            Happened::Nothing => "nothing",
            Happened::Ended(ReceiveError::Closed) => "ended",
            other => panic!("{other:?}"),
        })
        .collect();
    // The other node has closed before the first answer, which the transport does not know yet.
    let frames = ["frame", "not up", "not up"].repeat(4);
    let expected = [&["up"][..], &frames, &["closed", "woken", "nothing", "ended"]].concat();
    assert_eq!(kinds, expected);
}

#[test]
fn a_program_is_replayed() {
    let bytes = recorded();
    let replay = |plus| {
        let mut replaying = Replaying::new(&bytes[..]).unwrap();
        while answer(&mut replaying, plus).is_ok() {}
        replaying.differences().list()
    };
    assert_eq!(replay(0), Vec::<String>::new());
    // Only the length of a frame that was not taken is recorded.
    let mut other = Replaying::new(&bytes[..]).unwrap();
    let _ = other.send(NodeId(1), vec![1, 2].into());
    let words = other.differences().list();
    assert!(words.len() == 1 && words[0].contains("1 bytes were sent to node 1"), "{words:?}");
    // More frames than in the recording.
    for _ in 0..8 {
        let _ = other.send(NodeId(1), vec![1].into());
    }
    assert!(other.differences().list().last().unwrap().contains("nothing was sent any more"));
}

#[test]
fn invalid_logs_are_rejected() {
    let bytes = recorded();
    for len in 0..29 {
        assert!(matches!(Log::read(&bytes[..len]), Err(LogError::Foreign)), "{len}");
    }
    let whole = Log::read(&bytes[..]).unwrap().count();
    let mut ends = 0;
    for len in 29..bytes.len() {
        match Log::read(&bytes[..len]).unwrap().last() {
            None | Some(Ok(_)) => ends += 1,
            Some(Err(LogError::CutOff { entries })) => assert!((entries as usize) < whole),
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(ends, whole, "only at the end of an entry");
    let mut wrong = bytes.clone();
    wrong[29] = 77;
    let error = Log::read(&wrong[..]).unwrap().next().unwrap().unwrap_err();
    assert_eq!(error.to_string(), "entry 0 is invalid: there is no kind 77");
    // A false length takes no more memory than the bytes that are there.
    let mut lie = bytes[..29].to_vec();
    lie.extend([4].into_iter().chain([0; 12]).chain([255; 8]));
    assert!(matches!(
        Log::read(&lie[..]).unwrap().next(),
        Some(Err(LogError::CutOff { entries: 0 }))
    ));
}

#[test]
fn a_full_disk_stops_only_the_recording() {
    struct Full(usize);
    impl Write for Full {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0 = self.0.checked_sub(bytes.len()).ok_or(io::ErrorKind::StorageFull)?;
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let (a, _b) = pair();
    let mut a = Recording::new(a, Full(60)).unwrap();
    let status = a.status();
    a.receive(Wait::Forever).unwrap();
    assert!(status.take().is_none());
    a.send(NodeId(1), vec![0; 100].into()).unwrap();
    a.send(NodeId(1), vec![0; 100].into()).unwrap();
    assert_eq!(status.take().unwrap().kind(), io::ErrorKind::StorageFull);
}
