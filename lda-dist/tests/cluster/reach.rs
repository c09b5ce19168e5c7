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
    let Kind { to, message, part } = kind;
    match (to, message, part, stage) {
        (Who::Worker, Done | Again | Join | Sizes | Pull | Push | Gained, _, Stage::Waiting) => {
            Some("who has shards keeps them until it crashes")
        }
        (Who::Master, Rows, Part::Answered, Stage::Keeping) => Some(
            "who has gathered goes back to the last epoch but one, and the last ends in gathering",
        ),
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
    // What is rare is looked for more often.
    all.flat_map(|prey| {
        use Message::*;
        let Prey { kind: Kind { message, .. }, stage } = prey;
        let is_rare_message = matches!(message, Again | Stop | Keep | Rows | Finish);
        let is_rare_stage = matches!(stage, Stage::Keeping | Stage::Gathering | Stage::Finishing);
        let times = 1 + usize::from(is_rare_message) + 2 * usize::from(is_rare_stage);
        std::iter::repeat_n(prey, times)
    })
    .collect()
}

/// Whether such messages are there so seldom that ten thousand histories have not seen each fault befall ten of them: a
/// run spends little time at the stage, or they are of an attempt before and have to be long underway.
fn is_seldom(kind: Kind, stage: Stage) -> bool {
    use Message::*;
    use Stage::*;
    let Kind { to, message, part } = kind;
    matches!(
        (to, message, part, stage),
        (Who::Master, Words, Part::Asked, Gathering | Finishing)
            | (Who::Master, Here, Part::Asked, Keeping | Gathering | Finishing)
            | (Who::Master, Done, Part::Asked, Keeping | Gathering | Finishing)
            | (Who::Master, Again, Part::Asked, Keeping | Gathering | Finishing)
            | (Who::Master, Stop, Part::Asked, Gathering | Finishing)
            | (Who::Master, Start, Part::Answered, Gathering | Finishing)
            | (Who::Master, Begin, Part::Answered, Keeping | Gathering | Finishing)
            | (Who::Master, End, Part::Answered, Keeping | Gathering | Finishing | Finished)
            | (Who::Master, Keep, Part::Answered, Starting | Sampling | Ending | Gathering)
            | (
                Who::Master,
                Rows,
                Part::Answered,
                Waiting | Starting | Joining | Ending | Beginning | Finishing | Finished
            )
            | (
                Who::Master,
                Finish,
                Part::Answered,
                Starting | Joining | Sampling | Ending | Beginning | Keeping | Gathering
            )
            | (Who::Server, Stop, Part::Answered, Waiting)
            | (Who::Server, Start, Part::Asked, Finished)
            | (Who::Server, Begin, Part::Asked, Waiting | Finished)
            | (Who::Server, End, Part::Asked, Waiting | Finished)
            | (Who::Server, Rows, Part::Asked, Waiting | Sampling | Finished)
            | (Who::Server, Finish, Part::Asked, Waiting | Sampling)
            | (Who::Server, Pull, Part::Asked, Finished)
            | (Who::Server, Push, Part::Asked, Waiting | Finished)
            | (Who::Server, Gained, Part::Asked, Waiting | Finished)
            | (Who::Worker, Again, Part::Answered, Finished)
            | (Who::Worker, Begin, Part::Asked, Finished)
            | (Who::Worker, Keep, Part::Asked, Waiting)
            | (Who::Worker, Finish, Part::Asked, Joining | Sampling)
            | (Who::Worker, Sizes, Part::Answered, Finished)
            | (Who::Worker, Pull, Part::Answered, Finished)
            | (Who::Worker, Push, Part::Answered, Finished)
            | (Who::Worker, Gained, Part::Answered, Finished)
    )
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

/// All but what [is there seldom](is_seldom). Returns how many cells something can come to, and to how many of them
/// fewer did.
pub fn everything_else_came(table: &Table, least: u64) -> (usize, usize) {
    let reachable = || {
        cells().filter(|&(kind, fault, stage)| {
            fault != Fault::None && unreachable(kind, stage).is_none()
        })
    };
    let few: Vec<(Kind, Fault, Stage)> = reachable()
        .filter(|&(kind, fault, stage)| table.count(kind, fault, stage) < least)
        .collect();
    let told = few.iter().filter(|(kind, _, stage)| !is_seldom(*kind, *stage));
    let told: Vec<String> = told
        .map(|&(kind, fault, stage)| {
            let count = table.count(kind, fault, stage);
            format!("{kind} to a {:?}, {fault:?}, {stage:?}: {count}", kind.to)
        })
        .collect();
    assert!(told.is_empty(), "{} cells with fewer than {least}:\n{}", told.len(), told.join("\n"));
    (reachable().count(), few.len())
}
