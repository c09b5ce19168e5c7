//! Rows of a partition that stay at a worker while its shards sample it one after another.
//!
//! If all rows are pulled and no two shards sample a partition at the same time, then the shards take turns:
//! [`next_turn_of`](crate::plan::next_turn_of) says which is next. While that is a shard of the same worker, the
//! rows need not travel: the worker [requests](RowsRequest) the rows of all words that its shards sample,
//! samples one shard after another with them, and pushes the changes of all together, when another worker
//! is next, and at the end of an epoch after which servers evaluate the rows, converged tokens are excluded,
//! or the run ends. So t shards of
//! a worker move the bytes of one, and rows are decoded and encoded once per t rounds. Each shard draws what
//! it would draw from rows that were pulled for it.
//!
//! A word's row is pulled, and its changes are pushed, on behalf of the first shard that has the word. As the
//! rows are not changed elsewhere meanwhile, a row of as many tokens here as it has topics, or more, is pushed whole:
//! its delta would hardly be shorter, and takes more work here and at the server. Of a row whose topics are split
//! over several servers, and of any other, the delta is pushed.
//!
//! Memory: the rows as [`Rows`], and while they have changes that were not pushed, those of which deltas are
//! pushed, encoded as servers have them.

use std::ops::Range;

use lda_core::counts::{Density, Rows, TopicIndex};
use lda_transport::Frame;

use crate::partition_sampler::{PartitionSampler, RoundContext};
use crate::placement::WordStats;
use crate::plan::rows_may_stay;
use crate::request::{Kind, put_bits, put_routes};
use crate::route::Route;
use crate::shard::{AnswerError, Shard};
use crate::spans::{Span, span};
use crate::spec::Round;
use crate::trip::{TripContext, TripRequest};
use crate::wire::{Lists, RowCode};

/// Topics and counts of a row, topics ascending.
type Row<'a> = &'a [(u32, u32)];

/// Rows that are requested on behalf of one shard.
#[derive(Debug)]
struct Part {
    /// Number of the shard.
    shard: u16,
    /// One bit for each of the shard's words of the partition: whether its row is requested here.
    bits: Vec<u8>,
    /// Row of each requested word.
    rows: Vec<u32>,
    /// Tokens of each requested word in all shards of the request.
    tokens: Vec<u32>,
    /// The rows as servers have them, encoded: one frame for each slice of the partition. `None` while a
    /// slice is awaited, and from a push until the rows are sampled again.
    slices: Vec<Option<Frame>>,
    /// Position of each row in the frame of the only slice, if its delta is pushed, and `None` if it is pushed
    /// whole. Empty while there is no frame, or if there are several slices, of which deltas are pushed.
    starts: Vec<Option<usize>>,
}

/// Request for the rows of a partition that some shards have.
#[derive(Debug)]
pub(crate) struct RowsRequest {
    partition: u16,
    words: Vec<u32>,
    parts: Vec<Part>,
    /// Open while replies are awaited.
    pull: Option<Span>,
}

/// Rows of a partition at a worker, with the changes of its shards.
#[derive(Debug)]
pub(crate) struct HeldRows<T> {
    partition: u16,
    /// Words that have a row here, ascending.
    words: Vec<u32>,
    rows: Rows<T>,
    parts: Vec<Part>,
    /// True if the rows have changes that were not pushed.
    is_ahead: bool,
}

impl RowsRequest {
    /// A request for the rows of all words of which these shards sample tokens.
    pub fn new<T: TopicIndex>(cx: TripContext<'_>, partition: u16, shards: &[&Shard<T>]) -> Self {
        let of_shard = |(at, shard): (usize, &&Shard<T>)| {
            let of_word = |(word, topics): (u32, &[T])| (word, at, topics.len() as u32);
            shard.sampled_words(partition).map(of_word).collect::<Vec<_>>()
        };
        let mut owners: Vec<(u32, usize, u32)> =
            shards.iter().enumerate().flat_map(of_shard).collect();
        owners.sort_unstable();
        owners.dedup_by(|next, kept| {
            let is_same = next.0 == kept.0;
            kept.2 += if is_same { next.2 } else { 0 };
            is_same
        });
        let slices = cx.placement.slices(partition.into()).len();
        let part = |(at, shard): (usize, &&Shard<T>)| {
            let (mut row, mut rows, mut routes) = (0, Vec::new(), Vec::new());
            let mut tokens = Vec::new();
            for &word in shard.tokens().words(partition) {
                while owners.get(row).is_some_and(|owner| owner.0 < word) {
                    row += 1;
                }
                let own = owners.get(row).filter(|owner| (owner.0, owner.1) == (word, at));
                routes.push(if own.is_some() { Route::Pull } else { Route::Push });
                rows.extend(own.is_some().then_some(row as u32));
                tokens.extend(own.map(|owner| owner.2));
            }
            let mut bits = Vec::new();
            put_routes(&routes, &mut bits);
            let (shard, slices) = (shard.number(), vec![None; slices]);
            Part { shard, bits, rows, tokens, slices, starts: Vec::new() }
        };
        let parts = shards.iter().enumerate().map(part).filter(|part| !part.rows.is_empty());
        let parts = parts.collect();
        let words = owners.into_iter().map(|owner| owner.0).collect();
        Self { partition, words, parts, pull: None }
    }

    /// The requests, in the order of the positions that [`accept`](Self::accept) takes.
    pub fn requests(&mut self, cx: TripContext<'_>, round: Round) -> Vec<TripRequest> {
        self.pull = Some(span!(
            DEBUG,
            "pull",
            epoch = round.epoch,
            round = round.number,
            shard = self.parts.first().map_or(0, |part| part.shard),
            partition = self.partition
        ));
        let mut requests = Vec::new();
        for part in &self.parts {
            for slice in cx.slices(self.partition) {
                let body = part.bits.clone();
                requests.push(TripRequest::new(Kind::Pull, part.shard, slice, round, body));
            }
        }
        requests
    }

    /// Accepts the reply to a request.
    pub fn accept(&mut self, position: usize, rows: Frame) {
        let slices = self.parts.iter_mut().flat_map(|part| &mut part.slices);
        if let Some(slice) = slices.into_iter().nth(position) {
            *slice = Some(rows);
        }
        if self.is_complete() {
            self.pull = None;
        }
    }

    /// Returns whether all replies are there.
    pub fn is_complete(&self) -> bool {
        self.parts.iter().all(|part| part.slices.iter().all(Option::is_some))
    }

    /// The rows, once the request is [complete](Self::is_complete). The request is spent. `shards` are those
    /// for which it was made; since then none has sampled the partition.
    ///
    /// # Errors
    /// [`AnswerError`] if a reply is malformed, or its rows count fewer tokens than the shards have.
    pub fn finish<T: TopicIndex>(
        &mut self,
        cx: TripContext<'_>,
        shards: &[&Shard<T>],
    ) -> Result<HeldRows<T>, AnswerError> {
        let partition = self.partition;
        let words = std::mem::take(&mut self.words);
        let mut parts = std::mem::take(&mut self.parts);
        let read = parts.iter_mut().map(|part| part.read_new(cx, partition));
        let read = read.collect::<Result<Vec<Lists<u32>>, _>>()?;
        let mut lists: Vec<Row<'_>> = vec![&[]; words.len()];
        for (part, read) in parts.iter().zip(&read) {
            part.rows.iter().zip(read.iter()).for_each(|(&row, list)| lists[row as usize] = list);
        }
        let topics = cx.spec.topics() as usize;
        check_tokens(partition, (&words, &lists), topics, shards)?;
        let tokens = lists.iter().map(|list| list.iter().map(|entry| u64::from(entry.1)).sum());
        let mut rows = Rows::new(topics, tokens, Density::Auto)?;
        lists.iter().enumerate().for_each(|(row, list)| rows.write(row, list.iter().copied()));
        Ok(HeldRows { partition, words, rows, parts, is_ahead: false })
    }
}

/// Checks that the row of each word counts the tokens of the shards that sample it.
fn check_tokens<T: TopicIndex>(
    partition: u16,
    (words, rows): (&[u32], &[Row<'_>]),
    topics: usize,
    shards: &[&Shard<T>],
) -> Result<(), AnswerError> {
    let mut left = vec![0; topics];
    let mut shards: Vec<_> =
        shards.iter().map(|shard| shard.sampled_words(partition).peekable()).collect();
    for (&word, row) in words.iter().zip(rows) {
        row.iter().for_each(|&(topic, count)| left[topic as usize] = count);
        for shard in &mut shards {
            let Some((_, topics)) = shard.next_if(|next| next.0 == word) else { continue };
            for topic in topics {
                let left = &mut left[topic.get() as usize];
                *left = u32::checked_sub(*left, 1).ok_or(AnswerError::Row { word })?;
            }
        }
        row.iter().for_each(|&(topic, _)| left[topic as usize] = 0);
    }
    Ok(())
}

impl Part {
    /// Rows that have been pulled, topics ascending.
    fn read_new(&mut self, cx: TripContext<'_>, partition: u16) -> Result<Lists<u32>, AnswerError> {
        let [slice] = &self.slices[..] else { return self.read(cx, partition) };
        let bytes = slice.as_deref().unwrap_or_default();
        let (code, mut rest) = (RowCode::new(cx.spec.topics()), bytes);
        let mut lists = Lists::default();
        for &tokens in &self.tokens {
            let start = bytes.len() - rest.len();
            let row = lists.read(code, &mut rest)?;
            self.starts.push((!is_pushed_whole(row.len(), tokens)).then_some(start));
        }
        if rest.is_empty() { Ok(lists) } else { Err(AnswerError::Rest { bytes: rest.len() }) }
    }

    /// Requested rows as servers have them, topics ascending.
    fn read(&self, cx: TripContext<'_>, partition: u16) -> Result<Lists<u32>, AnswerError> {
        let mut lists = Lists::default();
        let frames = self.slices.iter().map(|slice| slice.as_deref().unwrap_or_default());
        let topics = cx.slices(partition).map(|slice| cx.topics(slice));
        let mut slices: Vec<(Range<u32>, &[u8])> = topics.zip(frames).collect();
        for _ in &self.rows {
            for (at, (topics, bytes)) in slices.iter_mut().enumerate() {
                let code = RowCode::new(topics.end - topics.start);
                if at == 0 {
                    lists.read(code, bytes)?;
                } else {
                    lists.read_more(code, topics.start, bytes)?;
                }
            }
        }
        match slices.iter().map(|(_, bytes)| bytes.len()).sum() {
            0 => Ok(lists),
            bytes => Err(AnswerError::Rest { bytes }),
        }
    }
}

impl Part {
    /// Body of the request that pushes all changes to the only slice. Afterwards the server has these rows.
    fn push<T: TopicIndex>(&mut self, rows: &Rows<T>) -> Vec<u8> {
        let mut body = self.bits.clone();
        put_bits(self.starts.iter().map(Option::is_none), &mut body);
        let code = RowCode::new(rows.topics() as u32);
        let frame = self.slices[0].take().unwrap_or_else(|| Frame::from(Vec::new()));
        let (mut now, mut before, mut delta) = (Vec::new(), Vec::new(), Vec::new());
        for (&row, start) in self.rows.iter().zip(self.starts.drain(..)) {
            sorted_row(rows, row, &mut now);
            match start {
                None => code.encode(&now, &mut body),
                Some(start) => {
                    let read = code.decode(&mut &frame[start..], &mut before);
                    read.expect("a row that was read or written here");
                    difference(&before, &now, &mut delta);
                    code.encode(&delta, &mut body);
                }
            }
        }
        body
    }
}

/// Returns whether a row of this many topics is pushed as a whole, if shards here have this many of its tokens.
fn is_pushed_whole(topics: usize, tokens: u32) -> bool {
    topics <= tokens as usize
}

impl<T: TopicIndex> HeldRows<T> {
    /// Samples the tokens of one of the shards for which the rows were requested.
    pub fn sample(
        &mut self,
        cx: TripContext<'_>,
        shard: &mut Shard<T>,
        sampler: &mut PartitionSampler<T>,
        round: &RoundContext<'_>,
    ) {
        if !std::mem::replace(&mut self.is_ahead, true) {
            self.note_pushed(cx);
        }
        shard.sample_held(sampler, round, self.partition, &self.words, &mut self.rows);
    }

    /// Returns whether these rows have changes that were not pushed.
    pub fn is_ahead(&self) -> bool {
        self.is_ahead
    }

    /// Encodes the rows of which deltas will be pushed, and which are those of servers, if that was not done
    /// before.
    fn note_pushed(&mut self, cx: TripContext<'_>) {
        let Self { partition, rows, parts, .. } = self;
        let (mut now, mut scratch) = (Vec::new(), Vec::new());
        for part in parts {
            if let [slice] = &mut part.slices[..] {
                if slice.is_none() {
                    let encoded = note_rows(rows, (&part.rows, &part.tokens), &mut part.starts);
                    *slice = Some(Frame::from(encoded));
                }
                continue;
            }
            for (slice, number) in part.slices.iter_mut().zip(cx.slices(*partition)) {
                let topics = cx.topics(number);
                slice.get_or_insert_with(|| {
                    let mut encoded = Vec::new();
                    for &row in &part.rows {
                        sorted_row(rows, row, &mut now);
                        RowCode::encode_part(&now, &topics, &mut scratch, &mut encoded);
                    }
                    Frame::from(encoded)
                });
            }
        }
    }

    /// Requests that push all changes since the rows were pulled or pushed. Afterwards servers have these
    /// rows.
    pub fn push(&mut self, cx: TripContext<'_>, round: Round) -> Vec<TripRequest> {
        let Self { partition, rows, parts, is_ahead, .. } = self;
        *is_ahead = false;
        let slices: Vec<(u16, Range<u32>)> =
            cx.slices(*partition).map(|slice| (slice, cx.topics(slice))).collect();
        let mut requests = Vec::new();
        let (mut now, mut delta, mut scratch) = (Vec::new(), Vec::new(), Vec::new());
        for part in parts {
            if let [(slice, _)] = slices[..] {
                let body = part.push(rows);
                requests.push(TripRequest::new(Kind::PushRows, part.shard, slice, round, body));
                continue;
            }
            let mut bodies = vec![part.bits.clone(); slices.len()];
            let before = part.read(cx, *partition).expect("rows that were read before");
            for (&row, before) in part.rows.iter().zip(before.iter()) {
                sorted_row(rows, row, &mut now);
                difference(before, &now, &mut delta);
                for ((_, topics), body) in slices.iter().zip(&mut bodies) {
                    RowCode::encode_part(&delta, topics, &mut scratch, body);
                }
            }
            part.slices.fill(None);
            for ((slice, _), body) in slices.iter().zip(bodies) {
                requests.push(TripRequest::new(Kind::PushDeltas, part.shard, *slice, round, body));
            }
        }
        requests
    }

    /// Bytes held.
    pub fn memory(&self) -> usize {
        let of_part = |part: &Part| {
            let encoded: usize = part.slices.iter().flatten().map(|slice| slice.len()).sum();
            let numbers = part.rows.capacity() + part.tokens.capacity();
            part.bits.capacity() + 4 * numbers + 16 * part.starts.capacity() + encoded
        };
        let parts: usize = self.parts.iter().map(of_part).sum();
        parts + 4 * self.words.capacity() + self.rows.memory() as usize
    }
}

/// Encodes the rows of which deltas will be pushed, and notes where each starts. `of` are the rows and their
/// tokens.
fn note_rows<T: TopicIndex>(
    rows: &Rows<T>,
    of: (&[u32], &[u32]),
    starts: &mut Vec<Option<usize>>,
) -> Vec<u8> {
    let (code, mut encoded, mut now) = (RowCode::new(rows.topics() as u32), Vec::new(), Vec::new());
    starts.clear();
    for (&row, &tokens) in of.0.iter().zip(of.1) {
        let mut topics = 0;
        rows.for_each(row as usize, |_, _| topics += 1);
        let start = (!is_pushed_whole(topics, tokens)).then_some(encoded.len());
        starts.push(start);
        if start.is_some() {
            sorted_row(rows, row, &mut now);
            code.encode(&now, &mut encoded);
        }
    }
    encoded
}

/// Writes a row to `to`, topics ascending.
fn sorted_row<T: TopicIndex>(rows: &Rows<T>, row: u32, to: &mut Vec<(u32, u32)>) {
    to.clear();
    rows.for_each(row as usize, |topic, count| to.push((topic, count)));
    to.sort_unstable_by_key(|entry| entry.0);
}

/// Writes to `delta` the changes that make `after` of `before`; all have their topics ascending.
fn difference(before: &[(u32, u32)], after: &[(u32, u32)], delta: &mut Vec<(u32, i32)>) {
    delta.clear();
    let mut push = |topic, old: u32, new: u32| {
        let by = i64::from(new) - i64::from(old);
        if by != 0 {
            delta.push((topic, by.try_into().expect("no word here has 2^31 tokens")));
        }
    };
    let mut before = before.iter().copied().peekable();
    for &(topic, new) in after {
        while let Some((gone, old)) = before.next_if(|entry| entry.0 < topic) {
            push(gone, old, 0);
        }
        let old = before.next_if(|entry| entry.0 == topic).map_or(0, |entry| entry.1);
        push(topic, old, new);
    }
    before.for_each(|(gone, old)| push(gone, old, 0));
}

/// Returns for each partition whether its rows may stay at a worker that has `share` of the shards: those of
/// the first partitions, as long as the rows at a worker take about `most` bytes.
pub(crate) fn staying<T: TopicIndex>(
    cx: TripContext<'_>,
    words: &WordStats,
    share: f64,
    most: usize,
) -> Vec<bool> {
    let mut left = most as f64;
    let stays = |partition| {
        let tokens = || cx.placement.words(partition).map(|word| words.tokens()[word as usize]);
        let bytes = Rows::<T>::bytes(cx.spec.topics() as usize, tokens(), Density::Auto);
        left -= share * bytes as f64;
        // Rows of one partition have a limit, and deltas fit 31 bits.
        let fit = bytes < 1 << 35 && tokens().all(|tokens| tokens < 1 << 31);
        rows_may_stay(cx.options) && left >= 0.0 && fit
    };
    (0..cx.placement.num_partitions() as u32).map(stays).collect()
}

#[cfg(test)]
mod tests;
