//! A role over a transport, on the thread that calls.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use lda_core::counts::TopicIndex;
use lda_transport::rpc::{
    Config, Endpoint, Event, Identity, MessageBuf, Overloaded, ReplyHandle, RequestId, RequestKind,
    Window,
};
use lda_transport::{
    Arrival, DisconnectReason, NodeId, ReceiveError, Time, Transport, Wait, local,
};
use thiserror::Error;

use super::control::Control;
use super::{Documents, Failed, MASTER, PATIENCE, Port, Role, Setup, SnapshotWriter};
use crate::storage::Storage;

/// Bytes of requests that all peers of a node may have underway to it, but for one of each.
pub const MOST_HELD: u64 = 256 << 20;
/// Arrivals that are seen to before what they led to is sent.
const AT_ONCE: usize = 64;
/// How long to hand on the last replies.
const LAST: Duration = Duration::from_secs(10);
/// How long a node does not see that it has to end.
const LOOK: Duration = Duration::from_millis(250);

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
    /// It was asked to end before the last epoch, and has: a run that is begun again goes on from there.
    #[error("stopped: begun again, the run goes on from topics of epoch {kept}{}", if *kept == 0 { ", the first ones" } else { "" })]
    Stopped {
        /// The last epoch that all workers have kept; 0 if none, and then the run begins anew.
        kept: u32,
    },
}

/// An endpoint at a time.
struct Now<'a> {
    endpoint: &'a mut Endpoint,
    now: Time,
}

impl Port for Now<'_> {
    fn ask(
        &mut self,
        peer: NodeId,
        kind: RequestKind,
        draft: MessageBuf,
    ) -> Result<RequestId, Overloaded> {
        self.endpoint.request(peer, kind, draft, self.now + PATIENCE)
    }

    fn reply(&mut self, reply_to: ReplyHandle, draft: MessageBuf) {
        self.endpoint.reply(reply_to, draft, self.now);
    }

    fn reject(&mut self, reply_to: ReplyHandle, draft: MessageBuf) {
        self.endpoint.reject(reply_to, draft, self.now);
    }
}

/// Runs a node until the run is finished, and gives its role back: the master's has C_k, a server's rows of words, a
/// worker's the topics of its documents. `watch` is called whenever something has come, and may take the master's
/// [reports](super::Master::report).
///
/// Sampling is done on this thread, between messages. A node on several threads has several shards, and as many nodes.
///
/// A node that has closed may come again, and the run goes on; if it does not within `patience`, the run ends.
///
/// Once `stop` says so the node [has to end](Role::stop): as soon as the epoch that is on is done and its topics are
/// kept.
///
/// # Errors
/// [`RunError`]. The transport is closed then too.
pub fn run<T: TopicIndex, D: Documents>(
    mut role: Role<T, D>,
    transport: &mut dyn Transport,
    config: Config,
    patience: Duration,
    stop: Option<&AtomicBool>,
    watch: &mut dyn FnMut(&mut Role<T, D>),
) -> Result<Role<T, D>, RunError> {
    run_role(&mut role, transport, config, patience, stop, watch).map(|()| role)
}

/// Runs a node until the run is finished or an error occurs, and closes the transport.
fn run_role<T: TopicIndex, D: Documents>(
    role: &mut Role<T, D>,
    transport: &mut dyn Transport,
    config: Config,
    patience: Duration,
    stop: Option<&AtomicBool>,
    watch: &mut dyn FnMut(&mut Role<T, D>),
) -> Result<(), RunError> {
    let transport = CloseOnDrop(transport);
    drive(role, transport.0, config, patience, stop, watch)
}

/// Closes a transport, also if `watch` panics, so that other nodes do not wait for this one.
struct CloseOnDrop<'a>(&'a mut dyn Transport);

impl Drop for CloseOnDrop<'_> {
    fn drop(&mut self) {
        self.0.close(LAST);
    }
}

/// What an endpoint of such a node keeps to.
///
/// A node samples on the thread that speaks for it, and may be silent as long as a request may take. Who is gone the
/// transport says.
///
/// All peers together may have [`MOST_HELD`] bytes of requests underway to it, but for one request each, which may have
/// more: with a thousand workers that is what a server has to hold of what they ask, and not a thousand times as much
/// as of one.
pub fn config(setup: &Setup, identity: Identity) -> Config {
    let default = Config::new(identity);
    let peers = u64::from(setup.options.servers) + u64::from(setup.workers);
    let bytes = (MOST_HELD / peers.max(1)).clamp(1, default.window.bytes);
    let window = Window { bytes, ..default.window };
    Config { silence_timeout: PATIENCE, window, ..default }
}

/// Runs all nodes as threads of this process, and gives their roles back, the master's first; `watch` is called with
/// that one.
///
/// With a storage the run begins at what it has of this run, and keeps topics there as [`Setup::checkpoint_every`] says. Once
/// `stop` says so all nodes [have to end](Role::stop): as soon as the epoch that is on is done and its topics are kept.
///
/// ```
/// use std::sync::Arc;
/// use std::sync::atomic::{AtomicBool, Ordering};
///
/// use lda_core::Corpus;
/// use lda_dist::cluster::{Role, RunError, Setup, run_local};
/// use lda_dist::documents::InMemory;
/// use lda_dist::spec::ModelSpec;
/// use lda_dist::storage::{Memory, Storage};
/// use lda_dist::config::Options;
///
/// let corpus = Corpus::from_tokens((0..40).map(|d| vec![d % 4, d % 4 + 4, d % 4]))?;
/// let spec = ModelSpec::builder(10, corpus.num_words() as u32).alpha(0.1).seed(1).build()?;
/// let options = Options { shards: 2, partitions: 2, rounds: 2, ..Options::default() };
/// let setup = Setup::new(spec, corpus.fingerprint())
///     .options(options)
///     .workers(2)
///     .epochs(20)
///     .checkpoint_every(1);
/// let documents = InMemory::new(corpus, setup.options.shards)?;
/// let storage: Arc<dyn Storage> = Arc::new(Memory::default());
/// let stop = AtomicBool::new(false);
/// let watch = |role: &mut Role<u16, InMemory>| {
///     if let Role::Master(master) = role {
///         stop.fetch_or(master.report().is_some(), Ordering::Relaxed);
///     }
/// };
/// let ended = run_local::<u16, _>(&setup, &documents, Some(&storage), Some(&stop), watch);
/// let Err(RunError::Stopped { kept }) = ended else { panic!("{ended:?}") };
/// // Begun again, it goes on from there.
/// let mut epochs = Vec::new();
/// let nodes = run_local::<u16, _>(&setup, &documents, Some(&storage), None, |role| {
///     if let Role::Master(master) = role {
///         epochs.extend(std::iter::from_fn(|| master.report()).map(|report| report.epoch));
///     }
/// })?;
/// assert_eq!(nodes.len(), 4);
/// assert!(kept > 0 && epochs.into_iter().eq(kept + 1..=setup.epochs));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// Why the first of them has given up, which the others follow; or [`RunError::Stopped`].
///
/// # Panics
/// If a thread does.
pub fn run_local<T: TopicIndex, D: Documents + Clone + Send + Sync>(
    setup: &Setup,
    documents: &D,
    storage: Option<&Arc<dyn Storage>>,
    stop: Option<&AtomicBool>,
    watch: impl FnMut(&mut Role<T, D>),
) -> Result<Vec<Role<T, D>>, RunError> {
    roles(run_threads(setup, documents, storage, stop, watch)?, |_| true)
}

/// A node's role at its end, and the error that ended it.
pub(crate) type Ended<T, D> = (Role<T, D>, Result<(), RunError>);

/// As [`run_local`], but returns the roles of all nodes with their errors.
///
/// # Errors
/// [`ConfigError`](crate::config::ConfigError), before any node starts.
pub(crate) fn run_threads<T: TopicIndex, D: Documents + Clone + Send + Sync>(
    setup: &Setup,
    documents: &D,
    storage: Option<&Arc<dyn Storage>>,
    stop: Option<&AtomicBool>,
    mut watch: impl FnMut(&mut Role<T, D>),
) -> Result<Vec<Ended<T, D>>, RunError> {
    setup.check().map_err(Failed::from)?;
    let nodes = 1 + setup.options.servers + setup.workers;
    let mut transports = local::mesh(nodes, &local::Options::default());
    let node = |transport: &mut local::Local, watch: &mut dyn FnMut(&mut Role<T, D>)| {
        let snapshot_writer = storage.map(|storage| SnapshotWriter::beside(Arc::clone(storage)));
        // The master ends, and with it all others.
        let stop = stop.filter(|_| transport.id() == MASTER);
        let mut role = Role::new(setup.clone(), transport.id(), documents.clone(), snapshot_writer);
        let (number, configuration) = (role.number(), setup.fingerprint());
        let identity = Identity { incarnation: 1, role: number, run: 1, configuration };
        let config = self::config(setup, identity);
        let ended = run_role(&mut role, transport, config, Duration::ZERO, stop, watch);
        (role, ended)
    };
    Ok(thread::scope(|scope| {
        let (master, others) = transports.split_first_mut().expect("there is a master");
        let threads: Vec<_> = others
            .iter_mut()
            .map(|transport| {
                let node = &node;
                scope.spawn(move || node(transport, &mut |_| {}))
            })
            .collect();
        let first = node(master, &mut watch);
        let others = threads.into_iter().map(|thread| thread.join().expect("no panic"));
        std::iter::once(first).chain(others).collect()
    }))
}

/// The roles of all nodes, unless one has an error of those that `fails` selects.
///
/// # Errors
/// The error that the others follow from.
pub(crate) fn roles<T: TopicIndex, D>(
    ended: Vec<Ended<T, D>>,
    fails: impl Fn(&RunError) -> bool,
) -> Result<Vec<Role<T, D>>, RunError> {
    // A node that ended because another one had is not the cause.
    let is_cause = |error: &RunError| {
        !matches!(error, RunError::Role(Failed::PeerClosed { .. } | Failed::PeerFailed { .. }))
    };
    let errors =
        || ended.iter().filter_map(|(_, ended)| ended.as_ref().err()).filter(|&e| fails(e));
    match errors().find(|&error| is_cause(error)).or_else(|| errors().next()) {
        Some(error) => Err(error.clone()),
        None => Ok(ended.into_iter().map(|(role, _)| role).collect()),
    }
}

fn drive<T: TopicIndex, D: Documents>(
    role: &mut Role<T, D>,
    transport: &mut dyn Transport,
    config: Config,
    patience: Duration,
    mut stop: Option<&AtomicBool>,
    watch: &mut dyn FnMut(&mut Role<T, D>),
) -> Result<(), RunError> {
    let origin = Instant::now();
    let now = || Time::ZERO + origin.elapsed();
    let mut endpoint = Endpoint::new(config);
    let mut given_up: Option<Time> = None;
    let mut master_is_there = true;
    // When those that have closed are given up.
    let mut closed: BTreeMap<NodeId, Time> = BTreeMap::new();
    role.start();
    loop {
        closed.retain(|&peer, until| {
            let waits = now() < *until;
            if !waits {
                role.closed(peer);
            }
            waits
        });
        if stop.take_if(|stop| stop.load(Ordering::Relaxed)).is_some() {
            role.stop(&mut Now { endpoint: &mut endpoint, now: now() });
        }
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
        watch(role);
        if let Some(failed) = role.failed() {
            match given_up {
                // The master hears why.
                None if master_is_there && !matches!(role, Role::Master(_)) => {
                    given_up = Some(now() + LAST);
                    let why = Control::Failed(failed.to_string()).encode(1, 1);
                    let mut port = Now { endpoint: &mut endpoint, now: now() };
                    // It has heard of more than enough already.
                    let _ = port.ask(MASTER, RequestKind::Push, MessageBuf::from(&why[..]));
                    continue;
                }
                Some(until) if now() < until && master_is_there && !endpoint.is_idle() => {}
                _ => return Err(failed.clone().into()),
            }
        }
        if role.is_finished() && endpoint.is_idle() {
            return role.stopped().map_or(Ok(()), |kept| Err(RunError::Stopped { kept }));
        }
        // What was asked has left; what follows from the work leaves when what has come meanwhile is seen to.
        let worked = role.work(&mut Now { endpoint: &mut endpoint, now: now() });
        let until = closed.values().copied().chain(given_up).min().unwrap_or(Time::NEVER);
        let timer = endpoint.next_timer().min(until);
        let left = timer.since(now());
        let mut wait = match stop {
            _ if worked => Wait::No,
            Some(_) => Wait::For(left.min(LOOK)),
            None if timer == Time::NEVER => Wait::Forever,
            None => Wait::For(left),
        };
        for _ in 0..AT_ONCE {
            let before = now();
            let arrival = transport.receive(wait)?;
            if wait != Wait::No {
                role.waited(now().since(before));
            }
            let Some(arrival) = arrival else { break };
            wait = Wait::No;
            let event = match arrival {
                Arrival::Up { peer } => {
                    closed.remove(&peer);
                    master_is_there |= peer == MASTER;
                    Event::Up { peer }
                }
                Arrival::Down { peer, reason } => {
                    if reason == DisconnectReason::Closed {
                        closed.insert(peer, now() + patience);
                        master_is_there &= peer != MASTER;
                    }
                    Event::Down { peer, reason }
                }
                Arrival::Frame { peer, frame } => Event::Frame { peer, frame },
                Arrival::Writable { peer } => Event::Writable { peer },
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Options;
    use crate::spec::ModelSpec;

    #[test]
    fn all_peers_together_have_so_much_underway_whatever_their_number() {
        let identity = Identity { incarnation: 1, role: 1, run: 1, configuration: 1 };
        let window = |servers, workers| {
            let spec = ModelSpec::builder(2, 2).build().unwrap();
            let options = Options { servers, ..Options::default() };
            let setup = Setup::new(spec, 1).options(options).workers(workers);
            config(&setup, identity).window
        };
        let few = window(1, 1);
        assert_eq!(few, Config::new(identity).window);
        let many = window(20, 1000);
        assert_eq!(many.requests, few.requests);
        assert!(many.bytes * 1020 <= MOST_HELD && many.bytes * 2040 > MOST_HELD);
        assert_eq!(window(u32::MAX, u32::MAX).bytes, 1);
    }
}
