//! Nodes that are the ranks of an MPI job: for clusters whose network MPI knows best.
//!
//! MPI belongs to one thread, which makes all calls to it: it begins it, moves the frames, and ends it. The
//! node's thread talks with that one, so that [`send`](Transport::send) does not wait for MPI, and MPI makes progress
//! while the program computes. A node's number is its rank. The feature is `mpi`; it builds where MPI is
//! installed, with its compiler wrapper `mpicc`, and libclang.
//!
//! ```no_run
//! use std::time::Duration;
//!
//! use lda_transport::rpc::{Config, Group, Identity};
//! use lda_transport::mpi::{self, Options};
//! use lda_transport::node::{Node, Silent};
//!
//! let minute = Duration::from_secs(60);
//! let transport = mpi::start(&Options::default())?;
//! let (this, all) = (lda_transport::Transport::id(&transport), transport.all());
//! let identity = Identity { incarnation: 1, role: 0, run: 1, configuration: 0 };
//! let node = Node::start(Box::new(transport), Config::new(identity), Silent)?;
//! let group = Group::new(1, all, this)?;
//! let sums: Vec<u64> = node.all_reduce(&group, &[u64::from(this.0)], minute)?;
//! // All close, in the end: MPI ends when the last one has.
//! node.close(minute)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Starting
//! - Open MPI: `mpirun -n 4 --bind-to none ./program`; `--oversubscribe` for more ranks than cores. Where ranks are
//!   bound to cores, as they are unless told otherwise, all threads of a rank share one: give each as many as it has
//!   threads (`--map-by slot:pe=8`), or do not bind.
//! - Slurm: `srun --mpi=pmix -n 4 -c 8 ./program`, where Slurm knows PMIx; `srun --mpi=list` says so.
//!
//! A program that neither has started is refused, unless [`Options::alone`] allows a job of one. All ranks give
//! the same bounds.
//!
//! # Closing
//! [`close`](Transport::close) hands on what was taken, as for any transport, and the others hear of it. Dropping the
//! transport, or a node that has it, waits until all ranks have closed, as the end of MPI does; so all should close
//! when the work is done. A program that ends otherwise, as by a panic on the node's thread or
//! [`exit`](std::process::exit), has not ended MPI: `mpirun` then ends the whole job, and says which rank it was. So
//! does the loss of a rank or a host. Nobody comes again.
//!
//! # Bounds
//! A rank grants its peers room for frames, [`Options::queue_frames`] and [`queue_bytes`](Options::queue_bytes) for
//! each, and grants it again as its program takes them. So all that is sent is received at once, into room of this
//! process; what a program leaves there is at most so much of each peer, and one frame more. Of its own sends MPI is
//! asked for at most 32 at once, and for 16 operations.
//!
//! # Operations
//! Those of a [`Group`](crate::rpc::Group) that is all ranks in order are MPI's own: barriers, broadcasts,
//! gatherings, and sums of integers. Sums of `f32` go over frames, as their bits should not depend on the order in
//! which MPI adds. Before an operation moves anything its ranks tell each other what it is, by a gathering of 48 bytes
//! each. So one that is not the same everywhere ends as
//! [`Mismatch`](crate::rpc::CollectiveError::Mismatch) and does not confuse MPI.
//!
//! MPI takes nothing back. When an operation misses its deadline or is not the same everywhere, or a rank closes, no
//! more of MPI's are begun by any rank; those that not all have begun end as
//! [`Rejected`](crate::rpc::CollectiveError::Rejected). A group with another id then works, over frames.
//!
//! # Cost
//! The thread looks for messages without rest for [`Options::spin`] after the last, and then sleeps in between, for a
//! quarter of the pause so far and at most for [`Options::sleep`]. So what ends a pause may come as much later, and a
//! little more as systems wake threads late; what is sent wakes the thread at once. An idle rank takes a few percent of
//! a core for this. Where there are fewer cores than threads, shorter spins leave more to others. Long frames go in
//! pieces of 1 MiB; frames are not copied but by MPI. There and back a frame wakes four threads. `examples/mpi.rs`
//! measures all this, beside MPI alone.
//!
//! There is no encryption: this is for a network of one's own.

mod agree;
mod backoff;
mod content;

mod incoming;
mod link;
mod operations;
mod outgoing;
mod thread;
mod wire;

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::sync::mpsc;
use std::task::{Wake, Waker};
use std::thread::JoinHandle;
use std::time::Duration;

use crossbeam_channel::{Receiver, Sender, unbounded};
use thiserror::Error;

use crate::bootstrap::{Environment, system};
use crate::frame::Frame;
use crate::rpc::{Collective, Element, OperationId};
use crate::together::Together;
use crate::transport::{
    Arrival, Capabilities, NodeId, ReceiveError, SendError, Transport, Unsent, Wait,
};

use crate::buffer_pool::BufferPool;
use link::{Link, Taken};
use operations::Begun;
use thread::{Ends, Order};

/// Bounds, and how the thread waits.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Options {
    /// Longest frame, in bytes.
    pub max_frame_len: usize,
    /// Frames underway from one node to another, at most.
    pub queue_frames: usize,
    /// Their bytes, at most, and one frame more.
    pub queue_bytes: usize,
    /// Bytes of released frames that are kept for use again, at most.
    pub pool_bytes: usize,
    /// How long the thread looks for messages without rest.
    pub spin: Duration,
    /// How long it then sleeps, at most, before it looks again: a quarter of the time in which nothing has come.
    pub sleep: Duration,
    /// Whether a program that no launcher has started is a job of one rank. Else it is an error, lest one who forgets
    /// `mpirun` has many jobs of one.
    pub alone: bool,
}

impl Default for Options {
    /// 1 GiB a frame; 256 frames and 16 MiB a pair; 128 MiB to spare; spins of 200 µs and sleeps of 500 µs; not alone.
    fn default() -> Self {
        Self {
            max_frame_len: 1 << 30,
            queue_frames: 256,
            queue_bytes: 16 << 20,
            pool_bytes: 128 << 20,
            spin: Duration::from_micros(200),
            sleep: Duration::from_micros(500),
            alone: false,
        }
    }
}

/// A rank that cannot be.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum Error {
    /// No launcher has started the program.
    #[error(
        "nobody has started this program as a rank: start it with mpirun, or with srun --mpi=pmix"
    )]
    NotStarted,
    /// The launcher has started several, and MPI knows of one.
    #[error(
        "{expected} tasks were started, and MPI knows of this one alone: start them with the mpirun of the \
         MPI that the program is built with, or with srun --mpi=pmix"
    )]
    Apart {
        /// How many tasks.
        expected: usize,
    },
    /// MPI has been begun in this process, by this transport or by others.
    #[error("MPI was begun in this process before: it can be once, and is this transport's alone")]
    Initialised,
    /// MPI does not allow a thread.
    #[error(
        "this MPI does not allow a program that uses it to have threads: build it with support for them"
    )]
    Threads,
    /// A bound is 0.
    #[error("{0} is 0")]
    Zero(&'static str),
    /// Ranks have different bounds.
    #[error("{rank} has other bounds than node 0: give all ranks the same options")]
    Differ {
        /// One that has.
        rank: NodeId,
    },
    /// The system gives no thread.
    #[error("no thread for MPI: {0}")]
    Thread(#[from] io::Error),
    /// MPI has ended its thread.
    #[error("MPI could not be begun")]
    Failed,
}

type Item = Result<Arrival, String>;

/// What both threads know.
#[derive(Debug)]
struct Shared {
    /// To each rank.
    links: Box<[Link]>,
    rooms: BufferPool,
    /// Whether no more operations of MPI's are begun.
    halted: AtomicBool,
}

impl Shared {
    fn new(options: &Options, ranks: usize) -> Self {
        let links = (0..ranks).map(|_| Link::default()).collect();
        Self { links, rooms: BufferPool::new(options.pool_bytes), halted: AtomicBool::new(false) }
    }
}

/// Begins MPI, and waits until all ranks have. It can be begun once in a process.
///
/// What goes wrong within MPI ends the program, and with it the job.
///
/// # Errors
/// [`Error`](enum@Error).
pub fn start(options: &Options) -> Result<Mpi, Error> {
    for (name, bound) in [
        ("longest_frame", options.max_frame_len),
        ("queue_frames", options.queue_frames),
        ("queue_bytes", options.queue_bytes),
    ] {
        if bound == 0 {
            return Err(Error::Zero(name));
        }
    }
    let expected = launched(&system);
    if expected.is_none() && !options.alone {
        return Err(Error::NotStarted);
    }
    let ((orders, taking), (giving, inbox)) = (unbounded(), unbounded());
    let ((handed, hands), (begun, begins)) = (mpsc::channel(), mpsc::channel());
    let bell = Arc::new(Notifier { rung: AtomicBool::new(false), inbox: giving.clone() });
    let ends = Ends { options: options.clone(), orders: taking, inbox: giving, handed };
    let thread = std::thread::Builder::new().name("lda mpi".to_owned());
    let thread = thread.spawn(move || thread::run(ends, expected.flatten(), &begun))?;
    let (shared, this) = match begins.recv().unwrap_or(Err(Error::Failed)) {
        Ok(begun) => begun,
        Err(error) => {
            // A program that ends while MPI does may keep others from it. One that has panicked has said so.
            let _ = thread.join();
            return Err(error);
        }
    };
    Ok(Mpi {
        options: options.clone(),
        members: (0..shared.links.len()).map(|rank| NodeId(rank as u32)).collect(),
        peers: shared.links.iter().map(|_| Peer::default()).collect(),
        shared,
        this,
        inbox: Some(inbox),
        orders,
        bell,
        hands,
        thread: Some(thread),
    })
}

/// Of a launcher that has started this process: how many it has, where it says so.
fn launched(environment: Environment<'_>) -> Option<Option<usize>> {
    let counts = ["OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_NTASKS"];
    let count = counts.iter().find_map(|name| environment(name)?.trim().parse().ok());
    let rank =
        ["PMIX_RANK", "PMI_RANK", "SLURM_PROCID"].iter().any(|name| environment(name).is_some());
    (count.is_some() || rank).then_some(count)
}

/// A rank of a job.
#[derive(Debug)]
pub struct Mpi {
    options: Options,
    shared: Arc<Shared>,
    this: usize,
    /// All ranks.
    members: Vec<NodeId>,
    peers: Vec<Peer>,
    /// None once closed.
    inbox: Option<Receiver<Item>>,
    orders: Sender<Order>,
    bell: Arc<Notifier>,
    /// Cut off when all has been handed on.
    hands: mpsc::Receiver<std::convert::Infallible>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug, Default)]
struct Peer {
    up: bool,
    taken: Taken,
}

#[derive(Debug)]
struct Notifier {
    /// Whether a waking lies in the inbox.
    rung: AtomicBool,
    inbox: Sender<Item>,
}

impl Wake for Notifier {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if !self.rung.swap(true, SeqCst) {
            // A node that has closed has nobody to wake.
            let _ = self.inbox.send(Ok(Arrival::Woken));
        }
    }
}

impl Mpi {
    /// All ranks, in order: for a [`Group`](crate::rpc::Group) whose operations are MPI's own.
    pub fn all(&self) -> Vec<NodeId> {
        self.members.clone()
    }

    /// Takes note of what comes to the program.
    fn note(&mut self, arrival: &Arrival) {
        match arrival {
            Arrival::Up { peer } => self.peers[peer.0 as usize].up = true,
            Arrival::Down { peer, .. } => self.peers[peer.0 as usize].up = false,
            Arrival::Frame { peer, frame } => {
                let to = peer.0 as usize;
                if let Some(taken) = self.peers[to].taken.count(frame.len(), &self.options) {
                    // A thread that has ended has no peers that wait.
                    let _ = self.orders.send(Order::Grant { to, taken });
                }
            }
            // Before it is reported: who rings from now on means the next time.
            Arrival::Woken => self.bell.rung.store(false, SeqCst),
            Arrival::Writable { .. } | Arrival::Together { .. } => {}
        }
    }
}

impl Transport for Mpi {
    fn id(&self) -> NodeId {
        self.members[self.this]
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities::new(self.options.max_frame_len, self.options.queue_bytes)
    }

    fn send(&mut self, to: NodeId, frame: Frame) -> Result<(), Unsent> {
        let refuse = |frame, error| Err(Unsent { to, frame, error });
        let (rank, len, longest) = (to.0 as usize, frame.len(), self.options.max_frame_len);
        match self.peers.get(rank) {
            _ if self.inbox.is_none() => refuse(frame, SendError::Closed),
            Some(peer) if peer.up => {
                if len > longest {
                    return refuse(frame, SendError::TooLong { len, longest });
                }
                if !self.shared.links[rank].add(len, &self.options) {
                    return refuse(frame, SendError::Full);
                }
                match self.orders.send(Order::Send { to: rank, frame }) {
                    Ok(()) => Ok(()),
                    Err(unsent) => {
                        let Order::Send { frame, .. } = unsent.into_inner() else {
                            unreachable!("what was sent comes back")
                        };
                        refuse(frame, SendError::NotUp)
                    }
                }
            }
            _ => refuse(frame, SendError::NotUp),
        }
    }

    fn receive(&mut self, wait: Wait) -> Result<Option<Arrival>, ReceiveError> {
        let inbox = self.inbox.as_ref().ok_or(ReceiveError::Closed)?;
        // This node has a sender of its own inbox, so that it is never cut off.
        let item = match wait {
            Wait::No => inbox.try_recv().ok(),
            Wait::For(time) => inbox.recv_timeout(time).ok(),
            Wait::Forever => Some(inbox.recv().map_err(|_| ReceiveError::Closed)?),
        };
        let arrival = item.transpose().map_err(ReceiveError::Failed)?;
        if let Some(arrival) = &arrival {
            self.note(arrival);
        }
        Ok(arrival)
    }

    fn waker(&self) -> Waker {
        Waker::from(Arc::clone(&self.bell))
    }

    fn take_buffer(&mut self) -> Vec<u8> {
        self.shared.rooms.take_buffer()
    }

    fn release(&mut self, frame: Frame) {
        self.shared.rooms.release(frame);
    }

    fn together(&mut self) -> Option<&mut dyn Together> {
        let works = self.inbox.is_some() && !self.shared.halted.load(SeqCst);
        works.then_some(self as &mut dyn Together)
    }

    fn close(&mut self, patience: Duration) {
        if self.inbox.take().is_none() {
            return;
        }
        let _ = self.orders.send(Order::Close);
        if let Err(mpsc::RecvTimeoutError::Timeout) = self.hands.recv_timeout(patience) {
            let _ = self.orders.send(Order::Cut);
        }
    }
}

impl Together for Mpi {
    fn members(&self) -> &[NodeId] {
        &self.members
    }

    fn begin(
        &mut self,
        operation: OperationId,
        collective: Collective,
        longest: u64,
    ) -> Result<(), Collective> {
        if matches!(collective, Collective::ReduceScatter { element: Element::F32, .. }) {
            return Err(collective);
        }
        match self.orders.send(Order::Begin(Begun { operation, collective, longest })) {
            Ok(()) => Ok(()),
            Err(unsent) => match unsent.into_inner() {
                Order::Begin(begun) => Err(begun.collective),
                _ => unreachable!("what was sent comes back"),
            },
        }
    }

    fn abandon(&mut self, operation: OperationId) {
        // From now on, so that what the program begins next is not lost with it.
        self.shared.halted.store(true, SeqCst);
        // A thread that has ended has no operations.
        let _ = self.orders.send(Order::Abandon(operation));
    }
}

impl Drop for Mpi {
    fn drop(&mut self) {
        self.close(Duration::ZERO);
        if let Some(thread) = self.thread.take()
            && !std::thread::panicking()
        {
            // One that has panicked has said so.
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn launchers_are_known_by_what_they_say() {
        let with = |names: &[(&str, &str)]| {
            launched(&|name| names.iter().find(|it| it.0 == name).map(|it| it.1.to_owned()))
        };
        assert_eq!(with(&[]), None);
        assert_eq!(with(&[("OMPI_COMM_WORLD_SIZE", "4")]), Some(Some(4)));
        assert_eq!(with(&[("SLURM_PROCID", "0"), ("SLURM_NTASKS", "7")]), Some(Some(7)));
        assert_eq!(with(&[("PMIX_RANK", "0")]), Some(None));
    }

    #[test]
    fn what_cannot_be_is_refused_before_mpi_is_begun() {
        let zero = Options { queue_frames: 0, ..Options::default() };
        assert!(matches!(start(&zero), Err(Error::Zero("queue_frames"))));
        if launched(&system).is_none() {
            let error = start(&Options::default()).unwrap_err();
            assert!(matches!(error, Error::NotStarted), "{error}");
        }
    }
}
