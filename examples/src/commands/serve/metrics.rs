//! Metrics of the service.

use std::time::{Duration, Instant};

use axum::http::StatusCode;
use lda_core::infer::Answer;
use lda_examples::metrics::MetricSet;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Unit;

use crate::commands::serve::model::Ready;

/// Upper bounds of the time buckets in seconds, from an answer by RT-LDA to the longest wait.
const TIMES: [f64; 14] =
    [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0, 30.0];

/// All metrics of the service.
#[derive(Debug)]
pub struct Metrics {
    set: MetricSet,
    requests: Family<RequestLabels, Counter>,
    times: Family<RouteLabels, Histogram, fn() -> Histogram>,
    abandoned: Counter,
    in_flight: Gauge,
    connections: Gauge,
    queued: Gauge,
    buffered: Gauge,
    answers: Gauge,
    documents: Counter,
    tokens: Counter,
    unknown: Counter,
    reloads: Family<OutcomeLabels, Counter>,
    model: Family<ModelLabels, Gauge>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RequestLabels {
    route: String,
    status: u16,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RouteLabels {
    route: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OutcomeLabels {
    outcome: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ModelLabels {
    fingerprint: String,
    method: &'static str,
    topics: u64,
    words: u64,
}

impl Metrics {
    /// All metrics at zero.
    pub fn new() -> Self {
        let mut set = MetricSet::new([]);
        let times = Family::new_with_constructor((|| Histogram::new(TIMES)) as fn() -> Histogram);
        let reloads: Family<OutcomeLabels, Counter> =
            set.add("model_loads", "Attempts to load a model, by outcome");
        // Created at the start, so that rates are defined from the beginning.
        for outcome in ["ok", "failed"] {
            drop(reloads.get_or_create(&OutcomeLabels { outcome }));
        }
        Self {
            requests: set.add("http_requests", "Requests answered"),
            times: set.add_metric(
                Unit::Seconds,
                "http_request_duration",
                "Time from the head of a request to its answer",
                times,
            ),
            abandoned: set.add(
                "http_requests_abandoned",
                "Requests whose client disconnected before the answer",
            ),
            in_flight: set.add("http_requests_in_flight", "Requests not answered yet"),
            connections: set.add("http_connections", "Open connections"),
            queued: set.add("queued", "Requests that wait for an inference thread"),
            buffered: set.add_in(Unit::Bytes, "buffered", "Request bodies in memory"),
            answers: set.add_in(Unit::Bytes, "answers", "Answers that clients have not read"),
            documents: set.add("documents", "Documents answered"),
            tokens: set.add("tokens", "Tokens of words in the model's vocabulary"),
            unknown: set.add("unknown_tokens", "Tokens of unknown words"),
            model: set.add("model_info", "The model in use"),
            reloads,
            set,
        }
    }

    /// Counts a request until it [ends](InFlight::end), or is dropped because its client disconnected.
    pub fn begin(&self, route: String) -> InFlight<'_> {
        self.in_flight.inc();
        InFlight { metrics: self, start: Instant::now(), route: Some(route) }
    }

    /// Number of requests in flight.
    pub fn in_flight(&self) -> i64 {
        self.in_flight.get()
    }

    /// Counts a connection until the returned value is dropped.
    pub fn connect(&self) -> Connected {
        self.connections.inc();
        Connected(self.connections.clone())
    }

    /// Counts a document.
    pub fn document(&self, answer: &Answer) {
        self.documents.inc();
        self.tokens.inc_by(answer.tokens);
        self.unknown.inc_by(answer.unknown);
    }

    /// Counts a model that was loaded.
    pub fn loaded(&self, ready: &Ready) {
        self.reloads.get_or_create(&OutcomeLabels { outcome: "ok" }).inc();
        let labels = ModelLabels {
            fingerprint: ready.fingerprint.clone(),
            method: ready.inference.method().name(),
            topics: ready.model().num_topics() as u64,
            words: ready.model().num_words() as u64,
        };
        self.model.clear();
        self.model.get_or_create(&labels).set(1);
    }

    /// Counts a failed reload.
    pub fn not_loaded(&self) {
        self.reloads.get_or_create(&OutcomeLabels { outcome: "failed" }).inc();
    }

    /// Encodes all metrics as text, with the lengths that other parts hold.
    pub fn encode(&self, queued: usize, buffered: usize, answers: usize) -> String {
        self.queued.set(queued as i64);
        self.buffered.set(buffered as i64);
        self.answers.set(answers as i64);
        self.set.encode()
    }
}

/// A request in flight.
#[derive(Debug)]
pub struct InFlight<'a> {
    metrics: &'a Metrics,
    start: Instant,
    /// `None` after the end.
    route: Option<String>,
}

impl InFlight<'_> {
    /// Ends the request with its status; returns the time it took.
    pub fn end(mut self, status: StatusCode) -> Duration {
        let elapsed = self.start.elapsed();
        if let Some(route) = self.route.take() {
            let labels = RouteLabels { route };
            self.metrics.times.get_or_create(&labels).observe(elapsed.as_secs_f64());
            let labels = RequestLabels { route: labels.route, status: status.as_u16() };
            self.metrics.requests.get_or_create(&labels).inc();
        }
        elapsed
    }
}

impl Drop for InFlight<'_> {
    fn drop(&mut self) {
        self.metrics.in_flight.dec();
        if self.route.is_some() {
            self.metrics.abandoned.inc();
        }
    }
}

/// An open connection.
#[derive(Debug)]
pub struct Connected(Gauge);

impl Drop for Connected {
    fn drop(&mut self) {
        self.0.dec();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_end_or_are_abandoned() {
        let metrics = Metrics::new();
        metrics.begin("/infer".to_owned()).end(StatusCode::OK);
        drop(metrics.begin("/infer".to_owned()));
        let in_flight = metrics.begin("/topics".to_owned());
        let text = metrics.encode(3, 4, 5);
        for line in [
            "lda_http_requests_total{route=\"/infer\",status=\"200\"} 1",
            "lda_http_requests_abandoned_total 1",
            "lda_http_requests_in_flight 1",
            "lda_http_request_duration_seconds_count{route=\"/infer\"} 1",
            "lda_queued 3",
            "lda_buffered_bytes 4",
            "lda_answers_bytes 5",
            "lda_model_loads_total{outcome=\"failed\"} 0",
        ] {
            assert!(text.lines().any(|other| other == line), "{line} in {text}");
        }
        in_flight.end(StatusCode::NOT_FOUND);
        assert!(metrics.encode(0, 0, 0).contains("lda_http_requests_in_flight 0\n"));
    }
}
