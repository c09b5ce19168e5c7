//! CPU time and memory of this process, and ending of others.

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command};
use std::thread;
use std::time::Duration;

/// CPU time of all threads since the start.
pub(super) fn cpu_time() -> Duration {
    cpu_time::ProcessTime::now().as_duration()
}

/// CPU time of this thread.
pub(super) fn thread_time() -> Duration {
    cpu_time::ThreadTime::now().as_duration()
}

/// Peak resident set size in bytes, from `/proc/self/status`; `None` if it is not available.
pub(super) fn peak_memory() -> Option<u64> {
    parse_status(&std::fs::read_to_string("/proc/self/status").ok()?)
}

fn parse_status(status: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kilobytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kilobytes.checked_mul(1024)
}

/// CPU seconds of another process so far, its threads included, from `/proc`; `None` if it is not there any more.
/// A process that has ended is there until it is waited for. In steps of a clock tick, 10 ms nearly everywhere.
pub(super) fn cpu_seconds_of(process: u32) -> Option<f64> {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    Some(parse_ticks(&stat)? as f64 / CLOCK_TICKS)
}

/// Clock ticks per second in `/proc`, on all Linux systems of today.
const CLOCK_TICKS: f64 = 100.0;

/// User and system time in clock ticks. The name of the program, in brackets, may contain spaces.
fn parse_ticks(stat: &str) -> Option<u64> {
    let (_, rest) = stat.rsplit_once(')')?;
    let mut ticks = rest.split_whitespace().skip(11).map(str::parse::<u64>);
    Some(ticks.next()?.ok()? + ticks.next()?.ok()?)
}

/// Puts the process to be started into a process group of its own, with all its descendants.
#[cfg(unix)]
pub(super) fn lead_group(command: &mut Command) -> &mut Command {
    std::os::unix::process::CommandExt::process_group(command, 0)
}

#[cfg(not(unix))]
pub(super) fn lead_group(command: &mut Command) -> &mut Command {
    command
}

/// Ends a process that [leads its group](lead_group), and the rest of the group.
pub(super) fn end_group(leader: &mut Child) {
    // It may already have exited.
    let _ = leader.kill();
    #[cfg(unix)]
    if let Ok(group) = i32::try_from(leader.id()) {
        use nix::sys::signal::{Signal, killpg};
        let _ = killpg(nix::unistd::Pid::from_raw(group), Signal::SIGKILL);
    }
}

/// Ends this process and the group it leads as soon as `input` closes, which happens when its other
/// end's process exits for any reason. So interrupting the lab ends all that it has started.
pub fn end_with(mut input: impl Read + Send + 'static) {
    thread::spawn(move || {
        let mut ignored = [0; 64];
        while matches!(input.read(&mut ignored), Ok(1..)) {}
        #[cfg(unix)]
        {
            use nix::sys::signal::{Signal, killpg};
            use nix::unistd::{getpgrp, getpid};
            // A process started by hand may share its group with unrelated ones.
            if getpgrp() == getpid() {
                let _ = killpg(getpgrp(), Signal::SIGKILL);
            }
        }
        std::process::exit(1);
    });
}

/// Last line that is not blank, truncated to a readable length.
pub(super) fn last_line(from: impl Read) -> String {
    const MOST_BYTES: u64 = 1000;
    let mut from = BufReader::new(from);
    let (mut last, mut line) = (Vec::new(), Vec::new());
    loop {
        line.clear();
        match from.by_ref().take(MOST_BYTES).read_until(b'\n', &mut line) {
            Ok(0) | Err(_) => return String::from_utf8_lossy(&last).trim().to_owned(),
            Ok(_) if line.trim_ascii().is_empty() => {}
            Ok(_) => std::mem::swap(&mut last, &mut line),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn peak_is_read_in_bytes() {
        assert_eq!(parse_status("VmPeak:\t  10 kB\nVmHWM:\t    1836 kB\n"), Some(1836 * 1024));
        assert_eq!(parse_status("VmPeak:\t  10 kB\n"), None);
    }

    #[test]
    fn ticks_are_those_of_users_and_the_system() {
        let stat = "17 (a) b) S 1 2 3 4 5 6 7 8 9 10 250 31 0 0 20 0 4 0 1";
        assert_eq!(parse_ticks(stat), Some(281));
        assert_eq!(parse_ticks("17 (a) S 1 2 3 4 5 6 7 8 9 10 250"), None);
        if cfg!(target_os = "linux") {
            assert!(cpu_seconds_of(std::process::id()).is_some());
        }
        assert_eq!(cpu_seconds_of(u32::MAX), None);
    }

    #[test]
    fn the_last_line_with_text_is_found() {
        assert_eq!(last_line(&b"one\n two \n\n  \n"[..]), "two");
        assert_eq!(last_line(&b""[..]), "");
        assert!(last_line(vec![b'x'; 1 << 20].as_slice()).len() <= 1000);
    }

    #[test]
    fn work_takes_cpu_time() {
        let start = cpu_time();
        let mut x = 1u64;
        while cpu_time() == start {
            x = std::hint::black_box(x.wrapping_mul(3));
        }
        assert!(cpu_time() > start);
    }
}
