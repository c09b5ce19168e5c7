//! Metrics of a node, in the OpenMetrics text format of Prometheus.

use std::borrow::Cow;
use std::sync::atomic::AtomicU64;

use lda_dist::cluster::{NodeState, NonZeros, Report, Waited};
use lda_dist::spec::JOINING;
use prometheus_client::encoding::{EncodeLabelSet, text};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::{Registry, Unit};

/// Media type of [`Metrics::encode`].
pub const MEDIA_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

type Real = Gauge<f64, AtomicU64>;
type Seconds = Counter<f64, AtomicU64>;

/// Metrics of a node; some exist only at the master.
#[derive(Debug)]
pub struct Metrics {
    registry: Registry,
    epoch: Gauge,
    round: Gauge,
    attempt: Gauge,
    memory: Gauge,
    resident: Gauge,
    waited: Family<For, Seconds>,
    epochs: Counter,
    kept: Gauge,
    speed: Real,
    log_joint: Real,
    moved: Family<What, Counter>,
    heaviest: Family<Of, Gauge>,
    non_zeros: Family<Of, Gauge>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct For {
    r#for: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct What {
    what: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Of {
    of: &'static str,
}

impl Metrics {
    /// Metrics of a node, all at zero.
    pub fn new(role: &'static str, index: u32) -> Self {
        let labels = [("role", role.to_owned()), ("index", index.to_string())]
            .map(|(name, value)| (Cow::Borrowed(name), Cow::Owned(value)));
        let mut all = Self {
            registry: Registry::with_prefix_and_labels("lda", labels.into_iter()),
            epoch: Gauge::default(),
            round: Gauge::default(),
            attempt: Gauge::default(),
            memory: Gauge::default(),
            resident: Gauge::default(),
            waited: Family::default(),
            epochs: Counter::default(),
            kept: Gauge::default(),
            speed: Real::default(),
            log_joint: Real::default(),
            moved: Family::default(),
            heaviest: Family::default(),
            non_zeros: Family::default(),
        };
        let to = &mut all.registry;
        to.register("epoch", "Current epoch", all.epoch.clone());
        to.register("round", "Current round of the epoch, from 0", all.round.clone());
        to.register("attempt", "Number of restarts of the run, plus 1", all.attempt.clone());
        to.register_with_unit(
            "resident_memory",
            "Resident memory of the process",
            Unit::Bytes,
            all.resident.clone(),
        );
        if role != "master" {
            let help = "Documents, counts and scratch, without messages in flight";
            to.register_with_unit("memory", help, Unit::Bytes, all.memory.clone());
        }
        if role != "server" {
            let help = "Time that this worker waited; at the master, the sum over all workers";
            to.register_with_unit("waited", help, Unit::Seconds, all.waited.clone());
        }
        if role == "master" {
            to.register("epochs", "Epochs done, including repeated ones", all.epochs.clone());
            to.register("kept_epoch", "Last epoch checkpointed by all workers", all.kept.clone());
            to.register("tokens_per_second", "Speed of the last epoch", all.speed.clone());
            to.register(
                "log_joint_per_token",
                "Last log joint likelihood per token",
                all.log_joint.clone(),
            );
            to.register_with_unit(
                "moved",
                "Bytes moved between workers and servers, and totals C_k",
                Unit::Bytes,
                all.moved.clone(),
            );
            to.register_with_unit(
                "heaviest_memory",
                "Memory of the largest worker and server in the last epoch",
                Unit::Bytes,
                all.heaviest.clone(),
            );
            let help = "Last number of non-zero counts by word and topic, or document and topic";
            to.register("non_zeros", help, all.non_zeros.clone());
        }
        all
    }

    /// Updates the state of the node.
    pub fn look(&self, state: &NodeState) {
        let round = state.round;
        self.epoch.set(round.epoch.into());
        self.round.set(if round.number == JOINING { 0 } else { round.number.into() });
        self.attempt.set(round.attempt.into());
        self.memory.set(state.memory as i64);
        self.set_waited(&state.waited);
    }

    fn set_waited(&self, waited: &Waited) {
        for (r#for, time) in [("servers", waited.servers), ("others", waited.master)] {
            let counter = self.waited.get_or_create(&For { r#for });
            // A counter must not decrease.
            counter.inc_by((time.as_secs_f64() - counter.get()).max(0.0));
        }
    }

    /// Updates the metrics of the master with an epoch.
    pub fn report(&self, report: &Report, tokens_per_second: f64, log_joint: Option<f64>) {
        self.epochs.inc();
        self.kept.set(report.kept.into());
        self.speed.set(tokens_per_second);
        if let Some(log_joint) = log_joint {
            self.log_joint.set(log_joint);
        }
        let bytes = &report.bytes;
        for (what, moved) in [
            ("sizes", bytes.sizes),
            ("routes", bytes.routes),
            ("rows", bytes.rows),
            ("gained", bytes.gained),
            ("pushed", bytes.pushed),
            ("answers", bytes.answers),
            ("totals", bytes.totals),
        ] {
            self.moved.get_or_create(&What { what }).inc_by(moved);
        }
        if let Some(NonZeros { words, documents }) = report.non_zeros {
            for (of, number) in [("words", words), ("documents", documents)] {
                self.non_zeros.get_or_create(&Of { of }).set(number as i64);
            }
        }
        for (of, memory) in [("worker", report.memory.worker), ("server", report.memory.server)] {
            self.heaviest.get_or_create(&Of { of }).set(memory as i64);
        }
        for (r#for, time) in [("servers", report.waited.servers), ("others", report.waited.master)]
        {
            self.waited.get_or_create(&For { r#for }).inc_by(time.as_secs_f64());
        }
    }

    /// Encodes all metrics as text.
    pub fn encode(&self) -> String {
        self.resident.set(resident().unwrap_or(0) as i64);
        let mut out = String::new();
        text::encode(&mut out, &self.registry).expect("a string takes all");
        out
    }
}

/// Resident memory of this process in bytes; `None` if the system does not report it.
fn resident() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kibibytes: u64 = line.trim().strip_suffix(" kB")?.trim().parse().ok()?;
    Some(kibibytes * 1024)
}
