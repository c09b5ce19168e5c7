//! The conformance suite detects transports that break the contract, each in one way.

use std::collections::VecDeque;
use std::sync::Mutex;
use std::task::Waker;
use std::time::Duration;

use lda_transport::conformance::{self, Effort, Outcome, Subject};
use lda_transport::local::{Hub, Options};
use lda_transport::{
    Arrival, Capabilities, Frame, NodeId, ReceiveError, SendError, Transport, Unsent, Wait,
};

#[derive(Clone, Copy, Debug, PartialEq)]
enum Fault {
    None,
    /// Delivers every other frame after the next one.
    Swaps,
    /// Loses a frame in a hundred.
    Loses,
    /// Delivers a frame in a hundred twice.
    Doubles,
    /// Changes a bit in a long frame.
    Flips,
    /// Takes frames beyond the limit of the queue.
    Hoards,
    /// Never reports that a peer is writable.
    HidesWritable,
    /// Ignores its waker.
    Sleeps,
    /// Never reports lost peers.
    HidesLoss,
    /// Drops frames in its queue when it closes.
    ForgetsAtEnd,
    /// Reports lost peers before their last frames.
    OvertakesFrames,
    /// Returns from an unlimited wait when nothing has arrived.
    ReturnsNothing,
    /// Waits for space when it sends.
    Blocks,
    /// Panics when it closes.
    Panics,
    /// Takes frames of any length, and for unknown peers.
    TakesAll,
}

#[derive(Debug)]
struct Broken {
    inner: Box<dyn Transport>,
    fault: Fault,
    count: u64,
    held: VecDeque<Arrival>,
    hoard: Vec<(NodeId, Frame)>,
}

impl Broken {
    fn empty_hoard(&mut self) {
        for (to, frame) in std::mem::take(&mut self.hoard) {
            if let Err(unsent) = self.inner.send(to, frame) {
                self.hoard.push((to, unsent.frame));
            }
        }
    }
}

impl Transport for Broken {
    fn id(&self) -> NodeId {
        self.inner.id()
    }

    fn capabilities(&self) -> Capabilities {
        self.inner.capabilities()
    }

    fn send(&mut self, to: NodeId, mut frame: Frame) -> Result<(), Unsent> {
        self.count += 1;
        match self.fault {
            Fault::Loses if self.count.is_multiple_of(100) => return Ok(()),
            Fault::Flips if frame.len() > 1000 => {
                let mut bytes = frame.to_vec();
                bytes[500] ^= 1;
                frame = Frame::from(bytes);
            }
            Fault::Hoards | Fault::ForgetsAtEnd => self.empty_hoard(),
            _ => {}
        }
        let is_full = |tried: &Result<(), Unsent>| matches!(tried, Err(unsent) if unsent.error == SendError::Full);
        let mut tried = self.inner.send(to, frame);
        while self.fault == Fault::Blocks && is_full(&tried) {
            std::thread::sleep(Duration::from_millis(1));
            tried = tried.or_else(|unsent| self.inner.send(to, unsent.frame));
        }
        match tried {
            Err(unsent) if self.fault == Fault::ForgetsAtEnd && self.hoard.is_empty() => {
                self.hoard.push((to, unsent.frame));
                Ok(())
            }
            Err(unsent) if self.fault == Fault::Hoards && unsent.error == SendError::Full => {
                self.hoard.push((to, unsent.frame));
                Ok(())
            }
            Err(_) if self.fault == Fault::TakesAll => Ok(()),
            other => other,
        }
    }

    fn receive(&mut self, wait: Wait) -> Result<Option<Arrival>, ReceiveError> {
        if let Some(held) = self.held.pop_front() {
            return Ok(Some(held));
        }
        self.empty_hoard();
        if self.fault == Fault::ReturnsNothing && wait == Wait::Forever {
            return self.inner.receive(Wait::For(Duration::from_millis(1)));
        }
        let arrival = self.inner.receive(wait)?;
        if self.fault == Fault::OvertakesFrames {
            self.held.extend(arrival);
            while let Some(next) = self.inner.receive(Wait::No)? {
                self.held.push_back(next);
            }
            let is_down = |held: &Arrival| matches!(held, Arrival::Down { .. });
            let place = self.held.iter().position(is_down).unwrap_or(0);
            return Ok(self.held.remove(place));
        }
        let hidden = match &arrival {
            Some(Arrival::Writable { .. }) => self.fault == Fault::HidesWritable,
            Some(Arrival::Woken) => self.fault == Fault::Sleeps,
            Some(Arrival::Down { .. }) => self.fault == Fault::HidesLoss,
            _ => false,
        };
        if hidden {
            return self.receive(wait);
        }
        let Some(Arrival::Frame { peer, frame }) = &arrival else { return Ok(arrival) };
        self.count += 1;
        match self.fault {
            Fault::Swaps if self.count.is_multiple_of(2) => {
                if let next @ Some(Arrival::Frame { .. }) = self.inner.receive(Wait::No)? {
                    self.held.extend(arrival);
                    return Ok(next);
                }
            }
            Fault::Doubles if self.count.is_multiple_of(100) => {
                self.held.push_back(Arrival::Frame { peer: *peer, frame: frame.clone() });
            }
            _ => {}
        }
        Ok(arrival)
    }

    fn waker(&self) -> Waker {
        self.inner.waker()
    }

    fn close(&mut self, patience: Duration) {
        assert!(self.fault != Fault::Panics, "nothing is prepared for the end");
        self.hoard.clear();
        self.inner.close(patience);
    }
}

struct Nodes {
    fault: Fault,
    hub: Option<Hub>,
}

impl Nodes {
    fn join(&self, id: NodeId) -> Box<dyn Transport> {
        let inner = Box::new(self.hub.as_ref().unwrap().join(id).unwrap());
        let (held, hoard) = (VecDeque::new(), Vec::new());
        Box::new(Broken { inner, fault: self.fault, count: 0, held, hoard })
    }
}

impl Subject for Nodes {
    fn mesh(&mut self, nodes: u32) -> Vec<Box<dyn Transport>> {
        let mut options = Options::default();
        (options.max_frame_len, options.queue_bytes) = (1 << 20, 1 << 18);
        self.hub = Some(Hub::new(&options));
        (0..nodes).map(|id| self.join(NodeId(id))).collect()
    }

    fn rejoin(&mut self, id: NodeId) -> Option<Box<dyn Transport>> {
        Some(self.join(id))
    }
}

#[test]
fn every_violation_is_detected() {
    // Limits the time of checks that wait because of a fault.
    let patience = Duration::from_secs(2);
    let effort = Effort { bytes: 8 << 20, max_frame_len: 1 << 16, patience, ..Effort::default() };
    for (fault, detected_by) in [
        (Fault::None, None),
        (Fault::Swaps, Some("order and integrity")),
        (Fault::Loses, Some("order and integrity")),
        (Fault::Doubles, Some("order and integrity")),
        (Fault::Flips, Some("order and integrity")),
        (Fault::Hoards, Some("a stalled receiver blocks only its senders")),
        (Fault::HidesWritable, Some("a stalled receiver blocks only its senders")),
        (Fault::Sleeps, Some("a waker wakes")),
        (Fault::HidesLoss, Some("a lost peer does not affect the others")),
        (Fault::ForgetsAtEnd, Some("frames that were taken are sent before the close")),
        (Fault::OvertakesFrames, Some("frames that were taken are sent before the close")),
        (Fault::ReturnsNothing, Some("a waker wakes")),
        (Fault::Panics, Some("frames that were taken are sent before the close")),
        (Fault::TakesAll, Some("frames that cannot be sent are returned")),
    ] {
        let report = conformance::run(&mut Nodes { fault, hub: None }, &effort);
        let failed = |name| {
            let outcome = report.checks.iter().find(|check| check.0 == name).unwrap();
            matches!(outcome.1, Outcome::Failed(_))
        };
        match detected_by {
            None => assert!(report.passed(), "{report}"),
            Some(name) => assert!(failed(name), "{fault:?}:\n{report}"),
        }
    }
}

/// Its thread and its nodes are left behind, so nothing is checked after it.
#[test]
fn a_call_that_does_not_return_ends_the_run() {
    let effort = Effort { bytes: 8 << 20, patience: Duration::from_secs(3), ..Effort::default() };
    let report = conformance::run(&mut Nodes { fault: Fault::Blocks, hub: None }, &effort);
    let outcomes: Vec<&Outcome> = report.checks.iter().map(|check| &check.1).collect();
    let hangs = outcomes.iter().position(|outcome| matches!(outcome, Outcome::Failed(_)));
    let hangs = hangs.expect("a check fails");
    let Outcome::Failed(why) = outcomes[hangs] else { unreachable!() };
    assert!(why.starts_with("`send` of node ") && why.contains("within 3s"), "{why}");
    assert!(outcomes[..hangs].iter().all(|outcome| **outcome == Outcome::Passed), "{report}");
    let after = &outcomes[hangs + 1..];
    assert!(after.iter().all(|outcome| matches!(outcome, Outcome::NotRun(_))), "{report}");
    assert!(!report.passed());
}

#[test]
fn checks_are_announced_when_they_begin() {
    static NAMES: Mutex<Vec<String>> = Mutex::new(Vec::new());
    let on_check = |name: &str| NAMES.lock().unwrap().push(name.to_owned());
    let patience = Duration::from_secs(3);
    let effort = Effort { bytes: 1 << 16, patience, on_check, ..Effort::default() };
    let report = conformance::run(&mut Nodes { fault: Fault::Blocks, hub: None }, &effort);
    let run = |outcome: &Outcome| !matches!(outcome, Outcome::NotRun(_));
    let begun = report.checks.iter().filter(|check| run(&check.1));
    assert!(begun.map(|check| check.0).eq(NAMES.lock().unwrap().iter()), "{report}");
}
