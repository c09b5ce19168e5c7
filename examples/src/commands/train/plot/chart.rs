//! Layout of a line chart.

use super::{Anchor, Color, HEIGHT, Shape, Size, WIDTH};

const LEFT: f64 = 150.0;
const RIGHT: f64 = WIDTH as f64 - 60.0;
const TOP: f64 = 150.0;
const BOTTOM: f64 = HEIGHT as f64 - 210.0;
/// Maximum number of characters per caption line.
const CAPTION_LETTERS: usize = 155;
const CAPTION_LINES: usize = 3;
/// Maximum number of points of a curve that is drawn with dots.
const DOTTED: usize = 40;

const INK: Color = Color(0x22, 0x22, 0x22);
const PALE: Color = Color(0x66, 0x66, 0x66);
const GRID: Color = Color(0xdd, 0xdd, 0xdd);
/// Blue of the Okabe-Ito palette, whose colours are distinct for colour-blind readers.
const CURVE: Color = Color(0x00, 0x72, 0xb2);

/// A curve with its title, labels and caption.
#[derive(Clone, Debug)]
pub struct Chart {
    /// Title above the chart.
    pub title: String,
    /// Label of the vertical axis.
    pub y_label: String,
    /// Label of the horizontal axis.
    pub x_label: String,
    /// Small text below the chart.
    pub caption: String,
    /// (x, y), x ascending from 0.
    pub points: Vec<(f64, f64)>,
}

impl Chart {
    /// Computes the shapes to draw.
    pub(super) fn lay_out(&self) -> Vec<Shape> {
        let finite = |point: &&(f64, f64)| point.0.is_finite() && point.1.is_finite();
        let points: Vec<(f64, f64)> = self.points.iter().filter(finite).copied().collect();
        let x = Axis::new(std::iter::once(0.0).chain(points.iter().map(|point| point.0)));
        let y = Axis::new(points.iter().map(|point| point.1));
        let place = |&(px, py): &(f64, f64)| {
            (LEFT + x.place(px) * (RIGHT - LEFT), BOTTOM - y.place(py) * (BOTTOM - TOP))
        };
        let mut shapes = Vec::new();
        for &tick in &y.ticks {
            let at = place(&(x.low, tick)).1;
            shapes.push(line(vec![(LEFT, at), (RIGHT, at)], 2.0, GRID));
            shapes.push(text((LEFT - 16.0, at), Anchor::End, Size::Normal, PALE, y.label(tick)));
        }
        for &tick in &x.ticks {
            let at = place(&(tick, y.low)).0;
            shapes.push(line(vec![(at, BOTTOM), (at, BOTTOM + 10.0)], 2.0, PALE));
            let below = (at, BOTTOM + 30.0);
            shapes.push(text(below, Anchor::Middle, Size::Normal, PALE, x.label(tick)));
        }
        shapes.push(line(vec![(LEFT, BOTTOM), (RIGHT, BOTTOM)], 2.0, PALE));
        let left = 40.0;
        shapes.push(text((left, 54.0), Anchor::Start, Size::Large, INK, self.title.clone()));
        shapes.push(text((left, 100.0), Anchor::Start, Size::Normal, PALE, self.y_label.clone()));
        let below = (RIGHT, BOTTOM + 68.0);
        shapes.push(text(below, Anchor::End, Size::Normal, PALE, self.x_label.clone()));
        for (n, row) in wrap(&self.caption, CAPTION_LETTERS).into_iter().enumerate() {
            if n < CAPTION_LINES {
                let at = (left, HEIGHT as f64 - 98.0 + 30.0 * n as f64);
                shapes.push(text(at, Anchor::Start, Size::Small, PALE, row));
            }
        }
        let curve: Vec<_> = points.iter().map(place).collect();
        if let (Some(&end), Some(last)) = (curve.last(), points.last()) {
            if curve.len() <= DOTTED {
                let dot = |&at| Shape::Dot { at, radius: 6.0, color: CURVE };
                shapes.extend(curve.iter().map(dot));
            }
            shapes.push(line(curve, 4.0, CURVE));
            shapes.push(Shape::Dot { at: end, radius: 8.0, color: CURVE });
            // A likelihood rises, so there is space above its end.
            let above = (end.0, end.1 - 28.0);
            let value = format!("{:.4}", last.1);
            shapes.push(text(above, Anchor::End, Size::Normal, CURVE, value));
        }
        shapes
    }
}

fn line(points: Vec<(f64, f64)>, width: f64, color: Color) -> Shape {
    Shape::Line { points, width, color }
}

fn text(at: (f64, f64), anchor: Anchor, size: Size, color: Color, text: String) -> Shape {
    Shape::Text { at, anchor, size, color, text }
}

/// A range of values with round tick marks.
#[derive(Debug)]
struct Axis {
    low: f64,
    high: f64,
    ticks: Vec<f64>,
    decimals: usize,
}

impl Axis {
    /// An axis that contains all values; from 0 to 1 if there are none.
    fn new(values: impl Iterator<Item = f64>) -> Self {
        let (mut low, mut high) = values
            .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| {
                (low.min(value), high.max(value))
            });
        if low > high {
            (low, high) = (0.0, 1.0);
        }
        // A flat curve is centred; the margin is large enough that `low + margin != low`.
        let margin = if high > low { 0.0 } else { 1e-3f64.max(low.abs() * 1e-3) };
        (low, high) = (low - margin, high + margin);
        let step = round_step((high - low) / 6.0);
        let first = (low / step).floor() as i64;
        let last = (high / step).ceil() as i64;
        let ticks: Vec<f64> = (first..=last).map(|n| n as f64 * step).collect();
        let decimals = (-step.log10().floor()).clamp(0.0, 12.0) as usize;
        Self { low: first as f64 * step, high: last as f64 * step, ticks, decimals }
    }

    /// 0 at the low end, 1 at the high one.
    fn place(&self, value: f64) -> f64 {
        (value - self.low) / (self.high - self.low)
    }

    fn label(&self, tick: f64) -> String {
        // No "-0".
        format!("{:.*}", self.decimals, tick + 0.0)
    }
}

/// The least of 1, 2, 5 times a power of ten that is not below `least`.
fn round_step(least: f64) -> f64 {
    let power = 10f64.powf(least.log10().floor());
    let factor = [1.0, 2.0, 5.0].into_iter().find(|factor| factor * power >= least * 0.999_999);
    factor.unwrap_or(10.0) * power
}

/// Breaks a text at spaces into lines of at most `letters` characters.
fn wrap(text: &str, letters: usize) -> Vec<String> {
    let mut rows: Vec<String> = Vec::new();
    let mut free = 0;
    for word in text.split(' ') {
        let length = word.chars().count();
        match rows.last_mut().filter(|_| length < free) {
            Some(row) => {
                row.push(' ');
                row.push_str(word);
                free -= length + 1;
            }
            None => {
                rows.push(word.chars().take(letters).collect());
                free = letters.saturating_sub(length);
            }
        }
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    pub(in crate::commands::train::plot) fn chart(points: Vec<(f64, f64)>) -> Chart {
        Chart {
            title: "kos <&> 100 topics".into(),
            y_label: "nats".into(),
            x_label: "seconds".into(),
            caption: "a b".into(),
            points,
        }
    }

    #[test]
    fn ticks_are_round_and_around_the_values() {
        let axis = Axis::new([-9.37, -8.912].into_iter());
        assert_eq!((axis.label(axis.low), axis.label(axis.high)), ("-9.4".into(), "-8.9".into()));
        assert_eq!(axis.ticks.len(), 6);
        let axis = Axis::new([0.0, 731.0].into_iter());
        assert_eq!((axis.low, axis.high, axis.label(200.0)), (0.0, 800.0, "200".into()));
        for values in [&[][..], &[5.0], &[0.0], &[1e-300], &[-1e300, 1e300], &[1.0, 1.0 + 1e-15]] {
            let axis = Axis::new(values.iter().copied());
            assert!(axis.low < axis.high, "{values:?}");
            assert!((2..12).contains(&axis.ticks.len()), "{values:?}: {:?}", axis.ticks);
        }
    }

    #[test]
    fn all_shapes_are_on_the_canvas() {
        let curves = [vec![], vec![(1.0, -9.0)], vec![(0.5, -10.0), (2.0, f64::NAN), (9.0, -8.0)]];
        for points in curves {
            for shape in chart(points).lay_out() {
                let points = match shape {
                    Shape::Line { points, .. } => points,
                    Shape::Dot { at, .. } | Shape::Text { at, .. } => vec![at],
                };
                for (x, y) in points {
                    assert!((0.0..WIDTH as f64).contains(&x), "{x}");
                    assert!((0.0..HEIGHT as f64).contains(&y), "{y}");
                }
            }
        }
    }

    #[test]
    fn long_captions_are_wrapped() {
        assert_eq!(wrap("aa bb cc", 5), ["aa bb", "cc"]);
        assert_eq!(wrap("aaaaaaaa b", 5), ["aaaaa", "b"]);
    }
}
