//! The thread of a node.

use std::collections::HashMap;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use crossbeam_channel::Receiver;

use super::joint::Joint;
use super::pending::Promise;
use super::{Asked, Command, Failed, Gathered, Handle, Member, Service, Shared};
use crate::frame::Frame;
use crate::rpc::{
    Action, CollectiveError, Config, Endpoint, Event, MessageBuf, OperationId, Outcome, RequestId,
};
use crate::time::Time;
use crate::transport::{Arrival, ReceiveError, Transport, Wait};

/// Arrivals that are seen to before what they led to is sent.
const AT_ONCE: usize = 64;

pub(super) struct Driver {
    transport: Box<dyn Transport>,
    endpoint: Endpoint,
    service: Box<dyn Service>,
    shared: Arc<Shared>,
    commands: Receiver<Command>,
    requests: HashMap<RequestId, Promise<Outcome>>,
    operations: HashMap<OperationId, Promise<Gathered>>,
    joint: Joint,
    max_content_len: u64,
    /// Until when what is open may end.
    closing: Option<Instant>,
}

impl Driver {
    pub fn new(
        transport: Box<dyn Transport>,
        config: Config,
        service: Box<dyn Service>,
        shared: Arc<Shared>,
        commands: Receiver<Command>,
    ) -> Self {
        let (requests, operations, joint) = Default::default();
        let max_content_len = config.max_content_len;
        Self {
            transport,
            endpoint: Endpoint::new(config),
            service,
            shared,
            commands,
            requests,
            operations,
            joint,
            max_content_len,
            closing: None,
        }
    }

    pub fn run(mut self) -> Result<(), Failed> {
        let _ = self.shared.driver.set(thread::current().id());
        self.service.started(&Handle { shared: Arc::clone(&self.shared) });
        loop {
            self.see_to_commands();
            self.transmit();
            if let Some(until) = self.closing
                && (Instant::now() >= until || self.is_idle())
            {
                self.close(until);
                return Ok(());
            }
            self.top_up();
            let wait = self.wait();
            if !self.receive(wait)? {
                return Ok(());
            }
            let now = self.now();
            self.joint.due(&mut *self.transport, now);
            if now >= self.endpoint.next_timer() {
                self.endpoint.handle(Event::Tick, now);
                self.act();
            }
        }
    }

    fn is_idle(&self) -> bool {
        self.endpoint.is_idle() && self.joint.is_idle()
    }

    fn now(&self) -> Time {
        self.shared.at(Instant::now())
    }

    fn see_to_commands(&mut self) {
        while let Ok(command) = self.commands.try_recv() {
            let now = self.now();
            match command {
                Command::Request { to, kind, message, deadline, mut promise } => {
                    if self.closing.is_some() {
                        continue;
                    }
                    let made = self.endpoint.request(to, kind, message, deadline);
                    let request = made.expect("no more have a slot than the endpoint takes");
                    // Nobody has set it before.
                    let _ = promise.place.request.set(request);
                    promise.handed = true;
                    self.requests.insert(request, promise);
                }
                Command::Cancel(place) => {
                    if let Some(&request) = place.request.get() {
                        self.endpoint.cancel(request, now);
                    }
                }
                Command::Answer { reply_to, done, message, spent } => {
                    if done {
                        self.endpoint.reply(reply_to, message, now);
                    } else {
                        self.endpoint.reject(reply_to, message, now);
                    }
                    self.transport.release(spent);
                }
                Command::Begin { group, collective, deadline, promise } => {
                    if self.closing.is_some() {
                        continue;
                    }
                    let (transport, longest) = (&mut *self.transport, self.max_content_len);
                    let work = (&group, collective);
                    let left = self.joint.begin(transport, work, longest, deadline, promise);
                    let Some((collective, mut promise)) = left else { continue };
                    match self.endpoint.begin(&group, collective, deadline, now) {
                        Ok(operation) => {
                            promise.handed = true;
                            self.operations.insert(operation, promise);
                        }
                        Err(error) => promise.end(Err(CollectiveError::Begin(error))),
                    }
                }
                Command::Close { patience } => {
                    // One that is too long for any clock is long all the same.
                    let now = Instant::now();
                    let longest = Duration::from_secs(1 << 30);
                    self.closing = Some(now + patience.min(longest));
                }
            }
            self.act();
        }
    }

    /// Tells the program and those who wait what has come of it.
    fn act(&mut self) {
        // First, so that who makes the next request finds the room of this one.
        self.recycle();
        while let Some(action) = self.endpoint.poll() {
            match action {
                Action::Request { reply_to, kind, body } => {
                    if self.closing.is_some() {
                        let words = MessageBuf::from(&b"this node is closing"[..]);
                        let now = self.now();
                        self.endpoint.reject(reply_to, words, now);
                    } else {
                        let node = Arc::clone(&self.shared);
                        self.service.asked(Asked::new(reply_to, kind, body, node));
                    }
                }
                Action::Completed { request, outcome } => {
                    if let Some(promise) = self.requests.remove(&request) {
                        promise.end(outcome);
                    }
                }
                Action::CollectiveDone { operation, result } => {
                    if let Some(promise) = self.operations.remove(&operation) {
                        promise.end(result);
                    }
                }
                Action::Joined { peer, role, incarnation, restarted } => {
                    self.shared.members.set(peer, Member::Joined { role, incarnation });
                    self.service.joined(peer, role, incarnation, restarted);
                }
                Action::Left { peer, reason: why } => {
                    self.service.left(peer, &why);
                    self.shared.members.set(peer, Member::Away(why));
                }
                Action::Refused { peer, reason: why } => {
                    self.service.refused(peer, &why);
                    self.shared.members.set(peer, Member::Refused(why));
                }
                // Who makes requests waits for slots.
                Action::Ready { .. } => {}
            }
        }
    }

    /// Gives back what the endpoint needs no more, to this node's own drafts first.
    fn recycle(&mut self) {
        while let Some(frame) = self.endpoint.spent() {
            if self.shared.rooms.takes(1) {
                self.shared.rooms.release(frame);
            } else {
                self.transport.release(frame);
            }
        }
    }

    fn transmit(&mut self) {
        let now = self.now();
        while let Some((to, frame)) = self.endpoint.transmit(now) {
            if let Err(unsent) = self.transport.send(to, frame) {
                self.endpoint.unsent(to, unsent.frame, unsent.error, now);
            }
        }
        self.act();
    }

    /// Keeps room at hand for drafts of other threads.
    fn top_up(&mut self) {
        while self.shared.rooms.takes(1) {
            let room = self.transport.take_buffer();
            if room.capacity() == 0 {
                break;
            }
            if let Err(room) = self.shared.rooms.keep(room) {
                self.transport.release(Frame::from(room));
                break;
            }
        }
    }

    fn wait(&self) -> Wait {
        if !self.commands.is_empty() {
            return Wait::No;
        }
        let until = self.closing.map_or(Time::NEVER, |until| self.shared.at(until));
        match self.endpoint.next_timer().min(self.joint.next_timer()).min(until) {
            Time::NEVER => Wait::Forever,
            time => Wait::For(time.since(self.now())),
        }
    }

    /// Takes what has come; whether the transport is there yet.
    fn receive(&mut self, mut wait: Wait) -> Result<bool, Failed> {
        for _ in 0..AT_ONCE {
            let arrival = match self.transport.receive(wait) {
                Ok(Some(arrival)) => arrival,
                Ok(None) => break,
                Err(ReceiveError::Closed) => return Ok(false),
                Err(ReceiveError::Failed(why)) => return Err(Failed::Transport(why)),
            };
            wait = Wait::No;
            let event = match arrival {
                Arrival::Up { peer } => Event::Up { peer },
                Arrival::Frame { peer, frame } => Event::Frame { peer, frame },
                Arrival::Writable { peer } => Event::Writable { peer },
                Arrival::Down { peer, reason } => {
                    // It may come again as one that fits.
                    self.shared.members.forget_refusal(peer, &reason);
                    Event::Down { peer, reason }
                }
                Arrival::Together { operation, result } => {
                    self.joint.end(operation, result);
                    continue;
                }
                Arrival::Woken => continue,
            };
            let now = self.now();
            self.endpoint.handle(event, now);
            self.act();
        }
        Ok(true)
    }

    fn close(&mut self, until: Instant) {
        let now = self.now();
        self.endpoint.close(now);
        self.act();
        self.transport.close(until.saturating_duration_since(Instant::now()));
    }
}
