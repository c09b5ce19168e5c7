//! How far a node has come.

/// What a node does, or waits for. Which of them a role can be in is said of each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Phase {
    /// The master waits until all are here; a server has no words yet, and a worker no shards.
    Waiting,
    /// The master waits until servers have placed words.
    Starting,
    /// Workers join servers.
    Joining,
    /// A round is on. A worker has partitions left, or servers have not done all that it asked.
    Sampling,
    /// A worker is done with the round, or with joining; a server has said what its rows have gained, and the next has
    /// not begun.
    Between,
    /// The master waits until servers have said what their rows have gained.
    Ending,
    /// The master waits until servers have begun the next round.
    Beginning,
    /// The master waits until workers have kept their topics, as nodes have to end.
    Keeping,
    /// The master waits for the rows of all partitions.
    Collecting,
    /// The master waits until all have heard that it was the last round.
    Finishing,
    /// It was the last round, or this node's.
    Finished,
}

impl Phase {
    /// All of them, in order.
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
