//! Transports around transports: to count, to log, to slow down, to break, to record, to hurry.
//!
//! Each takes any [`Transport`](crate::Transport) and is one, so that they can be put around each other.
//!
//! | wrapper | does | keeps the contract |
//! |---|---|---|
//! | [`Counting`] | frames and bytes of each peer, while they go | yes |
#![cfg_attr(
    feature = "tracing",
    doc = "| [`Logging`] | an event of `tracing` for what goes and comes | yes |"
)]
#![cfg_attr(
    not(feature = "tracing"),
    doc = "| `Logging` (feature `tracing`) | an event for what goes and comes | yes |"
)]
//! | [`Delaying`] | holds back what has come | yes |
//! | [`Failing`] | loses, doubles, changes, cuts off, by a seed | no: that is what it is for |
//! | [`Recording`] | writes down all that happens, for [`Replaying`] | yes |
//! | [`Spinning`] | waits awake for a while | yes |
//!
//! What a transport does [together](crate::Transport::together) by its own means goes past [`Delaying`] and
//! [`Spinning`], which hand it on; the others have none, so that operations go over frames, which they see.
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

/// Methods of a transport that a wrapper leaves to the one it is around.
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
mod delaying;
mod failing;
#[cfg(feature = "tracing")]
mod logging;
mod record;
mod recording;
mod replaying;
mod spinning;

/// When a wait is over; never, or too far off to be a time.
fn end_of(wait: crate::Wait) -> Option<std::time::Instant> {
    let now = std::time::Instant::now();
    match wait {
        crate::Wait::No => Some(now),
        crate::Wait::For(time) => now.checked_add(time),
        crate::Wait::Forever => None,
    }
}

pub use counting::{Count, Counting, Counts, Traffic};
pub use delaying::Delaying;
pub use failing::{Failing, Faults};
#[cfg(feature = "tracing")]
pub use logging::Logging;
pub use record::{Broken, Entry, Happened, Log};
pub use recording::{Recording, Trouble};
pub use replaying::{Differences, Replaying};
pub use spinning::Spinning;
