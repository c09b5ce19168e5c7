//! Endpoints over the transport under test, each on a thread of its own.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use super::{Effort, Subject};
#[cfg(feature = "collectives")]
use crate::frame::Frame;
use crate::rpc::{
    self, Action, Config, Context, Driver, Identity, MessageBuf, Program, RequestId, RequestKind,
};
use crate::transport::{Capabilities, NodeId, Transport};

/// Time between two looks at whether the other members have finished.
const POLL: Duration = Duration::from_millis(5);

/// How often each push and call was executed, by its number.
#[derive(Debug, Default)]
pub struct Executions(Mutex<BTreeMap<u64, u32>>);

impl Executions {
    fn add(&self, body: &[u8]) {
        *self.counts().entry(number_of(body)).or_default() += 1;
    }

    pub fn counts(&self) -> MutexGuard<'_, BTreeMap<u64, u32>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn number_of(body: &[u8]) -> u64 {
    body.first_chunk().map_or(u64::MAX, |bytes| u64::from_le_bytes(*bytes))
}

/// Program of a member: answers each request with its own body and records the outcomes of its own.
#[derive(Debug)]
struct Echo<'a> {
    executions: &'a Executions,
    answers: bool,
    joined: BTreeSet<NodeId>,
    outcomes: BTreeMap<RequestId, rpc::Outcome>,
    #[cfg(feature = "collectives")]
    collectives: BTreeMap<rpc::OperationId, Result<Vec<Frame>, rpc::CollectiveError>>,
}

impl Program for Echo<'_> {
    fn act(&mut self, action: Action, cx: &mut Context<'_>) {
        match action {
            Action::Joined { peer, .. } => drop(self.joined.insert(peer)),
            Action::Request { reply_to, kind, body } => {
                if kind != RequestKind::Pull {
                    self.executions.add(&body);
                }
                if self.answers {
                    cx.reply(reply_to, body[..].into());
                }
            }
            Action::Completed { request, outcome } => {
                self.outcomes.insert(request, outcome);
            }
            #[cfg(feature = "collectives")]
            Action::CollectiveDone { operation, result } => {
                self.collectives.insert(operation, result);
            }
            _ => {}
        }
    }
}

/// A node of the mesh with its endpoint.
#[derive(Debug)]
pub struct Member<'a> {
    driver: Driver<Box<dyn Transport>>,
    program: Echo<'a>,
    /// All members, this one included.
    pub all: &'a [NodeId],
    patience: Duration,
}

impl Member<'_> {
    pub fn id(&mut self) -> NodeId {
        self.driver.transport().id()
    }

    pub fn request(
        &mut self,
        peer: NodeId,
        kind: RequestKind,
        body: &[u8],
        timeout: Duration,
    ) -> Result<RequestId, String> {
        let message = MessageBuf::from(body);
        let made = self.driver.context().request(peer, kind, message, timeout);
        made.map_err(|overloaded| overloaded.to_string())
    }

    /// Waits for the outcome of a request.
    pub fn outcome(&mut self, request: RequestId) -> Result<rpc::Outcome, String> {
        self.until("a request to end", |program| program.outcomes.contains_key(&request))?;
        Ok(self.program.outcomes.remove(&request).expect("the wait ended with it"))
    }

    /// Begins an operation and waits for its result.
    #[cfg(feature = "collectives")]
    pub fn run(
        &mut self,
        group: &rpc::Group,
        collective: rpc::Collective,
    ) -> Result<Vec<Frame>, String> {
        let now = self.driver.now();
        let deadline = now + self.patience;
        let begun = self.driver.context().endpoint().begin(group, collective, deadline, now);
        let operation = begun.map_err(|error| error.to_string())?;
        self.until("an operation to end", |program| program.collectives.contains_key(&operation))?;
        let result = self.program.collectives.remove(&operation);
        result.expect("the wait ended with it").map_err(|error| error.to_string())
    }

    /// Runs the node until `condition` holds.
    fn until(&mut self, what: &str, condition: impl Fn(&Echo<'_>) -> bool) -> Result<(), String> {
        let start = Instant::now();
        while !condition(&self.program) {
            // A request with a deadline ends with it, and its outcome comes a little later.
            if start.elapsed() > self.patience * 2 {
                return Err(format!("{} waited too long for {what}", self.id()));
            }
            let until = self.driver.now() + POLL;
            self.driver.step(&mut self.program, until).map_err(|error| error.to_string())?;
        }
        Ok(())
    }

    /// Serves the others until all have finished.
    fn serve(&mut self, unfinished: &AtomicUsize) -> Result<(), String> {
        while unfinished.load(SeqCst) > 0 {
            let until = self.driver.now() + POLL;
            self.driver.step(&mut self.program, until).map_err(|error| error.to_string())?;
        }
        Ok(())
    }
}

/// How members are made.
#[derive(Clone, Copy, Debug)]
pub struct Members<'a> {
    pub count: u32,
    /// Whether the wrapper loses frames silently, so that requests have to be repeated.
    pub lossy: bool,
    /// Whether members answer requests.
    pub answers: bool,
    pub executions: &'a Executions,
}

impl Members<'_> {
    /// Runs `work` at all members, after all have joined each other. Each member serves the others
    /// until all have finished.
    pub fn run(
        self,
        subject: &mut dyn Subject,
        effort: &Effort,
        wrap: impl Fn(Box<dyn Transport>) -> Box<dyn Transport>,
        work: impl Fn(&mut Member<'_>) -> Result<(), String> + Sync,
    ) -> Result<(), String> {
        let Self { count, lossy, answers, executions } = self;
        let transports = subject.mesh(count);
        let all: Vec<NodeId> = transports.iter().map(|transport| transport.id()).collect();
        let members: Vec<Member<'_>> = transports
            .into_iter()
            .map(|transport| {
                let config = config(transport.capabilities(), lossy);
                let (joined, outcomes) = Default::default();
                let program = Echo {
                    executions,
                    answers,
                    joined,
                    outcomes,
                    #[cfg(feature = "collectives")]
                    collectives: BTreeMap::new(),
                };
                let driver = Driver::new(wrap(transport), config);
                Member { driver, program, all: &all, patience: effort.patience }
            })
            .collect();
        let unfinished = &AtomicUsize::new(members.len());
        let work = &work;
        thread::scope(|scope| {
            let threads: Vec<_> = members
                .into_iter()
                .map(|mut member| {
                    scope.spawn(move || {
                        let others = member.all.len() - 1;
                        let joined = |program: &Echo<'_>| program.joined.len() == others;
                        let result =
                            member.until("all to join", joined).and_then(|()| work(&mut member));
                        unfinished.fetch_sub(1, SeqCst);
                        result.and(member.serve(unfinished))
                    })
                })
                .collect();
            let join = |thread: thread::ScopedJoinHandle<'_, _>| {
                thread.join().map_err(|_| "the thread of a member panicked".to_owned())?
            };
            // All threads, also after one that has failed.
            let results: Vec<Result<(), String>> = threads.into_iter().map(join).collect();
            results.into_iter().collect()
        })
    }
}

/// Endpoint configuration whose frames are not longer than the transport allows.
fn config(capabilities: Capabilities, lossy: bool) -> Config {
    let identity = Identity { incarnation: 1, role: 0, run: 1, configuration: 1 };
    let mut config = Config::new(identity);
    config.retry = lossy.then_some(Duration::from_millis(50));
    #[cfg(feature = "collectives")]
    {
        // A part has the header of a request and one of its own.
        config.part_len = (capabilities.max_frame_len.saturating_sub(256) & !7).clamp(8, 16 << 10);
    }
    #[cfg(not(feature = "collectives"))]
    let _ = capabilities;
    config
}
