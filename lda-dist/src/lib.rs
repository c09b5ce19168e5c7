//! Latent Dirichlet allocation over many machines.
//!
//! What is here: what travels between them ([`wire`]), which server has which words ([`placement`]), which words
//! come to a worker or have their tokens sent to a server ([`route`]), what a worker has ([`shard`]) and what a server
//! has ([`store`], [`server`]), what the one asks of the other ([`request`]), what servers tell of all their rows
//! ([`aggregate`]), rounds of them in one process ([`in_process`]), and the same by nodes that send each other messages
//! ([`cluster`]); documents that are kept a shard at a time ([`documents`]), where all nodes find them ([`storage`]):
//! files, or objects of S3, Google Cloud Storage and Azure (feature `object-store`); which worker has which shards
//! ([`locality`]); what a run goes on from when a node has failed ([`snapshot`]).

#![forbid(unsafe_code)]

pub mod aggregate;
pub mod cluster;
pub mod documents;
pub mod in_process;
pub mod locality;
mod partition_sampler;
pub mod placement;
pub mod request;
pub mod route;
mod row_cache;
pub mod row_store;
pub mod server;
pub mod shard;
pub mod snapshot;
pub mod spec;
pub mod storage;
pub mod wire;
