//! Nodes on the loopback, and what they hear.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use lda_transport::grpc::{Grpc, Options, Peer, Tls};
use lda_transport::{Arrival, Frame, Loss, NodeId, Transport, Wait};

/// How long anything may take.
pub const PATIENCE: Duration = Duration::from_secs(20);

/// What tests want of every node: no long waits.
pub fn options() -> Options {
    let mut options = Options::default();
    options.backoff = Duration::from_millis(10);
    options.longest_backoff = Duration::from_millis(100);
    options
}

pub fn secured(tls: Tls) -> Options {
    let mut options = options();
    options.tls = Some(tls);
    options
}

/// The same, with a peer at an address.
pub fn with_peer(mut options: Options, peer: u32, at: SocketAddr) -> Options {
    options.peers.insert(NodeId(peer), Peer::at(at.to_string()));
    options
}

pub fn start(id: u32, options: Options) -> Grpc {
    Grpc::start(NodeId(id), options).unwrap()
}

pub fn address(node: &Grpc) -> SocketAddr {
    node.address().unwrap()
}

/// What comes next.
pub fn heard(node: &mut Grpc) -> Arrival {
    let id = node.id();
    node.receive(Wait::For(PATIENCE)).unwrap().unwrap_or_else(|| panic!("{id} heard nothing"))
}

pub fn hears_up(node: &mut Grpc, peer: u32) {
    assert_eq!(heard(node), Arrival::Up { peer: NodeId(peer) });
}

pub fn hears_frame(node: &mut Grpc, peer: u32, bytes: &[u8]) {
    let expected = Arrival::Frame { peer: NodeId(peer), frame: Frame::from(bytes.to_vec()) };
    assert_eq!(heard(node), expected);
}

/// The end of a peer, and why.
pub fn hears_down(node: &mut Grpc, peer: u32) -> Loss {
    match heard(node) {
        Arrival::Down { peer: lost, loss } if lost == NodeId(peer) => loss,
        other => panic!("{other:?} came for the end of node {peer}"),
    }
}

/// Why a connection broke.
pub fn hears_broken(node: &mut Grpc, peer: u32) -> String {
    match hears_down(node, peer) {
        Loss::Broken(why) => why,
        loss => panic!("{loss:?}"),
    }
}

pub fn send(node: &mut Grpc, to: u32, bytes: &[u8]) {
    node.send(NodeId(to), bytes.to_vec().into()).unwrap();
}

/// Asks until there is an answer.
pub fn until<T>(what: &str, mut ask: impl FnMut() -> Option<T>) -> T {
    let start = Instant::now();
    loop {
        if let Some(answer) = ask() {
            return answer;
        }
        assert!(start.elapsed() < PATIENCE, "waited in vain for {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Two nodes that are up to each other, 0 and 1, of which the second has connected.
pub fn pair(first: Options, second: Options) -> (Grpc, Grpc) {
    let mut first = start(0, first);
    let mut second = start(1, with_peer(second, 0, address(&first)));
    hears_up(&mut first, 1);
    hears_up(&mut second, 0);
    (first, second)
}

/// That two nodes still talk.
pub fn talk(first: &mut Grpc, second: &mut Grpc) {
    let (a, b) = (first.id().0, second.id().0);
    send(first, b, b"there");
    hears_frame(second, a, b"there");
    send(second, a, b"and back");
    hears_frame(first, b, b"and back");
}
