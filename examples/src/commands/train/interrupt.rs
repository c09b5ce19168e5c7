//! Signals during training: the first stops the run after the current epoch, with all results, the
//! second exits the process.

use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, Ordering};

use lda_examples::signals;

/// Whether training has started, so that there are results to write.
static TRAINING: AtomicBool = AtomicBool::new(false);
static ASKED: AtomicBool = AtomicBool::new(false);

/// Listens for signals.
///
/// # Errors
/// Those of the system.
pub fn listen() -> io::Result<()> {
    signals::listen(|signal| {
        let first = !ASKED.swap(true, Ordering::SeqCst);
        if first && TRAINING.load(Ordering::SeqCst) {
            let note = "\nstopping after this epoch; another signal exits at once, without results";
            // If standard error is closed, there is nowhere to report that.
            let _ = writeln!(io::stderr(), "{note}");
        } else {
            signals::exit(signal);
        }
    })
}

/// From this call on, the first signal waits for the end of the epoch.
pub fn training_starts() {
    TRAINING.store(true, Ordering::SeqCst);
}

/// Whether there was a signal.
pub fn asked() -> bool {
    ASKED.load(Ordering::SeqCst)
}
