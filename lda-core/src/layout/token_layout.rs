//! Token axis of the layout: one slot per token, in blocks (document range, word range), each
//! ordered by word or by document.

mod parts;

use std::ops::Range;

use crate::corpus::{Corpus, Document};
use crate::layout::{WordRanges, greedy_partition};

pub(crate) use parts::LayoutParts;

/// Order of tokens in memory, which is the order of sampling.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Order {
    /// Word by word; a word's tokens by document.
    #[default]
    ByWord,
    /// Document by document; a document's tokens by ascending word id.
    ByDocument,
}

impl Order {
    /// Both orders, in the order of their parts in a block.
    pub const ALL: [Self; 2] = [Self::ByWord, Self::ByDocument];
}

/// Assignment of a block's tokens to orders.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TokenOrder {
    /// All tokens in one order.
    All(Order),
    /// By word if the word has at least as many tokens as the document, otherwise by document
    /// (ZenLDAHybrid's rule): a visit to the longer of the two rows serves more tokens, and the row
    /// that is read for each of them is the shorter one.
    ByDegree,
}

impl TokenOrder {
    /// The order of the tokens of a word that has `word` tokens in a document that has `document`.
    #[inline]
    pub fn order(self, word: u64, document: u64) -> Order {
        match self {
            Self::All(order) => order,
            Self::ByDegree if word >= document => Order::ByWord,
            Self::ByDegree => Order::ByDocument,
        }
    }
}

/// Run of the tokens of one word, or of one document, in a block: one visit of a sampler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RowRun {
    /// Local row of the word or document in its range.
    pub row: u32,
    /// End of its slots, counted from the block's first; they begin at the end of the previous run.
    pub end: u32,
}

/// Bounds of the visits and slots of one order in a block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlockBounds {
    /// Indices into the visits.
    pub visits: Range<usize>,
    /// Slots.
    pub slots: Range<usize>,
}

/// Layout of one set of documents.
#[derive(Clone, Debug)]
pub struct TokenLayout {
    order: TokenOrder,
    /// Position → document id; positions of a range stand together, shorter documents first.
    documents: Vec<u32>,
    /// Position → tokens.
    lengths: Vec<u32>,
    /// Range → its first position; one more entry at the end.
    starts: Vec<u32>,
    /// Block (document range · G + word range), twice: its first visit by word, its first by
    /// document; one more entry at the end.
    visit_starts: Vec<usize>,
    /// The same boundaries, in slots.
    slot_starts: Vec<usize>,
    visits: Vec<RowRun>,
    /// Slot → position on the axis that is not visited, counted from its range's start.
    partner: Vec<u32>,
}

impl TokenLayout {
    /// Lays out the tokens of `documents` (ids into `corpus`; empty ones are left out). There are
    /// as many document ranges as `words` has ranges.
    pub fn new(corpus: &Corpus, documents: &[u32], words: &WordRanges, order: TokenOrder) -> Self {
        let ranges = words.num_ranges();
        let held: Vec<u32> = documents
            .iter()
            .copied()
            .filter(|&d| !corpus.document(d as usize).is_empty())
            .collect();
        let length = |i: u32| corpus.document(held[i as usize] as usize).len();
        let bins = greedy_partition((0..held.len() as u32).map(length), ranges);
        let mut slots = Self {
            order,
            documents: Vec::with_capacity(held.len()),
            lengths: Vec::with_capacity(held.len()),
            starts: vec![0],
            visit_starts: vec![0],
            slot_starts: vec![0],
            visits: Vec::new(),
            partner: Vec::new(),
        };
        for bin in bins {
            // Assigned longest first, but positions grow with length.
            for &i in bin.iter().rev() {
                slots.documents.push(held[i as usize]);
                slots.lengths.push(length(i) as u32);
            }
            slots.starts.push(slots.documents.len() as u32);
        }
        let tokens: u64 = slots.lengths.iter().map(|&n| u64::from(n)).sum();
        slots.partner = vec![0; tokens as usize];
        let mut cursor = vec![0u32; words.num_words()];
        for range in 0..ranges {
            slots.place(corpus, words, range, &mut cursor);
        }
        slots
    }

    /// Distributes one document range to its blocks: by word with a counting sort over word
    /// positions, by document in the order of the corpus.
    fn place(&mut self, corpus: &Corpus, words: &WordRanges, range: usize, cursor: &mut [u32]) {
        cursor.fill(0);
        let documents = self.starts[range] as usize..self.starts[range + 1] as usize;
        let mut by_document: Vec<(Vec<RowRun>, Vec<u32>)> =
            vec![Default::default(); words.num_ranges()];
        for (local, &d) in self.documents[documents.clone()].iter().enumerate() {
            let document = corpus.document(d as usize);
            let length = self.length_for_order(document);
            for (&word, &count) in document.words.iter().zip(document.counts) {
                match self.order_of(words, word, length) {
                    Order::ByWord => cursor[words.position(word) as usize] += count,
                    Order::ByDocument => {
                        let (word_range, row) = words.locate(word);
                        let (visits, partner) = &mut by_document[word_range];
                        partner.extend(std::iter::repeat_n(row as u32, count as usize));
                        let visit = RowRun { row: local as u32, end: partner.len() as u32 };
                        match visits.last_mut() {
                            Some(last) if last.row == visit.row => *last = visit,
                            _ => visits.push(visit),
                        }
                    }
                }
            }
        }
        let base = *self.slot_starts.last().expect("starts with 0");
        let mut next = 0;
        for (word_range, (visits, partner)) in by_document.into_iter().enumerate() {
            let block = next;
            let first = words.start(word_range);
            for local in 0..words.words(word_range).len() as u32 {
                let tokens = &mut cursor[(first + local) as usize];
                if *tokens > 0 {
                    self.visits.push(RowRun { row: local, end: next - block + *tokens });
                }
                (*tokens, next) = (next, next + *tokens);
            }
            self.end_part(base + next as usize);
            let slots = base + next as usize..base + next as usize + partner.len();
            next += partner.len() as u32;
            self.partner[slots].copy_from_slice(&partner);
            self.visits.extend(visits);
            self.end_part(base + next as usize);
        }
        for (local, &d) in self.documents[documents].iter().enumerate() {
            let document = corpus.document(d as usize);
            let length = self.length_for_order(document);
            for (&word, &count) in document.words.iter().zip(document.counts) {
                if self.order_of(words, word, length) == Order::ByWord {
                    let at = &mut cursor[words.position(word) as usize];
                    let slots = base + *at as usize..base + (*at + count) as usize;
                    self.partner[slots].fill(local as u32);
                    *at += count;
                }
            }
        }
    }

    /// Ends one part of a block, whose slots end at `slots`.
    fn end_part(&mut self, slots: usize) {
        self.visit_starts.push(self.visits.len());
        self.slot_starts.push(slots);
    }

    /// Tokens of a document, if the order of its tokens depends on them: they are a sum over its words.
    fn length_for_order(&self, document: Document<'_>) -> u64 {
        if self.order == TokenOrder::ByDegree { document.len() } else { 0 }
    }

    /// Order of the tokens of `word` in a document of `length` tokens.
    #[inline]
    fn order_of(&self, words: &WordRanges, word: u32, length: u64) -> Order {
        match self.order {
            TokenOrder::All(order) => order,
            rule => rule.order(words.frequency(word), length),
        }
    }

    /// Assignment of tokens to orders.
    pub fn token_order(&self) -> TokenOrder {
        self.order
    }

    /// Number of ranges G on each axis.
    pub fn num_ranges(&self) -> usize {
        self.starts.len() - 1
    }

    /// Number of tokens.
    pub fn num_tokens(&self) -> usize {
        *self.slot_starts.last().expect("starts with 0")
    }

    /// Frees the partners, 4 bytes per token: a sampler that walks documents by the
    /// [`InverseIndex`] does not need them.
    pub fn drop_partners(&mut self) {
        self.partner = Vec::new();
    }

    /// Document ids of range `range`, by local position.
    pub fn documents(&self, range: usize) -> &[u32] {
        &self.documents[self.starts[range] as usize..self.starts[range + 1] as usize]
    }

    /// Tokens of each document of range `range`, by local position, ascending.
    pub fn lengths(&self, range: usize) -> &[u32] {
        &self.lengths[self.starts[range] as usize..self.starts[range + 1] as usize]
    }

    /// Slots of document range `range`.
    pub fn range_slots(&self, range: usize) -> Range<usize> {
        let parts = self.num_ranges() * Order::ALL.len();
        self.slot_starts[range * parts]..self.slot_starts[(range + 1) * parts]
    }

    /// Bounds of the tokens that lie in `order` in the block of document range `range` and word
    /// range `word_range`.
    pub fn block(&self, range: usize, word_range: usize, order: Order) -> BlockBounds {
        let b = (range * self.num_ranges() + word_range) * Order::ALL.len() + order as usize;
        BlockBounds {
            visits: self.visit_starts[b]..self.visit_starts[b + 1],
            slots: self.slot_starts[b]..self.slot_starts[b + 1],
        }
    }

    /// All visits; [`block`](Self::block) gives those of a block.
    pub fn visits(&self) -> &[RowRun] {
        &self.visits
    }

    /// Local position of each slot on the axis that is not visited: the document in order by word,
    /// the word in order by document. Empty after [`drop_partners`](Self::drop_partners).
    pub fn partner(&self) -> &[u32] {
        &self.partner
    }

    /// Memory in bytes.
    pub fn memory(&self) -> u64 {
        (self.documents.len() * 8
            + self.starts.len() * 4
            + (self.visit_starts.len() + self.slot_starts.len()) * 8
            + self.visits.len() * size_of::<RowRun>()
            + self.partner.len() * 4) as u64
    }

    /// Calls `f(local document, slot)` for all slots of range `range`, in their order.
    ///
    /// # Panics
    /// If the partners were dropped.
    pub fn for_each_slot(&self, range: usize, mut f: impl FnMut(usize, usize)) {
        for word_range in 0..self.num_ranges() {
            let by_word = self.block(range, word_range, Order::ByWord).slots;
            for (slot, &document) in by_word.clone().zip(&self.partner[by_word]) {
                f(document as usize, slot);
            }
            let by_document = self.block(range, word_range, Order::ByDocument);
            let (base, mut slot) = (by_document.slots.start, by_document.slots.start);
            for visit in &self.visits[by_document.visits] {
                let end = base + visit.end as usize;
                (slot..end).for_each(|slot| f(visit.row as usize, slot));
                slot = end;
            }
        }
    }

    /// Visits range `range` document by document: `f(local position, word id, slots)` for each
    /// pair, words in the corpus's ascending order. Slots count from the start of the range.
    pub fn for_each_pair(
        &self,
        corpus: &Corpus,
        words: &WordRanges,
        range: usize,
        mut f: impl FnMut(usize, u32, Range<u32>),
    ) {
        // Next slot of each word, and next slot of each block's tokens in order by document.
        let mut of_word = vec![0u32; words.num_words()];
        let mut of_block = vec![0u32; words.num_ranges()];
        let base = self.range_slots(range).start;
        for (word_range, of_block) in of_block.iter_mut().enumerate() {
            let by_word = self.block(range, word_range, Order::ByWord);
            let block = (by_word.slots.start - base) as u32;
            let mut slot = block;
            for visit in &self.visits[by_word.visits] {
                of_word[(words.start(word_range) + visit.row) as usize] = slot;
                slot = block + visit.end;
            }
            *of_block = slot;
        }
        for (local, &d) in self.documents(range).iter().enumerate() {
            let document = corpus.document(d as usize);
            let length = self.length_for_order(document);
            for (&word, &count) in document.words.iter().zip(document.counts) {
                let at = match self.order_of(words, word, length) {
                    Order::ByWord => &mut of_word[words.position(word) as usize],
                    Order::ByDocument => &mut of_block[words.locate(word).0],
                };
                f(local, word, *at..*at + count);
                *at += count;
            }
        }
    }
}

/// Inverse index: for each document the slots of its tokens, ascending (LDA* Fig. 4; CSC positions
/// by document).
#[derive(Clone, Debug)]
pub struct InverseIndex {
    /// Range by range, document by document; counted from the range's first slot.
    slots: Vec<u32>,
    /// Range → its first entry; one more at the end.
    starts: Vec<usize>,
}

impl InverseIndex {
    /// Builds the index in one pass over the partners.
    ///
    /// # Panics
    /// If the partners were dropped, or the tokens are not in order by word.
    pub fn new(slots: &TokenLayout) -> Self {
        assert_eq!(
            slots.order,
            TokenOrder::All(Order::ByWord),
            "where tokens lie by document, no index is needed"
        );
        let mut inverse = vec![0; slots.num_tokens()];
        let mut starts = vec![0];
        let mut cursor = Vec::new();
        for range in 0..slots.num_ranges() {
            let bounds = slots.range_slots(range);
            cursor.clear();
            cursor.extend(slots.lengths(range).iter().scan(0u32, |next, &n| {
                let start = *next;
                *next += n;
                Some(start)
            }));
            let to = &mut inverse[bounds.clone()];
            for (slot, &local) in slots.partner()[bounds.clone()].iter().enumerate() {
                let at = &mut cursor[local as usize];
                to[*at as usize] = slot as u32;
                *at += 1;
            }
            starts.push(bounds.end);
        }
        Self { slots: inverse, starts }
    }

    /// Slots of range `range`, documents one after the other.
    pub fn range(&self, range: usize) -> &[u32] {
        &self.slots[self.starts[range]..self.starts[range + 1]]
    }

    /// Memory in bytes.
    pub fn memory(&self) -> u64 {
        (self.slots.len() * 4 + self.starts.len() * 8) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each token lies once in its block, in the part of the longer of its two rows, with its own
    /// document or word as the partner.
    #[test]
    fn by_degree_tokens_lie_by_the_longer_row() {
        let documents = (0..40u32).map(|d| (0..1 + d % 30).map(move |i| (d * 31 + i * i) % 97));
        let corpus = Corpus::from_tokens(documents).unwrap();
        let frequencies = corpus.word_frequencies();
        let words = WordRanges::new(&frequencies, 3);
        let all: Vec<u32> = (0..40).collect();
        let slots = TokenLayout::new(&corpus, &all, &words, TokenOrder::ByDegree);
        let mut seen = vec![false; slots.num_tokens()];
        let mut of_order = [0; 2];
        for range in 0..3 {
            let base = slots.range_slots(range).start;
            slots.for_each_pair(&corpus, &words, range, |local, word, pair| {
                let length = corpus.doc_length(slots.documents(range)[local] as usize);
                let by_word = frequencies[word as usize] >= length;
                let order = if by_word { Order::ByWord } else { Order::ByDocument };
                let (word_range, row) = words.locate(word);
                let part = slots.block(range, word_range, order).slots;
                for slot in pair {
                    let slot = base + slot as usize;
                    assert!(part.contains(&slot), "word {word}, length {length}");
                    assert!(!std::mem::replace(&mut seen[slot], true));
                    let partner = if by_word { local } else { row };
                    assert_eq!(slots.partner()[slot] as usize, partner);
                    of_order[order as usize] += 1;
                }
            });
        }
        assert!(seen.into_iter().all(|seen| seen));
        assert!(of_order.iter().all(|&tokens| tokens > 20), "{of_order:?}");
    }
}
