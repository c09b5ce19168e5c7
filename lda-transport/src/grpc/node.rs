//! What the tasks of a node share.

use std::collections::{BTreeMap, VecDeque};
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, watch};

use super::error::{StartError, Strangers, Trouble};
use super::io::{End, Party};
use super::options::Options;
use super::outbox::Outbox;
use super::tls::Store;
use super::wire::{Frames, HEAD, Hello};
use crate::frame::Frame;
use crate::inbox::Slot;
use crate::rooms::Rooms;
use crate::transport::{Loss, NodeId};

/// Between two times that people are told of strangers, and of the same one with the same trouble.
const QUIET: Duration = Duration::from_secs(5);
const LONG_QUIET: Duration = Duration::from_secs(300);

/// A stranger of whom people were told.
#[derive(Debug)]
struct Told {
    at: Instant,
    address: IpAddr,
    trouble: Trouble,
}

/// What an inbox counts of a frame beyond its bytes, so that empty ones are bounded too.
const COST: usize = 64;

/// How far a node is from its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Phase {
    Open,
    /// It hands on what it has.
    Closing,
    /// It says goodbye, whatever it has.
    Leaving,
}

#[derive(Debug)]
pub(super) struct Node {
    pub id: NodeId,
    pub options: Options,
    pub tls: Option<Store>,
    pub inbox: Slot<Item>,
    pub rooms: Arc<Rooms>,
    pub phase: watch::Receiver<Phase>,
    /// Cloned by each connection, so that the other end hears when there are none.
    pub alive: mpsc::WeakSender<()>,
    seats: Mutex<BTreeMap<NodeId, Arc<Seat>>>,
    troubles: Mutex<BTreeMap<NodeId, Trouble>>,
    strangers: Mutex<Strangers>,
    /// The last of them that people were told of.
    told: Mutex<Option<Told>>,
    /// Connections of those who have not said who they are, the oldest first.
    waiting: Mutex<VecDeque<Arc<Party>>>,
}

/// What lies in the inbox.
#[derive(Debug)]
pub(super) enum Item {
    Up(Arc<Link>),
    Frame(Arc<Link>, Frame),
    Room(Arc<Link>),
    /// With the turn of the peer: its next connection is not up before the program has heard of this end.
    Down(Arc<Link>, Loss, OwnedSemaphorePermit),
}

/// A connection, from its hello on.
#[derive(Debug)]
pub(super) struct Link {
    pub peer: NodeId,
    pub outbox: Outbox,
    pub seat: Arc<Seat>,
    /// Which one of the peer it is.
    number: u64,
}

impl Link {
    /// Until the peer has a later one. Then this one goes.
    pub async fn replaced(&self) {
        let mut newest = self.seat.newest.subscribe();
        // The seat has the sender.
        let _ = newest.wait_for(|&newest| newest > self.number).await;
    }
}

/// A peer, over all its connections: so a peer that comes again and again has no more room than one that
/// stays.
#[derive(Debug)]
pub(super) struct Seat {
    /// Had by the connection that is up.
    pub turn: Arc<Semaphore>,
    /// Bytes of room in the inbox.
    room: Semaphore,
    most: usize,
    /// Number of the connection that came last.
    newest: watch::Sender<u64>,
}

impl Seat {
    fn new(options: &Options) -> Self {
        let most = options.inbox_bytes as usize;
        let (turn, room) = (Arc::new(Semaphore::new(1)), Semaphore::new(most));
        Self { turn, room, most, newest: watch::Sender::new(0) }
    }

    fn cost(&self, frame: usize) -> u32 {
        let cost = frame.saturating_add(COST).min(self.most);
        u32::try_from(cost).expect("the most is 32 bits")
    }

    /// Waits for room for a frame.
    pub async fn take_room(&self, frame: usize) {
        let room = self.room.acquire_many(self.cost(frame)).await;
        room.expect("nobody closes it").forget();
    }

    pub fn give_room(&self, frame: usize) {
        self.room.add_permits(self.cost(frame) as usize);
    }
}

impl Node {
    pub fn new(
        id: NodeId,
        options: Options,
        inbox: Slot<Item>,
        phase: watch::Receiver<Phase>,
        alive: mpsc::WeakSender<()>,
    ) -> Result<Self, StartError> {
        let tls = options.tls.clone().map(Store::new).transpose()?;
        let rooms = Arc::new(Rooms::new(options.spare_bytes));
        let (seats, troubles) = Default::default();
        let (strangers, waiting) = Default::default();
        Ok(Self {
            id,
            options,
            tls,
            inbox,
            rooms,
            phase,
            alive,
            seats,
            troubles,
            strangers,
            told: Mutex::default(),
            waiting,
        })
    }

    pub fn hello(&self, to: NodeId) -> Bytes {
        let longest_frame = self.options.longest_frame as u64;
        Hello { from: self.id, to, longest_frame }.encode()
    }

    pub fn codec(&self) -> Frames {
        Frames { longest: self.options.longest_frame, rooms: Arc::clone(&self.rooms) }
    }

    pub fn longest_message(&self) -> usize {
        self.options.longest_frame + HEAD
    }

    /// A connection to `peer`, which has that seat; nobody has heard of it yet. It takes the place of earlier ones.
    pub fn link(&self, peer: NodeId, seat: Arc<Seat>) -> Arc<Link> {
        let Options { queue_frames, queue_bytes, .. } = self.options;
        let outbox = Outbox::new(queue_frames, queue_bytes, self.hello(peer));
        let mut number = 0;
        seat.newest.send_modify(|newest| {
            *newest += 1;
            number = *newest;
        });
        Arc::new(Link { peer, outbox, seat, number })
    }

    /// Where a peer sits, over all its connections.
    ///
    /// # Errors
    /// [`Trouble::TooMany`], if there is none left.
    pub fn seat(&self, peer: NodeId) -> Result<Arc<Seat>, Trouble> {
        let mut seats = lock(&self.seats);
        if let Some(seat) = seats.get(&peer) {
            return Ok(Arc::clone(seat));
        }
        let most = self.options.most_peers;
        if seats.len() >= most {
            // Of those who are gone.
            seats.retain(|_, seat| Arc::strong_count(seat) > 1);
        }
        if seats.len() >= most {
            return Err(Trouble::TooMany { most });
        }
        let seat = Arc::new(Seat::new(&self.options));
        seats.insert(peer, Arc::clone(&seat));
        Ok(seat)
    }

    /// Notes what keeps a peer away, or that nothing does. Says it, where it is new.
    pub fn note(&self, peer: NodeId, trouble: Option<Trouble>) {
        let mut troubles = lock(&self.troubles);
        match trouble {
            None => drop(troubles.remove(&peer)),
            Some(trouble) if troubles.get(&peer) == Some(&trouble) => {}
            Some(trouble) => {
                tracing::warn!(node = self.id.0, peer = peer.0, %trouble, "no connection");
                troubles.insert(peer, trouble);
            }
        }
    }

    pub fn trouble(&self, peer: NodeId) -> Option<Trouble> {
        lock(&self.troubles).get(&peer).cloned()
    }

    /// Notes that somebody was turned away, once, for the reason that lies deepest.
    pub fn refused(&self, party: &Party, trouble: Trouble) {
        if !party.refuse() {
            return;
        }
        let trouble = match party.end() {
            Some(End::Failed(trouble)) => trouble,
            Some(End::Over) | None => trouble,
        };
        if self.tells(party.address.ip(), &trouble) {
            tracing::warn!(node = self.id.0, address = %party.address, %trouble, "turned away");
        } else {
            tracing::debug!(node = self.id.0, address = %party.address, %trouble, "turned away");
        }
        let mut strangers = lock(&self.strangers);
        strangers.refused += 1;
        strangers.last = Some((party.address, trouble));
    }

    /// Whether people are to be told: of what is new, and of that once in a while alone, as strangers may come as often
    /// as they like.
    fn tells(&self, address: IpAddr, trouble: &Trouble) -> bool {
        let mut told = lock(&self.told);
        let is_due = told.as_ref().is_none_or(|last| {
            let is_new = (last.address, &last.trouble) != (address, trouble);
            last.at.elapsed() >= if is_new { QUIET } else { LONG_QUIET }
        });
        if is_due {
            *told = Some(Told { at: Instant::now(), address, trouble: trouble.clone() });
        }
        is_due
    }

    pub fn strangers(&self) -> Strangers {
        lock(&self.strangers).clone()
    }

    /// One more who has not said who it is. Of too many the one who came first has to go.
    pub fn wait_for(&self, party: &Arc<Party>) {
        let mut waiting = lock(&self.waiting);
        waiting.retain(|party| party.waits());
        if waiting.len() >= self.options.strangers
            && let Some(first) = waiting.pop_front()
        {
            first.dismiss();
        }
        waiting.push_back(Arc::clone(party));
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Nothing is left half done under these locks.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use super::super::io::Rank;
    use super::*;
    use crate::inbox::inbox;

    fn node(options: Options) -> Node {
        let (slot, _) = inbox();
        let alive = mpsc::channel(1).0.downgrade();
        let phase = watch::Sender::new(Phase::Open).subscribe();
        Node::new(NodeId(0), options, slot, phase, alive).unwrap()
    }

    #[test]
    fn peers_are_bounded_and_those_who_are_gone_make_room() {
        let node = node(Options { most_peers: 2, ..Options::default() });
        let [first, _second] = [1, 2].map(|peer| node.seat(NodeId(peer)).unwrap());
        assert_eq!(node.seat(NodeId(3)).unwrap_err(), Trouble::TooMany { most: 2 });
        assert!(node.seat(NodeId(1)).is_ok(), "it has one");
        drop(first);
        assert!(node.seat(NodeId(3)).is_ok());
    }

    #[test]
    fn of_too_many_strangers_the_first_goes() {
        let node = node(Options { strangers: 2, ..Options::default() });
        let address = SocketAddr::from(([127, 0, 0, 1], 1));
        let parties = [(); 4].map(|()| Party::new(address, Rank::Stranger));
        node.wait_for(&parties[0]);
        node.wait_for(&parties[1]);
        parties[0].rise(Rank::Peer);
        node.wait_for(&parties[2]);
        node.wait_for(&parties[3]);
        let waiting = lock(&node.waiting);
        let left = [&parties[2], &parties[3]];
        assert!(waiting.iter().zip(left).all(|(party, expected)| Arc::ptr_eq(party, expected)));
        assert_eq!(waiting.len(), 2);
    }

    #[test]
    fn a_frame_costs_more_than_its_bytes_and_no_more_than_there_is() {
        let seat = Seat::new(&Options { inbox_bytes: 1000, ..Options::default() });
        assert_eq!([0, 100, 1000, usize::MAX].map(|len| seat.cost(len)), [64, 164, 1000, 1000]);
    }
}
