//! Introductions, waiting, waking, refusals.

use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use super::node::{Node, mesh};
use super::{Effort, Outcome, Subject};
use crate::frame::Frame;
use crate::transport::{Arrival, NodeId, SendError, Wait};

/// A moment that is long for a machine and short for a person.
const MOMENT: Duration = Duration::from_millis(50);

pub fn introductions(subject: &mut dyn Subject, effort: &Effort) -> Result<Outcome, String> {
    for count in [1, 2, 5] {
        let mut nodes = mesh(subject, count, effort)?;
        for (expected, node) in nodes.iter().enumerate() {
            if node.id() != NodeId(expected as u32) {
                return Err(format!("{} stands in the place of node {expected}", node.id()));
            }
        }
        for node in &mut nodes {
            if node.step(Wait::No)? {
                return Err(format!("{} hears more than who its peers are", node.id()));
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
            return Err("something came that nobody has sent".to_owned());
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
    // Before it waits, and twice for once.
    waker.wake_by_ref();
    waker.wake_by_ref();
    if !woken(Wait::For(effort.patience))? {
        return Err("woken before it waited, it did not hear of it".to_owned());
    }
    while woken(Wait::For(MOMENT))? {}
    // While it waits.
    let (known, is_known) = channel::<()>();
    let patience = effort.patience;
    std::thread::scope(|scope| {
        scope.spawn(move || {
            std::thread::sleep(MOMENT);
            // Again and again, lest a transport that sleeps through it keeps the check forever.
            let rounds = (patience.as_millis() / MOMENT.as_millis()).max(1);
            for _ in 0..rounds {
                waker.wake_by_ref();
                if is_known.recv_timeout(MOMENT) != Err(RecvTimeoutError::Timeout) {
                    return;
                }
            }
        });
        let heard = woken(Wait::For(patience))?;
        drop(known);
        if heard { Ok(Outcome::Passed) } else { Err("it slept on when it was woken".to_owned()) }
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
                Err("another frame came back than was sent".to_owned())
            }
            Err(_) => Ok(()),
        }
    };
    let stranger = Frame::from(b"to nobody".to_vec());
    refused(&mut nodes[0], 9, stranger, SendError::NotUp)?;
    let longest = nodes[0].transport.capabilities().max_frame_len;
    if longest < 4 << 30 {
        let frame = Frame::from(vec![0; longest + 1]);
        let expected = SendError::TooLong { len: longest + 1, longest };
        refused(&mut nodes[0], 1, frame, expected)?;
    }
    // What was refused has not come, and nothing was hurt.
    nodes[0].send(NodeId(1), Frame::from(b"after".to_vec()))?;
    let (_, frame) = nodes[1].frame()?;
    if &frame[..] != b"after" {
        return Err(format!("{frame:?} came, which was refused"));
    }
    nodes[0].transport.close(effort.patience);
    refused(&mut nodes[0], 1, Frame::from(b"late".to_vec()), SendError::Closed)?;
    match nodes[0].transport.receive(Wait::No) {
        Err(_) => Ok(Outcome::Passed),
        Ok(heard) => Err(format!("{heard:?} came to a node that has closed")),
    }
}
