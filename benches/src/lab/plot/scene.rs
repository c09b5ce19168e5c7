//! A picture in SVG, written shape by shape.

use std::fmt::{self, Display, Write};

/// Red, green, blue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Color(pub u8, pub u8, pub u8);

impl Display for Color {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "#{:02x}{:02x}{:02x}", self.0, self.1, self.2)
    }
}

/// The point of a text that lies at its coordinates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Anchor {
    Start,
    Middle,
    End,
}

/// A box: left, top, width, height.
pub(super) type Area = (f32, f32, f32, f32);

/// Shapes on a white ground, in pixels from the upper left corner.
#[derive(Clone, Debug)]
pub struct Scene {
    svg: String,
    clips: usize,
}

/// Appends a line; writing to a string does not fail.
macro_rules! line {
    ($scene:expr, $($text:tt)*) => { let _ = writeln!($scene.svg, $($text)*); };
}

impl Scene {
    pub(super) fn new(width: u32, height: u32) -> Self {
        let svg = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" \
             viewBox=\"0 0 {width} {height}\" font-family=\"DejaVu Sans, Verdana, sans-serif\">\n\
             <rect width=\"{width}\" height=\"{height}\" fill=\"#ffffff\"/>\n"
        );
        Self { svg, clips: 0 }
    }

    pub(super) fn fill(&mut self, (x, y, w, h): Area, color: Color) {
        line!(
            self,
            "<rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{w:.1}\" height=\"{h:.1}\" fill=\"{color}\"/>"
        );
    }

    /// A line through `points`; dashes of `dash` pixels unless 0; cut off outside `within`.
    pub(super) fn path(
        &mut self,
        points: &[(f32, f32)],
        color: Color,
        width: f32,
        dash: f32,
        within: Option<Area>,
    ) {
        let mut clip = String::new();
        if let Some((x, y, w, h)) = within {
            let number = self.clips;
            self.clips += 1;
            line!(
                self,
                "<clipPath id=\"c{number}\"><rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{w:.1}\" \
                 height=\"{h:.1}\"/></clipPath>"
            );
            clip = format!(" clip-path=\"url(#c{number})\"");
        }
        let dashes = match dash {
            0.0 => String::new(),
            dash => format!(" stroke-dasharray=\"{dash}\""),
        };
        let points: Vec<_> = points.iter().map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
        line!(
            self,
            "<polyline points=\"{}\" fill=\"none\" stroke=\"{color}\" stroke-width=\"{width}\" \
             stroke-linejoin=\"round\"{dashes}{clip}/>",
            points.join(" ")
        );
    }

    pub(super) fn text(
        &mut self,
        (x, y): (f32, f32),
        text: &str,
        size: f32,
        color: Color,
        anchor: Anchor,
    ) {
        let anchor = match anchor {
            Anchor::Start => "start",
            Anchor::Middle => "middle",
            Anchor::End => "end",
        };
        line!(
            self,
            "<text x=\"{x:.1}\" y=\"{y:.1}\" font-size=\"{size}\" fill=\"{color}\" \
             text-anchor=\"{anchor}\">{}</text>",
            escape(text)
        );
    }

    /// Centred text that reads from below upwards.
    pub(super) fn text_upwards(&mut self, (x, y): (f32, f32), text: &str, size: f32) {
        line!(
            self,
            "<text x=\"{x:.1}\" y=\"{y:.1}\" font-size=\"{size}\" fill=\"{}\" \
             text-anchor=\"middle\" transform=\"rotate(-90 {x:.1} {y:.1})\">{}</text>",
            super::INK,
            escape(text)
        );
    }

    /// The file.
    pub fn svg(&self) -> String {
        format!("{}</svg>\n", self.svg)
    }
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

/// Width of `text` in pixels: an estimate, since fonts differ between viewers.
pub(super) fn text_width(text: &str, size: f32) -> f32 {
    // Mean width of the letters of DejaVu Sans, which is wider than most fonts.
    0.62 * size * text.chars().count() as f32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_escaped_and_lines_cut_at_their_box() {
        let mut scene = Scene::new(40, 20);
        scene.text((2.0, 12.0), "a<b & c", 10.0, Color(0, 0, 0), Anchor::Start);
        let line = [(0.0, 10.0), (40.0, 10.0)];
        scene.path(&line, Color(255, 0, 0), 2.0, 3.0, Some((0.0, 0.0, 20.0, 20.0)));
        scene.path(&line, Color(255, 0, 0), 2.0, 0.0, None);
        let svg = scene.svg();
        assert!(svg.contains("a&lt;b &amp; c"), "{svg}");
        assert_eq!(svg.matches("<clipPath id=\"c0\">").count(), 1, "{svg}");
        assert_eq!(svg.matches("clip-path=\"url(#c0)\"").count(), 1, "{svg}");
        assert_eq!(svg.matches("stroke-dasharray=\"3\"").count(), 1, "{svg}");
    }
}
