//! Requests of this node to one peer, from the call to the outcome.
//!
//! A request waits, is in flight, and ends. The window of the peer bounds the requests in flight. A
//! span of numbers bounds the distance between the oldest request without an outcome and the newest
//! one in flight, and so the number of replies that the peer has to remember.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use super::message_buf::MessageBuf;
use super::wire::{self, Head, RequestKind, Status};
use super::{FailureReason, Outcome, Window};
use crate::frame::Frame;
use crate::time::Time;

/// Maximum distance between the oldest request without an outcome and the newest one in flight, in
/// windows.
pub(super) const SPAN: u64 = 4;

#[derive(Debug, Default)]
pub(super) struct Outgoing {
    /// Number of the next request.
    next: u64,
    requests: BTreeMap<u64, Request>,
    /// Requests that are not in flight, in ascending order.
    waiting: VecDeque<u64>,
    /// Times at which requests are sent again or end.
    timers: BTreeSet<(Time, u64)>,
    requests_in_flight: usize,
    bytes_in_flight: u64,
    /// Whether a request was returned because too many wait.
    is_overloaded: bool,
    /// Frames of requests that have ended.
    pub spent: Vec<Frame>,
}

#[derive(Debug)]
struct Request {
    kind: RequestKind,
    payload: Payload,
    deadline: Time,
    /// Whether it was ever sent to this incarnation, so that it may have been executed.
    sent: bool,
    is_in_flight: bool,
    /// Time at which it is sent again, and the wait that led to it.
    again: Option<(Time, Duration)>,
}

#[derive(Debug)]
enum Payload {
    MessageBuf(MessageBuf),
    /// The frame that was sent, and is sent again.
    Frame(Frame),
}

impl Payload {
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

/// Limits on requests besides the window of the peer.
pub(super) struct Budget<'a> {
    /// Bytes in flight to all peers.
    pub in_flight: &'a mut u64,
    pub most_in_flight: u64,
    pub retry: Option<Duration>,
}

/// Next request to send.
pub(super) enum Next {
    Frame(Frame),
    /// There is one, but too many bytes are in flight to other peers.
    Starved,
    Nothing,
}

impl Outgoing {
    /// Adds a request. Returns it if `most` requests wait already.
    pub fn add(
        &mut self,
        kind: RequestKind,
        message: MessageBuf,
        deadline: Time,
        most: usize,
    ) -> Result<u64, MessageBuf> {
        if self.waiting.len() >= most {
            self.is_overloaded = true;
            return Err(message);
        }
        let id = self.next;
        self.next += 1;
        let (sent, is_in_flight, again) = (false, false, None);
        let request = Request {
            kind,
            payload: Payload::MessageBuf(message),
            deadline,
            sent,
            is_in_flight,
            again,
        };
        self.timers.insert((request.timer(), id));
        self.requests.insert(id, request);
        self.waiting.push_back(id);
        Ok(id)
    }

    /// Returns true once, after requests were rejected, when there is space for others again.
    pub fn is_ready(&mut self, most: usize) -> bool {
        let ready = self.is_overloaded && self.waiting.len() <= most / 2;
        self.is_overloaded &= !ready;
        ready
    }

    /// Whether a request waits and the window allows it.
    pub fn has_next(&self, window: Window) -> bool {
        let Some(id) = self.waiting.front() else { return false };
        let len = self.requests[id].payload.len();
        self.requests_in_flight < window.requests as usize
            && (self.requests_in_flight == 0 || self.bytes_in_flight + len <= window.bytes)
            && id - self.floor() < u64::from(window.requests) * SPAN
    }

    pub fn is_empty(&self) -> bool {
        self.requests.is_empty()
    }

    pub fn next_timer(&self) -> Time {
        self.timers.first().map_or(Time::NEVER, |timer| timer.0)
    }

    /// Returns the lowest number that has no outcome.
    fn floor(&self) -> u64 {
        self.requests.first_key_value().map_or(self.next, |(id, _)| *id)
    }

    /// Returns the next request that the window allows.
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
        let request = self.requests.get_mut(&id).expect("a waiting request is in the map");
        let len = request.payload.len();
        if *budget.in_flight > 0 && *budget.in_flight + len > budget.most_in_flight {
            return Next::Starved;
        }
        self.waiting.pop_front();
        // INVARIANT: the floor of the header must be that of the moment of sending. A frame that is
        // sent again has an older, lower one, which is safe: the peer only remembers more.
        let head = Head { from, to, id, floor, ..wire::request(request.kind) };
        let frame = match &mut request.payload {
            Payload::Frame(frame) => frame.clone(),
            Payload::MessageBuf(message) => {
                std::mem::take(message).into_frame(&head, &mut self.spent)
            }
        };
        request.payload = Payload::Frame(frame.clone());
        (request.sent, request.is_in_flight) = (true, true);
        self.requests_in_flight += 1;
        self.bytes_in_flight += len;
        *budget.in_flight += len;
        self.timers.remove(&(request.timer(), id));
        request.again = budget.retry.map(|wait| {
            let wait = request.again.map_or(wait, |(_, last)| last * 2).min(wait * 16);
            (now + wait, wait)
        });
        self.timers.insert((request.timer(), id));
        Next::Frame(frame)
    }

    /// Ends a request with the reply to it. `None` if it has ended already.
    pub fn answered(
        &mut self,
        id: u64,
        status: Status,
        body: Frame,
        in_flight: &mut u64,
    ) -> Option<Outcome> {
        // A reply to a request that was never sent is a mistake of the peer.
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

    /// Ends a request without a reply.
    pub fn give_up(
        &mut self,
        id: u64,
        reason: FailureReason,
        in_flight: &mut u64,
    ) -> Option<Outcome> {
        let sent = self.end(id, in_flight)?;
        Some(Outcome::Unknown { reason, sent })
    }

    /// Removes a request. Returns whether it was ever sent.
    fn end(&mut self, id: u64, in_flight: &mut u64) -> Option<bool> {
        let request = self.requests.remove(&id)?;
        self.timers.remove(&(request.timer(), id));
        if request.is_in_flight {
            self.land(request.payload.len(), in_flight);
        } else if let Ok(at) = self.waiting.binary_search(&id) {
            self.waiting.remove(at);
        }
        self.spent.push(match request.payload {
            Payload::Frame(frame) => frame,
            Payload::MessageBuf(message) => message.into_buffer(),
        });
        Some(request.sent)
    }

    /// Subtracts a request from those in flight.
    fn land(&mut self, len: u64, in_flight: &mut u64) {
        self.requests_in_flight -= 1;
        self.bytes_in_flight -= len;
        *in_flight -= len;
    }

    /// Ends the requests whose deadline has passed and queues the others that are due again.
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

    /// Queues a request in flight again, in the order of numbers.
    fn wait_again(&mut self, id: u64, in_flight: &mut u64) {
        let request =
            self.requests.get_mut(&id).expect("the caller has it from a timer or the map");
        if std::mem::take(&mut request.is_in_flight) {
            let len = request.payload.len();
            let at = self.waiting.partition_point(|&other| other < id);
            self.waiting.insert(at, id);
            self.land(len, in_flight);
        }
        let request = self.requests.get_mut(&id).expect("found above");
        // INVARIANT: until it is sent again, only its deadline is a timer.
        request.again = request.again.map(|(_, wait)| (Time::NEVER, wait));
        self.timers.insert((request.timer(), id));
    }

    /// Queues all requests in flight again, after the connection is lost.
    pub fn interrupt(&mut self, in_flight: &mut u64) {
        let ids: Vec<u64> = self
            .requests
            .iter()
            .filter(|(_, request)| request.is_in_flight)
            .map(|(id, _)| *id)
            .collect();
        for id in ids {
            let timer = self.requests[&id].timer();
            self.timers.remove(&(timer, id));
            self.wait_again(id, in_flight);
        }
    }

    /// Ends the requests that an earlier incarnation may have executed. Pulls are sent again, since
    /// they may be executed twice.
    pub fn reincarnate(&mut self, in_flight: &mut u64, ended: &mut Vec<(u64, Outcome)>) {
        let sent = self.requests.iter_mut().filter(|(_, request)| request.sent);
        let mut lost = Vec::new();
        for (&id, request) in sent {
            match (&request.payload, request.kind) {
                (Payload::Frame(frame), RequestKind::Pull) => {
                    request.payload = Payload::MessageBuf(MessageBuf::copy_of(frame));
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

    /// Ends all requests.
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
