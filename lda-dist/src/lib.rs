//! Latent Dirichlet allocation on many machines, with a parameter server (LDA*, Yu et al. 2017).
//!
//! ```
//! use lda_core::Corpus;
//! use lda_dist::Distributed;
//!
//! let themes = [["tree", "leaf", "wood"], ["sea", "wave", "foam"]];
//! let corpus = Corpus::from_words((0..100).map(|d| themes[d % 2]))?;
//! let trained = Distributed::topics(2)
//!     .alpha(0.1)
//!     .workers(2)
//!     .servers(2)
//!     .epochs(50)
//!     .seed(1)
//!     .train(&corpus, ())?;
//! assert_eq!(trained.model.num_topics(), 2);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! [`Distributed`] runs all nodes as threads of this process and returns the same
//! [`Trained`](lda_core::Trained) as [`Lda`](lda_core::Lda). Between machines, the same nodes run over
//! any [`Transport`](lda_transport::Transport): start with [`cluster`].
//!
//! A **master** runs the rounds, **servers** hold the word–topic counts, **workers** hold the
//! documents. Results are the same to the bit for any number of workers, on any transport, and for
//! runs in which nodes were killed and restarted (with a staleness of 0). [`in_process`] is the
//! reference implementation without messages.
//!
//! | task | item |
//! |---|---|
//! | train in one process | [`Distributed`]; `examples/in_process.rs` |
//! | describe a run of many nodes | [`cluster::Setup`], with [`spec::ModelSpec`] and [`config::Options`] |
//! | run one node over a transport of your own | [`cluster::run`]; `examples/own_transport.rs` |
//! | run nodes as threads, with checkpoints | [`cluster::run_local`] |
//! | compute a statistic of your own on the servers | [`aggregate::Registry`]; `examples/own_aggregate.rs` |
//! | read documents from a source of your own | [`documents::Documents`] |
//! | keep checkpoints elsewhere | [`storage::Storage`] |
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
//! | [`spec`], [`priors`] | topics, words, priors and seed of a run; how priors change |
//! | [`config`], [`plan`] | how a run is divided into shards, partitions, rounds and servers |
//! | [`division`] | default numbers of shards, partitions and rounds |
//! | [`sync`] | when a round may start, and which updates its counts contain |
//! | [`stats`] | bytes that move between workers and servers |
//!
//! # Features
//!
//! | feature | default | adds |
//! |---|---|---|
//! | `object-store` | off | documents and checkpoints in S3, Google Cloud Storage, Azure and compatible stores |
//! | `hdfs` | off | documents and checkpoints in HDFS |
//! | `tracing` | off | spans for subscribers of `tracing`, target `lda_dist`: `round` (INFO; fields `epoch`, `round`) until a worker has sampled it, `pull` (DEBUG; also `shard`, `partition`) until all rows have arrived, `push` (DEBUG) until the answer has. Also those of lda-core and lda-transport |

#![forbid(unsafe_code)]

pub mod aggregate;
pub mod cluster;
pub mod config;
mod distributed;
pub mod division;
pub mod documents;
mod held_rows;
pub mod in_process;
pub mod locality;
mod partition_sampler;
pub mod placement;
pub mod plan;
pub mod priors;
pub mod request;
mod round_deltas;
pub mod route;
mod row_cache;
pub mod row_store;
mod sampler_pool;
mod saved_options;
pub mod server;
pub mod shard;
pub mod snapshot;
mod spans;
pub mod spec;
pub mod stats;
pub mod storage;
pub mod sync;
mod trip;
pub mod wire;

pub use distributed::{Distributed, DistributedError};

/// The README's example, compiled and run as a doctest.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
pub struct Readme;
