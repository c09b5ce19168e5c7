//! Checks of nodes that close, are lost, and rejoin.

use std::sync::mpsc::channel;
use std::time::Duration;

use super::node::{Node, all_until, mesh};
use super::{Effort, Outcome, Subject};
use crate::frame::Frame;
use crate::split_mix::SplitMix64;
use crate::transport::{DisconnectReason, NodeId, Transport};

/// Time for which a closing node waits for a peer that does not receive yet.
const DELAY: Duration = Duration::from_millis(50);

/// Sends frames until the queue is full. Returns their number.
fn fill(node: &mut Node, to: NodeId) -> Result<u64, String> {
    let len = node.transport.capabilities().max_frame_len.min(1 << 14);
    node.fill(to, 0, len, |number| frame(number, len))
}

fn frame(number: u64, len: usize) -> Frame {
    SplitMix64::new(number).frame(Vec::new(), len)
}

/// Receives frames of a peer until its end, and compares them. Returns their number.
fn receive_to_end(node: &mut Node, peer: NodeId) -> Result<u64, String> {
    let mut number = 0;
    loop {
        node.until("a frame or the end of a peer", |node| {
            !node.frames.is_empty() || !node.downs.is_empty()
        })?;
        // `Down` comes after the frames of its peer.
        let Some((from, found)) = node.frames.pop_front() else { return Ok(number) };
        if (from, &found) != (peer, &frame(number, found.len())) {
            return Err(format!("{found:?} from {from} arrived for frame {number} of {peer}"));
        }
        number += 1;
    }
}

/// Expects this many frames of a peer, then its end.
fn expect_all(node: &mut Node, peer: NodeId, frames: u64) -> Result<(), String> {
    let found = receive_to_end(node, peer)?;
    if found != frames {
        return Err(format!(
            "{found} of {frames} frames arrived that {peer} took before it closed"
        ));
    }
    match &node.downs[..] {
        [(lost, DisconnectReason::Closed)] if *lost == peer => Ok(()),
        other => Err(format!("{other:?} arrived when {peer} closed")),
    }
}

pub fn sending_before_close(subject: &mut dyn Subject, effort: &Effort) -> Result<Outcome, String> {
    let mut nodes = mesh(subject, 2, effort)?;
    let mut second = nodes.pop().expect("two");
    let mut first = nodes.pop().expect("one");
    let sent = fill(&mut first, NodeId(1))?;
    // The closing node does not receive these any more, which must not affect its own frames.
    fill(&mut second, NodeId(0))?;
    let (begins, begun) = channel();
    std::thread::scope(|scope| {
        let end = scope.spawn(move || {
            let _ = begun.recv();
            std::thread::sleep(DELAY);
            expect_all(&mut second, NodeId(0), sent)
        });
        let _ = begins.send(());
        first.transport.close(effort.patience);
        end.join().map_err(|_| "a node panicked".to_owned())?
    })?;
    Ok(Outcome::Passed)
}

pub fn loss(subject: &mut dyn Subject, effort: &Effort) -> Result<Outcome, String> {
    let mut nodes = mesh(subject, 3, effort)?;
    if !nodes[0].transport.capabilities().survives_loss {
        return Ok(Outcome::Skipped("survives_loss"));
    }
    let sent = fill(&mut nodes[1], NodeId(0))?;
    drop(nodes.remove(1));
    // Frames that had not been sent are lost, and none before them.
    let arrived = receive_to_end(&mut nodes[0], NodeId(1))?;
    if arrived > sent {
        return Err(format!("{arrived} frames arrived of the {sent} that were taken"));
    }
    for (of, to) in [(0, 1), (1, 0)] {
        let lost = |node: &Node| node.downs.iter().any(|(peer, _)| *peer == NodeId(1));
        nodes[of].until("the end of a peer", lost)?;
        let peer = nodes[to].id();
        nodes[of].send(peer, frame(of as u64, 1))?;
        let (from, found) = nodes[to].frame()?;
        if (from, found) != (nodes[of].id(), frame(of as u64, 1)) {
            return Err("the loss of a peer changed a frame between others".to_owned());
        }
    }
    Ok(Outcome::Passed)
}

pub fn rejoining(subject: &mut dyn Subject, effort: &Effort) -> Result<Outcome, String> {
    let mut nodes = mesh(subject, 3, effort)?;
    if !nodes[0].transport.capabilities().reconnects {
        return Ok(Outcome::Skipped("reconnects"));
    }
    for round in 0..3 {
        // The node receives one of them and leaves without the others.
        fill(&mut nodes[1], NodeId(0))?;
        nodes[0].frame()?;
        let mut gone = nodes.remove(0);
        gone.transport.close(effort.patience);
        drop(gone);
        let again: Option<Box<dyn Transport>> = subject.rejoin(NodeId(0));
        let Some(again) = again else {
            return Err(
                "it claims to reconnect, but its subject does not create a node again".to_owned()
            );
        };
        nodes.insert(0, Node::new(again, effort));
        all_until(&mut nodes, "peers to be up again", |node| {
            let downs = if node.id() == NodeId(0) { 0 } else { round + 1 };
            node.downs.len() == downs && node.up.len() == 2
        })?;
        nodes[1].send(NodeId(0), Frame::from(b"to the new one".to_vec()))?;
        let (_, found) = nodes[0].frame()?;
        if found[..] != *b"to the new one" {
            return Err(format!("{found:?} arrived, which was sent to the earlier node"));
        }
        nodes[0].send(NodeId(2), Frame::from(b"of the new one".to_vec()))?;
        let (from, found) = nodes[2].frame()?;
        if (from, &found[..]) != (NodeId(0), b"of the new one") {
            return Err(format!(
                "{found:?} from {from} arrived for the first frame of the new node"
            ));
        }
    }
    Ok(Outcome::Passed)
}
