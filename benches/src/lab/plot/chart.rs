//! Curves over two axes.

use super::axis::{Axis, Scale};
use super::scene::{Anchor, Color, Scene, text_width};
use super::{FRAME, GRID, INK};

/// One line of a chart.
#[derive(Clone, Debug)]
pub struct Curve {
    /// Its name in the legend; curves of the same name share an entry.
    pub label: String,
    /// Its colour.
    pub color: Color,
    /// Whether it is drawn in dashes.
    pub dashed: bool,
    /// (x, y), in the order they are joined.
    pub points: Vec<(f64, f64)>,
}

/// A dashed line across the chart.
#[derive(Clone, Debug)]
pub struct Mark {
    /// Written at its right end.
    pub label: String,
    /// Value on the y axis.
    pub y: f64,
}

/// Curves with a title, axes and a legend.
#[derive(Clone, Debug)]
pub struct Chart {
    /// Heading.
    pub title: String,
    /// Text in small letters under the heading; may be empty.
    pub note: String,
    /// Name and unit of the x axis.
    pub x_label: String,
    /// Name and unit of the y axis.
    pub y_label: String,
    /// Division of the x axis; points at x ≤ 0 are left out of a logarithmic one.
    pub x_scale: Scale,
    /// Lowest y shown; lower points are cut off. From the data unless given.
    pub y_low: Option<f64>,
    /// Highest y shown. From the data unless given.
    pub y_high: Option<f64>,
    /// The lines.
    pub curves: Vec<Curve>,
    /// Dashed lines; those outside the y axis are left out.
    pub marks: Vec<Mark>,
}

pub(super) const WIDTH: f32 = 860.0;
pub(super) const HEIGHT: f32 = 520.0;
pub(super) const LEFT: f32 = 82.0;
pub(super) const RIGHT: f32 = WIDTH - 62.0;
pub(super) const TOP: f32 = 96.0;
pub(super) const BOTTOM: f32 = HEIGHT - 62.0;

impl Chart {
    /// Draws it; `None` where there is no curve of two points.
    pub fn draw(&self) -> Option<Scene> {
        let curves = self.visible();
        let points = || curves.iter().flat_map(|curve| &curve.points);
        let xs = || points().map(|point| point.0);
        let ys = || points().map(|point| point.1);
        let (low, high) = (lowest(xs())?, highest(xs())?);
        let x_low = match self.x_scale {
            Scale::Linear => low.min(0.0),
            // Its decades would be empty where all curves are still below the picture.
            Scale::Log => {
                let shown =
                    points().filter(|point| self.y_low.is_none_or(|y_low| point.1 >= y_low));
                lowest(shown.map(|point| point.0)).filter(|&x| x < high).unwrap_or(low)
            }
        };
        let x = Axis {
            scale: self.x_scale,
            low: x_low,
            high: above(x_low, high),
            from: LEFT,
            to: RIGHT,
        };
        let (low, high) = (lowest(ys())?, highest(ys())?);
        let margin = 0.04 * (high - self.y_low.unwrap_or(low)).max(1e-9);
        let low = self.y_low.unwrap_or(low - margin);
        let high = above(low, self.y_high.unwrap_or(high + margin));
        let y = Axis { scale: Scale::Linear, low, high, from: BOTTOM, to: TOP };

        let mut scene = Scene::new(WIDTH as u32, HEIGHT as u32);
        heading(&mut scene, &self.title, &self.note);
        for (value, label) in x.ticks() {
            vertical_tick(&mut scene, x.at(value), &label);
        }
        y_axis(&mut scene, &y, &self.y_label);
        for mark in self.marks.iter().filter(|mark| mark.y > low && mark.y < high) {
            let at = y.at(mark.y);
            scene.path(&[(LEFT, at), (RIGHT, at)], FRAME, 1.0, 4.0, None);
            scene.text((RIGHT + 6.0, at + 4.0), &mark.label, 11.5, INK, Anchor::Start);
        }
        let within = Some((LEFT, TOP, RIGHT - LEFT, BOTTOM - TOP));
        for curve in &curves {
            let points: Vec<_> = curve.points.iter().map(|&(a, b)| (x.at(a), y.at(b))).collect();
            let dash = if curve.dashed { 6.0 } else { 0.0 };
            scene.path(&points, curve.color, 1.8, dash, within);
        }
        frame(&mut scene);
        let below = ((LEFT + RIGHT) / 2.0, BOTTOM + 44.0);
        scene.text(below, &self.x_label, 13.0, INK, Anchor::Middle);
        legend(&mut scene, curves.iter().map(|c| (c.label.as_str(), c.color, c.dashed)));
        Some(scene)
    }

    /// Curves of at least two points that can be shown.
    fn visible(&self) -> Vec<Curve> {
        let shown = |point: &&(f64, f64)| {
            point.0.is_finite()
                && point.1.is_finite()
                && (self.x_scale == Scale::Linear || point.0 > 0.0)
        };
        let mut curves = self.curves.clone();
        for curve in &mut curves {
            curve.points = curve.points.iter().filter(shown).copied().collect();
        }
        curves.retain(|curve| curve.points.len() > 1);
        curves
    }
}

fn lowest(values: impl Iterator<Item = f64>) -> Option<f64> {
    values.min_by(f64::total_cmp)
}

fn highest(values: impl Iterator<Item = f64>) -> Option<f64> {
    values.max_by(f64::total_cmp)
}

/// An axis needs some length.
fn above(low: f64, high: f64) -> f64 {
    if high > low { high } else { low + low.abs().max(1.0) * 0.01 }
}

pub(super) fn heading(scene: &mut Scene, title: &str, note: &str) {
    scene.text((LEFT, 30.0), title, 17.0, INK, Anchor::Start);
    scene.text((LEFT, 50.0), note, 11.5, Color(0x66, 0x66, 0x66), Anchor::Start);
}

fn vertical_tick(scene: &mut Scene, at: f32, label: &str) {
    scene.path(&[(at, TOP), (at, BOTTOM)], GRID, 1.0, 0.0, None);
    scene.text((at, BOTTOM + 19.0), label, 12.0, INK, Anchor::Middle);
}

pub(super) fn y_axis(scene: &mut Scene, y: &Axis, label: &str) {
    for (value, label) in y.ticks() {
        let at = y.at(value);
        scene.path(&[(LEFT, at), (RIGHT, at)], GRID, 1.0, 0.0, None);
        scene.text((LEFT - 8.0, at + 4.0), &label, 12.0, INK, Anchor::End);
    }
    scene.text_upwards((22.0, (TOP + BOTTOM) / 2.0), label, 13.0);
}

pub(super) fn frame(scene: &mut Scene) {
    let corners = [(LEFT, TOP), (LEFT, BOTTOM), (RIGHT, BOTTOM)];
    scene.path(&corners, FRAME, 1.2, 0.0, None);
}

/// One entry a name, in rows above the picture: its colour, and whether its line is dashed.
pub(super) fn legend<'a>(scene: &mut Scene, entries: impl Iterator<Item = (&'a str, Color, bool)>) {
    let mut seen: Vec<&str> = Vec::new();
    let (mut x, mut y) = (LEFT, 75.0);
    for (label, color, dashed) in entries {
        if seen.contains(&label) {
            continue;
        }
        seen.push(label);
        let width = 28.0 + text_width(label, 12.5);
        if x + width > WIDTH - 8.0 {
            (x, y) = (LEFT, y + 16.0);
        }
        if dashed {
            scene.fill((x, y - 7.0, 9.0, 5.0), color);
            scene.fill((x + 13.0, y - 7.0, 9.0, 5.0), color);
        } else {
            scene.fill((x, y - 7.0, 22.0, 5.0), color);
        }
        scene.text((x + 28.0, y), label, 12.5, INK, Anchor::Start);
        x += width + 18.0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chart(points: Vec<(f64, f64)>, x_scale: Scale) -> Chart {
        let curve = Curve { label: "one".into(), color: Color(0, 0, 0), dashed: false, points };
        Chart {
            title: "Title".into(),
            note: String::new(),
            x_label: "x".into(),
            y_label: "y".into(),
            x_scale,
            y_low: None,
            y_high: None,
            curves: vec![curve.clone(), curve],
            marks: vec![Mark { label: "in".into(), y: 1.5 }, Mark { label: "out".into(), y: 9.0 }],
        }
    }

    #[test]
    fn an_empty_chart_is_not_drawn() {
        assert!(chart(vec![], Scale::Linear).draw().is_none());
        assert!(chart(vec![(1.0, f64::NAN), (2.0, 3.0)], Scale::Linear).draw().is_none());
        assert!(chart(vec![(0.0, 1.0), (1.0, 2.0)], Scale::Log).draw().is_none());
    }

    #[test]
    fn a_chart_has_its_labels_once() {
        let svg = chart(vec![(0.0, 1.0), (1.0, 2.0)], Scale::Linear).draw().unwrap().svg();
        assert_eq!(svg.matches(">one<").count(), 1, "{svg}");
        assert!(svg.contains(">in<") && !svg.contains(">out<"));
        assert_eq!(svg.matches("clip-path=").count(), 2);
    }

    #[test]
    fn a_long_legend_goes_on_in_the_next_row() {
        let names: Vec<String> = (0..14).map(|i| format!("method-{i}")).collect();
        let mut scene = Scene::new(WIDTH as u32, HEIGHT as u32);
        let color = Color(1, 2, 3);
        legend(&mut scene, names.iter().map(|name| (name.as_str(), color, false)));
        let svg = scene.svg();
        assert!(svg.contains("y=\"75.0\"") && svg.contains("y=\"91.0\""), "{svg}");
    }

    #[test]
    fn flat_curves_are_drawn() {
        for scale in [Scale::Linear, Scale::Log] {
            let scene = chart(vec![(1.0, 2.0), (1.0, 2.0)], scale).draw().unwrap();
            assert!(!scene.svg().contains("NaN"));
        }
    }
}
