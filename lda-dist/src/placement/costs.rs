//! What words cost the partition that they come to, before anything is known of their topics.
//!
//! A word's row goes to every shard that pulls it. A word that is pushed costs its tokens, and the rows of its documents,
//! which are sent to a partition once for all of its words: so many words that are pushed cost less than each alone, and
//! what a partition costs is no sum over words. A [`Load`] is therefore counted up, and then reckoned.
//!
//! What a word costs changes while topics are found. At first its row has as many topics as tokens, or all K; later it
//! has few, and the fewer the more its tokens are crowded into few documents, and documents' rows are shorter too. So
//! there are several **kinds** of cost, each right at another time or for something else than bytes. With n tokens in d
//! of all D documents, in s = min(n, P) of P shards:
//!
//! | kind | of a word that is pulled | pushed |
//! |---|---|---|
//! | bytes at first | s min(n, K) entries | n tokens |
//! | bytes when documents' rows are shorter | s min(n, K) entries | n tokens |
//! | what a server samples | 0 | n |
//! | rows at first, were all pulled | s min(n, K) | the same |
//! | rows later | s √n · d/n | the same |
//! | rows later still | s n^¾ (d/n)² | the same |
//! | rows where tokens are crowded | s n^¾ (d/n)³ | the same |
//! | what each word takes | s | s |
//!
//! Whether words are pushed at all is not asked: both modes are to be compared with the same words in each partition.
//!
//! Rows later are fitted to reddit after 10 to 30 epochs, K = 1,000 (bytes of the 1,000 most frequent words go with
//! n^0.75 (d/n)^3.3 after 20, with an error of a quarter). Entries' lengths, and which words are pushed, are fitted to
//! generated documents like PubMed's, K = 8,000, in 300 shards.
//!
//! Numbers are of 64 bits, with sums, products, quotients and roots, which IEEE 754 rounds the same way everywhere: all
//! nodes come to the same.

use super::{Demand, WordUses};

/// Kinds of which costs of pushed words are no sums: bytes at first, and when documents' rows are shorter.
const TIMES: usize = 2;
/// What is left of documents' rows by then.
const DOCUMENTS_LATER: [f64; TIMES] = [1.0, 0.65];
/// Kinds of cost.
pub(super) const KINDS: usize = TIMES + 6;
/// Kinds that are of rows.
const ROWS: std::ops::Range<usize> = TIMES + 1..KINDS - 1;
/// Of each kind a number.
pub(super) type Costs = [f64; KINDS];
/// What a pushed token takes besides its document's row, there and back, in entries of such rows.
const TOKEN: f64 = 3.0;
/// How much more than its share a pushed word bears of its documents' rows: when others are pulled their shares are left
/// to it.
const BORNE: f64 = 1.7;

/// What a word brings to a partition, or a partition to a server.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Item {
    /// What does not depend on what else is there.
    fixed: Costs,
    /// Tokens that are pushed, at each time.
    pushed: [f64; TIMES],
}

impl Item {
    /// What costs so much in every way.
    pub(super) fn fixed(cost: f64) -> Self {
        Self { fixed: [cost; KINDS], ..Self::default() }
    }

    /// Whether it is pulled, and then costs more bytes than these, at any time.
    pub(super) fn is_pulled_for_more_than(&self, most: &Costs) -> bool {
        let is_more = |kind: usize| self.fixed[kind] > most[kind];
        self.pushed[0] == 0.0 && ((0..TIMES).any(is_more) || ROWS.into_iter().any(is_more))
    }

    /// As much more.
    pub(super) fn add(&mut self, more: &Self) {
        self.fixed.iter_mut().zip(more.fixed).for_each(|(sum, it)| *sum += it);
        self.pushed.iter_mut().zip(more.pushed).for_each(|(sum, it)| *sum += it);
    }

    /// One of so many, if all had as much.
    pub(super) fn divided(mut self, by: u32) -> Self {
        self.fixed.iter_mut().for_each(|it| *it /= f64::from(by));
        self.pushed.iter_mut().for_each(|it| *it /= f64::from(by));
        self
    }

    /// Its costs, if each pushed token has the same.
    pub(super) fn costs(&self, token: &[f64; TIMES]) -> Costs {
        let mut costs = self.fixed;
        (0..TIMES).for_each(|time| costs[time] += self.pushed[time] * token[time]);
        costs
    }
}

/// What each word brings to one of so many partitions.
pub(super) fn of_words(
    words: &WordUses,
    demand: &Demand,
    documents: &Documents,
    partitions: u32,
) -> Vec<Item> {
    let (topics, shards) = (f64::from(demand.topics), f64::from(demand.shards));
    // As if all words were pushed.
    let share = documents.tokens / f64::from(partitions);
    let token: [f64; TIMES] = std::array::from_fn(|time| documents.sent(share, time) / share);
    let of_word = |(&tokens, &in_documents): (&u64, &u64)| {
        let mut item = Item::default();
        if tokens == 0 {
            return item;
        }
        let n = tokens as f64;
        let (times, entries) = (n.min(shards), n.min(topics));
        let pulled = times * entries * entry(n / entries, topics / entries);
        for (time, of_token) in token.iter().enumerate() {
            if BORNE * n * of_token < pulled {
                item.pushed[time] = n;
            } else {
                item.fixed[time] = pulled;
            }
        }
        let (root, spread) = (n.sqrt(), in_documents as f64 / n);
        let late = times * root * root.sqrt() * spread * spread;
        let rows = [times * entries, times * root * spread, late, late * spread];
        item.fixed[TIMES] = item.pushed[TIMES - 1];
        item.fixed[TIMES + 1..KINDS - 1].copy_from_slice(&rows);
        item.fixed[KINDS - 1] = times;
        item
    };
    words.tokens().iter().zip(words.documents()).map(of_word).collect()
}

/// About how long an entry of a row is, there and back, beside one of a document's row: of one topic of so many, with so
/// many tokens.
fn entry(tokens: f64, gap: f64) -> f64 {
    0.27 * log2(1.0 + tokens) + 0.15 * log2(1.0 + gap) - 0.1
}

/// Nearly the logarithm: straight between powers of two. Of 1 and more.
fn log2(x: f64) -> f64 {
    const FRACTION: u32 = f64::MANTISSA_DIGITS - 1;
    let bits = x.to_bits();
    let fraction = (bits & ((1 << FRACTION) - 1)) as f64 / (1u64 << FRACTION) as f64;
    (bits >> FRACTION) as f64 - 1023.0 + fraction
}

/// The documents, as far as they are sent.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Documents {
    number: f64,
    tokens: f64,
}

impl Documents {
    pub(super) fn new(demand: &Demand, words: &WordUses) -> Self {
        let tokens = words.tokens().iter().map(|&tokens| tokens as f64).sum();
        Self { number: demand.documents.max(1) as f64, tokens }
    }

    /// Entries that go to a partition of which so many tokens are pushed. Tokens lie in documents as if at random: with x
    /// a document, e^-x of them have none, or nearly (1 + x/8)^-8.
    fn sent(&self, tokens: f64, time: usize) -> f64 {
        if tokens == 0.0 {
            return 0.0;
        }
        let base = 1.0 + tokens / self.number / 8.0;
        let square = base * base;
        let fourth = square * square;
        self.tokens * DOCUMENTS_LATER[time] * (1.0 - 1.0 / (fourth * fourth)) + TOKEN * tokens
    }
}

/// What is in a partition, or on a server.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Load {
    sum: Item,
    /// Items.
    pub(super) count: u32,
}

impl Load {
    pub(super) fn add(&mut self, item: &Item) {
        self.sum.add(item);
        self.count += 1;
    }

    /// One of so many, if all had as much.
    pub(super) fn divided(self, by: u32) -> Self {
        Self { sum: self.sum.divided(by), ..self }
    }

    /// What it comes to.
    pub(super) fn costs(&self, documents: &Documents) -> Costs {
        let mut costs = self.sum.fixed;
        (0..TIMES).for_each(|time| costs[time] += documents.sent(self.sum.pushed[time], time));
        costs
    }

    /// What a pushed token costs in it.
    pub(super) fn token(&self, documents: &Documents) -> [f64; TIMES] {
        std::array::from_fn(|time| {
            let tokens = self.sum.pushed[time];
            if tokens > 0.0 { documents.sent(tokens, time) / tokens } else { 0.0 }
        })
    }

    /// As one item.
    pub(super) fn whole(&self, documents: &Documents) -> Item {
        Item { fixed: self.costs(documents), ..Item::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DEMAND: Demand = Demand { topics: 100, shards: 100, documents: 40_000 };

    #[test]
    fn frequent_words_are_pulled_and_others_pushed() {
        let words = WordUses::new(vec![80_000, 50, 0], vec![900, 25, 0]).unwrap();
        let documents = Documents::new(&DEMAND, &words);
        let items = of_words(&words, &DEMAND, &documents, 2);
        assert_eq!((items[0].pushed, items[1].pushed), ([0.0; 2], [50.0; 2]));
        assert_eq!(items[2], Item::default());
        // All 100 topics to each of 100 shards, 800 tokens a topic.
        let row = 10_000.0 * entry(800.0, 1.0);
        assert_eq!(items[0].fixed[..TIMES], [row; 2]);
        assert_eq!((items[0].fixed[TIMES], items[0].fixed[KINDS - 1]), (0.0, 100.0));
        let root = 50f64.sqrt();
        let late = 50.0 * root * root.sqrt() * 0.25;
        let fixed = [0.0, 0.0, 50.0, 2500.0, 25.0 * root, late, late / 2.0, 50.0];
        assert_eq!(items[1].fixed, fixed);
    }

    #[test]
    fn a_document_is_sent_once() {
        let documents = Documents { number: 1000.0, tokens: 50_000.0 };
        // Nearly each token of another document.
        let few = documents.sent(10.0, 0);
        assert!((10.0 * 50.0 * 0.99..10.0 * 50.0 + 10.0 * TOKEN).contains(&few), "{few}");
        let many = documents.sent(10_000.0, 0) - 10_000.0 * TOKEN;
        assert!((0.99 * 50_000.0..50_000.0).contains(&many), "{many}");
        assert_eq!(documents.sent(0.0, 0), 0.0);
        let mut load = Load::default();
        let item = Item { pushed: [500.0; 2], ..Item::fixed(1.0) };
        load.add(&item);
        load.add(&item);
        assert_eq!(load.costs(&documents)[0], 2.0 + documents.sent(1000.0, 0));
        assert!(load.costs(&documents)[0] < 2.0 * load.divided(2).costs(&documents)[0]);
        let token = load.token(&documents);
        assert_eq!(item.costs(&token)[0], 1.0 + documents.sent(1000.0, 0) / 2.0);
        assert_eq!(
            load.whole(&documents),
            Item { fixed: load.costs(&documents), pushed: [0.0; 2] }
        );
    }

    #[test]
    fn logarithms_are_near() {
        for x in [1.0, 1.5, 2.0, 3.7, 1e6, 1e300] {
            let (near, exact) = (log2(x), f64::log2(x));
            assert!((exact - 0.09..=exact + 1e-9).contains(&near), "{x}: {near} for {exact}");
        }
    }
}
