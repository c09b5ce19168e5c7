//! Defaults for the division of the work.

use crate::config::Routing;

/// Default number of shards, so that up to 8 workers have work.
pub const DEFAULT_SHARDS: u16 = 8;
/// Default number of partitions.
const PARTITIONS: u32 = 16;
/// Least default number of partitions per server, for an even load.
const PER_SERVER: u32 = 4;

/// Least number of shards for which the default routing is [`Routing::Cheapest`].
const SHARDS_THAT_PUSH: u16 = 100;

/// Default policy for pulling rows, for this number of shards: pull all below 100 shards, and from 100 on
/// those for which pulling takes fewer bytes than pushing.
///
/// Pushing takes fewer bytes only for rows that are long relative to a shard's tokens of the word. It
/// takes more time, as servers sample and routes have to be found, and rows do not
/// [stay](crate::cluster) at workers. All nodes in one process with two threads, one worker, medians of 5
/// pairs of runs:
///
/// | | time of `cheapest` over `pull` | MB of both |
/// |---|--:|--:|
/// | nips, K = 1,000, 8 shards, 20 epochs | 1.46 | 91 and 2.5 |
/// | news20, K = 10,000, 32 shards, 6 epochs | 1.80 | 186 and 7.4 |
/// | reddit, K = 1,000, 8 shards, 5 epochs | 1.85 | 138 and 8.7 |
///
/// If each worker has one shard, rows do not stay, and both move about the same: 3.6 and 3.5 MB per epoch on
/// nips, 23.3 and 26.4 MB on news20, 104 and 115 MB on reddit with 64 shards. More shards were not measured
/// on real documents.
pub fn default_routing(shards: u16) -> Routing {
    if shards < SHARDS_THAT_PUSH { Routing::Pull } else { Routing::Cheapest }
}

/// Numbers of shards, partitions and rounds; those that are not set follow from the corpus and from
/// each other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[must_use = "nothing is divided before `resolve` is called"]
pub struct Division {
    shards: Option<u16>,
    partitions: Option<u16>,
    rounds: Option<u16>,
}

impl Division {
    /// Number of shards; default 8, or one per document if there are fewer.
    pub fn shards(mut self, shards: impl Into<Option<u16>>) -> Self {
        self.shards = shards.into();
        self
    }

    /// Number of partitions of the words; default the largest of 16, 4 per server, and
    /// shards · (staleness + 1), rounded up to a multiple of the servers, and at most the number of
    /// words.
    pub fn partitions(mut self, partitions: impl Into<Option<u16>>) -> Self {
        self.partitions = partitions.into();
        self
    }

    /// Number of rounds per epoch; default shards · (staleness + 1), so that no two shards sample the
    /// same word in rounds that are open at the same time, but at most the number of partitions.
    pub fn rounds(mut self, rounds: impl Into<Option<u16>>) -> Self {
        self.rounds = rounds.into();
        self
    }

    /// The numbers of shards, partitions and rounds, for this many servers and this staleness in
    /// rounds.
    pub fn resolve(
        &self,
        servers: u32,
        staleness: u16,
        documents: u64,
        words: u32,
    ) -> (u16, u32, u16) {
        let documents = u16::try_from(documents).unwrap_or(u16::MAX);
        let shards = self.shards.unwrap_or(DEFAULT_SHARDS.min(documents));
        let apart = shards.saturating_mul(staleness.saturating_add(1));
        let suits = PARTITIONS.max(PER_SERVER.saturating_mul(servers)).max(apart.into());
        // Rounded up, so that each server has the same number of partitions.
        let suits = suits.checked_next_multiple_of(servers).unwrap_or(suits);
        let partitions = self.partitions.map_or(suits.min(words), u32::from).max(1);
        let most = u16::try_from(partitions).unwrap_or(u16::MAX);
        (shards, partitions, self.rounds.unwrap_or(apart.min(most)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn defaults_depend_on_the_documents() {
        let all = Division::default();
        assert_eq!(all.resolve(1, 0, 1000, 500), (8, 16, 8));
        assert_eq!(all.resolve(1, 0, 3, 5), (3, 5, 3));
        assert_eq!(all.shards(20).resolve(1, 0, 1000, 500), (20, 20, 20));
        assert_eq!(all.partitions(4).resolve(1, 0, 1000, 500), (8, 4, 4));
        assert_eq!(all.rounds(2).resolve(1, 0, 1000, 500), (8, 16, 2));
        assert_eq!(all.shards(20).resolve(9, 0, 1000, 500), (20, 36, 20));
        assert_eq!(all.resolve(1, 2, 1000, 500), (8, 24, 24));
        assert_eq!(all.resolve(1, 2, 1000, 9), (8, 9, 9));
    }

    #[test]
    fn few_shards_pull_all_rows() {
        assert_eq!([1, 99].map(default_routing), [Routing::Pull; 2]);
        assert_eq!([100, u16::MAX].map(default_routing), [Routing::Cheapest; 2]);
    }
}
