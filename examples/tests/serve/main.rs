//! The subcommand `lda serve` as clients, balancers and operators see it.
//!
//! Every answer in the tests is checked against the OpenAPI description of the service
//! (`description`).
#![cfg(unix)]

mod answers;
mod client;
mod description;
mod endings;
mod limits;
mod refusals;
mod reloads;

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use client::{Connection, Reply};

/// Waits up to two minutes; the duration is not part of a test.
fn wait_for<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let start = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(start.elapsed() < Duration::from_secs(120), "waited for {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// A temporary directory, which is removed with the test.
struct Scratch(PathBuf);

impl Scratch {
    /// A directory with a model of two themes in `m.lda`.
    fn new(name: &str) -> Self {
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("serve-{name}"));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).unwrap();
        let scratch = Self(path);
        let mut text = String::new();
        for d in 0..40 {
            let words = if d % 2 == 0 {
                ["tree", "leaf", "root", "branch", "forest"]
            } else {
                ["sea", "wave", "sand", "tide", "ocean"]
            };
            (0..8).for_each(|i| text.push_str(&format!("{} ", words[(i * d + i) % 5])));
            text.push('\n');
        }
        scratch.write("train.txt", text);
        scratch.train("train.txt --topics 2 --save m.lda");
        scratch
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    fn write(&self, name: &str, content: impl AsRef<[u8]>) {
        fs::write(self.path(name), content).unwrap();
    }

    /// Replaces a file with another, as `lda train --save` does.
    fn replace(&self, name: &str, content: impl AsRef<[u8]>) {
        self.write("replacement", content);
        fs::rename(self.path("replacement"), self.path(name)).unwrap();
    }

    fn train(&self, line: &str) {
        let mut command = Command::new(env!("CARGO_BIN_EXE_lda"));
        command.arg("train");
        command.current_dir(&self.0).args(line.split_whitespace());
        command.args(["--alpha", "0.1", "--epochs", "60", "-q"]);
        assert!(command.output().unwrap().status.success());
    }

    /// Standard output of `lda infer`.
    fn infer(&self, line: &str, input: &str) -> String {
        let mut command = Command::new(env!("CARGO_BIN_EXE_lda"));
        command.arg("infer");
        command.current_dir(&self.0).args(line.split_whitespace());
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        let input = input.to_owned();
        let writer = std::thread::spawn(move || stdin.write_all(input.as_bytes()).unwrap());
        let output = child.wait_with_output().unwrap();
        writer.join().unwrap();
        assert!(output.status.success());
        String::from_utf8(output.stdout).unwrap()
    }

    fn command(&self, line: &str) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_lda"));
        command.arg("serve");
        command.current_dir(&self.0).args(line.split_whitespace());
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        command
    }

    /// Log and exit status of a service that does not start.
    fn fail(&self, line: &str) -> (String, Option<i32>) {
        let output = self.command(line).output().unwrap();
        (String::from_utf8(output.stderr).unwrap(), output.status.code())
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// A running service; it is killed with the test.
struct Server {
    child: Child,
    address: String,
    log: Arc<Mutex<Vec<Value>>>,
    reader: Option<JoinHandle<()>>,
}

impl Server {
    /// A service with the model `m.lda`, once it is ready.
    fn start(scratch: &Scratch, line: &str) -> Self {
        let server = Self::begin(scratch, &format!("m.lda {line}"));
        wait_for("readiness", || (server.get("/readyz").status == 200).then_some(()));
        server
    }

    /// A service that may not be ready yet.
    fn begin(scratch: &Scratch, line: &str) -> Self {
        let line = format!("{line} --listen 127.0.0.1:0 --log-level debug");
        let mut child = scratch.command(&line).spawn().unwrap();
        let lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let log = Arc::new(Mutex::new(Vec::new()));
        let reader = std::thread::spawn({
            let log = Arc::clone(&log);
            move || {
                for line in lines {
                    let line = line.unwrap();
                    let event = serde_json::from_str(&line).unwrap_or(Value::String(line));
                    log.lock().unwrap().push(event);
                }
            }
        });
        let mut server = Self { child, address: String::new(), log, reader: Some(reader) };
        server.address = server.logged("listening", 1)["address"].as_str().unwrap().to_owned();
        server
    }

    /// Waits for `count` events with this message; returns the last one.
    fn logged(&self, message: &str, count: usize) -> Value {
        wait_for(message, || {
            let log = self.log.lock().unwrap();
            log.iter().filter(|event| event["message"] == message).nth(count - 1).cloned()
        })
    }

    fn connect(&self) -> Connection {
        Connection::open(&self.address).unwrap()
    }

    fn get(&self, path: &str) -> Reply {
        self.connect().get(path)
    }

    fn post(&self, path: &str, body: &Value) -> Reply {
        self.connect().post(path, body.to_string())
    }

    /// The JSON of an answer that must succeed.
    fn infer(&self, body: &Value) -> Value {
        let reply = self.post("/infer", body);
        assert_eq!(reply.status, 200, "{}", reply.text());
        reply.json()
    }

    /// A value of `GET /metrics`; 0 if it does not exist yet.
    fn metric(&self, name: &str) -> f64 {
        let text = self.get("/metrics").text();
        let value = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        value.map_or(0.0, |value| value.parse().unwrap())
    }

    /// Waits for this many requests in flight, besides the one that asks, of which `queued` wait.
    fn wait_in_flight(&self, all: u32, queued: u32) {
        wait_for("requests in flight", || {
            let in_flight = self.metric("lda_http_requests_in_flight") == f64::from(all + 1);
            (in_flight && self.metric("lda_queued") == f64::from(queued)).then_some(())
        });
    }

    /// Largest resident memory of the process so far, in bytes.
    fn memory(&self) -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
        line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() << 10
    }

    fn signal(&self, name: &str) {
        let process = self.child.id().to_string();
        assert!(Command::new("kill").args([name, &process]).status().unwrap().success());
    }

    /// Waits for the end; returns the status and the log.
    fn wait(mut self) -> (ExitStatus, Vec<Value>) {
        let status = self.child.wait().unwrap();
        self.reader.take().unwrap().join().unwrap();
        (status, std::mem::take(&mut self.log.lock().unwrap()))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A document that keeps a thread busy for seconds with the options [`SLOW`].
fn slow_document() -> Value {
    json!({ "ids": vec![0; 4000] })
}

/// One thread, and an answer that takes long because of its samples.
const SLOW: &str = "--threads 1 --burn-in 0 --samples 20000";

/// One thread, and inference that never ends for a document with known words.
const ENDLESS: &str = "--threads 1 --samples 4000000000";
