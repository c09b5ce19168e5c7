//! Words dealt to partitions, and these to servers.

use super::costs::{self, Documents, Item};
use super::split_rows::{HotWords, SliceMap};
use super::{Placement, PlacementError, WordStats, Workload, balance, check, grouped};

impl Placement {
    /// [Deals](super::Partitioner::Balanced) words by what they cost, at first and later: in partitions, and these on
    /// servers. As many partitions as words if there are fewer of these, and some more where words are [hot](super).
    /// LDA* (section 4.2) has costs of the first epoch only, word by word.
    ///
    /// # Errors
    /// [`PlacementError`].
    ///
    /// ```
    /// use lda_dist::placement::{Workload, DocumentLengths, Placement, PlacementError, WordStats};
    ///
    /// // As frequent as each other; the last two in few documents, so that they will have few topics.
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
        let partitions = check(words.num_words(), partitions, servers)?;
        let documents = Documents::new(workload, words);
        let items = costs::of_words(words, workload, &documents, partitions);
        let hot = HotWords::new(&items, &documents, words, workload.topics, partitions);
        Ok(Self::balance_words(&items, words.tokens(), &documents, partitions, servers, &hot))
    }

    /// To partitions, and these to servers: what is in a partition does not depend on how many servers there are, nor
    /// does its number. HotWords words come to more than these. Each item has a weight, and any run of partitions its share
    /// of these.
    pub(super) fn balance_words(
        items: &[Item],
        weights: &[u64],
        documents: &Documents,
        partitions: u32,
        servers: u32,
        hot: &HotWords,
    ) -> Self {
        let none = Documents::default();
        let empty = |bins: u32| vec![Item::default(); bins as usize];
        let is_hot = |word: &u32| hot.words.binary_search(word).is_ok();
        let others: Vec<u32> = (0..items.len() as u32).filter(|word| !is_hot(word)).collect();
        let costs = |words: &[u32]| -> Vec<Item> {
            words.iter().map(|&word| items[word as usize]).collect()
        };
        let mut of_hot = costs(&hot.words);
        of_hot.iter_mut().for_each(|item| *item = item.all_pulled());
        let of_others = costs(&others);
        let hot_homes = balance::balance(&of_hot, &none, &empty(hot.partitions));
        let homes = balance::balance(&of_others, documents, &empty(partitions));
        let cut = SliceMap::new(partitions, hot.partitions, hot.slices_on(servers));
        let spread = |words: &[u32], homes: &[u32], bins: u32| {
            let weights = words.iter().map(|&word| weights[word as usize]);
            balance::spread(&balance::weights(weights, homes, bins)).into_iter()
        };
        let of_bin: Vec<u32> =
            spread(&others, &homes, partitions).map(|number| cut.whole(number)).collect();
        let of_hot_bin: Vec<u32> =
            spread(&hot.words, &hot_homes, hot.partitions).map(|number| cut.hot(number)).collect();
        let mut of_word = vec![0; items.len()];
        for (&word, &at) in hot.words.iter().zip(&hot_homes) {
            of_word[word as usize] = of_hot_bin[at as usize];
        }
        for (&word, &at) in others.iter().zip(&homes) {
            of_word[word as usize] = of_bin[at as usize];
        }
        // Slices take turns on servers, and what is not cut comes to what these have then.
        let mut of_slice = vec![0; cut.num_slices() as usize];
        let mut before = empty(servers);
        let mut turn = (0..servers).cycle();
        let sums = balance::sums(&of_hot, &hot_homes, &none, hot.partitions);
        for (&partition, sum) in of_hot_bin.iter().zip(sums) {
            let part = sum.divided(cut.slices());
            for (slice, server) in cut.slices_of(partition).zip(&mut turn) {
                of_slice[slice as usize] = server;
                before[server as usize].add(&part);
            }
        }
        let sums = balance::sums(&of_others, &homes, documents, partitions);
        for (&partition, server) in of_bin.iter().zip(balance::balance(&sums, &none, &before)) {
            of_slice[partition as usize] = server;
        }
        let (grouped, starts) = grouped(of_word, partitions + hot.partitions);
        Self { grouped: Some(grouped), starts, servers: of_slice, num_servers: servers, cut }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::super::DocumentLengths;
    use super::super::word_stats::with_a_hot_word;
    use super::*;

    fn even(documents: u64, words: &WordStats) -> DocumentLengths {
        DocumentLengths::even(documents, words.tokens().iter().sum())
    }

    /// Each token in a document of its own.
    fn zipf(words: u64, shift: u64) -> WordStats {
        let tokens: Vec<u64> = (1..=words).map(|rank| 1 + 2_000_000 / (rank + shift)).collect();
        WordStats::new(tokens.clone(), tokens).unwrap()
    }

    #[test]
    fn hot_words_are_on_all_servers_and_others_on_one() {
        let words = with_a_hot_word();
        let workload = Workload { topics: 8000, shards: 300, lengths: even(90_000, &words) };
        let place = |servers| Placement::balanced(&words, &workload, 30, servers).unwrap();
        let placement = place(30);
        let hot = placement.partition(0);
        assert!(placement.is_hot(hot) && !placement.is_hot(placement.partition(20_000)));
        let is_hot = |&word: &u32| placement.is_hot(placement.partition(word));
        let count = (0..=20_000).filter(is_hot).count();
        assert!((2..40).contains(&count), "{count}");
        assert!(placement.num_partitions() > 30);
        let servers: BTreeSet<u32> =
            placement.slices(hot).map(|slice| placement.server(slice)).collect();
        assert_eq!((servers.len(), placement.slices(hot).len()), (30, 30));
        let mut end = 0;
        for slice in placement.slices(hot) {
            let (partition, topics) = placement.slice(slice, 8000);
            assert_eq!((partition, topics.start), (hot, end));
            end = topics.end;
        }
        assert_eq!(end, 8000);
        // Which words are together does not depend on the servers.
        for servers in [1, 7] {
            let other = place(servers);
            assert!((0..=20_000).all(|word| other.partition(word) == placement.partition(word)));
            assert_eq!(other.slices(hot).len(), servers as usize);
            let held = (0..servers).flat_map(|server| other.slices_on(server, 8000));
            let mut numbers: Vec<u16> = held.map(|slice| slice.number).collect();
            numbers.sort_unstable();
            assert!(numbers.into_iter().eq(0..other.num_slices() as u16));
        }
        // Nor are there any where topics are few.
        let few = Workload { topics: 500, ..workload };
        let few = Placement::balanced(&words, &few, 30, 30).unwrap();
        assert_eq!((few.num_partitions(), few.num_slices()), (30, 30));
    }

    #[test]
    fn any_run_of_partitions_has_its_share_of_tokens() {
        let words = zipf(20_000, 2);
        let workload = Workload { topics: 8000, shards: 100, lengths: even(200_000, &words) };
        let placement = Placement::balanced(&words, &workload, 100, 100).unwrap();
        let all = words.tokens().iter().sum::<u64>() as f64;
        let count = placement.num_partitions() as u32;
        assert!(count > 100, "some are of hot words");
        let share = |from: u32, to: u32| {
            let run = (from..to).flat_map(|partition| placement.words(partition));
            let tokens: u64 = run.map(|word| words.tokens()[word as usize]).sum();
            tokens as f64 / all * f64::from(count) / f64::from(to - from)
        };
        for runs in [2, 3, 4] {
            let ends: Vec<u32> = (0..=runs).map(|run| run * count / runs).collect();
            let shares: Vec<f64> = ends.windows(2).map(|run| share(run[0], run[1])).collect();
            assert!(shares.iter().all(|share| (0.9..1.1).contains(share)), "{shares:.2?}");
        }
    }

    #[test]
    fn who_has_slices_has_less_of_the_others() {
        // The first would be pushed for nothing, and is pulled as it is hot.
        let mut items = [Item::of_bytes(10.0, 10.0); 7];
        items[0] = Item::of_bytes(0.0, 30.0);
        let hot = HotWords { words: vec![0], partitions: 1, slices: 2 };
        let placement =
            Placement::balance_words(&items, &[1; 7], &Documents::default(), 6, 3, &hot);
        let count = |server| placement.slices_on(server, 600).filter(|it| it.words != [0]).count();
        assert_eq!(count(2), 3, "15 on each of the first two, and 30 a server");
    }

    #[test]
    fn a_word_that_can_be_placed_is_not_hot() {
        // The first has 0.6 % of all tokens.
        let words = zipf(50_000, 20);
        let workload = Workload { topics: 1000, shards: 100, lengths: even(200_000, &words) };
        let placement = Placement::balanced(&words, &workload, 100, 100).unwrap();
        assert_eq!((placement.num_partitions(), placement.num_slices()), (100, 100));
    }
}
