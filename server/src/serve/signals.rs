//! The signals that end the server.

use std::io;

/// Ctrl-C and, where there is one, SIGTERM.
pub(super) struct Signals {
    #[cfg(unix)]
    watched: [tokio::signal::unix::Signal; 2],
}

impl Signals {
    /// From here on they do not end the program.
    #[cfg(unix)]
    pub(super) fn watch() -> io::Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};
        Ok(Self { watched: [signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?] })
    }

    #[cfg(not(unix))]
    pub(super) fn watch() -> io::Result<Self> {
        Ok(Self {})
    }

    /// Waits for the next one.
    #[cfg(unix)]
    pub(super) async fn next(&mut self) {
        let [interrupt, terminate] = &mut self.watched;
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
    }

    #[cfg(not(unix))]
    pub(super) async fn next(&mut self) {
        if tokio::signal::ctrl_c().await.is_err() {
            // Nobody can press it then.
            std::future::pending::<()>().await;
        }
    }
}
