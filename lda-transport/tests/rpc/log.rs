//! What requests came to at all nodes, and whether that was promised.

use std::collections::BTreeSet;

use lda_transport::NodeId;
use lda_transport::rpc::{FailureReason, Outcome, RequestKind};

/// Numbers of requests stand in their bodies, so that what is done can be told from what was asked.
#[derive(Debug, Default)]
pub struct Log {
    entries: Vec<Entry>,
    /// Times that something was done, by all nodes.
    executions: u64,
    /// Done, rejected, unknown for a new incarnation, unknown for something else.
    pub ends: [u64; 4],
    /// Rejected because too many were being done.
    pub busy: u64,
    /// Done, and what came of it is too long to be told.
    pub untold: u64,
    /// Requests of one peer that were done at once, at most.
    pub most_doing: usize,
    /// Whether programs go on to ask.
    pub asking: bool,
    /// Whether they go on with what they do together, how often that went well at all nodes, and at which of them
    /// since all was healed.
    pub gathering: bool,
    pub gathered: u64,
    pub well: BTreeSet<NodeId>,
    /// Group and number of the last operation that any node has begun.
    pub last_begun: (u64, u64),
    /// Requests from here on have to end well.
    pub healed: Option<u64>,
    /// Nodes that run with a configuration of their own.
    pub misfits: BTreeSet<NodeId>,
    /// Whether nobody may be refused.
    pub peaceful: bool,
    /// What was not as promised, the first few.
    pub wrong: Vec<String>,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    kind: RequestKind,
    times: u32,
    /// Of the last time: which, and by which incarnation.
    execution: u64,
    incarnation: u64,
    end: End,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    None,
    Done,
    NotDone,
    Unknown,
}

/// A request in four is not done.
pub fn is_rejected(serial: u64) -> bool {
    serial % 4 == 3
}

/// What comes of one in 16 is too long to be told.
pub fn is_untold(serial: u64) -> bool {
    serial % 16 == 5
}

pub fn serial_of(body: &[u8]) -> u64 {
    u64::from_le_bytes(body[..8].try_into().unwrap())
}

impl Log {
    /// Of programs that ask.
    pub fn new(peaceful: bool) -> Self {
        Self { asking: true, gathering: true, peaceful, ..Self::default() }
    }

    pub fn begins(&mut self, operation: (u64, u64)) {
        self.last_begun = self.last_begun.max(operation);
    }

    /// Something that was done together has ended at a node; whether well.
    pub fn gathered(&mut self, node: NodeId, well: bool) {
        self.gathered += u64::from(well);
        if well && !self.asking {
            self.well.insert(node);
        }
    }

    pub fn blame(&mut self, what: String) {
        if self.wrong.len() < 10 {
            self.wrong.push(what);
        }
    }

    /// The next request's number.
    pub fn next(&self) -> u64 {
        self.entries.len() as u64
    }

    pub fn made(&mut self, kind: RequestKind) {
        let (times, execution, incarnation, end) = (0, 0, 0, End::None);
        self.entries.push(Entry { kind, times, execution, incarnation, end });
    }

    /// Something is done; which time of all it is.
    pub fn did(&mut self, serial: u64, incarnation: u64) -> u64 {
        self.executions += 1;
        let execution = self.executions;
        let Some(entry) = self.entries.get_mut(serial as usize) else {
            self.blame(format!("request {serial} is done, which nobody made"));
            return execution;
        };
        let before = *entry;
        entry.times += 1;
        (entry.execution, entry.incarnation) = (execution, incarnation);
        if before.kind == RequestKind::Pull {
            return execution;
        }
        if before.times > 0 {
            let by = before.incarnation;
            self.blame(format!("{serial}, {before:?}, was done twice: by {by} and {incarnation}"));
        } else if before.end == End::NotDone {
            self.blame(format!("{serial}, {before:?}, is done after it was said not to be"));
        }
        execution
    }

    pub fn ended(&mut self, serial: u64, request: &[u8], outcome: &Outcome) {
        let entry = &mut self.entries[serial as usize];
        let before = *entry;
        let pull = before.kind == RequestKind::Pull;
        let (place, end, fault) = match outcome {
            Outcome::Done(body) => {
                // A pull that is done again may be answered by the time before.
                let same = body.len() >= 8
                    && &body[8..] == request
                    && (pull || serial_of(body) == before.execution);
                let fault = (before.times == 0 || is_rejected(serial))
                    .then_some("was not done")
                    .or((!same).then_some("has the reply to another request, or time"));
                (0, End::Done, fault)
            }
            Outcome::Rejected(body) => {
                let busy = &body[..] == b"too many requests are being done";
                self.busy += u64::from(busy);
                let own = is_rejected(serial) && body.len() >= 2 && &body[2..] == request;
                let fault = (!pull && before.times > 0)
                    .then_some("was done, and rejected")
                    .or((!own && !busy).then_some("has the rejection of another request"));
                (1, End::NotDone, fault)
            }
            Outcome::Unknown { reason: FailureReason::ReplyTooLong, .. } => {
                let told = !is_untold(serial) || before.times == 0;
                (3, End::Unknown, told.then_some("was not done, or has a short reply"))
            }
            Outcome::Unknown { reason, sent } => {
                let place = if *reason == FailureReason::NewIncarnation { 2 } else { 3 };
                let fault =
                    (!pull && !sent && before.times > 0).then_some("was done, and not sent");
                let well = self.healed.is_some_and(|healed| serial >= healed);
                let fault = fault.or(well.then_some("was asked when all was healed"));
                (place, if *sent || pull { End::Unknown } else { End::NotDone }, fault)
            }
        };
        entry.end = end;
        self.untold += u64::from(matches!(
            outcome,
            Outcome::Unknown { reason: FailureReason::ReplyTooLong, .. }
        ));
        self.ends[place] += 1;
        if before.end != End::None {
            self.blame(format!("{serial}, {before:?}, ended twice: {outcome:?}"));
        }
        if let Some(fault) = fault {
            self.blame(format!("{serial}, {before:?}, ended as {outcome:?}, but {fault}"));
        }
    }
}
