//! What a transport may do better than by frames.

use std::fmt;

use crate::rpc::{Collective, OperationId};
use crate::transport::NodeId;

/// Operations that a transport does by its own means, as MPI does: for
/// [`Transport::together`](crate::Transport::together).
///
/// What is begun here is begun by all members in the same order, of whatever group. Its end is an
/// [`Arrival::Together`](crate::Arrival::Together), with what [`Collective`] says that each member gets.
pub trait Together: fmt::Debug {
    /// Those that take part, by rank: all nodes of the transport, this one too.
    fn members(&self) -> &[NodeId];

    /// Begins an operation with all others, who call it by the same id. No content is longer than `longest`
    /// bytes anywhere.
    ///
    /// # Errors
    /// The operation, where it is to be done over frames: that is so at all members or at none.
    fn begin(
        &mut self,
        operation: OperationId,
        collective: Collective,
        longest: u64,
    ) -> Result<(), Collective>;

    /// Gives up an operation that has not ended: nothing is heard of it any more.
    fn abandon(&mut self, operation: OperationId);
}
