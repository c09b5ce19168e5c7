//! A connection from its hello to its end, the same on both sides.

use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::{OwnedSemaphorePermit, watch};
use tokio_stream::Stream;
use tonic::{Code, Status, Streaming};

use super::conn_state::{ConnState, StreamEnd};
use super::error::ConnectError;
use super::node::{Connection, Item, Node, Phase};
use super::wire::Hello;
use crate::inbox::InboxSender;
use crate::transport::{DisconnectReason, NodeId};

/// Time that the TCP stream of a call may take to close after the call has ended.
const CLOSE_GRACE: Duration = Duration::from_millis(20);

/// Outgoing frames of a connection, as the stream that tonic polls.
#[derive(Debug)]
pub(super) struct Outgoing {
    pub connection: Arc<Connection>,
    pub inbox: InboxSender<Item>,
}

impl Stream for Outgoing {
    type Item = Bytes;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Bytes>> {
        let popped = ready!(self.connection.send_queue.poll_pop(cx));
        Poll::Ready(popped.map(|popped| {
            if popped.is_writable {
                // Fails only when the node has closed.
                let _ = self.inbox.put(Item::Writable(Arc::clone(&self.connection)));
            }
            popped.frame
        }))
    }
}

/// Reports a peer down when dropped, so also after a panic: tonic panics at some input of peers
/// that violate the protocol.
#[derive(Debug)]
struct UpGuard<'a> {
    node: &'a Node,
    connection: &'a Arc<Connection>,
    reason: DisconnectReason,
    /// `Some` until the drop.
    permit: Option<OwnedSemaphorePermit>,
}

impl Drop for UpGuard<'_> {
    fn drop(&mut self) {
        self.connection.send_queue.abort();
        let (node, peer, reason) = (self.node.id.0, self.connection.peer.0, self.reason.clone());
        tracing::info!(node, peer, ?reason, "down");
        if let Some(permit) = self.permit.take() {
            let _ = self.node.inbox.put(Item::Down(Arc::clone(self.connection), reason, permit));
        }
    }
}

/// Reason to end a connection that has not failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum StopReason {
    /// The peer has made a newer call.
    Replaced,
    /// This node closes.
    Closing,
}

impl Node {
    /// Checks the hello of a peer. `dialed` is the expected peer of an outgoing connection.
    pub fn check(&self, hello: &Hello, dialed: Option<NodeId>) -> Result<(), ConnectError> {
        let (here, peer) = (self.id, hello.from);
        let not_allowed = |reason| Err(ConnectError::NotAllowed { here, peer, reason });
        // First, so that strangers learn nothing else.
        if hello.token != self.options.token {
            return Err(ConnectError::Token);
        }
        if hello.to != here {
            return Err(ConnectError::WrongNode { expected: hello.to, found: here });
        }
        match dialed {
            Some(expected) if expected != peer => {
                return Err(ConnectError::WrongNode { expected, found: peer });
            }
            None if peer == here => return not_allowed("both have the same number"),
            None if peer < here => {
                return not_allowed("the node with the larger number has to connect");
            }
            None if self.options.allowlist_only && !self.options.peers.contains_key(&peer) => {
                return not_allowed("it is not in the list of peers");
            }
            _ => {}
        }
        let ours = self.options.max_frame_len as u64;
        if hello.max_frame_len != ours {
            return Err(ConnectError::FrameLimitMismatch { ours, theirs: hello.max_frame_len });
        }
        Ok(())
    }

    /// Runs a connection until its end. It comes up after the program has received the `Down` of
    /// the peer's previous connection.
    pub async fn run(
        &self,
        connection: &Arc<Connection>,
        state: &ConnState,
        mut frames: Streaming<Bytes>,
    ) {
        let mut stop = pin!(self.stopped(connection));
        let permit = tokio::select! {
            biased;
            _ = &mut stop => None,
            permit = Arc::clone(&connection.slot.up).acquire_owned() => {
                Some(permit.expect("the semaphore is never closed"))
            }
        };
        let Some(permit) = permit else {
            connection.send_queue.abort();
            return;
        };
        self.set_connect_error(connection.peer, None);
        tracing::info!(node = self.id.0, peer = connection.peer.0, address = %state.address, "up");
        // Fails only when the node has closed.
        let _ = self.inbox.put(Item::Up(Arc::clone(connection)));
        let reason =
            DisconnectReason::Broken("the peer's input made the connection panic".to_owned());
        let mut guard = UpGuard { node: self, connection, reason, permit: Some(permit) };
        guard.reason = self.read(connection, state, stop, &mut frames).await;
    }

    /// Completes when a connection has to stop.
    async fn stopped(&self, connection: &Connection) -> StopReason {
        let mut phase = self.phase.clone();
        tokio::select! {
            () = connection.replaced() => StopReason::Replaced,
            () = phase_reached(&mut phase, Phase::Draining) => StopReason::Closing,
        }
    }

    /// Moves frames into the inbox until the connection ends, and returns why it ended. Waits while
    /// the inbox is full, so that HTTP/2 flow control stops the peer.
    async fn read(
        &self,
        connection: &Arc<Connection>,
        state: &ConnState,
        mut stop: Pin<&mut impl Future<Output = StopReason>>,
        frames: &mut Streaming<Bytes>,
    ) -> DisconnectReason {
        let keepalive = self.options.keepalive_interval;
        let reason = loop {
            let message = tokio::select! {
                biased;
                reason = &mut stop => break reason,
                message = frames.message() => message,
            };
            let frame = match message {
                Ok(Some(frame)) => frame,
                Ok(None) => return loss_at_end(state, keepalive).await,
                Err(status) => return loss_of(state, &status),
            };
            tokio::select! {
                biased;
                reason = &mut stop => break reason,
                () = connection.slot.reserve_inbox(frame.len()) => {}
            }
            let _ = self.inbox.put(Item::Frame(Arc::clone(connection), frame.into()));
        };
        if reason == StopReason::Replaced {
            return DisconnectReason::Broken("the peer has connected again".to_owned());
        }
        let mut phase = self.phase.clone();
        // The program has closed: frames that still arrive are dropped. The peer ends the stream
        // when it has received everything in the send queue.
        connection.send_queue.close();
        loop {
            tokio::select! {
                message = frames.message() => match message {
                    Ok(Some(_)) => {}
                    Ok(None) => return loss_at_end(state, keepalive).await,
                    Err(status) => return loss_of(state, &status),
                },
                () = phase_reached(&mut phase, Phase::Terminating) => return DisconnectReason::Closed,
            }
        }
    }
}

/// Completes when a node has reached `least` or a later phase.
pub(super) async fn phase_reached(phase: &mut watch::Receiver<Phase>, least: Phase) {
    // An error means that the node has been dropped, which is later than every phase.
    let _ = phase.wait_for(|&phase| phase >= least).await;
}

/// Reason of a stream that ended without a status.
///
/// tonic's server reports a call that the peer has cancelled in the same way as a connection that
/// hyper has given up because pings were not answered. In the second case nothing was read for the
/// keepalive interval, and the byte stream is closed or about to be.
async fn loss_at_end(state: &ConnState, keepalive: Duration) -> DisconnectReason {
    let is_silent = state.idle_time() >= keepalive;
    let is_closed = is_silent && tokio::time::timeout(CLOSE_GRACE, state.closed()).await.is_ok();
    match state.end() {
        Some(StreamEnd::Failed(error)) => DisconnectReason::Broken(error.to_string()),
        None if is_closed => DisconnectReason::Broken("the peer does not answer".to_owned()),
        Some(StreamEnd::Eof) | None => DisconnectReason::Closed,
    }
}

/// Reason of a stream that ended with an error status.
fn loss_of(state: &ConnState, status: &Status) -> DisconnectReason {
    match state.end() {
        Some(StreamEnd::Eof) => DisconnectReason::Closed,
        Some(StreamEnd::Failed(error)) => DisconnectReason::Broken(error.to_string()),
        None if status.code() == Code::Cancelled => DisconnectReason::Closed,
        None => DisconnectReason::Broken(status_text(status)),
    }
}

/// Message of a status, or the description of its code. Peers write messages, so that control
/// characters are escaped and a long one is cut.
pub(super) fn status_text(status: &Status) -> String {
    /// Maximum number of characters of a message.
    const LONGEST: usize = 500;
    match status.message() {
        "" => status.code().to_string(),
        message => printable(message, LONGEST),
    }
}

/// The first `longest` characters of a text, with those escaped that could change a terminal or a
/// log: control, and directions of writing.
fn printable(text: &str, longest: usize) -> String {
    let mut printable = String::new();
    for char in text.chars().take(longest) {
        let reorders = matches!(char, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
        match char.is_control() || reorders {
            true => printable.extend(char.escape_default()),
            false => printable.push(char),
        }
    }
    printable
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_strangers_are_escaped_and_bounded() {
        let status = Status::aborted("red\u{1b}[31m\nINFO done \u{202e}\u{9b}2J é");
        assert_eq!(status_text(&status), "red\\u{1b}[31m\\nINFO done \\u{202e}\\u{9b}2J é");
        assert_eq!(status_text(&Status::aborted("a".repeat(10_000))).len(), 500);
        assert_eq!(status_text(&Status::aborted("")), Code::Aborted.to_string());
    }
}
