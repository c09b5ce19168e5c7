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

use std::ops::Deref;

use lda_core::counts::TopicIndex;

use crate::config::Options;
use crate::partition_sampler::{PartitionSampler, RoundContext, SliceRows};
use crate::placement::Placement;
use crate::plan::{needs_sizes, routes};
use crate::request::{self, Kind, RequestHeader, put_routes, size_of_byte};
use crate::route::Route;
use crate::shard::{AnswerError, Plan, Shard, TransferStats};
use crate::spec::{ModelSpec, Round};
use crate::wire::{Document, PushCode};

/// Inputs that all trips of a run share.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TripContext<'a> {
    pub spec: &'a ModelSpec,
    pub options: &'a Options,
    pub placement: &'a Placement,
}

/// A request to the server of a slice.
#[derive(Clone, Debug)]
pub(crate) struct TripRequest {
    pub kind: Kind,
    pub slice: u16,
    body: Vec<u8>,
}

impl TripRequest {
    /// Encodes the request of a shard in a round.
    pub fn encode(&self, shard: u16, round: Round) -> Vec<u8> {
        let mut bytes = Vec::new();
        let header = RequestHeader { shard, slice: self.slice, round };
        request::begin(self.kind, &header, &mut bytes);
        bytes.extend_from_slice(&self.body);
        bytes
    }
}

/// Rows of the partition's slices.
#[derive(Debug)]
enum RowsState<B> {
    /// Rows of some slices are missing; none are requested yet if the list is empty.
    Awaited(Vec<Option<B>>),
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
    partition: u16,
    /// Set from the choice of routes until the documents are pushed.
    routes: Option<Vec<Route>>,
    /// Set from the push on.
    plan: Option<Plan>,
    rows: RowsState<B>,
    /// New topics of pushed tokens; empty if none are pushed.
    answer: Option<B>,
}

impl<B: Deref<Target = [u8]> + From<Vec<u8>>> Trip<B> {
    /// A trip that has not started.
    pub fn new(partition: u16) -> Self {
        let rows = RowsState::Awaited(Vec::new());
        Self { partition, routes: None, plan: None, rows, answer: None }
    }

    /// Starts the trip: returns the request for the sizes of the rows, or chooses the routes if
    /// they do not depend on sizes.
    pub fn start<T: TopicIndex>(
        &mut self,
        run: TripContext<'_>,
        shard: &Shard<T>,
    ) -> Option<TripRequest> {
        let slice = self.partition;
        if needs_sizes(run.options, run.placement, slice) {
            return Some(TripRequest { kind: Kind::Sizes, slice, body: Vec::new() });
        }
        self.routes = Some(routes(run.options, run.placement, shard, slice, &[]));
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
        let words = shard.words(self.partition).len();
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
        let request = |slice| TripRequest { kind: Kind::Pull, slice, body: body.clone() };
        let requests: Vec<TripRequest> = self.slices(run).map(request).collect();
        self.rows = RowsState::Awaited(requests.iter().map(|_| None).collect());
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
        (!body.is_empty()).then_some(TripRequest { kind: Kind::Push, slice: self.partition, body })
    }

    /// Accepts the rows of the slice at a position among the partition's.
    pub fn accept_rows(&mut self, position: usize, rows: B) {
        let RowsState::Awaited(slices) = &mut self.rows else { return };
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
        let topics = |slice: u16| run.placement.slice(slice.into(), run.spec.topics()).1;
        let of_slice =
            |(slice, rows)| SliceRows { topics: topics(slice), rows, deltas: body.clone() };
        let mut slices: Vec<SliceRows<'_>> =
            self.slices(run).zip(rows.iter().map(|rows| &rows[..])).map(of_slice).collect();
        let stats = shard.sample(sampler, round, self.partition, plan, &mut slices)?;
        let deltas = slices.into_iter().map(|slice| slice.deltas);
        let request = |(slice, body)| TripRequest { kind: Kind::PushDeltas, slice, body };
        let deltas = self.slices(run).zip(deltas).map(request).collect();
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

    /// Slices of the partition, by topics.
    fn slices(&self, run: TripContext<'_>) -> impl Iterator<Item = u16> + use<B> {
        run.placement.slices(self.partition.into()).map(|slice| slice as u16)
    }
}

fn push_code(run: TripContext<'_>, plan: &Plan) -> PushCode {
    PushCode::new(run.spec.topics(), plan.routes.len() as u32, run.options.max_pushed_len)
}
