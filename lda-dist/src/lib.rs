//! Latent Dirichlet allocation over many machines.
//!
//! What is here so far: what travels between them ([`wire`]), and which server has which words ([`placement`]).

#![forbid(unsafe_code)]

pub mod placement;
pub mod wire;
