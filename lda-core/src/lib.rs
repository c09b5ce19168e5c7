//! Latent Dirichlet allocation at any scale, as a library to embed.
//!
//! A [`Corpus`] holds documents as (word, count) pairs. The samplers resample one topic a token
//! until the counts settle; what remains is a topic model.

pub mod corpus;
pub mod discrete;
pub mod special;

pub use corpus::Corpus;
