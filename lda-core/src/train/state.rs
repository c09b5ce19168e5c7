//! The state of a run: assignments z and the counts that cache them.

mod blocks;
mod check;
mod recount;

use std::sync::Arc;

use crate::corpus::Corpus;
use crate::counts::{Density, Rows, RowsTooLarge, TopicIndex};
use crate::layout::{InverseIndex, RowRun, TokenLayout, WordRanges};
use crate::sampler::{Requires, WordTables, padded};
use crate::train::assignments::Assignments;
use crate::train::exclusion::TokenAge;
use crate::train::seed_counts::{Pseudo, PseudoCounts};
use crate::train::start::First;

pub use check::CountsError;

/// The documents that one sampler samples, and their tokens.
#[derive(Debug)]
pub(crate) struct TokenSet<T> {
    /// Number of the set, which keeps the random streams of two sets apart.
    pub shard: u16,
    pub slots: TokenLayout,
    /// 1 + M values per slot: its topic, then its pending proposals.
    pub tokens: Vec<T>,
    /// 1 + M.
    pub stride: usize,
    /// C_d, one arena per document range; empty if the sampler recounts documents itself.
    pub rows: Vec<Rows<T>>,
    pub inverse: Option<InverseIndex>,
    /// Ages of the tokens, if converged ones are excluded.
    pub ages: Option<Vec<TokenAge>>,
}

/// All counts and assignments.
#[derive(Debug)]
pub(crate) struct State<T> {
    pub topics: usize,
    pub words: Arc<WordRanges>,
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

/// Counts and tables that samplers need beside the token sets.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Needs {
    /// C_w.
    pub word_rows: bool,
    /// Stale tables of words.
    pub word_tables: bool,
    /// Pseudo-counts as tokens.
    pub still: bool,
}

impl Needs {
    /// Those that samplers with these requirements need.
    pub fn of<'a>(requires: impl Iterator<Item = &'a Requires>) -> Self {
        requires.fold(Self::default(), |needs, requires| Self {
            word_rows: needs.word_rows | requires.word_rows,
            word_tables: needs.word_tables | requires.word_tables,
            still: needs.still | requires.proposals,
        })
    }
}

/// Sizes of a run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sizes {
    /// K.
    pub topics: usize,
    /// G.
    pub ranges: usize,
    /// M.
    pub mh_steps: usize,
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
        let all: u64 = words.iter().map(|&word| pseudo.of_word(word as usize)).sum();
        let (mut visits, mut z) = (Vec::new(), Vec::with_capacity(all as usize));
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
    /// Lays out the tokens of `documents`; there are no rows yet, and all topics are 0.
    pub fn new(
        shard: u16,
        corpus: &Corpus,
        documents: &[u32],
        words: &WordRanges,
        mh_steps: usize,
        requires: Requires,
    ) -> Self {
        let mut slots = TokenLayout::new(corpus, documents, words, requires.token_order);
        let stride = if requires.proposals { 1 + mh_steps } else { 1 };
        let inverse = requires.proposals.then(|| {
            let inverse = InverseIndex::new(&slots);
            slots.drop_partners();
            inverse
        });
        let tokens = vec![T::default(); slots.num_tokens() * stride];
        Self { shard, slots, tokens, stride, rows: Vec::new(), inverse, ages: None }
    }

    /// Empty document rows, one arena per document range; none if the sampler requires none.
    pub fn empty_rows(
        &self,
        topics: usize,
        requires: Requires,
    ) -> Result<Vec<Rows<T>>, RowsTooLarge> {
        let Some(density) = requires.document_rows else { return Ok(Vec::new()) };
        let of_range = |range| {
            let lengths = self.slots.lengths(range).iter().map(|&n| u64::from(n));
            Rows::new(topics, lengths, density)
        };
        (0..self.slots.num_ranges()).map(of_range).collect()
    }

    /// Topic of the token in `slot`.
    #[inline]
    pub fn topic(&self, slot: usize) -> u32 {
        self.tokens[slot * self.stride].get()
    }

    /// Gives every token its first topic; pending proposals equal it.
    pub fn initialise(&mut self, corpus: &Corpus, words: &WordRanges, first: First<'_>) {
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
}

impl<T: TopicIndex> State<T> {
    /// Lays out `sets` (documents and what their sampler requires), gives tokens their first topics
    /// and counts them.
    pub fn new(
        corpus: &Corpus,
        sizes: Sizes,
        sets: &[(Vec<u32>, Requires)],
        first: First<'_>,
        pseudo: &Pseudo,
    ) -> Result<Self, RowsTooLarge> {
        let Sizes { topics, ranges, mh_steps } = sizes;
        let words = WordRanges::new(&corpus.word_frequencies(), ranges);
        let needs = Needs::of(sets.iter().map(|(_, requires)| requires));
        let mut state = Self::without_tokens(words, topics, needs, pseudo)?;
        for (shard, (documents, requires)) in sets.iter().enumerate() {
            let mut set =
                TokenSet::new(shard as u16, corpus, documents, &state.words, mh_steps, *requires);
            set.rows = set.empty_rows(topics, *requires)?;
            set.initialise(corpus, &state.words, first);
            state.sets.push(set);
        }
        state.rebuild(corpus);
        Ok(state)
    }

    /// A state without tokens, with rows that have capacity for those of all words.
    pub fn without_tokens(
        words: WordRanges,
        topics: usize,
        needs: Needs,
        pseudo: &Pseudo,
    ) -> Result<Self, RowsTooLarge> {
        let mut state = Self {
            topics,
            word_rows: Vec::new(),
            tables: Vec::new(),
            pseudo: pseudo.clone(),
            still: Vec::new(),
            totals: vec![0; padded(topics)],
            sets: Vec::new(),
            words: Arc::new(words),
        };
        let ranges = state.words.num_ranges();
        if needs.word_rows {
            state.word_rows = state.empty_word_rows()?;
        }
        if needs.word_tables {
            let table = |range| WordTables::new(topics, state.word_room(range));
            state.tables = (0..ranges).map(table).collect();
        }
        if let Some(pseudo) = pseudo
            && needs.still
        {
            let still = |range| Still::new(pseudo, state.words.words(range));
            state.still = (0..ranges).map(still).collect();
        }
        Ok(state)
    }

    /// The state of an empty corpus, which takes almost no memory.
    pub fn empty() -> Self {
        Self {
            topics: 0,
            words: Arc::new(WordRanges::new(&[], 1)),
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
            set.ages = Some(vec![TokenAge::default(); set.slots.num_tokens()]);
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
