//! What the master hears of an epoch.

use std::collections::BTreeMap;

use lda_core::special::ln_rising;

use super::control::WorkerEpochStats;
use super::{Memory, NonZeros, Report, Topics, Waited};
use crate::aggregate::{Aggregate, AggregateRequest, Aggregates};
use crate::spec::{ModelSpec, Round};
use crate::stats::Bytes;
use crate::wire::{RowCode, take};

/// What nodes have told of an epoch so far.
#[derive(Debug, Default)]
pub(super) struct EpochStats {
    pub bytes: Bytes,
    waited: Waited,
    /// Of the heaviest.
    memory: Memory,
    /// Parts of the log joint by shard: added up in this order.
    documents: BTreeMap<u16, f64>,
    /// Of C_d.
    non_zeros: u64,
    /// What servers have found of their rows, if they were asked.
    found: Aggregates,
}

impl EpochStats {
    /// What the epoch took of a worker.
    pub fn of_worker(&mut self, epoch_stats: WorkerEpochStats) {
        let WorkerEpochStats { bytes, waited, memory, non_zeros, parts } = epoch_stats;
        self.bytes.add(&bytes);
        self.waited.add(&waited);
        self.memory.worker = self.memory.worker.max(memory);
        self.non_zeros = self.non_zeros.saturating_add(non_zeros);
        self.documents.extend(parts);
    }

    /// Servers are about to be asked what a round has left.
    pub fn ask(&mut self, wanted: AggregateRequest, spec: &ModelSpec) {
        self.found = Aggregates::new(wanted, spec);
    }

    /// A server's answer to that: gives back what C_k has gained by its rows; none where it makes no sense.
    pub fn of_server(&mut self, topics: u32, reply: &[u8]) -> Option<Vec<(u32, i32)>> {
        let (mut gained, mut rest) = (Vec::new(), reply);
        RowCode::new(topics).decode(&mut rest, &mut gained).ok()?;
        self.bytes.totals += (reply.len() - rest.len()) as u64;
        let memory = u64::from_le_bytes(take(&mut rest)?);
        self.memory.server = self.memory.server.max(memory);
        self.found.merge(&mut rest)?;
        rest.is_empty().then_some(gained)
    }

    /// What is known of the epoch, with these C_k.
    pub fn report(&self, last: Round, kept: u32, spec: &ModelSpec, totals: &[i64]) -> Report {
        let Round { epoch, attempt, .. } = last;
        let Self { bytes, waited, memory, .. } = *self;
        let log_joint = self.found.log_joint.as_ref().map(|words| {
            let beta_bar = spec.beta() * f64::from(spec.words());
            let of_totals = totals.iter().map(|&total| ln_rising(beta_bar, total as u64));
            let documents: f64 = self.documents.values().sum();
            documents + words.sum() - of_totals.sum::<f64>()
        });
        let words = self.found.non_zeros.map(|words| words.count());
        let non_zeros = words.map(|words| NonZeros { words, documents: self.non_zeros });
        Report { epoch, attempt, kept, bytes, memory, waited, log_joint, non_zeros }
    }

    /// Words of topics, if they were asked for.
    pub fn topics(&self, epoch: u32, spec: &ModelSpec, totals: &[i64]) -> Option<Topics> {
        let found = self.found.top_words.as_ref()?;
        let totals: Vec<u64> = totals.iter().map(|&total| total as u64).collect();
        let words = found.lists(totals.iter().copied(), spec.beta());
        Some(Topics { epoch, totals, words })
    }
}
