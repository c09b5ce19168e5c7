//! Plot of the likelihood over time.
//!
//! A [`Chart`] is laid out once, as lines, dots and texts on a canvas of pixels; [`svg`] and
//! [`png`] both draw that list, so the two pictures are the same. Texts use a monospaced font, whose
//! widths are known without a font engine.

mod chart;
mod png;
mod svg;

use std::io::{self, Write};
use std::path::{Path, PathBuf};

pub use chart::Chart;

/// Width of the canvas in pixels.
const WIDTH: usize = 1600;
/// Height of the canvas in pixels.
const HEIGHT: usize = 1000;

/// Format of a plot, selected by the file extension.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Picture {
    /// Pixels.
    Png,
    /// Vectors.
    Svg,
}

impl Picture {
    /// Format of the extension of `path`; `None` if unknown.
    pub fn of(path: &Path) -> Option<Self> {
        match path.extension()?.to_str()?.to_ascii_lowercase().as_str() {
            "png" => Some(Self::Png),
            "svg" => Some(Self::Svg),
            _ => None,
        }
    }

    /// Returns `path` if its extension is known.
    pub fn check(path: PathBuf) -> Result<PathBuf, String> {
        match Self::of(&path) {
            Some(_) => Ok(path),
            None => Err("give a file name that ends in .png or .svg".to_owned()),
        }
    }

    /// Draws `chart`; `metadata`, which must be ASCII, goes into the file.
    pub fn write(self, chart: &Chart, metadata: &str, out: &mut impl Write) -> io::Result<()> {
        let shapes = chart.lay_out();
        match self {
            Self::Png => png::write(&shapes, metadata, out),
            Self::Svg => svg::write(&shapes, metadata, out),
        }
    }
}

/// A shape to draw; coordinates in pixels from the upper left corner.
#[derive(Clone, Debug, PartialEq)]
enum Shape {
    /// A line through points.
    Line { points: Vec<(f64, f64)>, width: f64, color: Color },
    /// A filled circle.
    Dot { at: (f64, f64), radius: f64, color: Color },
    /// A text; `at` is vertically centred on it.
    Text { at: (f64, f64), anchor: Anchor, size: Size, color: Color, text: String },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Color(u8, u8, u8);

/// End of a text that is at its coordinates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Anchor {
    Start,
    Middle,
    End,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Size {
    Small,
    Normal,
    Large,
}
