//! The command line. Names and meanings are a contract: other programs call this one.

use std::path::PathBuf;

use clap::{Parser, Subcommand, ValueEnum, value_parser};
use lda_dist::together::Routing;
use lda_examples::program::ProgramArgs;
use lda_examples::reading::ReadingArgs;

const AFTER_HELP: &str = "\
Examples:
  cluster local articles.txt --topics 20                      one worker, one server
  cluster local docword.nips.txt.gz --workers 4 --servers 2   the same topics, whatever the workers

Progress and errors go to standard error. Exit status: 0 done, 1 failed, 2 wrong usage.";

/// Trains topics by a master, servers and workers.
#[derive(Debug, Parser)]
#[command(name = "cluster", version, after_help = AFTER_HELP, max_term_width = 100)]
pub struct Args {
    /// Where the nodes are
    #[command(subcommand)]
    pub command: Command,
}

/// Where the nodes are.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// All nodes are threads of this process
    Local(Box<Local>),
}

/// Training in one process.
#[derive(Debug, clap::Args)]
pub struct Local {
    /// Documents: a file, or a directory of text files. The format is detected, and gzip and zstd are
    /// unpacked
    pub path: PathBuf,

    /// Topics
    #[arg(short = 'k', long, value_name = "K", default_value_t = 100, value_parser = value_parser!(u32).range(1..))]
    pub topics: u32,
    /// Prior of the topics of a document [default: 50 / K]
    #[arg(long)]
    pub alpha: Option<f64>,
    /// Prior of the words of a topic
    #[arg(long, default_value_t = 0.01)]
    pub beta: f64,
    /// Passes over all documents
    #[arg(short, long, value_name = "N", default_value_t = 200)]
    pub epochs: u32,
    /// Seed of all chance
    #[arg(long, default_value_t = 0)]
    pub seed: u64,
    /// Compute the likelihood every so many epochs, and after the last
    #[arg(long, value_name = "N", default_value_t = 10)]
    pub evaluate_every: u32,

    /// Workers; never change a result
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = value_parser!(u32).range(1..))]
    pub workers: u32,
    /// Servers
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = value_parser!(u32).range(1..))]
    pub servers: u32,
    /// Parts of the documents; a result depends on how many there are [default: 8, or as many as documents or
    /// workers]
    #[arg(long, value_name = "N", value_parser = value_parser!(u16).range(1..))]
    pub shards: Option<u16>,
    /// Parts of the words [default: 16, or 4 a server, or as many as rounds]
    #[arg(long, value_name = "N", value_parser = value_parser!(u16).range(1..))]
    pub partitions: Option<u16>,
    /// Rounds an epoch, each ended by all together [default: as many as shards]
    #[arg(long, value_name = "N", value_parser = value_parser!(u16).range(1..))]
    pub rounds: Option<u16>,
    /// Which words' rows come to workers; of the others tokens go to servers
    #[arg(long, value_enum, default_value_t = Route::Cheapest)]
    pub routing: Route,

    /// Write the model to this file
    #[arg(long, value_name = "FILE")]
    pub save: Option<PathBuf>,
    /// How the program goes on
    #[command(flatten)]
    pub program: ProgramArgs,
    /// How documents are read
    #[command(flatten)]
    pub reading: ReadingArgs,
}

/// Which words are pulled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Route {
    /// Whatever takes fewer bytes
    Cheapest,
    /// All rows
    Pull,
    /// None
    Push,
}

impl Route {
    /// As the library has it.
    pub fn routing(self) -> Routing {
        match self {
            Self::Cheapest => Routing::Cheapest,
            Self::Pull => Routing::Pull,
            Self::Push => Routing::Push,
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
