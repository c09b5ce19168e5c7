//! HTTP/1.1 connections with bounds: in number, in number per client, and in the time that they may be
//! idle or keep an answer unread.
//!
//! Without them a few clients that do nothing take every connection of a service.

mod clients;
mod stream;

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::{Service, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, sleep};

pub use clients::{ClientSlot, Clients};
use stream::BoundedStream;

/// Bytes of the buffer of a connection, which bounds the head of a request.
const BUFFER: usize = 1 << 16;
/// Wait after a failed accept, such as one without free file descriptors: an immediate retry would
/// fail too.
const PAUSE: Duration = Duration::from_millis(100);

/// Bounds of the connections of a service.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// Maximum number of open connections; more wait.
    pub connections: usize,
    /// Maximum number of open connections per client address; more are closed.
    pub per_client: usize,
    /// Time until the head of a request has arrived, and without progress of an answer.
    pub idle: Duration,
    /// Time of a request, and to send its answer.
    pub timeout: Duration,
}

/// Client address and deadline of a request: an extension of each request.
#[derive(Clone, Copy, Debug)]
pub struct RequestContext {
    /// Address of the client.
    pub client: IpAddr,
    /// Time at which its answer must be ready.
    pub deadline: Instant,
}

/// Events of connections, for logs and metrics.
pub trait Observer: Send + Sync + 'static {
    /// Lives as long as a connection.
    type Connected: Send + 'static;

    /// A connection was accepted.
    fn connected(&self) -> Self::Connected;

    /// A connection failed, was not accepted, or was closed because of a bound.
    fn failed(&self, client: Option<SocketAddr>, reason: &dyn std::fmt::Display);
}

/// Accepts connections until `ended` completes; returns those that are still open.
pub async fn serve<O: Observer>(
    listener: TcpListener,
    bounds: Bounds,
    observer: Arc<O>,
    router: Router,
    ended: impl Future<Output = ()>,
) -> GracefulShutdown {
    let open = GracefulShutdown::new();
    let places = Arc::new(Semaphore::new(bounds.connections));
    let clients = Arc::new(Clients::new(bounds.per_client));
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(bounds.idle).max_buf_size(BUFFER);
    tokio::pin!(ended);
    loop {
        let (stream, peer, place) = tokio::select! {
            () = &mut ended => return open,
            accepted = accept(&listener, &places, &*observer) => accepted,
        };
        let Some(slot) = clients.admit(peer.ip()) else {
            observer.failed(Some(peer), &"it has too many connections");
            continue;
        };
        // Answers are written in one piece, so there is nothing for Nagle's algorithm to merge.
        let _ = stream.set_nodelay(true);
        let routes = TowerToHyperService::new(router.clone());
        let service = service_fn(move |mut request: Request<Incoming>| {
            let deadline = Instant::now() + bounds.timeout;
            request.extensions_mut().insert(RequestContext { client: peer.ip(), deadline });
            routes.call(request)
        });
        let stream = BoundedStream::new(stream, bounds.idle, bounds.timeout);
        let connection = open.watch(http.serve_connection(TokioIo::new(stream), service));
        let (connected, observer) = (observer.connected(), Arc::clone(&observer));
        tokio::spawn(async move {
            if let Err(error) = connection.await {
                observer.failed(Some(peer), &error);
            }
            // The place last: who gets it may be the same client.
            drop((connected, slot, place));
        });
    }
}

/// Accepts the next connection once the number of connections is below the limit.
async fn accept(
    listener: &TcpListener,
    places: &Arc<Semaphore>,
    observer: &impl Observer,
) -> (TcpStream, SocketAddr, OwnedSemaphorePermit) {
    let place = Arc::clone(places).acquire_owned().await.expect("the semaphore is never closed");
    loop {
        match listener.accept().await {
            Ok((stream, peer)) => return (stream, peer, place),
            Err(error) => {
                observer.failed(None, &error);
                sleep(PAUSE).await;
            }
        }
    }
}
