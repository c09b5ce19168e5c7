//! Requests of one incarnation of a peer to this node.
//!
//! The reply to an executed push or call is remembered until the floor of the peer shows that the
//! peer has received it; a copy of the request that arrives meanwhile gets the same reply. Pulls
//! are not remembered, since they may be executed again.

use std::collections::{BTreeMap, BTreeSet};

use super::Window;
use super::outgoing::SPAN;
use super::wire::RequestKind;
use crate::frame::Frame;

#[derive(Debug, Default)]
pub(super) struct Incoming {
    /// Lowest number that has no outcome at the peer.
    floor: u64,
    /// State of the requests from `floor` on, by number; at most the window times [`SPAN`].
    requests: BTreeMap<u64, State>,
    /// Running requests for which the peer does not wait any more.
    abandoned: BTreeSet<u64>,
    running: usize,
    /// Frames of replies that cannot be requested again, and buffers.
    pub spent: Vec<Frame>,
}

#[derive(Debug)]
enum State {
    Running(RequestKind),
    Replied(Frame),
}

/// Decision on a request that has arrived.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Admission {
    /// It is new and has to be executed.
    New,
    /// It was executed, with this reply.
    Replied(Frame),
    /// It is running, or has ended for the peer: nothing to do.
    Known,
    /// Too many requests are running, including some that the peer has abandoned. It is not
    /// executed, and its [rejection](Incoming::reject) is also the reply to its copies.
    Overloaded,
    /// The peer exceeds its window.
    Beyond,
}

impl Incoming {
    /// Decides on a request that has arrived. Calls `abandoned_part` for each running part of a
    /// collective operation for which the peer does not wait any more.
    pub fn admit(
        &mut self,
        kind: RequestKind,
        id: u64,
        floor: u64,
        window: Window,
        mut abandoned_part: impl FnMut(u64),
    ) -> Admission {
        if floor > self.floor {
            self.floor = floor;
            let kept = self.requests.split_off(&floor);
            for (id, state) in std::mem::replace(&mut self.requests, kept) {
                match state {
                    State::Running(kind) => {
                        self.abandoned.insert(id);
                        if kind == RequestKind::Part {
                            abandoned_part(id);
                        }
                    }
                    State::Replied(frame) => self.spent.push(frame),
                }
            }
        }
        if id < self.floor {
            return Admission::Known;
        }
        match self.requests.get(&id) {
            Some(State::Running(_)) => return Admission::Known,
            Some(State::Replied(frame)) => return Admission::Replied(frame.clone()),
            None => {}
        }
        let most = u64::from(window.requests) * SPAN;
        if id - self.floor >= most {
            return Admission::Beyond;
        }
        if self.running as u64 >= most {
            return Admission::Overloaded;
        }
        self.requests.insert(id, State::Running(kind));
        self.running += 1;
        Admission::New
    }

    pub fn is_running(&self) -> bool {
        self.running > 0
    }

    /// Records the reply to a request that is not executed because too many are running.
    pub fn reject(&mut self, kind: RequestKind, id: u64, frame: &Frame) {
        // INVARIANT: a copy that arrives later must not be executed, as the peer has received a
        // rejection.
        if kind != RequestKind::Pull {
            self.requests.insert(id, State::Replied(frame.clone()));
        }
    }

    /// Records a reply. Returns whether the peer still waits for it.
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
    fn abandoned_requests_run_on_and_count() {
        let mut incoming = Incoming::default();
        // Each is abandoned before it is answered: the floor follows.
        let admit =
            |incoming: &mut Incoming, id| incoming.admit(RequestKind::Pull, id, id, WINDOW, |_| {});
        for id in 0..8 {
            assert_eq!(admit(&mut incoming, id), Admission::New);
        }
        assert_eq!(admit(&mut incoming, 8), Admission::Overloaded);
        assert!(!incoming.reply(3, &Frame::new()), "the peer does not wait for it");
        assert_eq!(admit(&mut incoming, 9), Admission::New);
        assert_eq!(admit(&mut incoming, 10), Admission::Overloaded);
    }

    #[test]
    fn a_request_rejected_by_overload_is_not_executed_later() {
        let no = Frame::from(vec![1]);
        for (kind, expected) in [
            (RequestKind::Push, Admission::Replied(no.clone())),
            (RequestKind::Call, Admission::Replied(no.clone())),
            (RequestKind::Pull, Admission::New),
        ] {
            let mut incoming = Incoming::default();
            for id in 0..8 {
                assert_eq!(
                    incoming.admit(RequestKind::Call, id, id, WINDOW, |_| {}),
                    Admission::New
                );
            }
            assert_eq!(incoming.admit(kind, 8, 8, WINDOW, |_| {}), Admission::Overloaded);
            incoming.reject(kind, 8, &no);
            incoming.reply(0, &Frame::new());
            assert_eq!(incoming.admit(kind, 8, 8, WINDOW, |_| {}), expected);
        }
    }

    #[test]
    fn pushes_and_calls_are_executed_once() {
        let mut incoming = Incoming::default();
        let mut admit = |kind, id, floor| incoming.admit(kind, id, floor, WINDOW, |_| {});
        assert_eq!(admit(RequestKind::Push, 5, 5), Admission::New);
        assert_eq!(admit(RequestKind::Push, 5, 5), Admission::Known);
        assert_eq!(admit(RequestKind::Pull, 6, 5), Admission::New);
        assert_eq!(admit(RequestKind::Call, 12, 5), Admission::New);
        assert_eq!(admit(RequestKind::Call, 13, 5), Admission::Beyond);
        let reply = Frame::from(vec![1]);
        assert!(incoming.reply(5, &reply) && incoming.reply(6, &reply));
        assert!(!incoming.reply(5, &reply) && !incoming.reply(99, &reply));
        let mut admit = |kind, id, floor| incoming.admit(kind, id, floor, WINDOW, |_| {});
        assert_eq!(admit(RequestKind::Push, 5, 5), Admission::Replied(reply.clone()));
        assert_eq!(admit(RequestKind::Pull, 6, 5), Admission::New, "a pull may be executed again");
        assert_eq!(admit(RequestKind::Call, 13, 6), Admission::New);
        assert_eq!(admit(RequestKind::Push, 5, 5), Admission::Known, "a copy that comes late");
        assert!(incoming.reply(12, &reply));
        assert_eq!(incoming.spent, [reply], "the peer has received it");
    }
}
