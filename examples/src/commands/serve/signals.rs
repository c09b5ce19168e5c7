//! Signals: HUP loads the model anew, TERM and INT end the service.

use std::io;

#[cfg(unix)]
mod system {
    use std::io;

    use tokio::signal::unix::{Signal, SignalKind, signal};

    /// Wishes for a new model.
    #[derive(Debug)]
    pub struct Reloads(Signal);

    /// Wishes for an end.
    #[derive(Debug)]
    pub struct Endings(Signal, Signal);

    pub fn listen() -> io::Result<(Reloads, Endings)> {
        let hangup = signal(SignalKind::hangup())?;
        let endings = Endings(signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
        Ok((Reloads(hangup), endings))
    }

    impl Reloads {
        /// The next one.
        pub async fn next(&mut self) {
            self.0.recv().await;
        }
    }

    impl Endings {
        /// The next one.
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

    /// There is no such signal here: `--watch` is left.
    #[derive(Debug)]
    pub struct Reloads;

    /// Ctrl-C.
    #[derive(Debug)]
    pub struct Endings;

    pub fn listen() -> io::Result<(Reloads, Endings)> {
        Ok((Reloads, Endings))
    }

    impl Reloads {
        /// Never.
        pub async fn next(&mut self) {
            std::future::pending().await
        }
    }

    impl Endings {
        /// The next one.
        pub async fn next(&mut self) {
            // Where there is no Ctrl-C either, only the system ends it.
            if tokio::signal::ctrl_c().await.is_err() {
                std::future::pending().await
            }
        }
    }
}

pub use system::{Endings, Reloads};

/// Takes the signals from now on.
///
/// # Errors
/// Where the system does not let it.
pub fn listen() -> io::Result<(Reloads, Endings)> {
    system::listen()
}
