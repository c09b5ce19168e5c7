//! PNG output.
//!
//! Lines are drawn by distance: the coverage of a pixel is the part of it within half a width of the
//! line. For a line at least a pixel wide this is half the width plus 1/2 minus the distance of the
//! pixel's centre. Letters are bitmaps.

use std::io::{self, Write};

use noto_sans_mono_bitmap::{FontWeight, RasterHeight, get_raster, get_raster_width};
use png::{BitDepth, ColorType, Compression, Encoder, EncodingError};

use super::{Anchor, Color, HEIGHT, Shape, Size, WIDTH};

pub(super) fn write(shapes: &[Shape], metadata: &str, out: &mut impl Write) -> io::Result<()> {
    let mut canvas = Canvas::new();
    for shape in shapes {
        canvas.draw(shape);
    }
    canvas.encode(metadata, out).map_err(|error| match error {
        EncodingError::IoError(error) => error,
        other => io::Error::other(other),
    })
}

/// White pixels, three bytes each.
struct Canvas {
    pixels: Vec<u8>,
}

impl Canvas {
    fn new() -> Self {
        Self { pixels: vec![255; WIDTH * HEIGHT * 3] }
    }

    fn encode(&self, metadata: &str, out: &mut impl Write) -> Result<(), EncodingError> {
        let mut encoder = Encoder::new(out, WIDTH as u32, HEIGHT as u32);
        encoder.set_color(ColorType::Rgb);
        encoder.set_depth(BitDepth::Eight);
        encoder.set_compression(Compression::Balanced);
        encoder.add_text_chunk("Comment".to_owned(), metadata.to_owned())?;
        let mut writer = encoder.write_header()?;
        writer.write_image_data(&self.pixels)?;
        writer.finish()
    }

    fn draw(&mut self, shape: &Shape) {
        match shape {
            Shape::Line { points, width, color } => self.draw_line(points, width / 2.0, *color),
            Shape::Dot { at, radius, color } => self.draw_line(&[*at, *at], *radius, *color),
            Shape::Text { at, anchor, size, color, text } => {
                self.draw_text(*at, *anchor, *size, *color, text);
            }
        }
    }

    /// Draws a line with round ends. Where segments overlap the larger coverage counts, so that joints
    /// are not visible.
    fn draw_line(&mut self, points: &[(f64, f64)], half_width: f64, color: Color) {
        let mut cover = vec![0u8; WIDTH * HEIGHT];
        for pair in points.windows(2) {
            let (from, to) = (pair[0], pair[1]);
            let reach = half_width + 1.0;
            let columns = span(from.0, to.0, reach, WIDTH);
            for y in span(from.1, to.1, reach, HEIGHT) {
                for x in columns.clone() {
                    let distance = distance((x as f64 + 0.5, y as f64 + 0.5), from, to);
                    let part = (half_width + 0.5 - distance).clamp(0.0, 1.0);
                    let pixel = &mut cover[y * WIDTH + x];
                    *pixel = (*pixel).max((255.0 * part).round() as u8);
                }
            }
        }
        for (pixel, cover) in cover.into_iter().enumerate().filter(|(_, cover)| *cover > 0) {
            self.blend(pixel, cover, color);
        }
    }

    fn draw_text(&mut self, at: (f64, f64), anchor: Anchor, size: Size, color: Color, text: &str) {
        let (weight, height) = (FontWeight::Regular, raster_height(size));
        let advance = get_raster_width(weight, height) as f64;
        let length = advance * text.chars().count() as f64;
        let start = match anchor {
            Anchor::Start => at.0,
            Anchor::Middle => at.0 - length / 2.0,
            Anchor::End => at.0 - length,
        };
        let top = (at.1 - height.val() as f64 / 2.0).round().max(0.0) as usize;
        for (n, c) in text.chars().enumerate() {
            let left = (start + advance * n as f64).round().max(0.0) as usize;
            let raster = get_raster(c, weight, height).or_else(|| get_raster('?', weight, height));
            let Some(raster) = raster else { continue };
            for (row, intensities) in raster.rows().enumerate() {
                for (column, &intensity) in intensities.iter().enumerate() {
                    let (x, y) = (left + column, top + row);
                    if x < WIDTH && y < HEIGHT {
                        self.blend(y * WIDTH + x, intensity, color);
                    }
                }
            }
        }
    }

    fn blend(&mut self, pixel: usize, cover: u8, Color(red, green, blue): Color) {
        let cover = u32::from(cover);
        let channels = &mut self.pixels[3 * pixel..3 * pixel + 3];
        for (channel, color) in channels.iter_mut().zip([red, green, blue]) {
            let mixed = u32::from(*channel) * (255 - cover) + u32::from(color) * cover;
            *channel = ((mixed + 127) / 255) as u8;
        }
    }
}

fn raster_height(size: Size) -> RasterHeight {
    match size {
        Size::Small => RasterHeight::Size20,
        Size::Normal => RasterHeight::Size24,
        Size::Large => RasterHeight::Size32,
    }
}

/// Pixels from `reach` before the smaller coordinate to `reach` after the larger.
fn span(a: f64, b: f64, reach: f64, end: usize) -> std::ops::Range<usize> {
    let first = (a.min(b) - reach).floor().max(0.0) as usize;
    let last = (a.max(b) + reach).ceil().clamp(0.0, end as f64) as usize;
    first.min(last)..last
}

/// Distance from a point to the segment between `from` and `to`.
fn distance(point: (f64, f64), from: (f64, f64), to: (f64, f64)) -> f64 {
    let (dx, dy) = (to.0 - from.0, to.1 - from.1);
    let (px, py) = (point.0 - from.0, point.1 - from.1);
    let length = dx * dx + dy * dy;
    let along = if length > 0.0 { ((px * dx + py * dy) / length).clamp(0.0, 1.0) } else { 0.0 };
    (px - along * dx).hypot(py - along * dy)
}

#[cfg(test)]
mod tests {
    use super::*;

    const BLACK: Color = Color(0, 0, 0);

    fn pixel(canvas: &Canvas, x: usize, y: usize) -> u8 {
        canvas.pixels[3 * (y * WIDTH + x)]
    }

    #[test]
    fn lines_have_the_requested_width() {
        let mut canvas = Canvas::new();
        canvas.draw_line(&[(10.0, 20.0), (30.0, 20.0), (50.0, 20.0)], 2.0, BLACK);
        let column: Vec<u8> = (16..24).map(|y| pixel(&canvas, 30, y)).collect();
        assert_eq!(column, [255, 255, 0, 0, 0, 0, 255, 255]);
        canvas.draw_line(&[(-50.0, -50.0), (5000.0, 5000.0)], 2.0, BLACK);
        assert_eq!(pixel(&canvas, 500, 500), 0);
    }

    #[test]
    fn texts_are_anchored() {
        for (anchor, inside, outside) in
            [(Anchor::Start, 400..440, 300..400), (Anchor::End, 360..400, 400..500)]
        {
            let mut canvas = Canvas::new();
            canvas.draw_text((400.0, 100.0), anchor, Size::Large, BLACK, "\u{1f600}HHH");
            let dark = |columns: std::ops::Range<usize>| {
                columns.into_iter().any(|x| (80..120).any(|y| pixel(&canvas, x, y) < 128))
            };
            assert!(dark(inside) && !dark(outside), "{anchor:?}");
        }
    }

    #[test]
    fn the_file_has_size_and_comment() {
        let mut out = Vec::new();
        write(&[], "{\"seed\":0}", &mut out).unwrap();
        assert_eq!(out[..8], *b"\x89PNG\r\n\x1a\n");
        assert_eq!(out[16..24], [0, 0, 6, 64, 0, 0, 3, 232]);
        let text = b"tEXtComment\0{\"seed\":0}";
        assert!(out.windows(text.len()).any(|window| window == text));
    }
}
