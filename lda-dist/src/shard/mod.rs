//! Documents of a worker: their tokens, topics and rows of C_d.
//!
//! A job's documents are cut into **shards**, and how does not depend on who works on them: a worker has whole shards,
//! one or many, and what becomes of a shard's tokens follows from the shard and from the round's start alone. So any
//! number of workers gives the same bits.
//!
//! A shard's tokens lie by partition, in it by word and then by document. Of a partition some words are
//! [pulled](crate::route::Route): their tokens are sampled here, by rows that have come. The others' tokens are written
//! into a request, document by document, and their topics come back in an answer. What has been sampled here meanwhile
//! stays: an answer moves one token at a time.
//!
//! Documents are cut into ranges, by which a partition's tokens are sampled: the rows of a range fit into a cache, and
//! those of a shard do not.
//!
//! [Long](Hybrid) documents are WarpLDA's, where a run wants that: their words are always pulled.
//!
//! Memory a token: 4 bytes and its topic, of 2 or 4 bytes; rows of C_d as in [`Rows`]; 16 bytes a document; 8 bytes a
//! word of the shard. Of a long document: 4 bytes and 2 + M topics, M [steps](Hybrid::mh_steps); no row.

mod counts;
mod error;
mod long;
mod part;
mod sampling;

use std::collections::VecDeque;
use std::ops::Range;

use lda_core::Corpus;
use lda_core::counts::{Density, Rows, TopicIndex};
use lda_core::layout::{greedy_partition, ranges_for};
use lda_core::random::{Purpose, StreamKey};

use crate::config::Hybrid;
use crate::placement::Placement;
use crate::request::{self, Kind, RequestHeader};
use crate::spec::{ModelSpec, Round};
use crate::sync::SyncMode;
use crate::wire::RowCode;

pub use error::{AnswerError, RestoreError, ShardError};
use long::{Long, Token};
use part::PartitionTokens;
pub use sampling::{Plan, TransferStats};

/// A part of the documents.
#[derive(Debug)]
pub struct Shard<T: TopicIndex> {
    number: u16,
    /// Documents have other numbers here: the short ones first, by range, and in it by length, and then the long ones.
    /// Which one each is, and the other way round.
    documents: Vec<u32>,
    places: Vec<u32>,
    /// Where each range of short ones ends.
    ends: Vec<u32>,
    /// Tokens of each short one.
    lengths: Vec<u32>,
    parts: Vec<PartitionTokens<T>>,
    /// Of the short ones.
    rows: Rows<T>,
    long: Long<T>,
    /// Bytes that each document's row takes, as of the epoch's start.
    sizes: Vec<u32>,
    /// Its share of C_k in the totals of its round, and what it has added that they have not.
    counts: Vec<u32>,
    own: Vec<i32>,
    /// Of that, what servers were told in each of the rounds before: later totals have it.
    recent: VecDeque<Vec<i32>>,
}

impl<T: TopicIndex> Shard<T> {
    /// Some documents of a corpus, of which `hybrid` says which are WarpLDA's; `first` is the number of the corpus'
    /// first one in the whole job, which its first topics follow from: the same as one process begins with.
    ///
    /// # Errors
    /// [`ShardError`].
    ///
    /// # Panics
    /// If documents are not the corpus', or if words were placed of another vocabulary.
    pub fn new(
        spec: &ModelSpec,
        hybrid: Hybrid,
        placement: &Placement,
        number: u16,
        corpus: &Corpus,
        documents: Range<usize>,
        first: u64,
    ) -> Result<Self, ShardError> {
        if corpus.num_words() != spec.words() as usize {
            return Err(ShardError::Words { found: corpus.num_words(), expected: spec.words() });
        }
        if u64::from(spec.topics()) > T::MAX_TOPICS {
            let (topics, most) = (spec.topics(), T::MAX_TOPICS);
            return Err(ShardError::Topics { topics, most });
        }
        assert_eq!(placement.num_words(), corpus.num_words(), "words of another vocabulary");
        let start = documents.start;
        let length = |local: u32| corpus.doc_length(start + local as usize);
        let lengths_of = |range: &[u32]| range.iter().map(|&local| length(local) as u32).collect();
        let tokens_of = |local: u32| first_topics::<T>(spec, corpus, start + local as usize, first);
        let (long, short): (Vec<u32>, Vec<u32>) =
            (0..documents.len() as u32).partition(|&local| hybrid.is_long(length(local)));
        let (short, long) = (ranges(&short, length), ranges(&long, length));
        // (word, document, topic): documents in order, so that sorting by word leaves them so.
        let mut tokens: Vec<Vec<(u32, u32, T)>> = vec![Vec::new(); placement.num_partitions()];
        let order: Vec<u32> = short.concat();
        for (place, &local) in (0..).zip(&order) {
            for (word, topic) in tokens_of(local) {
                tokens[placement.partition(word) as usize].push((word, place, topic));
            }
        }
        let mut of_long: Vec<Vec<u32>> = vec![Vec::new(); placement.num_partitions()];
        let mut of_range = |range: &Vec<u32>| {
            let mut tokens: Vec<Token<T>> = Vec::new();
            for (place, &local) in (0..).zip(range) {
                for (word, topic) in tokens_of(local) {
                    let partition = placement.partition(word);
                    tokens.push((partition as u16, word, place, topic));
                    let words = &mut of_long[partition as usize];
                    if words.last() != Some(&word) {
                        words.push(word);
                    }
                }
            }
            (lengths_of(range), tokens)
        };
        let long_tokens: Vec<(Vec<u32>, Vec<Token<T>>)> = long.iter().map(&mut of_range).collect();
        let parts = tokens.into_iter().zip(of_long);
        let parts: Vec<PartitionTokens<T>> = parts
            .map(|(tokens, also)| PartitionTokens::new(tokens, also))
            .collect::<Result<_, _>>()?;
        let place = |partition: u16, word: u32| {
            let words = &parts[usize::from(partition)].words;
            words.binary_search(&word).expect("it is among them") as u32
        };
        let long_tokens = Long::new(hybrid, spec.topics(), parts.len(), long_tokens, place)?;
        let ends = short.iter().scan(0, |end, range| {
            *end += range.len() as u32;
            Some(*end)
        });
        let lengths: Vec<u32> = lengths_of(&order);
        let order = [order, long.concat()].concat();
        let mut places = vec![0; order.len()];
        for (place, &local) in (0..).zip(&order) {
            places[local as usize] = place;
        }
        let each = lengths.iter().map(|&length| u64::from(length));
        let topics = spec.topics() as usize;
        Rows::<T>::check(topics, each.clone(), Density::Auto)?;
        let mut shard = Self {
            number,
            sizes: vec![0; lengths.len()],
            rows: Rows::new(topics, each, Density::Auto)?,
            counts: vec![0; topics],
            own: vec![0; topics],
            recent: VecDeque::new(),
            documents: order,
            places,
            ends: ends.collect(),
            lengths,
            parts,
            long: long_tokens,
        };
        shard.count(spec);
        Ok(shard)
    }

    /// Tokens.
    pub fn num_tokens(&self) -> usize {
        self.num_short_tokens() + self.long.num_tokens()
    }

    fn num_short_tokens(&self) -> usize {
        self.parts.iter().map(|part| part.topics.len()).sum()
    }

    /// Whether some documents are [long](Hybrid).
    pub fn has_long(&self) -> bool {
        !self.long.is_empty()
    }

    /// Bytes held.
    pub fn memory(&self) -> usize {
        let numbers =
            [&self.documents, &self.places, &self.ends, &self.lengths, &self.sizes, &self.counts];
        let parts: usize = self.parts.iter().map(PartitionTokens::memory).sum();
        let rows = self.rows.memory() as usize;
        let recent: usize = self.recent.iter().map(Vec::capacity).sum();
        4 * (numbers.iter().map(|it| it.capacity()).sum::<usize>() + self.own.capacity() + recent)
            + parts
            + rows
            + self.long.memory()
    }

    /// Its number.
    pub fn number(&self) -> u16 {
        self.number
    }

    /// Documents.
    pub fn num_documents(&self) -> usize {
        self.documents.len()
    }

    /// Words of a partition that this shard has, ascending: by their places here both sides know them.
    ///
    /// # Panics
    /// If there is no such partition.
    pub fn words(&self, partition: u16) -> &[u32] {
        &self.parts[partition as usize].words
    }

    /// Writes what this shard joins a partition's slice with: its words, and its rows of them.
    ///
    /// # Panics
    /// If there is no such slice, or if words were placed elsewise.
    pub fn join(
        &self,
        spec: &ModelSpec,
        placement: &Placement,
        slice: u16,
        round: Round,
        to: &mut Vec<u8>,
    ) {
        let header = self.header(slice, round);
        request::begin(Kind::Join, &header, to);
        let (partition, topics) = placement.slice(slice.into(), spec.topics());
        let partition = partition as u16;
        let words = self.words(partition);
        let places: Vec<(u32, u32)> =
            words.iter().map(|&word| (placement.position(word), 1)).collect();
        let all = placement.words(partition.into()).len() as u32;
        if all > 0 {
            RowCode::new(all).encode(&places, to);
        }
        let mut part = Vec::new();
        self.counts(partition, |_, row| RowCode::encode_part(row, &topics, &mut part, to));
    }

    /// What a request of this shard is about.
    pub fn header(&self, slice: u16, round: Round) -> RequestHeader {
        RequestHeader { shard: self.number, slice, round }
    }

    /// Starts a round with these C_k, which contain the own updates of earlier rounds as far as
    /// `sync` says.
    ///
    /// # Errors
    /// [`AnswerError::Total`].
    ///
    /// # Panics
    /// If `totals` are not K.
    pub fn begin_round(&mut self, totals: &[u32], sync: SyncMode) -> Result<(), AnswerError> {
        assert_eq!(totals.len(), self.counts.len(), "a total a topic");
        let both = self.own.iter().zip(self.long.untold());
        let mut told: Vec<i32> = both.map(|(own, untold)| own - untold).collect();
        for before in &self.recent {
            told.iter_mut().zip(before).for_each(|(told, before)| *told -= before);
        }
        self.recent.push_back(told);
        let seen = sync.own_updates_seen(self.recent.len());
        for known in self.recent.drain(..seen) {
            let both = self.counts.iter_mut().zip(&mut self.own);
            for ((count, own), known) in both.zip(known) {
                *count = count.checked_add_signed(known).expect("as many as its tokens");
                *own -= known;
            }
        }
        match self.counts.iter().zip(totals).position(|(count, total)| count > total) {
            Some(topic) => Err(AnswerError::Total { topic: topic as u32 }),
            None => Ok(()),
        }
    }

    /// Begins an epoch: topics of each row of C_d are put in ascending order, so that what follows does not depend on
    /// how they came about; and how many bytes rows take is measured.
    pub fn begin_epoch(&mut self, spec: &ModelSpec) {
        let code = RowCode::new(spec.topics());
        let mut row = Vec::new();
        for document in 0..self.lengths.len() {
            self.row_at(document, &mut row);
            self.rows.write(document, row.iter().copied());
            self.sizes[document] = code.size(&row) as u32;
        }
        self.rows.adapt();
    }
}

/// A document's words, each as often as it occurs, with first topics; `first` is the number of the corpus' first
/// document in the whole job.
fn first_topics<'a, T: TopicIndex>(
    spec: &ModelSpec,
    corpus: &'a Corpus,
    document: usize,
    first: u64,
) -> impl Iterator<Item = (u32, T)> + use<'a, T> {
    let (purpose, block) = (Purpose::Initialise, first + document as u64);
    let key = StreamKey { seed: spec.seed(), epoch: 0, pass: 0, block, purpose };
    let (mut stream, topics) = (key.stream(), spec.topics());
    let words = corpus.document(document).iter();
    words
        .flat_map(|(word, count)| (0..count).map(move |_| word))
        .map(move |word| (word, T::new(stream.below(topics))))
}

/// Ranges of these documents in the order that their rows lie in: as `lda_core::layout` cuts a corpus, so that the rows
/// of a range fit into a cache.
fn ranges(documents: &[u32], length: impl Fn(u32) -> u64) -> Vec<Vec<u32>> {
    if documents.is_empty() {
        return Vec::new();
    }
    let lengths = documents.iter().map(|&document| length(document));
    let ranges = greedy_partition(lengths.clone(), ranges_for(lengths.sum()));
    let named =
        |range: Vec<u32>| range.into_iter().rev().map(|at| documents[at as usize]).collect();
    ranges.into_iter().map(named).collect()
}
