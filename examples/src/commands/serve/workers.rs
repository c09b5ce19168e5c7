//! Threads that compute, and how requests come to them.
//!
//! Inference is all CPU: on the threads that serve connections it would hold up every other
//! connection. Each thread here takes a request from the [queue](crate::commands::serve::queue), does all of it, and
//! sends the finished body back; a batch is one request, so that clients share the threads evenly.
//!
//! A request whose client left, or whose time is over, has nobody who waits for its answer. That shows
//! in the channel of the answer, is looked at before each document and each sweep over it, and ends the
//! work.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread;

use lda_core::corpus::read::Tokenizer;
use lda_core::infer::{Answer, Inference, Session};
use lda_core::model::TopicModel;
use tokio::sync::oneshot;
use tracing::error;

use crate::commands::serve::app::App;
use crate::commands::serve::args::LimitArgs;
use crate::commands::serve::metrics::Metrics;
use crate::commands::serve::model::Ready;
use crate::commands::serve::problem::Problem;
use crate::commands::serve::queue::QueueItem;
use crate::commands::serve::request::{Document, Resolver};

/// A JSON text, or why there is none.
pub type Outcome = Result<Vec<u8>, Problem>;

/// What is done for a request.
pub type Task = Box<dyn FnOnce(&mut WorkerState<'_>, &Caller<'_>) -> Outcome + Send>;

/// A request on its way to a thread.
pub struct Work {
    /// The model that was in use when it came.
    pub ready: Arc<Ready>,
    pub task: Task,
    pub reply: oneshot::Sender<Outcome>,
}

/// Who waits for an answer.
pub struct Caller<'a>(&'a oneshot::Sender<Outcome>);

impl Caller<'_> {
    /// Whether nobody does any more.
    pub fn is_gone(&self) -> bool {
        self.0.is_closed()
    }
}

/// What a thread has at hand as long as it is asked about one model.
pub struct WorkerState<'a> {
    pub ready: &'a Ready,
    session: Session<'a, Box<TopicModel>>,
    tokenizer: &'a mut Tokenizer,
    limits: &'a LimitArgs,
    metrics: &'a Metrics,
}

impl WorkerState<'_> {
    /// Infers documents one after the other and calls `each` with every answer.
    ///
    /// # Errors
    /// What is wrong with a document, or that there are too many; [`Problem::Time`] once nobody waits
    /// for the answer.
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

/// Starts the threads, which end with the process: what they do then is wanted by nobody.
///
/// # Errors
/// Where the system has no more threads.
pub fn start(app: &Arc<App>, tokenizer: &Tokenizer) -> io::Result<()> {
    (0..app.limits.num_threads()).try_for_each(|number| {
        let (app, tokenizer) = (Arc::clone(app), tokenizer.clone());
        let builder = thread::Builder::new().name(format!("infer-{number}"));
        builder.spawn(move || serve(&app, tokenizer)).map(drop)
    })
}

/// A thread's life.
fn serve(app: &App, mut tokenizer: Tokenizer) -> ! {
    let mut seen = 0;
    // Of another model than the last.
    let mut next: Option<Work> = None;
    loop {
        let mut work = match next.take().map_or_else(|| app.queue.take(&mut seen), QueueItem::Work)
        {
            QueueItem::Work(work) => work,
            QueueItem::Flush => continue,
        };
        let ready = Arc::clone(&work.ready);
        let mut worker = WorkerState {
            ready: &ready,
            session: ready.inference.session(),
            tokenizer: &mut tokenizer,
            limits: &app.limits,
            metrics: &app.metrics,
        };
        // Scratch is kept until there is another model; an idle thread then lets go of the old one.
        while process(work, &mut worker) {
            work = match app.queue.take(&mut seen) {
                QueueItem::Work(work) if Arc::ptr_eq(&work.ready, &ready) => work,
                QueueItem::Work(work) => {
                    next = Some(work);
                    break;
                }
                QueueItem::Flush => break,
            };
        }
    }
}

/// Does the work; false if it panicked, and may have left the session as it should not be.
fn process(work: Work, worker: &mut WorkerState<'_>) -> bool {
    let Work { task, reply, .. } = work;
    if reply.is_closed() {
        return true;
    }
    let outcome = catch_unwind(AssertUnwindSafe(|| task(worker, &Caller(&reply))));
    let whole = outcome.is_ok();
    if !whole {
        error!("a request panicked; the thread goes on with new scratch");
    }
    // Who left meanwhile does not want it.
    let _ = reply.send(outcome.unwrap_or(Err(Problem::Internal)));
    whole
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use lda_core::infer::Method;
    use lda_core::model::Weights;

    use super::*;
    use crate::commands::serve::args::Args;
    use crate::commands::serve::topics::LeadingWords;

    fn ready() -> Arc<Ready> {
        let weights = Weights::from_rows(&[[0.9, 0.1], [0.1, 0.9]]).unwrap();
        let model = TopicModel::from_weights(weights, 0.1.into());
        let leading = LeadingWords::new(&model, 2);
        let inference = Inference::new(Box::new(model), Method::FOLD_IN, 0).unwrap();
        Arc::new(Ready { inference, fingerprint: String::new(), leading })
    }

    fn push(app: &App, ready: &Arc<Ready>, task: Task) -> oneshot::Receiver<Outcome> {
        let (reply, outcome) = oneshot::channel();
        assert!(app.queue.push(Work { ready: Arc::clone(ready), task, reply }, |_| true).is_ok());
        outcome
    }

    #[test]
    fn a_thread_outlives_panics_and_models() {
        let args = Args::parse_from(["serve", "m.lda", "--threads", "1"]);
        let tokenizer = Tokenizer::new(&args.words.options()).unwrap();
        let app = Arc::new(App::new(args.limits));
        let models = [ready(), ready()];
        let infer = |worker: &mut WorkerState<'_>, caller: &Caller<'_>| {
            let document = serde_json::from_str("{\"ids\": [1, 0, 1]}").unwrap();
            let mut tokens = 0;
            worker.infer([document].into_iter(), caller, |_, answer| tokens = answer.tokens)?;
            Ok(tokens.to_string().into_bytes())
        };
        let outcomes = [
            push(&app, &models[0], Box::new(infer)),
            push(&app, &models[0], Box::new(|_, _| panic!("on purpose"))),
            push(&app, &models[0], Box::new(infer)),
            push(&app, &models[1], Box::new(infer)),
            push(&app, &models[0], Box::new(infer)),
        ];
        drop(push(&app, &models[0], Box::new(|_, _| unreachable!("nobody waits for it"))));
        let last = push(&app, &models[1], Box::new(infer));
        start(&app, &tokenizer).unwrap();
        let outcomes = outcomes.map(|outcome| outcome.blocking_recv().unwrap());
        for (number, outcome) in outcomes.into_iter().enumerate() {
            match number {
                1 => assert!(matches!(outcome, Err(Problem::Internal))),
                _ => assert_eq!(outcome.unwrap(), b"3", "{number}"),
            }
        }
        assert_eq!(last.blocking_recv().unwrap().unwrap(), b"3");
        // Without work it lets go of the model, once it is told to.
        app.queue.flush();
        while models.iter().any(|model| Arc::strong_count(model) > 1) {
            thread::yield_now();
        }
    }
}
