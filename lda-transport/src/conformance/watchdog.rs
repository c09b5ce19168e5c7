//! Watchdog of a check: a call of the transport that does not return fails the check.
//!
//! A check runs on a thread of its own, and each call is recorded when it begins. The thread of a call
//! that does not return cannot be ended: it is left behind with its nodes, and no other check runs.

use std::any::Any;
use std::panic::resume_unwind;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Waker;
use std::thread;
use std::time::{Duration, Instant};

use super::{Check, Effort, Outcome, Subject};
use crate::frame::Frame;
use crate::transport::{Arrival, Capabilities, NodeId, ReceiveError, Transport, Unsent, Wait};

/// Time between two looks at the calls.
const POLL: Duration = Duration::from_millis(20);

/// End of a check.
pub(super) struct End {
    pub outcome: Outcome,
    /// Whether a call has not returned.
    pub hangs: bool,
}

impl From<Result<Outcome, String>> for End {
    fn from(result: Result<Outcome, String>) -> Self {
        Self { outcome: result.unwrap_or_else(Outcome::Failed), hangs: false }
    }
}

/// Message of the thread of a check.
enum Request {
    Mesh(u32),
    Rejoin(NodeId),
    Ended(Result<Outcome, String>),
}

/// Runs a check. Nodes are created on this thread.
pub(super) fn run(subject: &mut dyn Subject, effort: &Effort, check: Check) -> End {
    let (requests, requested) = channel();
    let (replies, nodes) = channel();
    let calls = Calls::default();
    let remote = Remote { requests, nodes, calls: calls.clone(), patience: effort.patience };
    let checking = thread::spawn({
        let effort = effort.clone();
        move || {
            let mut remote = remote;
            let result = check(&mut remote, &effort);
            let _ = remote.requests.send(Request::Ended(result));
        }
    });
    loop {
        let created = match requested.recv_timeout(POLL) {
            Ok(Request::Mesh(count)) => subject.mesh(count),
            Ok(Request::Rejoin(id)) => subject.rejoin(id).into_iter().collect(),
            Ok(Request::Ended(result)) => return result.into(),
            Err(RecvTimeoutError::Timeout) => match calls.overdue() {
                Some(call) => return End { outcome: Outcome::Failed(call), hangs: true },
                None => continue,
            },
            Err(RecvTimeoutError::Disconnected) => {
                let panic = checking.join().expect_err("it sends the result unless it panics");
                return Err(text_of(panic)).into();
            }
        };
        // Fails only if the thread has panicked, which the next look finds.
        let _ = replies.send(created);
    }
}

/// Description of a panic.
fn text_of(panic: Box<dyn Any + Send>) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    match text.or_else(|| panic.downcast_ref::<&str>().copied()) {
        Some(text) => format!("a call panicked: {text}"),
        None => resume_unwind(panic),
    }
}

/// The subject of another thread.
struct Remote {
    requests: Sender<Request>,
    nodes: Receiver<Vec<Box<dyn Transport>>>,
    calls: Calls,
    patience: Duration,
}

impl Remote {
    fn create(&self, request: Request) -> Vec<Box<dyn Transport>> {
        self.requests.send(request).expect("the watchdog waits for requests");
        let nodes = self.nodes.recv().expect("the watchdog replies to a request");
        let watch = |inner: Box<dyn Transport>| -> Box<dyn Transport> {
            let call = self.calls.add(inner.id());
            Box::new(Watched { inner: Some(inner), call, patience: self.patience })
        };
        nodes.into_iter().map(watch).collect()
    }
}

impl Subject for Remote {
    fn mesh(&mut self, nodes: u32) -> Vec<Box<dyn Transport>> {
        self.create(Request::Mesh(nodes))
    }

    fn rejoin(&mut self, id: NodeId) -> Option<Box<dyn Transport>> {
        self.create(Request::Rejoin(id)).pop()
    }
}

/// The calls of all nodes of a check.
#[derive(Clone, Debug, Default)]
struct Calls(Arc<Mutex<Vec<Arc<NodeCall>>>>);

impl Calls {
    fn add(&self, node: NodeId) -> Arc<NodeCall> {
        let call = Arc::new(NodeCall { node, running: Mutex::default() });
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(Arc::clone(&call));
        call
    }

    /// Describes a call that had to return.
    fn overdue(&self) -> Option<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).iter().find_map(|call| call.overdue())
    }
}

/// The call in which a node is.
#[derive(Debug)]
struct NodeCall {
    node: NodeId,
    running: Mutex<Option<Running>>,
}

#[derive(Clone, Copy, Debug)]
struct Running {
    method: &'static str,
    since: Instant,
    allowed: Duration,
}

impl NodeCall {
    fn running(&self) -> MutexGuard<'_, Option<Running>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn overdue(&self) -> Option<String> {
        let Running { method, since, allowed } = (*self.running())?;
        let elapsed = since.elapsed();
        (elapsed > allowed).then(|| {
            let node = self.node;
            format!("`{method}` of {node} had to return within {allowed:?}, and has not after {elapsed:?}")
        })
    }
}

/// Ends the record of a call, also after a panic.
struct Returns<'a>(&'a NodeCall);

impl Drop for Returns<'_> {
    fn drop(&mut self) {
        *self.0.running() = None;
    }
}

/// A transport whose calls are recorded.
#[derive(Debug)]
struct Watched {
    /// `None` only while it is dropped.
    inner: Option<Box<dyn Transport>>,
    call: Arc<NodeCall>,
    patience: Duration,
}

impl Watched {
    fn inner(&self) -> &dyn Transport {
        &**self.inner.as_ref().expect("it is there until the drop")
    }

    /// Makes a call that may take `longest`, and the patience of the checks more.
    fn watch<R>(
        &mut self,
        method: &'static str,
        longest: Duration,
        call: impl FnOnce(&mut dyn Transport) -> R,
    ) -> R {
        let allowed = longest.saturating_add(self.patience);
        *self.call.running() = Some(Running { method, since: Instant::now(), allowed });
        let _returns = Returns(&self.call);
        call(&mut **self.inner.as_mut().expect("it is there until the drop"))
    }
}

impl Transport for Watched {
    fn id(&self) -> NodeId {
        self.inner().id()
    }

    fn capabilities(&self) -> Capabilities {
        self.inner().capabilities()
    }

    fn send(&mut self, to: NodeId, frame: Frame) -> Result<(), Unsent> {
        self.watch("send", Duration::ZERO, |inner| inner.send(to, frame))
    }

    fn receive(&mut self, wait: Wait) -> Result<Option<Arrival>, ReceiveError> {
        let longest = match wait {
            // The checks wait without a limit only for something that comes at once.
            Wait::No | Wait::Forever => Duration::ZERO,
            Wait::For(time) => time,
        };
        self.watch("receive", longest, |inner| inner.receive(wait))
    }

    fn waker(&self) -> Waker {
        self.inner().waker()
    }

    fn take_buffer(&mut self) -> Vec<u8> {
        self.watch("take_buffer", Duration::ZERO, |inner| inner.take_buffer())
    }

    fn release(&mut self, frame: Frame) {
        self.watch("release", Duration::ZERO, |inner| inner.release(frame));
    }

    fn close(&mut self, patience: Duration) {
        self.watch("close", patience, |inner| inner.close(patience));
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        let inner = self.inner.take();
        let (since, allowed) = (Instant::now(), self.patience);
        *self.call.running() = Some(Running { method: "drop", since, allowed });
        let _returns = Returns(&self.call);
        drop(inner);
    }
}
