//! Plots of finished runs.

use super::super::lengths::names;
use super::super::plot::{BarGroup, Bars, Chart, Curve, Mark, Scale, Scene};
use super::super::thresholds::Thresholds;
use super::super::{Cell, Method, Plan, Point, Record, Results};
use super::colors::Colors;
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
        let drawn = Place { records: &records, heading, thresholds, colors: &colors };
        add(format!("{place}-likelihood-by-time"), drawn.likelihood(BY_TIME));
        add(format!("{place}-likelihood-by-epoch"), drawn.likelihood(BY_EPOCH));
        for (bin, lengths) in names(&cell.length_bins).into_iter().enumerate() {
            let by_length = |_: &Record, point: &Point| point.by_length.get(bin).copied().flatten();
            let heading = format!("{}, documents of {lengths} tokens", drawn.heading);
            let name = format!("{place}-lengths-{}", lengths.replace(' ', "-"));
            add(name, Place { heading, ..drawn }.of_documents(by_length));
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
    add("speed".into(), bars(groups, &colors, (title, note, "million tokens a CPU second"), cpu));
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

/// An x axis: its label, and the x of a point.
type Axis = (&'static str, fn(&Point) -> f64);

const BY_TIME: Axis = ("CPU seconds of sampling", |point| point.cpu_seconds);
const BY_EPOCH: Axis = ("epoch", |point| point.epoch as f64);

/// The runs of one plot.
pub(super) struct Place<'a> {
    pub(super) records: &'a [&'a Record],
    pub(super) heading: String,
    thresholds: &'a Thresholds,
    colors: &'a Colors,
}

impl Place<'_> {
    /// One curve per record: y over x for each point that has both.
    pub(super) fn curves(
        &self,
        x: impl Fn(&Point) -> f64,
        y: impl Fn(&Record, &Point) -> Option<f64>,
    ) -> Vec<Curve> {
        self.curves_of(|record| {
            let points = record.outcome.points.iter();
            points.filter_map(|point| Some((x(point), y(record, point)?))).collect()
        })
    }

    /// One curve per record, computed by `step` from each point and its predecessor.
    pub(super) fn steps(&self, step: impl Fn(&Point, &Point) -> (f64, f64)) -> Vec<Curve> {
        self.curves_of(|record| {
            record.outcome.points.windows(2).map(|pair| step(&pair[0], &pair[1])).collect()
        })
    }

    fn curves_of(&self, points: impl Fn(&Record) -> Vec<(f64, f64)>) -> Vec<Curve> {
        let curve = |record: &&Record| Curve {
            label: record.cell.method().to_owned(),
            color: self.colors.of(record.cell.sampler, record.cell.method()),
            dashed: record.cell.sampler.is_baseline(),
            points: points(record),
        };
        self.records.iter().map(curve).collect()
    }

    fn of_documents(&self, y: impl Fn(&Record, &Point) -> Option<f64>) -> Option<Scene> {
        let curves = self.curves(|point| point.cpu_seconds, y);
        self.draw("CPU seconds of sampling", "log likelihood a token", curves, Vec::new())
    }

    /// Likelihood of the words given θ and φ, as ZenLDA plots it.
    fn predictive(&self, (x_label, x): Axis) -> Option<Scene> {
        let y = |record: &Record, point: &Point| {
            point.log_predictive.map(|log| log / record.outcome.tokens as f64)
        };
        self.draw(x_label, "log likelihood a token given θ and φ", self.curves(x, y), Vec::new())
    }

    fn likelihood(&self, (x_label, x): Axis) -> Option<Scene> {
        let y = |record: &Record, point: &Point| point.score(record.outcome.tokens).log_joint;
        let curves = self.curves(x, y);
        let levels = self.thresholds.of(&self.records[0].cell).iter();
        let marks: Vec<Mark> = levels
            .map(|level| Mark { label: format!("{} %", level.percent), y: level.log_joint })
            .collect();
        self.draw(x_label, "log joint likelihood a token", curves, marks)
    }

    /// Perplexity of held-out documents. Low is good; the start is so high that it is left out.
    fn perplexity(&self) -> Option<Scene> {
        let curves = self.curves(|point| point.cpu_seconds, |_, point| point.perplexity);
        let all = curves.iter().flat_map(|curve| &curve.points);
        let best = all.map(|point| point.1).min_by(f64::total_cmp)?;
        let ends: Vec<_> = curves.iter().filter_map(|curve| curve.points.last()).collect();
        let worst = ends.iter().map(|end| end.1).max_by(f64::total_cmp)?;
        let high = (1.1 * worst).min(4.0 * best);
        Chart {
            title: self.heading.clone(),
            note: note(self.records),
            x_label: "CPU seconds of training".to_owned(),
            y_label: "perplexity of held-out documents".to_owned(),
            x_scale: time_scale(ends.iter().map(|end| end.0)),
            y_low: Some(best - 0.05 * (high - best)),
            y_high: Some(high),
            curves,
            marks: Vec::new(),
        }
        .draw()
    }

    fn draw(
        &self,
        x_label: &str,
        y_label: &str,
        curves: Vec<Curve>,
        marks: Vec<Mark>,
    ) -> Option<Scene> {
        let ends = curves.iter().filter_map(|curve| curve.points.last());
        let best = ends.clone().map(|end| end.1).max_by(f64::total_cmp)?;
        let worst = curves.iter().flat_map(|c| &c.points).map(|p| p.1).min_by(f64::total_cmp)?;
        let top = marks.last().map_or(best, |mark| mark.y.max(best));
        let last = ends.clone().map(|end| end.1).fold(top, f64::min);
        let low = bottom(top, last, worst);
        Chart {
            title: self.heading.clone(),
            note: note(self.records),
            x_label: x_label.to_owned(),
            y_label: y_label.to_owned(),
            x_scale: time_scale(ends.map(|end| end.0)),
            y_low: Some(low),
            y_high: Some(top + 0.04 * (top - low).max(1e-6)),
            curves,
            marks,
        }
        .draw()
    }
}

/// Lower end of a likelihood axis: `top` is the best value, `last` the end of the worst curve,
/// `worst` the lowest point of all.
///
/// Curves differ near the top, and the random start would flatten that part. A curve that ends
/// lower is shown as long as that takes no more than half of the height.
fn bottom(top: f64, last: f64, worst: f64) -> f64 {
    let below = |share: f64| top + share * top.min(0.0);
    let shows_all = (last - 0.04 * (top - last)).max(below(0.32));
    worst.max(below(0.16)).min(shows_all)
}

/// Logarithmic if one curve would otherwise be too short to see.
pub(super) fn time_scale(ends: impl Iterator<Item = f64> + Clone) -> Scale {
    let longest = ends.clone().fold(f64::NEG_INFINITY, f64::max);
    let shortest = ends.fold(f64::INFINITY, f64::min);
    if longest > 4.0 * shortest { Scale::Log } else { Scale::Linear }
}

pub(super) fn note(records: &[&Record]) -> String {
    let cell = &records[0].cell;
    let mut seeds: Vec<u64> = records.iter().map(|record| record.cell.seed).collect();
    seeds.sort_unstable();
    seeds.dedup();
    let seeds = match seeds.len() {
        1 => "one seed".to_owned(),
        n => format!("{n} seeds, a line each"),
    };
    let (alpha, cpu) = (six_digits(cell.alpha), &records[0].machine.cpu);
    format!("α = {alpha}, β = {}; {seeds}; {cpu}", six_digits(cell.beta))
}

/// Rounds `x` > 0 to six significant digits; 50/K rarely has a finite decimal form.
fn six_digits(x: f64) -> f64 {
    format!("{x:.5e}").parse().unwrap_or(x)
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
    fn priors_are_written_with_six_digits() {
        let priors = [50.0 / 600.0, 0.5, 0.01, 50.0 / 7.0, 1e-9, 123_456_789.0];
        let texts = priors.map(|x| six_digits(x).to_string());
        assert_eq!(texts, ["0.0833333", "0.5", "0.01", "7.14286", "0.000000001", "123457000"]);
    }

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
    fn a_variant_stands_beside_its_sampler() {
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
    fn curves_that_end_low_are_shown_unless_they_press_the_others_flat() {
        assert_eq!(bottom(-10.0, -10.2, -15.0), -11.6);
        assert_eq!(bottom(-10.0, -12.0, -15.0), -12.08);
        assert_eq!(bottom(-10.0, -14.0, -15.0), -13.2);
        // All values close to each other.
        assert_eq!(bottom(-10.0, -10.1, -10.5), -10.5);
    }

    #[test]
    fn plots_that_are_asked_for() {
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
                assert!(svg.contains(&format!(">{part} part of the log joint a token<")), "{svg}");
            }
        }
        for by in ["epoch", "time"] {
            let svg = svg(&format!("kos-k1000-t1-predictive-by-{by}"));
            assert!(svg.contains(">f-plus<") && !svg.contains(">proposing<"), "{svg}");
        }
        assert!(svg("lengths-of-documents").contains(">kos<"));
    }

    #[test]
    fn plots_of_what_there_is() {
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
