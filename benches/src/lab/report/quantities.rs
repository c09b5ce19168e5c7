//! Plots of other quantities of a sampler: changed topics, acceptance, cost of an epoch, and the
//! parts of the likelihood.

use super::super::plot::{Chart, Curve, Scale, Scene};
use super::super::{Point, Record};
use super::panel::{Panel, note, time_scale};

/// Suffix of the file name, and the plot.
pub(super) fn draw(panel: &Panel<'_>, parts: bool) -> Vec<(String, Scene)> {
    let mut plots = Vec::new();
    let mut add = |name: &str, scene: Option<Scene>| {
        plots.extend(scene.map(|scene| (name.to_owned(), scene)));
    };
    add("acceptance", acceptance(panel));
    add("complexity-ratio", complexity_ratio(panel));
    add("changed", changed(panel));
    add("seconds-an-epoch", seconds_an_epoch(panel));
    if parts {
        add("document-part-by-epoch", part(panel, Part::Documents, By::Epoch));
        add("document-part-by-time", part(panel, Part::Documents, By::Time));
        add("word-part-by-epoch", part(panel, Part::Words, By::Epoch));
        add("word-part-by-time", part(panel, Part::Words, By::Time));
    }
    plots
}

fn acceptance(panel: &Panel<'_>) -> Option<Scene> {
    let note = "proposals of the current topic left out";
    let share = |_: &Record, point: &Point| point.acceptance.map(|share| 100.0 * share);
    by_epoch(panel, note, "proposals accepted, %", panel.curves(epoch, share))
}

/// Figure 2(e) of LDA*.
fn complexity_ratio(panel: &Panel<'_>) -> Option<Scene> {
    let note = "λ = K_d × share accepted; K_d: distinct topics of a document, mean over tokens";
    let ratio = |_: &Record, point: &Point| point.complexity_ratio();
    by_epoch(panel, note, "complexity ratio λ", panel.curves(epoch, ratio))
}

fn changed(panel: &Panel<'_>) -> Option<Scene> {
    let note = "of the topics drawn in an epoch; WarpLDA draws twice per token, in its two passes";
    let share = |_: &Record, point: &Point| point.changed.map(|share| 100.0 * share);
    by_epoch(panel, note, "topics changed, %", panel.curves(epoch, share))
}

fn seconds_an_epoch(panel: &Panel<'_>) -> Option<Scene> {
    let label = "CPU seconds per epoch";
    by_epoch(panel, "mean since the evaluation before", label, panel.steps(seconds_between))
}

/// Epoch, and CPU seconds per epoch since the previous point.
fn seconds_between(before: &Point, point: &Point) -> (f64, f64) {
    let epochs = f64::from(point.epoch - before.epoch);
    (epoch(point), (point.cpu_seconds - before.cpu_seconds) / epochs)
}

/// A percentage or a cost by epoch, with an axis from 0.
fn by_epoch(panel: &Panel<'_>, note: &str, y_label: &str, curves: Vec<Curve>) -> Option<Scene> {
    Chart {
        title: panel.heading.clone(),
        note: note.to_owned(),
        x_label: "epoch".to_owned(),
        y_label: y_label.to_owned(),
        x_scale: Scale::Linear,
        y_low: Some(0.0),
        y_high: None,
        curves,
        marks: Vec::new(),
    }
    .draw()
}

fn epoch(point: &Point) -> f64 {
    f64::from(point.epoch)
}

/// A part of the log joint.
#[derive(Clone, Copy)]
enum Part {
    Documents,
    Words,
}

#[derive(Clone, Copy)]
enum By {
    Epoch,
    Time,
}

/// Without the random start, which is so low that it would flatten the curves.
fn part(panel: &Panel<'_>, part: Part, by: By) -> Option<Scene> {
    let (x, x_label): (fn(&Point) -> f64, _) = match by {
        By::Epoch => (epoch, "epoch"),
        By::Time => (|point| point.cpu_seconds, "CPU seconds of sampling"),
    };
    let y_label = match part {
        Part::Documents => "document part of the log joint per token",
        Part::Words => "word part of the log joint per token",
    };
    let curves = panel.curves(x, |record, point| {
        let value = match part {
            Part::Documents => point.log_joint_doc,
            Part::Words => point.log_joint_word,
        };
        value.filter(|_| point.epoch > 0).map(|value| value / record.outcome.tokens as f64)
    });
    let ends = curves.iter().filter_map(|curve| curve.points.last());
    Chart {
        title: panel.heading.clone(),
        note: note(panel.records),
        x_label: x_label.to_owned(),
        y_label: y_label.to_owned(),
        x_scale: time_scale(ends.map(|end| end.0)),
        y_low: None,
        y_high: None,
        curves,
        marks: Vec::new(),
    }
    .draw()
}
