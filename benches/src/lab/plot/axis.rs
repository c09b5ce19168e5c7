//! Axes: from values to pixels, and where the ticks are.

/// How an axis is divided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scale {
    /// Equal steps.
    Linear,
    /// Equal factors; values must be above 0.
    Log,
}

/// One axis: values `low..=high` over pixels `from..=to`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Axis {
    pub(super) scale: Scale,
    pub(super) low: f64,
    pub(super) high: f64,
    pub(super) from: f32,
    pub(super) to: f32,
}

impl Axis {
    pub(super) fn at(&self, value: f64) -> f32 {
        let position = |x: f64| match self.scale {
            Scale::Linear => x,
            Scale::Log => x.max(f64::MIN_POSITIVE).ln(),
        };
        let (low, high) = (position(self.low), position(self.high));
        let share = (position(value) - low) / (high - low);
        // Far outside the picture is as good as infinitely far, and safe to draw.
        self.from + (self.to - self.from) * share.clamp(-10.0, 10.0) as f32
    }

    /// Ticks: value and label.
    pub(super) fn ticks(&self) -> Vec<(f64, String)> {
        match self.scale {
            Scale::Linear => linear(self.low, self.high),
            Scale::Log => logarithmic(self.low, self.high),
        }
    }
}

/// Up to six steps of 1, 2, 2.5 or 5 times a power of ten.
fn linear(low: f64, high: f64) -> Vec<(f64, String)> {
    let (step, decimals) = step(high - low);
    let first = (low / step - 1e-9).ceil() as i64;
    let last = (high / step + 1e-9).floor() as i64;
    (first..=last)
        .map(|i| {
            let value = i as f64 * step;
            (value, number(value, decimals))
        })
        .collect()
}

/// A round step, and the decimals it needs.
fn step(span: f64) -> (f64, usize) {
    let rough = span / 6.0;
    let power = rough.log10().floor();
    // A span of exactly six steps has six, whatever its last bit.
    let enough = |factor: &f64| factor * 10f64.powf(power) >= rough * 0.999;
    let factor = [1.0, 2.0, 2.5, 5.0].into_iter().find(enough).unwrap_or(10.0);
    let finest = match factor {
        2.5 => power - 1.0,
        10.0 => power + 1.0,
        _ => power,
    };
    (factor * 10f64.powf(power), (-finest).max(0.0) as usize)
}

/// Powers of ten; with 2 and 5 times them where there are few.
fn logarithmic(low: f64, high: f64) -> Vec<(f64, String)> {
    let decades = (high / low).log10();
    let factors: &[f64] = match decades {
        d if d < 1.5 => &[1.0, 2.0, 3.0, 5.0, 7.0],
        d if d < 3.5 => &[1.0, 2.0, 5.0],
        _ => &[1.0],
    };
    let (first, last) = (low.log10().floor() as i32, high.log10().ceil() as i32);
    (first..=last)
        .flat_map(|power| factors.iter().map(move |factor| (factor * 10f64.powi(power), power)))
        .filter(|&(value, _)| value >= low * 0.999 && value <= high * 1.001)
        .map(|(value, power)| (value, number(value, (-power).max(0) as usize)))
        .collect()
}

/// With a true minus sign and a blank between thousands.
fn number(value: f64, decimals: usize) -> String {
    let text = format!("{:.decimals$}", value.abs());
    let (whole, fraction) = text.split_once('.').unwrap_or((&text, ""));
    let mut out = String::new();
    if value < 0.0 && text.bytes().any(|c| (b'1'..=b'9').contains(&c)) {
        out.push('−');
    }
    for (i, digit) in whole.chars().enumerate() {
        if i > 0 && whole.len() > 4 && (whole.len() - i) % 3 == 0 {
            out.push(' ');
        }
        out.push(digit);
    }
    if !fraction.is_empty() {
        out.push('.');
        out.push_str(fraction);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(ticks: Vec<(f64, String)>) -> Vec<String> {
        ticks.into_iter().map(|(_, label)| label).collect()
    }

    #[test]
    fn linear_ticks_are_round() {
        assert_eq!(
            labels(linear(-10.4, -9.2)),
            ["−10.4", "−10.2", "−10.0", "−9.8", "−9.6", "−9.4", "−9.2"]
        );
        assert_eq!(
            labels(linear(0.0, 25_000.0)),
            ["0", "5000", "10 000", "15 000", "20 000", "25 000"]
        );
        assert_eq!(labels(linear(-10.57, -9.08))[..2], ["−10.50", "−10.25"]);
        assert!(labels(linear(-0.02, 0.02)).contains(&"0.00".to_owned()));
    }

    #[test]
    fn logarithmic_ticks_thin_out() {
        assert_eq!(labels(logarithmic(0.5, 10.0)), ["0.5", "0.7", "1", "2", "3", "5", "7", "10"]);
        assert_eq!(labels(logarithmic(0.1, 200.0)).len(), 11);
        assert_eq!(labels(logarithmic(1.0, 1e6)).len(), 7);
    }

    #[test]
    fn ends_of_the_axis_are_ends_of_the_picture() {
        for scale in [Scale::Linear, Scale::Log] {
            let axis = Axis { scale, low: 1.0, high: 100.0, from: 300.0, to: 20.0 };
            assert!((axis.at(1.0) - 300.0).abs() < 1e-3 && (axis.at(100.0) - 20.0).abs() < 1e-3);
        }
        let axis = Axis { scale: Scale::Log, low: 1.0, high: 100.0, from: 0.0, to: 100.0 };
        assert!((axis.at(10.0) - 50.0).abs() < 1e-3);
    }
}
