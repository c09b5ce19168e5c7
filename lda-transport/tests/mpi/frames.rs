//! What ranks do with frames and requests.

use std::env;
use std::time::Duration;

use lda_transport::bootstrap;
use lda_transport::mpi::{self, Mpi, MpiError, MpiOptions};
use lda_transport::node::{Asked, Node, Service};
use lda_transport::rpc::{Config, Identity, MessageBuf, Outcome, RequestKind};
use lda_transport::{Arrival, Frame, NodeId, SendError, Transport, Wait};

/// How often all lengths are sent.
pub const TIMES: &str = "LDA_MPI_TIMES";
pub const PATIENCE: Duration = Duration::from_secs(60);

/// A rank to which all others are up.
fn start() -> Mpi {
    let mut node = mpi::start(&MpiOptions::default()).unwrap();
    for _ in 1..node.all().len() {
        let arrival = node.receive(Wait::For(PATIENCE)).unwrap();
        assert!(matches!(arrival, Some(Arrival::Up { .. })), "{arrival:?}");
    }
    node
}

/// A node of which all others are members.
pub fn node(service: impl Service) -> (Node, Vec<NodeId>) {
    let transport = mpi::start(&MpiOptions::default()).unwrap();
    let all = transport.all();
    let identity = Identity { incarnation: 1, role: 0, run: 1, configuration: 0 };
    let node = Node::start(Box::new(transport), Config::new(identity), service).unwrap();
    let others: Vec<NodeId> = all.iter().copied().filter(|&it| it != node.id()).collect();
    node.wait_for(&others, PATIENCE).unwrap();
    (node, all)
}

/// A frame whose bytes are of its number and place.
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

/// From nothing to 64 MiB, beside each power of two, so at the edges of messages and queues too.
fn all_lengths() -> Vec<usize> {
    let powers = (0..=26).map(|power| 1usize << power);
    let mut lengths: Vec<usize> =
        powers.flat_map(|power| [power - 1, power, power + power / 3]).collect();
    lengths.truncate(lengths.len() - 1);
    lengths.rotate_left(40);
    lengths
}

/// Both send at once, and take what comes when they find no room.
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
        match node.receive(Wait::For(PATIENCE)).unwrap().expect("a frame or room") {
            Arrival::Writable { .. } => waits = false,
            Arrival::Frame { frame: found, .. } => {
                assert!(found == frame(came, lengths[came]), "frame {came}");
                node.release(found);
                came += 1;
            }
            // It has all that was sent, and so it may close first.
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
    // Of Open MPI, or of MPICH.
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

/// The others would wait for ever.
pub fn leaving() {
    let mut node = start();
    if node.id() == NodeId(1) {
        std::process::exit(0);
    }
    loop {
        let arrival = node.receive(Wait::Forever).unwrap();
        assert!(!matches!(arrival, Some(Arrival::Down { .. })), "it left without a word");
    }
}

/// Every rank asks every other, with bodies of several lengths.
pub fn requests() {
    let (node, all) = node(|asked: Asked| {
        let mut answer = asked.message();
        answer.extend_from_slice(&[asked.kind() as u8]);
        answer.extend_from_slice(asked.body());
        asked.reply(answer);
    });
    let mut open = Vec::new();
    for len in [0, 1, 5000, 2_000_000] {
        for kind in [RequestKind::Pull, RequestKind::Push, RequestKind::Call] {
            for &peer in all.iter().filter(|&&peer| peer != node.id()) {
                let body = frame(len, len);
                let pending = node.request(peer, kind, MessageBuf::from(&body[..]), PATIENCE);
                open.push((kind, body, pending));
            }
        }
    }
    for (kind, body, pending) in open {
        let Outcome::Done(answer) = pending.wait() else { panic!("{kind:?}") };
        // What pushes give is an acknowledgement and no answer.
        if kind != RequestKind::Push {
            assert!(answer[0] == kind as u8 && answer[1..] == body[..], "{kind:?}");
        }
    }
    let group = lda_transport::rpc::Group::new(1, all, node.id()).unwrap();
    node.barrier(&group, PATIENCE).unwrap();
    node.close(PATIENCE).unwrap();
}
