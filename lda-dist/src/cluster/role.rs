//! Whichever role a node has.

use lda_core::counts::TopicIndex;
use lda_transport::NodeId;
use lda_transport::endpoint::Action;
use lda_transport::sim::{Context, Program};

use super::{Documents, Failed, Master, Port, ServerNode, Setup, Worker};

/// A node of a run, whichever role its number gives it.
#[derive(Debug)]
pub enum Role<T: TopicIndex, D> {
    /// Node 0.
    Master(Box<Master>),
    /// One of those that follow.
    Server(Box<ServerNode<T>>),
    /// One of the rest.
    Worker(Box<Worker<T, D>>),
}

impl<T: TopicIndex, D: Documents> Role<T, D> {
    /// Of node `id`; only workers read `documents`.
    pub fn new(setup: Setup, id: NodeId, documents: D) -> Self {
        let servers = setup.options.servers;
        match id.0 {
            0 => Self::Master(Box::new(Master::new(setup))),
            id if id <= servers => Self::Server(Box::new(ServerNode::new(setup, id - 1))),
            id => Self::Worker(Box::new(Worker::new(setup, id - 1 - servers, documents))),
        }
    }

    /// As a number for [`Identity`](lda_transport::endpoint::Identity).
    pub fn number(&self) -> u8 {
        match self {
            Self::Master(_) => 0,
            Self::Server(_) => 1,
            Self::Worker(_) => 2,
        }
    }

    /// The node has started.
    pub fn start(&mut self, port: &mut dyn Port) {
        if let Self::Worker(worker) = self {
            worker.start(port);
        }
    }

    /// What the endpoint says.
    pub fn act(&mut self, action: Action, port: &mut dyn Port) {
        match self {
            Self::Master(master) => master.act(action, port),
            Self::Server(server) => server.act(action, port),
            Self::Worker(worker) => worker.act(action, port),
        }
    }

    /// A node has closed, which is told whether or not the endpoint has known it.
    pub fn closed(&mut self, peer: NodeId) {
        match self {
            Self::Master(master) => master.closed(peer),
            Self::Server(server) => server.closed(peer),
            Self::Worker(worker) => worker.closed(peer),
        }
    }

    /// Whether its work is done.
    pub fn is_finished(&self) -> bool {
        match self {
            Self::Master(master) => master.is_finished(),
            Self::Server(server) => server.is_finished(),
            Self::Worker(worker) => worker.is_finished(),
        }
    }

    /// Why it has given up, if it has.
    pub fn failed(&self) -> Option<&Failed> {
        match self {
            Self::Master(master) => master.failed(),
            Self::Server(server) => server.failed(),
            Self::Worker(worker) => worker.failed(),
        }
    }
}

impl<T: TopicIndex, D: Documents> Program for Role<T, D> {
    fn start(&mut self, cx: &mut Context<'_>) {
        Role::start(self, cx);
    }

    fn act(&mut self, action: Action, cx: &mut Context<'_>) {
        Role::act(self, action, cx);
    }
}
