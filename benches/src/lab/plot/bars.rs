//! Bars side by side, in groups.

use super::axis::{Axis, Scale};
use super::chart::{BOTTOM, HEIGHT, LEFT, RIGHT, TOP, WIDTH, frame, heading, legend, y_axis};
use super::scene::{Anchor, Color, Scene};
use super::{GRID, INK};

/// Bars that stand together.
#[derive(Clone, Debug)]
pub struct BarGroup {
    /// Written under the group; lines are divided by `\n`.
    pub label: String,
    /// Value of each series, in the order of [`Bars::series`]; `None` leaves a gap.
    pub values: Vec<Option<f64>>,
}

/// Groups of bars with a title, an axis and a legend.
#[derive(Clone, Debug)]
pub struct Bars {
    /// Heading.
    pub title: String,
    /// Said under the heading in small letters; may be empty.
    pub note: String,
    /// Name and unit of the y axis.
    pub y_label: String,
    /// Names and colours.
    pub series: Vec<(String, Color)>,
    /// The groups, from left to right.
    pub groups: Vec<BarGroup>,
}

impl Bars {
    /// Draws it; `None` where there is no bar.
    pub fn draw(&self) -> Option<Scene> {
        let values = self.groups.iter().flat_map(|group| group.values.iter().flatten());
        let highest = values.copied().max_by(f64::total_cmp).filter(|&high| high > 0.0)?;
        let y =
            Axis { scale: Scale::Linear, low: 0.0, high: highest * 1.08, from: BOTTOM, to: TOP };
        let mut scene = Scene::new(WIDTH as u32, HEIGHT as u32);
        heading(&mut scene, &self.title, &self.note);
        y_axis(&mut scene, &y, &self.y_label);
        let wide = (RIGHT - LEFT) / self.groups.len() as f32;
        let bar = (0.8 * wide / self.series.len() as f32).min(64.0);
        for (i, group) in self.groups.iter().enumerate() {
            let middle = LEFT + wide * (i as f32 + 0.5);
            let start = middle - bar * self.series.len() as f32 / 2.0;
            for (j, (value, (_, color))) in group.values.iter().zip(&self.series).enumerate() {
                let Some(value) = *value else { continue };
                let (left, top) = (start + bar * j as f32, y.at(value));
                scene.fill((left + 1.0, top, bar - 2.0, (BOTTOM - top).max(0.5)), *color);
                if bar > 24.0 {
                    let above = (left + bar / 2.0, top - 5.0);
                    scene.text(above, &short(value), 11.0, INK, Anchor::Middle);
                }
            }
            for (line, text) in group.label.split('\n').enumerate() {
                let below = (middle, BOTTOM + 19.0 + 15.0 * line as f32);
                scene.text(below, text, 12.0, INK, Anchor::Middle);
            }
            if i > 0 {
                let edge = middle - wide / 2.0;
                scene.path(&[(edge, BOTTOM), (edge, BOTTOM + 8.0)], GRID, 1.0, 0.0, None);
            }
        }
        frame(&mut scene);
        legend(
            &mut scene,
            self.series.iter().map(|(label, color)| (label.as_str(), *color, false)),
        );
        Some(scene)
    }
}

/// Three digits.
fn short(value: f64) -> String {
    match value {
        v if v < 10.0 => format!("{v:.2}"),
        v if v < 100.0 => format!("{v:.1}"),
        v => format!("{v:.0}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gaps_have_no_bar() {
        let bars = |values: Vec<Option<f64>>| Bars {
            title: String::new(),
            note: String::new(),
            y_label: String::new(),
            series: vec![("a".into(), Color(1, 1, 1)), ("b".into(), Color(2, 2, 2))],
            groups: vec![BarGroup { label: "kos\nK = 100".into(), values }],
        };
        assert!(bars(vec![None, None]).draw().is_none());
        let svg = bars(vec![Some(3.4567), None]).draw().unwrap().svg();
        assert!(svg.contains(">3.46<") && svg.contains(">K = 100<"));
        // One bar, two entries of the legend.
        assert_eq!((svg.matches("#010101").count(), svg.matches("#020202").count()), (2, 1));
    }
}
