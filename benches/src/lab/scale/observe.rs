//! Observes a run in one process: rows after some epochs, bytes by kind, and CPU time by role.

use std::ops::Range;

use cpu_time::ThreadTime;
use lda_core::Corpus;
use lda_core::counts::{DocumentCounts, WordCounts};
use lda_dist::config::Options;
use lda_dist::in_process::{Event, Exchange, InProcess};
use lda_dist::request::Kind;
use lda_dist::spec::ModelSpec;
use lda_dist::stats::Bytes;
use lda_dist::wire::RowCode;
use serde::{Deserialize, Serialize};

use super::super::LabError;
use super::rng::Rng;
use super::state::{Bins, Curve, State};

/// Topic-word prior β of all observed runs.
const BETA: f64 = 0.01;

/// Work and CPU seconds (of one thread) of an epoch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Work {
    /// CPU seconds of the whole epoch.
    pub seconds: f64,
    /// Server seconds for pulled rows.
    pub pull_seconds: f64,
    /// Server seconds for deltas.
    pub gained_seconds: f64,
    /// Server seconds for pushed tokens.
    pub push_seconds: f64,
    /// Server seconds for row lengths.
    pub sizes_seconds: f64,
    /// Server seconds for ends of rounds.
    pub end_seconds: f64,
    /// Bytes of pulled rows.
    pub row_bytes: f64,
    /// Non-zeros of pulled rows.
    pub row_entries: f64,
    /// Non-zeros of the deltas of pulled rows.
    pub gained_entries: f64,
    /// Pushed tokens.
    pub pushed_tokens: f64,
    /// Pushed documents.
    pub documents: f64,
    /// Non-zeros of pushed document rows.
    pub document_entries: f64,
    /// Non-zeros of all rows of servers at the start of the epoch, times the number of rounds.
    pub ended_entries: f64,
}

/// Measures the phases of an epoch.
#[derive(Debug)]
struct Watch {
    work: Work,
    begun: ThreadTime,
    /// Server time whose request kind is not known yet.
    took: Option<f64>,
}

impl Watch {
    fn new(work: Work) -> Self {
        Self { work, begun: ThreadTime::now(), took: None }
    }

    fn see(&mut self, happening: Event<'_>) {
        match happening {
            Event::Begins { .. } => {
                self.end();
                self.begun = ThreadTime::now();
            }
            Event::Ends { .. } => self.took = Some(self.begun.elapsed().as_secs_f64()),
            Event::Exchange(exchange) => {
                self.work.see(&exchange, self.took.take().unwrap_or_default());
            }
            _ => {}
        }
    }

    /// Server time outside of requests is that of the end of a round.
    fn end(&mut self) {
        self.work.end_seconds += self.took.take().unwrap_or_default();
    }
}

impl Work {
    fn see(&mut self, exchange: &Exchange<'_>, took: f64) {
        let &Exchange { kind, reply, entries, documents, .. } = exchange;
        match kind {
            Kind::Pull => {
                self.pull_seconds += took;
                self.row_bytes += reply as f64;
                self.row_entries += entries as f64;
            }
            Kind::PushDeltas | Kind::PushRows => {
                self.gained_seconds += took;
                self.gained_entries += entries as f64;
            }
            Kind::Push => {
                self.push_seconds += took;
                self.documents += documents.len() as f64;
                for document in documents {
                    self.pushed_tokens += document.tokens.len() as f64;
                    self.document_entries += document.row.len() as f64;
                }
            }
            Kind::Sizes => self.sizes_seconds += took,
            Kind::Join => {}
        }
    }

    /// CPU seconds of servers.
    pub fn of_servers(&self) -> f64 {
        self.pull_seconds
            + self.gained_seconds
            + self.push_seconds
            + self.sizes_seconds
            + self.end_seconds
    }

    /// CPU seconds of workers.
    pub fn of_workers(&self) -> f64 {
        (self.seconds - self.of_servers()).max(0.0)
    }
}

/// A run under observation.
pub(super) struct Run {
    in_process: InProcess<u16>,
    pub options: Options,
    pub tokens: u64,
    topics: u32,
    rounds: u16,
    entries: u64,
    epoch: u32,
}

/// A model before an epoch.
pub(super) struct Before {
    state: State,
    topics: Vec<u16>,
    /// Topics of the rows of C_d, ascending within a row, rows concatenated.
    rows: Vec<u16>,
    /// Start of each row in `rows`.
    starts: Vec<usize>,
}

impl Run {
    pub fn new(
        corpus: &Corpus,
        topics: u32,
        seed: u64,
        options: &Options,
    ) -> Result<Self, LabError> {
        let words = u32::try_from(corpus.num_words()).unwrap_or(u32::MAX);
        let alpha = 50.0 / f64::from(topics);
        let refuse = |error: &dyn std::error::Error| refused(options, error);
        let spec = ModelSpec::new(topics, words, alpha.into(), BETA, seed)
            .map_err(|error| refuse(&error))?;
        let in_process = InProcess::new(&spec, corpus, options).map_err(|error| refuse(&error))?;
        let (tokens, rounds) = (corpus.num_tokens(), options.rounds);
        let mut run =
            Self { in_process, options: *options, tokens, topics, rounds, entries: 0, epoch: 0 };
        run.entries = run.count_entries();
        Ok(run)
    }

    /// Non-zeros of C_w.
    fn count_entries(&self) -> u64 {
        let mut entries = 0;
        let words: Range<usize> = 0..self.in_process.num_words();
        self.in_process.visit_words(words, &mut |_, row| entries += row.len() as u64);
        entries
    }

    /// Mean over tokens of the number of topics of the token's document.
    pub fn document_topics(&self) -> f64 {
        let mut sum = 0u64;
        let all = 0..self.in_process.num_documents();
        self.in_process.visit_documents(all, &mut |_, row| {
            let tokens: u64 = row.iter().map(|entry| u64::from(entry.1)).sum();
            sum += tokens * row.len() as u64;
        });
        sum as f64 / (self.tokens as f64).max(1.0)
    }

    /// Runs an epoch.
    pub fn epoch(&mut self) -> Result<(Bytes, Work), LabError> {
        let ended_entries = self.entries as f64 * f64::from(self.rounds);
        let mut watch = Watch::new(Work { ended_entries, ..Work::default() });
        let begun = ThreadTime::now();
        let options = self.options;
        let bytes = self
            .in_process
            .epoch_watched(&mut |happening| watch.see(happening))
            .map_err(|error| refused(&options, &error))?;
        watch.end();
        let mut work = watch.work;
        work.seconds = begun.elapsed().as_secs_f64();
        self.entries = self.count_entries();
        self.epoch += 1;
        Ok((bytes, work))
    }

    /// Bytes held by all shards, and by all servers.
    pub fn memory(&self) -> (u64, u64) {
        let shards: usize = self.in_process.shards().iter().map(|shard| shard.memory()).sum();
        let servers: usize = self.in_process.servers().iter().map(|server| server.memory()).sum();
        (shards as u64, servers as u64)
    }

    fn all_topics(&self) -> Vec<u16> {
        let mut topics = Vec::with_capacity(self.tokens as usize);
        self.in_process.for_each(|_, _, topic| topics.push(topic as u16));
        topics
    }

    /// Captures the current model.
    pub fn look(&self, rng: &mut Rng) -> Before {
        let code = RowCode::new(self.topics);
        let (mut words, mut documents) = (Bins::default(), Bins::default());
        let of_words = 0..self.in_process.num_words();
        self.in_process.visit_words(of_words, &mut |_, row| words.add(code, row));
        let (mut rows, mut starts) = (Vec::new(), vec![0]);
        let of_documents = 0..self.in_process.num_documents();
        self.in_process.visit_documents(of_documents, &mut |_, row| {
            documents.add(code, row);
            rows.extend(row.iter().map(|entry| entry.0 as u16));
            starts.push(rows.len());
        });
        let mean = self.tokens as f64 / f64::from(self.topics);
        let most = self.in_process.totals().iter().copied().max().unwrap_or(0);
        let curve = |bins: &Bins, rng: &mut Rng| match self.epoch {
            0 => Curve::default(),
            _ => Curve::fit(self.topics, bins, rng),
        };
        let state = State {
            after: self.epoch,
            words: curve(&words, rng),
            documents: curve(&documents, rng),
            changed: 1.0,
            within: 0.0,
            largest: f64::from(most) / mean,
        };
        Before { state, topics: self.all_topics(), rows, starts }
    }

    /// Statistics of the model captured before this epoch, including what the epoch changed.
    pub fn look_back(&self, before: Before) -> State {
        let (mut changed, mut within, mut at) = (0u64, 0u64, 0);
        self.in_process.for_each(|document, _, topic| {
            if u32::from(before.topics[at]) != topic {
                changed += 1;
                let ends = &before.starts[document as usize..document as usize + 2];
                let row = &before.rows[ends[0]..ends[1]];
                within += u64::from(row.binary_search(&(topic as u16)).is_ok());
            }
            at += 1;
        });
        State {
            changed: changed as f64 / (self.tokens as f64).max(1.0),
            within: within as f64 / (changed as f64).max(1.0),
            ..before.state
        }
    }
}

fn refused(options: &Options, error: &dyn std::error::Error) -> LabError {
    let Options { shards, servers, partitions, .. } = options;
    LabError::Value {
        key: "measure",
        value: format!("{shards} shards, {servers} servers and {partitions} partitions"),
        remedy: error.to_string(),
    }
}
