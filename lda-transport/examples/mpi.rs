//! How fast frames go between two ranks of MPI, and at what cost: `mpirun --bind-to none -n 2
//! target/release/examples/mpi`, which tells a row of the table of `examples/speed`. With `bare` after it, how fast the
//! same goes by calls of MPI alone; with `together`, on any number of ranks, how long operations take by MPI and over
//! frames.

use std::env;
use std::error::Error;
use std::fs;
use std::hint::black_box;
use std::io::{self, Write};
use std::time::{Duration, Instant};

use lda_transport::mpi::{Mpi, MpiOptions, start};
use lda_transport::node::{Node, Silent};
use lda_transport::rpc::{Config, Group, Identity};
use lda_transport::{Arrival, Frame, NodeId, SendError, Transport, Wait};
use mpi::request::multiple_scope;
use mpi::traits::{Communicator, Destination, Source};

type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// Bytes of frames that show bandwidth, how many in all, and frames that are sent at once by MPI alone.
const LENGTHS: [usize; 2] = [64 << 10, 1 << 20];
const BYTES: usize = 2 << 30;
const WINDOW: usize = 32;

/// Bytes of a frame that goes there and back, and how often it does.
const SHORT: usize = 64;
const ROUNDS: usize = 5_000;
/// Of which the median is told, after one for warming up.
const RUNS: usize = 5;

fn main() -> Result<()> {
    match env::args().nth(1).as_deref() {
        Some("bare") => bare(),
        Some("together") => together(),
        _ => frames(),
    }
}

/// What one run took: seconds for [`BYTES`] in frames of either length, of processors of both ranks, and of a round
/// trip.
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

/// A row of a table: GB/s of either length, seconds of processors a GB, µs there and back.
fn tell(what: &str, runs: &[Run]) -> Result<()> {
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

/// Seconds of processors that the threads of this process have had, as Linux counts them.
fn seconds() -> Result<f64> {
    let mut nanoseconds = 0.0;
    for thread in fs::read_dir("/proc/self/task")? {
        // One that has ended meanwhile is none of those that send.
        let Ok(counts) = fs::read_to_string(thread?.path().join("schedstat")) else { continue };
        nanoseconds += counts.split_whitespace().next().unwrap_or("0").parse::<f64>()?;
    }
    Ok(nanoseconds / 1e9)
}

/// Sends a frame, and takes what comes until there is room for it.
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
    // The other is up.
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
                    // The same again and again, as below.
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
                let mut room = node.take_buffer();
                room.resize(SHORT, 1);
                send(&mut node, peer, room.into())?;
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
        tell("mpi", &runs[1..])?;
    }
    node.close(Duration::from_secs(10));
    Ok(())
}

fn together() -> Result<()> {
    let minute = Duration::from_secs(60);
    let transport = start(&MpiOptions::default())?;
    let all = transport.all();
    let identity = Identity { incarnation: 1, role: 0, run: 1, configuration: 0 };
    let node = Node::start(Box::new(transport), Config::new(identity), Silent)?;
    let others: Vec<NodeId> = all.iter().copied().filter(|&it| it != node.id()).collect();
    node.wait_for(&others, minute)?;
    // In another order than that of their ranks, operations are not MPI's.
    let turned = all.iter().rev().copied().collect();
    let ways = [("by MPI", all.clone()), ("over frames", turned)];
    for (number, (way, members)) in ways.into_iter().enumerate() {
        let group = Group::new(number as u64, members, node.id())?;
        let timed = |rounds: u32, operation: &dyn Fn() -> Result<()>| {
            // The first time is for warming up.
            operation()?;
            let began = Instant::now();
            (0..rounds).try_for_each(|_| operation())?;
            Ok::<_, Box<dyn Error>>(began.elapsed() / rounds)
        };
        let barrier = timed(300, &|| Ok(node.barrier(&group, minute)?))?;
        let terms = vec![node.id().0; 1 << 20];
        let sums = timed(10, &|| {
            black_box(node.all_reduce(&group, &terms, minute)?);
            Ok(())
        })?;
        let whole = Frame::from(vec![1; 64 << 20]);
        let broadcast = timed(5, &|| {
            let content = (group.rank() == 0).then(|| whole.clone());
            black_box(node.broadcast(&group, group.members()[0], content, minute)?);
            Ok(())
        })?;
        if group.rank() == 0 {
            let ranks = all.len();
            writeln!(
                io::stdout(),
                "{way}, {ranks} ranks: a barrier {barrier:.0?}; sums of 2^20 numbers of 32 bits {sums:.1?}; a \
                 broadcast of 64 MiB {broadcast:.1?}"
            )?;
        }
    }
    node.close(minute)?;
    Ok(())
}

fn bare() -> Result<()> {
    let universe = mpi::initialize().ok_or("MPI was begun before")?;
    let world = universe.world();
    let first = world.rank() == 0;
    let peer = world.process_at_rank(1 - world.rank());
    let mut runs = Vec::new();
    for _ in 0..=RUNS {
        let mut run = Run::default();
        for (at, len) in LENGTHS.into_iter().enumerate() {
            let sent = vec![1u8; len];
            let mut rooms = vec![vec![0u8; len]; WINDOW];
            let (began, before) = (Instant::now(), seconds()?);
            for _ in 0..BYTES / len / WINDOW {
                let mut done = Vec::new();
                multiple_scope(WINDOW, |scope, requests| {
                    if first {
                        (0..WINDOW).for_each(|_| {
                            requests.add(peer.immediate_send(scope, &sent));
                        });
                    } else {
                        for room in &mut rooms {
                            requests.add(peer.immediate_receive_into(scope, room));
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
        tell("bare rsmpi", &runs[1..])?;
    }
    Ok(())
}
