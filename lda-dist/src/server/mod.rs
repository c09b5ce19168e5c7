//! Server: rows of C_w of some slices, and the sampling of tokens that are pushed to them.
//!
//! A [slice](crate::placement) is the part of a partition on this server: its rows with all topics,
//! or with a range of topics if several servers share the partition. Tokens are not pushed to a
//! partition of several slices.
//!
//! The server stores the words of a partition that each shard has, so messages refer to a word by
//! its index among the shard's words, and most take one bit per word.
//!
//! A request is sampled by the rows and C_k of the [start](Server::begin_round) of its round plus
//! its own changes, so the order of requests does not matter. Changes are added to the rows when
//! the round [ends](Server::end_round). Several rounds may be open, and end in the order in which
//! they started. With [`SyncMode::Bounded`](crate::sync::SyncMode::Bounded) a request reads what has arrived
//! until then, so its order among the others does matter.

mod error;
mod push;
mod serve;

use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;
use std::sync::Arc;

use hashbrown::HashMap;
use lda_core::counts::TopicIndex;
use lda_core::train::PseudoCounts;
use rayon::iter::{IndexedParallelIterator, IntoParallelRefMutIterator, ParallelIterator};

use crate::aggregate::Aggregate;
use crate::config::Options;
use crate::placement::Slice;
use crate::priors::Priors;
use crate::request::{self, RequestHeader};
use crate::route::Route;
use crate::row_cache::RowCache;
use crate::row_store::{ReadAt, RowBuffers, RowStore, RowStoreError};
use crate::sampler_pool::SamplerPool;
use crate::spec::{ModelSpec, Round, SpecError};
use crate::wire::{Lists, RowCode, WireError};

pub use error::RequestError;

/// Rows of a server, and its open rounds.
#[derive(Debug)]
pub struct Server<T: TopicIndex> {
    /// The model with the priors of the epoch that has started last.
    spec: Arc<ModelSpec>,
    options: Options,
    /// Round in which shards join. Its attempt is that of all requests.
    joining: Round,
    /// Open rounds in order; none while shards join.
    rounds: VecDeque<Open>,
    slices: BTreeMap<u16, SliceState<T>>,
    /// Bytes of all row caches.
    row_cache: usize,
    samplers: SamplerPool<T>,
    /// Largest number of bytes that the documents of one request took.
    pushed: usize,
}

/// An open round.
#[derive(Debug)]
struct Open {
    round: Round,
    /// Version of its rows: the number of rounds that had ended when it started.
    version: u64,
    /// C_k at its start.
    totals: Vec<u32>,
    /// The model with the priors of its epoch.
    spec: Arc<ModelSpec>,
}

/// State of a slice.
#[derive(Debug)]
struct SliceState<T> {
    /// Rows of the slice's topics, numbered from 0.
    store: RowStore,
    /// Topics of the slice.
    topics: Range<u32>,
    /// Words of each shard, by their places in the partition.
    shards: HashMap<u16, Vec<u32>>,
    /// Words of the partition, ascending.
    words: Vec<u32>,
    /// Tokens of each word in the shards that have joined.
    tokens: Vec<u64>,
    row_cache: RowCache<T>,
}

impl<T: TopicIndex> Server<T> {
    /// A server with these slices, and all counts 0 but the [pseudo-counts](ModelSpec::pseudo_counts), which
    /// are in the rows when the joining ends. Shards join in the round `joining`, and all
    /// requests must be of its attempt.
    ///
    /// # Panics
    /// If `T` cannot number K topics, or if a slice has no topics or topics beyond K.
    pub fn new(
        spec: &ModelSpec,
        options: &Options,
        joining: Round,
        slices: impl IntoIterator<Item = Slice>,
    ) -> Self {
        assert!(u64::from(spec.topics()) <= T::MAX_TOPICS, "topics must fit the index type");
        let held = |slice: Slice| {
            let Slice { number, words, topics } = slice;
            assert!(
                topics.start < topics.end && topics.end <= spec.topics(),
                "a slice has topics below K"
            );
            let store = RowStore::new(topics.end - topics.start, words.len());
            let (tokens, row_cache) = (vec![0; words.len()], RowCache::default());
            let shards = HashMap::new();
            let mut of = SliceState { store, topics, shards, words, tokens, row_cache };
            spec.pseudo_counts()
                .into_iter()
                .for_each(|counts| of.join_pseudo_counts(joining, counts));
            (number, of)
        };
        Self {
            spec: Arc::new(spec.clone()),
            options: *options,
            joining,
            rounds: VecDeque::new(),
            slices: slices.into_iter().map(held).collect(),
            row_cache: 0,
            samplers: SamplerPool::new(spec.topics(), options.sampler, 1),
            pushed: 0,
        }
    }

    /// Sets the number of slices that are worked on at the same time: 1, the default, on the calling thread,
    /// and more on the threads of rayon. Does not change results.
    #[must_use]
    pub fn threads(mut self, threads: usize) -> Self {
        self.samplers.set_threads(threads);
        self
    }

    /// Ends the oldest open round, or the joining, for all rows of this server. Adds the delta of
    /// C_k by the deltas of these rows to `changes`, but not those by rows that were pushed whole: the sums of
    /// all rows are [`TopicTotals`](crate::aggregate::TopicTotals).
    ///
    /// # Errors
    /// [`RequestError::RowStore`] if a peer has sent deltas that do not fit the rows. Some slices
    /// may have ended the round then; the rows must be rebuilt from the shards' topics.
    ///
    /// # Panics
    /// If `changes` does not have K entries.
    pub fn end_round(&mut self, round: Round, changes: &mut [i64]) -> Result<(), RequestError> {
        let mut slices: Vec<&mut SliceState<T>> = self.slices.values_mut().collect();
        for slices in slices.chunks_mut(self.samplers.threads()) {
            end_rounds(slices, round, changes)?;
        }
        self.rounds.retain(|open| open.round != round);
        // The next round to start reads the current rows, and so do all if they read the newest ones.
        let now = self.version();
        let open = self.rounds.front().filter(|_| !self.options.sync.reads_newest());
        let first = open.map_or(now, |open| open.version);
        self.slices.values_mut().for_each(|of| of.store.forget(first));
        Ok(())
    }

    /// Number of rounds that have ended.
    fn version(&self) -> u64 {
        self.slices.values().next().map_or(0, |of| of.store.version())
    }

    /// Number of open rounds.
    pub fn num_rounds(&self) -> usize {
        self.rounds.len()
    }

    /// Sets the priors of the next epoch, if they are learnt.
    ///
    /// # Errors
    /// [`SpecError`] if they do not fit the model.
    pub fn set_priors(&mut self, priors: &Priors) -> Result<(), SpecError> {
        self.spec = Arc::new(self.spec.with_priors(priors)?);
        Ok(())
    }

    /// The model with the priors of the epoch that has started last.
    pub(crate) fn spec(&self) -> &ModelSpec {
        &self.spec
    }

    /// Starts a round with the current rows and these C_k. Other rounds may be open.
    ///
    /// # Panics
    /// If `totals` does not have K entries.
    pub fn begin_round(&mut self, round: Round, totals: &[u32]) {
        assert_eq!(totals.len(), self.spec.topics() as usize, "one total per topic");
        let version = self.version();
        if round.number == 0
            && let Some(spec) = self.spec.by_size(totals)
        {
            self.spec = Arc::new(spec);
        }
        let spec = Arc::clone(&self.spec);
        self.rounds.push_back(Open { round, version, totals: totals.to_vec(), spec });
    }

    /// Adds all rows, as of the end of the last round, to an aggregate: slices in order, and in a
    /// slice words in order.
    pub fn aggregate(&self, to: &mut impl Aggregate) {
        self.each_row(|slice, word, row| to.add_row(slice, word, row));
    }

    /// Calls `f(word, row)` for every row, or the part of it that is here, after the last round:
    /// topics ascending, words in order within a slice.
    pub fn for_each(&self, mut f: impl FnMut(u32, &[(u32, u32)])) {
        self.each_row(|_, word, row| f(word, row));
    }

    fn each_row(&self, mut f: impl FnMut(u16, u32, &[(u32, u32)])) {
        let mut row = Vec::new();
        for (&number, of) in &self.slices {
            for (place, &word) in (0..).zip(&of.words) {
                row.clear();
                of.row(place, &mut row);
                f(number, word, &row);
            }
        }
    }

    /// Writes all rows of a slice after the last round, concatenated in the order of words.
    ///
    /// # Errors
    /// [`RequestError::Slice`].
    pub fn rows(&self, slice: u16, to: &mut Vec<u8>) -> Result<(), RequestError> {
        let of = self.slices.get(&slice).ok_or(RequestError::Slice { slice })?;
        let words = 0..of.words.len() as u32;
        let now = of.store.version();
        words.for_each(|place| to.extend_from_slice(of.store.encoded(now, place)));
        Ok(())
    }

    /// Appends a word's row, or the part of it in this slice, after the last round; topics
    /// ascending.
    ///
    /// # Panics
    /// If the slice is not on this server, or the word is not in its partition.
    pub fn row(&self, slice: u16, word: u32, row: &mut Vec<(u32, u32)>) {
        let of = &self.slices[&slice];
        let place = of.words.binary_search(&word).expect("a word of the partition");
        of.row(place as u32, row);
    }

    /// Bytes held.
    pub fn memory(&self) -> usize {
        let of = |held: &SliceState<T>| {
            let shards: usize = held.shards.values().map(|words| 4 * words.capacity()).sum();
            let own = held.store.memory() + held.row_cache.memory();
            own + shards + 4 * held.words.capacity() + 8 * held.tokens.capacity()
        };
        let totals: usize = self.rounds.iter().map(|open| 4 * open.totals.capacity()).sum();
        let of_request = self.samplers.memory() + self.pushed;
        self.slices.values().map(of).sum::<usize>() + of_request + totals
    }
}

/// Ends a round for slices, at the same time, and adds their deltas of C_k to `changes`.
fn end_rounds<T: TopicIndex>(
    slices: &mut [&mut SliceState<T>],
    round: Round,
    changes: &mut [i64],
) -> Result<(), RequestError> {
    let own = |of: &SliceState<T>| of.topics.start as usize..of.topics.end as usize;
    if let [of] = slices {
        return Ok(of.store.end_round(round, &mut changes[own(of)])?);
    }
    let ended = slices.par_iter_mut().with_max_len(1).map(|of| {
        let mut by_topic = vec![0; own(of).len()];
        of.store.end_round(round, &mut by_topic).map(|()| by_topic)
    });
    let ended: Vec<Result<Vec<i64>, RowStoreError>> = ended.collect();
    for (of, by_topic) in slices.iter().zip(ended) {
        changes[own(of)].iter_mut().zip(by_topic?).for_each(|(change, by)| *change += by);
    }
    Ok(())
}

impl<T: TopicIndex> SliceState<T> {
    /// Appends the part of a word's row that is here.
    fn row(&self, place: u32, row: &mut Vec<(u32, u32)>) {
        let first = row.len();
        self.store.row_behind(place, row);
        row[first..].iter_mut().for_each(|entry| entry.0 += self.topics.start);
    }

    /// Writes the sizes of a shard's rows, one byte per word: for the newest rows, without the changes of
    /// open rounds.
    fn sizes(
        &self,
        shard: u16,
        at: ReadAt,
        body: &[u8],
        reply: &mut Vec<u8>,
    ) -> Result<(), RequestError> {
        at_end(body)?;
        let version = match at {
            ReadAt::Version(version) => version,
            ReadAt::Newest => self.store.version(),
        };
        let size = |&word: &u32| request::size_byte(self.store.encoded(version, word).len() as u32);
        reply.extend(self.shards[&shard].iter().map(size));
        Ok(())
    }

    /// Writes the rows that a shard pulls.
    fn pull(
        &self,
        shard: u16,
        at: ReadAt,
        body: &[u8],
        reply: &mut Vec<u8>,
    ) -> Result<(), RequestError> {
        let (words, mut routes) = (&self.shards[&shard], Vec::new());
        at_end(request::take_routes(words.len(), body, &mut routes)?)?;
        let mut buffers = RowBuffers::default();
        for word in pulled(words, &routes) {
            reply.extend_from_slice(self.store.read_at(at, word, &mut buffers)?);
        }
        Ok(())
    }

    /// Adds the deltas of the rows that a shard has pulled.
    fn add_deltas(
        &mut self,
        header: &RequestHeader,
        is_whole: bool,
        body: &[u8],
    ) -> Result<(), RequestError> {
        let Self { shards, store, row_cache, topics, .. } = self;
        let (words, mut routes) = (&shards[&header.shard], Vec::new());
        let rows = request::take_routes(words.len(), body, &mut routes)?;
        let code = RowCode::new(topics.end - topics.start);
        let read = read_deltas(code, is_whole, pulled(words, &routes).count(), rows)?;
        for (word, delta) in pulled(words, &routes).zip(read.iter()) {
            store.add(header.round, word, delta)?;
            row_cache.change(word, delta);
        }
        Ok(())
    }

    /// Replaces rows that a shard has pulled, and adds the deltas of others.
    fn put_rows(&mut self, header: &RequestHeader, body: &[u8]) -> Result<(), RequestError> {
        let Self { shards, store, topics, tokens, .. } = self;
        let (words, mut routes) = (&shards[&header.shard], Vec::new());
        let rest = request::take_routes(words.len(), body, &mut routes)?;
        let code = RowCode::new(topics.end - topics.start);
        let (are_whole, mut rest) = request::take_bits(pulled(words, &routes).count(), rest)?;
        let are_whole: Vec<bool> = are_whole.collect();
        let (mut row, mut whole) = (Vec::<(u32, u32)>::new(), Vec::new());
        let mut deltas = Lists::<i32>::default();
        // All is read and checked before anything changes.
        for (word, is_whole) in pulled(words, &routes).zip(&are_whole) {
            let more: i128 = if *is_whole {
                let before = rest;
                code.decode(&mut rest, &mut row)?;
                whole.push(&before[..before.len() - rest.len()]);
                let sum: i128 = row.iter().map(|entry| i128::from(entry.1)).sum();
                sum - i128::from(tokens[word as usize])
            } else {
                let delta = deltas.read(code, &mut rest)?;
                delta.iter().map(|entry| i128::from(entry.1)).sum()
            };
            if more != 0 {
                return Err(RequestError::TokenCount { tokens: more as i64 });
            }
            store.check_unchanged(header.round, word)?;
        }
        at_end(rest)?;
        let (mut whole, mut deltas) = (whole.into_iter(), deltas.iter());
        for (word, is_whole) in pulled(words, &routes).zip(are_whole) {
            if is_whole {
                let encoded = whole.next().expect("one for each bit that is set");
                store.replace(header.round, word, encoded)?;
            } else {
                let delta = deltas.next().expect("one for each bit that is not set");
                store.add(header.round, word, delta)?;
            }
        }
        Ok(())
    }

    /// Adds pseudo-counts as if a shard joined with them.
    fn join_pseudo_counts(&mut self, joining: Round, counts: &PseudoCounts) {
        let Self { store, topics, words, tokens, .. } = self;
        let mut delta = Vec::new();
        for (place, &word) in words.iter().enumerate() {
            delta.clear();
            let row = counts.word(word as usize).iter().filter(|entry| topics.contains(&entry.0));
            for &(topic, count) in row {
                tokens[place] += u64::from(count);
                // A delta is signed.
                let half = count / 2;
                delta.extend([half, count - half].map(|part| (topic - topics.start, part as i32)));
            }
            store.add(joining, place as u32, &delta).expect("a word of the slice");
        }
    }

    /// Adds a shard's words and counts.
    fn join(&mut self, header: &RequestHeader, mut body: &[u8]) -> Result<(), RequestError> {
        let RequestHeader { shard, slice, round } = *header;
        if self.shards.contains_key(&shard) {
            return Err(RequestError::Joined { shard, slice });
        }
        let mut words: Vec<(u32, u32)> = Vec::new();
        if let Ok(places @ 1..) = u32::try_from(self.words.len()) {
            RowCode::new(places).decode(&mut body, &mut words)?;
        }
        if words.iter().any(|word| word.1 != 1) {
            return Err(RequestError::Words { shard, slice });
        }
        let code = RowCode::new(self.topics.end - self.topics.start);
        let mut rows = Lists::<u32>::default();
        for _ in &words {
            let row = rows.read(code, &mut body)?;
            if row.iter().any(|entry| i32::try_from(entry.1).is_err()) {
                return Err(RequestError::Wire(WireError::Number));
            }
        }
        at_end(body)?;
        let mut delta = Vec::new();
        for (&(word, _), row) in words.iter().zip(rows.iter()) {
            delta.clear();
            delta.extend(row.iter().map(|&(topic, count)| (topic, count as i32)));
            self.store.add(round, word, &delta)?;
            self.tokens[word as usize] += row.iter().map(|entry| u64::from(entry.1)).sum::<u64>();
        }
        self.shards.insert(shard, words.into_iter().map(|word| word.0).collect());
        Ok(())
    }
}

fn at_end(rest: &[u8]) -> Result<(), RequestError> {
    if rest.is_empty() { Ok(()) } else { Err(RequestError::Rest { bytes: rest.len() }) }
}

/// Places of the words whose rows a shard pulls.
fn pulled<'a>(words: &'a [u32], routes: &'a [Route]) -> impl Iterator<Item = u32> + 'a {
    let pulled = words.iter().zip(routes).filter(|(_, route)| **route == Route::Pull);
    pulled.map(|(&word, _)| word)
}

/// Decodes deltas of rows. Tokens only change their topics, so the delta of a whole row sums to 0.
fn read_deltas(
    code: RowCode,
    are_whole: bool,
    words: usize,
    mut rows: &[u8],
) -> Result<Lists<i32>, RequestError> {
    let mut read = Lists::default();
    for _ in 0..words {
        let row = read.read(code, &mut rows)?;
        let tokens: i64 = row.iter().map(|entry| i64::from(entry.1)).sum();
        if are_whole && tokens != 0 {
            return Err(RequestError::TokenCount { tokens });
        }
    }
    at_end(rows)?;
    Ok(read)
}
