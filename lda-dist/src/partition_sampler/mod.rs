//! Sampler of one partition's tokens, used by workers (pulled rows) and servers (pushed tokens).
//!
//! Encoded rows go in and row deltas come out; this module does not depend on where they are sent.
//! Tokens are laid out word by word. Samplers visit them by word, by document, or some in either way
//! ([`Order`]); F+LDA visits words with [few tokens](visit_order) by document. Before that, WarpLDA
//! can sample the long documents' tokens with the same rows. Those tokens stay with the shard:
//! WarpLDA gets rows that do not count them, and adds them to the rows, with their current topics,
//! before the other sampler runs.
//!
//! All buffers are reused: once the largest partition has been sampled, sampling allocates nothing.

mod delta;
mod kind;
mod segments;
mod tokens;
mod visit_order;

use std::fmt;
use std::ops::Range;

use lda_core::counts::{Density, Rows, TopicIndex};
use lda_core::layout::RowRun;
use lda_core::sampler::{BlockKey, Context, GridBlock, Sampler, Warp, padded};
use lda_core::train::SamplerOptions;

use crate::spec::{ModelSpec, Round};
use crate::wire::{Lists, RowCode, WireError};
use delta::Delta;
use kind::{Kind, Order, Pass};
use segments::Segments;
use tokens::{LongTokens, Tokens};
use visit_order::ByDocument;

/// Scratch memory of WarpLDA.
pub(crate) type WarpScratch<T> = <Warp as Sampler<T>>::Scratch;

/// Sampler of one partition at a time, with the buffers that it reuses. One per thread.
///
/// A partition is sampled in three steps: [`clear`](Self::clear); for each word
/// [`add_word`](Self::add_word) or one of its variants; then [`sample`](Self::sample). The results
/// are read with [`topics`](Self::topics) and [`for_each_delta`](Self::for_each_delta).
pub(crate) struct PartitionSampler<T: TopicIndex> {
    kind: Kind<T>,
    warp: WarpScratch<T>,
    code: RowCode,
    /// Rows of the words as (topic, count) lists, without WarpLDA's tokens.
    lists: Lists<u32>,
    /// The same rows in the form that samplers update.
    words: Rows<T>,
    /// Whether `words` holds the rows of the current partition.
    rows_are_built: bool,
    /// Tokens that WarpLDA samples.
    long: LongTokens<T>,
    /// Tokens that WarpLDA does not sample.
    tokens: Tokens<T>,
    /// The tokens that are sampled word by word.
    by_word: Segments<T>,
    /// The tokens that are sampled document by document.
    by_document: ByDocument<T>,
    /// Scratch of length K, zero between words: counts of the last row that its tokens leave over.
    left: Vec<u32>,
    /// Scratch for sorting lists.
    entries: Vec<u64>,
    delta: Delta,
    totals: Totals,
}

/// C_k at the round's start plus the shard's own changes since.
struct Totals {
    /// Padded for the samplers.
    values: Vec<u32>,
    /// Number of times that they have changed: samplers cache tables for one such number.
    wave: u64,
}

impl Totals {
    /// Sets them to the given C_k plus the changes in `own`.
    fn update(&mut self, totals: &[u32], own: impl Iterator<Item = i32>) {
        self.values.clear();
        self.values.extend(totals.iter().zip(own).map(|(&total, own)| {
            total
                .checked_add_signed(own)
                .expect("C_k at the round's start counts all tokens of the shard")
        }));
        self.values.resize(padded(totals.len()), 0);
        self.wave += 1;
    }

    /// Context of samplers in pass `again` of a round.
    fn context<'a>(&'a self, spec: &'a ModelSpec, round: Round, again: u8) -> Context<'a> {
        Context { again, ..spec.context(round, &self.values, self.wave) }
    }
}

/// Values that all partitions of a round share.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RoundContext<'a> {
    /// K, V, priors and seed.
    pub spec: &'a ModelSpec,
    /// Current epoch and round.
    pub round: Round,
    /// C_k at the round's start.
    pub totals: &'a [u32],
    /// How often each token is sampled.
    pub passes: u8,
}

/// Inputs of sampling besides the words' rows: the model, the position in the run, C_k and C_d.
#[derive(Debug)]
pub(crate) struct SampleContext<'a, T> {
    /// K, V, priors and seed.
    pub spec: &'a ModelSpec,
    /// Current epoch and round.
    pub round: Round,
    /// Key of the random stream of this partition of this shard.
    pub key: BlockKey,
    /// C_k at the round's start.
    pub totals: &'a [u32],
    /// Changes of C_k since then by this shard or request; sampling adds to them.
    pub own: &'a mut [i32],
    /// C_d, which must count the tokens; sampling updates it.
    pub documents: &'a mut Rows<T>,
}

/// Rows of one slice (a range of topics) of a partition, and the deltas to push back to its server.
#[derive(Debug)]
pub(crate) struct SliceRows<'a> {
    /// Topics of the slice; encoded rows number them from 0.
    pub topics: Range<u32>,
    /// Encoded rows, concatenated in the order of the partition's words.
    pub rows: &'a [u8],
    /// Encoded deltas of the same rows are appended to this.
    pub deltas: Vec<u8>,
}

impl SliceRows<'_> {
    fn code(&self) -> RowCode {
        RowCode::new(self.topics.end - self.topics.start)
    }
}

/// Error: the row of a word counts fewer tokens of a topic than were given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NotInRow;

impl<T: TopicIndex> fmt::Debug for PartitionSampler<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PartitionSampler")
            .field("tokens", &self.tokens.after.len())
            .finish_non_exhaustive()
    }
}

/// Number of tokens that each row counts.
pub(crate) fn tokens_of(rows: &Lists<u32>) -> impl Iterator<Item = u64> {
    rows.iter().map(|row| row.iter().map(|entry| u64::from(entry.1)).sum())
}

impl<T: TopicIndex> PartitionSampler<T> {
    /// An empty sampler for K topics. `options` are of a kind that
    /// [`Options::check`](crate::config::Options::check) allows.
    pub fn new(topics: u32, options: SamplerOptions) -> Self {
        let none = std::iter::empty();
        Self {
            kind: Kind::of(&options),
            warp: Sampler::<T>::scratch(&Warp::default(), topics as usize),
            code: RowCode::new(topics),
            lists: Lists::default(),
            words: Rows::new(topics as usize, none, Density::Auto)
                .expect("an empty set of rows fits"),
            rows_are_built: false,
            long: LongTokens::new(),
            tokens: Tokens::new(),
            by_word: Segments::new(),
            by_document: ByDocument::default(),
            left: vec![0; topics as usize],
            entries: Vec::new(),
            delta: Delta::new(topics),
            totals: Totals { values: Vec::new(), wave: 0 },
        }
    }

    /// Bytes allocated; they follow from the largest partition so far.
    pub fn memory(&self) -> usize {
        self.lists.memory()
            + self.words.memory() as usize
            + self.tokens.memory()
            + self.long.memory()
            + self.by_word.memory()
            + self.by_document.memory()
            + self.delta.memory()
            + size_of::<u32>() * (self.left.capacity() + self.totals.values.capacity())
            + size_of::<u64>() * self.entries.capacity()
    }

    /// Removes all words and tokens, and keeps the buffers.
    pub fn clear(&mut self) {
        self.lists.clear();
        self.tokens.clear();
        self.long.clear();
        self.rows_are_built = false;
    }

    /// Adds WarpLDA's tokens of the next word, by the topics with which its row counts them. Call
    /// this before the word is added.
    pub fn add_long_tokens(&mut self, topics: &[T]) {
        self.long.before.extend_from_slice(topics);
    }

    /// Whether any token was added with `add_long_tokens`.
    pub fn has_long(&self) -> bool {
        !self.long.before.is_empty()
    }

    /// Sets the new topic of WarpLDA's next token, in the order in which the tokens were added.
    pub fn push_long_topic(&mut self, topic: T) {
        self.long.after.push(topic);
    }

    /// Adds a word: decodes its row from the front of `from`, and takes its tokens as
    /// (document, topic), topics below K.
    ///
    /// # Errors
    /// [`WireError`] if the row is malformed. The inner error is [`NotInRow`]: the row counts fewer
    /// tokens than were given. After an error the partition must not be sampled.
    pub fn add_word(
        &mut self,
        from: &mut &[u8],
        tokens: impl Iterator<Item = (u32, T)>,
    ) -> Result<Result<(), NotInRow>, WireError> {
        self.lists.read(self.code, from)?;
        Ok(self.add_tokens(tokens))
    }

    /// Adds a word whose row is cut by topic: decodes its part from the front of each slice, in
    /// the order of their topics.
    ///
    /// # Errors
    /// See [`add_word`](Self::add_word).
    ///
    /// # Panics
    /// If there are no slices.
    pub fn add_sliced_word(
        &mut self,
        slices: &mut [SliceRows<'_>],
        tokens: impl Iterator<Item = (u32, T)>,
    ) -> Result<Result<(), NotInRow>, WireError> {
        let (first, more) = slices.split_first_mut().expect("a partition has a slice");
        self.lists.read(first.code(), &mut first.rows)?;
        for slice in more {
            self.lists.read_more(slice.code(), slice.topics.start, &mut slice.rows)?;
        }
        Ok(self.add_tokens(tokens))
    }

    /// Adds a word with a copy of an already decoded row. Either all words of a partition are added
    /// like this, or none.
    pub fn add_word_from_rows(
        &mut self,
        rows: &Rows<T>,
        row: usize,
        tokens: impl Iterator<Item = (u32, T)>,
    ) -> Result<(), NotInRow> {
        let Self { words, left, tokens: of_partition, .. } = self;
        if !std::mem::replace(&mut self.rows_are_built, true) {
            words.renew(std::iter::empty()).expect("an empty set of rows fits");
        }
        // Here `left` counts the tokens taken per topic, so that the row need not be copied out.
        let mut are_there = true;
        for (document, topic) in tokens {
            let taken = &mut left[topic.get() as usize];
            *taken += 1;
            are_there &= *taken <= rows.get(row, topic.get());
            of_partition.push(document, topic);
        }
        let of_word = of_partition.since_last_word();
        of_word.iter().for_each(|topic| left[topic.get() as usize] = 0);
        words.push_copy(rows, row).expect("the rows it is copied from fit as well");
        of_partition.end_word();
        self.long.end_word();
        if are_there { Ok(()) } else { Err(NotInRow) }
    }

    /// Adds a word whose row, in the rows that [`sample_held`](Self::sample_held) gets, counts its tokens,
    /// given by their documents and topics. Either all words of a partition are added like this, or none.
    pub fn add_held_word(&mut self, row: u32, documents: &[u32], topics: &[T]) {
        self.tokens.add_word_of(row, documents, topics);
    }

    /// As [`add_held_word`](Self::add_held_word), with tokens as pairs of document and topic.
    pub fn add_held_tokens(&mut self, row: u32, tokens: impl Iterator<Item = (u32, T)>) {
        tokens.for_each(|(document, topic)| self.tokens.push(document, topic));
        self.tokens.add_word_of(row, &[], &[]);
    }

    /// Adds the tokens of the last row in `lists`, and removes WarpLDA's tokens from that row.
    fn add_tokens(&mut self, tokens: impl Iterator<Item = (u32, T)>) -> Result<(), NotInRow> {
        let Self { lists, left, tokens: of_partition, long, .. } = self;
        lists.last_mut().iter().for_each(|&(topic, count)| left[topic as usize] = count);
        let mut are_there = true;
        let mut take = |topic: T| {
            let count = &mut left[topic.get() as usize];
            are_there &= *count > 0;
            *count = count.saturating_sub(1);
        };
        let of_long = long.since_last_word();
        of_long.iter().for_each(|&topic| take(topic));
        for (document, topic) in tokens {
            take(topic);
            of_partition.push(document, topic);
        }
        if !of_long.is_empty() {
            // `left` now lacks both WarpLDA's tokens and the given ones: put the latter back, and
            // the row is as WarpLDA needs it.
            let of_word = of_partition.since_last_word();
            of_word.iter().for_each(|topic| left[topic.get() as usize] += 1);
            lists.last_mut().iter_mut().for_each(|(topic, count)| *count = left[*topic as usize]);
        }
        let row = lists.last_mut();
        row.iter().for_each(|&(topic, _)| left[topic as usize] = 0);
        of_partition.end_word();
        long.end_word();
        if are_there { Ok(()) } else { Err(NotInRow) }
    }

    /// Builds `words` from `lists`: rows without WarpLDA's tokens, but with room for them.
    fn build_rows(&mut self) {
        if std::mem::replace(&mut self.rows_are_built, true) {
            return;
        }
        let of_both = tokens_of(&self.lists).zip(self.long.words());
        let tokens = of_both.map(|(tokens, long)| tokens + long.len() as u64);
        self.words.renew(tokens).expect("rows of one message fit");
        for (at, row) in self.lists.iter().enumerate() {
            // A topic that only WarpLDA's tokens had is now 0, and rows have no zero entries.
            self.words.write(at, row.iter().copied().filter(|entry| entry.1 > 0));
        }
    }

    /// Runs one pass of WarpLDA: calls `pass` with the rows, which must count WarpLDA's tokens when
    /// it returns. `totals` and `own` have the meaning of those in [`SampleContext`].
    pub fn run_warp_pass(
        &mut self,
        spec: &ModelSpec,
        round: Round,
        totals: &[u32],
        own: impl Iterator<Item = i32>,
        pass: impl FnOnce(&Context<'_>, &mut WarpScratch<T>, &mut Rows<T>),
    ) {
        self.totals.update(totals, own);
        self.build_rows();
        pass(&self.totals.context(spec, round, 0), &mut self.warp, &mut self.words);
    }

    /// Discards the built rows, so that the next pass of WarpLDA gets rows without its tokens
    /// again.
    pub fn invalidate_rows(&mut self) {
        self.rows_are_built = false;
    }

    /// Samples all tokens `passes` times. `ends` are the ends of document ranges, which are sampled
    /// one after the other so that their rows of C_d stay in the cache; only with a single range does
    /// F+LDA sample words with few tokens [by document](visit_order). What is sampled by document
    /// uses the random stream of `key.documents + 1`, so that number must belong to this partition
    /// too.
    ///
    /// # Panics
    /// If a document is beyond the last range, or if the documents of a word do not ascend.
    pub fn sample(&mut self, ends: &[u32], passes: u8, cx: &mut SampleContext<'_, T>) {
        self.build_rows();
        self.choose_tokens(ends.len() > 1, cx.documents);
        self.sample_chosen_first(ends, passes, cx);
    }

    /// As [`sample`](Self::sample), with the rows of all [held words](Self::add_held_word), which count the
    /// new topics afterwards. Draws what [`sample`](Self::sample) draws from encoded rows with the same
    /// counts.
    ///
    /// # Panics
    /// See [`sample`](Self::sample).
    pub fn sample_held(
        &mut self,
        rows: &mut Rows<T>,
        ends: &[u32],
        passes: u8,
        cx: &mut SampleContext<'_, T>,
    ) {
        std::mem::swap(&mut self.words, rows);
        self.rows_are_built = true;
        self.choose_tokens(ends.len() > 1, cx.documents);
        if self.kind.depends_on_order || self.by_document.chosen().is_some() {
            let Self { words, tokens, entries, .. } = self;
            tokens.visits.iter().for_each(|visit| words.sort_list(visit.row as usize, entries));
        }
        self.sample_chosen_first(ends, passes, cx);
        std::mem::swap(&mut self.words, rows);
        self.rows_are_built = false;
    }

    /// Samples all tokens, after those that the first pass samples by document were chosen.
    fn sample_chosen_first(&mut self, ends: &[u32], passes: u8, cx: &mut SampleContext<'_, T>) {
        self.tokens.after.clone_from(&self.tokens.before);
        for again in 0..passes {
            if again > 0 {
                self.choose_tokens(ends.len() > 1, cx.documents);
            }
            self.sample_in_chosen_order(again, ends, cx);
        }
    }

    /// Chooses the tokens that are sampled by document.
    fn choose_tokens(&mut self, is_cut: bool, documents: &Rows<T>) {
        let Self { by_document, tokens, words, .. } = self;
        match self.kind.order {
            Order::ByWord => by_document.choose_none(),
            Order::ByDocument => by_document.choose_all(tokens, documents),
            Order::ByDegree => by_document.choose_by_degree(tokens, words, documents),
            Order::Cheapest if is_cut => by_document.choose_none(),
            Order::Cheapest => by_document.choose_cheapest(tokens, words, documents),
        }
    }

    /// Samples the tokens in the chosen order: by word first, then by document. `again` is the pass.
    fn sample_in_chosen_order(&mut self, again: u8, ends: &[u32], cx: &mut SampleContext<'_, T>) {
        let Self { by_word, by_document, tokens, words, totals, kind, .. } = self;
        let is_whole = ends.len() == 1 && by_document.chosen().is_none();
        if is_whole && tokens.each_word_has_some() {
            // PERF: the tokens are in this order already, so they need no copies.
            let Tokens { visits, documents, after, .. } = tokens;
            let run = TokenRun { visits, documents, topics: after };
            sample_by_word(run, (again, kind.by_word()), words, totals, cx);
            return;
        }
        by_word.cut(tokens, ends, by_document.chosen());
        if by_word.len() > 0 {
            by_word.gather(tokens);
            let Segments { visits, documents, topics, .. } = by_word;
            let run = TokenRun { visits, documents, topics };
            sample_by_word(run, (again, kind.by_word()), words, totals, cx);
            by_word.scatter(tokens);
        }
        if by_document.chosen().is_some() {
            by_document.sample((again, kind.by_document()), tokens, words, totals, cx);
        }
    }

    /// Topics after sampling, in the order in which the tokens were added.
    pub fn topics(&self) -> &[T] {
        &self.tokens.after
    }

    /// Number of (topic, count) entries of all rows.
    pub fn entries(&self) -> usize {
        self.lists.entries()
    }

    /// Calls `f(word, delta)` for every word in order, also for those whose delta is empty. Deltas
    /// are (topic, change), topics ascending, without zeros, and include WarpLDA's tokens.
    pub fn for_each_delta(&mut self, mut f: impl FnMut(u32, &[(u32, i32)])) {
        let Self { tokens, long, delta, .. } = self;
        for ((word, of_word), of_long) in tokens.words().zip(long.words()) {
            let of_word = of_word.start as usize..of_word.end as usize;
            let short = tokens.before[of_word.clone()].iter().zip(&tokens.after[of_word]);
            let long = long.before[of_long.clone()].iter().zip(&long.after[of_long]);
            f(word, delta.of_row(short.chain(long)));
        }
    }
}

/// Tokens that are sampled word by word: for each visit a row and the end of its tokens.
struct TokenRun<'a, T> {
    visits: &'a [RowRun],
    documents: &'a [u32],
    topics: &'a mut [T],
}

/// Samples tokens word by word in pass `again`.
fn sample_by_word<T: TopicIndex>(
    run: TokenRun<'_, T>,
    (again, pass): (u8, &mut dyn Pass<T>),
    words: &mut Rows<T>,
    totals: &mut Totals,
    cx: &mut SampleContext<'_, T>,
) {
    totals.update(cx.totals, cx.own.iter().copied());
    let TokenRun { visits, documents: partner, topics: z } = run;
    let key = cx.key;
    let block = GridBlock { key, visits, partner, z, words, documents: cx.documents, tables: None };
    let outcome = pass.sample(&totals.context(cx.spec, cx.round, again), block);
    for (topic, by) in outcome.totals {
        cx.own[topic as usize] += by;
    }
}

#[cfg(test)]
mod tests {
    use lda_core::train::SamplerKind;

    use super::*;

    fn sampler() -> PartitionSampler<u16> {
        PartitionSampler::new(5, SamplerKind::FPlus.into())
    }

    #[test]
    fn tokens_are_checked_against_the_row_of_their_own_word() {
        let code = RowCode::new(5);
        let mut bytes = Vec::new();
        code.encode(&[(1, 2u32), (3, 1)], &mut bytes);
        code.encode(&[(3, 1u32)], &mut bytes);
        let lay = |second: u16| {
            let (mut sampler, mut rest) = (sampler(), &bytes[..]);
            let first = [(0, 1), (4, 1)].into_iter();
            assert_eq!(sampler.add_word(&mut rest, first), Ok(Ok(())));
            sampler.add_word(&mut rest, [(2, second)].into_iter())
        };
        assert_eq!(lay(3), Ok(Ok(())));
        assert_eq!(lay(1), Ok(Err(NotInRow)));
        // The first word has a token of topic 1 left over, which must not count for the second.
        let (mut sampler, mut rest) = (sampler(), &bytes[..]);
        assert_eq!(sampler.add_word(&mut rest, [(0, 1)].into_iter()), Ok(Ok(())));
        assert_eq!(sampler.add_word(&mut rest, [(0, 1)].into_iter()), Ok(Err(NotInRow)));
    }

    #[test]
    fn warp_lda_gets_rows_without_its_own_tokens() {
        let code = RowCode::new(5);
        let mut bytes = Vec::new();
        code.encode(&[(1, 2u32), (3, 1), (4, 2)], &mut bytes);
        code.encode(&[(0, 7u32)], &mut bytes);
        let (mut sampler, mut rest) = (sampler(), &bytes[..]);
        sampler.add_long_tokens(&[3, 4]);
        assert_eq!(sampler.add_word(&mut rest, [(0, 1), (0, 4)].into_iter()), Ok(Ok(())));
        assert_eq!(sampler.add_word(&mut rest, [(0, 0)].into_iter()), Ok(Ok(())));
        let spec = ModelSpec::new(5, 2, 0.1.into(), 0.1, 0).unwrap();
        let round = Round { epoch: 1, number: 0, attempt: 0 };
        sampler.run_warp_pass(
            &spec,
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
        sampler.tokens.after.clone_from(&sampler.tokens.before);
        let mut deltas = Vec::new();
        sampler.for_each_delta(|row, delta| deltas.push((row, delta.to_vec())));
        assert_eq!(deltas, [(0, vec![(2, 1), (4, -1)]), (1, vec![])]);
        // One token of topic 3 in the row, but one each of WarpLDA's and F+LDA's.
        sampler.clear();
        sampler.add_long_tokens(&[3]);
        assert_eq!(sampler.add_word(&mut &bytes[..], [(0, 3)].into_iter()), Ok(Err(NotInRow)));
    }

    #[test]
    fn tokens_are_checked_against_a_copied_row() {
        let mut rows = Rows::<u16>::new(5, [0, 3].into_iter(), Density::Auto).unwrap();
        rows.write(1, [(1, 2), (3, 1)].into_iter());
        let lay = |topics: &[u16]| {
            let mut sampler = sampler();
            sampler.add_word_from_rows(&rows, 1, topics.iter().map(|&topic| (0, topic)))
        };
        assert_eq!(lay(&[1, 3, 1]), Ok(()));
        assert_eq!(lay(&[1, 1, 1]), Err(NotInRow));
        assert_eq!(lay(&[2]), Err(NotInRow));
    }
}
