//! Latent Dirichlet allocation over many machines.
//!
//! What is here so far: what travels between them ([`wire`]), which server has which words
//! ([`placement`]), and which words come to a worker or have their tokens sent to a server ([`route`]).

#![forbid(unsafe_code)]

pub mod placement;
pub mod route;
pub mod wire;
