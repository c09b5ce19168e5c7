//! Each pair of nodes has one connection, which the node with the larger number opens, and opens
//! again when it is lost. A connection has a thread that reads and one that writes. Between them
//! and the program are an inbox, and an outbox per peer, of few frames each: a full inbox stops the
//! reading, and a full outbox makes `send` fail.
//!
//! INVARIANT: notifications that a peer is writable do not go through the inbox. A program that
//! sends for long before it receives would fill it with them, and frames and ends of peers would
//! not get in.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, BufRead, BufReader, BufWriter, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex};
use std::task::{Wake, Waker};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use lda_transport::{
    Arrival, Capabilities, DisconnectReason, Frame, NodeId, ReceiveError, SendError, Transport,
    Unsent, Wait,
};

const LONGEST: usize = 16 << 20;
const QUEUE: usize = 8;

/// Frames to a peer, and whether the program waits for space.
type Outbox = (SyncSender<Frame>, Arc<AtomicBool>);
/// The receiving end of an outbox.
type Queue = (Receiver<Frame>, Arc<AtomicBool>);
/// An arrival, with the outbox of the peer for an `Up`; `None` after a notification.
type Item = Option<(Arrival, Option<Outbox>)>;

#[derive(Debug)]
struct Node {
    id: NodeId,
    inbox: SyncSender<Item>,
    /// Connections by peer, so that there is at most one, and that it can be closed.
    streams: Mutex<BTreeMap<NodeId, TcpStream>>,
    /// Peers that became writable, and `None` for a wake-up, until the program has received it.
    notifications: Mutex<BTreeSet<Option<NodeId>>>,
    closed: AtomicBool,
}

#[derive(Debug)]
pub struct Tcp {
    node: Arc<Node>,
    arrivals: Option<Receiver<Item>>,
    outboxes: BTreeMap<NodeId, Outbox>,
    address: SocketAddr,
    accepting: Option<JoinHandle<()>>,
}

impl Tcp {
    pub fn new(id: NodeId, listener: TcpListener, nodes: &BTreeMap<NodeId, SocketAddr>) -> Self {
        let (inbox, arrivals) = sync_channel(QUEUE);
        let (streams, notifications, closed) = (Mutex::default(), Mutex::default(), false.into());
        let node = Arc::new(Node { id, inbox, streams, notifications, closed });
        let here = Arc::clone(&node);
        let accepting = Some(thread::spawn(move || {
            for stream in listener.incoming().flatten().take_while(|_| !here.closed.load(SeqCst)) {
                let node = Arc::clone(&here);
                thread::spawn(move || node.connect(stream));
            }
        }));
        for &address in nodes.range(..id).map(|node| node.1) {
            let node = Arc::clone(&node);
            thread::spawn(move || {
                while !node.closed.load(SeqCst) {
                    let _ = TcpStream::connect(address).and_then(|stream| node.connect(stream));
                    thread::sleep(Duration::from_millis(20));
                }
            });
        }
        let (arrivals, outboxes, address) = (Some(arrivals), BTreeMap::new(), nodes[&id]);
        Self { node, arrivals, outboxes, address, accepting }
    }
}

impl Node {
    /// Passes an arrival to the program. After the program has closed, reading continues and
    /// arrivals are dropped: closing a socket with unread data would discard data that it has sent.
    fn arrive(&self, arrival: Arrival, outbox: Option<Outbox>) {
        let _ = self.inbox.send(Some((arrival, outbox)));
    }

    /// Notifies the program. If the inbox is full, the program is not asleep.
    fn notify(&self, notifications: Option<NodeId>) {
        if self.notifications.lock().expect("no thread panics with the lock").insert(notifications)
        {
            let _ = self.inbox.try_send(None);
        }
    }

    /// Exchanges greetings, and reads until the connection ends.
    fn connect(self: &Arc<Self>, mut stream: TcpStream) -> io::Result<()> {
        stream.set_nodelay(true)?;
        stream.write_all(&self.id.0.to_le_bytes())?;
        let mut greeting = [0; 4];
        stream.read_exact(&mut greeting)?;
        let peer = NodeId(u32::from_le_bytes(greeting));
        let mut streams = self.streams.lock().expect("no thread panics with the lock");
        if self.closed.load(SeqCst) || streams.contains_key(&peer) {
            return Ok(());
        }
        streams.insert(peer, stream.try_clone()?);
        drop(streams);
        let ((frames, queue), waits) = (sync_channel(QUEUE), Arc::<AtomicBool>::default());
        self.arrive(Arrival::Up { peer }, Some((frames, Arc::clone(&waits))));
        let (node, writing) = (Arc::clone(self), stream.try_clone()?);
        thread::spawn(move || {
            let _ = node.write(peer, &writing, &(queue, waits));
            let _ = writing.shutdown(Shutdown::Write);
        });
        let reason = match self.read(peer, &stream) {
            Ok(()) => DisconnectReason::Closed,
            Err(error) => DisconnectReason::Broken(error.to_string()),
        };
        let _ = stream.shutdown(Shutdown::Both);
        self.arrive(Arrival::Down { peer, reason }, None);
        self.streams.lock().expect("no thread panics with the lock").remove(&peer);
        Ok(())
    }

    /// Reads until the connection ends between two frames.
    fn read(&self, peer: NodeId, stream: &TcpStream) -> io::Result<()> {
        let mut reader = BufReader::with_capacity(1 << 16, stream);
        loop {
            if reader.fill_buf()?.is_empty() {
                return Ok(());
            }
            let mut len = [0; 4];
            reader.read_exact(&mut len)?;
            let (len, mut bytes) = (u32::from_le_bytes(len) as usize, Vec::new());
            // Grows with the bytes that arrive, not with the claimed length.
            if len > LONGEST || reader.by_ref().take(len as u64).read_to_end(&mut bytes)? < len {
                return Err(io::Error::other(format!("a frame of {len} bytes")));
            }
            self.arrive(Arrival::Frame { peer, frame: bytes.into() }, None);
        }
    }

    /// Writes until the program has dropped the outbox.
    fn write(&self, peer: NodeId, to: &TcpStream, (frames, waits): &Queue) -> io::Result<()> {
        let mut writer = BufWriter::with_capacity(1 << 16, to);
        while let Ok(first) = frames.recv() {
            for frame in std::iter::once(first).chain(frames.try_iter()) {
                if waits.swap(false, SeqCst) {
                    self.notify(Some(peer));
                }
                writer.write_all(&(frame.len() as u32).to_le_bytes())?;
                writer.write_all(&frame)?;
            }
            writer.flush()?;
        }
        Ok(())
    }
}

impl Wake for Node {
    fn wake(self: Arc<Self>) {
        self.notify(None);
    }
}

impl Transport for Tcp {
    fn id(&self) -> NodeId {
        self.node.id
    }

    fn capabilities(&self) -> Capabilities {
        // The buffers of two sockets hold less than 64 MiB.
        let mut capabilities = Capabilities::new(LONGEST, (64 << 20) + 2 * (QUEUE + 1) * LONGEST);
        (capabilities.reconnects, capabilities.survives_loss) = (true, true);
        capabilities
    }

    fn send(&mut self, to: NodeId, frame: Frame) -> Result<(), Unsent> {
        let unsent = |frame, error| Err(Unsent { to, frame, error });
        let len = frame.len();
        match self.outboxes.get(&to) {
            _ if self.arrivals.is_none() => unsent(frame, SendError::Closed),
            _ if len > LONGEST => unsent(frame, SendError::TooLong { len, longest: LONGEST }),
            None => unsent(frame, SendError::NotUp),
            Some((frames, waits)) => {
                let mut tried = frames.try_send(frame);
                if let Err(TrySendError::Full(frame)) = tried {
                    // INVARIANT: the flag is set before the second attempt, so that a frame that
                    // leaves in between is not missed.
                    waits.store(true, SeqCst);
                    tried = frames.try_send(frame).map(|()| waits.store(false, SeqCst));
                }
                match tried {
                    Ok(()) => Ok(()),
                    Err(TrySendError::Full(frame)) => unsent(frame, SendError::Full),
                    Err(TrySendError::Disconnected(frame)) => unsent(frame, SendError::NotUp),
                }
            }
        }
    }

    fn receive(&mut self, wait: Wait) -> Result<Option<Arrival>, ReceiveError> {
        let arrivals = self.arrivals.as_ref().ok_or(ReceiveError::Closed)?;
        let start = Instant::now();
        loop {
            if let Some(of) =
                self.node.notifications.lock().expect("no thread panics with the lock").pop_first()
            {
                return Ok(Some(of.map_or(Arrival::Woken, |peer| Arrival::Writable { peer })));
            }
            let item = match wait {
                Wait::No => arrivals.try_recv().ok(),
                Wait::For(time) => arrivals.recv_timeout(time.saturating_sub(start.elapsed())).ok(),
                Wait::Forever => arrivals.recv().ok(),
            };
            let Some(item) = item else { return Ok(None) };
            let Some((arrival, outbox)) = item else { continue };
            match (&arrival, outbox) {
                (Arrival::Up { peer }, Some(to)) => drop(self.outboxes.insert(*peer, to)),
                (Arrival::Down { peer, .. }, _) => drop(self.outboxes.remove(peer)),
                _ => {}
            }
            return Ok(Some(arrival));
        }
    }

    fn waker(&self) -> Waker {
        Waker::from(Arc::clone(&self.node))
    }

    fn close(&mut self, patience: Duration) {
        if self.arrivals.take().is_none() {
            return;
        }
        self.node.closed.store(true, SeqCst);
        // A connection wakes the thread that accepts. Writers end when they have written
        // everything; readers end when the peers have closed in turn.
        if TcpStream::connect(self.address).is_ok() {
            // So that another node can use the address.
            let _ = self.accepting.take().map(JoinHandle::join);
        }
        self.outboxes.clear();
        let start = Instant::now();
        let open = || self.node.streams.lock().expect("no thread panics with the lock");
        while !open().is_empty() && start.elapsed() < patience {
            thread::sleep(Duration::from_millis(1));
        }
        open().values().for_each(|stream| drop(stream.shutdown(Shutdown::Both)));
    }
}

impl Drop for Tcp {
    fn drop(&mut self) {
        self.close(Duration::ZERO);
    }
}
