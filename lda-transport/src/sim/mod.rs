//! Simulator of networks, nodes, faults and time. A seed determines everything that happens.
//!
//! A [`World`] has nodes, a link between each pair of them, and a clock that does not advance while
//! a program runs. A node is an [`Endpoint`](crate::rpc::Endpoint) with a
//! [`Program`](crate::rpc::Program). A [`Network`] defines what links do to frames, and [`Chaos`]
//! the random failures; tests can also cause failures directly.
//!
//! | cause | effect | reported to nodes |
//! |---|---|---|
//! | [`Network`] | frames wait, are lost, duplicated, overtaken, late, or not taken | only [`Full`](crate::SendError::Full) |
//! | [`World::cut`], [`World::partition`] | a link is lost, with the frames in flight | within [`Network::detection_delay`] |
//! | [`World::silence`] | frames of one node to another are lost | no |
//! | [`World::crash`], [`World::restart`] | a program is dropped, and a new one is created | to its peers, within [`Network::detection_delay`] |
//! | [`World::rewrite`] | frames are changed as they arrive | no |
//!
//! [`World::trace`] has a fingerprint of everything that has happened and, if [`Options::keep`]
//! says so, the last events as text. [`World::coverage`] counts the fates of messages. An
//! [`Observer`] sees each message with the program of its receiver.
//!
//! # Limits
//! Programs take no time and have no threads; a program models slow work with a
//! [timer](crate::rpc::Context::set_timer). All nodes have the same clock. Every node has a link to
//! every other, and links share no bandwidth. Bytes only change by [`World::rewrite`]. There are no
//! disks: a test keeps the state that survives a crash.
//!
//! # Cost
//! An event (a frame that arrives or would have arrived, a timer or a failure) takes 0.5 to 0.7 µs
//! of one core in a release build, with programs that send and answer random requests: 1.4 to 1.9
//! million events per second. Ten thousand histories of three to six nodes with every fault, 43
//! million events, take 23 s of a core; an hour of sixteen nodes with ten heartbeats per second, 16
//! million events, takes 12 s. Memory is that of the endpoints and of the frames in flight; a kept
//! line of text takes about 100 bytes.
//!
//! ```
//! use std::{cell::Cell, rc::Rc, time::Duration};
//!
//! use lda_transport::NodeId;
//! use lda_transport::rpc::{Context, Program, Action, Config, MessageBuf, Identity, RequestKind};
//! use lda_transport::sim::{Network, Options, World};
//!
//! /// Counts the pushes to it. Node 1 makes a hundred, to node 0.
//! struct Counter(Rc<Cell<u32>>);
//!
//! impl Program for Counter {
//!     fn start(&mut self, cx: &mut Context<'_>) {
//!         let minute = Duration::from_secs(60);
//!         for _ in 0..if cx.id() == NodeId(1) { 100 } else { 0 } {
//!             cx.request(NodeId(0), RequestKind::Push, MessageBuf::new(), minute).expect("the queue is longer");
//!         }
//!     }
//!
//!     fn act(&mut self, action: Action, cx: &mut Context<'_>) {
//!         if let Action::Request { reply_to, .. } = action {
//!             self.0.set(self.0.get() + 1);
//!             cx.reply(reply_to, MessageBuf::new());
//!         }
//!     }
//! }
//!
//! let run = |seed| {
//!     let network = Network { loss: 0.2, duplication: 0.2, reordering: 0.5, ..Network::default() };
//!     let mut world = World::new(&Options { seed, network, ..Options::default() });
//!     let count = Rc::new(Cell::new(0));
//!     for id in [NodeId(0), NodeId(1)] {
//!         let count = count.clone();
//!         world.add(id, move |start| {
//!             let identity =
//!                 Identity { incarnation: start.incarnation, role: 0, run: 1, configuration: 1 };
//!             let retry = Some(Duration::from_millis(10));
//!             (Config { queue: 100, retry, ..Config::new(identity) }, Counter(count.clone()))
//!         });
//!     }
//!     world.run_for(Duration::from_secs(30));
//!     (count.get(), world.trace().fingerprint())
//! };
//! assert_eq!(run(7).0, 100); // once each, although frames are lost and duplicated
//! assert_eq!(run(7), run(7));
//! assert_ne!(run(7).1, run(8).1);
//! ```

mod chaos;
mod coverage;
mod engine;
mod event_queue;
mod network;
mod observer;
mod program;
mod trace;
mod world;

pub use chaos::{Chaos, FaultWindow};
pub use coverage::{Coverage, Fate, State};
pub use network::Network;
pub use observer::{Message, Observer};
pub use program::NodeStart;
pub use trace::{Line, Trace};
pub use world::World;

pub use crate::rpc::SplitMix64;

/// Options of a [`World`].
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Options {
    /// Seed of all random numbers.
    pub seed: u64,
    /// Properties of all links.
    pub network: Network,
    /// Random failures.
    pub chaos: Chaos,
    /// Number of lines of the [trace](World::trace) to keep.
    pub keep: usize,
}
