//! `halite serve`, running.

use super::http::{self, Response};
use super::{Place, halite_command};
use serde_json::Value;
use std::io::{BufRead, BufReader, Read};
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// A server of a test's own, ended with it.
pub(crate) struct Serving {
    child: Child,
    pub(crate) address: SocketAddr,
    /// What it printed when it was ready.
    pub(crate) greeting: String,
    stderr: Option<JoinHandle<String>>,
}

impl Serving {
    /// Serves a file under the name `tiny`, if it gets no other, on a free port.
    pub(crate) fn start(place: &Place, model: &str, more: &[&str]) -> Self {
        let name = if more.contains(&"--name") { &[][..] } else { &["--name", "tiny"] };
        Self::run(place.command(&[&["serve", "-m", model][..], name, more].concat()))
    }

    /// Serves the default model from the cache of whoever runs the tests.
    pub(crate) fn default_model(more: &[&str]) -> Self {
        Self::run(halite_command(&[&["serve"][..], more].concat()))
    }

    /// Any other command line of `halite serve`.
    pub(crate) fn run(mut command: Command) -> Self {
        command.args(["--port", "0"]).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut stderr = child.stderr.take().unwrap();
        let stderr = std::thread::spawn(move || {
            let mut text = Vec::new();
            stderr.read_to_end(&mut text).unwrap();
            String::from_utf8_lossy(&text).into_owned()
        });
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        let mut greeting = String::new();
        while !greeting.contains("\ntry: ") {
            if stdout.read_line(&mut greeting).unwrap() == 0 {
                panic!("the server ended: {greeting}{}", stderr.join().unwrap());
            }
        }
        let (_, rest) = greeting.split_once("listening on http://").unwrap();
        let address = rest.lines().next().unwrap().parse().unwrap();
        Self { child, address, greeting, stderr: Some(stderr) }
    }

    pub(crate) fn send(&self, method: &str, path: &str, headers: &[&str], body: Option<&[u8]>) -> Response {
        http::exchange(self.address, &http::text(method, path, headers, body))
    }

    pub(crate) fn get(&self, path: &str) -> Response {
        self.send("GET", path, &[], None)
    }

    pub(crate) fn post(&self, path: &str, body: &Value) -> Response {
        self.send("POST", path, &[], Some(body.to_string().as_bytes()))
    }

    /// A completion by the tiny model, without its own name for it.
    pub(crate) fn complete(&self, mut body: Value) -> Response {
        body["model"] = "tiny".into();
        self.post("/v1/completions", &body)
    }

    pub(crate) fn chat(&self, mut body: Value) -> Response {
        body["model"] = "tiny".into();
        self.post("/v1/chat/completions", &body)
    }

    pub(crate) fn health(&self) -> Value {
        self.get("/health").json()
    }

    /// Waits until nothing runs, waits or holds a block.
    pub(crate) fn settled(&self) {
        self.until("idle", |health| {
            health["running"] == 0 && health["waiting"] == 0 && health["kv_blocks"]["used"] == 0
        });
    }

    pub(crate) fn until(&self, what: &str, holds: impl Fn(&Value) -> bool) {
        let started = Instant::now();
        loop {
            let health = self.health();
            if holds(&health) {
                return;
            }
            assert!(started.elapsed() < Duration::from_secs(60), "not {what}: {health}");
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    #[cfg(unix)]
    pub(crate) fn signal(&self, name: &str) {
        let killed = Command::new("kill").args([name, &self.child.id().to_string()]).status().unwrap();
        assert!(killed.success());
    }

    /// Waits for the end: the exit code, and what was written to standard error.
    pub(crate) fn wait(mut self) -> (Option<i32>, String) {
        let code = self.child.wait().unwrap().code();
        let stderr = self.stderr.take().unwrap().join().unwrap();
        assert!(!stderr.contains("panicked"), "{stderr}");
        (code, stderr)
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        // It may have ended already.
        _ = self.child.kill();
        _ = self.child.wait();
    }
}
