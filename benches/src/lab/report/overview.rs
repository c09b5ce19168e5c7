//! All corpora side by side: one table per K, with the seconds to each likelihood in a cell.

use std::fmt::Write;

use super::super::Method;
use super::summary::{Group, seconds, short};

/// One table for each K with two or more corpora that have targets; empty if there is none.
pub(super) fn overview(groups: &[Group]) -> String {
    let mut topics: Vec<u32> = groups.iter().map(|group| group.topics).collect();
    topics.sort_unstable();
    topics.dedup();
    let of = |topics: u32| groups.iter().filter(|group| group.topics == topics).collect::<Vec<_>>();
    topics.into_iter().filter_map(|topics| table(topics, &of(topics))).collect()
}

/// A row of the table: method and number of threads.
type Row<'a> = (&'a str, usize);

fn table(topics: u32, groups: &[&Group]) -> Option<String> {
    let mut corpora: Vec<&str> = Vec::new();
    let mut rows: Vec<Row<'_>> = Vec::new();
    for group in groups {
        if !corpora.contains(&group.corpus.as_str()) {
            corpora.push(group.corpus.as_str());
        }
        if !rows.contains(&row_of(group)) {
            rows.push(row_of(group));
        }
    }
    let known = groups.iter().find(|group| !group.arrivals.is_empty())?;
    if corpora.len() < 2 {
        return None;
    }
    let percents: Vec<&str> = known.arrivals.iter().map(|a| a.percent.as_str()).collect();
    let threads = rows.iter().any(|(_, threads)| *threads != rows[0].1);
    let mut out = format!(
        "\n## All corpora, K = {topics}: CPU seconds to {} % of the best\n\n| |",
        percents.join(" / ")
    );
    for corpus in &corpora {
        let _ = write!(out, " {corpus} |");
    }
    let _ = write!(out, "\n|---|{}", "--:|".repeat(corpora.len()));
    for row in &rows {
        let _ = match threads {
            true => write!(out, "\n| {}, {} threads |", row.0, row.1),
            false => write!(out, "\n| {} |", row.0),
        };
        for corpus in &corpora {
            let here: Vec<&Group> =
                groups.iter().copied().filter(|group| group.corpus.as_str() == *corpus).collect();
            let cell = here.iter().find(|group| row_of(group) == *row);
            let cell = cell.map_or_else(String::new, |group| times(group, &here, percents.len()));
            let _ = write!(out, " {cell} |");
        }
    }
    out.push_str("\n\nBold: the shortest of a column. –: not within the limit of the run.");
    for group in groups.iter().filter(|group| group.picked.is_some()) {
        let others: Vec<&Group> = groups
            .iter()
            .copied()
            .filter(|other| other.corpus == group.corpus && other.sampler != Method::Auto)
            .collect();
        let ratio = |level: usize| {
            let best =
                others.iter().map(|other| seconds(other, level)).fold(f64::INFINITY, f64::min);
            let own = seconds(group, level);
            match (own.is_finite(), best.is_finite()) {
                (false, _) => "–".to_owned(),
                (true, false) => "alone".to_owned(),
                (true, true) => format!("{:.2}", own / best),
            }
        };
        let ratios: Vec<String> = (0..percents.len()).map(ratio).collect();
        let title = group.title();
        let _ = write!(
            out,
            "\n- {title} on {}: {} times the best of the others.",
            group.corpus.as_str(),
            ratios.join(" / ")
        );
    }
    out.push('\n');
    Some(out)
}

fn row_of(group: &Group) -> Row<'_> {
    (&group.name, group.threads)
}

/// Seconds to each level; bold if no group of `all` is faster.
fn times(group: &Group, all: &[&Group], levels: usize) -> String {
    if group.seeds == 0 {
        return "failed".to_owned();
    }
    let time = |level: usize| {
        let own = seconds(group, level);
        let first = all.iter().all(|other| own <= seconds(other, level));
        match (own.is_finite(), first) {
            (false, _) => "–".to_owned(),
            (true, true) => format!("**{}**", short(own)),
            (true, false) => short(own),
        }
    };
    (0..levels).map(time).collect::<Vec<_>>().join(" / ")
}

#[cfg(test)]
mod tests {
    use super::super::super::thresholds::Thresholds;
    use super::super::group;
    use super::super::tests::{kos_record, results};
    use super::*;

    #[test]
    fn the_shortest_time_of_a_column_is_bold() {
        let mut all = results([2.0, 1.0, 1.0].map(|seconds| kos_record(1, seconds, -9.0)));
        all.records[1].cell.sampler = Method::Auto;
        all.records[2].cell.corpus = "nips".parse().unwrap();
        let text = overview(&group(&all, &Thresholds::built_in()));
        let row = |name: &str| text.lines().find(|line| line.starts_with(name)).unwrap();
        let cells = |name: &str| row(name).split('|').map(str::trim).collect::<Vec<_>>();
        assert_eq!(cells("| |")[2..4], ["kos", "nips"], "{text}");
        let (auto, exact) = (cells("| auto"), cells("| f-plus"));
        assert_eq!(auto[2].matches("**").count(), 8, "{text}");
        assert_eq!((auto[3], exact[2].matches("**").count()), ("", 0), "{text}");
        assert_eq!(exact[2].split(" / ").count(), 4, "{text}");
        assert!(text.contains("on kos: 0.50 / 0.50 / 0.50 / 0.50 times"), "{text}");
        // The target of nips is above -9.0.
        assert!(cells("| f-plus")[3].ends_with("– / –"), "{text}");
    }

    #[test]
    fn one_corpus_needs_no_overview() {
        let all = results([kos_record(1, 1.0, -9.0)]);
        assert_eq!(overview(&group(&all, &Thresholds::built_in())), "");
    }
}
