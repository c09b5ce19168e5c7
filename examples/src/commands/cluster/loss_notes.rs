//! Lines of the log about peers that a node waits for.

use std::collections::BTreeMap;
use std::time::Duration;

use lda_dist::cluster::{Loss, LostPeer, NodeRole, Setup};
use lda_transport::NodeId;

/// Time after which a node that has not connected yet is reported: nodes do not start together.
const STARTING: Duration = Duration::from_secs(5);
/// The same for a connection that was lost. Nodes learn the end of a run within it.
const LOST: Duration = Duration::from_secs(1);
/// Time after which a line is repeated.
const REPEAT: Duration = Duration::from_secs(10);
/// Maximum number of nodes that have a line at the same time.
const MOST: usize = 4;

/// The lost peers that were reported.
#[derive(Debug, Default)]
pub struct LossNotes {
    reported: BTreeMap<NodeId, Reported>,
}

#[derive(Debug)]
struct Reported {
    was_connected: bool,
    /// Time without the peer.
    since: Duration,
    /// Time without the peer at which the next line is due.
    next: Duration,
}

impl LossNotes {
    /// Lines that are due now, of all peers that are needed and lost now.
    pub fn lines(
        &mut self,
        setup: &Setup,
        lost: &[LostPeer],
        is_connected: impl Fn(NodeId) -> bool,
    ) -> Vec<String> {
        let mut lines = Vec::new();
        let is_lost = |peer| lost.iter().any(|lost| lost.peer == peer);
        self.reported.retain(|&peer, reported| {
            if !is_lost(peer) {
                let (name, seconds) = (setup.role_of(peer).to_string(), reported.since.as_secs());
                lines.push(match reported.was_connected {
                    _ if !is_connected(peer) => format!("the run goes on without {name}"),
                    true => format!("{name} is back after {seconds} s"),
                    false => format!("{name} has connected after {seconds} s"),
                });
            }
            is_lost(peer)
        });
        let returned = lines.len();
        for lost in lost {
            if self.is_due(lost) {
                lines.push(line(setup, lost));
            }
        }
        if lines.len() > returned + MOST {
            let more = lines.len() - returned - MOST;
            lines.truncate(returned + MOST);
            lines.push(format!("and {more} more nodes; {} are lost", lost.len()));
        }
        lines
    }

    /// Whether a line about this peer is due, which is then noted as reported.
    fn is_due(&mut self, lost: &LostPeer) -> bool {
        let was_connected = lost.why != Loss::NotConnected;
        let first = if was_connected { LOST } else { STARTING };
        let reported = self.reported.get_mut(&lost.peer);
        let due = match &reported {
            // The peer has returned and was lost again.
            Some(reported) if lost.since < reported.since => first,
            Some(reported) => reported.next,
            None => first,
        };
        let is_due = lost.since >= due;
        if is_due {
            let (since, next) = (lost.since, lost.since + REPEAT);
            self.reported.insert(lost.peer, Reported { was_connected, since, next });
        } else if let Some(reported) = reported {
            reported.since = lost.since;
            reported.next = due;
        }
        is_due
    }
}

fn line(setup: &Setup, lost: &LostPeer) -> String {
    let LostPeer { peer, why, since, left, .. } = lost;
    let role = setup.role_of(*peer);
    let goes_on = setup.is_elastic() && matches!(role, NodeRole::Worker(_));
    let ends = if goes_on { "goes on with the others" } else { "ends" };
    let seconds = since.as_secs();
    let left = match left.as_secs() {
        0 => "now".to_owned(),
        left => format!("in {left} s"),
    };
    let returns = if *why == Loss::NotConnected { "connect" } else { "return" };
    format!("{role} {why}, for {seconds} s: the run {ends} {left} if it does not {returns}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::cluster::training::{Extent, Training};

    fn lost(peer: u32, why: Loss, since: u64) -> LostPeer {
        LostPeer::new(NodeId(peer), why, Duration::from_secs(since), Duration::from_secs(30))
    }

    fn setup() -> Setup {
        let extent = Extent { documents: 10, words: 10, mean_length: 9.9, fingerprint: 1 };
        Training { workers: 9, ..Training::default() }.setup(None, extent, None).unwrap()
    }

    #[test]
    fn a_lost_node_is_reported_once_then_every_ten_seconds_and_when_it_is_back() {
        let (mut notes, setup) = (LossNotes::default(), setup());
        let said = (0..25)
            .flat_map(|since| notes.lines(&setup, &[lost(2, Loss::Closed, since)], |_| true));
        let said: Vec<String> = said.collect();
        assert_eq!(
            said[0],
            "worker 0 has ended, for 1 s: the run ends in 30 s if it does not return"
        );
        assert_eq!(said.len(), 3, "{said:?}");
        assert!(said[1].contains("for 11 s") && said[2].contains("for 21 s"), "{said:?}");
        assert_eq!(notes.lines(&setup, &[], |_| true), ["worker 0 is back after 24 s"]);
        assert_eq!(notes.lines(&setup, &[], |_| true), [""; 0]);
    }

    #[test]
    fn an_elastic_run_goes_on_without_a_worker() {
        let (mut notes, setup) = (LossNotes::default(), setup().min_workers(2));
        let said =
            notes.lines(&setup, &[lost(2, Loss::Closed, 1), lost(1, Loss::Closed, 1)], |_| false);
        assert_eq!(
            said,
            [
                "worker 0 has ended, for 1 s: the run goes on with the others in 30 s if it does not \
                 return",
                "server 0 has ended, for 1 s: the run ends in 30 s if it does not return",
            ]
        );
        let said = notes.lines(&setup, &[], |peer| peer == NodeId(1));
        assert_eq!(said, ["server 0 is back after 1 s", "the run goes on without worker 0"]);
    }

    #[test]
    fn interruptions_of_less_than_a_second_are_not_reported() {
        let (mut notes, setup) = (LossNotes::default(), setup());
        for since in [0, 0, 0] {
            let broken = lost(1, Loss::Broken("reset".to_owned()), since);
            assert_eq!(notes.lines(&setup, &[broken], |_| true), [""; 0]);
            assert_eq!(notes.lines(&setup, &[], |_| true), [""; 0]);
        }
    }

    #[test]
    fn a_node_that_is_lost_again_is_reported_again() {
        let (mut notes, setup) = (LossNotes::default(), setup());
        let lines = |notes: &mut LossNotes, since| {
            notes.lines(&setup, &[lost(1, Loss::Broken("reset".to_owned()), since)], |_| true)
        };
        assert_eq!(lines(&mut notes, 1).len(), 1);
        assert_eq!(lines(&mut notes, 9).len(), 0);
        assert_eq!(lines(&mut notes, 0).len(), 0, "it has returned between two looks");
        let said = lines(&mut notes, 2);
        let expected =
            "server 0 is not reached: reset, for 2 s: the run ends in 30 s if it does not return";
        assert_eq!(said, [expected]);
    }

    #[test]
    fn many_nodes_have_few_lines() {
        let (mut notes, setup) = (LossNotes::default(), setup());
        let lost: Vec<_> = (1..=10).map(|peer| lost(peer, Loss::NotConnected, 5)).collect();
        let said = notes.lines(&setup, &lost, |_| true);
        assert_eq!(said.len(), 5);
        assert_eq!(said[4], "and 6 more nodes; 10 are lost");
        assert_eq!(notes.lines(&setup, &[], |_| true).len(), 10, "they have connected");
    }
}
