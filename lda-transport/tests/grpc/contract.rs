//! The contract of a transport, and the behaviour of gRPC nodes at a close and a restart.

use std::thread;
use std::time::{Duration, Instant};

use lda_transport::conformance::{self, Effort, Outcome, Subject};
use lda_transport::grpc::{Grpc, GrpcOptions, Peer};
use lda_transport::{Arrival, DisconnectReason, Frame, NodeId, SendError, Transport};

use crate::certificates::Authority;
use crate::common::*;

/// Nodes in this process, each with a port of its own.
struct Loopback {
    options: GrpcOptions,
    addresses: Vec<String>,
}

impl Loopback {
    fn node(&self, id: u32, listen: &str) -> Grpc {
        let mut options = self.options.clone();
        options.listen = Some(listen.to_owned());
        let peers = self.addresses.iter().take(id as usize).zip(0..);
        options.peers = peers.map(|(at, peer)| (NodeId(peer), Peer::at(at))).collect();
        start(id, options)
    }
}

impl Subject for Loopback {
    fn mesh(&mut self, nodes: u32) -> Vec<Box<dyn Transport>> {
        self.addresses.clear();
        let mut mesh: Vec<Box<dyn Transport>> = Vec::new();
        for id in 0..nodes {
            let node = self.node(id, "127.0.0.1:0");
            self.addresses.push(address(&node).to_string());
            mesh.push(Box::new(node));
        }
        mesh
    }

    fn rejoin(&mut self, id: NodeId) -> Option<Box<dyn Transport>> {
        Some(Box::new(self.node(id.0, &self.addresses[id.0 as usize])))
    }
}

fn check_contract(options: GrpcOptions, bytes: u64) {
    check_contract_with(options, &Effort { bytes, ..Effort::default() });
}

fn check_contract_with(options: GrpcOptions, effort: &Effort) {
    let mut subject = Loopback { options, addresses: Vec::new() };
    let report = conformance::run(&mut subject, effort);
    assert!(report.passed(), "{report}");
    let skipped = |(_, outcome): &(_, Outcome)| matches!(outcome, Outcome::Skipped(_));
    assert!(!report.checks.iter().any(skipped), "{report}");
}

#[test]
fn contract() {
    check_contract(options(), 16 << 20);
}

#[test]
#[ignore = "20 GB: .ci/extended runs it"]
fn contract_with_twenty_gigabytes() {
    let mut options = options();
    options.max_frame_len = 64 << 20;
    let effort = Effort { bytes: 20_000_000_000, max_frame_len: 64 << 20, ..Effort::default() };
    check_contract_with(options, &effort);
}

#[test]
fn contract_with_queues_of_one_frame() {
    let mut options = options();
    options.max_frame_len = 5000;
    options.queue_frames = 1;
    options.queue_bytes = 1;
    options.inbox_bytes = 1;
    options.window = (1 << 16) - 1;
    check_contract(options, 2 << 20);
}

#[test]
fn contract_with_tls_and_two_threads() {
    let authority = Authority::new("contract");
    let mut options = secured(authority.tls("node", &["127.0.0.1"]));
    options.threads = 2;
    check_contract(options, 16 << 20);
}

#[test]
fn either_side_can_restart() {
    let (mut first, mut second) = pair(options(), options());
    let at = address(&first);
    second.close(PATIENCE);
    assert_eq!(expect_down(&mut first, 1), DisconnectReason::Closed);
    let refused = first.send(NodeId(1), Frame::new()).unwrap_err().error;
    assert_eq!(refused, SendError::NotUp);
    let mut second = start(1, with_peer(options(), 0, at));
    expect_up(&mut second, 0);
    expect_up(&mut first, 1);
    check_traffic(&mut first, &mut second);

    drop(first);
    assert_eq!(expect_down(&mut second, 0), DisconnectReason::Closed);
    wait_for("a refused connection", || second.connect_error(NodeId(0)));
    let mut options = options();
    options.listen = Some(at.to_string());
    let mut first = start(0, options);
    expect_up(&mut second, 0);
    expect_up(&mut first, 1);
    check_traffic(&mut first, &mut second);
    assert_eq!(second.connect_error(NodeId(0)), None);
}

/// A node is dropped while its peer takes nothing and the queues are full.
#[test]
fn down_arrives_behind_a_full_queue() {
    for stalled in [0, 1] {
        let (first, second) = pair(options(), options());
        let (mut stalled, mut other) = if stalled == 0 { (first, second) } else { (second, first) };
        let (to, from) = (stalled.id(), other.id().0);
        let frame = Frame::from(vec![7; 1 << 20]);
        let mut sent = 0;
        let start = Instant::now();
        while start.elapsed() < Duration::from_millis(300) {
            match other.send(to, frame.clone()) {
                Ok(()) => sent += 1,
                Err(unsent) => {
                    assert_eq!(unsent.error, SendError::Full);
                    std::thread::sleep(Duration::from_millis(10));
                }
            }
        }
        let most = other.capabilities().queue_bytes + frame.len();
        assert!(sent * frame.len() <= most, "{sent} MiB");
        let start = Instant::now();
        drop(other);
        assert!(start.elapsed() < Duration::from_millis(500), "{:?}", start.elapsed());
        let mut taken = 0;
        let reason = loop {
            match next_arrival(&mut stalled) {
                Arrival::Frame { frame: found, .. } => {
                    assert_eq!(found, frame);
                    taken += 1;
                }
                Arrival::Down { peer, reason } if peer.0 == from => break reason,
                other => panic!("{other:?}"),
            }
        };
        assert!(taken < sent, "a drop loses queued frames and duplicates none");
        assert_eq!(reason, DisconnectReason::Closed);
    }
}

/// Either side closes while its peer is slow.
#[test]
fn close_sends_queued_frames() {
    for closing in [0, 1] {
        let (first, second) = pair(options(), options());
        let (mut closing, mut other) = if closing == 0 { (first, second) } else { (second, first) };
        let (from, to) = (closing.id(), other.id());
        let frame = |number: u8| Frame::from(vec![number; 1 << 18]);
        // More than the windows and inboxes hold.
        let frames = 200;
        let sent = thread::spawn(move || {
            for number in 0..frames {
                while let Err(unsent) = closing.send(to, frame(number)) {
                    assert_eq!(unsent.error, SendError::Full);
                    closing.receive(lda_transport::Wait::For(PATIENCE)).unwrap();
                }
            }
            closing.close(PATIENCE);
        });
        thread::sleep(Duration::from_millis(100));
        // The closed node drops this frame, which must not delay the others.
        other.send(from, frame(0)).unwrap();
        for number in 0..frames {
            let expected = Arrival::Frame { peer: from, frame: frame(number) };
            let found = next_arrival(&mut other);
            assert!(found == expected, "{found:?} for frame {number}");
        }
        assert_eq!(expect_down(&mut other, from.0), DisconnectReason::Closed);
        sent.join().unwrap();
    }
}

#[test]
fn buffers_of_sent_frames_are_reused() {
    let (mut first, mut second) = pair(options(), options());
    let bytes = vec![7; 100_000];
    let place = bytes.as_ptr();
    let kept = Frame::from(vec![8; 1000]);
    first.send(NodeId(1), kept.clone()).unwrap();
    first.send(NodeId(1), bytes.into()).unwrap();
    expect_frame(&mut second, 0, &[8; 1000]);
    expect_frame(&mut second, 0, &[7; 100_000]);
    let spare = first.take_buffer();
    assert_eq!((spare.as_ptr(), spare.len()), (place, 0));
    assert_eq!(kept[..], [8; 1000], "the buffer of a shared frame is not reused");
}

#[test]
fn nodes_work_inside_another_runtime() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let (mut first, mut second) = pair(options(), options());
        check_traffic(&mut first, &mut second);
        first.close(PATIENCE);
        assert_eq!(expect_down(&mut second, 0), DisconnectReason::Closed);
    });
}

#[test]
fn a_node_may_only_connect() {
    let mut first = start(0, options());
    let mut options = with_peer(options(), 0, address(&first));
    options.listen = None;
    let mut second = start(1, options);
    assert_eq!(second.address(), None);
    expect_up(&mut first, 1);
    expect_up(&mut second, 0);
    check_traffic(&mut first, &mut second);
}
