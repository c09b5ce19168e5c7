//! Which messages can meet which faults, and at which stage of their receiver.

use lda_dist::cluster::{Message, Stage};

use super::ambush::Prey;
use super::coverage::{Fault, Kind, Part, Table, Who};

/// Why nobody gets such messages; none where somebody does.
fn never_sent(kind: Kind) -> Option<&'static str> {
    use Message::*;
    let Kind { to, message, part } = kind;
    let to_master = matches!(message, Words | Here | Done | Again | Stop | Failed);
    let of_worker = matches!(message, Join | Sizes | Pull | Push | Gained);
    let gets = match (to, part) {
        (Who::Master, Part::Asked) => to_master,
        (Who::Master, _) => !to_master && !of_worker,
        (Who::Server, Part::Asked) => !to_master && message != Keep,
        (Who::Server, _) => matches!(message, Here | Stop),
        (Who::Worker, Part::Asked) => matches!(message, Start | Begin | Keep | Finish),
        (Who::Worker, _) => of_worker || matches!(message, Words | Here | Done | Again | Stop),
    };
    match message {
        _ if !gets => Some("it is for others"),
        Failed => Some("whoever runs a role says so for it, as it has given up"),
        _ => None,
    }
}

/// Why a role is never at a stage; none where it can be.
fn never_at(to: Who, stage: Stage) -> Option<&'static str> {
    use Stage::*;
    let is_at = match stage {
        Waiting | Joining | Sampling | Finished => true,
        Starting | Ending | Beginning | Keeping | Gathering | Finishing => to == Who::Master,
        Between => to != Who::Master,
    };
    (!is_at).then_some("it is a stage of others")
}

/// Why a message is never underway when its receiver is at a stage; none where it can be.
fn never_then(kind: Kind, stage: Stage) -> Option<&'static str> {
    use Message::*;
    match (kind.to, kind.message, stage) {
        (Who::Worker, Done | Again | Join | Sizes | Pull | Push | Gained, Stage::Waiting) => {
            Some("who has shards keeps them until it crashes")
        }
        _ => None,
    }
}

/// Why no message can be there; none where it can.
pub fn unreachable(kind: Kind, stage: Stage) -> Option<&'static str> {
    never_sent(kind).or_else(|| never_at(kind.to, stage)).or_else(|| never_then(kind, stage))
}

/// Every kind of message, and every stage of its receiver at which it may be underway.
pub fn preys() -> Vec<Prey> {
    let stages = |kind| Stage::ALL.into_iter().map(move |stage| Prey { kind, stage });
    let can_be = |prey: &Prey| unreachable(prey.kind, prey.stage).is_none();
    let all = Kind::all().flat_map(stages).filter(can_be);
    all.flat_map(|prey| std::iter::repeat_n(prey, rareness(prey))).collect()
}

/// How often to look for prey: what is rare is looked for more often.
fn rareness(prey: Prey) -> usize {
    use Message::*;
    let times = match prey.kind.message {
        Keep | Finish => 3,
        Again | Stop | Rows => 2,
        _ => 1,
    };
    let is_rare_stage = prey.is_for_who_waits() || prey.stage == Stage::Keeping;
    times + 3 * usize::from(is_rare_stage)
}

fn cells() -> impl Iterator<Item = (Kind, Fault, Stage)> {
    Kind::all().flat_map(|kind| {
        let stages = move |fault| Stage::ALL.into_iter().map(move |stage| (kind, fault, stage));
        Fault::ALL.into_iter().flat_map(stages)
    })
}

pub fn nothing_came_where_nothing_can(table: &Table) {
    for (kind, fault, stage) in cells() {
        if let Some(why) = unreachable(kind, stage) {
            let count = table.count(kind, fault, stage);
            assert_eq!(count, 0, "{kind} to a {:?}, {fault:?}, {stage:?}: {why}", kind.to);
        }
    }
}

/// Returns how many cells something can come to, and how much came to that to which least did.
pub fn everything_else_came(table: &Table, least: u64) -> (usize, u64) {
    let reachable = cells()
        .filter(|&(kind, fault, stage)| fault != Fault::None && unreachable(kind, stage).is_none());
    let counts: Vec<(u64, String)> = reachable
        .map(|(kind, fault, stage)| {
            let count = table.count(kind, fault, stage);
            (count, format!("{kind} to a {:?}, {fault:?}, {stage:?}: {count}", kind.to))
        })
        .collect();
    let few: Vec<&str> =
        counts.iter().filter(|(count, _)| *count < least).map(|(_, cell)| &cell[..]).collect();
    assert!(few.is_empty(), "{} cells with fewer than {least}:\n{}", few.len(), few.join("\n"));
    (counts.len(), counts.iter().map(|(count, _)| *count).min().unwrap_or(0))
}
