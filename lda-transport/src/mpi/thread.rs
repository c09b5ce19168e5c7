//! The thread that MPI belongs to. It makes all calls, and looks all the time after what comes.
//!
//! Every message that was begun is received at once by the thread at the other end, whatever its program does:
//! grants keep that within bounds. So whatever is sent will have been received after a while, without
//! anybody having to wait for anybody's program, and a batch of sends ends.

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
use super::incoming::{Come, Incoming};
use super::link::Taken;
use super::operations::{Begun, Operations, Ways, rounds};
use super::outgoing::{Message, Outgoing};
use super::wire::{HaltReason, Small};
use super::{Error, Item, Options, Shared};
use crate::frame::Frame;
use crate::rpc::OperationId;
use crate::transport::{Arrival, DisconnectReason, NodeId};

/// Sends that MPI is asked for at once. It looks at each whenever it is asked for any.
const WINDOW: usize = 32;

/// Messages and orders that are seen to before others are.
const AT_ONCE: usize = 32;

/// Bytes up to which a message is there when it is heard of.
const SHORT: usize = 1 << 10;

/// What the node's thread has this one do.
#[derive(Debug)]
pub(super) enum Order {
    Send {
        to: usize,
        frame: Frame,
    },
    Grant {
        to: usize,
        taken: Taken,
    },
    Begin(Begun),
    Abandon(OperationId),
    /// Hands on what it has been given; then nothing more is sent.
    Close,
    /// Forgets what has not gone.
    Cut,
}

/// Which rank this is, and what both threads know.
pub(super) type Begin = Result<(Arc<Shared>, usize), Error>;

/// What the thread is given.
pub(super) struct Ends {
    pub options: Options,
    pub orders: Receiver<Order>,
    pub inbox: Sender<Item>,
    /// Dropped when what was taken has been handed on.
    pub handed: mpsc::Sender<Infallible>,
}

/// Says that MPI's thread is no more, where that is not as it should be.
struct Obituary(Sender<Item>);

impl Drop for Obituary {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let _ = self.0.send(Err("MPI's thread has panicked".to_owned()));
        }
    }
}

/// Begins MPI, and ends it when all ranks have closed.
pub(super) fn run(ends: Ends, expected: Option<usize>, begun: &mpsc::Sender<Begin>) {
    let _obituary = Obituary(ends.inbox.clone());
    let universe = match initialise(expected) {
        Ok(universe) => universe,
        Err(error) => {
            let _ = begun.send(Err(error));
            return;
        }
    };
    let world = universe.world();
    if let Err(error) = compare(&world, &ends.options) {
        let _ = begun.send(Err(error));
        return;
    }
    // Nobody else's messages come this way.
    let (frames, rows, contents) = (world.duplicate(), world.duplicate(), world.duplicate());
    let (this, ranks) = (world.rank() as usize, world.size() as usize);
    let shared = Arc::new(Shared::new(&ends.options, ranks));
    let mut thread = Thread::new(ends, Arc::clone(&shared), frames, this, ranks);
    for peer in (0..ranks).filter(|&rank| rank != this) {
        thread.arrive(Arrival::Up { peer: NodeId(peer as u32) });
    }
    if begun.send(Ok((Arc::clone(&shared), this))).is_err() {
        // Nobody is there any more. The others hear of that.
        thread.close();
    }
    let ways = Ways { rows, contents };
    rounds(&shared.rooms, |round| {
        let busy = thread.pass();
        let (moved, halt) = round.advance(&mut thread.operations, &ways);
        let moves = round.moves_content();
        if let Some(why) = halt {
            thread.halt(why);
        }
        thread.rest(busy || moved, moves);
        thread.has_ended() && thread.operations.have_ended()
    });
}

fn initialise(expected: Option<usize>) -> Result<Universe, Error> {
    let begun = ::mpi::initialize_with_threading(Threading::Funneled);
    let (universe, threading) = begun.ok_or(Error::Initialised)?;
    if threading < Threading::Funneled {
        return Err(Error::Threads);
    }
    match (expected, universe.world().size()) {
        (Some(expected), 1) if expected > 1 => Err(Error::Apart { expected }),
        _ => Ok(universe),
    }
}

/// Whether all ranks have the same bounds.
fn compare(world: &SimpleCommunicator, options: &Options) -> Result<(), Error> {
    let own = [options.max_frame_len, options.queue_frames, options.queue_bytes];
    let own: [u64; 3] = own.map(|bound| bound as u64);
    let mut all = vec![0u64; own.len() * world.size() as usize];
    world.all_gather_into(&own[..], &mut all[..]);
    // All see the same, so that all fail or none.
    let (all, _) = all.as_chunks::<3>();
    match all.iter().position(|other| *other != all[0]) {
        Some(rank) => Err(Error::Differ { rank: NodeId(rank as u32) }),
        None => Ok(()),
    }
}

struct Thread {
    options: Options,
    shared: Arc<Shared>,
    orders: Receiver<Order>,
    inbox: Sender<Item>,
    handed: Option<mpsc::Sender<Infallible>>,
    ranks: SimpleCommunicator,
    this: usize,
    outgoing: Outgoing,
    incoming: Vec<Incoming>,
    operations: Operations,
    backoff: Backoff,
    closing: bool,
    /// Whether the peers have been told, in the messages that wait or before.
    told: bool,
}

impl Thread {
    fn new(
        ends: Ends,
        shared: Arc<Shared>,
        frames: SimpleCommunicator,
        this: usize,
        ranks: usize,
    ) -> Self {
        let Ends { options, orders, inbox, handed } = ends;
        let operations = Operations::new(this, Arc::clone(&shared), inbox.clone());
        Self {
            backoff: Backoff::new(options.spin, options.sleep),
            options,
            shared,
            orders,
            inbox,
            handed: Some(handed),
            ranks: frames,
            this,
            outgoing: Outgoing::new(ranks),
            incoming: (0..ranks).map(|_| Incoming::default()).collect(),
            operations,
            closing: false,
            told: false,
        }
    }

    /// One look at everything; whether there was anything.
    fn pass(&mut self) -> bool {
        let ordered = self.see_to_orders();
        let received = self.receive();
        if !self.outgoing.is_empty() {
            self.send();
        } else if self.closing && !self.told {
            self.told = true;
            self.tell(Small::Close);
            return true;
        } else if self.told {
            self.handed = None;
        }
        ordered || received
    }

    fn has_ended(&self) -> bool {
        let others = self.incoming.iter().enumerate().filter(|(rank, _)| *rank != self.this);
        self.told && self.outgoing.is_empty() && others.clone().all(|(_, peer)| peer.closed)
    }

    /// Waits until another look is worth it.
    fn rest(&mut self, busy: bool, moves: bool) {
        if busy || moves {
            self.backoff.reset();
        }
        if moves {
            // MPI moves contents in many steps, each when it is asked how far it is.
            return self.backoff.spin();
        }
        if busy {
            return;
        }
        let Some(sleep) = self.backoff.idle_for() else { return };
        match self.orders.recv_timeout(sleep) {
            Ok(order) => {
                self.backoff.reset();
                self.see_to(order);
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => std::thread::sleep(sleep),
        }
    }

    fn arrive(&self, arrival: Arrival) {
        // A program that has closed does not want to know.
        let _ = self.inbox.send(Ok(arrival));
    }

    fn tell(&mut self, small: Small) {
        for peer in (0..self.incoming.len()).filter(|&rank| rank != self.this) {
            self.outgoing.small(peer, small);
        }
    }

    fn halt(&mut self, why: HaltReason) {
        if let Some(small) = self.operations.halt(why) {
            self.tell(small);
        }
    }

    fn close(&mut self) {
        self.halt(HaltReason::Closed);
        self.closing = true;
    }

    fn see_to_orders(&mut self) -> bool {
        for done in 0..AT_ONCE {
            match self.orders.try_recv() {
                Ok(order) => self.see_to(order),
                Err(TryRecvError::Empty) => return done > 0,
                Err(TryRecvError::Disconnected) => {
                    // A node that went without a word.
                    self.close();
                    return done > 0;
                }
            }
        }
        true
    }

    fn see_to(&mut self, order: Order) {
        match order {
            Order::Send { to, frame } => self.outgoing.frame(to, frame),
            // Nothing goes to one who has closed, nor after the last of this one.
            Order::Grant { to, taken } if !self.incoming[to].closed && !self.told => {
                self.outgoing.small(to, Small::Grant(taken));
            }
            Order::Grant { .. } => {}
            Order::Begin(begun) => self.operations.begin(begun),
            Order::Abandon(operation) => self.operations.abandon(operation),
            Order::Close => self.close(),
            Order::Cut => self.outgoing.drop_frames(),
        }
    }

    /// Sends what waits and what comes to wait meanwhile, up to a number of messages; receives in between.
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
                if !self.see_to_orders() && !self.receive() {
                    self.backoff.spin();
                }
            }
        });
        for message in messages.into_iter().filter_map(OnceCell::into_inner) {
            self.shared.rooms.release(message.bytes);
        }
    }

    /// Takes messages that are there; whether any was.
    fn receive(&mut self) -> bool {
        for done in 0..AT_ONCE {
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
        let come = self.incoming[from].take(
            status.tag(),
            len,
            self.options.max_frame_len,
            &self.shared.rooms,
            |room| receive_into(message, room, backoff),
        );
        let lost = self.incoming[from].lost;
        match come {
            Ok(Come::Small(Small::Halt { begun, why })) => {
                self.operations.halted(from, begun, why);
                // What has ended at one has ended at all.
                self.halt(why);
            }
            // The program has heard that it is down.
            _ if lost => {}
            Ok(Come::Frame(frame)) => {
                self.arrive(Arrival::Frame { peer, frame: Frame::from(frame) });
            }
            Ok(Come::Small(Small::Grant(taken))) => {
                if self.shared.links[from].grant(taken, &self.options) {
                    self.arrive(Arrival::Writable { peer });
                }
            }
            Ok(Come::Small(Small::Close)) => {
                self.arrive(Arrival::Down { peer, reason: DisconnectReason::Closed });
            }
            Ok(Come::Small(Small::Start { .. }) | Come::Nothing) => {}
            Err(words) => {
                self.incoming[from].lost = true;
                self.arrive(Arrival::Down { peer, reason: DisconnectReason::Broken(words) });
            }
        }
    }
}

/// Waits for the rest of a message, which its sender has begun.
fn receive_into(message: Matched, room: &mut [u8], backoff: &mut Backoff) {
    if room.len() <= SHORT {
        message.matched_receive_into(room);
        return;
    }
    scope(|scope| {
        let mut request = message.immediate_matched_receive_into(scope, room);
        while let Err(again) = request.test() {
            request = again;
            backoff.spin();
        }
    });
}
