//! Collective operations of one node: those that run, and the parts that arrived before an
//! operation began.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use super::operation::{Operation, OutgoingPart};
use super::part::{self, Part, Shape};
use super::{BeginError, Collective, CollectiveError, Group, OperationId};
use crate::frame::Frame;
use crate::rpc::message_buf::MessageBuf;
use crate::rpc::{FailureReason, Outcome, ReplyHandle, RequestId, Window};
use crate::time::Time;
use crate::transport::NodeId;

/// Maximum number of parts of an operation in flight to a peer.
const MAX_PARTS_IN_FLIGHT: usize = 8;
/// Longest reason in a notice to members, in characters.
const MAX_REASON_LEN: usize = 500;

/// Command for the endpoint.
#[derive(Debug)]
pub(in crate::rpc) enum Command {
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
    /// Notifies a member that a group is broken.
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
    groups: BTreeMap<u64, GroupState>,
    running: BTreeMap<OperationId, Running>,
    timers: BTreeSet<(Time, OperationId)>,
    /// Operation of each open request, which may have ended; `None` for a notice.
    requests: BTreeMap<RequestId, Option<OperationId>>,
    /// Parts of operations that have not begun here.
    early: BTreeMap<OperationId, Vec<ReceivedPart>>,
    /// Early parts that were answered, by peer.
    early_parts: BTreeMap<NodeId, EarlyParts>,
    commands: VecDeque<Command>,
}

/// State of a group.
#[derive(Debug, Default)]
struct GroupState {
    /// Number of its next operation.
    next: u64,
    /// Error of its first operation that has failed.
    failure: Option<String>,
}

/// A part with its sender.
#[derive(Debug)]
struct ReceivedPart {
    /// `None` once answered.
    reply_to: Option<ReplyHandle>,
    peer: NodeId,
    incarnation: u64,
    shape: Shape,
    part: Part,
}

/// Early parts of a peer that were answered.
#[derive(Debug, Default)]
struct EarlyParts {
    parts: u32,
    bytes: u64,
}

#[derive(Debug)]
struct Running {
    operation: Operation,
    shape: Shape,
    members: Arc<[NodeId]>,
    /// Rank of this node.
    own: usize,
    deadline: Time,
    /// Send state of each member, by rank.
    peers: Vec<Peer>,
}

#[derive(Debug, Default)]
struct Peer {
    out: VecDeque<Part>,
    in_flight: usize,
    /// 0 while it is unknown.
    incarnation: u64,
}

impl Running {
    fn rank_of(&self, node: NodeId) -> Option<usize> {
        self.members.iter().position(|&member| member == node)
    }

    fn queue(&mut self, out: Vec<OutgoingPart>) {
        out.into_iter().for_each(|out| self.peers[out.to].out.push_back(out.part));
    }

    fn has_sent(&self) -> bool {
        self.peers.iter().all(|peer| peer.out.is_empty() && peer.in_flight == 0)
    }

    /// Returns the members for which the operation still waits here.
    fn missing(&self) -> Vec<NodeId> {
        let busy =
            |rank: &usize| self.peers[*rank].in_flight > 0 || !self.peers[*rank].out.is_empty();
        let mut missing: BTreeSet<usize> = (0..self.peers.len()).filter(busy).collect();
        missing.extend(self.operation.awaited());
        missing.into_iter().map(|rank| self.members[rank]).collect()
    }
}

impl Collectives {
    pub fn next_command(&mut self) -> Option<Command> {
        self.commands.pop_front()
    }

    pub fn next_timer(&self) -> Time {
        self.timers.first().map_or(Time::NEVER, |timer| timer.0)
    }

    /// Begins an operation. `incarnation` returns the known incarnation of a member, or 0.
    pub fn begin(
        &mut self,
        group: &Group,
        collective: Collective,
        (part_len, longest): (usize, u64),
        deadline: Time,
        incarnation: impl Fn(NodeId) -> u64,
    ) -> Result<OperationId, BeginError> {
        let shape = shape_of(group, &collective, part_len, longest)?;
        let numbers = self.groups.entry(group.id).or_default();
        if let Some(reason) = &numbers.failure {
            return Err(BeginError::Broken { group: group.id, reason: reason.clone() });
        }
        let id = OperationId { group: group.id, number: numbers.next };
        numbers.next += 1;
        let (members, place) = (Arc::clone(&group.members), (group.rank, group.members.len()));
        let mut out = Vec::new();
        let root = shape.root as usize;
        let operation = Operation::new(collective, root, place, part_len, longest, &mut out);
        let peer = |&member: &NodeId| Peer { incarnation: incarnation(member), ..Peer::default() };
        let peers = members.iter().map(peer).collect();
        let mut running = Running { operation, shape, members, own: group.rank, deadline, peers };
        running.queue(out);
        self.running.insert(id, running);
        self.timers.insert((deadline, id));
        for received in self.early.remove(&id).unwrap_or_default() {
            self.release(&received);
            self.take(id, received);
        }
        self.advance(id);
        Ok(id)
    }

    /// Takes a part that a peer has sent.
    pub fn take_part(&mut self, reply_to: ReplyHandle, body: &Frame, window: Window) {
        if let Some((id, words)) = part::read_notice(body) {
            self.answer(reply_to, None);
            let peer = reply_to.peer;
            return self.break_group(id, CollectiveError::Rejected { peer, words });
        }
        let Some((id, shape, part)) = part::decode(body) else {
            return self
                .answer(reply_to, Some("bytes that are not a part of an operation".to_owned()));
        };
        let ReplyHandle { peer, incarnation, .. } = reply_to;
        let mut received =
            ReceivedPart { reply_to: Some(reply_to), peer, incarnation, shape, part };
        if self.running.contains_key(&id) {
            self.take(id, received);
            return self.advance(id);
        }
        match self.groups.get(&id.group) {
            Some(GroupState { failure: Some(reason), .. }) => {
                self.answer(reply_to, Some(format!("group {} is broken: {reason}", id.group)));
            }
            Some(GroupState { next, .. }) if id.number < *next => {
                let OperationId { group, number } = id;
                self.answer(
                    reply_to,
                    Some(format!("operation {number} of group {group} has ended")),
                );
            }
            _ => {
                // INVARIANT: answered up to a window, since an open request occupies the window of
                // the peer, and its other requests would wait for an operation that has not begun.
                let early_parts = self.early_parts.entry(peer).or_default();
                let bytes = early_parts.bytes + received.part.payload.len() as u64;
                if early_parts.parts < window.requests && bytes <= window.bytes {
                    *early_parts = EarlyParts { parts: early_parts.parts + 1, bytes };
                    received.reply_to = None;
                    self.answer(reply_to, None);
                }
                self.early.entry(id).or_default().push(received);
            }
        }
    }

    /// Removes an early part from the counts of its peer.
    fn release(&mut self, received: &ReceivedPart) {
        if received.reply_to.is_none()
            && let Some(early_parts) = self.early_parts.get_mut(&received.peer)
        {
            early_parts.parts -= 1;
            early_parts.bytes -= received.part.payload.len() as u64;
        }
    }

    /// Takes a part of an operation, which may have failed by the part before it.
    fn take(&mut self, id: OperationId, received: ReceivedPart) {
        let ReceivedPart { reply_to, peer, incarnation, shape, part } = received;
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
            // The part may have arrived before the operation began, from a member that is away now.
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
        self.commands.push_back(Command::Answer { reply_to, refusal });
    }

    /// Records the request of a part, or of a notice, which has no operation.
    pub fn sent(&mut self, request: RequestId, operation: Option<OperationId>) {
        self.requests.insert(request, operation);
    }

    /// Takes the outcome of a request, if it is of a part; returns it otherwise.
    pub fn request_ended(&mut self, request: RequestId, outcome: Outcome) -> Option<Outcome> {
        let Some(id) = self.requests.remove(&request) else { return Some(outcome) };
        let id = id?;
        let running = self.running.get_mut(&id)?;
        let peer = request.peer;
        let rank = running.rank_of(peer).expect("parts are sent to members");
        running.peers[rank].in_flight -= 1;
        match outcome {
            Outcome::Done(_) => self.advance(id),
            Outcome::Rejected(words) => {
                let words = String::from_utf8_lossy(&words).into_owned();
                self.fail(id, CollectiveError::Rejected { peer, words });
            }
            Outcome::Unknown { reason: FailureReason::Deadline, .. } => {
                // All its requests have the same deadline; name everything that is missing.
                running.peers[rank].in_flight += 1;
                let missing = running.missing();
                self.fail(id, CollectiveError::Deadline { missing });
            }
            Outcome::Unknown { reason, .. } => {
                self.fail(id, CollectiveError::Lost { peer, reason })
            }
        }
        None
    }

    /// Sends the parts that may be sent, and ends the operation if it is complete.
    fn advance(&mut self, id: OperationId) {
        let Some(running) = self.running.get_mut(&id) else { return };
        let (deadline, shape) = (running.deadline, running.shape);
        for (peer, &to) in running.peers.iter_mut().zip(running.members.iter()) {
            while peer.in_flight < MAX_PARTS_IN_FLIGHT
                && let Some(part) = peer.out.pop_front()
            {
                peer.in_flight += 1;
                let message = part::encode(id, &shape, &part);
                self.commands.push_back(Command::Request { operation: id, to, message, deadline });
            }
        }
        if running.operation.is_complete() && running.has_sent() {
            let running = self.remove(id).expect("found above");
            let result = Ok(running.operation.into_result());
            self.commands.push_back(Command::Report { operation: id, result });
        }
    }

    fn remove(&mut self, id: OperationId) -> Option<Running> {
        let running = self.running.remove(&id)?;
        self.timers.remove(&(running.deadline, id));
        Some(running)
    }

    /// Ends an operation that has not ended, and notifies the other members.
    pub fn fail(&mut self, id: OperationId, error: CollectiveError) {
        let Some(running) = self.running.get(&id) else { return };
        let notified_by = match &error {
            CollectiveError::Rejected { peer, .. } => Some(*peer),
            _ => None,
        };
        let words: String = error.to_string().chars().take(MAX_REASON_LEN).collect();
        let members = Arc::clone(&running.members);
        let own = running.own;
        for (rank, &to) in members.iter().enumerate() {
            if rank != own && Some(to) != notified_by {
                let message = part::notice(id, &words);
                self.commands.push_back(Command::Notify { to, message });
            }
        }
        self.break_group(id, error);
    }

    /// Ends the running operations of a group, and rejects its parts from now on.
    //
    // INVARIANT: a failed operation breaks the whole group. Members may disagree on which
    // operations have ended, so parts of later ones could be taken for those of earlier ones.
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
            self.commands.extend(requests.map(|(&request, _)| Command::Cancel(request)));
            self.commands.push_back(Command::Report { operation: id, result: Err(error.clone()) });
        }
        let early: Vec<OperationId> = self.early.range(all).map(|(id, _)| *id).collect();
        for id in early {
            for received in self.early.remove(&id).unwrap_or_default() {
                self.release(&received);
                if let Some(reply_to) = received.reply_to {
                    self.answer(reply_to, Some(format!("group {} is broken: {reason}", id.group)));
                }
            }
        }
    }

    /// Ends the operations whose deadline has passed.
    pub fn due(&mut self, now: Time) {
        while let Some(&(_, id)) = self.timers.first().filter(|timer| timer.0 <= now) {
            let missing = self.running[&id].missing();
            self.fail(id, CollectiveError::Deadline { missing });
        }
    }

    /// Drops an early part whose sender does not wait for it any more.
    pub fn forget(&mut self, reply_to: ReplyHandle) {
        let mut found = false;
        self.early.retain(|_, parts| {
            let before = parts.len();
            parts.retain(|received| received.reply_to != Some(reply_to));
            found |= parts.len() < before;
            !parts.is_empty()
        });
        if found {
            self.answer(reply_to, None);
        }
    }

    /// Records the incarnation of a peer. Operations with an earlier one of it fail.
    pub fn peer_joined(&mut self, peer: NodeId, incarnation: u64) {
        for mut parts in std::mem::take(&mut self.early) {
            let old = |received: &mut ReceivedPart| {
                received.peer == peer && received.incarnation != incarnation
            };
            parts.1.extract_if(.., old).for_each(|received| self.release(&received));
            if !parts.1.is_empty() {
                self.early.insert(parts.0, parts.1);
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

    /// Ends the operations with this member.
    pub fn lose(&mut self, peer: NodeId, reason: FailureReason) {
        let has = |running: &Running| running.rank_of(peer).is_some();
        let lost: Vec<OperationId> =
            self.running.iter().filter(|(_, running)| has(running)).map(|(id, _)| *id).collect();
        lost.into_iter().for_each(|id| self.fail(id, CollectiveError::Lost { peer, reason }));
    }

    /// Ends all operations.
    pub fn close(&mut self) {
        while let Some((&id, _)) = self.running.first_key_value() {
            self.fail(id, CollectiveError::Cancelled);
        }
    }
}

/// Returns the properties that must be equal at all members; checks the input of this one.
fn shape_of(
    group: &Group,
    collective: &Collective,
    part_len: usize,
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
    Ok(Shape { kind, element, root: root as u32, vector, part_len: part_len as u32, members })
}
