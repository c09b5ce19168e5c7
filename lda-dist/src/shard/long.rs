//! Long documents of a shard, which WarpLDA samples (LDA*, section 4.1).
//!
//! An epoch begins with the pass over documents, which needs only their own tokens and C_k: it
//! accepts or rejects the proposals of the last pass over words, and makes new ones. The pass over
//! words runs partition by partition, with the rows that were pulled: the rows count all tokens of
//! a word, of all documents and shards, but only those of long documents move. The proposals of
//! this pass wait for the next epoch. So each token may move twice per epoch, but its server gets
//! one delta, when its partition is done; until then the server counts the token with its previous,
//! **known** topic. As a consequence, other shards see the first of the two moves up to an epoch
//! late.
//!
//! Both passes may be [repeated](crate::config::Options::passes) for a partition's tokens while its
//! rows are on the worker. A repeated pass over documents leaves tokens of other partitions
//! unchanged, but counts them, which takes time proportional to the documents' lengths. If
//! documents have few tokens in a partition, repeated passes take several times as long as the
//! first one.
//!
//! No rows of C_d are stored: a document is counted from its tokens, in the pass or on request. The
//! tokens of a range of documents, which fit into a cache, are contiguous: ordered by partition,
//! word and document.
//!
//! Memory per token: 2 + M topics of 2 or 4 bytes, and 4 bytes for its place by document; 8 bytes
//! per word of a range.

use std::ops::Range;

use lda_core::counts::{Rows, TopicIndex};
use lda_core::layout::RowRun;
use lda_core::sampler::{
    Block, BlockKey, Column, Context, DocumentBlock, Outcome, Sampler, Warp, WordBlock,
};

use super::ShardError;
use crate::config::Hybrid;
use crate::partition_sampler::WarpScratch;

/// All long documents of a shard.
#[derive(Debug)]
pub(super) struct Long<T> {
    /// Proposals per token, M.
    steps: usize,
    ranges: Vec<Documents<T>>,
    /// Changes of C_k that are not in the deltas pushed so far.
    untold: Vec<i32>,
}

/// A range of long documents.
#[derive(Debug)]
struct Documents<T> {
    /// Tokens of each document, and the first of them in `inverse`.
    lengths: Vec<u32>,
    firsts: Vec<u32>,
    /// Slots of each document's tokens, document by document.
    inverse: Vec<u32>,
    /// 1 + M values per slot: the token's topic, and its proposals.
    tokens: Vec<T>,
    /// Topic of each slot that the server counts.
    known: Vec<T>,
    /// Words by partition: the word's place among the shard's, and the end of its tokens.
    visits: Vec<RowRun>,
    /// First visit and first slot of each partition, and the end.
    starts: Vec<(u32, u32)>,
}

fn add(untold: &mut [i32], outcome: &Outcome) {
    outcome.totals.iter().for_each(|&(topic, by)| untold[topic as usize] += by);
}

/// Token of a long document: partition, word, document in its range, topic.
pub(super) type Token<T> = (u16, u32, u32, T);

/// Position of a walk over a partition's words, in each range.
#[derive(Clone, Debug)]
pub(super) struct Walk(Vec<(usize, u32)>);

impl<T: TopicIndex> Long<T> {
    /// Ranges of documents, each with its documents' lengths and its tokens, documents in order.
    /// `place` returns a word's index among the shard's words of its partition.
    ///
    /// # Errors
    /// [`ShardError::Tokens`].
    pub fn new(
        hybrid: Hybrid,
        topics: u32,
        partitions: usize,
        ranges: Vec<(Vec<u32>, Vec<Token<T>>)>,
        place: impl Fn(u16, u32) -> u32,
    ) -> Result<Self, ShardError> {
        let steps = usize::from(hybrid.mh_steps);
        let range = |(lengths, tokens)| Documents::new(steps, partitions, lengths, tokens, &place);
        let ranges = ranges.into_iter().map(range).collect::<Result<_, _>>()?;
        Ok(Self { steps, ranges, untold: vec![0; topics as usize] })
    }

    /// Returns whether there are no long documents.
    pub fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// Number of tokens.
    pub fn num_tokens(&self) -> usize {
        self.ranges.iter().map(|range| range.known.len()).sum()
    }

    /// Number of values in a snapshot.
    pub fn num_values(&self) -> usize {
        self.num_tokens() * (1 + self.steps)
    }

    /// Bytes held.
    pub fn memory(&self) -> usize {
        let of = |range: &Documents<T>| {
            4 * (range.lengths.capacity() + range.firsts.capacity() + range.inverse.capacity())
                + size_of::<T>() * (range.tokens.capacity() + range.known.capacity())
                + 8 * (range.visits.capacity() + range.starts.capacity())
        };
        self.ranges.iter().map(of).sum::<usize>() + 4 * self.untold.capacity()
    }

    /// Changes of C_k that are not in the deltas pushed so far.
    pub fn untold(&self) -> &[i32] {
        &self.untold
    }

    /// Places of a partition's words that occur in long documents, once for each range with the
    /// word.
    pub fn places(&self, partition: u16) -> impl Iterator<Item = u32> + '_ {
        let visits = move |range: &Documents<T>| range.visits_of(partition);
        self.ranges
            .iter()
            .flat_map(move |range| range.visits[visits(range)].iter().map(|visit| visit.row))
    }

    /// Tokens of each of a partition's `words` words.
    pub fn tokens_by_place(&self, partition: u16, words: usize) -> Vec<u32> {
        let mut tokens = vec![0; words];
        for range in &self.ranges {
            range.for_each_word(partition, |place, slots| {
                tokens[place as usize] += slots.len() as u32
            });
        }
        tokens
    }

    /// A walk positioned before the first word of a partition.
    pub fn walk(&self, partition: u16) -> Walk {
        let start = |range: &Documents<T>| {
            let (visit, token) = range.starts[usize::from(partition)];
            (visit as usize, token)
        };
        Walk(self.ranges.iter().map(start).collect())
    }

    /// Slots of a word in each range that has it. Places must ascend from call to call, and no word
    /// of the partition may be left out.
    fn next<'a>(
        &'a self,
        walk: &'a mut Walk,
        partition: u16,
        place: u32,
    ) -> impl Iterator<Item = (&'a Documents<T>, Range<usize>)> {
        self.ranges.iter().zip(&mut walk.0).filter_map(move |(range, (visit, token))| {
            let end = range.visits_of(partition).end;
            let found = range.visits[*visit..end].first().filter(|visit| visit.row == place)?;
            let first = range.starts[usize::from(partition)].1;
            let slots = *token as usize..(first + found.end) as usize;
            (*visit, *token) = (*visit + 1, slots.end as u32);
            Some((range, slots))
        })
    }

    /// Calls `f` with the topics that the server counts for a word's tokens, once per range.
    pub fn known(&self, walk: &mut Walk, partition: u16, place: u32, mut f: impl FnMut(&[T])) {
        self.next(walk, partition, place).for_each(|(range, slots)| f(&range.known[slots]));
    }

    /// Calls `f` with the topic of each of a word's tokens.
    pub fn topics(&self, walk: &mut Walk, partition: u16, place: u32, mut f: impl FnMut(T)) {
        let stride = 1 + self.steps;
        self.next(walk, partition, place)
            .for_each(|(range, slots)| slots.for_each(|slot| f(range.tokens[slot * stride])));
    }

    /// The deltas of a partition are pushed: its server counts the tokens with their current
    /// topics.
    pub fn told(&mut self, partition: u16) {
        let stride = 1 + self.steps;
        for range in &mut self.ranges {
            let slots = range.slots_of(partition);
            let tokens = range.tokens[slots.start * stride..slots.end * stride].chunks(stride);
            for (known, token) in range.known[slots].iter_mut().zip(tokens) {
                self.untold[known.get() as usize] += 1;
                *known = token[0];
                self.untold[known.get() as usize] -= 1;
            }
        }
    }

    /// All servers count the tokens with their current topics.
    pub fn told_all(&mut self) {
        let partitions = self.ranges.first().map_or(0, |range| range.starts.len() - 1);
        (0..partitions).for_each(|partition| self.told(partition as u16));
        self.untold.fill(0);
    }

    /// The pass over documents. With `again` = 0 it moves all tokens, later only those of the key's
    /// partition.
    pub fn sample_documents(
        &mut self,
        key: BlockKey,
        again: u8,
        context: &Context<'_>,
        scratch: &mut WarpScratch<T>,
        mut f: impl FnMut(Outcome),
    ) {
        let context = Context { mh_steps: self.steps, again, ..*context };
        for (number, range) in (0..).zip(&mut self.ranges) {
            let slots = range.slots_of(key.words);
            let block = DocumentBlock {
                key: BlockKey { documents: number, ..key },
                lengths: &range.lengths,
                inverse: &range.inverse,
                tokens: &mut range.tokens,
                moving: (again > 0).then_some(slots.start as u32..slots.end as u32),
            };
            let block = Block::Documents(block);
            let outcome = Warp::default().sample(Warp::DOCUMENTS, &context, scratch, block);
            add(&mut self.untold, &outcome);
            f(outcome);
        }
    }

    /// The pass over a partition's words. `rows` are those of the pulled words, without the long
    /// documents' tokens before the pass and with them after it; `row` maps the words' places to
    /// them.
    pub fn sample_words(
        &mut self,
        key: BlockKey,
        again: u8,
        context: &Context<'_>,
        scratch: &mut WarpScratch<T>,
        rows: &mut Rows<T>,
        row: &[u32],
    ) -> Outcome {
        let stride = 1 + self.steps;
        let partition = key.words;
        let visits: Vec<Vec<RowRun>> = self
            .ranges
            .iter()
            .map(|range| {
                let visits = range.visits[range.visits_of(partition)].iter();
                visits.map(|visit| RowRun { row: row[visit.row as usize], ..*visit }).collect()
            })
            .collect();
        let columns = self.ranges.iter_mut().zip(&visits).map(|(range, visits)| {
            let slots = range.slots_of(partition);
            Column { visits, tokens: &mut range.tokens[slots.start * stride..slots.end * stride] }
        });
        let block = WordBlock {
            key,
            num_words: rows.len(),
            columns: columns.collect(),
            others: Vec::new(),
            rows: Some(rows),
            counted: true,
        };
        let context = Context { mh_steps: self.steps, again, ..*context };
        let outcome = Warp::default().sample(Warp::WORDS, &context, scratch, Block::Words(block));
        add(&mut self.untold, &outcome);
        outcome
    }

    /// Calls `f` with the topics of a document, which is numbered among the long ones.
    pub fn document(&self, mut number: usize, mut f: impl FnMut(u32)) {
        let stride = 1 + self.steps;
        for range in &self.ranges {
            if number >= range.lengths.len() {
                number -= range.lengths.len();
                continue;
            }
            let first = range.firsts[number] as usize;
            let slots = &range.inverse[first..first + range.lengths[number] as usize];
            slots.iter().for_each(|&slot| f(range.tokens[slot as usize * stride].get()));
            return;
        }
    }

    /// Calls `f(document, partition, place of the word, topic)` for every token. Documents are
    /// numbered among the long ones.
    pub fn for_each(&self, mut f: impl FnMut(u32, u16, u32, u32)) {
        let stride = 1 + self.steps;
        let mut first = 0;
        for range in &self.ranges {
            let documents = range.documents_by_slot();
            for partition in 0..range.starts.len() as u16 - 1 {
                range.for_each_word(partition, |place, slots| {
                    for slot in slots {
                        let topic = range.tokens[slot * stride].get();
                        f(first + documents[slot], partition, place, topic);
                    }
                });
            }
            first += range.lengths.len() as u32;
        }
    }

    /// Slots of each word in each range, words ascending, independent of the partitions. `word`
    /// returns the word at a place of a partition.
    fn by_word(&self, word: impl Fn(u16, u32) -> u32) -> Vec<(usize, u32, Range<usize>)> {
        let mut all = Vec::new();
        for (number, range) in self.ranges.iter().enumerate() {
            for partition in 0..range.starts.len() as u16 - 1 {
                range.for_each_word(partition, |place, slots| {
                    all.push((number, word(partition, place), slots));
                });
            }
        }
        all.sort_unstable_by_key(|&(range, word, _)| (range, word));
        all
    }

    /// Appends the topics and proposals of all tokens.
    pub fn values(&self, word: impl Fn(u16, u32) -> u32, to: &mut Vec<T>) {
        let stride = 1 + self.steps;
        for (range, _, slots) in self.by_word(word) {
            let tokens = &self.ranges[range].tokens;
            to.extend_from_slice(&tokens[slots.start * stride..slots.end * stride]);
        }
    }

    /// Sets the topics and proposals of all tokens; the servers will count these.
    pub fn restore(&mut self, word: impl Fn(u16, u32) -> u32, mut from: &[T]) {
        let stride = 1 + self.steps;
        for (range, _, slots) in self.by_word(word) {
            let (values, rest) = from.split_at(slots.len() * stride);
            let tokens = &mut self.ranges[range].tokens;
            tokens[slots.start * stride..slots.end * stride].copy_from_slice(values);
            from = rest;
        }
        self.told_all();
    }
}

impl<T: TopicIndex> Documents<T> {
    fn new(
        steps: usize,
        partitions: usize,
        lengths: Vec<u32>,
        mut tokens: Vec<Token<T>>,
        place: impl Fn(u16, u32) -> u32,
    ) -> Result<Self, ShardError> {
        if u32::try_from(tokens.len()).is_err() {
            return Err(ShardError::Tokens { tokens: tokens.len() });
        }
        // Documents of a word stay in order.
        tokens.sort_by_key(|&(partition, word, _, _)| (partition, word));
        let (mut visits, mut starts) = (Vec::new(), Vec::with_capacity(partitions + 1));
        let mut first = 0;
        let mut words = tokens.chunk_by(|a, b| (a.0, a.1) == (b.0, b.1)).peekable();
        for partition in 0..partitions as u16 {
            starts.push((visits.len() as u32, first));
            let mut end = 0;
            while let Some(run) = words.next_if(|run| run[0].0 == partition) {
                end += run.len() as u32;
                visits.push(RowRun { row: place(partition, run[0].1), end });
            }
            first += end;
        }
        starts.push((visits.len() as u32, first));
        let mut firsts: Vec<u32> = Vec::with_capacity(lengths.len());
        let mut end = 0;
        for &length in &lengths {
            firsts.push(end);
            end += length;
        }
        let mut next = firsts.clone();
        let mut inverse = vec![0; tokens.len()];
        for (slot, &(_, _, document, _)) in (0..).zip(&tokens) {
            let at = &mut next[document as usize];
            inverse[*at as usize] = slot;
            *at += 1;
        }
        // A proposal equal to the token's topic changes nothing.
        let record = |token: &Token<T>| std::iter::repeat_n(token.3, 1 + steps);
        Ok(Self {
            lengths,
            firsts,
            inverse,
            known: tokens.iter().map(|token| token.3).collect(),
            tokens: tokens.iter().flat_map(record).collect(),
            visits,
            starts,
        })
    }

    fn visits_of(&self, partition: u16) -> Range<usize> {
        let at = usize::from(partition);
        self.starts[at].0 as usize..self.starts[at + 1].0 as usize
    }

    fn slots_of(&self, partition: u16) -> Range<usize> {
        let at = usize::from(partition);
        self.starts[at].1 as usize..self.starts[at + 1].1 as usize
    }

    /// Calls `f(place, slots)` for each word of a partition.
    fn for_each_word(&self, partition: u16, mut f: impl FnMut(u32, Range<usize>)) {
        let first = self.slots_of(partition).start;
        let mut start = first;
        for visit in &self.visits[self.visits_of(partition)] {
            let end = first + visit.end as usize;
            f(visit.row, start..end);
            start = end;
        }
    }

    fn documents_by_slot(&self) -> Vec<u32> {
        let mut documents = vec![0; self.inverse.len()];
        let mut slots = self.inverse.iter();
        for (document, &length) in (0..).zip(&self.lengths) {
            for &slot in slots.by_ref().take(length as usize) {
                documents[slot as usize] = document;
            }
        }
        documents
    }
}
