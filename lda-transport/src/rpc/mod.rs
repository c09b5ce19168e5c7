//! Requests and replies between nodes, over frames: a state machine without threads, sockets or
//! clocks.
//!
//! An [`Endpoint`] takes [`Event`]s, each with the [`Time`], and returns [`Action`]s for the
//! program and frames to [`transmit`](Endpoint::transmit). A [`Program`] is the state machine of
//! the node above it. A [`Driver`] runs both over a [`Transport`](crate::Transport) in real time;
//! the simulator `sim` (feature `sim`) runs thousands of them in simulated time.
//!
//! # Requests
//! | kind | purpose | executed | if the reply is lost |
//! |---|---|---|---|
//! | [`pull`](RequestKind::Pull) | reads | once or more | sent again, also to a new incarnation |
//! | [`push`](RequestKind::Push) | writes | at most once per incarnation | the first reply is sent again |
//! | [`call`](RequestKind::Call) | writes, with a result | at most once per incarnation | the first reply is sent again |
//!
//! Every request ends with an [`Outcome`], by its deadline at the latest. The outcome is `Unknown`
//! if the deadline has passed, or if the peer is a new [incarnation](Identity::incarnation), which
//! does not know the requests that the last one has executed. A push or call that was sent to an
//! incarnation is never sent to another one.
//!
//! # Peers
//! When a peer is connected, both sides send a greeting: version, role, run and a fingerprint of
//! the configuration. An incompatible peer is [refused](Action::Refused) by both sides, with a
//! reason. A compatible one has [joined](Action::Joined). If the connection is lost and the same
//! incarnation returns, its open requests continue. A peer that sends nothing for too long has
//! [left](Action::Left), whatever the transport reports.
//!
//! # Bounds
//! A peer keeps to the [`Window`] of this node. Its request numbers may exceed the oldest one
//! without an outcome by four windows; beyond that it is refused. At most as many of its requests
//! run at a time, including those that it has abandoned, and further ones are rejected. At most as
//! many replies are remembered. Requests of this node to all peers have at most
//! [`in_flight`](Config::in_flight) bytes in flight; the peer that has waited longest goes first.
//! Up to [`queue`](Config::queue) requests wait for each peer; a further one returns
//! [`Overloaded`], and [`Ready`](Action::Ready) follows when there is space.
//!
//! # Cost
//! Requests and replies have a header of 40 bytes. An open request shares the frame that was sent;
//! it is copied only to send a pull to a new incarnation. Frames that are not needed any more are
//! returned by [`spent`](Endpoint::spent). A message that is shorter than a quarter of its buffer
//! is moved to a buffer of its own, so that remembered replies take no more memory than their
//! length.

mod action;
#[cfg(feature = "collectives")]
mod collective;
#[cfg(not(feature = "collectives"))]
#[path = "no_collectives.rs"]
mod collective;
mod config;
mod driver;
mod incoming;
mod message_buf;
mod outgoing;
mod peer;
mod program;
mod wire;

use std::collections::{BTreeMap, BTreeSet, VecDeque};

pub use crate::split_mix::SplitMix64;
pub use action::{Action, Event, FailureReason, Outcome, Overloaded, ReplyHandle, RequestId};
#[cfg(feature = "collectives")]
pub use collective::{
    BeginError, Collective, CollectiveError, Element, Group, GroupError, OperationId,
};
pub use config::{Config, Identity, Window};
pub use driver::Driver;
pub use message_buf::MessageBuf;
#[cfg(feature = "sim")]
pub(crate) use peer::Session;
pub use program::{Context, Host, Program};
#[cfg(feature = "sim")]
pub(crate) use wire::{HEAD, Head};
pub use wire::{MessageKind, Refusal, RequestKind};

use crate::frame::Frame;
use crate::time::Time;
use crate::transport::{NodeId, SendError};
use collective::Collectives;
use peer::Peer;

/// State machine of one node: its peers, requests and replies.
#[derive(Debug)]
pub struct Endpoint {
    config: Config,
    peers: BTreeMap<NodeId, Peer>,
    /// Bytes of requests in flight to all peers.
    in_flight: u64,
    /// Actions for the program.
    actions: VecDeque<Action>,
    /// Actions of peers that have not been passed to the collective operations yet.
    fresh: VecDeque<Action>,
    collectives: Collectives,
    /// Parts of operations that are not answered, and for which the sender does not wait any more.
    abandoned: Vec<ReplyHandle>,
    /// Whether the endpoint is closed, so that requests end at once.
    closed: bool,
    /// Peers that may have something to send, in the order of their turns.
    turns: VecDeque<NodeId>,
    /// Peers whose next request exceeded [`Config::in_flight`], longest wait first.
    //
    // INVARIANT: while the first of them waits, no other peer sends a request. Otherwise short
    // requests would pass a long one forever.
    starved: VecDeque<NodeId>,
    /// Next timer of each peer that has one.
    timers: BTreeSet<(Time, NodeId)>,
    /// Frames that are not needed any more.
    spent: Vec<Frame>,
    strays: u64,
}

impl Endpoint {
    /// Creates an endpoint without peers.
    ///
    /// # Panics
    /// If the incarnation, a limit or a time is 0, or the length of parts is invalid.
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
            turns: VecDeque::new(),
            starved: VecDeque::new(),
            timers: BTreeSet::new(),
            spent: Vec::new(),
            strays: 0,
        }
    }

    /// Returns the identity and limits of this node.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// Handles an event.
    pub fn handle(&mut self, event: Event, now: Time) {
        // Dropped if the driver has not taken them, so that they do not pile up.
        self.spent.clear();
        match event {
            Event::Up { peer } => self.with(peer, now, |peer, cx| peer.up(cx)),
            Event::Down { peer, reason } => self.with(peer, now, |peer, cx| peer.down(reason, cx)),
            Event::Frame { peer, frame } => self.with(peer, now, |peer, cx| peer.frame(&frame, cx)),
            Event::Writable { peer } => self.with(peer, now, |peer, _| peer.writable()),
            Event::Tick => {
                while let Some(&(time, peer)) = self.timers.first().filter(|timer| timer.0 <= now) {
                    self.with(peer, now, |peer, cx| peer.tick(cx));
                    let next = self.peers.get(&peer).map_or(Time::NEVER, |peer| peer.timer);
                    assert!(
                        next > time && next > now,
                        "the timer of {peer} is still at {next} after it has expired"
                    );
                }
                self.collectives.due(now);
            }
        }
        self.sort(now);
    }

    /// Returns the next action for the program.
    pub fn poll(&mut self) -> Option<Action> {
        self.actions.pop_front()
    }

    /// Returns a frame that is not needed any more, for [`release`](crate::Transport::release), so
    /// that its buffer is reused. The next [event](Self::handle) drops those that are left.
    pub fn spent(&mut self) -> Option<Frame> {
        self.spent.pop()
    }

    /// Returns the time at which the next [`Event::Tick`] is due.
    pub fn next_timer(&self) -> Time {
        let peers = self.timers.first().map_or(Time::NEVER, |timer| timer.0);
        peers.min(self.collectives.next_timer())
    }

    /// Returns the next frame to send. If the transport does not take it, pass it to
    /// [`unsent`](Self::unsent).
    pub fn transmit(&mut self, now: Time) -> Option<(NodeId, Frame)> {
        while let Some(id) = self.turns.pop_front() {
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

    /// Takes back a frame that the transport did not take. Must be called before anything else is
    /// handled. If the transport was full, the frame is sent when it is
    /// [writable](Event::Writable). A request that is too long ends as [`FailureReason::TooLong`].
    pub fn unsent(&mut self, to: NodeId, frame: Frame, error: SendError, now: Time) {
        if self.peers.contains_key(&to) {
            self.with(to, now, |peer, cx| peer.unsent(frame, error, cx));
            self.sort(now);
        }
    }

    /// Makes a request of kind [`RequestKind::Pull`].
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

    /// Makes a request of kind [`RequestKind::Push`].
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

    /// Makes a request of kind [`RequestKind::Call`].
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

    /// Makes a request. It waits until the peer has joined.
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
        assert!(kind != RequestKind::Part, "parts of operations are made by `begin`");
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
        // A deadline that has passed ends the request at the next tick.
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
        match made.expect("the closure sets it") {
            Ok(number) => Ok(RequestId { peer, number }),
            Err(message) => Err(Overloaded { peer, message }),
        }
    }

    /// Ends a request of this node as [`FailureReason::Cancelled`], unless it has ended.
    pub fn cancel(&mut self, request: RequestId, now: Time) {
        self.end(request, FailureReason::Cancelled, now);
        self.sort(now);
    }

    /// Ends all requests and operations of this node, and all that are made from now on.
    pub fn close(&mut self, now: Time) {
        self.closed = true;
        self.collectives.close();
        let peers: Vec<NodeId> = self.peers.keys().copied().collect();
        for id in peers {
            self.with(id, now, |peer, cx| peer.abandon(FailureReason::Closed, cx));
        }
        self.sort(now);
    }

    /// Whether no request is open and no reply has to be sent.
    pub fn is_idle(&self) -> bool {
        self.peers.values().all(Peer::is_idle)
    }

    fn end(&mut self, request: RequestId, reason: FailureReason, now: Time) {
        if self.peers.contains_key(&request.peer) {
            self.with(request.peer, now, |peer, cx| peer.give_up(request.number, reason, cx));
        }
    }

    /// Answers a request. Returns whether the peer still waits for the reply.
    pub fn reply(&mut self, reply_to: ReplyHandle, message: MessageBuf, now: Time) -> bool {
        let awaited = self.answer(reply_to, wire::Status::Done, message, now);
        self.sort(now);
        awaited
    }

    /// Rejects a request, which was not executed. Returns whether the peer still waits for the
    /// reply.
    pub fn reject(&mut self, reply_to: ReplyHandle, message: MessageBuf, now: Time) -> bool {
        let awaited = self.answer(reply_to, wire::Status::Rejected, message, now);
        self.sort(now);
        awaited
    }

    /// Ends the session with a peer whose message makes no sense to the program, as with one that
    /// violates the protocol: requests to it end, and the peer learns the reason. The next incarnation
    /// of the peer may join.
    pub fn refuse(&mut self, peer: NodeId, why: String, now: Time) {
        self.with(peer, now, |peer, cx| peer.refuse_message(why, cx));
        self.sort(now);
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

    /// Returns the peers that have joined and not left.
    pub fn joined(&self) -> impl Iterator<Item = NodeId> {
        self.peers.iter().filter(|(_, peer)| peer.is_joined()).map(|(id, _)| *id)
    }

    /// Returns the state of the session with a peer.
    #[cfg(feature = "sim")]
    pub(crate) fn session(&self, peer: NodeId) -> Session {
        self.peers.get(&peer).map_or(Session::Away, Peer::session)
    }

    /// Returns the bytes of requests in flight.
    pub fn in_flight(&self) -> u64 {
        self.in_flight
    }

    /// Returns the number of frames that arrived at a wrong time, from a wrong incarnation, or for
    /// a request that has ended.
    pub fn strays(&self) -> u64 {
        self.strays
    }

    /// Calls `act` for a peer, then updates its timer and its place in the queues of peers that may
    /// send.
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
        // A peer that has sent its request, or has none any more, leaves the queue of waiting
        // peers.
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
        let peer = self.peers.get_mut(&id).expect("`with` has added it");
        if peer.may_transmit() && !peer.in_turn {
            peer.in_turn = true;
            self.turns.push_back(id);
        }
    }
}

/// State of the endpoint that a peer uses.
struct PeerContext<'a> {
    config: &'a Config,
    now: Time,
    in_flight: &'a mut u64,
    actions: &'a mut VecDeque<Action>,
    abandoned: &'a mut Vec<ReplyHandle>,
    strays: &'a mut u64,
    /// Whether another peer has waited longer to send a request.
    waits: bool,
    /// Set if the peer has a request that exceeds [`Config::in_flight`] now.
    starved: bool,
}
