//! A service on tokio: it trains in the background and answers inference requests meanwhile.
//!
//! Corpus, trainer and model are behind `Arc`. Training runs in `spawn_blocking` and publishes a model
//! after every round. A request takes microseconds, so it needs no thread of its own.
//!
//! `cargo run -p lda-core --example service_tokio` prints:
//!
//! ```text
//! after 0 epochs: 66 % of the leading topic
//! after 20 epochs: 95 % of the leading topic
//! after 40 epochs: 95 % of the leading topic
//! ```

use std::sync::{Arc, Mutex, PoisonError};

use lda_core::{Corpus, Inference, Method, Session, TopicModel, TrainOptions, Trainer};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::spawn_blocking;

type Model = Arc<Inference<Arc<TopicModel>>>;
type Error = Box<dyn std::error::Error + Send + Sync>;
/// Words of a document, and the channel for the share of its leading topic.
type Request = (Vec<&'static str>, oneshot::Sender<Option<f64>>);

struct Service {
    trainer: Mutex<Trainer<Arc<Corpus>>>,
    latest: watch::Sender<Model>,
}

impl Service {
    fn start(corpus: Arc<Corpus>) -> Result<Arc<Self>, Error> {
        let trainer = Trainer::new(corpus, &TrainOptions::new(2).alpha(0.1).seed(5))?;
        let latest = watch::Sender::new(prepared(&trainer)?);
        Ok(Arc::new(Self { trainer: Mutex::new(trainer), latest }))
    }

    /// Runs some epochs and publishes the model.
    fn train(&self, epochs: u32) -> Result<(), Error> {
        let mut trainer = self.trainer.lock().unwrap_or_else(PoisonError::into_inner);
        for _ in 0..epochs {
            trainer.epoch();
        }
        self.latest.send_replace(prepared(&trainer)?);
        Ok(())
    }

    async fn answer(self: Arc<Self>, mut requests: mpsc::Receiver<Request>) {
        let mut session = Session::new(Arc::clone(&self.latest.borrow()));
        while let Some((words, reply)) = requests.recv().await {
            // The session is reused, with its scratch memory, until there is another model.
            let latest = Arc::clone(&self.latest.borrow());
            if !std::ptr::eq(session.inference(), &*latest) {
                session = Session::new(latest);
            }
            let answer = session.infer_words(words);
            let leading = answer.ok().map(|answer| session.inference().leading(&answer));
            // An error means that the caller is gone.
            let _ = reply.send(leading.and_then(|topics| Some(topics.first()?.1)));
        }
    }
}

fn prepared(trainer: &Trainer<Arc<Corpus>>) -> Result<Model, Error> {
    Ok(Arc::new(Inference::new(Arc::new(trainer.model()), Method::FOLD_IN, 0)?))
}

#[tokio::main]
#[allow(clippy::print_stdout, reason = "an example shows its result")]
async fn main() -> Result<(), Error> {
    let themes = [["tree", "leaf", "wood", "root"], ["sea", "wave", "foam", "tide"]];
    let corpus = Arc::new(Corpus::from_words((0..200).map(|d| themes[d % 2]))?);
    let service = Service::start(corpus)?;
    let (requests, inbox) = mpsc::channel(64);
    let answering = tokio::spawn(Arc::clone(&service).answer(inbox));
    for round in 0..3 {
        let (reply, share) = oneshot::channel();
        requests.send((vec!["wave", "tide", "salt"], reply)).await?;
        let share = share.await?.ok_or("no word is known")?;
        println!("after {} epochs: {:.0} % of the leading topic", 20 * round, 100.0 * share);
        let service = Arc::clone(&service);
        spawn_blocking(move || service.train(20)).await??;
    }
    drop(requests);
    answering.await?;
    Ok(())
}
