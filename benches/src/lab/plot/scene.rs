//! A flat list of shapes, written as SVG or painted as PNG.

use std::fmt::Write;

use tiny_skia::{
    FillRule, LineCap, LineJoin, Mask, Paint, PathBuilder, Pixmap, Rect, Stroke, StrokeDash,
    Transform,
};

use super::font::Font;

/// Red, green, blue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Color(pub u8, pub u8, pub u8);

/// The point of a text that lies at its coordinates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Anchor {
    Start,
    Middle,
    End,
}

/// A box: left, top, width, height.
pub(super) type Area = (f32, f32, f32, f32);

#[derive(Clone, Debug)]
enum Shape {
    Box { area: Area, color: Color },
    Path { points: Vec<(f32, f32)>, color: Color, width: f32, dash: f32, within: Option<Area> },
    Text { at: (f32, f32), text: String, size: f32, color: Color, anchor: Anchor, upwards: bool },
}

/// Shapes on a white ground, in pixels from the upper left corner.
#[derive(Clone, Debug)]
pub struct Scene {
    width: u32,
    height: u32,
    shapes: Vec<Shape>,
}

impl Scene {
    pub(super) fn new(width: u32, height: u32) -> Self {
        Self { width, height, shapes: Vec::new() }
    }

    pub(super) fn fill(&mut self, area: Area, color: Color) {
        self.shapes.push(Shape::Box { area, color });
    }

    /// A line through `points`; dashes of `dash` pixels unless 0; cut off outside `within`.
    pub(super) fn path(
        &mut self,
        points: Vec<(f32, f32)>,
        color: Color,
        width: f32,
        dash: f32,
        within: Option<Area>,
    ) {
        self.shapes.push(Shape::Path { points, color, width, dash, within });
    }

    pub(super) fn text(
        &mut self,
        at: (f32, f32),
        text: impl Into<String>,
        size: f32,
        color: Color,
        anchor: Anchor,
    ) {
        self.shapes.push(Shape::Text {
            at,
            text: text.into(),
            size,
            color,
            anchor,
            upwards: false,
        });
    }

    /// Centred text that reads from below upwards.
    pub(super) fn text_upwards(&mut self, at: (f32, f32), text: impl Into<String>, size: f32) {
        let (text, color, anchor) = (text.into(), super::INK, Anchor::Middle);
        self.shapes.push(Shape::Text { at, text, size, color, anchor, upwards: true });
    }

    /// The scene as an SVG file.
    pub fn svg(&self) -> String {
        let (width, height) = (self.width, self.height);
        let mut out = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" \
             viewBox=\"0 0 {width} {height}\" font-family=\"DejaVu Sans, Verdana, sans-serif\">\n\
             <rect width=\"{width}\" height=\"{height}\" fill=\"#ffffff\"/>\n"
        );
        for (number, shape) in self.shapes.iter().enumerate() {
            shape.svg(number, &mut out);
        }
        out.push_str("</svg>\n");
        out
    }

    /// The scene as a PNG file, `scale` pixels of the file for each of the scene's.
    pub fn png(&self, scale: f32) -> Vec<u8> {
        let size = |length: u32| ((length as f32 * scale).round() as u32).max(1);
        let mut painter = Painter {
            pixmap: Pixmap::new(size(self.width), size(self.height))
                .expect("a plot is far smaller than the largest image"),
            transform: Transform::from_scale(scale, scale),
            font: Font::new(),
        };
        painter.pixmap.fill(tiny_skia::Color::WHITE);
        for shape in &self.shapes {
            painter.draw(shape);
        }
        painter.pixmap.encode_png().expect("writing to memory does not fail")
    }
}

impl Shape {
    fn svg(&self, number: usize, out: &mut String) {
        // Writing to a string does not fail.
        let _ = match self {
            Self::Box { area: (x, y, w, h), color } => writeln!(
                out,
                "<rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{w:.1}\" height=\"{h:.1}\" fill=\"{}\"/>",
                hex(*color)
            ),
            Self::Path { points, color, width, dash, within } => {
                let mut clip = String::new();
                if let Some((x, y, w, h)) = within {
                    let _ = writeln!(
                        out,
                        "<clipPath id=\"c{number}\"><rect x=\"{x:.1}\" y=\"{y:.1}\" \
                         width=\"{w:.1}\" height=\"{h:.1}\"/></clipPath>"
                    );
                    clip = format!(" clip-path=\"url(#c{number})\"");
                }
                let dashes = if *dash > 0.0 {
                    format!(" stroke-dasharray=\"{dash}\"")
                } else {
                    String::new()
                };
                let points: Vec<_> = points.iter().map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
                writeln!(
                    out,
                    "<polyline points=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"{width}\" \
                     stroke-linejoin=\"round\"{dashes}{clip}/>",
                    points.join(" "),
                    hex(*color)
                )
            }
            Self::Text { at: (x, y), text, size, color, anchor, upwards } => {
                let anchor = match anchor {
                    Anchor::Start => "start",
                    Anchor::Middle => "middle",
                    Anchor::End => "end",
                };
                let turn = if *upwards {
                    format!(" transform=\"rotate(-90 {x:.1} {y:.1})\"")
                } else {
                    String::new()
                };
                writeln!(
                    out,
                    "<text x=\"{x:.1}\" y=\"{y:.1}\" font-size=\"{size}\" fill=\"{}\" \
                     text-anchor=\"{anchor}\"{turn}>{}</text>",
                    hex(*color),
                    escape(text)
                )
            }
        };
    }
}

fn hex(Color(r, g, b): Color) -> String {
    format!("#{r:02x}{g:02x}{b:02x}")
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

struct Painter {
    pixmap: Pixmap,
    transform: Transform,
    font: Font,
}

impl Painter {
    fn draw(&mut self, shape: &Shape) {
        match shape {
            Shape::Box { area, color } => {
                if let Some(rect) = rect(*area) {
                    let (paint, transform) = (paint(*color), self.transform);
                    self.pixmap.fill_rect(rect, &paint, transform, None);
                }
            }
            Shape::Path { points, color, width, dash, within } => {
                self.line(points, *color, (*width, *dash), *within);
            }
            Shape::Text { at: (x, y), text, size, color, anchor, upwards } => {
                let Some(outline) = self.font.outline(text, *size) else { return };
                let back = match anchor {
                    Anchor::Start => 0.0,
                    Anchor::Middle => 0.5,
                    Anchor::End => 1.0,
                } * self.font.width(text, *size);
                let turn = if *upwards { -90.0 } else { 0.0 };
                let transform = self
                    .transform
                    .pre_translate(*x, *y)
                    .pre_concat(Transform::from_rotate(turn))
                    .pre_translate(-back, 0.0);
                let paint = paint(*color);
                self.pixmap.fill_path(&outline, &paint, FillRule::Winding, transform, None);
            }
        }
    }

    fn line(
        &mut self,
        points: &[(f32, f32)],
        color: Color,
        (width, dash): (f32, f32),
        within: Option<Area>,
    ) {
        let mut builder = PathBuilder::new();
        for (i, &(x, y)) in points.iter().enumerate() {
            if i == 0 { builder.move_to(x, y) } else { builder.line_to(x, y) }
        }
        let Some(path) = builder.finish() else { return };
        let stroke = Stroke {
            width,
            line_cap: LineCap::Butt,
            line_join: LineJoin::Round,
            dash: (dash > 0.0).then(|| StrokeDash::new(vec![dash, dash], 0.0)).flatten(),
            ..Stroke::default()
        };
        let mask = within.and_then(rect).and_then(|rect| {
            let mut mask = Mask::new(self.pixmap.width(), self.pixmap.height())?;
            let path = PathBuilder::from_rect(rect);
            mask.fill_path(&path, FillRule::Winding, true, self.transform);
            Some(mask)
        });
        self.pixmap.stroke_path(&path, &paint(color), &stroke, self.transform, mask.as_ref());
    }
}

fn rect((x, y, width, height): Area) -> Option<Rect> {
    Rect::from_xywh(x, y, width, height)
}

fn paint(Color(r, g, b): Color) -> Paint<'static> {
    let mut paint = Paint::default();
    paint.set_color_rgba8(r, g, b, 255);
    paint.anti_alias = true;
    paint
}

/// Width of `text` in pixels.
pub(super) fn text_width(text: &str, size: f32) -> f32 {
    Font::new().width(text, size)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn svg_escapes_and_png_has_its_size() {
        let mut scene = Scene::new(40, 20);
        scene.text((2.0, 12.0), "a<b & c", 10.0, Color(0, 0, 0), Anchor::Start);
        scene.path(vec![(0.0, 0.0), (40.0, 20.0)], Color(255, 0, 0), 2.0, 3.0, None);
        assert!(scene.svg().contains("a&lt;b &amp; c"), "{}", scene.svg());
        let decoded = Pixmap::decode_png(&scene.png(2.0)).unwrap();
        assert_eq!((decoded.width(), decoded.height()), (80, 40));
    }

    #[test]
    fn lines_are_cut_at_their_box() {
        let mut scene = Scene::new(40, 20);
        let line = vec![(0.0, 10.0), (40.0, 10.0)];
        scene.path(line, Color(255, 0, 0), 4.0, 0.0, Some((0.0, 0.0, 20.0, 20.0)));
        let decoded = Pixmap::decode_png(&scene.png(1.0)).unwrap();
        let at = |x| decoded.pixel(x, 10).unwrap().demultiply();
        assert_eq!((at(10).red(), at(10).green()), (255, 0));
        assert_eq!((at(30).red(), at(30).green()), (255, 255));
    }
}
