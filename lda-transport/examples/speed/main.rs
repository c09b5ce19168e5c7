//! Measures speed and cost of frames and requests between two processes on one machine: `cargo run
//! --release -p lda-transport --features grpc --example speed`. It takes three minutes and prints a
//! table; arguments select rows by name.
//!
//! Each row is the median of five runs, which alternate with those of the other rows:
//!
//! - `bare tonic`: one stream of messages of tonic, sent within its runtime; round trips start and
//!   end at a thread outside of it, as those of a program without a runtime do.
//! - `grpc`, `grpc, mTLS`: frames over [`lda_transport::grpc`]; `grpc, spinning` with [`Spinning`]
//!   on both sides.
//! - `pushes over grpc`: requests over a [`Driver`](lda_transport::rpc::Driver), executed at most
//!   once, within windows.
//! - `tcp`: the transport of `examples/tcp`.
//! - `local`: two threads of one process.
//!
//! CPU time is that of both processes, as counted by Linux.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "what it prints is what it is for")]

mod bare;
mod certificates;
mod frames;
mod requests;
#[path = "../tcp/transport.rs"]
mod tcp;

use std::error::Error;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use std::{env, fs, process};

use lda_transport::local;
use lda_transport::wrap::Spinning;
use lda_transport::{NodeId, Transport};

/// Errors end the program.
pub type Result<T> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

/// Lengths of the frames that measure throughput, and bytes per measurement.
const LENGTHS: [usize; 2] = [64 << 10, 1 << 20];
const BYTES: usize = 1 << 30;
/// Length of the frame of a round trip, and number of round trips.
const SHORT: usize = 64;
const ROUNDS: usize = 5_000;
const RUNS: usize = 5;
/// Time for which [`Spinning`] polls: longer than a round trip.
const SPIN: Duration = Duration::from_micros(150);

const WAYS: [Way; 7] =
    [Way::Bare, Way::Grpc, Way::Spinning, Way::Mutual, Way::Pushes, Way::Tcp, Way::Local];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    Bare,
    Grpc,
    Spinning,
    Mutual,
    Pushes,
    Tcp,
    Local,
}

impl Way {
    fn name(self) -> &'static str {
        match self {
            Self::Bare => "bare tonic",
            Self::Grpc => "grpc",
            Self::Spinning => "grpc, spinning",
            Self::Mutual => "grpc, mTLS",
            Self::Pushes => "pushes over grpc",
            Self::Tcp => "tcp",
            Self::Local => "local",
        }
    }
}

/// Seconds of one run: for [`BYTES`] in frames of each length, of CPU time, and per round trip.
#[derive(Clone, Copy, Debug, Default)]
struct Run {
    took: [f64; 2],
    spent: [f64; 2],
    round: f64,
}

/// Sending side of a measurement.
pub trait Sender {
    /// Sends `count` frames of `len` bytes and waits until the last has arrived.
    fn pour(&mut self, count: usize, len: usize) -> Result<()>;

    /// Sends a frame of `len` bytes and waits until it is back.
    fn round(&mut self, len: usize) -> Result<()>;
}

fn main() -> Result<()> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match &arguments[..] {
        [] => table(&WAYS),
        ["receive", name] => receive(named(name)),
        names => table(&names.iter().map(|name| named(name)).collect::<Vec<_>>()),
    }
}

fn named(name: &str) -> Way {
    WAYS.into_iter().find(|way| way.name() == name).unwrap_or_else(|| {
        let names = WAYS.map(Way::name).join("', '");
        eprintln!("usage: speed [WAY]...\nthere is no way '{name}'; there are '{names}'");
        process::exit(2)
    })
}

/// Runs the receiving process.
fn receive(way: Way) -> Result<()> {
    match way {
        Way::Bare => bare::receive(),
        Way::Grpc => frames::receive(Box::new(frames::grpc_receiver(None)?)),
        Way::Spinning => {
            frames::receive(Box::new(Spinning::new(frames::grpc_receiver(None)?, SPIN)))
        }
        Way::Mutual => {
            frames::receive(Box::new(frames::grpc_receiver(Some(certificates::files()?))?))
        }
        Way::Pushes => requests::receive(Box::new(frames::grpc_receiver(None)?)),
        Way::Tcp => frames::receive(Box::new(frames::tcp_receiver()?)),
        Way::Local => Err("it is in the same process".into()),
    }
}

/// Handle of the receiving process, which ends with it.
struct Receiver(Option<Child>);

impl Receiver {
    fn start(way: Way) -> Result<(Self, String)> {
        let mut child = Command::new(env::current_exe()?)
            .args(["receive", way.name()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let out = child.stdout.take().ok_or("it is piped")?;
        let mut address = String::new();
        BufReader::new(out).read_line(&mut address)?;
        Ok((Self(Some(child)), address.trim().to_owned()))
    }

    /// Returns the CPU seconds of both processes.
    fn spent(&self) -> Result<f64> {
        let other = self.0.as_ref().map_or(Ok(0.0), |child| seconds_of(&child.id().to_string()));
        Ok(seconds_of("self")? + other?)
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        if let Some(child) = &mut self.0 {
            // It may have ended already.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Returns the CPU time of a process and its threads in hundredths of a second, as counted by
/// Linux.
fn seconds_of(process: &str) -> Result<f64> {
    let text = fs::read_to_string(format!("/proc/{process}/stat"))?;
    let after = text.rsplit(')').next().unwrap_or_default();
    let mut ticks = 0.0;
    for field in after.split_whitespace().skip(11).take(2) {
        ticks += field.parse::<f64>()?;
    }
    Ok(ticks / 100.0)
}

fn run(way: Way) -> Result<Run> {
    if way == Way::Local {
        let options = local::Options::default();
        let mut nodes =
            local::mesh(2, &options).into_iter().map(|node| Box::new(node) as Box<dyn Transport>);
        let (receiver, sender) = (nodes.next().ok_or("two")?, nodes.next().ok_or("two")?);
        std::thread::spawn(move || frames::receive_until_closed(receiver));
        let mut sender = frames::Frames::new(sender, NodeId(0))?;
        return measured(&mut sender, &Receiver(None));
    }
    let (receiver, address) = Receiver::start(way)?;
    let mut sender: Box<dyn Sender> = match way {
        Way::Bare => Box::new(bare::Bare::connect(&address)?),
        Way::Grpc => {
            Box::new(frames::Frames::new(Box::new(frames::grpc(&address, None)?), NodeId(0))?)
        }
        Way::Spinning => {
            let node = Spinning::new(frames::grpc(&address, None)?, SPIN);
            Box::new(frames::Frames::new(Box::new(node), NodeId(0))?)
        }
        Way::Mutual => {
            let tls = Some(certificates::files()?);
            Box::new(frames::Frames::new(Box::new(frames::grpc(&address, tls)?), NodeId(0))?)
        }
        Way::Pushes => Box::new(requests::Pushes::new(Box::new(frames::grpc(&address, None)?))?),
        Way::Tcp => Box::new(frames::Frames::new(Box::new(frames::tcp(&address)?), NodeId(0))?),
        Way::Local => return Err("it is seen to above".into()),
    };
    measured(&mut *sender, &receiver)
}

fn measured(sender: &mut dyn Sender, receiver: &Receiver) -> Result<Run> {
    let mut run = Run::default();
    // Lets windows and buffers grow to their size.
    sender.pour(256, LENGTHS[0])?;
    for (at, len) in LENGTHS.into_iter().enumerate() {
        let (began, before) = (Instant::now(), receiver.spent()?);
        sender.pour(BYTES / len, len)?;
        run.took[at] = began.elapsed().as_secs_f64();
        run.spent[at] = receiver.spent()? - before;
    }
    let mut rounds: Vec<Duration> = Vec::with_capacity(ROUNDS);
    for _ in 0..ROUNDS {
        let began = Instant::now();
        sender.round(SHORT)?;
        rounds.push(began.elapsed());
    }
    rounds.sort_unstable();
    run.round = rounds[ROUNDS / 2].as_secs_f64();
    Ok(run)
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    values[values.len() / 2]
}

fn table(ways: &[Way]) -> Result<()> {
    let mut runs = vec![Vec::new(); ways.len()];
    for number in 0..RUNS {
        for (&way, runs) in ways.iter().zip(&mut runs) {
            eprintln!("run {} of {RUNS}: {}", number + 1, way.name());
            runs.push(run(way)?);
        }
    }
    println!(
        "| | GB/s, 64 KiB | GB/s, 1 MiB | CPU s a GB, 64 KiB | CPU s a GB, 1 MiB | µs there and back, {SHORT} B |"
    );
    println!("|---|--:|--:|--:|--:|--:|");
    for (way, runs) in ways.iter().zip(&runs) {
        let of = |pick: fn(&Run) -> f64| median(runs.iter().map(pick).collect());
        let rate = |took: f64| BYTES as f64 / took / 1e9;
        let cost = |spent: f64| spent / (BYTES as f64 / 1e9);
        println!(
            "| {} | {:.2} | {:.2} | {:.2} | {:.2} | {:.1} |",
            way.name(),
            rate(of(|run| run.took[0])),
            rate(of(|run| run.took[1])),
            cost(of(|run| run.spent[0])),
            cost(of(|run| run.spent[1])),
            of(|run| run.round) * 1e6
        );
    }
    Ok(())
}
