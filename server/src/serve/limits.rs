//! What one client may ask for, and how long it may take to ask.

use std::time::Duration;

/// The most answers of one request: prompts times `n`.
pub(super) const MAX_CHOICES: usize = 64;
/// The most stop strings of a request.
pub(super) const MAX_STOPS: usize = 16;
/// The longest stop string, in bytes.
pub(super) const MAX_STOP_BYTES: usize = 512;
/// The most logit biases of a request: OpenAI's limit is 300.
pub(super) const MAX_LOGIT_BIASES: usize = 1024;
/// The most messages of a conversation.
pub(super) const MAX_MESSAGES: usize = 4096;
/// The most tools of a request.
pub(super) const MAX_TOOLS: usize = 128;
/// Bytes of a request's head.
pub(super) const MAX_HEAD_BYTES: usize = 32 << 10;

/// Bounds on connections and bodies.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limits {
    /// The largest body, in bytes.
    pub body_bytes: usize,
    /// The most bytes of all bodies together that arrive or wait to be read; at least one of the largest has room. What
    /// goes beyond is refused.
    pub all_body_bytes: usize,
    /// The longest time for a request's head, and again for its body, to arrive. A connection that says nothing for as
    /// long is closed.
    pub read_timeout: Duration,
    /// The longest time in which a client takes nothing of what is sent to it. Then its connection is closed.
    pub write_timeout: Duration,
    /// The most connections at once; further ones wait to be accepted.
    pub connections: usize,
    /// The longest time that running requests have to end once the server is to stop.
    pub shutdown: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            body_bytes: 4 << 20,
            all_body_bytes: 256 << 20,
            read_timeout: Duration::from_secs(30),
            write_timeout: Duration::from_secs(60),
            connections: 512,
            shutdown: Duration::from_secs(30),
        }
    }
}

impl Limits {
    /// The defaults.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the largest body, in bytes.
    #[must_use]
    pub fn body_bytes(mut self, bytes: usize) -> Self {
        self.body_bytes = bytes;
        self
    }

    /// Sets the most bytes of all bodies together.
    #[must_use]
    pub fn all_body_bytes(mut self, bytes: usize) -> Self {
        self.all_body_bytes = bytes;
        self
    }

    /// Sets the longest time for a head or a body to arrive.
    #[must_use]
    pub fn read_timeout(mut self, time: Duration) -> Self {
        self.read_timeout = time;
        self
    }

    /// Sets the longest time in which a client takes nothing of what is sent to it.
    #[must_use]
    pub fn write_timeout(mut self, time: Duration) -> Self {
        self.write_timeout = time;
        self
    }

    /// Sets the most connections at once.
    #[must_use]
    pub fn connections(mut self, connections: usize) -> Self {
        self.connections = connections;
        self
    }

    /// Sets how long running requests have once the server is to stop.
    #[must_use]
    pub fn shutdown(mut self, time: Duration) -> Self {
        self.shutdown = time;
        self
    }
}
