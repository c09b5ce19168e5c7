//! Requests of one incarnation of a peer to this node.
//!
//! What was done once is remembered with its reply until the peer says, by its floor, that it has heard it;
//! a copy of the request that comes meanwhile gets the same reply. A pull is not remembered: done again, it
//! tells no worse.

use std::collections::{BTreeMap, BTreeSet};

use super::Window;
use super::outgoing::SPAN;
use super::wire::RequestKind;
use crate::frame::Frame;

#[derive(Debug, Default)]
pub(super) struct Incoming {
    /// Numbers below have ended for the peer.
    floor: u64,
    /// Fewer than the window times its span.
    requests: BTreeMap<u64, State>,
    /// Running, though the peer does not wait for them any more.
    abandoned: BTreeSet<u64>,
    running: usize,
    /// Replies that nobody can ask for any more, and room of others.
    pub spent: Vec<Frame>,
}

#[derive(Debug)]
enum State {
    Running(RequestKind),
    Replied(Frame),
}

/// What a request comes to.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Taken {
    /// It is new: do it.
    New,
    /// It was done: this was the reply.
    Replied(Frame),
    /// It is being done, or has ended for the peer.
    Known,
    /// Too much is running already, of which the peer has given up a part: it is not done, and what is
    /// [said](Incoming::reject) of it is the reply to its copies too.
    Overloaded,
    /// The peer goes beyond its window.
    Beyond,
}

impl Incoming {
    /// Takes a request. Pieces of operations that are being done, and that the peer does not wait for any more, are
    /// told to `parts`.
    pub fn take(
        &mut self,
        kind: RequestKind,
        id: u64,
        floor: u64,
        window: Window,
        mut parts: impl FnMut(u64),
    ) -> Taken {
        if floor > self.floor {
            self.floor = floor;
            let kept = self.requests.split_off(&floor);
            for (id, state) in std::mem::replace(&mut self.requests, kept) {
                match state {
                    State::Running(kind) => {
                        self.abandoned.insert(id);
                        if kind == RequestKind::Part {
                            parts(id);
                        }
                    }
                    State::Replied(frame) => self.spent.push(frame),
                }
            }
        }
        if id < self.floor {
            return Taken::Known;
        }
        match self.requests.get(&id) {
            Some(State::Running(_)) => return Taken::Known,
            Some(State::Replied(frame)) => return Taken::Replied(frame.clone()),
            None => {}
        }
        let most = u64::from(window.requests) * SPAN;
        if id - self.floor >= most {
            return Taken::Beyond;
        }
        if self.running as u64 >= most {
            return Taken::Overloaded;
        }
        self.requests.insert(id, State::Running(kind));
        self.running += 1;
        Taken::New
    }

    pub fn is_running(&self) -> bool {
        self.running > 0
    }

    /// Notes the reply to what is not done for want of room.
    pub fn reject(&mut self, kind: RequestKind, id: u64, frame: &Frame) {
        // A copy would be done when there is room, and the peer would have heard that it was not.
        if kind != RequestKind::Pull {
            self.requests.insert(id, State::Replied(frame.clone()));
        }
    }

    /// Notes a reply; whether the request is still waited for.
    pub fn reply(&mut self, id: u64, frame: &Frame) -> bool {
        if self.abandoned.remove(&id) {
            self.running -= 1;
            return false;
        }
        let Some(state @ State::Running(_)) = self.requests.get_mut(&id) else { return false };
        self.running -= 1;
        if matches!(state, State::Running(RequestKind::Pull)) {
            self.requests.remove(&id);
        } else {
            *state = State::Replied(frame.clone());
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WINDOW: Window = Window { requests: 2, bytes: 1 };

    #[test]
    fn what_is_given_up_runs_on_and_counts() {
        let mut incoming = Incoming::default();
        // Each is given up before it is answered: the floor follows.
        let taken =
            |incoming: &mut Incoming, id| incoming.take(RequestKind::Pull, id, id, WINDOW, |_| {});
        for id in 0..8 {
            assert_eq!(taken(&mut incoming, id), Taken::New);
        }
        assert_eq!(taken(&mut incoming, 8), Taken::Overloaded);
        assert!(!incoming.reply(3, &Frame::new()), "nobody waits for it");
        assert_eq!(taken(&mut incoming, 9), Taken::New);
        assert_eq!(taken(&mut incoming, 10), Taken::Overloaded);
    }

    #[test]
    fn what_was_rejected_for_want_of_room_is_not_done_later() {
        let no = Frame::from(vec![1]);
        for (kind, expected) in [
            (RequestKind::Push, Taken::Replied(no.clone())),
            (RequestKind::Call, Taken::Replied(no.clone())),
            (RequestKind::Pull, Taken::New),
        ] {
            let mut incoming = Incoming::default();
            for id in 0..8 {
                assert_eq!(incoming.take(RequestKind::Call, id, id, WINDOW, |_| {}), Taken::New);
            }
            assert_eq!(incoming.take(kind, 8, 8, WINDOW, |_| {}), Taken::Overloaded);
            incoming.reject(kind, 8, &no);
            incoming.reply(0, &Frame::new());
            assert_eq!(incoming.take(kind, 8, 8, WINDOW, |_| {}), expected);
        }
    }

    #[test]
    fn what_changes_something_is_done_once() {
        let mut incoming = Incoming::default();
        let mut take = |kind, id, floor| incoming.take(kind, id, floor, WINDOW, |_| {});
        assert_eq!(take(RequestKind::Push, 5, 5), Taken::New);
        assert_eq!(take(RequestKind::Push, 5, 5), Taken::Known);
        assert_eq!(take(RequestKind::Pull, 6, 5), Taken::New);
        assert_eq!(take(RequestKind::Call, 12, 5), Taken::New);
        assert_eq!(take(RequestKind::Call, 13, 5), Taken::Beyond);
        let reply = Frame::from(vec![1]);
        assert!(incoming.reply(5, &reply) && incoming.reply(6, &reply));
        assert!(!incoming.reply(5, &reply) && !incoming.reply(99, &reply));
        let mut take = |kind, id, floor| incoming.take(kind, id, floor, WINDOW, |_| {});
        assert_eq!(take(RequestKind::Push, 5, 5), Taken::Replied(reply.clone()));
        assert_eq!(take(RequestKind::Pull, 6, 5), Taken::New, "asked again, it is told again");
        assert_eq!(take(RequestKind::Call, 13, 6), Taken::New);
        assert_eq!(take(RequestKind::Push, 5, 5), Taken::Known, "a copy that comes late");
        assert!(incoming.reply(12, &reply));
        assert_eq!(incoming.spent, [reply], "the peer has heard it");
    }
}
