//! Helpers: nodes on the loopback, and assertions on their arrivals.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use lda_transport::grpc::{Grpc, GrpcOptions, Peer, Tls};
use lda_transport::{Arrival, DisconnectReason, Frame, NodeId, Transport, Wait};

/// Time limit of every wait.
pub const PATIENCE: Duration = Duration::from_secs(20);

/// Options of the tests: short waits between attempts to connect.
pub fn options() -> GrpcOptions {
    let mut options = GrpcOptions::default();
    options.initial_backoff = Duration::from_millis(10);
    options.max_backoff = Duration::from_millis(100);
    options
}

pub fn secured(tls: Tls) -> GrpcOptions {
    let mut options = options();
    options.tls = Some(tls);
    options
}

/// Adds a peer at an address.
pub fn with_peer(mut options: GrpcOptions, peer: u32, at: SocketAddr) -> GrpcOptions {
    options.peers.insert(NodeId(peer), Peer::at(at.to_string()));
    options
}

pub fn start(id: u32, options: GrpcOptions) -> Grpc {
    Grpc::start(NodeId(id), options).unwrap()
}

pub fn address(node: &Grpc) -> SocketAddr {
    node.address().unwrap()
}

/// Returns the next arrival.
pub fn next_arrival(node: &mut Grpc) -> Arrival {
    let id = node.id();
    node.receive(Wait::For(PATIENCE)).unwrap().unwrap_or_else(|| panic!("{id} received nothing"))
}

pub fn expect_up(node: &mut Grpc, peer: u32) {
    assert_eq!(next_arrival(node), Arrival::Up { peer: NodeId(peer) });
}

pub fn expect_frame(node: &mut Grpc, peer: u32, bytes: &[u8]) {
    let expected = Arrival::Frame { peer: NodeId(peer), frame: Frame::from(bytes.to_vec()) };
    assert_eq!(next_arrival(node), expected);
}

/// Expects the end of a peer and returns its reason.
pub fn expect_down(node: &mut Grpc, peer: u32) -> DisconnectReason {
    match next_arrival(node) {
        Arrival::Down { peer: lost, reason } if lost == NodeId(peer) => reason,
        other => panic!("expected the end of node {peer}, received {other:?}"),
    }
}

/// Expects a broken connection and returns its description.
pub fn expect_broken(node: &mut Grpc, peer: u32) -> String {
    match expect_down(node, peer) {
        DisconnectReason::Broken(reason) => reason,
        reason => panic!("{reason:?}"),
    }
}

pub fn send(node: &mut Grpc, to: u32, bytes: &[u8]) {
    node.send(NodeId(to), bytes.to_vec().into()).unwrap();
}

/// Polls until `ask` returns a value.
pub fn wait_for<T>(what: &str, mut ask: impl FnMut() -> Option<T>) -> T {
    let start = Instant::now();
    loop {
        if let Some(answer) = ask() {
            return answer;
        }
        assert!(start.elapsed() < PATIENCE, "timed out waiting for {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Starts nodes 0 and 1; the second connects to the first. Both are up.
pub fn pair(first: GrpcOptions, second: GrpcOptions) -> (Grpc, Grpc) {
    let mut first = start(0, first);
    let mut second = start(1, with_peer(second, 0, address(&first)));
    expect_up(&mut first, 1);
    expect_up(&mut second, 0);
    (first, second)
}

/// Checks that frames arrive in both directions.
pub fn check_traffic(first: &mut Grpc, second: &mut Grpc) {
    let (a, b) = (first.id().0, second.id().0);
    send(first, b, b"there");
    expect_frame(second, a, b"there");
    send(second, a, b"and back");
    expect_frame(first, b, b"and back");
}
