//! Thread pool, progress notes and exit status, which all subcommands share.

use std::fmt::Display;
use std::io::{self, Write};
use std::process::ExitCode;

use clap::value_parser;
use thiserror::Error;

/// Options of every subcommand that computes.
#[derive(Debug, clap::Args)]
pub struct ProgramArgs {
    /// Number of threads; does not change results [default: all cores]
    #[arg(long, value_name = "N", value_parser = value_parser!(u16).range(1..=1024))]
    threads: Option<u16>,
    /// Print nothing but errors on standard error
    #[arg(short, long)]
    quiet: bool,
}

impl ProgramArgs {
    /// Starts the thread pool if `--threads` is given.
    ///
    /// # Errors
    /// [`ThreadsError`].
    pub fn start_threads(&self) -> Result<(), ThreadsError> {
        self.threads.map_or(Ok(()), start_threads)
    }

    /// Whether `--quiet` is given.
    pub fn is_quiet(&self) -> bool {
        self.quiet
    }

    /// Prints a progress note on standard error, unless `--quiet` is given.
    pub fn note(&self, text: &str) {
        if !self.quiet {
            // If standard error is closed, there is nowhere to report that.
            let _ = writeln!(io::stderr(), "{text}");
        }
    }
}

/// The thread pool could not be started.
#[derive(Debug, Error)]
#[error("cannot start {threads} threads ({reason}): lower --threads")]
pub struct ThreadsError {
    /// Number of threads requested.
    pub threads: u16,
    /// Error of the system.
    pub reason: String,
}

/// Starts rayon's global pool with `threads` threads.
///
/// # Errors
/// [`ThreadsError`].
pub fn start_threads(threads: u16) -> Result<(), ThreadsError> {
    rayon::ThreadPoolBuilder::new()
        .num_threads(usize::from(threads))
        .build_global()
        .map_err(|error| ThreadsError { threads, reason: error.to_string() })
}

/// Prints the error of a failed run and returns the exit status; `status` maps an error to it.
pub fn end<E: Display>(run: Result<(), E>, status: impl Fn(&E) -> u8) -> ExitCode {
    match run {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // If standard error is closed, the exit status still reports the failure.
            let _ = writeln!(io::stderr(), "error: {error}");
            ExitCode::from(status(&error))
        }
    }
}
