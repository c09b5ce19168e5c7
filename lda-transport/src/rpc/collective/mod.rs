//! Operations that all members of a group do together: a barrier, a broadcast, sums, a gathering.
//!
//! Every member [begins](super::Endpoint::begin) the same operations of a [`Group`] in the same order; several may
//! run at once. An operation has ended at a member when it has all that it gets, and its peers have all that it
//! sends; they may not have begun yet.
//!
//! | operation | every member gets | messages of a member, in pieces | way |
//! |---|---|---|---|
//! | [barrier](Collective::Barrier) | | 3 at most | binary tree, up and down |
//! | [broadcast](Collective::Broadcast) | what the root has | 2 times the content | binary tree |
//! | [reduce-scatter](Collective::ReduceScatter) | its part of the sums | n − 1 parts of n | ring, or straight |
//! | [all-gather](Collective::AllGather) | what everybody has | n − 1 contents | ring, or straight |
//!
//! A ring has each member send about the whole vector once, whatever their number (Patarasu and Yuan 2009,
//! "Bandwidth optimal all-reduce algorithms"), and takes n − 1 steps one after the other. What is short goes straight
//! to where it belongs, in one. Both add in the same order, so that a sum of `f32` has the same bits by either
//! way and at each try.
//!
//! # Pieces
//! Contents travel in pieces of [`Config::piece`](super::Config::piece) bytes, each a request of its own that is
//! taken at most once; so a long content is on all of its way at once. Of one operation at most eight pieces are
//! underway to a peer. A member that has not begun an operation keeps its pieces, up to a window of each peer; more of
//! them wait without an answer.
//!
//! # When something fails
//! An operation ends with [`CollectiveError`] when its deadline comes, when a member is refused or starts anew, or when
//! members do not do the same. The group is broken then, as its operations are no more the same ones everywhere: all
//! that runs of it ends, nothing of it begins any more, and the other members are told, who do the same. Go on in a
//! group with another id.

mod dispatch;
mod operation;
mod part;
mod running;
mod sum;

use std::sync::Arc;

use thiserror::Error;

use crate::frame::Frame;
use crate::transport::NodeId;

use super::FailureReason;
pub(crate) use running::check;
pub(super) use running::{Collectives, Deed};

/// Nodes that do operations together.
///
/// ```
/// use lda_transport::NodeId;
/// use lda_transport::rpc::Group;
///
/// let group = Group::new(1, vec![NodeId(4), NodeId(2)], NodeId(2))?;
/// assert_eq!((group.rank(), group.rank_of(NodeId(3))), (1, None));
/// assert!(Group::new(1, vec![NodeId(4), NodeId(4)], NodeId(4)).is_err());
/// # Ok::<(), lda_transport::rpc::GroupError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    id: u64,
    members: Arc<[NodeId]>,
    rank: usize,
}

/// Members that make no group.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum GroupError {
    /// This node is not in it.
    #[error("this node, {0}, is not in the group")]
    NotIn(NodeId),
    /// Somebody is in it twice.
    #[error("{0} is in the group twice")]
    Twice(NodeId),
}

impl Group {
    /// A group with these members, in this order, which has to be the same everywhere, as this node sees it. Its
    /// id tells its operations from those of others, before and beside it.
    ///
    /// # Errors
    /// [`GroupError`].
    pub fn new(id: u64, members: Vec<NodeId>, this: NodeId) -> Result<Self, GroupError> {
        let mut sorted = members.clone();
        sorted.sort_unstable();
        if let Some(two) = sorted.windows(2).find(|two| two[0] == two[1]) {
            return Err(GroupError::Twice(two[0]));
        }
        let rank = members.iter().position(|&member| member == this);
        let rank = rank.ok_or(GroupError::NotIn(this))?;
        Ok(Self { id, members: members.into(), rank })
    }

    /// Which group it is.
    pub fn id(&self) -> u64 {
        self.id
    }

    /// Those in it, by rank.
    pub fn members(&self) -> &[NodeId] {
        &self.members
    }

    /// This node's place.
    pub fn rank(&self) -> usize {
        self.rank
    }

    /// A member's place.
    pub fn rank_of(&self, node: NodeId) -> Option<usize> {
        self.members.iter().position(|&member| member == node)
    }
}

/// What to do together.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Collective {
    /// Ends nowhere before it has begun everywhere. Gives nothing.
    Barrier,
    /// Gives everybody what the root has.
    Broadcast {
        /// Who has it.
        root: NodeId,
        /// What; at the root alone.
        content: Option<Frame>,
    },
    /// Adds vectors, and gives the member of rank r of n the sums from ⌊r·len/n⌋ to ⌊(r+1)·len/n⌋.
    ReduceScatter {
        /// What the vectors are of.
        element: Element,
        /// One of them, in little-endian order; as long everywhere.
        values: Frame,
    },
    /// Gives everybody what everybody has, by rank. It may be of different lengths.
    AllGather {
        /// What this member has.
        content: Frame,
    },
}

/// What numbers are added. Integers wrap around.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Element {
    /// Of 32 bits, without a sign or in two's complement.
    I32 = 1,
    /// Of 64 bits, without a sign or in two's complement.
    I64 = 2,
    /// Of 32 bits, with a point.
    F32 = 3,
}

impl Element {
    /// Bytes of one.
    pub fn bytes(self) -> usize {
        match self {
            Self::I32 | Self::F32 => 4,
            Self::I64 => 8,
        }
    }
}

/// An operation of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct OperationId {
    /// Of which group.
    pub group: u64,
    /// Which of its operations, from 0.
    pub number: u64,
}

/// An operation that cannot begin.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum BeginError {
    /// The root is not in the group.
    #[error("the root, {0}, is not in the group")]
    Root(NodeId),
    /// Content, and it is not the root.
    #[error("content of a broadcast is the root's alone to give: this node has {}", if *.0 { "some" } else { "none" })]
    Content(bool),
    /// An operation of the group has failed.
    #[error("group {group} is broken, go on in one with another id: {reason}")]
    Broken {
        /// Which.
        group: u64,
        /// How the first that failed did.
        reason: String,
    },
    /// Bytes that are not whole numbers.
    #[error("{bytes} bytes are not a vector of numbers of {element} bytes")]
    Values {
        /// Of the vector.
        bytes: usize,
        /// Of a number.
        element: usize,
    },
    /// More than [an operation takes](super::Config::max_content_len).
    #[error(
        "{bytes} bytes, where an operation takes {longest}: cut them up, or raise the bound everywhere"
    )]
    TooLong {
        /// Of the content.
        bytes: usize,
        /// The most.
        longest: u64,
    },
}

/// An operation that has failed.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum CollectiveError {
    /// Its deadline came first.
    #[error("it has not ended by its deadline{}", list(.missing))]
    Deadline {
        /// Those that have not sent what they have to, or not taken what they get. None are known where the
        /// transport does it by [its own means](crate::Transport::together).
        missing: Vec<NodeId>,
    },
    /// A member is not what it was, or cannot be reached.
    #[error("{peer} is lost to it: {}", describe(*.reason))]
    Lost {
        /// Who.
        peer: NodeId,
        /// Why.
        reason: FailureReason,
    },
    /// A member does something else.
    #[error("{peer} does not do the same: {words}")]
    Mismatch {
        /// Who.
        peer: NodeId,
        /// How that was seen.
        words: String,
    },
    /// A member has given it up; its words.
    #[error("{peer} has given it up: {words}")]
    Rejected {
        /// Who.
        peer: NodeId,
        /// Why.
        words: String,
    },
    /// It has not begun here.
    #[error(transparent)]
    Begin(#[from] BeginError),
    /// This node has given it up.
    #[error("this node has given it up")]
    Cancelled,
}

fn list(nodes: &[NodeId]) -> String {
    let names: Vec<String> = nodes.iter().map(NodeId::to_string).collect();
    if names.is_empty() { String::new() } else { format!("; missing are {}", names.join(", ")) }
}

fn describe(reason: FailureReason) -> &'static str {
    match reason {
        FailureReason::Deadline => "it did not answer in time",
        FailureReason::NewIncarnation => "it has started anew",
        FailureReason::Refused => "one of the two refuses the other",
        FailureReason::TooLong => "the transport takes no frame so long: make pieces shorter",
        FailureReason::ReplyTooLong => "the transport takes no frame as long as its reply",
        FailureReason::Cancelled => "this node has given it up",
        FailureReason::Closed => "this node has closed",
    }
}
