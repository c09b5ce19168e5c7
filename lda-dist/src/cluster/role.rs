//! Role of a node: master, server or worker.

use std::time::Duration;

use lda_core::counts::TopicIndex;
use lda_transport::NodeId;
use lda_transport::rpc::Action;
use lda_transport::rpc::{Context, Program, Refusal};

use super::{
    Documents, Failed, LostPeer, MASTER, Master, NodeState, Phase, Port, ServerNode, Setup,
    SnapshotWriter, Waited, Worker,
};

/// Role of a node, which follows from its number.
#[derive(Debug)]
pub enum Role<T: TopicIndex, D> {
    /// Node 0.
    Master(Box<Master>),
    /// Nodes 1 to M.
    Server(Box<ServerNode<T>>),
    /// The other nodes.
    Worker(Box<Worker<T, D>>),
}

impl<T: TopicIndex, D: Documents> Role<T, D> {
    /// The role of node `id`. Only workers read `documents`. Without a `snapshot_writer` no checkpoints
    /// are written, and a restart goes back to the beginning; with one the run goes on from the
    /// checkpoint of this run in its storage, if there is one.
    pub fn new(
        setup: Setup,
        id: NodeId,
        documents: D,
        snapshot_writer: Option<SnapshotWriter>,
    ) -> Self {
        let servers = setup.options.servers;
        match id.0 {
            0 => Self::Master(Box::new(Master::new(setup, snapshot_writer))),
            id if id <= servers => Self::Server(Box::new(ServerNode::new(setup, id - 1))),
            id => {
                let worker = Worker::new(setup, id - 1 - servers, documents, snapshot_writer);
                Self::Worker(Box::new(worker))
            }
        }
    }

    /// The role as a number for [`Identity`](lda_transport::rpc::Identity).
    pub fn number(&self) -> u8 {
        match self {
            Self::Master(_) => 0,
            Self::Server(_) => 1,
            Self::Worker(_) => 2,
        }
    }

    /// Starts the role: the master reads the checkpoint of an earlier run.
    pub fn start(&mut self) {
        let started = match self {
            Self::Master(master) => master.start(),
            Self::Server(_) | Self::Worker(_) => Ok(()),
        };
        *self.failed_mut() = started.err();
    }

    /// Processes an event of the endpoint.
    pub fn act(&mut self, action: Action, port: &mut dyn Port) {
        if self.failed().is_some() {
            return;
        }
        let acted = match (action, &mut *self) {
            // A node that the master refuses, or that refuses the master, has no place in this run. A
            // refused node at any other place counts as lost ([`Peers`]): the right one may still come.
            (Action::Refused { peer: MASTER, reason }, role) if !is_violation(&reason) => {
                let why = role.explain(&reason);
                Err(Failed::IncompatiblePeer { peer: MASTER, why })
            }
            (Action::Refused { .. }, _) => Ok(()),
            // The endpoint retries requests to a peer that is away for a while.
            (action, Self::Master(master)) => match master.act(action, port) {
                // One node does not end the run. The right one may come in its place.
                Err(Failed::Message { peer, what }) if peer != MASTER => {
                    master.refuse(peer, what, port);
                    Ok(())
                }
                acted => acted,
            },
            (action, Self::Server(server)) => server.act(action, port),
            (action, Self::Worker(worker)) => worker.act(action, port),
        };
        *self.failed_mut() = acted.err();
    }

    /// A refusal in words, with what this node can say about the difference.
    pub(super) fn explain(&self, reason: &Refusal) -> String {
        if !matches!(reason, Refusal::Configuration { .. } | Refusal::ByPeer(_)) {
            return reason.to_string();
        }
        let names: Vec<&str> = self.setup().aggregates.registered().collect();
        format!("{reason}; this node has registered the aggregates {names:?}, which all nodes need")
    }

    /// Setup of the run.
    pub fn setup(&self) -> &Setup {
        match self {
            Self::Master(master) => master.setup(),
            Self::Server(server) => server.setup(),
            Self::Worker(worker) => worker.setup(),
        }
    }

    /// Does a piece of work that needs no further message; returns whether there was any. Requests that
    /// wait should be sent before, so that other nodes work at the same time.
    pub fn work(&mut self, port: &mut dyn Port) -> bool {
        let Self::Worker(worker) = self else { return false };
        if worker.failed.is_some() {
            return false;
        }
        let worked = worker.work(port);
        worker.failed = worked.as_ref().err().cloned();
        worked != Ok(false)
    }

    /// Asks for the end of this node: the current epoch is completed, its topics are written, and then
    /// the node is [released](Self::stopped). The other nodes wait for it to come back; if it is the
    /// master, all nodes end.
    pub fn stop(&mut self, port: &mut dyn Port) {
        match self {
            Self::Master(master) => master.stop(port),
            Self::Server(server) => server.stop(port),
            Self::Worker(worker) => worker.stop(port),
        }
    }

    /// The epoch from which the run goes on when it is started again, if this node has finished because
    /// it was stopped.
    pub fn stopped(&self) -> Option<u32> {
        match self {
            Self::Master(master) => master.stopped(),
            Self::Server(server) => server.stopped(),
            Self::Worker(worker) => worker.stopped(),
        }
    }

    /// State of the node, for monitoring.
    pub fn state(&self) -> NodeState {
        match self {
            Self::Master(master) => {
                NodeState { round: master.round(), memory: 0, waited: Waited::default() }
            }
            Self::Server(server) => server.state(),
            Self::Worker(worker) => worker.state(),
        }
    }

    /// Progress of the node.
    pub fn phase(&self) -> Phase {
        match self {
            Self::Master(master) => master.phase(),
            Self::Server(server) => server.phase(),
            Self::Worker(worker) => worker.phase(),
        }
    }

    /// Adds time in which the node waited for messages.
    pub fn waited(&mut self, time: Duration) {
        if let Self::Worker(worker) = self {
            worker.waited(time);
        }
    }

    /// Gives up a lost peer, whether or not it had joined. The role fails, unless it does not
    /// [need](Self::needs) the peer any more.
    pub fn give_up(&mut self, lost: LostPeer, port: &mut dyn Port) {
        let LostPeer { peer, why, since, .. } = lost;
        let kept = match self {
            Self::Master(master) if master.is_ending() => {
                return master.finish_without(peer, port);
            }
            Self::Master(master) => Some(master.kept()),
            // The master decides about workers.
            Self::Server(_) if peer != MASTER => return,
            Self::Server(_) | Self::Worker(_) => None,
        };
        if self.needs(peer) {
            let name = self.setup().role_of(peer).to_string();
            let failed = Failed::PeerLost { peer, name, why, seconds: since.as_secs(), kept };
            self.failed_mut().get_or_insert(failed);
        }
    }

    /// Whether this node waits for a peer if it is lost.
    pub fn needs(&self, peer: NodeId) -> bool {
        match self {
            Self::Master(master) => master.needs(peer),
            Self::Server(server) => !server.is_finished(),
            Self::Worker(worker) => !worker.is_finished(),
        }
    }

    /// Returns whether the work of this node is done.
    pub fn is_finished(&self) -> bool {
        match self {
            Self::Master(master) => master.is_finished(),
            Self::Server(server) => server.is_finished(),
            Self::Worker(worker) => worker.is_finished(),
        }
    }

    /// The fatal error of this node, if there was one.
    pub fn failed(&self) -> Option<&Failed> {
        match self {
            Self::Master(master) => master.failed.as_ref(),
            Self::Server(server) => server.failed.as_ref(),
            Self::Worker(worker) => worker.failed.as_ref(),
        }
    }

    fn failed_mut(&mut self) -> &mut Option<Failed> {
        match self {
            Self::Master(master) => &mut master.failed,
            Self::Server(server) => &mut server.failed,
            Self::Worker(worker) => &mut worker.failed,
        }
    }
}

impl<T: TopicIndex, D: Documents> Program for Role<T, D> {
    fn start(&mut self, _: &mut Context<'_>) {
        Role::start(self);
    }

    fn act(&mut self, action: Action, cx: &mut Context<'_>) {
        Role::act(self, action, cx);
        while self.work(cx) {}
    }
}

/// Whether a peer was refused for a message, and not for what it is.
fn is_violation(reason: &Refusal) -> bool {
    matches!(reason, Refusal::Violation(_))
}
