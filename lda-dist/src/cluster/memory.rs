//! Memory that the nodes of a run need at least, so that a run that cannot fit is refused before it begins.
//!
//! The numbers are lower bounds of measured peaks: nodes in one process, up to 2 M topics, 4 M words, 8
//! nodes of a role, 32 shards and 40 M tokens. Rows, requests in flight and names of words come on top.

use super::{NodeRole, Setup};

/// Bytes per topic of every node: C_k and its deltas.
const PER_TOPIC: u64 = 20;
/// Bytes per topic of a server or worker: tables of a sampler, or of a slice.
const PER_TOPIC_TABLES: u64 = 28;
/// Bytes per topic of a shard: its copy of C_k.
const PER_TOPIC_SHARD: u64 = 8;
/// Bytes per word of the master: word statistics of all shards.
const PER_WORD: u64 = 40;
/// Bytes per word of a server or worker: all words are placed on each.
const PER_WORD_PLACED: u64 = 100;
/// Bytes per token of a worker: topics, those of the last epoch, and words by partition.
const PER_TOKEN: u64 = 10;

impl Setup {
    /// Bytes that a node of this role takes at least, if the documents have this many tokens, divided
    /// evenly among workers. A peak may be several times as high.
    ///
    /// ```
    /// use lda_dist::cluster::{NodeRole, Setup};
    /// use lda_dist::config::Options;
    /// use lda_dist::spec::ModelSpec;
    ///
    /// let options = Options { shards: 8, ..Options::default() };
    /// let setup = Setup::new(ModelSpec::builder(1_000_000, 500).build()?, 1).options(options);
    /// let bytes = setup.least_memory(NodeRole::Worker(0), 8000);
    /// assert!(bytes > 100_000_000);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn least_memory(&self, role: NodeRole, tokens: u64) -> u64 {
        let (topics, words) = (u64::from(self.spec.topics()), u64::from(self.spec.words()));
        let placed = (PER_TOPIC + PER_TOPIC_TABLES) * topics + PER_WORD_PLACED * words;
        match role {
            NodeRole::Master => PER_TOPIC * topics + PER_WORD * words,
            NodeRole::Server(_) => placed,
            NodeRole::Worker(worker) => {
                let shards = self.shards(worker).len() as u64;
                let tokens = tokens / u64::from(self.workers.max(1));
                PER_TOKEN
                    .saturating_mul(tokens)
                    .saturating_add(placed + PER_TOPIC_SHARD * topics * shards)
            }
        }
    }

    /// Bytes that all nodes in one process take at least.
    pub fn least_memory_local(&self, tokens: u64) -> u64 {
        let servers = u64::from(self.options.servers);
        let workers =
            (0..self.workers).map(|worker| self.least_memory(NodeRole::Worker(worker), tokens));
        self.least_memory(NodeRole::Master, tokens)
            .saturating_add(servers.saturating_mul(self.least_memory(NodeRole::Server(0), tokens)))
            .saturating_add(workers.fold(0, u64::saturating_add))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Options;
    use crate::spec::ModelSpec;

    fn local(topics: u32, words: u32, (workers, servers, shards): (u32, u32, u16)) -> u64 {
        let options = Options { servers, shards, ..Options::default() };
        let spec = ModelSpec::builder(topics, words).build().unwrap();
        Setup::new(spec, 1).options(options).workers(workers).least_memory_local(8000)
    }

    /// Peaks of `lda cluster local`, less that of a run with 10 topics.
    #[test]
    fn bounds_are_near_measured_peaks_and_below() {
        for (topics, words, nodes, peak) in [
            (1_000_000, 500, (1, 1, 8), 263),
            (1_000_000, 500, (8, 1, 8), 702),
            (1_000_000, 500, (1, 4, 8), 492),
            (1_000_000, 500, (1, 1, 32), 542),
            (1_000_000, 500, (1, 1, 1), 129),
            (2_000_000, 500, (1, 1, 8), 525),
            (10, 4_000_000, (1, 1, 8), 1113),
            (10, 4_000_000, (4, 1, 8), 3770),
            (10, 4_000_000, (1, 4, 8), 3655),
        ] {
            let bytes = local(topics, words, nodes);
            let share = bytes as f64 / (f64::from(peak) * 1e6);
            assert!((0.5..1.0).contains(&share), "{topics} {words} {nodes:?}: {share}");
        }
    }

    #[test]
    fn tokens_are_divided_among_workers() {
        let options = Options { shards: 4, ..Options::default() };
        let setup = Setup::new(ModelSpec::builder(10, 10).build().unwrap(), 1).options(options);
        let worker = |setup: &Setup, tokens| setup.least_memory(NodeRole::Worker(0), tokens);
        let one = worker(&setup, 4000) - worker(&setup, 0);
        let setup = setup.workers(4);
        assert_eq!(one, 4 * (worker(&setup, 4000) - worker(&setup, 0)));
        assert_eq!(setup.least_memory_local(4000) - setup.least_memory_local(0), one);
        assert_eq!(setup.least_memory_local(u64::MAX), u64::MAX);
    }
}
