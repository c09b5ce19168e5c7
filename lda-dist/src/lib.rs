//! Latent Dirichlet allocation over many machines.
//!
//! What is here is what travels between them: [`wire`].

#![forbid(unsafe_code)]

pub mod wire;
