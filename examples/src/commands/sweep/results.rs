//! Tables of a sweep: on standard output, and as CSV.

use std::io::{self, Write};

use lda_core::train::sweep::{Criterion, Summary, best};

use crate::commands::sweep::directory::{Directory, Results};

/// Summaries of all numbers of topics that are finished, ascending.
pub fn summaries(directory: &Directory) -> Vec<Summary> {
    let of = |(&topics, results): (&u32, &Results)| {
        let (_, stability) = results.kept.as_ref()?;
        let runs: Vec<_> = results.runs.values().cloned().collect();
        Some(Summary::new(topics, &runs, stability.as_ref().map(|found| found.mean)))
    };
    directory.results.iter().filter_map(of).collect()
}

/// Criteria with a value for some number of topics.
pub fn present(summaries: &[Summary]) -> Vec<Criterion> {
    let has = |criterion: &Criterion| summaries.iter().any(|one| one.mean(*criterion).is_some());
    Criterion::ALL.into_iter().filter(has).collect()
}

/// Numbers of topics that are best by some criterion, with the criteria, most criteria first.
pub fn worth_a_look(summaries: &[Summary]) -> Vec<(u32, Vec<Criterion>)> {
    let mut marked: Vec<(u32, Vec<Criterion>)> = Vec::new();
    for criterion in present(summaries) {
        let Some(topics) = best(summaries, criterion) else { continue };
        match marked.iter_mut().find(|mark| mark.0 == topics) {
            Some(mark) => mark.1.push(criterion),
            None => marked.push((topics, vec![criterion])),
        }
    }
    marked.sort_by_key(|mark| (std::cmp::Reverse(mark.1.len()), mark.0));
    marked
}

/// A value in a table, with the digits that differ.
pub fn shown(criterion: Criterion, value: f64) -> String {
    match criterion {
        Criterion::Perplexity => format!("{value:.1}"),
        Criterion::UMass => format!("{value:.3}"),
        _ => format!("{value:.4}"),
    }
}

/// Prints means over the seeds; `*` marks the best of a column.
///
/// # Errors
/// Those of `out`.
pub fn print(summaries: &[Summary], out: &mut dyn Write) -> io::Result<()> {
    let criteria = present(summaries);
    write!(out, "{:>7}", "topics")?;
    for criterion in &criteria {
        write!(out, "  {:>width$} ", criterion.name(), width = criterion.name().len().max(9))?;
    }
    writeln!(out)?;
    for summary in summaries {
        write!(out, "{:>7}", summary.topics())?;
        for &criterion in &criteria {
            let value = summary.mean(criterion);
            let text = value.map_or("-".to_owned(), |value| shown(criterion, value));
            let is_best = best(summaries, criterion) == Some(summary.topics());
            let mark = if is_best { '*' } else { ' ' };
            write!(out, "  {text:>width$}{mark}", width = criterion.name().len().max(9))?;
        }
        writeln!(out)?;
    }
    Ok(())
}

/// One line per run: number of topics, seed, epochs, seconds, log joint per token and all measures but
/// those of several runs; then one line per number of topics with an empty seed: means.
///
/// # Errors
/// Those of `out`.
pub fn write_csv(directory: &Directory, out: &mut dyn Write) -> io::Result<()> {
    let names: Vec<&str> = Criterion::ALL.into_iter().map(Criterion::name).collect();
    writeln!(out, "topics,seed,epochs,seconds,log-joint-per-token,{}", names.join(","))?;
    let number = |value: Option<f64>| value.map_or(String::new(), |value| value.to_string());
    for (topics, results) in &directory.results {
        for (seed, run) in &results.runs {
            let joint = number(run.log_joint_per_token);
            write!(out, "{topics},{seed},{},{},{joint}", run.epochs, run.seconds)?;
            for criterion in Criterion::ALL {
                write!(out, ",{}", number(criterion.of(run)))?;
            }
            writeln!(out)?;
        }
    }
    for summary in summaries(directory) {
        write!(out, "{},,,,", summary.topics())?;
        for criterion in Criterion::ALL {
            write!(out, ",{}", number(summary.mean(criterion)))?;
        }
        writeln!(out)?;
    }
    Ok(())
}
