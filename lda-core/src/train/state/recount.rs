//! Counts of documents and words, recounted from the assignments.

use super::{State, TokenSet};
use crate::corpus::Corpus;
use crate::counts::TopicIndex;
use crate::layout::{BlockBounds, Order, RowRun, TokenLayout, WordRanges};
use crate::train::seed_counts::of_word;

impl<T: TopicIndex> TokenSet<T> {
    /// Calls `f(range, local document, counts)` for every document, in order of positions; `counts`
    /// lists (topic, tokens) in the order of the document's tokens.
    pub fn recount_documents(
        &self,
        corpus: &Corpus,
        words: &WordRanges,
        topics: usize,
        mut f: impl FnMut(usize, usize, &[(u32, u32)]),
    ) {
        let mut tally = Tally::new(topics);
        for range in 0..self.slots.num_ranges() {
            let base = self.slots.range_slots(range).start;
            let mut current = 0;
            self.slots.for_each_pair(corpus, words, range, |local, _, slots| {
                if local != current {
                    f(range, current, tally.take());
                    current = local;
                }
                for slot in slots {
                    tally.add(self.topic(base + slot as usize), 1);
                }
            });
            if !self.slots.documents(range).is_empty() {
                f(range, current, tally.take());
            }
        }
    }
}

impl<T: TopicIndex> State<T> {
    /// Calls `f(range, local word, counts)` for every word, in order of positions; `counts` lists
    /// (topic, tokens) in the order of the word's tokens, then pseudo-counts.
    pub fn recount_words(&self, mut f: impl FnMut(usize, usize, &[(u32, u32)])) {
        let mut tally = Tally::new(self.topics);
        for range in 0..self.words.num_ranges() {
            tally_words(&self.sets, &self.words, range, &mut tally, |local, tally| {
                for &(topic, count) in of_word(&self.pseudo, self.words.words(range)[local]) {
                    tally.add(topic, count);
                }
                f(range, local, tally.take());
            });
        }
    }
}

/// Calls `f(local word, tally)` for every word of a range, in order of positions, with the topics of its tokens
/// in `sets`; `f` empties the tally.
pub(super) fn tally_words<T: TopicIndex>(
    sets: &[TokenSet<T>],
    words: &WordRanges,
    range: usize,
    tally: &mut Tally,
    mut f: impl FnMut(usize, &mut Tally),
) {
    let mut columns: Vec<(&TokenSet<T>, Column<'_>)> = Vec::new();
    for set in sets {
        for documents in 0..set.slots.num_ranges() {
            let blocks = Order::ALL.map(|order| (order, set.slots.block(documents, range, order)));
            for (order, block) in blocks {
                if !block.slots.is_empty() {
                    let column = Column::new(&set.slots, block, order, range, words);
                    columns.push((set, column));
                }
            }
        }
    }
    for local in 0..words.words(range).len() {
        for (set, column) in &mut columns {
            column.take(local as u32, |slot| tally.add(set.topic(slot), 1));
        }
        f(local, tally);
    }
}

/// Tokens of a block that lie in one order, by local word. INVARIANT: words are taken in ascending
/// order.
#[derive(Debug)]
enum Column<'a> {
    /// The tokens lie by word.
    Visits(Cursor<'a>),
    /// The tokens lie by document; their slots were sorted by word.
    Sorted {
        /// Slots by word.
        slots: Vec<u32>,
        /// End of each word's slots.
        ends: Vec<u32>,
        base: usize,
    },
}

impl<'a> Column<'a> {
    fn new(
        slots: &'a TokenLayout,
        bounds: BlockBounds,
        order: Order,
        range: usize,
        words: &WordRanges,
    ) -> Self {
        let base = bounds.slots.start;
        match order {
            Order::ByWord => {
                let visits = &slots.visits()[bounds.visits];
                Self::Visits(Cursor { visits, base, start: base })
            }
            Order::ByDocument => {
                let partner = &slots.partner()[bounds.slots];
                let mut ends = vec![0; words.words(range).len() + 1];
                partner.iter().for_each(|&word| ends[word as usize + 1] += 1);
                (1..ends.len()).for_each(|word| ends[word] += ends[word - 1]);
                let mut sorted = vec![0; partner.len()];
                for (slot, &word) in partner.iter().enumerate() {
                    let at = &mut ends[word as usize];
                    sorted[*at as usize] = slot as u32;
                    *at += 1;
                }
                Self::Sorted { slots: sorted, ends, base }
            }
        }
    }

    fn take(&mut self, local: u32, f: impl FnMut(usize)) {
        match self {
            Self::Visits(cursor) => cursor.take(local).for_each(f),
            Self::Sorted { slots, ends, base } => {
                let local = local as usize;
                let start = local.checked_sub(1).map_or(0, |before| ends[before]);
                let slots = &slots[start as usize..ends[local] as usize];
                slots.iter().map(|&slot| *base + slot as usize).for_each(f);
            }
        }
    }
}

/// Walks a block's visits by local word.
#[derive(Debug)]
struct Cursor<'a> {
    visits: &'a [RowRun],
    base: usize,
    start: usize,
}

impl Cursor<'_> {
    fn take(&mut self, local: u32) -> std::ops::Range<usize> {
        match self.visits.split_first() {
            Some((visit, rest)) if visit.row == local => {
                let slots = self.start..self.base + visit.end as usize;
                (self.visits, self.start) = (rest, slots.end);
                slots
            }
            _ => 0..0,
        }
    }
}

/// Counts topics in a dense scratch and lists them in order of first sight.
#[derive(Debug)]
pub(super) struct Tally {
    counts: Vec<u32>,
    seen: Vec<u32>,
    list: Vec<(u32, u32)>,
}

impl Tally {
    pub fn new(topics: usize) -> Self {
        Self { counts: vec![0; topics], seen: Vec::new(), list: Vec::new() }
    }

    pub fn add(&mut self, topic: u32, tokens: u32) {
        let count = &mut self.counts[topic as usize];
        if *count == 0 {
            self.seen.push(topic);
        }
        *count += tokens;
    }

    /// The counts so far; the tally is empty afterwards.
    pub fn take(&mut self) -> &[(u32, u32)] {
        self.list.clear();
        for topic in self.seen.drain(..) {
            self.list.push((topic, std::mem::take(&mut self.counts[topic as usize])));
        }
        &self.list
    }
}
