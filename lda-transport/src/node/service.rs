//! What a node's program does when peers ask.

use std::fmt;
use std::sync::Arc;

use super::{Command, Handle, Shared};
use crate::endpoint::{Draft, Kind, Left, Refusal, Ticket};
use crate::frame::Frame;
use crate::transport::NodeId;

/// A program that peers ask. It is called on the thread of the node, which does nothing else meanwhile: what takes
/// longer than a message goes to a pool, with the [`Asked`], which may be answered from anywhere.
///
/// A closure that takes an [`Asked`] is one.
pub trait Service: Send + 'static {
    /// The node has started; with the handle the program can make requests of its own.
    fn started(&mut self, node: &Handle) {
        let _ = node;
    }

    /// A peer asks.
    fn asked(&mut self, asked: Asked);

    /// A peer fits, and takes requests. [`Action::Joined`](crate::endpoint::Action::Joined) says what the numbers are.
    fn joined(&mut self, peer: NodeId, role: u8, incarnation: u64, reborn: bool) {
        let _ = (peer, role, incarnation, reborn);
    }

    /// A peer that had joined is away.
    fn left(&mut self, peer: NodeId, why: &Left) {
        let _ = (peer, why);
    }

    /// A peer does not fit.
    fn refused(&mut self, peer: NodeId, why: &Refusal) {
        let _ = (peer, why);
    }
}

impl<F: FnMut(Asked) + Send + 'static> Service for F {
    fn asked(&mut self, asked: Asked) {
        self(asked);
    }
}

/// A program that has nothing to say: it rejects what it is asked.
#[derive(Clone, Copy, Debug, Default)]
pub struct Silent;

impl Service for Silent {
    fn asked(&mut self, asked: Asked) {
        asked.reject(Draft::from(&b"this node answers nothing"[..]));
    }
}

/// A request of a peer. Dropped without an answer, it is rejected.
pub struct Asked {
    kind: Kind,
    body: Frame,
    ticket: Ticket,
    /// None once answered.
    node: Option<Arc<Shared>>,
}

impl Asked {
    pub(super) fn new(ticket: Ticket, kind: Kind, body: Frame, node: Arc<Shared>) -> Self {
        Self { kind, body, ticket, node: Some(node) }
    }

    /// Who asks.
    pub fn peer(&self) -> NodeId {
        self.ticket.peer
    }

    /// What kind of request it is.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// What it says.
    pub fn body(&self) -> &Frame {
        &self.body
    }

    /// A draft for the answer, in room that was used before.
    pub fn draft(&self) -> Draft {
        self.node.as_ref().map_or_else(Draft::new, |node| node.draft())
    }

    /// Answers: it is done.
    pub fn reply(mut self, draft: Draft) {
        self.answer(true, draft);
    }

    /// Answers: it is not done.
    pub fn reject(mut self, draft: Draft) {
        self.answer(false, draft);
    }

    fn answer(&mut self, done: bool, draft: Draft) {
        if let Some(node) = self.node.take() {
            let spent = std::mem::take(&mut self.body);
            // Where the node has closed nobody waits.
            let _ = node.command(Command::Answer { ticket: self.ticket, done, draft, spent });
        }
    }
}

impl Drop for Asked {
    fn drop(&mut self) {
        self.answer(false, Draft::from(&b"the program of this node did not answer"[..]));
    }
}

impl fmt::Debug for Asked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { kind, body, ticket, .. } = self;
        f.debug_struct("Asked")
            .field("kind", kind)
            .field("body", body)
            .field("ticket", ticket)
            .finish_non_exhaustive()
    }
}
