//! Nodes of different machines, over gRPC: HTTP/2 with or without TLS, by [tonic].
//!
//! Each pair of nodes has one stream of messages in both directions. **The node with the larger number makes
//! it**, and makes it again when it is lost; so of two nodes only the one with the smaller number has to be
//! reachable, and only the other has to know where. Neither frames nor their order pass through anything
//! else. The embedding program needs no runtime: a node has threads of its own, one unless more are asked
//! for, and [`send`](Transport::send) never waits for them.
//!
//! ```
//! use lda_transport::grpc::{Grpc, Options, Peer};
//! use lda_transport::{Arrival, NodeId, Transport, Wait};
//!
//! let mut first = Grpc::start(NodeId(0), Options::default())?;
//! let at = first.address().expect("it listens");
//! let mut options = Options::default();
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
//! # What can be chosen
//! | of [`Options`] | unless chosen | |
//! |---|---|---|
//! | `listen` | any port of the loopback | where this node is reached; [`Grpc::address`] says what it came to |
//! | `peers`, `known_only` | none, all may come | addresses of those with smaller numbers, names in certificates |
//! | `tls` | none | files of certificates; both sides have to have one, unless told otherwise |
//! | `longest_frame` | 16 MiB | the same at all nodes, or they refuse each other |
//! | `queue_frames`, `queue_bytes` | 256, 16 MiB | what waits to go to a peer |
//! | `window` | 16 MiB | what is on the way from a peer |
//! | `inbox_bytes` | 16 MiB | what has come of a peer and was not taken |
//! | `most_peers`, `strangers`, `hello` | 4,096, 64, 5 s | bounds on who comes, and on who does not say who he is |
//! | `ping`, `pong` | 0.5 s, 1.5 s | after their sum at most a dead line is lost |
//! | `backoff`, `longest_backoff` | 50 ms, 2 s | between attempts to connect |
//! | `spare_bytes`, `threads` | 16 MiB, 1 | |
//!
//! # What it costs
//! - A frame is copied once at the sender, into the buffer that tonic sends from, and once at the receiver,
//!   out of the pieces of HTTP/2; what the program gets is part of that buffer. The room of a sent frame
//!   comes back by [`spare`](Transport::spare).
//! - A frame that is kept keeps the buffer that it is part of, which may be longer: of a short one that is kept
//!   for long, keep a copy.
//! - Buffers come from the program's allocator. One that gives pages back to the system and has them again, as that
//!   of glibc does, costs a third of the throughput of frames of 64 KiB (`MALLOC_TRIM_THRESHOLD_` and
//!   `MALLOC_MMAP_THRESHOLD_` of 512 and 32 MiB keep them).
//! - 6 bytes a frame of protobuf at most, 5 of gRPC, 9 for each 128 KiB of HTTP/2.
//! - Memory: what is underway to a peer is at most [`Capabilities::queue_bytes`], on both sides together. It
//!   is had when it is used: of a thousand quiet peers a node has some 36 KiB each, and after short frames
//!   70 to 100.
//! - Who has said no hello may fill a window, and there are at most as many of them as `strangers` says.
//! - A peer whose program does not take frames is not read from beyond its inbox and its window. No other
//!   peer waits for that, as each has a connection of its own.
//!
//! # Certificates
//! With [`Tls`] nobody between nodes reads or changes frames, and with `mutual`, as it is unless told
//! otherwise, nobody connects who has no certificate of the authority. Which number a node may take is bound
//! to its certificate only where [`Peer::name`] says so. The files are looked at for each new connection and
//! read again when they have changed; where they are of no use then, the old ones are used on and
//! [`Grpc::certificates`] says why. A connection that is up stays up, whatever becomes of its certificate.
//!
//! # What goes wrong
//! What cannot work is an error of [`Grpc::start`]. What may pass is tried again, with longer and longer
//! waits, and can be asked for: [`Grpc::trouble`] of a peer that is looked for, [`Grpc::strangers`] of those
//! who came and were turned away. Both are also told by `tracing`. A second connection of a peer takes the
//! place of the first, which is `Down` and then `Up` to the program: a peer that has started again does not
//! wait until its old connection is found to be dead.
//!
//! A peer that closes is heard of as [`Loss::Closed`](crate::Loss::Closed), and so is one whose program ends,
//! as the system closes its connections. A line that is cut is [`Loss::Broken`](crate::Loss::Broken).
//!
//! # Health
//! The service `grpc.health.v1.Health` is on the same port, and says `SERVING` of everything, and of
//! [`wire::SERVICE`], while the node is open. Who asks counts as a stranger that may stay.

mod client;
mod connection;
mod error;
mod io;
mod node;
mod options;
mod outbox;
mod server;
mod tls;
pub mod wire;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::task::Waker;
use std::time::Duration;

use tokio::runtime::{Builder, Runtime};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;

pub use error::{StartError, Strangers, TlsError, Trouble};
pub use options::{Options, Peer, Tls};

use crate::frame::Frame;
use crate::inbox::{Inbox, Receiving, inbox};
use crate::transport::{
    Arrival, Capabilities, NodeId, ReceiveError, SendError, Transport, Unsent, Wait,
};
use node::{Item, Link, Node, Phase};

/// How long a goodbye may take beyond what a node that closes is given.
const GOODBYE: Duration = Duration::from_millis(20);
/// Threads that resolve names, at most.
const RESOLVERS: usize = 4;

/// A node that others reach by gRPC.
#[derive(Debug)]
pub struct Grpc {
    node: Arc<Node>,
    address: Option<SocketAddr>,
    waker: Waker,
    /// Those that are up.
    peers: BTreeMap<NodeId, Arc<Link>>,
    /// None once closed.
    running: Option<Running>,
}

#[derive(Debug)]
struct Running {
    inbox: Inbox<Item>,
    runtime: Runtime,
    phase: watch::Sender<Phase>,
    /// Ends when nobody is let in any more.
    listening: Option<JoinHandle<()>>,
    /// What connections are known by to be there.
    alive: mpsc::Sender<()>,
    ended: mpsc::Receiver<()>,
}

impl Grpc {
    /// Starts a node: listens, and begins to connect to the peers with smaller numbers. It does not wait for
    /// any.
    ///
    /// # Errors
    /// [`StartError`], of what is wrong with the options, the address or the certificates.
    pub fn start(id: NodeId, options: Options) -> Result<Self, StartError> {
        options.check(id)?;
        let runtime = Builder::new_multi_thread()
            .worker_threads(options.threads)
            .max_blocking_threads(RESOLVERS)
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

    /// Where it listens, if it does.
    pub fn address(&self) -> Option<SocketAddr> {
        self.address
    }

    /// What keeps a peer away that this node connects to. None while it is up, or not tried yet.
    pub fn trouble(&self, peer: NodeId) -> Option<Trouble> {
        self.node.trouble(peer)
    }

    /// Who came and was turned away.
    pub fn strangers(&self) -> Strangers {
        self.node.strangers()
    }

    /// Whether the files of certificates could be read when they had last changed.
    ///
    /// # Errors
    /// Why not. Those of before are used.
    pub fn certificates(&self) -> Result<(), TlsError> {
        let failed = self.node.tls.as_ref().and_then(tls::Store::failed);
        failed.map_or(Ok(()), Err)
    }

    /// Reads the files of certificates now, for connections to come. They are read without it too, when they
    /// have changed.
    ///
    /// # Errors
    /// Why they cannot be used. Those of before are.
    pub fn reload(&self) -> Result<(), TlsError> {
        self.node.tls.as_ref().map_or(Ok(()), tls::Store::reload)
    }
}

impl Receiving<Item> for Grpc {
    fn inbox(&self) -> Option<&Inbox<Item>> {
        Some(&self.running.as_ref()?.inbox)
    }

    fn arrival(&mut self, item: Item) -> Option<Arrival> {
        match item {
            Item::Up(link) => {
                let peer = link.peer;
                self.peers.insert(peer, link);
                Some(Arrival::Up { peer })
            }
            Item::Frame(link, frame) => {
                link.seat.give_room(frame.len());
                Some(Arrival::Frame { peer: link.peer, frame })
            }
            // Of a connection that is no more, if it is not the same.
            Item::Room(link) => {
                let current = self.peers.get(&link.peer)?;
                Arc::ptr_eq(current, &link).then_some(Arrival::Room { peer: link.peer })
            }
            Item::Down(link, loss, turn) => {
                self.peers.remove(&link.peer);
                // The next connection may be up from here on.
                drop(turn);
                Some(Arrival::Down { peer: link.peer, loss })
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
            ..Capabilities::new(options.longest_frame, options.underway())
        }
    }

    fn send(&mut self, to: NodeId, frame: Frame) -> Result<(), Unsent> {
        let refuse = |frame, error| Err(Unsent { to, frame, error });
        if self.running.is_none() {
            return refuse(frame, SendError::Closed);
        }
        let Some(link) = self.peers.get(&to) else { return refuse(frame, SendError::NotUp) };
        let (len, longest) = (frame.len(), self.node.options.longest_frame);
        if len > longest {
            return refuse(frame, SendError::TooLong { len, longest });
        }
        let put = link.outbox.put(frame.into());
        put.or_else(|(frame, error)| refuse(frame.into(), error))
    }

    fn receive(&mut self, wait: Wait) -> Result<Option<Arrival>, ReceiveError> {
        self.next_arrival(wait)
    }

    fn waker(&self) -> Waker {
        self.waker.clone()
    }

    fn spare(&mut self) -> Vec<u8> {
        self.node.rooms.spare()
    }

    fn release(&mut self, frame: Frame) {
        self.node.rooms.release(frame);
    }

    fn close(&mut self, patience: Duration) {
        let Some(running) = self.running.take() else { return };
        let Running { inbox, runtime, phase, listening, alive, mut ended } = running;
        self.peers.clear();
        drop(inbox);
        phase.send_replace(Phase::Closing);
        // By a channel, as a thread of another runtime may not wait for a future.
        let (done, is_done) = std::sync::mpsc::channel();
        runtime.spawn(async move {
            if let Some(listening) = listening {
                // It comes to its end, or has.
                let _ = listening.await;
            }
            drop(alive);
            if tokio::time::timeout(patience, ended.recv()).await.is_err() {
                phase.send_replace(Phase::Leaving);
                let _ = tokio::time::timeout(GOODBYE, ended.recv()).await;
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
