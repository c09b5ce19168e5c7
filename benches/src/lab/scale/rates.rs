//! Measures the rates of one core.
//!
//! The same epoch is run in two ways that differ in one kind of work; two kinds of work and two
//! times give one solution. Pulled rows: few shards and many (same tokens, more rows). Pushed
//! documents: one partition and many (same tokens, more documents). Times are CPU seconds.

use std::hint::black_box;

use cpu_time::ThreadTime;
use lda_core::Corpus;
use lda_dist::config::{Options, Routing};
use lda_dist::wire::RowCode;
use serde::{Deserialize, Serialize};

use super::super::{CorpusName, LabError};
use super::observe::{Run, Work};
use super::rng::Rng;
use super::state::State;

/// The small number of shards, and the large number of partitions.
const FEW: u16 = 2;
/// Bytes of rows that are encoded and decoded.
const WRITTEN: usize = 8 << 20;

/// CPU seconds of one core per unit of work.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Rates {
    /// Corpus they were measured on.
    pub corpus: String,
    /// Mean over tokens of the number of topics of the token's document.
    pub document_topics: f64,
    /// Epochs completed before the measured one.
    pub after: u32,
    /// Worker: per token sampled with a pulled row.
    pub token: f64,
    /// Worker: per non-zero of a pulled row.
    pub entry: f64,
    /// Worker: per pushed token.
    pub asked_token: f64,
    /// Worker: per non-zero of a pushed document's row.
    pub asked_entry: f64,
    /// Server: per pushed token.
    pub pushed_token: f64,
    /// Server: per non-zero of a pushed document's row.
    pub pushed_entry: f64,
    /// Server: per byte of a pulled row.
    pub served_byte: f64,
    /// Server: per non-zero of a delta.
    pub gained_entry: f64,
    /// Server: per non-zero of a row that is rebuilt at the end of a round.
    pub ended_entry: f64,
    /// Per encoded byte of rows.
    pub written_byte: f64,
    /// Per decoded byte of rows.
    pub read_byte: f64,
}

/// Settings of a measurement.
pub(super) struct Measuring<'a> {
    pub name: &'a CorpusName,
    pub corpus: &'a Corpus,
    pub topics: u32,
    pub seed: u64,
    /// The large number of shards.
    pub many: u16,
    /// The last epoch, which is measured in addition to the first.
    pub epochs: u32,
}

/// Solves x a + y b = t for (a, b), given (x, y, t) of two measurements.
fn solve(one: (f64, f64, f64), other: (f64, f64, f64)) -> (f64, f64) {
    let by = one.0 * other.1 - other.0 * one.1;
    let both = ((one.2 * other.1 - other.2 * one.1) / by, (one.0 * other.2 - other.0 * one.2) / by);
    match both {
        (a, b) if a > 0.0 && b > 0.0 => both,
        // Noise exceeds one of the two quantities: attribute all time to the other.
        (a, _) if a > 0.0 => ((one.2 + other.2) / (one.0 + other.0), 0.0),
        _ => (0.0, (one.2 + other.2) / (one.1 + other.1)),
    }
}

fn each(seconds: f64, of: f64) -> f64 {
    if of > 0.0 { seconds / of } else { 0.0 }
}

impl Rates {
    /// Rates for documents with this many topics after this many epochs: the nearest measured epoch
    /// of each corpus, interpolated linearly between the two nearest corpora.
    pub(super) fn of(all: &[Self], after: u32, document_topics: f64) -> Self {
        let mut own: Vec<&Self> = Vec::new();
        for rates in all {
            let off = |rates: &Self| rates.after.abs_diff(after);
            match own.iter_mut().find(|other| other.corpus == rates.corpus) {
                Some(other) if off(rates) < off(other) => *other = rates,
                Some(_) => {}
                None => own.push(rates),
            }
        }
        own.sort_by(|a, b| {
            let off = |rates: &Self| (rates.document_topics - document_topics).abs();
            off(a).total_cmp(&off(b))
        });
        match own[..] {
            [] => Self::default(),
            [one] => one.clone(),
            [a, b, ..] => {
                let apart = b.document_topics - a.document_topics;
                let share = (document_topics - a.document_topics) / apart;
                let share = if apart == 0.0 { 0.0 } else { share.clamp(-1.0, 1.0) };
                let of = |of: fn(&Self) -> f64| (of(a) + share * (of(b) - of(a))).max(0.0);
                Self {
                    corpus: format!("{}, {}", a.corpus, b.corpus),
                    document_topics,
                    after: a.after,
                    token: of(|it| it.token),
                    entry: of(|it| it.entry),
                    asked_token: of(|it| it.asked_token),
                    asked_entry: of(|it| it.asked_entry),
                    pushed_token: of(|it| it.pushed_token),
                    pushed_entry: of(|it| it.pushed_entry),
                    served_byte: of(|it| it.served_byte),
                    gained_entry: of(|it| it.gained_entry),
                    ended_entry: of(|it| it.ended_entry),
                    written_byte: of(|it| it.written_byte),
                    read_byte: of(|it| it.read_byte),
                }
            }
        }
    }
}

impl Measuring<'_> {
    /// Measures the first epoch and the last.
    pub fn rates(&self, states: &[State], tell: &dyn Fn(&str)) -> Result<Vec<Rates>, LabError> {
        let of = |routing, shards: u16, partitions: u32| {
            let words = self.corpus.num_words() as u32;
            let partitions = partitions.min(words);
            let options = Options { shards, partitions, routing, ..Options::default() };
            tell(&format!("rates: {shards} shards, {partitions} partitions, {routing:?}"));
            self.run(&options)
        };
        let (few_rows, document_topics) = of(Routing::Pull, FEW, 1)?;
        let (many_rows, _) = of(Routing::Pull, self.many, 1)?;
        let (few_documents, _) = of(Routing::Push, FEW, 1)?;
        let (many_documents, _) = of(Routing::Push, FEW, u32::from(self.many))?;
        let tokens = self.corpus.num_tokens() as f64;
        let epochs = [0, self.epochs.saturating_sub(1)];
        let rates = epochs.into_iter().enumerate().map(|(at, after)| {
            let [few, many] = [few_rows[at], many_rows[at]];
            let (token, entry) = solve(
                (tokens, few.row_entries, few.of_workers()),
                (tokens, many.row_entries, many.of_workers()),
            );
            let [one, cut] = [few_documents[at], many_documents[at]];
            let (asked_token, asked_entry) = solve(
                (tokens, one.document_entries, one.of_workers()),
                (tokens, cut.document_entries, cut.of_workers()),
            );
            // Rows of pushed words are decoded as pulled ones are.
            let rows = f64::from(FEW) * one.ended_entries * entry;
            let (pushed_token, pushed_entry) = solve(
                (tokens, one.document_entries, (one.push_seconds - rows).max(0.0)),
                (tokens, cut.document_entries, (cut.push_seconds - rows).max(0.0)),
            );
            let nearest = states.iter().min_by_key(|state| state.after.abs_diff(after));
            let (written_byte, read_byte) = nearest.map_or((0.0, 0.0), |state| self.coding(state));
            Rates {
                corpus: self.name.to_string(),
                document_topics: document_topics[at],
                after,
                token,
                entry,
                asked_token,
                asked_entry,
                pushed_token,
                pushed_entry,
                served_byte: each(many.pull_seconds, many.row_bytes),
                gained_entry: each(many.gained_seconds, many.gained_entries),
                ended_entry: each(few.end_seconds, few.ended_entries),
                written_byte,
                read_byte,
            }
        });
        Ok(rates.collect())
    }

    /// Work of the first epoch and of the last, and the mean topics per document before each.
    fn run(&self, options: &Options) -> Result<([Work; 2], [f64; 2]), LabError> {
        let mut run = Run::new(self.corpus, self.topics, self.seed, options)?;
        let mut topics = [run.document_topics(); 2];
        let first = run.epoch()?.1;
        let mut last = first;
        for _ in 1..self.epochs {
            topics[1] = run.document_topics();
            last = run.epoch()?.1;
        }
        Ok(([first, last], topics))
    }

    /// Seconds per encoded and per decoded byte, over rows of words of all frequencies.
    fn coding(&self, state: &State) -> (f64, f64) {
        let mut rng = Rng::new(self.seed, 5);
        let code = RowCode::new(self.topics);
        let frequencies = self.corpus.word_frequencies();
        let (mut rows, mut size) = (Vec::new(), 0);
        while size < WRITTEN && rows.len() < frequencies.len() * 4 {
            let tokens = frequencies[rng.below(frequencies.len() as u32) as usize].max(1);
            let row = state.words.row(self.topics, tokens, &mut rng);
            size += code.size(&row);
            rows.push(row);
        }
        let (mut bytes, begun) = (Vec::with_capacity(size), ThreadTime::now());
        rows.iter().for_each(|row| code.encode(row, &mut bytes));
        let written = begun.elapsed().as_secs_f64();
        let (mut rest, mut row) = (&bytes[..], Vec::<(u32, u32)>::new());
        let begun = ThreadTime::now();
        while !rest.is_empty() {
            code.decode(&mut rest, &mut row).expect("rows that were written here");
            black_box(&row);
        }
        (each(written, size as f64), each(begun.elapsed().as_secs_f64(), size as f64))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn longer_documents_take_longer() {
        let of = |corpus: &str, after, document_topics, token| {
            let corpus = corpus.to_owned();
            Rates { corpus, after, document_topics, token, ..Rates::default() }
        };
        let all = [of("a", 0, 10.0, 1.0), of("a", 5, 8.0, 2.0), of("b", 0, 30.0, 3.0)];
        let found = |after, topics| Rates::of(&all, after, topics).token;
        assert_eq!((found(0, 20.0), found(0, 10.0)), (2.0, 1.0));
        assert!((found(4, 19.0) - 2.5).abs() < 1e-9);
        assert!((found(0, 40.0) - 4.0).abs() < 1e-9);
        assert_eq!(Rates::of(&all[..2], 0, 99.0).token, 1.0);
    }

    #[test]
    fn two_times_have_one_solution() {
        let (a, b) = solve((10.0, 1.0, 10.0 * 3.0 + 7.0), (10.0, 8.0, 10.0 * 3.0 + 8.0 * 7.0));
        assert!((a - 3.0).abs() < 1e-9 && (b - 7.0).abs() < 1e-9);
        // The second run takes less time than the first: all time belongs to the tokens.
        assert_eq!(solve((10.0, 1.0, 30.0), (10.0, 8.0, 28.0)), (2.9, 0.0));
        assert_eq!(solve((1.0, 1.0, 1.0), (1.0, 90.0, 99.0)), (0.0, 100.0 / 91.0));
    }
}
