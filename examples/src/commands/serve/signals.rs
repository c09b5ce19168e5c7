//! Signals: HUP reloads the model, TERM and INT stop the service.

use std::io;

#[cfg(unix)]
mod system {
    use std::io;

    use tokio::signal::unix::{Signal, SignalKind, signal};

    /// Requests to reload the model.
    #[derive(Debug)]
    pub struct Reloads(Signal);

    /// Requests to stop.
    #[derive(Debug)]
    pub struct Endings(Signal, Signal);

    pub fn listen() -> io::Result<(Reloads, Endings)> {
        let hangup = signal(SignalKind::hangup())?;
        let endings = Endings(signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
        Ok((Reloads(hangup), endings))
    }

    impl Reloads {
        /// Waits for the next request.
        pub async fn next(&mut self) {
            self.0.recv().await;
        }
    }

    impl Endings {
        /// Waits for the next request.
        pub async fn next(&mut self) {
            tokio::select! {
                _ = self.0.recv() => {}
                _ = self.1.recv() => {}
            }
        }
    }
}

#[cfg(not(unix))]
mod system {
    use std::io;

    /// This system has no such signal; only `--watch` reloads.
    #[derive(Debug)]
    pub struct Reloads;

    /// Ctrl-C.
    #[derive(Debug)]
    pub struct Endings;

    pub fn listen() -> io::Result<(Reloads, Endings)> {
        Ok((Reloads, Endings))
    }

    impl Reloads {
        /// Never returns.
        pub async fn next(&mut self) {
            std::future::pending().await
        }
    }

    impl Endings {
        /// Waits for the next request.
        pub async fn next(&mut self) {
            // Without Ctrl-C only the system stops the process.
            if tokio::signal::ctrl_c().await.is_err() {
                std::future::pending().await
            }
        }
    }
}

pub use system::{Endings, Reloads};

/// Installs the signal handlers.
///
/// # Errors
/// Those of the system.
pub fn listen() -> io::Result<(Reloads, Endings)> {
    system::listen()
}
