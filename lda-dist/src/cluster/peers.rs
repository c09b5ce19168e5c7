//! Connections of a node to the nodes that it needs, and how long it waits for those that are lost.
//!
//! A node that has closed its connection has ended. One that has not come yet, does not answer, or
//! cannot be reached may be on its way: a short interruption of the network does not end a run, and
//! neither does the order in which nodes start. Transports detect a node that does not answer while
//! this one samples: gRPC by its pings within 2 s, also if a machine has stopped or a network is
//! cut.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::time::Duration;

use lda_transport::{DisconnectReason, NodeId, Time};

use super::{MASTER, Setup};

/// Shortest time to wait for a node that has not ended as far as this one knows: transports need
/// some of it to connect again.
const SHORTEST: Duration = Duration::from_secs(5);
/// Maximum time between the end of the run at other nodes and at this one.
const LAST_MESSAGES: Duration = Duration::from_secs(10);

/// Time that a node waits for a peer that it needs. The run ends when it is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Patience {
    ended: Duration,
    lost: Duration,
}

impl Default for Patience {
    /// No time for a peer that has ended. A minute for one that has not come yet, or cannot be
    /// reached.
    fn default() -> Self {
        Self { ended: Duration::ZERO, lost: Duration::from_secs(60) }
    }
}

impl Patience {
    /// This time for a peer that has ended, so that it can be started again; and for one that has
    /// not come yet or cannot be reached, but for that at least 5 s.
    pub fn new(time: Duration) -> Self {
        Self { ended: time, lost: time.max(SHORTEST) }
    }
}

/// Peers that a node needs, and those of them that are lost.
#[derive(Debug)]
pub struct Peers {
    this: NodeId,
    patience: Patience,
    now: Time,
    /// Nodes of the other two roles.
    others: BTreeSet<NodeId>,
    /// Those of them without a connection.
    lost: BTreeMap<NodeId, Lost>,
    /// First refusals of peers that have not joined since.
    refused: BTreeMap<NodeId, Time>,
    has_met_master: bool,
    strays: u64,
}

/// A peer without a connection.
#[derive(Clone, Debug)]
struct Lost {
    why: Loss,
    since: Time,
    /// Time at which it is given up.
    until: Time,
    /// True if the node waits for it.
    is_needed: bool,
}

/// Why a peer has no connection.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Loss {
    /// It has not connected yet.
    NotConnected,
    /// It has closed the connection: its program has ended.
    Closed,
    /// The connection broke, for the reason that the transport gives.
    Broken(String),
    /// It belongs to another run, or has sent an invalid message: for this reason. Another node may come
    /// in its place.
    Refused(String),
}

/// A peer that a node waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LostPeer {
    /// The peer.
    pub peer: NodeId,
    /// Cause.
    pub why: Loss,
    /// Time without it.
    pub since: Duration,
    /// Time until it is given up; 0 if it has been.
    pub left: Duration,
}

impl LostPeer {
    /// A lost peer, for tests of programs that report it.
    pub fn new(peer: NodeId, why: Loss, since: Duration, left: Duration) -> Self {
        Self { peer, why, since, left }
    }
}

impl fmt::Display for Loss {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotConnected => formatter.write_str("has not connected"),
            Self::Closed => formatter.write_str("has ended"),
            Self::Broken(why) => write!(formatter, "is not reached: {why}"),
            Self::Refused(why) => write!(formatter, "is refused: {why}"),
        }
    }
}

impl Peers {
    /// The peers of node `this`: nodes of the other two roles. None is connected yet.
    pub(super) fn new(setup: &Setup, this: NodeId, patience: Patience, now: Time) -> Self {
        let servers = setup.options.servers;
        let role = |id: u32| std::mem::discriminant(&setup.role_of(NodeId(id)));
        let others = (0..1 + servers + setup.workers).filter(|&id| role(id) != role(this.0));
        let others: BTreeSet<NodeId> = others.map(NodeId).collect();
        let has_met_master = this == MASTER;
        let (lost, refused) = (BTreeMap::new(), BTreeMap::new());
        let mut peers =
            Self { this, patience, now, others, lost, refused, has_met_master, strays: 0 };
        for peer in peers.others.clone() {
            peers.lose(peer, Loss::NotConnected, now);
        }
        peers
    }

    /// Number of peers with a connection.
    pub fn connected(&self) -> usize {
        self.others.len() - self.lost.len()
    }

    /// Number of peers that the node needs.
    pub fn expected(&self) -> usize {
        self.others.len()
    }

    /// Returns whether a peer has a connection.
    pub fn is_connected(&self, peer: NodeId) -> bool {
        self.others.contains(&peer) && !self.lost.contains_key(&peer)
    }

    /// Number of messages that were ignored: from strangers, from earlier processes of a node, or too
    /// late.
    pub fn strays(&self) -> u64 {
        self.strays
    }

    /// Peers that the node waits for, in the order of their numbers.
    pub fn lost(&self) -> impl Iterator<Item = LostPeer> {
        let lost = self.lost.iter().filter(|(_, lost)| lost.is_needed);
        lost.map(|(&peer, lost)| self.describe(peer, lost))
    }

    fn describe(&self, peer: NodeId, lost: &Lost) -> LostPeer {
        let (since, left) = (self.now.since(lost.since), lost.until.since(self.now));
        LostPeer { peer, why: lost.why.clone(), since, left }
    }

    /// Peers to give up now.
    pub(super) fn given_up(&self) -> impl Iterator<Item = LostPeer> {
        self.lost().filter(|lost| lost.left.is_zero())
    }

    /// Whether the node can reach the master now, and whether it ever could.
    pub(super) fn master(&self) -> (bool, bool) {
        (!self.lost.contains_key(&MASTER), self.has_met_master)
    }

    /// Sets the number of ignored messages.
    pub(super) fn set_strays(&mut self, strays: u64) {
        self.strays = strays;
    }

    /// Sets the time, and the peers that the node still needs.
    pub(super) fn update(&mut self, now: Time, needs: impl Fn(NodeId) -> bool) {
        self.now = now;
        for (&peer, lost) in &mut self.lost {
            lost.is_needed = needs(peer);
        }
    }

    pub(super) fn connect(&mut self, peer: NodeId) {
        self.lost.remove(&peer);
        self.has_met_master |= peer == MASTER;
    }

    /// A peer that belongs to this run has joined.
    pub(super) fn join(&mut self, peer: NodeId) {
        self.refused.remove(&peer);
        self.lost.remove(&peer);
    }

    /// A peer is refused. Its time counts from the first refusal, however often it connects.
    pub(super) fn refuse(&mut self, peer: NodeId, why: String, now: Time) {
        self.now = now;
        let since = *self.refused.entry(peer).or_insert(now);
        self.lose(peer, Loss::Refused(why), since);
    }

    pub(super) fn disconnect(&mut self, peer: NodeId, reason: &DisconnectReason, now: Time) {
        self.now = now;
        // A refused node ends. That is not the end of the right one.
        if matches!(self.lost.get(&peer), Some(Lost { why: Loss::Refused(_), .. })) {
            return;
        }
        let why = match reason {
            DisconnectReason::Closed => Loss::Closed,
            DisconnectReason::Broken(why) => Loss::Broken(why.clone()),
            other => Loss::Broken(format!("{other:?}")),
        };
        self.lose(peer, why, now);
    }

    /// A peer is lost since then. Nodes of the same role may be connected, and are not needed.
    fn lose(&mut self, peer: NodeId, why: Loss, since: Time) {
        if !self.others.contains(&peer) {
            return;
        }
        let time = match why {
            // The master knows whether the run is over. Other nodes may learn it after their peers.
            Loss::Closed if self.this == MASTER || peer == MASTER => self.patience.ended,
            Loss::Closed => self.patience.ended.max(LAST_MESSAGES),
            Loss::NotConnected | Loss::Broken(_) | Loss::Refused(_) => self.patience.lost,
        };
        let until = since + time;
        self.lost.insert(peer, Lost { why, since, until, is_needed: true });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Options;
    use crate::spec::ModelSpec;

    fn peers(this: u32, patience: Patience) -> Peers {
        let spec = ModelSpec::builder(2, 2).build().unwrap();
        let setup = Setup::new(spec, 1).options(Options { servers: 2, ..Options::default() });
        Peers::new(&setup.workers(3), NodeId(this), patience, Time::ZERO)
    }

    fn seconds(seconds: u64) -> Time {
        Time::ZERO + Duration::from_secs(seconds)
    }

    fn given_up(peers: &mut Peers, at: u64) -> Vec<u32> {
        peers.update(seconds(at), |_| true);
        peers.given_up().map(|lost| lost.peer.0).collect()
    }

    fn broken() -> DisconnectReason {
        DisconnectReason::Broken("no answer".to_owned())
    }

    #[test]
    fn a_node_needs_those_of_the_other_roles() {
        let of = |this| {
            let peers = peers(this, Patience::default());
            peers.lost().map(|lost| lost.peer.0).collect::<Vec<_>>()
        };
        assert_eq!(of(0), [1, 2, 3, 4, 5]);
        assert_eq!(of(1), [0, 3, 4, 5]);
        assert_eq!(of(4), [0, 1, 2]);
    }

    #[test]
    fn every_way_of_being_lost_ends() {
        let mut peers = peers(3, Patience::default());
        assert_eq!(given_up(&mut peers, 59), [0; 0]);
        assert_eq!(given_up(&mut peers, 60), [0, 1, 2], "they never came");
        assert_eq!(peers.master(), (false, false));
        (0..3).for_each(|peer| peers.connect(NodeId(peer)));
        assert_eq!((peers.connected(), peers.master()), (3, (true, true)));
        assert!([0, 2].map(|peer| peers.is_connected(NodeId(peer))) == [true; 2]);
        assert_eq!(given_up(&mut peers, 1000), [0; 0]);
        peers.disconnect(NodeId(0), &DisconnectReason::Closed, seconds(1000));
        assert_eq!(given_up(&mut peers, 1000), [0], "without patience");
        assert_eq!(peers.master(), (false, true));
        peers.disconnect(NodeId(1), &DisconnectReason::Closed, seconds(1000));
        peers.disconnect(NodeId(2), &broken(), seconds(1000));
        assert_eq!(given_up(&mut peers, 1010), [0, 1]);
        let last = peers.lost().last().unwrap();
        assert_eq!((last.since.as_secs(), last.left.as_secs()), (10, 50));
        assert_eq!(last.why.to_string(), "is not reached: no answer");
        peers.connect(NodeId(2));
        assert_eq!(given_up(&mut peers, 2000), [0, 1], "it has returned");
        peers.update(seconds(2000), |peer| peer == MASTER);
        assert_eq!(peers.lost().map(|lost| lost.peer).collect::<Vec<_>>(), [MASTER]);
    }

    #[test]
    fn a_refused_node_is_waited_for_from_its_first_refusal() {
        let mut peers = peers(0, Patience::default());
        (1..6).for_each(|peer| peers.connect(NodeId(peer)));
        let refuse = |peers: &mut Peers, at| {
            peers.connect(NodeId(4));
            peers.refuse(NodeId(4), "of another run".to_owned(), seconds(at));
            peers.disconnect(NodeId(4), &DisconnectReason::Closed, seconds(at));
        };
        refuse(&mut peers, 100);
        assert_eq!(given_up(&mut peers, 159), [0; 0], "its end is not that of the right node");
        assert_eq!(peers.lost().next().unwrap().why.to_string(), "is refused: of another run");
        refuse(&mut peers, 150);
        assert_eq!(given_up(&mut peers, 160), [4]);
        // The right node joins.
        peers.connect(NodeId(4));
        peers.join(NodeId(4));
        assert_eq!((given_up(&mut peers, 1000), peers.connected()), (vec![], 5));
        refuse(&mut peers, 1000);
        assert_eq!(given_up(&mut peers, 1059), [0; 0]);
    }

    #[test]
    fn nodes_of_the_same_role_do_not_count() {
        let mut peers = peers(3, Patience::default());
        (0..6).for_each(|peer| peers.connect(NodeId(peer)));
        peers.disconnect(NodeId(4), &DisconnectReason::Closed, seconds(1));
        peers.disconnect(NodeId(5), &broken(), seconds(1));
        peers.refuse(NodeId(4), "of another run".to_owned(), seconds(1));
        assert_eq!((peers.connected(), peers.expected()), (3, 3));
        assert_eq!(given_up(&mut peers, 1000), [0; 0]);
        (0..3).for_each(|peer| peers.disconnect(NodeId(peer), &broken(), seconds(1000)));
        assert_eq!((peers.connected(), peers.lost().count()), (0, 3));
    }

    #[test]
    fn patience_is_the_time_of_all_waits() {
        for (patience, lost) in [(100, 100), (1, 5)] {
            let mut peers = peers(0, Patience::new(Duration::from_secs(patience)));
            assert_eq!(given_up(&mut peers, lost - 1), [0; 0]);
            assert_eq!(given_up(&mut peers, lost).len(), 5);
            (1..6).for_each(|peer| peers.connect(NodeId(peer)));
            peers.disconnect(NodeId(4), &DisconnectReason::Closed, seconds(1000));
            peers.disconnect(NodeId(5), &broken(), seconds(1000));
            assert_eq!(given_up(&mut peers, 999 + patience), [0; 0]);
            assert_eq!(given_up(&mut peers, 1000 + patience)[0], 4);
            assert_eq!(given_up(&mut peers, 1000 + lost), [4, 5]);
        }
    }
}
