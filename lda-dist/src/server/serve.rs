//! Requests to the slices of a server, one by one or those to different slices at the same time.

use std::collections::{BTreeMap, VecDeque};

use lda_core::counts::TopicIndex;

use super::error::RequestError;
use super::push::{Push, RowSource};
use super::{Open, Server, SliceState};
use crate::config::Options;
use crate::partition_sampler::{PartitionSampler, RoundContext};
use crate::plan::rows_may_stay;
use crate::request::{self, Kind, RequestHeader};
use crate::row_cache::{ROW_CACHE_BYTES, RowCache};
use crate::row_store::ReadAt;
use crate::spec::{ModelSpec, Round};

/// A request that is read.
#[derive(Clone, Copy)]
struct Request<'a> {
    kind: Kind,
    header: RequestHeader,
    body: &'a [u8],
}

/// State of a server that requests do not change.
#[derive(Clone, Copy)]
struct Serving<'a> {
    spec: &'a ModelSpec,
    options: &'a Options,
    joining: Round,
    rounds: &'a VecDeque<Open>,
    /// Bytes that the row cache of a slice may grow by.
    cache_left: usize,
}

impl<T: TopicIndex> Server<T> {
    /// Processes a [request], and writes the reply.
    ///
    /// # Errors
    /// [`RequestError`]; then nothing has changed, and the reply is unspecified.
    pub fn serve(&mut self, request: &[u8], reply: &mut Vec<u8>) -> Result<(), RequestError> {
        let replies = self.serve_all(&[request]);
        let served = replies.into_iter().next().expect("one reply per request")?;
        if reply.is_empty() {
            *reply = served;
        } else {
            reply.extend_from_slice(&served);
        }
        Ok(())
    }

    /// Processes requests, those to different slices at the same time, and returns their replies in the same
    /// order. A reply does not depend on the other requests.
    pub fn serve_all(&mut self, requests: &[&[u8]]) -> Vec<Result<Vec<u8>, RequestError>> {
        self.shrink_cache();
        let mut replies = Vec::with_capacity(requests.len());
        let mut by_slice: BTreeMap<u16, Vec<(usize, Request<'_>)>> = BTreeMap::new();
        for (position, bytes) in requests.iter().enumerate() {
            let read = request::read(bytes).map_err(RequestError::from);
            replies.push(read.and_then(|(kind, header, body)| {
                let slice = header.slice;
                if !self.slices.contains_key(&slice) {
                    return Err(RequestError::Slice { slice });
                }
                let request = Request { kind, header, body };
                by_slice.entry(slice).or_default().push((position, request));
                Ok(Vec::new())
            }));
        }
        let Self { spec, options, joining, rounds, slices, row_cache, samplers, pushed, .. } = self;
        let left = ROW_CACHE_BYTES.saturating_sub(*row_cache) / by_slice.len().max(1);
        let serving = Serving { spec, options, joining: *joining, rounds, cache_left: left };
        let jobs = slices
            .iter_mut()
            .filter_map(|(slice, of)| Some((usize::from(*slice), (of, by_slice.remove(slice)?))));
        let served = samplers.each(jobs.collect(), |(of, requests), sampler| {
            let before = of.row_cache.memory();
            let serve = |(position, request)| (position, serving.serve(of, sampler, request));
            let served: Vec<_> = requests.into_iter().map(serve).collect();
            (before, of.row_cache.memory(), served)
        });
        for (before, after, served) in served {
            *row_cache = *row_cache - before + after;
            for (position, served) in served {
                replies[position] = served.map(|served| {
                    *pushed = served.pushed.max(*pushed);
                    served.reply
                });
            }
        }
        replies
    }

    /// Drops all cached rows if they take too many bytes.
    fn shrink_cache(&mut self) {
        if self.row_cache > ROW_CACHE_BYTES {
            self.slices.values_mut().for_each(|it| it.row_cache = RowCache::default());
            self.row_cache = 0;
        }
    }
}

/// Result of a request.
struct Served {
    reply: Vec<u8>,
    /// Bytes that pushed documents took.
    pushed: usize,
}

impl Serving<'_> {
    /// Processes a request to a slice.
    fn serve<T: TopicIndex>(
        &self,
        of: &mut SliceState<T>,
        sampler: &mut PartitionSampler<T>,
        Request { kind, header, body }: Request<'_>,
    ) -> Result<Served, RequestError> {
        let RequestHeader { shard, slice, round } = header;
        let mut served = Served { reply: Vec::new(), pushed: 0 };
        if kind == Kind::Join {
            // Counts are accepted only while shards join.
            if round != self.joining || of.store.version() > 0 {
                let now = self.rounds.front().map_or(self.joining, |open| open.round);
                return Err(RequestError::Round { found: round, now });
            }
            of.join(&header, body)?;
            return Ok(served);
        }
        let Some(open) = self.rounds.iter().find(|open| open.round == round) else {
            let now = self.rounds.front().ok_or(RequestError::NotYet)?.round;
            return Err(RequestError::Round { found: round, now });
        };
        if !of.shards.contains_key(&shard) {
            return Err(RequestError::Shard { shard, slice });
        }
        match kind {
            Kind::Join => unreachable!("handled above"),
            Kind::Sizes => of.sizes(shard, self.read_at(open), body, &mut served.reply)?,
            Kind::Pull => of.pull(shard, self.read_at(open), body, &mut served.reply)?,
            Kind::PushDeltas => {
                let is_whole = of.topics == (0..self.spec.topics());
                of.add_deltas(&header, is_whole, body)?;
            }
            Kind::PushRows => {
                if !rows_may_stay(self.options) || of.topics != (0..self.spec.topics()) {
                    return Err(RequestError::OnlyDeltas { slice });
                }
                of.put_rows(&header, body)?;
            }
            Kind::Push => {
                served.pushed = self.push((of, sampler), open, &header, body, &mut served.reply)?;
            }
        }
        Ok(served)
    }

    /// The changes that are in the rows that a round reads.
    fn read_at(&self, open: &Open) -> ReadAt {
        if self.options.sync.reads_newest() {
            ReadAt::Newest
        } else {
            ReadAt::Version(open.version)
        }
    }

    /// Samples pushed tokens by rows and C_k of the start of their round, or by the newest. Returns the bytes
    /// that the documents took.
    fn push<T: TopicIndex>(
        &self,
        (of, sampler): (&mut SliceState<T>, &mut PartitionSampler<T>),
        open: &Open,
        header: &RequestHeader,
        body: &[u8],
        answer: &mut Vec<u8>,
    ) -> Result<usize, RequestError> {
        let Self { options, rounds, cache_left, .. } = *self;
        let spec = &*open.spec;
        if of.topics != (0..spec.topics()) {
            return Err(RequestError::PartialRows { slice: header.slice });
        }
        let at = self.read_at(open);
        let newest = rounds.back().unwrap_or(open);
        let totals = match at {
            ReadAt::Version(_) => &open.totals[..],
            ReadAt::Newest => &newest.totals[..],
        };
        let oldest = rounds.front().map_or(open.version, |open| open.version);
        // If not, no other shard pushes to this version.
        let is_shared = options.shards > options.rounds;
        let cached = is_shared
            .then(|| of.row_cache.version(spec.topics(), &of.tokens, at, oldest, cache_left))
            .flatten();
        let round = RoundContext { spec, round: header.round, totals, passes: options.passes };
        let push = Push { options, header, round, rows: RowSource { at, cached } };
        push.run(of, sampler, body, answer)
    }
}
