//! The Markdown table.

use std::fmt::Write;

use super::super::{Machine, Plan, Results};
use super::summary::{Arrival, Group};

pub(super) fn markdown(plan: &Plan, results: &Results, groups: &[Group]) -> String {
    let mut out = format!("# {}\n", plan.name);
    let mut places: Vec<(u32, &str)> = Vec::new();
    for group in groups {
        let place = (group.topics, group.corpus.as_str());
        if !places.contains(&place) {
            places.push(place);
        }
    }
    for (topics, corpus) in places {
        let here: Vec<&Group> =
            groups.iter().filter(|g| g.topics == topics && g.corpus.as_str() == corpus).collect();
        // Writing to a string does not fail.
        let _ = writeln!(out, "\n## {corpus}, K = {topics}\n\n{}", section(&here));
    }
    out.push_str(&notes(plan, results));
    out
}

fn section(groups: &[&Group]) -> String {
    let levels: Vec<&Arrival> = groups
        .iter()
        .map(|group| &group.arrivals)
        .max_by_key(|a| a.len())
        .into_iter()
        .flatten()
        .collect();
    let mut header = "| sampler | threads | seeds |".to_owned();
    let mut rule = "|---|--:|--:|".to_owned();
    for level in &levels {
        let _ = write!(header, " s to {} % ({:.3}) |", level.percent, level.log_joint);
        rule.push_str("--:|");
    }
    header.push_str(
        " M tokens / CPU s | M tokens / s | epochs | CPU s | log joint a token | acceptance | peak MiB |",
    );
    rule.push_str("--:|--:|--:|--:|--:|--:|--:|");
    let mut out = format!("{header}\n{rule}");
    for group in groups {
        let _ = write!(out, "\n{}", row(group, levels.len()));
    }
    out
}

fn row(group: &Group, levels: usize) -> String {
    let mut out = format!("| {} | {} | {} |", group.sampler, group.threads, group.seeds);
    if group.seeds == 0 {
        let why = group.failure.as_deref().unwrap_or_default().replace('|', "\\|");
        let _ = write!(out, " failed: {why} |{}", " |".repeat(levels + 6));
        return out;
    }
    for i in 0..levels {
        let text = group.arrivals.get(i).map_or("".to_owned(), |a| time(a, group.seeds));
        let _ = write!(out, " {text} |");
    }
    let dash = || "–".to_owned();
    let _ = write!(
        out,
        " {:.2} | {:.2} | {:.0} | {:.1} | {:.4} | {} | {} |",
        group.tokens_per_cpu_second / 1e6,
        group.tokens_per_second / 1e6,
        group.epochs,
        group.cpu_seconds,
        group.log_joint,
        group.acceptance.map_or_else(dash, |share| format!("{share:.3}")),
        group.peak_memory.map_or_else(dash, |bytes| format!("{:.0}", bytes / f64::from(1 << 20))),
    );
    out
}

/// Median seconds, and how many seeds arrived unless all or none did.
fn time(arrival: &Arrival, seeds: usize) -> String {
    let seconds = match arrival.cpu_seconds {
        s if s.is_infinite() => "never".to_owned(),
        s if s < 10.0 => format!("{s:.2}"),
        s => format!("{s:.1}"),
    };
    if arrival.arrived == seeds || arrival.arrived == 0 {
        seconds
    } else {
        format!("{seconds} ({}/{seeds})", arrival.arrived)
    }
}

fn notes(plan: &Plan, results: &Results) -> String {
    let mut out = String::from(
        "\nMedians over the seeds. Seconds are CPU seconds of sampling, all threads together, \
         without reading, start and evaluation. \"s to 99 % (x)\": until the log joint a token \
         first was x, linear between evaluated epochs; a seed that did not get there counts as \
         infinite, and (a/b) says how many did. Speed: median over the second half of the epochs. \
         Peak: largest resident set of the process, reading included.\n",
    );
    let every = format!("evaluated every {} epochs", plan.evaluate_every);
    let alpha = plan.alpha.map_or("50/K".to_owned(), |alpha| alpha.to_string());
    let _ = writeln!(out, "\nα = {alpha}, β = {}; {every}.", plan.beta);
    for (sampler, tuning) in &plan.sampler {
        let tuning = toml::to_string(tuning).unwrap_or_default();
        let _ = writeln!(out, "{sampler}: {}.", tuning.trim().replace('\n', ", "));
    }
    let mut machines: Vec<&Machine> = Vec::new();
    for record in &results.records {
        if !machines.contains(&&record.machine) {
            machines.push(&record.machine);
        }
    }
    for machine in machines {
        let _ = writeln!(out, "\nMachine: {}.", machine.describe());
    }
    let loads = results.records.iter().filter_map(|record| record.load);
    if let Some(most) = loads.max_by(f64::total_cmp) {
        let _ = writeln!(out, "Highest load average at the start of a run: {most:.2}.");
    }
    for failure in &results.failures {
        let _ = writeln!(out, "\nFailed: {}: {}", failure.cell.name(), failure.message);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::super::super::thresholds::Thresholds;
    use super::super::super::{Cell, Failure};
    use super::super::group;
    use super::super::tests::{kos_record, results};
    use super::*;

    #[test]
    fn a_table_a_corpus_and_k_with_as_many_columns_in_each_row() {
        let mut all = results([kos_record(1, 1.0, -9.0), kos_record(2, 1.0, -9.15)]);
        let cell = all.records[0].cell.clone();
        let cell = Cell { threads: 2, ..cell };
        all.failures.push(Failure { cell, message: "a|b".into() });
        let groups = group(&all, &Thresholds::built_in());
        let text = markdown(&Plan::default(), &all, &groups);
        let rows: Vec<&str> = text.lines().filter(|line| line.starts_with('|')).collect();
        assert_eq!(rows.len(), 4, "{text}");
        let columns = |row: &str| row.replace("\\|", "").matches('|').count();
        assert!(rows.iter().all(|row| columns(row) == columns(rows[0])), "{text}");
        assert!(text.contains("## kos, K = 1000"));
        assert!(rows[2].contains(" never (1/2) |"), "{text}");
        assert!(rows[3].contains("failed: a\\|b"), "{text}");
    }
}
