//! Messages to send, queued per peer. Peers take turns, message by message.

use std::collections::VecDeque;

use super::wire::{FRAME, NEXT, PIECE_LEN, Small};
use crate::frame::Frame;

/// A message for MPI.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Message {
    pub to: usize,
    pub tag: i32,
    pub bytes: Frame,
}

/// Send queues of all peers.
#[derive(Debug)]
pub(super) struct Outgoing {
    queues: Vec<Queue>,
    /// Peers with a message, each once, in the order of their turns.
    turns: VecDeque<usize>,
}

#[derive(Debug, Default)]
struct Queue {
    /// Control messages, which are sent first: a grant queued behind frames would delay the frames
    /// of the peer.
    small: VecDeque<Small>,
    frames: VecDeque<Frame>,
    /// Bytes of the first frame that have been sent, once its start has been sent.
    sent: Option<usize>,
}

impl Queue {
    fn is_empty(&self) -> bool {
        self.small.is_empty() && self.frames.is_empty()
    }

    fn next(&mut self) -> Option<(i32, Frame)> {
        if let Some(small) = self.small.pop_front() {
            let (tag, bytes) = small.encode();
            return Some((tag, Frame::from(bytes)));
        }
        let frame = self.frames.front()?;
        match self.sent {
            None if frame.len() <= PIECE_LEN => Some((FRAME, self.frames.pop_front()?)),
            None => {
                self.sent = Some(0);
                let (tag, bytes) = Small::Start { len: frame.len() as u64 }.encode();
                Some((tag, Frame::from(bytes)))
            }
            Some(from) => {
                let to = frame.len().min(from + PIECE_LEN);
                let piece = frame.slice(from..to);
                self.sent = (to < frame.len()).then_some(to);
                if self.sent.is_none() {
                    self.frames.pop_front();
                }
                Some((NEXT, piece))
            }
        }
    }
}

impl Outgoing {
    pub fn new(ranks: usize) -> Self {
        Self { queues: (0..ranks).map(|_| Queue::default()).collect(), turns: VecDeque::new() }
    }

    pub fn frame(&mut self, to: usize, frame: Frame) {
        self.add_turn(to);
        self.queues[to].frames.push_back(frame);
    }

    pub fn small(&mut self, to: usize, small: Small) {
        self.add_turn(to);
        self.queues[to].small.push_back(small);
    }

    /// Gives a peer a turn if its queue is empty. Called before a message is added.
    fn add_turn(&mut self, to: usize) {
        if self.queues[to].is_empty() {
            self.turns.push_back(to);
        }
    }

    pub fn next(&mut self) -> Option<Message> {
        let to = self.turns.pop_front()?;
        let queue = &mut self.queues[to];
        let (tag, bytes) = queue.next().expect("a peer with a turn has a message");
        if !queue.is_empty() {
            self.turns.push_back(to);
        }
        Some(Message { to, tag, bytes })
    }

    pub fn is_empty(&self) -> bool {
        self.turns.is_empty()
    }

    /// Drops the frames that have not been sent. Control messages stay.
    pub fn drop_frames(&mut self) {
        for queue in &mut self.queues {
            queue.frames.clear();
            queue.sent = None;
        }
        self.turns.retain(|&to| !self.queues[to].is_empty());
    }
}

#[cfg(test)]
mod tests {
    use super::super::link::Credit;
    use super::super::wire::{GRANT, START};
    use super::*;

    #[test]
    fn peers_take_turns_and_long_frames_go_in_pieces() {
        let mut outgoing = Outgoing::new(3);
        outgoing.frame(1, Frame::from(vec![1; 2 * PIECE_LEN + 5]));
        outgoing.frame(1, Frame::new());
        outgoing.frame(2, Frame::from(vec![2; PIECE_LEN]));
        outgoing.small(1, Small::Grant(Credit::default()));
        let order = std::iter::from_fn(|| outgoing.next());
        let order: Vec<_> = order.map(|it| (it.to, it.tag, it.bytes.len())).collect();
        assert_eq!(
            order,
            [
                (1, GRANT, 16),
                (2, FRAME, PIECE_LEN),
                (1, START, 8),
                (1, NEXT, PIECE_LEN),
                (1, NEXT, PIECE_LEN),
                (1, NEXT, 5),
                (1, FRAME, 0)
            ]
        );
        assert!(outgoing.is_empty());
    }

    #[test]
    fn dropped_frames_are_not_sent() {
        let mut outgoing = Outgoing::new(2);
        outgoing.frame(0, Frame::from(vec![1; 2 * PIECE_LEN]));
        outgoing.frame(1, Frame::new());
        outgoing.next();
        outgoing.small(1, Small::Close);
        outgoing.drop_frames();
        let last = outgoing.next().unwrap();
        assert_eq!((last.to, last.bytes.len(), outgoing.next()), (1, 0, None));
    }
}
