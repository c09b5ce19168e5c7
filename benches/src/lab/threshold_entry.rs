//! New entries of `thresholds.toml`.

use super::cell::Point;
use super::store::Record;

/// Percentages of an entry.
const PERCENTS: [f64; 4] = [95.0, 98.0, 99.0, 99.8];

/// Entry for `thresholds.toml` from long runs of one cell that differ in their seeds.
///
/// The best value is the highest evaluated log joint per token over all seeds. A comment states the
/// rise over the last tenth of the epochs: an entry from runs that were too short has targets that
/// are too low.
pub fn entry(records: &[Record]) -> Option<String> {
    let first = records.first()?;
    let (cell, tokens) = (&first.cell, first.outcome.tokens as f64);
    let points = || records.iter().flat_map(|record| &record.outcome.points);
    let best = points().filter_map(|point| point.log_joint).max_by(f64::total_cmp)? / tokens;
    let rise = records.iter().filter_map(|record| late_rise(&record.outcome.points));
    let rise = rise.max_by(f64::total_cmp).unwrap_or(f64::INFINITY);
    let seeds: Vec<String> = records.iter().map(|record| record.cell.seed.to_string()).collect();
    let epochs = first.outcome.points.last()?.epoch;
    let levels: Vec<String> = PERCENTS
        .iter()
        .map(|percent| format!("\"{percent}\" = {:.3}", best / percent * 100.0))
        .collect();
    Some(format!(
        "[[threshold]]\n\
         # Over the last tenth of the epochs the log joint rose by {:.2} %.\n\
         corpus = \"{}\"\ntopics = {}\nalpha = {:?}\nbeta = {:?}\n\
         source = \"best {best:.4} of {} in {epochs} epochs, seeds {}, commit {}\"\n\
         levels = {{ {} }}\n",
        100.0 * rise,
        cell.corpus,
        cell.topics,
        cell.alpha,
        cell.beta,
        cell.method(),
        seeds.join(" "),
        first.machine.commit,
        levels.join(", ")
    ))
}

/// Rise over the last tenth of the epochs, as a share of the value.
fn late_rise(points: &[Point]) -> Option<f64> {
    let last = points.last()?;
    let before = points.iter().rev().find(|p| p.epoch <= last.epoch - last.epoch.div_ceil(10))?;
    let (before, last) = before.log_joint.zip(last.log_joint)?;
    Some((last - before) / before.abs())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn points(values: &[(u32, f64, f64)]) -> Vec<Point> {
        let point = |&(epoch, seconds, log_joint): &(u32, f64, f64)| Point {
            epoch,
            cpu_seconds: seconds,
            wall_seconds: 2.0 * seconds,
            log_joint: Some(log_joint),
            ..Point::default()
        };
        values.iter().map(point).collect()
    }

    #[test]
    fn late_rise_is_over_the_last_tenth() {
        let curve = points(&[(0, 0.0, -200.0), (90, 1.0, -110.0), (100, 3.0, -99.0)]);
        assert!((late_rise(&curve).unwrap() - 0.1).abs() < 1e-12);
    }
}
