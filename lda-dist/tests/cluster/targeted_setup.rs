//! What brings about that prey is underway and its receiver at its stage.

use std::time::Duration;

use lda_dist::cluster::{MASTER, Message, Phase, Setup};
use lda_dist::config::Routing;
use lda_transport::NodeId;

use super::coverage::{Kind, Part, Who};
use super::targeted_faults::Target;

const MILLISECOND: Duration = Duration::from_millis(1);

impl Target {
    /// Epochs of the run, after how many of them topics are kept, and rounds of each.
    fn epochs(self) -> (u32, u32, u16) {
        use Phase::{Collecting, Finished, Finishing, Keeping};
        match (self.kind.message, self.phase) {
            // Topics are kept where nodes have to end, and a run that goes back goes back to those.
            (Message::Keep, _) | (_, Keeping) => (3, 0, 1),
            // It soon comes to its end.
            (Message::Rows | Message::Finish, _) | (_, Collecting | Finishing | Finished) => {
                (1, 2, 1)
            }
            _ => (5, 2, 4),
        }
    }

    /// A run in which it is not rare, otherwise as it is given.
    pub fn set_up(self, mut setup: Setup) -> Setup {
        let options = &mut setup.options;
        (setup.epochs, setup.checkpoint_every, options.rounds) = self.epochs();
        if self.is_queued() {
            // Much is asked at once.
            (options.rounds, options.partitions, setup.prefetch) = (1, 12, 4);
        }
        match self.kind.message {
            Message::Push => options.routing = Routing::Push,
            Message::Pull => options.routing = Routing::Pull,
            _ => {}
        }
        if self.is_queued() && self.kind.message == Message::Push {
            // A shard pushes one partition after the other.
            options.shards = 12;
        }
        setup
    }

    /// Whether prey is asked of one that has started anew and has not been told anything.
    pub fn is_for_who_waits(self) -> bool {
        let Self { kind: Kind { to, part, .. }, phase } = self;
        phase == Phase::Waiting && part == Part::Asked && to != Who::Master
    }

    /// Whether workers ask it of a server, where it waits for its turn until that one has started anew.
    pub fn is_queued(self) -> bool {
        use Message::{Join, Pull, Push, PushDeltas, Sizes};
        let is_of_round = matches!(self.kind.message, Join | Sizes | Pull | Push | PushDeltas);
        self.is_for_who_waits() && is_of_round
    }

    /// Requests that a node may have underway to another. With one of them others wait, and go to whoever is there when
    /// their turn comes.
    pub fn window(self) -> Option<u32> {
        self.is_queued().then_some(1)
    }

    /// Between two times that a node is asked to end: twice as long as on average.
    pub fn stops_every(self) -> Duration {
        let Self { kind: Kind { message, .. }, phase } = self;
        match message {
            Message::Keep | Message::Finish => 10 * MILLISECOND,
            _ if phase == Phase::Keeping => 10 * MILLISECOND,
            Message::Stop => 20 * MILLISECOND,
            _ => 100 * MILLISECOND,
        }
    }

    /// Whether it tells the master that a node has heard that it may go, while an attempt is on in which that node is:
    /// the master has heard first that it has to end, and then that it is here.
    pub fn is_of_early_end(self) -> bool {
        let Self { kind: Kind { to, message, .. }, phase } = self;
        to == Who::Master && message == Message::Finish && phase < Phase::Finishing
    }

    /// When the master is about to ask it of one that starts anew then, and when it has.
    pub fn asked_at(self) -> Option<[Phase; 2]> {
        let Kind { to, message, .. } = self.kind;
        if !self.is_for_who_waits() {
            return None;
        }
        Some(match (message, to) {
            (Message::Begin, Who::Worker) => [Phase::Beginning, Phase::Sampling],
            (Message::Begin, _) => [Phase::Ending, Phase::Beginning],
            (Message::Keep, _) => [Phase::Ending, Phase::Keeping],
            (Message::End, _) => [Phase::Sampling, Phase::Ending],
            (Message::Finish, _) => [Phase::Collecting, Phase::Finishing],
            // What only asks is asked anew of one that has started anew.
            (Message::Rows, _) => [Phase::Collecting, Phase::Collecting],
            _ => return None,
        })
    }

    /// A slow way, so that one server has done what it was asked while the other has not.
    pub fn slow(self, setup: &Setup) -> Option<[NodeId; 2]> {
        self.asked_at().map(|_| [setup.server(1), MASTER])
    }

    /// How long it takes at most until a node hears that it has lost another, where it matters.
    pub fn detection_delay(self) -> Option<Duration> {
        match self.kind.message {
            Message::RestartRequest => Some(30 * MILLISECOND),
            _ if self.is_for_who_waits() => Some(Duration::ZERO),
            _ => None,
        }
    }

    /// Whether its receiver comes from one stage to that of the prey if nothing fails.
    pub fn comes_from(self, now: Phase) -> bool {
        let rank = |phase| match phase {
            Phase::Waiting => 0,
            Phase::Starting => 1,
            Phase::Joining => 2,
            Phase::Sampling | Phase::Between | Phase::Ending | Phase::Beginning => 3,
            // A node has ended then, and the others begin again with it.
            Phase::Keeping => 3,
            Phase::Collecting => 4,
            Phase::Finishing => 5,
            Phase::Finished => 6,
        };
        let ranks = (rank(now), rank(self.phase));
        now == Phase::Keeping || ranks.0 < ranks.1 || ranks == (3, 3)
    }
}
