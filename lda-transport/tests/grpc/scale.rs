//! A node with a thousand peers: its memory per peer, and that no frame is lost.

use std::env;
use std::fs;
use std::process::{Command, Stdio};
use std::time::Duration;

use lda_transport::grpc::{Grpc, GrpcOptions, Peer};
use lda_transport::{Arrival, DisconnectReason, Frame, NodeId, Transport, Wait};

use crate::common::*;

const PEERS: u32 = 1000;
const FRAMES: u8 = 100;
const LEN: usize = 1000;
/// Variable that contains the address of the node, for the process of the peers.
const AT: &str = "LDA_GRPC_AT";
/// Time limit with a thousand threads on few cores.
const LONG_WAIT: Duration = Duration::from_secs(60);

/// Resident memory of this process, in KiB.
fn memory() -> u32 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

/// Options with long limits: with a thousand nodes on few cores pings and hellos are late.
fn patient() -> GrpcOptions {
    let mut options = options();
    options.keepalive_timeout = LONG_WAIT;
    options.handshake_timeout = LONG_WAIT;
    options
}

fn next(node: &mut Grpc) -> Arrival {
    node.receive(Wait::For(LONG_WAIT)).unwrap().expect("an arrival in time")
}

#[test]
#[ignore = "a thousand nodes in a process of their own: .ci/extended runs it"]
#[expect(clippy::print_stdout, reason = "it prints the memory per peer")]
fn a_thousand_peers() {
    let before = memory();
    let each = || memory().saturating_sub(before) / PEERS;
    let mut node = start(0, patient());
    let mut peers = Command::new(env::current_exe().unwrap())
        .args(["scale::peers", "--exact", "--ignored", "--nocapture", "--test-threads=1"])
        .env(AT, address(&node).to_string())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let (mut up, mut received, mut idle) = (0, 0, 0);
    while received < PEERS * u32::from(FRAMES) {
        match next(&mut node) {
            Arrival::Up { .. } => {
                up += 1;
                idle = each();
            }
            Arrival::Frame { peer, frame } => {
                received += 1;
                // The queue has space for all of them.
                node.send(peer, frame).unwrap();
            }
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(up, PEERS);
    let busy = each();
    for _ in 0..PEERS {
        let Arrival::Down { reason, .. } = next(&mut node) else {
            panic!("more frames than were sent")
        };
        assert_eq!(reason, DisconnectReason::Closed);
    }
    let status = peers.wait().unwrap();
    assert!(status.success(), "the peers: {status}");
    println!(
        "{PEERS} peers: {idle} KiB each when they are up, {busy} KiB after {FRAMES} frames of {LEN} \
         bytes in both directions; {received} frames were received and sent back, none was lost"
    );
    // Three times the measured value.
    assert!(busy < 256, "{busy} KiB each");
}

/// The process of the peers.
#[test]
#[ignore = "started by the test above"]
fn peers() {
    let Ok(at) = env::var(AT) else { return };
    let peer = |id| {
        let mut options = patient();
        options.listen = None;
        options.peers.insert(NodeId(0), Peer::at(&at));
        start(id, options)
    };
    let mut peers: Vec<Grpc> = (1..=PEERS).map(peer).collect();
    for peer in &mut peers {
        assert_eq!(next(peer), Arrival::Up { peer: NodeId(0) });
    }
    let frame = |number: u8| Frame::from(vec![number; LEN]);
    for number in 0..FRAMES {
        for peer in &mut peers {
            peer.send(NodeId(0), frame(number)).unwrap();
        }
    }
    for peer in &mut peers {
        for number in 0..FRAMES {
            assert_eq!(next(peer), Arrival::Frame { peer: NodeId(0), frame: frame(number) });
        }
    }
    peers.iter_mut().for_each(|peer| peer.close(LONG_WAIT));
}
