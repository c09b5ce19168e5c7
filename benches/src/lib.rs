//! Corpora and measurements for the topic-model crates.
//!
//! [`synthetic`] makes corpora of known topics from a seed: the same tokens on every machine, so
//! that a figure measured on one can be measured again on another. `lab` (feature `lab`) runs
//! samplers side by side and writes tables and plots.

#[cfg(feature = "lab")]
pub mod lab;
pub mod synthetic;
