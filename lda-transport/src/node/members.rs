//! Who is there, as a node's thread last saw it.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use thiserror::Error;

use crate::rpc::Refusal;
use crate::transport::{DisconnectReason, NodeId};

/// What is known of a peer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Member {
    /// It takes requests.
    Joined {
        /// What it is.
        role: u8,
        /// Which start of it.
        incarnation: u64,
    },
    /// It had joined, and is away.
    Away(DisconnectReason),
    /// It does not fit, or this node does not fit it.
    Refused(Refusal),
}

impl fmt::Display for Member {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Joined { .. } => write!(f, "it has joined"),
            Self::Away(DisconnectReason::Silent) => write!(f, "it has been silent for too long"),
            Self::Away(DisconnectReason::Closed) => write!(f, "it has closed"),
            Self::Away(DisconnectReason::Broken(why)) => write!(f, "its connection broke: {why}"),
            Self::Refused(why) => write!(f, "{why}"),
        }
    }
}

/// Peers that did not join in time, and what is known of them.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{} not joined in time: {}", if missing.len() == 1 { "a peer has" } else { "peers have" }, list(missing))]
pub struct Missing {
    /// None of one that was never heard of.
    pub missing: Vec<(NodeId, Option<Member>)>,
}

fn list(missing: &[(NodeId, Option<Member>)]) -> String {
    let one = |(peer, member): &(NodeId, Option<Member>)| match member {
        Some(member) => format!("{peer}: {member}"),
        None => format!("{peer}: it was never heard of; is it started, and is its address right?"),
    };
    missing.iter().map(one).collect::<Vec<_>>().join("; ")
}

#[derive(Debug, Default)]
pub(super) struct Members {
    members: Mutex<BTreeMap<NodeId, Member>>,
    changed: Condvar,
}

impl Members {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<NodeId, Member>> {
        // Nothing is left half done under this lock.
        self.members.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn set(&self, peer: NodeId, member: Member) {
        self.lock().insert(peer, member);
        self.changed.notify_all();
    }

    /// One that was refused has left.
    pub fn forget_refusal(&self, peer: NodeId, reason: &DisconnectReason) {
        if let Some(member @ Member::Refused(_)) = self.lock().get_mut(&peer) {
            *member = Member::Away(reason.clone());
        }
    }

    pub fn all(&self) -> BTreeMap<NodeId, Member> {
        self.lock().clone()
    }

    /// Waits until all of them have joined, or a time has come, or one is refused.
    pub fn wait(&self, peers: &[NodeId], until: Instant) -> Result<(), Missing> {
        let mut members = self.lock();
        loop {
            let missing: Vec<(NodeId, Option<Member>)> = peers
                .iter()
                .map(|&peer| (peer, members.get(&peer).cloned()))
                .filter(|(_, member)| !matches!(member, Some(Member::Joined { .. })))
                .collect();
            let refused =
                missing.iter().any(|(_, member)| matches!(member, Some(Member::Refused(_))));
            let left = until.checked_duration_since(Instant::now());
            match left {
                _ if missing.is_empty() => return Ok(()),
                Some(left) if !refused => {
                    let waited = self.changed.wait_timeout(members, left);
                    members = waited.unwrap_or_else(PoisonError::into_inner).0;
                }
                _ => return Err(Missing { missing }),
            }
        }
    }
}
