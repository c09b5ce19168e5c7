//! A network and a time of its own, by seed: what a seed does once, it does again.
//!
//! A [`World`] has nodes, a link between each two of them, and a clock that stands still while anything is
//! done. A node is an [`Endpoint`](crate::rpc::Endpoint) and a [`Program`](crate::rpc::Program) over it. What the links do
//! to frames is a [`Network`]; what fails by itself is [`Chaos`]; a test can do the same by hand. One seed
//! gives all of it.
//!
//! | | what happens | whether nodes hear of it |
//! |---|---|---|
//! | [`Network`] | frames wait, are lost, doubled, overtaken, late, or not taken | of [`Full`](crate::SendError::Full) alone |
//! | [`World::cut`], [`World::partition`] | a link is lost, with what is underway | within [`Network::detection_delay`] |
//! | [`World::silence`] | frames of one node to another vanish | no |
//! | [`World::crash`], [`World::restart`] | a program is dropped, and another made | its peers, within [`Network::detection_delay`] |
//! | [`World::rewrite`] | frames are changed as they arrive | no |
//!
//! [`World::trace`] is what has happened: a fingerprint always, and the last lines to be read where
//! [`Options::keep`] asks for them. [`World::coverage`] counts what befell which messages, and an [`Observer`] is
//! shown each of them with the program that was to get it.
//!
//! # What it is not
//! Programs take no time, and have no threads: what takes long is for them to make long, by a
//! [timer](crate::rpc::Context::set_timer). All clocks are one. Every node has a link to every other, and links share no
//! bandwidth. Bytes are not changed unless [told so](World::rewrite). There are no disks: what a crash leaves
//! is what a test keeps for the next start.
//!
//! # Cost
//! An event, which is a frame that arrives or would have, a timer or a failure, takes 0.5 to 0.7 µs of one
//! core in a release build, with programs that ask and answer at random: 1.4 to 1.9 million a second. So ten
//! thousand histories of three to six nodes with every fault, 43 million events, take 23 seconds of a core,
//! and an hour of sixteen nodes that beat ten times a second, 16 million, takes 12. Memory is that of the
//! endpoints and of the frames underway; a kept line has about a hundred bytes.
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
//!             cx.request(NodeId(0), RequestKind::Push, MessageBuf::new(), minute).expect("so many may wait");
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
//!         world.add(id, move |birth| {
//!             let identity =
//!                 Identity { incarnation: birth.incarnation, role: 0, run: 1, configuration: 1 };
//!             let retry = Some(Duration::from_millis(10));
//!             (Config { queue: 100, retry, ..Config::new(identity) }, Counter(count.clone()))
//!         });
//!     }
//!     world.run_for(Duration::from_secs(30));
//!     (count.get(), world.trace().fingerprint())
//! };
//! assert_eq!(run(7).0, 100); // once each, whatever is lost or comes twice
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

/// What a world is like.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Options {
    /// Of everything that is drawn.
    pub seed: u64,
    /// All links.
    pub network: Network,
    /// What fails by itself.
    pub chaos: Chaos,
    /// How many lines of the [trace](World::trace) to keep.
    pub keep: usize,
}
