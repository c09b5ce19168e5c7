//! Where tokens are sampled, on a worker and on a server alike.
//!
//! Rows come in, and what has changed goes out; nothing here knows where from and where to. Tokens are laid out word by
//! word and sampled by F+LDA, whose visits are words: so each word's counts are loaded once, whoever sent them.
//!
//! All of it is memory that is used again: a partition that is sampled allocates nothing once the largest has been.

use std::fmt;

use lda_core::counts::{Density, Rows, TopicIndex};
use lda_core::layout::Visit;
use lda_core::sampler::{Block, BlockKey, FPlus, GridBlock, Sampler, padded};

use crate::job::{Job, Round};
use crate::wire::{Lists, RowCode, WireError};

/// Scratch of one thread.
pub(crate) struct Bench<T: TopicIndex> {
    scratch: <FPlus as Sampler<T>>::Scratch,
    code: RowCode,
    /// Words' rows as they came, and as the sampler wants them.
    lists: Lists<u32>,
    words: Rows<T>,
    visits: Vec<Visit>,
    /// Document of each token.
    documents: Vec<u32>,
    before: Vec<T>,
    after: Vec<T>,
    /// Of the last row's topics, what is left when its tokens are taken out; else zeros, K of them.
    left: Vec<u32>,
    /// C_k as the tokens' owner sees it.
    totals: Vec<u32>,
    wave: u64,
}

/// Tokens that a row has not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NotInRow;

impl<T: TopicIndex> fmt::Debug for Bench<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Bench").field("tokens", &self.after.len()).finish_non_exhaustive()
    }
}

/// How many tokens each row has.
pub(crate) fn tokens_of(rows: &Lists<u32>) -> impl Iterator<Item = u64> {
    rows.iter().map(|row| row.iter().map(|entry| u64::from(entry.1)).sum())
}

impl<T: TopicIndex> Bench<T> {
    pub fn new(topics: u32) -> Self {
        let none = std::iter::empty();
        Self {
            scratch: Sampler::<T>::scratch(&FPlus, topics as usize),
            code: RowCode::new(topics),
            lists: Lists::default(),
            words: Rows::new(topics as usize, none, Density::Auto).expect("no rows are not many"),
            visits: Vec::new(),
            documents: Vec::new(),
            before: Vec::new(),
            after: Vec::new(),
            left: vec![0; topics as usize],
            totals: Vec::new(),
            wave: 0,
        }
    }

    /// Takes away what lay here.
    pub fn clear(&mut self) {
        self.lists.clear();
        self.visits.clear();
        self.documents.clear();
        self.before.clear();
    }

    /// Lays out a word: its row, from the front of `from`, and its tokens, (document, topic), of which there are some.
    /// Topics are below K.
    ///
    /// # Errors
    /// [`WireError`] where there is no row. Within, [`NotInRow`]: the tokens are not among the row's. What lies here is
    /// not to be sampled then.
    pub fn lay(
        &mut self,
        from: &mut &[u8],
        tokens: impl Iterator<Item = (u32, T)>,
    ) -> Result<Result<(), NotInRow>, WireError> {
        let Self { lists, left, visits, documents, before, .. } = self;
        let word = lists.len() as u32;
        let row = lists.read(self.code, from)?;
        row.iter().for_each(|&(topic, count)| left[topic as usize] = count);
        let mut are_there = true;
        for (document, topic) in tokens {
            let count = &mut left[topic.get() as usize];
            are_there &= *count > 0;
            *count = count.saturating_sub(1);
            documents.push(document);
            before.push(topic);
        }
        row.iter().for_each(|&(topic, _)| left[topic as usize] = 0);
        visits.push(Visit { row: word, end: before.len() as u32 });
        Ok(if are_there { Ok(()) } else { Err(NotInRow) })
    }

    /// Samples all that lies here. `totals` are C_k of the round's start and `own` what its owner has added since,
    /// which is added to. Rows of documents must have these tokens.
    pub fn sample(
        &mut self,
        job: &Job,
        round: Round,
        key: BlockKey,
        totals: &[u32],
        own: &mut [i32],
        documents: &mut Rows<T>,
    ) {
        self.after.clone_from(&self.before);
        self.totals.clear();
        self.totals.extend(totals.iter().zip(&*own).map(|(&total, &own)| {
            total.checked_add_signed(own).expect("the round's start has all tokens of their owner")
        }));
        self.totals.resize(padded(job.topics() as usize), 0);
        self.words.renew(tokens_of(&self.lists)).expect("rows that came in one message");
        for (at, row) in self.lists.iter().enumerate() {
            self.words.write(at, row.iter().copied());
        }
        self.wave += 1;
        let block = GridBlock {
            key,
            visits: &self.visits,
            partner: &self.documents,
            z: &mut self.after,
            words: &mut self.words,
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
