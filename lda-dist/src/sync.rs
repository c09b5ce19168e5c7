//! Synchronisation of rounds: when a round may start, and which updates its counts contain.
//!
//! The arithmetic with the staleness bound is here, as functions of values. The roles of a cluster,
//! servers, shards and the in-process reference call these functions, and none of them computes a
//! bound by itself.
//!
//! | caller | question |
//! |---|---|
//! | master (`cluster::master::rounds`) | the rounds to start: [`SyncMode::open_from`] |
//! | worker (`cluster::worker`) | whether a start is legal: [`SyncMode::may_start`] |
//! | server's node (`cluster::server`) | the same: [`SyncMode::max_open`] |
//! | shard, at the start of a round | which of its deltas C_k contains: [`SyncMode::own_updates_seen`] |
//! | server, for a push | whether C_k may be too low: [`SyncMode::may_lack_own_updates`] |
//! | in-process reference | the rounds to start at first: [`SyncMode::max_open`] |
//!
//! The rows that a round reads are not decided here: a server reads those that it has when the round
//! begins ([`Server::begin_round`](crate::server::Server::begin_round)). A mode in which rounds read
//! newer rows changes the server too, and [`SyncMode::own_updates_seen`], which assumes that C_k
//! follows from the number of the round.
//!
//! A round is **open** from its start until every worker has finished it and the servers have
//! added its deltas to their rows. Rounds end in the order in which they started. The joining, in
//! which shards send their first counts, comes before the first round and overlaps with none.

use crate::spec::Round;

/// Synchronisation mode of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SyncMode {
    /// Up to `staleness + 1` rounds are open at once, and round r reads exactly the counts after
    /// round r − 1 − `staleness`. The bound is also the exact staleness, so results do not depend
    /// on the number or the speed of workers. With a staleness of 0 rounds are bulk-synchronous.
    Rounds {
        /// Staleness: number of rounds by which counts are older than in bulk-synchronous rounds.
        staleness: u16,
    },
}

impl SyncMode {
    /// Largest number of rounds that are open at once.
    pub fn max_open(self) -> usize {
        let Self::Rounds { staleness } = self;
        usize::from(staleness) + 1
    }

    /// Rounds that may be open while `oldest` is the oldest round that has not ended, in order.
    /// An epoch has `rounds` rounds.
    pub fn open_from(self, oldest: Round, rounds: u16) -> impl Iterator<Item = Round> {
        let all = std::iter::successors(Some(oldest), move |round| Some(round.next(rounds)));
        all.take(self.max_open())
    }

    /// Returns whether `round` may be open while `oldest` is the oldest round that has not ended.
    pub fn may_start(self, round: Round, oldest: Round, rounds: u16) -> bool {
        self.open_from(oldest, rounds).any(|open| open == round)
    }

    /// Number of rounds, of the last `reported` ones whose deltas a shard has sent, whose deltas are
    /// in the totals of the round that starts now. They are the oldest of these rounds.
    pub fn own_updates_seen(self, reported: usize) -> usize {
        reported.saturating_sub(self.max_open() - 1)
    }

    /// Returns whether the totals of a round may lack updates that the reader has made itself in
    /// rounds that are still open. If not, totals that count fewer tokens of a topic than the
    /// reader has are an error.
    pub fn may_lack_own_updates(self) -> bool {
        self.max_open() > 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BSP: SyncMode = SyncMode::Rounds { staleness: 0 };
    const STALE: SyncMode = SyncMode::Rounds { staleness: 2 };

    fn round(epoch: u32, number: u16) -> Round {
        Round { epoch, number, attempt: 1 }
    }

    #[test]
    fn bulk_synchronous_rounds_do_not_overlap() {
        assert_eq!(BSP.max_open(), 1);
        assert!(BSP.may_start(round(1, 1), round(1, 1), 3));
        assert!(!BSP.may_start(round(1, 2), round(1, 1), 3));
        assert!(!BSP.may_lack_own_updates());
    }

    #[test]
    fn as_many_rounds_overlap_as_the_staleness_allows() {
        // The third epoch starts while the last two rounds of the second are open.
        let open: Vec<Round> = STALE.open_from(round(2, 1), 3).collect();
        assert_eq!(open, [round(2, 1), round(2, 2), round(3, 0)]);
        for open in open {
            assert!(STALE.may_start(open, round(2, 1), 3));
        }
        assert!(!STALE.may_start(round(3, 1), round(2, 1), 3), "too far ahead");
        assert!(!STALE.may_start(round(2, 0), round(2, 1), 3), "it has ended");
        assert!(STALE.may_lack_own_updates());
    }

    #[test]
    fn the_first_rounds_start_together_after_the_joining() {
        let first = Round::joining(4, 1).next(5);
        let open: Vec<Round> = STALE.open_from(first, 5).collect();
        assert_eq!(open, [round(5, 0), round(5, 1), round(5, 2)]);
    }

    #[test]
    fn a_round_of_another_attempt_may_not_start() {
        assert!(!STALE.may_start(Round { attempt: 2, ..round(1, 0) }, round(1, 0), 3));
    }

    #[test]
    fn totals_contain_own_updates_after_the_staleness() {
        assert_eq!([1, 2].map(|reported| BSP.own_updates_seen(reported)), [1, 2]);
        assert_eq!([1, 2, 3, 4].map(|reported| STALE.own_updates_seen(reported)), [0, 0, 1, 2]);
    }
}
