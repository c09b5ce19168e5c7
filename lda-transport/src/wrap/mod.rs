//! Wrappers around transports that count, log or break frames.
//!
//! Each wraps any [`Transport`](crate::Transport) and implements the trait, so wrappers can be
//! nested.
//!
//! | wrapper | effect | keeps the contract |
//! |---|---|---|
//! | [`Counting`] | counts frames and bytes per peer | yes |
#![cfg_attr(
    feature = "tracing",
    doc = "| [`Logging`] | emits `tracing` events for frames and peers | yes |"
)]
#![cfg_attr(
    not(feature = "tracing"),
    doc = "| `Logging` (feature `tracing`) | emits `tracing` events for frames and peers | yes |"
)]
//! | [`Failing`] | loses, duplicates or corrupts frames and disconnects peers, by a seed | no, on purpose |
//! | [`Spinning`] | polls for a while before it sleeps | yes |
//!
//! ```
//! use lda_transport::wrap::Counting;
//! use lda_transport::{NodeId, Transport, Wait, local};
//!
//! let mut nodes = local::mesh(2, &local::Options::default());
//! let _other = nodes.pop();
//! let mut node = Counting::new(nodes.remove(0));
//! let counts = node.counts();
//! node.receive(Wait::Forever)?;
//! node.send(NodeId(1), vec![0; 10].into())?;
//! assert_eq!(counts.of(NodeId(1)).sent.bytes, 10);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

/// Implements methods of a transport by those of the wrapped one.
macro_rules! inner_does {
    ($($name:ident),*) => { $(inner_does!(@ $name);)* };
    (@ id) => {
        fn id(&self) -> $crate::transport::NodeId {
            self.inner.id()
        }
    };
    (@ capabilities) => {
        fn capabilities(&self) -> $crate::transport::Capabilities {
            self.inner.capabilities()
        }
    };
    (@ waker) => {
        fn waker(&self) -> std::task::Waker {
            self.inner.waker()
        }
    };
    (@ take_buffer) => {
        fn take_buffer(&mut self) -> Vec<u8> {
            self.inner.take_buffer()
        }
    };
    (@ release) => {
        fn release(&mut self, frame: $crate::frame::Frame) {
            self.inner.release(frame);
        }
    };
    (@ close) => {
        fn close(&mut self, patience: std::time::Duration) {
            self.inner.close(patience);
        }
    };
}

mod counting;
mod failing;
#[cfg(feature = "tracing")]
mod logging;
mod spinning;

/// Returns the end of a wait; `None` if it is unlimited or beyond the range of `Instant`.
fn end_of(wait: crate::Wait) -> Option<std::time::Instant> {
    let now = std::time::Instant::now();
    match wait {
        crate::Wait::No => Some(now),
        crate::Wait::For(time) => now.checked_add(time),
        crate::Wait::Forever => None,
    }
}

pub use counting::{Count, Counting, Counts, Traffic};
pub use failing::{Failing, Faults};
#[cfg(feature = "tracing")]
pub use logging::Logging;
pub use spinning::Spinning;
