//! What a run in one process shows: rows of a model after some epochs, bytes by kind, and who works for how long.

use std::ops::Range;

use cpu_time::ThreadTime;
use lda_core::Corpus;
use lda_core::eval::{DocumentCounts, WordCounts};
use lda_dist::job::Job;
use lda_dist::request::Kind;
use lda_dist::together::{Bytes, Exchange, Happening, Options, Together};
use lda_dist::wire::RowCode;
use serde::{Deserialize, Serialize};

use super::super::LabError;
use super::rng::Rng;
use super::state::{Bins, Curve, State};

/// β of all of these runs.
const BETA: f64 = 0.01;

/// What an epoch has done, and how long it took: CPU seconds of one thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Work {
    /// Of the epoch.
    pub seconds: f64,
    /// Of that, servers: with rows that are pulled, with what they have gained, with what is pushed, with lengths of
    /// rows, and when rounds end.
    pub pull_seconds: f64,
    /// Gained.
    pub gained_seconds: f64,
    /// Pushed.
    pub push_seconds: f64,
    /// Sizes.
    pub sizes_seconds: f64,
    /// Rounds' ends.
    pub end_seconds: f64,
    /// Bytes of rows that were pulled.
    pub row_bytes: f64,
    /// Topics of them.
    pub row_entries: f64,
    /// Topics of what they gained.
    pub gained_entries: f64,
    /// Tokens that were pushed.
    pub pushed_tokens: f64,
    /// Their documents.
    pub documents: f64,
    /// Topics of these.
    pub document_entries: f64,
    /// Topics of all rows of servers when the epoch began, times the rounds.
    pub ended_entries: f64,
}

/// Sees an epoch.
#[derive(Debug)]
struct Watch {
    work: Work,
    begun: ThreadTime,
    /// Of a server, of which it is not told yet what it was about.
    took: Option<f64>,
}

impl Watch {
    fn new(work: Work) -> Self {
        Self { work, begun: ThreadTime::now(), took: None }
    }

    fn see(&mut self, happening: Happening<'_>) {
        match happening {
            Happening::Begins { .. } => {
                self.end();
                self.begun = ThreadTime::now();
            }
            Happening::Ends { .. } => self.took = Some(self.begun.elapsed().as_secs_f64()),
            Happening::Exchange(exchange) => {
                self.work.see(&exchange, self.took.take().unwrap_or_default());
            }
            _ => {}
        }
    }

    /// What nobody has asked for was a round's end.
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
            Kind::Gained => {
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

    /// Of servers.
    pub fn of_servers(&self) -> f64 {
        self.pull_seconds
            + self.gained_seconds
            + self.push_seconds
            + self.sizes_seconds
            + self.end_seconds
    }

    /// Of workers.
    pub fn of_workers(&self) -> f64 {
        (self.seconds - self.of_servers()).max(0.0)
    }
}

/// A run that is looked at.
pub(super) struct Run {
    together: Together<u16>,
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
    /// Rows of C_d: topics of each, ascending, one row behind the other, and where each begins.
    rows: Vec<u16>,
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
        let job =
            Job::new(topics, words, alpha.into(), BETA, seed).map_err(|error| refuse(&error))?;
        let together = Together::new(&job, corpus, options).map_err(|error| refuse(&error))?;
        let (tokens, rounds) = (corpus.num_tokens(), options.rounds);
        let mut run =
            Self { together, options: *options, tokens, topics, rounds, entries: 0, epoch: 0 };
        run.entries = run.count_entries();
        Ok(run)
    }

    /// Topics of all rows of C_w.
    fn count_entries(&self) -> u64 {
        let mut entries = 0;
        let words: Range<usize> = 0..self.together.num_words();
        self.together.visit_words(words, &mut |_, row| entries += row.len() as u64);
        entries
    }

    /// Topics of a token's document, in the mean.
    pub fn document_topics(&self) -> f64 {
        let mut sum = 0u64;
        let all = 0..self.together.num_documents();
        self.together.visit_documents(all, &mut |_, row| {
            let tokens: u64 = row.iter().map(|entry| u64::from(entry.1)).sum();
            sum += tokens * row.len() as u64;
        });
        sum as f64 / (self.tokens as f64).max(1.0)
    }

    /// An epoch.
    pub fn epoch(&mut self) -> Result<(Bytes, Work), LabError> {
        let ended_entries = self.entries as f64 * f64::from(self.rounds);
        let mut watch = Watch::new(Work { ended_entries, ..Work::default() });
        let begun = ThreadTime::now();
        let options = self.options;
        let bytes = self
            .together
            .epoch_watched(&mut |happening| watch.see(happening))
            .map_err(|error| refused(&options, &error))?;
        watch.end();
        let mut work = watch.work;
        work.seconds = begun.elapsed().as_secs_f64();
        self.entries = self.count_entries();
        self.epoch += 1;
        Ok((bytes, work))
    }

    /// Bytes that shards hold, and servers, all of them together.
    pub fn memory(&self) -> (u64, u64) {
        let shards: usize = self.together.shards().iter().map(|shard| shard.memory()).sum();
        let servers: usize = self.together.servers().iter().map(|server| server.memory()).sum();
        (shards as u64, servers as u64)
    }

    fn all_topics(&self) -> Vec<u16> {
        let mut topics = Vec::with_capacity(self.tokens as usize);
        self.together.for_each(|_, _, topic| topics.push(topic as u16));
        topics
    }

    /// The model of now.
    pub fn look(&self, rng: &mut Rng) -> Before {
        let code = RowCode::new(self.topics);
        let (mut words, mut documents) = (Bins::default(), Bins::default());
        let of_words = 0..self.together.num_words();
        self.together.visit_words(of_words, &mut |_, row| words.add(code, row));
        let (mut rows, mut starts) = (Vec::new(), vec![0]);
        let of_documents = 0..self.together.num_documents();
        self.together.visit_documents(of_documents, &mut |_, row| {
            documents.add(code, row);
            rows.extend(row.iter().map(|entry| entry.0 as u16));
            starts.push(rows.len());
        });
        let mean = self.tokens as f64 / f64::from(self.topics);
        let most = self.together.totals().iter().copied().max().unwrap_or(0);
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

    /// A model before this epoch, now that we know what the epoch has changed.
    pub fn look_back(&self, before: Before) -> State {
        let (mut changed, mut within, mut at) = (0u64, 0u64, 0);
        self.together.for_each(|document, _, topic| {
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
