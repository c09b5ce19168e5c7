//! Latent Dirichlet allocation at any scale, as a library to embed.
//!
//! A [`Corpus`] holds documents as (word, count) pairs. The samplers resample one topic a token
//! until the counts settle; what remains is a topic model, which [`infer`] applies to new documents.

mod checksum;
pub mod container;
pub mod corpus;
pub mod counts;
pub mod discrete;
pub mod eval;
pub mod infer;
pub mod interop;
pub mod layout;
pub mod model;
pub mod prior;
pub mod random;
pub mod sampler;
pub mod simd;
pub mod special;
pub mod train;

pub use corpus::Corpus;

/// The README's example, compiled and run as a doctest.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
pub struct Readme;
