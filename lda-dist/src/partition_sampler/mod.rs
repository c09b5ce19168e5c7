//! Where tokens are sampled, on a worker and on a server alike.
//!
//! Rows come in, and what has changed goes out; nothing here knows where from and where to. Tokens are laid out word by
//! word and sampled by F+LDA, whose visits are words: so each word's counts are loaded once, whoever sent them; or
//! documents, where words have [few tokens](visit_order). Before that WarpLDA may sample others by the same rows, which stay
//! with their owner: rows come to it without them, and have them as they are then.
//!
//! All of it is memory that is used again: a partition that is sampled allocates nothing once the largest has been.

mod delta;
mod visit_order;

use std::fmt;
use std::ops::Range;

use lda_core::counts::{Density, Rows, TopicIndex};
use lda_core::layout::RowRun;
use lda_core::sampler::{Block, BlockKey, Context, FPlus, GridBlock, Sampler, Warp, padded};

use crate::job::{Job, Round};
use crate::wire::{Lists, RowCode, WireError};
use delta::row_delta;
use visit_order::ByDocument;

/// WarpLDA's.
pub(crate) type WarpScratch<T> = <Warp as Sampler<T>>::Scratch;

/// Scratch of one thread.
pub(crate) struct PartitionSampler<T: TopicIndex> {
    scratch: <FPlus as Sampler<T>>::Scratch,
    warp: WarpScratch<T>,
    code: RowCode,
    /// Words' rows as they came, and as the sampler wants them.
    lists: Lists<u32>,
    words: Rows<T>,
    /// Whether these are of what lies here.
    rows_are_built: bool,
    /// WarpLDA's tokens, word by word: where each word's end, the topics that its row has of them, and those of after.
    long_ends: Vec<u32>,
    long_before: Vec<T>,
    long_after: Vec<T>,
    /// Tokens as they were laid out, word by word: where each word's end, their documents, topics before and after.
    visits: Vec<RowRun>,
    documents: Vec<u32>,
    before: Vec<T>,
    after: Vec<T>,
    /// The same tokens as they are sampled: by range of documents, and then by word.
    segments: Vec<Segment>,
    grid_visits: Vec<RowRun>,
    grid_documents: Vec<u32>,
    grid_topics: Vec<T>,
    /// Those of them that are sampled by document.
    by_document: ByDocument<T>,
    /// Of the last row's topics, what is left when its tokens are taken out, or what they take; else zeros, K of them.
    left: Vec<u32>,
    /// Of one word: what its topics have gained, else zeros, K of them; which ones; the same as a row.
    gained: Vec<i32>,
    touched: Vec<u32>,
    row: Vec<(u32, i32)>,
    /// C_k as the tokens' owner sees it.
    totals: Vec<u32>,
    wave: u64,
}

/// Tokens of a word in a range of documents.
#[derive(Clone, Copy, Debug)]
struct Segment {
    range: u32,
    word: u32,
    /// Among all that were laid out.
    start: u32,
    end: u32,
}

/// Tokens' owner, and what they are sampled by beside the rows that lie here.
#[derive(Debug)]
pub(crate) struct SampleContext<'a, T> {
    pub job: &'a Job,
    pub round: Round,
    /// Of what is sampled: random numbers follow from it.
    pub key: BlockKey,
    /// C_k of the round's start.
    pub totals: &'a [u32],
    /// What the owner has added since, which is added to.
    pub own: &'a mut [i32],
    /// C_d; they must have these tokens.
    pub documents: &'a mut Rows<T>,
}

/// What has come of some topics of a partition's rows, and what goes back.
#[derive(Debug)]
pub(crate) struct SliceRows<'a> {
    /// Which topics; on the way they count from 0.
    pub topics: Range<u32>,
    /// Rows, one behind the other.
    pub rows: &'a [u8],
    /// Behind this goes what they have gained.
    pub gained: Vec<u8>,
}

impl SliceRows<'_> {
    fn code(&self) -> RowCode {
        RowCode::new(self.topics.end - self.topics.start)
    }
}

/// Tokens that a row has not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NotInRow;

impl<T: TopicIndex> fmt::Debug for PartitionSampler<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PartitionSampler")
            .field("tokens", &self.after.len())
            .finish_non_exhaustive()
    }
}

/// How many tokens each row has.
pub(crate) fn tokens_of(rows: &Lists<u32>) -> impl Iterator<Item = u64> {
    rows.iter().map(|row| row.iter().map(|entry| u64::from(entry.1)).sum())
}

impl<T: TopicIndex> PartitionSampler<T> {
    pub fn new(topics: u32) -> Self {
        let none = std::iter::empty();
        Self {
            scratch: Sampler::<T>::scratch(&FPlus, topics as usize),
            warp: Sampler::<T>::scratch(&Warp::default(), topics as usize),
            code: RowCode::new(topics),
            lists: Lists::default(),
            words: Rows::new(topics as usize, none, Density::Auto).expect("no rows are not many"),
            rows_are_built: false,
            long_ends: Vec::new(),
            long_before: Vec::new(),
            long_after: Vec::new(),
            visits: Vec::new(),
            documents: Vec::new(),
            before: Vec::new(),
            after: Vec::new(),
            segments: Vec::new(),
            grid_visits: Vec::new(),
            grid_documents: Vec::new(),
            grid_topics: Vec::new(),
            by_document: ByDocument::default(),
            left: vec![0; topics as usize],
            gained: vec![0; topics as usize],
            touched: Vec::new(),
            row: Vec::new(),
            totals: Vec::new(),
            wave: 0,
        }
    }

    /// Bytes held, of the largest partition that lay here.
    pub fn memory(&self) -> usize {
        fn of<V>(values: &Vec<V>) -> usize {
            size_of::<V>() * values.capacity()
        }
        let tokens = of(&self.documents) + of(&self.before) + of(&self.after);
        let long = of(&self.long_ends) + of(&self.long_before) + of(&self.long_after);
        let grid = of(&self.segments) + of(&self.grid_documents) + of(&self.grid_topics);
        let visits = of(&self.visits) + of(&self.grid_visits);
        let topics = of(&self.left) + of(&self.gained) + of(&self.touched) + of(&self.row);
        self.lists.memory()
            + self.words.memory() as usize
            + tokens
            + long
            + grid
            + visits
            + topics
            + of(&self.totals)
            + self.by_document.memory()
    }

    /// Takes away what lay here.
    pub fn clear(&mut self) {
        self.lists.clear();
        self.visits.clear();
        self.documents.clear();
        self.before.clear();
        self.long_ends.clear();
        self.long_before.clear();
        self.long_after.clear();
        self.rows_are_built = false;
    }

    /// Topics of WarpLDA's tokens of the word that is laid out next, as its row has them.
    pub fn add_long_tokens(&mut self, topics: &[T]) {
        self.long_before.extend_from_slice(topics);
    }

    /// Whether some are WarpLDA's.
    pub fn has_long(&self) -> bool {
        !self.long_before.is_empty()
    }

    /// The topic of WarpLDA's next token after its pass, in the order that they were laid out.
    pub fn push_long_topic(&mut self, topic: T) {
        self.long_after.push(topic);
    }

    /// Lays out a word: its row, from the front of `from`, and its tokens, (document, topic). Topics are below K.
    ///
    /// # Errors
    /// [`WireError`] where there is no row. Within, [`NotInRow`]: the tokens are not among the row's. What lies here is
    /// not to be sampled then.
    pub fn add_word(
        &mut self,
        from: &mut &[u8],
        tokens: impl Iterator<Item = (u32, T)>,
    ) -> Result<Result<(), NotInRow>, WireError> {
        self.lists.read(self.code, from)?;
        Ok(self.add_tokens(tokens))
    }

    /// The same with a row of which each slice has some topics; the first has them from 0 on.
    ///
    /// # Errors
    /// As [`add_word`](Self::add_word).
    ///
    /// # Panics
    /// If there are no slices.
    pub fn add_sliced_word(
        &mut self,
        slices: &mut [SliceRows<'_>],
        tokens: impl Iterator<Item = (u32, T)>,
    ) -> Result<Result<(), NotInRow>, WireError> {
        let (first, more) = slices.split_first_mut().expect("a slice at least");
        self.lists.read(first.code(), &mut first.rows)?;
        for slice in more {
            self.lists.read_more(slice.code(), slice.topics.start, &mut slice.rows)?;
        }
        Ok(self.add_tokens(tokens))
    }

    /// The same with a copy of a row that stands as the sampler wants it; all words that lie here have such rows.
    pub fn add_word_from_rows(
        &mut self,
        rows: &Rows<T>,
        row: usize,
        tokens: impl Iterator<Item = (u32, T)>,
    ) -> Result<(), NotInRow> {
        let Self { words, left, visits, documents, before, long_ends, long_before, .. } = self;
        if !std::mem::replace(&mut self.rows_are_built, true) {
            words.renew(std::iter::empty()).expect("no rows are not many");
        }
        let first = before.len();
        let mut are_there = true;
        for (document, topic) in tokens {
            let taken = &mut left[topic.get() as usize];
            *taken += 1;
            are_there &= *taken <= rows.get(row, topic.get());
            documents.push(document);
            before.push(topic);
        }
        before[first..].iter().for_each(|topic| left[topic.get() as usize] = 0);
        words.push_copy(rows, row).expect("no more than others that there are");
        long_ends.push(long_before.len() as u32);
        visits.push(RowRun { row: visits.len() as u32, end: before.len() as u32 });
        if are_there { Ok(()) } else { Err(NotInRow) }
    }

    /// Lays out the tokens of the row that came last.
    fn add_tokens(&mut self, tokens: impl Iterator<Item = (u32, T)>) -> Result<(), NotInRow> {
        let Self { lists, left, visits, documents, before, long_ends, long_before, .. } = self;
        let word = lists.len() as u32 - 1;
        lists.last_mut().iter().for_each(|&(topic, count)| left[topic as usize] = count);
        let mut are_there = true;
        let mut take = |topic: T| {
            let count = &mut left[topic.get() as usize];
            are_there &= *count > 0;
            *count = count.saturating_sub(1);
        };
        let first = long_ends.last().map_or(0, |&end| end as usize);
        let of_long = &long_before[first..];
        of_long.iter().for_each(|&topic| take(topic));
        long_ends.push(long_before.len() as u32);
        for (document, topic) in tokens {
            take(topic);
            documents.push(document);
            before.push(topic);
        }
        if !of_long.is_empty() {
            // What is left, and these tokens.
            before[visits.last().map_or(0, |visit: &RowRun| visit.end as usize)..]
                .iter()
                .for_each(|topic| left[topic.get() as usize] += 1);
            lists.last_mut().iter_mut().for_each(|(topic, count)| *count = left[*topic as usize]);
        }
        let row = lists.last_mut();
        row.iter().for_each(|&(topic, _)| left[topic as usize] = 0);
        visits.push(RowRun { row: word, end: before.len() as u32 });
        if are_there { Ok(()) } else { Err(NotInRow) }
    }

    /// Cuts what lies here: each word's tokens by ranges of documents, of which `ends` are the ends.
    fn cut_by_range(&mut self, ends: &[u32]) {
        let Self { visits, documents, segments, .. } = self;
        segments.clear();
        let mut start = 0;
        for &RowRun { row: word, end } in &*visits {
            while start < end {
                let of_word = &documents[start as usize..end as usize];
                let range = ends.partition_point(|&end| end <= of_word[0]);
                let len = of_word.iter().take_while(|&&document| document < ends[range]).count();
                let next = start + len as u32;
                segments.push(Segment { range: range as u32, word, start, end: next });
                start = next;
            }
        }
        // Words of a range stay in order.
        segments.sort_by_key(|segment| segment.range);
    }

    /// Puts the tokens of segments one behind the other.
    fn gather_segments(&mut self) {
        let Self { documents, after, segments, .. } = self;
        self.grid_visits.clear();
        self.grid_documents.clear();
        self.grid_topics.clear();
        for &Segment { word, start, end, .. } in &*segments {
            let tokens = start as usize..end as usize;
            self.grid_documents.extend_from_slice(&documents[tokens.clone()]);
            self.grid_topics.extend_from_slice(&after[tokens]);
            self.grid_visits.push(RowRun { row: word, end: self.grid_topics.len() as u32 });
        }
    }

    /// C_k as their owner sees it.
    fn update_totals(&mut self, totals: &[u32], own: impl Iterator<Item = i32>) {
        self.totals.clear();
        self.totals.extend(totals.iter().zip(own).map(|(&total, own)| {
            total.checked_add_signed(own).expect("the round's start has all tokens of their owner")
        }));
        self.totals.resize(padded(totals.len()), 0);
        self.wave += 1;
    }

    /// Makes rows of what lies here, without WarpLDA's tokens, and with room for them.
    fn build_rows(&mut self) {
        if std::mem::replace(&mut self.rows_are_built, true) {
            return;
        }
        let mut start = 0;
        let of_long = self.long_ends.iter().map(|&end| end - std::mem::replace(&mut start, end));
        let tokens =
            tokens_of(&self.lists).zip(of_long).map(|(tokens, long)| tokens + u64::from(long));
        self.words.renew(tokens).expect("rows that came in one message");
        for (at, row) in self.lists.iter().enumerate() {
            // Of a topic that WarpLDA's tokens alone have there is none now.
            self.words.write(at, row.iter().copied().filter(|entry| entry.1 > 0));
        }
    }

    /// Has WarpLDA do a pass, which is given the rows that lie here; they are to have its tokens when it is done.
    /// `totals` and `own` are as an [`SampleContext`] has them.
    pub fn run_warp_pass(
        &mut self,
        job: &Job,
        round: Round,
        totals: &[u32],
        own: impl Iterator<Item = i32>,
        pass: impl FnOnce(&Context<'_>, &mut WarpScratch<T>, &mut Rows<T>),
    ) {
        self.update_totals(totals, own);
        self.build_rows();
        pass(&job.context(round, &self.totals, self.wave), &mut self.warp, &mut self.words);
    }

    /// Rows are without WarpLDA's tokens once more, for it to do its pass again.
    pub fn invalidate_rows(&mut self) {
        self.rows_are_built = false;
    }

    /// Samples all that lies here so many times, by ranges of documents that end with these numbers: rows of one range
    /// are near each other, and in the cache. Where there is one it is sampled [either way](visit_order), and the key with
    /// the next number of documents is its own too.
    ///
    /// # Panics
    /// If a document is beyond the last range, or if a word's documents do not ascend.
    pub fn sample(&mut self, ends: &[u32], passes: u8, of: &mut SampleContext<'_, T>) {
        self.build_rows();
        self.after.clone_from(&self.before);
        let is_cut = ends.len() > 1;
        if is_cut {
            self.cut_by_range(ends);
        }
        for again in 0..passes {
            if is_cut {
                self.sample_by_word(again, of);
            } else {
                self.choose_orders(of.documents);
                self.sample_in_chosen_order(again, of);
            }
        }
    }

    /// Samples the tokens of segments.
    fn sample_by_word(&mut self, again: u8, of: &mut SampleContext<'_, T>) {
        self.gather_segments();
        self.update_totals(of.totals, of.own.iter().copied());
        let block = GridBlock {
            key: of.key,
            visits: &self.grid_visits,
            partner: &self.grid_documents,
            z: &mut self.grid_topics,
            words: &mut self.words,
            documents: of.documents,
            tables: None,
        };
        let context = Context { again, ..of.job.context(of.round, &self.totals, self.wave) };
        let outcome = FPlus.sample(0, &context, &mut self.scratch, Block::Grid(block));
        for (topic, by) in outcome.totals {
            of.own[topic as usize] += by;
        }
        let mut sampled = &self.grid_topics[..];
        for &Segment { start, end, .. } in &self.segments {
            let (of_segment, rest) = sampled.split_at((end - start) as usize);
            self.after[start as usize..end as usize].copy_from_slice(of_segment);
            sampled = rest;
        }
    }

    /// The new topics, in the order that tokens were laid out.
    pub fn topics(&self) -> &[T] {
        &self.after
    }

    /// Topics of all rows that lie here.
    pub fn entries(&self) -> usize {
        self.lists.entries()
    }

    /// What each word's row has gained, topics ascending and none of 0: `f(row, gained)`, rows in order, those that
    /// have gained nothing too.
    pub fn for_each_delta(&mut self, mut f: impl FnMut(u32, &[(u32, i32)])) {
        let Self { visits, before, after, gained, touched, row, .. } = self;
        let Self { long_ends, long_before, long_after, .. } = self;
        let (mut start, mut long_start) = (0, 0);
        for (visit, &long_end) in visits.iter().zip(&*long_ends) {
            let (end, long_end) = (visit.end as usize, long_end as usize);
            let short = before[start..end].iter().zip(&after[start..end]);
            let long = long_before[long_start..long_end].iter();
            let long = long.zip(&long_after[long_start..long_end]);
            row_delta(short.chain(long), gained, touched, row);
            f(visit.row, row);
            (start, long_start) = (end, long_end);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_has_its_own_row_alone() {
        let code = RowCode::new(5);
        let mut bytes = Vec::new();
        code.encode(&[(1, 2u32), (3, 1)], &mut bytes);
        code.encode(&[(3, 1u32)], &mut bytes);
        let lay = |second: u16| {
            let (mut sampler, mut rest) = (PartitionSampler::<u16>::new(5), &bytes[..]);
            let first = [(0, 1), (4, 1)].into_iter();
            assert_eq!(sampler.add_word(&mut rest, first), Ok(Ok(())));
            sampler.add_word(&mut rest, [(2, second)].into_iter())
        };
        assert_eq!(lay(3), Ok(Ok(())));
        assert_eq!(lay(1), Ok(Err(NotInRow)));
        // Of the first word a token of topic 1 is left, which the second has not.
        let (mut sampler, mut rest) = (PartitionSampler::<u16>::new(5), &bytes[..]);
        assert_eq!(sampler.add_word(&mut rest, [(0, 1)].into_iter()), Ok(Ok(())));
        assert_eq!(sampler.add_word(&mut rest, [(0, 1)].into_iter()), Ok(Err(NotInRow)));
    }

    #[test]
    fn rows_come_to_warp_lda_without_its_tokens() {
        let code = RowCode::new(5);
        let mut bytes = Vec::new();
        code.encode(&[(1, 2u32), (3, 1), (4, 2)], &mut bytes);
        code.encode(&[(0, 7u32)], &mut bytes);
        let (mut sampler, mut rest) = (PartitionSampler::<u16>::new(5), &bytes[..]);
        sampler.add_long_tokens(&[3, 4]);
        assert_eq!(sampler.add_word(&mut rest, [(0, 1), (0, 4)].into_iter()), Ok(Ok(())));
        assert_eq!(sampler.add_word(&mut rest, [(0, 0)].into_iter()), Ok(Ok(())));
        let job = Job::new(5, 2, 0.1.into(), 0.1, 0).unwrap();
        let round = Round { epoch: 1, number: 0, attempt: 0 };
        sampler.run_warp_pass(
            &job,
            round,
            &[7, 2, 0, 1, 2],
            [0; 5].into_iter(),
            |context, _, rows| {
                assert_eq!(context.totals[..5], [7, 2, 0, 1, 2]);
                let row = |word| {
                    let mut row = Vec::new();
                    rows.for_each(word, |topic, count| row.push((topic, count)));
                    row.sort_unstable();
                    row
                };
                assert_eq!((row(0), row(1)), (vec![(1, 2), (4, 1)], vec![(0, 7)]));
            },
        );
        [3, 2].into_iter().for_each(|topic| sampler.push_long_topic(topic));
        sampler.after.clone_from(&sampler.before);
        let mut gained = Vec::new();
        sampler.for_each_delta(|row, gains| gained.push((row, gains.to_vec())));
        assert_eq!(gained, [(0, vec![(2, 1), (4, -1)]), (1, vec![])]);
        // A row that has not both its tokens and WarpLDA's.
        sampler.clear();
        sampler.add_long_tokens(&[3]);
        assert_eq!(sampler.add_word(&mut &bytes[..], [(0, 3)].into_iter()), Ok(Err(NotInRow)));
    }

    #[test]
    fn a_copy_has_its_own_row_alone() {
        let mut rows = Rows::<u16>::new(5, [0, 3].into_iter(), Density::Auto).unwrap();
        rows.write(1, [(1, 2), (3, 1)].into_iter());
        let lay = |topics: &[u16]| {
            let mut sampler = PartitionSampler::<u16>::new(5);
            sampler.add_word_from_rows(&rows, 1, topics.iter().map(|&topic| (0, topic)))
        };
        assert_eq!(lay(&[1, 3, 1]), Ok(()));
        assert_eq!(lay(&[1, 1, 1]), Err(NotInRow));
        assert_eq!(lay(&[2]), Err(NotInRow));
    }
}
