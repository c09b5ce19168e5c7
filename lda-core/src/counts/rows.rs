//! Rows of counts: the document-topic matrix C_d and the word-topic matrix C_w, one axis each.
//!
//! The form of a row follows from its capacity, and is fixed when the rows are created:
//!
//! * **Sparse**, for rows with few tokens compared to K: a list of (topic, count) entries without
//!   holes, sixteen per chunk. The first entry is the header: its topic field holds the number of
//!   entries, its count is 0, so that a scan may treat it like any other entry. Slots past the end
//!   are zeros. With 16-bit topics an entry is one 32-bit word (topic above, count below; a sparse
//!   row has fewer than 65,536 tokens), so the whole row of a document of up to 15 topics is *one
//!   cache line*. With 32-bit topics a chunk is a line of topics and a line of counts.
//! * **Dense**, K counts of 16 or 32 bits, if that takes little more memory.
//!
//! A dense row of 16-bit counts is **flexible**: its memory also fits a list of about K/2 entries,
//! and [`adapt`](Rows::adapt) switches it to the form that is faster to scan for its current
//! non-zeros. A list that outgrows the memory becomes dense immediately.
//!
//! LDA* (§3.2.3) reaches a short document's counts through an open-addressing table with two more
//! index arrays (traversal and position) so that a scan costs K_d and not the table's capacity. A
//! list without holes has that property by itself. Compared by `cargo bench -p lda-benches --bench
//! rows`: the list is scanned 1.5 to 2 times faster from 15 topics up (in cache; up to 10 times if
//! the row is not), and the table finds and swaps a topic two to three times faster in cache. Per
//! token there is one scan, which also finds the token's own topic, and a swap only if the topic
//! changed. So the list is used, at 4 bytes per entry, where the table takes 6 or more.
//!
//! Memory: sparse 4 (16-bit topics) or 8 bytes per entry of capacity min(K, tokens) + 1, rounded up
//! to a chunk; dense 2 or 4 bytes per topic; 4 bytes per row for its position.
//!
//! The order of entries in a sparse row depends on the row's history (removal swaps the last entry
//! in). It decides which of two equal draws comes first, so it is part of a sampler's state.

use std::marker::PhantomData;

use crate::counts::form::{Density, Form, Place};
use crate::counts::row::{RowMut, SparseMut, dense16, dense16_add};
use crate::counts::topic::TopicIndex;
use crate::simd::{LANES, Lanes, Line};

/// Counts of all rows of one axis, or of one range of it.
#[derive(Clone, Debug)]
pub struct Rows<T> {
    places: Vec<Place>,
    lines: Vec<Line>,
    topics: usize,
    density: Density,
    topic_index: PhantomData<T>,
}

/// Fixed cost of scanning a list, in entries.
const LIST_OVERHEAD: usize = 40;

/// Error: rows would need more than 2³⁰ cache lines (64 GiB).
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the count rows of one range would need more than 64 GiB; cut the corpus into more ranges")]
pub struct RowsTooLarge;

impl<T: TopicIndex> Rows<T> {
    /// Memory in bytes that [`new`](Self::new) would take.
    pub fn bytes(topics: usize, tokens: impl Iterator<Item = u64>, density: Density) -> u64 {
        tokens.map(|n| 4 + 64 * Form::with_lines::<T>(topics, n, density).1 as u64).sum()
    }

    /// Checks that [`new`](Self::new) would succeed, without allocating.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn check(
        topics: usize,
        tokens: impl Iterator<Item = u64>,
        density: Density,
    ) -> Result<(), RowsTooLarge> {
        Self::place(topics, tokens, density, |_| ()).map(|_| ())
    }

    /// Calls `each` with the position of every row; returns the number of lines.
    fn place(
        topics: usize,
        tokens: impl Iterator<Item = u64>,
        density: Density,
        mut each: impl FnMut(Place),
    ) -> Result<usize, RowsTooLarge> {
        let mut line = 0;
        for tokens in tokens {
            let (form, lines) = Form::with_lines::<T>(topics, tokens, density);
            each(Place::new(form, line).ok_or(RowsTooLarge)?);
            line += lines;
        }
        Ok(line)
    }

    /// Creates empty rows; row i has capacity for `tokens[i]` tokens.
    ///
    /// # Errors
    /// [`RowsTooLarge`] above 64 GiB.
    pub fn new(
        topics: usize,
        tokens: impl Iterator<Item = u64>,
        density: Density,
    ) -> Result<Self, RowsTooLarge> {
        let mut places = Vec::with_capacity(tokens.size_hint().0);
        let lines = Self::place(topics, tokens, density, |place| places.push(place))?;
        let lines = vec![Line::default(); lines];
        Ok(Self { places, lines, topics, density, topic_index: PhantomData })
    }

    /// Recreates the rows like [`new`](Self::new), and reuses their memory.
    ///
    /// # Errors
    /// As [`new`](Self::new); there are no rows then.
    pub fn renew(&mut self, tokens: impl Iterator<Item = u64>) -> Result<(), RowsTooLarge> {
        self.lines.clear();
        self.places.clear();
        let places = &mut self.places;
        match Self::place(self.topics, tokens, self.density, |place| places.push(place)) {
            Ok(lines) => self.lines.resize(lines, Line::default()),
            Err(error) => {
                self.places.clear();
                return Err(error);
            }
        }
        Ok(())
    }

    /// Appends a copy of row `row` of `from`: its counts, form and capacity.
    ///
    /// # Errors
    /// As [`new`](Self::new); nothing is changed then.
    ///
    /// # Panics
    /// If the numbers of topics differ, or `from` does not have this row.
    pub fn push_copy(&mut self, from: &Self, row: usize) -> Result<(), RowsTooLarge> {
        assert_eq!(self.topics, from.topics, "rows of as many topics");
        let place = from.places[row];
        let end = from.places.get(row + 1).map_or(from.lines.len(), |next| next.line());
        self.places.push(Place::new(place.form(), self.lines.len()).ok_or(RowsTooLarge)?);
        self.lines.extend_from_slice(&from.lines[place.line()..end]);
        Ok(())
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        self.places.len()
    }

    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// Topics K.
    pub fn topics(&self) -> usize {
        self.topics
    }

    /// Memory in bytes.
    pub fn memory(&self) -> u64 {
        (self.places.len() * size_of::<Place>() + self.lines.len() * size_of::<Line>()) as u64
    }

    /// Prefetches the first cache line of row `row`.
    #[inline(always)]
    pub fn prefetch<L: crate::simd::Lanes>(&self, l: L, row: usize) {
        l.prefetch(&self.lines, self.places[row].line());
    }

    /// Prefetches the cache line of row `row` with the count of `topic`, or the first one of a
    /// list.
    #[inline(always)]
    pub fn prefetch_count<L: Lanes>(&self, l: L, row: usize, topic: usize) {
        let place = self.places[row];
        let line = match place.form() {
            Form::Sparse => 0,
            Form::Dense16 => topic / (2 * LANES),
            Form::Dense32 => topic / LANES,
        };
        l.prefetch(&self.lines, place.line() + line);
    }

    /// Form of row `row`.
    #[inline(always)]
    pub fn form_of(&self, row: usize) -> Form {
        self.places[row].form()
    }

    /// Mutable access to row `row`.
    #[inline(always)]
    pub fn row_mut(&mut self, row: usize) -> RowMut<'_, T> {
        let place = self.places[row];
        // The slice extends to the end of the arena instead of the row, because the end of the row
        // would take a second, dependent load. INVARIANT: headers and K bound every access within a
        // row.
        let lines = &mut self.lines[place.line()..];
        match place.form() {
            Form::Sparse => RowMut::Sparse(SparseMut::new(lines)),
            Form::Dense16 => RowMut::Dense16(&mut lines[..self.topics.div_ceil(2 * LANES)]),
            Form::Dense32 => RowMut::Dense32(&mut lines[..self.topics.div_ceil(LANES)]),
        }
    }

    /// Calls `f(topic, count)` for the non-zeros of row `row`: in ascending order if the row is
    /// dense, in list order if it is sparse.
    pub fn for_each(&self, row: usize, mut f: impl FnMut(u32, u32)) {
        let place = self.places[row];
        let lines = &self.lines[place.line()..];
        match place.form() {
            Form::Sparse => {
                for i in 1..=T::entry(lines, 0).0 as usize {
                    let (topic, count) = T::entry(lines, i);
                    f(topic, count);
                }
            }
            Form::Dense16 => {
                for topic in 0..self.topics {
                    let count = dense16(lines, topic);
                    if count > 0 {
                        f(topic as u32, count);
                    }
                }
            }
            Form::Dense32 => {
                for topic in 0..self.topics {
                    let count = lines[topic / LANES].0[topic % LANES];
                    if count > 0 {
                        f(topic as u32, count);
                    }
                }
            }
        }
    }

    /// Count of `topic` in row `row`.
    pub fn get(&self, row: usize, topic: u32) -> u32 {
        let place = self.places[row];
        let lines = &self.lines[place.line()..];
        let at = topic as usize;
        match place.form() {
            Form::Sparse => {
                let chunks = T::entry(lines, 0).0 as usize / LANES + 1;
                // The header and the slots past the end have count 0, so no branch is needed.
                let of_topic = |chunk: &[Line]| -> u32 {
                    let entries = (0..LANES).map(|i| T::entry(chunk, i));
                    entries.map(|(t, count)| if t == topic { count } else { 0 }).sum()
                };
                let mut counts = lines[..chunks * T::LINES].chunks_exact(T::LINES).map(of_topic);
                counts.find(|&count| count > 0).unwrap_or(0)
            }
            Form::Dense16 => dense16(lines, at),
            Form::Dense32 => lines[at / LANES].0[at % LANES],
        }
    }

    /// Adds one token of `topic` to row `row`.
    ///
    /// # Panics
    /// If the row is full: its capacity is exceeded.
    pub fn increment(&mut self, row: usize, topic: u32) {
        debug_assert!((topic as usize) < self.topics);
        let flexible = Self::flexible_capacity(self.topics);
        match self.row_mut(row) {
            RowMut::Sparse(mut sparse) => {
                if sparse.len() == flexible && flexible > 0 {
                    self.densify(row);
                    return self.increment(row, topic);
                }
                sparse.increment(topic);
            }
            RowMut::Dense16(lines) => dense16_add(lines, topic as usize, 1),
            RowMut::Dense32(lines) => lines[topic as usize / LANES].0[topic as usize % LANES] += 1,
        }
    }

    /// Removes one token of `topic` from row `row`.
    ///
    /// # Panics
    /// If the row has no token of `topic`.
    pub fn decrement(&mut self, row: usize, topic: u32) {
        match self.row_mut(row) {
            RowMut::Sparse(mut sparse) => {
                let at = (1..=sparse.len()).find(|&at| sparse.entry(at).0 == topic);
                sparse.decrement_at(at.expect("a topic of the row"));
            }
            RowMut::Dense16(lines) => {
                assert!(dense16(lines, topic as usize) > 0, "a topic of the row");
                dense16_add(lines, topic as usize, u32::MAX);
            }
            RowMut::Dense32(lines) => {
                let count = &mut lines[topic as usize / LANES].0[topic as usize % LANES];
                *count = count.checked_sub(1).expect("a topic of the row");
            }
        }
    }

    /// Appends one token of `topic` to row `row`, a list without tokens of `topic`.
    #[inline(always)]
    pub fn append(&mut self, row: usize, topic: u32) {
        let flexible = Self::flexible_capacity(self.topics);
        match self.row_mut(row) {
            RowMut::Sparse(mut sparse) if sparse.len() < flexible || flexible == 0 => {
                sparse.append(topic);
            }
            _ => {
                self.densify(row);
                self.increment(row, topic);
            }
        }
    }

    /// Replaces row `row` by the given (topic, count) pairs: distinct topics, no zero counts, and
    /// at most as many pairs as the row has capacity for (tokens, or list entries of a flexible row
    /// that is a list).
    pub fn write(&mut self, row: usize, entries: impl Iterator<Item = (u32, u32)>) {
        self.clear(row);
        match self.row_mut(row) {
            RowMut::Sparse(mut sparse) => {
                let mut len = 0;
                for (topic, count) in entries {
                    len += 1;
                    sparse.set(len, topic, count);
                }
                sparse.set(0, len as u32, 0);
            }
            RowMut::Dense16(lines) => {
                for (topic, count) in entries {
                    dense16_add(lines, topic as usize, count);
                }
            }
            RowMut::Dense32(lines) => {
                for (topic, count) in entries {
                    lines[topic as usize / LANES].0[topic as usize % LANES] = count;
                }
            }
        }
    }

    /// Topics of row `row` in list order; `None` if it is dense.
    pub fn listed(&self, row: usize) -> Option<impl ExactSizeIterator<Item = u32>> {
        let place = self.places[row];
        let lines = &self.lines[place.line()..];
        (place.form() == Form::Sparse)
            .then(|| (1..T::entry(lines, 0).0 as usize + 1).map(|i| T::entry(lines, i).0))
    }

    /// Sorts the entries of row `row` by topic if it is a list, so that its order does not depend on the
    /// row's history: as after [`write`](Self::write) with ascending topics. `entries` is scratch memory.
    pub fn sort_list(&mut self, row: usize, entries: &mut Vec<u64>) {
        let RowMut::Sparse(mut sparse) = self.row_mut(row) else { return };
        let all = 1..=sparse.len();
        if all.clone().is_sorted_by_key(|at| sparse.entry(at).0) {
            return;
        }
        // Topics are distinct, so the order of these numbers is that of the topics.
        let packed = |(topic, count): (u32, u32)| u64::from(topic) << 32 | u64::from(count);
        entries.clear();
        entries.extend(all.clone().map(|at| packed(sparse.entry(at))));
        entries.sort_unstable();
        all.zip(&*entries)
            .for_each(|(at, &entry)| sparse.set(at, (entry >> 32) as u32, entry as u32));
    }

    /// Replaces row `row` by a list in the order of `entries`, (topic, count) pairs with distinct
    /// topics and no zero counts. Returns false, and does nothing, if the row cannot be a list
    /// of that length.
    #[must_use]
    pub fn write_list(&mut self, row: usize, entries: &[(u32, u32)]) -> bool {
        if self.is_flexible(row) {
            if entries.len() > Self::flexible_capacity(self.topics) {
                return false;
            }
            self.reform(row, Form::Sparse, entries);
            return true;
        }
        let is_list = self.form_of(row) == Form::Sparse;
        if is_list {
            self.write(row, entries.iter().copied());
        }
        is_list
    }

    /// Empties row `row`.
    pub fn clear(&mut self, row: usize) {
        match self.row_mut(row) {
            RowMut::Sparse(mut sparse) => sparse.clear(),
            RowMut::Dense16(lines) | RowMut::Dense32(lines) => lines.fill(Line::default()),
        }
    }

    /// Whether row `row` is dense or can become dense.
    pub fn may_be_dense(&self, row: usize) -> bool {
        self.form_of(row) != Form::Sparse || self.is_flexible(row)
    }

    /// Whether row `row` can have either form.
    fn is_flexible(&self, row: usize) -> bool {
        let end = self.places.get(row + 1).map_or(self.lines.len(), |next| next.line());
        let lines = end - self.places[row].line();
        self.density == Density::Auto
            && self.places[row].form() != Form::Dense32
            && lines == Form::Dense16.dense_lines(self.topics)
            && Self::flexible_capacity(self.topics) > 0
    }

    /// Maximum number of list entries of a flexible row. Other rows never have that many.
    #[inline(always)]
    pub fn flexible_capacity(topics: usize) -> usize {
        (Form::Dense16.dense_lines(topics) / T::LINES * LANES).saturating_sub(1)
    }

    /// Switches each flexible row to the form that is faster to scan: a list if it has few
    /// non-zeros. The result depends on the counts alone.
    pub fn adapt(&mut self) {
        // PERF: by profile, a list entry costs as much as four to five dense topics (it gathers),
        // and a list also needs a draw from the tree.
        let most = (self.topics / 5).saturating_sub(LIST_OVERHEAD);
        let mut entries = Vec::new();
        for row in 0..self.places.len() {
            if !self.is_flexible(row) {
                continue;
            }
            entries.clear();
            self.for_each(row, |topic, count| entries.push((topic, count)));
            // Sorted, so that the list does not depend on the row's history.
            entries.sort_unstable();
            let form = if entries.len() <= most { Form::Sparse } else { Form::Dense16 };
            if form != self.places[row].form() {
                self.reform(row, form, &entries);
            }
        }
    }

    /// Converts a full list to the dense form.
    #[cold]
    pub fn densify(&mut self, row: usize) {
        let mut entries = Vec::new();
        self.for_each(row, |topic, count| entries.push((topic, count)));
        self.reform(row, Form::Dense16, &entries);
    }

    fn reform(&mut self, row: usize, form: Form, entries: &[(u32, u32)]) {
        let line = self.places[row].line();
        let lines = Form::Dense16.dense_lines(self.topics);
        self.lines[line..line + lines].fill(Line::default());
        self.places[row] = Place::new(form, line).expect("the line has not moved");
        self.write(row, entries.iter().copied());
    }

    /// Empties all rows.
    pub fn clear_all(&mut self) {
        self.lines.fill(Line::default());
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_sorted_list_is_as_after_writing_it() {
        fn check<T: TopicIndex>() {
            let new = || Rows::<T>::new(2000, [60, 1900].into_iter(), Density::Auto).unwrap();
            let (mut rows, mut scratch) = (new(), Vec::new());
            assert_eq!(rows.form_of(0), Form::Sparse);
            for (row, topic) in (0..60).flat_map(|at| [(0, at * 37 % 50 * 40), (1, at * 7 % 90)]) {
                rows.increment(row, topic);
            }
            (0..20).for_each(|at| rows.decrement(0, at * 37 % 50 * 40));
            let mut expected = new();
            for row in 0..2 {
                let mut entries = Vec::new();
                rows.for_each(row, |topic, count| entries.push((topic, count)));
                assert_eq!(row == 0, !entries.is_sorted());
                entries.sort_unstable();
                expected.write(row, entries.into_iter());
                rows.sort_list(row, &mut scratch);
                rows.sort_list(row, &mut scratch);
            }
            assert_eq!(rows.lines, expected.lines);
        }
        check::<u16>();
        check::<u32>();
    }

    /// Random increments and removals against a plain array.
    fn against_model<T: TopicIndex>(topics: usize, density: Density, ops: &[(u32, bool)]) {
        let capacity = ops.len() as u64;
        // A neighbour on each side detects writes outside the row.
        let mut rows = Rows::<T>::new(topics, [3, capacity, 3].into_iter(), density).unwrap();
        for row in [0, 2] {
            rows.increment(row, 0);
        }
        let mut model = vec![0u32; topics];
        for &(topic, add) in ops {
            let topic = topic as usize % topics;
            if add {
                model[topic] += 1;
                rows.increment(1, topic as u32);
            } else if model[topic] > 0 {
                model[topic] -= 1;
                match rows.row_mut(1) {
                    RowMut::Sparse(mut row) => {
                        let i = (1..=row.len()).find(|&i| row.entry(i).0 == topic as u32);
                        row.decrement_at(i.expect("a counted topic has an entry"));
                    }
                    RowMut::Dense16(lines) => dense16_add(lines, topic, 1u32.wrapping_neg()),
                    RowMut::Dense32(lines) => lines[topic / LANES].0[topic % LANES] -= 1,
                }
            }
        }
        let mut seen = vec![0; topics];
        rows.for_each(1, |topic, count| seen[topic as usize] += count);
        assert_eq!(seen, model);
        for (topic, &count) in (0..).zip(&model) {
            assert_eq!(rows.get(1, topic), count);
        }
        rows.adapt();
        for (topic, &count) in (0..).zip(&model) {
            assert_eq!(rows.get(1, topic), count);
        }
        rows.clear(1);
        rows.for_each(1, |topic, count| panic!("{count} tokens of {topic} left"));
        assert_eq!((rows.get(0, 0), rows.get(2, 0)), (1, 1));
    }

    proptest! {
        #[test]
        fn rows_follow_a_plain_array(
            topics in 1usize..90,
            dense in any::<bool>(),
            ops in prop::collection::vec((any::<u32>(), prop::bool::weighted(0.6)), 1..400),
        ) {
            let density = if dense { Density::Dense } else { Density::Auto };
            against_model::<u16>(topics, density, &ops);
            against_model::<u32>(topics, density, &ops);
        }
    }

    #[test]
    fn renewed_rows_are_empty_and_have_new_sizes() {
        let tokens = [40, 3, 700];
        let mut rows = Rows::<u16>::new(90, [9, 900, 2, 4].into_iter(), Density::Auto).unwrap();
        (0..4).for_each(|row| rows.increment(row, 5));
        rows.renew(tokens.into_iter()).unwrap();
        let fresh = Rows::<u16>::new(90, tokens.into_iter(), Density::Auto).unwrap();
        assert_eq!(rows.places, fresh.places);
        assert_eq!(rows.lines, fresh.lines);
        let mut wide = Rows::<u32>::new(1 << 20, [1].into_iter(), Density::Auto).unwrap();
        assert_eq!(wide.renew(std::iter::repeat_n(1 << 20, 1 << 16)), Err(RowsTooLarge));
        assert!(wide.is_empty());
    }

    #[test]
    fn copies_are_independent() {
        for tokens in [[40, 3, 700], [700, 40, 3], [70_000, 3, 40]] {
            let mut from = Rows::<u16>::new(90, tokens.into_iter(), Density::Auto).unwrap();
            for (row, topic) in [(0, 5), (0, 7), (0, 5), (1, 89), (2, 0)] {
                from.increment(row, topic);
            }
            let mut copies = Rows::<u16>::new(90, std::iter::empty(), Density::Auto).unwrap();
            [1, 0, 0].into_iter().for_each(|row| copies.push_copy(&from, row).unwrap());
            // A copy can be filled as far as the row that was copied.
            (3..tokens[0]).for_each(|token| copies.increment(1, token as u32 % 90));
            assert_eq!((copies.len(), copies.form_of(1)), (3, from.form_of(0)));
            let (mut one, mut other) = (Vec::new(), Vec::new());
            for (copy, row) in [(0, 1), (2, 0)] {
                one.clear();
                other.clear();
                copies.for_each(copy, |topic, count| one.push((topic, count)));
                from.for_each(row, |topic, count| other.push((topic, count)));
                assert_eq!(one, other);
            }
        }
    }

    #[test]
    fn fifteen_topics_fit_one_cache_line() {
        let rows = Rows::<u16>::new(1000, [15, 16].into_iter(), Density::Auto).unwrap();
        assert_eq!(rows.memory(), 2 * 4 + (1 + 2) * 64);
    }
}
