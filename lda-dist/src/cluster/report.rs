//! The master's report of an epoch.

use std::sync::Arc;

use super::{CollectedCounts, Memory, NonZeros, Waited};
use crate::aggregate::{Aggregate, Aggregates};
use crate::priors::Priors;
use crate::stats::Bytes;

/// Report of an epoch.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Report {
    /// Epoch, counted from 1. After a restart, epochs that are repeated are reported again.
    pub epoch: u32,
    /// Number of restarts, plus 1.
    pub attempt: u32,
    /// Number of workers that took part.
    pub workers: u32,
    /// Last epoch that every worker has checkpointed; 0 if none.
    pub kept: u32,
    /// Bytes that moved between workers and servers, and of C_k.
    pub bytes: Bytes,
    /// Bytes that the largest worker and the largest server held at their end of the epoch, without
    /// messages.
    pub memory: Memory,
    /// Time that workers waited, summed over all workers.
    pub waited: Waited,
    /// Tokens that were sampled: all, unless converged ones are
    /// [excluded](field@crate::config::Options::sampler).
    pub sampled: u64,
    /// Log joint likelihood log p(W, Z), if this epoch was evaluated: the same bits for any number of
    /// workers and servers.
    pub log_joint: Option<f64>,
    /// Its document part, log p(Z).
    pub log_joint_doc: Option<f64>,
    /// Its word part, log p(W | Z). The sum of both parts may differ from `log_joint` by rounding.
    pub log_joint_word: Option<f64>,
    /// Numbers of non-zero counts, if this epoch was evaluated.
    pub non_zeros: Option<NonZeros>,
    /// C_w and C_k at the end of this epoch, if it was evaluated and the run
    /// [collects](super::Setup::collect_evaluated) them.
    pub counts: Option<Arc<CollectedCounts>>,
    /// Priors of this epoch; `None` only in the default report.
    pub priors: Option<Priors>,
    /// Aggregates that servers computed at the end of this epoch; those of the program by
    /// [`aggregate`](Self::aggregate).
    pub aggregates: Arc<Aggregates>,
}

impl Report {
    /// The value of a [registered](crate::aggregate::Registry) aggregate, if this epoch was
    /// evaluated and the aggregate has this type.
    pub fn aggregate<A: Aggregate>(&self, name: &str) -> Option<&A> {
        self.aggregates.get(name)
    }
}
