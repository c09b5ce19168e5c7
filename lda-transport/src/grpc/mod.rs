//! Transport between machines over gRPC: HTTP/2 with or without TLS, by [tonic].
//!
//! Each pair of nodes has one bidirectional stream of messages. **The node with the larger number
//! connects**, and reconnects when the connection is lost, so only the node with the smaller number
//! has to be reachable, and only the other needs its address. Frames go directly from node to node.
//! The program needs no async runtime: a node has threads of its own, one by default, and
//! [`send`](Transport::send) never waits for them.
//!
//! ```
//! use lda_transport::grpc::{Grpc, GrpcOptions, Peer};
//! use lda_transport::{Arrival, NodeId, Transport, Wait};
//!
//! let mut first = Grpc::start(NodeId(0), GrpcOptions::default())?;
//! let at = first.address().expect("it listens");
//! let mut options = GrpcOptions::default();
//! options.peers.insert(NodeId(0), Peer::at(at.to_string()));
//! let mut second = Grpc::start(NodeId(1), options)?;
//!
//! assert_eq!(second.receive(Wait::Forever)?, Some(Arrival::Up { peer: NodeId(0) }));
//! second.send(NodeId(0), b"a row".to_vec().into())?;
//! assert_eq!(first.receive(Wait::Forever)?, Some(Arrival::Up { peer: NodeId(1) }));
//! let Some(Arrival::Frame { frame, .. }) = first.receive(Wait::Forever)? else { panic!("no frame") };
//! assert_eq!(&frame[..], b"a row");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Options
//! | field of [`GrpcOptions`] | default | |
//! |---|---|---|
//! | `listen` | any port of the loopback | address of this node; [`Grpc::address`] returns the actual port |
//! | `peers`, `allowlist_only` | none, any node may connect | addresses of the nodes with smaller numbers, names in certificates |
//! | `tls` | none | PEM files; both sides need a certificate, unless `mutual` is unset |
//! | `insecure` | no | whether connections with other machines may be without TLS |
//! | `token` | none | secret that all nodes of a run share |
//! | `max_frame_len` | 16 MiB | must be equal at all nodes, otherwise they reject each other |
//! | `queue_frames`, `queue_bytes` | 256, 16 MiB | limits of the send queue of a peer |
//! | `window` | 16 MiB | bytes in flight from a peer |
//! | `inbox_bytes` | 16 MiB | bytes received from a peer that the program has not taken |
//! | `max_peers`, `max_unauthenticated`, `handshake_timeout` | 4,096, 64, 5 s | limits on peers and on connections without a hello |
//! | `keepalive_interval`, `keepalive_timeout` | 0.5 s, 1.5 s | a dead connection is detected after at most their sum |
//! | `initial_backoff`, `max_backoff` | 50 ms, 2 s | waits between attempts to connect |
//! | `pool_bytes`, `threads` | 16 MiB, 1 | |
//!
//! # Costs
//! - A frame is copied once at the sender, into the buffer that tonic sends from, and once at the
//!   receiver, out of the HTTP/2 frames; the received [`Frame`] is a slice of that buffer. The
//!   buffer of a sent frame is available again through [`take_buffer`](Transport::take_buffer).
//! - A frame that the program keeps retains the buffer that it is a slice of, which may be longer.
//!   To keep a short frame for long, copy it.
//! - Buffers come from the program's allocator. One that returns pages to the system and requests
//!   them again, like that of glibc, costs a third of the throughput of frames of 64 KiB
//!   (`MALLOC_TRIM_THRESHOLD_` and `MALLOC_MMAP_THRESHOLD_` of 512 and 32 MiB prevent it).
//! - Overhead per frame: at most 6 bytes of protobuf, 5 of gRPC, and 9 per 128 KiB of HTTP/2.
//! - Memory: at most [`Capabilities::queue_bytes`] are in flight to a peer, at both sides together.
//!   Memory is allocated when it is used: with a thousand idle peers a node has about 36 KiB per
//!   peer, and after short frames 70 to 100.
//! - Each unauthenticated connection may buffer one window; `max_unauthenticated` bounds their
//!   number. A first message of more than 128 bytes ends it before memory is reserved.
//! - A peer whose frames the program does not take is read no further than its inbox and its
//!   window. Other peers are not delayed, as each has a connection of its own.
//!
//! # Certificates
//! With [`Tls`] frames are encrypted and authenticated between nodes, and with `mutual`, the
//! default, only nodes with a certificate of the authority can connect. A certificate is bound to a
//! node number only by [`Peer::name`]. The files are checked at each new connection and reloaded
//! when they have changed; if the new content is invalid, the previous one stays in use and
//! [`Grpc::certificate_status`] returns the error. An established connection does not end when its
//! certificate expires.
//!
//! # Without certificates
//! A node connects to other machines without TLS, and listens for them, only if
//! [`insecure`](GrpcOptions::insecure) is set, and then logs a warning. A [`Token`] keeps strangers out
//! who can connect, but cannot read or redirect the traffic.
//!
//! # Failures
//! Permanent errors are returned by [`Grpc::start`]. After errors that may be temporary a node
//! retries, with growing waits: [`Grpc::connect_error`] returns that of a peer which this node
//! connects to, [`Grpc::rejected`] the incoming connections that were rejected. Both are also
//! logged with `tracing`. An open connection keeps its node number: another one with that number is
//! rejected. The operating system closes the connections of a program that has ended, and one that
//! is dead without that is closed after `keepalive_interval` and `keepalive_timeout`; a restarted
//! peer is then up at its next attempt.
//!
//! A peer that closes, or whose program exits, is reported as
//! [`DisconnectReason::Closed`](crate::DisconnectReason::Closed): the operating system closes the
//! connections of a process. A connection that times out is reported as
//! [`DisconnectReason::Broken`](crate::DisconnectReason::Broken).
//!
//! # Health
//! The same port has the service `grpc.health.v1.Health`. While the node is open, it reports
//! `SERVING` for the server and for [`wire::SERVICE`]. Its clients count as unauthenticated
//! connections without a time limit.

mod client;
mod conn_state;
mod connection;
mod error;
mod first_message;
mod node;
mod options;
mod send_queue;
mod server;
mod stream;
mod tls;
mod token;
pub mod wire;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::task::Waker;
use std::time::Duration;

use tokio::runtime::{Builder, Runtime};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;

pub use error::{ConnectError, RejectedPeers, StartError, TlsError};
pub use options::{GrpcOptions, Peer, Tls};
pub use token::Token;

use crate::frame::Frame;
use crate::inbox::{Inbox, Receiving, inbox};
use crate::transport::{
    Arrival, Capabilities, NodeId, ReceiveError, SendError, Transport, Unsent, Wait,
};
use node::{Connection, Item, Node, Phase};

/// Time to end the connections after the patience of [`Transport::close`] has run out.
const TERMINATE_LIMIT: Duration = Duration::from_millis(20);
/// Maximum number of threads that resolve host names.
const MAX_RESOLVERS: usize = 4;

/// Node of the gRPC transport.
#[derive(Debug)]
pub struct Grpc {
    node: Arc<Node>,
    address: Option<SocketAddr>,
    waker: Waker,
    /// Connections of the peers whose `Up` the program has received.
    peers: BTreeMap<NodeId, Arc<Connection>>,
    /// `None` after `close`.
    running: Option<Running>,
}

#[derive(Debug)]
struct Running {
    inbox: Inbox<Item>,
    runtime: Runtime,
    phase: watch::Sender<Phase>,
    /// Task that accepts connections; ends when the node closes.
    listening: Option<JoinHandle<()>>,
    /// Each connection has a clone while it lives.
    alive: mpsc::Sender<()>,
    /// Ends when all clones of `alive` are dropped.
    ended: mpsc::Receiver<()>,
}

impl Grpc {
    /// Starts a node: listens, and begins to connect to the peers with smaller numbers. Does not
    /// wait for the connections.
    ///
    /// # Errors
    /// [`StartError`] if an option, the address or a certificate is invalid.
    pub fn start(id: NodeId, options: GrpcOptions) -> Result<Self, StartError> {
        options.check(id)?;
        let runtime = Builder::new_multi_thread()
            .worker_threads(options.threads)
            .max_blocking_threads(MAX_RESOLVERS)
            .thread_name("grpc")
            .enable_all()
            .build()
            .map_err(StartError::Threads)?;
        let (slot, inbox) = inbox();
        let (phase, phases) = watch::channel(Phase::Open);
        let (alive, ended) = mpsc::channel(1);
        let node = Arc::new(Node::new(id, options, slot, phases, alive.downgrade())?);
        let entered = runtime.enter();
        let listener = node.options.listen.as_deref().map(server::listen).transpose()?;
        let address = listener.as_ref().and_then(|listener| listener.local_addr().ok());
        if let Some(address) = address.filter(|address| !address.ip().is_loopback()) {
            node.options.check_exposed(&format!("listens on {address}"))?;
        }
        if node.options.insecure && node.options.tls.is_none() {
            tracing::warn!(
                node = id.0,
                "the option `insecure` is set: connections are not encrypted, and others in the network may \
                 read, change or end the run"
            );
        }
        let listening =
            listener.map(|listener| tokio::spawn(server::serve(Arc::clone(&node), listener)));
        for (&peer, at) in node.options.peers.range(..id) {
            if at.address.is_some() {
                tokio::spawn(client::dial(Arc::clone(&node), peer, at.clone()));
            }
        }
        drop(entered);
        let waker = inbox.waker();
        let running = Some(Running { inbox, runtime, phase, listening, alive, ended });
        Ok(Self { node, address, waker, peers: BTreeMap::new(), running })
    }

    /// Returns the address that the node listens on, if it does.
    pub fn address(&self) -> Option<SocketAddr> {
        self.address
    }

    /// Returns the last error of a peer that this node connects to. `None` while the peer is up,
    /// and before the first attempt has failed.
    pub fn connect_error(&self, peer: NodeId) -> Option<ConnectError> {
        self.node.connect_error(peer)
    }

    /// Returns the number of rejected connections and the last of them.
    pub fn rejected(&self) -> RejectedPeers {
        self.node.rejected()
    }

    /// Returns whether the certificate files were valid when they last changed.
    ///
    /// # Errors
    /// [`TlsError`] of the last reload. The previous certificates stay in use.
    pub fn certificate_status(&self) -> Result<(), TlsError> {
        let error = self.node.tls.as_ref().and_then(tls::CertificateStore::last_error);
        error.map_or(Ok(()), Err)
    }

    /// Reloads the certificate files now, for new connections. Changed files are also reloaded
    /// without this call, at the next connection.
    ///
    /// # Errors
    /// [`TlsError`] if the files are invalid. The previous certificates stay in use.
    pub fn reload_certificates(&self) -> Result<(), TlsError> {
        self.node.tls.as_ref().map_or(Ok(()), tls::CertificateStore::reload)
    }
}

impl Receiving<Item> for Grpc {
    fn inbox(&self) -> Option<&Inbox<Item>> {
        Some(&self.running.as_ref()?.inbox)
    }

    fn arrival(&mut self, item: Item) -> Option<Arrival> {
        match item {
            Item::Up(connection) => {
                let peer = connection.peer;
                self.peers.insert(peer, connection);
                Some(Arrival::Up { peer })
            }
            Item::Frame(connection, frame) => {
                connection.slot.free_inbox(frame.len());
                Some(Arrival::Frame { peer: connection.peer, frame })
            }
            // Ignored if the connection has been replaced in the meantime.
            Item::Writable(connection) => {
                let current = self.peers.get(&connection.peer)?;
                Arc::ptr_eq(current, &connection)
                    .then_some(Arrival::Writable { peer: connection.peer })
            }
            Item::Down(connection, reason, permit) => {
                self.peers.remove(&connection.peer);
                // INVARIANT: the permit lives until here, so that the next connection of this peer
                // comes up only after the program has received this `Down`.
                drop(permit);
                Some(Arrival::Down { peer: connection.peer, reason })
            }
        }
    }
}

impl Transport for Grpc {
    fn id(&self) -> NodeId {
        self.node.id
    }

    fn capabilities(&self) -> Capabilities {
        let options = &self.node.options;
        Capabilities {
            reconnects: true,
            survives_loss: true,
            encrypted: options.tls.is_some(),
            ..Capabilities::new(options.max_frame_len, options.max_in_flight())
        }
    }

    fn send(&mut self, to: NodeId, frame: Frame) -> Result<(), Unsent> {
        let refuse = |frame, error| Err(Unsent { to, frame, error });
        if self.running.is_none() {
            return refuse(frame, SendError::Closed);
        }
        let Some(connection) = self.peers.get(&to) else { return refuse(frame, SendError::NotUp) };
        let (len, longest) = (frame.len(), self.node.options.max_frame_len);
        if len > longest {
            return refuse(frame, SendError::TooLong { len, longest });
        }
        let pushed = connection.send_queue.push(frame.into());
        pushed.or_else(|(frame, error)| refuse(frame.into(), error))
    }

    fn receive(&mut self, wait: Wait) -> Result<Option<Arrival>, ReceiveError> {
        self.next_arrival(wait)
    }

    fn waker(&self) -> Waker {
        self.waker.clone()
    }

    fn take_buffer(&mut self) -> Vec<u8> {
        self.node.buffers.take_buffer()
    }

    fn release(&mut self, frame: Frame) {
        self.node.buffers.release(frame);
    }

    fn close(&mut self, patience: Duration) {
        let Some(running) = self.running.take() else { return };
        let Running { inbox, runtime, phase, listening, alive, mut ended } = running;
        self.peers.clear();
        drop(inbox);
        phase.send_replace(Phase::Draining);
        // The caller waits on a channel: a thread of another tokio runtime may not use `block_on`.
        let (done, is_done) = std::sync::mpsc::channel();
        runtime.spawn(async move {
            if let Some(listening) = listening {
                // Ends in the phase `Draining`; the health service then reports `NOT_SERVING`.
                let _ = listening.await;
            }
            drop(alive);
            if tokio::time::timeout(patience, ended.recv()).await.is_err() {
                phase.send_replace(Phase::Terminating);
                let _ = tokio::time::timeout(TERMINATE_LIMIT, ended.recv()).await;
            }
            let _ = done.send(());
        });
        let _ = is_done.recv();
        runtime.shutdown_background();
    }
}

impl Drop for Grpc {
    fn drop(&mut self) {
        self.close(Duration::ZERO);
    }
}
