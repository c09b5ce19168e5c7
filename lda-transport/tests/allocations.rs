//! Allocations of frames and requests between nodes of one process: the memory of frames is reused,
//! so allocations do not depend on their length.

// A counting allocator needs it.
#![allow(unsafe_code)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::Waker;
use std::time::Duration;

use lda_transport::local::{Local, Options, mesh};
use lda_transport::rpc::{
    Action, Config, Context, Driver, Identity, MessageBuf, Outcome, Program, RequestKind,
};
use lda_transport::{
    Arrival, Capabilities, Frame, NodeId, ReceiveError, Time, Transport, Unsent, Wait,
};

struct Counting;

static BYTES: AtomicUsize = AtomicUsize::new(0);

/// Lets one test run at a time, since the counter is that of all threads.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

// SAFETY: every call goes to the system's allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    // SAFETY: the contract is the trait's; the call is passed on unchanged.
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        BYTES.fetch_add(layout.size(), Relaxed);
        // SAFETY: the caller keeps the same contract.
        unsafe { System.alloc(layout) }
    }

    // SAFETY: the contract is the trait's; the call is passed on unchanged.
    unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
        // SAFETY: `place` comes from `alloc` above, and so from the system's allocator.
        unsafe { System.dealloc(place, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

const LEN: usize = 1 << 20;

#[test]
fn frames_reuse_the_memory_of_their_buffers() {
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

/// A node that only returns long buffers to the pool, which all nodes share: the frames of replies are
/// short, and would be taken for the next request.
#[derive(Debug)]
struct LongBuffers(Local);

impl Transport for LongBuffers {
    fn id(&self) -> NodeId {
        self.0.id()
    }

    fn capabilities(&self) -> Capabilities {
        self.0.capabilities()
    }

    fn send(&mut self, to: NodeId, frame: Frame) -> Result<(), Unsent> {
        self.0.send(to, frame)
    }

    fn receive(&mut self, wait: Wait) -> Result<Option<Arrival>, ReceiveError> {
        self.0.receive(wait)
    }

    fn waker(&self) -> Waker {
        self.0.waker()
    }

    fn take_buffer(&mut self) -> Vec<u8> {
        self.0.take_buffer()
    }

    fn release(&mut self, frame: Frame) {
        if frame.len() >= LEN {
            self.0.release(frame);
        }
    }

    fn close(&mut self, patience: Duration) {
        self.0.close(patience);
    }
}

/// Acknowledges requests and counts those of its own that are done.
#[derive(Default)]
struct Acknowledge {
    done: usize,
}

impl Program for Acknowledge {
    fn act(&mut self, action: Action, cx: &mut Context<'_>) {
        match action {
            Action::Request { reply_to, .. } => {
                cx.reply(reply_to, MessageBuf::new());
            }
            Action::Completed { outcome: Outcome::Done(_), .. } => self.done += 1,
            Action::Completed { outcome, .. } => panic!("{outcome:?}"),
            _ => {}
        }
    }
}

#[test]
fn requests_reuse_the_memory_of_their_frames() {
    const REQUESTS: usize = 1000;
    let _alone = alone();
    let minute = Duration::from_secs(60);
    let identity = Identity { incarnation: 1, role: 0, run: 1, configuration: 0 };
    let mut nodes = mesh(2, &Options::default())
        .into_iter()
        .map(|node| Driver::new(LongBuffers(node), Config::new(identity)));
    let (mut server, mut client) = (nodes.next().unwrap(), nodes.next().unwrap());
    let (mut serves, mut pushes) = (Acknowledge::default(), Acknowledge::default());
    let mut push = || {
        let mut message = client.message();
        message.resize(LEN, 1);
        client.context().request(NodeId(0), RequestKind::Push, message, minute).unwrap();
        let done = pushes.done;
        while pushes.done == done {
            client.step(&mut pushes, Time::ZERO).unwrap();
            server.step(&mut serves, Time::ZERO).unwrap();
        }
    };
    (0..10).for_each(|_| push());
    let before = BYTES.load(Relaxed);
    (0..REQUESTS).for_each(|_| push());
    let allocated = BYTES.load(Relaxed) - before;
    assert!(allocated < REQUESTS * LEN / 100, "{allocated} bytes for {REQUESTS} requests");
}
