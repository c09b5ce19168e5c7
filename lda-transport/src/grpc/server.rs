//! The side that is connected to.

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

use super::connection::{Outgoing, reaches, words};
use super::error::{StartError, Trouble};
use super::io::{Bytestream, Party, Rank, Verdict, Watched};
use super::node::{Link, Node, Phase};
use super::tls::has_name;
use super::wire::{Hello, METHOD, SERVICE};
use crate::transport::NodeId;

/// Connections that the system holds until they are taken.
const BACKLOG: u32 = 1024;
/// Streams of one connection at a time: one of a peer, and some of the health.
const STREAMS: u32 = 8;
/// Most bytes of the headers of a call.
const HEADERS: u32 = 16 << 10;
/// What the connection's window has beyond the stream's, so that a peer that is not read leaves room for
/// other streams.
pub(super) const BEYOND: u32 = 1 << 20;
/// The largest window of HTTP/2.
pub(super) const WINDOW: u32 = (1 << 31) - 1;
/// Longest piece of HTTP/2. A frame of 64 KiB is one piece, which takes a third less of a processor's time than
/// the four that it would be otherwise.
pub(super) const PIECE: u32 = 128 << 10;
/// How long to wait when the system gives no connection, as for want of files.
const PAUSE: Duration = Duration::from_millis(50);

type Incoming = Watched<Box<dyn Bytestream>>;

/// Listens at the first of the addresses of `host:port` that can be listened at.
pub(super) fn listen(address: &str) -> Result<TcpListener, StartError> {
    let resolved = address.to_socket_addrs().map(Vec::from_iter);
    let unresolved = |error| StartError::Resolve { address: address.to_owned(), error };
    let mut failed = unresolved(io::ErrorKind::NotFound.into());
    for address in resolved.map_err(unresolved)? {
        match listen_at(address) {
            Ok(listener) => return Ok(listener),
            Err(error) if error.kind() == io::ErrorKind::AddrInUse => {
                failed = StartError::InUse { address };
            }
            Err(error) => failed = StartError::Listen { address, error },
        }
    }
    Err(failed)
}

fn listen_at(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = match address {
        SocketAddr::V4(_) => TcpSocket::new_v4()?,
        SocketAddr::V6(_) => TcpSocket::new_v6()?,
    };
    // A node that comes again finds what the one before left to the system. Elsewhere it would let two listen.
    #[cfg(unix)]
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)
}

/// Takes connections until the node closes.
pub(super) async fn serve(node: Arc<Node>, listener: TcpListener) {
    let (sender, incoming) = mpsc::channel(BACKLOG as usize);
    let reporter = HealthReporter::new();
    // Without a reporter of other services than all together, and this one.
    reporter.set_service_status(SERVICE, ServingStatus::Serving).await;
    let health = HealthService::from_health_reporter(reporter.clone());
    let options = &node.options;
    let server = Server::builder()
        .initial_stream_window_size(options.window)
        .initial_connection_window_size(options.window.saturating_add(BEYOND).min(WINDOW))
        .max_frame_size(PIECE)
        .max_concurrent_streams(STREAMS)
        .http2_max_header_list_size(HEADERS)
        .http2_keepalive_interval(Some(options.ping))
        .http2_keepalive_timeout(Some(options.pong))
        .add_service(HealthServer::with_interceptor(health, Welcome))
        .add_service(Peers(Arc::clone(&node)))
        .serve_with_incoming(ReceiverStream::new(incoming));
    // It ends with the stream of connections; these go on.
    let id = node.id.0;
    tokio::spawn(async move {
        if let Err(error) = server.await {
            tracing::error!(node = id, %error, "the server has failed");
        }
    });
    let mut phase = node.phase.clone();
    tokio::select! {
        () = accept(&node, &listener, &sender) => {}
        () = reaches(&mut phase, Phase::Closing) => {}
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
                let party = Party::new(address, Rank::Stranger);
                node.wait_for(&party);
                tokio::spawn(admit(Arc::clone(node), stream, party, sender.clone()));
            }
            Err(error) => {
                tracing::warn!(node = node.id.0, %error, "no connection can be taken");
                tokio::time::sleep(PAUSE).await;
            }
        }
    }
}

/// Takes a connection as far as HTTP/2, in a task of its own, so that one that is slow holds up no other.
async fn admit(
    node: Arc<Node>,
    stream: TcpStream,
    party: Arc<Party>,
    sender: mpsc::Sender<Result<Incoming, Infallible>>,
) {
    // It is a matter of speed.
    let _ = stream.set_nodelay(true);
    let mut verdict: Verdict = Box::pin(Arc::clone(&party).verdict(node.options.hello));
    let stream: Box<dyn Bytestream> = match &node.tls {
        None => Box::new(stream),
        Some(store) => {
            let acceptor = TlsAcceptor::from(store.current().server);
            let shaken = tokio::select! {
                shaken = acceptor.accept(stream) => shaken.map_err(|error| Trouble::of(&error)),
                trouble = &mut verdict => Err(trouble),
            };
            match shaken {
                Ok(stream) => {
                    let certificates = stream.get_ref().1.peer_certificates();
                    party.identify(certificates.and_then(|all| all.first().cloned()));
                    Box::new(stream)
                }
                Err(trouble) => {
                    party.leave();
                    return node.refused(&party, trouble);
                }
            }
        }
    };
    let watched = Watched::accepted(stream, party, node, verdict);
    // It is not taken where the node closes.
    let _ = sender.send(Ok(watched)).await;
}

/// Lets those stay who ask for the health.
#[derive(Clone, Copy, Debug)]
struct Welcome;

impl Interceptor for Welcome {
    fn call(&mut self, request: Request<()>) -> Result<Request<()>, Status> {
        if let Some(party) = request.extensions().get::<Arc<Party>>() {
            party.rise(Rank::Guest);
        }
        Ok(request)
    }
}

/// The service, as a generator would have made it.
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
                return Ok(Status::unimplemented("there is one method, Exchange").into_http());
            }
            let mut grpc = Grpc::new(node.codec())
                .max_decoding_message_size(node.longest_message())
                .max_encoding_message_size(node.longest_message());
            Ok(grpc.streaming(Exchange(node), request).await)
        })
    }
}

/// The method.
struct Exchange(Arc<Node>);

type Outgo = Pin<Box<dyn tokio_stream::Stream<Item = Result<Bytes, Status>> + Send>>;

impl Service<Request<Streaming<Bytes>>> for Exchange {
    type Response = Response<Outgo>;
    type Error = Status;
    type Future = BoxFuture<Self::Response, Status>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Status>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Streaming<Bytes>>) -> Self::Future {
        Box::pin(Arc::clone(&self.0).exchange(request))
    }
}

impl Node {
    async fn exchange(
        self: Arc<Self>,
        request: Request<Streaming<Bytes>>,
    ) -> Result<Response<Outgo>, Status> {
        let party = request.extensions().get::<Arc<Party>>().cloned();
        let party = party.ok_or_else(|| Status::internal("nobody is at the other end"))?;
        let mut frames = request.into_inner();
        let (hello, end) = match self.greet(&party, &mut frames).await {
            Ok(hello) => match self.admit(hello.from, &party) {
                Ok(link) => {
                    let outgoing = self.begin(link, party, frames);
                    return Ok(Response::new(Box::pin(outgoing.map(Ok))));
                }
                Err(trouble) => (Some(hello), trouble),
            },
            Err(refused) => refused,
        };
        let status = Status::failed_precondition(end.to_string());
        // Of what it can find out for itself it hears no words, but who is here.
        let finds_out = matches!(end, Trouble::WrongNode { .. } | Trouble::LongestFrame { .. });
        party.rise(Rank::Guest);
        self.refused(&party, end);
        match hello {
            Some(hello) if finds_out => {
                let items = [Ok(self.hello(hello.from)), Err(status)];
                Ok(Response::new(Box::pin(tokio_stream::iter(items))))
            }
            _ => Err(status),
        }
    }

    /// Hears and judges a hello.
    async fn greet(
        &self,
        party: &Party,
        frames: &mut Streaming<Bytes>,
    ) -> Result<Hello, (Option<Hello>, Trouble)> {
        let first = tokio::time::timeout(self.options.hello, frames.message()).await;
        let first = match first {
            Err(_) => return Err((None, Trouble::NoHello)),
            Ok(Err(status)) => return Err((None, Trouble::Broken { why: words(&status) })),
            Ok(Ok(first)) => first.unwrap_or_default(),
        };
        let hello = Hello::decode(&first).map_err(|error| (None, error.into()))?;
        let refuse = |trouble| (Some(hello), trouble);
        self.check(&hello, None).map_err(refuse)?;
        let name = self.options.peers.get(&hello.from).and_then(|peer| peer.name.as_deref());
        let Some(name) = name else { return Ok(hello) };
        match party.certificate() {
            Some(certificate) if has_name(&certificate, name) => Ok(hello),
            _ => {
                let why = format!("it has not the name {name:?}, which is that of {}", hello.from);
                Err(refuse(Trouble::Certificate { why }))
            }
        }
    }

    /// A connection of `peer`, if there is a seat for it and it was not turned away before it was heard.
    fn admit(&self, peer: NodeId, party: &Party) -> Result<Arc<Link>, Trouble> {
        let seat = self.seat(peer)?;
        party.admit()?;
        Ok(self.link(peer, seat))
    }

    /// Attends to a peer from now on.
    fn begin(
        self: &Arc<Self>,
        link: Arc<Link>,
        party: Arc<Party>,
        frames: Streaming<Bytes>,
    ) -> Outgoing {
        let outgoing = Outgoing { link: Arc::clone(&link), inbox: self.inbox.clone() };
        let (node, alive) = (Arc::clone(self), self.alive.upgrade());
        tokio::spawn(async move {
            // None where the node is at its end.
            if let Some(_alive) = alive {
                node.attend(&link, &party, frames).await;
            } else {
                link.outbox.cut();
            }
        });
        outgoing
    }
}

#[cfg(test)]
mod tests {
    use tokio::sync::watch;

    use super::super::io::End;
    use super::*;
    use crate::inbox::inbox;

    #[tokio::test]
    async fn who_was_turned_away_takes_no_peers_place() {
        let (slot, _) = inbox();
        let (_phase, phase) = watch::channel(Phase::Open);
        let alive = mpsc::channel(1).0.downgrade();
        let node = Node::new(NodeId(0), Default::default(), slot, phase, alive).unwrap();
        let party = || Party::new(SocketAddr::from(([127, 0, 0, 1], 1)), Rank::Stranger);
        let is_replaced =
            async |link: &Link| tokio::time::timeout(Duration::ZERO, link.replaced()).await.is_ok();

        let link = node.admit(NodeId(1), &party()).unwrap();
        let gone = party();
        gone.note(End::Failed(Trouble::Crowded));
        assert_eq!(node.admit(NodeId(1), &gone).unwrap_err(), Trouble::Crowded);
        assert!(!is_replaced(&link).await);
        node.admit(NodeId(1), &party()).unwrap();
        assert!(is_replaced(&link).await);
    }
}
