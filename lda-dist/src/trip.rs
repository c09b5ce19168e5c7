//! One partition's trip between a shard and the servers that hold the partition's rows.
//!
//! ```text
//! start:  sizes → routes
//! pull:                    pull → rows  → sample → push deltas
//! push:                    push ──────────────────→ answer          → finish
//! ```
//!
//! A [`Trip`] does no I/O: it returns the requests to send and accepts their replies. The
//! in-process reference and the workers of a cluster both drive it, so the protocol of a partition
//! is written once.
//!
//! Rows and their sizes are those of the round's start, so `start` and `pull` may run long before
//! the shard's earlier partitions are done. `push` must not: pushed documents carry rows of C_d,
//! which the shard's earlier partitions change.

use std::ops::{Deref, Range};

use lda_core::counts::TopicIndex;

use crate::config::Options;
use crate::partition_sampler::{PartitionSampler, RoundContext, SliceRows};
use crate::placement::Placement;
use crate::plan::{needs_sizes, routes};
use crate::request::{self, Kind, RequestHeader, put_routes, size_of_byte};
use crate::route::Route;
use crate::shard::{AnswerError, Plan, Shard, TransferStats};
use crate::spans::{Span, span};
use crate::spec::{ModelSpec, Round};
use crate::wire::{Document, PushCode};

/// Inputs that all trips of a run share.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TripContext<'a> {
    pub spec: &'a ModelSpec,
    pub options: &'a Options,
    pub placement: &'a Placement,
}

impl TripContext<'_> {
    /// Slices of a partition, by topics.
    pub fn slices(self, partition: u16) -> impl Iterator<Item = u16> + use<> {
        self.placement.slices(partition.into()).map(|slice| slice as u16)
    }

    /// Topics of a slice.
    pub fn topics(self, slice: u16) -> Range<u32> {
        self.placement.slice(slice.into(), self.spec.topics()).1
    }
}

/// A request to the server of a slice.
#[derive(Clone, Debug)]
pub(crate) struct TripRequest {
    pub kind: Kind,
    header: RequestHeader,
    body: Vec<u8>,
}

impl TripRequest {
    /// A request of a shard.
    pub fn new(kind: Kind, shard: u16, slice: u16, round: Round, body: Vec<u8>) -> Self {
        Self { kind, header: RequestHeader { shard, slice, round }, body }
    }

    /// The bytes to send.
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        request::begin(self.kind, &self.header, &mut bytes);
        bytes.extend_from_slice(&self.body);
        bytes
    }

    /// Slice of the partition that the request is about.
    pub fn slice(&self) -> u32 {
        self.header.slice.into()
    }
}

/// Rows of the partition's slices.
#[derive(Debug)]
enum RowsState<B> {
    /// Nothing is requested yet.
    Planned,
    /// Rows of some slices are missing.
    Awaited { slices: Vec<Option<B>>, _pull: Span },
    /// Rows of all slices are there.
    Complete(Vec<B>),
    /// The tokens whose rows are pulled are sampled.
    Sampled,
}

/// Result of sampling the tokens whose rows were pulled.
#[derive(Debug)]
pub(crate) struct Sampled {
    /// Rows and their topics that moved.
    pub stats: TransferStats,
    /// Deltas to push, one request per slice, in the order of the slices.
    pub deltas: Vec<TripRequest>,
}

/// State of one partition's trip. `B` is the buffer type of replies.
#[derive(Debug)]
pub(crate) struct Trip<B> {
    shard: u16,
    partition: u16,
    round: Round,
    /// Set from the choice of routes until the documents are pushed.
    routes: Option<Vec<Route>>,
    /// Set from the push on.
    plan: Option<Plan>,
    rows: RowsState<B>,
    /// New topics of pushed tokens; empty if none are pushed.
    answer: Option<B>,
    /// Open while the answer is awaited.
    _push: Option<Span>,
}

impl<B: Deref<Target = [u8]> + From<Vec<u8>>> Trip<B> {
    /// A trip of a shard's partition in a round; it has not started.
    pub fn new(shard: u16, partition: u16, round: Round) -> Self {
        Self {
            shard,
            partition,
            round,
            routes: None,
            plan: None,
            rows: RowsState::Planned,
            answer: None,
            _push: None,
        }
    }

    /// A request to the server of a slice.
    fn request(&self, kind: Kind, slice: u16, body: Vec<u8>) -> TripRequest {
        TripRequest::new(kind, self.shard, slice, self.round, body)
    }

    /// Starts the trip: returns the request for the sizes of the rows, or chooses the routes if
    /// they do not depend on sizes.
    pub fn start<T: TopicIndex>(
        &mut self,
        run: TripContext<'_>,
        shard: &Shard<T>,
    ) -> Option<TripRequest> {
        let partition = self.partition;
        if needs_sizes(run.options, run.placement, partition) {
            return Some(self.request(Kind::Sizes, partition, Vec::new()));
        }
        self.routes = Some(routes(run.options, run.placement, shard, partition, &[]));
        None
    }

    /// Accepts the sizes of the rows, and chooses the routes.
    ///
    /// # Errors
    /// [`AnswerError::Sizes`].
    pub fn accept_sizes<T: TopicIndex>(
        &mut self,
        run: TripContext<'_>,
        shard: &Shard<T>,
        reply: &[u8],
    ) -> Result<(), AnswerError> {
        let words = shard.tokens().words(self.partition).len();
        if reply.len() != words {
            return Err(AnswerError::Sizes { found: reply.len(), words });
        }
        let sizes: Vec<u32> = reply.iter().map(|&byte| size_of_byte(byte)).collect();
        self.routes = Some(routes(run.options, run.placement, shard, self.partition, &sizes));
        Ok(())
    }

    /// Returns the requests for the rows of each slice, once the routes are chosen. Pass the reply
    /// to each request to [`accept_rows`](Self::accept_rows), with the request's position in the
    /// list.
    pub fn pull(&mut self, run: TripContext<'_>) -> Vec<TripRequest> {
        let planned = self.plan.as_ref().map(|plan| &plan.routes);
        let Some(routes) = planned.or(self.routes.as_ref()) else { return Vec::new() };
        if !routes.contains(&Route::Pull) {
            self.rows = RowsState::Sampled;
            return Vec::new();
        }
        let mut body = Vec::new();
        put_routes(routes, &mut body);
        let request = |slice| self.request(Kind::Pull, slice, body.clone());
        let requests: Vec<TripRequest> = run.slices(self.partition).map(request).collect();
        let slices = requests.iter().map(|_| None).collect();
        let pull = span!(
            DEBUG,
            "pull",
            epoch = self.round.epoch,
            round = self.round.number,
            shard = self.shard,
            partition = self.partition
        );
        self.rows = RowsState::Awaited { slices, _pull: pull };
        requests
    }

    /// Returns the request that pushes documents, if there are any, once the routes are chosen.
    /// The shard's earlier partitions must be finished.
    pub fn push<T: TopicIndex>(
        &mut self,
        run: TripContext<'_>,
        shard: &Shard<T>,
    ) -> Option<TripRequest> {
        let plan = shard.request(self.partition, self.routes.take()?);
        let code = push_code(run, &plan);
        let mut body = Vec::new();
        plan.pushed.iter().for_each(|document| code.encode(document, &mut body));
        self.answer = plan.pushed.is_empty().then(|| Vec::new().into());
        self.plan = Some(plan);
        if body.is_empty() {
            return None;
        }
        self._push = Some(span!(
            DEBUG,
            "push",
            epoch = self.round.epoch,
            round = self.round.number,
            shard = self.shard,
            partition = self.partition
        ));
        Some(self.request(Kind::Push, self.partition, body))
    }

    /// Accepts the rows of the slice at a position among the partition's.
    pub fn accept_rows(&mut self, position: usize, rows: B) {
        let RowsState::Awaited { slices, .. } = &mut self.rows else { return };
        if let Some(slice) = slices.get_mut(position) {
            *slice = Some(rows);
        }
        if slices.iter().all(Option::is_some) {
            self.rows = RowsState::Complete(slices.drain(..).flatten().collect());
        }
    }

    /// Accepts the new topics of the pushed tokens.
    pub fn accept_answer(&mut self, answer: B) {
        self.answer = Some(answer);
        self._push = None;
    }

    /// Returns whether the routes are chosen and the documents are not pushed yet.
    pub fn awaits_push(&self) -> bool {
        self.routes.is_some()
    }

    /// Returns whether [`sample`](Self::sample) has something to do.
    pub fn is_ready(&self) -> bool {
        self.plan.is_some() && matches!(self.rows, RowsState::Complete(_))
    }

    /// Samples the tokens whose rows were pulled. Returns `None` if the trip is not
    /// [ready](Self::is_ready).
    ///
    /// # Errors
    /// [`AnswerError`] if the rows do not fit the shard's tokens.
    pub fn sample<T: TopicIndex>(
        &mut self,
        run: TripContext<'_>,
        shard: &mut Shard<T>,
        sampler: &mut PartitionSampler<T>,
        round: &RoundContext<'_>,
    ) -> Result<Option<Sampled>, AnswerError> {
        let (Some(plan), RowsState::Complete(rows)) = (&self.plan, &self.rows) else {
            return Ok(None);
        };
        let mut body = Vec::new();
        put_routes(&plan.routes, &mut body);
        let of_slice =
            |(slice, rows)| SliceRows { topics: run.topics(slice), rows, deltas: body.clone() };
        let mut slices: Vec<SliceRows<'_>> = run
            .slices(self.partition)
            .zip(rows.iter().map(|rows| &rows[..]))
            .map(of_slice)
            .collect();
        let stats = shard.sample(sampler, round, self.partition, plan, &mut slices)?;
        let deltas = slices.into_iter().map(|slice| slice.deltas);
        let request = |(slice, body)| self.request(Kind::PushDeltas, slice, body);
        let deltas = run.slices(self.partition).zip(deltas).map(request).collect();
        self.rows = RowsState::Sampled;
        Ok(Some(Sampled { stats, deltas }))
    }

    /// Returns whether all tokens are sampled, and the answer is there.
    pub fn is_done(&self) -> bool {
        let are_sampled = self.plan.is_some() && matches!(self.rows, RowsState::Sampled);
        are_sampled && self.answer.is_some()
    }

    /// Ends a trip that is [done](Self::is_done): gives the answer to the shard.
    ///
    /// # Errors
    /// [`AnswerError`] if the answer does not fit the pushed tokens.
    pub fn finish<T: TopicIndex>(
        self,
        run: TripContext<'_>,
        shard: &mut Shard<T>,
    ) -> Result<(), AnswerError> {
        let (Some(plan), Some(answer)) = (self.plan, self.answer) else { return Ok(()) };
        shard.answered(push_code(run, &plan), self.partition, &plan, &answer)
    }

    /// Documents that are pushed.
    pub fn pushed(&self) -> &[Document] {
        self.plan.as_ref().map_or(&[], |plan| &plan.pushed)
    }

    /// Bytes held for the push.
    pub fn memory(&self) -> usize {
        self.plan.as_ref().map_or(0, Plan::memory)
    }
}

fn push_code(run: TripContext<'_>, plan: &Plan) -> PushCode {
    PushCode::new(run.spec.topics(), plan.routes.len() as u32, run.options.max_pushed_len)
}
