//! Words that are too much for one server, and how their rows are cut.
//!
//! A word is hot if as far as it is pulled at first its row costs more than [`BYTES`] of a partition's bytes; if it is
//! always pulled and later costs more than [`ROWS`] of a partition's rows; or if more of it is pushed than a partition
//! has tokens that are. It would be a lump that nothing evens out: servers are loaded with bytes by rows that are
//! pulled, with bytes and time by tokens that are pushed, and who has a lump of the one and so less of the other is too
//! heavy or too light by time. Which words are hot, and in which partitions, does not depend on how many servers there
//! are; how many slices does.
//!
//! It costs bytes: a hot word is pulled where a shard has so few of its tokens that pushing them were cheaper, and
//! later when its row has become short but its tokens are few. On documents like PubMed's, generated, with K = 8,000,
//! 300 shards and 30 servers twelve words are hot, with a third of all tokens. All bytes of the second epoch are 7 %
//! more than with whole rows, and those of the heaviest server 10 % fewer: it has 1.01 times the mean, and 1.20
//! without. On reddit with 300 servers 110 are, with 16 % of the tokens; bytes are 6 % more, and the heaviest server
//! has 1.07 times the mean in place of 1.14: as many bytes as without, so that there only what servers hold and do is
//! more even.
//!
//! Slices have [`TOPICS`] topics at least, as each row of each takes a byte or two more than its part of the whole, and
//! each slice a request. HotWords words come to as few partitions as leave none with much more than [`TOKENS`] times the
//! tokens of a mean one, and as many as give a server a slice at least, were there as many servers as partitions.

use std::ops::Range;

use super::WordStats;
use super::costs::{Documents, Item, Load};

/// How much of a partition's bytes a word that is not hot has at most, as far as it is pulled.
const BYTES: f64 = 0.15;
/// The same of rows, as they are reckoned later.
const ROWS: f64 = 0.25;
/// Topics of a slice, at least.
const TOPICS: u32 = 256;
/// How many times as many tokens as a mean partition one of hot words has.
const TOKENS: f64 = 4.0;

/// HotWords words.
#[derive(Debug)]
pub(super) struct HotWords {
    /// Which, ascending.
    pub words: Vec<u32>,
    /// How many partitions they have.
    pub partitions: u32,
    /// Slices of each of these, at most.
    pub slices: u32,
}

impl HotWords {
    /// None.
    pub fn none() -> Self {
        Self { words: Vec::new(), partitions: 0, slices: 1 }
    }

    /// Of words with these costs, of which the others are to have so many partitions.
    pub fn new(
        items: &[Item],
        documents: &Documents,
        words: &WordStats,
        topics: u32,
        partitions: u32,
    ) -> Self {
        let slices = topics / TOPICS;
        // Partitions have numbers of 16 bits on the wire.
        if slices <= 1 || partitions <= 1 || partitions >= u16::MAX.into() {
            return Self::none();
        }
        let mut all = Load::default();
        items.iter().for_each(|item| all.add(item));
        let mean = all.divided(partitions).costs(documents);
        let is_hot = |word: &u32| items[*word as usize].is_too_much(&mean, BYTES, ROWS);
        let hot: Vec<u32> = (0..items.len() as u32).filter(is_hot).collect();
        let tokens: u64 = hot.iter().map(|&word| words.tokens()[word as usize]).sum();
        let share = words.tokens().iter().sum::<u64>() as f64 / f64::from(partitions);
        let by_tokens = (tokens as f64 / (TOKENS * share)).ceil() as u32;
        // A word at least is left to each of the others.
        if hot.len() + partitions as usize > items.len() {
            return Self::none();
        }
        let more = by_tokens.max(partitions.div_ceil(slices)).min(hot.len() as u32);
        if more == 0 || partitions + more > u16::MAX.into() {
            return Self::none();
        }
        Self { words: hot, partitions: more, slices }
    }

    /// Slices of each of its partitions on so many servers, at most one on each: as many as leave the server with most
    /// slices with the least, and more of those that are as good.
    pub fn slices_on(&self, servers: u32) -> u32 {
        let most = self.slices.min(servers).max(1);
        let heaviest = |slices: u32| {
            let all = u64::from(self.partitions) * u64::from(slices);
            all.div_ceil(servers.max(1).into())
        };
        let is_better = |slices: u32, than: u32| {
            heaviest(slices) * u64::from(than) <= heaviest(than) * u64::from(slices)
        };
        (1..=most).fold(1, |best, slices| if is_better(slices, best) { slices } else { best })
    }
}

/// Which partitions have hot words, and the numbers of all slices: those of partitions first, then what else those of
/// hot words have, one partition's behind the other's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SliceMap {
    partitions: u32,
    /// Of hot words, ascending.
    hot: Vec<u32>,
    /// Of each of these.
    slices: u32,
}

impl SliceMap {
    /// `more` partitions of hot words among `whole` others, so that any run of partitions has its share of them; as
    /// many slices of each as have numbers, and at most so many.
    pub fn new(whole: u32, more: u32, most: u32) -> Self {
        let partitions = whole + more;
        let place = |at: u32| {
            let middle = (2 * u64::from(at) + 1) * u64::from(partitions);
            (middle / (2 * u64::from(more))) as u32
        };
        let left = u32::from(u16::MAX).saturating_sub(partitions);
        let slices = most.min(1 + left / more.max(1)).max(1);
        Self { partitions, hot: (0..more).map(place).collect(), slices }
    }

    /// Slices of a partition of hot words.
    pub fn slices(&self) -> u32 {
        self.slices
    }

    pub fn num_slices(&self) -> u32 {
        self.partitions + self.hot.len() as u32 * (self.slices - 1)
    }

    /// The number of the partition that comes at this place among those of hot words.
    pub fn hot(&self, at: u32) -> u32 {
        self.hot[at as usize]
    }

    /// The same among the others.
    pub fn whole(&self, at: u32) -> u32 {
        // The numbers of as many of hot words are lower as it takes.
        let before =
            self.hot.iter().zip(0..).take_while(|&(&hot, lower)| hot - lower <= at).count();
        at + before as u32
    }

    pub fn is_hot(&self, partition: u32) -> bool {
        self.hot.binary_search(&partition).is_ok()
    }

    /// Slices of a partition, in the order of their topics.
    pub fn slices_of(&self, partition: u32) -> impl ExactSizeIterator<Item = u32> + use<> {
        let (more, second) = match self.hot.binary_search(&partition) {
            Ok(at) => (self.slices - 1, self.partitions + at as u32 * (self.slices - 1)),
            Err(_) => (0, 0),
        };
        (0..1 + more as usize).map(move |at| match at {
            0 => partition,
            at => second + at as u32 - 1,
        })
    }

    /// The partition of a slice, and which of K topics it has.
    pub fn slice(&self, slice: u32, topics: u32) -> (u32, Range<u32>) {
        let (partition, at) = match slice.checked_sub(self.partitions) {
            None if self.is_hot(slice) => (slice, 0),
            None => return (slice, 0..topics),
            Some(more) => {
                let each = self.slices - 1;
                (self.hot[(more / each) as usize], 1 + more % each)
            }
        };
        let start = |at: u32| (u64::from(topics) * u64::from(at) / u64::from(self.slices)) as u32;
        (partition, start(at)..start(at + 1))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn every_slice_is_of_one_partition_and_every_topic_of_one_slice(
            whole in 1..40u32,
            more in 0..9u32,
            most in 1..12u32,
            topics in 12..3000u32,
        ) {
            let cut = SliceMap::new(whole, more, most);
            let mut numbers: Vec<u32> = (0..whole).map(|at| cut.whole(at)).collect();
            numbers.extend((0..more).map(|at| cut.hot(at)));
            numbers.sort_unstable();
            prop_assert!(numbers.into_iter().eq(0..whole + more));
            let mut seen = vec![false; cut.num_slices() as usize];
            for partition in 0..whole + more {
                let slices: Vec<u32> = cut.slices_of(partition).collect();
                prop_assert_eq!(slices[0], partition);
                let expected = if cut.is_hot(partition) { most } else { 1 };
                prop_assert_eq!(slices.len() as u32, expected);
                let mut end = 0;
                for slice in slices {
                    prop_assert!(!std::mem::replace(&mut seen[slice as usize], true));
                    let (of, range) = cut.slice(slice, topics);
                    prop_assert_eq!((of, range.start), (partition, end));
                    prop_assert!(range.start < range.end);
                    end = range.end;
                }
                prop_assert_eq!(end, topics);
            }
            prop_assert!(seen.into_iter().all(|seen| seen));
            // Any half has half of them.
            let half = (whole + more) / 2;
            let first = (0..half).filter(|&partition| cut.is_hot(partition)).count() as u32;
            prop_assert!(first.abs_diff(more - first) <= 1, "{} of {}", first, more);
        }
    }

    #[test]
    fn servers_have_as_many_slices_as_each_other() {
        let slices = |partitions, slices, servers| {
            HotWords { words: Vec::new(), partitions, slices }.slices_on(servers)
        };
        assert_eq!([1, 4, 31, 100].map(|servers| slices(3, 31, servers)), [1, 4, 31, 31]);
        // Of 93 on 32, 310 on 300, 341 on 300.
        assert_eq!((slices(3, 31, 32), slices(10, 31, 300), slices(11, 31, 300)), (21, 30, 27));
        // Half of a partition either way: two quarters of eight, or one of four halves.
        assert_eq!(slices(2, 4, 5), 4);
        assert_eq!(HotWords::none().slices_on(8), 1);
    }

    #[test]
    fn slices_are_no_more_than_have_numbers() {
        let cut = SliceMap::new(65_000, 10, 31);
        assert_eq!((cut.slices(), cut.num_slices()), (31, 65_310));
        let cut = SliceMap::new(65_500, 10, 31);
        assert_eq!((cut.slices(), cut.num_slices()), (3, 65_530));
        let cut = SliceMap::new(65_530, 10, 31);
        assert_eq!((cut.slices(), cut.num_slices()), (1, 65_540));
    }
}
