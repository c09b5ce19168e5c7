//! Role of a node: master, server or worker.

use std::time::Duration;

use lda_core::counts::TopicIndex;
use lda_transport::NodeId;
use lda_transport::rpc::Action;
use lda_transport::rpc::{Context, Program, Refusal};

use super::{
    Documents, Failed, LEFT_BEHIND, LostPeer, MASTER, Master, NodeState, Phase, Port, ServerNode,
    Setup, SnapshotWriter, Waited, Worker,
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
    /// The role of node `id`. Only workers read `documents`; the master may use their
    /// [statistics](Documents::statistics). Without a `snapshot_writer` no checkpoints
    /// are written, and the run goes back to the beginning when a worker is lost; with one it goes on from
    /// the checkpoint of this run in its storage, if there is one.
    pub fn new(
        setup: Setup,
        id: NodeId,
        documents: D,
        snapshot_writer: Option<SnapshotWriter>,
    ) -> Self {
        let servers = setup.options.servers;
        match id.0 {
            0 => {
                let statistics = documents.statistics();
                Self::Master(Box::new(Master::new(setup, snapshot_writer, statistics)))
            }
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
            (Action::Refused { peer: MASTER, reason: Refusal::ByPeer(why) }, Self::Worker(_))
                if why.contains(LEFT_BEHIND) =>
            {
                Err(Failed::LeftBehind)
            }
            // A node that the master refuses, or that refuses the master, has no place in this run. A
            // refused node at any other place counts as lost ([`Peers`]): the right one may still come.
            (Action::Refused { peer: MASTER, reason }, role) if !is_violation(&reason) => {
                let why = role.explain(&reason);
                Err(Failed::IncompatiblePeer { peer: MASTER, why })
            }
            (Action::Refused { .. }, _) => Ok(()),
            // The endpoint retries requests to a peer that is away for a while.
            (action, Self::Master(master)) => master.act(action, port),
            (action, Self::Server(server)) => server.act(action, port),
            (action, Self::Worker(worker)) => worker.act(action, port),
        };
        match (acted, &mut *self) {
            // An invalid message ends the session with its sender, and neither this node nor the run. The
            // right node may come in its place.
            (Err(Failed::Message { peer, what }), Self::Master(master)) if peer != MASTER => {
                master.refuse(peer, what, port);
            }
            (Err(Failed::Message { peer: MASTER, what }), Self::Server(server)) => {
                server.refuse_master(what, port);
            }
            (Err(Failed::Message { peer: MASTER, what }), Self::Worker(worker)) => {
                worker.refuse_master(what, port);
            }
            (acted, role) => *role.failed_mut() = acted.err(),
        }
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
        if self.failed().is_some() {
            return false;
        }
        match self {
            Self::Master(_) => false,
            Self::Server(server) => server.work(port),
            Self::Worker(worker) => {
                let worked = worker.work(port);
                worker.failed = worked.as_ref().err().cloned();
                worked != Ok(false)
            }
        }
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
            Self::Master(master) => match master.go_on_without(peer, port) {
                Ok(true) => return,
                Ok(false) => Some(master.kept()),
                Err(failed) => {
                    master.failed.get_or_insert(failed);
                    return;
                }
            },
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
            Self::Server(server) => server.needs(peer),
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

#[cfg(test)]
mod tests {
    use lda_core::Corpus;
    use lda_transport::rpc::{ReplyHandle, RequestKind};

    use super::super::control::Control;
    use super::super::recorder::Recorder;
    use super::*;
    use crate::config::Options;
    use crate::documents::InMemory;
    use crate::spec::{ModelSpec, Round};

    fn role(id: u32) -> Role<u16, InMemory> {
        let corpus = Corpus::from_tokens([[0u32, 1, 1]]).unwrap();
        let setup = Setup::new(ModelSpec::new(3, 2, 0.1.into(), 0.1, 1).unwrap(), 1)
            .options(Options { shards: 1, partitions: 1, servers: 1, ..Options::default() });
        Role::new(setup, NodeId(id), InMemory::new(corpus, 1).unwrap(), None)
    }

    fn message(body: Vec<u8>) -> Action {
        let reply_to = ReplyHandle { peer: MASTER, incarnation: 1, number: 1 };
        Action::Request { reply_to, kind: RequestKind::Push, body: body.into() }
    }

    fn joined(incarnation: u64) -> Action {
        Action::Joined { peer: MASTER, incarnation, role: 0, restarted: incarnation > 1 }
    }

    /// Otherwise a program that takes the place of the master for a moment would end all nodes.
    #[test]
    fn a_master_that_sends_nonsense_is_refused() {
        let of_worker = Control::RestartRequest { attempt: 1 }.encode(3, 2);
        let early = Control::Begin {
            round: Round { epoch: 1, number: 7, attempt: 0 },
            needed: 0,
            write: false,
            push: false,
            delta: Vec::new(),
            priors: None,
        };
        for (id, nonsense) in
            [(1, vec![255, 1, 2]), (2, vec![255, 1, 2]), (2, Vec::new()), (2, of_worker)]
        {
            let (mut role, mut port) = (role(id), Recorder::default());
            role.act(joined(1), &mut port);
            let asked = port.asked.len();
            assert!(asked > 0, "node {id} introduces itself");
            role.act(message(nonsense.clone()), &mut port);
            assert_eq!(role.failed(), None, "node {id}: {nonsense:?}");
            assert_eq!(port.refused, [MASTER], "node {id}: {nonsense:?}");
            // A message of an attempt that this node does not know makes sense, and is late.
            role.act(message(early.encode(3, 2)), &mut port);
            assert_eq!((role.failed(), port.refused.len()), (None, 1), "node {id}");
            // The right master has everything to learn.
            role.act(joined(2), &mut port);
            assert_eq!(port.asked.len(), 2 * asked, "node {id}");
        }
    }
}
