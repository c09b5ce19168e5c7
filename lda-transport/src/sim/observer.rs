//! Observers see every message and its fate.
//!
//! [`Coverage`](super::Coverage) counts by what endpoints know. An observer sees the body of a
//! message and the program of its receiver, so a test can count by their states. It may also choose
//! the network of a message, so that rare faults meet the messages that the test looks for.

use std::time::Duration;

use super::coverage::Fate;
use super::network::{FrameInFlight, Network};
use super::world::World;
use crate::rpc::{HEAD, Head, MessageKind, Program};
use crate::transport::NodeId;

/// A message that an endpoint has sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message<'a> {
    /// Its sender.
    pub from: NodeId,
    /// Its receiver.
    pub to: NodeId,
    /// Its kind.
    pub kind: MessageKind,
    /// Incarnation of the sender.
    pub sender: u64,
    /// Incarnation of the receiver as known to the sender; 0 if unknown.
    pub receiver: u64,
    /// Number of the request, or of the one that is answered; 0 in other messages.
    pub number: u64,
    /// Body that the program of the sender has written.
    pub body: &'a [u8],
    /// Number of the frame from this sender to this receiver; copies have the same.
    pub serial: u64,
    /// Whether it is the second copy.
    pub copy: bool,
}

impl<'a> Message<'a> {
    /// Returns `None` if the bytes are not a message.
    fn of(from: NodeId, to: NodeId, frame: &'a [u8], serial: u64, copy: bool) -> Option<Self> {
        let (kind, head) = (MessageKind::of(frame)?, Head::read(frame)?);
        let Head { from: sender, to: receiver, id: number, .. } = head;
        let body = &frame[HEAD..];
        Some(Self { from, to, kind, sender, receiver, number, body, serial, copy })
    }

    fn of_frame(in_flight: &'a FrameInFlight) -> Option<Self> {
        let FrameInFlight { from, to, frame, fate, .. } = in_flight;
        Self::of(*from, *to, frame, fate.number, fate.copy)
    }
}

/// Sees every message. A copy counts as a message, and a message that is not taken is sent again.
///
/// `receiver` is the program of the receiver before it gets the message; `None` if the node does
/// not run.
pub trait Observer<P> {
    /// A message is about to be sent. A returned network replaces that of the link for this
    /// message.
    fn sends(&mut self, message: &Message<'_>, receiver: Option<&P>) -> Option<Network> {
        let _ = (message, receiver);
        None
    }

    /// A message is about to arrive, or would have. A returned time delays it by that much.
    fn holds(&mut self, message: &Message<'_>, receiver: Option<&P>) -> Option<Duration> {
        let _ = (message, receiver);
        None
    }

    /// A message arrives, would have arrived, or is not taken. The receiver may be a later
    /// incarnation than the one it was sent to.
    fn passes(&mut self, message: &Message<'_>, fate: Fate, receiver: Option<&P>);

    /// A node is about to crash. The messages in flight to it are lost; [`passes`](Self::passes) is
    /// called for each when it would have arrived.
    fn crashes(&mut self, node: NodeId, incarnation: u64, program: &P) {
        let _ = (node, incarnation, program);
    }
}

impl<P: Program> World<P> {
    /// Reports a frame that is about to be sent.
    pub(super) fn announce(&mut self, from: NodeId, to: NodeId, frame: &[u8]) -> Option<Network> {
        let serial = self.direction(from, to).next();
        let receiver = self.nodes[&to].running.as_ref().map(|running| &running.program);
        let message = Message::of(from, to, frame, serial, false)?;
        self.observer.as_mut()?.sends(&message, receiver)
    }

    /// Reports a frame that is about to arrive. Returns its delay, if any.
    pub(super) fn hold(&mut self, in_flight: &FrameInFlight) -> Option<Duration> {
        let receiver = self.nodes[&in_flight.to].running.as_ref().map(|running| &running.program);
        self.observer.as_mut()?.holds(&Message::of_frame(in_flight)?, receiver)
    }

    /// Reports the fate of a frame.
    pub(super) fn show(&mut self, in_flight: &FrameInFlight, fate: Fate) {
        let receiver = self.nodes[&in_flight.to].running.as_ref().map(|running| &running.program);
        if let Some((observer, message)) = self.observer.as_mut().zip(Message::of_frame(in_flight))
        {
            observer.passes(&message, fate, receiver);
        }
    }

    /// Reports a frame that is not taken.
    pub(super) fn show_full(&mut self, from: NodeId, to: NodeId, frame: &[u8]) {
        let serial = self.direction(from, to).next();
        let receiver = self.nodes[&to].running.as_ref().map(|running| &running.program);
        let message = Message::of(from, to, frame, serial, false);
        if let Some((observer, message)) = self.observer.as_mut().zip(message) {
            observer.passes(&message, Fate::Full, receiver);
        }
    }

    /// Reports a node that is about to crash.
    pub(super) fn announce_crash(&mut self, id: NodeId) {
        let Some(observer) = &mut self.observer else { return };
        let Some(running) = self.nodes.get(&id).and_then(|node| node.running.as_ref()) else {
            return;
        };
        observer.crashes(id, running.endpoint.config().identity.incarnation, &running.program);
    }
}
