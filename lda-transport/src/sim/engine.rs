//! How things happen.

use std::fmt;

use super::coverage::{Fate, State};
use super::event_queue::SimEvent;
use super::network::FrameInFlight;
use super::program::{NodeStart, SimHost};
use super::trace;
use super::world::{Life, World};
use crate::frame::Frame;
use crate::rpc::{Context, Endpoint, Event, MessageKind, Program, Session};
use crate::time::Time;
use crate::transport::{DisconnectReason, NodeId, SendError};

/// What may happen at one instant, and how much more for each link.
const MOST_AT_ONCE: u64 = 1_000_000;
const MOST_AT_ONCE_A_LINK: u64 = 100;

impl<P: Program> World<P> {
    /// Has the next thing happen, if there is one; when that was.
    pub fn step(&mut self) -> Option<Time> {
        let (time, event) = self.events.pop()?;
        self.go_on(time);
        self.steps += 1;
        self.pace();
        match event {
            SimEvent::Arrival(transit) => self.arrive(transit),
            SimEvent::Writable { from, to, epoch } => {
                if self.way(from, to).told == Some(epoch) {
                    self.tell(from, Event::Writable { peer: to });
                }
            }
            SimEvent::Notice { at, of, epoch } => {
                if self.way(at, of).told == Some(epoch) {
                    self.tell_down(at, of);
                }
            }
            SimEvent::Mend { a, b, serial } => {
                if self.link(a, b).serial == serial {
                    self.mend(a, b);
                }
            }
            SimEvent::Unsilence { from, to, serial } => {
                if self.way(from, to).serial == serial {
                    self.unsilence(from, to);
                }
            }
            SimEvent::Start { id, life } => {
                let node = &self.nodes[&id];
                if node.life.is_none() && node.last == life {
                    self.start(id);
                }
            }
            SimEvent::Tick { id, life } => self.tick(id, life),
            SimEvent::Timer { id, life, timer } => {
                if self.life_of(id) == life {
                    self.trace.add(self.now, id, [11, timer], || format!("timer {timer}"));
                    self.with(id, |program, cx| program.timer(timer, cx));
                }
            }
            SimEvent::Fault { fault, serial } => self.fail(fault, serial),
        }
        Some(time)
    }

    /// Has it be `time`, if that is later.
    pub(super) fn go_on(&mut self, time: Time) {
        if time > self.now {
            (self.now, self.at_once) = (time, 0);
        }
    }

    /// Counts what happens at one instant.
    fn pace(&mut self) {
        self.at_once += 1;
        let most = MOST_AT_ONCE + MOST_AT_ONCE_A_LINK * self.links.len() as u64;
        assert!(self.at_once < most, "at {} things go round in circles", self.now);
    }

    /// Which start of all a node's was; 0 if it does not run.
    pub(super) fn life_of(&self, id: NodeId) -> u64 {
        let node = &self.nodes[&id];
        if node.life.is_some() { node.last } else { 0 }
    }

    pub(super) fn start(&mut self, id: NodeId) {
        self.starts += 1;
        let birth = NodeStart { id, incarnation: self.starts, now: self.now };
        let node = self.nodes.get_mut(&id).expect("it was added");
        let (config, program) = (node.make)(&birth);
        self.trace.add(self.now, id, [12, config.identity.incarnation], || {
            format!("started as incarnation {}", config.identity.incarnation)
        });
        let endpoint = Endpoint::new(config);
        (node.last, node.life) = (self.starts, Some(Life { endpoint, program, tick: Time::NEVER }));
        self.with(id, |program, cx| program.start(cx));
        for peer in self.peers(id) {
            self.settle(id, peer);
        }
    }

    /// Has a link be up if it is not cut and both nodes run, and else not.
    pub(super) fn settle(&mut self, a: NodeId, b: NodeId) {
        let (a, b) = (a.min(b), a.max(b));
        let generations = [self.life_of(a), self.life_of(b)];
        let now = self.now;
        let link = self.link(a, b);
        let up = !link.cut && generations.iter().all(|&life| life > 0);
        if up == link.up {
            return;
        }
        link.up = up;
        link.epoch += 1;
        link.ways.iter_mut().for_each(|way| way.renew());
        let (epoch, notices) =
            (link.epoch, [0, 1].map(|place| link.ways[place].network.detection_delay));
        if !up {
            for ((at, of), detection_delay) in [(a, b), (b, a)].into_iter().zip(notices) {
                if let Some(epoch) = self.way(at, of).told {
                    let when = now + self.chances.up_to(detection_delay);
                    self.events.add(when, SimEvent::Notice { at, of, epoch });
                }
            }
            return;
        }
        link.generations = generations;
        for (at, of) in [(a, b), (b, a)] {
            // It has not noticed yet.
            if self.way(at, of).told.is_some() {
                self.tell_down(at, of);
            }
        }
        for (at, of) in [(a, b), (b, a)] {
            self.way(at, of).told = Some(epoch);
            self.trace.add(now, at, [13, u64::from(of.0)], || format!("{of} is up"));
            self.tell(at, Event::Up { peer: of });
        }
    }

    fn tell_down(&mut self, at: NodeId, of: NodeId) {
        self.way(at, of).told = None;
        self.trace.add(self.now, at, [14, u64::from(of.0)], || format!("{of} is down"));
        let reason = DisconnectReason::Broken("the link is gone".to_owned());
        self.tell(at, Event::Down { peer: of, reason });
    }

    fn tell(&mut self, id: NodeId, event: Event) {
        let now = self.now;
        if let Some(life) = &mut self.nodes.get_mut(&id).expect("it was added").life {
            life.endpoint.handle(event, now);
            self.drain(id);
        }
    }

    fn tick(&mut self, id: NodeId, life: u64) {
        let now = self.now;
        if self.life_of(id) != life {
            return;
        }
        let life = self.nodes.get_mut(&id).and_then(|node| node.life.as_mut());
        // Another may have been set, that came earlier.
        let Some(life) = life.filter(|life| life.tick <= now) else { return };
        life.tick = Time::NEVER;
        if life.endpoint.next_timer() <= now {
            life.endpoint.handle(Event::Tick, now);
        }
        self.drain(id);
    }

    pub(super) fn run_program<R>(
        &mut self,
        id: NodeId,
        act: impl FnOnce(&mut P, &mut Context<'_>) -> R,
    ) -> Option<R> {
        let node = self.nodes.get_mut(&id).unwrap_or_else(|| panic!("there is no {id}"));
        let life = node.life.as_mut()?;
        let mut host = SimHost {
            id,
            now: self.now,
            life: node.last,
            events: &mut self.events,
            trace: &mut self.trace,
        };
        let mut cx = Context::new(id, self.now, &mut life.endpoint, &mut node.rng, &mut host);
        Some(act(&mut life.program, &mut cx))
    }

    /// Does what the endpoint of a node says, until it says nothing more.
    pub(super) fn drain(&mut self, id: NodeId) {
        let now = self.now;
        loop {
            let node = self.nodes.get_mut(&id).expect("it was added");
            let Some(life) = &mut node.life else { return };
            if let Some(action) = life.endpoint.poll() {
                self.pace();
                self.trace.action(now, id, &action);
                self.run_program(id, |program, cx| program.act(action, cx));
            } else if let Some((to, frame)) = life.endpoint.transmit(now) {
                self.send(id, to, frame);
            } else {
                let next = life.endpoint.next_timer().max(now);
                if next < life.tick {
                    life.tick = next;
                    self.events.add(next, SimEvent::Tick { id, life: node.last });
                }
                return;
            }
        }
    }

    fn send(&mut self, from: NodeId, to: NodeId, frame: Frame) {
        let now = self.now;
        let place = usize::from(from > to);
        let network = self.announce(from, to, &frame);
        let link = self.links.get_mut(&(from.min(to), from.max(to)));
        let link = link.expect("it was told that this one is up");
        let (generations, way) = (link.generations, &mut link.ways[place]);
        let epoch = way.told.expect("as before");
        let taken = way.take(frame.len(), now, network, &mut self.luck);
        let room = way.room(now);
        let content = trace::of_bytes(&frame);
        let kind = MessageKind::of(&frame);
        let words = [15, u64::from(to.0), content, u64::from(taken.is_err())];
        self.trace.add(now, from, words, || match &taken {
            Ok(_) => format!("sends {to} {}", Told(kind, &frame)),
            Err(error) => format!("cannot send {to} {}: {error}", Told(kind, &frame)),
        });
        match taken {
            Ok((first, second)) => {
                let generations = [generations[place], generations[1 - place]];
                for (course, arrives) in [first].into_iter().chain(second) {
                    let frame = frame.clone();
                    let transit = FrameInFlight { from, to, frame, epoch, generations, course };
                    self.events.add(arrives, SimEvent::Arrival(transit));
                }
            }
            Err(error) => {
                if error == SendError::Full {
                    self.show_full(from, to, &frame);
                    self.count(&frame, Fate::Full, self.state(to, from));
                    self.events.add(room, SimEvent::Writable { from, to, epoch });
                }
                let node = self.nodes.get_mut(&from).expect("it sends");
                let life = node.life.as_mut().expect("as before");
                life.endpoint.unsent(to, frame, error, now);
            }
        }
    }

    fn arrive(&mut self, transit: FrameInFlight) {
        if let Some(longer) = self.hold(&transit) {
            self.events.add(self.now + longer, SimEvent::Arrival(transit));
            return;
        }
        let FrameInFlight { from, to, frame, .. } = &transit;
        let (from, to) = (*from, *to);
        let state = self.state(to, from);
        let fate = self.fate(&transit);
        self.show(&transit, fate);
        self.count(frame, fate, state);
        let words = [16, u64::from(from.0), fate as u64, state as u64];
        self.trace.add(self.now, to, words, || {
            format!("of {from} {}: {fate:?}, {state:?}", Told(MessageKind::of(frame), frame))
        });
        if fate.arrives() {
            let way = self.way(from, to);
            way.newest = way.newest.max(transit.course.number);
            let frame = match &mut self.rewrite {
                Some(rewrite) => rewrite(from, to, transit.frame),
                None => transit.frame,
            };
            self.tell(to, Event::Frame { peer: from, frame });
        }
    }

    fn fate(&mut self, transit: &FrameInFlight) -> Fate {
        let &FrameInFlight { from, to, epoch, generations, course, .. } = transit;
        let now = [from, to].map(|id| self.life_of(id));
        let link = self.link(from, to);
        let (up, current) = (link.up, link.epoch == epoch);
        let way = &link.ways[usize::from(from > to)];
        if course.lost {
            Fate::Lost
        } else if course.silenced || way.silent {
            Fate::Silenced
        } else if current && course.copy {
            Fate::Doubled
        } else if current && course.number < way.newest {
            Fate::Overtaken
        } else if current {
            Fate::Arrived
        } else if up && course.ghost {
            Fate::Late
        } else if now[1] != generations[1] {
            Fate::ReceiverCrashed
        } else if now[0] != generations[0] {
            Fate::SenderCrashed
        } else {
            Fate::Cut
        }
    }

    fn count(&mut self, frame: &Frame, fate: Fate, state: State) {
        if let Some(message) = MessageKind::of(frame) {
            self.coverage.add(message, fate, state);
        }
        let consequence = matches!(
            fate,
            Fate::Silenced | Fate::ReceiverCrashed | Fate::SenderCrashed | Fate::Cut
        );
        self.faults += u64::from(fate != Fate::Arrived && !consequence);
    }

    /// How it stands at a node with a peer.
    fn state(&self, at: NodeId, with: NodeId) -> State {
        let Some(life) = &self.nodes[&at].life else { return State::Gone };
        match life.endpoint.session(with) {
            Session::Away => State::Away,
            Session::Greeting(_) => State::Greeting,
            Session::Joined => State::Joined,
            Session::Refused => State::Refused,
        }
    }
}

/// A frame in a line.
struct Told<'a>(Option<MessageKind>, &'a Frame);

impl fmt::Display for Told<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(kind) => write!(f, "a {kind:?} of {} bytes", self.1.len()),
            None => write!(f, "{} bytes", self.1.len()),
        }
    }
}
