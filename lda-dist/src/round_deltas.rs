//! Deltas of one partition's rows in a round that has not ended.
//!
//! Each word has a chain of the lists that peers have pushed, so nothing is sorted but a word's topics if
//! it has several lists. The lists of a word are merged whenever all have doubled: many deltas of few
//! topics take little memory.
//!
//! Memory: 8 bytes per entry, 16 bytes per list, and 4 bytes per word.

/// Entries of all lists before they are first merged.
pub(crate) const FEW: usize = 1 << 16;

/// Deltas of a round by word.
#[derive(Clone, Debug)]
pub(crate) struct RoundDeltas {
    /// For each word, the position after that of its last list; 0 if it has none.
    last: Vec<u32>,
    /// Words that have a list.
    words: Vec<u32>,
    lists: Vec<List>,
    /// (topic, change of the count) of all lists.
    entries: Vec<(u32, i32)>,
    /// Number of entries after they were merged last.
    merged: usize,
}

/// A delta of a word.
#[derive(Clone, Copy, Debug)]
struct List {
    start: usize,
    len: u32,
    /// The position after that of the word's list before; 0 if this is its first.
    before: u32,
}

impl RoundDeltas {
    /// No deltas, for this number of words.
    pub fn new(words: usize) -> Self {
        let (words, lists, entries) = (vec![0; words], Vec::new(), Vec::new());
        Self { last: words, words: Vec::new(), lists, entries, merged: 0 }
    }

    /// Adds a delta to a word.
    ///
    /// # Panics
    /// If there is no such word.
    pub fn add(&mut self, word: u32, delta: &[(u32, i32)]) {
        if !delta.is_empty() {
            self.push(word, delta.iter().copied());
        }
        let is_due = self.entries.len() >= FEW.max(2 * self.merged);
        if is_due && self.lists.len() > self.words.len() || self.lists.len() == u32::MAX as usize {
            self.merge();
        }
    }

    fn push(&mut self, word: u32, delta: impl Iterator<Item = (u32, i32)>) {
        let last = &mut self.last[word as usize];
        if *last == 0 {
            self.words.push(word);
        }
        let start = self.entries.len();
        self.entries.extend(delta);
        let len = (self.entries.len() - start) as u32;
        self.lists.push(List { start, len, before: *last });
        *last = self.lists.len() as u32;
    }

    /// Returns whether a word has a delta.
    pub fn has(&self, word: u32) -> bool {
        self.last[word as usize] != 0
    }

    /// Writes a word's delta to `delta`: topics ascending, each once, without zeros.
    pub fn read(&self, word: u32, delta: &mut Vec<(u32, i64)>) {
        delta.clear();
        let mut next = self.last[word as usize];
        while let Some(at) = next.checked_sub(1) {
            let List { start, len, before } = self.lists[at as usize];
            let list = &self.entries[start..start + len as usize];
            delta.extend(list.iter().map(|&(topic, by)| (topic, i64::from(by))));
            next = before;
        }
        if !delta.is_sorted_by(|a, b| a.0 < b.0) {
            delta.sort_unstable_by_key(|entry| entry.0);
            delta.dedup_by(|next, kept| {
                let is_same = next.0 == kept.0;
                kept.1 += if is_same { next.1 } else { 0 };
                is_same
            });
        }
        delta.retain(|entry| entry.1 != 0);
    }

    /// Calls `f(word, delta)` with the delta of each word that has changed, words and topics ascending.
    ///
    /// # Errors
    /// The first error of `f`, which is then not called again.
    pub fn for_each<E>(
        &mut self,
        mut f: impl FnMut(u32, &[(u32, i64)]) -> Result<(), E>,
    ) -> Result<(), E> {
        self.words.sort_unstable();
        let mut delta = Vec::new();
        for &word in &self.words {
            self.read(word, &mut delta);
            if !delta.is_empty() {
                f(word, &delta)?;
            }
        }
        Ok(())
    }

    /// (topic, change) of all words, in any order; the same topic may occur more than once.
    pub fn changes(&self) -> impl Iterator<Item = (u32, i64)> + '_ {
        self.entries.iter().map(|&(topic, by)| (topic, i64::from(by)))
    }

    /// Makes one list of the lists of each word.
    fn merge(&mut self) {
        let mut merged = Self::new(self.last.len());
        let Ok(()) = self.for_each(|word, delta| {
            merged.push(
                word,
                delta.iter().flat_map(|&(topic, by)| parts(by).map(move |by| (topic, by))),
            );
            Ok::<(), std::convert::Infallible>(())
        });
        merged.merged = merged.entries.len();
        *self = merged;
    }

    /// Bytes held.
    pub fn memory(&self) -> usize {
        let Self { last, words, lists, entries, .. } = self;
        4 * (last.capacity() + words.capacity())
            + size_of::<List>() * lists.capacity()
            + size_of::<(u32, i32)>() * entries.capacity()
    }
}

/// Numbers of 32 bits that add up to this one.
fn parts(mut by: i64) -> impl Iterator<Item = i32> {
    std::iter::from_fn(move || {
        let part = by.clamp(i32::MIN.into(), i32::MAX.into()) as i32;
        by -= i64::from(part);
        (part != 0).then_some(part)
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::convert::Infallible;

    use proptest::prelude::*;

    use super::*;

    fn all(deltas: &mut RoundDeltas) -> Vec<(u32, Vec<(u32, i64)>)> {
        let mut all = Vec::new();
        let Ok(()) = deltas.for_each(|word, delta| {
            all.push((word, delta.to_vec()));
            Ok::<(), Infallible>(())
        });
        all
    }

    proptest! {
        #[test]
        fn deltas_are_sums(
            pushes in prop::collection::vec(
                (0..5u32, prop::collection::vec((0..4u32, -3..=3i32), 0..5), any::<bool>()), 0..40),
        ) {
            let mut deltas = RoundDeltas::new(5);
            let mut sums = BTreeMap::<u32, BTreeMap<u32, i64>>::new();
            let mut totals = [0; 4];
            for (word, delta, merges) in &pushes {
                deltas.add(*word, delta);
                for &(topic, by) in delta {
                    *sums.entry(*word).or_default().entry(topic).or_default() += i64::from(by);
                    totals[topic as usize] += i64::from(by);
                }
                if *merges {
                    deltas.merge();
                }
            }
            let sums = sums.into_iter().map(|(word, sums)| {
                (word, sums.into_iter().filter(|entry| entry.1 != 0).collect::<Vec<_>>())
            });
            let expected: Vec<_> = sums.filter(|(_, delta)| !delta.is_empty()).collect();
            prop_assert_eq!(all(&mut deltas), expected);
            let mut found = [0; 4];
            deltas.changes().for_each(|(topic, by)| found[topic as usize] += by);
            prop_assert_eq!(found, totals);
        }
    }

    #[test]
    fn sums_beyond_32_bits_are_kept() {
        let mut deltas = RoundDeltas::new(1);
        (0..3).for_each(|_| deltas.add(0, &[(1, i32::MAX), (2, i32::MIN)]));
        deltas.merge();
        let sums = vec![(1, 3 * i64::from(i32::MAX)), (2, 3 * i64::from(i32::MIN))];
        assert_eq!(all(&mut deltas), [(0, sums)]);
    }

    #[test]
    fn many_changes_of_few_topics_take_little_memory() {
        let mut deltas = RoundDeltas::new(1);
        for _ in 0..FEW * 4 {
            deltas.add(0, &[(1, 1), (2, 1)]);
        }
        let (lists, entries) = (size_of::<List>() * FEW, 8 * FEW);
        assert!(deltas.memory() <= 2 * (lists + entries), "{}", deltas.memory());
        let many = (FEW * 4) as i64;
        assert_eq!(all(&mut deltas), [(0, vec![(1, many), (2, many)])]);
    }
}
