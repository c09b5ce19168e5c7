//! Thread pool, progress notes and exit status, which all subcommands share.

use std::fmt::Display;
use std::io::{self, Write};
use std::process::ExitCode;

use clap::value_parser;
use thiserror::Error;

use crate::signals;

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
    /// The number that `--threads` gives.
    pub fn threads(&self) -> Option<u16> {
        self.threads
    }

    /// Starts the thread pool if `--threads` is given.
    ///
    /// # Errors
    /// [`StartError`].
    pub fn start_threads(&self) -> Result<(), StartError> {
        self.threads.map_or(Ok(()), start_threads)
    }

    /// Starts the thread pool, and exits at the first signal: for programs whose work cannot be cut
    /// short.
    ///
    /// # Errors
    /// [`StartError`].
    pub fn start(&self) -> Result<(), StartError> {
        signals::exit_at_first().map_err(StartError::Signals)?;
        self.start_threads()
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

/// Errors of starting a program.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum StartError {
    /// The thread pool could not be started.
    #[error("cannot start {threads} threads ({reason}): lower --threads")]
    Threads {
        /// Number of threads requested.
        threads: u16,
        /// Error of the system.
        reason: String,
    },
    /// The handler of signals could not be installed.
    #[error("cannot listen for signals: {0}")]
    Signals(io::Error),
}

/// Starts rayon's global pool with `threads` threads.
///
/// # Errors
/// [`StartError::Threads`].
pub fn start_threads(threads: u16) -> Result<(), StartError> {
    rayon::ThreadPoolBuilder::new()
        .num_threads(usize::from(threads))
        .build_global()
        .map_err(|error| StartError::Threads { threads, reason: error.to_string() })
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
