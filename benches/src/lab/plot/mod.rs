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

/// Colours. The first six are distinct for any kind of colour vision (Okabe and Ito 2008); there are no
/// twenty such colours, so the others differ in lightness too.
pub const PALETTE: [Color; 20] = [
    Color(0x00, 0x72, 0xb2),
    Color(0xd5, 0x5e, 0x00),
    Color(0x00, 0x9e, 0x73),
    Color(0xcc, 0x79, 0xa7),
    Color(0x56, 0xb4, 0xe9),
    Color(0xe6, 0x9f, 0x00),
    Color(0x33, 0x22, 0x88),
    Color(0x66, 0x99, 0x00),
    Color(0x88, 0x22, 0x55),
    Color(0x00, 0x55, 0x4d),
    Color(0xc0, 0x98, 0xe8),
    Color(0xff, 0x80, 0x80),
    Color(0x80, 0x68, 0x00),
    Color(0x40, 0xd0, 0xc0),
    Color(0xa0, 0xa0, 0xa0),
    Color(0xb0, 0x60, 0x30),
    Color(0x90, 0xc0, 0x60),
    Color(0x80, 0x40, 0xc0),
    Color(0xd0, 0x20, 0x40),
    Color(0x11, 0x11, 0x11),
];

const INK: Color = Color(0x22, 0x22, 0x22);
const GRID: Color = Color(0xe2, 0xe2, 0xe2);
const FRAME: Color = Color(0x88, 0x88, 0x88);
