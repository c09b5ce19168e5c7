//! Ctrl-C: the first stops the run after the current epoch, the second exits the process.
//!
//! Only SIGINT is handled. SIGHUP keeps the disposition that the caller set, so that `nohup` works.

use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, Ordering};

use lda_examples::output;

/// Exit status of a process killed by SIGINT, as shells report it.
const KILLED: i32 = 130;

/// Whether training has started, so that there are results to write.
static TRAINING: AtomicBool = AtomicBool::new(false);
static ASKED: AtomicBool = AtomicBool::new(false);

/// Installs the handler.
///
/// # Errors
/// Those of the system.
pub fn listen() -> Result<(), ctrlc::Error> {
    ctrlc::set_handler(|| {
        let first = !ASKED.swap(true, Ordering::SeqCst);
        if first && TRAINING.load(Ordering::SeqCst) {
            let note = "\nstopping after this epoch; Ctrl-C again exits at once, without results";
            // If standard error is closed, there is nowhere to report that.
            let _ = writeln!(io::stderr(), "{note}");
        } else {
            output::remove_temporaries();
            std::process::exit(KILLED);
        }
    })
}

/// From this call on, the first Ctrl-C waits for the end of the epoch.
pub fn training_starts() {
    TRAINING.store(true, Ordering::SeqCst);
}

/// Whether Ctrl-C was pressed.
pub fn asked() -> bool {
    ASKED.load(Ordering::SeqCst)
}
