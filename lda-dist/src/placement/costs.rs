//! Estimated costs of words for their partition, before their topics are known.
//!
//! The row of a word is sent to every shard that pulls it. A word that is pushed costs its tokens,
//! and the rows of its documents, which are sent to a partition once for all of its words. Many
//! pushed words together therefore cost less than the sum of each alone, and the cost of a
//! partition is not a sum over words: a [`Load`] adds up the contributions of its words, and
//! computes the cost from the sums.
//!
//! Costs change while topics are found. At first a word's row has as many topics as the word has
//! tokens, or all K; later it has few, fewer still if its tokens are concentrated in few documents,
//! and the rows of documents are shorter too. There are therefore several **kinds** of cost: bytes
//! at several times, and quantities other than bytes. For a word with n tokens in d of all D
//! documents, in s = min(n, P) of P shards:
//!
//! | kind | word that is pulled | word that is pushed |
//! |---|---|---|
//! | bytes at first | s rows of min(n, K) entries, 2 n changes | rows of d documents, n tokens |
//! | bytes when documents' rows are shorter | s rows of min(n, K) entries, 2 n changes | shorter rows of d documents, n tokens |
//! | tokens that a server samples | 0 | n |
//! | rows at first, if all were pulled | s min(n, K) | the same |
//! | rows later | s √n · d/n | the same |
//! | rows later still | s n^¾ (d/n)² | the same |
//! | rows where tokens are concentrated | s n^¾ (d/n)³ | the same |
//! | fixed cost per word | s | s |
//!
//! The kinds that count rows ignore whether words may be pushed at all, so that both modes can be
//! compared with the same words in each partition.
//!
//! The later rows are fitted to reddit after 10 to 30 epochs, K = 1,000 (the bytes of the 1,000
//! most frequent words go with n^0.75 (d/n)^3.3 after 20 epochs, with an error of a quarter).
//! Lengths of entries are fitted to the [encoding](crate::wire) of random topics with K = 1,000 and
//! 8,000. Which words are pushed is fitted to reddit with K = 8,000 and 300 shards: in the first
//! epoch, half of the tokens of a word with 8,000 to 11,000 tokens are pushed, in the second epoch
//! half of one with twice as many.
//!
//! Documents count as if all had the same length, the root of the mean square. The mean length is
//! too short, because more words of long documents are pushed. The mean over tokens is too long,
//! because rows of long documents are expensive and words are pulled because of them. On reddit
//! with 300 shards, rows of pushed documents have 59 entries on average; the root of the mean
//! square is 53, the mean 19, and the mean over tokens 147.
//!
//! Numbers are `f64`, and the operations are sums, products, quotients and roots, which IEEE 754
//! rounds alike everywhere: all nodes compute the same placement.

use super::{DocumentLengths, WordStats, Workload};

/// Number of times at which bytes are estimated: at first, and when documents' rows are shorter.
/// These are the first kinds, and the only ones that are not sums over pushed words.
const TIMES: usize = 2;
/// Length of documents' rows at these times, relative to the first.
const DOCUMENTS_LATER: [f64; TIMES] = [1.0, 0.65];
/// Number of kinds of cost.
pub(super) const KINDS: usize = TIMES + 6;
/// Index of the kind that counts the tokens sampled by a server.
const SAMPLED: usize = TIMES;
/// Indices of the kinds that count row entries.
const ROWS: std::ops::Range<usize> = SAMPLED + 1..KINDS - 1;
/// A cost of each kind.
pub(super) type Costs = [f64; KINDS];
/// Bytes of a pushed token, request and reply, without its document's row.
const TOKEN: f64 = 3.7;
/// Bytes of a word in a request and of its row, without the row's entries.
const WORD: f64 = 1.5;
/// Factor on a pushed word's share of its documents' rows: pushed words also bear the shares of the
/// pulled ones.
const BORNE: f64 = 1.15;

/// Contribution of a word to its partition, or of a partition to its server.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Item {
    /// Costs that do not depend on the other items.
    fixed: Costs,
    /// Pushed (word, document) pairs at each time.
    pushed: [f64; TIMES],
    /// Bytes at first if nothing is pushed.
    pulled: f64,
}

impl Item {
    /// An item with the same cost of every kind.
    pub(super) fn fixed(cost: f64) -> Self {
        Self { fixed: [cost; KINDS], pulled: cost, ..Self::default() }
    }

    /// An item that costs bytes only: `cost`, or `pulled` if nothing is pushed.
    #[cfg(test)]
    pub(super) fn of_bytes(cost: f64, pulled: f64) -> Self {
        let mut item = Self { pulled, ..Self::default() };
        item.fixed[..TIMES].fill(cost);
        item
    }

    /// Whether the item is too much for a partition with `mean` load: the bytes of its pulled part,
    /// at any time, exceed the share `of_bytes`; or it is always pulled and its rows, at any time,
    /// exceed the share `of_rows`; or a server samples more tokens of it than of a mean partition.
    pub(super) fn is_too_much(&self, mean: &Costs, of_bytes: f64, of_rows: f64) -> bool {
        let is_more = |kind: usize, part: f64| self.fixed[kind] > mean[kind] * part;
        let is_all_pulled = self.pushed[0] == 0.0;
        (0..TIMES).any(|kind| is_more(kind, of_bytes))
            || (is_all_pulled && ROWS.into_iter().any(|kind| is_more(kind, of_rows)))
            || self.fixed[SAMPLED] > mean[SAMPLED]
    }

    /// The same item with nothing pushed.
    pub(super) fn all_pulled(mut self) -> Self {
        self.fixed[..TIMES].fill(self.pulled);
        self.fixed[SAMPLED] = 0.0;
        Self { pushed: [0.0; TIMES], ..self }
    }

    /// Adds another item.
    pub(super) fn add(&mut self, more: &Self) {
        self.fixed.iter_mut().zip(more.fixed).for_each(|(sum, it)| *sum += it);
        self.pushed.iter_mut().zip(more.pushed).for_each(|(sum, it)| *sum += it);
        self.pulled += more.pulled;
    }

    /// One of `by` equal parts of the item.
    pub(super) fn divided(mut self, by: u32) -> Self {
        self.fixed.iter_mut().for_each(|it| *it /= f64::from(by));
        self.pushed.iter_mut().for_each(|it| *it /= f64::from(by));
        self.pulled /= f64::from(by);
        self
    }

    /// Costs of the item, given the bytes of a pushed (word, document) pair at each time.
    pub(super) fn costs(&self, document: &[f64; TIMES]) -> Costs {
        let mut costs = self.fixed;
        (0..TIMES).for_each(|time| costs[time] += self.pushed[time] * document[time]);
        costs
    }
}

/// Item of each word, for a placement on `partitions` partitions.
pub(super) fn of_words(
    words: &WordStats,
    workload: &Workload,
    documents: &DocumentCosts,
    partitions: u32,
) -> Vec<Item> {
    let (topics, shards) = (f64::from(workload.topics), f64::from(workload.shards));
    // Bytes per pair in a mean partition if all words were pushed.
    let pairs: f64 = words.documents().iter().map(|&pairs| pairs as f64).sum();
    let share = pairs / f64::from(partitions);
    let document: [f64; TIMES] = std::array::from_fn(|time| documents.sent(share, time) / share);
    let number = workload.lengths.documents.max(1) as f64;
    let of_word = |(&tokens, &in_documents): (&u64, &u64)| {
        let mut item = Item::default();
        if tokens == 0 {
            return item;
        }
        let (n, d) = (tokens as f64, in_documents as f64);
        let (times, entries) = (n.min(shards), n.min(topics));
        let moved = 2.0 * n;
        let pulled = times * (WORD + entries * entry(n / entries, topics / entries))
            + moved * entry(1.0, (topics * times / moved).max(1.0));
        for (time, sent) in document.iter().enumerate() {
            let share = pushed_share(pulled / (BORNE * (d * sent + TOKEN * n)));
            item.pushed[time] = share * d * apart(d / number);
            item.fixed[time] = (1.0 - share) * pulled + share * TOKEN * n;
            item.fixed[SAMPLED] = share * n;
        }
        let (root, spread) = (n.sqrt(), d / n);
        let late = times * root * root.sqrt() * spread * spread;
        let rows = [times * entries, times * root * spread, late, late * spread];
        item.pulled = pulled;
        item.fixed[ROWS].copy_from_slice(&rows);
        item.fixed[KINDS - 1] = times;
        item
    };
    words.tokens().iter().zip(words.documents()).map(of_word).collect()
}

/// Share of a word's tokens that are pushed, given the ratio of its pulled to its pushed cost. It
/// rises gradually, because shards differ in how many tokens of the word they have, how long those
/// documents are and what else they push of them.
fn pushed_share(ratio: f64) -> f64 {
    ((ratio - 0.55) / 1.2).clamp(0.0, 1.0)
}

/// Correction for the documents of a word being distinct. A word that is in a share u of all
/// documents covers as many documents as −ln(1 − u)/u times its number of documents drawn at random
/// would; this is a rational approximation of that factor.
fn apart(part: f64) -> f64 {
    let u = part.min(1.0);
    (6.0 - u) / (6.0 - 4.0 * u)
}

/// Approximate bytes of a row entry, given its count and the mean gap between the row's topics.
fn entry(tokens: f64, gap: f64) -> f64 {
    0.13 * log2(1.0 + tokens) + 0.15 * log2(1.0 + gap) + 0.02
}

/// Approximate logarithm of x ≥ 1: exact at powers of two, linear in between. Unlike the logarithm
/// of a math library it is the same on every machine.
fn log2(x: f64) -> f64 {
    const FRACTION: u32 = f64::MANTISSA_DIGITS - 1;
    let bits = x.to_bits();
    let fraction = (bits & ((1 << FRACTION) - 1)) as f64 / (1u64 << FRACTION) as f64;
    (bits >> FRACTION) as f64 - 1023.0 + fraction
}

/// Cost of sending the rows of documents.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct DocumentCosts {
    /// Entries of all documents' rows at first.
    entries: f64,
    /// Bytes per entry.
    entry: f64,
    /// Pairs per document that a single (word, document) pair stands for: the length of a document,
    /// taken as the root of the mean square, over all pairs.
    reach: f64,
}

impl DocumentCosts {
    /// Costs of documents that cost nothing.
    pub(super) const NONE: Self = Self { entries: 0.0, entry: 0.0, reach: 0.0 };

    /// Costs of the documents of a corpus with these words.
    pub(super) fn new(workload: &Workload, words: &WordStats) -> Self {
        let tokens: f64 = words.tokens().iter().map(|&tokens| tokens as f64).sum();
        let DocumentLengths { documents, squares } = workload.lengths;
        let length = (squares as f64 / documents.max(1) as f64).sqrt().max(1.0);
        let gap = (f64::from(workload.topics) / length).max(1.0);
        let pairs: f64 = words.documents().iter().map(|&pairs| pairs as f64).sum();
        Self { entries: tokens, entry: entry(1.0, gap), reach: length / pairs.max(1.0) }
    }

    /// Bytes of documents' rows that are sent to a partition with `pairs` pushed (word, document)
    /// pairs. Words are assumed to lie in documents at random: with x pairs per document, a share
    /// e^-x of the documents has none, approximated by (1 + x/8)^-8.
    fn sent(&self, pairs: f64, time: usize) -> f64 {
        let base = 1.0 + pairs * self.reach / 8.0;
        let square = base * base;
        let fourth = square * square;
        let entries = self.entries * DOCUMENTS_LATER[time] * (1.0 - 1.0 / (fourth * fourth));
        self.entry * entries
    }
}

/// Sum of the items in a partition or on a server.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Load {
    sum: Item,
    /// Number of items.
    pub(super) count: u32,
}

impl Load {
    /// Adds an item.
    pub(super) fn add(&mut self, item: &Item) {
        self.sum.add(item);
        self.count += 1;
    }

    /// One of `by` equal parts of the load.
    pub(super) fn divided(self, by: u32) -> Self {
        Self { sum: self.sum.divided(by), ..self }
    }

    /// Cost of each kind. Not additive: documents shared by several items are sent once.
    pub(super) fn costs(&self, documents: &DocumentCosts) -> Costs {
        let mut costs = self.sum.fixed;
        (0..TIMES).for_each(|time| costs[time] += documents.sent(self.sum.pushed[time], time));
        costs
    }

    /// Bytes per pushed (word, document) pair of this load, at each time.
    pub(super) fn document(&self, documents: &DocumentCosts) -> [f64; TIMES] {
        std::array::from_fn(|time| {
            let pushed = self.sum.pushed[time];
            if pushed > 0.0 { documents.sent(pushed, time) / pushed } else { 0.0 }
        })
    }

    /// The load as one item with fixed costs.
    pub(super) fn whole(&self, documents: &DocumentCosts) -> Item {
        Item { fixed: self.costs(documents), pulled: self.sum.pulled, ..Item::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::RowCode;

    const LENGTHS: DocumentLengths = DocumentLengths { documents: 40_000, squares: 40_000 * 4 };
    const DEMAND: Workload = Workload { topics: 100, shards: 100, lengths: LENGTHS };

    #[test]
    fn frequent_words_are_pulled_and_others_pushed() {
        let words = WordStats::new(vec![80_000, 50, 0], vec![40_000, 25, 0]).unwrap();
        let documents = DocumentCosts::new(&DEMAND, &words);
        let items = of_words(&words, &DEMAND, &documents, 2);
        let sent = 25.0 * apart(25.0 / 40_000.0);
        assert_eq!((items[0].pushed, items[1].pushed), ([0.0; 2], [sent; 2]));
        assert_eq!(items[2], Item::default());
        // A row of all 100 topics to each of 100 shards, 800 tokens per topic; all tokens change
        // topic.
        let row = 100.0 * (WORD + 100.0 * entry(800.0, 1.0)) + 160_000.0 * entry(1.0, 1.0);
        assert_eq!(items[0].fixed[..TIMES], [row; 2]);
        assert_eq!((items[0].fixed[TIMES], items[0].fixed[KINDS - 1]), (0.0, 100.0));
        let root = 50f64.sqrt();
        let late = 50.0 * root * root.sqrt() * 0.25;
        let rows = [2500.0, 25.0 * root, late, late / 2.0];
        let bytes = 50.0 * TOKEN;
        assert_eq!(items[1].fixed[..ROWS.start], [bytes, bytes, 50.0]);
        assert_eq!((&items[1].fixed[ROWS], items[1].fixed[KINDS - 1]), (&rows[..], 50.0));
        // If it is pulled: 50 rows of 50 entries, and 100 changes.
        let row = WORD + 50.0 * entry(1.0, 2.0);
        assert_eq!(items[1].pulled, 50.0 * row + 100.0 * entry(1.0, 50.0));
        let pulled = items[1].all_pulled();
        assert_eq!((pulled.pushed, pulled.fixed[0]), ([0.0; 2], items[1].pulled));
        assert_eq!((pulled.fixed[SAMPLED], &pulled.fixed[ROWS]), (0.0, &rows[..]));
    }

    #[test]
    fn words_near_equal_costs_are_partly_pushed() {
        assert_eq!(
            [0.3, 0.55, 1.15, 1.75, 9.0].map(pushed_share).map(|it| (it * 4.0).round() / 4.0),
            [0.0, 0.0, 0.5, 1.0, 1.0]
        );
        assert_eq!(apart(0.0), 1.0);
        for part in [0.1f64, 0.5, 0.8] {
            let exact = -(1.0 - part).ln() / part;
            assert!((apart(part) / exact - 1.0).abs() < 0.08, "{part}");
        }
    }

    #[test]
    fn a_document_is_sent_once_per_partition() {
        // 1,000 documents of 50 entries.
        let documents = DocumentCosts { entries: 50_000.0, entry: 2.0, reach: 1e-3 };
        // Few pairs are nearly all of different documents.
        let few = documents.sent(10.0, 0);
        assert!((0.99 * 1000.0..1000.0).contains(&few), "{few}");
        let many = documents.sent(10_000.0, 0);
        assert!((0.99 * 100_000.0..100_000.0).contains(&many), "{many}");
        assert_eq!(documents.sent(0.0, 0), 0.0);
        let mut load = Load::default();
        let item = Item { pushed: [500.0; 2], ..Item::fixed(1.0) };
        load.add(&item);
        load.add(&item);
        assert_eq!(load.costs(&documents)[0], 2.0 + documents.sent(1000.0, 0));
        assert!(load.costs(&documents)[0] < 2.0 * load.divided(2).costs(&documents)[0]);
        let document = load.document(&documents);
        assert_eq!(item.costs(&document)[0], 1.0 + documents.sent(1000.0, 0) / 2.0);
        assert_eq!(
            load.whole(&documents),
            Item { fixed: load.costs(&documents), pulled: 2.0, ..Item::default() }
        );
    }

    #[test]
    fn the_length_of_documents_is_the_root_of_the_mean_square() {
        let words = WordStats::new(vec![600, 400], vec![100, 100]).unwrap();
        let of = |lengths| DocumentCosts::new(&Workload { topics: 80, shards: 4, lengths }, &words);
        let even = of(DocumentLengths::even(100, 1000));
        assert_eq!(
            even,
            DocumentCosts { entries: 1000.0, entry: entry(1.0, 8.0), reach: 10.0 / 200.0 }
        );
        // 75 documents of 10 tokens and 25 of 70.
        let squares = 25 * (3 * 100 + 70 * 70);
        let skewed = of(DocumentLengths { documents: 100, squares });
        let root = 1300f64.sqrt();
        assert_eq!((skewed.reach, skewed.entry), (root / 200.0, entry(1.0, 80.0 / root)));
        // Without documents the length is 1.
        assert_eq!(of(DocumentLengths::default()).reach, 1.0 / 200.0);
    }

    #[test]
    fn estimated_entry_lengths_match_the_encoding() {
        let mut x = 9u64;
        let mut topic = |topics: u32| {
            x = x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            ((x >> 33) % u64::from(topics)) as usize
        };
        for topics in [1000, 8000] {
            for tokens in [20, 90, 1000, 8000, 16_000, 600_000] {
                let mut counts = vec![0u32; topics as usize];
                (0..tokens).for_each(|_| counts[topic(topics)] += 1);
                let row: Vec<(u32, u32)> = (0..).zip(counts).filter(|it| it.1 > 0).collect();
                let (k, n) = (f64::from(topics), f64::from(tokens));
                let entries = n.min(k);
                let near = WORD + entries * entry(n / entries, k / entries);
                let written = 1.0 + RowCode::new(topics).size(&row) as f64;
                let ratio = near / written;
                assert!((0.85..1.2).contains(&ratio), "{topics} {tokens}: {near} for {written}");
            }
        }
    }

    #[test]
    fn the_approximate_logarithm_is_close() {
        for x in [1.0, 1.5, 2.0, 3.7, 1e6, 1e300] {
            let (near, exact) = (log2(x), f64::log2(x));
            assert!((exact - 0.09..=exact + 1e-9).contains(&near), "{x}: {near} for {exact}");
        }
    }
}
