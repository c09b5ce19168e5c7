//! One peer: whether it is there, who it is, and what goes to and fro.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use super::incoming::{Incoming, Taken};
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
    /// Whether the transport has it up.
    up: bool,
    /// Whether the transport was full.
    blocked: bool,
    session: Session,
    /// As it last said of itself.
    remote: Option<Remote>,
    /// Whether it has started anew since it had joined.
    restarted: bool,
    pub outgoing: Outgoing,
    incoming: Incoming,
    /// What the transport gave back.
    returned: VecDeque<Frame>,
    /// Greetings, refusals, beats.
    control: VecDeque<Frame>,
    /// By number, so that there is one a request, and that those nobody waits for can be told.
    replies: BTreeMap<u64, Frame>,
    /// Whether a reply was sent last: neither replies nor requests keep the others waiting.
    replied: bool,
    /// Why and of which incarnation, to be said again to one who has not heard it.
    refused: Option<(u64, Refusal)>,
    /// The largest that has greeted.
    latest: u64,
    heard: Time,
    spoken: Time,
    /// Set by the endpoint: when it has something to do, and whether its turn to send will come.
    pub timer: Time,
    pub in_turn: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Session {
    /// It is not up.
    Away,
    /// Greeted at this time, and it has not answered.
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
            heard: Time::ZERO,
            spoken: Time::ZERO,
            timer: Time::NEVER,
            in_turn: false,
        }
    }

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
        self.say_hello(cx);
    }

    fn say_hello(&mut self, cx: &PeerContext<'_>) {
        let Config { identity, window, .. } = cx.config;
        // One that waits is as good.
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
        // The peer asks again, as this node does.
        self.replies.clear();
    }

    /// Forgets greetings and beats; requests are kept, to be sent again. So are replies, as long as the
    /// transport has the peer up: it may not know that it was thought away, and so not ask again.
    fn leave(&mut self, reason: DisconnectReason, cx: &mut PeerContext<'_>) {
        if self.is_joined() {
            cx.actions.push_back(Action::Left { peer: self.id, reason });
        }
        self.control.clear();
        self.outgoing.interrupt(cx.in_flight);
    }

    pub fn room(&mut self) {
        self.blocked = false;
    }

    pub fn unsent(&mut self, frame: Frame, error: SendError, cx: &mut PeerContext<'_>) {
        match error {
            SendError::Full => {
                self.blocked = true;
                self.returned.push_back(frame);
            }
            SendError::TooLong { .. } => self.too_long(&frame, cx),
            // It goes down, and everything is seen to then.
            _ => {}
        }
    }

    /// A request that can never be sent ends; so does one whose reply cannot be.
    fn too_long(&mut self, frame: &Frame, cx: &mut PeerContext<'_>) {
        match wire::decode(frame) {
            Ok(Message::Request { id, .. }) => {
                if let Some(outcome) =
                    self.outgoing.give_up(id, FailureReason::TooLong, cx.in_flight)
                {
                    // The transport did not take it.
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
                        (Status::Rejected, &b"for a reason longer than the transport takes"[..])
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
        self.spoken = cx.now;
        Some(frame)
    }

    /// A reply and a request in turn.
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
            Err(error) => self.refuse(self.known(), Refusal::Violation(error.0), cx),
        }
    }

    fn message(&mut self, message: Message, cx: &mut PeerContext<'_>) {
        let own = cx.config.identity.incarnation;
        match message {
            Message::Hello { from, to, hello } => self.hello(from, to, &hello, cx),
            Message::Refusal { from, to, words } => {
                // One who does not know this node yet may refuse it all the same.
                if (to == own || to == 0) && from >= self.known() {
                    self.end(Refusal::ByPeer(words), cx);
                }
            }
            Message::Request { from, to, kind, id, floor, body } => {
                if self.hears(from, to, cx) {
                    self.asked(kind, id, floor, body, cx);
                }
            }
            Message::Reply { from, to, status, id, body } => {
                if self.hears(from, to, cx) {
                    match self.outgoing.answered(id, status, body, cx.in_flight) {
                        Some(outcome) => self.ended(id, outcome, cx),
                        None => *cx.strays += 1,
                    }
                }
            }
            Message::Heartbeat { from, to } => {
                self.hears(from, to, cx);
            }
        }
    }

    /// Whether what comes after the greetings is of the peer as it is known, and for this node. A peer that
    /// speaks so has joined.
    fn hears(&mut self, from: u64, to: u64, cx: &mut PeerContext<'_>) -> bool {
        let fits = from == self.known() && to == cx.config.identity.incarnation;
        let greeted = matches!(self.session, Session::Greeting(_) | Session::Joined);
        if !(fits && greeted) {
            *cx.strays += 1;
            return false;
        }
        self.heard = cx.now;
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
            // Late, of a node that is gone, and so heard by nobody; or of one whose clock was set back.
            *cx.strays += 1;
            let reason = Refusal::Violation(format!(
                "its incarnation {from} is smaller than {} before it: set its clock, or count its starts",
                self.latest
            ));
            return self.say_refusal(from, &reason, cx);
        }
        self.latest = from;
        match &self.refused {
            Some((incarnation, reason)) if self.is_refused() && *incarnation == from => {
                *cx.strays += 1;
                let reason = reason.clone();
                return self.say_refusal(from, &reason, cx);
            }
            _ => {}
        }
        if let Err(refusal) = fits(&cx.config.identity, hello) {
            if from != self.known() {
                self.meet(None, cx);
            }
            return self.refuse(from, refusal, cx);
        }
        let was_joined = self.is_joined() && from == self.known();
        if from != self.known() {
            let Hello { role, window, .. } = *hello;
            self.meet(Some(Remote { incarnation: from, role, window }), cx);
        } else if self.is_refused() {
            *cx.strays += 1;
            return;
        }
        self.heard = cx.now;
        if to == own {
            self.join(cx);
        }
        if to != own || !was_joined {
            self.say_hello(cx);
        } else if self.control.is_empty() {
            // It may have thought this node away, and waits for a word.
            self.control.push_back(wire::beat(own, from));
        }
    }

    /// Takes note of who the peer is now: somebody else than before.
    fn meet(&mut self, remote: Option<Remote>, cx: &mut PeerContext<'_>) {
        if self.is_joined() {
            self.leave(DisconnectReason::Broken("it has started anew".to_owned()), cx);
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

    fn asked(
        &mut self,
        kind: RequestKind,
        id: u64,
        floor: u64,
        body: Frame,
        cx: &mut PeerContext<'_>,
    ) {
        // Nobody waits for those below.
        while self.replies.first_key_value().is_some_and(|(&number, _)| number < floor) {
            self.replies.pop_first();
        }
        let (peer, incarnation) = (self.id, self.known());
        let parts = |number| cx.abandoned.push(ReplyHandle { peer, incarnation, number });
        match self.incoming.take(kind, id, floor, cx.config.window, parts) {
            Taken::New => {
                let reply_to = ReplyHandle { peer: self.id, incarnation: self.known(), number: id };
                cx.actions.push_back(Action::Request { reply_to, kind, body });
            }
            Taken::Replied(frame) => drop(self.replies.insert(id, frame)),
            Taken::Known => *cx.strays += 1,
            Taken::Overloaded => {
                let (from, to) = (cx.config.identity.incarnation, self.known());
                let words = MessageBuf::from(&b"too many requests are being done"[..]);
                let head = Head { from, to, id, ..wire::reply(Status::Rejected) };
                let frame = words.into_frame(&head, &mut self.incoming.spent);
                self.incoming.reject(kind, id, &frame);
                self.replies.insert(id, frame);
            }
            Taken::Beyond => {
                let reason = format!("request {id} goes beyond its window");
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
        // To one who is away it is sent when he asks again.
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

    /// Ends all requests to it.
    pub fn abandon(&mut self, reason: FailureReason, cx: &mut PeerContext<'_>) {
        let mut ended = Vec::new();
        self.outgoing.abandon(reason, cx.in_flight, &mut ended);
        self.all_ended(ended, cx);
    }

    /// Gives away what it needs no more.
    pub fn give_spent(&mut self, to: &mut Vec<Frame>) {
        to.append(&mut self.outgoing.spent);
        to.append(&mut self.incoming.spent);
    }

    /// Whether nothing is open to and fro, as far as it can be seen to now.
    pub fn is_idle(&self) -> bool {
        let answered =
            self.replies.is_empty() && self.returned.is_empty() && !self.incoming.is_running();
        self.outgoing.is_empty() && (answered || !self.is_joined())
    }

    fn refuse(&mut self, to: u64, reason: Refusal, cx: &mut PeerContext<'_>) {
        if !self.is_refused() {
            self.refused = Some((to, reason.clone()));
            self.end(reason.clone(), cx);
            self.say_refusal(to, &reason, cx);
        }
    }

    fn say_refusal(&mut self, to: u64, reason: &Refusal, cx: &PeerContext<'_>) {
        // One that waits is as good.
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

    /// When something has to be done if nothing happens.
    pub fn next_timer(&self, config: &Config) -> Time {
        let session = match self.session {
            Session::Greeting(greeted) => greeted + config.hello_interval,
            Session::Joined => {
                (self.spoken + config.heartbeat_interval).min(self.heard + config.silence_timeout)
            }
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
            Session::Joined if due(self.heard, cx.config.silence_timeout) => {
                self.leave(DisconnectReason::Silent, cx);
                self.greet(cx);
            }
            Session::Joined if due(self.spoken, cx.config.heartbeat_interval) => {
                // Said once, though the transport may be slow to take it.
                self.spoken = cx.now;
                if self.control.is_empty() && self.returned.is_empty() {
                    self.control
                        .push_back(wire::beat(cx.config.identity.incarnation, self.known()));
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
