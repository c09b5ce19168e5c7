//! What runs on a node.

use std::fmt;
use std::time::Duration;

use super::event_queue::{EventQueue, SimEvent};
use super::trace::Trace;
use crate::rpc::{Action, Endpoint, MessageBuf, Overloaded, ReplyHandle, RequestId, RequestKind};
use crate::split_mix::SplitMix64;
use crate::time::Time;
use crate::transport::NodeId;

/// The program of one node, over an [`Endpoint`]: a state machine that is told what happens. It keeps no
/// clock and no random numbers of its own, and asks the [`Context`] for both, so that a seed does the same
/// each time.
///
/// A crash drops it without a word. What would be on a disk lies outside, where the
/// [next one](super::World::add) finds it.
pub trait Program {
    /// The node has started. Nobody has been heard of yet.
    fn start(&mut self, cx: &mut Context<'_>) {
        let _ = cx;
    }

    /// What the endpoint says.
    fn act(&mut self, action: Action, cx: &mut Context<'_>);

    /// A [timer](Context::set_timer) has come.
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

    fn timer(&mut self, timer: u64, cx: &mut Context<'_>) {
        (**self).timer(timer, cx);
    }
}

/// A node is about to start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NodeStart {
    /// Which.
    pub id: NodeId,
    /// How many starts of all nodes there have been, with this one: an incarnation that will do.
    pub incarnation: u64,
    /// When.
    pub now: Time,
}

/// What a program can do, while it is told something.
#[derive(Debug)]
pub struct Context<'a> {
    pub(super) id: NodeId,
    pub(super) now: Time,
    /// Which start of a node this is, of all.
    pub(super) life: u64,
    pub(super) endpoint: &'a mut Endpoint,
    pub(super) rng: &'a mut SplitMix64,
    pub(super) events: &'a mut EventQueue,
    pub(super) trace: &'a mut Trace,
}

impl Context<'_> {
    /// This node.
    pub fn id(&self) -> NodeId {
        self.id
    }

    /// The time.
    pub fn now(&self) -> Time {
        self.now
    }

    /// Which start of this node it is.
    pub fn incarnation(&self) -> u64 {
        self.endpoint.config().identity.incarnation
    }

    /// Where requests are made and answered. What is to be sent is sent when the program returns, by the world,
    /// which alone tells the endpoint what happens.
    pub fn endpoint(&mut self) -> &mut Endpoint {
        self.endpoint
    }

    /// This node's random numbers. What others draw does not change them.
    pub fn rng(&mut self) -> &mut SplitMix64 {
        self.rng
    }

    /// Makes a request that ends within `patience`.
    ///
    /// # Errors
    /// [`Overloaded`].
    pub fn request(
        &mut self,
        peer: NodeId,
        kind: RequestKind,
        message: MessageBuf,
        patience: Duration,
    ) -> Result<RequestId, Overloaded> {
        self.endpoint.request(peer, kind, message, self.now + patience)
    }

    /// Answers a request; whether somebody waited for it.
    pub fn reply(&mut self, reply_to: ReplyHandle, message: MessageBuf) -> bool {
        self.endpoint.reply(reply_to, message, self.now)
    }

    /// Says that a request was not done; whether somebody waited for it.
    pub fn reject(&mut self, reply_to: ReplyHandle, message: MessageBuf) -> bool {
        self.endpoint.reject(reply_to, message, self.now)
    }

    /// Has [`Program::timer`] called with `timer` after so long, once. Timers end with the program; one that is
    /// not wanted any more is the program's to ignore.
    pub fn set_timer(&mut self, after: Duration, timer: u64) {
        let (id, life) = (self.id, self.life);
        self.events.add(self.now + after, SimEvent::Timer { id, life, timer });
    }

    /// Writes something into the [trace](super::World::trace), so that a replay that differs is told apart.
    pub fn note(&mut self, text: impl fmt::Display) {
        self.trace.note(self.now, self.id, &text);
    }
}
