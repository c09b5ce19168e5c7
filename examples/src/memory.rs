//! Memory that a process may use, by which runs that cannot fit are refused before they begin.

use std::fs;

/// Bytes that this process may use: the memory of the machine or of its control group, or the limit
/// of its address space, whichever is least. `None` where none of them is known.
///
/// Swap space does not count: samplers access their tables at random.
pub fn of_process() -> Option<u64> {
    let machine = || {
        let text = fs::read_to_string("/proc/meminfo").ok()?;
        number_after(&text, "MemTotal:").map(|kib| kib.saturating_mul(1024))
    };
    let address_space =
        || number_after(&fs::read_to_string("/proc/self/limits").ok()?, "Max address space");
    let group = || fs::read_to_string("/sys/fs/cgroup/memory.max").ok()?.trim().parse().ok();
    [machine(), address_space(), group()].into_iter().flatten().min()
}

/// The number after `name`, at the start of a line.
fn number_after(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    line.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_found_by_name() {
        let text = "MemFree: 7 kB\nMemTotal:      16384 kB\nMax address space  unlimited  bytes\n";
        assert_eq!(number_after(text, "MemTotal:"), Some(16384));
        assert_eq!(number_after(text, "Max address space"), None);
        assert_eq!(number_after(text, "SwapTotal:"), None);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn this_process_has_memory() {
        assert!(of_process().is_some_and(|bytes| bytes > 1 << 20));
    }
}
