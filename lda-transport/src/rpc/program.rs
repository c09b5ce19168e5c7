//! The program of a node: a state machine over an [`Endpoint`], and the context that it acts in.

use std::fmt;
use std::time::Duration;

use super::{Action, Endpoint, MessageBuf, Overloaded, ReplyHandle, RequestId, RequestKind};
use crate::split_mix::SplitMix64;
use crate::time::Time;
use crate::transport::{DisconnectReason, NodeId};

/// The program of one node: a state machine that reacts to the [actions](Action) of its
/// [`Endpoint`].
///
/// A program keeps no clock and no random numbers of its own, and takes both from the [`Context`].
/// The same program therefore runs over any transport, and in a simulation in which a seed fixes
/// everything that happens.
///
/// A crash drops the program without notice. State that must survive a crash has to be stored
/// outside of the program, where the next start can read it.
pub trait Program {
    /// The node has started; no peer has joined yet.
    fn start(&mut self, cx: &mut Context<'_>) {
        let _ = cx;
    }

    /// Handles one action of the endpoint.
    fn act(&mut self, action: Action, cx: &mut Context<'_>);

    /// The transport has connected a peer, which has not joined yet. Called before the endpoint
    /// handles the connection.
    fn connected(&mut self, peer: NodeId, cx: &mut Context<'_>) {
        let _ = (peer, cx);
    }

    /// The transport has lost the connection to a peer, which may never have joined. Called before
    /// the endpoint handles the loss.
    fn disconnected(&mut self, peer: NodeId, reason: &DisconnectReason, cx: &mut Context<'_>) {
        let _ = (peer, reason, cx);
    }

    /// A [timer](Context::set_timer) has expired.
    fn timer(&mut self, timer: u64, cx: &mut Context<'_>) {
        let _ = (timer, cx);
    }
}

impl<P: Program + ?Sized> Program for Box<P> {
    fn start(&mut self, cx: &mut Context<'_>) {
        (**self).start(cx);
    }

    fn act(&mut self, action: Action, cx: &mut Context<'_>) {
        (**self).act(action, cx);
    }

    fn connected(&mut self, peer: NodeId, cx: &mut Context<'_>) {
        (**self).connected(peer, cx);
    }

    fn disconnected(&mut self, peer: NodeId, reason: &DisconnectReason, cx: &mut Context<'_>) {
        (**self).disconnected(peer, reason, cx);
    }

    fn timer(&mut self, timer: u64, cx: &mut Context<'_>) {
        (**self).timer(timer, cx);
    }
}

/// Services that the driver of a [`Program`] provides besides the endpoint.
pub trait Host: fmt::Debug {
    /// Calls [`Program::timer`] once with `timer`, at `at`.
    fn set_timer(&mut self, at: Time, timer: u64);

    /// Records a line of text about the node.
    fn note(&mut self, text: &dyn fmt::Display);
}

/// The environment of a [`Program`] during one call: its endpoint, the time, random numbers and
/// timers.
#[derive(Debug)]
pub struct Context<'a> {
    id: NodeId,
    now: Time,
    endpoint: &'a mut Endpoint,
    rng: &'a mut SplitMix64,
    host: &'a mut dyn Host,
}

impl<'a> Context<'a> {
    /// Creates the context of one call at time `now`.
    pub fn new(
        id: NodeId,
        now: Time,
        endpoint: &'a mut Endpoint,
        rng: &'a mut SplitMix64,
        host: &'a mut dyn Host,
    ) -> Self {
        Self { id, now, endpoint, rng, host }
    }

    /// Returns this node's number.
    pub fn id(&self) -> NodeId {
        self.id
    }

    /// Returns the time of this call.
    pub fn now(&self) -> Time {
        self.now
    }

    /// Returns this node's incarnation.
    pub fn incarnation(&self) -> u64 {
        self.endpoint.config().identity.incarnation
    }

    /// Returns the endpoint, to make and answer requests. The driver sends the frames after the
    /// program returns, and it alone passes events to the endpoint.
    pub fn endpoint(&mut self) -> &mut Endpoint {
        self.endpoint
    }

    /// Returns this node's random number generator. Draws of other nodes do not change it.
    pub fn rng(&mut self) -> &mut SplitMix64 {
        self.rng
    }

    /// Makes a request that ends within `timeout`.
    ///
    /// # Errors
    /// [`Overloaded`].
    pub fn request(
        &mut self,
        peer: NodeId,
        kind: RequestKind,
        message: MessageBuf,
        timeout: Duration,
    ) -> Result<RequestId, Overloaded> {
        self.endpoint.request(peer, kind, message, self.now + timeout)
    }

    /// Answers a request. Returns whether the peer still waited for the reply.
    pub fn reply(&mut self, reply_to: ReplyHandle, message: MessageBuf) -> bool {
        self.endpoint.reply(reply_to, message, self.now)
    }

    /// Rejects a request, which was not done. Returns whether the peer still waited for the reply.
    pub fn reject(&mut self, reply_to: ReplyHandle, message: MessageBuf) -> bool {
        self.endpoint.reject(reply_to, message, self.now)
    }

    /// Ends the session with a peer whose message makes no sense; the peer learns `why`. The
    /// program gets [`Action::Refused`], and requests to the peer end.
    pub fn refuse(&mut self, peer: NodeId, why: String) {
        self.endpoint.refuse(peer, why, self.now);
    }

    /// Calls [`Program::timer`] with `timer` once, after `after`. Timers end with the program and
    /// cannot be cancelled: the program ignores those that it does not need any more.
    pub fn set_timer(&mut self, after: Duration, timer: u64) {
        self.host.set_timer(self.now + after, timer);
    }

    /// Adds a line to the trace, so that a replay that differs is detected.
    pub fn note(&mut self, text: impl fmt::Display) {
        self.host.note(&text);
    }
}
