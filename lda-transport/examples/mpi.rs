//! Measures speed and cost of frames between two ranks of MPI: `mpirun --bind-to none -n 2
//! target/release/examples/mpi` prints a row of the table of `examples/speed`. With the argument
//! `bare` it measures the same traffic with plain calls of MPI.

use std::env;
use std::error::Error;
use std::fs;
use std::hint::black_box;
use std::io::{self, Write};
use std::time::{Duration, Instant};

use lda_transport::mpi::{Mpi, MpiOptions, start};
use lda_transport::{Arrival, Frame, NodeId, SendError, Transport, Wait};
use mpi::request::multiple_scope;
use mpi::traits::{Communicator, Destination, Source};

type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// Lengths of the frames that measure bandwidth, bytes per measurement, and frames that plain MPI
/// has in flight.
const LENGTHS: [usize; 2] = [64 << 10, 1 << 20];
const BYTES: usize = 2 << 30;
const WINDOW: usize = 32;

/// Length of the frame of a round trip, and number of round trips.
const SHORT: usize = 64;
const ROUNDS: usize = 5_000;
/// Number of runs, after one for warming up. The median is printed.
const RUNS: usize = 5;

fn main() -> Result<()> {
    match env::args().nth(1).as_deref() {
        Some("bare") => bare(),
        _ => frames(),
    }
}

/// Seconds of one run: for [`BYTES`] in frames of each length, of CPU time at both ranks, and per
/// round trip.
#[derive(Clone, Copy, Debug, Default)]
struct Run {
    took: [f64; 2],
    spent: [f64; 2],
    round: f64,
}

fn median(runs: &[Run], of: impl Fn(&Run) -> f64) -> f64 {
    let mut values: Vec<f64> = runs.iter().map(of).collect();
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// Prints a row of the table: GB/s for each length, CPU seconds per GB, µs per round trip.
fn print_row(what: &str, runs: &[Run]) -> Result<()> {
    let gigabytes = BYTES as f64 / 1e9;
    let rates = [0, 1].map(|at| gigabytes / median(runs, |run| run.took[at]));
    let spent = [0, 1].map(|at| median(runs, |run| run.spent[at]) / gigabytes);
    let round = median(runs, |run| run.round) * 1e6;
    writeln!(
        io::stdout(),
        "| {what} | {:.2} | {:.2} | {:.2} | {:.2} | {round:.1} |",
        rates[0],
        rates[1],
        spent[0],
        spent[1]
    )?;
    Ok(())
}

/// Returns the CPU seconds of the threads of this process, as counted by Linux.
fn seconds() -> Result<f64> {
    let mut nanoseconds = 0.0;
    for thread in fs::read_dir("/proc/self/task")? {
        // A thread that has ended meanwhile does not send.
        let Ok(counts) = fs::read_to_string(thread?.path().join("schedstat")) else { continue };
        nanoseconds += counts.split_whitespace().next().unwrap_or("0").parse::<f64>()?;
    }
    Ok(nanoseconds / 1e9)
}

/// Sends a frame. If there is no space, receives until there is.
fn send(node: &mut Mpi, to: NodeId, frame: Frame) -> Result<()> {
    let mut frame = frame;
    loop {
        match node.send(to, frame) {
            Ok(()) => return Ok(()),
            Err(unsent) if unsent.error == SendError::Full => frame = unsent.frame,
            Err(unsent) => return Err(unsent.into()),
        }
        while !matches!(node.receive(Wait::Forever)?, Some(Arrival::Writable { .. })) {}
    }
}

fn frame(node: &mut Mpi) -> Result<Frame> {
    loop {
        if let Some(Arrival::Frame { frame, .. }) = node.receive(Wait::Forever)? {
            return Ok(frame);
        }
    }
}

fn frames() -> Result<()> {
    let mut node = start(&MpiOptions::default())?;
    let peer = NodeId(1 - node.id().0);
    // `Up` of the other rank.
    node.receive(Wait::Forever)?;
    let first = node.id() == NodeId(0);
    let mut runs = Vec::new();
    for _ in 0..=RUNS {
        let mut run = Run::default();
        for (at, len) in LENGTHS.into_iter().enumerate() {
            let whole = Frame::from(vec![1; len]);
            let (began, before) = (Instant::now(), seconds()?);
            for _ in 0..BYTES / len {
                if first {
                    // The same frame each time, as in `bare`.
                    send(&mut node, peer, whole.clone())?;
                } else {
                    let frame = frame(&mut node)?;
                    black_box(&frame[..]);
                    node.release(frame);
                }
            }
            if first {
                let theirs = frame(&mut node)?;
                run.took[at] = began.elapsed().as_secs_f64();
                run.spent[at] = seconds()? - before + f64::from_le_bytes(theirs[..].try_into()?);
            } else {
                let ours = seconds()? - before;
                send(&mut node, peer, ours.to_le_bytes().to_vec().into())?;
            }
        }
        let began = Instant::now();
        for _ in 0..ROUNDS {
            if first {
                let mut buffer = node.take_buffer();
                buffer.resize(SHORT, 1);
                send(&mut node, peer, buffer.into())?;
            }
            let back = frame(&mut node)?;
            if first {
                node.release(back);
            } else {
                send(&mut node, peer, back)?;
            }
        }
        run.round = began.elapsed().as_secs_f64() / ROUNDS as f64;
        runs.push(run);
    }
    if first {
        print_row("mpi", &runs[1..])?;
    }
    node.close(Duration::from_secs(10));
    Ok(())
}

fn bare() -> Result<()> {
    let universe = mpi::initialize().ok_or("MPI is already initialised")?;
    let world = universe.world();
    let first = world.rank() == 0;
    let peer = world.process_at_rank(1 - world.rank());
    let mut runs = Vec::new();
    for _ in 0..=RUNS {
        let mut run = Run::default();
        for (at, len) in LENGTHS.into_iter().enumerate() {
            let sent = vec![1u8; len];
            let mut buffers = vec![vec![0u8; len]; WINDOW];
            let (began, before) = (Instant::now(), seconds()?);
            for _ in 0..BYTES / len / WINDOW {
                let mut done = Vec::new();
                multiple_scope(WINDOW, |scope, requests| {
                    if first {
                        (0..WINDOW).for_each(|_| {
                            requests.add(peer.immediate_send(scope, &sent));
                        });
                    } else {
                        for buffer in &mut buffers {
                            requests.add(peer.immediate_receive_into(scope, buffer));
                        }
                    }
                    requests.wait_all(&mut done);
                });
            }
            if first {
                let (theirs, _) = peer.receive::<f64>();
                run.took[at] = began.elapsed().as_secs_f64();
                run.spent[at] = seconds()? - before + theirs;
            } else {
                peer.send(&(seconds()? - before));
            }
        }
        let mut short = [1u8; SHORT];
        let began = Instant::now();
        for _ in 0..ROUNDS {
            if first {
                peer.send(&short);
                peer.receive_into(&mut short);
            } else {
                peer.receive_into(&mut short);
                peer.send(&short);
            }
        }
        run.round = began.elapsed().as_secs_f64() / ROUNDS as f64;
        runs.push(run);
    }
    if first {
        print_row("bare rsmpi", &runs[1..])?;
    }
    Ok(())
}
