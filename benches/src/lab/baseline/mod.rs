//! Runs a baseline under the same conditions as our samplers: same corpus, same priors, same
//! evaluator.
//!
//! An [adapter](adapter) drives the user's own installation and writes the state of its training at
//! every evaluation, as [assignments] or [weights]. Likelihood and perplexity are computed here, by
//! the functions that evaluate our samplers; figures that a baseline prints are ignored.
//!
//! One difference remains: baselines are measured from outside the process. Their adapter states
//! what its clock includes, and the record keeps that.

mod adapter;
mod assignments;
mod lines;
mod protocol;
mod weights;

use std::fs::{self, File};
use std::io::{BufReader, Read};
use std::path::{Path, PathBuf};
use std::time::Instant;

use lda_core::Corpus;
use lda_core::corpus::write_uci;
use lda_core::eval::{Phi, log_joint, log_predictive};
use lda_core::model::TopicModel;
use lda_core::prior::Alpha;

use super::cell::{Done, Job, Memory, Outcome, Point};
use super::documents::{lengths_of, topics_per_document};
use super::files::{create_directory, write_whole};
use super::held_out::Split;
use super::lengths::by_length;
use super::{Baseline, Cell, LabError, median};
use adapter::Adapter;
use assignments::Assignments;
use protocol::{Evaluated, Report};

/// Runs a baseline and calls `evaluated(point, tokens of the corpus, tokens per CPU second)` for
/// every state.
pub(super) fn run(
    baseline: Baseline,
    job: &Job,
    mut evaluated: impl FnMut(&Point, u64, f64) -> Result<(), LabError>,
) -> Result<Outcome, LabError> {
    let start = Instant::now();
    let split = Split::new(Corpus::read(&job.path)?, job.cell.held_out)?;
    let read_seconds = start.elapsed().as_secs_f64();
    create_directory(&job.scratch)?;
    // A baseline may run in another directory.
    let scratch = fs::canonicalize(&job.scratch).map_err(LabError::read(&job.scratch))?;
    let corpus = scratch.join("docword.txt");
    write_whole(&corpus, |out| write_uci(&split.training, out))?;

    let evaluator = Evaluator { baseline, cell: &job.cell, split: &split, scratch: &scratch };
    let mut adapter =
        Adapter::start(baseline, &protocol::Job::new(&job.cell, corpus, scratch.clone()))?;
    let mut points: Vec<Point> = Vec::new();
    let ended = evaluate_states(&mut adapter, &evaluator, &mut points, &mut evaluated);
    let done = match ended {
        Ok(Some(done)) => {
            adapter.end()?;
            done
        }
        Ok(None) => {
            adapter.end()?;
            return Err(evaluator.fail("exited without the message `done`"));
        }
        Err(error) => {
            adapter.kill();
            return Err(error);
        }
    };
    let tokens = split.training.num_tokens();
    let rate = |seconds: fn(&Point) -> f64| rate(&points, tokens, seconds);
    Ok(Outcome {
        resolved: None,
        documents: split.training.num_documents() as u64,
        words: split.training.num_words() as u64,
        tokens,
        lengths: lengths_of(&split.training),
        corpus_fingerprint: split.training.fingerprint(),
        read_seconds,
        start_seconds: None,
        tokens_per_cpu_second: rate(|point| point.cpu_seconds),
        tokens_per_second: rate(|point| point.wall_seconds),
        points,
        memory: Memory { peak: done.peak_bytes, peak_reading: None, corpus: None, state: None },
        assignments_fingerprint: None,
        baseline: Some(done),
    })
}

/// Evaluates every state until the adapter is done; `None` if it ended before.
fn evaluate_states(
    adapter: &mut Adapter,
    evaluator: &Evaluator<'_>,
    points: &mut Vec<Point>,
    evaluated: &mut impl FnMut(&Point, u64, f64) -> Result<(), LabError>,
) -> Result<Option<Done>, LabError> {
    let tokens = evaluator.split.training.num_tokens();
    while let Some(report) = adapter.next()? {
        let state = match report {
            Report::Done(_) if points.is_empty() => {
                return Err(evaluator.fail("sent `done` without a state"));
            }
            Report::Done(done) => return Ok(Some(done)),
            Report::Evaluated(state) => state,
        };
        let point = evaluator.point(&state, points.last())?;
        let speed = speed(points.last(), &point, tokens, |point| point.cpu_seconds);
        evaluated(&point, tokens, speed.unwrap_or(0.0))?;
        let reached = |until| point.log_joint.is_some_and(|x| x / tokens as f64 >= until);
        let there = evaluator.cell.until.is_some_and(reached);
        points.push(point);
        adapter.say(if there { "stop" } else { "go" });
    }
    Ok(None)
}

/// Turns states of a baseline into points.
struct Evaluator<'a> {
    baseline: Baseline,
    cell: &'a Cell,
    split: &'a Split,
    scratch: &'a Path,
}

impl Evaluator<'_> {
    fn fail(&self, message: impl Into<String>) -> LabError {
        LabError::Baseline { baseline: self.baseline, message: message.into() }
    }

    fn point(&self, state: &Evaluated, before: Option<&Point>) -> Result<Point, LabError> {
        let epoch = state.epoch;
        if let Some(before) = before.filter(|before| before.epoch >= epoch) {
            return Err(self.fail(format!("sent epoch {epoch} after epoch {}", before.epoch)));
        }
        for seconds in [state.cpu_seconds, state.wall_seconds] {
            if !(seconds.is_finite() && seconds >= 0.0) {
                return Err(
                    self.fail(format!("epoch {epoch}: {seconds} is not a number of seconds"))
                );
            }
        }
        let path = self.file(&state.file)?;
        let evaluated = self.evaluate(&path);
        // States are large and many, so each is removed after its evaluation.
        fs::remove_file(&path).map_err(LabError::write(&path))?;
        let evaluated = evaluated?;
        Ok(Point {
            epoch,
            cpu_seconds: state.cpu_seconds,
            wall_seconds: state.wall_seconds,
            ..evaluated
        })
    }

    /// INVARIANT: only files of the scratch directory are read, since they are then removed.
    fn file(&self, name: &str) -> Result<PathBuf, LabError> {
        let plain = name.bytes().all(|b| b.is_ascii_alphanumeric() || b"._-".contains(&b));
        let path = self.scratch.join(name);
        if !plain
            || name.starts_with('.')
            || !fs::symlink_metadata(&path).is_ok_and(|m| m.is_file())
        {
            return Err(self.fail(format!("{name:?} is not a file of the scratch directory")));
        }
        Ok(path)
    }

    /// Everything of a point but epoch and clocks. The first word of the file determines its kind.
    fn evaluate(&self, path: &Path) -> Result<Point, LabError> {
        let syntax = |message: String| LabError::Syntax { path: path.to_owned(), message };
        let open = || File::open(path).map(BufReader::new).map_err(LabError::read(path));
        let mut kind = [0; 8];
        let length = open()?.take(8).read(&mut kind).map_err(LabError::read(path))?;
        let (cell, training) = (self.cell, &self.split.training);
        if kind[..length].starts_with(b"weights") {
            let words = training.num_words();
            let phi = weights::read(open()?, cell.topics, words).map_err(syntax)?;
            return Ok(Point {
                perplexity: self.split.perplexity(&phi, cell.alpha)?,
                ..Point::default()
            });
        }
        let counts = Assignments::read(open()?, training, cell.topics).map_err(syntax)?;
        self.of_assignments(&counts)
    }

    fn of_assignments(&self, counts: &Assignments) -> Result<Point, LabError> {
        let (cell, training) = (self.cell, &self.split.training);
        let alpha = Alpha::Symmetric(cell.alpha);
        let refused = |error: lda_core::prior::PriorError| self.fail(error.to_string());
        let joint = log_joint(counts, &alpha, cell.beta).map_err(refused)?;
        let predictive = cell
            .predictive
            .then(|| log_predictive(counts, training, &alpha, cell.beta).map_err(refused));
        let perplexity = match self.split.held_out {
            None => None,
            Some(_) => {
                let phi = Phi::from_counts(counts, cell.beta).map_err(refused)?;
                self.split.perplexity(&phi, cell.alpha)?
            }
        };
        let by_length = match cell.length_bins.as_slice() {
            [] => Vec::new(),
            bins => {
                let model = TopicModel::from_counts(counts, alpha, cell.beta);
                by_length(&model, |d| counts.document(d), training, bins)
            }
        };
        let topics = cell.complexity.then(|| {
            let documents = training.num_documents();
            topics_per_document(|d| counts.document(d), documents, cell.topics)
        });
        Ok(Point {
            log_joint: Some(joint.total()),
            log_joint_doc: Some(joint.documents),
            log_joint_word: Some(joint.words),
            log_predictive: predictive.transpose()?,
            perplexity,
            topics_per_document: topics.flatten(),
            by_length,
            ..Point::default()
        })
    }
}

/// Tokens per second between two states; `None` if the clock did not advance.
fn speed(
    before: Option<&Point>,
    point: &Point,
    tokens: u64,
    seconds: fn(&Point) -> f64,
) -> Option<f64> {
    let (epoch, start) = before.map_or((0, 0.0), |before| (before.epoch, seconds(before)));
    let speed = f64::from(point.epoch - epoch) * tokens as f64 / (seconds(point) - start);
    (speed.is_finite() && speed > 0.0).then_some(speed)
}

/// Median speed over the second half of the states.
fn rate(points: &[Point], tokens: u64, seconds: fn(&Point) -> f64) -> f64 {
    let before = std::iter::once(None).chain(points.iter().map(Some));
    let speeds = before.zip(points).map(|(before, point)| speed(before, point, tokens, seconds));
    let speeds: Vec<f64> = speeds.flatten().collect();
    median(speeds[speeds.len() / 2..].iter().copied()).unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn speed_is_that_of_the_second_half() {
        let point = |epoch, cpu_seconds| Point { epoch, cpu_seconds, ..Point::default() };
        let points = [point(0, 0.0), point(5, 5.0), point(10, 7.5), point(20, 12.5)];
        let rate = |points: &[Point]| rate(points, 100, |point| point.cpu_seconds);
        // 100, 200 and 200 tokens per second.
        assert_eq!(rate(&points), 200.0);
        assert_eq!(rate(&points[1..2]), 100.0);
        assert_eq!(rate(&[point(5, 0.0)]), 0.0);
        assert_eq!(rate(&[]), 0.0);
    }
}
