//! Plots of finished runs.

use super::super::lengths::names;
use super::super::plot::{BarGroup, Bars, Scene};
use super::super::thresholds::Thresholds;
use super::super::{Cell, Method, Plan, Point, Record, Results};
use super::colors::Colors;
use super::panel::{BY_EPOCH, BY_TIME, Panel};
use super::summary::Group;
use super::{lengths, quantities};

/// File names without extension, and the plots.
pub(super) fn draw(
    plan: &Plan,
    results: &Results,
    groups: &[Group],
    thresholds: &Thresholds,
) -> Vec<(String, Scene)> {
    let colors = Colors::of_plan(plan);
    let mut plots = Vec::new();
    let mut add = |name: String, scene: Option<Scene>| {
        plots.extend(scene.map(|scene| (name, scene)));
    };
    for records in places(&results.records) {
        let cell = &records[0].cell;
        let place = format!("{}-k{}-t{}", cell.corpus, cell.topics, cell.threads);
        let heading = heading(cell, &records);
        let drawn = Panel { records: &records, heading, thresholds, colors: &colors };
        add(format!("{place}-likelihood-by-time"), drawn.likelihood(BY_TIME));
        add(format!("{place}-likelihood-by-epoch"), drawn.likelihood(BY_EPOCH));
        for (bin, lengths) in names(&cell.length_bins).into_iter().enumerate() {
            let by_length = |_: &Record, point: &Point| point.by_length.get(bin).copied().flatten();
            let heading = format!("{}, documents of {lengths} tokens", drawn.heading);
            let name = format!("{place}-lengths-{}", lengths.replace(' ', "-"));
            add(name, Panel { heading, ..drawn }.of_documents(by_length));
        }
        add(format!("{place}-predictive-by-time"), drawn.predictive(BY_TIME));
        add(format!("{place}-predictive-by-epoch"), drawn.predictive(BY_EPOCH));
        add(format!("{place}-perplexity-by-time"), drawn.perplexity());
        for (name, scene) in quantities::draw(&drawn, plan.parts) {
            add(format!("{place}-{name}"), Some(scene));
        }
    }
    if plan.lengths || plan.corpora.len() > 1 {
        add("lengths-of-documents".into(), lengths::draw(&results.records));
    }
    let cpu = |group: &Group| Some(group.tokens_per_cpu_second / 1e6);
    let title = "Speed of sampling";
    let note = "median over the second half of the epochs, median over seeds";
    add("speed".into(), bars(groups, &colors, (title, note, "million tokens per CPU second"), cpu));
    let peak = |group: &Group| group.peak_memory.map(|bytes| bytes / f64::from(1 << 20));
    let title = "Peak memory";
    let note = "largest resident set of the whole process, reading the corpus included";
    add("memory".into(), bars(groups, &colors, (title, note, "MiB"), peak));
    plots
}

/// Runs that share a plot: all samplers and seeds of a corpus, K and number of threads.
fn places(records: &[Record]) -> Vec<Vec<&Record>> {
    let same =
        |a: &Cell, b: &Cell| a.corpus == b.corpus && a.topics == b.topics && a.threads == b.threads;
    let mut places: Vec<Vec<&Record>> = Vec::new();
    for record in records {
        match places.iter_mut().find(|place| same(&place[0].cell, &record.cell)) {
            Some(place) => place.push(record),
            None => places.push(vec![record]),
        }
    }
    places
}

fn heading(cell: &Cell, records: &[&Record]) -> String {
    let threads =
        if cell.threads == 1 { "1 thread".into() } else { format!("{} threads", cell.threads) };
    let tokens = records[0].outcome.tokens as f64 / 1e6;
    format!("{} ({tokens:.1} M tokens), K = {}, {threads}", cell.corpus, cell.topics)
}

/// One bar per sampler, one group per corpus, K and number of threads.
fn bars(
    groups: &[Group],
    colors: &Colors,
    (title, note, y_label): (&str, &str, &str),
    value: impl Fn(&Group) -> Option<f64>,
) -> Option<Scene> {
    let mut methods: Vec<(&str, Method)> = Vec::new();
    let mut labels: Vec<String> = Vec::new();
    let many_threads = groups.iter().any(|group| group.threads != groups[0].threads);
    let label = |group: &Group| {
        let threads =
            if many_threads { format!("\n{} threads", group.threads) } else { String::new() };
        format!("{}\nK = {}{threads}", group.corpus, group.topics)
    };
    for group in groups {
        if !methods.iter().any(|(name, _)| *name == group.name) {
            methods.push((&group.name, group.sampler));
        }
        if !labels.contains(&label(group)) {
            labels.push(label(group));
        }
    }
    let bar_group = |name: &String| BarGroup {
        label: name.clone(),
        values: methods
            .iter()
            .map(|(method, _)| {
                let found = groups.iter().find(|g| g.name == *method && label(g) == *name);
                found.and_then(&value).filter(|value| value.is_finite())
            })
            .collect(),
    };
    Bars {
        title: title.to_owned(),
        note: note.to_owned(),
        y_label: y_label.to_owned(),
        series: methods
            .iter()
            .map(|&(name, method)| (name.to_owned(), colors.of(method, name)))
            .collect(),
        groups: labels.iter().map(bar_group).collect(),
    }
    .draw()
}

#[cfg(test)]
mod tests {
    use super::super::super::{Baseline, LengthBin};
    use super::super::group;
    use super::super::tests::{kos_record, results};
    use super::*;

    #[test]
    fn a_baseline_without_assignments_is_in_the_plot_of_perplexity() {
        let (mut ours, mut baseline) = (kos_record(1, 1.0, -9.0), kos_record(1, 2.0, -9.0));
        baseline.cell.sampler = Baseline::Gensim.into();
        for (record, start) in [(&mut ours, 3000.0), (&mut baseline, 4000.0)] {
            for point in &mut record.outcome.points {
                point.perplexity = Some(start - 50.0 * f64::from(point.epoch));
            }
        }
        baseline.outcome.points.iter_mut().for_each(|point| point.log_joint = None);
        let (all, thresholds) = (results([ours, baseline]), Thresholds::built_in());
        let plots = draw(&Plan::default(), &all, &group(&all, &thresholds), &thresholds);
        let svg = |name: &str| plots.iter().find(|plot| plot.0.ends_with(name)).unwrap().1.svg();
        assert!(svg("perplexity-by-time").contains(">gensim<"));
        assert!(svg("perplexity-by-time").contains(">f-plus<"));
        assert!(!svg("likelihood-by-time").contains(">gensim<"));
    }

    #[test]
    fn a_variant_is_next_to_its_sampler() {
        let (plain, mut variant) = (kos_record(1, 1.0, -9.0), kos_record(1, 2.0, -9.0));
        variant.cell.variant = Some("f-plus-again".into());
        let plan = "[variant.f-plus-again]\nsampler = \"f-plus\"";
        let plan: Plan = toml::from_str(plan).unwrap();
        let (all, thresholds) = (results([plain, variant]), Thresholds::built_in());
        let groups = group(&all, &thresholds);
        let names: Vec<&str> = groups.iter().map(|group| group.name.as_str()).collect();
        assert_eq!(names, ["f-plus", "f-plus-again"]);
        for (_, scene) in draw(&plan, &all, &groups, &thresholds) {
            let svg = scene.svg();
            assert!(svg.contains(">f-plus<") && svg.contains(">f-plus-again<"), "{svg}");
        }
    }

    #[test]
    fn requested_plots_are_drawn() {
        let (mut exact, mut proposing) = (kos_record(1, 1.0, -9.0), kos_record(2, 1.0, -9.0));
        proposing.cell.variant = Some("proposing".into());
        for point in &mut proposing.outcome.points[1..] {
            (point.topics_per_document, point.acceptance) = (Some(20.0), Some(0.5));
        }
        exact.outcome.points[1].topics_per_document = Some(20.0);
        for (i, point) in exact.outcome.points.iter_mut().enumerate() {
            point.log_predictive = Some(-9000.0 + 500.0 * i as f64);
        }
        exact.outcome.lengths = vec![LengthBin { longest: 10, documents: 1, tokens: 10 }];
        let (all, thresholds) = (results([exact, proposing]), Thresholds::built_in());
        let plan = Plan { parts: true, lengths: true, ..Plan::default() };
        let plots = draw(&plan, &all, &group(&all, &thresholds), &thresholds);
        let svg = |name: &str| plots.iter().find(|plot| plot.0 == name).unwrap().1.svg();
        let ratio = svg("kos-k1000-t1-complexity-ratio");
        assert!(ratio.contains(">proposing<") && !ratio.contains(">f-plus<"), "{ratio}");
        for part in ["document", "word"] {
            for by in ["epoch", "time"] {
                let svg = svg(&format!("kos-k1000-t1-{part}-part-by-{by}"));
                assert!(
                    svg.contains(&format!(">{part} part of the log joint per token<")),
                    "{svg}"
                );
            }
        }
        for by in ["epoch", "time"] {
            let svg = svg(&format!("kos-k1000-t1-predictive-by-{by}"));
            assert!(svg.contains(">f-plus<") && !svg.contains(">proposing<"), "{svg}");
        }
        assert!(svg("lengths-of-documents").contains(">kos<"));
    }

    #[test]
    fn plots_of_existing_values_are_drawn() {
        let all = results([kos_record(1, 1.0, -9.0), kos_record(2, 2.0, -9.1)]);
        let thresholds = Thresholds::built_in();
        let plots = draw(&Plan::default(), &all, &group(&all, &thresholds), &thresholds);
        let names: Vec<&str> = plots.iter().map(|(name, _)| name.as_str()).collect();
        // No acceptance: an exact sampler has no proposals.
        let place = ["likelihood-by-time", "likelihood-by-epoch", "changed", "seconds-an-epoch"];
        let place = place.map(|name| format!("kos-k1000-t1-{name}"));
        assert_eq!(names[..4], place);
        assert_eq!(names[4..], ["speed", "memory"]);
        let svg = plots[0].1.svg();
        assert!(svg.contains("kos (0.0 M tokens), K = 1000, 1 thread"), "{svg}");
        assert!(svg.contains(">99.8 %<"), "{svg}");
    }
}
