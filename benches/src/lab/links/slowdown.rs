//! Workers that are slow for a while: one of them at a time runs half of the time.

use std::process::Child;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use lda_core::random::Xoshiro256PlusPlus;

/// Time for which a worker is slow.
const LASTING: Duration = Duration::from_secs(1);
/// Time for which it is stopped, and then runs.
const STOPPED: Duration = Duration::from_millis(5);

/// A thread that stops and continues processes; all of them run when it is dropped.
#[derive(Debug)]
pub(super) struct Slowdown {
    is_on: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Slowdown {
    /// Slows these processes down, one at a time for a second each, in a random order.
    pub fn of(processes: &[Child], seed: u64) -> Self {
        let is_on = Arc::new(AtomicBool::new(true));
        let numbers: Vec<u32> = processes.iter().map(Child::id).collect();
        let goes_on = Arc::clone(&is_on);
        let thread = thread::spawn(move || {
            let mut rng = Xoshiro256PlusPlus::from_seed(seed);
            while goes_on.load(Relaxed) {
                let process = numbers[rng.below(numbers.len() as u32) as usize];
                let mut left = LASTING;
                while goes_on.load(Relaxed) && !left.is_zero() {
                    send(process, false);
                    thread::sleep(STOPPED);
                    send(process, true);
                    thread::sleep(STOPPED);
                    left = left.saturating_sub(2 * STOPPED);
                }
            }
        });
        Self { is_on, thread: Some(thread) }
    }
}

impl Drop for Slowdown {
    fn drop(&mut self) {
        self.is_on.store(false, Relaxed);
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

/// Stops a process, or lets it run; one that has ended is left alone.
#[cfg(unix)]
fn send(process: u32, runs: bool) {
    use nix::sys::signal::{Signal, kill};
    let signal = if runs { Signal::SIGCONT } else { Signal::SIGSTOP };
    if let Ok(process) = i32::try_from(process) {
        let _ = kill(nix::unistd::Pid::from_raw(process), signal);
    }
}

#[cfg(not(unix))]
fn send(_: u32, _: bool) {}
