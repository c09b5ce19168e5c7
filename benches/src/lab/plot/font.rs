//! The one font of the plots: outlines to fill, widths to measure.

use tiny_skia::{Path, PathBuilder};
use ttf_parser::{Face, OutlineBuilder};

/// Licence in `DejaVuSans-LICENSE.txt`.
const DATA: &[u8] = include_bytes!("DejaVuSans-subset.ttf");

pub(super) struct Font(Face<'static>);

impl Font {
    pub(super) fn new() -> Self {
        Self(Face::parse(DATA, 0).expect("the font is part of the program"))
    }

    /// Width of `text` in pixels at `size` pixels an em.
    pub(super) fn width(&self, text: &str, size: f32) -> f32 {
        text.chars().map(|c| self.advance(c)).sum::<f32>() * self.unit(size)
    }

    /// Outline of `text`, its baseline starting at (0, 0), y downwards; `None` for blanks.
    pub(super) fn outline(&self, text: &str, size: f32) -> Option<Path> {
        let mut pen = Pen { path: PathBuilder::new(), x: 0.0, unit: self.unit(size) };
        for c in text.chars() {
            if let Some(glyph) = self.0.glyph_index(c) {
                // A blank has no outline, which is no error.
                let _ = self.0.outline_glyph(glyph, &mut pen);
            }
            pen.x += self.advance(c) * pen.unit;
        }
        pen.path.finish()
    }

    fn unit(&self, size: f32) -> f32 {
        size / f32::from(self.0.units_per_em())
    }

    /// A character outside the subset is as wide as a digit, and blank.
    fn advance(&self, c: char) -> f32 {
        let glyph = self.0.glyph_index(c).or_else(|| self.0.glyph_index('0'));
        glyph.and_then(|glyph| self.0.glyph_hor_advance(glyph)).map_or(0.0, f32::from)
    }
}

struct Pen {
    path: PathBuilder,
    x: f32,
    unit: f32,
}

impl Pen {
    fn at(&self, x: f32, y: f32) -> (f32, f32) {
        (self.x + x * self.unit, -y * self.unit)
    }
}

impl OutlineBuilder for Pen {
    fn move_to(&mut self, x: f32, y: f32) {
        let (x, y) = self.at(x, y);
        self.path.move_to(x, y);
    }

    fn line_to(&mut self, x: f32, y: f32) {
        let (x, y) = self.at(x, y);
        self.path.line_to(x, y);
    }

    fn quad_to(&mut self, x1: f32, y1: f32, x: f32, y: f32) {
        let ((x1, y1), (x, y)) = (self.at(x1, y1), self.at(x, y));
        self.path.quad_to(x1, y1, x, y);
    }

    fn curve_to(&mut self, x1: f32, y1: f32, x2: f32, y2: f32, x: f32, y: f32) {
        let ((x1, y1), (x2, y2), (x, y)) = (self.at(x1, y1), self.at(x2, y2), self.at(x, y));
        self.path.cubic_to(x1, y1, x2, y2, x, y);
    }

    fn close(&mut self) {
        self.path.close();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn has_every_letter_that_labels_use() {
        let font = Font::new();
        for c in "AZaz09 .,:;()%/+−–×·≥∞αβλ".chars() {
            assert!(font.0.glyph_index(c).is_some(), "{c:?}");
        }
        assert!(font.width("WW", 10.0) > font.width("ii", 10.0));
        assert!(font.outline("x", 10.0).is_some());
        assert!(font.outline(" ", 10.0).is_none());
    }
}
