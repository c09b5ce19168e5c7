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
//! Whatever it is, the program above does not see it: it has an [`Endpoint`](crate::rpc::Endpoint), or a
//! [`Node`](crate::node::Node) that blocks, over a `Box<dyn Transport>`.
//!
//! # How fast
//! Two processes on one machine with two cores of an AMD EPYC, frames one way and there and back, medians of five
//! runs in turn: `cargo run --release -p lda-transport --features grpc --example speed`.
//!
//! | | GB/s, 64 KiB | GB/s, 1 MiB | CPU s a GB, 64 KiB | CPU s a GB, 1 MiB | µs there and back, 64 B |
//! |---|--:|--:|--:|--:|--:|
//! | bare tonic | 1.80 | 1.58 | 0.91 | 0.99 | 79.1 |
//! | grpc | 2.08 | 2.30 | 0.83 | 0.70 | 95.5 |
//! | grpc, spinning | 2.22 | 2.31 | 0.80 | 0.66 | 65.4 |
//! | grpc, mTLS | 1.45 | 1.56 | 1.15 | 1.08 | 114.4 |
//! | pushes over grpc | 2.06 | 2.35 | 0.86 | 0.69 | 113.9 |
//! | tcp | 1.75 | 3.70 | 0.94 | 0.41 | 86.7 |
//! | local | 49.76 | 6.41 | 0.03 | 0.17 | 1.1 |
//! | bare rsmpi | 9.63 | 9.11 | 0.21 | 0.22 | 0.3 |
//! | mpi | 2.23 | 11.35 | 0.49 | 0.18 | 18.0 |
//!
//! The round trip of `bare tonic` is from a thread and back to it, as those below are, but at the other end no thread
//! is woken: that is what `grpc` takes longer. `spinning` is [`Spinning`](crate::wrap::Spinning) around it. Pushes are
//! requests of [`Node`](crate::node::Node)s, done at most once. `tcp` is the example, which does less than a transport
//! should. The two rows of MPI (Open MPI 4.1, shared memory) are of another program, `mpirun --bind-to none -n 2
//! target/release/examples/mpi`, with and without `bare` after it: bandwidth is that of MPI, but short frames pay for
//! the threads that hand them over, of which two look for messages without rest and leave the others no core.
//!
//! # Writing one
//! 1. Read the contract of [`Transport`](crate::Transport). `examples/tcp` is one of some 200 lines, over plain TCP.
//! 2. Most work is in what bounds memory: a queue a peer that [`send`](crate::Transport::send) gives back as full,
//!    and a receiver that reads no further when its program does not take what has come. State the sum of both in
//!    [`Capabilities::queue_bytes`](crate::Capabilities::queue_bytes).
//! 3. Write a [`Subject`](crate::conformance::Subject), which makes meshes of it, and let
//!    [`conformance::run`](crate::conformance::run) tell what is missing. What a transport does not claim is skipped.
//! 4. To see programs over it when frames are lost or late, put it into a [wrapper](crate::wrap).
