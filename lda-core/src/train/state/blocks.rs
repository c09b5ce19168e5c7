//! Counts of a run over blocks: C_w and C_k of all tokens, of which one block's are at hand.
//!
//! A block's tokens are added to the counts when the run begins. Samplers keep them up to date afterwards,
//! but for WarpLDA, which counts a word from its tokens: those of the block are taken out of C_w
//! before, so that the rows hold what the block does not ([`WordBlock::counted`](crate::sampler::WordBlock)).

use std::ops::Range;

use rayon::prelude::*;

use super::recount::{Tally, tally_words};
use super::{State, TokenSet};
use crate::counts::{Rows, RowsTooLarge, TopicIndex};
use crate::sampler::Requires;
use crate::train::seed_counts::of_word;

impl<T: TopicIndex> State<T> {
    /// Fills C_w and C_k with the pseudo-counts alone.
    pub fn count_pseudo(&mut self) {
        self.totals = self.pseudo_totals();
        if self.pseudo.is_none() {
            return;
        }
        for (range, rows) in self.word_rows.iter_mut().enumerate() {
            for (local, &word) in self.words.words(range).iter().enumerate() {
                rows.write(local, of_word(&self.pseudo, word).iter().copied());
            }
        }
    }

    /// Adds the tokens of the sets to C_w and C_k.
    pub fn count_tokens(&mut self) {
        for set in &self.sets {
            for slot in 0..set.slots.num_tokens() {
                let total = &mut self.totals[set.topic(slot) as usize];
                // A sum that does not fit is found when the totals are compared with the tokens.
                *total = total.wrapping_add(1);
            }
        }
        let all = 0..self.sets.len();
        self.change_word_rows(all, |row, tokens| *row = row.wrapping_add(tokens));
    }

    /// Takes the tokens of a set out of C_w.
    pub fn uncount_words(&mut self, set: usize) {
        self.change_word_rows(set..set + 1, |row, tokens| *row = row.wrapping_sub(tokens));
    }

    /// Applies `change` to each count of C_w of which these sets have tokens, and their number.
    fn change_word_rows(&mut self, sets: Range<usize>, change: impl Fn(&mut u32, u32) + Sync) {
        let Self { topics, words, word_rows, .. } = self;
        let (words, sets) = (&*words, &self.sets[sets]);
        word_rows.par_iter_mut().enumerate().for_each(|(range, rows)| {
            let (mut tally, mut row) = (Tally::new(*topics), Merged::new(*topics));
            tally_words(sets, words, range, &mut tally, |local, tally| {
                let counts = tally.take();
                if !counts.is_empty() {
                    row.merge(rows, local, counts, &change);
                    rows.write(local, row.entries.iter().copied());
                }
            });
        });
    }

    /// Sets the document rows of the sets, made for `requires`, to the counts of their tokens.
    pub fn make_document_rows(&mut self, requires: &[Requires]) -> Result<(), RowsTooLarge> {
        let Self { topics, sets, .. } = self;
        for (set, &requires) in sets.iter_mut().zip(requires) {
            let mut rows = set.empty_rows(*topics, requires)?;
            let of_set: &TokenSet<T> = set;
            rows.par_iter_mut().enumerate().for_each(|(range, rows)| {
                let (by_document, starts) = of_set.by_document(range);
                let mut tally = Tally::new(*topics);
                for (local, ends) in starts.windows(2).enumerate() {
                    let tokens = &by_document[ends[0] as usize..ends[1] as usize];
                    tokens.iter().for_each(|topic| tally.add(topic.get(), 1));
                    rows.write(local, tally.take().iter().copied());
                }
            });
            set.rows = rows;
        }
        Ok(())
    }

    /// Sum of C_k, with pseudo-counts.
    pub fn sum_of_totals(&self) -> u64 {
        self.totals.iter().map(|&total| u64::from(total)).sum()
    }
}

impl<T: TopicIndex> TokenSet<T> {
    /// Topics of a range's tokens, document by document in the order of the layout, and the start of each
    /// document, then the number of tokens.
    fn by_document(&self, range: usize) -> (Vec<T>, Vec<u32>) {
        let mut starts = vec![0];
        starts.extend(self.slots.lengths(range).iter().scan(0, |next, &length| {
            *next += length;
            Some(*next)
        }));
        let mut next = starts.clone();
        let mut tokens = vec![T::default(); self.slots.range_slots(range).len()];
        self.slots.for_each_slot(range, |document, slot| {
            let at = &mut next[document];
            tokens[*at as usize] = self.tokens[slot * self.stride];
            *at += 1;
        });
        (tokens, starts)
    }
}

/// A row of C_w with changes. Entries keep their order, and new topics come last.
#[derive(Debug)]
struct Merged {
    entries: Vec<(u32, u32)>,
    /// Topic → position in `entries` plus one; 0 if it is not there.
    places: Vec<u32>,
}

impl Merged {
    fn new(topics: usize) -> Self {
        Self { entries: Vec::new(), places: vec![0; topics] }
    }

    /// Reads a row and applies `change` to the counts of `by`.
    fn merge<T: TopicIndex>(
        &mut self,
        rows: &Rows<T>,
        row: usize,
        by: &[(u32, u32)],
        change: &impl Fn(&mut u32, u32),
    ) {
        let Self { entries, places } = self;
        entries.clear();
        rows.for_each(row, |topic, count| {
            entries.push((topic, count));
            places[topic as usize] = entries.len() as u32;
        });
        for &(topic, tokens) in by {
            let place = &mut places[topic as usize];
            if *place == 0 {
                entries.push((topic, 0));
                *place = entries.len() as u32;
            }
            change(&mut entries[*place as usize - 1].1, tokens);
        }
        entries.iter().for_each(|&(topic, _)| places[topic as usize] = 0);
        entries.retain(|entry| entry.1 > 0);
    }
}
