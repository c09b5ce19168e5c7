//! Loading of the first model, and reloading.
//!
//! A new file is read and checked while the current model serves, on a thread of its own. Only a valid
//! model replaces the current one; a failure is logged and counted, and the current model stays. Both
//! models are in memory until the last request of the old one is answered.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::task::spawn_blocking;
use tokio::time::sleep;
use tracing::{error, info};

use crate::commands::serve::app::App;
use crate::commands::serve::model::{OpenError, Opening, Ready, Stamp};
use crate::commands::serve::signals::Reloads;

/// Loads the first model.
///
/// # Errors
/// [`OpenError`].
pub async fn first(app: &Arc<App>, opening: &Opening) -> Result<Option<Stamp>, OpenError> {
    // Taken before the file is opened, so that a later change is detected.
    let stamp = Stamp::of(&opening.path);
    load(app, opening, Opening::open).await.map(|()| stamp)
}

/// Loads a model at every SIGHUP, and if the file checked every `watch` differs from `stamp`.
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
                // A missing file is one that is being replaced.
                () = sleep(watch) => match Stamp::of(&opening.path) {
                    Some(now) if stamp.as_ref() != Some(&now) => {}
                    _ => continue,
                },
            },
        }
        stamp = Stamp::of(&opening.path);
        if let Err(reason) = load(&app, &opening, Opening::reopen).await {
            app.metrics.not_loaded();
            error!(%reason, "reload failed; the current model stays");
        }
    }
}

async fn load(
    app: &Arc<App>,
    opening: &Opening,
    open: fn(&Opening) -> Result<Ready, OpenError>,
) -> Result<(), OpenError> {
    let start = Instant::now();
    let opened = spawn_blocking({
        let opening = opening.clone();
        move || open(&opening)
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
    // Idle threads drop the old model.
    app.queue.flush();
    Ok(())
}
