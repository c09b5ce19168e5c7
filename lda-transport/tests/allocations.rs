//! Frames between nodes of a process are handed over, and their room is used again: what is allocated does not depend
//! on their length.

// A counting allocator cannot be had otherwise.
#![allow(unsafe_code)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use lda_transport::local::{Options, mesh};
use lda_transport::node::{Asked, Node, Silent};
use lda_transport::rpc::{Config, Identity, Outcome};
use lda_transport::{Arrival, NodeId, Transport, Wait};

struct Counting;

static BYTES: AtomicUsize = AtomicUsize::new(0);

/// One test at a time: what is allocated is that of all threads.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

// SAFETY: every call goes to the system's allocator as it is.
unsafe impl GlobalAlloc for Counting {
    // SAFETY: the contract is the trait's; the call is passed on unchanged.
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        BYTES.fetch_add(layout.size(), Relaxed);
        // SAFETY: the caller's promise is the one that is asked for.
        unsafe { System.alloc(layout) }
    }

    // SAFETY: the contract is the trait's; the call is passed on unchanged.
    unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
        // SAFETY: `place` comes from `alloc` above, and so from there.
        unsafe { System.dealloc(place, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

const LEN: usize = 1 << 20;

#[test]
fn nothing_is_allocated_for_bytes() {
    const FRAMES: usize = 1000;
    let _alone = alone();
    let mut nodes = mesh(2, &Options::default());
    let (mut b, mut a) = (nodes.pop().unwrap(), nodes.pop().unwrap());
    a.receive(Wait::Forever).unwrap();
    b.receive(Wait::Forever).unwrap();
    let exchange = |a: &mut dyn Transport, b: &mut dyn Transport| {
        let mut bytes = a.take_buffer();
        bytes.resize(LEN, 1);
        a.send(NodeId(1), bytes.into()).unwrap();
        let Ok(Some(Arrival::Frame { frame, .. })) = b.receive(Wait::Forever) else { panic!() };
        assert_eq!(frame.len(), LEN);
        b.release(frame);
    };
    exchange(&mut a, &mut b);
    let before = BYTES.load(Relaxed);
    (0..FRAMES).for_each(|_| exchange(&mut a, &mut b));
    let allocated = BYTES.load(Relaxed) - before;
    assert!(allocated < FRAMES * 200, "{allocated} bytes for {FRAMES} frames");
}

#[test]
fn nor_for_those_of_requests() {
    const REQUESTS: usize = 1000;
    let _alone = alone();
    let second = Duration::from_secs(60);
    let identity = Identity { incarnation: 1, role: 0, run: 1, configuration: 0 };
    let mut nodes = mesh(2, &Options::default()).into_iter().map(Box::new);
    let mut next = || nodes.next().expect("there are two");
    // Answers are written into room of requests, which they do not keep.
    let service = |asked: Asked| {
        let answer = asked.message();
        asked.reply(answer);
    };
    let server = Node::start(next(), Config::new(identity), service).unwrap();
    let client = Node::start(next(), Config::new(identity), Silent).unwrap();
    client.wait_for(&[NodeId(0)], second).unwrap();
    let push = || {
        let mut message = client.message();
        message.resize(LEN, 1);
        let ended = client.push(NodeId(0), message, second).wait();
        assert!(matches!(ended, Outcome::Done(_)), "{ended:?}");
    };
    (0..10).for_each(|_| push());
    let before = BYTES.load(Relaxed);
    (0..REQUESTS).for_each(|_| push());
    let allocated = BYTES.load(Relaxed) - before;
    assert!(allocated < REQUESTS * LEN / 100, "{allocated} bytes for {REQUESTS} requests");
    client.close(second).unwrap();
    server.close(second).unwrap();
}
