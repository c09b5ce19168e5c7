//! How to choose a transport, and how to write one. There is nothing in this module but this page.
//!
//! # Choosing
//! | the nodes are | take |
//! |---|---|
//! | threads of one process: tests, one machine, embedding | [`local`](crate::local) |
//! | processes on machines that reach each other by TCP, on Kubernetes, over lines that fail, among strangers | `grpc` |
//! | ranks of a job that `mpirun` or Slurm starts, on a network that MPI knows | `mpi` |
//! | somewhere else | [one of your own](#writing-one) |
//! | nowhere, as a protocol is to be tested | [`sim`](crate::sim) |
//!
//! | | local | grpc | mpi |
//! |---|---|---|---|
//! | a lost node comes again | yes | yes | no: the job ends |
//! | nodes that come later | yes | yes | no |
//! | encrypted, nodes known by certificates | one process | TLS, both sides | no |
//! | idle nodes cost | nothing | a ping each half second and peer | about 5 % of a core |
//! | who finds whom | the process | addresses, as from [`bootstrap`](crate::bootstrap) | `mpirun` |
//! | needs | | | MPI and libclang, when it is built |
//!
//! Whatever it is, the program above does not see it: it has an [`Endpoint`](crate::endpoint::Endpoint), or a
//! [`Node`](crate::node::Node) that blocks, over a `Box<dyn Transport>`.
//!
//! # How fast
//! Two processes on one machine with two cores of an AMD EPYC, frames one way and there and back, medians of five
//! runs in turn: `cargo run --release -p lda-transport --features grpc --example speed`.
//!
//! | | GB/s, 64 KiB | GB/s, 1 MiB | CPU s a GB, 64 KiB | CPU s a GB, 1 MiB | µs there and back, 64 B |
//! |---|--:|--:|--:|--:|--:|
//! | bare tonic | 1.79 | 1.61 | 0.90 | 0.97 | 77.8 |
//! | grpc | 1.89 | 2.32 | 0.86 | 0.70 | 96.7 |
//! | grpc, mTLS | 1.25 | 1.45 | 1.32 | 1.17 | 101.9 |
//! | pushes over grpc | 1.96 | 1.96 | 0.81 | 0.82 | 112.3 |
//! | tcp | 1.73 | 2.97 | 0.90 | 0.54 | 86.5 |
//! | local | 54.70 | 6.19 | 0.02 | 0.17 | 1.1 |
//!
//! The round trip of `bare tonic` is from a thread and back to it, as those below are. Pushes are requests of
//! [`Node`](crate::node::Node)s, done at most once. `tcp` is the example, which does less than a transport should. MPI
//! is measured by `examples/mpi`, under `mpirun`, beside calls of MPI alone.
//!
//! # Writing one
//! 1. Read the contract of [`Transport`](crate::Transport). `examples/tcp` is one of under 200 lines, over plain TCP.
//! 2. Most work is in what bounds memory: a queue a peer that [`send`](crate::Transport::send) gives back as full,
//!    and a receiver that reads no further when its program does not take what has come. State the sum of both in
//!    [`Capabilities::queue_bytes`](crate::Capabilities::queue_bytes).
//! 3. Write a [`Subject`](crate::conformance::Subject), which makes meshes of it, and let
//!    [`conformance::run`](crate::conformance::run) tell what is missing. What a transport does not claim is skipped.
//! 4. To see programs over it when frames are lost or late, put it into a [wrapper](crate::wrap).
