//! Which server has which words.
//!
//! Words are cut into **partitions**, which are what is pulled, sampled and brought up to date at a time, and each
//! partition lies on one server, but for those of hot words (below). LDA* (section 4.2) takes two steps, for rows of a
//! few frequent words cost more than those of all others: partitions are ranges of words of about equal cost, so of
//! unequal width, and each goes to the server that has least so far. Many ranges balance servers, and many partitions
//! are dear: a document is pushed once a partition. So ranges of one server can be [joined](Placement::merged) to fewer
//! partitions.
//!
//! But what costs as much at first does not later, when rows have become short, and those of some words much shorter
//! than others'. So words are [dealt](Partitioner::Balanced) one by one unless something else is asked for, by costs of
//! several times: on reddit with K = 1,000, 100 shards and 100 servers the heaviest server has at most 6.5 % more than
//! the mean by bytes in any of 30 epochs, where 3,000 ranges come to 15.5 %; with K = 8,000 and 300 servers, of 200
//! words each, 8.4 %. Hashing and equal ranges are here to be compared with.
//!
//! A word whose row alone is a good part of what a server should have is **hot** where words are dealt: no place that
//! it could be given is even, as a pulled row costs its server bytes and hardly any time. So the hot words have
//! partitions of their own, whose rows are cut by topic in **slices** that lie on different servers. Who samples such a
//! partition pulls from all of these, and nothing is pushed to it. All other partitions have one slice, of all topics,
//! which has the partition's number; and so has the first of several.
//!
//! A shard has a run of partitions in a round, and rounds last as long as the heaviest run. So partitions of dealt words
//! have numbers of which any run has about its share of the tokens, hot words and others.
//!
//! | by | a partition is | servers differ by | when one server more comes |
//! |---|---|---|---|
//! | [`Partitioner::Balanced`] | some frequent, some less frequent and some rare words | a few words' rows | all is placed anew |
//! | [`Partitioner::SkewAware`] | a range of words of about equal cost | one partition's cost | all is placed anew |
//! | [`Partitioner::Range`] | a range of equally many words | what frequent words bring together | all is placed anew |
//! | [`Partitioner::Hash`] | words of all kinds | the frequent words that meet | all is placed anew |
//! | [`Partitioner::Rendezvous`] | words of all kinds | the frequent words that meet | only what it gets moves (Yahoo!LDA, section 3.2) |
//!
//! ```
//! use lda_dist::placement::{Partitioner, Placement, PlacementError};
//!
//! // One word costs as much as all others together.
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

use costs::{Documents, Item};
use hashed::{first_of, mix};
pub use lengths::DocumentLengths;
use ranges::{costliest_first, equal_costs, least_first, loads_of, total};
use split_rows::{HotWords, SliceMap};
pub use word_stats::WordStats;

/// How words find their servers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Partitioner {
    /// One by one, so that each server has its share of frequent, of less frequent and of rare words, however their
    /// rows come to shrink.
    Balanced,
    /// Ranges of about equal cost, each to the server that has least.
    SkewAware,
    /// Ranges of equally many words, in turn.
    Range,
    /// Words and partitions by a hash.
    Hash,
    /// Words by a hash; each partition to the server that is first for it.
    Rendezvous,
}

/// What decides, beside [how often words occur](WordStats), what workers will ask of servers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Workload {
    /// Topics K.
    pub topics: u32,
    /// Shards of the documents, P.
    pub shards: u32,
    /// Documents, in all shards.
    pub lengths: DocumentLengths,
}

/// What a word costs before anything is known of its topics (LDA*, section 4.2): the lesser of pulling its row to every
/// data partition that has it, and of pushing a row of the document with each token.
///
/// `tokens` are the word's, `topics` K, `data_partitions` P, and `document` the mean of documents' tokens.
pub fn estimated_cost(tokens: u64, topics: u32, data_partitions: u32, document: u64) -> u64 {
    let pulled = tokens.min(u64::from(topics)).saturating_mul(tokens.min(data_partitions.into()));
    pulled.min(tokens.saturating_mul(document))
}

/// Why words cannot be placed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum PlacementError {
    /// Too few words.
    #[error("{words} words for {servers} servers: give at most a server a word")]
    Words {
        /// Words.
        words: usize,
        /// Servers.
        servers: u32,
    },
    /// Too few partitions.
    #[error(
        "{partitions} partitions for {servers} servers: give each one at least, some to balance them"
    )]
    Partitions {
        /// Partitions.
        partitions: u32,
        /// Servers.
        servers: u32,
    },
    /// Nobody to have the words.
    #[error("no servers: give one at least")]
    Servers,
    /// A word that cannot occur so often, or in so many documents.
    #[error("word {word} has tokens and no documents, or more documents than tokens, or too many")]
    WordStats {
        /// Which.
        word: u32,
    },
}

/// Where every word is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Placement {
    /// Words by partition, ascending in each; none where partitions are ranges, as these are in order.
    grouped: Option<Grouped>,
    /// Where each partition begins, and the number of words.
    starts: Vec<u32>,
    /// By slice.
    servers: Vec<u32>,
    num_servers: u32,
    /// Partitions of more than one slice.
    cut: SliceMap,
}

/// What a server has of a partition. LDA* has whole rows only: cutting them by topic is ours.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Slice {
    /// Its number, by which servers are asked for it.
    pub number: u16,
    /// The partition's words, ascending.
    pub words: Vec<u32>,
    /// The topics of their rows that lie here; they count from 0 here.
    pub topics: Range<u32>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Grouped {
    words: Vec<u32>,
    /// By word.
    partitions: Vec<u32>,
}

impl Placement {
    /// Places words of these costs. Where there are more partitions than words there are as many as words; ranges of
    /// equal cost may be fewer, as a word is not divided.
    ///
    /// # Errors
    /// [`PlacementError`].
    pub fn new(
        by: Partitioner,
        costs: &[u64],
        partitions: u32,
        servers: u32,
    ) -> Result<Self, PlacementError> {
        let partitions = check(costs.len(), partitions, servers)?;
        let words = costs.len();
        let in_turn =
            |starts: &[u32]| (0..starts.len() as u32 - 1).map(|it| it % servers).collect();
        let (grouped, starts, homes) = match by {
            Partitioner::Balanced => {
                let items: Vec<Item> = costs.iter().map(|&cost| Item::fixed(cost as f64)).collect();
                let none = Documents::default();
                return Ok(Self::balance_words(
                    &items,
                    costs,
                    &none,
                    partitions,
                    servers,
                    &HotWords::none(),
                ));
            }
            Partitioner::SkewAware => {
                let starts = equal_costs(costs, partitions, servers);
                let homes = least_first(&loads_of(costs, &starts), servers);
                (None, starts, homes)
            }
            Partitioner::Range => {
                let start = |at| (u64::from(at) * words as u64 / u64::from(partitions)) as u32;
                let starts: Vec<u32> = (0..=partitions).map(start).collect();
                let homes = in_turn(&starts);
                (None, starts, homes)
            }
            Partitioner::Hash | Partitioner::Rendezvous => {
                let (grouped, starts) = group(words as u32, partitions);
                let homes = match by {
                    Partitioner::Hash => in_turn(&starts),
                    _ => (0..partitions).map(|partition| first_of(partition, servers)).collect(),
                };
                (Some(grouped), starts, homes)
            }
        };
        let cut = SliceMap::new(homes.len() as u32, 0, 1);
        Ok(Self { grouped, starts, servers: homes, num_servers: servers, cut })
    }

    /// The same words on the same servers in fewer partitions, of about equal cost on each server: what lay in one
    /// partition does. All is as it was if there are not more than these.
    ///
    /// # Errors
    /// [`PlacementError::Partitions`], where some server would have none.
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
        assert_eq!(costs.len(), self.num_words(), "a cost a word");
        let servers = self.num_servers;
        if partitions < servers {
            return Err(PlacementError::Partitions { partitions, servers });
        }
        if self.num_partitions() <= partitions as usize {
            return Ok(self);
        }
        let cost_of = |before: u32| total(self.words(before).map(|word| costs[word as usize]));
        let loads: Vec<u64> = (0..self.num_partitions() as u32).map(cost_of).collect();
        // Of each server its partitions, by what they have: in turn one for each server, so that ranges of partitions
        // have some of all.
        let free = |server: u32| {
            let own = (server..partitions).step_by(servers as usize);
            own.map(|partition| (0, 0, partition)).collect()
        };
        let mut free: Vec<BTreeSet<(u64, u32, u32)>> = (0..servers).map(free).collect();
        let mut joined = vec![0; loads.len()];
        for at in costliest_first(&loads) {
            let of_server = &mut free[self.servers[at] as usize];
            let (load, count, partition) = of_server.pop_first().expect("each has one at least");
            joined[at] = partition;
            of_server.insert((load.saturating_add(loads[at]), count + 1, partition));
        }
        let words = 0..self.num_words() as u32;
        let of_word = words.map(|word| joined[self.partition(word) as usize]).collect();
        let (grouped, starts) = grouped(of_word, partitions);
        let homes: Vec<u32> = (0..partitions).map(|partition| partition % servers).collect();
        let cut = SliceMap::new(partitions, 0, 1);
        Ok(Self { grouped: Some(grouped), starts, servers: homes, num_servers: servers, cut })
    }

    /// Words V.
    pub fn num_words(&self) -> usize {
        self.starts.last().map_or(0, |&words| words as usize)
    }

    /// Partitions.
    pub fn num_partitions(&self) -> usize {
        self.starts.len() - 1
    }

    /// Slices of all partitions.
    pub fn num_slices(&self) -> usize {
        self.servers.len()
    }

    /// Whether a partition's words are [hot](self): their rows are pulled, whatever that costs.
    pub fn is_hot(&self, partition: u32) -> bool {
        self.cut.is_hot(partition)
    }

    /// Slices of a partition, by topics: the first has its number, and may be the only one.
    pub fn slices(&self, partition: u32) -> impl ExactSizeIterator<Item = u32> + use<> {
        self.cut.slices_of(partition)
    }

    /// The partition that a slice is of, and which of K topics it has.
    ///
    /// # Panics
    /// If there is no such slice.
    pub fn slice(&self, slice: u32, topics: u32) -> (u32, Range<u32>) {
        assert!((slice as usize) < self.num_slices(), "no slice {slice}");
        self.cut.slice(slice, topics)
    }

    /// Slices that a server has, with rows of K topics.
    ///
    /// # Panics
    /// If numbers of slices have more than 16 bits.
    pub fn slices_on(&self, server: u32, topics: u32) -> impl Iterator<Item = Slice> + '_ {
        let all = 0..self.num_slices() as u32;
        all.filter(move |&slice| self.server(slice) == server).map(move |slice| {
            let (partition, topics) = self.slice(slice, topics);
            let number = u16::try_from(slice).expect("few enough for the wire");
            Slice { number, words: self.words(partition).collect(), topics }
        })
    }

    /// Servers.
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

    /// The server of a slice: of a partition that is not cut, the partition's.
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

    /// Where a word is among those of its partition.
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

    /// What each server has of these costs, by word, up to the largest number; slices of a partition have about the
    /// same.
    ///
    /// # Panics
    /// If there are not as many as words.
    pub fn loads(&self, costs: &[u64]) -> Vec<u64> {
        assert_eq!(costs.len(), self.num_words(), "a cost a word");
        let mut loads = vec![0; self.num_servers as usize];
        for partition in 0..self.num_partitions() as u32 {
            let cost = total(self.words(partition).map(|word| costs[word as usize]));
            let slices = self.slices(partition);
            let count = slices.len() as u64;
            for (at, slice) in (0..).zip(slices) {
                let load: &mut u64 = &mut loads[self.server(slice) as usize];
                *load = load.saturating_add(cost.saturating_add(at) / count);
            }
        }
        loads
    }
}

/// As many partitions as there can be of so many words.
fn check(words: usize, partitions: u32, servers: u32) -> Result<u32, PlacementError> {
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

/// Words by the hash of each.
fn group(words: u32, partitions: u32) -> (Grouped, Vec<u32>) {
    let hash = |word: u32| (mix(u64::from(word)) % u64::from(partitions)) as u32;
    grouped((0..words).map(hash).collect(), partitions)
}

/// Words by the partition of each.
fn grouped(of_word: Vec<u32>, partitions: u32) -> (Grouped, Vec<u32>) {
    let mut starts = vec![0u32; partitions as usize + 1];
    of_word.iter().for_each(|&partition| starts[partition as usize + 1] += 1);
    for at in 0..partitions as usize {
        starts[at + 1] += starts[at];
    }
    let mut next = starts.clone();
    let mut grouped = vec![0; of_word.len()];
    for (word, &partition) in (0..).zip(&of_word) {
        let place = &mut next[partition as usize];
        grouped[*place as usize] = word;
        *place += 1;
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
        fn every_word_has_one_place(
            costs in prop::collection::vec(0..1000u64, 1..200),
            servers in 1..20u32,
            more in 0..300u32,
            joined in prop::option::of(0..40u32),
        ) {
            prop_assume!(costs.len() >= servers as usize);
            for by in ALL {
                let mut placement = place(by, &costs, servers + more, servers);
                if let Some(joined) = joined {
                    let before = placement.clone();
                    placement = placement.merged(&costs, servers + joined).unwrap();
                    let most = before.num_partitions().min((servers + joined) as usize);
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

    /// Frequencies as Zipf has them: of 50,000 words the first costs a ninth of what a server should.
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
    fn joined_partitions_are_balanced_as_servers_are() {
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
    fn a_word_that_costs_more_than_a_share_is_alone() {
        let mut costs = vec![1; 100];
        costs[40] = 1000;
        let placement = place(Partitioner::SkewAware, &costs, 10, 5);
        let partition = placement.partition(40);
        assert_eq!(placement.words(partition).len(), 1, "{placement:?}");
        let loads = placement.loads(&costs);
        assert_eq!(loads.iter().filter(|&&load| load >= 1000).count(), 1);
    }

    #[test]
    fn a_new_server_gets_words_and_nothing_else_moves() {
        let costs = vec![1; 10_000];
        let before = place(Partitioner::Rendezvous, &costs, 1000, 7);
        let after = place(Partitioner::Rendezvous, &costs, 1000, 8);
        let moved = (0..1000).filter(|&it| before.server(it) != after.server(it));
        let to: Vec<u32> = moved.map(|partition| after.server(partition)).collect();
        assert!(to.iter().all(|&server| server == 7));
        assert!((80..180).contains(&to.len()), "about an eighth: {}", to.len());
    }

    #[test]
    fn what_cannot_be_placed_is_refused() {
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
    fn a_cost_is_that_of_the_cheaper_way() {
        // 3 tokens: pulled to 3 partitions with 3 topics, or pushed with 90 each.
        assert_eq!(estimated_cost(3, 1000, 100, 90), 9);
        assert_eq!(estimated_cost(3, 1000, 100, 2), 6);
        assert_eq!(estimated_cost(1_000_000, 1000, 100, 90), 100_000);
        assert_eq!(
            estimated_cost(u64::MAX, u32::MAX, u32::MAX, u64::MAX),
            u64::from(u32::MAX).pow(2)
        );
    }
}
