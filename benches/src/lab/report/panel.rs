//! The runs of one plot, and their curves.

use super::super::plot::{Chart, Curve, Mark, Scale, Scene};
use super::super::thresholds::Thresholds;
use super::super::{Point, Record};
use super::colors::Colors;

/// An x axis: its label, and the x of a point.
pub(super) type Axis = (&'static str, fn(&Point) -> f64);

pub(super) const BY_TIME: Axis = ("CPU seconds of sampling", |point| point.cpu_seconds);
pub(super) const BY_EPOCH: Axis = ("epoch", |point| point.epoch as f64);

/// The runs of one plot.
pub(super) struct Panel<'a> {
    pub(super) records: &'a [&'a Record],
    pub(super) heading: String,
    pub(super) thresholds: &'a Thresholds,
    pub(super) colors: &'a Colors,
}

impl Panel<'_> {
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

    /// One curve per record.
    fn curves_of(&self, points: impl Fn(&Record) -> Vec<(f64, f64)>) -> Vec<Curve> {
        let curve = |record: &&Record| Curve {
            label: record.cell.method().to_owned(),
            color: self.colors.of(record.cell.sampler, record.cell.method()),
            dashed: record.cell.sampler.is_baseline(),
            points: points(record),
        };
        self.records.iter().map(curve).collect()
    }

    /// Log likelihood per token of some documents.
    pub(super) fn of_documents(&self, y: impl Fn(&Record, &Point) -> Option<f64>) -> Option<Scene> {
        let curves = self.curves(|point| point.cpu_seconds, y);
        self.draw("CPU seconds of sampling", "log likelihood per token", curves, Vec::new())
    }

    /// Likelihood of the words given θ and φ, as ZenLDA plots it.
    pub(super) fn predictive(&self, (x_label, x): Axis) -> Option<Scene> {
        let y = |record: &Record, point: &Point| {
            point.log_predictive.map(|log| log / record.outcome.tokens as f64)
        };
        self.draw(x_label, "log likelihood per token given θ and φ", self.curves(x, y), Vec::new())
    }

    /// Log joint likelihood per token, with the target likelihoods.
    pub(super) fn likelihood(&self, (x_label, x): Axis) -> Option<Scene> {
        let y = |record: &Record, point: &Point| point.score(record.outcome.tokens).log_joint;
        let curves = self.curves(x, y);
        let levels = self.thresholds.of(&self.records[0].cell).iter();
        let marks: Vec<Mark> = levels
            .map(|level| Mark { label: format!("{} %", level.percent), y: level.log_joint })
            .collect();
        self.draw(x_label, "log joint likelihood per token", curves, marks)
    }

    /// Perplexity of held-out documents. Low is good; the start is so high that it is left out.
    pub(super) fn perplexity(&self) -> Option<Scene> {
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

/// Priors, seeds and processor of the runs.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn priors_are_written_with_six_digits() {
        let priors = [50.0 / 600.0, 0.5, 0.01, 50.0 / 7.0, 1e-9, 123_456_789.0];
        let texts = priors.map(|x| six_digits(x).to_string());
        assert_eq!(texts, ["0.0833333", "0.5", "0.01", "7.14286", "0.000000001", "123457000"]);
    }

    #[test]
    fn low_curves_are_shown_unless_they_flatten_the_others() {
        assert_eq!(bottom(-10.0, -10.2, -15.0), -11.6);
        assert_eq!(bottom(-10.0, -12.0, -15.0), -12.08);
        assert_eq!(bottom(-10.0, -14.0, -15.0), -13.2);
        // All values close to each other.
        assert_eq!(bottom(-10.0, -10.1, -10.5), -10.5);
    }
}
