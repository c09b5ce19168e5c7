//! Placement: which server stores which words.
//!
//! Words are grouped into **partitions**, the unit in which rows are pulled, sampled and updated.
//! Each partition lies on one server, except those of hot words (below). LDA* (section 4.2) takes
//! two steps, because the rows of a few frequent words cost more than those of all others: ranges
//! of words of about equal cost, so of unequal width, become partitions, and each goes to the
//! server with the least load so far. Many ranges balance the servers, but many partitions are
//! expensive, as a document is pushed once per partition. Ranges on one server can therefore be
//! [merged](Placement::merged) into fewer partitions.
//!
//! Words that cost the same at first do not cost the same later, when rows have become short, some
//! much shorter than others. The default is therefore to [balance](Partitioner::Balanced) single
//! words by their costs at several times: on reddit with K = 1,000, 100 shards and 100 servers, the
//! heaviest server has at most 6.5 % more than the mean by bytes in any of 30 epochs, against 15.5
//! % with 3,000 ranges; with K = 8,000 and 300 servers, of 200 words each, 8.4 %. Hashing and
//! ranges of equally many words exist for comparison.
//!
//! With balanced words, a word whose row alone takes a large part of a server's share is **hot**:
//! no server for it gives a balance, because a pulled row costs its server bytes and hardly any
//! time. Hot words have partitions of their own, whose rows are split by topic into **slices** on
//! different servers. A worker that samples such a partition pulls all of its slices; no tokens are
//! pushed to them for sampling. Every other partition has one slice, of all topics, with the number
//! of the partition; the first slice of a split partition has its partition's number too.
//!
//! A shard samples a run of consecutive partitions in each round, and a round lasts as long as its
//! heaviest run. Balanced partitions are therefore numbered so that any run has about its share of
//! the tokens, of hot words and of others.
//!
//! | partitioner | a partition is | imbalance of the servers | when a server is added |
//! |---|---|---|---|
//! | [`Partitioner::Balanced`] | some frequent, some less frequent and some rare words | a few words' rows | everything moves |
//! | [`Partitioner::SkewAware`] | a range of words of about equal cost | the cost of one partition | everything moves |
//! | [`Partitioner::Range`] | a range of equally many words | clusters of frequent words | everything moves |
//! | [`Partitioner::Hash`] | words of all kinds | frequent words with the same hash | everything moves |
//! | [`Partitioner::Rendezvous`] | words of all kinds | frequent words with the same hash | only the partitions of the new server (Yahoo!LDA, section 3.2) |
//!
//! ```
//! use lda_dist::placement::{Partitioner, Placement, PlacementError};
//!
//! // Word 0 costs as much as all others together.
//! let costs = [8, 1, 1, 1, 1, 1, 1, 1, 1];
//! let placement = Placement::new(Partitioner::SkewAware, &costs, 4, 2)?;
//! assert_eq!(placement.loads(&costs), [8, 8]);
//! let server = placement.server(placement.partition(0));
//! assert!((1..9).all(|word| placement.server(placement.partition(word)) != server));
//! # Ok::<(), PlacementError>(())
//! ```

mod balance;
mod balanced;
mod costs;
mod hashed;
mod lengths;
mod ranges;
mod split_rows;
mod word_stats;

use std::collections::BTreeSet;
use std::ops::Range;

use thiserror::Error;

use balanced::{CostedWords, place_balanced};
use costs::{DocumentCosts, Item};
use hashed::{mix, rendezvous};
pub use lengths::DocumentLengths;
use ranges::{costliest_first, equal_costs, loads_of, place_greedily, total};
use split_rows::{HotWords, SliceMap};
pub use word_stats::WordStats;

/// Rule that assigns words to partitions and partitions to servers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Partitioner {
    /// Balances single words by several kinds of cost, so that every server has its share of
    /// frequent, less frequent and rare words, however their rows shrink later.
    Balanced,
    /// Ranges of about equal cost, each placed on the server with the least load (LDA*).
    SkewAware,
    /// Ranges of equally many words, on the servers in turn.
    Range,
    /// Words by a hash, partitions on the servers in turn.
    Hash,
    /// Words by a hash, partitions by rendezvous hashing over the servers.
    Rendezvous,
}

/// Sizes that determine, together with the [word frequencies](WordStats), what workers request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Workload {
    /// Number of topics K.
    pub topics: u32,
    /// Number of shards of the documents, P.
    pub shards: u32,
    /// Lengths of the documents of all shards.
    pub lengths: DocumentLengths,
}

/// Cost of a word before its topics are known (LDA*, section 4.2), in row entries: the lower of
/// pulling its row to every shard that has it, and of pushing a document's row with each token.
///
/// `tokens` are those of the word, `topics` is K, `data_partitions` P, and `document` the mean
/// length of a document in tokens.
pub fn estimated_cost(tokens: u64, topics: u32, data_partitions: u32, document: u64) -> u64 {
    let pulled = tokens.min(u64::from(topics)).saturating_mul(tokens.min(data_partitions.into()));
    pulled.min(tokens.saturating_mul(document))
}

/// Error of a placement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum PlacementError {
    /// There are fewer words than servers.
    #[error("{words} words for {servers} servers: use at most {words} servers")]
    Words {
        /// Number of words.
        words: usize,
        /// Number of servers.
        servers: u32,
    },
    /// There are fewer partitions than servers.
    #[error(
        "{partitions} partitions for {servers} servers: use at least one per server, several to \
         balance them"
    )]
    Partitions {
        /// Number of partitions.
        partitions: u32,
        /// Number of servers.
        servers: u32,
    },
    /// There are no servers.
    #[error("0 servers: use at least 1")]
    Servers,
    /// The statistics of a word contradict each other or overflow.
    #[error(
        "word {word} has tokens and no documents, or more documents than tokens, or more than 2^64 \
         tokens"
    )]
    WordStats {
        /// Id of the word.
        word: u32,
    },
}

/// Assignment of words to partitions, and of the partitions' slices to servers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Placement {
    /// Words by partition, ascending in each. `None` if partitions are ranges of words.
    grouped: Option<Grouped>,
    /// First word of each partition (an index into `grouped` if there is one), and V at the end.
    starts: Vec<u32>,
    /// Server of each slice.
    servers: Vec<u32>,
    num_servers: u32,
    /// Slices of the partitions of hot words.
    cut: SliceMap,
}

/// The part of a partition that is on one server: a range of topics of the rows of its words. LDA*
/// has whole rows only; splitting rows by topic is an addition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Slice {
    /// Number of the slice in requests.
    pub number: u16,
    /// Words of the partition, ascending.
    pub words: Vec<u32>,
    /// Topics of the slice. Rows of the slice number them from 0.
    pub topics: Range<u32>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Grouped {
    /// All words, partition by partition.
    words: Vec<u32>,
    /// Partition of each word.
    partitions: Vec<u32>,
}

impl Placement {
    /// Places words, given one cost per word. There are at most as many partitions as words. There
    /// may be fewer ranges of equal cost than `partitions`, because a word is not divided.
    ///
    /// [`Partitioner::Balanced`] uses only one kind of cost here; [`balanced`](Self::balanced)
    /// estimates several.
    ///
    /// # Errors
    /// [`PlacementError`] if there are no servers, or fewer partitions or words than servers.
    pub fn new(
        partitioner: Partitioner,
        costs: &[u64],
        partitions: u32,
        servers: u32,
    ) -> Result<Self, PlacementError> {
        let partitions = check_sizes(costs.len(), partitions, servers)?;
        let words = costs.len();
        let in_turn =
            |starts: &[u32]| (0..starts.len() as u32 - 1).map(|it| it % servers).collect();
        let (grouped, starts, homes) = match partitioner {
            Partitioner::Balanced => {
                let items: Vec<Item> = costs.iter().map(|&cost| Item::fixed(cost as f64)).collect();
                let words =
                    CostedWords { items: &items, weights: costs, documents: &DocumentCosts::NONE };
                return Ok(place_balanced(&words, partitions, servers, &HotWords::none()));
            }
            Partitioner::SkewAware => {
                let starts = equal_costs(costs, partitions, servers);
                let homes = place_greedily(&loads_of(costs, &starts), servers);
                (None, starts, homes)
            }
            Partitioner::Range => {
                let start = |at| (u64::from(at) * words as u64 / u64::from(partitions)) as u32;
                let starts: Vec<u32> = (0..=partitions).map(start).collect();
                let homes = in_turn(&starts);
                (None, starts, homes)
            }
            Partitioner::Hash | Partitioner::Rendezvous => {
                let (grouped, starts) = group_by_hash(words as u32, partitions);
                let homes = match partitioner {
                    Partitioner::Hash => in_turn(&starts),
                    _ => (0..partitions).map(|partition| rendezvous(partition, servers)).collect(),
                };
                (Some(grouped), starts, homes)
            }
        };
        let cut = SliceMap::new(homes.len() as u32, 0, 1);
        Ok(Self { grouped, starts, servers: homes, num_servers: servers, cut })
    }

    /// Places words by [balancing](Partitioner::Balanced) their estimated costs at several
    /// times. There are at most as many partitions as words, and some more if words are
    /// [hot](self). LDA* (section 4.2) uses only costs of the first epoch, one per word.
    ///
    /// # Errors
    /// [`PlacementError`] if there are no servers, or fewer partitions or words than servers.
    ///
    /// ```
    /// use lda_dist::placement::{Workload, DocumentLengths, Placement, PlacementError, WordStats};
    ///
    /// // All are equally frequent; the last two are in few documents, and will have few topics.
    /// let words = WordStats::new(vec![100; 4], vec![90, 90, 9, 9])?;
    /// let workload = Workload { topics: 1000, shards: 10, lengths: DocumentLengths::even(90, 400) };
    /// let placement = Placement::balanced(&words, &workload, 2, 2)?;
    /// let server = |word| placement.server(placement.partition(word));
    /// assert!(server(0) != server(1) && server(2) != server(3));
    /// # Ok::<(), PlacementError>(())
    /// ```
    pub fn balanced(
        words: &WordStats,
        workload: &Workload,
        partitions: u32,
        servers: u32,
    ) -> Result<Self, PlacementError> {
        let partitions = check_sizes(words.num_words(), partitions, servers)?;
        let documents = DocumentCosts::new(workload, words);
        let items = costs::of_words(words, workload, &documents, partitions);
        let hot = HotWords::new(&items, &documents, words, workload.topics, partitions);
        let words = CostedWords { items: &items, weights: words.tokens(), documents: &documents };
        Ok(place_balanced(&words, partitions, servers, &hot))
    }

    /// Merges partitions that are on the same server, down to at most `partitions` of about equal
    /// cost per server. Words do not change servers, and words of one partition stay together. Has
    /// no effect if there are at most `partitions` already.
    ///
    /// # Errors
    /// [`PlacementError::Partitions`] if there are fewer partitions than servers.
    ///
    /// # Panics
    /// If there are not as many costs as words.
    ///
    /// ```
    /// use lda_dist::placement::{Partitioner, Placement, PlacementError};
    ///
    /// let costs: Vec<u64> = (1..100).map(|rank| 600 / rank).collect();
    /// let many = Placement::new(Partitioner::SkewAware, &costs, 24, 2)?;
    /// let few = many.clone().merged(&costs, 4)?;
    /// assert_eq!((few.num_partitions(), few.loads(&costs)), (4, many.loads(&costs)));
    /// # Ok::<(), PlacementError>(())
    /// ```
    pub fn merged(self, costs: &[u64], partitions: u32) -> Result<Self, PlacementError> {
        assert_eq!(costs.len(), self.num_words(), "one cost per word");
        let servers = self.num_servers;
        if partitions < servers {
            return Err(PlacementError::Partitions { partitions, servers });
        }
        if self.num_partitions() <= partitions as usize {
            return Ok(self);
        }
        let cost_of = |before: u32| total(self.words(before).map(|word| costs[word as usize]));
        let loads: Vec<u64> = (0..self.num_partitions() as u32).map(cost_of).collect();
        // The new partitions of each server, by (load, merged partitions, number). Partitions are
        // numbered by server in turn, so that any run of partitions is spread over all servers.
        let free = |server: u32| {
            let own = (server..partitions).step_by(servers as usize);
            own.map(|partition| (0, 0, partition)).collect()
        };
        let mut free: Vec<BTreeSet<(u64, u32, u32)>> = (0..servers).map(free).collect();
        let mut merged = vec![0; loads.len()];
        for at in costliest_first(&loads) {
            let of_server = &mut free[self.servers[at] as usize];
            let (load, count, partition) = of_server.pop_first().expect("a partition per server");
            merged[at] = partition;
            of_server.insert((load.saturating_add(loads[at]), count + 1, partition));
        }
        let words = 0..self.num_words() as u32;
        let of_word = words.map(|word| merged[self.partition(word) as usize]).collect();
        let (grouped, starts) = group_by_partition(of_word, partitions);
        let homes: Vec<u32> = (0..partitions).map(|partition| partition % servers).collect();
        let cut = SliceMap::new(partitions, 0, 1);
        Ok(Self { grouped: Some(grouped), starts, servers: homes, num_servers: servers, cut })
    }

    /// Number of words V.
    pub fn num_words(&self) -> usize {
        self.starts.last().map_or(0, |&words| words as usize)
    }

    /// Number of partitions.
    pub fn num_partitions(&self) -> usize {
        self.starts.len() - 1
    }

    /// Number of slices of all partitions.
    pub fn num_slices(&self) -> usize {
        self.servers.len()
    }

    /// Whether the words of a partition are [hot](self): their rows are always pulled.
    pub fn is_hot(&self, partition: u32) -> bool {
        self.cut.is_hot(partition)
    }

    /// Slices of a partition in the order of their topics. The first has the partition's number.
    pub fn slices(&self, partition: u32) -> impl ExactSizeIterator<Item = u32> + use<> {
        self.cut.slices_of(partition)
    }

    /// The partition of a slice, and its range of the K topics.
    ///
    /// # Panics
    /// If there is no such slice.
    pub fn slice(&self, slice: u32, topics: u32) -> (u32, Range<u32>) {
        assert!((slice as usize) < self.num_slices(), "no slice {slice}");
        self.cut.slice(slice, topics)
    }

    /// The slices on one server, of rows of K topics.
    ///
    /// # Panics
    /// If a slice's number does not fit 16 bits.
    pub fn slices_on(&self, server: u32, topics: u32) -> impl Iterator<Item = Slice> + '_ {
        let all = 0..self.num_slices() as u32;
        all.filter(move |&slice| self.server(slice) == server).map(move |slice| {
            let (partition, topics) = self.slice(slice, topics);
            let number = u16::try_from(slice).expect("numbers of slices fit 16 bits");
            Slice { number, words: self.words(partition).collect(), topics }
        })
    }

    /// Number of servers.
    pub fn num_servers(&self) -> u32 {
        self.num_servers
    }

    /// The partition of a word.
    ///
    /// # Panics
    /// If there is no such word.
    pub fn partition(&self, word: u32) -> u32 {
        match &self.grouped {
            Some(grouped) => grouped.partitions[word as usize],
            None => {
                assert!((word as usize) < self.num_words(), "no word {word}");
                self.starts.partition_point(|&start| start <= word) as u32 - 1
            }
        }
    }

    /// The server of a slice. A partition that is not split has one slice with its own number.
    ///
    /// # Panics
    /// If there is no such slice.
    pub fn server(&self, slice: u32) -> u32 {
        self.servers[slice as usize]
    }

    /// Words of a partition, ascending.
    ///
    /// # Panics
    /// If there is no such partition.
    pub fn words(&self, partition: u32) -> impl ExactSizeIterator<Item = u32> + '_ {
        let at = partition as usize;
        let range = self.starts[at]..self.starts[at + 1];
        range.map(|place| self.grouped.as_ref().map_or(place, |it| it.words[place as usize]))
    }

    /// Position of a word among those of its partition.
    ///
    /// # Panics
    /// If there is no such word.
    pub fn position(&self, word: u32) -> u32 {
        let at = self.partition(word) as usize;
        let range = self.starts[at] as usize..self.starts[at + 1] as usize;
        match &self.grouped {
            Some(grouped) => grouped.words[range].partition_point(|&other| other < word) as u32,
            None => word - self.starts[at],
        }
    }

    /// Sum of the costs of each server's words, saturating. The slices of a partition get about
    /// equal parts of its cost.
    ///
    /// # Panics
    /// If there are not as many costs as words.
    pub fn loads(&self, costs: &[u64]) -> Vec<u64> {
        assert_eq!(costs.len(), self.num_words(), "one cost per word");
        let mut loads = vec![0; self.num_servers as usize];
        for partition in 0..self.num_partitions() as u32 {
            let cost = total(self.words(partition).map(|word| costs[word as usize]));
            let slices = self.slices(partition);
            let count = slices.len() as u64;
            for (at, slice) in (0..).zip(slices) {
                let load: &mut u64 = &mut loads[self.server(slice) as usize];
                // Rounded so that the parts add up to the whole.
                *load = load.saturating_add(cost.saturating_add(at) / count);
            }
        }
        loads
    }
}

/// Checks the sizes, and returns the number of partitions: at most one per word.
fn check_sizes(words: usize, partitions: u32, servers: u32) -> Result<u32, PlacementError> {
    if servers == 0 {
        return Err(PlacementError::Servers);
    }
    let number = u32::try_from(words).map_err(|_| PlacementError::Words { words, servers })?;
    if number < servers {
        return Err(PlacementError::Words { words, servers });
    }
    if partitions < servers {
        return Err(PlacementError::Partitions { partitions, servers });
    }
    Ok(partitions.min(number))
}

/// Groups words into partitions by a hash.
fn group_by_hash(words: u32, partitions: u32) -> (Grouped, Vec<u32>) {
    let hash = |word: u32| (mix(u64::from(word)) % u64::from(partitions)) as u32;
    group_by_partition((0..words).map(hash).collect(), partitions)
}

/// Groups words, given the partition of each, with a counting sort. Also returns the start of each
/// partition.
fn group_by_partition(of_word: Vec<u32>, partitions: u32) -> (Grouped, Vec<u32>) {
    let mut starts = vec![0u32; partitions as usize + 1];
    of_word.iter().for_each(|&partition| starts[partition as usize + 1] += 1);
    for at in 0..partitions as usize {
        starts[at + 1] += starts[at];
    }
    let mut next = starts.clone();
    let mut grouped = vec![0; of_word.len()];
    for (word, &partition) in (0..).zip(&of_word) {
        let position = &mut next[partition as usize];
        grouped[*position as usize] = word;
        *position += 1;
    }
    (Grouped { words: grouped, partitions: of_word }, starts)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const ALL: [Partitioner; 5] = [
        Partitioner::Balanced,
        Partitioner::SkewAware,
        Partitioner::Range,
        Partitioner::Hash,
        Partitioner::Rendezvous,
    ];

    fn place(by: Partitioner, costs: &[u64], partitions: u32, servers: u32) -> Placement {
        Placement::new(by, costs, partitions, servers).unwrap()
    }

    /// Heaviest server over the mean.
    fn skew(by: Partitioner, costs: &[u64], partitions: u32, servers: u32) -> f64 {
        let loads = place(by, costs, partitions, servers).loads(costs);
        let total: u64 = loads.iter().sum();
        *loads.iter().max().unwrap() as f64 * f64::from(servers) / total as f64
    }

    proptest! {
        #[test]
        fn every_word_is_in_one_partition(
            costs in prop::collection::vec(0..1000u64, 1..200),
            servers in 1..20u32,
            more in 0..300u32,
            merged in prop::option::of(0..40u32),
        ) {
            prop_assume!(costs.len() >= servers as usize);
            for by in ALL {
                let mut placement = place(by, &costs, servers + more, servers);
                if let Some(more) = merged {
                    let before = placement.clone();
                    placement = placement.merged(&costs, servers + more).unwrap();
                    let most = before.num_partitions().min((servers + more) as usize);
                    prop_assert_eq!(placement.num_partitions(), most);
                    for word in 0..costs.len() as u32 {
                        let server = |of: &Placement| of.server(of.partition(word));
                        prop_assert_eq!(server(&placement), server(&before));
                    }
                }
                prop_assert_eq!(placement.num_words(), costs.len());
                let mut seen = vec![0; costs.len()];
                for partition in 0..placement.num_partitions() as u32 {
                    let words: Vec<u32> = placement.words(partition).collect();
                    let places: Vec<u32> = words.iter().map(|&word| placement.position(word)).collect();
                    prop_assert!(places.into_iter().eq(0..words.len() as u32));
                    prop_assert!(words.is_sorted() && placement.server(partition) < servers);
                    for word in words {
                        seen[word as usize] += 1;
                        prop_assert_eq!(placement.partition(word), partition);
                    }
                }
                prop_assert!(seen.iter().all(|&times| times == 1));
                let loads = placement.loads(&costs);
                prop_assert_eq!(loads.iter().sum::<u64>(), costs.iter().sum::<u64>());
                if matches!(by, Partitioner::SkewAware | Partitioner::Balanced) {
                    let of = |partition| placement.server(partition);
                    let used: BTreeSet<u32> = (0..placement.num_partitions() as u32).map(of).collect();
                    prop_assert_eq!(used.len(), servers as usize, "each server has some");
                }
            }
        }
    }

    #[test]
    fn words_of_any_cost_are_placed() {
        let costs = [u64::MAX; 50];
        for by in ALL {
            let placement = place(by, &costs, 12, 3).merged(&costs, 4).unwrap();
            let words: usize = (0..4).map(|partition| placement.words(partition).len()).sum();
            assert_eq!((placement.num_partitions(), words), (4, 50), "{by:?}");
            assert_eq!(placement.loads(&costs), [u64::MAX; 3], "{by:?}");
        }
    }

    /// Zipf frequencies: the first of 50,000 words costs a ninth of a server's share.
    #[test]
    fn skewed_words_are_balanced() {
        let tokens = (1..=50_000u64).map(|rank| 2_000_000 / rank);
        let costs: Vec<u64> = tokens.map(|tokens| estimated_cost(tokens, 1000, 100, 90)).collect();
        let aware = skew(Partitioner::SkewAware, &costs, 400, 50);
        let others = [Partitioner::Range, Partitioner::Hash, Partitioner::Rendezvous]
            .map(|by| skew(by, &costs, 400, 50));
        assert!(aware < 1.05, "{aware}");
        assert!(others.iter().all(|other| *other > 1.15), "{others:?}");
    }

    #[test]
    fn merged_partitions_are_balanced_on_every_server() {
        let costs: Vec<u64> = (1..=50_000u64).map(|rank| 1 + 100_000 / (rank + 99)).collect();
        let many = place(Partitioner::SkewAware, &costs, 1500, 50);
        let few = many.clone().merged(&costs, 100).unwrap();
        assert_eq!(few.loads(&costs), many.loads(&costs));
        let load = |partition| few.words(partition).map(|word| costs[word as usize]).sum::<u64>();
        let loads: Vec<u64> = (0..100).map(load).collect();
        let mean = loads.iter().sum::<u64>() / 100;
        assert!(loads.iter().all(|load| load.abs_diff(mean) * 8 < mean), "{mean}: {loads:?}");
        assert!((0..100).all(|partition| few.server(partition) == partition % 50));
        let refused = many.merged(&costs, 49).unwrap_err();
        assert_eq!(refused, PlacementError::Partitions { partitions: 49, servers: 50 });
    }

    #[test]
    fn a_word_above_the_share_of_a_partition_is_alone() {
        let mut costs = vec![1; 100];
        costs[40] = 1000;
        let placement = place(Partitioner::SkewAware, &costs, 10, 5);
        let partition = placement.partition(40);
        assert_eq!(placement.words(partition).len(), 1, "{placement:?}");
        let loads = placement.loads(&costs);
        assert_eq!(loads.iter().filter(|&&load| load >= 1000).count(), 1);
    }

    #[test]
    fn rendezvous_moves_words_only_to_a_new_server() {
        let costs = vec![1; 10_000];
        let before = place(Partitioner::Rendezvous, &costs, 1000, 7);
        let after = place(Partitioner::Rendezvous, &costs, 1000, 8);
        let moved = (0..1000).filter(|&it| before.server(it) != after.server(it));
        let to: Vec<u32> = moved.map(|partition| after.server(partition)).collect();
        assert!(to.iter().all(|&server| server == 7));
        assert!((80..180).contains(&to.len()), "about an eighth: {}", to.len());
    }

    #[test]
    fn invalid_sizes_are_refused() {
        let refused = |costs: &[u64], partitions, servers| {
            Placement::new(Partitioner::SkewAware, costs, partitions, servers).unwrap_err()
        };
        assert_eq!(refused(&[1], 1, 0), PlacementError::Servers);
        assert_eq!(refused(&[1, 1], 3, 3), PlacementError::Words { words: 2, servers: 3 });
        let few = PlacementError::Partitions { partitions: 1, servers: 2 };
        assert_eq!(refused(&[1, 1], 1, 2), few);
        assert!(few.to_string().contains("1 partitions for 2 servers"));
    }

    #[test]
    fn the_estimated_cost_is_that_of_the_cheaper_route() {
        // 3 tokens: pulled to 3 shards with 3 topics each, or pushed with 90 entries each.
        assert_eq!(estimated_cost(3, 1000, 100, 90), 9);
        assert_eq!(estimated_cost(3, 1000, 100, 2), 6);
        assert_eq!(estimated_cost(1_000_000, 1000, 100, 90), 100_000);
        assert_eq!(
            estimated_cost(u64::MAX, u32::MAX, u32::MAX, u64::MAX),
            u64::from(u32::MAX).pow(2)
        );
    }
}
