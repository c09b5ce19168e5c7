//! Groups runs that differ only by their seed.

use lda_core::train::Choice;

use super::super::thresholds::{Thresholds, crossing};
use super::super::{Cell, CorpusName, Method, Record, Results, median};

/// The runs of one method on one corpus with one K and number of threads. Figures are medians over
/// the seeds.
#[derive(Clone, Debug, PartialEq)]
pub struct Group {
    /// Name of the sampler, variant or baseline.
    pub name: String,
    /// Sampler or baseline.
    pub sampler: Method,
    /// The library's automatic choice, if it made one.
    pub picked: Option<Choice>,
    /// Corpus.
    pub corpus: CorpusName,
    /// Number of topics K.
    pub topics: u32,
    /// Number of threads.
    pub threads: usize,
    /// Number of finished runs.
    pub seeds: usize,
    /// Error of the first failed run.
    pub failure: Option<String>,
    /// Tokens per CPU second.
    pub tokens_per_cpu_second: f64,
    /// Tokens per wall-clock second.
    pub tokens_per_second: f64,
    /// Number of completed epochs.
    pub epochs: f64,
    /// CPU seconds of sampling.
    pub cpu_seconds: f64,
    /// Log joint per token after the last epoch, if known.
    pub log_joint: Option<f64>,
    /// Perplexity of the held-out documents after the last epoch.
    pub perplexity: Option<f64>,
    /// Acceptance of proposals in the last epoch.
    pub acceptance: Option<f64>,
    /// Median of the last epoch's LDA* acceptance rate π.
    pub acceptance_with_repeats: Option<f64>,
    /// Peak resident set size in bytes.
    pub peak_memory: Option<f64>,
    /// Peak resident set size in bytes per token.
    pub peak_per_token: Option<f64>,
    /// Time to each likelihood, lowest first.
    pub arrivals: Vec<Arrival>,
}

/// Time of a group to a likelihood.
#[derive(Clone, Debug, PartialEq)]
pub struct Arrival {
    /// Share of the best in percent.
    pub percent: String,
    /// The likelihood: log joint per token.
    pub log_joint: f64,
    /// CPU seconds of sampling; infinite if half of the seeds or more did not reach it.
    pub cpu_seconds: f64,
    /// Wall-clock seconds of sampling; infinite as above.
    pub wall_seconds: f64,
    /// Epochs; infinite as above.
    pub epochs: f64,
    /// Number of seeds that reached it.
    pub arrived: usize,
}

impl Group {
    /// Name, and in brackets the automatic choice: `auto (40 warp, then sparse)`.
    pub fn title(&self) -> String {
        match self.picked {
            Some(Choice { sampler, warm_up: 0 }) => format!("{} ({sampler})", self.name),
            Some(Choice { sampler, warm_up }) => {
                format!("{} ({warm_up} warp, then {sampler})", self.name)
            }
            None => self.name.clone(),
        }
    }
}

/// Groups in the order of their first run.
pub fn group(results: &Results, thresholds: &Thresholds) -> Vec<Group> {
    let failed = results.failures.iter().map(|failure| &failure.cell);
    let mut heads: Vec<&Cell> = Vec::new();
    for cell in results.records.iter().map(|record| &record.cell).chain(failed) {
        if !heads.iter().any(|head| same_group(head, cell)) {
            heads.push(cell);
        }
    }
    heads.into_iter().map(|head| summarise(head, results, thresholds)).collect()
}

/// Whether two cells differ only by their seed.
fn same_group(a: &Cell, b: &Cell) -> bool {
    let place = |cell: &Cell| (cell.corpus.clone(), cell.topics, cell.threads);
    a.method() == b.method() && place(a) == place(b)
}

fn summarise(head: &Cell, results: &Results, thresholds: &Thresholds) -> Group {
    let records: Vec<&Record> =
        results.records.iter().filter(|record| same_group(head, &record.cell)).collect();
    let failure = results.failures.iter().find(|failure| same_group(head, &failure.cell));
    let middle = |f: &dyn Fn(&Record) -> Option<f64>| median(records.iter().filter_map(|r| f(r)));
    let figure = |f: &dyn Fn(&Record) -> Option<f64>| middle(f).unwrap_or(f64::NAN);
    let last = |record: &Record| record.outcome.points.last().cloned();
    let tokens = |record: &Record| record.outcome.tokens as f64;
    let peak = |record: &Record| record.outcome.memory.peak.map(|bytes| bytes as f64);
    Group {
        name: head.method().to_owned(),
        sampler: head.sampler,
        // The choice depends on corpus and K only, so seeds agree.
        picked: picked(&records),
        corpus: head.corpus.clone(),
        topics: head.topics,
        threads: head.threads,
        seeds: records.len(),
        failure: failure.map(|failure| failure.message.clone()),
        tokens_per_cpu_second: figure(&|r| Some(r.outcome.tokens_per_cpu_second)),
        tokens_per_second: figure(&|r| Some(r.outcome.tokens_per_second)),
        epochs: figure(&|r| last(r).map(|point| f64::from(point.epoch))),
        cpu_seconds: figure(&|r| last(r).map(|point| point.cpu_seconds)),
        log_joint: middle(&|r| last(r)?.score(r.outcome.tokens).log_joint),
        perplexity: middle(&|r| last(r)?.perplexity),
        acceptance: middle(&|r| last(r).and_then(|point| point.acceptance)),
        acceptance_with_repeats: middle(&|r| last(r)?.acceptance_with_repeats),
        peak_memory: middle(&peak),
        peak_per_token: middle(&|r| peak(r).map(|bytes| bytes / tokens(r))),
        arrivals: arrivals(head, &records, thresholds),
    }
}

fn picked(records: &[&Record]) -> Option<Choice> {
    let left_to_it = records.iter().find(|record| record.cell.sampler == Method::Auto)?;
    let resolved = left_to_it.outcome.resolved.as_ref()?;
    Some(Choice { sampler: resolved.sampler, warm_up: resolved.warm_up })
}

fn arrivals(head: &Cell, records: &[&Record], thresholds: &Thresholds) -> Vec<Arrival> {
    let levels = if records.is_empty() { &[] } else { thresholds.of(head) };
    let arrival = |level: &super::super::thresholds::Level| {
        let crossings: Vec<_> = records
            .iter()
            .map(|record| crossing(&record.outcome.points, record.outcome.tokens, level.log_joint))
            .collect();
        let middle = |f: fn(&super::super::thresholds::Crossing) -> f64| {
            let values = crossings.iter().map(|c| c.as_ref().map_or(f64::INFINITY, f));
            median(values).unwrap_or(f64::INFINITY)
        };
        Arrival {
            percent: level.percent.clone(),
            log_joint: level.log_joint,
            cpu_seconds: middle(|crossing| crossing.cpu_seconds),
            wall_seconds: middle(|crossing| crossing.wall_seconds),
            epochs: middle(|crossing| crossing.epoch),
            arrived: crossings.iter().flatten().count(),
        }
    };
    levels.iter().map(arrival).collect()
}

/// CPU seconds to a level; infinite if it was not reached.
pub(super) fn seconds(group: &Group, level: usize) -> f64 {
    let arrival = group.arrivals.get(level).filter(|_| group.log_joint.is_some());
    arrival.map_or(f64::INFINITY, |arrival| arrival.cpu_seconds)
}

/// Formats seconds for a table.
pub(super) fn short(seconds: f64) -> String {
    if seconds < 10.0 { format!("{seconds:.2}") } else { format!("{seconds:.1}") }
}

#[cfg(test)]
mod tests {
    use lda_core::train::SamplerKind;

    use super::super::tests::{kos_record, results};
    use super::*;

    #[test]
    fn a_seed_that_does_not_arrive_counts_as_infinite() {
        // To 99 %: after 4 s, 6 s, and never.
        let thresholds = Thresholds::built_in();
        let ends = [(1, -9.0), (2, -9.0), (3, -9.5)];
        let mut all = results(ends.map(|(seed, end)| kos_record(seed, seed as f64, end)));
        let groups = group(&all, &thresholds);
        assert_eq!((groups.len(), groups[0].seeds), (1, 3));
        let arrival = |groups: &[Group]| groups[0].arrivals[2].clone();
        assert_eq!((arrival(&groups).percent.as_str(), arrival(&groups).arrived), ("99", 2));
        let second = crossing(&all.records[1].outcome.points, 1000, -9.186).unwrap().cpu_seconds;
        assert_eq!(arrival(&groups).cpu_seconds, second);
        all.records.remove(0);
        assert_eq!(arrival(&group(&all, &thresholds)).cpu_seconds, f64::INFINITY);
    }

    #[test]
    fn the_choice_of_auto_is_named() {
        let mut all = results([kos_record(1, 1.0, -9.0), kos_record(1, 1.0, -9.0)]);
        all.records[1].cell.sampler = Method::Auto;
        let resolved = all.records[1].outcome.resolved.as_mut().unwrap();
        (resolved.sampler, resolved.warm_up) = (SamplerKind::Sparse, 0);
        let groups = group(&all, &Thresholds::built_in());
        let titles: Vec<String> = groups.iter().map(Group::title).collect();
        assert_eq!(titles, ["f-plus", "auto (sparse)"]);
        all.records[1].outcome.resolved.as_mut().unwrap().warm_up = 40;
        assert_eq!(group(&all, &Thresholds::built_in())[1].title(), "auto (40 warp, then sparse)");
        assert_eq!(groups[1].name, "auto");
    }

    #[test]
    fn a_group_of_failed_runs_has_a_row() {
        let mut all = results([kos_record(1, 1.0, -9.0)]);
        let cell = Cell { topics: 5, ..all.records[0].cell.clone() };
        all.failures.push(super::super::super::Failure { cell, message: "no".into() });
        let groups = group(&all, &Thresholds::built_in());
        assert_eq!((groups.len(), groups[1].seeds), (2, 0));
        assert_eq!(groups[1].failure.as_deref(), Some("no"));
        assert!(groups[1].log_joint.is_none() && groups[1].arrivals.is_empty());
    }
}
