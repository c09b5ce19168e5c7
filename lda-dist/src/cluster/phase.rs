//! Progress of a node.

/// Progress of a node. Each variant names the roles that can be in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Phase {
    /// The master waits until all nodes are ready; a server or worker waits for its first attempt.
    Waiting,
    /// The master waits until servers have placed the words.
    Starting,
    /// Workers send counts to servers.
    Joining,
    /// A round is open. A worker has partitions left, or servers have not acknowledged all its
    /// requests.
    Sampling,
    /// A worker has finished the round or the joining; a server has ended the round, and the next
    /// has not started.
    Between,
    /// The master waits until servers have ended the round.
    Ending,
    /// The master waits until servers have started the next round.
    Beginning,
    /// The master waits until workers have written their topics, as nodes have to stop or the run ends.
    Keeping,
    /// The master waits for the rows of all partitions.
    Collecting,
    /// The master waits until all nodes have acknowledged the end of the run.
    Finishing,
    /// The run is over, or this node is released.
    Finished,
}

impl Phase {
    /// All phases, in order.
    pub const ALL: [Self; 11] = [
        Self::Waiting,
        Self::Starting,
        Self::Joining,
        Self::Sampling,
        Self::Between,
        Self::Ending,
        Self::Beginning,
        Self::Keeping,
        Self::Collecting,
        Self::Finishing,
        Self::Finished,
    ];
}
