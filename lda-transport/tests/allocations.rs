//! Frames between nodes of a process are handed over: what is allocated does not depend on their length.

// A counting allocator cannot be had otherwise.
#![allow(unsafe_code)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use lda_transport::local::{Options, mesh};
use lda_transport::{Arrival, NodeId, Transport, Wait};

struct Counting;

static BYTES: AtomicUsize = AtomicUsize::new(0);

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

#[test]
fn nothing_is_allocated_for_bytes() {
    const LEN: usize = 1 << 20;
    const FRAMES: usize = 1000;
    let mut nodes = mesh(2, &Options::default());
    let (mut b, mut a) = (nodes.pop().unwrap(), nodes.pop().unwrap());
    a.receive(Wait::Forever).unwrap();
    b.receive(Wait::Forever).unwrap();
    let exchange = |a: &mut dyn Transport, b: &mut dyn Transport| {
        let mut bytes = a.spare();
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
