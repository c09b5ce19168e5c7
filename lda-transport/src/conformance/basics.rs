//! Checks of connections, waits, wakers and rejected frames.

use std::sync::mpsc::{RecvTimeoutError, channel};
use std::task::Waker;
use std::time::{Duration, Instant};

use super::node::{Node, mesh};
use super::{Effort, Outcome, Subject};
use crate::frame::Frame;
use crate::transport::{Arrival, NodeId, SendError, Wait};

/// A wait that is long for a computer and short for a person.
const MOMENT: Duration = Duration::from_millis(50);

pub fn connections(subject: &mut dyn Subject, effort: &Effort) -> Result<Outcome, String> {
    for count in [1, 2, 5] {
        let mut nodes = mesh(subject, count, effort)?;
        for (expected, node) in nodes.iter().enumerate() {
            if node.id() != NodeId(expected as u32) {
                return Err(format!("{} was created in place of node {expected}", node.id()));
            }
        }
        for node in &mut nodes {
            if node.step(Wait::No)? {
                return Err(format!("{} receives more than the `Up` of its peers", node.id()));
            }
        }
    }
    Ok(Outcome::Passed)
}

pub fn waiting(subject: &mut dyn Subject, effort: &Effort) -> Result<Outcome, String> {
    let mut nodes = mesh(subject, 2, effort)?;
    let node = &mut nodes[0];
    for (wait, least) in [(Wait::No, Duration::ZERO), (Wait::For(MOMENT), MOMENT)] {
        let start = Instant::now();
        if node.step(wait)? {
            return Err("something arrived that was not sent".to_owned());
        }
        let took = start.elapsed();
        if took < least || took > effort.patience {
            return Err(format!("{wait:?} took {took:?}"));
        }
    }
    Ok(Outcome::Passed)
}

pub fn waking(subject: &mut dyn Subject, effort: &Effort) -> Result<Outcome, String> {
    let mut nodes = mesh(subject, 2, effort)?;
    let node = &mut nodes[0];
    let waker = node.transport.waker();
    let mut woken = |wait| {
        let arrival = node.transport.receive(wait).map_err(|error| error.to_string())?;
        Ok::<_, String>(arrival == Some(Arrival::Woken))
    };
    // Before the wait, and two wakes for one arrival.
    waker.wake_by_ref();
    waker.wake_by_ref();
    if !woken(Wait::For(effort.patience))? {
        return Err("a wake before the wait was ignored".to_owned());
    }
    // During the wait.
    for wait in [Wait::For(effort.patience), Wait::Forever] {
        while woken(Wait::For(MOMENT))? {}
        if !wake_later(&waker, effort.patience, || woken(wait))? {
            return Err(format!("a wake during {wait:?} was ignored, or the wait ended before it"));
        }
    }
    Ok(Outcome::Passed)
}

/// Wakes a moment after `wait` has begun. Returns the result of `wait`.
fn wake_later<R>(waker: &Waker, patience: Duration, wait: impl FnOnce() -> R) -> R {
    let (done, is_done) = channel::<()>();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            std::thread::sleep(MOMENT);
            // Repeated, so that a transport that misses a wake does not block the check forever.
            let rounds = (patience.as_millis() / MOMENT.as_millis()).max(1);
            for _ in 0..rounds {
                waker.wake_by_ref();
                if is_done.recv_timeout(MOMENT) != Err(RecvTimeoutError::Timeout) {
                    return;
                }
            }
        });
        let result = wait();
        drop(done);
        result
    })
}

pub fn refusals(subject: &mut dyn Subject, effort: &Effort) -> Result<Outcome, String> {
    let mut nodes = mesh(subject, 2, effort)?;
    let refused = |node: &mut Node, to: u32, frame: Frame, expected: SendError| {
        let bytes = frame.len();
        match node.transport.send(NodeId(to), frame) {
            Ok(()) => Err(format!("a frame was taken where {expected:?} was expected")),
            Err(unsent) if unsent.error != expected => {
                Err(format!("{:?} where {expected:?} was expected", unsent.error))
            }
            Err(unsent) if unsent.frame.len() != bytes || unsent.to != NodeId(to) => {
                Err("another frame was returned than was sent".to_owned())
            }
            Err(_) => Ok(()),
        }
    };
    let unknown = Frame::from(b"to an unknown node".to_vec());
    refused(&mut nodes[0], 9, unknown, SendError::NotUp)?;
    let longest = nodes[0].transport.capabilities().max_frame_len;
    if longest < 4 << 30 {
        let frame = Frame::from(vec![0; longest + 1]);
        let expected = SendError::TooLong { len: longest + 1, longest };
        refused(&mut nodes[0], 1, frame, expected)?;
    }
    // The rejected frames have not arrived, and the connection still works.
    nodes[0].send(NodeId(1), Frame::from(b"after".to_vec()))?;
    let (_, frame) = nodes[1].frame()?;
    if &frame[..] != b"after" {
        return Err(format!("{frame:?} arrived, which was rejected"));
    }
    nodes[0].transport.close(effort.patience);
    refused(&mut nodes[0], 1, Frame::from(b"late".to_vec()), SendError::Closed)?;
    match nodes[0].transport.receive(Wait::No) {
        Err(_) => Ok(Outcome::Passed),
        Ok(arrival) => Err(format!("{arrival:?} arrived at a node that has closed")),
    }
}
