//! Writes `links.csv`, `summary.md` and the plots.

use std::fmt::Write;
use std::path::{Path, PathBuf};

use super::super::files::write_report;
use super::super::plot::{Chart, Curve, PALETTE, Scale, Scene};
use super::super::{LabError, median};
use super::{CpuSeconds, EpochLine, LinksPlan, LinksRun};

pub(super) fn write(
    plan: &LinksPlan,
    runs: &[LinksRun],
    directory: &Path,
) -> Result<Vec<PathBuf>, LabError> {
    let files = vec![
        ("links.csv".to_owned(), csv(runs).into_bytes()),
        ("summary.md".to_owned(), markdown(plan, runs).into_bytes()),
    ];
    write_report(directory, files, draw(plan, runs))
}

/// One CSV row per epoch. Names contain no commas.
fn csv(runs: &[LinksRun]) -> String {
    let mut out = "corpus,topics,workers,servers,shards,rate,arm,repeat,epoch,tokens,seconds,bytes,waited_servers,\
                   waited_rounds,log_joint\n"
        .to_owned();
    for LinksRun { of, epochs, .. } in runs {
        for EpochLine { epoch, tokens, seconds, bytes, waited_seconds, log_joint } in epochs {
            // Writing to a string cannot fail.
            let _ = writeln!(
                out,
                "{},{},{},{},{},{},{},{},{epoch},{tokens},{seconds:.4},{},{:.4},{:.4},{}",
                of.corpus,
                of.topics,
                of.workers,
                of.servers,
                of.shards,
                of.rate,
                of.arm,
                of.repeat,
                bytes.all,
                waited_seconds.servers,
                waited_seconds.rounds,
                log_joint.map_or(String::new(), |joint| format!("{:.5}", joint / *tokens as f64)),
            );
        }
    }
    out
}

/// Medians of the measured epochs of an arm at a rate.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Typical {
    seconds: f64,
    megabytes: f64,
    /// Share of the workers' time spent waiting for servers.
    servers: f64,
    rounds: f64,
    /// Total waiting time per worker.
    waited: f64,
    log_joint: f64,
    /// CPU seconds per epoch of all nodes, and the share of servers; not a number if they are not known.
    cpu: f64,
    cpu_of_servers: f64,
    /// Tokens per CPU second.
    tokens: f64,
}

fn typical(runs: &[LinksRun], arm: &str, rate: u32) -> Option<Typical> {
    let here = || runs.iter().filter(move |run| run.of.arm == arm && run.of.rate == rate);
    let middle = |of: &dyn Fn(&LinksRun, &EpochLine) -> f64| {
        let each = here().filter_map(|run| {
            let measured = &run.epochs[run.of.unmeasured()..];
            median(measured.iter().map(|line| of(run, line)))
        });
        median(each)
    };
    let share = |of: fn(&EpochLine) -> f64| {
        middle(&move |run, line| of(line) / (line.seconds * f64::from(run.of.workers)))
    };
    let cpu = |of: &dyn Fn(&LinksRun, &CpuSeconds) -> f64| {
        let each = here().filter_map(|run| Some(of(run, run.cpu.as_ref()?)));
        median(each).unwrap_or(f64::NAN)
    };
    let joints = here().filter_map(|run| {
        let last = run.epochs.last()?;
        Some(last.log_joint? / last.tokens as f64)
    });
    Some(Typical {
        seconds: middle(&|_, line| line.seconds)?,
        megabytes: middle(&|_, line| line.bytes.all as f64 / 1e6)?,
        servers: share(|line| line.waited_seconds.servers)?,
        rounds: share(|line| line.waited_seconds.rounds)?,
        waited: middle(&|run, line| {
            let both = line.waited_seconds.servers + line.waited_seconds.rounds;
            both / f64::from(run.of.workers)
        })?,
        log_joint: median(joints).unwrap_or(f64::NAN),
        cpu: cpu(&|_, cpu| cpu.all()),
        cpu_of_servers: cpu(&|_, cpu| cpu.servers / cpu.all()),
        tokens: cpu(&|run, cpu| run.epochs[0].tokens as f64 / cpu.all()),
    })
}

fn rate_name(rate: u32) -> String {
    if rate == 0 { "unlimited".to_owned() } else { format!("{rate} Mbit/s") }
}

fn markdown(plan: &LinksPlan, runs: &[LinksRun]) -> String {
    let Some(first) = runs.first() else { return String::new() };
    let of = &first.of;
    let mut out = format!(
        "# {}\n\n{}, K = {}, default priors, seed {}, {} workers, {} servers and a master, each a process in \
         its own network namespace; {} shards of the documents. The links of servers are limited in rate, each way. Medians \
         of the last {} of {} epochs, and of {} runs. \"Faster\" is relative to {}; \"hidden\" is the reduction of a \
         worker's waiting time relative to that arm at the same rate.\n\n",
        plan.name,
        of.corpus,
        of.topics,
        of.seed,
        plan.workers,
        plan.servers,
        of.shards,
        plan.epochs - plan.epochs / 2,
        plan.epochs,
        plan.repeats,
        plan.beside
    );
    for (arm, training) in &plan.arm {
        let table = training.to_string();
        let keys: Vec<&str> = table.lines().collect();
        let keys = if keys.is_empty() { "the defaults".to_owned() } else { keys.join(", ") };
        let _ = writeln!(out, "- {arm}: {keys}");
    }
    out.push_str(
        "\n| links | arm | s per epoch | faster | MB per epoch | waited for servers | for rounds | s waited by a worker | hidden | \
         log joint per token | CPU s per epoch | of servers | M tokens per CPU s |\n\
         |---|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|\n",
    );
    for &rate in &plan.rates {
        let beside = typical(runs, &plan.beside, rate);
        for arm in plan.arm.keys() {
            let Some(here) = typical(runs, arm, rate) else { continue };
            let other = beside.filter(|_| *arm != plan.beside);
            let _ = writeln!(
                out,
                "| {} | {arm} | {:.3} | {} | {:.1} | {:.0} % | {:.0} % | {:.3} | {} | {:.4} | {:.2} | {:.0} % | {:.2} |",
                rate_name(rate),
                here.seconds,
                other.map_or(String::new(), |other| format!("{:.2}", other.seconds / here.seconds)),
                here.megabytes,
                100.0 * here.servers,
                100.0 * here.rounds,
                here.waited,
                other.map_or(String::new(), |other| {
                    format!("{:.0} %", 100.0 * (1.0 - here.waited / other.waited))
                }),
                here.log_joint,
                here.cpu,
                100.0 * here.cpu_of_servers,
                here.tokens * 1e-6,
            );
        }
    }
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

fn draw(plan: &LinksPlan, runs: &[LinksRun]) -> Vec<(String, Scene)> {
    let Some(first) = runs.first() else { return Vec::new() };
    let of = &first.of;
    let note = format!(
        "{}, K = {}, {} workers, {} servers, {} shards",
        of.corpus, of.topics, of.workers, of.servers, of.shards
    );
    let chart =
        |title: &str, labels: [&str; 2], x_scale, points: &dyn Fn(&str) -> Vec<(f64, f64)>| {
            let [x_label, y_label] = labels;
            let curves = plan.arm.keys().enumerate().map(|(at, arm)| Curve {
                label: arm.clone(),
                color: PALETTE[at % PALETTE.len()],
                dashed: *arm == plan.beside,
                points: points(arm),
            });
            Chart {
                title: title.to_owned(),
                note: note.clone(),
                x_label: x_label.to_owned(),
                y_label: y_label.to_owned(),
                x_scale,
                y_low: (y_label == "seconds").then_some(0.0),
                y_high: None,
                curves: curves.collect(),
                marks: Vec::new(),
            }
            .draw()
        };
    let mut rates: Vec<u32> = plan.rates.iter().copied().filter(|&rate| rate > 0).collect();
    rates.sort_unstable();
    let by_rate = |arm: &str| {
        let point = |&rate: &u32| Some((f64::from(rate), typical(runs, arm, rate)?.seconds));
        rates.iter().filter_map(point).collect()
    };
    let mut scenes = Vec::new();
    let title = "Seconds per epoch, by the rate of servers' links";
    scenes.extend(
        chart(title, ["Mbit/s", "seconds"], Scale::Log, &by_rate)
            .map(|it| ("seconds-by-rate".to_owned(), it)),
    );
    for &rate in &plan.rates {
        let by_epoch = |arm: &str| {
            let run = runs.iter().find(|run| run.of.arm == arm && run.of.rate == rate);
            let lines = run.map_or(&[][..], |run| &run.epochs);
            lines.iter().map(|line| (f64::from(line.epoch), line.seconds)).collect()
        };
        let title = format!("Seconds per epoch, links {}", rate_name(rate));
        let name = format!("seconds-{rate}");
        let labels = ["epoch", "seconds"];
        scenes.extend(chart(&title, labels, Scale::Linear, &by_epoch).map(|it| (name, it)));
        let by_time = |arm: &str| {
            let run = runs.iter().find(|run| run.of.arm == arm && run.of.rate == rate);
            let mut seconds = 0.0;
            let points = run.map_or(&[][..], |run| &run.epochs).iter().filter_map(|line| {
                seconds += line.seconds;
                Some((seconds, line.log_joint? / line.tokens as f64))
            });
            points.collect::<Vec<_>>()
        };
        if plan.arm.keys().any(|arm| by_time(arm).len() > 1) {
            let title = format!("Log joint likelihood by time, links {}", rate_name(rate));
            let name = format!("likelihood-by-time-{rate}");
            let labels = ["seconds", "log joint per token"];
            scenes.extend(chart(&title, labels, Scale::Linear, &by_time).map(|it| (name, it)));
        }
    }
    scenes
}

#[cfg(test)]
mod tests {
    use super::super::{Moved, Waited};
    use super::*;
    use crate::lab::Machine;

    #[test]
    fn arms_are_compared_at_the_same_rate() {
        let plan: LinksPlan = toml::from_str(
            "name = \"x\"\ncorpus = \"kos\"\nworkers = 2\nrates = [10, 100]\nepochs = 4\n[arm.symmetric]\nrouting = \"pull\"\n[arm.other]",
        )
        .unwrap();
        let run = |of: super::super::Of| {
            let slow = if of.rate == 10 { 4.0 } else { 2.0 };
            let factor = if of.arm == "other" { 0.5 } else { 1.0 };
            let line = |epoch: u32| EpochLine {
                epoch,
                tokens: 100,
                // The first half of the epochs is ignored.
                seconds: if epoch < 3 { 99.0 } else { slow * factor },
                bytes: Moved { all: 3_000_000 },
                waited_seconds: Waited { servers: slow * factor * factor, rounds: 0.0 },
                log_joint: (epoch == 4).then_some(-850.0),
            };
            let first = CpuSeconds { master: 0.0, servers: 1.0, workers: 2.0 };
            let [servers, workers] = [1.0 + 2.0 * slow, 2.0 + 6.0 * slow];
            let last = CpuSeconds { servers, workers, ..first };
            let cpu = last.per_epoch_since(&first, 2);
            let epochs = (1..=4).map(line).collect();
            LinksRun { machine: Machine::detect(), cpu: Some(cpu), epochs, of }
        };
        let runs: Vec<LinksRun> = plan.runs().into_iter().map(run).collect();
        let table = markdown(&plan, &runs);
        for row in [
            "| 10 Mbit/s | other | 2.000 | 2.00 | 3.0 | 25 % | 0 % | 0.500 | 75 % | -8.5000 | 16.00 | 25 % | 0.00 |",
            "| 100 Mbit/s | symmetric | 2.000 |  | 3.0 | 50 % | 0 % | 1.000 |  | -8.5000 | 8.00 | 25 % | 0.00 |",
        ] {
            assert!(table.contains(row), "{table}");
        }
        assert!(table.contains("- symmetric: routing = \"pull\"\n"), "{table}");
        assert_eq!(csv(&runs).lines().count(), 17);
        let names: Vec<String> = draw(&plan, &runs).into_iter().map(|scene| scene.0).collect();
        assert_eq!(names, ["seconds-by-rate", "seconds-10", "seconds-100"]);
        // With evaluations before the last epoch.
        let mut known = runs;
        known.iter_mut().for_each(|run| run.epochs[1].log_joint = Some(-900.0));
        let names: Vec<String> = draw(&plan, &known).into_iter().map(|scene| scene.0).collect();
        assert_eq!(names[1..3], ["seconds-10", "likelihood-by-time-10"]);
    }
}
