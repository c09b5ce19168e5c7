//! Time to a likelihood.
//!
//! The time a sampler needs to reach a given log joint per token is the figure that matters: an
//! epoch of one sampler may achieve as much as ten of another. The target likelihoods are constants
//! in `thresholds.toml`, set before any tuning: shares of the best value that any program reached.
//! (Log likelihoods are negative: 99 % of the best −9.0 is −9.0 / 0.99 = −9.09.)
//!
//! Between two evaluated epochs the likelihood is assumed to rise linearly with time. It rises
//! faster at first, so an interpolated time is never too short by more than the noise of the curve.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde::Deserialize;

use super::cell::Point;
use super::{Cell, LabError};

/// Target likelihoods.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Thresholds(Vec<Entry>);

/// Targets of one corpus and K.
#[derive(Clone, Debug, PartialEq)]
struct Entry {
    corpus: String,
    topics: u32,
    alpha: f64,
    beta: f64,
    levels: Vec<Level>,
}

/// A target likelihood.
#[derive(Clone, Debug, PartialEq)]
pub struct Level {
    /// Share of the best in percent, as written: `99.8`.
    pub percent: String,
    /// Log joint per token.
    pub log_joint: f64,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct File {
    #[serde(default)]
    threshold: Vec<RawEntry>,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct RawEntry {
    corpus: String,
    topics: u32,
    /// Defaults to 50/K.
    alpha: Option<f64>,
    beta: f64,
    /// Percent → log joint per token.
    levels: BTreeMap<String, f64>,
    /// Origin of the values; for readers of the file only.
    #[serde(rename = "source")]
    _source: String,
}

impl Thresholds {
    /// The targets of this repository.
    pub fn built_in() -> Self {
        let file = include_str!("../../thresholds.toml");
        Self::parse(file, Path::new("thresholds.toml")).expect("tested")
    }

    /// Reads targets from a file.
    ///
    /// # Errors
    /// [`LabError::Read`], or [`LabError::Syntax`] with line and remedy.
    pub fn read(path: &Path) -> Result<Self, LabError> {
        Self::parse(&fs::read_to_string(path).map_err(LabError::read(path))?, path)
    }

    fn parse(text: &str, path: &Path) -> Result<Self, LabError> {
        let syntax = |message: String| LabError::Syntax { path: path.to_owned(), message };
        let file: File = toml::from_str(text).map_err(|error| syntax(error.to_string()))?;
        let mut entries: Vec<Entry> = Vec::new();
        for raw in file.threshold {
            let here = format!("threshold of {}, K = {}", raw.corpus, raw.topics);
            if entries.iter().any(|e| e.corpus == raw.corpus && e.topics == raw.topics) {
                return Err(syntax(format!("{here}: it is listed twice: remove one")));
            }
            let mut levels = Vec::new();
            for (percent, log_joint) in raw.levels {
                let legal = percent.parse::<f64>().is_ok_and(|p| p > 0.0 && p <= 100.0);
                if !legal || !log_joint.is_finite() || log_joint >= 0.0 {
                    return Err(syntax(format!(
                        "{here}: level {percent:?} = {log_joint}: give a percentage up to 100 and \
                         a log joint per token below 0"
                    )));
                }
                levels.push(Level { percent, log_joint });
            }
            levels.sort_by(|a, b| a.log_joint.total_cmp(&b.log_joint));
            entries.push(Entry {
                corpus: raw.corpus,
                topics: raw.topics,
                alpha: raw.alpha.unwrap_or(50.0 / f64::from(raw.topics)),
                beta: raw.beta,
                levels,
            });
        }
        Ok(Self(entries))
    }

    /// Targets of a cell, lowest first. Empty if there is no entry for its corpus and K, if its
    /// priors differ, or if documents are held out.
    pub fn of(&self, cell: &Cell) -> &[Level] {
        let close = |a: f64, b: f64| (a - b).abs() <= 1e-9 * b.abs();
        let entry = self.0.iter().find(|entry| {
            cell.held_out.is_none()
                && entry.corpus == cell.corpus.as_str()
                && entry.topics == cell.topics
                && close(entry.alpha, cell.alpha)
                && close(entry.beta, cell.beta)
        });
        entry.map_or(&[], |entry| &entry.levels)
    }

    /// All percentages, lowest first.
    pub fn percents(&self) -> Vec<&str> {
        let mut all: Vec<&str> =
            self.0.iter().flat_map(|entry| &entry.levels).map(|l| l.percent.as_str()).collect();
        let value = |percent: &str| percent.parse::<f64>().unwrap_or(f64::NAN);
        all.sort_by(|a, b| value(a).total_cmp(&value(b)));
        all.dedup();
        all
    }
}

/// The point at which a curve first reached a likelihood.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Crossing {
    /// CPU seconds of sampling.
    pub cpu_seconds: f64,
    /// Wall-clock seconds of sampling.
    pub wall_seconds: f64,
    /// Number of epochs, interpolated.
    pub epoch: f64,
}

/// First crossing of `log_joint` per token by `points`; `None` if they never reach it.
pub fn crossing(points: &[Point], tokens: u64, log_joint: f64) -> Option<Crossing> {
    let goal = log_joint * tokens as f64;
    let i = points.iter().position(|point| point.log_joint.is_some_and(|joint| joint >= goal))?;
    let b = &points[i];
    let a = &points[i.saturating_sub(1)];
    let (low, high) = a.log_joint.zip(b.log_joint)?;
    let share = if high > low { (goal - low) / (high - low) } else { 1.0 };
    let between = |a: f64, b: f64| a + share * (b - a);
    Some(Crossing {
        cpu_seconds: between(a.cpu_seconds, b.cpu_seconds),
        wall_seconds: between(a.wall_seconds, b.wall_seconds),
        epoch: between(f64::from(a.epoch), f64::from(b.epoch)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lab::cell::tests::cell;

    fn points(values: &[(u32, f64, f64)]) -> Vec<Point> {
        let point = |&(epoch, seconds, log_joint): &(u32, f64, f64)| Point {
            epoch,
            cpu_seconds: seconds,
            wall_seconds: 2.0 * seconds,
            log_joint: Some(log_joint),
            ..Point::default()
        };
        values.iter().map(point).collect()
    }

    #[test]
    fn crossings_are_interpolated() {
        let curve = points(&[(0, 0.0, -200.0), (5, 1.0, -150.0), (10, 3.0, -100.0)]);
        let found = crossing(&curve, 10, -12.5).unwrap();
        assert_eq!((found.epoch, found.cpu_seconds, found.wall_seconds), (7.5, 2.0, 4.0));
        // At an evaluated epoch, before the start, and never.
        assert_eq!(crossing(&curve, 10, -15.0).unwrap().epoch, 5.0);
        assert_eq!(crossing(&curve, 10, -21.0).unwrap().cpu_seconds, 0.0);
        assert_eq!(crossing(&curve, 10, -9.9), None);
        assert_eq!(crossing(&[], 10, -9.9), None);
    }

    #[test]
    fn the_first_crossing_counts() {
        let curve = points(&[(0, 0.0, -30.0), (1, 1.0, -10.0), (2, 2.0, -20.0), (3, 3.0, -5.0)]);
        assert_eq!(crossing(&curve, 1, -15.0).unwrap().cpu_seconds, 0.75);
    }

    #[test]
    fn the_constants_follow_from_their_best() {
        let thresholds = Thresholds::built_in();
        assert_eq!(thresholds.percents(), ["95", "98", "99", "99.8"]);
        for (corpus, best) in [("kos", -9.0937), ("nips", -8.3298)] {
            let corpus = corpus.parse().unwrap();
            let cell = Cell { corpus, topics: 1000, alpha: 0.05, beta: 0.01, ..cell() };
            for level in thresholds.of(&cell) {
                let share = level.percent.parse::<f64>().unwrap() / 100.0;
                assert!((level.log_joint - best / share).abs() < 1e-3, "{level:?}");
            }
            assert_eq!(thresholds.of(&cell).len(), 4);
            // Likelihoods under another prior are not comparable.
            assert!(thresholds.of(&Cell { alpha: 0.1, ..cell.clone() }).is_empty());
            // Nor are likelihoods of fewer documents.
            assert!(thresholds.of(&Cell { held_out: Some(0.1), ..cell }).is_empty());
        }
    }

    #[test]
    fn mistakes_are_reported() {
        let parse =
            |text: &str| Thresholds::parse(text, Path::new("t.toml")).unwrap_err().to_string();
        let entry = "[[threshold]]\ncorpus = \"a\"\ntopics = 2\nbeta = 0.1\nsource = \"x\"\n";
        let message = parse(&format!("{entry}levels = {{ \"99\" = 1.0 }}"));
        assert!(message.contains("a, K = 2") && message.contains("below 0"), "{message}");
        let message = parse(&format!("{entry}levels = {{}}\n{entry}levels = {{}}"));
        assert!(message.contains("twice"), "{message}");
        let message = parse("[[threshold]]\ncorpse = \"a\"");
        assert!(message.contains("t.toml") && message.contains("line 2"), "{message}");
    }
}
