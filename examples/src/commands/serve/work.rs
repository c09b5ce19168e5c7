//! The work of a request, and the state of the thread that does it.

use std::sync::Arc;

use lda_core::corpus::read::Tokenizer;
use lda_core::infer::{Answer, Inference, Session};
use lda_core::model::TopicModel;
use tokio::sync::oneshot;

use crate::commands::serve::args::LimitArgs;
use crate::commands::serve::metrics::Metrics;
use crate::commands::serve::model::Ready;
use crate::commands::serve::problem::Problem;
use crate::commands::serve::request::{Document, Resolver};

/// JSON of an answer, or the error.
pub type Outcome = Result<Vec<u8>, Problem>;

/// The work of a request.
pub type Task = Box<dyn FnOnce(&mut WorkerState<'_>, &Caller<'_>) -> Outcome + Send>;

/// A queued request.
pub struct Work {
    /// The model that was in use when the request arrived.
    pub ready: Arc<Ready>,
    pub task: Task,
    pub reply: oneshot::Sender<Outcome>,
}

/// The client that waits for an answer.
pub struct Caller<'a>(&'a oneshot::Sender<Outcome>);

impl<'a> Caller<'a> {
    /// The client that `reply` goes to.
    pub fn new(reply: &'a oneshot::Sender<Outcome>) -> Self {
        Self(reply)
    }

    /// Whether the client has disconnected or the deadline has passed.
    pub fn is_gone(&self) -> bool {
        self.0.is_closed()
    }
}

/// State of an inference thread for consecutive requests of one model.
pub struct WorkerState<'a> {
    pub ready: &'a Ready,
    session: Session<&'a Inference<Box<TopicModel>>>,
    tokenizer: Tokenizer,
    limits: &'a LimitArgs,
    metrics: &'a Metrics,
}

impl<'a> WorkerState<'a> {
    /// State for requests of the model `ready`.
    pub fn new(ready: &'a Ready, limits: &'a LimitArgs, metrics: &'a Metrics) -> Self {
        let (session, tokenizer) = (ready.inference.session(), ready.tokenizer.clone());
        Self { ready, session, tokenizer, limits, metrics }
    }

    /// Limits of a request.
    pub fn limits(&self) -> &'a LimitArgs {
        self.limits
    }

    /// Infers documents one after the other and calls `each` with every answer.
    ///
    /// # Errors
    /// Those of [`Resolver`]; [`Problem::Time`] if the caller is gone.
    pub fn infer(
        &mut self,
        documents: impl ExactSizeIterator<Item = Document>,
        caller: &Caller<'_>,
        mut each: impl FnMut(&Inference<Box<TopicModel>>, &Answer),
    ) -> Result<(), Problem> {
        let Self { ready, session, tokenizer, limits, metrics } = self;
        let mut resolver = Resolver::new(ready.model(), tokenizer, limits, documents.len())?;
        let mut answer = Answer::default();
        for document in documents {
            let words = resolver.resolve(document)?;
            if caller.is_gone() || !session.infer_while(words, &mut answer, || !caller.is_gone()) {
                return Err(Problem::Time);
            }
            metrics.document(&answer);
            each(&ready.inference, &answer);
        }
        Ok(())
    }
}
