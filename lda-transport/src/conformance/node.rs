//! A transport and its arrivals, with a limit for every wait.

use std::collections::{BTreeSet, VecDeque};
use std::time::{Duration, Instant};

use super::{Effort, Subject};
use crate::frame::Frame;
use crate::split_mix::SplitMix64;
use crate::transport::{Arrival, DisconnectReason, NodeId, SendError, Transport, Wait};

/// A node of the transport under test.
pub(super) struct Node {
    pub transport: Box<dyn Transport>,
    pub up: BTreeSet<NodeId>,
    /// Frames that arrived during a wait for something else.
    pub frames: VecDeque<(NodeId, Frame)>,
    /// Peers that became writable.
    pub writable: Vec<NodeId>,
    pub downs: Vec<(NodeId, DisconnectReason)>,
    patience: Duration,
}

/// Creates nodes and waits until all are connected with each other.
pub(super) fn mesh(
    subject: &mut dyn Subject,
    count: u32,
    effort: &Effort,
) -> Result<Vec<Node>, String> {
    let nodes = subject.mesh(count);
    if nodes.len() != count as usize {
        return Err(format!("expected {count} nodes, got {}", nodes.len()));
    }
    let mut nodes: Vec<Node> = nodes.into_iter().map(|node| Node::new(node, effort)).collect();
    all_until(&mut nodes, "every other node to be up", |node| node.up.len() + 1 == count as usize)?;
    Ok(nodes)
}

/// Receives at all nodes until `done` holds for each. All are polled in turn, since a transport may
/// delay one node until the program of another has taken its arrivals.
pub(super) fn all_until(
    nodes: &mut [Node],
    what: &str,
    done: impl Fn(&Node) -> bool,
) -> Result<(), String> {
    let start = Instant::now();
    loop {
        let mut idle = true;
        for node in &mut *nodes {
            idle &= !node.step(Wait::No)?;
        }
        let Some(waits) = nodes.iter().find(|node| !done(node)) else { return Ok(()) };
        if start.elapsed() > waits.patience {
            return Err(format!("{} waited too long for {what}", waits.id()));
        }
        if idle {
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

impl Node {
    pub fn new(transport: Box<dyn Transport>, effort: &Effort) -> Self {
        Self {
            transport,
            up: BTreeSet::new(),
            frames: VecDeque::new(),
            writable: Vec::new(),
            downs: Vec::new(),
            patience: effort.patience,
        }
    }

    pub fn id(&self) -> NodeId {
        self.transport.id()
    }

    /// Handles one arrival. Returns whether there was one.
    pub fn step(&mut self, wait: Wait) -> Result<bool, String> {
        let id = self.id();
        let arrival = self.transport.receive(wait);
        let Some(arrival) = arrival.map_err(|error| format!("{id}: {error}"))? else {
            return Ok(false);
        };
        match arrival {
            Arrival::Up { peer } if peer == id => {
                return Err(format!("{id} is connected to itself"));
            }
            Arrival::Up { peer } => {
                if !self.up.insert(peer) {
                    return Err(format!("{id}: {peer} is up twice"));
                }
            }
            Arrival::Down { peer, reason } => {
                if !self.up.remove(&peer) {
                    return Err(format!("{id}: {peer} is down ({reason:?}) and was not up"));
                }
                self.downs.push((peer, reason));
            }
            Arrival::Frame { peer, frame } => {
                if !self.up.contains(&peer) {
                    return Err(format!("{id}: {frame:?} from {peer}, which is not up"));
                }
                self.frames.push_back((peer, frame));
            }
            Arrival::Writable { peer } => self.writable.push(peer),
            Arrival::Woken => return Err(format!("{id} is woken without a wake")),
        }
        Ok(true)
    }

    /// Receives until `done` holds.
    pub fn until(&mut self, what: &str, done: impl Fn(&Self) -> bool) -> Result<(), String> {
        let start = Instant::now();
        while !done(self) {
            let Some(left) = self.patience.checked_sub(start.elapsed()) else {
                return Err(format!("{} waited too long for {what}", self.id()));
            };
            self.step(Wait::For(left))?;
        }
        Ok(())
    }

    /// Returns the next frame, after waiting for it.
    pub fn frame(&mut self) -> Result<(NodeId, Frame), String> {
        self.until("a frame", |node| !node.frames.is_empty())?;
        Ok(self.frames.pop_front().expect("the wait ended with one"))
    }

    /// Sends a frame, after waiting for space if there is none.
    pub fn send(&mut self, to: NodeId, frame: Frame) -> Result<(), String> {
        let mut frame = frame;
        loop {
            match self.try_send(to, frame)? {
                None => return Ok(()),
                Some(back) => frame = back,
            }
            self.writable.retain(|&peer| peer != to);
            self.until("space", |node| node.writable.contains(&to))?;
        }
    }

    /// Sends frames of `len` bytes, the first with number `next`, until the queue is full. Returns the
    /// number of the first that was not taken. The peer must have received none before `next`.
    pub fn fill(
        &mut self,
        to: NodeId,
        mut next: u64,
        len: usize,
        frame: impl Fn(u64) -> Frame,
    ) -> Result<u64, String> {
        let queue_bytes = self.transport.capabilities().queue_bytes;
        while self.try_send(to, frame(next))?.is_none() {
            next += 1;
            if next.saturating_mul(len as u64) > (queue_bytes + len) as u64 {
                return Err(format!(
                    "{next} frames of {len} bytes were taken for a node that does not receive, \
                     which is more than {queue_bytes} bytes"
                ));
            }
        }
        Ok(next)
    }

    /// Sends a frame. Returns it if there is no space.
    pub fn try_send(&mut self, to: NodeId, frame: Frame) -> Result<Option<Frame>, String> {
        match self.transport.send(to, frame) {
            Ok(()) => Ok(None),
            Err(unsent) if unsent.error == SendError::Full => Ok(Some(unsent.frame)),
            Err(unsent) => Err(format!("{} cannot send: {unsent}", self.id())),
        }
    }
}

impl SplitMix64 {
    /// Returns a random length up to `longest`, uniform over powers of two.
    pub(super) fn length(&mut self, longest: usize) -> usize {
        let powers = u64::from(usize::BITS - longest.leading_zeros()) + 1;
        match self.draw() % powers {
            0 => 0,
            power => {
                let from = 1u64 << (power - 1);
                ((from + self.draw() % from) as usize).min(longest)
            }
        }
    }

    /// Returns a random frame of `len` bytes in the memory of `buffer`.
    pub(super) fn frame(&mut self, mut buffer: Vec<u8>, len: usize) -> Frame {
        buffer.clear();
        buffer.reserve(len.next_multiple_of(8));
        while buffer.len() < len {
            buffer.extend_from_slice(&self.draw().to_le_bytes());
        }
        buffer.truncate(len);
        Frame::from(buffer)
    }
}
