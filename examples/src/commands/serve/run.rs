//! Start, run and shutdown of the service.

use std::fmt::Display;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use lda_core::infer::InferenceError;
use lda_examples::connections::{self, Bounds, Observer};
use lda_examples::method::MethodError;
use thiserror::Error;
use tokio::net::TcpListener;
use tokio::time::{sleep, timeout};
use tracing::{debug, info, warn};

use crate::commands::serve::app::App;
use crate::commands::serve::args::Args;
use crate::commands::serve::metrics::Connected;
use crate::commands::serve::model::{OpenError, Opening};
use crate::commands::serve::routes::{health_router, router};
use crate::commands::serve::{reload, signals, workers};

/// Maximum number of connections for health checks and metrics.
const HEALTH_CONNECTIONS: usize = 64;

/// Errors of starting and stopping the service.
#[derive(Debug, Error)]
pub enum ServeError {
    /// An option does not belong to the inference method.
    #[error(transparent)]
    Method(#[from] MethodError),
    /// The service cannot listen on the address.
    #[error("{option} {address}: {source}; give another address")]
    Listen { option: &'static str, address: String, source: io::Error },
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
        .worker_threads(args.connections.io_threads.into())
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
    let (listener, address) = listen("--listen", &args.connections.listen).await?;
    let health = match &args.connections.health_listen {
        Some(address) => Some(listen("--health-listen", address).await?),
        None => None,
    };
    let bounds = args.connections.bounds();
    let app = Arc::new(App::new(args.limits, args.model_file.max_terms));
    workers::start(&app).map_err(ServeError::System)?;
    info!(%address, threads = app.limits.num_threads(), "listening");
    if let Some((listener, address)) = health {
        info!(%address, "listening for health checks");
        let (app, routes) = (Arc::clone(&app), health_router(Arc::clone(&app)));
        let bounds = Bounds {
            connections: HEALTH_CONNECTIONS,
            per_client: HEALTH_CONNECTIONS / 2,
            ..bounds
        };
        // It answers until the process ends.
        tokio::spawn(connections::serve(listener, bounds, app, routes, std::future::pending()));
    }

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
    let routes = router(Arc::clone(&app));
    let open = connections::serve(listener, bounds, Arc::clone(&app), routes, ended).await;
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

async fn listen(
    option: &'static str,
    address: &str,
) -> Result<(TcpListener, SocketAddr), ServeError> {
    let open = async || {
        let listener = TcpListener::bind(address).await?;
        let address = listener.local_addr()?;
        Ok((listener, address))
    };
    let refused = |source| ServeError::Listen { option, address: address.to_owned(), source };
    open().await.map_err(refused)
}

impl Observer for App {
    type Connected = Connected;

    fn connected(&self) -> Connected {
        self.metrics.connect()
    }

    fn failed(&self, client: Option<SocketAddr>, reason: &dyn Display) {
        match client {
            Some(client) => debug!(%client, %reason, "connection"),
            None => warn!(%reason, "a connection was not accepted"),
        }
    }
}
