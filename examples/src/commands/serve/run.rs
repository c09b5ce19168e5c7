//! Start, run and shutdown of the service.

use std::io;
use std::sync::Arc;

use lda_core::infer::InferenceError;
use lda_examples::method::MethodError;
use thiserror::Error;
use tokio::net::TcpListener;
use tokio::time::{sleep, timeout};
use tracing::info;

use crate::commands::serve::app::App;
use crate::commands::serve::args::Args;
use crate::commands::serve::model::{OpenError, Opening};
use crate::commands::serve::routes::router;
use crate::commands::serve::{reload, server, signals, workers};

/// Errors of starting and stopping the service.
#[derive(Debug, Error)]
pub enum ServeError {
    /// An option does not belong to the inference method.
    #[error(transparent)]
    Method(#[from] MethodError),
    /// The service cannot listen on the address.
    #[error("--listen {address}: {source}; give another address")]
    Listen { address: String, source: io::Error },
    /// The system cannot start threads or install signal handlers.
    #[error("cannot start threads or handle signals: {0}")]
    System(io::Error),
    /// The model cannot be opened.
    #[error(transparent)]
    Model(#[from] OpenError),
    /// Requests in flight were not finished within `--grace`.
    #[error("{requests} requests were aborted: increase --grace")]
    CutOff { requests: i64 },
}

impl ServeError {
    /// Exit status: 2 if an option is the cause, 1 otherwise.
    pub fn status(&self) -> u8 {
        match self {
            Self::Method(_)
            | Self::Model(OpenError::Inference { source: InferenceError::Option { .. }, .. }) => 2,
            _ => 1,
        }
    }
}

/// Serves until a signal stops it.
///
/// # Errors
/// [`ServeError`].
pub fn run(args: Args) -> Result<(), ServeError> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(args.limits.io_threads.into())
        .thread_name("connections")
        .enable_all()
        .build()
        .map_err(ServeError::System)?;
    let served = runtime.block_on(serve(args));
    // Do not wait for a model that is being loaded.
    runtime.shutdown_background();
    served
}

async fn serve(args: Args) -> Result<(), ServeError> {
    let (reloads, mut endings) = signals::listen().map_err(ServeError::System)?;
    let opening = Opening::new(&args)?;
    let listener = TcpListener::bind(&args.listen).await;
    let refused = |source| ServeError::Listen { address: args.listen.clone(), source };
    let listener = listener.map_err(refused)?;
    let address = listener.local_addr().map_err(refused)?;
    let app = Arc::new(App::new(args.limits));
    workers::start(&app).map_err(ServeError::System)?;
    info!(%address, threads = app.limits.num_threads(), "listening");

    // Health and metrics are available while the model is loaded.
    let (failed, mut failure) = tokio::sync::oneshot::channel();
    let loading = {
        let (app, watch) = (Arc::clone(&app), args.model_file.watch);
        tokio::spawn(async move {
            match reload::first(&app, &opening).await {
                Ok(stamp) => reload::go_on(app, opening, stamp, reloads, watch).await,
                // The receiver lives as long as the service.
                Err(error) => drop(failed.send(error)),
            }
        })
    };
    let mut error = None;
    let ended = async {
        tokio::select! {
            () = endings.next() => {}
            Ok(reason) = &mut failure => error = Some(reason),
        }
        app.end();
        if error.is_none() {
            info!("shutting down");
            tokio::select! {
                () = sleep(app.limits.drain) => {}
                () = endings.next() => {}
            }
        }
    };
    let open = server::serve(listener, &app, router(Arc::clone(&app)), ended).await;
    loading.abort();
    if let Some(reason) = error {
        return Err(reason.into());
    }
    let closed = tokio::select! {
        closed = timeout(app.limits.grace, open.shutdown()) => closed.is_ok(),
        // A second signal aborts the requests in flight.
        () = endings.next() => false,
    };
    // An open connection without a request does not count.
    let requests = app.metrics.in_flight();
    if !closed && requests > 0 {
        return Err(ServeError::CutOff { requests });
    }
    info!("stopped");
    Ok(())
}
