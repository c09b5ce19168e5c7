//! HTTP/1.1 connections, limited in number and in idle time.

use std::net::SocketAddr;
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
use tracing::{debug, warn};

use crate::commands::serve::app::{App, RequestContext};

/// Bytes of the buffer of a connection, which bounds the head of a request.
const BUFFER: usize = 1 << 16;
/// Wait after a failed accept, such as one without free file descriptors: an immediate retry would
/// fail too.
const PAUSE: Duration = Duration::from_millis(100);

/// Accepts connections until `ended` completes; returns those that are still open.
pub async fn serve(
    listener: TcpListener,
    app: &Arc<App>,
    router: Router,
    ended: impl Future<Output = ()>,
) -> GracefulShutdown {
    let open = GracefulShutdown::new();
    let places = Arc::new(Semaphore::new(app.limits.max_connections));
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(app.limits.idle).max_buf_size(BUFFER);
    tokio::pin!(ended);
    loop {
        let (stream, peer, place) = tokio::select! {
            () = &mut ended => return open,
            accepted = accept(&listener, &places) => accepted,
        };
        // Answers are written in one piece, so there is nothing for Nagle's algorithm to merge.
        let _ = stream.set_nodelay(true);
        let routes = TowerToHyperService::new(router.clone());
        let timeout = app.limits.timeout;
        let service = service_fn(move |mut request: Request<Incoming>| {
            let context = RequestContext { client: peer.ip(), deadline: Instant::now() + timeout };
            request.extensions_mut().insert(context);
            routes.call(request)
        });
        let connection = open.watch(http.serve_connection(TokioIo::new(stream), service));
        let connected = app.metrics.connect();
        tokio::spawn(async move {
            if let Err(error) = connection.await {
                debug!(%peer, %error, "connection");
            }
            drop((place, connected));
        });
    }
}

/// Accepts the next connection once the number of connections is below the limit.
async fn accept(
    listener: &TcpListener,
    places: &Arc<Semaphore>,
) -> (TcpStream, SocketAddr, OwnedSemaphorePermit) {
    let place = Arc::clone(places).acquire_owned().await.expect("the semaphore is never closed");
    loop {
        match listener.accept().await {
            Ok((stream, peer)) => return (stream, peer, place),
            Err(error) => {
                warn!(%error, "a connection was not accepted");
                sleep(PAUSE).await;
            }
        }
    }
}
