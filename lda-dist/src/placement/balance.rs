//! Words dealt one by one, so that partitions and servers are loaded evenly from the first epoch to the last.
//!
//! Ranges of equal cost by one estimate are even in the epochs that it is right for, and in no others. So words have
//! [several costs](super::costs), and a partition is to have its share of each of them. What costs at other times are
//! about sums of these, and even too.
//!
//! Words are dealt costliest first. Each goes where it adds least to the sum of the sixteenth powers of all loads, each
//! beside its mean: where the load is least, and by far the most by the kind that is furthest above it, for a server is
//! waited for in the epoch in which it has most. When those are dealt that matter one by one, each of the others goes
//! where the sum is least at all. A partition with a word that costs as much as a share gets less of all others: what
//! is [too much](super::split_rows) has been taken out before.
//!
//! So they come to partitions, and these the same way to servers, lest what is in a partition hangs on how many servers
//! there are. It takes O(V log V + 64 P²) time for P partitions.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use super::costs::{Costs, Documents, Item, KINDS, Load};

/// Words that are dealt one by one, a bin.
const ONE_BY_ONE: usize = 64;

/// The bin of each item, all with about the same of each kind of cost, if they have these `before`. Of those that are
/// as good the one that has fewer items, or a lower number.
pub(super) fn balance(items: &[Item], documents: &Documents, before: &[Item]) -> Vec<u32> {
    let mut homes = vec![0; items.len()];
    let bins = before.len() as u32;
    if bins <= 1 {
        return homes;
    }
    let mut all = Load::default();
    before.iter().chain(items).for_each(|item| all.add(item));
    let mean = all.divided(bins);
    // Kinds count alike.
    let scale = mean.costs(documents).map(|it| if it > 0.0 { 1.0 / it } else { 0.0 });
    let document = mean.document(documents);
    let share = |number: u32| times(&items[number as usize].costs(&document), &scale);
    let most = |number: u32| share(number).into_iter().fold(0.0, f64::max);
    let mut order: Vec<(f64, u32)> = (0..items.len() as u32).map(|it| (most(it), it)).collect();
    order.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
    let mut filled = vec![Bin::default(); bins as usize];
    for (bin, item) in filled.iter_mut().zip(before) {
        bin.add(item, documents, &scale);
    }
    let (first, rest) = order.split_at(order.len().min(ONE_BY_ONE * bins as usize));
    for &(_, number) in first {
        let share = share(number);
        let fit = |bin: &Bin| (bin.rise(&share), bin.load.count);
        let better = |a: &(f64, u32), b: &(f64, u32)| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1));
        let best = filled.iter().map(fit).zip(0u32..).min_by(|(a, _), (b, _)| better(a, b));
        let (_, bin) = best.expect("there are bins");
        filled[bin as usize].add(&items[number as usize], documents, &scale);
        homes[number as usize] = bin;
    }
    // None is negative, so that they are in the order of their bits.
    let height = |bin: &Bin| (bin.rise(&bin.costs).to_bits(), bin.load.count);
    let mut free: BTreeSet<((u64, u32), u32)> = filled.iter().map(height).zip(0..).collect();
    for &(_, number) in rest {
        let (_, bin) = free.pop_first().expect("there are bins");
        let into = &mut filled[bin as usize];
        into.add(&items[number as usize], documents, &scale);
        homes[number as usize] = bin;
        free.insert((height(into), bin));
    }
    homes
}

/// What each bin has, as an item.
pub(super) fn sums(items: &[Item], homes: &[u32], documents: &Documents, bins: u32) -> Vec<Item> {
    let mut loads = vec![Load::default(); bins as usize];
    items.iter().zip(homes).for_each(|(item, &bin)| loads[bin as usize].add(item));
    loads.iter().map(|load| load.whole(documents)).collect()
}

/// The number of each bin, such that any run of numbers has its share of what all weigh.
///
/// Bins go heaviest first to the lower and the upper half of the numbers, as 0, 1, 1, 0: what one half has more of one
/// pair it has less of the next. Those of a half go to its halves the same way, in the order in which they came there.
/// Where one ends up is the Gray code of its rank, read backwards. However many of n bins are heavy, a run has at most
/// 1 + ½ log₂ n of them more or less than its share (counted for all n up to 1,000, and for 3,000).
pub(super) fn spread(weights: &[u64]) -> Vec<u32> {
    let mut ranked: Vec<u32> = (0..weights.len() as u32).collect();
    ranked.sort_by_key(|&bin| (Reverse(weights[bin as usize]), bin));
    let backwards = |rank: u32| (rank ^ (rank >> 1)).reverse_bits();
    let mut ordered: Vec<(u32, u32)> = (0..).map(backwards).zip(ranked).collect();
    ordered.sort_unstable();
    let mut numbers = vec![0; weights.len()];
    for (number, (_, bin)) in (0..).zip(ordered) {
        numbers[bin as usize] = number;
    }
    numbers
}

/// What each bin weighs.
pub(super) fn weights(items: impl Iterator<Item = u64>, homes: &[u32], bins: u32) -> Vec<u64> {
    let mut weights = vec![0; bins as usize];
    for (item, &bin) in items.zip(homes) {
        let weight: &mut u64 = &mut weights[bin as usize];
        // Costs may be anything.
        *weight = weight.saturating_add(item);
    }
    weights
}

fn times(costs: &Costs, scale: &Costs) -> Costs {
    std::array::from_fn(|kind| costs[kind] * scale[kind])
}

/// What is dealt to.
#[derive(Clone, Copy, Debug, Default)]
struct Bin {
    load: Load,
    /// Of each kind, beside the mean.
    costs: Costs,
}

impl Bin {
    fn add(&mut self, item: &Item, documents: &Documents, scale: &Costs) {
        self.load.add(item);
        self.costs = times(&self.load.costs(documents), scale);
    }

    /// How fast the sum of sixteenth powers rises with these shares, but for the factor.
    fn rise(&self, shares: &Costs) -> f64 {
        let of_kind = |kind: usize| {
            let cost = self.costs[kind];
            let cube = cost * cost * cost;
            let sixth = cube * cube;
            sixth * sixth * cube * shares[kind]
        };
        (0..KINDS).map(of_kind).sum()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::costs::of_words;
    use super::super::word_stats::with_a_hot_word;
    use super::super::{DocumentLengths, WordStats, Workload};
    use super::*;

    /// To empty bins.
    fn balanced(items: &[Item], documents: &Documents, bins: u32) -> Vec<u32> {
        balance(items, documents, &vec![Item::default(); bins as usize])
    }

    /// Items of words, and their documents.
    fn items(words: &WordStats, topics: u32, shards: u32, bins: u32) -> (Vec<Item>, Documents) {
        let tokens = words.tokens().iter().sum::<u64>();
        let workload =
            Workload { topics, shards, lengths: DocumentLengths::even(tokens / 80, tokens) };
        let documents = Documents::new(&workload, words);
        (of_words(words, &workload, &documents, bins), documents)
    }

    /// The heaviest bin over the mean.
    fn skew(homes: &[u32], bins: u32, cost: impl Fn(usize) -> f64) -> f64 {
        let mut loads = vec![0.0; bins as usize];
        homes.iter().enumerate().for_each(|(word, &bin)| loads[bin as usize] += cost(word));
        heaviest(&loads)
    }

    fn heaviest(loads: &[f64]) -> f64 {
        let all = loads.iter().sum::<f64>().max(f64::MIN_POSITIVE);
        loads.iter().copied().fold(0.0, f64::max) * loads.len() as f64 / all
    }

    /// By kind.
    fn skews(items: &[Item], homes: &[u32], documents: &Documents, bins: u32) -> Costs {
        let sums = sums(items, homes, documents, bins);
        let of_bins: Vec<Costs> = sums.iter().map(|it| it.costs(&[0.0; 2])).collect();
        std::array::from_fn(|kind| {
            heaviest(&of_bins.iter().map(|costs| costs[kind]).collect::<Vec<_>>())
        })
    }

    /// Frequencies as Zipf has them, words more or less crowded.
    fn zipf(words: u64) -> WordStats {
        let tokens = (1..=words).map(|rank| 1 + 2_000_000 / (rank + 20));
        let (tokens, documents) =
            tokens.zip(0u64..).map(|(n, at)| (n, n.div_ceil(1 + at * 7 % 5))).unzip();
        WordStats::new(tokens, documents).unwrap()
    }

    #[test]
    fn all_kinds_are_even() {
        let words = zipf(50_000);
        let (items, documents) = items(&words, 1000, 100, 50);
        let homes = balanced(&items, &documents, 50);
        let even = skews(&items, &homes, &documents, 50);
        let [bytes, later, sampled, rows @ ..] = even;
        assert!(rows.iter().all(|&skew| skew < 1.06), "{even:?}");
        assert!(bytes < 1.06 && later < 1.06 && sampled < 1.12, "{even:?}");
        // What is none of them, but between.
        let n = |word: usize| words.tokens()[word] as f64;
        for (exponent, most) in [(0.1, 1.05), (0.3, 1.05), (0.6, 1.06), (0.75, 1.1)] {
            let skew = skew(&homes, 50, |word| n(word).min(100.0) * n(word).powf(exponent));
            assert!(skew < most, "{exponent}: {skew}");
        }
        // And where they have many partitions.
        let (items, documents) = self::items(&words, 1000, 100, 200);
        let parts = balanced(&items, &documents, 200);
        let servers = balanced(&sums(&items, &parts, &documents, 200), &Documents::default(), 50);
        let homes: Vec<u32> = parts.iter().map(|&part| servers[part as usize]).collect();
        // Less where a word has more than a partition's share.
        let even = skews(&items, &homes, &documents, 50);
        assert!(even.iter().all(|&skew| skew < 1.25), "{even:?}");
    }

    #[test]
    fn a_word_of_more_than_a_share_is_nearly_alone() {
        let words = with_a_hot_word();
        let (items, documents) = items(&words, 8000, 300, 30);
        let homes = balanced(&items, &documents, 30);
        let tokens = |bin: u32| {
            let others = homes.iter().zip(words.tokens()).skip(1).filter(|(home, _)| **home == bin);
            others.map(|(_, &tokens)| tokens).sum::<u64>()
        };
        let (beside, elsewhere) = (tokens(homes[0]), tokens((homes[0] + 15) % 30));
        assert!(beside * 3 < elsewhere * 2, "{beside} {elsewhere}");
        let even = skews(&items, &homes, &documents, 30);
        assert!(even[0] < 1.1 && even[1] < 1.4, "{even:?}");
    }

    #[test]
    fn a_bin_costs_what_its_items_do() {
        let none = Documents::default();
        let items = [4.0, 1.0, 2.0, 3.0].map(Item::fixed);
        assert_eq!(sums(&items, &[0, 1, 1, 0], &none, 3), [7.0, 3.0, 0.0].map(Item::fixed));
        // One of four and three of one.
        assert_eq!(balanced(&[4.0, 1.0, 1.0, 1.0].map(Item::fixed), &none, 2), [0, 1, 1, 1]);
    }

    #[test]
    fn the_same_words_go_the_same_way() {
        let (items, documents) = items(&zipf(300), 100, 4, 7);
        let homes = balanced(&items, &documents, 7);
        assert_eq!(homes[..10], [0, 4, 4, 2, 2, 1, 0, 3, 3, 1], "{:?}", &homes[..10]);
    }

    #[test]
    fn the_heaviest_bins_are_apart() {
        assert_eq!(spread(&[]), [0; 0]);
        assert_eq!(spread(&[7, 7, 9, 8]), [3, 1, 0, 2]);
        // Rank by number: pairs of pairs.
        let ranks = spread(&[7, 6, 5, 4, 3, 2, 1, 0]);
        assert_eq!(ranks, [0, 4, 6, 2, 3, 7, 5, 1]);
        // Ten runs of a hundred, of which fifteen bins weigh up to twice as much as the others.
        let weights: Vec<u64> = (0..1000).map(|bin| 600 + 600 * (15 - bin.min(15)) / 15).collect();
        let mut runs = [0; 10];
        for (&number, weight) in spread(&weights).iter().zip(&weights) {
            runs[number as usize / 100] += weight;
        }
        let [least, most] = [runs.iter().min().unwrap(), runs.iter().max().unwrap()];
        assert!((most - least) * 100 < *most, "{runs:?}");
    }

    proptest! {
        #[test]
        fn any_run_has_its_share(
            mut weights in prop::collection::vec(0..1000u64, 1..300),
            cuts in (0..300usize, 0..300usize),
        ) {
            let numbers = spread(&weights);
            let count = weights.len();
            let mut by_number = vec![None; count];
            for (&number, &weight) in numbers.iter().zip(&weights) {
                prop_assert!(by_number[number as usize].replace(weight).is_none());
            }
            let [from, to] = [cuts.0.min(cuts.1), cuts.0.max(cuts.1)].map(|it| it.min(count));
            let run: u64 = by_number[from..to].iter().map(|it| it.unwrap()).sum();
            weights.sort_unstable();
            let share = weights.iter().sum::<u64>() as f64 * (to - from) as f64 / count as f64;
            let range = (weights[count - 1] - weights[0]) as f64;
            let more = 0.51 * range * f64::from(1 + count.ilog2());
            prop_assert!((run as f64 - share).abs() <= more, "{} of {}", run, share);
        }

        #[test]
        fn every_bin_has_words(
            uses in prop::collection::vec((0..200u64, 1..4u64), 1..400),
            bins in 1..30u32,
        ) {
            prop_assume!(uses.len() >= bins as usize);
            let tokens: Vec<u64> = uses.iter().map(|it| it.0).collect();
            let documents = uses.iter().map(|it| it.0.div_ceil(it.1)).collect();
            let words = WordStats::new(tokens, documents).unwrap();
            let (items, documents) = items(&words, 50, 8, bins);
            let homes = balanced(&items, &documents, bins);
            let mut count = vec![0; bins as usize];
            homes.iter().for_each(|&bin| count[bin as usize] += 1);
            prop_assert!(count.iter().all(|&words| words > 0), "{:?}", count);
        }
    }
}
