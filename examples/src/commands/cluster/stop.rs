//! What ends a node before its time: signals, TERM, as systems that give machines to others send it, and INT of Ctrl-C;
//! and, where that is asked for, the end of standard input.
//!
//! The first signal lets the node [go](lda_dist::cluster::Role::stop) when the epoch is done and kept, the second at
//! once.

use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::thread;

use lda_examples::output;

use crate::commands::cluster::error::AGAIN;

/// Listens from now on; whether the node has to end.
///
/// # Errors
/// Where the system does not let it.
#[cfg(unix)]
pub fn listen() -> io::Result<Arc<AtomicBool>> {
    use std::sync::atomic::Ordering;

    use signal_hook::consts::{SIGINT, SIGTERM};
    use signal_hook::iterator::Signals;

    let asked = Arc::new(AtomicBool::new(false));
    let mut signals = Signals::new([SIGINT, SIGTERM])?;
    let flag = Arc::clone(&asked);
    thread::Builder::new().name("signals".to_owned()).spawn(move || {
        for _ in signals.forever() {
            if flag.swap(true, Ordering::Relaxed) {
                at_once();
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

/// Ends this process as the second signal does once standard input has ended: whoever has started it holds the other
/// end, and is gone, in whatever way.
///
/// # Errors
/// Where the system gives no thread.
pub fn with_input() -> io::Result<()> {
    thread::Builder::new().name("input".to_owned()).spawn(|| {
        // What comes is for nobody, and an input that fails has ended too.
        let _ = io::copy(&mut io::stdin().lock(), &mut io::sink());
        let _ = writeln!(io::stderr(), "standard input has ended, and with it this node");
        at_once();
    })?;
    Ok(())
}

fn at_once() -> ! {
    output::remove_temporaries();
    std::process::exit(AGAIN.into())
}
