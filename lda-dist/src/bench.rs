//! Where tokens are sampled, on a worker and on a server alike.
//!
//! Rows come in, and what has changed goes out; nothing here knows where from and where to. Tokens are laid out word by
//! word and sampled by F+LDA, whose visits are words: so each word's counts are loaded once, whoever sent them.

use std::fmt;

use lda_core::counts::{Rows, TopicIndex};
use lda_core::layout::Visit;
use lda_core::sampler::{Block, BlockKey, FPlus, GridBlock, Sampler, padded};

use crate::job::{Job, Round};

/// Scratch of one thread.
pub(crate) struct Bench<T: TopicIndex> {
    scratch: <FPlus as Sampler<T>>::Scratch,
    visits: Vec<Visit>,
    /// Document of each token.
    documents: Vec<u32>,
    before: Vec<T>,
    after: Vec<T>,
    /// C_k as the tokens' owner sees it.
    totals: Vec<u32>,
    wave: u64,
}

impl<T: TopicIndex> fmt::Debug for Bench<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Bench").field("tokens", &self.after.len()).finish_non_exhaustive()
    }
}

impl<T: TopicIndex> Bench<T> {
    pub fn new(topics: u32) -> Self {
        Self {
            scratch: Sampler::<T>::scratch(&FPlus, topics as usize),
            visits: Vec::new(),
            documents: Vec::new(),
            before: Vec::new(),
            after: Vec::new(),
            totals: Vec::new(),
            wave: 0,
        }
    }

    /// Takes away what lay here.
    pub fn clear(&mut self) {
        self.visits.clear();
        self.documents.clear();
        self.before.clear();
    }

    /// Lays out a token of word `row`, which is the last one or a later one.
    pub fn push(&mut self, row: u32, document: u32, topic: T) {
        self.documents.push(document);
        self.before.push(topic);
        let end = self.before.len() as u32;
        match self.visits.last_mut() {
            Some(visit) if visit.row == row => visit.end = end,
            _ => self.visits.push(Visit { row, end }),
        }
    }

    /// Samples all that lies here. `totals` are C_k of the round's start and `own` what its owner has added since,
    /// which is added to. Rows of words and documents must have these tokens.
    #[allow(clippy::too_many_arguments)]
    pub fn sample(
        &mut self,
        job: &Job,
        round: Round,
        key: BlockKey,
        totals: &[u32],
        own: &mut [i32],
        words: &mut Rows<T>,
        documents: &mut Rows<T>,
    ) {
        self.after.clone_from(&self.before);
        self.totals.clear();
        self.totals.extend(totals.iter().zip(&*own).map(|(&total, &own)| {
            total.checked_add_signed(own).expect("the round's start has all tokens of their owner")
        }));
        self.totals.resize(padded(job.topics() as usize), 0);
        self.wave += 1;
        let block = GridBlock {
            key,
            visits: &self.visits,
            partner: &self.documents,
            z: &mut self.after,
            words,
            documents,
            tables: None,
        };
        let context = job.context(round, &self.totals, self.wave);
        let outcome = FPlus.sample(0, &context, &mut self.scratch, Block::Grid(block));
        for (topic, by) in outcome.totals {
            own[topic as usize] += by;
        }
    }

    /// The new topics, in the order that tokens were laid out.
    pub fn topics(&self) -> &[T] {
        &self.after
    }

    /// What each word's row has gained, topics ascending and none of 0: `f(row, gained)`, rows in order, those that
    /// have gained nothing too.
    pub fn gains(&self, mut f: impl FnMut(u32, &[(u32, i32)])) {
        let (mut start, mut gained) = (0, Vec::new());
        for visit in &self.visits {
            let end = visit.end as usize;
            gains(&self.before[start..end], &self.after[start..end], &mut gained);
            f(visit.row, &gained);
            start = end;
        }
    }
}

/// (topic, tokens gained), topics ascending.
pub(crate) fn gains<T: TopicIndex>(before: &[T], after: &[T], gained: &mut Vec<(u32, i32)>) {
    gained.clear();
    for (before, after) in before.iter().zip(after).filter(|(before, after)| before != after) {
        gained.extend([(before.get(), -1), (after.get(), 1)]);
    }
    gained.sort_unstable_by_key(|&(topic, _)| topic);
    gained.dedup_by(|next, kept| {
        let same = next.0 == kept.0;
        if same {
            kept.1 += next.1;
        }
        same
    });
    gained.retain(|&(_, by)| by != 0);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gains_are_what_topics_have_more_than_before() {
        let mut gained = Vec::new();
        gains::<u16>(&[5, 1, 1, 2, 9], &[1, 5, 3, 2, 3], &mut gained);
        assert_eq!(gained, [(1, -1), (3, 2), (9, -1)]);
        gains::<u16>(&[1, 2], &[2, 1], &mut gained);
        assert!(gained.is_empty());
    }
}
