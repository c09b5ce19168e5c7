//! Endpoint state for one peer: its session, and the messages in both directions.
//!
//! A session starts with a greeting on each side. A peer has joined once it has shown that it knows
//! this incarnation: by a greeting that names it, or by any later message.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use super::incoming::{Admission, Incoming};
use super::message_buf::MessageBuf;
use super::outgoing::{Budget, Next, Outgoing};
use super::wire::{self, Head, Hello, Message, Refusal, RequestKind, Status};
use super::{
    Action, Config, FailureReason, Identity, Outcome, PeerContext, ReplyHandle, RequestId, Window,
};
use crate::frame::Frame;
use crate::time::Time;
use crate::transport::{DisconnectReason, NodeId, SendError};

#[derive(Debug)]
pub(super) struct Peer {
    id: NodeId,
    /// Whether the transport is connected to it.
    up: bool,
    /// Whether the transport was full and has not become writable.
    blocked: bool,
    session: Session,
    /// Identity from its last greeting.
    remote: Option<Remote>,
    /// Whether its incarnation has changed since it last joined.
    restarted: bool,
    pub outgoing: Outgoing,
    incoming: Incoming,
    /// Frames that the transport has returned. They are sent first.
    returned: VecDeque<Frame>,
    /// Greetings, refusals and heartbeats to send.
    control: VecDeque<Frame>,
    /// Replies to send, by number of their request: one per request, and those below the floor can
    /// be dropped.
    replies: BTreeMap<u64, Frame>,
    /// Whether a reply was sent last. Replies and requests take turns, so that neither starves.
    replied: bool,
    /// Incarnation that was refused, and the reason, to be sent again if it greets again.
    refused: Option<(u64, Refusal)>,
    /// Largest incarnation that has sent a greeting which fits.
    latest: u64,
    /// Largest incarnation in whose place another process has greeted and was refused.
    gone: u64,
    last_received: Time,
    last_sent: Time,
    /// Next timer. Set by the endpoint.
    pub timer: Time,
    /// Whether the peer is in the queue of those that may send. Set by the endpoint.
    pub in_turn: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Session {
    /// Not connected.
    Away,
    /// Greeted at this time; no answer yet.
    Greeting(Time),
    Joined,
    Refused,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Remote {
    incarnation: u64,
    role: u8,
    window: Window,
}

impl Peer {
    pub fn new(id: NodeId) -> Self {
        Self {
            id,
            up: false,
            blocked: false,
            session: Session::Away,
            remote: None,
            restarted: false,
            outgoing: Outgoing::default(),
            incoming: Incoming::default(),
            returned: VecDeque::new(),
            control: VecDeque::new(),
            replies: BTreeMap::new(),
            replied: false,
            refused: None,
            latest: 0,
            gone: 0,
            last_received: Time::ZERO,
            last_sent: Time::ZERO,
            timer: Time::NEVER,
            in_turn: false,
        }
    }

    #[cfg(feature = "sim")]
    pub fn session(&self) -> Session {
        self.session
    }

    pub fn is_refused(&self) -> bool {
        self.session == Session::Refused
    }

    pub fn is_joined(&self) -> bool {
        self.session == Session::Joined
    }

    pub fn known(&self) -> u64 {
        self.remote.map_or(0, |remote| remote.incarnation)
    }

    pub fn up(&mut self, cx: &mut PeerContext<'_>) {
        self.up = true;
        self.greet(cx);
    }

    fn greet(&mut self, cx: &PeerContext<'_>) {
        self.session = Session::Greeting(cx.now);
        self.send_hello(cx);
    }

    fn send_hello(&mut self, cx: &PeerContext<'_>) {
        let Config { identity, window, .. } = cx.config;
        // A greeting that is queued already has the same content.
        if self.control.len() < 2 {
            self.control.push_back(wire::hello(identity, *window, self.known()));
        }
    }

    pub fn down(&mut self, reason: DisconnectReason, cx: &mut PeerContext<'_>) {
        self.leave(reason, cx);
        self.up = false;
        self.session = Session::Away;
        self.blocked = false;
        self.returned.clear();
        // The peer repeats its requests after the next greeting, and then gets these replies again.
        self.replies.clear();
    }

    /// Ends the session. Requests are kept and sent again.
    //
    // INVARIANT: replies are kept as long as the transport is connected. The peer may not know that
    // this node counts it as lost, and would then not repeat the requests.
    fn leave(&mut self, reason: DisconnectReason, cx: &mut PeerContext<'_>) {
        if self.is_joined() {
            cx.actions.push_back(Action::Left { peer: self.id, reason });
        }
        self.control.clear();
        self.outgoing.interrupt(cx.in_flight);
    }

    pub fn writable(&mut self) {
        self.blocked = false;
    }

    pub fn unsent(&mut self, frame: Frame, error: SendError, cx: &mut PeerContext<'_>) {
        match error {
            SendError::Full => {
                self.blocked = true;
                self.returned.push_back(frame);
            }
            SendError::TooLong { .. } => self.too_long(&frame, cx),
            // The connection is lost; `down` is called next.
            _ => {}
        }
    }

    /// Ends a request that is too long to be sent, or replaces a reply that is.
    fn too_long(&mut self, frame: &Frame, cx: &mut PeerContext<'_>) {
        match wire::decode(frame) {
            Ok(Message::Request { id, .. }) => {
                if let Some(outcome) =
                    self.outgoing.give_up(id, FailureReason::TooLong, cx.in_flight)
                {
                    // INVARIANT: the transport did not take it, so it was certainly not executed.
                    let unsent = |outcome| match outcome {
                        Outcome::Unknown { reason, .. } => Outcome::Unknown { reason, sent: false },
                        other => other,
                    };
                    self.ended(id, unsent(outcome), cx);
                }
            }
            Ok(Message::Reply { from, to, id, status, .. }) => {
                let (status, words) = match status {
                    Status::Rejected => {
                        (Status::Rejected, &b"for a reason longer than the transport allows"[..])
                    }
                    Status::Done | Status::Oversized => (Status::Oversized, &[][..]),
                };
                let head = Head { from, to, id, ..wire::reply(status) };
                let reply = MessageBuf::from(words).into_frame(&head, &mut self.incoming.spent);
                self.replies.insert(id, reply);
            }
            _ => {}
        }
    }

    pub fn may_transmit(&self) -> bool {
        let ready = !self.returned.is_empty() || !self.control.is_empty();
        self.up && !self.blocked && (ready || self.has_reply() || self.has_request())
    }

    fn has_reply(&self) -> bool {
        self.is_joined() && !self.replies.is_empty()
    }

    pub fn has_request(&self) -> bool {
        let joined = self.remote.filter(|_| self.is_joined());
        joined.is_some_and(|remote| self.outgoing.has_next(remote.window))
    }

    pub fn transmit(&mut self, cx: &mut PeerContext<'_>) -> Option<Frame> {
        if !self.may_transmit() {
            return None;
        }
        let ready = self.returned.pop_front().or_else(|| self.control.pop_front());
        let frame = ready.or_else(|| self.next_of_both(cx))?;
        self.last_sent = cx.now;
        Some(frame)
    }

    /// Returns a reply and a request in turn.
    fn next_of_both(&mut self, cx: &mut PeerContext<'_>) -> Option<Frame> {
        if !self.has_reply() || self.replied {
            self.replied = false;
            if let Some(request) = self.next_request(cx) {
                return Some(request);
            }
        }
        if !self.has_reply() {
            return None;
        }
        self.replied = true;
        self.replies.pop_first().map(|(_, reply)| reply)
    }

    fn next_request(&mut self, cx: &mut PeerContext<'_>) -> Option<Frame> {
        let remote = self.remote.filter(|_| self.has_request())?;
        if cx.waits {
            cx.starved = true;
            return None;
        }
        let Config { identity, in_flight, retry, .. } = *cx.config;
        let mut budget = Budget { in_flight: cx.in_flight, most_in_flight: in_flight, retry };
        let to = remote.incarnation;
        match self.outgoing.next(identity.incarnation, to, remote.window, &mut budget, cx.now) {
            Next::Frame(frame) => Some(frame),
            Next::Starved => {
                cx.starved = true;
                None
            }
            Next::Nothing => None,
        }
    }

    pub fn frame(&mut self, frame: &Frame, cx: &mut PeerContext<'_>) {
        match wire::decode(frame) {
            Ok(message) => self.message(message, cx),
            // Anybody may have connected under this number. Who has not joined cannot end a session that
            // the owner of the number begins later.
            Err(error) if !self.is_joined() => {
                *cx.strays += 1;
                self.send_refusal(self.known(), &Refusal::Violation(error.0), cx);
            }
            Err(error) => self.refuse(self.known(), Refusal::Violation(error.0), cx),
        }
    }

    fn message(&mut self, message: Message, cx: &mut PeerContext<'_>) {
        let own = cx.config.identity.incarnation;
        match message {
            Message::Hello { from, to, hello } => self.hello(from, to, &hello, cx),
            Message::Refusal { from, to, words } => {
                // A peer that does not know this incarnation yet may refuse it too.
                if (to == own || to == 0) && from >= self.known() {
                    self.end(Refusal::ByPeer(words), cx);
                }
            }
            Message::Request { from, to, kind, id, floor, body } => {
                if self.accepts(from, to, cx) {
                    self.admit(kind, id, floor, body, cx);
                }
            }
            Message::Reply { from, to, status, id, body } => {
                if self.accepts(from, to, cx) {
                    match self.outgoing.answered(id, status, body, cx.in_flight) {
                        Some(outcome) => self.ended(id, outcome, cx),
                        None => *cx.strays += 1,
                    }
                }
            }
            Message::Heartbeat { from, to } => {
                self.accepts(from, to, cx);
            }
        }
    }

    /// Checks that a message comes from the known incarnation of the peer and is for this one. If
    /// so, the peer has joined.
    fn accepts(&mut self, from: u64, to: u64, cx: &mut PeerContext<'_>) -> bool {
        let fits = from == self.known() && to == cx.config.identity.incarnation;
        let greeted = matches!(self.session, Session::Greeting(_) | Session::Joined);
        if !(fits && greeted) {
            *cx.strays += 1;
            return false;
        }
        self.last_received = cx.now;
        self.join(cx);
        true
    }

    fn hello(&mut self, from: u64, to: u64, hello: &Hello, cx: &mut PeerContext<'_>) {
        let own = cx.config.identity.incarnation;
        if !self.up {
            *cx.strays += 1;
            return;
        }
        if from < self.latest {
            // A late message of an earlier process, or the clock of the peer was set back.
            *cx.strays += 1;
            let reason = Refusal::Violation(format!(
                "its incarnation {from} is smaller than {} before it: set its clock, or count its starts",
                self.latest
            ));
            return self.send_refusal(from, &reason, cx);
        }
        if from <= self.gone {
            // INVARIANT: its executed requests are forgotten, and must not be executed again.
            *cx.strays += 1;
            let reason = "another process has greeted in its place: start it again".to_owned();
            return self.send_refusal(from, &Refusal::Violation(reason), cx);
        }
        match &self.refused {
            Some((incarnation, reason)) if self.is_refused() && *incarnation == from => {
                *cx.strays += 1;
                let reason = reason.clone();
                return self.send_refusal(from, &reason, cx);
            }
            _ => {}
        }
        if let Err(refusal) = fits(&cx.config.identity, hello) {
            if from != self.known() {
                self.gone = self.gone.max(self.known());
                self.replace_remote(None, cx);
            }
            return self.refuse(from, refusal, cx);
        }
        // INVARIANT: only of greetings that fit: another program cannot shut a node out by a large number.
        self.latest = from;
        let was_joined = self.is_joined() && from == self.known();
        if from != self.known() {
            let Hello { role, window, .. } = *hello;
            self.replace_remote(Some(Remote { incarnation: from, role, window }), cx);
        } else if self.is_refused() {
            *cx.strays += 1;
            return;
        }
        self.last_received = cx.now;
        if to == own {
            self.join(cx);
        }
        if to != own || !was_joined {
            self.send_hello(cx);
        } else if self.control.is_empty() {
            // The peer may have counted this node as lost, and waits for a message.
            self.control.push_back(wire::heartbeat(own, from));
        }
    }

    /// Replaces the identity of the peer by that of a new incarnation, or of one that is refused.
    //
    // INVARIANT: requests that the old incarnation may have executed end before anything is sent to
    // the new one, and its executed requests are forgotten, as its numbers start again.
    fn replace_remote(&mut self, remote: Option<Remote>, cx: &mut PeerContext<'_>) {
        if self.is_joined() {
            self.leave(DisconnectReason::Broken("it has restarted".to_owned()), cx);
        }
        if self.remote.is_some() {
            self.restarted = true;
            let mut ended = Vec::new();
            self.outgoing.interrupt(cx.in_flight);
            self.outgoing.reincarnate(cx.in_flight, &mut ended);
            self.all_ended(ended, cx);
        }
        self.replies.clear();
        self.incoming = Incoming::default();
        self.session = Session::Greeting(cx.now);
        self.remote = remote;
    }

    fn join(&mut self, cx: &mut PeerContext<'_>) {
        if !self.is_joined() {
            let Some(remote) = self.remote else { return };
            self.session = Session::Joined;
            let Remote { incarnation, role, .. } = remote;
            let restarted = std::mem::take(&mut self.restarted);
            cx.actions.push_back(Action::Joined { peer: self.id, role, incarnation, restarted });
        }
    }

    fn admit(
        &mut self,
        kind: RequestKind,
        id: u64,
        floor: u64,
        body: Frame,
        cx: &mut PeerContext<'_>,
    ) {
        // The peer does not wait for replies below its floor.
        while self.replies.first_key_value().is_some_and(|(&number, _)| number < floor) {
            self.replies.pop_first();
        }
        let (peer, incarnation) = (self.id, self.known());
        let abandoned = |number| cx.abandoned.push(ReplyHandle { peer, incarnation, number });
        match self.incoming.admit(kind, id, floor, cx.config.window, abandoned) {
            Admission::New => {
                let reply_to = ReplyHandle { peer: self.id, incarnation: self.known(), number: id };
                cx.actions.push_back(Action::Request { reply_to, kind, body });
            }
            Admission::Replied(frame) => drop(self.replies.insert(id, frame)),
            Admission::Known => *cx.strays += 1,
            Admission::Overloaded => {
                let (from, to) = (cx.config.identity.incarnation, self.known());
                let words = MessageBuf::from(&b"too many requests are being done"[..]);
                let head = Head { from, to, id, ..wire::reply(Status::Rejected) };
                let frame = words.into_frame(&head, &mut self.incoming.spent);
                self.incoming.reject(kind, id, &frame);
                self.replies.insert(id, frame);
            }
            Admission::Beyond => {
                let reason = format!("request {id} exceeds its window");
                self.refuse(self.known(), Refusal::Violation(reason), cx);
            }
        }
    }

    pub fn answer(
        &mut self,
        reply_to: ReplyHandle,
        status: Status,
        message: MessageBuf,
        cx: &mut PeerContext<'_>,
    ) -> bool {
        if reply_to.incarnation != self.known() {
            return false;
        }
        let (from, to) = (cx.config.identity.incarnation, reply_to.incarnation);
        let head = Head { from, to, id: reply_to.number, ..wire::reply(status) };
        let frame = message.into_frame(&head, &mut self.incoming.spent);
        let awaited = self.incoming.reply(reply_to.number, &frame);
        // INVARIANT: depends on the connection, not on the session: a peer that is only silent does
        // not repeat its request. After a reconnect it does, and then gets the reply.
        if awaited && self.up {
            self.replies.insert(reply_to.number, frame);
        }
        awaited
    }

    pub fn give_up(&mut self, number: u64, reason: FailureReason, cx: &mut PeerContext<'_>) {
        if let Some(outcome) = self.outgoing.give_up(number, reason, cx.in_flight) {
            self.ended(number, outcome, cx);
        }
    }

    /// Ends all requests to this peer.
    pub fn abandon(&mut self, reason: FailureReason, cx: &mut PeerContext<'_>) {
        let mut ended = Vec::new();
        self.outgoing.abandon(reason, cx.in_flight, &mut ended);
        self.all_ended(ended, cx);
    }

    /// Moves the frames that are not needed any more to `to`.
    pub fn give_spent(&mut self, to: &mut Vec<Frame>) {
        to.append(&mut self.outgoing.spent);
        to.append(&mut self.incoming.spent);
    }

    /// Whether no request is open in either direction. Replies to a peer that is away do not count.
    pub fn is_idle(&self) -> bool {
        let answered =
            self.replies.is_empty() && self.returned.is_empty() && !self.incoming.is_running();
        self.outgoing.is_empty() && (answered || !self.is_joined())
    }

    /// Refuses a peer for a message that the program did not expect.
    pub fn refuse_message(&mut self, why: String, cx: &mut PeerContext<'_>) {
        self.refuse(self.known(), Refusal::Violation(why), cx);
    }

    fn refuse(&mut self, to: u64, reason: Refusal, cx: &mut PeerContext<'_>) {
        if !self.is_refused() {
            self.refused = Some((to, reason.clone()));
            self.end(reason.clone(), cx);
            self.send_refusal(to, &reason, cx);
        }
    }

    fn send_refusal(&mut self, to: u64, reason: &Refusal, cx: &PeerContext<'_>) {
        // A message that is queued already also shows the peer that this node is there.
        if self.control.is_empty() {
            self.control.push_back(wire::refusal(cx.config.identity.incarnation, to, reason));
        }
    }

    fn end(&mut self, reason: Refusal, cx: &mut PeerContext<'_>) {
        if self.is_refused() {
            return;
        }
        self.returned.clear();
        self.control.clear();
        self.replies.clear();
        self.session = Session::Refused;
        cx.actions.push_back(Action::Refused { peer: self.id, reason });
        self.abandon(FailureReason::Refused, cx);
    }

    fn ended(&self, number: u64, outcome: Outcome, cx: &mut PeerContext<'_>) {
        let request = RequestId { peer: self.id, number };
        cx.actions.push_back(Action::Completed { request, outcome });
    }

    fn all_ended(&self, ended: Vec<(u64, Outcome)>, cx: &mut PeerContext<'_>) {
        ended.into_iter().for_each(|(number, outcome)| self.ended(number, outcome, cx));
    }

    /// Returns the time of the next timer.
    pub fn next_timer(&self, config: &Config) -> Time {
        let session = match self.session {
            Session::Greeting(greeted) => greeted + config.hello_interval,
            Session::Joined => (self.last_sent + config.heartbeat_interval)
                .min(self.last_received + config.silence_timeout),
            Session::Away | Session::Refused => Time::NEVER,
        };
        session.min(self.outgoing.next_timer())
    }

    pub fn tick(&mut self, cx: &mut PeerContext<'_>) {
        let mut ended = Vec::new();
        self.outgoing.due(cx.now, cx.in_flight, &mut ended);
        self.all_ended(ended, cx);
        let due = |from: Time, every: Duration| from + every <= cx.now;
        match self.session {
            Session::Greeting(greeted) if due(greeted, cx.config.hello_interval) => self.greet(cx),
            Session::Joined if due(self.last_received, cx.config.silence_timeout) => {
                self.leave(DisconnectReason::Silent, cx);
                self.greet(cx);
            }
            Session::Joined if due(self.last_sent, cx.config.heartbeat_interval) => {
                // Set now, so that one heartbeat is queued even if the transport is slow to take
                // it.
                self.last_sent = cx.now;
                if self.control.is_empty() && self.returned.is_empty() {
                    self.control
                        .push_back(wire::heartbeat(cx.config.identity.incarnation, self.known()));
                }
            }
            _ => {}
        }
    }
}

fn fits(own: &Identity, hello: &Hello) -> Result<(), Refusal> {
    if hello.version != wire::VERSION {
        return Err(Refusal::Version { ours: wire::VERSION, theirs: hello.version });
    }
    if hello.run != own.run {
        return Err(Refusal::Run { ours: own.run, theirs: hello.run });
    }
    if hello.configuration != own.configuration {
        let (ours, theirs) = (own.configuration, hello.configuration);
        return Err(Refusal::Configuration { ours, theirs });
    }
    if hello.window.requests == 0 || hello.window.bytes == 0 {
        return Err(Refusal::Violation("its window is empty".to_owned()));
    }
    Ok(())
}
