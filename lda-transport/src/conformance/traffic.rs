//! Checks of order and integrity: frames of all lengths between all nodes at once.

use std::thread;

use super::node::{Node, mesh};
use super::{Effort, Outcome, Subject};
use crate::frame::Frame;
use crate::split_mix::SplitMix64;
use crate::transport::{NodeId, Wait};

pub fn integrity(subject: &mut dyn Subject, effort: &Effort) -> Result<Outcome, String> {
    let nodes = mesh(subject, 3, effort)?;
    let longest = nodes[0].transport.capabilities().max_frame_len.min(effort.max_frame_len);
    exchange(nodes, effort, longest, effort.bytes / 6)
}

pub fn many(subject: &mut dyn Subject, effort: &Effort) -> Result<Outcome, String> {
    let nodes = mesh(subject, 17, effort)?;
    let longest = nodes[0].transport.capabilities().max_frame_len.min(1 << 12);
    exchange(nodes, effort, longest, (effort.bytes / (17 * 16)).min(1 << 16))
}

/// Sends `bytes` from every node to every other. Both sides generate the frames from the same seed,
/// and the receiver compares.
fn exchange(
    nodes: Vec<Node>,
    effort: &Effort,
    longest: usize,
    bytes: u64,
) -> Result<Outcome, String> {
    let count = nodes.len();
    let ends = thread::scope(|scope| {
        let run = |node: Node| scope.spawn(move || talk(node, count, effort.seed, longest, bytes));
        let running: Vec<_> = nodes.into_iter().map(run).collect();
        // No node is dropped before all have finished.
        running.into_iter().map(|node| node.join()).collect::<Vec<_>>()
    });
    for end in ends {
        end.map_err(|_| "a node panicked".to_owned())??;
    }
    Ok(Outcome::Passed)
}

/// The frames of one node to another.
struct Stream {
    peer: NodeId,
    rng: SplitMix64,
    left: u64,
    /// A frame that the transport did not take yet.
    waiting: Option<Frame>,
}

impl Stream {
    fn new(seed: u64, from: NodeId, to: NodeId, peer: NodeId, bytes: u64) -> Self {
        let rng = SplitMix64::new(seed ^ u64::from(from.0) << 32 ^ u64::from(to.0) << 48);
        Self { peer, rng, left: bytes, waiting: None }
    }

    /// Returns the next frame, in the memory of `buffer`, if there is one. An empty frame counts as
    /// a byte, so that the stream ends.
    fn next(&mut self, longest: usize, buffer: Vec<u8>) -> Option<Frame> {
        if self.left == 0 {
            return None;
        }
        let len = self.rng.length(longest);
        self.left = self.left.saturating_sub(len.max(1) as u64);
        Some(self.rng.frame(buffer, len))
    }
}

fn talk(
    mut node: Node,
    count: usize,
    seed: u64,
    longest: usize,
    bytes: u64,
) -> Result<Node, String> {
    let id = node.id();
    let peers = (0..count as u32).map(NodeId).filter(|&peer| peer != id);
    let mut sent: Vec<Stream> =
        peers.clone().map(|peer| Stream::new(seed, id, peer, peer, bytes)).collect();
    let mut received: Vec<Stream> =
        peers.map(|peer| Stream::new(seed, peer, id, peer, bytes)).collect();
    let mut buffer = Vec::new();
    let mut blocked = vec![false; sent.len()];
    loop {
        for (stream, blocked) in sent.iter_mut().zip(&mut blocked) {
            // A few at a time, so that all peers make progress.
            for _ in 0..16 {
                if *blocked {
                    break;
                }
                let frame = match stream.waiting.take() {
                    Some(frame) => Some(frame),
                    None => stream.next(longest, node.transport.take_buffer()),
                };
                let Some(frame) = frame else { break };
                stream.waiting = node.try_send(stream.peer, frame)?;
                *blocked = stream.waiting.is_some();
            }
        }
        while let Some((peer, frame)) = node.frames.pop_front() {
            let stream = received.iter_mut().find(|stream| stream.peer == peer);
            let stream =
                stream.ok_or_else(|| format!("{id}: a frame from {peer}, which is unknown"))?;
            let expected = stream
                .next(longest, buffer)
                .ok_or_else(|| format!("{id}: more arrived from {peer} than it has sent"))?;
            if frame != expected {
                return Err(format!(
                    "{id}: {frame:?} arrived from {peer}, which has sent {expected:?}"
                ));
            }
            node.transport.release(frame);
            buffer = expected.into_vec().unwrap_or_default();
        }
        let all_sent = sent.iter().all(|stream| stream.left == 0 && stream.waiting.is_none());
        if all_sent && received.iter().all(|stream| stream.left == 0) {
            return Ok(node);
        }
        let idle = sent
            .iter()
            .zip(&blocked)
            .all(|(stream, blocked)| *blocked || stream.left == 0 && stream.waiting.is_none());
        if idle {
            node.until("a frame or space", |node| {
                !node.frames.is_empty() || !node.writable.is_empty()
            })?;
        } else {
            node.step(Wait::No)?;
        }
        for peer in node.writable.drain(..) {
            if let Some(at) = sent.iter().position(|stream| stream.peer == peer) {
                blocked[at] = false;
            }
        }
    }
}
