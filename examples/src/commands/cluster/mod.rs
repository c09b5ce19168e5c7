//! `lda cluster`: training with a parameter server: a master, servers and workers.
//!
//! ```text
//! lda cluster local docword.nips.txt.gz --topics 100 --workers 4 --servers 2 --save nips.lda
//! ```
//!
//! Also an example of how to embed `lda_dist`: [`Setup`](lda_dist::cluster::Setup) describes a job,
//! [`run_local`](lda_dist::cluster::run_local) runs all nodes as threads of this process, and
//! [`run`](lda_dist::cluster::run) runs one node over any transport: gRPC (feature `grpc`) or MPI
//! (feature `mpi`). Documents and checkpoints are in directories or in an object store (feature
//! `object-store`).

mod args;
mod config;
mod cut;
mod document_topics;
mod error;
mod from_model;
mod held_out;
mod incarnation;
mod local;
mod log;
mod loss_notes;
mod model;
mod monitor;
mod node;
mod nodes;
mod progress;
mod put;
mod results;
mod role;
mod saved;
#[cfg(feature = "status")]
mod status;
mod stop;
mod stop_rule;
mod storage_url;
mod training;

use std::process::ExitCode;

use lda_examples::program;

pub use args::Args;
use args::Command;
use error::ClusterError;

/// Runs `lda cluster`.
pub fn execute(args: &Args) -> ExitCode {
    let run = match &args.command {
        Command::Local(args) => local::run(args),
        Command::Cut(args) => cut::run(args),
        Command::Put(args) => put::run(args),
        Command::Node(args) => node::run(args),
        Command::Model(args) => model::run(args),
        Command::DocumentTopics(args) => document_topics::run(args),
    };
    program::end(run, ClusterError::status)
}
