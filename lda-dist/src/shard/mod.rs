//! Shard: documents with their tokens, topics and rows of C_d.
//!
//! A run's documents are cut into **shards**, independently of the workers. A worker has one or
//! more whole shards, and the new topics of a shard's tokens depend only on the shard and on the
//! counts at the round's start. So results do not depend on the number of workers.
//!
//! Tokens are ordered by partition, word and document. Some words of a partition are
//! [pulled](crate::route::Route): their tokens are sampled here, with the rows from the servers.
//! Tokens of the other words are pushed to the server document by document, and its answer contains
//! their new topics. An answer changes single tokens, so it does not undo samples drawn here in the
//! meantime.
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
mod source;

use std::collections::VecDeque;

use lda_core::counts::{Density, Rows, TopicIndex};

use crate::config::Hybrid;
use crate::placement::Placement;
use crate::request::{self, Kind, RequestHeader};
use crate::spec::{ModelSpec, Round};
use crate::sync::SyncMode;
use crate::wire::RowCode;

pub use error::{AnswerError, RestoreError, ShardError};
use long::Long;
use part::PartitionTokens;
pub use sampling::{Plan, TransferStats};
pub use source::ShardDocuments;
use source::{Source, Tokens, ranges};

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
    /// Counts by topic of the shard's tokens as they are in the totals of its round, and the
    /// shard's changes that the totals do not contain yet.
    counts: Vec<u32>,
    own: Vec<i32>,
    /// Parts of `own` that were pushed in each of the last rounds; later totals contain them.
    recent: VecDeque<Vec<i32>>,
}

impl<T: TopicIndex> Shard<T> {
    /// A shard of some documents of a corpus. `hybrid` decides which of them WarpLDA samples.
    ///
    /// # Errors
    /// [`ShardError`].
    ///
    /// # Panics
    /// If the range of documents is not within the corpus, or if the placement is for another
    /// vocabulary.
    pub fn new(
        spec: &ModelSpec,
        hybrid: Hybrid,
        placement: &Placement,
        number: u16,
        documents: ShardDocuments<'_>,
    ) -> Result<Self, ShardError> {
        let corpus = documents.corpus;
        if corpus.num_words() != spec.words() as usize {
            return Err(ShardError::Words { found: corpus.num_words(), expected: spec.words() });
        }
        if u64::from(spec.topics()) > T::MAX_TOPICS {
            let (topics, most) = (spec.topics(), T::MAX_TOPICS);
            return Err(ShardError::Topics { topics, most });
        }
        assert_eq!(placement.num_words(), corpus.num_words(), "words of another vocabulary");
        let source = Source { spec, placement, documents };
        let (long, short): (Vec<u32>, Vec<u32>) =
            (0..source.num_documents()).partition(|&local| hybrid.is_long(source.length(local)));
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

    /// Words of a partition that this shard has, ascending. Messages refer to them by their index
    /// in this list.
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
