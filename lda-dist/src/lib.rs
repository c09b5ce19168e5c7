//! Latent Dirichlet allocation on many machines, with a parameter server (LDA*, Yu et al. 2017).
//!
//! A **master** runs the rounds, **servers** hold the word–topic counts, **workers** hold the
//! documents. Results are the same to the bit for any number of workers, on any transport, and for
//! runs in which nodes were killed and restarted (with a staleness of 0).
//!
//! Start with [`cluster`]: the roles as state machines, and a driver that runs them over any
//! [`Transport`](lda_transport::Transport) or as threads of one process. [`in_process`] is the
//! reference implementation without messages.
//!
//! | module | contents |
//! |---|---|
//! | [`cluster`] | master, server and worker roles; [`run`](cluster::run), [`run_local`](cluster::run_local) |
//! | [`in_process`] | all shards and servers in one process, round by round |
//! | [`shard`], [`server`] | the two halves of a round: documents, and rows of counts |
//! | [`route`] | whether a word's row is pulled or its tokens are pushed |
//! | [`placement`] | which server holds which words |
//! | [`wire`], [`request`] | encoding of rows, deltas and pushes; requests to servers |
//! | [`row_store`] | versions of encoded rows on a server |
//! | [`aggregate`] | quantities that servers compute over all rows |
//! | [`documents`], [`storage`], [`snapshot`] | shards and checkpoints, in directories or object stores |
//! | [`locality`] | which worker gets which shards |
//! | [`spec`] | topics, words, priors and seed of a run |
//! | [`config`], [`plan`] | how a run is divided into shards, partitions, rounds and servers |
//! | [`sync`] | when a round may start, and which updates its counts contain |
//! | [`stats`] | bytes that move between workers and servers |
//!
//! # Example
//!
//! ```
//! use lda_core::Corpus;
//! use lda_dist::cluster::{Assignment, Setup, run_local};
//! use lda_dist::documents::InMemory;
//! use lda_dist::config::Options;
//! use lda_dist::spec::ModelSpec;
//!
//! let corpus = Corpus::from_tokens((0..40).map(|d| vec![d % 4, d % 4 + 4, d % 4]))?;
//! let setup = Setup {
//!     spec: ModelSpec::new(10, corpus.num_words() as u32, 0.1.into(), 0.01, 1)?,
//!     options: Options { shards: 2, partitions: 2, rounds: 2, ..Options::default() },
//!     workers: 2,
//!     assignment: Assignment::Runs,
//!     epochs: 20,
//!     evaluate_every: 10,
//!     top_words: 5,
//!     collect_model: false,
//!     corpus: corpus.fingerprint(),
//!     checkpoint_every: 0,
//!     prefetch: 1,
//! };
//! let documents = InMemory::new(corpus, setup.options.shards)?;
//! // A master, a server and two workers.
//! let nodes = run_local::<u16, _>(&setup, &documents, None, None, |_| {})?;
//! assert_eq!(nodes.len(), 4);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Features
//!
//! `object-store`: documents and checkpoints in S3, Google Cloud Storage, Azure and compatible stores.

#![forbid(unsafe_code)]

pub mod aggregate;
pub mod cluster;
pub mod config;
pub mod documents;
pub mod in_process;
pub mod locality;
mod partition_sampler;
pub mod placement;
pub mod plan;
pub mod request;
pub mod route;
mod row_cache;
pub mod row_store;
pub mod server;
pub mod shard;
pub mod snapshot;
pub mod spec;
pub mod stats;
pub mod storage;
pub mod sync;
mod trip;
pub mod wire;
