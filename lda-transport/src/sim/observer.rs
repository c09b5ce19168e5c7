//! One who sees every message, and what becomes of it.
//!
//! [`Coverage`](super::Coverage) counts by what endpoints know of messages and of each other. What a message is to a
//! program, and how it stands with that one, a test can tell that is shown both. It may also have messages go by a
//! network that it chooses, so that what is rare befalls those for which it looks.

use std::time::Duration;

use super::coverage::Fate;
use super::network::{FrameInFlight, Network};
use super::world::World;
use crate::rpc::{HEAD, Head, MessageKind, Program};
use crate::transport::NodeId;

/// A message of an endpoint, as it was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message<'a> {
    /// Who has sent it.
    pub from: NodeId,
    /// To whom.
    pub to: NodeId,
    /// What it is.
    pub kind: MessageKind,
    /// The sender's incarnation.
    pub sender: u64,
    /// That of the receiver, as its sender knows it; 0 where it does not.
    pub receiver: u64,
    /// Of a request, or of that which is answered: of all requests of an incarnation to a peer. Of others 0.
    pub number: u64,
    /// What the sender's program has written.
    pub body: &'a [u8],
    /// Which of all frames from the one to the other it is, on the network; copies have the same.
    pub serial: u64,
    /// Whether it is the second copy.
    pub copy: bool,
}

impl<'a> Message<'a> {
    /// None where the bytes are no message.
    fn of(from: NodeId, to: NodeId, frame: &'a [u8], serial: u64, copy: bool) -> Option<Self> {
        let (kind, head) = (MessageKind::of(frame)?, Head::read(frame)?);
        let Head { from: sender, to: receiver, id: number, .. } = head;
        let body = &frame[HEAD..];
        Some(Self { from, to, kind, sender, receiver, number, body, serial, copy })
    }

    fn underway(transit: &'a FrameInFlight) -> Option<Self> {
        let FrameInFlight { from, to, frame, course, .. } = transit;
        Self::of(*from, *to, frame, course.number, course.copy)
    }
}

/// One who sees every message. A copy is a message too, and one that is not taken is sent again.
///
/// Programs are shown as they are before they hear of it; none where the node does not run.
pub trait Observer<P> {
    /// A message is about to be sent. Where a network is given, chances, latency and room are those of that one, for
    /// this message alone.
    fn sends(&mut self, message: &Message<'_>, receiver: Option<&P>) -> Option<Network> {
        let _ = (message, receiver);
        None
    }

    /// A message is about to arrive, or would have. Where a time is given, that is how much longer it takes.
    fn holds(&mut self, message: &Message<'_>, receiver: Option<&P>) -> Option<Duration> {
        let _ = (message, receiver);
        None
    }

    /// A message arrives, or would have, or is not taken. Who runs now may be another than the one for whom it was.
    fn passes(&mut self, message: &Message<'_>, fate: Fate, receiver: Option<&P>);

    /// A node is about to crash: with it goes what is underway to it, which is [shown](Self::passes) when it would have
    /// arrived.
    fn crashes(&mut self, node: NodeId, incarnation: u64, program: &P) {
        let _ = (node, incarnation, program);
    }
}

impl<P: Program> World<P> {
    /// Shows a frame that is about to be sent.
    pub(super) fn announce(&mut self, from: NodeId, to: NodeId, frame: &[u8]) -> Option<Network> {
        let serial = self.way(from, to).next();
        let receiver = self.nodes[&to].life.as_ref().map(|life| &life.program);
        let message = Message::of(from, to, frame, serial, false)?;
        self.observer.as_mut()?.sends(&message, receiver)
    }

    /// Shows one that is about to arrive: how much longer it takes.
    pub(super) fn hold(&mut self, transit: &FrameInFlight) -> Option<Duration> {
        let receiver = self.nodes[&transit.to].life.as_ref().map(|life| &life.program);
        self.observer.as_mut()?.holds(&Message::underway(transit)?, receiver)
    }

    /// Shows what became of one.
    pub(super) fn show(&mut self, transit: &FrameInFlight, fate: Fate) {
        let receiver = self.nodes[&transit.to].life.as_ref().map(|life| &life.program);
        if let Some((observer, message)) = self.observer.as_mut().zip(Message::underway(transit)) {
            observer.passes(&message, fate, receiver);
        }
    }

    /// Shows one that is not taken.
    pub(super) fn show_full(&mut self, from: NodeId, to: NodeId, frame: &[u8]) {
        let serial = self.way(from, to).next();
        let receiver = self.nodes[&to].life.as_ref().map(|life| &life.program);
        let message = Message::of(from, to, frame, serial, false);
        if let Some((observer, message)) = self.observer.as_mut().zip(message) {
            observer.passes(&message, Fate::Full, receiver);
        }
    }

    /// Shows a node that is about to crash.
    pub(super) fn announce_crash(&mut self, id: NodeId) {
        let Some(observer) = &mut self.observer else { return };
        let Some(life) = self.nodes.get(&id).and_then(|node| node.life.as_ref()) else { return };
        observer.crashes(id, life.endpoint.config().identity.incarnation, &life.program);
    }
}
