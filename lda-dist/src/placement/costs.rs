//! What words cost the partition that they come to, before anything is known of their topics.
//!
//! A word's row goes to every shard that pulls it. A word that is pushed costs its tokens, and the rows of its
//! documents, which are sent to a partition once for all of its words: so many words that are pushed cost less than
//! each alone, and what a partition costs is no sum over words. A [`Load`] is therefore counted up, and then reckoned.
//!
//! What a word costs changes while topics are found. At first its row has as many topics as tokens, or all K; later it
//! has few, and the fewer the more its tokens are crowded into few documents, and documents' rows are shorter too. So
//! there are several **kinds** of cost, each right at another time or for something else than bytes. With n tokens in d
//! of all D documents, in s = min(n, P) of P shards:
//!
//! | kind | of a word that is pulled | pushed |
//! |---|---|---|
//! | bytes at first | s rows of min(n, K) entries, 2 n gained | rows of d documents, n tokens |
//! | bytes when documents' rows are shorter | s rows of min(n, K) entries, 2 n gained | shorter rows of d documents, n tokens |
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
//! n^0.75 (d/n)^3.3 after 20, with an error of a quarter). DocumentLengths of entries are fitted to [what is
//! written](crate::wire) of topics at random, K = 1,000 and 8,000. Words are pushed as on reddit, K = 8,000, 300
//! shards: in the first epoch half of the tokens of a word with 8,000 to 11,000 are, in the second of one with twice as
//! many.
//!
//! Documents count as if all had the same length, which is the root of the mean square. The mean is too short, as of
//! long documents more words are pushed; that of tokens' documents is too long, as rows of long documents are dear and
//! words are pulled for them. On reddit with 300 shards rows of documents that were pushed have 59 entries in the mean;
//! the root is 53, the mean 19, that of tokens' documents 147.
//!
//! Numbers are of 64 bits, with sums, products, quotients and roots, which IEEE 754 rounds the same way everywhere: all
//! nodes come to the same.

use super::{DocumentLengths, WordStats, Workload};

/// Kinds of which costs of pushed words are no sums: bytes at first, and when documents' rows are shorter.
const TIMES: usize = 2;
/// What is left of documents' rows by then.
const DOCUMENTS_LATER: [f64; TIMES] = [1.0, 0.65];
/// Kinds of cost.
pub(super) const KINDS: usize = TIMES + 6;
/// What a server samples, in the last of these.
const SAMPLED: usize = TIMES;
/// Kinds that are of rows.
const ROWS: std::ops::Range<usize> = SAMPLED + 1..KINDS - 1;
/// Of each kind a number.
pub(super) type Costs = [f64; KINDS];
/// Bytes of a pushed token besides its document's row, there and back.
const TOKEN: f64 = 3.7;
/// Bytes of a word in a request, and of a row besides its entries.
const WORD: f64 = 1.5;
/// How much more than its share a pushed word bears of its documents' rows: when others are pulled their shares are
/// left to it.
const BORNE: f64 = 1.15;

/// What a word brings to a partition, or a partition to a server.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Item {
    /// What does not depend on what else is there.
    fixed: Costs,
    /// Documents of which tokens are pushed, at each time, word by word.
    pushed: [f64; TIMES],
    /// Bytes at first, were nothing pushed.
    pulled: f64,
}

impl Item {
    /// What costs so much in every way.
    pub(super) fn fixed(cost: f64) -> Self {
        Self { fixed: [cost; KINDS], pulled: cost, ..Self::default() }
    }

    /// What costs so many bytes, or so many if all were pulled, and nothing else.
    #[cfg(test)]
    pub(super) fn of_bytes(cost: f64, pulled: f64) -> Self {
        let mut item = Self { pulled, ..Self::default() };
        item.fixed[..TIMES].fill(cost);
        item
    }

    /// Whether it is too much for one of those that have so much in the mean: so far as it is pulled, in any way that
    /// bytes are reckoned, it is more than these parts of that, or more is sampled of it than one has.
    pub(super) fn is_too_much(&self, mean: &Costs, of_bytes: f64, of_rows: f64) -> bool {
        let is_more = |kind: usize, part: f64| self.fixed[kind] > mean[kind] * part;
        let is_all_pulled = self.pushed[0] == 0.0;
        (0..TIMES).any(|kind| is_more(kind, of_bytes))
            || (is_all_pulled && ROWS.into_iter().any(|kind| is_more(kind, of_rows)))
            || self.fixed[SAMPLED] > mean[SAMPLED]
    }

    /// With nothing pushed.
    pub(super) fn all_pulled(mut self) -> Self {
        self.fixed[..TIMES].fill(self.pulled);
        self.fixed[SAMPLED] = 0.0;
        Self { pushed: [0.0; TIMES], ..self }
    }

    /// As much more.
    pub(super) fn add(&mut self, more: &Self) {
        self.fixed.iter_mut().zip(more.fixed).for_each(|(sum, it)| *sum += it);
        self.pushed.iter_mut().zip(more.pushed).for_each(|(sum, it)| *sum += it);
        self.pulled += more.pulled;
    }

    /// One of so many, if all had as much.
    pub(super) fn divided(mut self, by: u32) -> Self {
        self.fixed.iter_mut().for_each(|it| *it /= f64::from(by));
        self.pushed.iter_mut().for_each(|it| *it /= f64::from(by));
        self.pulled /= f64::from(by);
        self
    }

    /// Its costs, if each document that is sent costs as much.
    pub(super) fn costs(&self, document: &[f64; TIMES]) -> Costs {
        let mut costs = self.fixed;
        (0..TIMES).for_each(|time| costs[time] += self.pushed[time] * document[time]);
        costs
    }
}

/// What each word brings to one of so many partitions.
pub(super) fn of_words(
    words: &WordStats,
    workload: &Workload,
    documents: &Documents,
    partitions: u32,
) -> Vec<Item> {
    let (topics, shards) = (f64::from(workload.topics), f64::from(workload.shards));
    // As if all words were pushed.
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

/// How much of a word's tokens are pushed that would cost so many times as much if it were pulled. Shards differ by how
/// many of its tokens they have, in documents of what lengths, and what else they push of these.
fn pushed_share(ratio: f64) -> f64 {
    ((ratio - 0.55) / 1.2).clamp(0.0, 1.0)
}

/// A word's documents are not as if at random: no two are the same. If it has this part of all, as many times as many
/// at random were as many different ones: −ln(1 − u) over u, or nearly.
fn apart(part: f64) -> f64 {
    let u = part.min(1.0);
    (6.0 - u) / (6.0 - 4.0 * u)
}

/// About how many bytes an entry of a row takes: of one topic of so many, with so many tokens.
fn entry(tokens: f64, gap: f64) -> f64 {
    0.13 * log2(1.0 + tokens) + 0.15 * log2(1.0 + gap) + 0.02
}

/// Nearly the logarithm: straight between powers of two. Of 1 and more.
fn log2(x: f64) -> f64 {
    const FRACTION: u32 = f64::MANTISSA_DIGITS - 1;
    let bits = x.to_bits();
    let fraction = (bits & ((1 << FRACTION) - 1)) as f64 / (1u64 << FRACTION) as f64;
    (bits >> FRACTION) as f64 - 1023.0 + fraction
}

/// The documents, as far as they are sent.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Documents {
    /// Entries of all documents' rows at first.
    entries: f64,
    /// Bytes of one.
    entry: f64,
    /// What of a document's entries one is, for one that is sent of a word of it: as if all were as long as the root of
    /// their mean square.
    reach: f64,
}

impl Documents {
    pub(super) fn new(workload: &Workload, words: &WordStats) -> Self {
        let tokens: f64 = words.tokens().iter().map(|&tokens| tokens as f64).sum();
        let DocumentLengths { documents, squares } = workload.lengths;
        let length = (squares as f64 / documents.max(1) as f64).sqrt().max(1.0);
        let gap = (f64::from(workload.topics) / length).max(1.0);
        let pairs: f64 = words.documents().iter().map(|&pairs| pairs as f64).sum();
        Self { entries: tokens, entry: entry(1.0, gap), reach: length / pairs.max(1.0) }
    }

    /// Bytes of documents' rows that go to a partition for which so many documents are sent, word by word. Words lie in
    /// documents as if at random: with x a document, e^-x of them have none, or nearly (1 + x/8)^-8.
    fn sent(&self, documents: f64, time: usize) -> f64 {
        let base = 1.0 + documents * self.reach / 8.0;
        let square = base * base;
        let fourth = square * square;
        let entries = self.entries * DOCUMENTS_LATER[time] * (1.0 - 1.0 / (fourth * fourth));
        self.entry * entries
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

    /// What a document costs that is sent to it.
    pub(super) fn document(&self, documents: &Documents) -> [f64; TIMES] {
        std::array::from_fn(|time| {
            let pushed = self.sum.pushed[time];
            if pushed > 0.0 { documents.sent(pushed, time) / pushed } else { 0.0 }
        })
    }

    /// As one item.
    pub(super) fn whole(&self, documents: &Documents) -> Item {
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
        let documents = Documents::new(&DEMAND, &words);
        let items = of_words(&words, &DEMAND, &documents, 2);
        let sent = 25.0 * apart(25.0 / 40_000.0);
        assert_eq!((items[0].pushed, items[1].pushed), ([0.0; 2], [sent; 2]));
        assert_eq!(items[2], Item::default());
        // All 100 topics to each of 100 shards, 800 tokens a topic; all have moved, from one topic to another.
        let row = 100.0 * (WORD + 100.0 * entry(800.0, 1.0)) + 160_000.0 * entry(1.0, 1.0);
        assert_eq!(items[0].fixed[..TIMES], [row; 2]);
        assert_eq!((items[0].fixed[TIMES], items[0].fixed[KINDS - 1]), (0.0, 100.0));
        let root = 50f64.sqrt();
        let late = 50.0 * root * root.sqrt() * 0.25;
        let rows = [2500.0, 25.0 * root, late, late / 2.0];
        let bytes = 50.0 * TOKEN;
        assert_eq!(items[1].fixed[..ROWS.start], [bytes, bytes, 50.0]);
        assert_eq!((&items[1].fixed[ROWS], items[1].fixed[KINDS - 1]), (&rows[..], 50.0));
        // Were it pulled: 50 rows of as many entries, and what they gained.
        let row = WORD + 50.0 * entry(1.0, 2.0);
        assert_eq!(items[1].pulled, 50.0 * row + 100.0 * entry(1.0, 50.0));
        let pulled = items[1].all_pulled();
        assert_eq!((pulled.pushed, pulled.fixed[0]), ([0.0; 2], items[1].pulled));
        assert_eq!((pulled.fixed[SAMPLED], &pulled.fixed[ROWS]), (0.0, &rows[..]));
    }

    #[test]
    fn some_shards_pull_what_costs_about_as_much() {
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
    fn a_document_is_sent_once() {
        // A thousand of fifty entries.
        let documents = Documents { entries: 50_000.0, entry: 2.0, reach: 1e-3 };
        // Nearly each of another word is another.
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
    fn documents_are_as_long_as_the_root_of_their_mean_square() {
        let words = WordStats::new(vec![600, 400], vec![100, 100]).unwrap();
        let of = |lengths| Documents::new(&Workload { topics: 80, shards: 4, lengths }, &words);
        let even = of(DocumentLengths::even(100, 1000));
        assert_eq!(
            even,
            Documents { entries: 1000.0, entry: entry(1.0, 8.0), reach: 10.0 / 200.0 }
        );
        // Three of ten tokens and one of seventy.
        let squares = 25 * (3 * 100 + 70 * 70);
        let skewed = of(DocumentLengths { documents: 100, squares });
        let root = 1300f64.sqrt();
        assert_eq!((skewed.reach, skewed.entry), (root / 200.0, entry(1.0, 80.0 / root)));
        // Without any document they are of a token.
        assert_eq!(of(DocumentLengths::default()).reach, 1.0 / 200.0);
    }

    #[test]
    fn entries_are_as_long_as_they_are_written() {
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
    fn logarithms_are_near() {
        for x in [1.0, 1.5, 2.0, 3.7, 1e6, 1e300] {
            let (near, exact) = (log2(x), f64::log2(x));
            assert!((exact - 0.09..=exact + 1e-9).contains(&near), "{x}: {near} for {exact}");
        }
    }
}
