//! Transport between the ranks of an MPI job, for clusters whose network MPI supports best.
//!
//! One thread makes all calls of MPI: it initialises MPI, moves the frames, and finalises MPI. The
//! node's thread communicates with it through queues, so [`send`](Transport::send) does not wait
//! for MPI, and MPI makes progress while the program computes. The number of a node is its rank.
//! The feature `mpi` builds where MPI, with its compiler wrapper `mpicc`, and libclang are
//! installed.
//!
//! ```no_run
//! use std::time::Duration;
//!
//! use lda_transport::mpi::{self, MpiOptions};
//! use lda_transport::{Arrival, Transport, Wait};
//!
//! let mut node = mpi::start(&MpiOptions::default())?;
//! while let Some(arrival) = node.receive(Wait::For(Duration::from_secs(1)))? {
//!     match arrival {
//!         Arrival::Up { peer } => node.send(peer, b"hello".to_vec().into())?,
//!         Arrival::Frame { peer, frame } => println!("{} bytes from {peer}", frame.len()),
//!         _ => {}
//!     }
//! }
//! // All ranks close at the end: MPI is finalised when the last one has closed.
//! node.close(Duration::from_secs(60));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Starting
//! - Open MPI: `mpirun -n 4 --bind-to none ./program`; `--oversubscribe` for more ranks than cores.
//!   By default each rank is bound to one core, which all its threads then share: give each rank as
//!   many cores as it has threads (`--map-by slot:pe=8`), or do not bind.
//! - Slurm: `srun --mpi=pmix -n 4 -c 8 ./program`, if Slurm supports PMIx; `srun --mpi=list` shows
//!   it.
//!
//! A program without a launcher is an error, unless [`MpiOptions::alone`] allows a job of one rank.
//! All ranks must have the same limits.
//!
//! # Closing
//! [`close`](Transport::close) sends the frames in the queues, as for any transport, and the other
//! ranks receive `Down`. Dropping the transport, or a node that owns it, waits until all ranks have
//! closed, as `MPI_Finalize` does; so all ranks should close when the work is done. A program that
//! ends otherwise, such as by a panic on the node's thread or [`exit`](std::process::exit), has not
//! finalised MPI: `mpirun` then ends the whole job and names the rank. The loss of a rank or a host
//! has the same effect. Ranks cannot rejoin.
//!
//! # Flow control
//! A rank grants each peer credit of [`MpiOptions::queue_frames`] and
//! [`queue_bytes`](MpiOptions::queue_bytes), and renews it as its program takes frames. Every
//! message is therefore received at once, into memory of this process; the frames of a peer that a
//! program has not taken are bounded by the credit and one frame more. At most 32 sends are
//! requested from MPI at a time.
//!
//! # Cost
//! The thread polls without sleep for [`MpiOptions::spin`] after the last message, and then sleeps
//! between polls, for a quarter of the idle time so far and at most for [`MpiOptions::sleep`]. A
//! message after a pause may be delayed by that much, and a little more as systems wake threads
//! late; a send wakes the thread at once. An idle rank takes a few percent of a core for this. With
//! fewer cores than threads, a shorter spin leaves more time to other threads. Long frames are sent
//! in pieces of 1 MiB; only MPI copies frames. A round trip of a frame wakes four threads.
//! `examples/mpi.rs` measures all this and compares it with plain MPI.
//!
//! There is no encryption: use it in a private network.

mod backoff;
mod incoming;
mod link;
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
use crate::transport::{
    Arrival, Capabilities, NodeId, ReceiveError, SendError, Transport, Unsent, Wait,
};

use crate::buffer_pool::BufferPool;
use link::{Credit, Link};
use thread::{Order, ThreadParts};

/// Options of an [`Mpi`] node: limits, and waits of its thread.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
#[non_exhaustive]
pub struct MpiOptions {
    /// Longest frame, in bytes.
    pub max_frame_len: usize,
    /// Maximum number of frames in flight from one node to another.
    pub queue_frames: usize,
    /// Maximum bytes in flight from one node to another; the last frame may exceed it.
    pub queue_bytes: usize,
    /// Maximum bytes of released frames that are kept for reuse.
    pub pool_bytes: usize,
    /// Time after the last message in which the thread polls without sleep.
    pub spin: Duration,
    /// Longest sleep between polls afterwards. A sleep takes a quarter of the idle time so far.
    pub sleep: Duration,
    /// Whether a program without a launcher is a job of one rank. If not, it is an error, so that a
    /// forgotten `mpirun` does not start many jobs of one rank.
    pub alone: bool,
}

impl Default for MpiOptions {
    /// Frames of 1 GiB; 256 frames and 16 MiB in flight per pair of nodes; 128 MiB of released
    /// frames; spins of 200 µs and sleeps of at most 500 µs; not alone.
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

/// Reason why a rank did not start.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum MpiError {
    /// The program was not started by a launcher.
    #[error(
        "this program was not started as a rank: start it with mpirun, or with srun --mpi=pmix"
    )]
    NotStarted,
    /// The launcher started several tasks, and each is an MPI job of its own.
    #[error(
        "{expected} tasks were started, and MPI has only this one: start them with the mpirun of the MPI \
         that the program is built with, or with srun --mpi=pmix"
    )]
    Apart {
        /// Number of tasks.
        expected: usize,
    },
    /// MPI has already been initialised in this process.
    #[error(
        "MPI is already initialised: create this transport once per process, and let nothing else initialise MPI"
    )]
    Initialised,
    /// MPI does not support threads.
    #[error(
        "this MPI does not support programs with threads: build MPI with support for `MPI_THREAD_FUNNELED`"
    )]
    Threads,
    /// A limit is 0; contains the name of the option.
    #[error("option {0} must be at least 1")]
    Zero(&'static str),
    /// Ranks have different limits.
    #[error("{rank} has other limits than node 0: give all ranks the same options")]
    Differ {
        /// First rank whose limits differ from those of rank 0.
        rank: NodeId,
    },
    /// The operating system cannot start a thread.
    #[error("cannot start a thread for MPI ({0}): raise the limit of threads")]
    Thread(#[from] io::Error),
    /// The MPI thread ended during the initialisation.
    #[error("MPI could not be initialised: see its own message above, and check the installation")]
    Failed,
}

type Item = Result<Arrival, String>;

/// State that the node's thread and the MPI thread share.
#[derive(Debug)]
struct Shared {
    /// Flow control of each rank.
    links: Box<[Link]>,
    buffers: BufferPool,
}

impl Shared {
    fn new(options: &MpiOptions, ranks: usize) -> Self {
        let links = (0..ranks).map(|_| Link::default()).collect();
        Self { links, buffers: BufferPool::new(options.pool_bytes) }
    }
}

/// Initialises MPI and waits until all ranks have done so. Works once per process.
///
/// An error inside MPI ends the program, and with it the job.
///
/// # Errors
/// [`MpiError`] if a limit is invalid, no launcher started the program, or MPI cannot be
/// initialised.
pub fn start(options: &MpiOptions) -> Result<Mpi, MpiError> {
    for (name, bound) in [
        ("max_frame_len", options.max_frame_len),
        ("queue_frames", options.queue_frames),
        ("queue_bytes", options.queue_bytes),
    ] {
        if bound == 0 {
            return Err(MpiError::Zero(name));
        }
    }
    let expected = launched(&system);
    if expected.is_none() && !options.alone {
        return Err(MpiError::NotStarted);
    }
    let ((orders, order_receiver), (inbox_sender, inbox)) = (unbounded(), unbounded());
    let ((drained_sender, drained), (started, starts)) = (mpsc::channel(), mpsc::channel());
    let notifier =
        Arc::new(Notifier { is_notified: AtomicBool::new(false), inbox: inbox_sender.clone() });
    let parts = ThreadParts {
        options: options.clone(),
        orders: order_receiver,
        inbox: inbox_sender,
        drained: drained_sender,
    };
    let thread = std::thread::Builder::new().name("lda mpi".to_owned());
    let thread = thread.spawn(move || thread::run(parts, expected.flatten(), &started))?;
    let (shared, this) = match starts.recv().unwrap_or(Err(MpiError::Failed)) {
        Ok(started) => started,
        Err(error) => {
            // Wait for the thread: a program that exits during `MPI_Finalize` may block other
            // ranks. A panic of the thread has been printed already.
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
        notifier,
        drained,
        thread: Some(thread),
    })
}

/// Returns the number of ranks of the launcher that started this process. `Some(None)` if the
/// launcher does not provide it, `None` without a launcher.
fn launched(environment: Environment<'_>) -> Option<Option<usize>> {
    let counts = ["OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_NTASKS"];
    let count = counts.iter().find_map(|name| environment(name)?.trim().parse().ok());
    let rank =
        ["PMIX_RANK", "PMI_RANK", "SLURM_PROCID"].iter().any(|name| environment(name).is_some());
    (count.is_some() || rank).then_some(count)
}

/// Node of the MPI transport: a rank of a job.
#[derive(Debug)]
pub struct Mpi {
    options: MpiOptions,
    shared: Arc<Shared>,
    this: usize,
    /// All ranks.
    members: Vec<NodeId>,
    peers: Vec<Peer>,
    /// `None` after `close`.
    inbox: Option<Receiver<Item>>,
    orders: Sender<Order>,
    notifier: Arc<Notifier>,
    /// Disconnected when all queued frames have been sent.
    drained: mpsc::Receiver<std::convert::Infallible>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug, Default)]
struct Peer {
    up: bool,
    taken: Credit,
}

#[derive(Debug)]
struct Notifier {
    /// Whether a wake-up is in the inbox.
    is_notified: AtomicBool,
    inbox: Sender<Item>,
}

impl Wake for Notifier {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if !self.is_notified.swap(true, SeqCst) {
            // Fails only when the node has closed.
            let _ = self.inbox.send(Ok(Arrival::Woken));
        }
    }
}

impl Mpi {
    /// Returns all ranks, in order.
    pub fn all(&self) -> Vec<NodeId> {
        self.members.clone()
    }

    /// Updates the state of the peers before an arrival is returned to the program.
    fn record(&mut self, arrival: &Arrival) {
        match arrival {
            Arrival::Up { peer } => self.peers[peer.0 as usize].up = true,
            Arrival::Down { peer, .. } => self.peers[peer.0 as usize].up = false,
            Arrival::Frame { peer, frame } => {
                let to = peer.0 as usize;
                if let Some(taken) = self.peers[to].taken.count(frame.len(), &self.options) {
                    // Fails only when the thread has ended, and then no peer waits.
                    let _ = self.orders.send(Order::Grant { to, taken });
                }
            }
            // INVARIANT: cleared before the wake-up is returned, so that a wake from now on leads
            // to another one.
            Arrival::Woken => self.notifier.is_notified.store(false, SeqCst),
            Arrival::Writable { .. } => {}
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
                            unreachable!("the channel returns the value")
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
        // This node owns a sender of its inbox, so the channel is never disconnected.
        let item = match wait {
            Wait::No => inbox.try_recv().ok(),
            Wait::For(time) => inbox.recv_timeout(time).ok(),
            Wait::Forever => Some(inbox.recv().map_err(|_| ReceiveError::Closed)?),
        };
        let arrival = item.transpose().map_err(ReceiveError::Failed)?;
        if let Some(arrival) = &arrival {
            self.record(arrival);
        }
        Ok(arrival)
    }

    fn waker(&self) -> Waker {
        Waker::from(Arc::clone(&self.notifier))
    }

    fn take_buffer(&mut self) -> Vec<u8> {
        self.shared.buffers.take_buffer()
    }

    fn release(&mut self, frame: Frame) {
        self.shared.buffers.release(frame);
    }

    fn close(&mut self, patience: Duration) {
        if self.inbox.take().is_none() {
            return;
        }
        let _ = self.orders.send(Order::Close);
        if let Err(mpsc::RecvTimeoutError::Timeout) = self.drained.recv_timeout(patience) {
            let _ = self.orders.send(Order::DropFrames);
        }
    }
}

impl Drop for Mpi {
    fn drop(&mut self) {
        self.close(Duration::ZERO);
        if let Some(thread) = self.thread.take()
            && !std::thread::panicking()
        {
            // A panic of the thread has been printed already.
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn launchers_are_recognised_by_their_variables() {
        let with = |names: &[(&str, &str)]| {
            launched(&|name| names.iter().find(|it| it.0 == name).map(|it| it.1.to_owned()))
        };
        assert_eq!(with(&[]), None);
        assert_eq!(with(&[("OMPI_COMM_WORLD_SIZE", "4")]), Some(Some(4)));
        assert_eq!(with(&[("SLURM_PROCID", "0"), ("SLURM_NTASKS", "7")]), Some(Some(7)));
        assert_eq!(with(&[("PMIX_RANK", "0")]), Some(None));
    }

    #[test]
    fn invalid_options_are_rejected_before_mpi_starts() {
        let zero = MpiOptions { queue_frames: 0, ..MpiOptions::default() };
        assert!(matches!(start(&zero), Err(MpiError::Zero("queue_frames"))));
        if launched(&system).is_none() {
            let error = start(&MpiOptions::default()).unwrap_err();
            assert!(matches!(error, MpiError::NotStarted), "{error}");
        }
    }
}
