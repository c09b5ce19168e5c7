//! Metrics in the OpenMetrics text format of Prometheus.

use prometheus_client::encoding::text;
use prometheus_client::registry::{Metric, Registry, Unit};

/// Media type of [`MetricSet::encode`].
pub const MEDIA_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// The metrics of a process, whose names begin with `lda_`.
///
/// A metric and its registered copy share one value. A change is an atomic operation, and a table
/// lookup for metrics with labels.
#[derive(Debug)]
pub struct MetricSet(Registry);

impl MetricSet {
    /// An empty set, whose metrics all have the given labels.
    pub fn new(labels: impl IntoIterator<Item = (&'static str, String)>) -> Self {
        let labels = labels.into_iter().map(|(name, value)| (name.into(), value.into()));
        Self(Registry::with_prefix_and_labels("lda", labels))
    }

    /// Registers a new metric and returns it.
    pub fn add<M: Metric + Clone + Default>(&mut self, name: &str, help: &str) -> M {
        let metric = M::default();
        self.0.register(name, help, metric.clone());
        metric
    }

    /// Like [`add`](Self::add), for a metric whose name ends with its unit.
    pub fn add_in<M: Metric + Clone + Default>(&mut self, unit: Unit, name: &str, help: &str) -> M {
        self.add_metric(unit, name, help, M::default())
    }

    /// Registers `metric`, whose name ends with its unit, and returns it.
    pub fn add_metric<M: Metric + Clone>(
        &mut self,
        unit: Unit,
        name: &str,
        help: &str,
        metric: M,
    ) -> M {
        self.0.register_with_unit(name, help, unit, metric.clone());
        metric
    }

    /// Encodes all metrics as text.
    pub fn encode(&self) -> String {
        let mut out = String::new();
        text::encode(&mut out, &self.0).expect("writing to a string cannot fail");
        out
    }
}

#[cfg(test)]
mod tests {
    use prometheus_client::metrics::counter::Counter;
    use prometheus_client::metrics::gauge::Gauge;

    use super::*;

    #[test]
    fn registered_metrics_share_their_value() {
        let mut set = MetricSet::new([("role", "master".to_owned())]);
        let epochs: Counter = set.add("epochs", "Epochs done");
        let memory: Gauge = set.add_in(Unit::Bytes, "memory", "Memory in use");
        epochs.inc();
        memory.set(7);
        let text = set.encode();
        for line in ["lda_epochs_total{role=\"master\"} 1", "lda_memory_bytes{role=\"master\"} 7"] {
            assert!(text.lines().any(|other| other == line), "{line} in {text}");
        }
    }
}
