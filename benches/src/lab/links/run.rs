//! One run of an arm, with one process per node.

use std::fmt::Write;
use std::fs::{self, File};
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use super::super::cut::cut;
use super::super::files::create_directory;
use super::super::process::{cpu_seconds_of, end_group, last_line, lead_group};
use super::super::{LabError, Machine};
use super::network::Network;
use super::slowdown::Slowdown;
use super::{CpuSeconds, EpochLine, LinksRun, Of};

/// Interval between two polls of the nodes.
const LOOK: Duration = Duration::from_millis(10);
/// Timeout of an epoch.
const LONGEST_EPOCH: Duration = Duration::from_secs(1800);
const PORT: u16 = 7000;

/// Child processes, ended on drop: the master, the servers and the workers.
struct Nodes {
    processes: Vec<Child>,
    servers: usize,
    /// CPU seconds of each process when it was last looked at.
    cpu: Vec<f64>,
}

impl Drop for Nodes {
    fn drop(&mut self) {
        for node in &mut self.processes {
            end_group(node);
            let _ = node.wait();
        }
    }
}

impl Nodes {
    /// Looks at the CPU time of all processes.
    fn look(&mut self) {
        for (process, cpu) in self.processes.iter().zip(&mut self.cpu) {
            *cpu = cpu_seconds_of(process.id()).unwrap_or(*cpu);
        }
    }

    /// CPU seconds of each role.
    fn cpu_seconds(&self) -> CpuSeconds {
        let sum = |nodes: &[f64]| nodes.iter().sum();
        let (servers, workers) = self.cpu[1..].split_at(self.servers);
        CpuSeconds { master: self.cpu[0], servers: sum(servers), workers: sum(workers) }
    }
}

pub(super) fn run(
    of: &Of,
    directory: &Path,
    program: &Path,
    tell: &dyn Fn(&str),
) -> Result<LinksRun, LabError> {
    // `ip netns exec` does not keep the working directory, so paths must be absolute.
    let absolute = |path: &Path| {
        std::path::absolute(path).map_err(|source| LabError::Read { path: path.to_owned(), source })
    };
    let directory = absolute(directory)?;
    let documents = cut(&of.corpus, of.shards, &directory, program)?;
    let scratch = directory.join("scratch");
    create_directory(&scratch)?;
    let network = Network::new(1 + of.servers + of.workers)?;
    if of.rate > 0 {
        (1..=of.servers).try_for_each(|node| network.hold(node, of.rate))?;
    }
    let log = scratch.join("log.jsonl");
    let configuration = scratch.join("run.toml");
    let write = |path: &Path, text: &str| {
        fs::write(path, text).map_err(|source| LabError::Write { path: path.to_owned(), source })
    };
    write(&configuration, &configure(of, &network, &documents, &log))?;
    write(&log, "")?;
    let roles = std::iter::once(("master", 0))
        .chain((0..of.servers).map(|index| ("server", index)))
        .chain((0..of.workers).map(|index| ("worker", index)));
    let (processes, cpu) = (Vec::new(), Vec::new());
    let mut nodes = Nodes { processes, servers: of.servers as usize, cpu };
    for (node, (role, index)) in (0..).zip(roles) {
        let said = scratch.join(format!("{role}-{index}.log"));
        let to = File::create(&said).map_err(|source| LabError::Write { path: said, source })?;
        let mut command = network.command(node, program);
        command.args([
            "cluster",
            "node",
            "--end-with-input",
            "--role",
            role,
            "--index",
            &index.to_string(),
        ]);
        command.arg("--config").arg(&configuration);
        if let Some(threads) = of.threads {
            command.args(["--threads", &threads.to_string()]);
        }
        // A node ends when its input closes, also if the lab is killed.
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(to);
        let started = lead_group(&mut command).spawn();
        nodes.processes.push(started.map_err(|error| failed(of, &error.to_string()))?);
        nodes.cpu.push(0.0);
    }
    let workers = &nodes.processes[1 + nodes.servers..];
    let slowdown = of.slowed.then(|| Slowdown::of(workers, of.seed));
    let cpu = watch(of, &mut nodes, &log, &scratch, tell)?;
    drop(slowdown);
    let epochs = lines(&log)?;
    if epochs.len() != of.epochs as usize {
        return Err(failed(of, &format!("{} epochs were logged of {}", epochs.len(), of.epochs)));
    }
    Ok(LinksRun { of: of.clone(), machine: Machine::detect(), cpu, epochs })
}

fn failed(of: &Of, why: &str) -> LabError {
    LabError::Network { command: format!("the run {}", of.name()), why: why.to_owned() }
}

fn configure(of: &Of, network: &Network, documents: &Path, log: &Path) -> String {
    let mut training = of.training.clone();
    let numbers = [
        ("topics", i64::from(of.topics)),
        ("workers", of.workers.into()),
        ("servers", of.servers.into()),
        ("epochs", of.epochs.into()),
        ("seed", i64::try_from(of.seed).unwrap_or(i64::MAX)),
        ("evaluate-every", of.evaluate_every.into()),
    ];
    for (key, number) in numbers {
        training.insert(key.to_owned(), number.into());
    }
    training.insert("log".to_owned(), log.to_string_lossy().into_owned().into());
    let addresses = |nodes: std::ops::Range<u32>| -> Vec<String> {
        nodes.map(|node| format!("{}:{PORT}", network.address(node))).collect()
    };
    let mut text = String::new();
    // Writing to a string cannot fail.
    let _ = writeln!(text, "documents = {:?}\n", documents.to_string_lossy());
    let _ = writeln!(text, "[training]\n{training}");
    let (workers, all) = (1 + of.servers, 1 + of.servers + of.workers);
    let _ = writeln!(
        text,
        "[grpc]\ninsecure = true\nmaster = {:?}\nservers = {:?}\nworkers = {:?}",
        addresses(0..1)[0],
        addresses(1..workers),
        addresses(workers..all)
    );
    text
}

/// Waits until all nodes have ended. Returns the CPU time per measured epoch; `None` if none was seen to begin.
fn watch(
    of: &Of,
    nodes: &mut Nodes,
    log: &Path,
    scratch: &Path,
    tell: &dyn Fn(&str),
) -> Result<Option<CpuSeconds>, LabError> {
    let (mut told, mut since) = (0, Instant::now());
    let mut before = None;
    loop {
        let epochs = lines(log)?;
        nodes.look();
        if before.is_none() && epochs.len() >= of.unmeasured() {
            // A short epoch may have ended since the last look: it is not part of the measurement then.
            before = Some((nodes.cpu_seconds(), epochs.len()));
        }
        for line in &epochs[told..] {
            let of_workers = line.seconds * f64::from(of.workers);
            tell(&format!(
                "{}: epoch {} of {}, {:.2} s, {:.1} MB, workers waited {:.0} % for servers, {:.0} % for each other",
                of.name(),
                line.epoch,
                of.epochs,
                line.seconds,
                line.bytes.all as f64 / 1e6,
                100.0 * line.waited_seconds.servers / of_workers,
                100.0 * line.waited_seconds.rounds / of_workers,
            ));
            (told, since) = (line.epoch as usize, Instant::now());
        }
        let mut left = 0;
        for (at, node) in nodes.processes.iter_mut().enumerate() {
            let ended = node.try_wait().map_err(|error| failed(of, &error.to_string()))?;
            match ended {
                None => left += 1,
                Some(status) if status.success() => {}
                Some(status) => {
                    let role = match at.checked_sub(1 + of.servers as usize) {
                        Some(worker) => format!("worker-{worker}"),
                        None if at == 0 => "master-0".to_owned(),
                        None => format!("server-{}", at - 1),
                    };
                    let said = File::open(scratch.join(format!("{role}.log")));
                    let said = said.map_or(String::new(), last_line);
                    return Err(failed(of, &format!("{role} ended with {status}: {said}")));
                }
            }
        }
        if left == 0 {
            let all = nodes.cpu_seconds();
            let before = before.filter(|(_, ended)| *ended < epochs.len() && all.all() > 0.0);
            return Ok(
                before.map(|(before, ended)| all.per_epoch_since(&before, epochs.len() - ended))
            );
        }
        if since.elapsed() > LONGEST_EPOCH {
            return Err(failed(of, "no epoch came to its end for half an hour"));
        }
        std::thread::sleep(LOOK);
    }
}

/// Complete lines of the log so far, with the seconds of each epoch.
fn lines(log: &Path) -> Result<Vec<EpochLine>, LabError> {
    let text = fs::read_to_string(log)
        .map_err(|source| LabError::Read { path: log.to_owned(), source })?;
    let whole = text.rfind('\n').map_or("", |end| &text[..end]);
    let line = |line: &str| {
        serde_json::from_str(line)
            .map_err(|error| LabError::Syntax { path: log.to_owned(), message: error.to_string() })
    };
    let mut lines = whole.lines().map(line).collect::<Result<Vec<EpochLine>, _>>()?;
    seconds_of_epochs(&mut lines);
    Ok(lines)
}

/// Replaces the seconds since the start, which the log has, by those of each epoch.
fn seconds_of_epochs(lines: &mut [EpochLine]) {
    let mut before = 0.0;
    for line in lines {
        line.seconds -= std::mem::replace(&mut before, line.seconds);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_log_has_seconds_since_the_start() {
        let line = |epoch: u32, seconds: f64| {
            let text = format!(
                "{{\"epoch\":{epoch},\"tokens\":9,\"seconds\":{seconds},\"bytes\":{{\"all\":1}},\
                 \"waited_seconds\":{{\"servers\":0,\"rounds\":0}}}}"
            );
            serde_json::from_str(&text).unwrap()
        };
        let mut lines = [line(1, 2.0), line(2, 3.5), line(3, 7.5)];
        seconds_of_epochs(&mut lines);
        assert_eq!(lines.map(|line: EpochLine| line.seconds), [2.0, 1.5, 4.0]);
    }
}
