//! Code that the subcommands of `lda` share: input and inference options, inference of the topics of
//! documents, matrix files, output files, and the table of topics.

#[cfg(feature = "train")]
pub mod allocator;
#[cfg(feature = "http")]
pub mod connections;
#[cfg(feature = "common")]
pub mod documents;
#[cfg(feature = "common")]
pub mod held_out;
#[cfg(feature = "common")]
pub mod json;
#[cfg(feature = "common")]
pub mod matrix;
#[cfg(feature = "common")]
pub mod memory;
#[cfg(feature = "common")]
pub mod method;
#[cfg(feature = "metrics")]
pub mod metrics;
#[cfg(feature = "common")]
pub mod output;
#[cfg(feature = "common")]
pub mod parsers;
#[cfg(feature = "common")]
pub mod program;
#[cfg(feature = "common")]
pub mod reading;
#[cfg(feature = "common")]
pub mod signals;
#[cfg(feature = "common")]
pub mod sources;
#[cfg(feature = "common")]
pub mod table;
#[cfg(feature = "common")]
pub mod text;

/// The README's example, compiled and run as a doctest.
#[cfg(all(doctest, feature = "common"))]
#[doc = include_str!("../../README.md")]
pub struct Readme;
