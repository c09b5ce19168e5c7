//! Compares the model with runs in one process: predicted and measured traffic, memory and time.

use lda_core::Corpus;
use lda_dist::config::{Options, Routing};
use lda_dist::stats::Bytes;
use serde::{Deserialize, Serialize};

use super::super::{CorpusName, LabError};
use super::observe::Run;
use super::project::{BytesByKind, Division};
use super::rates::Rates;
use super::rng::Rng;
use super::sizes::Sizes;
use super::words::{Lengths, Repeats};

/// One epoch of a run, predicted and measured. Pairs are (measured, predicted).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Checked {
    /// Corpus of the run.
    pub corpus: CorpusName,
    /// Whether all rows were pulled.
    pub symmetric: bool,
    /// Number of shards.
    pub shards: u16,
    /// Number of servers, each with one partition.
    pub servers: u32,
    /// Rounds per epoch.
    pub rounds: u16,
    /// Epoch, from 1.
    pub epoch: u32,
    /// Measured bytes.
    pub measured: BytesByKind,
    /// Predicted bytes.
    pub predicted: BytesByKind,
    /// Share of the tokens that servers sampled.
    pub pushed: (f64, f64),
    /// Bytes held by all workers after the epoch.
    pub workers: (f64, f64),
    /// Bytes held by all servers after the epoch.
    pub server_memory: (f64, f64),
    /// CPU seconds of all workers.
    pub worker_seconds: (f64, f64),
    /// CPU seconds of all servers.
    pub server_seconds: (f64, f64),
}

impl From<Bytes> for BytesByKind {
    fn from(bytes: Bytes) -> Self {
        let Bytes { sizes, routes, rows, gained, pushed, answers, totals } = bytes;
        let [sizes, routes, rows, gained, pushed, answers, totals] =
            [sizes, routes, rows, gained, pushed, answers, totals].map(|bytes| bytes as f64);
        Self { sizes, routes, rows, gained, pushed, answers, totals }
    }
}

impl BytesByKind {
    /// Name and bytes of each kind of message.
    pub fn each(&self) -> [(&'static str, f64); 7] {
        let Self { sizes, routes, rows, gained, pushed, answers, totals } = *self;
        [
            ("sizes", sizes),
            ("routes", routes),
            ("rows", rows),
            ("gained", gained),
            ("documents", pushed),
            ("answers", answers),
            ("totals", totals),
        ]
    }

    /// Sum over all kinds.
    pub fn total(&self) -> f64 {
        self.each().iter().map(|it| it.1).sum()
    }
}

/// A corpus on which predictions are checked.
pub(super) struct Checking<'a> {
    pub name: &'a CorpusName,
    pub corpus: &'a Corpus,
    pub topics: u32,
    pub seed: u64,
    pub rates: &'a [Rates],
}

impl Checking<'_> {
    /// Runs the given division, and predicts and measures the given epochs.
    pub fn check(
        &self,
        options: &Options,
        epochs: &[u32],
        tell: &dyn Fn(&str),
    ) -> Result<Vec<Checked>, LabError> {
        let mut run = Run::new(self.corpus, self.topics, self.seed, options)?;
        let lengths = Lengths::of(self.corpus);
        let frequencies = self.corpus.word_frequencies();
        let repeats = Repeats::of(self.corpus);
        let division =
            Division::new(&frequencies, &lengths, &repeats, self.topics, options, self.seed)?;
        let mut rng = Rng::new(self.seed, 4);
        let mut all = Vec::new();
        for epoch in 1..=epochs.last().copied().unwrap_or(0) {
            if !epochs.contains(&epoch) {
                run.epoch()?;
                continue;
            }
            let before = run.look(&mut rng);
            let (bytes, work) = run.epoch()?;
            let state = run.look_back(before);
            let sizes = Sizes::new(self.topics, &state, self.seed);
            let (mean, by) = division.pair(&sizes);
            let seconds = division.seconds(&sizes, &mean, &by, self.rates);
            let mut predicted = division.bytes(&mean);
            let (servers, shards) = (f64::from(options.servers), f64::from(options.shards));
            let (of_server, of_all) = division.round_totals(&state);
            predicted.totals =
                f64::from(options.rounds) * (servers * of_server + (servers + shards) * of_all);
            let row_bytes: f64 = frequencies.iter().map(|&it| sizes.row(it).bytes).sum();
            let words = mean.words * division.placement.num_partitions() as f64 * shards;
            let tokens = self.corpus.num_tokens() as f64;
            let (held_by_shards, held_by_servers) = run.memory();
            let checked = Checked {
                corpus: self.name.clone(),
                symmetric: options.routing == Routing::Pull,
                shards: options.shards,
                servers: options.servers,
                rounds: options.rounds,
                epoch,
                measured: bytes.into(),
                predicted,
                pushed: (
                    work.pushed_tokens / tokens,
                    mean.pushed_tokens / (mean.pushed_tokens + mean.pulled_tokens),
                ),
                workers: (held_by_shards as f64, division.shards_memory(words)),
                server_memory: (held_by_servers as f64, division.servers_memory(&mean, row_bytes)),
                worker_seconds: (work.of_workers(), seconds.0),
                server_seconds: (work.of_servers(), seconds.1),
            };
            let (measured, predicted) = (checked.measured.total(), checked.predicted.total());
            tell(&format!(
                "check: {} shards, {} servers, epoch {epoch}: {:.2} MB measured, {:.2} predicted",
                options.shards,
                options.servers,
                measured / 1e6,
                predicted / 1e6
            ));
            all.push(checked);
        }
        Ok(all)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::synthetic::Preset;

    /// All bytes within 8 % at a fixed seed, and each kind that matters within 20 %.
    #[test]
    fn predicted_bytes_are_close_to_measured() {
        let spec = Preset::NytLike.spec().scaled(0.01).unwrap();
        let corpus = spec.generate(1).unwrap().corpus;
        let name = "nytlike@0.01".parse().unwrap();
        let checking = Checking { name: &name, corpus: &corpus, topics: 300, seed: 3, rates: &[] };
        for (shards, servers, rounds) in [(10, 10, 1), (30, 3, 3)] {
            for routing in [Routing::Pull, Routing::Cheapest] {
                let cut = Options { shards, servers, rounds, routing, ..Options::default() };
                let options = Options { partitions: servers, ..cut };
                for it in checking.check(&options, &[1, 3], &|_| {}).unwrap() {
                    let (real, model) = (it.measured.total(), it.predicted.total());
                    assert!((model / real - 1.0).abs() < 0.08, "{real} and {model}: {it:?}");
                    let each = it.measured.each().into_iter().zip(it.predicted.each());
                    for ((name, kind), (_, predicted)) in each {
                        let is_far = (predicted - kind).abs() > 0.2 * kind.max(0.25 * real);
                        assert!(!is_far, "{name}: {kind} and {predicted}");
                    }
                    assert!((it.pushed.0 - it.pushed.1).abs() < 0.15, "{:?}", it.pushed);
                    assert!((it.workers.1 / it.workers.0 - 1.0).abs() < 0.15, "{:?}", it.workers);
                }
            }
        }
    }
}
