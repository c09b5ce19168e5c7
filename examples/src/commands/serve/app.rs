//! What all requests share, and a request's way from its connection to a thread and back.

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use axum::body::Body;
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use tokio::sync::oneshot;
use tokio::time::{Instant, timeout_at};

use crate::commands::serve::args::LimitArgs;
use crate::commands::serve::body::{Bodies, Held};
use crate::commands::serve::clients::{ClientSlot, Clients};
use crate::commands::serve::metrics::Metrics;
use crate::commands::serve::model::{Current, Ready};
use crate::commands::serve::problem::Problem;
use crate::commands::serve::queue::Queue;
use crate::commands::serve::workers::{Caller, Outcome, Work, WorkerState};

/// Which model an answer is of.
const MODEL: HeaderName = HeaderName::from_static("x-model");

/// Shared by connections and threads.
pub struct App {
    pub limits: LimitArgs,
    pub current: Current,
    pub queue: Queue<Work>,
    pub bodies: Bodies,
    pub metrics: Metrics,
    clients: Arc<Clients>,
    ending: AtomicBool,
}

/// Of each request: where it comes from, and until when it is answered.
#[derive(Clone, Copy, Debug)]
pub struct RequestContext {
    pub client: IpAddr,
    pub deadline: Instant,
}

/// A request that was let in.
pub struct RequestGuard {
    ready: Arc<Ready>,
    deadline: Instant,
    /// Of a request that has one.
    body: Held,
    _admitted: Option<ClientSlot>,
}

impl App {
    /// Without a model as yet.
    pub fn new(limits: LimitArgs) -> Self {
        Self {
            current: Current::default(),
            queue: Queue::new(limits.queue),
            bodies: Bodies::new(limits.max_body as usize, limits.max_buffered),
            metrics: Metrics::new(),
            clients: Arc::new(Clients::new(limits.per_client)),
            ending: AtomicBool::new(false),
            limits,
        }
    }

    /// From now on the service is not ready.
    pub fn end(&self) {
        self.ending.store(true, Ordering::Relaxed);
    }

    /// Why the service is not ready, if it is not.
    pub fn readiness(&self) -> Result<(), Problem> {
        match self.current.get() {
            _ if self.ending.load(Ordering::Relaxed) => Err(Problem::Ending),
            None => Err(Problem::Loading),
            Some(_) => Ok(()),
        }
    }

    /// Lets a request in that asks about the model.
    ///
    /// # Errors
    /// [`Problem::Loading`] or [`Problem::Client`].
    pub fn admit(&self, context: RequestContext) -> Result<RequestGuard, Problem> {
        Ok(RequestGuard {
            ready: self.current.get().ok_or(Problem::Loading)?,
            deadline: context.deadline,
            body: Held::default(),
            _admitted: self.clients.admit(context.client)?,
        })
    }

    /// Lets a request in and receives its body.
    ///
    /// # Errors
    /// As [`admit`](Self::admit), and what is wrong with the body.
    pub async fn receive(
        &self,
        context: RequestContext,
        body: Body,
    ) -> Result<RequestGuard, Problem> {
        let mut guard = self.admit(context)?;
        let body = timeout_at(context.deadline, self.bodies.receive(body)).await;
        guard.body = body.map_err(|_| Problem::BodyTime)??;
        Ok(guard)
    }

    /// Has a thread do `task`, which gets the body.
    ///
    /// # Errors
    /// [`Problem::Queue`], [`Problem::Time`], and those of the task.
    pub async fn ask(
        &self,
        guard: RequestGuard,
        task: impl FnOnce(&[u8], &mut WorkerState<'_>, &Caller<'_>) -> Outcome + Send + 'static,
    ) -> Result<Response, Problem> {
        let RequestGuard { ready, deadline, body, _admitted } = guard;
        let print = header_value(&ready.fingerprint);
        let (reply, outcome) = oneshot::channel();
        let work = Work {
            ready,
            task: Box::new(move |worker, caller| task(&body.bytes, worker, caller)),
            reply,
        };
        let is_wanted = |work: &Work| !work.reply.is_closed();
        let full = |_| Problem::Queue { limit: self.queue.limit() };
        self.queue.push(work, is_wanted).map_err(full)?;
        let outcome = timeout_at(deadline, outcome).await.map_err(|_| Problem::Time)?;
        // Dropped without a reply: only if a thread is lost.
        let json = outcome.map_err(|_| Problem::Internal)??;
        let media_type = HeaderValue::from_static("application/json");
        Ok(([(header::CONTENT_TYPE, media_type), (MODEL, print)], json).into_response())
    }

    /// The same for what follows from the model alone: a client that has it is told so.
    ///
    /// # Errors
    /// As [`ask`](Self::ask).
    pub async fn look_up(
        &self,
        guard: RequestGuard,
        request: &HeaderMap,
        task: impl FnOnce(&mut WorkerState<'_>, &Caller<'_>) -> Outcome + Send + 'static,
    ) -> Result<Response, Problem> {
        let print = guard.ready.fingerprint.clone();
        let known = request.get_all(header::IF_NONE_MATCH).iter().any(|tags| {
            tags.to_str().is_ok_and(|tags| tags.trim() == "*" || tags.contains(&print))
        });
        let mut response = match known {
            true => (StatusCode::NOT_MODIFIED, [(MODEL, header_value(&print))]).into_response(),
            false => self.ask(guard, |_, worker, caller| task(worker, caller)).await?,
        };
        // Weak: another version of the program may write the same numbers otherwise.
        response.headers_mut().insert(header::ETAG, header_value(&format!("W/\"{print}\"")));
        Ok(response)
    }
}

impl RequestGuard {
    /// Topics of the model that the request is about.
    pub fn num_topics(&self) -> usize {
        self.ready.model().num_topics()
    }

    /// Words of a topic that can be asked for.
    pub fn max_terms(&self) -> usize {
        self.ready.leading.limit()
    }
}

fn header_value(text: &str) -> HeaderValue {
    HeaderValue::from_str(text).expect("digits and quotes")
}
