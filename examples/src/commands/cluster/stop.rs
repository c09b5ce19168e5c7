//! Early stop of a node: by [signals], as TERM, which schedulers send before they
//! take a machine away, and with `--end-with-input` by the end of standard input.
//!
//! The first signal [stops](lda_dist::cluster::Role::stop) the node after the current epoch and its
//! checkpoint, or [ends](lda_dist::cluster::Master::end_early) a run in one process that has none after
//! the epoch, with its results. The second exits at once: a node as one that has to be started again,
//! a run in one process as the signal does.

use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use lda_examples::{output, signals};

use crate::commands::cluster::error::AGAIN;

/// Result of the first signal, after the current epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AfterEpoch {
    /// A checkpoint, from which a new start continues.
    Checkpoint,
    /// The results so far.
    Results,
}

/// Installs the signal handlers; the returned flag is set by the first signal.
///
/// # Errors
/// Those of the system.
pub fn listen(then: AfterEpoch) -> io::Result<Arc<AtomicBool>> {
    let asked = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&asked);
    signals::listen(move |signal| {
        if flag.swap(true, Ordering::Relaxed) {
            match then {
                AfterEpoch::Checkpoint => at_once(),
                AfterEpoch::Results => signals::exit(signal),
            }
        }
        let note = match then {
            AfterEpoch::Checkpoint => {
                "stopping after this epoch and its checkpoint; another signal stops this node at once"
            }
            AfterEpoch::Results => {
                "stopping after this epoch or the next; another signal exits at once, without results"
            }
        };
        // If standard error is closed, there is nowhere to report that.
        let _ = writeln!(io::stderr(), "{note}");
    })?;
    Ok(asked)
}

/// Exits this process, as the second signal does, when standard input ends: the launcher holds the
/// other end of the pipe, so it has exited.
///
/// # Errors
/// If the system cannot start a thread.
pub fn with_input() -> io::Result<()> {
    thread::Builder::new().name("input".to_owned()).spawn(|| {
        // The input is discarded; an input that fails has ended too.
        let _ = io::copy(&mut io::stdin().lock(), &mut io::sink());
        let _ = writeln!(io::stderr(), "standard input has closed: this node exits");
        at_once();
    })?;
    Ok(())
}

fn at_once() -> ! {
    output::remove_temporaries();
    std::process::exit(AGAIN.into())
}
