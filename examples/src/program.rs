//! What every program does the same: its threads, its notes, its end.

use std::fmt::Display;
use std::io::{self, Write};
use std::process::ExitCode;

use clap::value_parser;
use thiserror::Error;

/// Options of every program that computes.
#[derive(Debug, clap::Args)]
pub struct ProgramArgs {
    /// Threads; all cores unless given. Never changes a result
    #[arg(long, value_name = "N", value_parser = value_parser!(u16).range(1..=1024))]
    threads: Option<u16>,
    /// Nothing on standard error but errors
    #[arg(short, long)]
    quiet: bool,
}

impl ProgramArgs {
    /// Starts the threads that were asked for.
    ///
    /// # Errors
    /// [`ThreadsError`].
    pub fn start_threads(&self) -> Result<(), ThreadsError> {
        self.threads.map_or(Ok(()), start_threads)
    }

    /// Whether nothing but errors is to be told.
    pub fn is_quiet(&self) -> bool {
        self.quiet
    }

    /// Tells a person what goes on.
    pub fn note(&self, text: &str) {
        if !self.quiet {
            // Where standard error is gone, there is nobody to tell.
            let _ = writeln!(io::stderr(), "{text}");
        }
    }
}

/// The thread pool could not be started.
#[derive(Debug, Error)]
#[error("cannot start {threads} threads ({reason}): give fewer to --threads")]
pub struct ThreadsError {
    /// How many.
    pub threads: u16,
    /// What the system said.
    pub reason: String,
}

/// Has all that is computed done by so many threads.
///
/// # Errors
/// [`ThreadsError`].
pub fn start_threads(threads: u16) -> Result<(), ThreadsError> {
    rayon::ThreadPoolBuilder::new()
        .num_threads(usize::from(threads))
        .build_global()
        .map_err(|error| ThreadsError { threads, reason: error.to_string() })
}

/// Ends a program as its run has: says what went wrong, and by the status whether it was the command line.
pub fn end<E: Display>(run: Result<(), E>, status: impl Fn(&E) -> u8) -> ExitCode {
    match run {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // Where standard error is gone, the status still tells.
            let _ = writeln!(io::stderr(), "error: {error}");
            ExitCode::from(status(&error))
        }
    }
}
