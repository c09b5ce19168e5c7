//! Checks of nodes that close, are lost, and rejoin.

use super::node::{Node, all_until, mesh};
use super::{Effort, Outcome, Subject};
use crate::frame::Frame;
use crate::transport::{DisconnectReason, NodeId, Transport};

const FRAMES: u32 = 50;

fn frame(number: u32) -> Frame {
    let mut bytes = number.to_le_bytes().to_vec();
    bytes.resize(1000, number as u8);
    Frame::from(bytes)
}

/// Sends frames until the queue is full. Returns their number.
fn fill(node: &mut Node, to: NodeId) -> Result<u32, String> {
    for number in 0..FRAMES {
        if node.try_send(to, frame(number))?.is_some() {
            return Ok(number);
        }
    }
    Ok(FRAMES)
}

/// Expects this many frames of a peer, then its end.
fn expect_all(node: &mut Node, peer: NodeId, frames: u32) -> Result<(), String> {
    for number in 0..frames {
        let (from, found) = node.frame()?;
        if (from, &found) != (peer, &frame(number)) {
            return Err(format!("{found:?} from {from} arrived for frame {number} of {peer}"));
        }
    }
    node.until("the end of a peer", |node| !node.downs.is_empty())?;
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
    std::thread::scope(|scope| {
        let end = scope.spawn(|| expect_all(&mut second, NodeId(0), sent));
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
    drop(nodes.remove(1));
    for (of, to) in [(0, 1), (1, 0)] {
        let lost = |node: &Node| node.downs.iter().any(|(peer, _)| *peer == NodeId(1));
        nodes[of].until("the end of a peer", lost)?;
        let peer = nodes[to].id();
        nodes[of].send(peer, frame(of as u32))?;
        let (from, found) = nodes[to].frame()?;
        if (from, found) != (nodes[of].id(), frame(of as u32)) {
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
