//! `lda`: topic models from the command line.
//!
//! ```text
//! lda train reviews.txt --topics 50 --save reviews.lda    trains
//! lda cut reviews.txt --out blocks                        reads documents into blocks
//! lda sweep reviews.txt --topics 10,20,50 --out sweep     compares numbers of topics
//! lda infer reviews.lda new.txt                           finds the topics of new documents
//! lda convert reviews.lda --out phi.npy                   writes a model in another format
//! lda report reviews.lda reviews.txt --out page.html      shows a model in a browser
//! lda serve reviews.lda                                   answers over HTTP
//! lda cluster local reviews.txt --workers 4               trains with a parameter server
//! ```
//!
//! Each subcommand is a module of `commands` and a feature of this package; this file parses the command
//! line and calls one of them. `lda --help` lists them, `lda train --help` lists the options of one.

mod build;
mod commands;
#[cfg(not(all(
    feature = "train",
    feature = "sweep",
    feature = "infer",
    feature = "convert",
    feature = "report",
    feature = "serve",
    feature = "cluster"
)))]
mod missing;

use std::process::ExitCode;

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};

/// Topic models: latent Dirichlet allocation.
#[derive(Debug, Parser)]
#[command(name = "lda", version, long_version = build::LONG_VERSION.as_str(), max_term_width = 100)]
#[command(propagate_version = true, subcommand_required = true, arg_required_else_help = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

/// A subcommand; one that is not compiled in names the feature that it needs.
#[derive(Debug, Subcommand)]
enum Command {
    #[cfg(feature = "train")]
    Train(Box<commands::train::Args>),
    /// Not in this build: needs the feature `train`
    #[cfg(not(feature = "train"))]
    Train(missing::Args),

    #[cfg(feature = "train")]
    Cut(Box<commands::cut::Args>),
    /// Not in this build: needs the feature `train`
    #[cfg(not(feature = "train"))]
    Cut(missing::Args),

    #[cfg(feature = "sweep")]
    Sweep(Box<commands::sweep::Args>),
    /// Not in this build: needs the feature `sweep`
    #[cfg(not(feature = "sweep"))]
    Sweep(missing::Args),

    #[cfg(feature = "infer")]
    Infer(Box<commands::infer::Args>),
    /// Not in this build: needs the feature `infer`
    #[cfg(not(feature = "infer"))]
    Infer(missing::Args),

    #[cfg(feature = "convert")]
    Convert(Box<commands::convert::Args>),
    /// Not in this build: needs the feature `convert`
    #[cfg(not(feature = "convert"))]
    Convert(missing::Args),

    #[cfg(feature = "report")]
    Report(Box<commands::report::Args>),
    /// Not in this build: needs the feature `report`
    #[cfg(not(feature = "report"))]
    Report(missing::Args),

    #[cfg(feature = "serve")]
    Serve(Box<commands::serve::Args>),
    /// Not in this build: needs the feature `serve`
    #[cfg(not(feature = "serve"))]
    Serve(missing::Args),

    #[cfg(feature = "cluster")]
    Cluster(Box<commands::cluster::Args>),
    /// Not in this build: needs the feature `cluster`
    #[cfg(not(feature = "cluster"))]
    Cluster(missing::Args),
}

fn main() -> ExitCode {
    let matches = Cli::command().get_matches();
    let cli = Cli::from_arg_matches(&matches).unwrap_or_else(|error| error.exit());
    match cli.command {
        #[cfg(feature = "train")]
        Command::Train(mut args) => {
            if let Some(matches) = matches.subcommand_matches("train") {
                args.record_given(matches);
            }
            commands::train::execute(&args)
        }
        #[cfg(not(feature = "train"))]
        Command::Train(_) => missing::execute("train"),

        #[cfg(feature = "train")]
        Command::Cut(args) => commands::cut::execute(&args),
        #[cfg(not(feature = "train"))]
        Command::Cut(_) => missing::execute("cut"),

        #[cfg(feature = "sweep")]
        Command::Sweep(args) => commands::sweep::execute(&args),
        #[cfg(not(feature = "sweep"))]
        Command::Sweep(_) => missing::execute("sweep"),

        #[cfg(feature = "infer")]
        Command::Infer(args) => commands::infer::execute(&args),
        #[cfg(not(feature = "infer"))]
        Command::Infer(_) => missing::execute("infer"),

        #[cfg(feature = "convert")]
        Command::Convert(args) => commands::convert::execute(&args),
        #[cfg(not(feature = "convert"))]
        Command::Convert(_) => missing::execute("convert"),

        #[cfg(feature = "report")]
        Command::Report(args) => commands::report::execute(&args),
        #[cfg(not(feature = "report"))]
        Command::Report(_) => missing::execute("report"),

        #[cfg(feature = "serve")]
        Command::Serve(args) => commands::serve::execute(*args),
        #[cfg(not(feature = "serve"))]
        Command::Serve(_) => missing::execute("serve"),

        #[cfg(feature = "cluster")]
        Command::Cluster(args) => commands::cluster::execute(&args),
        #[cfg(not(feature = "cluster"))]
        Command::Cluster(_) => missing::execute("cluster"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_is_well_formed() {
        Cli::command().debug_assert();
    }

    #[test]
    fn every_subcommand_is_listed() {
        let command = Cli::command();
        let names: Vec<&str> = command.get_subcommands().map(clap::Command::get_name).collect();
        assert_eq!(
            names,
            ["train", "cut", "sweep", "infer", "convert", "report", "serve", "cluster"]
        );
    }
}
