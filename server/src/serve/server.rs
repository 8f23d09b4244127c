//! The server as a whole: from a port to its end.

use super::app::{App, Serving};
use super::body_room::BodyRoom;
use super::engine_thread;
use super::error::ApiError;
use super::health::{Health, Status};
use super::job::EngineClient;
use super::limits::Limits;
use super::prompt::Model;
use super::routes::router;
use super::sampling_defaults::SamplingDefaults;
use super::signals::Signals;
use super::{connections, wire};
use halite_engine::Engine;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, OnceLock};
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::watch;

/// Threads that serve connections. They only move bytes; the cores are the engine's.
const WORKERS: usize = 2;
/// Threads that parse and tokenize. Further requests wait for one.
const READERS: usize = 4;
/// How long connections have to send their last words once everything was cancelled.
const LAST_WORDS: Duration = Duration::from_secs(2);

/// What a server needs to know besides the model.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ServeOptions {
    /// The name that requests call the model by.
    pub model: String,
    /// What clients must show; `None` lets everybody in.
    pub api_key: Option<String>,
    /// Bounds on connections and bodies.
    pub limits: Limits,
}

impl ServeOptions {
    /// Serves a model by this name, to everybody.
    pub fn new(model: impl Into<String>) -> Self {
        Self { model: model.into(), api_key: None, limits: Limits::default() }
    }

    /// Sets what clients must show; an empty key is none.
    #[must_use]
    pub fn api_key(mut self, key: Option<String>) -> Self {
        self.api_key = key.filter(|key| !key.is_empty());
        self
    }

    /// Sets the bounds on connections and bodies.
    #[must_use]
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }
}

/// A server that listens.
///
/// It has a port before it has a model, and answers 503 until [`serve`](Self::serve).
///
/// ```no_run
/// use halite_engine::{Engine, EngineOptions};
/// use halite_server::serve::{SamplingDefaults, ServeOptions, Server};
///
/// # fn f() -> Result<(), Box<dyn std::error::Error>> {
/// let mut server = Server::bind("127.0.0.1", 8080, ServeOptions::new("my-model"))?;
/// let device = halite_cpu::Cpu::new(halite_cpu::Options::default())?;
/// let engine = Engine::load(device, "model.gguf", &EngineOptions::new(), &mut |_| {})?;
/// server.serve(engine, SamplingDefaults::new().temperature(0.7))?;
/// server.run(|| println!("ready"))?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Server {
    runtime: Runtime,
    app: Arc<App>,
    address: SocketAddr,
    options: ServeOptions,
    stopping: watch::Sender<()>,
    connections: tokio::task::JoinHandle<()>,
    engine: Option<(EngineClient, JoinHandle<()>)>,
}

impl Server {
    /// Listens on a host's port; 0 takes any that is free.
    ///
    /// # Errors
    /// The address is unknown or taken, or threads cannot be started.
    pub fn bind(host: &str, port: u16, options: ServeOptions) -> io::Result<Self> {
        let runtime = Builder::new_multi_thread()
            .worker_threads(WORKERS)
            .max_blocking_threads(READERS)
            .thread_name("serve")
            .enable_all()
            .build()?;
        let listener = runtime.block_on(TcpListener::bind((host, port)))?;
        let address = listener.local_addr()?;
        let app = Arc::new(App {
            health: Arc::new(Health::new()),
            serving: OnceLock::new(),
            api_key: options.api_key.clone(),
            limits: options.limits.clone(),
            body_room: BodyRoom::new(&options.limits),
        });
        let (stopping, stops) = watch::channel(());
        let serve = connections::serve(listener, router(&app), options.limits.clone(), stops);
        let connections = runtime.spawn(serve);
        Ok(Self { runtime, app, address, options, stopping, connections, engine: None })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Serves this engine from now on; `defaults` hold where a request does not say how tokens are chosen. A second
    /// engine is an error.
    ///
    /// # Errors
    /// The engine's thread cannot be started, or there is one.
    pub fn serve(&mut self, engine: Engine, defaults: SamplingDefaults) -> io::Result<()> {
        if self.engine.is_some() {
            return Err(io::Error::other("the server has a model already"));
        }
        let model = Arc::new(Model::new(self.options.model.clone(), wire::now(), &engine, defaults));
        let health = &self.app.health;
        let (client, thread) = engine_thread::spawn(engine, health)?;
        _ = self.app.serving.set(Serving { model, engine: client.clone() });
        health.advance(Status::Ready);
        self.engine = Some((client, thread));
        Ok(())
    }

    /// Serves until Ctrl-C or SIGTERM, then stops as [`stop`](Self::stop) does; a second one hurries it. `ready` is
    /// called once signals are watched.
    ///
    /// # Errors
    /// Signals cannot be watched.
    pub fn run(self, ready: impl FnOnce()) -> io::Result<()> {
        let mut signals = {
            let _runtime = self.runtime.enter();
            Signals::watch()?
        };
        ready();
        self.runtime.block_on(signals.next());
        tracing::info!("finishing what runs; once more to hurry");
        self.end(async move { signals.next().await });
        Ok(())
    }

    /// Refuses what is new, finishes what runs within the limit, cancels the rest, and ends.
    pub fn stop(self) {
        self.end(std::future::pending());
    }

    fn end(self, hurry: impl Future<Output = ()>) {
        let Self { runtime, app, options, stopping, mut connections, engine, .. } = self;
        app.health.advance(Status::Stopping);
        // Nobody listening means that no connection is left.
        _ = stopping.send(());
        runtime.block_on(async {
            let done = tokio::select! {
                _ = &mut connections => true,
                () = tokio::time::sleep(options.limits.shutdown) => false,
                () = hurry => false,
            };
            if !done {
                if let Some((client, _)) = &engine {
                    client.abort_all(ApiError::stopping());
                }
                _ = tokio::time::timeout(LAST_WORDS, &mut connections).await;
            }
        });
        runtime.shutdown_background();
        if let Some((client, thread)) = engine {
            client.stop();
            // A thread that panicked has said so.
            _ = thread.join();
        }
    }
}
