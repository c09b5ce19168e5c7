//! Counts the faults that messages of a run met, by the phase of their receiver.
//!
//! One layer below, [`lda_transport::sim::Coverage`] counts requests and replies of endpoints; here
//! their contents are known.

use std::fmt;

use lda_dist::cluster::{Message, Phase};
use lda_transport::sim::Fate;

/// Role of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Who {
    Master,
    Server,
    Worker,
}

impl Who {
    pub const ALL: [Self; 3] = [Self::Master, Self::Server, Self::Worker];
}

/// Part of an exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Part {
    /// The request itself.
    Asked,
    /// The reply, which accepts the request or rejects it as untimely.
    Answered,
}

impl Part {
    pub const ALL: [Self; 2] = [Self::Asked, Self::Answered];
}

/// Fault that a message met: [fates](Fate) that the receiver cannot distinguish are one fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Fault {
    /// No fault.
    None,
    /// It was lost.
    Lost,
    /// It was duplicated: this is the second copy.
    Doubled,
    /// It arrived after a later message, or over another link than the one on which it was sent.
    Reordered,
    /// The link between sender and receiver was cut, whether or not they noticed.
    Parted,
    /// Its sender crashed before it arrived.
    SenderCrashed,
    /// Its receiver crashed before it arrived.
    ReceiverCrashed,
}

impl Fault {
    pub const ALL: [Self; 7] = [
        Self::None,
        Self::Lost,
        Self::Doubled,
        Self::Reordered,
        Self::Parted,
        Self::SenderCrashed,
        Self::ReceiverCrashed,
    ];

    /// `None` for a message that was not sent, since it is sent again.
    pub fn of(fate: Fate) -> Option<Self> {
        Some(match fate {
            Fate::Full => return None,
            Fate::Arrived => Self::None,
            Fate::Lost => Self::Lost,
            Fate::Doubled => Self::Doubled,
            Fate::Late | Fate::Overtaken => Self::Reordered,
            Fate::Silenced | Fate::Cut => Self::Parted,
            Fate::SenderCrashed => Self::SenderCrashed,
            Fate::ReceiverCrashed => Self::ReceiverCrashed,
        })
    }
}

/// Message, part of the exchange, and receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Kind {
    pub to: Who,
    pub message: Message,
    pub part: Part,
}

impl Kind {
    /// All combinations, possible or not.
    pub fn all() -> impl Iterator<Item = Self> {
        Who::ALL.into_iter().flat_map(|to| {
            Message::ALL.into_iter().flat_map(move |message| {
                Part::ALL.into_iter().map(move |part| Self { to, message, part })
            })
        })
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let part = match self.part {
            Part::Asked => "",
            Part::Answered => " answered",
        };
        f.pad(&format!("{:?}{part}", self.message))
    }
}

const FAULTS: usize = Fault::ALL.len();
const PHASES: usize = Phase::ALL.len();
const CELLS: usize = Who::ALL.len() * Message::ALL.len() * Part::ALL.len() * FAULTS * PHASES;

/// Number of messages by kind, fault and phase of their receiver. The receiver is the incarnation
/// for which the message was meant, at the time when it arrived, would have arrived, or crashed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Table(Vec<u64>);

impl Default for Table {
    fn default() -> Self {
        Self(vec![0; CELLS])
    }
}

impl Table {
    fn place(kind: Kind, fault: Fault, phase: Phase) -> usize {
        let Kind { to, message, part } = kind;
        let kind = (to as usize * Message::ALL.len() + message as usize) * Part::ALL.len();
        ((kind + part as usize) * FAULTS + fault as usize) * PHASES + phase as usize
    }

    pub fn add(&mut self, kind: Kind, fault: Fault, phase: Phase) {
        self.0[Self::place(kind, fault, phase)] += 1;
    }

    pub fn count(&self, kind: Kind, fault: Fault, phase: Phase) -> u64 {
        self.0[Self::place(kind, fault, phase)]
    }

    /// Adds the counts of another one.
    pub fn merge(&mut self, other: &Self) {
        self.0.iter_mut().zip(&other.0).for_each(|(sum, more)| *sum += more);
    }

    /// Number of messages of any kind that met a fault in a phase of a role.
    pub fn at(&self, to: Who, fault: Fault, phase: Phase) -> u64 {
        let kinds = Kind::all().filter(|kind| kind.to == to);
        kinds.map(|kind| self.count(kind, fault, phase)).sum()
    }

    /// Number of messages of a kind that met a fault in any phase.
    pub fn met(&self, kind: Kind, fault: Fault) -> u64 {
        Phase::ALL.into_iter().map(|phase| self.count(kind, fault, phase)).sum()
    }
}

impl fmt::Display for Table {
    /// One table per role, with a row per kind of message and phase and a column per fault. Rows
    /// without messages are left out.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for to in Who::ALL {
            write!(f, "{:<18}{:<10}", format!("to a {to:?}").to_lowercase(), "stage")?;
            for fault in Fault::ALL {
                write!(f, "{:>16}", format!("{fault:?}"))?;
            }
            writeln!(f)?;
            for kind in Kind::all().filter(|kind| kind.to == to) {
                for phase in Phase::ALL {
                    let counts = Fault::ALL.map(|fault| self.count(kind, fault, phase));
                    if counts != [0; FAULTS] {
                        write!(f, "{kind:<18}{:<10}", format!("{phase:?}"))?;
                        counts.iter().try_for_each(|count| write!(f, "{count:>16}"))?;
                        writeln!(f)?;
                    }
                }
            }
        }
        Ok(())
    }
}

#[test]
fn every_cell_has_its_own_index() {
    let mut table = Table::default();
    for kind in Kind::all() {
        for fault in Fault::ALL {
            for phase in Phase::ALL {
                table.add(kind, fault, phase);
            }
        }
    }
    assert!(table.0.iter().all(|&count| count == 1));
    let rows = Who::ALL.len() * (1 + Message::ALL.len() * Part::ALL.len() * PHASES);
    assert_eq!(table.to_string().lines().count(), rows);
    let twice = table.clone();
    table.merge(&twice);
    assert_eq!(table.at(Who::Worker, Fault::Lost, Phase::Between), 2 * 40);
    assert_eq!(table.met(Kind::all().next().unwrap(), Fault::Parted), 2 * PHASES as u64);
}
