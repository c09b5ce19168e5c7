//! The Markdown table.

use std::fmt::Write;

use super::super::tuning::describe;
use super::super::{Plan, Results};
use super::machines::Machines;
use super::overview::overview;
use super::summary::{Arrival, Group, seconds, short};

pub(super) fn markdown(plan: &Plan, results: &Results, groups: &[Group]) -> String {
    let mut out = format!("# {}\n", plan.name);
    out.push_str(&overview(groups));
    let mut places: Vec<(u32, &str)> = Vec::new();
    for group in groups {
        let place = (group.topics, group.corpus.as_str());
        if !places.contains(&place) {
            places.push(place);
        }
    }
    let machines = Machines::of(results);
    for (topics, corpus) in places {
        let here: Vec<&Group> =
            groups.iter().filter(|g| g.topics == topics && g.corpus.as_str() == corpus).collect();
        // Writing to a string does not fail.
        let _ = writeln!(out, "\n## {corpus}, K = {topics}\n\n{}", section(&here));
        out.push_str(&machines.of_table(results, corpus, topics));
    }
    out.push_str(&notes(plan, results));
    out
}

/// The share of the best likelihood by which rows are compared in one figure. Where a plan's
/// thresholds do not have it, their last is taken.
const COMPARED: &str = "99";

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
    let compared = levels
        .iter()
        .position(|level| level.percent == COMPARED)
        .or_else(|| levels.len().checked_sub(1));
    if let Some(level) = compared {
        let _ = write!(header, " × best to {} % |", levels[level].percent);
        rule.push_str("--:|");
    }
    let best: Vec<Option<&Group>> = (0..levels.len()).map(|level| first(groups, level)).collect();
    let columns = Columns {
        levels: levels.len(),
        compared: compared.map(|level| (level, best[level].map(|group| seconds(group, level)))),
        perplexity: groups.iter().any(|group| group.perplexity.is_some()),
    };
    let perplexity = if columns.perplexity { " perplexity |" } else { "" };
    let _ = write!(
        header,
        " M tokens / CPU s | M tokens / s | epochs | CPU s | log joint per token |{perplexity} \
         acceptance / π | peak MiB |"
    );
    rule.push_str(&"--:|".repeat(columns.figures()));
    let mut out = format!("{header}\n{rule}");
    for group in groups {
        let _ = write!(out, "\n{}", row(group, columns));
    }
    if !levels.is_empty() {
        let _ = write!(out, "\n{}", best_row(&best, columns));
    }
    out
}

/// The group that was first to reach a level.
fn first<'a>(groups: &[&'a Group], level: usize) -> Option<&'a Group> {
    let arrived = groups.iter().copied().filter(|group| seconds(group, level).is_finite());
    arrived.min_by(|a, b| seconds(a, level).total_cmp(&seconds(b, level)))
}

/// The last row: the shortest time to each level, and its method.
fn best_row(best: &[Option<&Group>], columns: Columns) -> String {
    let mut out = "| **best** | | |".to_owned();
    for (level, group) in best.iter().enumerate() {
        let text = group.map_or("–".to_owned(), |group| {
            format!("{} {}", short(seconds(group, level)), group.title())
        });
        let _ = write!(out, " {text} |");
    }
    out + &" |".repeat(1 + columns.figures())
}

/// The columns of a section.
#[derive(Clone, Copy)]
struct Columns {
    levels: usize,
    /// The level by which rows are compared, and the shortest time to it.
    compared: Option<(usize, Option<f64>)>,
    perplexity: bool,
}

impl Columns {
    /// Columns after those of the levels.
    fn figures(self) -> usize {
        7 + usize::from(self.perplexity)
    }
}

fn row(group: &Group, columns: Columns) -> String {
    let mut out = format!("| {} | {} | {} |", group.title(), group.threads, group.seeds);
    if group.seeds == 0 {
        let why = group.failure.as_deref().unwrap_or_default().replace('|', "\\|");
        let compared = usize::from(columns.compared.is_some());
        let rest = columns.levels + compared + columns.figures() - 1;
        let _ = write!(out, " failed: {why} |{}", " |".repeat(rest));
        return out;
    }
    for i in 0..columns.levels {
        let arrival = group.arrivals.get(i).filter(|_| group.log_joint.is_some());
        let text = arrival.map_or("–".to_owned(), |arrival| time(arrival, group.seeds));
        let _ = write!(out, " {text} |");
    }
    let dash = || "–".to_owned();
    if let Some((level, best)) = columns.compared {
        let ratio = best.map(|best| seconds(group, level) / best).filter(|x| x.is_finite());
        let _ = write!(out, " {} |", ratio.map_or_else(dash, |ratio| format!("{ratio:.2}")));
    }
    let log_joint = group.log_joint.map_or_else(dash, |joint| format!("{joint:.4}"));
    let perplexity = match group.perplexity {
        Some(perplexity) => format!(" {perplexity:.1} |"),
        None if columns.perplexity => " – |".to_owned(),
        None => String::new(),
    };
    let _ = write!(
        out,
        " {:.2} | {:.2} | {:.0} | {:.1} | {log_joint} |{perplexity} {} | {} |",
        group.tokens_per_cpu_second / 1e6,
        group.tokens_per_second / 1e6,
        group.epochs,
        group.cpu_seconds,
        acceptance(group).unwrap_or_else(dash),
        group.peak_memory.map_or_else(dash, |bytes| format!("{:.0}", bytes / f64::from(1 << 20))),
    );
    out
}

/// Share of the proposals that were accepted, without proposals of the current topic and with them
/// (π of LDA*'s algorithm 1). Runs that were made before π was counted have the first only.
fn acceptance(group: &Group) -> Option<String> {
    let share = group.acceptance?;
    Some(match group.acceptance_with_repeats {
        Some(all) => format!("{share:.3} / {all:.3}"),
        None => format!("{share:.3}"),
    })
}

/// Median seconds, and how many seeds arrived unless all or none did.
fn time(arrival: &Arrival, seeds: usize) -> String {
    let seconds = match arrival.cpu_seconds {
        s if s.is_infinite() => "never".to_owned(),
        s => short(s),
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
         without reading, start and evaluation. \"s to 99 % (x)\": until the log joint per token \
         first reached x, linear between evaluated epochs; a seed that did not reach it counts as \
         infinite, and (a/b) is how many did. \"× best\": that time over the shortest of the \
         table, which is in the last row. Speed: median over the second half of the epochs. \
         Peak: largest resident set of the process, with reading.\n",
    );
    let every = format!("evaluated every {} epochs", plan.evaluate_every);
    let alpha = plan.alpha.map_or("50/K".to_owned(), |alpha| alpha.to_string());
    let _ = writeln!(out, "\nα = {alpha}, β = {}; {every}.", plan.beta);
    if let Some(share) = plan.held_out {
        let _ = writeln!(
            out,
            "{share} of the documents are held out of training. Perplexity is that of these documents, by \
             document completion from each method's φ; the log joint is that of the others."
        );
    }
    let samplers = plan.sampler.iter().map(|(name, tuning)| (name, describe(tuning)));
    let variants = plan.variant.iter().map(|(name, variant)| (name, describe(variant)));
    let baselines = plan.baseline.iter().map(|(name, tuning)| (name, describe(tuning)));
    let corpora = plan.corpus.iter().map(|(name, tuning)| (name.as_str(), describe(tuning)));
    let methods = samplers.chain(variants).chain(baselines);
    for (name, tuning) in methods.map(|(name, told)| (name.as_str(), told)).chain(corpora) {
        let _ = writeln!(out, "{name}: {tuning}.");
    }
    out.push_str(&baselines_notes(results));
    out.push_str(&Machines::of(results).describe());
    let loads = results.records.iter().filter_map(|record| record.load);
    if let Some(most) = loads.max_by(f64::total_cmp) {
        let _ = writeln!(out, "Highest load average at the start of a run: {most:.2}.");
    }
    out.push_str(&jobs_note(results));
    for failure in &results.failures {
        let _ = writeln!(out, "\nFailed: {}: {}", failure.cell.name(), failure.message);
    }
    out
}

/// How many runs there were at once, unless each was alone.
fn jobs_note(results: &Results) -> String {
    let jobs = || results.records.iter().map(|record| record.jobs);
    let (Some(least), Some(most @ 2..)) = (jobs().min(), jobs().max()) else {
        return String::new();
    };
    let jobs =
        if least == most { most.to_string() } else { format!("{least} to {most} (see cells.csv)") };
    format!(
        "Runs at once: {jobs}. They shared caches and memory, so CPU seconds are somewhat higher \
         than those of a single run.\n"
    )
}

/// Notes of the baselines: version, effective options, and contents of the clock.
fn baselines_notes(results: &Results) -> String {
    let mut notes: Vec<String> = Vec::new();
    for record in &results.records {
        let Some(baseline) = &record.outcome.baseline else { continue };
        let name = record.cell.sampler;
        let note =
            format!("{name} is {}: {}. {}", baseline.version, baseline.options, baseline.clock);
        let note = note.replace(['\n', '\r'], " ");
        // K, threads and seed are in the table.
        let same = |other: &String| other.starts_with(&format!("{name} is {}:", baseline.version));
        if !notes.iter().any(same) {
            notes.push(note);
        }
    }
    notes.iter().map(|note| format!("\n- {}", note.trim_end())).collect::<String>() + "\n"
}

#[cfg(test)]
mod tests {
    use lda_core::train::SamplerKind;

    use super::super::super::thresholds::Thresholds;
    use super::super::super::{Cell, Failure, Method};
    use super::super::group;
    use super::super::tests::{kos_record, results};
    use super::*;

    #[test]
    fn a_table_per_corpus_and_k_with_equal_rows() {
        let mut all = results([kos_record(1, 1.0, -9.0), kos_record(2, 1.0, -9.15)]);
        let cell = all.records[0].cell.clone();
        let cell = Cell { threads: 2, ..cell };
        all.failures.push(Failure { cell, message: "a|b".into() });
        let groups = group(&all, &Thresholds::built_in());
        let text = markdown(&Plan::default(), &all, &groups);
        let rows: Vec<&str> = text.lines().filter(|line| line.starts_with('|')).collect();
        // Header, rule, two groups and the best.
        assert_eq!(rows.len(), 5, "{text}");
        let columns = |row: &str| row.replace("\\|", "").matches('|').count();
        assert!(rows.iter().all(|row| columns(row) == columns(rows[0])), "{text}");
        assert!(text.contains("## kos, K = 1000") && !text.contains("Runs at once"));
        all.records[1].jobs = 2;
        let text = markdown(&Plan::default(), &all, &groups);
        assert!(text.contains("Runs at once: 1 to 2 (see cells.csv"), "{text}");
        assert!(rows[2].contains(" never (1/2) |"), "{text}");
        assert!(rows[3].contains("failed: a\\|b"), "{text}");
    }

    #[test]
    fn rows_are_compared_with_the_best() {
        let mut all = results([3.0, 1.5, 1.0].map(|seconds| kos_record(1, seconds, -9.0)));
        all.records[1].cell.sampler = Method::Auto;
        // Never at 99 %, though first at 95 %.
        all.records[2] = kos_record(1, 0.1, -9.5);
        all.records[2].cell.sampler = SamplerKind::Warp.into();
        let text = markdown(&Plan::default(), &all, &group(&all, &Thresholds::built_in()));
        let rows: Vec<Vec<&str>> = text
            .lines()
            .filter(|line| line.starts_with('|'))
            .map(|line| line.split('|').map(str::trim).collect())
            .collect();
        // Sampler, threads, seeds; 95, 98, 99 and 99.8 %; the ratio.
        assert_eq!(rows[0][8], "× best to 99 %");
        let ratios: Vec<&str> = rows[2..].iter().map(|row| row[8]).collect();
        assert_eq!(ratios, ["2.00", "1.00", "–", ""], "{text}");
        let best = rows.last().unwrap();
        assert_eq!(best[1], "**best**");
        assert!(best[4].ends_with(" warp") && best[6].contains("auto ("), "{text}");
        // Where no likelihood is known there is nothing to compare.
        let text = markdown(&Plan::default(), &all, &group(&all, &Thresholds::default()));
        assert!(!text.contains("× best to") && !text.contains("**best**"), "{text}");
    }
}
