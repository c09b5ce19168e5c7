//! Writes `traffic.csv`, `summary.md` and the plots.

use std::fmt::Write;
use std::path::{Path, PathBuf};

use super::super::LabError;
use super::super::files::write_report;
use super::super::plot::{Chart, Curve, PALETTE, Scale, Scene};
use super::{EpochTraffic, TrafficPlan, TrafficRun};

pub(super) fn write(
    plan: &TrafficPlan,
    runs: &[TrafficRun],
    directory: &Path,
) -> Result<Vec<PathBuf>, LabError> {
    let files = vec![
        ("traffic.csv".to_owned(), csv(runs).into_bytes()),
        ("summary.md".to_owned(), markdown(plan, runs).into_bytes()),
    ];
    write_report(directory, files, draw(plan, runs))
}

/// One CSV row per epoch. Names contain no commas.
fn csv(runs: &[TrafficRun]) -> String {
    let mut out = "corpus,topics,shards,arm,servers,partitions,rounds,tokens,epoch,bytes,sizes,routes,rows,gained,pushed,\
                   answers,totals,plain_rows,plain_gained,plain_pushed,plain_answers,pushed_tokens,heaviest_bytes,\
                   heaviest_seconds,server_seconds,seconds,log_joint_per_token\n"
        .to_owned();
    for run in runs {
        let TrafficRun { of, servers, partitions, rounds, tokens, .. } = run;
        for epoch in &run.epochs {
            let EpochTraffic { bytes, plain, pushed_tokens, .. } = epoch;
            // Writing to a string cannot fail.
            let _ = writeln!(
                out,
                "{},{},{},{},{servers},{partitions},{rounds},{tokens},{},{},{},{},{},{},{},{},{},{},{},{},{},\
                 {pushed_tokens},{:.4},{:.4},{:.3},{:.3},{}",
                of.corpus,
                of.topics,
                of.shards,
                of.arm,
                epoch.epoch,
                bytes.total(),
                bytes.sizes,
                bytes.routes,
                bytes.rows,
                bytes.gained,
                bytes.pushed,
                bytes.answers,
                bytes.totals,
                plain.rows,
                plain.gained,
                plain.pushed,
                plain.answers,
                epoch.heaviest_bytes,
                epoch.heaviest_seconds,
                epoch.server_seconds,
                epoch.seconds,
                epoch.log_joint_per_token.map_or(String::new(), |value| format!("{value:.5}")),
            );
        }
    }
    out
}

/// Bytes of all epochs.
fn all(run: &TrafficRun) -> u64 {
    run.epochs.iter().map(|epoch| epoch.bytes.total()).sum()
}

/// The run that another is compared with.
fn beside<'a>(
    plan: &TrafficPlan,
    runs: &'a [TrafficRun],
    run: &TrafficRun,
) -> Option<&'a TrafficRun> {
    let is_like = |other: &&TrafficRun| {
        other.of.corpus == run.of.corpus
            && other.of.shards == run.of.shards
            && other.of.arm == plan.beside
    };
    runs.iter().find(is_like)
}

/// Reduction in percent.
fn less(bytes: u64, than: u64) -> f64 {
    100.0 * (1.0 - bytes as f64 / than as f64)
}

fn ratio(epoch: &EpochTraffic) -> f64 {
    epoch.plain.content() as f64 / epoch.bytes.content() as f64
}

fn markdown(plan: &TrafficPlan, runs: &[TrafficRun]) -> String {
    let epochs = plan.epochs;
    let repeats = match plan.repeats {
        1 => String::new(),
        repeats => format!("; a server's CPU time is the minimum of {repeats} runs"),
    };
    let mut out = format!(
        "# {}\n\nK = {}, α = 50/K, β = 0.01, seed {}, {epochs} epochs. Bytes are all that would move between workers and \
         servers, with C_k, without the headers of a transport. \"Less\" is the reduction relative to {}. \"Heaviest\" is the \
         heaviest server over the mean, by bytes and by CPU time, each in its worst epoch{repeats}. \"Plain\" is the size of \
         the same rows, deltas, documents and answers as lists of 32-bit numbers, relative to our encoding.\n\n",
        plan.name, plan.topics, plan.seed, plan.beside
    );
    out.push_str(
        "| corpus | tokens | shards | tokens per shard | arm | servers | partitions | MB, epoch 1 | less | MB, all | less | \
         heaviest, bytes | heaviest, time | plain, epoch 1 | plain, last | tokens pushed, last | log joint per token |\n\
         |---|--:|--:|--:|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|\n",
    );
    for run in runs {
        let TrafficRun { of, tokens, servers, partitions, .. } = run;
        let (Some(first), Some(last)) = (run.epochs.first(), run.epochs.last()) else { continue };
        let other = beside(plan, runs, run).filter(|other| other.of.arm != of.arm);
        let percent = |value: Option<f64>| value.map_or(String::new(), |x| format!("{x:.1} %"));
        let less_first = other
            .and_then(|other| Some(less(first.bytes.total(), other.epochs.first()?.bytes.total())));
        let less_all = other.map(|other| less(all(run), all(other)));
        let worst = |of: fn(&EpochTraffic) -> f64| run.epochs.iter().map(of).fold(0.0, f64::max);
        let _ = writeln!(
            out,
            "| {} | {tokens} | {} | {} | {} | {servers} | {partitions} | {:.1} | {} | {:.1} | {} | {:.3} | {:.3} | {:.2} | \
             {:.2} | {:.1} % | {} |",
            of.corpus,
            of.shards,
            tokens / u64::from(of.shards),
            of.arm,
            first.bytes.total() as f64 / 1e6,
            percent(less_first),
            all(run) as f64 / 1e6,
            percent(less_all),
            worst(|epoch| epoch.heaviest_bytes),
            worst(|epoch| epoch.heaviest_seconds),
            ratio(first),
            ratio(last),
            100.0 * last.pushed_tokens as f64 / *tokens as f64,
            last.log_joint_per_token.map_or(String::new(), |value| format!("{value:.4}")),
        );
    }
    out.push_str(&encoding(runs));
    let mut machines: Vec<String> = Vec::new();
    for run in runs {
        let machine = format!("{}; commit {}", run.machine.describe(), run.machine.commit);
        if !machines.contains(&machine) {
            machines.push(machine);
        }
    }
    let _ = writeln!(out, "\nMade on {}.", machines.join("; and on "));
    out
}

/// Encoded size of each kind of content relative to plain lists.
fn encoding(runs: &[TrafficRun]) -> String {
    let mut out = "\nMB by kind of content, and the size as lists of 32-bit numbers relative to it:\n\n\
                   | corpus | shards | arm | epoch | rows | | gained | | documents | | answers | |\n\
                   |---|--:|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|\n"
        .to_owned();
    for TrafficRun { of, epochs, .. } in runs {
        for EpochTraffic { epoch, bytes, plain, .. } in
            epochs.first().into_iter().chain(epochs.last())
        {
            let cell = |bytes: u64, plain: u64| match bytes {
                0 => "|  |  ".to_owned(),
                _ => format!("| {:.2} | {:.2} ", bytes as f64 / 1e6, plain as f64 / bytes as f64),
            };
            let cells = [
                cell(bytes.rows, plain.rows),
                cell(bytes.gained, plain.gained),
                cell(bytes.pushed, plain.pushed),
                cell(bytes.answers, plain.answers),
            ];
            let _ = writeln!(
                out,
                "| {} | {} | {} | {epoch} {}|",
                of.corpus,
                of.shards,
                of.arm,
                cells.concat()
            );
        }
    }
    out
}

fn draw(plan: &TrafficPlan, runs: &[TrafficRun]) -> Vec<(String, Scene)> {
    let mut scenes = Vec::new();
    let color = |arm: &str| {
        PALETTE[plan.arm.keys().position(|name| name == arm).unwrap_or(0) % PALETTE.len()]
    };
    for corpus in &plan.corpora {
        for &shards in &plan.shards {
            let here =
                || runs.iter().filter(|run| run.of.corpus == *corpus && run.of.shards == shards);
            let name = format!("{corpus}-{shards}");
            let note = format!("K = {}, {shards} shards of the documents", plan.topics);
            let chart =
                |title: &str, y_label: &str, y_low, of: &dyn Fn(&EpochTraffic) -> Option<f64>| {
                    let curves = here().map(|run| Curve {
                        label: run.of.arm.clone(),
                        color: color(&run.of.arm),
                        dashed: run.of.arm == plan.beside,
                        points: run
                            .epochs
                            .iter()
                            .filter_map(|epoch| Some((f64::from(epoch.epoch), of(epoch)?)))
                            .collect(),
                    });
                    Chart {
                        title: format!("{title}, {corpus}"),
                        note: note.clone(),
                        x_label: "epoch".to_owned(),
                        y_label: y_label.to_owned(),
                        x_scale: Scale::Linear,
                        y_low,
                        y_high: None,
                        curves: curves.collect(),
                        marks: Vec::new(),
                    }
                    .draw()
                };
            let megabytes = |bytes: u64| Some(bytes as f64 / 1e6);
            let charts = [
                (
                    "bytes",
                    chart("Bytes per epoch", "MB", Some(0.0), &|e| megabytes(e.bytes.total())),
                ),
                (
                    "heaviest",
                    chart("Heaviest server", "bytes over the mean", Some(0.9), &|e| {
                        Some(e.heaviest_bytes)
                    }),
                ),
                (
                    "plain",
                    chart("Plain lists over our encoding", "relative size", Some(0.0), &|e| {
                        Some(ratio(e))
                    }),
                ),
            ];
            let drawn = charts
                .into_iter()
                .filter_map(|(what, scene)| Some((format!("{name}-{what}"), scene?)));
            scenes.extend(drawn);
        }
    }
    scenes.extend(draw_reduction(plan, runs).map(|scene| ("less-by-tokens".to_owned(), scene)));
    scenes
}

/// Reduction of each arm's bytes relative to the reference, by tokens per part.
fn draw_reduction(plan: &TrafficPlan, runs: &[TrafficRun]) -> Option<Scene> {
    let mut curves: Vec<Curve> = Vec::new();
    for corpus in &plan.corpora {
        for arm in plan.arm.keys().filter(|arm| **arm != plan.beside) {
            let of_arm = runs.iter().filter(|run| run.of.corpus == *corpus && run.of.arm == *arm);
            let mut points: Vec<(f64, f64)> = of_arm
                .filter_map(|run| {
                    let other = beside(plan, runs, run)?;
                    Some((run.tokens as f64 / f64::from(run.of.shards), less(all(run), all(other))))
                })
                .collect();
            points.sort_by(|a, b| a.0.total_cmp(&b.0));
            let color = PALETTE[curves.len() % PALETTE.len()];
            curves.push(Curve { label: format!("{corpus}, {arm}"), color, dashed: false, points });
        }
    }
    Chart {
        title: format!("Fewer bytes than {}", plan.beside),
        note: format!("K = {}, the first {} epochs", plan.topics, plan.epochs),
        x_label: "tokens per shard of the documents".to_owned(),
        y_label: "less, %".to_owned(),
        x_scale: Scale::Log,
        y_low: Some(0.0),
        y_high: None,
        curves,
        marks: Vec::new(),
    }
    .draw()
}

#[cfg(test)]
mod tests {
    use super::super::{Kinds, TrafficRun};
    use super::*;
    use crate::lab::Machine;

    #[test]
    fn arms_are_compared_with_the_reference_arm() {
        let plan: TrafficPlan = toml::from_str(
            "name = \"x\"\ncorpora = [\"kos\"]\nshards = [2, 4]\nepochs = 2\n[arm.symmetric]\n[arm.other]",
        )
        .unwrap();
        let runs: Vec<TrafficRun> = plan
            .runs()
            .into_iter()
            .map(|of| {
                let rows =
                    if of.arm == "other" { 600 } else { 1000 } * 1_000_000 / u64::from(of.shards);
                let epoch = |epoch| EpochTraffic {
                    epoch,
                    bytes: Kinds { rows, ..Kinds::default() },
                    plain: Kinds { rows: 3 * rows, ..Kinds::default() },
                    heaviest_bytes: 1.05,
                    heaviest_seconds: 1.2,
                    log_joint_per_token: (epoch == 2).then_some(-8.5),
                    ..EpochTraffic::default()
                };
                TrafficRun {
                    machine: Machine::detect(),
                    tokens: 8000,
                    words: 10,
                    servers: 2,
                    partitions: 2,
                    rounds: 1,
                    epochs: vec![epoch(1), epoch(2)],
                    of,
                }
            })
            .collect();
        let table = markdown(&plan, &runs);
        let row = "| kos | 8000 | 4 | 2000 | other | 2 | 2 | 150.0 | 40.0 % | 300.0 | 40.0 % | 1.050 | 1.200 | 3.00 | 3.00 |";
        assert!(table.contains(row), "{table}");
        assert!(
            table.contains("| kos | 4 | other | 2 | 150.00 | 3.00 |  |  |  |  |  |  |"),
            "{table}"
        );
        assert!(table.contains("| symmetric | 2 | 2 | 250.0 |  | 500.0 |  |"), "{table}");
        assert_eq!(csv(&runs).lines().count(), 1 + 2 * 4);
        let columns: Vec<usize> = csv(&runs).lines().map(|line| line.split(',').count()).collect();
        assert!(columns.iter().all(|&count| count == columns[0]), "{columns:?}");
        let scenes = draw(&plan, &runs);
        let names: Vec<&str> = scenes.iter().map(|scene| scene.0.as_str()).collect();
        assert!(names.contains(&"kos-4-bytes") && names.contains(&"less-by-tokens"), "{names:?}");
    }
}
