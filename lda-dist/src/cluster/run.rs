//! A role over a transport, on the thread that calls.

use std::time::{Duration, Instant};

use lda_core::counts::TopicIndex;
use lda_transport::endpoint::{Busy, Config, Draft, Endpoint, Event, Kind, RequestId, Ticket};
use lda_transport::{Arrival, NodeId, ReceiveError, Time, Transport, Wait};
use thiserror::Error;

use super::{Documents, Failed, PATIENCE, Port, Role};

/// Arrivals that are seen to before what they led to is sent.
const AT_ONCE: usize = 64;
/// How long to hand on the last replies.
const LAST: Duration = Duration::from_secs(10);

/// Why a node has ended before its time.
#[derive(Clone, Debug, PartialEq, Error)]
#[non_exhaustive]
pub enum RunError {
    /// Its role has given up.
    #[error(transparent)]
    Role(#[from] Failed),
    /// Its transport has.
    #[error(transparent)]
    Transport(#[from] ReceiveError),
}

/// An endpoint at a time.
struct Now<'a> {
    endpoint: &'a mut Endpoint,
    now: Time,
}

impl Port for Now<'_> {
    fn ask(&mut self, peer: NodeId, kind: Kind, draft: Draft) -> Result<RequestId, Busy> {
        self.endpoint.request(peer, kind, draft, self.now + PATIENCE)
    }

    fn reply(&mut self, ticket: Ticket, draft: Draft) {
        self.endpoint.reply(ticket, draft, self.now);
    }

    fn reject(&mut self, ticket: Ticket, draft: Draft) {
        self.endpoint.reject(ticket, draft, self.now);
    }
}

/// Runs a node until the run is finished, and gives its role back: the master's has C_k, a server's rows of words, a
/// worker's the topics of its documents.
///
/// Sampling is done on this thread, between messages. A node on several threads has several shards, and as many nodes.
///
/// # Errors
/// [`RunError`]. The transport is closed then too.
pub fn run<T: TopicIndex, D: Documents>(
    mut role: Role<T, D>,
    transport: &mut dyn Transport,
    config: Config,
) -> Result<Role<T, D>, RunError> {
    let ended = drive(&mut role, transport, config);
    transport.close(LAST);
    ended.map(|()| role)
}

fn drive<T: TopicIndex, D: Documents>(
    role: &mut Role<T, D>,
    transport: &mut dyn Transport,
    config: Config,
) -> Result<(), RunError> {
    let origin = Instant::now();
    let now = || Time::ZERO + origin.elapsed();
    let mut endpoint = Endpoint::new(config);
    role.start(&mut Now { endpoint: &mut endpoint, now: now() });
    loop {
        act(role, &mut endpoint, now());
        while let Some((to, frame)) = endpoint.transmit(now()) {
            if let Err(unsent) = transport.send(to, frame) {
                endpoint.unsent(to, unsent.frame, unsent.error, now());
            }
        }
        act(role, &mut endpoint, now());
        while let Some(frame) = endpoint.spent() {
            transport.release(frame);
        }
        if let Some(failed) = role.failed() {
            return Err(failed.clone().into());
        }
        if role.is_finished() && endpoint.is_idle() {
            return Ok(());
        }
        let mut wait = match endpoint.next_timer() {
            Time::NEVER => Wait::Forever,
            time => Wait::For(time.since(now())),
        };
        for _ in 0..AT_ONCE {
            let Some(arrival) = transport.receive(wait)? else { break };
            wait = Wait::No;
            let event = match arrival {
                Arrival::Up { peer } => Event::Up { peer },
                Arrival::Down { peer, loss } => Event::Down { peer, loss },
                Arrival::Frame { peer, frame } => Event::Frame { peer, frame },
                Arrival::Room { peer } => Event::Room { peer },
                _ => continue,
            };
            endpoint.handle(event, now());
            act(role, &mut endpoint, now());
        }
        if now() >= endpoint.next_timer() {
            endpoint.handle(Event::Tick, now());
        }
    }
}

/// Tells the role what has come, which may be more of what it does.
fn act<T: TopicIndex, D: Documents>(role: &mut Role<T, D>, endpoint: &mut Endpoint, now: Time) {
    while let Some(action) = endpoint.poll() {
        role.act(action, &mut Now { endpoint, now });
    }
}
