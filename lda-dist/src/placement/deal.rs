//! Words dealt one by one, so that partitions and servers are loaded evenly from the first epoch to the last.
//!
//! What a word costs changes while topics are found. At first its row has as many topics as tokens, or all K; later it
//! has few, and the fewer the more its tokens are crowded into few documents. Ranges of equal cost by one estimate are
//! therefore even in the epochs that it is right for, and in no others. So words have several costs, each right at
//! another time, and a server is to have its share of each of them. What costs at other times are about sums of these, and
//! even too.
//!
//! Words are dealt costliest first. Each goes where it adds least to the sum of the squares of all loads: where the
//! load is least, each kind weighed by what the word has of it. When those are dealt that matter one by one, the others
//! go in blocks of as many as there are bins, one to each.
//!
//! With n tokens in d documents, in s = min(n, P) of P shards and K topics, the kinds are s min(n, K), the row of random
//! topics; s √n · d/n, s n^¾ (d/n)² and s n^¾ (d/n)³, fitted to rows of reddit after 10 to 30 epochs,
//! K = 1,000 (bytes of the 1,000 most frequent words go with n^0.75 (d/n)^3.3 after 20, with an error of a quarter); n,
//! what is sampled; and s, what each word takes in any case.
//!
//! So they come to partitions, and these the same way to servers, lest what is in a partition hangs on how many servers
//! there are. It takes O(V log V + 64 P²) time for P partitions. Numbers are of 64 bits and roots are rounded as IEEE 754
//! has it, so that all nodes come to the same.

use super::WordUses;

/// Kinds of cost.
const KINDS: usize = 6;
/// Words that are dealt one by one, a server.
const ONE_BY_ONE: usize = 64;

/// Of a word, each kind.
pub(super) type Costs = [f64; KINDS];

/// What each word costs with so many topics, its documents in so many shards.
pub(super) fn costs(words: &WordUses, topics: u32, shards: u32) -> Vec<Costs> {
    let of_word = |(&tokens, &documents): (&u64, &u64)| {
        if tokens == 0 {
            return [0.0; KINDS];
        }
        let n = tokens as f64;
        let s = n.min(shards.into());
        let (root, spread) = (n.sqrt(), documents as f64 / n);
        let late = s * root * root.sqrt() * spread * spread;
        [s * n.min(topics.into()), s * root * spread, late, late * spread, n, s]
    };
    words.tokens().iter().zip(words.documents()).map(of_word).collect()
}

/// The bin of each word, all with about the same of each kind. Of those that are as good the one that has fewer words, or
/// a lower number.
pub(super) fn deal(costs: &[Costs], bins: u32) -> Vec<u32> {
    let mut homes = vec![0; costs.len()];
    if bins <= 1 {
        return homes;
    }
    // Kinds count alike.
    let mut scale = [0.0; KINDS];
    costs.iter().for_each(|of_word| (0..KINDS).for_each(|kind| scale[kind] += of_word[kind]));
    scale.iter_mut().for_each(|all| *all = if *all > 0.0 { f64::from(bins) / *all } else { 0.0 });
    let share = |word: u32| -> Costs {
        std::array::from_fn(|kind| costs[word as usize][kind] * scale[kind])
    };
    let most = |word: u32| share(word).into_iter().fold(0.0, f64::max);
    let mut order: Vec<(f64, u32)> = (0..costs.len() as u32).map(|it| (most(it), it)).collect();
    order.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
    let mut loads = vec![Bin::default(); bins as usize];
    let (first, rest) = order.split_at(order.len().min(ONE_BY_ONE * bins as usize));
    for &(_, word) in first {
        let share = share(word);
        let fit = |bin: &Bin| (bin.along(&share), bin.words);
        let better = |a: &(f64, u32), b: &(f64, u32)| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1));
        let best = loads.iter().map(fit).zip(0u32..).min_by(|(a, _), (b, _)| better(a, b));
        let (_, bin) = best.expect("there are bins");
        loads[bin as usize].add(&share);
        homes[word as usize] = bin;
    }
    for block in rest.chunks(bins as usize) {
        let all = |word: u32| share(word).into_iter().sum::<f64>();
        let mut words: Vec<(f64, u32)> = block.iter().map(|&(_, word)| (all(word), word)).collect();
        words.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
        let squares = |bin: &Bin| bin.along(&bin.load);
        let mut free: Vec<(f64, u32)> = loads.iter().map(squares).zip(0..).collect();
        free.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        for ((_, word), (_, bin)) in words.into_iter().zip(free) {
            loads[bin as usize].add(&share(word));
            homes[word as usize] = bin;
        }
    }
    homes
}

/// What bins cost together.
pub(super) fn sums(costs: &[Costs], homes: &[u32], bins: u32) -> Vec<Costs> {
    let mut sums = vec![[0.0; KINDS]; bins as usize];
    for (of_word, &bin) in costs.iter().zip(homes) {
        let sum = &mut sums[bin as usize];
        sum.iter_mut().zip(of_word).for_each(|(sum, cost)| *sum += cost);
    }
    sums
}

/// What a bin has.
#[derive(Clone, Copy, Debug, Default)]
struct Bin {
    load: Costs,
    words: u32,
}

impl Bin {
    /// The load, each kind by its weight.
    fn along(&self, weights: &Costs) -> f64 {
        self.load.iter().zip(weights).map(|(load, weight)| load * weight).sum()
    }

    fn add(&mut self, share: &Costs) {
        self.load.iter_mut().zip(share).for_each(|(load, share)| *load += share);
        self.words += 1;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The heaviest bin over the mean.
    fn skew(homes: &[u32], bins: u32, cost: impl Fn(usize) -> f64) -> f64 {
        let mut loads = vec![0.0; bins as usize];
        homes.iter().enumerate().for_each(|(word, &bin)| loads[bin as usize] += cost(word));
        let all: f64 = loads.iter().sum();
        loads.into_iter().fold(0.0, f64::max) * f64::from(bins) / all
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
        let costs = costs(&words, 1000, 100);
        let homes = deal(&costs, 50);
        for (kind, most) in [1.1; KINDS].into_iter().enumerate() {
            let skew = skew(&homes, 50, |word| costs[word][kind]);
            assert!(skew < most, "{kind}: {skew}");
        }
        // What is none of them, but between.
        let n = |word: usize| words.tokens()[word] as f64;
        for exponent in [0.1, 0.3, 0.6, 0.9] {
            let skew = skew(&homes, 50, |word| n(word).min(100.0) * n(word).powf(exponent));
            assert!(skew < 1.05, "{exponent}: {skew}");
        }
        // And where they have many partitions.
        let parts = deal(&costs, 200);
        let servers = deal(&sums(&costs, &parts, 200), 50);
        let homes: Vec<u32> = parts.iter().map(|&part| servers[part as usize]).collect();
        // Less where a word has more than a partition's share.
        for (kind, most) in [1.05, 1.05, 1.2, 1.25, 1.25, 1.05].into_iter().enumerate() {
            let skew = skew(&homes, 50, |word| costs[word][kind]);
            assert!(skew < most, "{kind}: {skew}");
        }
        // By one of them alone the others are not.
        let first = costs.iter().map(|of_word| [of_word[0], 0.0, 0.0, 0.0, 0.0, 0.0]);
        let homes = deal(&first.collect::<Vec<_>>(), 50);
        assert!(skew(&homes, 50, |word| costs[word][0]) < 1.001);
        assert!(skew(&homes, 50, |word| costs[word][3]) > 1.15);
    }

    #[test]
    fn a_partition_costs_what_its_words_do() {
        let word = |cost: f64| [cost, 2.0 * cost, 0.0, 1.0, cost, 0.0];
        let costs = [word(4.0), word(1.0), word(2.0), word(3.0)];
        let of_first = [7.0, 14.0, 0.0, 2.0, 7.0, 0.0];
        assert_eq!(
            sums(&costs, &[0, 1, 1, 0], 3),
            [of_first, [3.0, 6.0, 0.0, 2.0, 3.0, 0.0], [0.0; 6]]
        );
        // One of four and three of one.
        assert_eq!(deal(&[word(4.0), word(1.0), word(1.0), word(1.0)], 2), [0, 1, 1, 1]);
    }

    #[test]
    fn the_same_words_go_the_same_way() {
        let words = zipf(300);
        let homes = deal(&costs(&words, 100, 4), 7);
        assert_eq!(homes[..10], [0, 5, 3, 1, 6, 1, 2, 4, 0, 5], "{:?}", &homes[..10]);
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
            let homes = deal(&costs(&words, 50, 8), bins);
            let mut count = vec![0; bins as usize];
            homes.iter().for_each(|&bin| count[bin as usize] += 1);
            prop_assert!(count.iter().all(|&words| words > 0), "{:?}", count);
        }
    }
}
