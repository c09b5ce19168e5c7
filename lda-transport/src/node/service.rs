//! What a node's program does when peers ask.

use std::fmt;
use std::sync::Arc;

use super::{Command, Handle, Shared};
use crate::frame::Frame;
use crate::rpc::{MessageBuf, Refusal, ReplyHandle, RequestKind};
use crate::transport::{DisconnectReason, NodeId};

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

    /// A peer fits, and takes requests. [`Action::Joined`](crate::rpc::Action::Joined) says what the numbers are.
    fn joined(&mut self, peer: NodeId, role: u8, incarnation: u64, restarted: bool) {
        let _ = (peer, role, incarnation, restarted);
    }

    /// A peer that had joined is away.
    fn left(&mut self, peer: NodeId, why: &DisconnectReason) {
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
        asked.reject(MessageBuf::from(&b"this node answers nothing"[..]));
    }
}

/// A request of a peer. Dropped without an answer, it is rejected.
pub struct Asked {
    kind: RequestKind,
    body: Frame,
    reply_to: ReplyHandle,
    /// None once answered.
    node: Option<Arc<Shared>>,
}

impl Asked {
    pub(super) fn new(
        reply_to: ReplyHandle,
        kind: RequestKind,
        body: Frame,
        node: Arc<Shared>,
    ) -> Self {
        Self { kind, body, reply_to, node: Some(node) }
    }

    /// Who asks.
    pub fn peer(&self) -> NodeId {
        self.reply_to.peer
    }

    /// What kind of request it is.
    pub fn kind(&self) -> RequestKind {
        self.kind
    }

    /// What it says.
    pub fn body(&self) -> &Frame {
        &self.body
    }

    /// A draft for the answer, in room that was used before.
    pub fn message(&self) -> MessageBuf {
        self.node.as_ref().map_or_else(MessageBuf::new, |node| node.message())
    }

    /// Answers: it is done.
    pub fn reply(mut self, message: MessageBuf) {
        self.answer(true, message);
    }

    /// Answers: it is not done.
    pub fn reject(mut self, message: MessageBuf) {
        self.answer(false, message);
    }

    fn answer(&mut self, done: bool, message: MessageBuf) {
        if let Some(node) = self.node.take() {
            let spent = std::mem::take(&mut self.body);
            // Where the node has closed nobody waits.
            let _ = node.command(Command::Answer { reply_to: self.reply_to, done, message, spent });
        }
    }
}

impl Drop for Asked {
    fn drop(&mut self) {
        self.answer(false, MessageBuf::from(&b"the program of this node did not answer"[..]));
    }
}

impl fmt::Debug for Asked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { kind, body, reply_to, .. } = self;
        f.debug_struct("Asked")
            .field("kind", kind)
            .field("body", body)
            .field("ticket", reply_to)
            .finish_non_exhaustive()
    }
}
