//! Setups and conditions under which a target message is in flight while its receiver is in the
//! phase.

use std::time::Duration;

use lda_core::train::SamplerKind;
use lda_dist::cluster::{MASTER, Message, Phase, Setup};
use lda_dist::config::Routing;
use lda_transport::NodeId;

use super::coverage::{Kind, Part, Who};
use super::targeted_faults::Target;

const MILLISECOND: Duration = Duration::from_millis(1);

impl Target {
    /// Epochs of the run, epochs between checkpoints, and rounds per epoch.
    fn epochs(self) -> (u32, u32, u16) {
        use Phase::{Collecting, Finished, Finishing, Keeping};
        match (self.kind.message, self.phase) {
            // Nodes that stop write checkpoints, from which the run restarts.
            (Message::Keep, _) | (_, Keeping) => (3, 0, 1),
            // The run ends soon.
            (Message::Rows | Message::Finish, _) | (_, Collecting | Finishing | Finished) => {
                (1, 0, 1)
            }
            _ => (5, 2, 4),
        }
    }

    /// Changes a setup so that the target is not rare.
    pub fn set_up(self, mut setup: Setup) -> Setup {
        let options = &mut setup.options;
        (setup.epochs, setup.checkpoint_every, options.rounds) = self.epochs();
        if self.is_queued() {
            // Many requests at once.
            (options.rounds, options.partitions, setup.prefetch) = (1, 12, 4);
        }
        match self.kind.message {
            Message::Push => {
                (options.routing, options.sampler) = (Routing::Push, SamplerKind::ZenHybrid.into());
            }
            Message::Pull => {
                (options.routing, options.sampler) = (Routing::Pull, SamplerKind::Light.into());
            }
            // Only rows that may stay at a worker are pushed.
            Message::PushRows => {
                (options.routing, options.rounds) = (Routing::Pull, options.shards)
            }
            _ => {}
        }
        if self.is_queued() && self.kind.message == Message::Push {
            // A shard pushes one partition after the other.
            options.shards = 12;
        }
        setup
    }

    /// Whether the target is a request to a restarted node that has received nothing yet.
    pub fn is_for_restarted_node(self) -> bool {
        let Self { kind: Kind { to, part, .. }, phase } = self;
        phase == Phase::Waiting && part == Part::Asked && to != Who::Master
    }

    /// Whether workers send the target to a server, where it is queued until the server has
    /// restarted.
    pub fn is_queued(self) -> bool {
        use Message::{Join, Pull, Push, PushDeltas, PushRows, Sizes};
        let is_of_round =
            matches!(self.kind.message, Join | Sizes | Pull | Push | PushDeltas | PushRows);
        self.is_for_restarted_node() && is_of_round
    }

    /// Largest number of requests in flight between two nodes. With one, others are queued, and go
    /// to the incarnation that is there when their turn comes.
    pub fn window(self) -> Option<u32> {
        self.is_queued().then_some(1)
    }

    /// Longest time between two stops of nodes: twice the mean.
    pub fn stops_every(self) -> Duration {
        let Self { kind: Kind { message, .. }, phase } = self;
        match message {
            Message::Keep | Message::Finish => 10 * MILLISECOND,
            _ if phase == Phase::Keeping => 10 * MILLISECOND,
            Message::Stop => 20 * MILLISECOND,
            _ => 100 * MILLISECOND,
        }
    }

    /// Whether the target is the reply of a node that it may end, during an attempt in which the
    /// node takes part: the master has first received the request to stop, and then that the node
    /// is ready.
    pub fn is_of_early_end(self) -> bool {
        let Self { kind: Kind { to, message, .. }, phase } = self;
        to == Who::Master && message == Message::Finish && phase < Phase::Finishing
    }

    /// Phases of the master before and after it sends the target to a node that restarts then.
    pub fn asked_at(self) -> Option<[Phase; 2]> {
        let Kind { to, message, .. } = self.kind;
        if !self.is_for_restarted_node() {
            return None;
        }
        Some(match (message, to) {
            (Message::Begin, Who::Worker) => [Phase::Beginning, Phase::Sampling],
            (Message::Begin, _) => [Phase::Ending, Phase::Beginning],
            (Message::Keep, _) => [Phase::Ending, Phase::Keeping],
            (Message::End, _) => [Phase::Sampling, Phase::Ending],
            (Message::Finish, _) => [Phase::Collecting, Phase::Finishing],
            // Read-only requests are sent again to a restarted node.
            (Message::Rows, _) => [Phase::Collecting, Phase::Collecting],
            _ => return None,
        })
    }

    /// A slow link, so that one server has replied while the other has not.
    pub fn slow(self, setup: &Setup) -> Option<[NodeId; 2]> {
        self.asked_at().map(|_| [setup.server(1), MASTER])
    }

    /// Longest time until a node detects the loss of another, if it matters.
    pub fn detection_delay(self) -> Option<Duration> {
        match self.kind.message {
            Message::RestartRequest => Some(30 * MILLISECOND),
            _ if self.is_for_restarted_node() => Some(Duration::ZERO),
            _ => None,
        }
    }

    /// Whether the receiver goes from this phase to the target's if nothing fails.
    pub fn comes_from(self, now: Phase) -> bool {
        let rank = |phase| match phase {
            Phase::Waiting => 0,
            Phase::Starting => 1,
            Phase::Joining => 2,
            Phase::Sampling | Phase::Between | Phase::Ending | Phase::Beginning => 3,
            // A node has ended then, and the others restart with its successor.
            Phase::Keeping => 3,
            Phase::Collecting => 4,
            Phase::Finishing => 5,
            Phase::Finished => 6,
        };
        let ranks = (rank(now), rank(self.phase));
        now == Phase::Keeping || ranks.0 < ranks.1 || ranks == (3, 3)
    }
}
