//! Messages between the nodes of a distributed program, over whatever connects the machines:
//! threads, gRPC or MPI, behind one trait.
//!
//! ```
//! use lda_transport::{Arrival, NodeId, Transport, Wait, local};
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
//!
//! # Why this crate
//! * **A small trait with a strict contract.** A [`Transport`] has six required methods. It never
//!   blocks on a send, bounds its memory, and never loses a frame silently.
//! * **Requests that survive failures.** [`rpc`] has requests and replies with deadlines, retries,
//!   at-most-once execution and flow control, as a state machine without threads or clocks.
//! * **Testable.** The same program runs over a network and in a simulator with seeded faults and
//!   time. A conformance suite checks every promise of a transport, yours too.
//!
//! # Transports
//! | transport | connects | for |
//! |---|---|---|
//! | [`local`] | threads of one process | tests, one machine, embedding |
//! | `grpc` | machines, with or without TLS | clusters, Kubernetes |
//! | `mpi` | ranks of an MPI job | clusters whose network MPI supports best |
//!
//! `examples/tcp` is a complete transport over plain TCP in two files. `docs/transports.md` in the
//! repository compares speed and cost, and has the steps to write a transport.
//!
//! # Where to start
//! | task | item |
//! |---|---|
//! | send bytes between nodes | [`Transport`], [`local::mesh`] |
//! | run a program of requests and replies | [`rpc::Program`], [`rpc::Driver`] |
//! | find the addresses of the nodes | [`bootstrap`] |
//! | simulate a program with faults | `sim::World` |
//! | check a transport | `conformance::run` |
//! | count, log or break frames | `wrap` |
//!
//! # Features
//! All are off by default.
//!
//! | feature | adds |
//! |---|---|
//! | `grpc` | the transport `grpc`, with tonic and rustls |
//! | `mpi` | the transport `mpi`; needs MPI and libclang to build |
//! | `collectives` | collective operations in `rpc`: barrier, broadcast, reduce-scatter, all-gather |
//! | `tracing` | events of `wrap::Logging`, and notes of programs |
//! | `sim` | the simulator, for tests |
//! | `conformance` | the conformance suite, for tests |
//! | `wrap` | wrappers around transports, for tests |
//!
//! # Stability
//! The crate follows semantic versioning. The encoding of messages has a version, which peers
//! compare when they connect; nodes of different versions refuse each other. `sim`, `conformance`
//! and `wrap` change more often than the rest.

#![forbid(unsafe_code)]

pub mod bootstrap;
#[cfg(any(test, feature = "grpc", feature = "mpi"))]
mod buffer_pool;
#[cfg(feature = "conformance")]
pub mod conformance;
mod frame;
#[cfg(feature = "grpc")]
pub mod grpc;
mod inbox;
pub mod local;
#[cfg(feature = "mpi")]
pub mod mpi;
pub mod rpc;
#[cfg(feature = "sim")]
pub mod sim;
mod split_mix;
mod sync;
mod time;
mod transport;
#[cfg(feature = "wrap")]
pub mod wrap;

pub use frame::Frame;
pub use time::Time;
pub use transport::{
    Arrival, Capabilities, DisconnectReason, NodeId, ReceiveError, SendError, Transport, Unsent,
    Wait,
};
