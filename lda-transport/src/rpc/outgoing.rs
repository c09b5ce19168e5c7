//! Requests of this node to one peer, from when they are made until they have ended.
//!
//! A request waits, is underway, and ends. The peer's window bounds what is underway; a span of numbers
//! bounds how far requests get ahead of the oldest that has no end, and with it what the peer has to
//! remember.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use super::message_buf::MessageBuf;
use super::wire::{self, Head, RequestKind, Status};
use super::{FailureReason, Outcome, Window};
use crate::frame::Frame;
use crate::time::Time;

/// Numbers that may be between the oldest request without an end and the newest underway, in windows.
pub(super) const SPAN: u64 = 4;

#[derive(Debug, Default)]
pub(super) struct Outgoing {
    /// The next number.
    next: u64,
    requests: BTreeMap<u64, Request>,
    /// Not underway, in order.
    waiting: VecDeque<u64>,
    /// When something has to be done about a request: it is sent again, or ends.
    timers: BTreeSet<(Time, u64)>,
    underway: usize,
    underway_bytes: u64,
    /// Whether somebody was told that there is no room.
    refused: bool,
    /// What was sent for requests that have ended.
    pub spent: Vec<Frame>,
}

#[derive(Debug)]
struct Request {
    kind: RequestKind,
    content: Content,
    deadline: Time,
    /// Whether it was ever sent, so that it may have been done.
    sent: bool,
    underway: bool,
    /// When to send it again; with how long to wait then.
    again: Option<(Time, Duration)>,
}

#[derive(Debug)]
enum Content {
    MessageBuf(MessageBuf),
    /// As it is sent, and was.
    Frame(Frame),
}

impl Content {
    fn len(&self) -> u64 {
        match self {
            Self::MessageBuf(message) => message.len() as u64,
            Self::Frame(frame) => frame.len() as u64,
        }
    }
}

impl Request {
    fn timer(&self) -> Time {
        self.again.map_or(self.deadline, |(again, _)| again.min(self.deadline))
    }
}

/// What bounds the sending of requests, beside the peer's window.
pub(super) struct Budget<'a> {
    /// Bytes underway to all peers.
    pub in_flight: &'a mut u64,
    pub most_in_flight: u64,
    pub retry: Option<Duration>,
}

/// What could be sent.
pub(super) enum Next {
    Frame(Frame),
    /// Something, if less were underway to other peers.
    Starved,
    Nothing,
}

impl Outgoing {
    /// Takes a request; gives it back where too many wait.
    pub fn add(
        &mut self,
        kind: RequestKind,
        message: MessageBuf,
        deadline: Time,
        most: usize,
    ) -> Result<u64, MessageBuf> {
        if self.waiting.len() >= most {
            self.refused = true;
            return Err(message);
        }
        let id = self.next;
        self.next += 1;
        let (sent, underway, again) = (false, false, None);
        let request = Request {
            kind,
            content: Content::MessageBuf(message),
            deadline,
            sent,
            underway,
            again,
        };
        self.timers.insert((request.timer(), id));
        self.requests.insert(id, request);
        self.waiting.push_back(id);
        Ok(id)
    }

    /// Whether there is room again for one who was told that there is none.
    pub fn is_ready(&mut self, most: usize) -> bool {
        let ready = self.refused && self.waiting.len() <= most / 2;
        self.refused &= !ready;
        ready
    }

    /// Whether something waits that the window has room for.
    pub fn has_next(&self, window: Window) -> bool {
        let Some(id) = self.waiting.front() else { return false };
        let len = self.requests[id].content.len();
        self.underway < window.requests as usize
            && (self.underway == 0 || self.underway_bytes + len <= window.bytes)
            && id - self.floor() < u64::from(window.requests) * SPAN
    }

    pub fn is_empty(&self) -> bool {
        self.requests.is_empty()
    }

    pub fn next_timer(&self) -> Time {
        self.timers.first().map_or(Time::NEVER, |timer| timer.0)
    }

    /// Numbers below have ended.
    fn floor(&self) -> u64 {
        self.requests.first_key_value().map_or(self.next, |(id, _)| *id)
    }

    /// The next request that the window has room for.
    pub fn next(
        &mut self,
        from: u64,
        to: u64,
        window: Window,
        budget: &mut Budget<'_>,
        now: Time,
    ) -> Next {
        if !self.has_next(window) {
            return Next::Nothing;
        }
        let (floor, id) = (self.floor(), self.waiting[0]);
        let request = self.requests.get_mut(&id).expect("what waits is there");
        let len = request.content.len();
        if *budget.in_flight > 0 && *budget.in_flight + len > budget.most_in_flight {
            return Next::Starved;
        }
        self.waiting.pop_front();
        let head = Head { from, to, id, floor, ..wire::request(request.kind) };
        let frame = match &mut request.content {
            Content::Frame(frame) => frame.clone(),
            Content::MessageBuf(message) => {
                std::mem::take(message).into_frame(&head, &mut self.spent)
            }
        };
        request.content = Content::Frame(frame.clone());
        (request.sent, request.underway) = (true, true);
        self.underway += 1;
        self.underway_bytes += len;
        *budget.in_flight += len;
        self.timers.remove(&(request.timer(), id));
        request.again = budget.retry.map(|wait| {
            let wait = request.again.map_or(wait, |(_, last)| last * 2).min(wait * 16);
            (now + wait, wait)
        });
        self.timers.insert((request.timer(), id));
        Next::Frame(frame)
    }

    /// The end of a request, where it has none yet.
    pub fn answered(
        &mut self,
        id: u64,
        status: Status,
        body: Frame,
        in_flight: &mut u64,
    ) -> Option<Outcome> {
        // A reply to what was never sent is a mistake of the peer's.
        self.requests.get(&id).filter(|request| request.sent)?;
        self.end(id, in_flight);
        Some(match status {
            Status::Done => Outcome::Done(body),
            Status::Rejected => Outcome::Rejected(body),
            Status::Oversized => {
                Outcome::Unknown { reason: FailureReason::ReplyTooLong, sent: true }
            }
        })
    }

    /// Ends a request from this side.
    pub fn give_up(
        &mut self,
        id: u64,
        reason: FailureReason,
        in_flight: &mut u64,
    ) -> Option<Outcome> {
        let sent = self.end(id, in_flight)?;
        Some(Outcome::Unknown { reason, sent })
    }

    /// Takes a request out; whether it was ever sent.
    fn end(&mut self, id: u64, in_flight: &mut u64) -> Option<bool> {
        let request = self.requests.remove(&id)?;
        self.timers.remove(&(request.timer(), id));
        if request.underway {
            self.halt(request.content.len(), in_flight);
        } else if let Ok(at) = self.waiting.binary_search(&id) {
            self.waiting.remove(at);
        }
        self.spent.push(match request.content {
            Content::Frame(frame) => frame,
            Content::MessageBuf(message) => message.into_room(),
        });
        Some(request.sent)
    }

    fn halt(&mut self, len: u64, in_flight: &mut u64) {
        self.underway -= 1;
        self.underway_bytes -= len;
        *in_flight -= len;
    }

    /// What is due: requests whose deadline has come, which end; others are sent again.
    pub fn due(&mut self, now: Time, in_flight: &mut u64, ended: &mut Vec<(u64, Outcome)>) {
        while let Some(&(time, id)) = self.timers.first().filter(|timer| timer.0 <= now) {
            let request = &self.requests[&id];
            if request.deadline <= now {
                ended.extend(
                    self.give_up(id, FailureReason::Deadline, in_flight)
                        .map(|outcome| (id, outcome)),
                );
            } else {
                self.timers.remove(&(time, id));
                self.wait_again(id, in_flight);
            }
        }
    }

    /// Puts what is underway back among what waits, in order.
    fn wait_again(&mut self, id: u64, in_flight: &mut u64) {
        let request = self.requests.get_mut(&id).expect("it has a timer");
        if std::mem::take(&mut request.underway) {
            let len = request.content.len();
            let at = self.waiting.partition_point(|&other| other < id);
            self.waiting.insert(at, id);
            self.halt(len, in_flight);
        }
        let request = self.requests.get_mut(&id).expect("as before");
        // Until it is sent only its deadline counts.
        request.again = request.again.map(|(_, wait)| (Time::NEVER, wait));
        self.timers.insert((request.timer(), id));
    }

    /// The peer is away: what was underway has to be sent again.
    pub fn interrupt(&mut self, in_flight: &mut u64) {
        let underway: Vec<u64> = self
            .requests
            .iter()
            .filter(|(_, request)| request.underway)
            .map(|(id, _)| *id)
            .collect();
        for id in underway {
            let timer = self.requests[&id].timer();
            self.timers.remove(&(timer, id));
            self.wait_again(id, in_flight);
        }
    }

    /// The peer is another incarnation: what it may have done, and must not do twice, has ended; what only
    /// asks is asked anew.
    pub fn reincarnate(&mut self, in_flight: &mut u64, ended: &mut Vec<(u64, Outcome)>) {
        let sent = self.requests.iter_mut().filter(|(_, request)| request.sent);
        let mut lost = Vec::new();
        for (&id, request) in sent {
            match (&request.content, request.kind) {
                (Content::Frame(frame), RequestKind::Pull) => {
                    request.content = Content::MessageBuf(MessageBuf::copy_of(frame));
                    request.sent = false;
                }
                _ => lost.push(id),
            }
        }
        for id in lost {
            ended.extend(
                self.give_up(id, FailureReason::NewIncarnation, in_flight)
                    .map(|outcome| (id, outcome)),
            );
        }
    }

    /// Ends everything.
    pub fn abandon(
        &mut self,
        reason: FailureReason,
        in_flight: &mut u64,
        ended: &mut Vec<(u64, Outcome)>,
    ) {
        while let Some((&id, _)) = self.requests.first_key_value() {
            ended.extend(self.give_up(id, reason, in_flight).map(|outcome| (id, outcome)));
        }
    }
}
