//! A server: rows of C_w of some partitions' words, and the sampling of what is pushed to them.
//!
//! What lies here of a partition is a [slice](crate::placement): the rows with all their topics, or where several
//! servers share them some of these. Nothing is pushed to one of several slices.
//!
//! It knows which words of a partition each shard has, and so a worker names a word by its place among them, a bit a
//! word in most messages. A request is sampled by rows as they were when its round was [begun](Server::begin_round)
//! and its own changes alone, so that it does not matter which came before; C_k is of then too. What workers and
//! requests have changed comes into the rows when the round [ends](Server::end_round). Several rounds may be on, and
//! end in the order that they began in.

mod error;
mod push;

use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;

use hashbrown::HashMap;
use lda_core::counts::TopicIndex;

use crate::aggregate::Aggregate;
use crate::config::Options;
use crate::partition_sampler::PartitionSampler;
use crate::placement::Slice;
use crate::request::{self, Kind, RequestHeader};
use crate::route::Route;
use crate::row_cache::{ROW_CACHE_BYTES, RowCache};
use crate::row_store::RowStore;
use crate::spec::{ModelSpec, Round};
use crate::wire::{Lists, PushCode, RowCode, WireError};

pub use error::RequestError;
use push::push;

/// What a server has.
#[derive(Debug)]
pub struct Server<T: TopicIndex> {
    spec: ModelSpec,
    options: Options,
    /// When shards join; its attempt is that of all requests.
    joining: Round,
    /// Those that are on; before the first there is none, and shards join.
    rounds: VecDeque<Open>,
    slices: BTreeMap<u16, SliceState<T>>,
    /// Bytes of rows that are kept as they are sampled by.
    row_cache: usize,
    sampler: PartitionSampler<T>,
    /// Bytes that the documents took which were pushed in one request, the most of all.
    pushed: usize,
}

/// A round that is on.
#[derive(Debug)]
struct Open {
    round: Round,
    /// Rounds that had ended when it was begun: the version of its rows.
    version: u64,
    /// C_k of then.
    totals: Vec<u32>,
}

/// A slice of a partition.
#[derive(Debug)]
struct SliceState<T> {
    /// Rows of its topics, which count from 0.
    store: RowStore,
    /// Its topics.
    topics: Range<u32>,
    /// By shard: its words, by their places in the partition.
    shards: HashMap<u16, Vec<u32>>,
    words: Vec<u32>,
    /// By word, of the shards that have joined.
    tokens: Vec<u64>,
    row_cache: RowCache<T>,
}

impl<T: TopicIndex> Server<T> {
    /// With these slices; all counts are 0. Shards join in the round `joining`, and all requests have to be of its
    /// attempt.
    ///
    /// # Panics
    /// If topics have numbers too narrow for K, or if a slice has others or none.
    pub fn new(
        spec: &ModelSpec,
        options: &Options,
        joining: Round,
        slices: impl IntoIterator<Item = Slice>,
    ) -> Self {
        assert!(u64::from(spec.topics()) <= T::MAX_TOPICS, "numbers too narrow for the topics");
        let held = |slice: Slice| {
            let Slice { number, words, topics } = slice;
            assert!(topics.start < topics.end && topics.end <= spec.topics(), "some of the topics");
            let store = RowStore::new(topics.end - topics.start, words.len());
            let (tokens, row_cache) = (vec![0; words.len()], RowCache::default());
            (number, SliceState { store, topics, shards: HashMap::new(), words, tokens, row_cache })
        };
        Self {
            spec: spec.clone(),
            options: *options,
            joining,
            rounds: VecDeque::new(),
            slices: slices.into_iter().map(held).collect(),
            row_cache: 0,
            sampler: PartitionSampler::new(spec.topics()),
            pushed: 0,
        }
    }

    /// Answers a [request]: writes the reply.
    ///
    /// # Errors
    /// [`RequestError`], and then nothing has changed; what is written is of no meaning.
    pub fn serve(&mut self, request: &[u8], reply: &mut Vec<u8>) -> Result<(), RequestError> {
        let (kind, header, body) = request::read(request)?;
        let RequestHeader { shard, slice, round } = header;
        let Self { spec, options, joining, rounds, slices, row_cache, sampler, pushed } = self;
        if *row_cache > ROW_CACHE_BYTES {
            slices.values_mut().for_each(|it| it.row_cache = RowCache::default());
            *row_cache = 0;
        }
        let of = slices.get_mut(&slice).ok_or(RequestError::Slice { slice })?;
        if kind == Kind::Join {
            // What comes when all have joined would count in no round.
            if round != *joining || of.store.version() > 0 {
                let now = rounds.front().map_or(*joining, |open| open.round);
                return Err(RequestError::Round { found: round, now });
            }
            return of.join(&header, body);
        }
        let Some(open) = rounds.iter().find(|open| open.round == round) else {
            let now = rounds.front().ok_or(RequestError::NotYet)?.round;
            return Err(RequestError::Round { found: round, now });
        };
        let version = open.version;
        let words = of.shards.get(&shard).ok_or(RequestError::Shard { shard, slice })?;
        let is_whole = of.topics == (0..spec.topics());
        let mut routes = Vec::new();
        match kind {
            Kind::Join => unreachable!("it is done"),
            Kind::Sizes => {
                at_end(body)?;
                let row = |word: u32| of.store.encoded(version, word);
                let size = |&word: &u32| request::size_byte(row(word).len() as u32);
                reply.extend(words.iter().map(size));
                Ok(())
            }
            Kind::Pull => {
                at_end(request::take_routes(words.len(), body, &mut routes)?)?;
                for word in pulled(words, &routes) {
                    reply.extend_from_slice(of.store.encoded(version, word));
                }
                Ok(())
            }
            Kind::PushDeltas => {
                let rows = request::take_routes(words.len(), body, &mut routes)?;
                let code = RowCode::new(of.topics.end - of.topics.start);
                let read = read_gained(code, is_whole, pulled(words, &routes).count(), rows)?;
                let gained = pulled(words, &routes).zip(read.iter());
                gained.into_iter().try_for_each(|(word, row)| Ok(of.store.add(round, word, row)?))
            }
            Kind::Push => {
                if !is_whole {
                    return Err(RequestError::PartialRows { slice });
                }
                let code = PushCode::new(spec.topics(), words.len() as u32, options.max_pushed_len);
                let before = of.row_cache.memory();
                // Else no other asks for this version.
                let is_shared = options.shards > options.rounds;
                let oldest = rounds.front().map_or(version, |open| open.version);
                let left = ROW_CACHE_BYTES.saturating_sub(*row_cache);
                let kept = is_shared
                    .then(|| of.row_cache.turn(spec.topics(), &of.tokens, version, oldest, left));
                let rows = (version, kept.flatten());
                let done = push(
                    spec,
                    options,
                    code,
                    &header,
                    &open.totals,
                    rows,
                    sampler,
                    of,
                    body,
                    reply,
                );
                *row_cache = *row_cache - before + of.row_cache.memory();
                *pushed = done?.max(*pushed);
                Ok(())
            }
        }
    }

    /// Ends the round, the first of those that are on, for all rows of this server; before the first, shards have
    /// joined. `changes` are what C_k gains by them, added to.
    ///
    /// # Errors
    /// [`RequestError::RowStore`]: somebody has sent what is not of this run. Other slices may be in the next round
    /// then, and the rows have to be made anew from the shards' topics.
    ///
    /// # Panics
    /// If `changes` are not K.
    pub fn end_round(&mut self, round: Round, changes: &mut [i64]) -> Result<(), RequestError> {
        for of in self.slices.values_mut() {
            let own = of.topics.start as usize..of.topics.end as usize;
            of.store.end_round(round, &mut changes[own])?;
        }
        self.rounds.retain(|open| open.round != round);
        // Who begins the next sees rows of now.
        let now = self.version();
        let first = self.rounds.front().map_or(now, |open| open.version);
        self.slices.values_mut().for_each(|of| of.store.forget(first));
        Ok(())
    }

    /// Rounds that have ended.
    fn version(&self) -> u64 {
        self.slices.values().next().map_or(0, |of| of.store.version())
    }

    /// Rounds that are on.
    pub fn num_rounds(&self) -> usize {
        self.rounds.len()
    }

    /// Begins a round with rows of now and these C_k. Others may be on.
    ///
    /// # Panics
    /// If they are not K.
    pub fn begin_round(&mut self, round: Round, totals: &[u32]) {
        assert_eq!(totals.len(), self.spec.topics() as usize, "a total a topic");
        let version = self.version();
        self.rounds.push_back(Open { round, version, totals: totals.to_vec() });
    }

    /// Adds all rows, as of the end of the last round, to an aggregate: slices in order, and in a slice
    /// words in order.
    pub fn aggregate(&self, to: &mut impl Aggregate) {
        self.each_row(|slice, word, row| to.add_row(slice, word, row));
    }

    /// Every row, or what lies here of it: `f(word, row)`, topics ascending, as of the last round's end; words in order
    /// within a slice.
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

    /// Writes all rows of a slice as of the last round's end, one behind the other, words in order.
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

    /// A word's row, or what its slice has of it, topics ascending, as of the last round's end; behind what `row` has.
    ///
    /// # Panics
    /// If the slice is not here, or the word not of it.
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
        let of_request = self.sampler.memory() + self.pushed;
        self.slices.values().map(of).sum::<usize>() + of_request + totals
    }
}

impl<T: TopicIndex> SliceState<T> {
    /// What is here of a word's row, behind what `row` has.
    fn row(&self, place: u32, row: &mut Vec<(u32, u32)>) {
        let first = row.len();
        self.store.row_behind(place, row);
        row[first..].iter_mut().for_each(|entry| entry.0 += self.topics.start);
    }

    /// A shard's words, and what it has of them.
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
        let mut gained = Vec::new();
        for (&(word, _), row) in words.iter().zip(rows.iter()) {
            gained.clear();
            gained.extend(row.iter().map(|&(topic, count)| (topic, count as i32)));
            self.store.add(round, word, &gained)?;
            self.tokens[word as usize] += row.iter().map(|entry| u64::from(entry.1)).sum::<u64>();
        }
        self.shards.insert(shard, words.into_iter().map(|word| word.0).collect());
        Ok(())
    }
}

fn at_end(rest: &[u8]) -> Result<(), RequestError> {
    if rest.is_empty() { Ok(()) } else { Err(RequestError::Rest { bytes: rest.len() }) }
}

/// Places of the words that a shard pulls.
fn pulled<'a>(words: &'a [u32], routes: &'a [Route]) -> impl Iterator<Item = u32> + 'a {
    let pulled = words.iter().zip(routes).filter(|(_, route)| **route == Route::Pull);
    pulled.map(|(&word, _)| word)
}

/// Rows of so many words, which only change their tokens' topics: where rows are whole none has gained any.
fn read_gained(
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
