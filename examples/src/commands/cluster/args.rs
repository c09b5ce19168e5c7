//! The command line. Names and meanings are a contract: other programs call this one.

use std::path::PathBuf;

use clap::{Parser, Subcommand, ValueEnum, value_parser};
use lda_examples::program::ProgramArgs;
use lda_examples::reading::ReadingArgs;

use crate::commands::cluster::place::Place;
use crate::commands::cluster::training::Training;

const AFTER_HELP: &str = "\
Examples:
  lda cluster local                                               the Rust sources on this machine
  lda cluster local articles.txt --topics 20                      one worker, one server
  lda cluster local docword.nips.txt.gz --workers 4 --servers 2   the same topics, whatever the workers
  lda cluster cut docword.nips.txt.gz --shards 8 --out nips       documents, where all nodes see them
  lda cluster node --config nips.toml --role worker --index 0     one node of a run over a network

Progress and errors go to standard error. Exit status: 0 done, 1 failed, 2 wrong usage, 75 another node
ended or did not answer, or a signal ended this one: start it again. A node that is sent TERM or INT
ends when the epoch is done and its topics are kept; the second signal ends it at once. So does
`local` with --snapshots.";

/// Trains topics by a master, servers and workers.
#[derive(Debug, Parser)]
#[command(name = "cluster", after_help = AFTER_HELP)]
pub struct Args {
    /// What to do
    #[command(subcommand)]
    pub command: Command,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// All nodes are threads of this process
    Local(Box<Local>),
    /// Cut documents into shards, which the nodes of a network read
    Cut(Box<Cut>),
    /// One node of a run, of which a file tells
    Node(Node),
}

/// Training in one process.
#[derive(Debug, clap::Args)]
pub struct Local {
    /// Documents: a file, or a directory of text files. The format is detected, and gzip and zstd are
    /// unpacked. Without it, the Rust sources in cargo's registry
    pub path: Option<PathBuf>,

    /// What is trained, and by whom.
    #[command(flatten)]
    pub training: Training,
    /// Parts of the documents. A result depends on how many there are, and more move more bytes, as each asks for the
    /// rows of its own words [default: 8, or as many as documents or workers]
    #[arg(long, value_name = "N", value_parser = value_parser!(u16).range(1..))]
    pub shards: Option<u16>,

    /// Keep the topics of all tokens here, a directory or an address of an object store: a run that has ended before
    /// its time goes on from them when it is begun again, with the same documents, topics, priors, seed and shards
    #[arg(long, value_name = "DIR|URL")]
    pub snapshots: Option<Place>,
    /// After every so many epochs
    #[arg(long, value_name = "N", default_value_t = 10, requires = "snapshots", value_parser = value_parser!(u32).range(1..))]
    pub snapshot_every: u32,

    /// Answer over HTTP how the run stands: a page, and /metrics for Prometheus
    #[arg(long, value_name = "HOST:PORT")]
    pub status: Option<String>,

    /// How the program goes on
    #[command(flatten)]
    pub program: ProgramArgs,
    /// How documents are read
    #[command(flatten)]
    pub reading: ReadingArgs,
}

/// Documents for nodes of a network.
#[derive(Debug, clap::Args)]
pub struct Cut {
    /// Documents: a file, or a directory of text files. The format is detected, and gzip and zstd are
    /// unpacked. Without it, the Rust sources in cargo's registry
    pub path: Option<PathBuf>,

    /// Where they are written to: a directory, or an address of an object store, as s3://bucket/prefix
    #[arg(long, value_name = "DIR|URL")]
    pub out: Place,
    /// Parts of the documents: a worker has one at least. A result depends on how many there are, and more move more
    /// bytes, as each asks for the rows of its own words: as many as there may ever be workers are enough
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = value_parser!(u16).range(1..))]
    pub shards: u16,

    /// How the program goes on
    #[command(flatten)]
    pub program: ProgramArgs,
    /// How documents are read
    #[command(flatten)]
    pub reading: ReadingArgs,
}

/// One node.
#[derive(Debug, clap::Args)]
pub struct Node {
    /// What is trained and who the nodes are, the same file for all of them
    #[arg(long, value_name = "FILE")]
    pub config: PathBuf,
    /// What this one is; a rank of MPI knows by its number
    #[arg(long, value_enum)]
    pub role: Option<RoleName>,
    /// Which of the servers or workers, from 0 [default: the number of its pod, where it is in one]
    #[arg(long, value_name = "N", requires = "role")]
    pub index: Option<u32>,
    /// Address to listen at, where it is another than the others know [default: the node's address]
    #[arg(long, value_name = "HOST:PORT", requires = "role")]
    pub listen: Option<String>,
    /// Where the nodes are, in place of the addresses of the configuration: a line a node, with its number (0 is the
    /// master, then the servers, then the workers) and HOST:PORT
    #[arg(long, value_name = "FILE", requires = "role")]
    pub nodes: Option<PathBuf>,
    /// End at once when standard input ends: of whoever starts nodes and holds it, no node outlives the end
    #[arg(long)]
    pub end_with_input: bool,
    /// Answer over HTTP how this node stands: a page, and /metrics for Prometheus
    #[arg(long, value_name = "HOST:PORT")]
    pub status: Option<String>,

    /// How the program goes on
    #[command(flatten)]
    pub program: ProgramArgs,
}

/// What a node is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum RoleName {
    /// Says when a round begins; writes the model
    Master,
    /// Has counts of words
    Server,
    /// Has documents
    Worker,
}

impl RoleName {
    /// As configurations have it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Master => "master",
            Self::Server => "server",
            Self::Worker => "worker",
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_command_is_well_formed() {
        Args::command().debug_assert();
    }
}
