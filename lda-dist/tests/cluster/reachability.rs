//! Reachability: the faults that can hit a message in a phase of its receiver.

use lda_dist::cluster::{Message, Phase};

use super::coverage::{Fault, Kind, Part, Table, Who};
use super::targeted_faults::Target;

/// The reason why this message is never sent to this role; `None` if it is.
fn never_sent(kind: Kind) -> Option<&'static str> {
    use Message::*;
    let Kind { to, message, part } = kind;
    let to_master =
        matches!(message, Words | Ready | RoundDone | RestartRequest | Unreadable | Stop | Failed);
    let of_worker = matches!(message, Join | Sizes | Pull | Push | PushDeltas | PushRows);
    let gets = match (to, part) {
        (Who::Master, Part::Asked) => to_master,
        (Who::Master, _) => !to_master && !of_worker,
        (Who::Server, Part::Asked) => !to_master && !matches!(message, Keep | Count),
        (Who::Server, _) => matches!(message, Ready | Stop),
        (Who::Worker, Part::Asked) => matches!(message, Start | Begin | Keep | Finish),
        (Who::Worker, _) => {
            of_worker
                || matches!(message, Words | Ready | RoundDone | RestartRequest | Unreadable | Stop)
        }
    };
    match message {
        _ if !gets => Some("other roles receive it"),
        Failed => Some("a failed role sends nothing; its driver does"),
        Count => Some("only elastic runs have shards whose worker is not there"),
        _ => None,
    }
}

/// The reason why a role is never in this phase; `None` if it can be.
fn never_at(to: Who, phase: Phase) -> Option<&'static str> {
    use Phase::*;
    let is_at = match phase {
        Waiting | Joining | Sampling | Finished => true,
        Starting | Ending | Beginning | Keeping | Collecting | Finishing => to == Who::Master,
        Between => to != Who::Master,
    };
    (!is_at).then_some("other roles have this phase")
}

/// The reason why this message is never in flight while its receiver is in this phase; `None` if it
/// can be.
fn never_then(kind: Kind, phase: Phase) -> Option<&'static str> {
    use Message::*;
    match (kind.to, kind.message, phase) {
        (
            Who::Worker,
            RoundDone | RestartRequest | Join | Sizes | Pull | Push | PushDeltas | PushRows,
            Phase::Waiting,
        ) => Some("a worker with shards keeps them until it crashes"),
        _ => None,
    }
}

/// The reason why this cell cannot be reached; `None` if it can.
pub fn unreachable(kind: Kind, phase: Phase) -> Option<&'static str> {
    never_sent(kind).or_else(|| never_at(kind.to, phase)).or_else(|| never_then(kind, phase))
}

/// Returns true for a message too rare to be seen in each phase. No snapshot is damaged here, so only a
/// worker that crashes while an attempt begins from topics in memory does not have them.
fn is_too_rare(kind: Kind) -> bool {
    kind.message == Message::Unreadable
}

/// Every kind of message, with every phase of its receiver in which it may be in flight.
pub fn targets() -> Vec<Target> {
    let phases = |kind| Phase::ALL.into_iter().map(move |phase| Target { kind, phase });
    let can_be = |target: &Target| unreachable(target.kind, target.phase).is_none();
    let all = Kind::all().filter(|&kind| !is_too_rare(kind)).flat_map(phases).filter(can_be);
    all.flat_map(|target| std::iter::repeat_n(target, rareness(target))).collect()
}

/// Relative number of histories for a target: rare ones get more.
fn rareness(target: Target) -> usize {
    use Message::*;
    let times = match target.kind.message {
        Keep | Finish => 3,
        RestartRequest | Stop | Rows => 2,
        _ => 1,
    };
    let is_rare_stage = target.is_for_restarted_node() || target.phase == Phase::Keeping;
    times + 3 * usize::from(is_rare_stage)
}

fn cells() -> impl Iterator<Item = (Kind, Fault, Phase)> {
    Kind::all().flat_map(|kind| {
        let phases = move |fault| Phase::ALL.into_iter().map(move |phase| (kind, fault, phase));
        Fault::ALL.into_iter().flat_map(phases)
    })
}

pub fn nothing_came_where_nothing_can(table: &Table) {
    for (kind, fault, phase) in cells() {
        if let Some(why) = unreachable(kind, phase) {
            let count = table.count(kind, fault, phase);
            assert_eq!(count, 0, "{kind} to a {:?}, {fault:?}, {phase:?}: {why}", kind.to);
        }
    }
}

/// Returns the number of reachable cells, and the smallest count among them.
pub fn everything_else_came(table: &Table, least: u64) -> (usize, u64) {
    let reachable = cells().filter(|&(kind, fault, phase)| {
        fault != Fault::None && unreachable(kind, phase).is_none() && !is_too_rare(kind)
    });
    let counts: Vec<(u64, String)> = reachable
        .map(|(kind, fault, phase)| {
            let count = table.count(kind, fault, phase);
            (count, format!("{kind} to a {:?}, {fault:?}, {phase:?}: {count}", kind.to))
        })
        .collect();
    let few: Vec<&str> =
        counts.iter().filter(|(count, _)| *count < least).map(|(_, cell)| &cell[..]).collect();
    assert!(few.is_empty(), "{} cells with fewer than {least}:\n{}", few.len(), few.join("\n"));
    (counts.len(), counts.iter().map(|(count, _)| *count).min().unwrap_or(0))
}
