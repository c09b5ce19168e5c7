//! Runs a role over a transport, on the calling thread.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use lda_core::counts::TopicIndex;
use lda_transport::rpc::{
    Action, Config, Context, Driver, Identity, MessageBuf, Program, RequestKind, Window,
};
use lda_transport::{DisconnectReason, NodeId, ReceiveError, Time, Transport, local};
use thiserror::Error;

use super::control::Control;
use super::{
    Documents, Failed, MASTER, PATIENCE, Patience, Peers, Port, Role, Setup, SnapshotWriter,
};
use crate::storage::Storage;

/// Bytes of requests from all peers together that a node holds at most, except one request from
/// each.
pub const MAX_HELD_BYTES: u64 = 256 << 20;
/// Time in which the transport may deliver the last replies.
const LAST: Duration = Duration::from_secs(10);
/// Interval at which a node checks whether it has to stop, and for how long peers are lost.
const LOOK: Duration = Duration::from_millis(250);
/// Time in which a lost master may return to release a node that has to stop.
const ALONE: Duration = Duration::from_secs(5);

/// Why a node ended before the run was over.
#[derive(Clone, Debug, PartialEq, Error)]
#[non_exhaustive]
pub enum RunError {
    /// The role has failed.
    #[error(transparent)]
    Role(#[from] Failed),
    /// The transport has failed.
    #[error(transparent)]
    Transport(#[from] ReceiveError),
    /// The node was stopped while it was not connected to the master. The run continues from its
    /// last checkpoint when the node is started again.
    #[error("stopped without the master, {}", if *met { "whose connection is lost: the run continues from its last checkpoint when this node returns" } else { "which has not connected" })]
    StoppedAlone {
        /// Whether it was connected before.
        met: bool,
    },
    /// The node was stopped before the last epoch. A run that is started again goes on from there.
    #[error("stopped: a new start continues from {}", if *kept == 0 { "the initial topics".to_owned() } else { format!("the topics of epoch {kept}") })]
    Stopped {
        /// The last epoch that all workers have written; 0 if none, then the run starts from the
        /// beginning.
        kept: u32,
    },
}

/// Runs a node until the run is finished, and returns its role: the master has C_k, a server its
/// rows, a worker the topics of its documents. `watch` is called after every event, and every 250 ms
/// while a peer is lost. It may take the master's [reports](super::Master::report), and report the
/// peers that this node waits for.
///
/// Sampling runs between messages: on this thread, or on those of rayon if
/// [`Setup::threads`](field@Setup::threads) is more than 1.
///
/// A peer that is lost may come back, and the run continues; if it does not within `patience`, the
/// run ends.
///
/// Once `stop` is true the node [stops](Role::stop) as soon as the current epoch is completed and
/// its topics are written. Without a connection to the master it stops at once if the master has
/// never been connected, and otherwise after 5 s.
///
/// # Errors
/// [`RunError`]. The transport is closed then too.
pub fn run<T: TopicIndex, D: Documents>(
    mut role: Role<T, D>,
    transport: &mut dyn Transport,
    config: Config,
    patience: Patience,
    stop: Option<&AtomicBool>,
    watch: &mut dyn FnMut(&mut Role<T, D>, &Peers),
) -> Result<Role<T, D>, RunError> {
    run_role(&mut role, transport, config, patience, stop, watch).map(|()| role)
}

/// Runs a node until the run is finished or an error occurs, and closes the transport.
fn run_role<T: TopicIndex, D: Documents>(
    role: &mut Role<T, D>,
    transport: &mut dyn Transport,
    config: Config,
    patience: Patience,
    stop: Option<&AtomicBool>,
    watch: &mut dyn FnMut(&mut Role<T, D>, &Peers),
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

/// Configuration of the endpoint of such a node.
///
/// A node samples on the thread that sends its messages, so it may be silent as long as a request
/// may take. The transport reports nodes that are gone.
///
/// All peers together may have [`MAX_HELD_BYTES`] bytes of requests in flight to the node, except
/// one request from each, which may be larger. So a server with a thousand workers does not hold a
/// thousand times the requests of one.
pub fn config(setup: &Setup, identity: Identity) -> Config {
    let default = Config::new(identity);
    let peers = u64::from(setup.options.servers) + u64::from(setup.workers);
    let bytes = (MAX_HELD_BYTES / peers.max(1)).clamp(1, default.window.bytes);
    let window = Window { bytes, ..default.window };
    Config { silence_timeout: PATIENCE, window, ..default }
}

/// Runs all nodes as threads of this process, and returns their roles, the master's first. `watch`
/// is called with the master.
///
/// With a storage, the run goes on from the checkpoint of this run in it, and writes checkpoints as
/// [`Setup::checkpoint_every`] says. Once `stop` is true all nodes [stop](Role::stop) as soon as
/// the current epoch is completed and its topics are written.
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
/// // Started again, it goes on from there.
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
/// The error of the first node that failed, which caused the others'; or [`RunError::Stopped`].
///
/// # Panics
/// If a thread panics.
pub fn run_local<T: TopicIndex, D: Documents + Clone + Send + Sync>(
    setup: &Setup,
    documents: &D,
    storage: Option<&Arc<dyn Storage>>,
    stop: Option<&AtomicBool>,
    mut watch: impl FnMut(&mut Role<T, D>),
) -> Result<Vec<Role<T, D>>, RunError> {
    setup.check().map_err(Failed::from)?;
    let nodes = 1 + setup.options.servers + setup.workers;
    let mut transports = local::mesh(nodes, &local::Options::default());
    let node = |transport: &mut local::Local, watch: &mut dyn FnMut(&mut Role<T, D>)| {
        let snapshot_writer = storage.map(|storage| SnapshotWriter::beside(Arc::clone(storage)));
        // The master stops, and with it all other nodes.
        let stop = stop.filter(|_| transport.id() == MASTER);
        let mut role = Role::new(setup.clone(), transport.id(), documents.clone(), snapshot_writer);
        let (number, configuration) = (role.number(), setup.fingerprint());
        let identity = Identity { incarnation: 1, role: number, run: 1, configuration };
        let config = self::config(setup, identity);
        let patience = Patience::default();
        let watch = &mut |role: &mut Role<T, D>, _: &Peers| watch(role);
        let ended = run_role(&mut role, transport, config, patience, stop, watch);
        (role, ended)
    };
    let ended: Vec<Ended<T, D>> = thread::scope(|scope| {
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
    });
    match first_cause(&ended) {
        Some(error) => Err(error.clone()),
        None => Ok(ended.into_iter().map(|(role, _)| role).collect()),
    }
}

/// A node's role at its end, and the error that ended it.
type Ended<T, D> = (Role<T, D>, Result<(), RunError>);

/// The first error that is not a consequence of another node's end, or else the first.
fn first_cause<T: TopicIndex, D>(ended: &[Ended<T, D>]) -> Option<&RunError> {
    let is_cause = |error: &RunError| {
        !matches!(error, RunError::Role(Failed::PeerLost { .. } | Failed::PeerFailed { .. }))
    };
    let errors = || ended.iter().filter_map(|(_, ended)| ended.as_ref().err());
    errors().find(|&error| is_cause(error)).or_else(|| errors().next())
}

/// Runs a role over a transport until it ends.
fn drive<T: TopicIndex, D: Documents>(
    role: &mut Role<T, D>,
    transport: &mut dyn Transport,
    config: Config,
    patience: Patience,
    stop: Option<&AtomicBool>,
    watch: &mut dyn FnMut(&mut Role<T, D>, &Peers),
) -> Result<(), RunError> {
    let this = transport.id();
    let mut driver = Driver::new(transport, config);
    let peers = Peers::new(role.setup(), this, patience, driver.now());
    let mut node = RoleNode { role, peers, stop, stopped: None, ends_by: None };
    driver.start(&mut node);
    loop {
        node.look(&mut driver);
        driver.flush(&mut node);
        watch(node.role, &node.peers);
        match node.progress(&mut driver)? {
            Progress::Running => {}
            // The report to the master has to be sent first.
            Progress::Reporting => continue,
            Progress::Finished => return Ok(()),
        }
        // Requests have been sent by now, so peers work while this node does. Messages that result
        // from this work are sent after those that have arrived meanwhile are handled.
        let worked = node.role.work(&mut driver.context());
        let until = if worked { Time::ZERO } else { node.next_look(driver.now()) };
        let waited = driver.wait(&mut node, until)?;
        node.role.waited(waited);
    }
}

/// Progress of a node after its messages have been handled.
enum Progress {
    Running,
    /// The role has failed, and a message to the master says why.
    Reporting,
    Finished,
}

/// A role as the program of a [`Driver`], with its connections.
struct RoleNode<'a, T: TopicIndex, D> {
    role: &'a mut Role<T, D>,
    peers: Peers,
    /// Whether the node has to stop.
    stop: Option<&'a AtomicBool>,
    /// Time at which it was stopped.
    stopped: Option<Time>,
    /// Time by which a node ends whose role has ended.
    ends_by: Option<Time>,
}

impl<T: TopicIndex, D: Documents> Program for RoleNode<'_, T, D> {
    fn start(&mut self, _: &mut Context<'_>) {
        self.role.start();
    }

    fn act(&mut self, action: Action, cx: &mut Context<'_>) {
        match &action {
            Action::Joined { peer, .. } => self.peers.join(*peer),
            Action::Refused { peer, reason } => {
                self.peers.refuse(*peer, self.role.explain(reason), cx.now());
            }
            _ => {}
        }
        self.role.act(action, cx);
    }

    fn connected(&mut self, peer: NodeId, _: &mut Context<'_>) {
        self.peers.connect(peer);
    }

    fn disconnected(&mut self, peer: NodeId, reason: &DisconnectReason, cx: &mut Context<'_>) {
        self.peers.disconnect(peer, reason, cx.now());
    }
}

impl<T: TopicIndex, D: Documents> RoleNode<'_, T, D> {
    /// Gives up lost peers whose time is over, and stops the role if it has to.
    fn look(&mut self, driver: &mut Driver<&mut dyn Transport>) {
        let now = driver.now();
        self.peers.update(now, |peer| self.role.needs(peer));
        self.peers.set_strays(driver.endpoint().strays());
        let given_up: Vec<_> = self.peers.given_up().collect();
        for lost in given_up {
            self.role.give_up(lost, &mut driver.context());
        }
        if self.stopped.is_none() && self.stop.is_some_and(|stop| stop.load(Ordering::Relaxed)) {
            self.stopped = Some(now);
            self.role.stop(&mut driver.context());
        }
    }

    /// Next time at which the node acts even if nothing arrives.
    fn next_look(&self, now: Time) -> Time {
        let looks = self.stop.is_some() || self.peers.lost().next().is_some();
        let next = if looks { now + LOOK } else { Time::NEVER };
        self.ends_by.map_or(next, |until| next.min(until))
    }

    /// Fails if the node has to stop and cannot ask the master to release it.
    fn check_stopped(&self, now: Time) -> Result<(), RunError> {
        let Some(stopped) = self.stopped else { return Ok(()) };
        let (is_connected, met) = self.peers.master();
        let waits = met && now < stopped + ALONE;
        let is_alone = !is_connected && !matches!(self.role, Role::Master(_));
        if is_alone && !waits && !self.role.is_finished() {
            return Err(RunError::StoppedAlone { met });
        }
        Ok(())
    }

    /// Decides whether the node has ended. A node that has failed first reports why to the master.
    fn progress(&mut self, driver: &mut Driver<&mut dyn Transport>) -> Result<Progress, RunError> {
        let is_idle = driver.endpoint().is_idle();
        let (is_master_connected, _) = self.peers.master();
        if let Some(failed) = self.role.failed() {
            return match self.ends_by {
                None if is_master_connected && !matches!(self.role, Role::Master(_)) => {
                    self.ends_by = Some(driver.now() + LAST);
                    let why = Control::Failed { why: failed.to_string() }.encode(1, 1);
                    let message = MessageBuf::from(&why[..]);
                    // If it is overloaded, the master has received more than one report already.
                    let _ = driver.context().ask(MASTER, RequestKind::Push, message);
                    Ok(Progress::Reporting)
                }
                Some(until) if driver.now() < until && is_master_connected && !is_idle => {
                    Ok(Progress::Running)
                }
                _ => Err(failed.clone().into()),
            };
        }
        if self.role.is_finished() {
            // Peers that are lost do not acknowledge their last messages.
            let ends_by = *self.ends_by.get_or_insert(driver.now() + LAST);
            if !is_idle && driver.now() < ends_by {
                return Ok(Progress::Running);
            }
            return match self.role.stopped() {
                None => Ok(Progress::Finished),
                Some(kept) => Err(RunError::Stopped { kept }),
            };
        }
        // A node that was released may be part of the next attempt.
        self.ends_by = None;
        self.check_stopped(driver.now())?;
        Ok(Progress::Running)
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
        assert!(many.bytes * 1020 <= MAX_HELD_BYTES && many.bytes * 2040 > MAX_HELD_BYTES);
        assert_eq!(window(u32::MAX, u32::MAX).bytes, 1);
    }
}
