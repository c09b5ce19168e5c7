//! Events of `tracing` for frames and peers.

use tracing::{debug, info, trace, warn};

use crate::frame::Frame;
use crate::transport::{Arrival, DisconnectReason, NodeId, ReceiveError, Transport, Unsent, Wait};

/// Emits events: frames at level trace, full queues at debug, connections at info, and broken
/// connections at warn. Every event has the numbers of node and peer.
#[derive(Debug)]
pub struct Logging<T> {
    inner: T,
    node: u32,
}

impl<T: Transport> Logging<T> {
    /// Wraps a transport.
    pub fn new(inner: T) -> Self {
        let node = inner.id().0;
        Self { inner, node }
    }
}

impl<T: Transport> Transport for Logging<T> {
    inner_does!(id, capabilities, waker, take_buffer, release, close);

    fn send(&mut self, to: NodeId, frame: Frame) -> Result<(), Unsent> {
        let (node, bytes) = (self.node, frame.len());
        let sent = self.inner.send(to, frame);
        match &sent {
            Ok(()) => trace!(node, peer = to.0, bytes, "sent"),
            Err(unsent) => debug!(node, peer = to.0, bytes, why = %unsent.error, "not sent"),
        }
        sent
    }

    fn receive(&mut self, wait: Wait) -> Result<Option<Arrival>, ReceiveError> {
        let node = self.node;
        let arrival = self.inner.receive(wait);
        match &arrival {
            Ok(Some(Arrival::Up { peer })) => info!(node, peer = peer.0, "up"),
            Ok(Some(Arrival::Frame { peer, frame })) => {
                trace!(node, peer = peer.0, bytes = frame.len(), "received");
            }
            Ok(Some(Arrival::Writable { peer })) => debug!(node, peer = peer.0, "writable"),
            Ok(Some(Arrival::Down { peer, reason: DisconnectReason::Closed })) => {
                info!(node, peer = peer.0, "closed");
            }
            Ok(Some(Arrival::Down { peer, reason: DisconnectReason::Broken(why) })) => {
                warn!(node, peer = peer.0, %why, "lost");
            }
            Ok(Some(Arrival::Down { peer, reason: DisconnectReason::Silent })) => {
                warn!(node, peer = peer.0, "silent");
            }
            Ok(Some(Arrival::Woken) | None) => {}
            Err(ReceiveError::Closed) => info!(node, "this node has closed"),
            Err(ReceiveError::Failed(why)) => warn!(node, %why, "the transport has failed"),
        }
        arrival
    }
}
