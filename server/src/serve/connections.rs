//! Connections: how many, how slow, and their end.

use super::limits::{Limits, MAX_HEAD_BYTES};
use super::watched_stream::WatchedStream;
use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::task::JoinSet;

/// After a failure to accept, such as too many open files: there is nothing to do but to wait for some to close.
const AFTER_FAILURE: Duration = Duration::from_millis(50);

/// Serves connections until `stopping` changes, and then those that are open until each has had its answer.
pub(super) async fn serve(
    listener: TcpListener,
    router: Router,
    limits: Limits,
    mut stopping: watch::Receiver<()>,
) {
    let slots = Arc::new(Semaphore::new(limits.connections));
    let mut open = JoinSet::new();
    loop {
        // Those beyond the limit stay in the operating system's queue.
        let slot = tokio::select! {
            Ok(slot) = Arc::clone(&slots).acquire_owned() => slot,
            _ = stopping.changed() => break,
        };
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => {
                    open.spawn(connection(stream, router.clone(), limits.clone(), stopping.clone(), slot));
                }
                Err(error) => {
                    tracing::warn!(%error, "a connection could not be accepted");
                    tokio::time::sleep(AFTER_FAILURE).await;
                }
            },
            Some(_) = open.join_next() => {}
            _ = stopping.changed() => break,
        }
    }
    // From here on the operating system refuses new ones.
    drop(listener);
    while open.join_next().await.is_some() {}
}

async fn connection(
    stream: TcpStream,
    router: Router,
    limits: Limits,
    mut stopping: watch::Receiver<()>,
    _slot: OwnedSemaphorePermit,
) {
    // A token waits for no other; it would be sent later otherwise, not never.
    _ = stream.set_nodelay(true);
    let mut builder = http1::Builder::new();
    builder.timer(TokioTimer::new()).header_read_timeout(limits.read_timeout).max_header_size(MAX_HEAD_BYTES);
    let stream = TokioIo::new(WatchedStream::new(stream, limits.write_timeout));
    let connection = builder.serve_connection(stream, TowerToHyperService::new(router));
    let mut connection = pin!(connection);
    let outcome = tokio::select! {
        outcome = connection.as_mut() => outcome,
        _ = stopping.changed() => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = outcome {
        // A client that left, sent nonsense, or nothing for too long.
        tracing::debug!(%error, "a connection ended");
    }
}
