//! Event loop of the simulation: what each event does to nodes, links and frames.

use std::fmt;

use super::coverage::{Fate, State};
use super::event_queue::SimEvent;
use super::network::FrameInFlight;
use super::program::{NodeStart, SimHost};
use super::trace;
use super::world::{RunningNode, World};
use crate::frame::Frame;
use crate::rpc::{Context, Endpoint, Event, MessageKind, Program, Session};
use crate::time::Time;
use crate::transport::{DisconnectReason, NodeId, SendError};

/// Maximum number of events at one instant, to which [`MAX_AT_ONCE_PER_LINK`] is added per link.
const MAX_AT_ONCE: u64 = 1_000_000;
const MAX_AT_ONCE_PER_LINK: u64 = 100;

impl<P: Program> World<P> {
    /// Executes the next event. Returns its time, or `None` if there is none.
    pub fn step(&mut self) -> Option<Time> {
        let (time, event) = self.events.pop()?;
        self.advance_to(time);
        self.steps += 1;
        self.pace();
        match event {
            SimEvent::Arrival(in_flight) => self.arrive(in_flight),
            SimEvent::Writable { from, to, epoch } => {
                if self.direction(from, to).known_epoch == Some(epoch) {
                    self.deliver(from, Event::Writable { peer: to });
                }
            }
            SimEvent::Notice { at, of, epoch } => {
                if self.direction(at, of).known_epoch == Some(epoch) {
                    self.deliver_down(at, of);
                }
            }
            SimEvent::Mend { a, b, serial } => {
                if self.link(a, b).serial == serial {
                    self.mend(a, b);
                }
            }
            SimEvent::Unsilence { from, to, serial } => {
                if self.direction(from, to).serial == serial {
                    self.unsilence(from, to);
                }
            }
            SimEvent::Start { id, generation } => {
                let node = &self.nodes[&id];
                if node.running.is_none() && node.last == generation {
                    self.start(id);
                }
            }
            SimEvent::Tick { id, generation } => self.tick(id, generation),
            SimEvent::Timer { id, generation, timer } => {
                if self.generation_of(id) == generation {
                    self.trace.add(self.now, id, [11, timer], || format!("timer {timer}"));
                    self.with(id, |program, cx| program.timer(timer, cx));
                }
            }
            SimEvent::Fault { fault, serial } => self.fail(fault, serial),
        }
        Some(time)
    }

    /// Advances the time to `time`, if that is later.
    pub(super) fn advance_to(&mut self, time: Time) {
        if time > self.now {
            (self.now, self.at_once) = (time, 0);
        }
    }

    /// Counts the events of one instant.
    fn pace(&mut self) {
        self.at_once += 1;
        let most = MAX_AT_ONCE + MAX_AT_ONCE_PER_LINK * self.links.len() as u64;
        assert!(
            self.at_once < most,
            "events at {} do not end: a timer of zero, or a request that is repeated at once",
            self.now
        );
    }

    /// Returns the number of the start of a node among all starts; 0 if it does not run.
    pub(super) fn generation_of(&self, id: NodeId) -> u64 {
        let node = &self.nodes[&id];
        if node.running.is_some() { node.last } else { 0 }
    }

    pub(super) fn start(&mut self, id: NodeId) {
        self.starts += 1;
        let start = NodeStart { id, incarnation: self.starts, now: self.now };
        let node = self.nodes.get_mut(&id).expect("the node was added");
        let (config, program) = (node.make)(&start);
        self.trace.add(self.now, id, [12, config.identity.incarnation], || {
            format!("started as incarnation {}", config.identity.incarnation)
        });
        let endpoint = Endpoint::new(config);
        (node.last, node.running) =
            (self.starts, Some(RunningNode { endpoint, program, tick: Time::NEVER }));
        self.with(id, |program, cx| program.start(cx));
        for peer in self.peers(id) {
            self.update_link(id, peer);
        }
    }

    /// Brings a link up if it is not cut and both nodes run, and down otherwise.
    pub(super) fn update_link(&mut self, a: NodeId, b: NodeId) {
        let (a, b) = (a.min(b), a.max(b));
        let generations = [self.generation_of(a), self.generation_of(b)];
        let now = self.now;
        let link = self.link(a, b);
        let up = !link.cut && generations.iter().all(|&generation| generation > 0);
        if up == link.up {
            return;
        }
        link.up = up;
        link.epoch += 1;
        link.directions.iter_mut().for_each(|direction| direction.renew());
        let (epoch, notices) =
            (link.epoch, [0, 1].map(|place| link.directions[place].network.detection_delay));
        if !up {
            for ((at, of), detection_delay) in [(a, b), (b, a)].into_iter().zip(notices) {
                if let Some(epoch) = self.direction(at, of).known_epoch {
                    let when = now + self.fault_rng.up_to(detection_delay);
                    self.events.add(when, SimEvent::Notice { at, of, epoch });
                }
            }
            return;
        }
        link.generations = generations;
        for (at, of) in [(a, b), (b, a)] {
            // The node has not received `Down` yet.
            if self.direction(at, of).known_epoch.is_some() {
                self.deliver_down(at, of);
            }
        }
        for (at, of) in [(a, b), (b, a)] {
            self.direction(at, of).known_epoch = Some(epoch);
            self.trace.add(now, at, [13, u64::from(of.0)], || format!("{of} is up"));
            self.run_program(at, |program, cx| program.connected(of, cx));
            self.deliver(at, Event::Up { peer: of });
        }
    }

    fn deliver_down(&mut self, at: NodeId, of: NodeId) {
        self.direction(at, of).known_epoch = None;
        self.trace.add(self.now, at, [14, u64::from(of.0)], || format!("{of} is down"));
        let reason = DisconnectReason::Broken("the link is gone".to_owned());
        self.run_program(at, |program, cx| program.disconnected(of, &reason, cx));
        self.deliver(at, Event::Down { peer: of, reason });
    }

    fn deliver(&mut self, id: NodeId, event: Event) {
        let now = self.now;
        if let Some(running) = &mut self.nodes.get_mut(&id).expect("the node was added").running {
            running.endpoint.handle(event, now);
            self.drain(id);
        }
    }

    fn tick(&mut self, id: NodeId, generation: u64) {
        let now = self.now;
        if self.generation_of(id) != generation {
            return;
        }
        let running = self.nodes.get_mut(&id).and_then(|node| node.running.as_mut());
        // An earlier tick may have been scheduled since, and has already done the work of this one.
        let Some(running) = running.filter(|running| running.tick <= now) else { return };
        running.tick = Time::NEVER;
        if running.endpoint.next_timer() <= now {
            running.endpoint.handle(Event::Tick, now);
        }
        self.drain(id);
    }

    pub(super) fn run_program<R>(
        &mut self,
        id: NodeId,
        act: impl FnOnce(&mut P, &mut Context<'_>) -> R,
    ) -> Option<R> {
        let node = self.nodes.get_mut(&id).unwrap_or_else(|| panic!("there is no {id}"));
        let running = node.running.as_mut()?;
        let mut host = SimHost {
            id,
            now: self.now,
            generation: node.last,
            events: &mut self.events,
            trace: &mut self.trace,
        };
        let mut cx = Context::new(id, self.now, &mut running.endpoint, &mut node.rng, &mut host);
        Some(act(&mut running.program, &mut cx))
    }

    /// Passes the actions and frames of an endpoint on until there is none.
    pub(super) fn drain(&mut self, id: NodeId) {
        let now = self.now;
        loop {
            let node = self.nodes.get_mut(&id).expect("the node was added");
            let Some(running) = &mut node.running else { return };
            if let Some(action) = running.endpoint.poll() {
                self.pace();
                self.trace.action(now, id, &action);
                self.run_program(id, |program, cx| program.act(action, cx));
            } else if let Some((to, frame)) = running.endpoint.transmit(now) {
                self.send(id, to, frame);
            } else {
                let next = running.endpoint.next_timer().max(now);
                if next < running.tick {
                    running.tick = next;
                    self.events.add(next, SimEvent::Tick { id, generation: node.last });
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
        let link = link.expect("frames are sent only after `Up`");
        let (generations, direction) = (link.generations, &mut link.directions[place]);
        let epoch = direction.known_epoch.expect("frames are sent only after `Up`");
        let taken = direction.take(frame.len(), now, network, &mut self.frame_rng);
        let writable = direction.writable_at(now);
        let content = trace::of_bytes(&frame);
        let kind = MessageKind::of(&frame);
        let words = [15, u64::from(to.0), content, u64::from(taken.is_err())];
        self.trace.add(now, from, words, || match &taken {
            Ok(_) => format!("sends {to} {}", FrameText(kind, &frame)),
            Err(error) => format!("cannot send {to} {}: {error}", FrameText(kind, &frame)),
        });
        match taken {
            Ok((first, second)) => {
                let generations = [generations[place], generations[1 - place]];
                for (fate, arrives) in [first].into_iter().chain(second) {
                    let frame = frame.clone();
                    let in_flight = FrameInFlight { from, to, frame, epoch, generations, fate };
                    self.events.add(arrives, SimEvent::Arrival(in_flight));
                }
            }
            Err(error) => {
                if error == SendError::Full {
                    self.show_full(from, to, &frame);
                    self.count(&frame, Fate::Full, self.state(to, from));
                    self.events.add(writable, SimEvent::Writable { from, to, epoch });
                }
                let node = self.nodes.get_mut(&from).expect("the node has sent the frame");
                let running = node.running.as_mut().expect("the node has sent the frame");
                running.endpoint.unsent(to, frame, error, now);
            }
        }
    }

    fn arrive(&mut self, in_flight: FrameInFlight) {
        if let Some(longer) = self.hold(&in_flight) {
            self.events.add(self.now + longer, SimEvent::Arrival(in_flight));
            return;
        }
        let FrameInFlight { from, to, frame, .. } = &in_flight;
        let (from, to) = (*from, *to);
        let state = self.state(to, from);
        let fate = self.fate(&in_flight);
        self.show(&in_flight, fate);
        self.count(frame, fate, state);
        let words = [16, u64::from(from.0), fate as u64, state as u64];
        self.trace.add(self.now, to, words, || {
            format!("of {from} {}: {fate:?}, {state:?}", FrameText(MessageKind::of(frame), frame))
        });
        if fate.arrives() {
            let direction = self.direction(from, to);
            direction.newest = direction.newest.max(in_flight.fate.number);
            let frame = match &mut self.rewrite {
                Some(rewrite) => rewrite(from, to, in_flight.frame),
                None => in_flight.frame,
            };
            self.deliver(to, Event::Frame { peer: from, frame });
        }
    }

    fn fate(&mut self, in_flight: &FrameInFlight) -> Fate {
        let &FrameInFlight { from, to, epoch, generations, fate, .. } = in_flight;
        let now = [from, to].map(|id| self.generation_of(id));
        let link = self.link(from, to);
        let (up, current) = (link.up, link.epoch == epoch);
        let direction = &link.directions[usize::from(from > to)];
        if fate.lost {
            Fate::Lost
        } else if fate.silenced || direction.silent {
            Fate::Silenced
        } else if current && fate.copy {
            Fate::Doubled
        } else if current && fate.number < direction.newest {
            Fate::Overtaken
        } else if current {
            Fate::Arrived
        } else if up && fate.late {
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

    /// Returns the state of the session of a node with a peer.
    fn state(&self, at: NodeId, with: NodeId) -> State {
        let Some(running) = &self.nodes[&at].running else { return State::Gone };
        match running.endpoint.session(with) {
            Session::Away => State::Away,
            Session::Greeting(_) => State::Greeting,
            Session::Joined => State::Joined,
            Session::Refused => State::Refused,
        }
    }
}

/// Text of a frame in a trace.
struct FrameText<'a>(Option<MessageKind>, &'a Frame);

impl fmt::Display for FrameText<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(kind) => write!(f, "a {kind:?} of {} bytes", self.1.len()),
            None => write!(f, "{} bytes", self.1.len()),
        }
    }
}
