//! The transport `local`: the contract, and properties that only it has.

use std::time::Duration;

use lda_transport::conformance::{self, Effort, Outcome, Subject};
use lda_transport::local::{Hub, NodeIdInUse, Options, mesh};
use lda_transport::{Arrival, Frame, NodeId, SendError, Transport, Wait};

struct Nodes {
    options: Options,
    hub: Option<Hub>,
}

impl Subject for Nodes {
    fn mesh(&mut self, nodes: u32) -> Vec<Box<dyn Transport>> {
        let hub = self.hub.insert(Hub::new(&self.options));
        let join = |id| Box::new(hub.join(NodeId(id)).unwrap()) as Box<dyn Transport>;
        (0..nodes).map(join).collect()
    }

    fn rejoin(&mut self, id: NodeId) -> Option<Box<dyn Transport>> {
        Some(Box::new(self.hub.as_ref()?.join(id).unwrap()))
    }
}

fn options(max_frame_len: usize, queue_frames: usize, queue_bytes: usize) -> Options {
    let mut options = Options::default();
    options.max_frame_len = max_frame_len;
    options.queue_frames = queue_frames;
    options.queue_bytes = queue_bytes;
    options
}

#[test]
fn the_contract_holds() {
    let effort = Effort { bytes: 16 << 20, ..Effort::default() };
    for options in [
        Options::default(),
        // Nearly every frame waits for space.
        options(5000, 1, 1),
        options(1 << 20, 1000, 10_000),
    ] {
        let report = conformance::run(&mut Nodes { options, hub: None }, &effort);
        assert!(report.passed(), "{report}");
        let skipped = |(_, outcome): &(_, Outcome)| matches!(outcome, Outcome::Skipped(_));
        assert!(!report.checks.iter().any(skipped), "{report}");
    }
}

#[test]
#[ignore = "20 GB: .ci/extended runs it"]
fn the_contract_holds_for_twenty_gigabytes() {
    let effort = Effort { bytes: 20_000_000_000, max_frame_len: 64 << 20, ..Effort::default() };
    let report = conformance::run(&mut Nodes { options: Options::default(), hub: None }, &effort);
    assert!(report.passed(), "{report}");
}

#[test]
fn frames_are_not_copied() {
    let mut nodes = mesh(2, &Options::default());
    let (mut b, mut a) = (nodes.pop().unwrap(), nodes.pop().unwrap());
    a.receive(Wait::Forever).unwrap();
    b.receive(Wait::Forever).unwrap();
    let frame = Frame::from(vec![7; 1000]);
    let address = frame.as_ptr();
    a.send(NodeId(1), frame).unwrap();
    let Ok(Some(Arrival::Frame { frame, .. })) = b.receive(Wait::Forever) else { panic!() };
    assert_eq!(frame.as_ptr(), address);
    // Its buffer is reused by any node.
    b.release(frame);
    let spare = a.take_buffer();
    assert_eq!((spare.as_ptr(), spare.len()), (address, 0));
}

#[test]
fn a_number_is_used_once() {
    let hub = Hub::new(&Options::default());
    let first = hub.join(NodeId(3)).unwrap();
    assert_eq!(hub.join(NodeId(3)).unwrap_err(), NodeIdInUse(NodeId(3)));
    drop(first);
    hub.join(NodeId(3)).unwrap();
}

#[test]
fn a_frame_to_a_closed_node_is_returned() {
    let mut nodes = mesh(2, &Options::default());
    let (b, mut a) = (nodes.pop().unwrap(), nodes.pop().unwrap());
    a.receive(Wait::Forever).unwrap();
    drop(b);
    // `Down` has not been received yet.
    let unsent = a.send(NodeId(1), Frame::from(vec![1, 2])).unwrap_err();
    assert_eq!((unsent.error, &unsent.frame[..]), (SendError::NotUp, &[1, 2][..]));
    assert!(unsent.error.is_transient());
    let down = a.receive(Wait::For(Duration::ZERO)).unwrap();
    assert!(matches!(down, Some(Arrival::Down { peer: NodeId(1), .. })), "{down:?}");
}
