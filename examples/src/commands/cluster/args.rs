//! Options of `lda cluster`. Their names and meanings are stable, because other programs call this
//! one.

use std::path::PathBuf;

use clap::{Parser, Subcommand, value_parser};
use lda_examples::parsers::share;
use lda_examples::program::ProgramArgs;
use lda_examples::reading::ReadingArgs;
use lda_examples::text::of_training;

use crate::commands::cluster::document_topics::Part;
use crate::commands::cluster::put::NamedFile;
use crate::commands::cluster::role::RoleName;
use crate::commands::cluster::storage_url::StorageUrl;
use crate::commands::cluster::training::Training;

const AFTER_HELP: &str = "\
Examples:
  lda cluster local                                             the Rust sources of this machine
  lda cluster local articles.txt --topics 20                    one worker, one server
  lda cluster local docword.txt.gz --workers 4 --servers 2      the same topics for any number of workers
  lda cluster cut docword.txt.gz --shards 8 --out nips          shards in a directory that all nodes see
  lda cluster node --config nips.toml --role worker --index 0   one node of a run over a network
  lda cluster model --config nips.toml --out nips.lda           the model of its last checkpoint
  lda cluster document-topics --config nips.toml                the topics of its documents there

Progress and errors go to standard error. The signals TERM and INT stop a node, and `local` with
--snapshots, after the current epoch and its checkpoint; a second signal stops it at once.
Exit status: 0 success, 1 failure, 2 wrong usage, 75 another node exited or did not answer, or a signal
stopped this one: start it again.";

/// Train topics with a parameter server: a master, servers and workers
#[derive(Debug, Parser)]
#[command(name = "cluster", after_help = AFTER_HELP)]
pub struct Args {
    /// Action
    #[command(subcommand)]
    pub command: Command,
}

/// Subcommands of `lda cluster`.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Train in one process, whose threads are the nodes
    Local(Box<Local>),
    /// Divide documents into shards for the nodes of a network
    Cut(Box<Cut>),
    /// Write files to a directory or an object store, for launchers that make shards on several machines
    Put(Put),
    /// Run one node of a run that a file configures
    Node(Node),
    /// Write the model of the last checkpoint of a run that a file configures
    Model(Model),
    /// Write the topics of the training documents at the last checkpoint of a run that a file configures
    DocumentTopics(DocumentTopics),
}

/// Options of `lda cluster local`.
#[derive(Debug, clap::Args)]
#[command(mut_args(of_training))]
pub struct Local {
    /// Documents: a file, or a directory of text files. The format is detected; gzip and zstd are
    /// decompressed [default: the Rust sources in cargo's registry]
    pub path: Option<PathBuf>,

    /// Model and division of the work.
    #[command(flatten)]
    pub training: Training,
    /// Number of shards of the documents, at least one for each thread of all workers. Changes results
    /// [default: 8, or the number of workers if larger, at most the number of documents]
    #[arg(long, value_name = "N", value_parser = value_parser!(u16).range(1..))]
    pub shards: Option<u16>,

    /// Share of the documents to keep out of training, to report held-out perplexity (lower is better)
    #[arg(long, value_name = "SHARE", value_parser = share(false))]
    pub held_out: Option<f64>,
    /// Stop early after N evaluations in a row without an improvement of the held-out perplexity by at least
    /// 0.1 %
    #[arg(long, value_name = "N", requires = "held_out", value_parser = value_parser!(u32).range(1..))]
    pub patience: Option<u32>,

    /// Directory or object store for checkpoints. A run that was stopped continues from them when it is
    /// started again with the same documents, topics, priors, seed and shards
    #[arg(long, value_name = "DIR|URL")]
    pub snapshots: Option<StorageUrl>,
    /// Epochs between checkpoints
    #[arg(long, value_name = "N", default_value_t = 10, requires = "snapshots", value_parser = value_parser!(u32).range(1..))]
    pub snapshot_every: u32,

    /// Address of an HTTP status page of the run, with /metrics for Prometheus
    #[arg(long, value_name = "HOST:PORT")]
    pub status: Option<String>,

    /// Threads and progress.
    #[command(flatten)]
    pub program: ProgramArgs,
    /// Input options.
    #[command(flatten)]
    pub reading: ReadingArgs,
}

/// Options of `lda cluster cut`.
#[derive(Debug, clap::Args)]
#[command(mut_args(of_training))]
pub struct Cut {
    /// Documents: a file, or a directory of text files. The format is detected; gzip and zstd are
    /// decompressed [default: the Rust sources in cargo's registry]
    pub path: Option<PathBuf>,

    /// Output directory or object store, such as s3://bucket/prefix
    #[arg(long, value_name = "DIR|URL")]
    pub out: StorageUrl,
    /// Number of shards of the documents, at least one for each thread of all workers that may ever run.
    /// Changes results
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = value_parser!(u16).range(1..))]
    pub shards: u16,
    /// Add the words of this model, so that a run can continue from it
    #[arg(long, value_name = "MODEL")]
    pub from: Option<PathBuf>,
    /// Share of the documents to keep out of training, for the held-out perplexity of a run with [held-out]
    /// in its configuration
    #[arg(long, value_name = "SHARE", value_parser = share(false))]
    pub held_out: Option<f64>,
    /// Random seed of the choice of held-out documents
    #[arg(long, default_value_t = 0, requires = "held_out")]
    pub seed: u64,

    /// Threads and progress.
    #[command(flatten)]
    pub program: ProgramArgs,
    /// Input options.
    #[command(flatten)]
    pub reading: ReadingArgs,
}

/// Options of `lda cluster put`.
#[derive(Debug, clap::Args)]
pub struct Put {
    /// Output directory or object store, such as s3://bucket/prefix
    #[arg(long, value_name = "DIR|URL")]
    pub out: StorageUrl,
    /// Remove the object or file of this name, if there is one, before files are written
    #[arg(long, value_name = "NAME")]
    pub remove: Vec<String>,
    /// Names of objects, and the files to write to them, in this order
    #[arg(value_name = "NAME=FILE", value_parser = NamedFile::parse)]
    pub files: Vec<NamedFile>,
}

/// Options of `lda cluster node`.
#[derive(Debug, clap::Args)]
pub struct Node {
    /// Configuration of the run, the same file for all nodes
    #[arg(long, value_name = "FILE")]
    pub config: PathBuf,
    /// Directory at which relative paths in the configuration start [default: that of the file]
    #[arg(long, value_name = "DIR")]
    pub base: Option<PathBuf>,
    /// Role of this node; omit it for MPI, where the rank decides
    #[arg(long, value_enum)]
    pub role: Option<RoleName>,
    /// Number of this server or worker, from 0 [default: the index of its Kubernetes pod]
    #[arg(long, value_name = "N", requires = "role")]
    pub index: Option<u32>,
    /// Address to listen on, if it differs from the one that other nodes connect to [default: the
    /// address of the node in the configuration]
    #[arg(long, value_name = "HOST:PORT", requires = "role")]
    pub listen: Option<String>,
    /// File of node addresses, which replace those of the configuration: one line per node with its
    /// number (0 is the master, then servers, then workers) and HOST:PORT
    #[arg(long, value_name = "FILE", requires = "role")]
    pub nodes: Option<PathBuf>,
    /// Exit when standard input closes, so that the node does not outlive its launcher
    #[arg(long)]
    pub end_with_input: bool,
    /// Address of an HTTP status page of this node, with /metrics for Prometheus
    #[arg(long, value_name = "HOST:PORT")]
    pub status: Option<String>,

    /// Threads and progress.
    #[command(flatten)]
    pub program: ProgramArgs,
}

/// Options of `lda cluster model`.
#[derive(Debug, clap::Args)]
pub struct Model {
    /// Configuration of the run, with its documents, topics, priors, seed and checkpoints. The run may go
    /// on meanwhile
    #[arg(long, value_name = "FILE")]
    pub config: PathBuf,
    /// Directory at which relative paths in the configuration start [default: that of the file]
    #[arg(long, value_name = "DIR")]
    pub base: Option<PathBuf>,
    /// Write the model to this file
    #[arg(long, value_name = "FILE")]
    pub out: PathBuf,

    /// Threads and progress.
    #[command(flatten)]
    pub program: ProgramArgs,
}

/// Options of `lda cluster document-topics`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
The output is one JSON object per line: the epoch, the number of the document, its name if it has one, its
number of tokens, and the topics with tokens as [topic, share], largest first. The shares of all other topics
are those of the prior, α_k / (tokens + Σ α).")]
pub struct DocumentTopics {
    /// Configuration of the run, with its documents, topics, priors, seed and checkpoints. The run may go
    /// on meanwhile
    #[arg(long, value_name = "FILE")]
    pub config: PathBuf,
    /// Directory at which relative paths in the configuration start [default: that of the file]
    #[arg(long, value_name = "DIR")]
    pub base: Option<PathBuf>,
    /// Epoch of the checkpoint. A run keeps its last two [default: the last]
    #[arg(long, value_name = "N")]
    pub epoch: Option<u32>,
    /// Only the documents of part I, from 0, of N parts of the shards, so that several processes share the
    /// work; needs --epoch, as the last one may differ between them [default: all shards]
    #[arg(long, value_name = "I/N", value_parser = Part::parse, requires = "epoch")]
    pub part: Option<Part>,
    /// Output file, .jsonl [default: standard output]
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,

    /// Threads and progress.
    #[command(flatten)]
    pub program: ProgramArgs,
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
