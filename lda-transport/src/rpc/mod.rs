//! Requests and replies between nodes, over frames: one state machine, without threads, sockets or clocks.
//!
//! An [`Endpoint`] is told what happens and at what [`Time`] ([`Event`]), and says what is to be done
//! ([`Action`], [`transmit`](Endpoint::transmit)). The same code so runs over any
//! [`Transport`](crate::Transport), and in a [simulation](crate::sim) by the thousand.
//!
//! # Requests
//! | | does | done | where the answer is lost |
//! |---|---|---|---|
//! | [`pull`](RequestKind::Pull) | tells | once or more | asked again, of a new incarnation too |
//! | [`push`](RequestKind::Push) | changes | at most once by an incarnation | the first reply again |
//! | [`call`](RequestKind::Call) | changes and tells | at most once by an incarnation | the first reply again |
//!
//! Every request ends, by its deadline at the latest, as [`Outcome`]. An outcome is `Unknown` when the
//! deadline has come, or when the peer is a new [incarnation](Identity::incarnation), which knows nothing of
//! what the one before has done: a push or call that was sent to that one is never sent again.
//!
//! # Peers
//! When a peer is up, both say who they are: version, role, run and a fingerprint of their configuration. Who
//! does not fit is [refused](Action::Refused), with a reason, on both sides. Those that fit have
//! [joined](Action::Joined). When they are lost and come again as the same incarnation, what was underway goes
//! on. A peer that is silent for too long has [left](Action::Left), whatever the transport says.
//!
//! # Bounds
//! A peer keeps to this node's [`Window`]. Its numbers may be four windows ahead of the oldest without an end,
//! or it is refused; at most so many of its requests are being done, of those too that it has given up, and more
//! are rejected; of at most so many the replies are kept. Of this node's own requests at most
//! [`in_flight`](Config::in_flight) bytes are underway to all peers together, and who has waited longest goes
//! first; more wait, at most [`queue`](Config::queue) for a peer, and after that a request is given back as
//! [`Overloaded`] until the peer is [`Ready`](Action::Ready).
//!
//! # Cost
//! 40 bytes a request and a reply. A request is kept, until it has ended, by sharing the frame that is sent;
//! it is copied only to ask a new incarnation what the one before was asked. Frames come back from it when they are
//! [spent](Endpoint::spent). A message of less than a quarter of the room that it was written in is moved into room of
//! its own, so that what is kept, as replies are, takes the memory that it seems to take.

mod action;
mod collective;
mod config;
mod incoming;
mod message_buf;
mod outgoing;
mod peer;
mod program;
mod wire;

use std::collections::{BTreeMap, BTreeSet, VecDeque};

pub use crate::split_mix::SplitMix64;
pub use action::{Action, Event, FailureReason, Outcome, Overloaded, ReplyHandle, RequestId};
pub use collective::{
    BeginError, Collective, CollectiveError, Element, Group, GroupError, OperationId,
};
pub use config::{Config, Identity, Window};
pub use message_buf::MessageBuf;
pub(crate) use peer::Session;
pub use program::{Context, Host, Program};
pub(crate) use wire::{HEAD, Head};
pub use wire::{MessageKind, Refusal, RequestKind};

use crate::frame::Frame;
use crate::time::Time;
use crate::transport::{NodeId, SendError};
use collective::Collectives;
pub(crate) use collective::check;
use peer::Peer;

/// The state machine of one node.
#[derive(Debug)]
pub struct Endpoint {
    config: Config,
    peers: BTreeMap<NodeId, Peer>,
    /// Bytes of requests that are underway.
    in_flight: u64,
    /// For the program.
    actions: VecDeque<Action>,
    /// As peers say them, not yet seen by the operations.
    fresh: VecDeque<Action>,
    collectives: Collectives,
    /// Pieces that are not answered, and whose senders have given up.
    abandoned: Vec<ReplyHandle>,
    /// Whether requests end at once.
    closed: bool,
    /// Those that may have something to send, in turn.
    turn: VecDeque<NodeId>,
    /// Those that had a request, and too much was underway: nobody makes one before the first of them has.
    starved: VecDeque<NodeId>,
    /// When each of them has something to do.
    timers: BTreeSet<(Time, NodeId)>,
    /// Frames that nothing here needs any more.
    spent: Vec<Frame>,
    strays: u64,
}

impl Endpoint {
    /// A node that knows nobody yet.
    ///
    /// # Panics
    /// If the incarnation is 0, or a bound or a time is; if pieces are no multiple of 8 or longer than 1 GiB.
    pub fn new(config: Config) -> Self {
        config.check();
        Self {
            config,
            peers: BTreeMap::new(),
            in_flight: 0,
            actions: VecDeque::new(),
            fresh: VecDeque::new(),
            collectives: Collectives::default(),
            abandoned: Vec::new(),
            closed: false,
            turn: VecDeque::new(),
            starved: VecDeque::new(),
            timers: BTreeSet::new(),
            spent: Vec::new(),
            strays: 0,
        }
    }

    /// Who this node is, and its bounds.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// Takes what has happened.
    pub fn handle(&mut self, event: Event, now: Time) {
        // Who does not want them gets no more of them than one event leaves.
        self.spent.clear();
        match event {
            Event::Up { peer } => self.with(peer, now, |peer, cx| peer.up(cx)),
            Event::Down { peer, reason } => self.with(peer, now, |peer, cx| peer.down(reason, cx)),
            Event::Frame { peer, frame } => self.with(peer, now, |peer, cx| peer.frame(&frame, cx)),
            Event::Writable { peer } => self.with(peer, now, |peer, _| peer.room()),
            Event::Tick => {
                while let Some(&(time, peer)) = self.timers.first().filter(|timer| timer.0 <= now) {
                    self.with(peer, now, |peer, cx| peer.tick(cx));
                    let next = self.peers.get(&peer).map_or(Time::NEVER, |peer| peer.timer);
                    assert!(
                        next > time && next > now,
                        "{peer} has something to do at {next} again"
                    );
                }
                self.collectives.due(now);
            }
        }
        self.sort(now);
    }

    /// What the program is to know or to do.
    pub fn poll(&mut self) -> Option<Action> {
        self.actions.pop_front()
    }

    /// A frame that was sent and is not needed here any more, or room for one: for
    /// [`release`](crate::Transport::release), so that frames are not allocated anew. There are some until the next
    /// [event](Self::handle).
    pub fn spent(&mut self) -> Option<Frame> {
        self.spent.pop()
    }

    /// When to say that time has passed.
    pub fn next_timer(&self) -> Time {
        let peers = self.timers.first().map_or(Time::NEVER, |timer| timer.0);
        peers.min(self.collectives.next_timer())
    }

    /// Something to be sent. Where the transport is full, [give it back](Self::unsent).
    pub fn transmit(&mut self, now: Time) -> Option<(NodeId, Frame)> {
        while let Some(id) = self.turn.pop_front() {
            let mut sent = None;
            self.with(id, now, |peer, cx| {
                peer.in_turn = false;
                sent = peer.transmit(cx);
            });
            if let Some(frame) = sent {
                return Some((id, frame));
            }
        }
        None
    }

    /// Takes back what the transport did not take, before anything else is handled. What it was full for is
    /// sent when there is [room](Event::Writable); a request that is too long for it has ended, as
    /// [`FailureReason::TooLong`].
    pub fn unsent(&mut self, to: NodeId, frame: Frame, error: SendError, now: Time) {
        if self.peers.contains_key(&to) {
            self.with(to, now, |peer, cx| peer.unsent(frame, error, cx));
            self.sort(now);
        }
    }

    /// Asks a peer for something that changes nothing.
    ///
    /// # Errors
    /// [`Overloaded`].
    pub fn pull(
        &mut self,
        peer: NodeId,
        message: MessageBuf,
        deadline: Time,
    ) -> Result<RequestId, Overloaded> {
        self.request(peer, RequestKind::Pull, message, deadline)
    }

    /// Has a peer change something, at most once.
    ///
    /// # Errors
    /// [`Overloaded`].
    pub fn push(
        &mut self,
        peer: NodeId,
        message: MessageBuf,
        deadline: Time,
    ) -> Result<RequestId, Overloaded> {
        self.request(peer, RequestKind::Push, message, deadline)
    }

    /// Has a peer do something and tell what came of it, at most once.
    ///
    /// # Errors
    /// [`Overloaded`].
    pub fn call(
        &mut self,
        peer: NodeId,
        message: MessageBuf,
        deadline: Time,
    ) -> Result<RequestId, Overloaded> {
        self.request(peer, RequestKind::Call, message, deadline)
    }

    /// Makes a request, which waits until the peer has joined.
    ///
    /// # Errors
    /// [`Overloaded`].
    ///
    /// # Panics
    /// If the kind is [`RequestKind::Part`], which endpoints make themselves.
    pub fn request(
        &mut self,
        peer: NodeId,
        kind: RequestKind,
        message: MessageBuf,
        deadline: Time,
    ) -> Result<RequestId, Overloaded> {
        assert!(kind != RequestKind::Part, "pieces of operations are made by `begin`");
        let made = self.add(peer, kind, message, deadline, self.config.queue);
        self.sort(Time::ZERO);
        made
    }

    fn add(
        &mut self,
        peer: NodeId,
        kind: RequestKind,
        message: MessageBuf,
        deadline: Time,
        most: usize,
    ) -> Result<RequestId, Overloaded> {
        let closed = self.closed;
        let mut made = None;
        // A deadline that has passed is seen at the next tick.
        self.with(peer, Time::ZERO, |peer, cx| {
            let added = peer.outgoing.add(kind, message, deadline, most);
            if let Ok(number) = added {
                if closed {
                    peer.give_up(number, FailureReason::Closed, cx);
                } else if peer.is_refused() {
                    peer.give_up(number, FailureReason::Refused, cx);
                }
            }
            made = Some(added);
        });
        match made.expect("it was tried") {
            Ok(number) => Ok(RequestId { peer, number }),
            Err(message) => Err(Overloaded { peer, message }),
        }
    }

    /// Ends a request of this node, if it has no end yet.
    pub fn cancel(&mut self, request: RequestId, now: Time) {
        self.end(request, FailureReason::Cancelled, now);
        self.sort(now);
    }

    /// Ends all requests and operations of this node, and those that are made from now on.
    pub fn close(&mut self, now: Time) {
        self.closed = true;
        self.collectives.close();
        let peers: Vec<NodeId> = self.peers.keys().copied().collect();
        for id in peers {
            self.with(id, now, |peer, cx| peer.abandon(FailureReason::Closed, cx));
        }
        self.sort(now);
    }

    /// Whether this node has nothing to say and nothing open: no request without an end, no reply that is not sent.
    pub fn is_idle(&self) -> bool {
        self.peers.values().all(Peer::is_idle)
    }

    fn end(&mut self, request: RequestId, reason: FailureReason, now: Time) {
        if self.peers.contains_key(&request.peer) {
            self.with(request.peer, now, |peer, cx| peer.give_up(request.number, reason, cx));
        }
    }

    /// Answers a request of a peer. One that nobody waits for any more is forgotten; whether it was waited
    /// for.
    pub fn reply(&mut self, reply_to: ReplyHandle, message: MessageBuf, now: Time) -> bool {
        let awaited = self.answer(reply_to, wire::Status::Done, message, now);
        self.sort(now);
        awaited
    }

    /// Says that a request of a peer was not done.
    pub fn reject(&mut self, reply_to: ReplyHandle, message: MessageBuf, now: Time) -> bool {
        let awaited = self.answer(reply_to, wire::Status::Rejected, message, now);
        self.sort(now);
        awaited
    }

    fn answer(
        &mut self,
        reply_to: ReplyHandle,
        status: wire::Status,
        message: MessageBuf,
        now: Time,
    ) -> bool {
        let mut awaited = false;
        if self.peers.contains_key(&reply_to.peer) {
            self.with(reply_to.peer, now, |peer, cx| {
                awaited = peer.answer(reply_to, status, message, cx)
            });
        }
        awaited
    }

    /// Those that have joined and are not away.
    pub fn joined(&self) -> impl Iterator<Item = NodeId> {
        self.peers.iter().filter(|(_, peer)| peer.is_joined()).map(|(id, _)| *id)
    }

    /// How it stands with a peer.
    pub(crate) fn session(&self, peer: NodeId) -> Session {
        self.peers.get(&peer).map_or(Session::Away, Peer::session)
    }

    /// Bytes of requests that are underway.
    pub fn in_flight(&self) -> u64 {
        self.in_flight
    }

    /// Frames that came at a wrong time, of a wrong incarnation, or for a request that has ended.
    pub fn strays(&self) -> u64 {
        self.strays
    }

    /// Lets a peer do something, and then sees to its timer and to whose turn it is.
    fn with(&mut self, id: NodeId, now: Time, act: impl FnOnce(&mut Peer, &mut PeerContext<'_>)) {
        let peer = self.peers.entry(id).or_insert_with(|| Peer::new(id));
        let before = self.in_flight;
        let mut cx = PeerContext {
            config: &self.config,
            now,
            in_flight: &mut self.in_flight,
            actions: &mut self.fresh,
            abandoned: &mut self.abandoned,
            strays: &mut self.strays,
            waits: self.starved.front().is_some_and(|&first| first != id),
            starved: false,
        };
        act(peer, &mut cx);
        let starved = cx.starved;
        peer.give_spent(&mut self.spent);
        if peer.outgoing.is_ready(self.config.queue) {
            self.fresh.push_back(Action::Ready { peer: id });
        }
        let timer = peer.next_timer(&self.config);
        if timer != peer.timer {
            self.timers.remove(&(peer.timer, id));
            peer.timer = timer;
            if timer < Time::NEVER {
                self.timers.insert((timer, id));
            }
        }
        if starved && !self.starved.contains(&id) {
            self.starved.push_back(id);
        }
        // What it has sent, or has not to send any more, makes way for the next.
        let sent = self.in_flight > before;
        if !starved {
            self.give_turn(id);
            if sent || !self.peers[&id].has_request() {
                self.starved.retain(|&other| other != id);
            }
        }
        if (self.in_flight < before || !starved)
            && let Some(&first) = self.starved.front()
        {
            self.give_turn(first);
        }
    }

    fn give_turn(&mut self, id: NodeId) {
        let peer = self.peers.get_mut(&id).expect("it has acted");
        if peer.may_transmit() && !peer.in_turn {
            peer.in_turn = true;
            self.turn.push_back(id);
        }
    }
}

/// What a peer acts on.
struct PeerContext<'a> {
    config: &'a Config,
    now: Time,
    in_flight: &'a mut u64,
    actions: &'a mut VecDeque<Action>,
    abandoned: &'a mut Vec<ReplyHandle>,
    strays: &'a mut u64,
    /// Whether another has waited longer to make a request.
    waits: bool,
    /// Whether it has a request that it cannot make now.
    starved: bool,
}
