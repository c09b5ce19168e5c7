//! Statistics of an epoch at the master.

use std::collections::BTreeMap;
use std::sync::Arc;

use lda_core::special::ln_rising;

use super::control::WorkerEpochStats;
use super::{Memory, NonZeros, Report, Topics, Waited};
use crate::aggregate::{AggregateRequest, Aggregates, LogJoint, TopWords};
use crate::aggregate::{NonZeros as WordNonZeros, Registry};
use crate::spec::{ModelSpec, Round};
use crate::stats::Bytes;
use crate::wire::{RowCode, take};

/// Statistics that nodes have sent of an epoch so far.
#[derive(Debug, Default)]
pub(super) struct EpochStats {
    pub bytes: Bytes,
    waited: Waited,
    /// Bytes of the largest worker and server.
    memory: Memory,
    /// Tokens that were sampled.
    sampled: u64,
    /// Parts of the log joint by shard, which is the order of summation.
    documents: BTreeMap<u16, f64>,
    /// Non-zeros of C_d.
    non_zeros: u64,
    /// Aggregates of the servers' rows that were requested.
    found: Aggregates,
}

impl EpochStats {
    /// Adds the statistics of a worker.
    pub fn of_worker(&mut self, epoch_stats: WorkerEpochStats) {
        let WorkerEpochStats { bytes, waited, memory, sampled, non_zeros, parts } = epoch_stats;
        self.bytes.add(&bytes);
        self.waited.add(&waited);
        self.memory.worker = self.memory.worker.max(memory);
        self.sampled = self.sampled.saturating_add(sampled);
        self.non_zeros = self.non_zeros.saturating_add(non_zeros);
        self.documents.extend(parts);
    }

    /// Begins to merge the aggregates that the end of a round requests.
    pub fn ask(&mut self, registry: &Registry, wanted: AggregateRequest, spec: &ModelSpec) {
        self.found = registry.aggregates(wanted, spec);
    }

    /// Adds a server's reply to the end of a round. Returns the change of C_k by its rows.
    ///
    /// # Errors
    /// The part of the reply that is malformed.
    pub fn of_server(&mut self, topics: u32, reply: &[u8]) -> Result<Vec<(u32, i32)>, String> {
        let malformed = |what: &str| format!("a reply with malformed {what}");
        let (mut gained, mut rest) = (Vec::new(), reply);
        let totals = RowCode::new(topics).decode(&mut rest, &mut gained);
        totals.map_err(|_| malformed("totals"))?;
        self.bytes.totals += (reply.len() - rest.len()) as u64;
        let memory = take(&mut rest).ok_or_else(|| malformed("memory"))?;
        self.memory.server = self.memory.server.max(u64::from_le_bytes(memory));
        let merged = self.found.try_merge(&mut rest);
        merged.map_err(|name| malformed(&format!("aggregate {name:?}")))?;
        if rest.is_empty() { Ok(gained) } else { Err(malformed("aggregates: bytes are left over")) }
    }

    /// A copy, without aggregates: those are found at the end of the epoch.
    pub fn so_far(&self) -> Self {
        let Self { bytes, waited, memory, sampled, non_zeros, .. } = *self;
        let (documents, found) = (self.documents.clone(), Aggregates::default());
        Self { bytes, waited, memory, sampled, documents, non_zeros, found }
    }

    /// Takes the merged aggregates.
    pub fn take_found(&mut self) -> Arc<Aggregates> {
        Arc::new(std::mem::take(&mut self.found))
    }

    /// The report of the epoch, with the aggregates found and C_k.
    pub fn report(
        &self,
        found: Arc<Aggregates>,
        last: Round,
        kept: u32,
        spec: &ModelSpec,
        totals: &[i64],
    ) -> Report {
        let Round { epoch, attempt, .. } = last;
        let Self { bytes, waited, memory, sampled, .. } = *self;
        let joint = found.get::<LogJoint>(LogJoint::NAME).map(|words| {
            let beta_bar = spec.beta() * f64::from(spec.words());
            let of_totals = totals.iter().map(|&total| ln_rising(beta_bar, total as u64));
            let (documents, words) = (self.documents.values().sum::<f64>(), words.sum());
            // The part that depends on pseudo-counts alone.
            let own = spec.pseudo_counts().map_or(0.0, |counts| counts.word_part(spec.beta()));
            let words = words - own;
            let of_totals = of_totals.sum::<f64>();
            (documents + words - of_totals, documents, words - of_totals)
        });
        let log_joint = joint.map(|joint| joint.0);
        let (log_joint_doc, log_joint_word) =
            (joint.map(|joint| joint.1), joint.map(|joint| joint.2));
        let words = found.get::<WordNonZeros>(WordNonZeros::NAME).map(|words| words.count());
        let non_zeros = words.map(|words| NonZeros { words, documents: self.non_zeros });
        Report {
            epoch,
            attempt,
            workers: 0,
            kept,
            bytes,
            memory,
            waited,
            sampled,
            log_joint,
            log_joint_doc,
            log_joint_word,
            non_zeros,
            counts: None,
            priors: Some(spec.priors()),
            aggregates: found,
        }
    }

    /// Top words, if they are among the aggregates found.
    pub fn topics(
        found: &Aggregates,
        epoch: u32,
        spec: &ModelSpec,
        totals: &[i64],
    ) -> Option<Topics> {
        let found = found.get::<TopWords>(TopWords::NAME)?;
        let totals: Vec<u64> = totals.iter().map(|&total| total as u64).collect();
        let words = found.lists(totals.iter().copied(), spec.beta());
        Some(Topics { epoch, totals, words })
    }
}
