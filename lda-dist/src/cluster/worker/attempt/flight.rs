//! Partitions that a worker samples next, and where their rows come from.

use lda_core::counts::TopicIndex;
use lda_transport::Frame;

use super::super::tasks::PartitionTask;
use crate::held_rows::{HeldRows, RowsRequest};
use crate::trip::Trip;

/// A partition that is being sampled, or waits for its rows.
#[derive(Debug)]
pub(super) struct PartitionInFlight<T> {
    pub task: PartitionTask,
    pub source: Source<T>,
    /// False if the rows were here when the partition started: it takes no more memory then, and no server is
    /// asked.
    pub is_requested: bool,
}

/// Source of a partition's rows.
#[derive(Debug)]
pub(super) enum Source<T> {
    /// They are pulled, or tokens are pushed, for one shard alone.
    Trip(Trip<Frame>),
    /// They are pulled for several shards, and stay here.
    Requested(RowsRequest),
    /// They are here.
    Held(HeldRows<T>),
}

impl<T: TopicIndex> PartitionInFlight<T> {
    /// A partition whose rows are requested.
    pub fn requested(task: PartitionTask, source: Source<T>) -> Self {
        Self { task, source, is_requested: true }
    }

    /// A partition whose rows are here.
    pub fn held(task: PartitionTask, rows: HeldRows<T>) -> Self {
        Self { task, source: Source::Held(rows), is_requested: false }
    }

    /// The trip, if the rows do not stay here.
    pub fn trip(&mut self) -> Option<&mut Trip<Frame>> {
        match &mut self.source {
            Source::Trip(trip) => Some(trip),
            _ => None,
        }
    }

    /// Bytes held for a push.
    pub fn planned(&self) -> usize {
        match &self.source {
            Source::Trip(trip) => trip.memory(),
            _ => 0,
        }
    }
}

impl<T: TopicIndex> Source<T> {
    /// Accepts the reply to the request at this position.
    pub fn accept_rows(&mut self, position: usize, rows: Frame) {
        match self {
            Self::Trip(trip) => trip.accept_rows(position, rows),
            Self::Requested(request) => request.accept(position, rows),
            Self::Held(_) => {}
        }
    }

    /// Returns whether the shard's tokens can be sampled, if this is the first of its partitions.
    pub fn is_ready(&self) -> bool {
        match self {
            Self::Trip(trip) => trip.is_ready(),
            Self::Requested(_) => false,
            Self::Held(_) => true,
        }
    }
}
