//! Metrics of a node.

use std::sync::atomic::AtomicU64;

use lda_dist::cluster::{NodeState, NonZeros, Peers, Report, Waited};
use lda_dist::spec::JOINING;
use lda_examples::metrics::MetricSet;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Unit;

type Real = Gauge<f64, AtomicU64>;
type Seconds = Counter<f64, AtomicU64>;

/// Metrics of a node.
#[derive(Debug)]
pub struct Metrics {
    set: MetricSet,
    epoch: Gauge,
    round: Gauge,
    attempt: Gauge,
    memory: Gauge,
    resident: Gauge,
    peers: Gauge,
    peers_up: Gauge,
    ignored: Counter,
    waited: Family<For, Seconds>,
    /// Only at the master.
    run: Option<RunMetrics>,
}

/// Metrics of the whole run.
#[derive(Debug)]
struct RunMetrics {
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
        let mut set = MetricSet::new([("role", role.to_owned()), ("index", index.to_string())]);
        Self {
            epoch: set.add("epoch", "Current epoch"),
            round: set.add("round", "Current round of the epoch, from 0"),
            attempt: set.add("attempt", "Number of restarts of the run, plus 1"),
            resident: set.add_in(Unit::Bytes, "resident_memory", "Resident memory of the process"),
            peers: set.add("peers", "Nodes that this one needs a connection to"),
            peers_up: set.add("peers_up", "Nodes of these that are connected"),
            ignored: set.add(
                "ignored_messages",
                "Messages of strangers or of earlier processes of a node, or that came too late",
            ),
            memory: match role {
                "master" => Gauge::default(),
                _ => set.add_in(
                    Unit::Bytes,
                    "memory",
                    "Documents, counts and scratch, without messages in flight",
                ),
            },
            waited: match role {
                "server" => Family::default(),
                _ => set.add_in(
                    Unit::Seconds,
                    "waited",
                    "Time that this worker waited; at the master, the sum over all workers",
                ),
            },
            run: (role == "master").then(|| RunMetrics::new(&mut set)),
            set,
        }
    }

    /// Updates the state of the node.
    pub fn update(&self, state: &NodeState) {
        let round = state.round;
        self.epoch.set(round.epoch.into());
        self.round.set(if round.number == JOINING { 0 } else { round.number.into() });
        self.attempt.set(round.attempt.into());
        self.memory.set(state.memory as i64);
        self.set_waited(&state.waited);
    }

    /// Updates the connections of the node.
    pub fn set_peers(&self, peers: &Peers) {
        self.peers.set(peers.expected() as i64);
        self.peers_up.set(peers.connected() as i64);
        self.ignored.inc_by(peers.strays().saturating_sub(self.ignored.get()));
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
        if let Some(run) = &self.run {
            run.report(report, tokens_per_second, log_joint);
        }
        for (r#for, time) in [("servers", report.waited.servers), ("others", report.waited.master)]
        {
            self.waited.get_or_create(&For { r#for }).inc_by(time.as_secs_f64());
        }
    }

    /// Encodes all metrics as text.
    pub fn encode(&self) -> String {
        self.resident.set(resident().unwrap_or(0) as i64);
        self.set.encode()
    }
}

impl RunMetrics {
    fn new(set: &mut MetricSet) -> Self {
        Self {
            epochs: set.add("epochs", "Epochs done, including repeated ones"),
            kept: set.add("kept_epoch", "Last epoch checkpointed by all workers"),
            speed: set.add("tokens_per_second", "Speed of the last epoch"),
            log_joint: set.add("log_joint_per_token", "Last log joint likelihood per token"),
            moved: set.add_in(
                Unit::Bytes,
                "moved",
                "Bytes moved between workers and servers, and totals C_k",
            ),
            heaviest: set.add_in(
                Unit::Bytes,
                "heaviest_memory",
                "Memory of the largest worker and server in the last epoch",
            ),
            non_zeros: set.add(
                "non_zeros",
                "Last number of non-zero counts by word and topic, or document and topic",
            ),
        }
    }

    /// Updates the metrics with an epoch.
    fn report(&self, report: &Report, tokens_per_second: f64, log_joint: Option<f64>) {
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
    }
}

/// Resident memory of this process in bytes; `None` if the system does not report it.
fn resident() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kibibytes: u64 = line.trim().strip_suffix(" kB")?.trim().parse().ok()?;
    Some(kibibytes * 1024)
}
