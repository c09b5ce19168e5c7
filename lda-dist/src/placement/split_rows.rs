//! Hot words, which cost too much for one server, and the splitting of their rows by topic.
//!
//! A word is hot if the part of it that is pulled at first costs more than [`BYTES`] of a
//! partition's bytes; if it is always pulled and its rows later cost more than [`ROWS`] of a
//! partition's rows; or if more of its tokens are pushed than a partition has pushed tokens. No
//! assignment of words can balance it: pulled rows load a server with bytes, pushed tokens with
//! bytes and time. A server with one very expensive word of either kind gets less of the other
//! kind, and so takes too much or too little time. Which words are hot, and in which partitions,
//! does not depend on the number of servers; the number of slices does.
//!
//! Splitting costs bytes: a hot word is pulled even if a shard has so few of its tokens that
//! pushing them would be cheaper, and later, when its row is short and its tokens are few. On
//! generated documents like PubMed's with K = 8,000, 300 shards and 30 servers, twelve words are
//! hot, with a third of all tokens. All bytes of the second epoch are 7 % more than with whole
//! rows, and those of the heaviest server 10 % fewer: it has 1.01 times the mean instead of 1.20.
//! On reddit with 300 servers, 110 words are hot, with 16 % of the tokens; bytes are 6 % more, and
//! the heaviest server has 1.07 times the mean instead of 1.14: as many bytes as without, so that
//! splitting evens out only the servers' memory and work there.
//!
//! A slice has at least [`TOPICS`] topics, because each row of each slice takes a byte or two more
//! than its part of the whole row, and each slice needs a request. The number of partitions of hot
//! words is the least for which none has much more than [`TOKENS`] times the tokens of a mean one,
//! and for which every server gets a slice if there are as many servers as partitions.

use std::ops::Range;

use super::WordStats;
use super::costs::{DocumentCosts, Item, Load};

/// Largest share of a mean partition's bytes that the pulled part of a word may cost, unless the
/// word is hot.
const BYTES: f64 = 0.15;
/// The same share for the costs of rows later in the run.
const ROWS: f64 = 0.25;
/// Least number of topics of a slice.
const TOPICS: u32 = 256;
/// Number of tokens of a partition of hot words, relative to a mean partition.
const TOKENS: f64 = 4.0;

/// The hot words, and the partitions and slices that they get.
#[derive(Debug)]
pub(super) struct HotWords {
    /// Hot words, ascending.
    pub words: Vec<u32>,
    /// Number of partitions of hot words.
    pub partitions: u32,
    /// Largest number of slices of each of these.
    pub slices: u32,
}

impl HotWords {
    /// No hot words.
    pub fn none() -> Self {
        Self { words: Vec::new(), partitions: 0, slices: 1 }
    }

    /// Finds the hot words by their costs. `partitions` is the number of partitions for all others.
    pub fn new(
        items: &[Item],
        documents: &DocumentCosts,
        words: &WordStats,
        topics: u32,
        partitions: u32,
    ) -> Self {
        let slices = topics / TOPICS;
        // Partitions have 16-bit numbers in messages.
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
        // Every other partition needs at least one word.
        if hot.len() + partitions as usize > items.len() {
            return Self::none();
        }
        let more = by_tokens.max(partitions.div_ceil(slices)).min(hot.len() as u32);
        if more == 0 || partitions + more > u16::MAX.into() {
            return Self::none();
        }
        Self { words: hot, partitions: more, slices }
    }

    /// Number of slices of each partition of hot words on this many servers, at most one per
    /// server: the number for which the server with the most slices has the smallest part of the
    /// rows, and the largest such number.
    pub fn slices_on(&self, servers: u32) -> u32 {
        let most = self.slices.min(servers).max(1);
        let heaviest = |slices: u32| {
            let all = u64::from(self.partitions) * u64::from(slices);
            all.div_ceil(servers.max(1).into())
        };
        // A server with n slices of s per partition has n/s of a partition: cross-multiplied.
        let is_better = |slices: u32, than: u32| {
            heaviest(slices) * u64::from(than) <= heaviest(than) * u64::from(slices)
        };
        (1..=most).fold(1, |best, slices| if is_better(slices, best) { slices } else { best })
    }
}

/// Map between partitions and slices: which partitions are hot, and the numbers of all slices.
///
/// INVARIANT: slice p < `partitions` is the first slice of partition p. The other slices of hot
/// partitions follow, partition by partition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SliceMap {
    /// Number of partitions, hot ones included.
    partitions: u32,
    /// Partitions of hot words, ascending.
    hot: Vec<u32>,
    /// Number of slices of each hot partition.
    slices: u32,
}

impl SliceMap {
    /// Spreads `hot` partitions evenly among `whole` others, so that any run of partitions has its
    /// share of them. Each gets at most `max_slices` slices, fewer if 16-bit numbers run out.
    pub fn new(whole: u32, hot: u32, max_slices: u32) -> Self {
        let partitions = whole + hot;
        // Hot partition i of n is in the middle of the i-th of n equal runs.
        let number = |at: u32| {
            let middle = (2 * u64::from(at) + 1) * u64::from(partitions);
            (middle / (2 * u64::from(hot))) as u32
        };
        let left = u32::from(u16::MAX).saturating_sub(partitions);
        let slices = max_slices.min(1 + left / hot.max(1)).max(1);
        Self { partitions, hot: (0..hot).map(number).collect(), slices }
    }

    /// Number of slices of each hot partition.
    pub fn slices(&self) -> u32 {
        self.slices
    }

    /// Number of slices of all partitions.
    pub fn num_slices(&self) -> u32 {
        self.partitions + self.hot.len() as u32 * (self.slices - 1)
    }

    /// Number of the `at`-th hot partition.
    pub fn hot(&self, at: u32) -> u32 {
        self.hot[at as usize]
    }

    /// Number of the `at`-th partition that is not hot.
    pub fn whole(&self, at: u32) -> u32 {
        // `hot - lower` is how many others precede that hot partition: count those that leave at
        // most `at` before them.
        let before =
            self.hot.iter().zip(0..).take_while(|&(&hot, lower)| hot - lower <= at).count();
        at + before as u32
    }

    /// Whether a partition's rows are split.
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

    /// The partition of a slice, and its range of the K topics.
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
            hot in 0..9u32,
            max_slices in 1..12u32,
            topics in 12..3000u32,
        ) {
            let cut = SliceMap::new(whole, hot, max_slices);
            let mut numbers: Vec<u32> = (0..whole).map(|at| cut.whole(at)).collect();
            numbers.extend((0..hot).map(|at| cut.hot(at)));
            numbers.sort_unstable();
            prop_assert!(numbers.into_iter().eq(0..whole + hot));
            let mut seen = vec![false; cut.num_slices() as usize];
            for partition in 0..whole + hot {
                let slices: Vec<u32> = cut.slices_of(partition).collect();
                prop_assert_eq!(slices[0], partition);
                let expected = if cut.is_hot(partition) { max_slices } else { 1 };
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
            // Each half of the partitions has half of the hot ones.
            let half = (whole + hot) / 2;
            let first = (0..half).filter(|&partition| cut.is_hot(partition)).count() as u32;
            prop_assert!(first.abs_diff(hot - first) <= 1, "{} of {}", first, hot);
        }
    }

    #[test]
    fn the_number_of_slices_balances_servers() {
        let slices = |partitions, slices, servers| {
            HotWords { words: Vec::new(), partitions, slices }.slices_on(servers)
        };
        assert_eq!([1, 4, 31, 100].map(|servers| slices(3, 31, servers)), [1, 4, 31, 31]);
        // With 31 slices each there would be 93 on 32 servers, 310 on 300 and 341 on 300.
        assert_eq!((slices(3, 31, 32), slices(10, 31, 300), slices(11, 31, 300)), (21, 30, 27));
        // Half of a partition on the heaviest server either way: two of eight quarters, or one of
        // four halves.
        assert_eq!(slices(2, 4, 5), 4);
        assert_eq!(HotWords::none().slices_on(8), 1);
    }

    #[test]
    fn slices_are_limited_by_their_16_bit_numbers() {
        let cut = SliceMap::new(65_000, 10, 31);
        assert_eq!((cut.slices(), cut.num_slices()), (31, 65_310));
        let cut = SliceMap::new(65_500, 10, 31);
        assert_eq!((cut.slices(), cut.num_slices()), (3, 65_530));
        let cut = SliceMap::new(65_530, 10, 31);
        assert_eq!((cut.slices(), cut.num_slices()), (1, 65_540));
    }
}
