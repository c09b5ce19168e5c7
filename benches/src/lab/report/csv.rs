//! CSV output: one row per evaluated epoch, and one row per run.

use std::fmt::{Display, Write};

use super::super::lengths::names;
use super::super::thresholds::{Thresholds, crossing};
use super::super::tuning::describe;
use super::super::{Cell, Point, Record, Results};

/// A row under construction.
#[derive(Default)]
struct Row(String);

impl Row {
    fn add(&mut self, value: impl Display) -> &mut Self {
        if !self.0.is_empty() {
            self.0.push(',');
        }
        let text = value.to_string();
        if text.contains(['"', ',', '\n', '\r']) {
            // Writing to a string cannot fail.
            let _ = write!(self.0, "\"{}\"", text.replace('"', "\"\""));
        } else {
            self.0.push_str(&text);
        }
        self
    }

    /// Appends a value, or an empty field.
    fn maybe(&mut self, value: Option<impl Display>) -> &mut Self {
        match value {
            Some(value) => self.add(value),
            None => self.add(""),
        }
    }

    fn cell(&mut self, cell: &Cell) -> &mut Self {
        self.add(cell.method()).add(&cell.corpus).add(cell.topics).add(cell.threads).add(cell.seed)
    }
}

const CELL: &str = "sampler,corpus,topics,threads,seed";

/// One row per evaluated epoch; epoch 0 is the random start.
pub(super) fn epochs(records: &[Record]) -> String {
    let mut out = format!(
        "{CELL},epoch,cpu_seconds,wall_seconds,tokens_per_cpu_second,changed,acceptance,mh_steps,\
         log_joint,log_joint_doc,log_joint_word,log_joint_per_token,perplexity,\
         topics_per_document,complexity_ratio,log_predictive_per_token,\
         acceptance_with_repeats\n"
    );
    for record in records {
        let tokens = record.outcome.tokens as f64;
        let mut before: Option<&Point> = None;
        for point in &record.outcome.points {
            let rate = before.map(|before| {
                f64::from(point.epoch - before.epoch) * tokens
                    / (point.cpu_seconds - before.cpu_seconds)
            });
            let mut row = Row::default();
            row.cell(&record.cell)
                .add(point.epoch)
                .add(format!("{:.6}", point.cpu_seconds))
                .add(format!("{:.6}", point.wall_seconds))
                .maybe(rate.map(|rate| format!("{rate:.0}")))
                .maybe(point.changed.map(|share| format!("{share:.6}")))
                .maybe(point.acceptance.map(|share| format!("{share:.6}")))
                .maybe(point.mh_steps)
                .maybe(point.log_joint)
                .maybe(point.log_joint_doc)
                .maybe(point.log_joint_word)
                .maybe(point.log_joint.map(|joint| format!("{:.6}", joint / tokens)))
                .maybe(point.perplexity.map(|perplexity| format!("{perplexity:.3}")))
                .maybe(point.topics_per_document.map(|topics| format!("{topics:.4}")))
                .maybe(point.complexity_ratio().map(|ratio| format!("{ratio:.4}")))
                .maybe(point.log_predictive.map(|log| format!("{:.6}", log / tokens)))
                .maybe(point.acceptance_with_repeats.map(|share| format!("{share:.6}")));
            out.push_str(&row.0);
            out.push('\n');
            before = Some(point);
        }
    }
    out
}

/// One row per evaluated epoch and non-empty length bin.
pub(super) fn lengths(records: &[Record]) -> String {
    let mut out =
        format!("{CELL},epoch,cpu_seconds,wall_seconds,lengths,log_likelihood_per_token\n");
    for record in records {
        let names = names(&record.cell.length_bins);
        for point in &record.outcome.points {
            for (name, log) in names.iter().zip(&point.by_length) {
                let Some(log) = log else { continue };
                let mut row = Row::default();
                row.cell(&record.cell)
                    .add(point.epoch)
                    .add(format!("{:.6}", point.cpu_seconds))
                    .add(format!("{:.6}", point.wall_seconds))
                    .add(name)
                    .add(format!("{log:.6}"));
                out.push_str(&row.0);
                out.push('\n');
            }
        }
    }
    out
}

/// One row per run. Seconds to a likelihood are CPU seconds of sampling: `inf` if the run did not
/// reach it, empty if there is no target.
pub(super) fn cells(results: &Results, thresholds: &Thresholds) -> String {
    let percents = thresholds.percents();
    let mut out = format!(
        "{CELL},status,alpha,beta,epochs,cpu_seconds,wall_seconds,tokens_per_cpu_second,\
         tokens_per_second,log_joint_per_token,perplexity,acceptance"
    );
    for percent in &percents {
        // Writing to a string cannot fail.
        let _ = write!(out, ",cpu_seconds_to_{percent}");
    }
    out.push_str(
        ",peak_bytes,peak_bytes_reading,corpus_bytes,state_bytes,tokens,documents,words,\
         read_seconds,start_seconds,load,jobs,isa,ranges,corpus_fingerprint,assignments_fingerprint,\
         held_out,kind,resolved_sampler,options,baseline_version,baseline_options,baseline_clock,commit,compiler,build,system,cpu,cores,\
         caches\n",
    );
    for record in &results.records {
        out.push_str(&finished(record, &percents, thresholds).0);
        out.push('\n');
    }
    let columns = out.lines().next().map_or(0, |header| header.split(',').count());
    for failure in &results.failures {
        let mut row = Row::default();
        row.cell(&failure.cell).add(format!("failed: {}", failure.message));
        for _ in 6..columns {
            row.add("");
        }
        out.push_str(&row.0);
        out.push('\n');
    }
    out
}

fn finished(record: &Record, percents: &[&str], thresholds: &Thresholds) -> Row {
    let (cell, outcome, machine) = (&record.cell, &record.outcome, &record.machine);
    let last = outcome.points.last();
    let score = last.map(|point| point.score(outcome.tokens));
    let (resolved, baseline) = (outcome.resolved.as_ref(), outcome.baseline.as_ref());
    let mut row = Row::default();
    row.cell(cell)
        .add("finished")
        .add(cell.alpha)
        .add(cell.beta)
        .maybe(last.map(|point| point.epoch))
        .maybe(last.map(|point| format!("{:.6}", point.cpu_seconds)))
        .maybe(last.map(|point| format!("{:.6}", point.wall_seconds)))
        .add(format!("{:.0}", outcome.tokens_per_cpu_second))
        .add(format!("{:.0}", outcome.tokens_per_second))
        .maybe(score.and_then(|score| score.log_joint).map(|joint| format!("{joint:.6}")))
        .maybe(score.and_then(|score| score.perplexity).map(|x| format!("{x:.3}")))
        .maybe(last.and_then(|point| point.acceptance).map(|share| format!("{share:.6}")));
    let levels = thresholds.of(cell);
    for percent in percents {
        let level = levels.iter().find(|level| level.percent == *percent);
        row.maybe(level.map(|level| {
            let found = crossing(&outcome.points, outcome.tokens, level.log_joint);
            found.map_or("inf".to_owned(), |found| format!("{:.4}", found.cpu_seconds))
        }));
    }
    row.maybe(outcome.memory.peak)
        .maybe(outcome.memory.peak_reading)
        .maybe(outcome.memory.corpus)
        .maybe(outcome.memory.state)
        .add(outcome.tokens)
        .add(outcome.documents)
        .add(outcome.words)
        .add(format!("{:.3}", outcome.read_seconds))
        .maybe(outcome.start_seconds.map(|seconds| format!("{seconds:.3}")))
        .maybe(record.load)
        .add(record.jobs)
        .maybe(resolved.map(|resolved| resolved.isa))
        .maybe(resolved.map(|resolved| resolved.ranges))
        .add(format!("{:016x}", outcome.corpus_fingerprint))
        .maybe(outcome.assignments_fingerprint.map(|hash| format!("{hash:016x}")))
        .maybe(cell.held_out)
        .add(cell.sampler)
        .maybe(resolved.map(|resolved| resolved.sampler.name()))
        .add(describe(&cell.overrides))
        .maybe(baseline.map(|baseline| &baseline.version))
        .maybe(baseline.map(|baseline| &baseline.options))
        .maybe(baseline.map(|baseline| &baseline.clock))
        .add(&machine.commit)
        .add(&machine.compiler)
        .add(&machine.build)
        .add(&machine.system)
        .add(&machine.cpu)
        .add(machine.cores)
        .add(machine.caches.join(" "));
    row
}

#[cfg(test)]
mod tests {
    use super::super::super::Failure;
    use super::super::tests::{kos_record, results};
    use super::*;

    /// Fields of each line; quoted fields may contain commas.
    fn parse(text: &str) -> Vec<Vec<String>> {
        let mut lines = Vec::new();
        for line in text.lines() {
            let (mut fields, mut quoted) = (vec![String::new()], false);
            for c in line.chars() {
                match c {
                    '"' => quoted = !quoted,
                    ',' if !quoted => fields.push(String::new()),
                    c => fields.last_mut().unwrap().push(c),
                }
            }
            lines.push(fields);
        }
        lines
    }

    fn column(lines: &[Vec<String>], name: &str) -> Vec<String> {
        let i = lines[0].iter().position(|field| field == name).unwrap();
        lines[1..].iter().map(|line| line[i].clone()).collect()
    }

    #[test]
    fn one_row_per_evaluated_epoch() {
        let mut first = kos_record(1, 1.0, -9.0);
        let last = first.outcome.points.last_mut().unwrap();
        (last.topics_per_document, last.acceptance) = (Some(8.0), Some(0.25));
        last.log_predictive = Some(-7500.0);
        let lines = parse(&epochs(&[first, kos_record(2, 2.0, -9.0)]));
        assert_eq!(column(&lines, "complexity_ratio")[1..4], ["", "2.0000", ""]);
        assert_eq!(column(&lines, "log_predictive_per_token")[1..4], ["", "-7.500000", ""]);
        assert!(lines.iter().all(|line| line.len() == lines[0].len()), "{lines:?}");
        assert_eq!(column(&lines, "epoch"), ["0", "10", "20", "0", "10", "20"]);
        assert_eq!(column(&lines, "tokens_per_cpu_second")[..3], ["", "10000", "10000"]);
        assert_eq!(column(&lines, "log_joint_per_token")[2], "-9.000000");
    }

    #[test]
    fn one_row_per_epoch_and_length() {
        let mut record = kos_record(1, 1.0, -9.0);
        record.cell.length_bins = vec![10, 20];
        record.outcome.points[0].by_length = vec![Some(-9.0), None, Some(-8.5)];
        let lines = parse(&lengths(&[record]));
        assert_eq!(column(&lines, "lengths"), ["1-10", "over 20"]);
        assert_eq!(column(&lines, "log_likelihood_per_token"), ["-9.000000", "-8.500000"]);
    }

    #[test]
    fn one_row_per_run_finished_or_failed() {
        let mut all = results([kos_record(1, 1.0, -9.0), kos_record(2, 1.0, -9.5)]);
        all.records[1].cell.variant = Some("again".into());
        all.records[1].cell.overrides.mh_steps = Some(2);
        let cell = all.records[0].cell.clone();
        all.failures.push(Failure { cell, message: "said \"no\", and left".into() });
        let lines = parse(&cells(&all, &Thresholds::built_in()));
        assert!(lines.iter().all(|line| line.len() == lines[0].len()), "{lines:?}");
        assert_eq!(column(&lines, "cpu_seconds_to_99.8")[1..], ["inf", ""]);
        assert!(column(&lines, "cpu_seconds_to_99.8")[0].starts_with("1."));
        assert_eq!(column(&lines, "sampler"), ["f-plus", "again", "f-plus"]);
        assert_eq!(column(&lines, "kind"), ["f-plus", "f-plus", ""]);
        assert_eq!(column(&lines, "options"), ["", "mh-steps = 2", ""]);
        assert_eq!(column(&lines, "status")[2], "failed: said no, and left");
        let cores = all.records[0].machine.cores.to_string();
        assert_eq!(column(&lines, "cores"), [cores.as_str(), &cores, ""]);
    }
}
