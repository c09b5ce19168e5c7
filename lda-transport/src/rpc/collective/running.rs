//! The operations of one node: which run, what has come too early, what is underway.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use super::operation::{Operation, Out};
use super::part::{self, Part, Shape};
use super::{BeginError, Collective, CollectiveError, Group, OperationId};
use crate::frame::Frame;
use crate::rpc::message_buf::MessageBuf;
use crate::rpc::{FailureReason, Outcome, ReplyHandle, RequestId, Window};
use crate::time::Time;
use crate::transport::NodeId;

/// Pieces of an operation that are underway to a peer.
const UNDERWAY: usize = 8;
/// Letters of the reason that members are told.
const LONGEST_WORDS: usize = 500;

/// What the endpoint is to do.
#[derive(Debug)]
pub(in crate::rpc) enum Deed {
    Request {
        operation: OperationId,
        to: NodeId,
        message: MessageBuf,
        deadline: Time,
    },
    Answer {
        reply_to: ReplyHandle,
        refusal: Option<String>,
    },
    /// To tell a member that a group is broken.
    Notify {
        to: NodeId,
        message: MessageBuf,
    },
    Cancel(RequestId),
    Report {
        operation: OperationId,
        result: Result<Vec<Frame>, CollectiveError>,
    },
}

#[derive(Debug, Default)]
pub(in crate::rpc) struct Collectives {
    groups: BTreeMap<u64, SplitMix64>,
    running: BTreeMap<OperationId, Running>,
    timers: BTreeSet<(Time, OperationId)>,
    /// Of which operation a request is, if of one; it may have ended meanwhile.
    requests: BTreeMap<RequestId, Option<OperationId>>,
    /// Pieces of operations that have not begun here.
    early: BTreeMap<OperationId, Vec<Piece>>,
    /// Of each peer what of these was answered.
    held: BTreeMap<NodeId, Held>,
    deeds: VecDeque<Deed>,
}

/// Operations of a group.
#[derive(Debug, Default)]
struct SplitMix64 {
    next: u64,
    /// Why the first that has failed has.
    failure: Option<String>,
}

#[derive(Debug)]
struct Piece {
    /// None once answered.
    reply_to: Option<ReplyHandle>,
    peer: NodeId,
    incarnation: u64,
    shape: Shape,
    part: Part,
}

#[derive(Debug, Default)]
struct Held {
    pieces: u32,
    bytes: u64,
}

#[derive(Debug)]
struct Running {
    operation: Operation,
    shape: Shape,
    members: Arc<[NodeId]>,
    /// This node's rank.
    own: usize,
    deadline: Time,
    /// By rank.
    peers: Vec<Peer>,
}

#[derive(Debug, Default)]
struct Peer {
    out: VecDeque<Part>,
    underway: usize,
    /// 0 while it is not known.
    incarnation: u64,
}

impl Running {
    fn rank_of(&self, node: NodeId) -> Option<usize> {
        self.members.iter().position(|&member| member == node)
    }

    fn queue(&mut self, out: Vec<Out>) {
        out.into_iter().for_each(|out| self.peers[out.to].out.push_back(out.part));
    }

    fn has_sent(&self) -> bool {
        self.peers.iter().all(|peer| peer.out.is_empty() && peer.underway == 0)
    }

    /// Those that have something to do yet before it ends here.
    fn missing(&self) -> Vec<NodeId> {
        let busy =
            |rank: &usize| self.peers[*rank].underway > 0 || !self.peers[*rank].out.is_empty();
        let mut missing: BTreeSet<usize> = (0..self.peers.len()).filter(busy).collect();
        missing.extend(self.operation.awaited());
        missing.into_iter().map(|rank| self.members[rank]).collect()
    }
}

impl Collectives {
    pub fn next_deed(&mut self) -> Option<Deed> {
        self.deeds.pop_front()
    }

    pub fn next_timer(&self) -> Time {
        self.timers.first().map_or(Time::NEVER, |timer| timer.0)
    }

    /// Begins an operation. Incarnations are those of the members as they are known now, or 0.
    pub fn begin(
        &mut self,
        group: &Group,
        collective: Collective,
        (piece, longest): (usize, u64),
        deadline: Time,
        incarnation: impl Fn(NodeId) -> u64,
    ) -> Result<OperationId, BeginError> {
        let shape = shape_of(group, &collective, piece, longest)?;
        let numbers = self.groups.entry(group.id).or_default();
        if let Some(reason) = &numbers.failure {
            return Err(BeginError::Broken { group: group.id, reason: reason.clone() });
        }
        let id = OperationId { group: group.id, number: numbers.next };
        numbers.next += 1;
        let (members, place) = (Arc::clone(&group.members), (group.rank, group.members.len()));
        let mut out = Vec::new();
        let root = shape.root as usize;
        let operation = Operation::new(collective, root, place, piece, longest, &mut out);
        let peer = |&member: &NodeId| Peer { incarnation: incarnation(member), ..Peer::default() };
        let peers = members.iter().map(peer).collect();
        let mut running = Running { operation, shape, members, own: group.rank, deadline, peers };
        running.queue(out);
        self.running.insert(id, running);
        self.timers.insert((deadline, id));
        for piece in self.early.remove(&id).unwrap_or_default() {
            self.release(&piece);
            self.take(id, piece);
        }
        self.go_on(id);
        Ok(id)
    }

    /// Takes a piece that a peer has sent.
    pub fn piece(&mut self, reply_to: ReplyHandle, body: &Frame, window: Window) {
        if let Some((id, words)) = part::read_notice(body) {
            self.answer(reply_to, None);
            let peer = reply_to.peer;
            return self.break_group(id, CollectiveError::Rejected { peer, words });
        }
        let Some((id, shape, part)) = part::decode(body) else {
            return self
                .answer(reply_to, Some("bytes that are no piece of an operation".to_owned()));
        };
        let ReplyHandle { peer, incarnation, .. } = reply_to;
        let mut piece = Piece { reply_to: Some(reply_to), peer, incarnation, shape, part };
        if self.running.contains_key(&id) {
            self.take(id, piece);
            return self.go_on(id);
        }
        match self.groups.get(&id.group) {
            Some(SplitMix64 { failure: Some(reason), .. }) => {
                self.answer(reply_to, Some(format!("group {} is broken: {reason}", id.group)));
            }
            Some(SplitMix64 { next, .. }) if id.number < *next => {
                let OperationId { group, number } = id;
                self.answer(
                    reply_to,
                    Some(format!("operation {number} of group {group} has ended")),
                );
            }
            _ => {
                // An answer, as far as there is room: what waits for one keeps other requests of the peer waiting.
                let held = self.held.entry(peer).or_default();
                let bytes = held.bytes + piece.part.payload.len() as u64;
                if held.pieces < window.requests && bytes <= window.bytes {
                    *held = Held { pieces: held.pieces + 1, bytes };
                    piece.reply_to = None;
                    self.answer(reply_to, None);
                }
                self.early.entry(id).or_default().push(piece);
            }
        }
    }

    /// A piece that came early is so no more.
    fn release(&mut self, piece: &Piece) {
        if piece.reply_to.is_none()
            && let Some(held) = self.held.get_mut(&piece.peer)
        {
            held.pieces -= 1;
            held.bytes -= piece.part.payload.len() as u64;
        }
    }

    /// Takes a piece of an operation, which may have failed by the one before.
    fn take(&mut self, id: OperationId, piece: Piece) {
        let Piece { reply_to, peer, incarnation, shape, part } = piece;
        let Some(running) = self.running.get_mut(&id) else {
            let words = format!("operation {} has failed", id.number);
            return reply_to
                .into_iter()
                .for_each(|reply_to| self.answer(reply_to, Some(words.clone())));
        };
        let mut out = Vec::new();
        let rank = running.rank_of(peer).ok_or("it is not in the group".to_owned());
        let same = |rank| {
            if shape == running.shape {
                return Ok(rank);
            }
            Err(format!(
                "operation {} of group {} is {shape} there and {} here: begin the same operations in the \
                 same order on all nodes",
                id.number, id.group, running.shape
            ))
        };
        let taken = rank.and_then(same).and_then(|rank| {
            // It may have come before the operation began, of one who is away now.
            let known = &mut running.peers[rank].incarnation;
            *known = if *known == 0 { incarnation } else { *known };
            running.operation.take(rank, part, &mut out)
        });
        match taken {
            Ok(()) => {
                running.queue(out);
                reply_to.into_iter().for_each(|reply_to| self.answer(reply_to, None));
            }
            Err(words) => {
                reply_to
                    .into_iter()
                    .for_each(|reply_to| self.answer(reply_to, Some(words.clone())));
                self.fail(id, CollectiveError::Mismatch { peer, words });
            }
        }
    }

    fn answer(&mut self, reply_to: ReplyHandle, refusal: Option<String>) {
        self.deeds.push_back(Deed::Answer { reply_to, refusal });
    }

    /// Notes which request a piece has become; a notice is of no operation.
    pub fn sent(&mut self, request: RequestId, operation: Option<OperationId>) {
        self.requests.insert(request, operation);
    }

    /// Takes the end of a request, where it is of a piece; else gives it back.
    pub fn ended(&mut self, request: RequestId, outcome: Outcome) -> Option<Outcome> {
        let Some(id) = self.requests.remove(&request) else { return Some(outcome) };
        let id = id?;
        let running = self.running.get_mut(&id)?;
        let peer = request.peer;
        let rank = running.rank_of(peer).expect("it was sent to a member");
        running.peers[rank].underway -= 1;
        match outcome {
            Outcome::Done(_) => self.go_on(id),
            Outcome::Rejected(words) => {
                let words = String::from_utf8_lossy(&words).into_owned();
                self.fail(id, CollectiveError::Rejected { peer, words });
            }
            Outcome::Unknown { reason: FailureReason::Deadline, .. } => {
                // Its own, which are the same: what else is missing is told too.
                running.peers[rank].underway += 1;
                let missing = running.missing();
                self.fail(id, CollectiveError::Deadline { missing });
            }
            Outcome::Unknown { reason, .. } => {
                self.fail(id, CollectiveError::Lost { peer, reason })
            }
        }
        None
    }

    /// Sends what may be sent, and ends what has all.
    fn go_on(&mut self, id: OperationId) {
        let Some(running) = self.running.get_mut(&id) else { return };
        let (deadline, shape) = (running.deadline, running.shape);
        for (peer, &to) in running.peers.iter_mut().zip(running.members.iter()) {
            while peer.underway < UNDERWAY
                && let Some(part) = peer.out.pop_front()
            {
                peer.underway += 1;
                let message = part::encode(id, &shape, &part);
                self.deeds.push_back(Deed::Request { operation: id, to, message, deadline });
            }
        }
        if running.operation.is_complete() && running.has_sent() {
            let running = self.remove(id).expect("it is running");
            let result = Ok(running.operation.into_result());
            self.deeds.push_back(Deed::Report { operation: id, result });
        }
    }

    fn remove(&mut self, id: OperationId) -> Option<Running> {
        let running = self.running.remove(&id)?;
        self.timers.remove(&(running.deadline, id));
        Some(running)
    }

    /// Ends an operation that has not ended, and tells the other members.
    pub fn fail(&mut self, id: OperationId, error: CollectiveError) {
        let Some(running) = self.running.get(&id) else { return };
        let told_by = match &error {
            CollectiveError::Rejected { peer, .. } => Some(*peer),
            _ => None,
        };
        let words: String = error.to_string().chars().take(LONGEST_WORDS).collect();
        let members = Arc::clone(&running.members);
        let own = running.own;
        for (rank, &to) in members.iter().enumerate() {
            if rank != own && Some(to) != told_by {
                let message = part::notice(id, &words);
                self.deeds.push_back(Deed::Notify { to, message });
            }
        }
        self.break_group(id, error);
    }

    /// Ends what runs of a group, and refuses what comes of it from now on.
    fn break_group(&mut self, id: OperationId, error: CollectiveError) {
        let reason = error.to_string();
        let numbers = self.groups.entry(id.group).or_default();
        let reason = numbers.failure.get_or_insert(reason).clone();
        let all = OperationId { number: 0, ..id }..=OperationId { number: u64::MAX, ..id };
        let running: Vec<OperationId> =
            self.running.range(all.clone()).map(|(id, _)| *id).collect();
        for id in running {
            self.remove(id);
            let requests = self.requests.iter().filter(|(_, operation)| **operation == Some(id));
            self.deeds.extend(requests.map(|(&request, _)| Deed::Cancel(request)));
            self.deeds.push_back(Deed::Report { operation: id, result: Err(error.clone()) });
        }
        let early: Vec<OperationId> = self.early.range(all).map(|(id, _)| *id).collect();
        for id in early {
            for piece in self.early.remove(&id).unwrap_or_default() {
                self.release(&piece);
                if let Some(reply_to) = piece.reply_to {
                    self.answer(reply_to, Some(format!("group {} is broken: {reason}", id.group)));
                }
            }
        }
    }

    /// Ends those whose deadline has come.
    pub fn due(&mut self, now: Time) {
        while let Some(&(_, id)) = self.timers.first().filter(|timer| timer.0 <= now) {
            let missing = self.running[&id].missing();
            self.fail(id, CollectiveError::Deadline { missing });
        }
    }

    /// Forgets a piece whose sender does not wait for it any more.
    pub fn forget(&mut self, reply_to: ReplyHandle) {
        let mut found = false;
        self.early.retain(|_, pieces| {
            let before = pieces.len();
            pieces.retain(|piece| piece.reply_to != Some(reply_to));
            found |= pieces.len() < before;
            !pieces.is_empty()
        });
        if found {
            self.answer(reply_to, None);
        }
    }

    /// Takes note of a peer's incarnation: what another has begun it does not know.
    pub fn met(&mut self, peer: NodeId, incarnation: u64) {
        for mut pieces in std::mem::take(&mut self.early) {
            let old = |piece: &mut Piece| piece.peer == peer && piece.incarnation != incarnation;
            pieces.1.extract_if(.., old).for_each(|piece| self.release(&piece));
            if !pieces.1.is_empty() {
                self.early.insert(pieces.0, pieces.1);
            }
        }
        let mut lost = Vec::new();
        for (&id, running) in &mut self.running {
            let Some(rank) = running.rank_of(peer) else { continue };
            let known = std::mem::replace(&mut running.peers[rank].incarnation, incarnation);
            if known != 0 && known != incarnation {
                lost.push(id);
            }
        }
        for id in lost {
            self.fail(id, CollectiveError::Lost { peer, reason: FailureReason::NewIncarnation });
        }
    }

    /// Ends those that have this member.
    pub fn lose(&mut self, peer: NodeId, reason: FailureReason) {
        let has = |running: &Running| running.rank_of(peer).is_some();
        let lost: Vec<OperationId> =
            self.running.iter().filter(|(_, running)| has(running)).map(|(id, _)| *id).collect();
        lost.into_iter().for_each(|id| self.fail(id, CollectiveError::Lost { peer, reason }));
    }

    /// Ends all.
    pub fn close(&mut self) {
        while let Some((&id, _)) = self.running.first_key_value() {
            self.fail(id, CollectiveError::Cancelled);
        }
    }
}

/// Checks what this member gives.
pub(crate) fn check(
    group: &Group,
    collective: &Collective,
    longest: u64,
) -> Result<(), BeginError> {
    shape_of(group, collective, 0, longest).map(drop)
}

/// What must be the same everywhere; checks what this member gives.
fn shape_of(
    group: &Group,
    collective: &Collective,
    piece: usize,
    longest: u64,
) -> Result<Shape, BeginError> {
    let (mut root, mut element, mut vector) = (0, 0, 0);
    let mut length = 0;
    let kind = match collective {
        Collective::Barrier => 1,
        Collective::Broadcast { root: of, content } => {
            root = group.rank_of(*of).ok_or(BeginError::Root(*of))?;
            if content.is_some() != (root == group.rank) {
                return Err(BeginError::Content(content.is_some()));
            }
            length = content.as_ref().map_or(0, |content| content.len());
            2
        }
        Collective::ReduceScatter { element: of, values } => {
            if !values.len().is_multiple_of(of.bytes()) {
                return Err(BeginError::Values { bytes: values.len(), element: of.bytes() });
            }
            (element, vector, length) = (*of as u8, values.len() as u64, values.len());
            3
        }
        Collective::AllGather { content } => {
            length = content.len();
            4
        }
    };
    if length as u64 > longest {
        return Err(BeginError::TooLong { bytes: length, longest });
    }
    let members = part::fingerprint(&group.members);
    Ok(Shape { kind, element, root: root as u32, vector, piece: piece as u32, members })
}
