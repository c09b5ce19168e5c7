//! The contract, and what a program sees of it here.

use std::thread;
use std::time::{Duration, Instant};

use lda_transport::conformance::{self, Effort, Outcome, Subject};
use lda_transport::grpc::{Grpc, Options, Peer};
use lda_transport::{Arrival, Frame, Loss, NodeId, SendError, Transport};

use crate::certificates::Authority;
use crate::common::*;

/// Nodes of this process, each with an address of its own.
struct Loopback {
    options: Options,
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

fn holds(options: Options, bytes: u64) {
    holds_by(options, &Effort { bytes, ..Effort::default() });
}

fn holds_by(options: Options, effort: &Effort) {
    let mut subject = Loopback { options, addresses: Vec::new() };
    let report = conformance::run(&mut subject, effort);
    assert!(report.passed(), "{report}");
    let skipped = |(_, outcome): &(_, Outcome)| matches!(outcome, Outcome::Skipped(_));
    assert!(!report.checks.iter().any(skipped), "{report}");
}

#[test]
fn the_contract_holds() {
    holds(options(), 16 << 20);
}

#[test]
#[ignore = "20 GB: .ci/extended runs it"]
fn the_contract_holds_for_twenty_gigabytes() {
    let mut options = options();
    options.longest_frame = 64 << 20;
    let effort = Effort { bytes: 20_000_000_000, longest_frame: 64 << 20, ..Effort::default() };
    holds_by(options, &effort);
}

#[test]
fn the_contract_holds_where_nearly_every_frame_waits_for_room() {
    let mut options = options();
    options.longest_frame = 5000;
    options.queue_frames = 1;
    options.queue_bytes = 1;
    options.inbox_bytes = 1;
    options.window = (1 << 16) - 1;
    holds(options, 2 << 20);
}

#[test]
fn the_contract_holds_with_certificates_and_more_threads() {
    let authority = Authority::new("contract");
    let mut options = secured(authority.tls("node", &["127.0.0.1"]));
    options.threads = 2;
    holds(options, 16 << 20);
}

#[test]
fn a_peer_comes_again_on_either_side() {
    let (mut first, mut second) = pair(options(), options());
    let at = address(&first);
    second.close(PATIENCE);
    assert_eq!(hears_down(&mut first, 1), Loss::Closed);
    let refused = first.send(NodeId(1), Frame::new()).unwrap_err().error;
    assert_eq!(refused, SendError::NotUp);
    let mut second = start(1, with_peer(options(), 0, at));
    hears_up(&mut second, 0);
    hears_up(&mut first, 1);
    talk(&mut first, &mut second);

    drop(first);
    assert_eq!(hears_down(&mut second, 0), Loss::Closed);
    until("a refused connection", || second.trouble(NodeId(0)));
    let mut options = options();
    options.listen = Some(at.to_string());
    let mut first = start(0, options);
    hears_up(&mut second, 0);
    hears_up(&mut first, 1);
    talk(&mut first, &mut second);
    assert_eq!(second.trouble(NodeId(0)), None);
}

/// A node that is dropped with a receiver that takes nothing, as much as there is underway.
#[test]
fn an_end_is_heard_behind_a_full_queue() {
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
        let loss = loop {
            match heard(&mut stalled) {
                Arrival::Frame { frame: found, .. } => {
                    assert_eq!(found, frame);
                    taken += 1;
                }
                Arrival::Down { peer, loss } if peer.0 == from => break loss,
                other => panic!("{other:?}"),
            }
        };
        assert!(taken < sent, "what was not handed on was lost, and not more came than was sent");
        assert_eq!(loss, Loss::Closed);
    }
}

/// Whichever side closes, to a peer that takes its time.
#[test]
fn what_was_taken_is_handed_on_by_either_side() {
    for closing in [0, 1] {
        let (first, second) = pair(options(), options());
        let (mut closing, mut other) = if closing == 0 { (first, second) } else { (second, first) };
        let (from, to) = (closing.id(), other.id());
        let frame = |number: u8| Frame::from(vec![number; 1 << 18]);
        // More than windows and inboxes have.
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
        // What it has said nobody hears, and that holds nothing up.
        other.send(from, frame(0)).unwrap();
        for number in 0..frames {
            let expected = Arrival::Frame { peer: from, frame: frame(number) };
            let found = heard(&mut other);
            assert!(found == expected, "{found:?} for frame {number}");
        }
        assert_eq!(hears_down(&mut other, from.0), Loss::Closed);
        sent.join().unwrap();
    }
}

#[test]
fn the_room_of_a_sent_frame_comes_back() {
    let (mut first, mut second) = pair(options(), options());
    let bytes = vec![7; 100_000];
    let place = bytes.as_ptr();
    let kept = Frame::from(vec![8; 1000]);
    first.send(NodeId(1), kept.clone()).unwrap();
    first.send(NodeId(1), bytes.into()).unwrap();
    hears_frame(&mut second, 0, &[8; 1000]);
    hears_frame(&mut second, 0, &[7; 100_000]);
    let spare = first.spare();
    assert_eq!((spare.as_ptr(), spare.len()), (place, 0));
    assert_eq!(kept[..], [8; 1000], "and not that of a frame which somebody has");
}

#[test]
fn a_program_may_have_a_runtime_of_its_own() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let (mut first, mut second) = pair(options(), options());
        talk(&mut first, &mut second);
        first.close(PATIENCE);
        assert_eq!(hears_down(&mut second, 0), Loss::Closed);
    });
}

#[test]
fn a_node_may_connect_and_not_listen() {
    let mut first = start(0, options());
    let mut options = with_peer(options(), 0, address(&first));
    options.listen = None;
    let mut second = start(1, options);
    assert_eq!(second.address(), None);
    hears_up(&mut first, 1);
    hears_up(&mut second, 0);
    talk(&mut first, &mut second);
}
