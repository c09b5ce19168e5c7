//! A transport of the program, given to `cluster::run`: here it wraps the one between threads and
//! counts bytes. A transport over other links implements the same methods, and is checked with
//! `lda_transport::conformance`; `lda-transport/examples/tcp` is one from scratch.
//!
//! The numbers of bytes include acknowledgements, which depend on timing.
//!
//! ```text
//! cargo run -p lda-dist --example own_transport
//! ```

#![allow(clippy::print_stdout, reason = "an example shows its result")]

use std::task::Waker;
use std::thread;
use std::time::Duration;

use lda_core::Corpus;
use lda_dist::cluster::{self, Patience, Role, RunError, Setup};
use lda_dist::config::Options;
use lda_dist::documents::InMemory;
use lda_dist::spec::ModelSpec;
use lda_transport::rpc::Identity;
use lda_transport::{
    Arrival, Capabilities, Frame, NodeId, ReceiveError, Transport, Unsent, Wait, local,
};

/// Counts the bytes that a node sends.
#[derive(Debug)]
struct Counting<T> {
    inner: T,
    sent: u64,
}

impl<T: Transport> Transport for Counting<T> {
    fn id(&self) -> NodeId {
        self.inner.id()
    }

    fn capabilities(&self) -> Capabilities {
        self.inner.capabilities()
    }

    fn send(&mut self, to: NodeId, frame: Frame) -> Result<(), Unsent> {
        let bytes = frame.len() as u64;
        self.inner.send(to, frame)?;
        self.sent += bytes;
        Ok(())
    }

    fn receive(&mut self, wait: Wait) -> Result<Option<Arrival>, ReceiveError> {
        self.inner.receive(wait)
    }

    fn waker(&self) -> Waker {
        self.inner.waker()
    }

    fn close(&mut self, patience: Duration) {
        self.inner.close(patience);
    }
}

type Node = Role<u16, InMemory>;

/// Runs one node to the end; a real program has one per machine.
fn node(
    setup: &Setup,
    documents: InMemory,
    transport: &mut dyn Transport,
) -> Result<Node, RunError> {
    let role = Node::new(setup.clone(), transport.id(), documents, None);
    let (number, configuration) = (role.number(), setup.fingerprint());
    let identity = Identity { incarnation: 1, role: number, run: 1, configuration };
    let config = cluster::config(setup, identity);
    cluster::run(role, transport, config, Patience::default(), None, &mut |_, _| {})
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let corpus =
        Corpus::from_tokens((0..200).map(|d| (0..30).map(move |i| d % 4 * 8 + i * i % 9)))?;
    let spec = ModelSpec::builder(4, corpus.num_words() as u32).alpha(0.1).seed(1).build()?;
    let options = Options { shards: 2, partitions: 4, rounds: 2, ..Options::default() };
    let setup = Setup::new(spec, corpus.fingerprint()).options(options).workers(2).epochs(20);
    let documents = InMemory::new(corpus, setup.options.shards)?;

    let nodes = 1 + setup.options.servers + setup.workers;
    let mesh = local::mesh(nodes, &local::Options::default());
    let mut transports: Vec<_> =
        mesh.into_iter().map(|inner| Counting { inner, sent: 0 }).collect();
    let (setup, documents) = (&setup, &documents);
    let roles: Vec<Node> = thread::scope(|scope| {
        let threads: Vec<_> = transports
            .iter_mut()
            .map(|transport| scope.spawn(move || node(setup, documents.clone(), transport)))
            .collect();
        let ends = threads.into_iter().map(|thread| thread.join().expect("no node panics"));
        ends.collect::<Result<_, RunError>>()
    })?;
    assert!(roles.iter().all(Role::is_finished));
    for transport in &transports {
        println!("{} sent {} kB", transport.id(), transport.sent.div_ceil(1000));
    }
    Ok(())
}
