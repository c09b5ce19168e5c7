//! The way of each word of a partition between a shard and the servers, and statistics of it.

use crate::route::Route;
use crate::wire;

/// Routes of a partition's words, and the documents to push.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    /// Route of each of the shard's words of the partition.
    pub routes: Vec<Route>,
    /// Documents with the tokens that the server samples. Words are named by their index among the
    /// shard's.
    pub pushed: Vec<wire::Document>,
    /// Index of each of these tokens among the partition's.
    pub(super) places: Vec<u32>,
}

/// Rows that were pulled, and deltas that were made from them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TransferStats {
    /// Number of rows.
    pub rows: u64,
    /// Topics of all pulled rows.
    pub pulled: u64,
    /// Topics of all deltas.
    pub deltas: u64,
}

impl Plan {
    /// Bytes held.
    pub fn memory(&self) -> usize {
        let documents: usize = self.pushed.iter().map(wire::Document::memory).sum();
        documents + self.routes.capacity() + 4 * self.places.capacity()
    }

    /// Indices of the pulled words.
    pub(super) fn pulled(&self) -> impl Iterator<Item = usize> {
        let routes = self.routes.iter().enumerate();
        routes.filter(|(_, route)| **route == Route::Pull).map(|(at, _)| at)
    }
}
