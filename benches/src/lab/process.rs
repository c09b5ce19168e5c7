//! What the operating system says about this process.

use std::time::Duration;

/// CPU time of all threads since the start.
pub(super) fn cpu_time() -> Duration {
    cpu_time::ProcessTime::now().as_duration()
}

/// Largest resident set so far, in bytes; `None` where the system does not say (it is read from
/// `/proc/self/status`).
pub(super) fn peak_memory() -> Option<u64> {
    parse_status(&std::fs::read_to_string("/proc/self/status").ok()?)
}

fn parse_status(status: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kilobytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kilobytes.checked_mul(1024)
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
    fn work_takes_cpu_time() {
        let start = cpu_time();
        let mut x = 1u64;
        while cpu_time() == start {
            x = std::hint::black_box(x.wrapping_mul(3));
        }
        assert!(cpu_time() > start);
    }
}
