//! Code of ranks: frames and requests.

use std::collections::BTreeMap;
use std::env;
use std::time::Duration;

use lda_transport::bootstrap;
use lda_transport::mpi::{self, Mpi, MpiError, MpiOptions};
use lda_transport::rpc::{
    Action, Config, Context, Driver, Identity, MessageBuf, Outcome, Program, RequestId, RequestKind,
};
use lda_transport::{Arrival, Frame, NodeId, SendError, Time, Transport, Wait};

/// Variable with the number of repetitions of all lengths.
pub const TIMES: &str = "LDA_MPI_TIMES";
pub const PATIENCE: Duration = Duration::from_secs(60);

/// Starts a rank and waits until all others are up.
fn start() -> Mpi {
    let mut node = mpi::start(&MpiOptions::default()).unwrap();
    for _ in 1..node.all().len() {
        let arrival = node.receive(Wait::For(PATIENCE)).unwrap();
        assert!(matches!(arrival, Some(Arrival::Up { .. })), "{arrival:?}");
    }
    node
}

/// Returns a frame whose bytes depend on its number.
fn frame(number: usize, len: usize) -> Frame {
    let mut bytes: Vec<u8> = Vec::with_capacity(len + 8);
    let mut word = number as u64;
    while bytes.len() < len {
        word = word.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        bytes.extend_from_slice(&word.to_le_bytes());
    }
    bytes.truncate(len);
    Frame::from(bytes)
}

/// Returns lengths from 0 to 64 MiB around each power of two, so also at the limits of messages and
/// queues.
fn all_lengths() -> Vec<usize> {
    let powers = (0..=26).map(|power| 1usize << power);
    let mut lengths: Vec<usize> =
        powers.flat_map(|power| [power - 1, power, power + power / 3]).collect();
    lengths.truncate(lengths.len() - 1);
    lengths.rotate_left(40);
    lengths
}

/// Both ranks send at once, and receive when there is no space.
pub fn lengths() {
    let mut node = start();
    let peer = NodeId(1 - node.id().0);
    let times = env::var(TIMES).map_or(1, |times| times.parse().unwrap());
    let lengths = all_lengths().repeat(times);
    let (mut sent, mut came) = (0, 0);
    let mut waits = false;
    while sent < lengths.len() || came < lengths.len() {
        if sent < lengths.len() && !waits {
            match node.send(peer, frame(sent, lengths[sent])) {
                Ok(()) => sent += 1,
                Err(unsent) => {
                    assert_eq!(unsent.error, SendError::Full);
                    waits = true;
                }
            }
            continue;
        }
        match node.receive(Wait::For(PATIENCE)).unwrap().expect("a frame or space") {
            Arrival::Writable { .. } => waits = false,
            Arrival::Frame { frame: found, .. } => {
                assert!(found == frame(came, lengths[came]), "frame {came}");
                node.release(found);
                came += 1;
            }
            // The peer has received everything, so it may close first.
            Arrival::Down { .. } => assert_eq!((sent, came), (lengths.len(), lengths.len())),
            other => panic!("{other:?}"),
        }
    }
    node.close(PATIENCE);
}

/// Every rank sends some frames to every other.
pub fn crowd() {
    let mut node = start();
    let (this, all) = (node.id(), node.all());
    let len = |from: NodeId, number: usize| (from.0 as usize * 977 + number * 3511) % 20_000;
    let frames = 10;
    for number in 0..frames {
        for &to in all.iter().filter(|&&to| to != this) {
            node.send(to, frame(number, len(this, number))).unwrap();
        }
    }
    let mut came = vec![0; all.len()];
    while came.iter().sum::<usize>() < frames * (all.len() - 1) {
        match node.receive(Wait::For(PATIENCE)).unwrap().expect("a frame") {
            Arrival::Frame { peer, frame: found } => {
                let number = &mut came[peer.0 as usize];
                assert!(found == frame(*number, len(peer, *number)), "frame {number} of {peer}");
                *number += 1;
            }
            Arrival::Down { peer, .. } => assert_eq!(came[peer.0 as usize], frames, "{peer}"),
            other => panic!("{other:?}"),
        }
    }
    node.close(PATIENCE);
}

pub fn twice() {
    let node = start();
    let error = mpi::start(&MpiOptions::default()).unwrap_err();
    assert!(matches!(error, MpiError::Initialised), "{error}");
    drop(node);
    let error = mpi::start(&MpiOptions::default()).unwrap_err();
    assert!(matches!(error, MpiError::Initialised), "{error}");
}

pub fn differ() {
    // Variables of Open MPI and of MPICH.
    let rank = ["OMPI_COMM_WORLD_RANK", "PMI_RANK"].into_iter().find_map(bootstrap::system);
    let rank: usize = rank.unwrap().parse().unwrap();
    let mut options = MpiOptions::default();
    options.queue_bytes += usize::from(rank == 1);
    let error = mpi::start(&options).unwrap_err();
    assert!(matches!(error, MpiError::Differ { rank: NodeId(1) }), "{error}");
}

/// A job of one.
pub fn alone() {
    let mut options = MpiOptions::default();
    options.alone = true;
    let mut node = mpi::start(&options).unwrap();
    assert_eq!((node.id(), node.all().len()), (NodeId(0), 1));
    assert_eq!(node.receive(Wait::For(Duration::from_millis(10))), Ok(None));
    node.close(PATIENCE);
}

/// One rank exits; the others would wait forever.
pub fn leaving() {
    let mut node = start();
    if node.id() == NodeId(1) {
        std::process::exit(0);
    }
    loop {
        let arrival = node.receive(Wait::Forever).unwrap();
        assert!(
            !matches!(arrival, Some(Arrival::Down { .. })),
            "a rank that exits sends no message"
        );
    }
}

/// Answers each request with its kind and body; records the outcomes of its own requests.
#[derive(Default)]
struct Echo {
    answered: usize,
    outcomes: BTreeMap<RequestId, Outcome>,
}

impl Program for Echo {
    fn act(&mut self, action: Action, cx: &mut Context<'_>) {
        match action {
            Action::Request { reply_to, kind, body } => {
                let mut answer = MessageBuf::from(&[kind as u8][..]);
                answer.extend_from_slice(&body);
                cx.reply(reply_to, answer);
                self.answered += 1;
            }
            Action::Completed { request, outcome } => {
                self.outcomes.insert(request, outcome);
            }
            _ => {}
        }
    }
}

/// Every rank makes requests to every other, with bodies of several lengths.
pub fn requests() {
    let transport = mpi::start(&MpiOptions::default()).unwrap();
    let (this, all) = (transport.id(), transport.all());
    let identity = Identity { incarnation: 1, role: 0, run: 1, configuration: 0 };
    let mut driver = Driver::new(transport, Config::new(identity));
    let mut program = Echo::default();
    let mut open = Vec::new();
    for len in [0, 1, 5000, 2_000_000] {
        for kind in [RequestKind::Pull, RequestKind::Push, RequestKind::Call] {
            for &peer in all.iter().filter(|&&peer| peer != this) {
                let body = frame(len, len);
                let mut cx = driver.context();
                let request = cx.request(peer, kind, body[..].into(), PATIENCE).unwrap();
                open.push((kind, body, request));
            }
        }
    }
    // A rank leaves when its requests and those of the others to it are done.
    while program.outcomes.len() < open.len()
        || program.answered < open.len()
        || !driver.endpoint().is_idle()
    {
        driver.step(&mut program, Time::NEVER).unwrap();
    }
    for (kind, body, request) in open {
        let Outcome::Done(answer) = &program.outcomes[&request] else { panic!("{kind:?}") };
        // The reply to a push is an acknowledgement without a body.
        if kind != RequestKind::Push {
            assert!(answer[0] == kind as u8 && answer[1..] == body[..], "{kind:?}");
        }
    }
    driver.transport().close(PATIENCE);
}
