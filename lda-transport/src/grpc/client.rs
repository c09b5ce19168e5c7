//! The connecting side of a connection.

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::ServerName;
use tonic::client::Grpc;
use tonic::codegen::{Service, http};
use tonic::{Request, Status, Streaming};

use super::conn_state::{AuthState, ConnState, StreamEnd};
use super::connection::{Outgoing, phase_reached, status_text};
use super::error::ConnectError;
use super::node::{Connection, Node, Phase};
use super::options::{Peer, endpoint, host};
use super::server::{EXTRA_WINDOW, HTTP2_FRAME_LEN, MAX_WINDOW};
use super::stream::{Bytestream, MonitoredStream};
use super::wire::{Hello, METHOD};
use crate::transport::NodeId;

/// Connects to a peer again and again, until the node closes.
pub(super) async fn dial(node: Arc<Node>, peer: NodeId, at: Peer) {
    let mut phase = node.phase.clone();
    let mut backoff = node.options.initial_backoff;
    loop {
        let start = Instant::now();
        // In a task of its own: if tonic panics at the peer's input, only this attempt fails.
        let attempt = tokio::spawn(attempt(Arc::clone(&node), peer, at.clone()));
        match attempt.await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => node.set_connect_error(peer, Some(error)),
            Err(error) => {
                let reason = error.to_string();
                node.set_connect_error(peer, Some(ConnectError::Broken { reason }));
            }
        }
        // A connection that lasted longer than the longest wait starts the waits over.
        if start.elapsed() > node.options.max_backoff {
            backoff = node.options.initial_backoff;
        }
        tokio::select! {
            () = tokio::time::sleep(jittered(backoff)) => {}
            () = phase_reached(&mut phase, Phase::Draining) => return,
        }
        backoff = backoff.saturating_mul(2).min(node.options.max_backoff);
    }
}

/// Returns a random duration from half of `time` to all of it, so that nodes that lost the same
/// peer do not reconnect at the same moment.
fn jittered(time: Duration) -> Duration {
    // The keys of a `RandomState` are random, which is sufficient here.
    let random = RandomState::new().build_hasher().finish();
    time.mul_f64(0.5 + 0.5 * (random as f64 / u64::MAX as f64))
}

/// Connects once and runs the connection until its end.
async fn attempt(node: Arc<Node>, peer: NodeId, at: Peer) -> Result<(), ConnectError> {
    let Some(_alive) = node.alive.upgrade() else { return Ok(()) };
    let mut phase = node.phase.clone();
    let limit = node.options.handshake_timeout;
    let (connection, state, frames) = tokio::select! {
        connected = tokio::time::timeout(limit, handshake(&node, peer, &at)) => {
            connected.map_err(|_| ConnectError::HelloTimeout)??
        }
        () = phase_reached(&mut phase, Phase::Draining) => return Ok(()),
    };
    node.run(&connection, &state, frames).await;
    Ok(())
}

type Connected = (Arc<Connection>, Arc<ConnState>, Streaming<bytes::Bytes>);

/// Connects, calls the peer, and waits for its hello.
async fn handshake(node: &Node, peer: NodeId, at: &Peer) -> Result<Connected, ConnectError> {
    let address = at.address.as_deref().unwrap_or_default();
    let (stream, state) = connect(node, address, at.name.as_deref()).await?;
    let options = &node.options;
    // The error of the byte stream is the cause, that of HTTP/2 its consequence.
    let failed = |status: Status| match state.end() {
        Some(StreamEnd::Failed(error)) => error,
        Some(StreamEnd::Eof) | None => ConnectError::Broken { reason: status_text(&status) },
    };
    let endpoint = endpoint(address).ok_or_else(|| ConnectError::Resolve {
        address: address.to_owned(),
        reason: "it is not of the form host:port".to_owned(),
    })?;
    let channel = endpoint
        .initial_stream_window_size(options.window)
        .initial_connection_window_size(options.window.saturating_add(EXTRA_WINDOW).min(MAX_WINDOW))
        .max_frame_size(HTTP2_FRAME_LEN)
        .http2_keep_alive_interval(options.keepalive_interval)
        .keep_alive_timeout(options.keepalive_timeout)
        .keep_alive_while_idle(true)
        .connect_with_connector(ExistingStream(Some(stream)))
        .await
        .map_err(|error| failed(Status::from_error(error.into())))?;
    let mut grpc = Grpc::new(channel)
        .max_decoding_message_size(node.longest_message())
        .max_encoding_message_size(node.longest_message());
    grpc.ready().await.map_err(|error| failed(Status::from_error(error.into())))?;
    let connection = node.new_connection(peer, node.slot(peer)?);
    let outgoing = Outgoing { connection: Arc::clone(&connection), inbox: node.inbox.clone() };
    let path = http::uri::PathAndQuery::from_static(METHOD);
    let answer = grpc.streaming(Request::new(outgoing), path, node.codec()).await;
    let checked = match answer {
        Ok(answer) => check_hello(node, peer, answer.into_inner(), failed).await,
        Err(status) => Err(refusal(status, failed)),
    };
    let frames = checked.inspect_err(|_| connection.send_queue.abort())?;
    Ok((connection, state, frames))
}

/// Reads and checks the hello of the peer. Returns the stream of its frames.
async fn check_hello(
    node: &Node,
    peer: NodeId,
    mut frames: Streaming<bytes::Bytes>,
    failed: impl Fn(Status) -> ConnectError,
) -> Result<Streaming<bytes::Bytes>, ConnectError> {
    let first = match frames.message().await {
        Ok(first) => first.unwrap_or_default(),
        Err(status) => return Err(refusal(status, failed)),
    };
    let hello = Hello::decode(&first)?;
    node.check(&hello, Some(peer))?;
    Ok(frames)
}

/// Converts an error status: `FailedPrecondition` is a peer that rejects this node and gives a
/// reason, every other code a failure.
fn refusal(status: Status, failed: impl Fn(Status) -> ConnectError) -> ConnectError {
    if status.code() == tonic::Code::FailedPrecondition {
        return ConnectError::Refused { reason: status_text(&status) };
    }
    failed(status)
}

type Dialed = MonitoredStream<Box<dyn Bytestream>>;

/// Opens a byte stream, with TLS if the node uses it, to `address`.
async fn connect(
    node: &Node,
    address: &str,
    name: Option<&str>,
) -> Result<(Dialed, Arc<ConnState>), ConnectError> {
    let stream = connect_tcp(address, node.options.handshake_timeout).await?;
    // If this fails, the connection works with a higher latency.
    let _ = stream.set_nodelay(true);
    let to = stream.peer_addr().map_err(|error| ConnectError::from_io(&error))?;
    let state = ConnState::new(to, AuthState::Peer);
    let stream: Box<dyn Bytestream> = match &node.tls {
        None => Box::new(stream),
        Some(store) => {
            let name = name.or_else(|| host(address)).unwrap_or_default();
            let name = ServerName::try_from(name.to_owned()).map_err(|_| {
                let reason = format!("{name:?} is neither a DNS name nor an IP address");
                ConnectError::Certificate { reason }
            })?;
            let connector = TlsConnector::from(store.current().client);
            let encrypted = connector.connect(name, stream).await;
            Box::new(encrypted.map_err(|error| ConnectError::from_io(&error))?)
        }
    };
    Ok((MonitoredStream::dialed(stream, Arc::clone(&state), node.tls.is_some()), state))
}

/// Connects to the first address of a name that accepts. Each address has an equal share of the
/// time limit, so that one that drops packets does not use up the time of the next.
async fn connect_tcp(address: &str, limit: Duration) -> Result<TcpStream, ConnectError> {
    let unresolved = |reason: String| ConnectError::Resolve { address: address.to_owned(), reason };
    let resolved = tokio::net::lookup_host(address).await;
    let resolved: Vec<SocketAddr> =
        resolved.map_err(|error| unresolved(error.to_string()))?.collect();
    let share = limit / u32::try_from(resolved.len().max(1)).unwrap_or(u32::MAX);
    let mut last_error = unresolved("the name has no address".to_owned());
    for at in resolved {
        let reason = match tokio::time::timeout(share, TcpStream::connect(at)).await {
            Ok(Ok(stream)) => return Ok(stream),
            Ok(Err(error)) => error.to_string(),
            Err(elapsed) => elapsed.to_string(),
        };
        last_error = ConnectError::Connect { address: at.to_string(), reason };
    }
    Err(last_error)
}

/// Connector that returns one existing stream to tonic.
///
/// tonic calls it again to reconnect after a loss. The second call fails, because [`dial`] does the
/// reconnecting.
struct ExistingStream(Option<Dialed>);

impl Service<http::Uri> for ExistingStream {
    type Response = TokioIo<Dialed>;
    type Error = io::Error;
    type Future = std::future::Ready<io::Result<Self::Response>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: http::Uri) -> Self::Future {
        let lost = || io::Error::new(io::ErrorKind::NotConnected, "the connection is lost");
        std::future::ready(self.0.take().map(TokioIo::new).ok_or_else(lost))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn backoff_is_jittered() {
        let second = Duration::from_secs(1);
        let waits = [(); 100].map(|()| jittered(second));
        assert!(waits.iter().all(|&wait| wait >= second / 2 && wait <= second));
        let (least, most) = (waits.iter().min().unwrap(), waits.iter().max().unwrap());
        assert!(*most - *least > second / 10, "{least:?} to {most:?}");
    }
}
