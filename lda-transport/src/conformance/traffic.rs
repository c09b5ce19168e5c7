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
    /// Whether the queue of the peer is full.
    is_blocked: bool,
}

impl Stream {
    fn new(seed: u64, from: NodeId, to: NodeId, peer: NodeId, bytes: u64) -> Self {
        let rng = SplitMix64::new(seed ^ u64::from(from.0) << 32 ^ u64::from(to.0) << 48);
        Self { peer, rng, left: bytes, waiting: None, is_blocked: false }
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

    /// Sends some frames: a few at a time, so that all peers make progress.
    fn send_some(&mut self, node: &mut Node, longest: usize) -> Result<(), String> {
        for _ in 0..16 {
            if self.is_blocked {
                break;
            }
            let frame = match self.waiting.take() {
                Some(frame) => Some(frame),
                None => self.next(longest, node.transport.take_buffer()),
            };
            let Some(frame) = frame else { break };
            self.waiting = node.try_send(self.peer, frame)?;
            self.is_blocked = self.waiting.is_some();
        }
        Ok(())
    }

    fn is_done(&self) -> bool {
        self.left == 0 && self.waiting.is_none()
    }
}

/// Sends and receives at one node until it has exchanged everything with all others.
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
    loop {
        sent.iter_mut().try_for_each(|stream| stream.send_some(&mut node, longest))?;
        while let Some((peer, frame)) = node.frames.pop_front() {
            buffer = compare(&mut received, peer, &frame, longest, buffer)
                .map_err(|reason| format!("{id}: {reason}"))?;
            node.transport.release(frame);
        }
        if sent.iter().all(Stream::is_done) && received.iter().all(|stream| stream.left == 0) {
            return Ok(node);
        }
        if sent.iter().all(|stream| stream.is_blocked || stream.is_done()) {
            node.until("a frame or space", |node| {
                !node.frames.is_empty() || !node.writable.is_empty()
            })?;
        } else {
            node.step(Wait::No)?;
        }
        for peer in node.writable.drain(..) {
            if let Some(stream) = sent.iter_mut().find(|stream| stream.peer == peer) {
                stream.is_blocked = false;
            }
        }
    }
}

/// Compares a frame with the next one of its stream. Returns the buffer of the latter.
fn compare(
    received: &mut [Stream],
    peer: NodeId,
    frame: &Frame,
    longest: usize,
    buffer: Vec<u8>,
) -> Result<Vec<u8>, String> {
    let stream = received.iter_mut().find(|stream| stream.peer == peer);
    let stream = stream.ok_or_else(|| format!("a frame from {peer}, which is unknown"))?;
    let expected = stream
        .next(longest, buffer)
        .ok_or_else(|| format!("more arrived from {peer} than it has sent"))?;
    if *frame != expected {
        return Err(format!("{frame:?} arrived from {peer}, which has sent {expected:?}"));
    }
    Ok(expected.into_vec().unwrap_or_default())
}
