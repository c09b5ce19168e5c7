//! A transport and what has been heard by it, with limits to every wait.

use std::collections::{BTreeSet, VecDeque};
use std::time::{Duration, Instant};

use super::{Effort, Subject};
use crate::frame::Frame;
use crate::split_mix::SplitMix64;
use crate::transport::{Arrival, DisconnectReason, NodeId, SendError, Transport, Wait};

pub(super) struct Node {
    pub transport: Box<dyn Transport>,
    pub up: BTreeSet<NodeId>,
    /// Frames that came while something else was waited for.
    pub frames: VecDeque<(NodeId, Frame)>,
    pub rooms: Vec<NodeId>,
    pub downs: Vec<(NodeId, DisconnectReason)>,
    patience: Duration,
}

/// Nodes that all know each other.
pub(super) fn mesh(
    subject: &mut dyn Subject,
    count: u32,
    effort: &Effort,
) -> Result<Vec<Node>, String> {
    let nodes = subject.mesh(count);
    if nodes.len() != count as usize {
        return Err(format!("asked for {count} nodes, got {}", nodes.len()));
    }
    let mut nodes: Vec<Node> = nodes.into_iter().map(|node| Node::new(node, effort)).collect();
    all_until(&mut nodes, "every other node to be up", |node| node.up.len() + 1 == count as usize)?;
    Ok(nodes)
}

/// Receives at all of them until it is so of each. None is waited for alone: a transport may hold up what it
/// does for one node until the program of another has taken what has come.
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
            return Err(format!("{} waited in vain for {what}", waits.id()));
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
            rooms: Vec::new(),
            downs: Vec::new(),
            patience: effort.patience,
        }
    }

    pub fn id(&self) -> NodeId {
        self.transport.id()
    }

    /// Takes what has come; whether anything had.
    pub fn step(&mut self, wait: Wait) -> Result<bool, String> {
        let id = self.id();
        let arrival = self.transport.receive(wait);
        let Some(arrival) = arrival.map_err(|error| format!("{id}: {error}"))? else {
            return Ok(false);
        };
        match arrival {
            Arrival::Up { peer } if peer == id => return Err(format!("{id} is up to itself")),
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
                    return Err(format!("{id}: {frame:?} of {peer}, which is not up"));
                }
                self.frames.push_back((peer, frame));
            }
            Arrival::Writable { peer } => self.rooms.push(peer),
            Arrival::Together { operation, .. } => {
                return Err(format!("{id}: {operation:?} has ended, and nobody has begun it"));
            }
            Arrival::Woken => return Err(format!("{id} is woken, and nobody has")),
        }
        Ok(true)
    }

    /// Receives until it is so.
    pub fn until(&mut self, what: &str, done: impl Fn(&Self) -> bool) -> Result<(), String> {
        let start = Instant::now();
        while !done(self) {
            let Some(left) = self.patience.checked_sub(start.elapsed()) else {
                return Err(format!("{} waited in vain for {what}", self.id()));
            };
            self.step(Wait::For(left))?;
        }
        Ok(())
    }

    /// The next frame.
    pub fn frame(&mut self) -> Result<(NodeId, Frame), String> {
        self.until("a frame", |node| !node.frames.is_empty())?;
        Ok(self.frames.pop_front().expect("there is one"))
    }

    /// Sends, and waits for room where there is none.
    pub fn send(&mut self, to: NodeId, frame: Frame) -> Result<(), String> {
        let mut frame = frame;
        loop {
            match self.try_send(to, frame)? {
                None => return Ok(()),
                Some(back) => frame = back,
            }
            self.rooms.retain(|&peer| peer != to);
            self.until("room", |node| node.rooms.contains(&to))?;
        }
    }

    /// Sends; gives the frame back where there is no room.
    pub fn try_send(&mut self, to: NodeId, frame: Frame) -> Result<Option<Frame>, String> {
        match self.transport.send(to, frame) {
            Ok(()) => Ok(None),
            Err(unsent) if unsent.error == SendError::Full => Ok(Some(unsent.frame)),
            Err(unsent) => Err(format!("{} cannot send: {unsent}", self.id())),
        }
    }
}

impl SplitMix64 {
    /// As many of each power of two, from 0 to `longest`.
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

    /// A frame of `len` bytes, written into `room`.
    pub(super) fn frame(&mut self, mut room: Vec<u8>, len: usize) -> Frame {
        room.clear();
        room.reserve(len.next_multiple_of(8));
        while room.len() < len {
            room.extend_from_slice(&self.draw().to_le_bytes());
        }
        room.truncate(len);
        Frame::from(room)
    }
}
