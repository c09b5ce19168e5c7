//! The side that connects.

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

use super::connection::{Outgoing, reaches, words};
use super::error::Trouble;
use super::io::{Bytestream, End, Party, Rank, Watched};
use super::node::{Link, Node, Phase};
use super::options::{Peer, endpoint, host};
use super::server::{BEYOND, PIECE, WINDOW};
use super::wire::{Hello, METHOD};
use crate::transport::NodeId;

/// Connects to a peer, again and again, until the node closes.
pub(super) async fn dial(node: Arc<Node>, peer: NodeId, at: Peer) {
    let mut phase = node.phase.clone();
    let mut backoff = node.options.backoff;
    loop {
        let begun = Instant::now();
        // In a task of its own: should tonic panic at what a peer says, it is that attempt that fails.
        let attempt = tokio::spawn(attempt(Arc::clone(&node), peer, at.clone()));
        match attempt.await {
            Ok(Ok(())) => {}
            Ok(Err(trouble)) => node.note(peer, Some(trouble)),
            Err(error) => node.note(peer, Some(Trouble::Broken { why: error.to_string() })),
        }
        if begun.elapsed() > node.options.longest_backoff {
            backoff = node.options.backoff;
        }
        tokio::select! {
            () = tokio::time::sleep(jittered(backoff)) => {}
            () = reaches(&mut phase, Phase::Closing) => return,
        }
        backoff = backoff.saturating_mul(2).min(node.options.longest_backoff);
    }
}

/// Half of it, and at random up to all, so that those who lost a peer at once do not come back at once.
fn jittered(time: Duration) -> Duration {
    // Its keys are random, which is as much chance as this takes.
    let random = RandomState::new().build_hasher().finish();
    time.mul_f64(0.5 + 0.5 * (random as f64 / u64::MAX as f64))
}

async fn attempt(node: Arc<Node>, peer: NodeId, at: Peer) -> Result<(), Trouble> {
    let Some(_alive) = node.alive.upgrade() else { return Ok(()) };
    let mut phase = node.phase.clone();
    let (link, party, frames) = tokio::select! {
        greeted = tokio::time::timeout(node.options.hello, greet(&node, peer, &at)) => {
            greeted.map_err(|_| Trouble::NoHello)??
        }
        () = reaches(&mut phase, Phase::Closing) => return Ok(()),
    };
    node.attend(&link, &party, frames).await;
    Ok(())
}

type Greeted = (Arc<Link>, Arc<Party>, Streaming<bytes::Bytes>);

/// Connects, and comes as far as the other's hello.
async fn greet(node: &Node, peer: NodeId, at: &Peer) -> Result<Greeted, Trouble> {
    let address = at.address.as_deref().unwrap_or_default();
    let (watched, party) = connect(node, address, at.name.as_deref()).await?;
    let options = &node.options;
    // What ended the stream of bytes says more than what that did to HTTP/2.
    let failed = |status: Status| match party.end() {
        Some(End::Failed(trouble)) => trouble,
        Some(End::Over) | None => Trouble::Broken { why: words(&status) },
    };
    let endpoint = endpoint(address).ok_or_else(|| Trouble::Resolve {
        address: address.to_owned(),
        why: "it is not of the form host:port".to_owned(),
    })?;
    let channel = endpoint
        .initial_stream_window_size(options.window)
        .initial_connection_window_size(options.window.saturating_add(BEYOND).min(WINDOW))
        .max_frame_size(PIECE)
        .http2_keep_alive_interval(options.ping)
        .keep_alive_timeout(options.pong)
        .keep_alive_while_idle(true)
        .connect_with_connector(Once(Some(watched)))
        .await
        .map_err(|error| failed(Status::from_error(error.into())))?;
    let mut grpc = Grpc::new(channel)
        .max_decoding_message_size(node.longest_message())
        .max_encoding_message_size(node.longest_message());
    grpc.ready().await.map_err(|error| failed(Status::from_error(error.into())))?;
    let link = node.link(peer, node.seat(peer)?);
    let outgoing = Outgoing { link: Arc::clone(&link), inbox: node.inbox.clone() };
    let path = http::uri::PathAndQuery::from_static(METHOD);
    let answer = grpc.streaming(Request::new(outgoing), path, node.codec()).await;
    let greeted = match answer {
        Ok(answer) => hear(node, peer, answer.into_inner(), failed).await,
        Err(status) => Err(refusal(status, failed)),
    };
    let frames = greeted.inspect_err(|_| link.outbox.cut())?;
    Ok((link, party, frames))
}

/// Hears and judges the other's hello.
async fn hear(
    node: &Node,
    peer: NodeId,
    mut frames: Streaming<bytes::Bytes>,
    failed: impl Fn(Status) -> Trouble,
) -> Result<Streaming<bytes::Bytes>, Trouble> {
    let first = match frames.message().await {
        Ok(first) => first.unwrap_or_default(),
        Err(status) => return Err(refusal(status, failed)),
    };
    let hello = Hello::decode(&first)?;
    node.check(&hello, Some(peer))?;
    Ok(frames)
}

/// The other's words, where it has some.
fn refusal(status: Status, failed: impl Fn(Status) -> Trouble) -> Trouble {
    if status.code() == tonic::Code::FailedPrecondition {
        return Trouble::Refused { words: words(&status) };
    }
    failed(status)
}

type Dialed = Watched<Box<dyn Bytestream>>;

/// A stream of bytes to an address.
async fn connect(
    node: &Node,
    address: &str,
    name: Option<&str>,
) -> Result<(Dialed, Arc<Party>), Trouble> {
    let stream = reach(address, node.options.hello).await?;
    // It is a matter of speed.
    let _ = stream.set_nodelay(true);
    let to = stream.peer_addr().map_err(|error| Trouble::of(&error))?;
    let party = Party::new(to, Rank::Peer);
    let stream: Box<dyn Bytestream> = match &node.tls {
        None => Box::new(stream),
        Some(store) => {
            let name = name.or_else(|| host(address)).unwrap_or_default();
            let name = ServerName::try_from(name.to_owned()).map_err(|_| Trouble::Certificate {
                why: format!("{name:?} is no name that a certificate can have"),
            })?;
            let connector = TlsConnector::from(store.current().client);
            let shaken = connector.connect(name, stream).await;
            Box::new(shaken.map_err(|error| Trouble::of(&error))?)
        }
    };
    Ok((Watched::dialed(stream, Arc::clone(&party), node.tls.is_some()), party))
}

/// The first of the addresses of a name at which somebody is. Each has its share of the time, so that one
/// that swallows everything does not hide the next.
async fn reach(address: &str, patience: Duration) -> Result<TcpStream, Trouble> {
    let unresolved = |why: String| Trouble::Resolve { address: address.to_owned(), why };
    let resolved = tokio::net::lookup_host(address).await;
    let resolved: Vec<SocketAddr> =
        resolved.map_err(|error| unresolved(error.to_string()))?.collect();
    let share = patience / u32::try_from(resolved.len().max(1)).unwrap_or(u32::MAX);
    let mut failed = unresolved("no address has that name".to_owned());
    for at in resolved {
        let why = match tokio::time::timeout(share, TcpStream::connect(at)).await {
            Ok(Ok(stream)) => return Ok(stream),
            Ok(Err(error)) => error.to_string(),
            Err(late) => late.to_string(),
        };
        failed = Trouble::Connect { address: at.to_string(), why };
    }
    Err(failed)
}

/// Gives tonic a connection that is there already. It would make another when that is lost: there is none.
struct Once(Option<Dialed>);

impl Service<http::Uri> for Once {
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
    fn waits_are_spread() {
        let second = Duration::from_secs(1);
        let waits = [(); 100].map(|()| jittered(second));
        assert!(waits.iter().all(|&wait| wait >= second / 2 && wait <= second));
        let (least, most) = (waits.iter().min().unwrap(), waits.iter().max().unwrap());
        assert!(*most - *least > second / 10, "{least:?} to {most:?}");
    }
}
