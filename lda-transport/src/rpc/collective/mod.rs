//! Collective operations of a group of nodes: barrier, broadcast, reduce-scatter, all-gather.
//!
//! Every member [begins](super::Endpoint::begin) the same operations of a [`Group`] in the same
//! order; several may run at once. An operation has ended at a member when the member has its
//! result and its peers have received all that it sends. They may not have begun the operation yet.
//!
//! | operation | result of a member | sent by a member | topology |
//! |---|---|---|---|
//! | [barrier](Collective::Barrier) | – | at most 3 messages | binary tree, up and down |
//! | [broadcast](Collective::Broadcast) | the content of the root | 2 times the content | binary tree |
//! | [reduce-scatter](Collective::ReduceScatter) | its part of the sums | n − 1 parts of n | ring, or direct |
//! | [all-gather](Collective::AllGather) | the contents of all | n − 1 contents | ring, or direct |
//!
//! In a ring each member sends about the whole vector once, for any number of members (Patarasu and
//! Yuan 2009, "Bandwidth optimal all-reduce algorithms"), in n − 1 sequential steps. Short contents
//! are sent directly to their receivers, in one step. Both add in the same order, so a sum of `f32`
//! has the same bits either way and in each run.
//!
//! # Parts
//! Contents are sent in parts of [`Config::part_len`](super::Config::part_len) bytes. Each is a
//! request that is taken at most once, so a long content moves along its whole path at once. At
//! most eight parts of an operation are in flight to a peer. A member that has not begun an
//! operation keeps the parts that arrive, up to a window per peer; further ones wait without an
//! answer.
//!
//! # Failures
//! An operation ends with a [`CollectiveError`] when its deadline passes, when a member is refused
//! or restarts, or when members begin different operations. The group is then broken, since the
//! numbers of its operations may differ between members: its running operations end, no more begin,
//! and the other members are notified and do the same. Continue with a group that has another id.

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
pub(super) use running::{Collectives, Command};

/// Nodes that run collective operations.
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

/// Reason why members do not form a group.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum GroupError {
    /// This node is not a member.
    #[error("this node, {0}, is not in the group: add it")]
    NotIn(NodeId),
    /// A node is a member twice.
    #[error("{0} is in the group twice: list every node once")]
    Twice(NodeId),
}

impl Group {
    /// Creates a group of these members, as seen by the node `this`. The order of the members must
    /// be the same at all of them. The id distinguishes the operations of the group from those of
    /// other groups.
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

    /// Returns the id of the group.
    pub fn id(&self) -> u64 {
        self.id
    }

    /// Returns the members, by rank.
    pub fn members(&self) -> &[NodeId] {
        &self.members
    }

    /// Returns the rank of this node.
    pub fn rank(&self) -> usize {
        self.rank
    }

    /// Returns the rank of a member.
    pub fn rank_of(&self, node: NodeId) -> Option<usize> {
        self.members.iter().position(|&member| member == node)
    }
}

/// A collective operation, with the input of this member.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Collective {
    /// Ends at no member before all have begun it. Has no result.
    Barrier,
    /// Sends the content of the root to all members.
    Broadcast {
        /// Member that has the content.
        root: NodeId,
        /// The content, at the root only.
        content: Option<Frame>,
    },
    /// Adds vectors. The member of rank r of n gets the sums from ⌊r·len/n⌋ to ⌊(r+1)·len/n⌋.
    ReduceScatter {
        /// Type of the elements.
        element: Element,
        /// Vector of this member, little-endian, of the same length at all members.
        values: Frame,
    },
    /// Sends the contents of all members to all, by rank. Their lengths may differ.
    AllGather {
        /// Content of this member.
        content: Frame,
    },
}

/// Element type of a sum. Integers wrap around.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Element {
    /// Integers of 32 bits, unsigned or in two's complement.
    I32 = 1,
    /// Integers of 64 bits, unsigned or in two's complement.
    I64 = 2,
    /// Floating-point numbers of 32 bits.
    F32 = 3,
}

impl Element {
    /// Returns the bytes per element.
    pub fn bytes(self) -> usize {
        match self {
            Self::I32 | Self::F32 => 4,
            Self::I64 => 8,
        }
    }
}

/// Number of an operation of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct OperationId {
    /// Id of the group.
    pub group: u64,
    /// Index among the operations of the group, from 0.
    pub number: u64,
}

/// Reason why an operation cannot begin.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum BeginError {
    /// The root is not in the group.
    #[error("the root, {0}, is not in the group: choose a member")]
    Root(NodeId),
    /// A member other than the root has content, or the root has none.
    #[error("{}", if *.0 { "this node is not the root of the broadcast, but has content: pass none" } else { "this node is the root of the broadcast: pass the content" })]
    Content(bool),
    /// An earlier operation of the group has failed.
    #[error("group {group} is broken, continue with another id: {reason}")]
    Broken {
        /// Id of the group.
        group: u64,
        /// Error of the first operation that has failed.
        reason: String,
    },
    /// The length of a vector is not a multiple of the element size.
    #[error("{bytes} bytes are not a whole number of elements of {element} bytes")]
    Values {
        /// Length of the vector, in bytes.
        bytes: usize,
        /// Bytes per element.
        element: usize,
    },
    /// The content is longer than [`Config::max_content_len`](super::Config::max_content_len).
    #[error(
        "a content of {bytes} bytes exceeds the limit of {longest}: split it, or raise the limit at all nodes"
    )]
    TooLong {
        /// Length of the content, in bytes.
        bytes: usize,
        /// The limit, in bytes.
        longest: u64,
    },
}

/// Reason why an operation has failed.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum CollectiveError {
    /// Its deadline has passed.
    #[error("the operation did not end by its deadline{}", list(.missing))]
    Deadline {
        /// Members that have not sent their part or not taken theirs.
        missing: Vec<NodeId>,
    },
    /// A member has restarted or cannot be reached.
    #[error("{peer} is lost: {}", describe(*.reason))]
    Lost {
        /// The member.
        peer: NodeId,
        /// Reason of the loss.
        reason: FailureReason,
    },
    /// A member has begun another operation.
    #[error("{peer} runs another operation: {words}")]
    Mismatch {
        /// The member.
        peer: NodeId,
        /// The difference.
        words: String,
    },
    /// A member has ended it; contains its reason.
    #[error("{peer} has abandoned the operation: {words}")]
    Rejected {
        /// The member.
        peer: NodeId,
        /// Its reason.
        words: String,
    },
    /// It has not begun at this node.
    #[error(transparent)]
    Begin(#[from] BeginError),
    /// This node has cancelled it.
    #[error("this node has cancelled it")]
    Cancelled,
}

fn list(nodes: &[NodeId]) -> String {
    let names: Vec<String> = nodes.iter().map(NodeId::to_string).collect();
    if names.is_empty() { String::new() } else { format!("; missing are {}", names.join(", ")) }
}

fn describe(reason: FailureReason) -> &'static str {
    match reason {
        FailureReason::Deadline => "it did not answer in time",
        FailureReason::NewIncarnation => "it has restarted",
        FailureReason::Refused => "one of the two refuses the other",
        FailureReason::TooLong => "the transport takes no frame so long: make `part_len` smaller",
        FailureReason::ReplyTooLong => "the transport takes no frame as long as its reply",
        FailureReason::Cancelled => "this node has cancelled it",
        FailureReason::Closed => "this node has closed",
    }
}
