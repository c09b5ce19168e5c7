//! The state of a run: assignments z and the counts that cache them.

use crate::corpus::Corpus;
use crate::counts::{Density, Rows, RowsTooLarge, TopicIndex};
use crate::layout::{BlockBounds, InverseIndex, Order, RowRun, TokenLayout, WordRanges};
use crate::sampler::{Requires, WordTables, padded};
use crate::train::assignments::Assignments;
use crate::train::exclusion::Age;
use crate::train::seed_counts::{Pseudo, PseudoCounts, of_word};
use crate::train::start::First;

/// The documents that one sampler samples, and their tokens.
#[derive(Debug)]
pub(crate) struct TokenSet<T> {
    /// Keeps the streams of two sets apart.
    pub shard: u16,
    pub slots: TokenLayout,
    /// 1 + M values a slot: its topic, then its pending proposals.
    pub tokens: Vec<T>,
    /// 1 + M.
    pub stride: usize,
    /// C_d, one arena per document range; empty if the sampler recounts documents itself.
    pub rows: Vec<Rows<T>>,
    pub inverse: Option<InverseIndex>,
    /// Ages of the tokens, if converged ones are excluded.
    pub ages: Option<Vec<Age>>,
}

/// All counts and assignments.
#[derive(Debug)]
pub(crate) struct State<T> {
    pub topics: usize,
    pub words: WordRanges,
    /// C_w, one arena per word range; empty if the sampler recounts words itself.
    pub word_rows: Vec<Rows<T>>,
    /// Stale tables by word range; empty if no sampler requires them.
    pub tables: Vec<WordTables<T>>,
    /// Pseudo-counts B_wk, which are included in C_w and C_k.
    pub pseudo: Pseudo,
    /// Pseudo-counts as tokens that do not move, by word range; empty if no sampler recounts words.
    pub still: Vec<Still<T>>,
    /// C_k, padded with zeros.
    pub totals: Vec<u32>,
    pub sets: Vec<TokenSet<T>>,
}

/// Tokens and pseudo-counts of each word of a range.
pub(crate) fn room<'a>(
    words: &'a WordRanges,
    range: usize,
    pseudo: &'a Pseudo,
) -> impl ExactSizeIterator<Item = u64> + use<'a> {
    let pseudo = |&word| pseudo.as_ref().map_or(0, |pseudo| pseudo.of_word(word as usize));
    let both = words.words(range).iter().zip(words.frequencies(range));
    both.map(move |(word, &tokens)| tokens + pseudo(word))
}

/// Tokens that do not move, of the words of a range.
#[derive(Debug)]
pub(crate) struct Still<T> {
    /// Words, ascending by local id.
    pub visits: Vec<RowRun>,
    /// Topic of each token.
    pub z: Vec<T>,
}

impl<T: TopicIndex> Still<T> {
    fn new(pseudo: &PseudoCounts, words: &[u32]) -> Self {
        let (mut visits, mut z) = (Vec::new(), Vec::new());
        for (row, &word) in (0..).zip(words) {
            for &(topic, count) in pseudo.word(word as usize) {
                z.extend(std::iter::repeat_n(T::new(topic), count as usize));
            }
            if visits.last().map_or(0, |visit: &RowRun| visit.end as usize) < z.len() {
                visits.push(RowRun { row, end: z.len() as u32 });
            }
        }
        Self { visits, z }
    }
}

impl<T: TopicIndex> TokenSet<T> {
    fn new(
        shard: u16,
        corpus: &Corpus,
        documents: &[u32],
        words: &WordRanges,
        topics: usize,
        requires: Requires,
        mh_steps: usize,
    ) -> Result<Self, RowsTooLarge> {
        let mut slots = TokenLayout::new(corpus, documents, words, requires.token_order);
        let stride = if requires.proposals { 1 + mh_steps } else { 1 };
        let rows = match requires.document_rows {
            None => Vec::new(),
            Some(density) => (0..slots.num_ranges())
                .map(|range| {
                    let lengths = slots.lengths(range).iter().map(|&n| u64::from(n));
                    Rows::new(topics, lengths, density)
                })
                .collect::<Result<_, _>>()?,
        };
        let inverse = requires.proposals.then(|| {
            let inverse = InverseIndex::new(&slots);
            slots.drop_partners();
            inverse
        });
        let tokens = vec![T::default(); slots.num_tokens() * stride];
        Ok(Self { shard, slots, tokens, stride, rows, inverse, ages: None })
    }

    /// Topic of the token in `slot`.
    #[inline]
    pub fn topic(&self, slot: usize) -> u32 {
        self.tokens[slot * self.stride].get()
    }

    /// Gives every token its first topic; pending proposals equal it.
    fn initialise(&mut self, corpus: &Corpus, words: &WordRanges, first: First<'_>) {
        for range in 0..self.slots.num_ranges() {
            let base = self.slots.range_slots(range).start;
            let documents = self.slots.documents(range);
            let (tokens, stride) = (&mut self.tokens, self.stride);
            let mut current = usize::MAX;
            let mut topics = None;
            self.slots.for_each_pair(corpus, words, range, |local, word, slots| {
                if local != current {
                    current = local;
                    topics = Some(first.of_document(documents[local]));
                }
                let topics = topics.as_mut().expect("set at the first pair").of_word(word);
                for (slot, topic) in slots.zip(topics) {
                    let slot = base + slot as usize;
                    tokens[slot * stride..(slot + 1) * stride].fill(T::new(topic));
                }
            });
        }
    }

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
    /// Lays out `sets` (documents and what their sampler requires), gives tokens their first topics
    /// and counts them.
    pub fn new(
        corpus: &Corpus,
        topics: usize,
        ranges: usize,
        sets: &[(Vec<u32>, Requires)],
        mh_steps: usize,
        first: First<'_>,
        pseudo: &Pseudo,
    ) -> Result<Self, RowsTooLarge> {
        let words = WordRanges::new(&corpus.word_frequencies(), ranges);
        let mut state = Self {
            topics,
            word_rows: Vec::new(),
            tables: Vec::new(),
            pseudo: pseudo.clone(),
            still: Vec::new(),
            totals: vec![0; padded(topics)],
            sets: Vec::with_capacity(sets.len()),
            words,
        };
        for (shard, (documents, requires)) in sets.iter().enumerate() {
            let mut set = TokenSet::new(
                shard as u16,
                corpus,
                documents,
                &state.words,
                topics,
                *requires,
                mh_steps,
            )?;
            set.initialise(corpus, &state.words, first);
            state.sets.push(set);
        }
        if sets.iter().any(|(_, requires)| requires.word_rows) {
            state.word_rows = state.empty_word_rows()?;
        }
        if sets.iter().any(|(_, requires)| requires.word_tables) {
            let table = |range| WordTables::new(topics, state.word_room(range));
            state.tables = (0..ranges).map(table).collect();
        }
        if let Some(pseudo) = pseudo
            && sets.iter().any(|(_, requires)| requires.proposals)
        {
            let still = |range| Still::new(pseudo, state.words.words(range));
            state.still = (0..ranges).map(still).collect();
        }
        state.rebuild(corpus);
        Ok(state)
    }

    /// The state of an empty corpus; takes next to no memory.
    pub fn empty() -> Self {
        Self {
            topics: 0,
            words: WordRanges::new(&[], 1),
            word_rows: Vec::new(),
            tables: Vec::new(),
            pseudo: None,
            still: Vec::new(),
            totals: Vec::new(),
            sets: Vec::new(),
        }
    }

    /// Empty word rows with capacity for every token and pseudo-count.
    pub fn empty_word_rows(&self) -> Result<Vec<Rows<T>>, RowsTooLarge> {
        (0..self.words.num_ranges())
            .map(|range| Rows::new(self.topics, self.word_room(range), Density::Auto))
            .collect()
    }

    /// Tokens and pseudo-counts of each word of a range.
    fn word_room(&self, range: usize) -> impl ExactSizeIterator<Item = u64> {
        room(&self.words, range, &self.pseudo)
    }

    /// C_k of pseudo-counts alone.
    fn pseudo_totals(&self) -> Vec<u32> {
        let mut totals = vec![0; self.totals.len()];
        for &(topic, count) in self.pseudo.iter().flat_map(|pseudo| &pseudo.entries) {
            totals[topic as usize] += count;
        }
        totals
    }

    /// Recounts everything from the assignments.
    pub fn rebuild(&mut self, corpus: &Corpus) {
        self.totals = self.pseudo_totals();
        for set in &mut self.sets {
            for slot in 0..set.slots.num_tokens() {
                self.totals[set.topic(slot) as usize] += 1;
            }
            if !set.rows.is_empty() {
                let mut rows = std::mem::take(&mut set.rows);
                set.recount_documents(corpus, &self.words, self.topics, |range, local, counts| {
                    rows[range].write(local, counts.iter().copied());
                });
                set.rows = rows;
            }
        }
        if !self.word_rows.is_empty() {
            let mut rows = std::mem::take(&mut self.word_rows);
            self.recount_words(|range, local, counts| {
                rows[range].write(local, counts.iter().copied());
            });
            self.word_rows = rows;
        }
    }

    /// Calls `f(range, local word, counts)` for every word, in order of positions; `counts` lists
    /// (topic, tokens) in the order of the word's tokens, then pseudo-counts.
    pub fn recount_words(&self, mut f: impl FnMut(usize, usize, &[(u32, u32)])) {
        let mut tally = Tally::new(self.topics);
        for range in 0..self.words.num_ranges() {
            let mut columns: Vec<(&TokenSet<T>, Column<'_>)> = Vec::new();
            for set in &self.sets {
                for documents in 0..set.slots.num_ranges() {
                    let blocks =
                        Order::ALL.map(|order| (order, set.slots.block(documents, range, order)));
                    for (order, block) in blocks {
                        if !block.slots.is_empty() {
                            let column = Column::new(&set.slots, block, order, range, &self.words);
                            columns.push((set, column));
                        }
                    }
                }
            }
            for local in 0..self.words.words(range).len() {
                for (set, column) in &mut columns {
                    column.take(local as u32, |slot| tally.add(set.topic(slot), 1));
                }
                for &(topic, count) in of_word(&self.pseudo, self.words.words(range)[local]) {
                    tally.add(topic, count);
                }
                f(range, local, tally.take());
            }
        }
    }

    /// The topic of every token.
    pub fn assignments(&self, corpus: &Corpus) -> Assignments {
        let mut offsets = Vec::with_capacity(corpus.num_documents() + 1);
        offsets.push(0);
        let mut next = 0;
        for d in 0..corpus.num_documents() {
            next += corpus.document(d).len();
            offsets.push(next);
        }
        let mut topics = vec![0; next as usize];
        for set in &self.sets {
            for range in 0..set.slots.num_ranges() {
                let base = set.slots.range_slots(range).start;
                let documents = set.slots.documents(range);
                let (mut current, mut at) = (usize::MAX, 0);
                set.slots.for_each_pair(corpus, &self.words, range, |local, _, slots| {
                    if local != current {
                        (current, at) = (local, offsets[documents[local] as usize] as usize);
                    }
                    for slot in slots {
                        topics[at] = set.topic(base + slot as usize);
                        at += 1;
                    }
                });
            }
        }
        Assignments::from_parts(offsets, topics)
    }

    /// Tracks from now on how settled each token is.
    pub fn track_convergence(&mut self) {
        for set in &mut self.sets {
            set.ages = Some(vec![Age::default(); set.slots.num_tokens()]);
        }
    }

    /// Bytes held.
    pub fn memory(&self) -> u64 {
        let rows = |rows: &[Rows<T>]| rows.iter().map(Rows::memory).sum::<u64>();
        let sets: u64 = self
            .sets
            .iter()
            .map(|set| {
                set.slots.memory()
                    + (set.tokens.len() * size_of::<T>()) as u64
                    + rows(&set.rows)
                    + set.inverse.as_ref().map_or(0, InverseIndex::memory)
                    + set.ages.as_ref().map_or(0, |ages| ages.len() as u64)
            })
            .sum();
        let tables: u64 = self.tables.iter().map(WordTables::memory).sum();
        let pseudo = self.pseudo.as_ref().map_or(0, |pseudo| pseudo.memory() as u64);
        let still = |still: &Still<T>| still.visits.len() * 8 + still.z.len() * size_of::<T>();
        let still = self.still.iter().map(still).sum::<usize>() as u64;
        let counts = rows(&self.word_rows) + tables + self.totals.len() as u64 * 4;
        self.words.memory() + counts + pseudo + still + sets
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

/// The compared rows of counts.
#[derive(Clone, Copy)]
enum Axis {
    Document,
    Word,
}

/// Counts that differ from a recount of the assignments: a bug in a sampler, or damaged memory. Rows
/// are (topic, count) by ascending topic.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CountsError {
    /// A total C_k.
    #[error("C_k of topic {topic} is {found}, not {expected}")]
    Total {
        /// Topic k.
        topic: u32,
        /// C_k as the run holds it.
        found: u32,
        /// C_k by a recount.
        expected: u32,
    },
    /// A document's row C_d.
    #[error("C_d of document {document} is {found:?}, not {expected:?}")]
    Document {
        /// Document id.
        document: u32,
        /// The row as the run holds it.
        found: Vec<(u32, u32)>,
        /// The row by a recount.
        expected: Vec<(u32, u32)>,
    },
    /// A word's row C_w.
    #[error("C_w of word {word} is {found:?}, not {expected:?}")]
    Word {
        /// Word id.
        word: u32,
        /// The row as the run holds it.
        found: Vec<(u32, u32)>,
        /// The row by a recount.
        expected: Vec<(u32, u32)>,
    },
}

/// Counts topics in a dense scratch and lists them in order of first sight.
#[derive(Debug)]
struct Tally {
    counts: Vec<u32>,
    seen: Vec<u32>,
    list: Vec<(u32, u32)>,
}

impl Tally {
    fn new(topics: usize) -> Self {
        Self { counts: vec![0; topics], seen: Vec::new(), list: Vec::new() }
    }

    fn add(&mut self, topic: u32, tokens: u32) {
        let count = &mut self.counts[topic as usize];
        if *count == 0 {
            self.seen.push(topic);
        }
        *count += tokens;
    }

    /// The counts so far; the tally is empty afterwards.
    fn take(&mut self) -> &[(u32, u32)] {
        self.list.clear();
        for topic in self.seen.drain(..) {
            self.list.push((topic, std::mem::take(&mut self.counts[topic as usize])));
        }
        &self.list
    }
}

impl<T: TopicIndex> State<T> {
    /// Compares all counts with a recount from the assignments.
    pub fn check(&self, corpus: &Corpus) -> Result<(), CountsError> {
        let mut totals = self.pseudo_totals();
        for set in &self.sets {
            for slot in 0..set.slots.num_tokens() {
                totals[set.topic(slot) as usize] += 1;
            }
        }
        if let Some(k) = (0..totals.len()).find(|&k| totals[k] != self.totals[k]) {
            let (found, expected) = (self.totals[k], totals[k]);
            return Err(CountsError::Total { topic: k as u32, found, expected });
        }
        let mut wrong = None;
        let mut compare = |axis: Axis, id: u32, rows: &Rows<T>, row, counts: &[(u32, u32)]| {
            let mut found = Vec::with_capacity(counts.len());
            rows.for_each(row, |topic, count| found.push((topic, count)));
            let mut expected = counts.to_vec();
            found.sort_unstable();
            expected.sort_unstable();
            if found != expected {
                wrong.get_or_insert(match axis {
                    Axis::Document => CountsError::Document { document: id, found, expected },
                    Axis::Word => CountsError::Word { word: id, found, expected },
                });
            }
        };
        for set in &self.sets {
            set.recount_documents(corpus, &self.words, self.topics, |range, local, counts| {
                if let Some(rows) = set.rows.get(range) {
                    compare(Axis::Document, set.slots.documents(range)[local], rows, local, counts);
                }
            });
        }
        self.recount_words(|range, local, counts| {
            if let Some(rows) = self.word_rows.get(range) {
                compare(Axis::Word, self.words.words(range)[local], rows, local, counts);
            }
        });
        wrong.map_or(Ok(()), Err)
    }
}
