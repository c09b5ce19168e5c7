//! Signals that end a node: TERM, as systems that give machines to others send it, and INT of Ctrl-C.
//!
//! The first lets the node [go](lda_dist::cluster::Role::stop) when the epoch is done and kept, the second at once.

use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Listens from now on; whether the node has to end.
///
/// # Errors
/// Where the system does not let it.
#[cfg(unix)]
pub fn listen() -> io::Result<Arc<AtomicBool>> {
    use std::io::Write;
    use std::sync::atomic::Ordering;
    use std::thread;

    use lda_examples::output;
    use signal_hook::consts::{SIGINT, SIGTERM};
    use signal_hook::iterator::Signals;

    use crate::error::AGAIN;

    let asked = Arc::new(AtomicBool::new(false));
    let mut signals = Signals::new([SIGINT, SIGTERM])?;
    let flag = Arc::clone(&asked);
    thread::Builder::new().name("signals".to_owned()).spawn(move || {
        for _ in signals.forever() {
            if flag.swap(true, Ordering::Relaxed) {
                output::remove_temporaries();
                std::process::exit(AGAIN.into());
            }
            let note =
                "ending when this epoch is done and kept; another signal ends this node at once";
            // Where standard error is gone, there is nobody to tell.
            let _ = writeln!(io::stderr(), "{note}");
        }
    })?;
    Ok(asked)
}

/// There are no such signals here.
///
/// # Errors
/// None.
#[cfg(not(unix))]
pub fn listen() -> io::Result<Arc<AtomicBool>> {
    Ok(Arc::default())
}
