//! The words' part of the proposals, one table per word.

use super::columns::{Column, Order, build, locate};
use crate::counts::{RowMut, TopicIndex, dense16};
use crate::simd::{LANES, Lanes};

/// Stale tables of a range of words. Blocks of the range borrow them. A new epoch starts without
/// tables, so that a run can be resumed at any epoch.
#[derive(Clone, Debug)]
pub struct WordTables<T> {
    heads: Vec<Head>,
    entries: Vec<Entry>,
    /// Topics of the entries; one chunk longer, so that sixteen can always be read.
    topics: Vec<T>,
    /// Weights of the table being built.
    weights: Vec<f32>,
    order: Order,
}

/// One word's table: its place, and how far it has been used.
#[derive(Clone, Copy, Debug, Default)]
struct Head {
    start: u32,
    len: u32,
    /// Tokens that may still draw from it.
    left: u32,
    /// Sum of all weights.
    total: f32,
    /// len / total.
    scale: f32,
}

/// One topic of a word.
#[derive(Clone, Copy, Debug, Default)]
struct Entry {
    column: Column,
    mass: Mass,
}

/// Weight of a topic in its word's table.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(in crate::sampler) struct Mass {
    /// f_k · C̃_wk / (C̃_k + Vβ).
    pub weight: f32,
    /// f_k / (C̃_k + Vβ): the share of one token in it.
    pub unit: f32,
}

impl Mass {
    /// The weight without one token of the topic.
    #[inline(always)]
    pub fn without(self) -> f32 {
        self.weight - self.unit
    }
}

impl<T: TopicIndex> WordTables<T> {
    /// Space for the tables of words with the given frequencies over `topics` topics.
    pub fn new(topics: usize, frequencies: impl IntoIterator<Item = u64>) -> Self {
        let mut tables = Self {
            heads: Vec::new(),
            entries: Vec::new(),
            topics: Vec::new(),
            weights: Vec::new(),
            order: Order::default(),
        };
        tables.renew(topics, frequencies);
        tables
    }

    /// Forgets all tables, and makes space for those of other words; like [`new`](Self::new), but
    /// reuses the memory.
    pub fn renew(&mut self, topics: usize, frequencies: impl IntoIterator<Item = u64>) {
        let mut end = 0;
        let mut place = |tokens: u64| {
            let start = end;
            end += tokens.min(topics as u64);
            Head { start: start as u32, ..Head::default() }
        };
        self.heads.clear();
        self.heads.extend(frequencies.into_iter().map(&mut place));
        self.entries.resize(end as usize, Entry::default());
        self.topics.resize(end as usize + LANES, T::default());
    }

    /// Bytes that [`new`](Self::new) allocates.
    pub fn bytes(topics: usize, frequencies: impl IntoIterator<Item = u64>) -> u64 {
        let (mut entries, mut words) = (0, 0);
        for tokens in frequencies {
            entries += tokens.min(topics as u64);
            words += 1;
        }
        entries * (size_of::<Entry>() + size_of::<T>()) as u64
            + words * size_of::<Head>() as u64
            + (LANES * size_of::<T>()) as u64
    }

    /// Bytes held, without work space.
    pub fn memory(&self) -> u64 {
        (self.heads.len() * size_of::<Head>()
            + self.entries.len() * size_of::<Entry>()
            + self.topics.len() * size_of::<T>()) as u64
    }

    /// Forgets all tables.
    pub fn forget(&mut self) {
        self.heads.iter_mut().for_each(|head| head.left = 0);
    }

    /// Counts a token as a user of the table of `word`; `false` if the table must be built again
    /// first.
    #[inline(always)]
    pub(in crate::sampler) fn take(&mut self, word: usize) -> bool {
        let left = &mut self.heads[word].left;
        let fresh = *left > 0;
        *left -= u32::from(fresh);
        fresh
    }

    /// Builds the table of `word` from its row and f_k / (C_k + Vβ). `uses` tokens per topic may
    /// draw from it, including the current one.
    #[inline(always)]
    pub(in crate::sampler) fn rebuild(
        &mut self,
        word: usize,
        row: &RowMut<'_, T>,
        unit: impl Fn(usize) -> f32,
        uses: u32,
    ) {
        let Self { heads, entries, topics, weights, order } = self;
        let head = &mut heads[word];
        let start = head.start as usize;
        weights.clear();
        let mut total = 0.0;
        let mut add = |topic: u32, count: u32| {
            let unit = unit(topic as usize);
            let weight = count as f32 * unit;
            topics[start + weights.len()] = T::new(topic);
            entries[start + weights.len()].mass = Mass { weight, unit };
            weights.push(weight);
            total += f64::from(weight);
        };
        match row {
            RowMut::Sparse(sparse) => (1..=sparse.len()).for_each(|i| {
                let (topic, count) = sparse.entry(i);
                add(topic, count);
            }),
            RowMut::Dense16(lines) => {
                each_dense(2 * LANES * lines.len(), |k| dense16(lines, k), add)
            }
            RowMut::Dense32(lines) => {
                each_dense(LANES * lines.len(), |k| lines[k / LANES].0[k % LANES], add);
            }
        }
        head.len = weights.len() as u32;
        head.left = (head.len * uses).saturating_sub(1);
        head.total = total as f32;
        head.scale = (weights.len() as f64 / total) as f32;
        let entries = &mut entries[start..start + weights.len()];
        build(weights, total, order, |j, column| entries[j].column = column);
    }

    /// Prefetches the table of `word`.
    #[inline(always)]
    pub(in crate::sampler) fn prefetch<L: Lanes>(&self, l: L, word: usize) {
        let start = self.heads[word].start as usize;
        l.prefetch(&self.entries, start);
        l.prefetch(&self.topics, start);
    }

    /// The table of `word`.
    #[inline(always)]
    pub(in crate::sampler) fn get(&self, word: usize) -> WordTable<'_, T> {
        let Head { start, len, total, scale, .. } = self.heads[word];
        let range = start as usize..(start + len) as usize;
        WordTable {
            entries: &self.entries[range],
            topics: &self.topics[start as usize..],
            total: f64::from(total),
            scale: f64::from(scale),
        }
    }
}

/// Calls `add` for the non-zeros of a dense row.
#[inline(always)]
fn each_dense(len: usize, count: impl Fn(usize) -> u32, mut add: impl FnMut(u32, u32)) {
    for k in 0..len {
        let count = count(k);
        if count > 0 {
            add(k as u32, count);
        }
    }
}

/// One word's table.
#[derive(Clone, Copy, Debug)]
pub(in crate::sampler) struct WordTable<'a, T> {
    entries: &'a [Entry],
    /// Topics of the entries, then those of the next table.
    topics: &'a [T],
    total: f64,
    scale: f64,
}

impl<T: TopicIndex> WordTable<'_, T> {
    /// Sum of all weights.
    #[inline(always)]
    pub fn total(&self) -> f64 {
        self.total
    }

    /// The topic at `u` of the total, and its mass.
    #[inline(always)]
    pub fn locate(&self, u: f64) -> (u32, Mass) {
        let j = locate(self.entries.len(), u * self.scale, |j| self.entries[j].column);
        (self.topics[j].get(), self.entries[j].mass)
    }

    /// Sum of all weights except that of `topic`, by summation.
    pub fn total_but(&self, topic: u32) -> f64 {
        self.but(topic).map(|(_, mass)| f64::from(mass.weight)).sum()
    }

    /// The topic at `u` of [`total_but`](Self::total_but); the last one if rounding left none above
    /// `u`.
    pub fn locate_but(&self, topic: u32, mut u: f64) -> Option<(u32, Mass)> {
        let mut last = None;
        for (topic, mass) in self.but(topic).filter(|(_, mass)| mass.weight > 0.0) {
            last = Some((topic, mass));
            u -= f64::from(mass.weight);
            if u < 0.0 {
                break;
            }
        }
        last
    }

    fn but(&self, but: u32) -> impl Iterator<Item = (u32, Mass)> {
        let pairs = self.topics.iter().zip(self.entries);
        pairs.map(|(topic, entry)| (topic.get(), entry.mass)).filter(move |&(t, _)| t != but)
    }

    /// Calls `f` for every topic of the word.
    #[inline(always)]
    pub fn for_each(&self, mut f: impl FnMut(u32, Mass)) {
        for (topic, entry) in self.topics.iter().zip(self.entries) {
            f(topic.get(), entry.mass);
        }
    }

    /// Mass of `topic`; zero if the word does not have it.
    #[inline(always)]
    pub fn mass<L: Lanes>(&self, l: L, topic: u32) -> Mass {
        self.find(l, topic).map_or(Mass::default(), |at| self.entries[at].mass)
    }

    /// Entry of `topic`.
    #[inline(always)]
    fn find<L: Lanes>(&self, l: L, topic: u32) -> Option<usize> {
        let wanted = l.splat_u(topic);
        let len = self.entries.len();
        let mut first = 0;
        while first < len {
            let chunk: &[T; LANES] = self.topics[first..].first_chunk().expect("a chunk is left");
            let hit = l.eq_u(T::load(l, chunk), wanted);
            if hit != 0 {
                // INVARIANT: topics past the end are those of the next table, so a match there does
                // not count.
                let at = first + hit.trailing_zeros() as usize;
                return (at < len).then_some(at);
            }
            first += LANES;
        }
        None
    }
}
