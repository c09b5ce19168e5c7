//! Shard: documents with their tokens, topics and rows of C_d.
//!
//! A run's documents are cut into **shards**, independently of the workers. A worker has one or
//! more whole shards, and the new topics of a shard's tokens follow from the shard and from the
//! round's start alone. So results do not depend on the number of workers.
//!
//! Tokens are ordered by partition, word and document. Some words of a partition are
//! [pulled](crate::route::Route): their tokens are sampled here, with the rows from the servers.
//! Tokens of the other words are sent document by document, and an answer brings their new topics.
//! An answer moves one token at a time, so it does not undo what was sampled here in the meantime.
//!
//! Documents are cut into ranges, and the tokens of a partition are sampled range by range: the
//! rows of a range fit into a cache, those of a shard do not.
//!
//! [Long](Hybrid) documents are sampled by WarpLDA, if the run has any. Their words are always
//! pulled.
//!
//! Memory per token: 4 bytes and its topic of 2 or 4 bytes; rows of C_d as in [`Rows`]; 16 bytes
//! per document; 8 bytes per word of the shard. Per token of a long document: 4 bytes and 2 + M
//! topics, for M [proposals](Hybrid::mh_steps); no row.

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

/// Part of the documents.
#[derive(Debug)]
pub struct Shard<T: TopicIndex> {
    number: u16,
    /// Document at each place, and its inverse. Places order the short documents by range and
    /// length, then the long ones.
    documents: Vec<u32>,
    places: Vec<u32>,
    /// End of each range of short documents.
    ends: Vec<u32>,
    /// Tokens of each short document.
    lengths: Vec<u32>,
    parts: Vec<PartitionTokens<T>>,
    /// C_d of the short documents.
    rows: Rows<T>,
    long: Long<T>,
    /// Encoded size of each short document's row at the epoch's start.
    sizes: Vec<u32>,
    /// The shard's tokens by topic in the totals of its round, and its changes that the totals
    /// lack.
    counts: Vec<u32>,
    own: Vec<i32>,
    /// Parts of `own` that were pushed in each of the last rounds; later totals contain them.
    recent: VecDeque<Vec<i32>>,
}

impl<T: TopicIndex> Shard<T> {
    /// A shard of some documents of a corpus. `hybrid` decides which of them WarpLDA samples.
    /// `first` is the number of the corpus' first document in the whole run, on which the first
    /// topics depend: they are the ones that a run in one process starts with.
    ///
    /// # Errors
    /// [`ShardError`].
    ///
    /// # Panics
    /// If `documents` is out of range, or if the placement is for another vocabulary.
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
        let source = Source { spec, placement, corpus, documents, first };
        let (long, short): (Vec<u32>, Vec<u32>) = (0..source.documents.len() as u32)
            .partition(|&local| hybrid.is_long(source.length(local)));
        let short = ranges(&short, |local| source.length(local));
        let long = ranges(&long, |local| source.length(local));
        let order: Vec<u32> = short.concat();
        let lengths = source.lengths(&order);
        let Tokens { parts, long: long_ranges } = source.tokens::<T>(&order, &long)?;
        let place = |partition: u16, word: u32| {
            let words = &parts[usize::from(partition)].words;
            words.binary_search(&word).expect("long documents' words are among them") as u32
        };
        let long_tokens = Long::new(hybrid, spec.topics(), parts.len(), long_ranges, place)?;
        let ends = short.iter().scan(0, |end, range| {
            *end += range.len() as u32;
            Some(*end)
        });
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

    /// Number of tokens.
    pub fn num_tokens(&self) -> usize {
        self.num_short_tokens() + self.long.num_tokens()
    }

    fn num_short_tokens(&self) -> usize {
        self.parts.iter().map(|part| part.topics.len()).sum()
    }

    /// Returns whether some documents are [long](Hybrid).
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

    /// Number of the shard.
    pub fn number(&self) -> u16 {
        self.number
    }

    /// Number of documents.
    pub fn num_documents(&self) -> usize {
        self.documents.len()
    }

    /// Words of a partition that this shard has, ascending. Worker and server name them by their
    /// index in this list.
    ///
    /// # Panics
    /// If there is no such partition.
    pub fn words(&self, partition: u16) -> &[u32] {
        &self.parts[partition as usize].words
    }

    /// Writes the request with which this shard joins a slice: its words, and its counts of them.
    ///
    /// # Panics
    /// If there is no such slice, or if the placement is another than that of the shard.
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

    /// Header of a request of this shard.
    pub fn header(&self, slice: u16, round: Round) -> RequestHeader {
        RequestHeader { shard: self.number, slice, round }
    }

    /// Starts a round with these C_k, which contain the shard's own updates of earlier rounds as
    /// far as `sync` says.
    ///
    /// # Errors
    /// [`AnswerError::Total`].
    ///
    /// # Panics
    /// If `totals` does not have K entries.
    pub fn begin_round(&mut self, totals: &[u32], sync: SyncMode) -> Result<(), AnswerError> {
        assert_eq!(totals.len(), self.counts.len(), "one total per topic");
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

    /// Starts an epoch: sorts each row of C_d by topic, so that results do not depend on the order
    /// in which the row was changed, and measures the rows' encoded sizes.
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

/// Documents that a shard is made from. They are named by their index in `documents`.
struct Source<'a> {
    spec: &'a ModelSpec,
    placement: &'a Placement,
    corpus: &'a Corpus,
    documents: Range<usize>,
    /// Number of the corpus' first document in the whole run.
    first: u64,
}

/// A range of long documents: their lengths and their tokens.
type LongRange<T> = (Vec<u32>, Vec<Token<T>>);

/// Tokens of a shard: those of short documents by partition, those of long ones by range.
struct Tokens<T> {
    parts: Vec<PartitionTokens<T>>,
    long: Vec<LongRange<T>>,
}

impl Source<'_> {
    fn length(&self, local: u32) -> u64 {
        self.corpus.doc_length(self.documents.start + local as usize)
    }

    fn lengths(&self, documents: &[u32]) -> Vec<u32> {
        documents.iter().map(|&local| self.length(local) as u32).collect()
    }

    fn first_topics<T: TopicIndex>(&self, local: u32) -> impl Iterator<Item = (u32, T)> {
        first_topics(self.spec, self.corpus, self.documents.start + local as usize, self.first)
    }

    /// Makes the tokens. Partitions have all words of the shard, also those of long documents.
    fn tokens<T: TopicIndex>(
        &self,
        short: &[u32],
        long: &[Vec<u32>],
    ) -> Result<Tokens<T>, ShardError> {
        let placement = self.placement;
        // (word, document, topic). Documents are in order, and the sort by word is stable.
        let mut tokens: Vec<Vec<(u32, u32, T)>> = vec![Vec::new(); placement.num_partitions()];
        for (place, &local) in (0..).zip(short) {
            for (word, topic) in self.first_topics(local) {
                tokens[placement.partition(word) as usize].push((word, place, topic));
            }
        }
        let mut long_words: Vec<Vec<u32>> = vec![Vec::new(); placement.num_partitions()];
        let mut of_range = |range: &Vec<u32>| {
            let mut tokens: Vec<Token<T>> = Vec::new();
            for (place, &local) in (0..).zip(range) {
                for (word, topic) in self.first_topics(local) {
                    let partition = placement.partition(word);
                    tokens.push((partition as u16, word, place, topic));
                    let words = &mut long_words[partition as usize];
                    if words.last() != Some(&word) {
                        words.push(word);
                    }
                }
            }
            (self.lengths(range), tokens)
        };
        let long: Vec<LongRange<T>> = long.iter().map(&mut of_range).collect();
        let parts = tokens.into_iter().zip(long_words);
        let parts = parts.map(|(tokens, also)| PartitionTokens::new(tokens, also));
        Ok(Tokens { parts: parts.collect::<Result<_, _>>()?, long })
    }
}

/// Words of a document, each as often as it occurs, with their first topics. `first` is the number
/// of the corpus' first document in the whole run.
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

/// Cuts documents into ranges as `lda_core::layout` does, so that the rows of a range fit into a
/// cache.
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
