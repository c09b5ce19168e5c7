//! Placement of balanced words: words in partitions, partitions on servers.

use super::costs::{DocumentCosts, Item};
use super::split_rows::{HotWords, SliceMap};
use super::{Placement, balance, group_by_partition};

/// Places words in partitions, and these on servers. The words and the number of a partition do
/// not depend on the number of servers. Hot words get partitions in addition to `partitions`.
/// Any run of partitions has its share of the words' weights.
pub(super) fn place_balanced(
    words: &CostedWords<'_>,
    partitions: u32,
    servers: u32,
    hot: &HotWords,
) -> Placement {
    let CostedWords { items, weights, documents } = *words;
    let is_hot = |word: &u32| hot.words.binary_search(word).is_ok();
    let others: Vec<u32> = (0..items.len() as u32).filter(|word| !is_hot(word)).collect();
    let items_of =
        |words: &[u32]| -> Vec<Item> { words.iter().map(|&word| items[word as usize]).collect() };
    let hot_items: Vec<Item> =
        items_of(&hot.words).into_iter().map(|item| item.all_pulled()).collect();
    let other_items = items_of(&others);
    let hot_bins = balance::balance(&hot_items, &NO_DOCUMENTS, &empty(hot.partitions));
    let bins = balance::balance(&other_items, documents, &empty(partitions));
    let slices = SliceMap::new(partitions, hot.partitions, hot.slices_on(servers));
    let numbers = |words: &[u32], bins: &[u32], count: u32| {
        let weights = words.iter().map(|&word| weights[word as usize]);
        balance::number_evenly(&balance::bin_weights(weights, bins, count)).into_iter()
    };
    // Partition of each bin: hot and other bins are numbered evenly each, then interleaved.
    let partition_of: Vec<u32> =
        numbers(&others, &bins, partitions).map(|number| slices.whole(number)).collect();
    let hot_partition_of: Vec<u32> =
        numbers(&hot.words, &hot_bins, hot.partitions).map(|it| slices.hot(it)).collect();
    let mut of_word = vec![0; items.len()];
    for (&word, &bin) in hot.words.iter().zip(&hot_bins) {
        of_word[word as usize] = hot_partition_of[bin as usize];
    }
    for (&word, &bin) in others.iter().zip(&bins) {
        of_word[word as usize] = partition_of[bin as usize];
    }
    let hot_sums = balance::bin_items(&hot_items, &hot_bins, &NO_DOCUMENTS, hot.partitions);
    let sums = balance::bin_items(&other_items, &bins, documents, partitions);
    let of_slice = place_slices(
        &slices,
        servers,
        hot_partition_of.iter().copied().zip(hot_sums),
        &partition_of,
        &sums,
    );
    let (grouped, starts) = group_by_partition(of_word, partitions + hot.partitions);
    Placement {
        grouped: Some(grouped),
        starts,
        servers: of_slice,
        num_servers: servers,
        cut: slices,
    }
}

/// Words to place.
#[derive(Clone, Copy, Debug)]
pub(super) struct CostedWords<'a> {
    /// Costs of each word.
    pub items: &'a [Item],
    /// Weight of each word: any run of partitions has its share of these.
    pub weights: &'a [u64],
    /// Costs of the documents that are pushed.
    pub documents: &'a DocumentCosts,
}

/// Costs of documents that cost nothing, for items that include their documents.
const NO_DOCUMENTS: DocumentCosts = DocumentCosts::NONE;

fn empty(bins: u32) -> Vec<Item> {
    vec![Item::default(); bins as usize]
}

/// Server of each slice. The slices of hot partitions are placed on the servers in turn; the other
/// partitions are then balanced on top of these. `hot` has the number and the content of each hot
/// partition; `others` and `sums` those of the other partitions.
fn place_slices(
    slices: &SliceMap,
    servers: u32,
    hot: impl Iterator<Item = (u32, Item)>,
    others: &[u32],
    sums: &[Item],
) -> Vec<u32> {
    let mut of_slice = vec![0; slices.num_slices() as usize];
    let mut before = empty(servers);
    let mut turn = (0..servers).cycle();
    for (partition, sum) in hot {
        let part = sum.divided(slices.slices());
        for (slice, server) in slices.slices_of(partition).zip(&mut turn) {
            of_slice[slice as usize] = server;
            before[server as usize].add(&part);
        }
    }
    for (&partition, server) in others.iter().zip(balance::balance(sums, &NO_DOCUMENTS, &before)) {
        of_slice[partition as usize] = server;
    }
    of_slice
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::super::word_stats::with_a_hot_word;
    use super::super::{DocumentLengths, WordStats, Workload};
    use super::*;

    fn even(documents: u64, words: &WordStats) -> DocumentLengths {
        DocumentLengths::even(documents, words.tokens().iter().sum())
    }

    /// Zipf frequencies; each token is in a document of its own.
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
        // The words of a partition do not depend on the number of servers.
        for servers in [1, 7] {
            let other = place(servers);
            assert!((0..=20_000).all(|word| other.partition(word) == placement.partition(word)));
            assert_eq!(other.slices(hot).len(), servers as usize);
            let held = (0..servers).flat_map(|server| other.slices_on(server, 8000));
            let mut numbers: Vec<u16> = held.map(|slice| slice.number).collect();
            numbers.sort_unstable();
            assert!(numbers.into_iter().eq(0..other.num_slices() as u16));
        }
        // With few topics no row is split.
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
        assert!(count > 100, "some partitions are of hot words");
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
    fn servers_with_slices_get_fewer_other_words() {
        // Word 0 costs nothing if it is pushed, but as it is hot it is pulled.
        let mut items = [Item::of_bytes(10.0, 10.0); 7];
        items[0] = Item::of_bytes(0.0, 30.0);
        let hot = HotWords { words: vec![0], partitions: 1, slices: 2 };
        let placement = place_balanced(
            &CostedWords { items: &items, weights: &[1; 7], documents: &NO_DOCUMENTS },
            6,
            3,
            &hot,
        );
        let count = |server| placement.slices_on(server, 600).filter(|it| it.words != [0]).count();
        assert_eq!(count(2), 3, "15 on each of servers 0 and 1, and 30 per server");
    }

    #[test]
    fn a_word_that_can_be_placed_is_not_hot() {
        // Word 0 has 0.6 % of all tokens.
        let words = zipf(50_000, 20);
        let workload = Workload { topics: 1000, shards: 100, lengths: even(200_000, &words) };
        let placement = Placement::balanced(&words, &workload, 100, 100).unwrap();
        assert_eq!((placement.num_partitions(), placement.num_slices()), (100, 100));
    }
}
