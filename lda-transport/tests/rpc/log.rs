//! Log of all requests and outcomes, which checks the promises.

use std::collections::BTreeSet;

use lda_transport::NodeId;
use lda_transport::rpc::{FailureReason, Outcome, RequestKind};

/// Log of a history. Bodies contain the number of their request, so executions are matched with
/// requests.
#[derive(Debug, Default)]
pub struct Log {
    entries: Vec<Entry>,
    /// Number of executions at all nodes.
    executions: u64,
    /// Number of outcomes: done, rejected, unknown by a new incarnation, unknown otherwise.
    pub ends: [u64; 4],
    /// Number of rejections by overload.
    pub busy: u64,
    /// Number of executed requests whose reply was too long.
    pub untold: u64,
    /// Maximum number of requests of one peer that ran at once.
    pub most_doing: usize,
    /// Whether programs make further requests.
    pub asking: bool,
    /// Whether programs begin further collective operations.
    pub gathering: bool,
    /// Number of successful operations at all nodes.
    pub gathered: u64,
    /// Nodes with a successful operation since the faults ended.
    pub well: BTreeSet<NodeId>,
    /// Group and number of the last operation that any node has begun.
    pub last_begun: (u64, u64),
    /// Number of the first request that must succeed, since the faults have ended.
    pub healed: Option<u64>,
    /// Nodes with a configuration that differs.
    pub misfits: BTreeSet<NodeId>,
    /// Whether no node may be refused.
    pub peaceful: bool,
    /// The first violations.
    pub wrong: Vec<String>,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    kind: RequestKind,
    times: u32,
    /// Number of the last execution, and the incarnation that executed it.
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

/// Whether the receiver rejects the request: one in four.
pub fn is_rejected(serial: u64) -> bool {
    serial % 4 == 3
}

/// Whether the reply to the request is too long to be sent: one in 16.
pub fn is_untold(serial: u64) -> bool {
    serial % 16 == 5
}

pub fn serial_of(body: &[u8]) -> u64 {
    u64::from_le_bytes(body[..8].try_into().unwrap())
}

impl Log {
    /// Creates the log of a history.
    pub fn new(peaceful: bool) -> Self {
        Self { asking: true, gathering: true, peaceful, ..Self::default() }
    }

    pub fn begins(&mut self, operation: (u64, u64)) {
        self.last_begun = self.last_begun.max(operation);
    }

    /// Records the end of an operation at a node, and whether it succeeded.
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

    /// Returns the number of the next request.
    pub fn next(&self) -> u64 {
        self.entries.len() as u64
    }

    pub fn made(&mut self, kind: RequestKind) {
        let (times, execution, incarnation, end) = (0, 0, 0, End::None);
        self.entries.push(Entry { kind, times, execution, incarnation, end });
    }

    /// Records an execution. Returns its number.
    pub fn did(&mut self, serial: u64, incarnation: u64) -> u64 {
        self.executions += 1;
        let execution = self.executions;
        let Some(entry) = self.entries.get_mut(serial as usize) else {
            self.blame(format!("request {serial} is executed, which was never made"));
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
            self.blame(format!(
                "{serial}, {before:?}, was executed twice: by {by} and {incarnation}"
            ));
        } else if before.end == End::NotDone {
            self.blame(format!(
                "{serial}, {before:?}, is executed after it was reported as not executed"
            ));
        }
        execution
    }

    pub fn ended(&mut self, serial: u64, request: &[u8], outcome: &Outcome) {
        let entry = &mut self.entries[serial as usize];
        let before = *entry;
        let pull = before.kind == RequestKind::Pull;
        let (place, end, fault) = match outcome {
            Outcome::Done(body) => {
                // A pull that is executed again may get the reply of an earlier execution.
                let same = body.len() >= 8
                    && &body[8..] == request
                    && (pull || serial_of(body) == before.execution);
                let fault = (before.times == 0 || is_rejected(serial))
                    .then_some("was not executed")
                    .or((!same).then_some("has the reply to another request, or execution"));
                (0, End::Done, fault)
            }
            Outcome::Rejected(body) => {
                let busy = &body[..] == b"too many requests are being done";
                self.busy += u64::from(busy);
                let own = is_rejected(serial) && body.len() >= 2 && &body[2..] == request;
                let fault = (!pull && before.times > 0)
                    .then_some("was executed, and rejected")
                    .or((!own && !busy).then_some("has the rejection of another request"));
                (1, End::NotDone, fault)
            }
            Outcome::Unknown { reason: FailureReason::ReplyTooLong, .. } => {
                let wrong = !is_untold(serial) || before.times == 0;
                (3, End::Unknown, wrong.then_some("was not executed, or has a short reply"))
            }
            Outcome::Unknown { reason, sent } => {
                let place = if *reason == FailureReason::NewIncarnation { 2 } else { 3 };
                let fault =
                    (!pull && !sent && before.times > 0).then_some("was executed, and not sent");
                let well = self.healed.is_some_and(|healed| serial >= healed);
                let fault = fault.or(well.then_some("was made after the faults had ended"));
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
