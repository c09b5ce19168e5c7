//! The counts of a run by document and word id, for evaluation.

use std::ops::Range;

use crate::corpus::Corpus;
use crate::counts::{DocumentCounts, VisitRow, WordCounts};
use crate::counts::{Rows, TopicIndex};
use crate::layout::WordRanges;
use crate::train::state::State;

/// View of the counts of a run.
pub(crate) struct CountsView<'a, T> {
    state: &'a State<T>,
    /// C_w of the run, or counted for this view if the run keeps none.
    word_rows: WordRows<'a, T>,
    /// Document id → (set, range, local position).
    places: Vec<Option<(u8, u16, u32)>>,
    /// First entry of each document in the inverse index, by set and range; only for sets without rows.
    offsets: Vec<Vec<Vec<u32>>>,
}

enum WordRows<'a, T> {
    Kept(&'a [Rows<T>]),
    Counted(Vec<Rows<T>>),
}

impl<'a, T: TopicIndex> CountsView<'a, T> {
    pub fn new(state: &'a State<T>, corpus: &Corpus) -> Self {
        Self::of_documents(state, corpus.num_documents())
    }

    /// View of a state with so many documents.
    pub fn of_documents(state: &'a State<T>, documents: usize) -> Self {
        let mut places = vec![None; documents];
        let mut offsets = Vec::new();
        for (s, set) in state.sets.iter().enumerate() {
            let mut of_set = Vec::new();
            for range in 0..set.slots.num_ranges() {
                for (local, &d) in set.slots.documents(range).iter().enumerate() {
                    places[d as usize] = Some((s as u8, range as u16, local as u32));
                }
                if set.rows.is_empty() {
                    let starts = set.slots.lengths(range).iter().scan(0u32, |next, &n| {
                        let start = *next;
                        *next += n;
                        Some(start)
                    });
                    of_set.push(starts.collect());
                }
            }
            offsets.push(of_set);
        }
        Self { places, offsets, ..Self::of_words(state) }
    }

    /// View without documents.
    pub fn of_words(state: &'a State<T>) -> Self {
        let word_rows = if state.word_rows.is_empty() {
            let mut rows = state.empty_word_rows().expect("the corpus's words fit in memory");
            state.recount_words(|range, local, counts| {
                rows[range].write(local, counts.iter().copied());
            });
            WordRows::Counted(rows)
        } else {
            WordRows::Kept(&state.word_rows)
        };
        Self { state, word_rows, places: Vec::new(), offsets: Vec::new() }
    }

    fn words(&self) -> &WordRanges {
        &self.state.words
    }

    /// Counts a document's topics from its tokens.
    fn count_document(
        &self,
        set: usize,
        range: usize,
        local: usize,
        tally: &mut Vec<u32>,
        row: &mut Vec<(u32, u32)>,
    ) {
        let set_state = &self.state.sets[set];
        let inverse = set_state.inverse.as_ref().expect("a set without rows has the inverse index");
        let start = self.offsets[set][range][local] as usize;
        let length = set_state.slots.lengths(range)[local] as usize;
        let base = set_state.slots.range_slots(range).start;
        tally.resize(self.state.topics, 0);
        let slots = &inverse.range(range)[start..start + length];
        for &slot in slots {
            tally[set_state.topic(base + slot as usize) as usize] += 1;
        }
        for &slot in slots {
            let topic = set_state.topic(base + slot as usize);
            let count = std::mem::take(&mut tally[topic as usize]);
            if count > 0 {
                row.push((topic, count));
            }
        }
    }
}

impl<T: TopicIndex> DocumentCounts for CountsView<'_, T> {
    fn num_topics(&self) -> usize {
        self.state.topics
    }

    fn num_documents(&self) -> usize {
        self.places.len()
    }

    fn visit_documents(&self, documents: Range<usize>, visit: &mut VisitRow<'_>) {
        let (mut row, mut tally) = (Vec::new(), Vec::new());
        for d in documents {
            let Some((set, range, local)) = self.places[d] else { continue };
            let (set, range, local) = (set as usize, range as usize, local as usize);
            row.clear();
            match self.state.sets[set].rows.get(range) {
                Some(rows) => rows.for_each(local, |topic, count| row.push((topic, count))),
                None => self.count_document(set, range, local, &mut tally, &mut row),
            }
            visit(d, &row);
        }
    }
}

impl<T: TopicIndex> WordCounts for CountsView<'_, T> {
    fn num_topics(&self) -> usize {
        self.state.topics
    }

    fn num_words(&self) -> usize {
        self.words().num_words()
    }

    fn topic_total(&self, topic: usize) -> u64 {
        u64::from(self.state.totals[topic])
    }

    fn visit_words(&self, words: Range<usize>, visit: &mut VisitRow<'_>) {
        let rows = match &self.word_rows {
            WordRows::Kept(rows) => rows,
            WordRows::Counted(rows) => rows.as_slice(),
        };
        let mut row = Vec::new();
        for word in words {
            let (range, local) = self.words().locate(word as u32);
            row.clear();
            rows[range].for_each(local, |topic, count| row.push((topic, count)));
            if !row.is_empty() {
                visit(word, &row);
            }
        }
    }
}
