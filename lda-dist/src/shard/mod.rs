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
//! Memory a token: 4 bytes and its topic, of 2 or 4 bytes; rows of C_d as in [`Rows`]; 16 bytes a document; 8 bytes a
//! word of the shard.

mod error;
mod part;

use std::ops::Range;

use lda_core::Corpus;
use lda_core::counts::{Density, Rows, TopicIndex};
use lda_core::layout::{deal, ranges_for};
use lda_core::prior::Alpha;
use lda_core::random::{Purpose, StreamKey};
use lda_core::sampler::BlockKey;
use lda_core::special::{LnGammaRatio, ln_rising};

use crate::bench::{Bench, NotInRow};
use crate::job::{Job, Round};
use crate::placement::Placement;
use crate::request::{self, About, Kind};
use crate::route::{self, Route};
use crate::wire::{self, PushCode, RowCode};

pub use error::{AnswerError, RestoreError, ShardError};
use part::Part;

/// A part of the documents.
#[derive(Debug)]
pub struct Shard<T: TopicIndex> {
    number: u16,
    /// Documents have other numbers here: by range, and in it by length. Which one each is, and the other way round.
    documents: Vec<u32>,
    places: Vec<u32>,
    /// Where each range ends.
    ends: Vec<u32>,
    /// Tokens of each document.
    lengths: Vec<u32>,
    parts: Vec<Part<T>>,
    rows: Rows<T>,
    /// Bytes that each document's row takes, as of the epoch's start.
    sizes: Vec<u32>,
    /// Its share of C_k at the round's start, and what it has added since.
    counts: Vec<u32>,
    own: Vec<i32>,
}

/// What a partition's tokens of a shard need of their server.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    /// By the shard's words of the partition.
    pub routes: Vec<Route>,
    /// Documents with the tokens that the server is to sample; words by their place among the shard's.
    pub pushed: Vec<wire::Document>,
    /// Where these tokens are.
    places: Vec<u32>,
}

impl<T: TopicIndex> Shard<T> {
    /// Some documents of a corpus; `first` is the number of the corpus' first one in the whole job, which its first
    /// topics follow from: the same as one process begins with.
    ///
    /// # Errors
    /// [`ShardError`].
    ///
    /// # Panics
    /// If documents are not the corpus', or if words were placed of another vocabulary.
    pub fn new(
        job: &Job,
        placement: &Placement,
        number: u16,
        corpus: &Corpus,
        documents: Range<usize>,
        first: u64,
    ) -> Result<Self, ShardError> {
        if corpus.num_words() != job.words() as usize {
            return Err(ShardError::Words { found: corpus.num_words(), expected: job.words() });
        }
        if u64::from(job.topics()) > T::MAX_TOPICS {
            let (topics, most) = (job.topics(), T::MAX_TOPICS);
            return Err(ShardError::Topics { topics, most });
        }
        assert_eq!(placement.num_words(), corpus.num_words(), "words of another vocabulary");
        let (order, ends) = order(corpus, documents.clone());
        let mut places = vec![0; order.len()];
        // (word, document, topic): documents in order, so that sorting by word leaves them so.
        let mut tokens: Vec<Vec<(u32, u32, T)>> = vec![Vec::new(); placement.num_partitions()];
        let mut lengths = Vec::with_capacity(documents.len());
        for (local, &number) in order.iter().enumerate() {
            places[number as usize] = local as u32;
            let global = documents.start + number as usize;
            let (purpose, block) = (Purpose::Initialise, first + global as u64);
            let key = StreamKey { seed: job.seed(), epoch: 0, pass: 0, block, purpose };
            let mut stream = key.stream();
            let document = corpus.document(global);
            lengths.push(document.len() as u32);
            for (word, count) in document.iter() {
                let part = &mut tokens[placement.partition(word) as usize];
                part.extend(
                    (0..count).map(|_| (word, local as u32, T::new(stream.below(job.topics())))),
                );
            }
        }
        let parts = tokens.into_iter().map(Part::new).collect::<Result<Vec<_>, _>>()?;
        let each = lengths.iter().map(|&length| u64::from(length));
        let topics = job.topics() as usize;
        Rows::<T>::check(topics, each.clone(), Density::Auto)?;
        let mut shard = Self {
            number,
            sizes: vec![0; lengths.len()],
            rows: Rows::new(topics, each, Density::Auto)?,
            counts: vec![0; topics],
            own: vec![0; topics],
            documents: order,
            places,
            ends,
            lengths,
            parts,
        };
        shard.count(job);
        Ok(shard)
    }

    /// Counts topics anew.
    fn count(&mut self, job: &Job) {
        self.counts.fill(0);
        self.own.fill(0);
        for topic in self.parts.iter().flat_map(|part| &part.topics) {
            self.counts[topic.get() as usize] += 1;
        }
        self.count_documents();
        self.begin_epoch(job);
    }

    /// Parts and places there of all words that the shard has, words ascending.
    fn by_word(&self) -> Vec<(u32, usize, usize)> {
        let places = |(part, of): (usize, &Part<T>)| {
            of.words.iter().enumerate().map(move |(at, &word)| (word, part, at)).collect::<Vec<_>>()
        };
        let mut all: Vec<(u32, usize, usize)> =
            self.parts.iter().enumerate().flat_map(places).collect();
        all.sort_unstable();
        all
    }

    /// Every token's topic, by word and then by document, whatever the partitions are: what a run can go on from.
    pub fn topics(&self) -> Vec<T> {
        let mut topics = Vec::with_capacity(self.num_tokens());
        for (_, part, at) in self.by_word() {
            let part = &self.parts[part];
            topics.extend_from_slice(&part.topics[part.range(at)]);
        }
        topics
    }

    /// Takes such topics between two epochs.
    ///
    /// # Errors
    /// [`RestoreError`], and then nothing has changed.
    pub fn restore(&mut self, job: &Job, mut topics: &[T]) -> Result<(), RestoreError> {
        let (found, expected) = (topics.len(), self.num_tokens());
        if found != expected {
            return Err(RestoreError::Tokens { found, expected });
        }
        if let Some(topic) = topics.iter().find(|topic| topic.get() >= job.topics()) {
            return Err(RestoreError::Topic { topic: topic.get() });
        }
        for (_, part, at) in self.by_word() {
            let part = &mut self.parts[part];
            let range = part.range(at);
            let (of_word, rest) = topics.split_at(range.len());
            part.topics[range].copy_from_slice(of_word);
            topics = rest;
        }
        self.count(job);
        Ok(())
    }

    /// Tokens.
    pub fn num_tokens(&self) -> usize {
        self.parts.iter().map(|part| part.topics.len()).sum()
    }

    /// Bytes held.
    pub fn memory(&self) -> usize {
        let numbers =
            [&self.documents, &self.places, &self.ends, &self.lengths, &self.sizes, &self.counts];
        let parts: usize = self.parts.iter().map(Part::memory).sum();
        let rows = self.rows.memory() as usize;
        4 * (numbers.iter().map(|it| it.capacity()).sum::<usize>() + self.own.capacity())
            + parts
            + rows
    }

    /// Its number.
    pub fn number(&self) -> u16 {
        self.number
    }

    /// Documents.
    pub fn num_documents(&self) -> usize {
        self.lengths.len()
    }

    /// Words of a partition that this shard has, ascending: by their places here both sides know them.
    ///
    /// # Panics
    /// If there is no such partition.
    pub fn words(&self, partition: u16) -> &[u32] {
        &self.parts[partition as usize].words
    }

    /// Every token: `f(document, word, topic)`, by partition and word.
    pub fn for_each(&self, mut f: impl FnMut(u32, u32, u32)) {
        for part in &self.parts {
            for (at, &word) in part.words.iter().enumerate() {
                for token in part.range(at) {
                    let document = self.documents[part.documents[token] as usize];
                    f(document, word, part.topics[token].get());
                }
            }
        }
    }

    /// A document's row of C_d, topics ascending.
    ///
    /// # Panics
    /// If there is no such document.
    pub fn row(&self, document: usize, row: &mut Vec<(u32, u32)>) {
        self.row_at(self.places[document] as usize, row);
    }

    /// The same of the one that has this number here.
    fn row_at(&self, place: usize, row: &mut Vec<(u32, u32)>) {
        row.clear();
        self.rows.for_each(place, |topic, count| row.push((topic, count)));
        row.sort_unstable();
    }

    /// What this shard has of a partition's words, by their places: `f(place, row)`, rows ascending. What a server
    /// begins with, or is rebuilt from.
    ///
    /// # Panics
    /// If there is no such partition.
    pub fn counts(&self, partition: u16, mut f: impl FnMut(u32, &[(u32, u32)])) {
        let part = &self.parts[partition as usize];
        let mut row = Vec::new();
        let mut topics = Vec::new();
        for at in 0..part.words.len() {
            topics.clear();
            topics.extend_from_slice(&part.topics[part.range(at)]);
            topics.sort_unstable();
            row.clear();
            let runs = topics.chunk_by(|a, b| a == b);
            row.extend(runs.map(|run| (run[0].get(), run.len() as u32)));
            f(at as u32, &row);
        }
    }

    /// Its documents' part of the log joint, log p(Z | α).
    pub fn log_joint(&self, job: &Job) -> f64 {
        let alpha = job.alpha();
        let symmetric = match alpha {
            Alpha::Symmetric(alpha) => Some(LnGammaRatio::new(*alpha)),
            Alpha::PerTopic(_) => None,
        };
        let alpha_sum = alpha.sum(job.topics() as usize);
        let (mut sum, mut row) = (0.0, Vec::new());
        for &place in &self.places {
            let length = self.lengths[place as usize];
            self.row_at(place as usize, &mut row);
            for &(topic, count) in &row {
                sum += match &symmetric {
                    Some(ratio) => ratio.get(count.into()),
                    None => ln_rising(alpha.get(topic as usize), count.into()),
                };
            }
            sum -= ln_rising(alpha_sum, length.into());
        }
        sum
    }

    /// Writes what this shard joins a partition with: its words, and its rows of them.
    ///
    /// # Panics
    /// If there is no such partition, or if it was placed elsewise.
    pub fn join(
        &self,
        job: &Job,
        placement: &Placement,
        partition: u16,
        round: Round,
        to: &mut Vec<u8>,
    ) {
        let about = self.about(partition, round);
        request::begin(Kind::Join, &about, to);
        let words = self.words(partition);
        let places: Vec<(u32, u32)> =
            words.iter().map(|&word| (placement.place(word), 1)).collect();
        let all = placement.words(partition.into()).len() as u32;
        if all > 0 {
            RowCode::new(all).encode(&places, to);
        }
        let code = RowCode::new(job.topics());
        self.counts(partition, |_, row| code.encode(row, to));
    }

    /// What a request of this shard is about.
    pub fn about(&self, partition: u16, round: Round) -> About {
        About { shard: self.number, partition, round }
    }

    /// Begins a round with these C_k.
    ///
    /// # Errors
    /// [`AnswerError::Total`].
    ///
    /// # Panics
    /// If `totals` are not K.
    pub fn begin_round(&mut self, totals: &[u32]) -> Result<(), AnswerError> {
        assert_eq!(totals.len(), self.counts.len(), "a total a topic");
        for (count, own) in self.counts.iter_mut().zip(&mut self.own) {
            *count = count.checked_add_signed(*own).expect("as many as its tokens");
            *own = 0;
        }
        match self.counts.iter().zip(totals).position(|(count, total)| count > total) {
            Some(topic) => Err(AnswerError::Total { topic: topic as u32 }),
            None => Ok(()),
        }
    }

    /// Makes rows of C_d from the topics.
    fn count_documents(&mut self) {
        // Topics by document, each document's behind those of the one before.
        let mut end = 0;
        let mut places: Vec<usize> = Vec::with_capacity(self.lengths.len());
        for &length in &self.lengths {
            end += length as usize;
            places.push(end);
        }
        let mut topics = vec![T::default(); end];
        for part in &self.parts {
            for (&document, &topic) in part.documents.iter().zip(&part.topics) {
                // From the last on, so that in the end the place is that of the first.
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

    /// Begins an epoch: topics of each row of C_d are put in ascending order, so that what follows does not depend on
    /// how they came about; and how many bytes rows take is measured.
    pub fn begin_epoch(&mut self, job: &Job) {
        let code = RowCode::new(job.topics());
        let mut row = Vec::new();
        for document in 0..self.lengths.len() {
            self.row_at(document, &mut row);
            self.rows.write(document, row.iter().copied());
            self.sizes[document] = code.size(&row) as u32;
        }
        self.rows.adapt();
    }

    /// What becomes of a partition's words, given the bytes that each one's row takes; documents of more than `longest`
    /// tokens are not pushed. Whether partitions before it have been sampled in this epoch does not matter.
    ///
    /// # Panics
    /// If there is no such partition, or not a size a word.
    pub fn routes(&self, partition: u16, pulled: &[u32], longest: u32) -> Vec<Route> {
        let part = &self.parts[partition as usize];
        assert_eq!(pulled.len(), part.words.len(), "a size a word");
        // What goes back of a row is no longer than it, and than a few bytes a token.
        let both = |(at, &row): (usize, &u32)| row + row.min(2 * part.range(at).len() as u32);
        let pulled: Vec<u32> = pulled.iter().enumerate().map(both).collect();
        let (mut starts, mut of_words, mut tokens) = (vec![0], Vec::new(), Vec::new());
        for at in 0..part.words.len() {
            for run in part.documents[part.range(at)].chunk_by(|a, b| a == b) {
                of_words.push(run[0]);
                tokens.push(run.len() as u32);
            }
            starts.push(of_words.len());
        }
        let documents: Vec<route::Document> = self
            .lengths
            .iter()
            .zip(&self.sizes)
            .map(|(&length, &row)| route::Document {
                row,
                token_bits: token_bits(length),
                may_be_pushed: length <= longest,
            })
            .collect();
        let words = route::Words {
            starts: &starts,
            documents: &of_words,
            tokens: &tokens,
            pulled: &pulled,
        };
        route::route(&words, &documents)
    }

    /// What its tokens need now: what is pushed has the topics and rows of C_d of this moment.
    ///
    /// # Panics
    /// If there is no such partition, or not a route a word.
    pub fn request(&self, partition: u16, routes: Vec<Route>) -> Plan {
        let part = &self.parts[partition as usize];
        assert_eq!(routes.len(), part.words.len(), "a route a word");
        // (document, place of the word, token): tokens of a word ascend, so that sorting is stable.
        let mut pushed: Vec<(u32, u32, u32)> = Vec::new();
        for (at, _) in routes.iter().enumerate().filter(|(_, route)| **route == Route::Push) {
            let tokens = part.range(at);
            pushed.extend(tokens.map(|token| (part.documents[token], at as u32, token as u32)));
        }
        pushed.sort_unstable();
        let documents = pushed.chunk_by(|a, b| a.0 == b.0).map(|run| {
            let mut document = wire::Document::default();
            self.row_at(run[0].0 as usize, &mut document.row);
            let topic = |token: u32| part.topics[token as usize].get();
            document.tokens.extend(run.iter().map(|&(_, word, token)| (word, topic(token))));
            document
        });
        let documents = documents.collect();
        let places = pushed.iter().map(|&(_, _, token)| token).collect();
        Plan { routes, pushed: documents, places }
    }

    /// Samples the tokens of pulled words, whose `rows` have come one behind the other, as of the round's start;
    /// `totals` are C_k of then. What each pulled word has gained is written behind `gained`, in the same order.
    ///
    /// # Errors
    /// [`AnswerError`], and then nothing has changed.
    ///
    /// # Panics
    /// If `plan` is not of this partition.
    #[allow(clippy::too_many_arguments)]
    pub(crate) fn sample(
        &mut self,
        bench: &mut Bench<T>,
        job: &Job,
        round: Round,
        partition: u16,
        plan: &Plan,
        totals: &[u32],
        mut rows: &[u8],
        gained: &mut Vec<u8>,
    ) -> Result<(), AnswerError> {
        let part = &mut self.parts[partition as usize];
        let pulled = || plan.routes.iter().enumerate().filter(|(_, route)| **route == Route::Pull);
        bench.clear();
        for (at, _) in pulled() {
            let range = part.range(at);
            let documents = part.documents[range.clone()].iter().copied();
            let laid = bench.lay(&mut rows, documents.zip(part.topics[range].iter().copied()))?;
            laid.map_err(|NotInRow| AnswerError::Row { word: part.words[at] })?;
        }
        if !rows.is_empty() {
            return Err(AnswerError::Rest { bytes: rows.len() });
        }
        let key = BlockKey { shard: self.number, documents: 0, words: partition };
        bench.sample(job, round, key, totals, &mut self.own, &mut self.rows, &self.ends);
        let mut topics = bench.topics();
        for (at, _) in pulled() {
            let range = part.range(at);
            let (of_word, rest) = topics.split_at(range.len());
            part.topics[range].copy_from_slice(of_word);
            topics = rest;
        }
        let code = RowCode::new(job.topics());
        bench.gains(|_, gains| code.encode(gains, gained));
        Ok(())
    }

    /// Takes the new topics of what was pushed.
    ///
    /// # Errors
    /// [`AnswerError`], and then nothing has changed.
    ///
    /// # Panics
    /// If `plan` is not of this partition.
    pub fn answered(
        &mut self,
        code: PushCode,
        partition: u16,
        plan: &Plan,
        answer: &[u8],
    ) -> Result<(), AnswerError> {
        let mut topics = Vec::new();
        code.decode_answer(&plan.pushed, answer, &mut topics)?;
        let part = &mut self.parts[partition as usize];
        for (&token, &topic) in plan.places.iter().zip(&topics) {
            let old = part.topics[token as usize].get();
            if old != topic {
                let document = part.documents[token as usize] as usize;
                self.rows.decrement(document, old);
                self.rows.increment(document, topic);
                self.own[old as usize] -= 1;
                self.own[topic as usize] += 1;
                part.topics[token as usize] = T::new(topic);
            }
        }
        Ok(())
    }
}

/// Documents in the order that their rows lie in, and where each range ends: as `lda_core::layout` cuts a corpus, so
/// that the rows of a range fit into a cache.
fn order(corpus: &Corpus, documents: Range<usize>) -> (Vec<u32>, Vec<u32>) {
    let lengths = documents.map(|document| corpus.document(document).len());
    let ranges = ranges_for(lengths.clone().sum());
    let (mut order, mut ends) = (Vec::new(), Vec::new());
    for range in deal(lengths, ranges) {
        order.extend(range.into_iter().rev());
        ends.push(order.len() as u32);
    }
    (order, ends)
}

/// About how many bits a token takes of a document of this length, there and back: which word, which of the
/// document's topics, and whether it has changed.
fn token_bits(length: u32) -> u32 {
    let topic = u32::BITS - length.max(1).leading_zeros();
    8 + topic + 2 + topic / 2
}
