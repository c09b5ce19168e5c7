//! A thousand peers of one node: what they cost it, and that nothing is lost.

use std::env;
use std::fs;
use std::process::{Command, Stdio};
use std::time::Duration;

use lda_transport::grpc::{Grpc, Options, Peer};
use lda_transport::{Arrival, Frame, Loss, NodeId, Transport, Wait};

use crate::common::*;

const PEERS: u32 = 1000;
const FRAMES: u8 = 100;
const LEN: usize = 1000;
/// Tells the other process where the node is.
const AT: &str = "LDA_GRPC_AT";
/// With so many threads on few cores.
const LONG: Duration = Duration::from_secs(60);

/// Of this process, in KiB.
fn memory() -> u32 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

/// Of so many at once on few cores not every ping is answered, nor every hello said, as soon as of a few.
fn patient() -> Options {
    let mut options = options();
    options.pong = LONG;
    options.hello = LONG;
    options
}

fn hears(node: &mut Grpc) -> Arrival {
    node.receive(Wait::For(LONG)).unwrap().expect("something comes")
}

#[test]
#[ignore = "a thousand nodes in a process of their own: .ci/extended runs it"]
#[expect(clippy::print_stdout, reason = "it tells what they cost")]
fn a_thousand_peers() {
    let before = memory();
    let each = || memory().saturating_sub(before) / PEERS;
    let mut node = start(0, patient());
    let mut peers = Command::new(env::current_exe().unwrap())
        .args(["many::peers", "--exact", "--ignored", "--nocapture", "--test-threads=1"])
        .env(AT, address(&node).to_string())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let (mut up, mut came, mut idle) = (0, 0, 0);
    while came < PEERS * u32::from(FRAMES) {
        match hears(&mut node) {
            Arrival::Up { .. } => {
                up += 1;
                idle = each();
            }
            Arrival::Frame { peer, frame } => {
                came += 1;
                // Fewer than the queue takes.
                node.send(peer, frame).unwrap();
            }
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(up, PEERS);
    let busy = each();
    for _ in 0..PEERS {
        let Arrival::Down { loss, .. } = hears(&mut node) else { panic!("more than was sent") };
        assert_eq!(loss, Loss::Closed);
    }
    let status = peers.wait().unwrap();
    assert!(status.success(), "the peers: {status}");
    println!(
        "{PEERS} peers: {idle} KiB each when they are up, {busy} KiB after {FRAMES} frames of {LEN} bytes both ways; \
         {came} frames came and went back, none was lost"
    );
    // What was seen is a third of it.
    assert!(busy < 256, "{busy} KiB each");
}

/// The other process.
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
        assert_eq!(hears(peer), Arrival::Up { peer: NodeId(0) });
    }
    let frame = |number: u8| Frame::from(vec![number; LEN]);
    for number in 0..FRAMES {
        for peer in &mut peers {
            peer.send(NodeId(0), frame(number)).unwrap();
        }
    }
    for peer in &mut peers {
        for number in 0..FRAMES {
            assert_eq!(hears(peer), Arrival::Frame { peer: NodeId(0), frame: frame(number) });
        }
    }
    peers.iter_mut().for_each(|peer| peer.close(LONG));
}
