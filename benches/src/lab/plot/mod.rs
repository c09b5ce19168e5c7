//! Plots, drawn once and written as SVG and PNG.
//!
//! A [`Chart`] places axes, curves or bars on a [`Scene`], a flat list of shapes. The scene is
//! written as SVG text or painted by `tiny-skia`; the letters come from a subset of DejaVu Sans
//! that lies beside this file, so a plot looks the same on a machine without fonts.

mod axis;
mod bars;
mod chart;
mod font;
mod scene;

pub use axis::Scale;
pub use bars::{BarGroup, Bars};
pub use chart::{Chart, Curve, Mark};
pub use scene::{Color, Scene};

/// Colours that people with any kind of colour vision can tell apart (Okabe and Ito 2008).
const PALETTE: [Color; 7] = [
    Color(0x00, 0x72, 0xb2),
    Color(0xd5, 0x5e, 0x00),
    Color(0x00, 0x9e, 0x73),
    Color(0xcc, 0x79, 0xa7),
    Color(0x56, 0xb4, 0xe9),
    Color(0xe6, 0x9f, 0x00),
    Color(0x55, 0x55, 0x55),
];

/// The colour of series `i`; they repeat after seven.
pub fn color(i: usize) -> Color {
    PALETTE[i % PALETTE.len()]
}

const INK: Color = Color(0x22, 0x22, 0x22);
const GRID: Color = Color(0xe2, 0xe2, 0xe2);
const FRAME: Color = Color(0x88, 0x88, 0x88);
