//! How fast frames go between two ranks of MPI: `mpirun -n 2 target/release/examples/mpi`. With `bare` after it, how
//! fast the same goes by calls of MPI alone; with `together`, on any number of ranks, how long operations take by MPI
//! and over frames.

use std::env;
use std::error::Error;
use std::hint::black_box;
use std::io::{self, Write};
use std::time::{Duration, Instant};

use lda_transport::endpoint::{Config, Group, Identity};
use lda_transport::mpi::{Mpi, Options, start};
use lda_transport::node::{Node, Silent};
use lda_transport::{Arrival, Frame, NodeId, SendError, Transport, Wait};
use mpi::request::multiple_scope;
use mpi::traits::{Communicator, Destination, Source};

type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// Bytes of a frame that shows bandwidth, and frames that are sent at once by MPI alone.
const LONG: usize = 1 << 20;
const WINDOW: usize = 32;
const WINDOWS: usize = 64;

/// Bytes of a frame that goes there and back, and how often it does.
const SHORT: usize = 64;
const ROUNDS: u32 = 5_000;

fn main() -> Result<()> {
    match env::args().nth(1).as_deref() {
        Some("bare") => bare(),
        Some("together") => together(),
        _ => frames(),
    }
}

fn tell(what: &str, long: Duration, short: Duration) -> Result<()> {
    let bandwidth = (WINDOWS * WINDOW * LONG) as f64 / long.as_secs_f64() / 1e9;
    let round = short.as_secs_f64() * 1e6 / f64::from(ROUNDS);
    writeln!(
        io::stdout(),
        "{what}: {bandwidth:.2} GB/s one way in frames of 1 MiB; {round:.1} µs there and back with {SHORT} bytes"
    )?;
    Ok(())
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
        while !matches!(node.receive(Wait::Forever)?, Some(Arrival::Room { .. })) {}
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
    let mut node = start(&Options::default())?;
    let peer = NodeId(1 - node.id().0);
    // The other is up.
    node.receive(Wait::Forever)?;
    let first = node.id() == NodeId(0);
    let mut spent = Vec::new();
    let whole = Frame::from(vec![1; LONG]);
    for _ in 0..2 {
        // The first time is for warming up.
        spent.clear();
        let began = Instant::now();
        for _ in 0..WINDOWS * WINDOW {
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
            frame(&mut node)?;
        } else {
            send(&mut node, peer, Frame::new())?;
        }
        spent.push(began.elapsed());
        let began = Instant::now();
        for _ in 0..ROUNDS {
            if first {
                let mut room = node.spare();
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
        spent.push(began.elapsed());
    }
    if first {
        tell("frames", spent[0], spent[1])?;
    }
    node.close(Duration::from_secs(10));
    Ok(())
}

fn together() -> Result<()> {
    let minute = Duration::from_secs(60);
    let transport = start(&Options::default())?;
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
    let mut spent = Vec::new();
    let sent = vec![1u8; LONG];
    let mut rooms = vec![vec![0u8; LONG]; WINDOW];
    for _ in 0..2 {
        spent.clear();
        let began = Instant::now();
        for _ in 0..WINDOWS {
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
            peer.receive::<u8>();
        } else {
            peer.send(&1u8);
        }
        spent.push(began.elapsed());
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
        spent.push(began.elapsed());
    }
    if first {
        tell("bare", spent[0], spent[1])?;
    }
    Ok(())
}
