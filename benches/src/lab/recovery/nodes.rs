//! The processes of a run, and what the master has logged.

use std::fs::{self, File};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde::Deserialize;

use super::super::LabError;
use super::super::process::{end_group, last_line, lead_group};
use super::RecoveryPlan;

/// Interval between two looks at the log.
const LOOK: Duration = Duration::from_millis(5);
/// Longest time without an epoch.
const PATIENCE: Duration = Duration::from_secs(600);

/// A line of the master's log.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
pub(super) struct Line {
    pub epoch: u32,
    pub attempt: u32,
    /// Seconds since the start of the master.
    pub seconds: f64,
}

/// The processes of a run, ended on drop.
pub(super) struct Nodes {
    program: PathBuf,
    scratch: PathBuf,
    /// Role and index of each process.
    names: Vec<(&'static str, u32)>,
    processes: Vec<Child>,
}

impl Drop for Nodes {
    fn drop(&mut self) {
        for process in &mut self.processes {
            end_group(process);
            let _ = process.wait();
        }
    }
}

fn failed(why: String) -> LabError {
    LabError::Network { command: "the cluster".to_owned(), why }
}

/// Addresses on this machine that are not in use.
fn addresses(number: u32) -> Result<Vec<String>, LabError> {
    let listen = |_| TcpListener::bind("127.0.0.1:0").map_err(|error| failed(error.to_string()));
    let sockets = (0..number).map(listen).collect::<Result<Vec<_>, _>>()?;
    let address = |socket: &TcpListener| {
        socket.local_addr().map(|it| it.to_string()).map_err(|error| failed(error.to_string()))
    };
    sockets.iter().map(address).collect()
}

impl Nodes {
    /// Starts the nodes of a run in an empty directory.
    pub fn start(
        plan: &RecoveryPlan,
        documents: &Path,
        scratch: PathBuf,
        program: &Path,
    ) -> Result<Self, LabError> {
        let RecoveryPlan { topics, workers, servers, epochs, checkpoint_every, seed, .. } = plan;
        if scratch.exists() {
            fs::remove_dir_all(&scratch).map_err(LabError::write(&scratch))?;
        }
        fs::create_dir_all(&scratch).map_err(LabError::write(&scratch))?;
        let all = addresses(1 + servers + workers)?;
        let (of_servers, of_workers) = all[1..].split_at(*servers as usize);
        let text = format!(
            "documents = {documents:?}\npatience = 60.0\n[training]\ntopics = {topics}\nepochs = {epochs}\n\
             workers = {workers}\nservers = {servers}\nseed = {seed}\nevaluate-every = 0\ntop-words = 0\n\
             save = \"model.lda\"\nlog = \"log.jsonl\"\n[snapshots]\ndirectory = \"kept\"\n\
             every = {checkpoint_every}\n[grpc]\nmaster = {:?}\nservers = {of_servers:?}\nworkers = {of_workers:?}\n",
            all[0]
        );
        let configuration = scratch.join("run.toml");
        fs::write(&configuration, text).map_err(LabError::write(&configuration))?;
        let names = std::iter::once(("master", 0))
            .chain((0..*servers).map(|index| ("server", index)))
            .chain((0..*workers).map(|index| ("worker", index)));
        let names: Vec<_> = names.collect();
        let (program, processes) = (program.to_owned(), Vec::new());
        let mut nodes = Self { program, scratch, names, processes };
        for at in 0..nodes.names.len() {
            let process = nodes.spawn(at)?;
            nodes.processes.push(process);
        }
        Ok(nodes)
    }

    fn spawn(&self, at: usize) -> Result<Child, LabError> {
        let (role, index) = self.names[at];
        let said = self.scratch.join(format!("{role}-{index}.log"));
        let to = File::options().create(true).append(true).open(&said);
        let to = to.map_err(LabError::write(&said))?;
        let mut command = Command::new(&self.program);
        command.args(["cluster", "node", "--end-with-input", "--role", role, "--index"]);
        command.arg(index.to_string()).arg("--config").arg(self.scratch.join("run.toml"));
        // A node ends when its input closes, also if the lab is killed.
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(to);
        lead_group(&mut command).spawn().map_err(|error| failed(error.to_string()))
    }

    /// Kills a process of a role, the one of this number among them, and starts it again.
    pub fn kill(&mut self, role: &str, number: u32) -> Result<(), LabError> {
        let of_role: Vec<usize> =
            (0..self.names.len()).filter(|&at| self.names[at].0 == role).collect();
        let at = of_role[number as usize % of_role.len()];
        end_group(&mut self.processes[at]);
        let _ = self.processes[at].wait();
        self.processes[at] = self.spawn(at)?;
        Ok(())
    }

    /// The lines of the log so far.
    pub fn lines(&self) -> Result<Vec<Line>, LabError> {
        let path = self.scratch.join("log.jsonl");
        let text = match fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
            Err(error) => return Err(LabError::read(&path)(error)),
        };
        let whole = text.rfind('\n').map_or("", |end| &text[..end]);
        let line = |line: &str| {
            serde_json::from_str(line).map_err(|error| LabError::Syntax {
                path: path.clone(),
                message: error.to_string(),
            })
        };
        whole.lines().map(line).collect()
    }

    /// Waits until the lines of the log satisfy a condition; returns them.
    pub fn wait(&mut self, mut is_so: impl FnMut(&[Line]) -> bool) -> Result<Vec<Line>, LabError> {
        let begun = Instant::now();
        loop {
            let lines = self.lines()?;
            if is_so(&lines) {
                return Ok(lines);
            }
            self.check()?;
            if begun.elapsed() > PATIENCE {
                return Err(failed("no epoch came to its end for ten minutes".to_owned()));
            }
            std::thread::sleep(LOOK);
        }
    }

    /// Fails if a process has ended with an error.
    fn check(&mut self) -> Result<(), LabError> {
        for ((role, index), process) in self.names.iter().zip(&mut self.processes) {
            let ended = process.try_wait().map_err(|error| failed(error.to_string()))?;
            if let Some(status) = ended.filter(|status| !status.success()) {
                let said = File::open(self.scratch.join(format!("{role}-{index}.log")));
                let said = said.map_or(String::new(), last_line);
                return Err(failed(format!("{role} {index} ended with {status}: {said}")));
            }
        }
        Ok(())
    }

    /// Waits until all processes have ended; returns the model.
    pub fn end(mut self) -> Result<Vec<u8>, LabError> {
        let begun = Instant::now();
        while begun.elapsed() < PATIENCE {
            self.check()?;
            let mut processes = self.processes.iter_mut();
            if processes.all(|process| process.try_wait().is_ok_and(|ended| ended.is_some())) {
                let model = self.scratch.join("model.lda");
                return fs::read(&model).map_err(LabError::read(&model));
            }
            std::thread::sleep(LOOK);
        }
        Err(failed("the nodes do not end".to_owned()))
    }
}
