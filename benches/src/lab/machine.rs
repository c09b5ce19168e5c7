//! Machine, compiler and commit of a run, so that a table can be read a year later.

use std::fs;
use std::process::Command;

use serde::{Deserialize, Serialize};

/// The machine, the compiler, the source.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Machine {
    /// Model of the processor.
    pub cpu: String,
    /// Processors that this process may use.
    pub cores: usize,
    /// Caches as the first processor sees them, such as "L2 1024K".
    pub caches: Vec<String>,
    /// Bytes of memory.
    pub memory: u64,
    /// Operating system and the number of its release.
    pub system: String,
    /// Version of the compiler.
    pub compiler: String,
    /// Target, profile and flags of the build.
    pub build: String,
    /// Commit of the source, with "-dirty" if files were changed after it.
    pub commit: String,
}

impl Machine {
    /// Describes this machine. Unknown properties are "unknown" or 0.
    pub fn detect() -> Self {
        let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
        Self {
            cpu: field(&read("/proc/cpuinfo"), "model name").unwrap_or_else(unknown),
            cores: std::thread::available_parallelism().map_or(0, usize::from),
            caches: caches(),
            memory: field(&read("/proc/meminfo"), "MemTotal")
                .and_then(|text| text.strip_suffix("kB")?.trim().parse::<u64>().ok())
                .map_or(0, |kilobytes| kilobytes.saturating_mul(1024)),
            system: format!("{} {}", std::env::consts::OS, release()),
            compiler: env!("LAB_COMPILER").to_owned(),
            build: env!("LAB_BUILD").to_owned(),
            commit: commit().unwrap_or_else(unknown),
        }
    }

    /// Whether timings on both are comparable: all properties but the commit are equal. The last
    /// digits of the memory are ignored, since systems count it differently after each boot.
    pub fn is_like(&self, other: &Self) -> bool {
        let of = |machine: &Self| {
            let Self { cpu, cores, caches, system, compiler, build, .. } = machine.clone();
            (cpu, cores, caches, system, compiler, build)
        };
        of(self) == of(other)
    }

    /// One-line description, without the commit.
    pub fn describe(&self) -> String {
        let caches = if self.caches.is_empty() { unknown() } else { self.caches.join(", ") };
        format!(
            "{}, {} cores, caches {caches}, {:.1} GiB; {}; {} ({})",
            self.cpu,
            self.cores,
            self.memory as f64 / (1u64 << 30) as f64,
            self.system,
            self.compiler,
            self.build,
        )
    }
}

fn unknown() -> String {
    "unknown".to_owned()
}

/// Value of the first line `name : value`.
fn field(text: &str, name: &str) -> Option<String> {
    text.lines().find_map(|line| {
        let (key, value) = line.split_once(':')?;
        (key.trim() == name).then(|| value.trim().to_owned())
    })
}

/// Kernel release number without the vendor suffix.
fn release() -> String {
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    release.trim().split('-').next().unwrap_or_default().to_owned()
}

fn caches() -> Vec<String> {
    (0..8)
        .map_while(|i| {
            let read = |file: &str| {
                let path = format!("/sys/devices/system/cpu/cpu0/cache/index{i}/{file}");
                fs::read_to_string(path).ok().map(|text| text.trim().to_owned())
            };
            let kind = match read("type")?.as_str() {
                "Data" => "d",
                "Instruction" => "i",
                _ => "",
            };
            Some(format!("L{}{kind} {}", read("level")?, read("size")?))
        })
        .collect()
}

fn commit() -> Option<String> {
    let git = |arguments: &[&str]| {
        let mut git = Command::new("git");
        let output = git.args(["-C", env!("CARGO_MANIFEST_DIR")]).args(arguments).output().ok()?;
        output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
    };
    let commit = git(&["rev-parse", "--short=12", "HEAD"])?;
    let changed = !git(&["status", "--porcelain", "--untracked-files=no"])?.is_empty();
    Some(if changed { format!("{commit}-dirty") } else { commit })
}

/// Load average over the last minute. If it is above 1 during a run on one thread, another process
/// was running.
pub(super) fn load() -> Option<f64> {
    fs::read_to_string("/proc/loadavg").ok()?.split(' ').next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_found_by_their_whole_name() {
        let text = "model\t: 17\nmodel name\t: A: B\n";
        assert_eq!(field(text, "model name").as_deref(), Some("A: B"));
        assert_eq!(field(text, "name"), None);
    }

    #[test]
    fn this_machine_is_described() {
        let machine = Machine::detect();
        assert!(machine.cores > 0);
        assert!(machine.compiler.starts_with("rustc"), "{machine:?}");
        assert!(machine.describe().contains(&machine.compiler));
        let other = Machine { commit: "another".to_owned(), memory: 1, ..machine.clone() };
        assert!(machine.is_like(&other));
        assert!(!machine.is_like(&Machine { caches: Vec::new(), ..machine.clone() }));
    }
}
