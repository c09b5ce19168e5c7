//! Signals that end a program: INT (Ctrl-C), TERM, which schedulers send, and HUP, which a closed
//! terminal sends.
//!
//! HUP that the caller ignores stays ignored, so that `nohup` works. Whether it does is known on Linux
//! only; on other systems HUP ends the program at once.

use std::io;

use crate::output;

/// Calls `on_signal` with the number of each signal, on a thread of its own.
///
/// # Errors
/// Those of the system.
#[cfg(unix)]
pub fn listen(mut on_signal: impl FnMut(i32) + Send + 'static) -> io::Result<()> {
    use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
    use signal_hook::iterator::Signals;

    let mut signals = Signals::new([SIGINT, SIGTERM])?;
    if is_ignored(SIGHUP) == Some(false) {
        signals.add_signal(SIGHUP)?;
    }
    let thread = std::thread::Builder::new().name("signals".to_owned());
    thread.spawn(move || signals.forever().for_each(&mut on_signal)).map(drop)
}

/// Calls `on_signal` with the number of INT at each Ctrl-C.
///
/// # Errors
/// Those of the system.
#[cfg(not(unix))]
pub fn listen(mut on_signal: impl FnMut(i32) + Send + 'static) -> io::Result<()> {
    ctrlc::set_handler(move || on_signal(2)).map_err(io::Error::other)
}

/// Exits at the first signal, and leaves no temporary files: for a program whose work cannot be cut
/// short.
///
/// # Errors
/// Those of the system.
pub fn exit_at_first() -> io::Result<()> {
    listen(|signal| exit(signal))
}

/// Exits with the status that shells report for a process that `signal` killed.
pub fn exit(signal: i32) -> ! {
    output::remove_temporaries();
    std::process::exit(128 + signal)
}

/// Whether the caller ignores a signal; `None` if the system does not say.
#[cfg(unix)]
fn is_ignored(signal: i32) -> Option<bool> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"))?;
    let mask = u64::from_str_radix(mask.trim(), 16).ok()?;
    Some(mask >> (signal - 1) & 1 == 1)
}
