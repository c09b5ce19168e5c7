//! Ctrl-C: the first ends the run after the running epoch, the second ends the process.
//!
//! Only SIGINT is taken: SIGHUP stays what the caller made of it, so that `nohup` works.

use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, Ordering};

use lda_examples::output;

/// Status of a process that was ended by a signal, as shells report SIGINT.
const KILLED: i32 = 130;

/// Whether there is an epoch to wait for.
static TRAINING: AtomicBool = AtomicBool::new(false);
static ASKED: AtomicBool = AtomicBool::new(false);

/// Listens from now on.
///
/// # Errors
/// Where the system does not let it.
pub fn listen() -> Result<(), ctrlc::Error> {
    ctrlc::set_handler(|| {
        let first = !ASKED.swap(true, Ordering::SeqCst);
        if first && TRAINING.load(Ordering::SeqCst) {
            let note = "\nending after this epoch; Ctrl-C again quits at once, without results";
            // Where standard error is gone, there is nobody to tell.
            let _ = writeln!(io::stderr(), "{note}");
        } else {
            output::remove_temporaries();
            std::process::exit(KILLED);
        }
    })
}

/// From now on a first Ctrl-C waits; there are results to write.
pub fn training_starts() {
    TRAINING.store(true, Ordering::SeqCst);
}

/// Whether the run is asked to end.
pub fn asked() -> bool {
    ASKED.load(Ordering::SeqCst)
}
