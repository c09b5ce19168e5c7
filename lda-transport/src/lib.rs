//! Frames between nodes, over whatever connects the machines.
//!
//! This crate knows bytes and peers, never topics. A [`Transport`] is one node's way to the others: it
//! takes a [`Frame`] for a peer and gives what has come. The trait is small, so that a new one is an
//! afternoon's work: `examples/tcp` is one, in some 200 lines of code.
//!
//! | transport | between | for |
//! |---|---|---|
//! | [`local`] | threads of a process | tests, one machine, embedding |
//! | `grpc` (feature) | machines, encrypted or not | clusters, where gRPC and HTTP/2 are known |
#![cfg_attr(
    feature = "mpi",
    doc = "| [`mpi`] | ranks of a job of MPI | clusters whose network MPI knows best |"
)]
#![cfg_attr(
    not(feature = "mpi"),
    doc = "| `mpi` (feature `mpi`) | ranks of a job of MPI | clusters whose network MPI knows best |"
)]
//!
//! [`guide`] helps to choose, and to write one.
//!
//! Over frames there are requests and replies, with deadlines, at most once, within windows: [`rpc`], a
//! state machine without threads or clocks. [`sim`] runs nodes of them in a network and a time of its own, by
//! seed: what a seed does once it does again.
//!
//! [`conformance`] is the contract as a program: it runs everything that a transport promises, for those
//! of this crate and for yours.
//!
//! ```
//! use lda_transport::local;
//! use lda_transport::{Arrival, NodeId, Transport, Wait};
//!
//! let mut nodes = local::mesh(2, &local::Options::default());
//! let (mut a, mut b) = (nodes.remove(0), nodes.remove(0));
//! assert_eq!(a.receive(Wait::Forever)?, Some(Arrival::Up { peer: NodeId(1) }));
//! a.send(NodeId(1), b"a row".to_vec().into())?;
//! assert_eq!(b.receive(Wait::Forever)?, Some(Arrival::Up { peer: NodeId(0) }));
//! let Some(Arrival::Frame { peer, frame }) = b.receive(Wait::Forever)? else { panic!("no frame") };
//! assert_eq!((peer, &frame[..]), (NodeId(0), &b"a row"[..]));
//! b.release(frame);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![forbid(unsafe_code)]

pub mod batch;
pub mod bootstrap;
mod buffer_pool;
pub mod conformance;
mod frame;
#[cfg(feature = "grpc")]
pub mod grpc;
pub mod guide;
mod inbox;
pub mod local;
#[cfg(feature = "mpi")]
pub mod mpi;
pub mod node;
pub mod rpc;
pub mod sim;
mod split_mix;
mod sync;
mod time;
mod together;
mod transport;
pub mod wrap;

pub use frame::Frame;
pub use time::Time;
pub use together::Together;
pub use transport::{
    Arrival, Capabilities, DisconnectReason, NodeId, ReceiveError, SendError, Transport, Unsent,
    Wait,
};
