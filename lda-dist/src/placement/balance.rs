//! Balancing of single words, so that partitions and servers have even loads in every epoch.
//!
//! Ranges of equal cost by one estimate are even only in the epochs for which the estimate is
//! right. Words therefore have [several kinds of cost](super::costs), and every partition should
//! have its share of each kind. Costs at other times are roughly sums of these, so they are even as
//! well.
//!
//! This is vector bin packing: words are assigned in descending order of cost, each to the bin
//! where it increases the sum of the sixteenth powers of all loads, relative to their means, the
//! least. So it goes to a bin with a low load, and above all one with a low load of the kind that
//! is furthest above its mean, because the others wait for a server in the epoch in which it has
//! the highest load. Once the most expensive words are placed, each of the others goes to the bin
//! with the lowest sum. A partition with a word that costs as much as a whole share gets fewer of
//! all other words; words that cost [too much](super::split_rows) are removed before.
//!
//! Words are placed in partitions, and partitions on servers by the same algorithm, so that the
//! words of a partition do not depend on the number of servers. It takes O(V log V + 64 P²) time
//! for P partitions.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use super::costs::{Costs, DocumentCosts, Item, KINDS, Load};

/// Number of items per bin, the most expensive ones, for which every bin is tried.
const ONE_BY_ONE: usize = 64;

/// Bin of each item, so that all bins have about the same load of each kind of cost. `before` is
/// the content that each bin has already. Among equally good bins the one with fewer items is
/// taken, then the one with the lower number.
pub(super) fn balance(items: &[Item], documents: &DocumentCosts, before: &[Item]) -> Vec<u32> {
    let mut homes = vec![0; items.len()];
    let bins = before.len() as u32;
    if bins <= 1 {
        return homes;
    }
    let mut all = Load::default();
    before.iter().chain(items).for_each(|item| all.add(item));
    let mean = all.divided(bins);
    // Each kind relative to its mean, so that all kinds count alike.
    let scale = mean.costs(documents).map(|it| if it > 0.0 { 1.0 / it } else { 0.0 });
    let document = mean.document(documents);
    let share = |number: u32| scaled(&items[number as usize].costs(&document), &scale);
    let most = |number: u32| share(number).into_iter().fold(0.0, f64::max);
    let mut order: Vec<(f64, u32)> = (0..items.len() as u32).map(|it| (most(it), it)).collect();
    order.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
    let mut filled = vec![Bin::default(); bins as usize];
    for (bin, item) in filled.iter_mut().zip(before) {
        bin.add(item, documents, &scale);
    }
    // The expensive items: try every bin, O(bins) each.
    let (first, rest) = order.split_at(order.len().min(ONE_BY_ONE * bins as usize));
    for &(_, number) in first {
        let share = share(number);
        let fit = |bin: &Bin| (bin.growth(&share), bin.load.count);
        let better = |a: &(f64, u32), b: &(f64, u32)| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1));
        let best = filled.iter().map(fit).zip(0u32..).min_by(|(a, _), (b, _)| better(a, b));
        let (_, bin) = best.expect("there are bins");
        filled[bin as usize].add(&items[number as usize], documents, &scale);
        homes[number as usize] = bin;
    }
    // The others: take the bin with the lowest sum of powers, O(log bins) each. No sum is negative,
    // so their bit patterns are in the order of the numbers.
    let height = |bin: &Bin| (bin.growth(&bin.costs).to_bits(), bin.load.count);
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

/// Content of each bin, as one item.
pub(super) fn bin_items(
    items: &[Item],
    homes: &[u32],
    documents: &DocumentCosts,
    bins: u32,
) -> Vec<Item> {
    let mut loads = vec![Load::default(); bins as usize];
    items.iter().zip(homes).for_each(|(item, &bin)| loads[bin as usize].add(item));
    loads.iter().map(|load| load.whole(documents)).collect()
}

/// Number of each bin, so that any run of consecutive numbers has its share of the total weight.
///
/// Bins in descending order of weight go to the lower and the upper half of the numbers in the
/// pattern 0, 1, 1, 0: the half that gets the heavier bin of one pair gets the lighter bin of the
/// next. The bins of a half are assigned to its halves in the same way, in the order in which they
/// were assigned to the half. The position of a bin is then the Gray code of its rank with the bits
/// reversed. For any number of heavy bins among n, the number of them in a run differs from its
/// share by at most 1 + ½ log₂ n (counted for all n up to 1,000, and for 3,000).
pub(super) fn number_evenly(weights: &[u64]) -> Vec<u32> {
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

/// Sum of the weights of each bin's items.
pub(super) fn bin_weights(items: impl Iterator<Item = u64>, homes: &[u32], bins: u32) -> Vec<u64> {
    let mut weights = vec![0; bins as usize];
    for (item, &bin) in items.zip(homes) {
        let weight: &mut u64 = &mut weights[bin as usize];
        // The caller may pass costs up to 2^64 - 1.
        *weight = weight.saturating_add(item);
    }
    weights
}

/// Costs relative to their means.
fn scaled(costs: &Costs, scale: &Costs) -> Costs {
    std::array::from_fn(|kind| costs[kind] * scale[kind])
}

/// A bin, and its current load.
#[derive(Clone, Copy, Debug, Default)]
struct Bin {
    load: Load,
    /// Cost of each kind, relative to the mean.
    costs: Costs,
}

impl Bin {
    /// Adds an item; `scale` is the reciprocal of the mean of each kind.
    fn add(&mut self, item: &Item, documents: &DocumentCosts, scale: &Costs) {
        self.load.add(item);
        self.costs = scaled(&self.load.costs(documents), scale);
    }

    /// Growth of the sum of sixteenth powers when these shares are added, to first order and
    /// without the factor 16: Σ cost^15 · share over the kinds.
    fn growth(&self, shares: &Costs) -> f64 {
        let of_kind = |kind: usize| {
            let cost = self.costs[kind];
            let cube = cost * cost * cost;
            let sixth = cube * cube;
            // cost^15 by multiplications, which round alike on every machine.
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

    /// Balances items over empty bins.
    fn balanced(items: &[Item], documents: &DocumentCosts, bins: u32) -> Vec<u32> {
        balance(items, documents, &vec![Item::default(); bins as usize])
    }

    /// Items of words, and the costs of their documents.
    fn items(words: &WordStats, topics: u32, shards: u32, bins: u32) -> (Vec<Item>, DocumentCosts) {
        let tokens = words.tokens().iter().sum::<u64>();
        let workload =
            Workload { topics, shards, lengths: DocumentLengths::even(tokens / 80, tokens) };
        let documents = DocumentCosts::new(&workload, words);
        (of_words(words, &workload, &documents, bins), documents)
    }

    /// Load of the heaviest bin, relative to the mean.
    fn skew(homes: &[u32], bins: u32, cost: impl Fn(usize) -> f64) -> f64 {
        let mut loads = vec![0.0; bins as usize];
        homes.iter().enumerate().for_each(|(word, &bin)| loads[bin as usize] += cost(word));
        heaviest(&loads)
    }

    fn heaviest(loads: &[f64]) -> f64 {
        let all = loads.iter().sum::<f64>().max(f64::MIN_POSITIVE);
        loads.iter().copied().fold(0.0, f64::max) * loads.len() as f64 / all
    }

    /// The same for each kind of cost.
    fn skews(items: &[Item], homes: &[u32], documents: &DocumentCosts, bins: u32) -> Costs {
        let sums = bin_items(items, homes, documents, bins);
        let of_bins: Vec<Costs> = sums.iter().map(|it| it.costs(&[0.0; 2])).collect();
        std::array::from_fn(|kind| {
            heaviest(&of_bins.iter().map(|costs| costs[kind]).collect::<Vec<_>>())
        })
    }

    /// Zipf frequencies; words are spread over more or fewer documents.
    fn zipf(words: u64) -> WordStats {
        let tokens = (1..=words).map(|rank| 1 + 2_000_000 / (rank + 20));
        let (tokens, documents) =
            tokens.zip(0u64..).map(|(n, at)| (n, n.div_ceil(1 + at * 7 % 5))).unzip();
        WordStats::new(tokens, documents).unwrap()
    }

    #[test]
    fn all_kinds_of_cost_are_even() {
        let words = zipf(50_000);
        let (items, documents) = items(&words, 1000, 100, 50);
        let homes = balanced(&items, &documents, 50);
        let even = skews(&items, &homes, &documents, 50);
        let [bytes, later, sampled, rows @ ..] = even;
        assert!(rows.iter().all(|&skew| skew < 1.06), "{even:?}");
        assert!(bytes < 1.06 && later < 1.06 && sampled < 1.12, "{even:?}");
        // Costs at times between those of the kinds.
        let n = |word: usize| words.tokens()[word] as f64;
        for (exponent, most) in [(0.1, 1.05), (0.3, 1.05), (0.6, 1.06), (0.75, 1.1)] {
            let skew = skew(&homes, 50, |word| n(word).min(100.0) * n(word).powf(exponent));
            assert!(skew < most, "{exponent}: {skew}");
        }
        // With several partitions per server.
        let (items, documents) = self::items(&words, 1000, 100, 200);
        let parts = balanced(&items, &documents, 200);
        let servers =
            balanced(&bin_items(&items, &parts, &documents, 200), &DocumentCosts::default(), 50);
        let homes: Vec<u32> = parts.iter().map(|&part| servers[part as usize]).collect();
        // Less even, as some words have more than a partition's share.
        let even = skews(&items, &homes, &documents, 50);
        assert!(even.iter().all(|&skew| skew < 1.25), "{even:?}");
    }

    #[test]
    fn a_word_above_the_share_gets_fewer_others() {
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
    fn bins_hold_the_sum_of_their_items() {
        let none = DocumentCosts::default();
        let items = [4.0, 1.0, 2.0, 3.0].map(Item::fixed);
        assert_eq!(bin_items(&items, &[0, 1, 1, 0], &none, 3), [7.0, 3.0, 0.0].map(Item::fixed));
        // An item of 4 alone, and three items of 1 together.
        assert_eq!(balanced(&[4.0, 1.0, 1.0, 1.0].map(Item::fixed), &none, 2), [0, 1, 1, 1]);
    }

    #[test]
    fn a_known_example_is_stable() {
        let (items, documents) = items(&zipf(300), 100, 4, 7);
        let homes = balanced(&items, &documents, 7);
        assert_eq!(homes[..10], [0, 4, 4, 2, 2, 1, 0, 3, 3, 1], "{:?}", &homes[..10]);
    }

    #[test]
    fn the_heaviest_bins_are_apart() {
        assert_eq!(number_evenly(&[]), [0; 0]);
        assert_eq!(number_evenly(&[7, 7, 9, 8]), [3, 1, 0, 2]);
        // Ranks by number.
        let ranks = number_evenly(&[7, 6, 5, 4, 3, 2, 1, 0]);
        assert_eq!(ranks, [0, 4, 6, 2, 3, 7, 5, 1]);
        // Ten runs of 100 bins; fifteen bins weigh up to twice as much as the others.
        let weights: Vec<u64> = (0..1000).map(|bin| 600 + 600 * (15 - bin.min(15)) / 15).collect();
        let mut runs = [0; 10];
        for (&number, weight) in number_evenly(&weights).iter().zip(&weights) {
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
            let numbers = number_evenly(&weights);
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
