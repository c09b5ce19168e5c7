//! Operations by MPI's own means: begun in order, tested in turn, ended once.
//!
//! Of each operation the ranks first gather what they say of it, which is [as long](Row) for all; where they
//! [agree], its content follows. The two go through communicators of their own, on each of which all ranks begin
//! the same in the same order: rows as programs begin operations, contents in the order of their rows. So
//! several operations may run at once, and whatever the ranks say, MPI is not asked for what does not match.
//!
//! MPI takes nothing back that it was asked for. So a rank that ends its part, because it closes or an operation
//! has failed, tells the others how many it has begun ([`Small::Halt`]), and all do the same; when everybody
//! has, those that have begun fewer add rows that say so, until all have begun as many. Then nothing is left
//! behind.

use std::collections::VecDeque;
use std::slice::IterMut;
use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;

use ::mpi::request::{LocalScope, Request, scope};
use ::mpi::topology::SimpleCommunicator;
use ::mpi::traits::CommunicatorCollectives;
use crossbeam_channel::Sender;

use super::agree::{ROW, Row, Work, agree};
use super::content::{Content, Writable};
use super::wire::{HaltReason, Small};
use super::{Item, Shared};
use crate::buffer_pool::BufferPool;
use crate::frame::Frame;
use crate::rpc::{Collective, CollectiveError, OperationId};
use crate::transport::{Arrival, NodeId};

/// Operations that MPI is asked for at once.
const AT_ONCE: usize = 16;

/// An operation that the program has begun.
#[derive(Debug)]
pub(super) struct Begun {
    pub operation: OperationId,
    pub collective: Collective,
    pub longest: u64,
}

/// What outlives what MPI is asked for at once.
#[derive(Debug)]
pub(super) struct Operations {
    waiting: VecDeque<Begun>,
    /// Rows that this rank has given.
    rows: u64,
    /// How many rows each rank gives by itself, once it has said so.
    halts: Vec<Option<(u64, HaltReason)>>,
    /// Those that were given up and have not been seen to.
    abandoned: Vec<OperationId>,
    this: usize,
    shared: Arc<Shared>,
    inbox: Sender<Item>,
}

impl Operations {
    pub fn new(this: usize, shared: Arc<Shared>, inbox: Sender<Item>) -> Self {
        let halts = vec![None; shared.links.len()];
        let (waiting, abandoned) = Default::default();
        Self { waiting, rows: 0, halts, abandoned, this, shared, inbox }
    }

    pub fn begin(&mut self, begun: Begun) {
        self.waiting.push_back(begun);
    }

    pub fn abandon(&mut self, operation: OperationId) {
        self.abandoned.push(operation);
    }

    pub fn halted(&mut self, rank: usize, rows: u64, why: HaltReason) {
        self.halts[rank] = Some((rows, why));
    }

    /// Ends this rank's part; what the others are to be told, the first time.
    pub fn halt(&mut self, why: HaltReason) -> Option<Small> {
        if self.halts[self.this].is_some() {
            return None;
        }
        self.shared.halted.store(true, SeqCst);
        self.halts[self.this] = Some((self.rows, why));
        Some(Small::Halt { begun: self.rows, why })
    }

    /// Rows that all ranks give, when all have said how many they do.
    fn all_rows(&self) -> Option<u64> {
        self.halts.iter().map(|halt| halt.map(|halt| halt.0)).try_fold(0, |a, b| Some(a.max(b?)))
    }

    /// Whether all ranks have ended their parts and given the same rows.
    pub fn have_ended(&self) -> bool {
        self.waiting.is_empty() && self.all_rows() == Some(self.rows)
    }

    /// How the operation of this row ends before it has begun everywhere, if it cannot.
    fn lost(&self, row: u64) -> Option<CollectiveError> {
        let halt = |(rank, halt): (usize, &Option<(u64, HaltReason)>)| {
            let (_, why) = halt.filter(|halt| halt.0 <= row)?;
            let (peer, words) = (NodeId(rank as u32), why.describe().to_owned());
            Some(CollectiveError::Rejected { peer, words })
        };
        self.halts.iter().enumerate().find_map(halt)
    }

    fn report(&self, operation: OperationId, result: Result<Vec<Frame>, CollectiveError>) {
        // A program that has closed does not want to know.
        let _ = self.inbox.send(Ok(Arrival::Together { operation, result }));
    }
}

/// Two ways through MPI that nothing else goes.
pub(super) struct Ways {
    pub rows: SimpleCommunicator,
    pub contents: SimpleCommunicator,
}

/// Room for one operation.
#[derive(Debug, Default)]
struct InboxSender {
    row: [u64; ROW],
    rows: Vec<u64>,
    room: Writable,
}

struct Running<'a, 's> {
    row: u64,
    /// None of a row that only fills up.
    begun: Option<Begun>,
    /// Whether the program has heard of its end.
    told: bool,
    stage: Stage<'a, 's>,
}

enum Stage<'a, 's> {
    Row(Request<'a, [u64], &'s LocalScope<'a>>, &'a mut Writable),
    Agreed(Work, &'a mut Writable),
    Content(Content<'a, 's>),
    Ended,
}

/// What MPI is asked for within a scope, after which its room is free again.
pub(super) struct Round<'a, 's> {
    scope: &'s LocalScope<'a>,
    slots: IterMut<'a, InboxSender>,
    running: VecDeque<Running<'a, 's>>,
    used: bool,
}

/// Runs `passes` until it says that it has ended, with a round of operations after the other.
pub(super) fn rounds(rooms: &BufferPool, mut passes: impl FnMut(&mut Round<'_, '_>) -> bool) {
    loop {
        let mut slots: Vec<InboxSender> = (0..AT_ONCE).map(|_| InboxSender::default()).collect();
        let ended = scope(|scope| {
            let running = VecDeque::new();
            let mut round = Round { scope, slots: slots.iter_mut(), running, used: false };
            loop {
                let ended = passes(&mut round);
                // A round that has begun nothing need not end.
                if round.running.is_empty() && (ended || round.used) {
                    return ended;
                }
            }
        });
        slots.into_iter().for_each(|slot| slot.room.end(rooms));
        if ended {
            return;
        }
    }
}

impl Round<'_, '_> {
    /// Whether all ranks are there in one, so that it goes on whatever their programs do.
    pub fn moves_content(&self) -> bool {
        self.running.iter().any(|running| matches!(running.stage, Stage::Content(_)))
    }

    /// Takes all operations as far as they go now; whether any did. Where a halt is due it is given.
    pub fn advance(
        &mut self,
        operations: &mut Operations,
        ways: &Ways,
    ) -> (bool, Option<HaltReason>) {
        let mut halt = self.give_up(operations);
        let mut moved = self.start(operations, ways);
        let mut in_order = true;
        let shared = Arc::clone(&operations.shared);
        let rooms = &shared.rooms;
        for running in &mut self.running {
            if !running.told
                && matches!(running.stage, Stage::Row(..))
                && let Some(error) = operations.lost(running.row)
            {
                running.tell(operations, Err(error));
            }
            let before = std::mem::discriminant(&running.stage);
            let stage = std::mem::replace(&mut running.stage, Stage::Ended);
            running.stage = match stage {
                Stage::Row(asked, room) => match asked.test_with_data() {
                    Err(asked) => Stage::Row(asked, room),
                    Ok((_, rows)) => {
                        let why = |rank: usize| {
                            operations.halts[rank].map_or(HaltReason::Closed, |halt| halt.1)
                        };
                        match agree(rows, operations.this, why) {
                            Ok(work) => Stage::Agreed(work, room),
                            Err(error) => {
                                // Before the program hears of it and begins others.
                                operations.shared.halted.store(true, SeqCst);
                                halt = halt.or(Some(HaltReason::Mismatch));
                                running.tell(operations, Err(error));
                                Stage::Ended
                            }
                        }
                    }
                },
                other => other,
            };
            in_order &= !matches!(running.stage, Stage::Row(..));
            let stage = std::mem::replace(&mut running.stage, Stage::Ended);
            running.stage = match (stage, &mut running.begun) {
                (Stage::Agreed(work, room), Some(begun)) if in_order => {
                    let collective = std::mem::replace(&mut begun.collective, Collective::Barrier);
                    let ranks = &ways.contents;
                    Stage::Content(Content::begin(work, collective, room, self.scope, ranks, rooms))
                }
                (stage, _) => stage,
            };
            let stage = std::mem::replace(&mut running.stage, Stage::Ended);
            running.stage = match stage {
                Stage::Content(content) => match content.test(rooms) {
                    Ok(frames) => {
                        running.tell(operations, Ok(frames));
                        Stage::Ended
                    }
                    Err(content) => Stage::Content(content),
                },
                other => other,
            };
            moved |= before != std::mem::discriminant(&running.stage);
        }
        self.running.retain(|running| !matches!(running.stage, Stage::Ended));
        if let Some((rows, _)) = operations.halts[operations.this] {
            while let Some(begun) = operations.waiting.pop_front() {
                let error = operations.lost(rows).expect("this rank's own halt is among them");
                operations.report(begun.operation, Err(error));
            }
        }
        (moved, halt)
    }

    /// Lets go of what the program has given up. It may have ended meanwhile; that ends this rank's part all the same,
    /// as its program knows no better.
    fn give_up(&mut self, operations: &mut Operations) -> Option<HaltReason> {
        let abandoned = std::mem::take(&mut operations.abandoned);
        for &operation in &abandoned {
            let is_it = |begun: &Begun| begun.operation == operation;
            operations.waiting.retain(|begun| !is_it(begun));
            for running in &mut self.running {
                running.told |= running.begun.as_ref().is_some_and(is_it);
            }
        }
        (!abandoned.is_empty()).then_some(HaltReason::Deadline)
    }

    /// Gives rows: those of operations that wait, and in the end those that others have given.
    fn start(&mut self, operations: &mut Operations, ways: &Ways) -> bool {
        let mut started = false;
        while let Some(begun) = next_row(operations) {
            let Some(slot) = self.slots.next() else {
                if let Some(begun) = begun {
                    operations.waiting.push_front(begun);
                }
                break;
            };
            let row = Row::new(
                begun.as_ref().map(|begun| (begun.operation, &begun.collective, begun.longest)),
            );
            slot.row = row.numbers();
            slot.rows.resize(ROW * operations.halts.len(), 0);
            let (own, all) = (&slot.row[..], &mut slot.rows[..]);
            let asked = ways.rows.immediate_all_gather_into(self.scope, own, all);
            let (row, told) = (operations.rows, begun.is_none());
            let stage = Stage::Row(asked, &mut slot.room);
            self.running.push_back(Running { row, begun, told, stage });
            operations.rows += 1;
            (started, self.used) = (true, true);
        }
        started
    }
}

/// What this rank says next, if anything; none of an operation to fill up.
fn next_row(operations: &mut Operations) -> Option<Option<Begun>> {
    if operations.halts[operations.this].is_none() {
        return operations.waiting.pop_front().map(Some);
    }
    operations.all_rows().is_some_and(|all| operations.rows < all).then_some(None)
}

impl Running<'_, '_> {
    fn tell(&mut self, operations: &Operations, result: Result<Vec<Frame>, CollectiveError>) {
        if let Some(begun) = self.begun.as_ref().filter(|_| !self.told) {
            operations.report(begun.operation, result);
        }
        self.told = true;
    }
}
