//! The first model, and new ones in its place.
//!
//! A new file is read and checked beside the model in use, on a thread that is neither a connection's nor
//! one that infers. Only a whole one takes its place; anything else is logged and counted, and the old
//! model goes on. Memory holds both until the last request of the old one is answered.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::task::spawn_blocking;
use tokio::time::sleep;
use tracing::{error, info};

use crate::commands::serve::app::App;
use crate::commands::serve::model::{OpenError, Opening, Stamp};
use crate::commands::serve::signals::Reloads;

/// Loads the first model.
///
/// # Errors
/// [`OpenError`].
pub async fn first(app: &Arc<App>, opening: &Opening) -> Result<Option<Stamp>, OpenError> {
    // Before the file is opened: what changes afterwards is seen as a change.
    let stamp = Stamp::of(&opening.path);
    load(app, opening).await.map(|()| stamp)
}

/// Loads a model whenever it is asked to, or `watch` finds another file than the one of `stamp`.
pub async fn go_on(
    app: Arc<App>,
    opening: Opening,
    mut stamp: Option<Stamp>,
    mut reloads: Reloads,
    watch: Option<Duration>,
) {
    loop {
        match watch {
            None => reloads.next().await,
            Some(watch) => tokio::select! {
                () = reloads.next() => {}
                // No file is a file that is being replaced.
                () = sleep(watch) => match Stamp::of(&opening.path) {
                    Some(now) if stamp.as_ref() != Some(&now) => {}
                    _ => continue,
                },
            },
        }
        stamp = Stamp::of(&opening.path);
        if let Err(reason) = load(&app, &opening).await {
            app.metrics.not_loaded();
            error!(%reason, "the model stays as it is");
        }
    }
}

async fn load(app: &Arc<App>, opening: &Opening) -> Result<(), OpenError> {
    let start = Instant::now();
    let opened = spawn_blocking({
        let opening = opening.clone();
        move || opening.open()
    });
    let fault = |_| OpenError::Fault { path: opening.path.clone() };
    let ready = opened.await.map_err(fault)??;
    info!(
        model = ready.fingerprint,
        topics = ready.model().num_topics(),
        words = ready.model().num_words(),
        bytes = ready.model().memory() + ready.inference.memory(),
        seconds = start.elapsed().as_secs_f64(),
        "model loaded"
    );
    app.metrics.loaded(&ready);
    app.current.set(ready);
    // Threads without work let go of the old one.
    app.queue.flush();
    Ok(())
}
