//! Frames between two threads by `lda_transport::local`: one way, and round trip, names
//! `one_way/bytes` and `round_trip/bytes`.
//!
//! One element per frame, so that frames per second are printed next to the time. Frames are taken
//! from and returned to the transport's buffer pool; a frame has this many bytes, of which one is
//! written.

use std::hint::black_box;
use std::thread;
use std::time::{Duration, Instant};

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use lda_transport::local::{Local, Options, mesh};
use lda_transport::{Arrival, NodeId, SendError, Transport, Wait};

const LENGTHS: [usize; 3] = [64, 64 << 10, 1 << 20];

fn two() -> (Local, Local) {
    let mut options = Options::default();
    options.queue_bytes = 1 << 30;
    let mut nodes = mesh(2, &options);
    let (mut b, mut a) = (nodes.pop().unwrap(), nodes.pop().unwrap());
    for node in [&mut a, &mut b] {
        assert!(matches!(node.receive(Wait::Forever), Ok(Some(Arrival::Up { .. }))));
    }
    (a, b)
}

/// Sends, and retries until the transport accepts the frame.
fn send(node: &mut Local, to: u32, len: usize) {
    let mut room = node.take_buffer();
    // The cost of filling a frame does not depend on the transport and is not measured.
    room.reserve(len);
    room.push(1);
    let mut frame = room.into();
    while let Err(unsent) = node.send(NodeId(to), frame) {
        assert_eq!(unsent.error, SendError::Full);
        frame = unsent.frame;
        black_box(node.receive(Wait::Forever)).unwrap();
    }
}

/// Receives and releases this many frames.
fn take(node: &mut Local, frames: u64) {
    let mut left = frames;
    while left > 0 {
        if let Ok(Some(Arrival::Frame { frame, .. })) = node.receive(Wait::Forever) {
            node.release(frame);
            left -= 1;
        }
    }
}

fn one_way(c: &mut Criterion) {
    let mut group = c.benchmark_group("one_way");
    group.throughput(Throughput::Elements(1));
    for len in LENGTHS {
        group.bench_function(BenchmarkId::from_parameter(len), |b| {
            b.iter_custom(|frames| {
                let (mut a, mut b) = two();
                thread::scope(|scope| {
                    let start = Instant::now();
                    let receiver = scope.spawn(move || {
                        take(&mut b, frames);
                        start.elapsed()
                    });
                    (0..frames).for_each(|_| send(&mut a, 1, len));
                    receiver.join().unwrap()
                })
            });
        });
    }
    group.finish();
}

fn round_trip(c: &mut Criterion) {
    let mut group = c.benchmark_group("round_trip");
    group.throughput(Throughput::Elements(1));
    for len in LENGTHS {
        group.bench_function(BenchmarkId::from_parameter(len), |b| {
            b.iter_custom(|frames| {
                let (mut a, mut b) = two();
                thread::scope(|scope| {
                    scope.spawn(move || {
                        for _ in 0..frames {
                            take(&mut b, 1);
                            send(&mut b, 0, len);
                        }
                        // The last frame must be received before its sender is dropped.
                        while !matches!(b.receive(Wait::Forever), Ok(Some(Arrival::Down { .. }))) {}
                    });
                    let start = Instant::now();
                    for _ in 0..frames {
                        send(&mut a, 1, len);
                        take(&mut a, 1);
                    }
                    let took = start.elapsed();
                    drop(a);
                    took
                })
            });
        });
    }
    group.finish();
}

fn config() -> Criterion {
    Criterion::default().measurement_time(Duration::from_secs(3)).sample_size(20)
}

criterion_group! {
    name = frames;
    config = config();
    targets = one_way, round_trip
}
criterion_main!(frames);
