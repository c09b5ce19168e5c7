//! The MPI thread: it makes all calls of MPI, and polls for messages.
//!
//! The MPI thread of the receiver receives every message at once, whatever its program does; the
//! credit of [`Link`](super::link::Link) bounds the memory for it. A started send therefore always
//! completes, without waiting for a program, and so does a batch of sends.

use std::array;
use std::cell::OnceCell;
use std::convert::Infallible;
use std::sync::Arc;
use std::sync::mpsc;

use ::mpi::environment::Universe;
use ::mpi::point_to_point::{Message as Matched, Status};
use ::mpi::request::{multiple_scope, scope};
use ::mpi::topology::SimpleCommunicator;
use ::mpi::traits::{Communicator, CommunicatorCollectives, Destination, Equivalence, Source};
use ::mpi::{Rank, Threading};
use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, TryRecvError};

use super::backoff::Backoff;
use super::incoming::{Incoming, Received};
use super::link::Credit;
use super::outgoing::{Message, Outgoing};
use super::wire::Small;
use super::{Item, MpiError, MpiOptions, Shared};
use crate::frame::Frame;
use crate::transport::{Arrival, DisconnectReason, NodeId};

/// Maximum number of sends in progress. MPI tests all of them at each call.
const WINDOW: usize = 32;

/// Maximum number of messages, or of orders, that are processed in a row.
const BATCH: usize = 32;

/// Longest message, in bytes, that has arrived completely when the probe finds it.
const EAGER_LEN: usize = 1 << 10;

/// Order of the node's thread to the MPI thread.
#[derive(Debug)]
pub(super) enum Order {
    Send {
        to: usize,
        frame: Frame,
    },
    Grant {
        to: usize,
        taken: Credit,
    },
    /// Sends the queued frames; nothing more is sent after them.
    Close,
    /// Drops the frames that have not been sent.
    DropFrames,
}

/// Shared state and number of this rank, or the reason why MPI did not start.
pub(super) type Started = Result<(Arc<Shared>, usize), MpiError>;

/// Options and channel ends of the thread.
pub(super) struct ThreadParts {
    pub options: MpiOptions,
    pub orders: Receiver<Order>,
    pub inbox: Sender<Item>,
    /// Dropped when all queued frames have been sent.
    pub drained: mpsc::Sender<Infallible>,
}

/// Reports a panic of the MPI thread to the program.
struct PanicReport(Sender<Item>);

impl Drop for PanicReport {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let _ = self.0.send(Err("the MPI thread has panicked".to_owned()));
        }
    }
}

/// Initialises MPI, runs until all ranks have closed, and finalises MPI.
pub(super) fn run(parts: ThreadParts, expected: Option<usize>, started: &mpsc::Sender<Started>) {
    let _report = PanicReport(parts.inbox.clone());
    let universe = match initialise(expected) {
        Ok(universe) => universe,
        Err(error) => {
            let _ = started.send(Err(error));
            return;
        }
    };
    let world = universe.world();
    if let Err(error) = compare(&world, &parts.options) {
        let _ = started.send(Err(error));
        return;
    }
    // A communicator of our own, so that messages of others do not interfere.
    let frames = world.duplicate();
    let (this, ranks) = (world.rank() as usize, world.size() as usize);
    let shared = Arc::new(Shared::new(&parts.options, ranks));
    let mut thread = Thread::new(parts, Arc::clone(&shared), frames, this, ranks);
    for peer in (0..ranks).filter(|&rank| rank != this) {
        thread.arrive(Arrival::Up { peer: NodeId(peer as u32) });
    }
    if started.send(Ok((Arc::clone(&shared), this))).is_err() {
        // The node's thread has ended. Close, so that the other ranks receive `Down`.
        thread.close();
    }
    while !thread.has_ended() {
        let busy = thread.poll();
        thread.rest(busy);
    }
    // INVARIANT: `thread` is dropped before `universe`, as a communicator must be freed before
    // `MPI_Finalize`, which waits until all ranks have called it.
}

fn initialise(expected: Option<usize>) -> Result<Universe, MpiError> {
    let begun = ::mpi::initialize_with_threading(Threading::Funneled);
    let (universe, threading) = begun.ok_or(MpiError::Initialised)?;
    if threading < Threading::Funneled {
        return Err(MpiError::Threads);
    }
    match (expected, universe.world().size()) {
        (Some(expected), 1) if expected > 1 => Err(MpiError::Apart { expected }),
        _ => Ok(universe),
    }
}

/// Checks that all ranks have the same limits.
fn compare(world: &SimpleCommunicator, options: &MpiOptions) -> Result<(), MpiError> {
    let own = [options.max_frame_len, options.queue_frames, options.queue_bytes];
    let own: [u64; 3] = own.map(|bound| bound as u64);
    let mut all = vec![0u64; own.len() * world.size() as usize];
    world.all_gather_into(&own[..], &mut all[..]);
    // All ranks compare the same values, so either all fail or none.
    let (all, _) = all.as_chunks::<3>();
    match all.iter().position(|other| *other != all[0]) {
        Some(rank) => Err(MpiError::Differ { rank: NodeId(rank as u32) }),
        None => Ok(()),
    }
}

struct Thread {
    options: MpiOptions,
    shared: Arc<Shared>,
    orders: Receiver<Order>,
    inbox: Sender<Item>,
    drained: Option<mpsc::Sender<Infallible>>,
    ranks: SimpleCommunicator,
    this: usize,
    outgoing: Outgoing,
    incoming: Vec<Incoming>,
    backoff: Backoff,
    closing: bool,
    /// Whether `Close` is queued for the peers, or sent.
    close_queued: bool,
}

impl Thread {
    fn new(
        parts: ThreadParts,
        shared: Arc<Shared>,
        frames: SimpleCommunicator,
        this: usize,
        ranks: usize,
    ) -> Self {
        let ThreadParts { options, orders, inbox, drained } = parts;
        Self {
            backoff: Backoff::new(options.spin, options.sleep),
            options,
            shared,
            orders,
            inbox,
            drained: Some(drained),
            ranks: frames,
            this,
            outgoing: Outgoing::new(ranks),
            incoming: (0..ranks).map(|_| Incoming::default()).collect(),
            closing: false,
            close_queued: false,
        }
    }

    /// Processes orders, received messages and sends once. Returns whether there were any.
    fn poll(&mut self) -> bool {
        let ordered = self.process_orders();
        let received = self.receive();
        if !self.outgoing.is_empty() {
            self.send();
        } else if self.closing && !self.close_queued {
            self.close_queued = true;
            self.broadcast(Small::Close);
            return true;
        } else if self.close_queued {
            self.drained = None;
        }
        ordered || received
    }

    fn has_ended(&self) -> bool {
        let others = self.incoming.iter().enumerate().filter(|(rank, _)| *rank != self.this);
        self.close_queued && self.outgoing.is_empty() && others.clone().all(|(_, peer)| peer.closed)
    }

    /// Waits until the next poll.
    fn rest(&mut self, busy: bool) {
        if busy {
            return self.backoff.reset();
        }
        let Some(sleep) = self.backoff.idle_for() else { return };
        match self.orders.recv_timeout(sleep) {
            Ok(order) => {
                self.backoff.reset();
                self.process(order);
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => std::thread::sleep(sleep),
        }
    }

    fn arrive(&self, arrival: Arrival) {
        // Fails only when the program has closed.
        let _ = self.inbox.send(Ok(arrival));
    }

    /// Queues a control message for all peers.
    fn broadcast(&mut self, small: Small) {
        for peer in (0..self.incoming.len()).filter(|&rank| rank != self.this) {
            self.outgoing.small(peer, small);
        }
    }

    fn close(&mut self) {
        self.closing = true;
    }

    fn process_orders(&mut self) -> bool {
        for done in 0..BATCH {
            match self.orders.try_recv() {
                Ok(order) => self.process(order),
                Err(TryRecvError::Empty) => return done > 0,
                Err(TryRecvError::Disconnected) => {
                    // The node was dropped without a close.
                    self.close();
                    return done > 0;
                }
            }
        }
        true
    }

    fn process(&mut self, order: Order) {
        match order {
            Order::Send { to, frame } => self.outgoing.frame(to, frame),
            // No message is sent to a rank that has closed, nor after the last of this one.
            Order::Grant { to, taken } if !self.incoming[to].closed && !self.close_queued => {
                self.outgoing.small(to, Small::Grant(taken));
            }
            Order::Grant { .. } => {}
            Order::Close => self.close(),
            Order::DropFrames => self.outgoing.drop_frames(),
        }
    }

    /// Sends the queued messages, and those queued meanwhile, up to [`WINDOW`]. Receives in
    /// between, as two ranks that only send could block each other.
    fn send(&mut self) {
        let messages: [OnceCell<Message>; WINDOW] = array::from_fn(|_| OnceCell::new());
        multiple_scope(WINDOW, |scope, requests| {
            let (mut begun, mut ended) = (0, 0);
            let mut done = Vec::with_capacity(WINDOW);
            loop {
                while begun < WINDOW
                    && let Some(message) = self.outgoing.next()
                {
                    let Message { to, tag, bytes } = messages[begun].get_or_init(|| message);
                    let to = self.ranks.process_at_rank(*to as Rank);
                    requests.add(to.immediate_send_with_tag(scope, &bytes[..], *tag));
                    begun += 1;
                }
                requests.test_some(&mut done);
                ended += done.len();
                if ended == begun && (begun == WINDOW || self.outgoing.is_empty()) {
                    return;
                }
                if !self.process_orders() && !self.receive() {
                    self.backoff.spin();
                }
            }
        });
        for message in messages.into_iter().filter_map(OnceCell::into_inner) {
            self.shared.buffers.release(message.bytes);
        }
    }

    /// Receives the messages that have arrived. Returns whether there were any.
    fn receive(&mut self) -> bool {
        for done in 0..BATCH {
            let message = self.ranks.any_process().immediate_matched_probe();
            let Some((message, status)) = message else { return done > 0 };
            self.take(message, &status);
        }
        true
    }

    fn take(&mut self, message: Matched, status: &Status) {
        let from = status.source_rank() as usize;
        let peer = NodeId(from as u32);
        let len = status.count(u8::equivalent_datatype()) as usize;
        let backoff = &mut self.backoff;
        let result = self.incoming[from].take(
            status.tag(),
            len,
            self.options.max_frame_len,
            &self.shared.buffers,
            |buffer| receive_into(message, buffer, backoff),
        );
        let lost = self.incoming[from].lost;
        match result {
            // The program has received `Down` already.
            _ if lost => {}
            Ok(Received::Frame(frame)) => {
                self.arrive(Arrival::Frame { peer, frame: Frame::from(frame) });
            }
            Ok(Received::Small(Small::Grant(taken))) => {
                if self.shared.links[from].grant(taken, &self.options) {
                    self.arrive(Arrival::Writable { peer });
                }
            }
            Ok(Received::Small(Small::Close)) => {
                self.arrive(Arrival::Down { peer, reason: DisconnectReason::Closed });
            }
            Ok(Received::Small(Small::Start { .. }) | Received::Nothing) => {}
            Err(reason) => {
                self.incoming[from].lost = true;
                self.arrive(Arrival::Down { peer, reason: DisconnectReason::Broken(reason) });
            }
        }
    }
}

/// Receives a matched message. Waits for the rest of a long one, which its sender is sending.
fn receive_into(message: Matched, buffer: &mut [u8], backoff: &mut Backoff) {
    if buffer.len() <= EAGER_LEN {
        message.matched_receive_into(buffer);
        return;
    }
    scope(|scope| {
        let mut request = message.immediate_matched_receive_into(scope, buffer);
        while let Err(again) = request.test() {
            request = again;
            backoff.spin();
        }
    });
}
