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
//! is [too much](super::hot) has been taken out before.
//!
//! So they come to partitions, and these the same way to servers, lest what is in a partition hangs on how many servers
//! there are. It takes O(V log V + 64 P²) time for P partitions.

use std::collections::BTreeSet;

use super::costs::{Costs, Documents, Item, KINDS, Load};

/// Words that are dealt one by one, a bin.
const ONE_BY_ONE: usize = 64;

/// The bin of each item, all with about the same of each kind of cost, if they have these `before`. Of those that are
/// as good the one that has fewer items, or a lower number.
pub(super) fn deal(items: &[Item], documents: &Documents, before: &[Item]) -> Vec<u32> {
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
    use super::super::uses::with_a_hot_word;
    use super::super::{Demand, Lengths, WordUses};
    use super::*;

    /// To empty bins.
    fn dealt(items: &[Item], documents: &Documents, bins: u32) -> Vec<u32> {
        deal(items, documents, &vec![Item::default(); bins as usize])
    }

    /// Items of words, and their documents.
    fn items(words: &WordUses, topics: u32, shards: u32, bins: u32) -> (Vec<Item>, Documents) {
        let tokens = words.tokens().iter().sum::<u64>();
        let demand = Demand { topics, shards, lengths: Lengths::even(tokens / 80, tokens) };
        let documents = Documents::new(&demand, words);
        (of_words(words, &demand, &documents, bins), documents)
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
    fn zipf(words: u64) -> WordUses {
        let tokens = (1..=words).map(|rank| 1 + 2_000_000 / (rank + 20));
        let (tokens, documents) =
            tokens.zip(0u64..).map(|(n, at)| (n, n.div_ceil(1 + at * 7 % 5))).unzip();
        WordUses::new(tokens, documents).unwrap()
    }

    #[test]
    fn all_kinds_are_even() {
        let words = zipf(50_000);
        let (items, documents) = items(&words, 1000, 100, 50);
        let homes = dealt(&items, &documents, 50);
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
        let parts = dealt(&items, &documents, 200);
        let servers = dealt(&sums(&items, &parts, &documents, 200), &Documents::default(), 50);
        let homes: Vec<u32> = parts.iter().map(|&part| servers[part as usize]).collect();
        // Less where a word has more than a partition's share.
        let even = skews(&items, &homes, &documents, 50);
        assert!(even.iter().all(|&skew| skew < 1.25), "{even:?}");
    }

    #[test]
    fn a_word_of_more_than_a_share_is_nearly_alone() {
        let words = with_a_hot_word();
        let (items, documents) = items(&words, 8000, 300, 30);
        let homes = dealt(&items, &documents, 30);
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
        assert_eq!(dealt(&[4.0, 1.0, 1.0, 1.0].map(Item::fixed), &none, 2), [0, 1, 1, 1]);
    }

    #[test]
    fn the_same_words_go_the_same_way() {
        let (items, documents) = items(&zipf(300), 100, 4, 7);
        let homes = dealt(&items, &documents, 7);
        assert_eq!(homes[..10], [0, 4, 4, 2, 2, 1, 0, 3, 3, 1], "{:?}", &homes[..10]);
    }

    proptest! {
        #[test]
        fn every_bin_has_words(
            uses in prop::collection::vec((0..200u64, 1..4u64), 1..400),
            bins in 1..30u32,
        ) {
            prop_assume!(uses.len() >= bins as usize);
            let tokens: Vec<u64> = uses.iter().map(|it| it.0).collect();
            let documents = uses.iter().map(|it| it.0.div_ceil(it.1)).collect();
            let words = WordUses::new(tokens, documents).unwrap();
            let (items, documents) = items(&words, 50, 8, bins);
            let homes = dealt(&items, &documents, bins);
            let mut count = vec![0; bins as usize];
            homes.iter().for_each(|&bin| count[bin as usize] += 1);
            prop_assert!(count.iter().all(|&words| words > 0), "{:?}", count);
        }
    }
}
