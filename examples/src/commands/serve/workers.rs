//! Inference threads.
//!
//! Inference is CPU-bound: on the threads that serve connections it would block every other
//! connection. Each thread here takes a request from the [queue](crate::commands::serve::queue),
//! processes all of it, and sends the finished body back; a batch is one request, so that clients
//! share the threads evenly.
//!
//! If the client disconnects or the deadline passes, the reply channel is closed. The thread checks
//! that before each document and each sweep, and cancels the request.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread;

use tracing::error;

use crate::commands::serve::app::App;
use crate::commands::serve::problem::Problem;
use crate::commands::serve::queue::QueueItem;
use crate::commands::serve::work::{Caller, Work, WorkerState};

/// Starts the threads, which run until the process exits.
///
/// # Errors
/// If the system cannot start a thread.
pub fn start(app: &Arc<App>) -> io::Result<()> {
    (0..app.limits.num_threads()).try_for_each(|number| {
        let app = Arc::clone(app);
        let builder = thread::Builder::new().name(format!("infer-{number}"));
        builder.spawn(move || serve(&app)).map(drop)
    })
}

/// Main loop of a thread.
fn serve(app: &App) -> ! {
    let mut seen = 0;
    // A request of another model than that of the current state.
    let mut next: Option<Work> = None;
    loop {
        let mut work = match next.take().map_or_else(|| app.queue.take(&mut seen), QueueItem::Work)
        {
            QueueItem::Work(work) => work,
            QueueItem::Flush => continue,
        };
        let ready = Arc::clone(&work.ready);
        let mut worker = WorkerState::new(&ready, &app.limits, &app.metrics);
        // The session's scratch is reused until a request has another model; `Flush` makes an idle
        // thread drop the old model.
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

/// Processes a request; returns false if it panicked and may have left the session inconsistent.
fn process(work: Work, worker: &mut WorkerState<'_>) -> bool {
    let Work { task, reply, .. } = work;
    if reply.is_closed() {
        return true;
    }
    let outcome = catch_unwind(AssertUnwindSafe(|| task(worker, &Caller::new(&reply))));
    let whole = outcome.is_ok();
    if !whole {
        error!("a request panicked; the thread continues with a new session");
    }
    // If the client has left in the meantime, the reply is dropped.
    let _ = reply.send(outcome.unwrap_or(Err(Problem::Internal)));
    whole
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use lda_core::corpus::read::{Tokenizer, TokenizerOptions};
    use lda_core::infer::{Inference, Method};
    use lda_core::model::{TopicModel, Weights};
    use tokio::sync::oneshot;

    use super::*;
    use crate::commands::serve::args::Args;
    use crate::commands::serve::leading_words::LeadingWords;
    use crate::commands::serve::model::Ready;
    use crate::commands::serve::work::{Outcome, Task};

    fn ready() -> Arc<Ready> {
        let weights = Weights::from_rows(&[[0.9, 0.1], [0.1, 0.9]]).unwrap();
        let model = TopicModel::from_weights(weights, 0.1.into());
        let leading = LeadingWords::new(&model, 2);
        let inference = Inference::new(Box::new(model), Method::FOLD_IN, 0).unwrap();
        let tokenizer = Tokenizer::new(&TokenizerOptions::default()).unwrap();
        Arc::new(Ready {
            inference,
            fingerprint: String::new(),
            leading,
            tokenizer,
            seed: 0,
            mapped: None,
        })
    }

    fn push(app: &App, ready: &Arc<Ready>, task: Task) -> oneshot::Receiver<Outcome> {
        let (reply, outcome) = oneshot::channel();
        assert!(app.queue.push(Work { ready: Arc::clone(ready), task, reply }, |_| true).is_ok());
        outcome
    }

    #[test]
    fn a_thread_survives_panics_and_model_changes() {
        let args = Args::parse_from(["serve", "m.lda", "--threads", "1"]);
        let app = Arc::new(App::new(args.limits, args.model_file.max_terms));
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
        drop(push(&app, &models[0], Box::new(|_, _| unreachable!("no request waits for it"))));
        let last = push(&app, &models[1], Box::new(infer));
        start(&app).unwrap();
        let outcomes = outcomes.map(|outcome| outcome.blocking_recv().unwrap());
        for (number, outcome) in outcomes.into_iter().enumerate() {
            match number {
                1 => assert!(matches!(outcome, Err(Problem::Internal))),
                _ => assert_eq!(outcome.unwrap(), b"3", "{number}"),
            }
        }
        assert_eq!(last.blocking_recv().unwrap().unwrap(), b"3");
        // An idle thread drops the model when the queue is flushed.
        app.queue.flush();
        while models.iter().any(|model| Arc::strong_count(model) > 1) {
            thread::yield_now();
        }
    }
}
