//! A node that blocks where its program wants to: an [endpoint](crate::rpc) over a transport, with a thread
//! of its own.
//!
//! The thread is the only one that waits for the network. It calls the program's [`Service`] when peers ask;
//! requests of the program are made from any thread, end by their deadline, and can be waited for, asked for, or
//! polled as futures. No runtime is needed, and any will do.
//!
//! ```
//! use std::time::Duration;
//!
//! use lda_transport::rpc::{Config, MessageBuf, Identity, Outcome};
//! use lda_transport::node::{Asked, Node, Silent};
//! use lda_transport::{NodeId, local};
//!
//! let second = Duration::from_secs(1);
//! let identity = Identity { incarnation: 1, role: 0, run: 1, configuration: 0 };
//! let mut transports = local::mesh(2, &local::Options::default()).into_iter();
//! let mut node = || transports.next().map(Box::new).unwrap();
//!
//! let counts = |asked: Asked| {
//!     let mut answer = asked.message();
//!     answer.extend_from_slice(&[asked.body().len() as u8]);
//!     asked.reply(answer);
//! };
//! let server = Node::start(node(), Config::new(identity), counts)?;
//! let client = Node::start(node(), Config::new(identity), Silent)?;
//! client.wait_for(&[NodeId(0)], second)?;
//! let pending = client.call(NodeId(0), MessageBuf::from(&b"how long?"[..]), second);
//! assert_eq!(pending.wait(), Outcome::Done(vec![9].into()));
//!
//! client.close(second)?;
//! server.close(second)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Bounds
//! To a peer at most [`Config::queue`] requests are open; who makes one more waits for one of them to end.
//! [`Config`] says the other bounds.
//!
//! # Cost
//! A request goes to the thread of its node and its answer comes back from there: two wake-ups where threads
//! sleep. `cargo bench -p lda-transport` measures it.

mod driver;
mod joint;
mod members;
mod number;
mod pending;
mod service;
mod slots;
mod together;

use std::collections::BTreeMap;
use std::ops::Deref;
use std::sync::{Arc, OnceLock};
use std::task::Waker;
use std::thread::{self, JoinHandle, ThreadId};
use std::time::{Duration, Instant};
use std::{fmt, io};

use crossbeam_channel::Sender;
use thiserror::Error;

use crate::batch::{self, Items, Malformed};
use crate::buffer_pool::BufferPool;
use crate::frame::Frame;
use crate::rpc::{
    Collective, CollectiveError, Config, FailureReason, Group, MessageBuf, Outcome, ReplyHandle,
    RequestKind,
};
use crate::time::Time;
use crate::transport::{NodeId, Transport};

use driver::Driver;
use members::Members;
use pending::{Place, Promise, promise};
use slots::Slots;

pub use members::{Member, Missing};
pub use number::Number;
pub use pending::{End, Pending};
pub use service::{Asked, Service, Silent};

/// Room that a node keeps for drafts, in bytes.
const SPARE_BYTES: usize = 16 << 20;

/// A node with a thread of its own. Dropping it closes it without patience.
///
/// What can be asked of it is with its [`Handle`].
pub struct Node {
    handle: Handle,
    thread: Option<JoinHandle<Result<(), Failed>>>,
}

/// A way to a node's thread, for any thread and as many as there are. When the node has closed, requests end at once.
#[derive(Clone)]
pub struct Handle {
    shared: Arc<Shared>,
}

/// What the thread of a node and all others have in common.
struct Shared {
    id: NodeId,
    origin: Instant,
    commands: Sender<Command>,
    waker: Waker,
    driver: OnceLock<ThreadId>,
    slots: Arc<Slots>,
    members: Members,
    rooms: BufferPool,
}

/// What others have the thread of a node do.
enum Command {
    Request {
        to: NodeId,
        kind: RequestKind,
        message: MessageBuf,
        deadline: Time,
        promise: Promise<Outcome>,
    },
    Cancel(Arc<Place<Outcome>>),
    Answer {
        reply_to: ReplyHandle,
        done: bool,
        message: MessageBuf,
        spent: Frame,
    },
    Begin {
        group: Group,
        collective: Collective,
        deadline: Time,
        promise: Promise<Gathered>,
    },
    Close {
        patience: Duration,
    },
}

type Gathered = Result<Vec<Frame>, CollectiveError>;

/// A node that has ended before it was closed.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Failed {
    /// What the transport stands on is gone.
    #[error("the transport has failed: {0}")]
    Transport(String),
    /// The program's service has panicked.
    #[error("the service of the node has panicked: {0}")]
    Panicked(String),
}

/// Rows that did not come.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum PullError {
    /// The peer does not give them; its words.
    #[error("{peer} does not give them: {words}")]
    Rejected {
        /// Who.
        peer: NodeId,
        /// Why.
        words: String,
    },
    /// No answer has come.
    #[error("{peer} has not answered: {why:?}")]
    Unknown {
        /// Who.
        peer: NodeId,
        /// Why.
        why: FailureReason,
    },
    /// An answer that is no rows.
    #[error("{peer} gives what are no rows: {error}")]
    Malformed {
        /// Who.
        peer: NodeId,
        /// What is wrong.
        #[source]
        error: Malformed,
    },
    /// More or fewer rows than keys.
    #[error("{peer} gives {rows} rows for {keys} keys")]
    Number {
        /// Who.
        peer: NodeId,
        /// Keys that it was given.
        keys: usize,
        /// Rows that it has given.
        rows: usize,
    },
}

/// Rows of a [pull](Handle::pull_rows), as they came.
#[derive(Clone, Debug)]
pub struct Rows(Frame);

impl Rows {
    /// By the order of their keys.
    pub fn iter(&self) -> Items<'_> {
        Items::of(&self.0).expect("looked at when they came")
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.iter().len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl<'a> IntoIterator for &'a Rows {
    type Item = &'a [u8];
    type IntoIter = Items<'a>;

    fn into_iter(self) -> Items<'a> {
        self.iter()
    }
}

impl Shared {
    fn at(&self, instant: Instant) -> Time {
        // Not at the origin, which is before everything.
        Time(1) + instant.saturating_duration_since(self.origin)
    }

    /// Hands a command to the thread, or gives it back where that has ended.
    fn command(&self, command: Command) -> Result<(), Command> {
        self.commands.send(command).map_err(|unsent| unsent.into_inner())?;
        if !self.is_driver() {
            self.waker.wake_by_ref();
        }
        Ok(())
    }

    /// Whether this is the node's own thread, which sees to commands before it waits.
    fn is_driver(&self) -> bool {
        self.driver.get() == Some(&thread::current().id())
    }

    fn message(&self) -> MessageBuf {
        MessageBuf::in_room(self.rooms.take_buffer())
    }
}

impl Node {
    /// Starts a node over this transport.
    ///
    /// # Errors
    /// What the system says where it gives no thread.
    ///
    /// # Panics
    /// As [`Endpoint::new`](crate::rpc::Endpoint::new).
    pub fn start(
        transport: Box<dyn Transport>,
        config: Config,
        service: impl Service,
    ) -> io::Result<Self> {
        let (commands, inbox) = crossbeam_channel::unbounded();
        let shared = Arc::new(Shared {
            id: transport.id(),
            origin: Instant::now(),
            commands,
            waker: transport.waker(),
            driver: OnceLock::new(),
            slots: Slots::new(config.queue),
            members: Members::default(),
            rooms: BufferPool::new(SPARE_BYTES),
        });
        let driver = Driver::new(transport, config, Box::new(service), Arc::clone(&shared), inbox);
        let name = format!("lda {}", shared.id);
        let thread = thread::Builder::new().name(name).spawn(move || driver.run())?;
        // As the thread itself does, whoever is first.
        let _ = shared.driver.set(thread.thread().id());
        Ok(Self { handle: Handle { shared }, thread: Some(thread) })
    }

    /// Closes: no request is made or taken any more, and those that are open have that long to end. Then they end as
    /// [`FailureReason::Closed`].
    ///
    /// # Errors
    /// [`Failed`], where the node had ended before.
    pub fn close(mut self, patience: Duration) -> Result<(), Failed> {
        self.end(patience)
    }

    fn end(&mut self, patience: Duration) -> Result<(), Failed> {
        let Some(thread) = self.thread.take() else { return Ok(()) };
        let _ = self.shared.command(Command::Close { patience });
        if self.shared.is_driver() {
            // Its own service drops it; it ends when that returns.
            return Ok(());
        }
        thread.join().unwrap_or_else(|panic| {
            let words = panic.downcast_ref::<&str>().map(|words| (*words).to_owned());
            let words = words.or_else(|| panic.downcast_ref::<String>().cloned());
            Err(Failed::Panicked(words.unwrap_or_else(|| "no words".to_owned())))
        })
    }
}

impl Handle {
    /// This node.
    pub fn id(&self) -> NodeId {
        self.shared.id
    }

    /// An empty draft, in room that was used before.
    pub fn message(&self) -> MessageBuf {
        self.shared.message()
    }

    /// Takes a frame that is done with, as the answer of a peer, so that its room can be used again.
    pub fn release(&self, frame: Frame) {
        self.shared.rooms.release(frame);
    }

    /// Asks a peer for something that changes nothing.
    pub fn pull(&self, peer: NodeId, message: MessageBuf, within: Duration) -> Pending<Outcome> {
        self.request(peer, RequestKind::Pull, message, within)
    }

    /// Has a peer change something, at most once.
    pub fn push(&self, peer: NodeId, message: MessageBuf, within: Duration) -> Pending<Outcome> {
        self.request(peer, RequestKind::Push, message, within)
    }

    /// Has a peer do something and tell what came of it, at most once.
    pub fn call(&self, peer: NodeId, message: MessageBuf, within: Duration) -> Pending<Outcome> {
        self.request(peer, RequestKind::Call, message, within)
    }

    /// Makes a request, which ends within that time. Where too many to this peer are open it first waits for one of
    /// them to end; not so on the node's own thread, where it ends at once as [`FailureReason::Deadline`].
    ///
    /// # Panics
    /// If the kind is [`RequestKind::Part`].
    pub fn request(
        &self,
        peer: NodeId,
        kind: RequestKind,
        message: MessageBuf,
        within: Duration,
    ) -> Pending<Outcome> {
        assert!(kind != RequestKind::Part, "pieces of operations are made by `begin`");
        let now = Instant::now();
        let until = now.checked_add(within);
        let wait = if self.shared.is_driver() { Some(now) } else { until };
        // A deadline that no clock reaches is none.
        let deadline = until.map_or(Time::NEVER, |until| self.shared.at(until));
        let far = || now + Duration::from_secs(1 << 30);
        let permit = self.shared.slots.acquire(peer, Some(wait.unwrap_or_else(far)));
        let late = permit.is_none();
        let (promise, pending) = promise(permit, self.driver());
        if late {
            promise.end(Outcome::Unknown { reason: FailureReason::Deadline, sent: false });
        } else {
            // Where the node has ended, the promise ends with the command.
            let _ = self.shared.command(Command::Request {
                to: peer,
                kind,
                message,
                deadline,
                promise,
            });
        }
        pending
    }

    /// Ends a request, if it has no end yet: as [`FailureReason::Cancelled`].
    pub fn cancel(&self, pending: &Pending<Outcome>) {
        let _ = self.shared.command(Command::Cancel(Arc::clone(pending.place())));
    }

    /// Pulls the rows of these keys, of a peer whose service answers a [batch] with one as long.
    ///
    /// # Errors
    /// [`PullError`].
    pub fn pull_rows<'a>(
        &self,
        peer: NodeId,
        keys: impl IntoIterator<Item = &'a [u8]>,
        within: Duration,
    ) -> Result<Rows, PullError> {
        let mut message = self.message();
        let mut asked = 0;
        for key in keys {
            batch::put(&mut message, key);
            asked += 1;
        }
        match self.pull(peer, message, within).wait() {
            Outcome::Done(body) => match Items::of(&body).map(|items| items.len()) {
                Ok(rows) if rows == asked => Ok(Rows(body)),
                Ok(rows) => Err(PullError::Number { peer, keys: asked, rows }),
                Err(error) => Err(PullError::Malformed { peer, error }),
            },
            Outcome::Rejected(words) => Err(PullError::Rejected {
                peer,
                words: String::from_utf8_lossy(&words).into_owned(),
            }),
            Outcome::Unknown { reason: why, .. } => Err(PullError::Unknown { peer, why }),
        }
    }

    /// Who is there, of those that were ever heard of.
    pub fn members(&self) -> BTreeMap<NodeId, Member> {
        self.shared.members.all()
    }

    /// Waits until these peers have joined.
    ///
    /// # Errors
    /// [`Missing`], at once where one of them is refused.
    pub fn wait_for(&self, peers: &[NodeId], within: Duration) -> Result<(), Missing> {
        self.shared.members.wait(peers, Instant::now() + within)
    }

    fn driver(&self) -> ThreadId {
        *self.shared.driver.get().expect("set before anybody has a handle")
    }
}

impl Deref for Node {
    type Target = Handle;

    fn deref(&self) -> &Handle {
        &self.handle
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        // Who wants to know how it ended closes it.
        let _ = self.end(Duration::ZERO);
    }
}

impl fmt::Debug for Node {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Node").field("id", &self.id()).finish_non_exhaustive()
    }
}

impl fmt::Debug for Handle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Handle").field("id", &self.id()).finish_non_exhaustive()
    }
}
