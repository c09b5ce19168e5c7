//! Tokens of a shard's documents: their words and topics, and the counts that follow from them.

use lda_core::counts::{Density, Rows, TopicIndex};
use lda_core::prior::Alpha;
use lda_core::prior::learn::CountHistograms;
use lda_core::random::{Purpose, StreamKey};
use lda_core::sampler::BlockKey;
use lda_core::special::{LnGammaRatio, ln_rising};

use super::ShardError;
use super::long::Long;
use super::part::PartitionTokens;
use super::source::{Source, Tokens, ranges};
use crate::config::{Hybrid, Options, Routing};
use crate::spec::ModelSpec;
use crate::wire::RowCode;

/// Tokens of a shard's documents, their topics and their rows of C_d.
#[derive(Debug)]
pub struct ShardTokens<T: TopicIndex> {
    /// Document at each place, and its inverse. Places order the short documents by range and
    /// length, then the long ones.
    documents: Vec<u32>,
    pub(super) places: Vec<u32>,
    /// End of each range of short documents.
    pub(super) ends: Vec<u32>,
    /// Tokens of each short document.
    pub(super) lengths: Vec<u32>,
    pub(super) parts: Vec<PartitionTokens<T>>,
    /// C_d of the short documents.
    pub(super) rows: Rows<T>,
    pub(super) long: Long<T>,
    /// Encoded size of each short document's row at the epoch's start.
    pub(super) sizes: Vec<u32>,
}

impl<T: TopicIndex> ShardTokens<T> {
    /// Tokens of a shard's documents, with their first topics.
    pub(super) fn new(source: &Source<'_>, hybrid: Hybrid) -> Result<Self, ShardError> {
        let spec = source.spec;
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
        let mut tokens = Self {
            sizes: vec![0; lengths.len()],
            rows: Rows::new(topics, each, Density::Auto)?,
            documents: order,
            places,
            ends: ends.collect(),
            lengths,
            parts,
            long: long_tokens,
        };
        tokens.count(spec);
        Ok(tokens)
    }

    /// Number of tokens.
    pub fn num_tokens(&self) -> usize {
        self.num_short_tokens() + self.long.num_tokens()
    }

    /// Number of tokens of documents that are not [long](Hybrid).
    pub(super) fn num_short_tokens(&self) -> usize {
        self.parts.iter().map(|part| part.topics.len()).sum()
    }

    /// Returns whether some documents are [long](Hybrid).
    pub fn has_long(&self) -> bool {
        !self.long.is_empty()
    }

    /// Bytes held.
    pub fn memory(&self) -> usize {
        let numbers = [&self.documents, &self.places, &self.ends, &self.lengths, &self.sizes];
        let parts: usize = self.parts.iter().map(PartitionTokens::memory).sum();
        let rows = self.rows.memory() as usize;
        4 * numbers.iter().map(|it| it.capacity()).sum::<usize>()
            + parts
            + rows
            + self.long.memory()
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

    /// Adds the rows of all documents to histograms.
    pub(crate) fn add_to(&self, histograms: &mut CountHistograms) {
        let mut row = Vec::new();
        for document in 0..self.num_documents() {
            self.row(document, &mut row);
            histograms.add_row(&row);
        }
    }

    /// See [`Shard::begin_epoch`](super::Shard::begin_epoch).
    pub(super) fn begin_epoch(
        &mut self,
        spec: &ModelSpec,
        options: &Options,
        shard: u16,
        epoch: u32,
    ) {
        self.prepare_rows(spec, options.routing);
        for (words, part) in (0..).zip(&mut self.parts) {
            if options.excludes_in(epoch) {
                let (purpose, key) = (Purpose::Exclude, BlockKey { shard, documents: 0, words });
                let (seed, block) = (spec.seed(), key.number());
                let key = StreamKey { seed, epoch, pass: 0, block, purpose };
                part.exclusion.choose(part.topics.len(), key);
            }
        }
    }

    /// Number of tokens that the current epoch samples.
    pub(super) fn num_due(&self) -> usize {
        let of_short: usize =
            self.parts.iter().map(|part| part.exclusion.num_due(part.topics.len())).sum();
        of_short + self.long.num_tokens()
    }

    /// Sorts each row of C_d by topic, and if `routing` may push documents, measures the rows' encoded sizes.
    fn prepare_rows(&mut self, spec: &ModelSpec, routing: Routing) {
        let mut entries = Vec::new();
        for document in 0..self.lengths.len() {
            self.rows.sort_list(document, &mut entries);
        }
        if routing != Routing::Pull {
            let (code, mut row) = (RowCode::new(spec.topics()), Vec::new());
            for document in 0..self.lengths.len() {
                self.row_at(document, &mut row);
                self.sizes[document] = code.size(&row) as u32;
            }
        }
        self.rows.adapt();
    }

    /// Recounts the topics of documents, from which the servers count too.
    pub(super) fn count(&mut self, spec: &ModelSpec) {
        self.long.told_all();
        self.count_documents();
        self.prepare_rows(spec, Routing::Cheapest);
    }

    /// Calls `f(topic)` for every token.
    pub(super) fn for_each_topic(&self, mut f: impl FnMut(u32)) {
        let of_short = self.parts.iter().flat_map(|part| &part.topics);
        of_short.for_each(|topic| f(topic.get()));
        self.long.for_each(|_, _, _, topic| f(topic));
    }

    /// (word, partition, place) of all words that the shard has, words ascending.
    pub(super) fn by_word(&self) -> Vec<(u32, usize, usize)> {
        let places = |(part, of): (usize, &PartitionTokens<T>)| {
            of.words.iter().enumerate().map(move |(at, &word)| (word, part, at)).collect::<Vec<_>>()
        };
        let mut all: Vec<(u32, usize, usize)> =
            self.parts.iter().enumerate().flat_map(places).collect();
        all.sort_unstable();
        all
    }

    /// Topics of [`state`](Self::state).
    pub fn topics(&self) -> Vec<T> {
        self.state().topics
    }

    /// Number of topics and proposals of the [state](Self::state).
    pub(super) fn num_values(&self) -> usize {
        self.num_short_tokens() + self.long.num_values()
    }

    /// Calls `f(document, word, topic)` for every token, by partition and word; tokens of long
    /// documents come last.
    pub fn for_each(&self, mut f: impl FnMut(u32, u32, u32)) {
        for part in &self.parts {
            for (at, &word) in part.words.iter().enumerate() {
                for token in part.range(at) {
                    let document = self.documents[part.documents[token] as usize];
                    f(document, word, part.topics[token].get());
                }
            }
        }
        let of_long = &self.documents[self.lengths.len()..];
        self.long.for_each(|document, part, at, topic| {
            let word = self.parts[usize::from(part)].words[at as usize];
            f(of_long[document as usize], word, topic);
        });
    }

    /// Writes a document's row of C_d, topics ascending.
    ///
    /// # Panics
    /// If there is no such document.
    pub fn row(&self, document: usize, row: &mut Vec<(u32, u32)>) {
        self.row_at(self.places[document] as usize, row);
    }

    /// As above, for the document at a place.
    pub(super) fn row_at(&self, place: usize, row: &mut Vec<(u32, u32)>) {
        row.clear();
        match place.checked_sub(self.lengths.len()) {
            None => {
                self.rows.for_each(place, |topic, count| row.push((topic, count)));
                row.sort_unstable();
            }
            Some(of_long) => {
                let mut topics = Vec::new();
                self.long.document(of_long, |topic| topics.push(topic));
                tally(&mut topics, row);
            }
        }
    }

    /// Calls `f(place, row)` for each of the shard's words of a partition, with the shard's counts
    /// of the word, topics ascending. Servers sum these rows when shards join.
    ///
    /// # Panics
    /// If there is no such partition.
    pub fn counts(&self, partition: u16, mut f: impl FnMut(u32, &[(u32, u32)])) {
        let part = &self.parts[partition as usize];
        let mut walk = self.long.walk(partition);
        let (mut row, mut topics) = (Vec::new(), Vec::new());
        for at in 0..part.words.len() {
            topics.clear();
            topics.extend(part.topics[part.range(at)].iter().map(|topic| topic.get()));
            self.long.topics(&mut walk, partition, at as u32, |topic| topics.push(topic.get()));
            row.clear();
            tally(&mut topics, &mut row);
            f(at as u32, &row);
        }
    }

    /// The documents' part of the log joint, log p(Z | α).
    pub fn log_joint(&self, spec: &ModelSpec) -> f64 {
        let alpha = spec.alpha();
        let symmetric = match alpha {
            Alpha::Symmetric(alpha) => Some(LnGammaRatio::new(*alpha)),
            Alpha::PerTopic(_) => None,
        };
        let alpha_sum = alpha.sum(spec.topics() as usize);
        let (mut sum, mut row) = (0.0, Vec::new());
        for document in 0..self.num_documents() {
            self.row(document, &mut row);
            let mut length = 0;
            for &(topic, count) in &row {
                length += count;
                sum += match &symmetric {
                    Some(ratio) => ratio.get(count.into()),
                    None => ln_rising(alpha.get(topic as usize), count.into()),
                };
            }
            sum -= ln_rising(alpha_sum, length.into());
        }
        sum
    }

    /// Non-zeros of C_d.
    pub fn non_zeros(&self) -> u64 {
        let mut row = Vec::new();
        let topics = |place| {
            self.row_at(place, &mut row);
            row.len() as u64
        };
        (0..self.num_documents()).map(topics).sum()
    }

    /// Makes the rows of C_d from the topics.
    fn count_documents(&mut self) {
        // Topics of all documents, document by document.
        let mut end = 0;
        let mut places: Vec<usize> = Vec::with_capacity(self.lengths.len());
        for &length in &self.lengths {
            end += length as usize;
            places.push(end);
        }
        let mut topics = vec![T::default(); end];
        for part in &self.parts {
            for (&document, &topic) in part.documents.iter().zip(&part.topics) {
                // Filled from the end, so that the place ends at the document's first topic.
                let place = &mut places[document as usize];
                *place -= 1;
                topics[*place] = topic;
            }
        }
        for (document, (&first, &length)) in places.iter().zip(&self.lengths).enumerate() {
            let topics = &mut topics[first..first + length as usize];
            topics.sort_unstable();
            let runs = topics.chunk_by(|a, b| a == b);
            self.rows.write(document, runs.map(|run| (run[0].get(), run.len() as u32)));
        }
    }
}

/// Appends (topic, count) pairs to `row`, topics ascending; sorts `topics`.
fn tally(topics: &mut [u32], row: &mut Vec<(u32, u32)>) {
    topics.sort_unstable();
    row.extend(topics.chunk_by(|a, b| a == b).map(|run| (run[0], run.len() as u32)));
}
