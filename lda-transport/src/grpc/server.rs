//! The accepting side of a connection.

use std::convert::Infallible;
use std::io;
use std::net::{SocketAddr, ToSocketAddrs};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::mpsc;
use tokio_rustls::TlsAcceptor;
use tokio_stream::StreamExt;
use tokio_stream::wrappers::ReceiverStream;
use tonic::body::Body;
use tonic::codegen::{BoxFuture, Service, http};
use tonic::server::{Grpc, NamedService};
use tonic::service::Interceptor;
use tonic::transport::Server;
use tonic::{Request, Response, Status, Streaming};
use tonic_health::ServingStatus;
use tonic_health::pb::health_server::HealthServer;
use tonic_health::server::{HealthReporter, HealthService};

use super::conn_state::{AuthState, ConnState};
use super::connection::{Outgoing, phase_reached, status_text};
use super::error::{ConnectError, StartError};
use super::first_message::FirstMessage;
use super::node::{Connection, Node, Phase};
use super::stream::{Bytestream, HandshakeTimeout, MonitoredStream};
use super::tls::has_name;
use super::wire::{Hello, METHOD, SERVICE};
use crate::transport::NodeId;

/// Length of the system's queue of connections that have not been accepted.
const BACKLOG: u32 = 1024;
/// Maximum number of streams of one connection: one for frames, the others for the health service.
const MAX_STREAMS: u32 = 8;
/// Maximum bytes of the headers of a call.
const MAX_HEADER_BYTES: u32 = 16 << 10;
/// Bytes by which the window of a connection exceeds that of its streams, so that a frame stream
/// that is not read does not block the health service.
pub(super) const EXTRA_WINDOW: u32 = 1 << 20;
/// Largest window of HTTP/2.
pub(super) const MAX_WINDOW: u32 = (1 << 31) - 1;
/// Longest frame of HTTP/2.
// PERF: a frame of 64 KiB is then one HTTP/2 frame, which takes a third less processor time than
// the four frames that it takes with HTTP/2's default of 16 KiB.
pub(super) const HTTP2_FRAME_LEN: u32 = 128 << 10;
/// Wait after a failed accept, such as for lack of file descriptors.
const ACCEPT_RETRY: Duration = Duration::from_millis(50);

type Incoming = MonitoredStream<Box<dyn Bytestream>>;

/// Listens on the first address of `host:port` that can be listened on.
pub(super) fn listen(address: &str) -> Result<TcpListener, StartError> {
    let resolved = address.to_socket_addrs().map(Vec::from_iter);
    let unresolved = |error| StartError::Resolve { address: address.to_owned(), error };
    let mut last_error = unresolved(io::ErrorKind::NotFound.into());
    for address in resolved.map_err(unresolved)? {
        match listen_at(address) {
            Ok(listener) => return Ok(listener),
            Err(error) if error.kind() == io::ErrorKind::AddrInUse => {
                last_error = StartError::InUse { address };
            }
            Err(error) => last_error = StartError::Listen { address, error },
        }
    }
    Err(last_error)
}

fn listen_at(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = match address {
        SocketAddr::V4(_) => TcpSocket::new_v4()?,
        SocketAddr::V6(_) => TcpSocket::new_v6()?,
    };
    // A restarted node can listen while connections of its predecessor are in TIME_WAIT. On Windows
    // the option would let two processes listen on one port.
    #[cfg(unix)]
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)
}

/// Accepts connections until the node closes.
pub(super) async fn serve(node: Arc<Node>, listener: TcpListener) {
    let (sender, incoming) = mpsc::channel(BACKLOG as usize);
    let reporter = HealthReporter::new();
    // The reporter starts with the status of "", the server as a whole; this adds the service.
    reporter.set_service_status(SERVICE, ServingStatus::Serving).await;
    let health = HealthService::from_health_reporter(reporter.clone());
    let options = &node.options;
    let server = Server::builder()
        .initial_stream_window_size(options.window)
        .initial_connection_window_size(options.window.saturating_add(EXTRA_WINDOW).min(MAX_WINDOW))
        .max_frame_size(HTTP2_FRAME_LEN)
        .max_concurrent_streams(MAX_STREAMS)
        .http2_max_header_list_size(MAX_HEADER_BYTES)
        .http2_keepalive_interval(Some(options.keepalive_interval))
        .http2_keepalive_timeout(Some(options.keepalive_timeout))
        .add_service(HealthServer::with_interceptor(health, MarkHealthClient))
        .add_service(Peers(Arc::clone(&node)))
        .serve_with_incoming(ReceiverStream::new(incoming));
    // The server ends when `sender` is dropped below; its connections go on.
    let id = node.id.0;
    tokio::spawn(async move {
        if let Err(error) = server.await {
            tracing::error!(node = id, %error, "the server has failed");
        }
    });
    let mut phase = node.phase.clone();
    tokio::select! {
        () = accept(&node, &listener, &sender) => {}
        () = phase_reached(&mut phase, Phase::Draining) => {}
    }
    for service in ["", SERVICE] {
        reporter.set_service_status(service, ServingStatus::NotServing).await;
    }
}

async fn accept(
    node: &Arc<Node>,
    listener: &TcpListener,
    sender: &mpsc::Sender<Result<Incoming, Infallible>>,
) {
    loop {
        match listener.accept().await {
            Ok((stream, address)) => {
                let state = ConnState::new(address, AuthState::Unauthenticated);
                node.add_pending(&state);
                tokio::spawn(establish(Arc::clone(node), stream, state, sender.clone()));
            }
            Err(error) => {
                tracing::warn!(node = node.id.0, %error, "cannot accept a connection");
                tokio::time::sleep(ACCEPT_RETRY).await;
            }
        }
    }
}

/// Performs the TLS handshake of a new connection and passes it to the server. Runs in a task of
/// its own, so that a slow connection delays no other.
async fn establish(
    node: Arc<Node>,
    stream: TcpStream,
    state: Arc<ConnState>,
    sender: mpsc::Sender<Result<Incoming, Infallible>>,
) {
    // If this fails, the connection works with a higher latency.
    let _ = stream.set_nodelay(true);
    let limit = node.options.handshake_timeout;
    let mut timeout: HandshakeTimeout = Box::pin(Arc::clone(&state).handshake_timeout(limit));
    let stream: Box<dyn Bytestream> = match &node.tls {
        None => Box::new(stream),
        Some(store) => {
            let acceptor = TlsAcceptor::from(store.current().server);
            let encrypted = tokio::select! {
                encrypted = acceptor.accept(stream) => {
                    encrypted.map_err(|error| ConnectError::from_io(&error))
                }
                error = &mut timeout => Err(error),
            };
            match encrypted {
                Ok(stream) => {
                    let certificates = stream.get_ref().1.peer_certificates();
                    state.set_certificate(certificates.and_then(|all| all.first().cloned()));
                    Box::new(stream)
                }
                Err(error) => {
                    state.mark_closed();
                    return node.record_rejection(&state, error);
                }
            }
        }
    };
    let monitored = MonitoredStream::accepted(stream, state, node, timeout);
    // Fails only when the node closes.
    let _ = sender.send(Ok(monitored)).await;
}

/// Interceptor of the health service: its clients have no time limit for a hello.
#[derive(Clone, Copy, Debug)]
struct MarkHealthClient;

impl Interceptor for MarkHealthClient {
    fn call(&mut self, request: Request<()>) -> Result<Request<()>, Status> {
        if let Some(state) = request.extensions().get::<Arc<ConnState>>() {
            state.promote(AuthState::HealthClient);
        }
        Ok(request)
    }
}

/// The gRPC service, in the form that a code generator would have written.
#[derive(Clone, Debug)]
struct Peers(Arc<Node>);

impl NamedService for Peers {
    const NAME: &'static str = SERVICE;
}

impl Service<http::Request<Body>> for Peers {
    type Response = http::Response<Body>;
    type Error = Infallible;
    type Future = BoxFuture<Self::Response, Self::Error>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<Body>) -> Self::Future {
        let node = Arc::clone(&self.0);
        Box::pin(async move {
            if request.uri().path() != METHOD {
                return Ok(Status::unimplemented("the only method is Exchange").into_http());
            }
            let mut grpc = Grpc::new(node.codec())
                .max_decoding_message_size(node.longest_message())
                .max_encoding_message_size(node.longest_message());
            let request = request.map(|body| Body::new(FirstMessage::of(body)));
            Ok(grpc.streaming(Exchange(node), request).await)
        })
    }
}

/// The method of the service.
struct Exchange(Arc<Node>);

type OutgoingStream = Pin<Box<dyn tokio_stream::Stream<Item = Result<Bytes, Status>> + Send>>;

impl Service<Request<Streaming<Bytes>>> for Exchange {
    type Response = Response<OutgoingStream>;
    type Error = Status;
    type Future = BoxFuture<Self::Response, Status>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Status>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Streaming<Bytes>>) -> Self::Future {
        Box::pin(Arc::clone(&self.0).exchange(request))
    }
}

/// A rejected hello, if one was decoded, and the reason.
type Rejection = (Option<Hello>, ConnectError);

impl Node {
    async fn exchange(
        self: Arc<Self>,
        request: Request<Streaming<Bytes>>,
    ) -> Result<Response<OutgoingStream>, Status> {
        let state = request.extensions().get::<Arc<ConnState>>().cloned();
        let state = state.ok_or_else(|| Status::internal("the call has no connection"))?;
        let mut frames = request.into_inner();
        let (hello, error) = match self.read_hello(&state, &mut frames).await {
            Ok(hello) => match self.admit(hello.from, &state) {
                Ok(connection) => {
                    let outgoing = self.start_connection(connection, state, frames);
                    return Ok(Response::new(Box::pin(outgoing.map(Ok))));
                }
                Err(error) => (Some(hello), error),
            },
            Err(rejection) => rejection,
        };
        let status = Status::failed_precondition(error.to_string());
        // The answer is the hello of this node if it shows the mismatch, so that the peer reports
        // the precise error instead of a refusal.
        let hello_shows_error = matches!(
            error,
            ConnectError::WrongNode { .. } | ConnectError::FrameLimitMismatch { .. }
        );
        state.promote(AuthState::HealthClient);
        self.record_rejection(&state, error);
        match hello {
            Some(hello) if hello_shows_error => {
                let items = [Ok(self.hello(hello.from)), Err(status)];
                Ok(Response::new(Box::pin(tokio_stream::iter(items))))
            }
            _ => Err(status),
        }
    }

    /// Reads and checks the hello of a peer.
    async fn read_hello(
        &self,
        state: &ConnState,
        frames: &mut Streaming<Bytes>,
    ) -> Result<Hello, Rejection> {
        let limit = self.options.handshake_timeout;
        let first = match tokio::time::timeout(limit, frames.message()).await {
            Err(_) => return Err((None, ConnectError::HelloTimeout)),
            Ok(Err(status)) => {
                return Err((None, ConnectError::Broken { reason: status_text(&status) }));
            }
            Ok(Ok(first)) => first.unwrap_or_default(),
        };
        let hello = Hello::decode(&first).map_err(|error| (None, error.into()))?;
        let reject = |error| (Some(hello), error);
        self.check(&hello, None).map_err(reject)?;
        let name = self.options.peers.get(&hello.from).and_then(|peer| peer.name.as_deref());
        let Some(name) = name else { return Ok(hello) };
        match state.certificate() {
            Some(certificate) if has_name(&certificate, name) => Ok(hello),
            _ => {
                let reason = format!("it does not have the name {name:?} of {}", hello.from);
                Err(reject(ConnectError::Certificate { reason }))
            }
        }
    }

    /// Creates the connection of `peer`, if it has a slot and was not rejected in the meantime.
    fn admit(&self, peer: NodeId, state: &Arc<ConnState>) -> Result<Arc<Connection>, ConnectError> {
        let slot = self.slot(peer)?;
        // INVARIANT: before `new_connection`, so that a rejected connection replaces none.
        slot.own(peer, state, || state.admit())?;
        Ok(self.new_connection(peer, slot))
    }

    /// Starts the task of a connection and returns the stream of its outgoing frames.
    fn start_connection(
        self: &Arc<Self>,
        connection: Arc<Connection>,
        state: Arc<ConnState>,
        frames: Streaming<Bytes>,
    ) -> Outgoing {
        let outgoing = Outgoing { connection: Arc::clone(&connection), inbox: self.inbox.clone() };
        let (node, alive) = (Arc::clone(self), self.alive.upgrade());
        tokio::spawn(async move {
            // `None` if the node has closed.
            if let Some(_alive) = alive {
                node.run(&connection, &state, frames).await;
            } else {
                connection.send_queue.abort();
            }
        });
        outgoing
    }
}

#[cfg(test)]
mod tests {
    use tokio::sync::watch;

    use super::super::conn_state::StreamEnd;
    use super::*;
    use crate::inbox::inbox;

    #[tokio::test]
    async fn a_rejected_connection_does_not_replace_a_peer() {
        let (slot, _) = inbox();
        let (_phase, phase) = watch::channel(Phase::Open);
        let alive = mpsc::channel(1).0.downgrade();
        let node = Node::new(NodeId(0), Default::default(), slot, phase, alive).unwrap();
        let state = || {
            let address = SocketAddr::from(([127, 0, 0, 1], 1));
            ConnState::new(address, AuthState::Unauthenticated)
        };
        let is_replaced = async |connection: &Connection| {
            tokio::time::timeout(Duration::ZERO, connection.replaced()).await.is_ok()
        };

        let owner = state();
        let connection = node.admit(NodeId(1), &owner).unwrap();
        let taken = ConnectError::NumberTaken { peer: NodeId(1), address: owner.address };
        assert_eq!(node.admit(NodeId(1), &state()).unwrap_err(), taken);
        owner.mark_closed();
        let rejected = state();
        rejected.set_end(StreamEnd::Failed(ConnectError::Evicted));
        assert_eq!(node.admit(NodeId(1), &rejected).unwrap_err(), ConnectError::Evicted);
        assert!(!is_replaced(&connection).await);
        let next = state();
        let connection = node.admit(NodeId(1), &next).unwrap();
        // A second call of the same connection replaces its first.
        node.admit(NodeId(1), &next).unwrap();
        assert!(is_replaced(&connection).await);
    }
}
