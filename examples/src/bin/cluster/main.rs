//! `cluster`: training by a master, servers and workers.
//!
//! ```text
//! cluster local docword.nips.txt.gz --topics 100 --workers 4 --servers 2 --save nips.lda
//! ```
//!
//! An example of how to embed `lda_dist`: [`Setup`](lda_dist::cluster::Setup) says how a job is divided, and
//! [`run_local`](lda_dist::cluster::run_local) runs all nodes as threads of this process.

mod args;
mod run;

use std::process::ExitCode;

use clap::Parser;
use lda_examples::program;

fn main() -> ExitCode {
    program::end(run::run(&args::Args::parse()), run::ClusterError::status)
}
