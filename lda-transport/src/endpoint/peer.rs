//! One peer: whether it is there, who it is, and what goes to and fro.

use std::collections::VecDeque;
use std::time::Duration;

use super::draft::Draft;
use super::incoming::{Incoming, Taken};
use super::outgoing::{Budget, Next, Outgoing, SPAN};
use super::wire::{self, Head, Hello, Kind, Message, Refusal, Status};
use super::{Action, Config, Context, Identity, Left, Outcome, RequestId, Ticket, Why, Window};
use crate::frame::Frame;
use crate::time::Time;
use crate::transport::{Loss, NodeId};

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
    reborn: bool,
    pub outgoing: Outgoing,
    incoming: Incoming,
    /// What the transport gave back.
    returned: Option<Frame>,
    /// Greetings, refusals, beats.
    control: VecDeque<Frame>,
    replies: VecDeque<Frame>,
    heard: Time,
    spoken: Time,
    /// Set by the endpoint: when it has something to do, and whether its turn to send will come.
    pub timer: Time,
    pub in_turn: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Session {
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
            reborn: false,
            outgoing: Outgoing::default(),
            incoming: Incoming::default(),
            returned: None,
            control: VecDeque::new(),
            replies: VecDeque::new(),
            heard: Time::ZERO,
            spoken: Time::ZERO,
            timer: Time::NEVER,
            in_turn: false,
        }
    }

    pub fn is_joined(&self) -> bool {
        self.session == Session::Joined
    }

    fn known(&self) -> u64 {
        self.remote.map_or(0, |remote| remote.incarnation)
    }

    pub fn up(&mut self, cx: &mut Context<'_>) {
        self.up = true;
        self.greet(cx);
    }

    fn greet(&mut self, cx: &Context<'_>) {
        self.session = Session::Greeting(cx.now);
        self.say_hello(cx);
    }

    fn say_hello(&mut self, cx: &Context<'_>) {
        let Config { identity, window, .. } = cx.config;
        // One that waits is as good.
        if self.control.len() < 2 {
            self.control.push_back(wire::hello(identity, *window, self.known()));
        }
    }

    pub fn down(&mut self, loss: Loss, cx: &mut Context<'_>) {
        self.leave(Left::Lost(loss), cx);
        self.up = false;
        self.session = Session::Away;
    }

    /// Forgets what was to be sent; requests are kept, to be sent again.
    fn leave(&mut self, why: Left, cx: &mut Context<'_>) {
        if self.is_joined() {
            cx.actions.push_back(Action::Left { peer: self.id, why });
        }
        self.blocked = false;
        self.returned = None;
        self.control.clear();
        self.replies.clear();
        self.outgoing.interrupt(cx.in_flight);
    }

    pub fn room(&mut self) {
        self.blocked = false;
    }

    pub fn unsent(&mut self, frame: Frame) {
        // Lost meanwhile, it has been seen to.
        if self.up {
            self.blocked = true;
            self.returned = Some(frame);
        }
    }

    pub fn may_transmit(&self) -> bool {
        let joined = self.remote.filter(|_| self.is_joined());
        let requests = joined.is_some_and(|remote| self.outgoing.has_next(remote.window));
        let rest = self.returned.is_some() || !self.control.is_empty() || !self.replies.is_empty();
        self.up && !self.blocked && (rest || requests)
    }

    pub fn transmit(&mut self, cx: &mut Context<'_>) -> Option<Frame> {
        if !self.may_transmit() {
            return None;
        }
        let ready = self.returned.take().or_else(|| self.control.pop_front());
        let ready = ready.or_else(|| self.replies.pop_front());
        let frame = ready.or_else(|| self.next_request(cx))?;
        self.spoken = cx.now;
        Some(frame)
    }

    fn next_request(&mut self, cx: &mut Context<'_>) -> Option<Frame> {
        let remote = self.remote.filter(|_| self.is_joined())?;
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

    pub fn frame(&mut self, frame: &Frame, cx: &mut Context<'_>) {
        match wire::decode(frame) {
            Ok(message) => self.message(message, cx),
            Err(error) => self.refuse(Refusal::Violation(error.0), cx),
        }
    }

    fn message(&mut self, message: Message, cx: &mut Context<'_>) {
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
            Message::Beat { from, to } => {
                self.hears(from, to, cx);
            }
        }
    }

    /// Whether what comes after the greetings is of the peer as it is known, and for this node. A peer that
    /// speaks so has joined.
    fn hears(&mut self, from: u64, to: u64, cx: &mut Context<'_>) -> bool {
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

    fn hello(&mut self, from: u64, to: u64, hello: &Hello, cx: &mut Context<'_>) {
        let late = from < self.known();
        if !self.up || late || self.session == Session::Refused && from == self.known() {
            *cx.strays += 1;
            return;
        }
        if let Err(refusal) = fits(&cx.config.identity, hello) {
            self.meet(from, hello, cx);
            return self.refuse(refusal, cx);
        }
        let own = cx.config.identity.incarnation;
        let was_joined = self.is_joined() && from == self.known();
        if from != self.known() {
            self.meet(from, hello, cx);
        }
        self.heard = cx.now;
        if to == own {
            self.join(cx);
        }
        if to != own || !was_joined {
            self.say_hello(cx);
        }
    }

    /// Takes note of who the peer is now.
    fn meet(&mut self, from: u64, hello: &Hello, cx: &mut Context<'_>) {
        let Hello { role, window, .. } = *hello;
        if from != self.known() {
            if self.is_joined() {
                self.leave(Left::Lost(Loss::Broken("it has started anew".to_owned())), cx);
            }
            if self.remote.is_some() {
                self.reborn = true;
                let mut ended = Vec::new();
                self.outgoing.interrupt(cx.in_flight);
                self.outgoing.reincarnate(cx.in_flight, &mut ended);
                self.all_ended(ended, cx);
                self.replies.clear();
            }
            self.incoming = Incoming::default();
            self.session = Session::Greeting(cx.now);
        }
        self.remote = Some(Remote { incarnation: from, role, window });
    }

    fn join(&mut self, cx: &mut Context<'_>) {
        if !self.is_joined() {
            let Some(remote) = self.remote else { return };
            self.session = Session::Joined;
            let Remote { incarnation, role, .. } = remote;
            let reborn = std::mem::take(&mut self.reborn);
            cx.actions.push_back(Action::Joined { peer: self.id, role, incarnation, reborn });
        }
    }

    fn asked(&mut self, kind: Kind, id: u64, floor: u64, body: Frame, cx: &mut Context<'_>) {
        match self.incoming.take(kind, id, floor, cx.config.window) {
            Taken::New => {
                let ticket = Ticket { peer: self.id, incarnation: self.known(), number: id };
                cx.actions.push_back(Action::Asked { ticket, kind, body });
            }
            // One who asks again and again and takes no reply gets no more of them.
            Taken::Replied(frame) if self.replies.len() < self.most_replies(cx) => {
                self.replies.push_back(frame);
            }
            Taken::Replied(_) | Taken::Known => *cx.strays += 1,
            Taken::Beyond => {
                let reason = format!("request {id} goes beyond its window");
                self.refuse(Refusal::Violation(reason), cx);
            }
        }
    }

    fn most_replies(&self, cx: &Context<'_>) -> usize {
        2 * SPAN as usize * cx.config.window.requests as usize
    }

    pub fn answer(
        &mut self,
        ticket: Ticket,
        status: Status,
        draft: Draft,
        cx: &mut Context<'_>,
    ) -> bool {
        if ticket.incarnation != self.known() {
            return false;
        }
        let (from, to) = (cx.config.identity.incarnation, ticket.incarnation);
        let frame = draft.into_frame(&Head { from, to, id: ticket.number, ..wire::reply(status) });
        let awaited = self.incoming.reply(ticket.number, &frame);
        // To one who is away it is sent when he asks again.
        if awaited && self.is_joined() {
            self.replies.push_back(frame);
        }
        awaited
    }

    pub fn cancel(&mut self, number: u64, cx: &mut Context<'_>) {
        if let Some(outcome) = self.outgoing.give_up(number, Why::Cancelled, cx.in_flight) {
            self.ended(number, outcome, cx);
        }
    }

    fn refuse(&mut self, why: Refusal, cx: &mut Context<'_>) {
        if self.session != Session::Refused {
            let own = cx.config.identity.incarnation;
            self.end(why.clone(), cx);
            self.control.push_back(wire::refusal(own, self.known(), &why));
        }
    }

    fn end(&mut self, why: Refusal, cx: &mut Context<'_>) {
        if self.session == Session::Refused {
            return;
        }
        self.returned = None;
        self.control.clear();
        self.replies.clear();
        self.session = Session::Refused;
        cx.actions.push_back(Action::Refused { peer: self.id, why });
        let mut ended = Vec::new();
        self.outgoing.abandon(Why::Refused, cx.in_flight, &mut ended);
        self.all_ended(ended, cx);
    }

    fn ended(&self, number: u64, outcome: Outcome, cx: &mut Context<'_>) {
        let request = RequestId { peer: self.id, number };
        cx.actions.push_back(Action::Ended { request, outcome });
    }

    fn all_ended(&self, ended: Vec<(u64, Outcome)>, cx: &mut Context<'_>) {
        ended.into_iter().for_each(|(number, outcome)| self.ended(number, outcome, cx));
    }

    /// When something has to be done if nothing happens.
    pub fn next_timer(&self, config: &Config) -> Time {
        let session = match self.session {
            Session::Greeting(greeted) => greeted + config.greet_every,
            Session::Joined => (self.spoken + config.beat_every).min(self.heard + config.silence),
            Session::Away | Session::Refused => Time::NEVER,
        };
        session.min(self.outgoing.next_timer())
    }

    pub fn tick(&mut self, cx: &mut Context<'_>) {
        let mut ended = Vec::new();
        self.outgoing.due(cx.now, cx.in_flight, &mut ended);
        self.all_ended(ended, cx);
        let due = |from: Time, every: Duration| from + every <= cx.now;
        match self.session {
            Session::Greeting(greeted) if due(greeted, cx.config.greet_every) => self.greet(cx),
            Session::Joined if due(self.heard, cx.config.silence) => {
                self.leave(Left::Silent, cx);
                self.greet(cx);
            }
            Session::Joined if due(self.spoken, cx.config.beat_every) => {
                // Said once, though the transport may be slow to take it.
                self.spoken = cx.now;
                if self.control.is_empty() && self.returned.is_none() {
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
