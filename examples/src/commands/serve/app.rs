//! State shared by all requests, and the path of a request from its connection to a thread and back.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use axum::body::Body;
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use lda_examples::connections::{ClientSlot, Clients, RequestContext};
use tokio::sync::oneshot;
use tokio::time::{Instant, timeout_at};

use crate::commands::serve::answers_held::AnswersHeld;
use crate::commands::serve::args::LimitArgs;
use crate::commands::serve::body::{Bodies, Held};
use crate::commands::serve::metrics::Metrics;
use crate::commands::serve::model::{Current, Ready};
use crate::commands::serve::openapi;
use crate::commands::serve::problem::Problem;
use crate::commands::serve::queue::Queue;
use crate::commands::serve::work::{Caller, Outcome, Work, WorkerState};

/// Header with the fingerprint of the model of an answer.
const MODEL: HeaderName = HeaderName::from_static("x-model");

/// State shared by connections and inference threads.
pub struct App {
    pub limits: LimitArgs,
    pub current: Current,
    pub queue: Queue<Work>,
    pub bodies: Bodies,
    pub answers: AnswersHeld,
    pub metrics: Metrics,
    /// The OpenAPI description.
    pub description: String,
    clients: Arc<Clients>,
    ending: AtomicBool,
}

/// An admitted request: it holds its model, its body and its slot of the client until it is dropped.
pub struct RequestGuard {
    ready: Arc<Ready>,
    deadline: Instant,
    /// Empty if the request has none.
    body: Held,
    _admitted: ClientSlot,
}

impl App {
    /// State without a model; requests fail with [`Problem::Loading`] until one is loaded.
    pub fn new(limits: LimitArgs, max_terms: usize) -> Self {
        Self {
            current: Current::default(),
            queue: Queue::new(limits.queue),
            bodies: Bodies::new(limits.max_body as usize, limits.max_buffered),
            answers: AnswersHeld::new(limits.max_answers),
            metrics: Metrics::new(),
            description: openapi::with_limits(max_terms, limits.max_documents),
            clients: Arc::new(Clients::new(limits.requests_per_client())),
            ending: AtomicBool::new(false),
            limits,
        }
    }

    /// Marks the service as stopping: it is not ready any more.
    pub fn end(&self) {
        self.ending.store(true, Ordering::Relaxed);
    }

    /// Whether the service is ready, and if not, the reason.
    pub fn readiness(&self) -> Result<(), Problem> {
        match self.current.get() {
            _ if self.ending.load(Ordering::Relaxed) => Err(Problem::Ending),
            None => Err(Problem::Loading),
            Some(ready) => ready.check_file(),
        }
    }

    /// Admits a request without a body.
    ///
    /// # Errors
    /// [`Problem::Loading`], [`Problem::Overwritten`] or [`Problem::Client`].
    pub fn admit(&self, context: RequestContext) -> Result<RequestGuard, Problem> {
        let ready = self.current.get().ok_or(Problem::Loading)?;
        ready.check_file()?;
        let busy = Problem::Client { limit: self.clients.limit() };
        Ok(RequestGuard {
            ready,
            deadline: context.deadline,
            body: Held::default(),
            _admitted: self.clients.admit(context.client).ok_or(busy)?,
        })
    }

    /// Admits a request and receives its body.
    ///
    /// # Errors
    /// As [`admit`](Self::admit), [`Problem::BodyTime`], and those of [`Bodies::receive`].
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

    /// Runs `task` with the body on an inference thread.
    ///
    /// # Errors
    /// [`Problem::Queue`], [`Problem::Time`], [`Problem::Answers`], [`Problem::Overwritten`], and those of the
    /// task.
    pub async fn ask(
        &self,
        guard: RequestGuard,
        task: impl FnOnce(&[u8], &mut WorkerState<'_>, &Caller<'_>) -> Outcome + Send + 'static,
    ) -> Result<Response, Problem> {
        let RequestGuard { ready, deadline, body, _admitted } = guard;
        let (print, used) = (header_value(&ready.fingerprint), Arc::clone(&ready));
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
        // The sender is dropped without a reply only if its thread was lost.
        let json = self.answers.count(outcome.map_err(|_| Problem::Internal)??)?;
        // Looked at after the work, so that no answer is of a file that has changed.
        used.check_file()?;
        let media_type = HeaderValue::from_static("application/json");
        Ok(([(header::CONTENT_TYPE, media_type), (MODEL, print)], json).into_response())
    }

    /// Like [`ask`](Self::ask) for an answer that depends only on the model: returns 304 if the client
    /// has the answer of the current model.
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
        // A weak tag, because another version of the program may format the same numbers differently.
        response.headers_mut().insert(header::ETAG, header_value(&format!("W/\"{print}\"")));
        Ok(response)
    }
}

impl RequestGuard {
    /// Number of topics of the request's model.
    pub fn num_topics(&self) -> usize {
        self.ready.model().num_topics()
    }

    /// Maximum number of words per topic in an answer.
    pub fn max_terms(&self) -> usize {
        self.ready.leading.limit()
    }
}

fn header_value(text: &str) -> HeaderValue {
    HeaderValue::from_str(text).expect("digits and quotes")
}
